"""The confinement holds against probes.py: for root, for an ordinary user and in a container."""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import containers
import pytest
from probes import ROOT

from autograder.box import lockdown

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the box needs Linux")

PROBES = str(ROOT / "tests" / "probes.py")
BURN = "burn time"  # takes the second that the limit allows, which is one system call for everybody
ALLOWED_IN_BASE = {"fork", "exec", "memfd", "write inside", "rename inside"}
NEVER_POSSIBLE = {"64 GiB", "x32 call", "clone3"}  # no memory, no x32 in this kernel, no arguments
SYSTEM_PYTHON = next((p for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p)), sys.executable)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
needs_runc = pytest.mark.skipif(not containers.available(), reason="needs root and runc")
users = pytest.mark.parametrize("user", ["", pytest.param("65534", marks=root_only)], ids=["self", "nobody"])
inside = pytest.mark.parametrize(
    "identity",
    [{}, {"uid": 1000, "capabilities": ""}, {"capabilities": ""}],
    ids=["docker", "uid 1000", "cap-drop all"],
)


@functools.cache
def probe(stage: str, user: str) -> dict[str, str]:
    left_out = BURN if user else ""
    done = subprocess.run([SYSTEM_PYTHON, PROBES, stage, user, left_out], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def succeeded(outcomes: dict[str, str]) -> set[str]:
    assert not {n: o for n, o in outcomes.items() if o.startswith("error")}
    assert outcomes["sibling alive"] == outcomes["file intact"] == "True"
    return {name for name, outcome in outcomes.items() if outcome == "done"}


@root_only
def test_the_probes_are_able_to_succeed():
    outcomes = probe("none", "")
    assert set(outcomes) - succeeded(outcomes) - {"sibling alive", "file intact"} <= NEVER_POSSIBLE


@users
def test_strict_denies_every_attempt(user):
    assert succeeded(probe("strict", user)) == set()


@users
def test_base_allows_programs_and_its_own_folder_only(user):
    assert succeeded(probe("base", user)) == ALLOWED_IN_BASE


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64 has three tables of system calls")
@pytest.mark.parametrize("call", ["x32 call", "32-bit call"])
def test_the_other_tables_of_system_calls_kill(call):
    assert probe("strict", "")[call] == "killed (SIGSYS)"


def test_the_processor_limit_kills():
    assert probe("strict", "")[BURN] == "killed (SIGKILL)"


@needs_runc
@inside
def test_strict_in_a_container(identity):
    done = containers.run([SYSTEM_PYTHON, PROBES, "strict", "", BURN], **identity)
    assert succeeded(json.loads(done.stdout)) == set(), done.stderr


@needs_runc
@inside
def test_base_in_a_container(identity):
    done = containers.run([SYSTEM_PYTHON, PROBES, "base", "", BURN], **identity)
    allowed = ALLOWED_IN_BASE | ({"become root"} if identity.get("capabilities") == "" else set())
    assert succeeded(json.loads(done.stdout)) <= allowed, done.stderr


# What an honest answer needs still works --------------------------------------------------------------

TRITON_SESSION = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
from autograder.box import lockdown
import linecache, torch, triton, triton.language as tl
torch.set_num_threads(1)

def define(source, name):
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"triton": triton, "tl": tl, "torch": torch}
    exec(compile(source, name, "exec"), space)
    return space["kernel"]

source = '''
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(y + i, tl.exp(value - tl.max(value, axis=0)), mask=i < n)
'''
x = torch.randn(300)
define(source, "warm")[(1,)](x, torch.empty_like(x), 300, BLOCK=512)

if USER:
    os.setgroups([]); os.setresgid(USER, USER, USER); os.setresuid(USER, USER, USER)
output = os.dup(1)
lockdown.confine("strict", keep=[output])
y = torch.full_like(x, float("nan"))
define(source.replace("kernel(", "kernel( "), "answer")[(1,)](x, y, 300, BLOCK=512)
(torch.randn(64, 64) @ torch.randn(64, 64)).softmax(-1)
try:
    open("/etc/passwd")
except PermissionError:
    right = torch.allclose(y, torch.exp(x - x.max())) and os.getuid() != 0
    os.write(output, b"right" if right else b"wrong")
"""


@pytest.mark.parametrize("user", [0, pytest.param(65534, marks=root_only)])
def test_triton_interprets_kernels_inside(forks, user):
    done = forks.run(TRITON_SESSION.replace("USER", str(user)))
    assert done.stdout == "right", done.stderr


def in_fork(body: str) -> str:
    """Run statements in a fresh Python; what they print."""
    prelude = "import os, sys, threading\nfrom autograder.box import lockdown\n"
    done = subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_base_can_compile_but_not_run_what_it_compiled(tmp_path):
    tmp_path.chmod(0o711)
    work = tmp_path / "work"
    work.mkdir()
    for parent in (*tmp_path.parents[:-2],):
        if os.stat(parent).st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    printed = in_fork(f"""
        import subprocess
        lockdown.confine("base", read=lockdown.runtime_paths(), write=[{str(work)!r}], keep=[0, 1, 2])
        os.environ["TMPDIR"] = {str(work)!r}
        os.chdir({str(work)!r})
        open("a.c", "w").write("int main(void) {{ return 0; }}")
        print(subprocess.run(["cc", "-shared", "-fPIC", "a.c", "-o", "a.so"]).returncode)
        print(subprocess.run(["cc", "a.c", "-o", "a.out"]).returncode)
        try:
            subprocess.run(["./a.out"])
        except PermissionError:
            print("refused")
    """)
    assert printed.split() == ["0", "0", "refused"]


def test_a_local_socket_can_listen_and_reach_nobody(tmp_path):
    tmp_path.chmod(0o755)
    printed = in_fork(f"""
        import socket
        service = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        service.bind({str(tmp_path / "service")!r})
        lockdown.confine("base", read=["/usr"], keep=[0, 1, 2], local_sockets=True)
        local = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        local.bind("\\0workshop-test")
        local.listen()
        print("listens")
        for attempt in (
            lambda: local.connect({str(tmp_path / "service")!r}),
            lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
            lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        ):
            try:
                attempt()
            except PermissionError:
                print("refused")
    """)
    assert printed.split() == ["listens", "refused", "refused", "refused"]


def test_strict_may_follow_base():
    assert in_fork("""
        output = os.dup(1)
        lockdown.confine("base", read=lockdown.runtime_paths(), keep=[output])
        os.waitpid(os.fork() or os._exit(0), 0)
        lockdown.confine("strict", keep=None)
        try:
            os.fork()
        except PermissionError:
            os.write(output, b"confined")
    """) == "confined"  # fmt: skip


def test_the_second_stage_may_come_after_threads_and_keeps_the_paths_of_the_first():
    printed = in_fork("""
        lockdown.confine("base", read=["/usr/lib"], keep=[0, 1, 2])
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        lockdown.confine("strict", read=["/usr/lib", "/etc"], keep=None)
        print(len(os.listdir("/usr/lib")) > 0)
        try:
            os.listdir("/etc")
        except PermissionError:
            print("refused")
    """)
    assert printed.split() == ["True", "refused"]


def test_strict_reads_what_it_was_given_and_nothing_else(tmp_path):
    (tmp_path / "given").write_text("given")
    printed = in_fork("""
        lockdown.confine("strict", read=["/usr/lib"], keep=[0, 1, 2])
        print(len(os.listdir("/usr/lib")) > 0)
        for path, flags in (("/etc/passwd", os.O_RDONLY), ("/usr/lib/new", os.O_WRONLY | os.O_CREAT)):
            try:
                os.open(path, flags)
            except PermissionError:
                print("refused")
    """)
    assert printed.split() == ["True", "refused", "refused"]


# It fails closed ----------------------------------------------------------------------------------------


def test_nothing_is_missing_here():
    assert lockdown.missing("strict") == lockdown.missing("base") == ()


def test_an_unknown_machine_cannot_confine(monkeypatch):
    monkeypatch.setattr(lockdown, "_MACHINE", "riscv64")
    assert "riscv64" in lockdown.missing.__wrapped__()[0]


def test_contradictions_are_refused():
    with pytest.raises(ValueError, match="stage"):
        lockdown.confine("strictest")
    with pytest.raises(ValueError, match="writ"):
        lockdown.confine("strict", write=["/tmp"])


def test_base_refuses_beside_other_threads():
    assert "thread" in in_fork("""
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        try:
            lockdown.confine("base", keep=[0, 1, 2])
        except lockdown.Unconfined as error:
            print(error)
    """)  # fmt: skip


WITHOUT = """
def refuse(*names):
    deny = [i for n in names for i in lockdown._when(lockdown._EQUAL, lockdown._number(n), lockdown.DENY)]
    keep = lockdown.filter_program
    lockdown.filter_program = lambda *_: lockdown._load(0) + deny + lockdown.ALLOW
    lockdown._prctl(lockdown.PR_SET_NO_NEW_PRIVS, 1)
    lockdown._seccomp("base", True)
    lockdown.filter_program = keep
"""


def test_without_landlock_strict_still_confines_and_base_refuses():
    printed = in_fork(WITHOUT + textwrap.dedent("""
        refuse("landlock_create_ruleset")
        print(len(lockdown.missing("strict")), *lockdown.missing("base"))
    """))  # fmt: skip
    assert printed.startswith("0 ") and "Landlock" in printed


def test_without_seccomp_nothing_is_confined():
    printed = in_fork(WITHOUT + textwrap.dedent("""
        refuse("seccomp")
        print(lockdown.missing("strict"))
    """))  # fmt: skip
    assert "seccomp" in printed


# The outer layer ----------------------------------------------------------------------------------------


def test_without_bubblewrap_the_command_is_unchanged(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert lockdown._outer_prefix.__wrapped__((), ()) == ()


@pytest.mark.skipif(not lockdown._outer_prefix((), ()), reason="bubblewrap does not start here")
def test_inside_bubblewrap_there_is_only_what_was_given(tmp_path):
    given, hidden, work = tmp_path / "given", tmp_path / "hidden", tmp_path / "work"
    for folder in (given, hidden, work):
        folder.mkdir()
    look = f"""
import os, json, socket
print(json.dumps([os.getuid(), os.path.exists({str(given)!r}), os.path.exists({str(hidden)!r}),
    os.path.exists("/etc/passwd"), os.access({str(given)!r}, os.W_OK), os.access({str(work)!r}, os.W_OK),
    os.listdir("/sys/class/net") if os.path.exists("/sys") else socket.if_nameindex()]))
"""
    command = lockdown.outer_command([sys.executable, "-I", "-c", look], read=[given], write=[work])
    uid, *seen, interfaces = json.loads(
        subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    )
    assert uid != 0
    assert seen == [True, False, False, False, True]
    assert [name for _, name in interfaces] == ["lo"]


# The tables ---------------------------------------------------------------------------------------------


def header_numbers(path: str) -> dict[str, int]:
    text = Path(path).read_text()
    return {
        name: int(n) for name, n in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize(
    ("column", "header"),
    [(0, "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), (1, "/usr/include/asm-generic/unistd.h")],
    ids=["x86_64", "aarch64"],
)
def test_numbers_are_those_of_the_kernel(column, header):
    if not os.path.exists(header):
        pytest.skip("no kernel headers")
    known = header_numbers(header)
    # The generic header's name for two calls, and one that only 32-bit machines keep.
    known |= {"newfstatat": known.get("fstatat", known.get("newfstatat"))}
    compared = 0
    for name, numbers in lockdown.NUMBERS.items():
        if numbers[column] is not None and name in known:
            assert numbers[column] == known[name], name
            compared += 1
    newer = {n for n, numbers in lockdown.NUMBERS.items() if numbers[column] is not None} - set(known)
    assert compared > 200
    assert all(lockdown.NUMBERS[name][column] > 450 for name in newer), newer  # younger than the headers


def test_the_groups_are_known_and_do_not_overlap():
    assert set(lockdown.NUMBERS) >= lockdown.DENIED | lockdown.ALLOWED | lockdown.HIDDEN
    assert not lockdown.DENIED & lockdown.ALLOWED


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("stage", lockdown.STAGES)
def test_filters_fit_the_kernel_and_every_jump_lands(monkeypatch, machine, stage):
    monkeypatch.setattr(lockdown, "_MACHINE", machine)
    program = lockdown.filter_program(stage, opens=stage == "base")
    assert len(program) < 4096
    for position, (_, if_true, if_false, _) in enumerate(program):
        assert max(if_true, if_false) < 256
        assert position + max(if_true, if_false) + 1 <= len(program)
    assert program[-1][0] == lockdown._RETURN


def verdict(program, machine_id: int, number: int, *arguments: int) -> int:
    """Run a filter as the kernel would."""
    words = {0: number, 4: machine_id} | {16 + 8 * i: value & 0xFFFFFFFF for i, value in enumerate(arguments)}
    accumulator = position = 0
    while True:
        operation, if_true, if_false, operand = program[position]
        position += 1
        if operation == lockdown._RETURN:
            return operand
        if operation == lockdown._LOAD:
            accumulator = words.get(operand, 0)
            continue
        holds = {
            lockdown._EQUAL: accumulator == operand,
            lockdown._AT_LEAST: accumulator >= operand,
            lockdown._ANY_BIT: bool(accumulator & operand),
        }[operation]
        position += if_true if holds else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_what_the_filter_says_on_each_architecture(monkeypatch, machine):
    monkeypatch.setattr(lockdown, "_MACHINE", machine)
    column, machine_id = lockdown._MACHINES[machine]
    allow, deny, absent, kill = (
        body[0][3] for body in (lockdown.ALLOW, lockdown.DENY, lockdown.ABSENT, lockdown.KILL)
    )
    strict, base = lockdown.filter_program("strict", False), lockdown.filter_program("base", True)

    def ask(program, name, *arguments):
        return verdict(program, machine_id, lockdown.NUMBERS[name][column], *arguments)

    at, create = -100, os.O_WRONLY | os.O_CREAT
    threads, process, namespace = 0x3D0F00, 17, 0x10000011
    assert [ask(strict, "socket"), ask(base, "socket")] == [deny, deny]
    assert [ask(strict, "clone", flags) for flags in (threads, process, namespace)] == [allow, deny, deny]
    assert [ask(base, "clone", flags) for flags in (threads, process, namespace)] == [allow, allow, deny]
    assert [ask(strict, "openat", at, 0, 0), ask(base, "openat", at, 0, create)] == [deny, allow]
    reading = lockdown.filter_program("strict", True)
    assert [ask(reading, "openat", at, 0, flags) for flags in (0, create, os.O_RDWR)] == [allow, deny, deny]
    assert [ask(strict, "tgkill", pid) for pid in (os.getpid(), os.getpid() + 1)] == [allow, deny]
    assert [ask(strict, "prlimit64", pid) for pid in (0, 1)] == [allow, deny]
    assert [ask(strict, "prctl", 15), ask(strict, "prctl", 22), ask(base, "prctl", 22)] == [
        allow,
        deny,
        allow,
    ]
    assert [ask(program, "clone3") for program in (strict, base)] == [absent, absent]
    assert [verdict(program, machine_id, 9999) for program in (strict, base)] == [absent, absent]
    assert verdict(strict, 0x40000003, 20) == kill
    assert [ask(strict, "execve"), ask(base, "execve"), ask(strict, "futex")] == [deny, allow, allow]
