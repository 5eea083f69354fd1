"""Confines this process before it runs a learner's code, with resource limits, Landlock and seccomp.

It uses only the standard library and needs no privileges. It runs on Linux on x86_64 and aarch64, for root, for an
ordinary user and inside a container with the usual default profile. There are two stages:

``base``
    For work that may start programs (compilers, the GPU driver): no network, no other processes, no kernel
    administration, and only the files that Landlock allows.
``strict``
    For the learner's own Python after all imports: in addition no fork, no exec, and a file may be opened only for
    reading, and only if ``read`` lists it.

A stage cannot be undone, and it survives exec. ``confine`` raises ``Unconfined`` if something that a stage
needs is missing. It never continues with less.
"""

import contextlib
import ctypes
import errno
import functools
import glob
import json
import os
import platform
import resource
import secrets
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

STAGES = ("base", "strict")
_under_landlock = False


class Unconfined(RuntimeError):
    """This process could not be confined. The message says what is missing."""


def confine(
    stage: str,  # "base" or "strict"
    *,
    read: Iterable[str] = (),  # files and directories that stay readable; needs Landlock
    write: Iterable[str] = (),  # directories, which root gives to the new user, and devices; "base" only
    cpu_seconds: int = 60,  # of the process
    address_space: int | None = 4 << 30,  # bytes; None: no limit, beside a GPU driver, which reserves more than it uses
    keep: Iterable[int] | None = (),
    local_sockets: bool = False,
) -> None:
    """Confine this process and its later children, for good. Call it right after fork, from the only thread.

    keep: descriptors to leave open. Standard input, output and error lead to /dev/null unless they are listed. None is
    for a second stage after the first one: all descriptors stay open, and the paths of the first stage stay allowed.
    local_sockets: allow a Unix socket to be created and listened on ("base" only), because CUDA does so when it starts.
    No process can connect to it, from inside or outside.

    Raises:
        Unconfined: something is missing. The process may be partly confined and should exit.
        ValueError: the arguments contradict each other.
    """
    global _under_landlock
    read, write = _existing(read), _existing(write)
    if stage not in STAGES:
        raise ValueError(f"stage must be one of {STAGES}, not {stage!r}")
    if stage == "strict" and write:
        raise ValueError("the strict stage opens no file for writing: write through a descriptor in keep")
    opens = stage == "base" or bool(read)
    try:
        inherited = _under_landlock and keep is None  # each thread was started under the first stage's rules
        if opens and not inherited and len(os.listdir("/proc/self/task")) > 1:
            raise Unconfined("Landlock binds one thread only, and this process already runs several")
        if keep is not None:
            _close_all_but(set(keep))
        abi = landlock_abi()
        if opens and not abi:
            raise Unconfined("this kernel has no Landlock (Linux 5.13), which keeps all other files closed")
        # while root can still reach the paths
        ruleset = _landlock_ruleset(abi, read, write) if abi and not inherited else None
        _clean_environment()
        private = _become_nobody(write)
        _set_limits(cpu_seconds, address_space, private)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(PR_SET_DUMPABLE, 0)
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        if ruleset is not None:
            _call("landlock_restrict_self", ruleset, 0)
            os.close(ruleset)
            _under_landlock = opens
        _seccomp(stage, opens, local_sockets)
    except OSError as error:
        raise Unconfined(f"the kernel refused a step of the confinement: {error}") from error


# The kernel's interface ----------------------------------------------------------------------------

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column of the table, AUDIT_ARCH
_MACHINE = platform.machine() if sys.platform == "linux" else sys.platform

if sys.platform == "linux":
    _libc = ctypes.CDLL(None, use_errno=True)
    _libc.syscall.restype = ctypes.c_long


def _rows(table: str) -> dict[str, tuple[int | None, ...]]:
    rows = (cell.split() for line in table.strip().splitlines() for cell in line.split("|"))
    return {name: tuple(None if n == "-" else int(n) for n in numbers) for name, *numbers in rows}


def _names(*groups: str) -> frozenset[str]:
    return frozenset(" ".join(groups).split())


_TOLD = tomllib.loads(Path(__file__).with_name("syscalls.toml").read_text(encoding="utf-8"))
NUMBERS = _rows(_TOLD["numbers"])  # name -> (number on x86_64, number on aarch64), None where there is none
NEWEST = max(number for numbers in NUMBERS.values() for number in numbers if number is not None)
DENIED, ALLOWED = _names(*_TOLD["denied"].values()), _names(*_TOLD["allowed"].values())
HIDDEN = _names(_TOLD["hidden"])


def _number(name: str) -> int | None:
    if _MACHINE not in _MACHINES:
        raise Unconfined(f"the box knows Linux on x86_64 and aarch64, not {_MACHINE}")
    return NUMBERS[name][_MACHINES[_MACHINE][0]]


def _call(name: str, *arguments: int | bytes | None) -> int:
    """A raw system call. Integers are widened to whole registers, because variadic ctypes does not widen them."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    result = _libc.syscall(ctypes.c_long(_number(name)), *converted)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, value, 0, 0, 0)


def _existing(paths: Iterable[str]) -> list[str]:
    return [path for path in map(os.fspath, paths) if os.path.exists(path)]


# Descriptors, environment, user, limits ------------------------------------------------------------


def _close_all_but(keep: set[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in {0, 1, 2} - keep:
        os.dup2(null, standard)
    wanted = sorted(keep | {0, 1, 2})
    for low, high in zip(wanted, [*wanted[1:], 1 << 20], strict=True):
        os.closerange(low + 1, high)


_VARIABLES = {"PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
_VARIABLE_PREFIXES = ("LC_", "PYTHON", "OMP_", "MKL_", "TRITON_", "CUDA_", "HIP_", "HSA_", "ROCR_", "JAX_")


def _clean_environment() -> None:
    """Leave the variables that a confined process needs: no home, no tokens, no user names."""
    kept = {k: v for k, v in os.environ.items() if k in _VARIABLES or k.startswith(_VARIABLE_PREFIXES)}
    os.environ.clear()
    os.environ.update(kept, HOME="/nonexistent")


_PRIVATE_UIDS = range(1_900_000_000, 2_100_000_000)  # a range that distributions and systemd leave unused
_NOBODY = 65534


def private_uid() -> int:
    """A user id that no account and no other box has; 65534 if the user namespace maps too few ids."""
    uid = secrets.choice(_PRIVATE_UIDS)
    with open("/proc/self/uid_map") as mapping:
        ranges = [tuple(map(int, line.split())) for line in mapping]
    return uid if any(first <= uid < first + count for first, _, count in ranges) else _NOBODY


def _become_nobody(write: Sequence[str]) -> bool:
    """Change from root to a user that no other process has, and always give up every capability.

    True if the user is private.
    """
    private = os.getuid() in _PRIVATE_UIDS
    if os.geteuid() == 0:
        uid = private_uid()
        with contextlib.suppress(PermissionError):  # root without the capability is like an ordinary user
            _give_to(uid, write)
            os.setgroups(_groups_of_devices(write))
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            private = True
    _call("capset", struct.pack("=Ii", 0x20080522, 0), bytes(24))
    return private


def _groups_of_devices(paths: Sequence[str]) -> list[int]:
    """The groups that may open these devices, such as that of /dev/kfd."""
    found = map(os.stat, paths)
    return sorted({each.st_gid for each in found if stat.S_ISCHR(each.st_mode)} - {0})


def _give_to(uid: int, write: Sequence[str]) -> None:
    for path in write:
        if os.path.isdir(path) and not path.startswith("/proc/"):
            os.chown(path, uid, uid)


def _set_limits(cpu_seconds: int, address_space: int | None, private: bool) -> None:
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_AS: address_space,
        resource.RLIMIT_FSIZE: 64 << 20,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_NPROC: 256 if private else None,  # of a user, threads included
        resource.RLIMIT_STACK: 64 << 20,
    }
    for which, value in wanted.items():
        if value is not None:
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


# Landlock ------------------------------------------------------------------------------------------

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG, _MAKE_SYM, _REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in (7, 8, 12, 13, 14, 15))
_HANDLED_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # access rights that each version of the interface knows
_READ_RIGHTS = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE_RIGHTS = (  # no right to execute, so that a program that was written here cannot be started
    _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM
) | (_REFER | _TRUNCATE | _IOCTL_DEV)
_FILE_RIGHTS = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3


def landlock_abi() -> int:
    """Version of Landlock's interface; 0 if the kernel has none or a container hides it."""
    try:
        return _call("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def _landlock_ruleset(abi: int, read: Iterable[str], write: Iterable[str]) -> int:
    """Deny all files but these, TCP from version 4 on, signals and abstract sockets from version 6 on."""
    handled = (1 << _HANDLED_BITS[min(abi, 5)]) - 1
    attributes = struct.pack(
        "=QQQ", handled, _TCP if abi >= 4 else 0, _ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 else 0
    )
    ruleset = _call("landlock_create_ruleset", attributes, 8 if abi < 4 else 16 if abi < 6 else 24, 0)
    rules = [(path, _READ_RIGHTS) for path in read] + [(path, _WRITE_RIGHTS) for path in [*write, os.devnull]]
    for path, rights in rules:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        _call("landlock_add_rule", ruleset, 1, struct.pack("=Qi", rights & handled, descriptor), 0)
        os.close(descriptor)
    return ruleset


# seccomp -------------------------------------------------------------------------------------------
# A filter is a list of (operation, skip if true, skip if false, operand). It is built from blocks: `_when` and
# `_unless` jump over their body. So there are no labels, and every body ends with a verdict.

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
Instructions = list[tuple[int, int, int, int]]


ALLOW: Instructions = [(_RETURN, 0, 0, 0x7FFF0000)]
KILL: Instructions = [(_RETURN, 0, 0, 0x80000000)]
DENY: Instructions = [(_RETURN, 0, 0, 0x00050000 | errno.EPERM)]
ABSENT: Instructions = [(_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)]


def _load(offset: int) -> Instructions:
    return [(_LOAD, 0, 0, offset)]


def _argument(index: int) -> Instructions:
    """Load the low half of an argument. Every tested argument is an int or has its flags in that half."""
    return _load(16 + 8 * index)


def _when(test: int, operand: int, body: Instructions) -> Instructions:
    return [(test, 0, len(body), operand), *body]


def _unless(test: int, operand: int, body: Instructions) -> Instructions:
    return [(test, len(body), 0, operand), *body]


def _when_one_of(values: Iterable[int], body: Instructions) -> Instructions:
    return [instruction for value in values for instruction in _when(_EQUAL, value, body)]


_CLONE_THREAD = 0x00010000
_CLONE_PARENT = 0x00008000  # hides a child from the process that should reap it
_CLONE_NAMESPACES = 0x7E020000  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}
_O_TMPFILE = 0x00400000
_O_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | _O_TMPFILE
_FCNTL_REFUSED = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY: signals to other processes
_IOCTL_REFUSED = (0x8901, 0x8902, 0x5412, 0x541C)  # FIOSETOWN, SIOCSPGRP; TIOCSTI, TIOCLINUX: type for others
_PRCTL_NAME, _PRCTL_VMA_NAME = 15, 0x53564D41


def _open_rule(stage: str, opens: bool, flags: int) -> Instructions:
    if not opens:
        return DENY
    if stage == "strict":
        return _argument(flags) + _when(_ANY_BIT, _O_WRITES, DENY) + ALLOW
    # before version 3 Landlock does not see O_TRUNC without a writing mode
    mode = os.O_WRONLY | os.O_RDWR
    return _argument(flags) + _unless(_ANY_BIT, mode, _when(_ANY_BIT, os.O_TRUNC, DENY)) + ALLOW


def _argument_rules(stage: str, opens: bool, local_sockets: bool) -> dict[str, Instructions]:
    """The rules for system calls that are allowed or refused by their arguments."""
    only_self = _argument(0) + _unless(_EQUAL, os.getpid(), DENY) + ALLOW
    clone = _argument(0) + _when(_ANY_BIT, _CLONE_NAMESPACES | _CLONE_PARENT, DENY)
    dumpable = _when(_EQUAL, PR_SET_DUMPABLE, _argument(1) + _unless(_EQUAL, 0, DENY) + ALLOW)
    orphan = _when(_EQUAL, PR_SET_PDEATHSIG, _argument(1) + _unless(_EQUAL, signal.SIGKILL, DENY) + ALLOW)
    names = _when_one_of((_PRCTL_NAME, _PRCTL_VMA_NAME), ALLOW)
    strict = stage == "strict"
    # a datagram socket would reach any service's socket in the file system without connect()
    connected = _argument(1) + _when(_ANY_BIT, socket.SOCK_DGRAM, DENY)
    unix = _argument(0) + _unless(_EQUAL, socket.AF_UNIX, DENY) + connected + ALLOW
    return {
        **({"socket": unix, "bind": ALLOW, "listen": ALLOW} if local_sockets and not strict else {}),
        "clone": clone + (_unless(_ANY_BIT, _CLONE_THREAD, DENY) if strict else []) + ALLOW,
        "open": _open_rule(stage, opens, flags=1),
        "openat": _open_rule(stage, opens, flags=2),
        "kill": only_self,
        "tgkill": only_self,
        "prlimit64": _argument(0) + _when(_EQUAL, 0, ALLOW) + only_self,
        "prctl": _argument(0) + dumpable + orphan + (names + DENY if strict else ALLOW),
        "ioctl": _argument(1) + _when_one_of(_IOCTL_REFUSED, DENY) + ALLOW,
        "fcntl": _argument(1) + _when_one_of(_FCNTL_REFUSED, DENY) + ALLOW,
    }


def filter_program(stage: str, opens: bool, local_sockets: bool = False) -> Instructions:
    """The seccomp filter of a stage for this process.

    Refused calls give EPERM. A call that is newer than the table gives ENOSYS, as on an older kernel: programs can
    work without it.
    """
    rules = dict.fromkeys(NUMBERS if stage == "strict" else DENIED, DENY)
    if stage == "strict":
        rules |= dict.fromkeys(ALLOWED, ALLOW)
    rules |= dict.fromkeys(HIDDEN, ABSENT) | _argument_rules(stage, opens, local_sockets)
    program = _load(4) + _unless(_EQUAL, _MACHINES[_MACHINE][1], KILL) + _load(0)
    if _MACHINE == "x86_64":
        program += _when(_AT_LEAST, 0x40000000, KILL)  # the x32 calls do the same under other numbers
    for name, body in rules.items():
        number = _number(name)
        if number is not None:
            program += _when(_EQUAL, number, body)
    if stage == "base":
        return program + _when(_AT_LEAST, NEWEST + 1, ABSENT) + ALLOW
    return program + ABSENT


def _seccomp(stage: str, opens: bool, local_sockets: bool = False) -> None:
    """Install the filter in every thread of this process (TSYNC)."""
    instructions = filter_program(stage, opens, local_sockets)
    program = b"".join(struct.pack("=HBBI", *each) for each in instructions)
    code = ctypes.create_string_buffer(program, len(program))
    _call("seccomp", 1, 1, struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))


# Can this machine confine? A trial -----------------------------------------------------------------


def runtime_paths() -> list[str]:
    """The files that Python, compilers and their libraries need to read."""
    system = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/opt/rocm"]
    return _existing(dict.fromkeys([sys.prefix, sys.base_prefix, *system]))


def gpu_paths() -> tuple[list[str], list[str]]:
    """The files that a GPU driver reads, and the device nodes that it writes. Both are empty without a GPU."""
    patterns = "nvidiactl nvidia[0-9]* nvidia-uvm nvidia-uvm-tools nvidia-caps/* kfd dri/renderD*"
    nodes = sorted(node for pattern in patterns.split() for node in glob.glob(f"/dev/{pattern}"))
    return (["/sys", "/proc"] if nodes else []), nodes


def _fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


_PROBES: dict[str, tuple[Callable[[], None], Sequence[str]]] = {
    "open a directory it was not given": (lambda: os.close(os.open("/", os.O_RDONLY)), STAGES),
    "create a UDP socket": (lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(), STAGES),
    "signal its parent": (lambda: os.kill(os.getppid(), 0), STAGES),
    "fork": (_fork, ["strict"]),
}


def _confine_and_probe(stage: str, answer: int) -> None:
    found = []
    try:
        confine(stage, read=runtime_paths() if stage == "base" else (), keep=[answer])
        for what, (probe, stages) in _PROBES.items():
            if stage in stages:
                with contextlib.suppress(PermissionError):
                    probe()
                    found.append(f"a confined process could still {what}")
    except Exception as error:  # any error means that this machine cannot confine
        found = [str(error) or type(error).__name__]
    os.write(answer, json.dumps(found).encode())


@functools.cache
def missing(stage: str = "strict") -> tuple[str, ...]:
    """What is missing on this machine to confine a process; empty if nothing is. It confines a process to find out."""
    if _MACHINE not in _MACHINES:
        return (f"the box needs Linux on x86_64 or aarch64, and this is {_MACHINE}",)
    answer, end = os.pipe()
    with warnings.catch_warnings():
        # Python and JAX warn of a fork beside threads, but the child imports nothing. It forks too, as a probe:
        # in a notebook's kernel a warning would go through a socket, which ends a confined process.
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            try:
                _confine_and_probe(stage, end)
            finally:
                os._exit(0)
    os.close(end)
    with os.fdopen(answer) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ("a process that confined itself died without a report",)


# The outer layer: bubblewrap -----------------------------------------------------------------------

# Runs inside, with the path of a file that exists outside. Exit status 0 if it cannot reach anything outside.
_LOOK_AROUND = """
import os, sys
processes = [name for name in os.listdir("/proc") if name.isdigit()]
sys.exit(
    os.getuid() == 0
    or os.path.exists(sys.argv[1])
    or os.access("/proc/sys/kernel/core_pattern", os.W_OK)
    or len(processes) > 4
)
"""


def outer_command(argv: Sequence[str], *, read: Iterable[str] = (), write: Iterable[str] = ()) -> list[str]:
    """The same command inside bubblewrap if a trial run of it succeeds; otherwise the command unchanged.

    Inside there are only the Python runtime, the system's programs and the given paths, no network, no other
    processes, and never root: root's directories in ``write`` are given to a private user.
    """
    return [*_outer_prefix(tuple(_existing(read)), tuple(_existing(write))), *argv]


@functools.cache
def _outer_prefix(read: tuple[str, ...], write: tuple[str, ...]) -> tuple[str, ...]:
    bwrap, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
    root = os.geteuid() == 0
    if bwrap is None or (root and setpriv is None):
        return ()
    apart = "--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup-try --new-session"
    prefix = [bwrap, *apart.split(), "--die-with-parent", "--chdir", "/", *_mounts(read, write)]
    if root:
        # in a user namespace made by root, every user is root outside and may write /proc/sys
        uid, groups = private_uid(), _groups_of_devices(write)
        _give_to(uid, write)
        membership = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
        prefix += [setpriv, f"--reuid={uid}", f"--regid={uid}", membership, "--no-new-privs", "--"]
    else:
        prefix += ["--unshare-user", "--disable-userns", "--"]
    return tuple(prefix) if _outer_works(prefix) else ()


def _mounts(read: Sequence[str], write: Sequence[str]) -> list[str]:
    arguments = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    folders = {str(folder) for path in [*runtime_paths(), *read, *write] for folder in Path(path).parents}
    for folder in sorted(folders - {"/", "/dev", "/proc", "/tmp"}):  # outermost first
        arguments += ["--perms", "0755", "--dir", folder]  # otherwise the private user cannot enter some of them
    for path in [*runtime_paths(), *read]:
        link = os.path.islink(path) and path.count("/") == 1  # /bin -> usr/bin
        arguments += ["--symlink", os.readlink(path), path] if link else ["--ro-bind", path, path]
    for path in write:
        arguments += ["--bind" if os.path.isdir(path) else "--dev-bind", path, path]
    return arguments


def _outer_works(prefix: Sequence[str]) -> bool:
    with tempfile.NamedTemporaryFile() as outside:
        command = [*prefix, sys.executable, "-I", "-S", "-c", _LOOK_AROUND, outside.name]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0
