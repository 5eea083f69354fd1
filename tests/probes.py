"""What a hostile program tries, one attempt per child process. Standard library only: any Python can run it.

    python tests/probes.py STAGE [USER]

STAGE is "none", "base" or "strict"; USER is a uid to become first. Prints a JSON object: for each attempt
"done", "denied (ERRNO)", "killed (SIGNAL)" or "error (...)", plus what the harness itself noticed.
"""

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
QUEUED = bytes(8) + b"\xff" * 4 + bytes(116)  # siginfo_t with si_code SI_QUEUE
PERF_EVENT = struct.pack("IIQ", 1, 112, 0) + bytes(96)  # a software event


def load_lockdown():
    """lockdown.py without running the packages around it, which import torch."""
    for name in ("autograder", "autograder.box"):
        package = ModuleType(name)
        package.__path__ = [str(ROOT / name.replace(".", "/"))]
        sys.modules[name] = package
    from autograder.box import lockdown

    return lockdown


class Scene:
    """What an attempt may aim at: the harness (its parent), a sibling process, and files of the same user."""

    def __init__(self, folder: str):
        self.folder = Path(folder)
        self.folder.chmod(0o711)  # a private user still has to reach what is inside
        self.own_file = self.folder / "grades.txt"
        self.own_file.write_text("10")
        self.inside = self.folder / "inside"
        self.inside.mkdir()
        self.inherited = os.open(self.own_file, os.O_RDONLY)
        os.set_inheritable(self.inherited, True)
        os.environ["ACCESS_TOKEN"] = "secret"
        self.harness = os.getpid()
        self.sibling = os.fork()
        if self.sibling == 0:
            time.sleep(60)
            os._exit(0)

    def close(self) -> dict[str, str]:
        intact = self.own_file.exists() and self.own_file.read_text() == "10"
        alive = os.waitpid(self.sibling, os.WNOHANG) == (0, 0)
        os.kill(self.sibling, signal.SIGKILL)
        return {"sibling alive": str(alive), "file intact": str(intact)}


def raw(lockdown, name, *arguments):
    return lockdown._call(name, *arguments)


def machine_code(code: bytes) -> int:
    """Run x86_64 instructions; the result is what they leave in eax."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    result = function()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    with open(path, "w") as file:
        file.write("0")


def process_memory(lockdown, scene):
    here = ctypes.create_string_buffer(8)
    address = ctypes.addressof(here)
    vector = struct.pack("QQ", address, 8)
    raw(lockdown, "process_vm_readv", scene.harness, vector, 1, vector, 1, 0)


def leaked_environment():
    if "ACCESS_TOKEN" not in os.environ:
        raise PermissionError(errno.EACCES, "gone")


def own_signal(descriptor):
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getppid())


def many_threads():
    wait = threading.Event()
    for _ in range(4000):
        threading.Thread(target=wait.wait, daemon=True).start()


def too_much_memory():
    block = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    block.close()


def spin():
    end = time.process_time() + 1.5
    while time.process_time() < end:
        pass


def fill_disk(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)
        file.seek((1 << 40) - 1)
        file.write(b"0")


def attempts(lockdown, scene):
    """name -> attempt. An unconfined root succeeds with all but those that test_lockdown.py lists."""
    call, inside, own = raw, scene.inside, scene.own_file
    families = {"tcp": (2, 1), "udp": (2, 2), "unix": (1, 1), "netlink": (16, 3), "vsock": (40, 1)}
    table = {f"{n} socket": lambda f=f: socket.socket(*f).close() for n, f in families.items()}
    table |= {
        "socketpair": lambda: socket.socketpair(),
        "ptrace harness": lambda: call(lockdown, "ptrace", 0x4206, scene.harness, 0, 0),
        "read harness memory": lambda: process_memory(lockdown, scene),
        "open harness memory": lambda: os.close(os.open(f"/proc/{scene.harness}/mem", os.O_RDWR)),
        "read harness environment": lambda: read(f"/proc/{scene.harness}/environ"),
        "signal harness": lambda: os.kill(scene.harness, 0),
        "kill sibling": lambda: os.kill(scene.sibling, signal.SIGCONT),
        "tkill sibling": lambda: call(lockdown, "tkill", scene.sibling, signal.SIGCONT),
        "queue signal": lambda: call(lockdown, "rt_sigqueueinfo", scene.sibling, 18, QUEUED),
        "pidfd of sibling": lambda: call(lockdown, "pidfd_open", scene.sibling, 0),
        "own the pipe's signals": lambda: own_signal(os.pipe()[0]),
        "limit sibling": lambda: call(lockdown, "prlimit64", scene.sibling, 7, None, bytes(16)),
        "slow sibling": lambda: os.setpriority(os.PRIO_PROCESS, scene.sibling, 19),
        "leave the session": lambda: os.setsid(),
        "read foreign file": lambda: read("/etc/passwd"),
        "read own file": lambda: read(own),
        "inherited descriptor": lambda: os.read(scene.inherited, 1),
        "list folder": lambda: os.listdir(scene.folder),
        "write own file": lambda: write(scene.folder / "new"),
        "truncate by opening": lambda: os.close(os.open(scene.folder / "new", os.O_RDONLY | os.O_TRUNC)),
        "truncate by name": lambda: os.truncate(scene.folder / "new", 0),
        "chmod": lambda: os.chmod(scene.folder, 0o755),
        "touch": lambda: os.utime(scene.folder),
        "symlink": lambda: os.symlink("/", scene.folder / "link"),
        "remove own file": lambda: os.unlink(scene.folder / "new"),
        "write shared memory": lambda: write("/dev/shm/probe") or os.unlink("/dev/shm/probe"),
        "shared memory": lambda: call(lockdown, "shmget", 0, 4096, 0o1600),
        "message queue": lambda: call(lockdown, "msgget", 0, 0o1600),
        "io_uring": lambda: call(lockdown, "io_uring_setup", 1, bytes(120)),
        "user namespace": lambda: call(lockdown, "unshare", 0x10000000),
        "mount namespace": lambda: call(lockdown, "unshare", 0x00020000),
        "keyring": lambda: call(lockdown, "keyctl", 0, -3, 1),
        "perf": lambda: call(lockdown, "perf_event_open", PERF_EVENT, 0, -1, -1, 0),
        "userfaultfd": lambda: call(lockdown, "userfaultfd", 0),
        "become dumpable": lambda: lockdown._prctl(4, 1),
        "outlive the parent": lambda: lockdown._prctl(1, 0),
        "become root": lambda: os.setresuid(0, 0, 0),
        "clone3": lambda: call(lockdown, "clone3", bytes(88), 4),
        "environment": leaked_environment,
        "core pattern": lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)),
        "64 GiB": too_much_memory,
        "burn time": spin,
        # what the base stage allows
        "fork": lambda: os.waitpid(os.fork() or os._exit(0), 0),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "memfd": lambda: os.close(os.memfd_create("x")),
        "write inside": lambda: write(inside / "new"),
        "rename inside": lambda: os.rename(inside / "new", inside / "newer"),
        "1 TiB file inside": lambda: fill_disk(inside / "big"),
        "4000 threads": many_threads,
    }
    if platform.machine() == "x86_64":
        table |= {
            # mov eax, 0x40000027 (x32 getpid); syscall; ret
            "x32 call": lambda: machine_code(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3"),
            # mov eax, 20 (i386 getpid); int 0x80; ret
            "32-bit call": lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"),
        }
    return table


def outcome(attempt) -> str:
    try:
        attempt()
    except OSError as error:
        return f"denied ({errno.errorcode.get(error.errno, error.errno)})"
    except (MemoryError, RuntimeError) as error:  # no memory, no more threads
        return f"denied ({type(error).__name__})"
    except Exception as error:
        return f"error ({type(error).__name__}: {error})"
    return "done"


def in_child(prepare, attempt) -> str:
    """Confine a fork and attempt there; exec and kills show in its exit status."""
    answer, end = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            prepare(end)
            os.set_inheritable(end, False)
            os.write(end, outcome(attempt).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(end)
    with os.fdopen(answer) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"killed ({signal.Signals(os.WTERMSIG(status)).name})"
    return text or ("done" if os.WEXITSTATUS(status) == 0 else "error (nothing said)")


def main(stage: str, user: str = "", left_out: str = "") -> None:
    lockdown = load_lockdown()
    if user:
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
        lockdown._prctl(4, 1)  # as if it had been this user's program from the start
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(folder)

        def prepare(end: int) -> None:
            if stage == "strict":
                lockdown.confine("strict", cpu_seconds=1, keep=[end])
            elif stage == "base":
                lockdown.confine(
                    "base", read=lockdown.runtime_paths(), write=[scene.inside], cpu_seconds=1, keep=[end]
                )

        results = {n: in_child(prepare, a) for n, a in attempts(lockdown, scene).items() if n != left_out}
        print(json.dumps(results | scene.close()))


if __name__ == "__main__":
    main(*sys.argv[1:])
