"""A container like Docker's, by runc: its capabilities and its system call profile, without Docker."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from probes import ROOT

CAPABILITIES = (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE "
    "SYS_CHROOT KILL AUDIT_WRITE"
)
# What Docker's default profile refuses to a container without CAP_SYS_ADMIN and its like.
REFUSED = (
    "acct add_key bpf clock_adjtime clock_settime create_module delete_module fanotify_init finit_module "
    "fsconfig fsmount fsopen fspick get_mempolicy init_module io_uring_enter io_uring_register "
    "io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount "
    "mount_setattr move_mount move_pages name_to_handle_at nfsservctl open_by_handle_at open_tree "
    "perf_event_open personality pivot_root quotactl reboot request_key set_mempolicy setdomainname "
    "sethostname setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup"
)
NAMESPACES = 0x7E020000


def available() -> bool:
    return os.geteuid() == 0 and shutil.which("runc") is not None


def run(
    command: list[str],
    *,
    uid: int = 0,
    capabilities: str = CAPABILITIES,
    writable: tuple[str, ...] = (),
    timeout: float = 300,
) -> subprocess.CompletedProcess:
    """Run a command in a container that sees the system, Python and this repository, all read-only."""
    with tempfile.TemporaryDirectory() as bundle:
        Path(bundle, "rootfs").mkdir()
        settings = _settings(command, uid, capabilities, writable)
        Path(bundle, "config.json").write_text(json.dumps(settings))
        name = f"workshop-{uuid.uuid4().hex[:12]}"
        return subprocess.run(
            ["runc", "--root", f"{bundle}/state", "run", "--bundle", bundle, name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def _settings(command, uid, capabilities, writable):
    capabilities = [f"CAP_{name}" for name in capabilities.split()]
    sets = ("bounding", "effective", "permitted") if uid == 0 else ("bounding",)
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs", "readonly": False},
        "process": {
            "args": command,
            "cwd": str(ROOT),
            "env": [
                "PATH=/usr/local/bin:/usr/bin:/bin",
                f"PYTHONPATH={ROOT}",
                "HOME=/tmp",
                "PYTHONDONTWRITEBYTECODE=1",
            ],
            "user": {"uid": uid, "gid": uid},
            "capabilities": {name: capabilities for name in sets},
        },
        "mounts": _mounts(writable),
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            "seccomp": {
                "defaultAction": "SCMP_ACT_ALLOW",
                "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"]
                if os.uname().machine == "x86_64"
                else ["SCMP_ARCH_AARCH64"],
                "syscalls": [
                    {"names": REFUSED.split(), "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
                    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
                    *_refuse_namespaces(),
                ],
            },
        },
    }


def _refuse_namespaces():
    for bit in range(32):
        if NAMESPACES & (1 << bit):
            test = {"index": 0, "value": 1 << bit, "valueTwo": 1 << bit, "op": "SCMP_CMP_MASKED_EQ"}
            yield {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [test]}


def _mounts(writable):
    def bind(path, *options):
        return {
            "destination": path,
            "source": os.path.realpath(path),
            "type": "bind",
            "options": ["rbind", "nosuid", *options],
        }

    system = [p for p in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc") if os.path.isdir(p)]
    python = dict.fromkeys([sys.base_prefix, sys.prefix, str(ROOT)])
    tmpfs = {"type": "tmpfs", "source": "tmpfs"}
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", **tmpfs, "options": ["nosuid", "mode=755"]},
        {"destination": "/dev/shm", **tmpfs, "options": ["nosuid", "noexec", "nodev", "mode=1777"]},
        {"destination": "/tmp", **tmpfs, "options": ["nosuid", "nodev", "mode=1777"]},
        *(bind(path, "ro") for path in [*system, *python] if path),
        *(bind(path, "rw") for path in writable),
    ]


def as_user(command: list[str], uid: int = 65534) -> list[str]:
    """The command as an ordinary user of this machine, with root's Python within reach if it is in /root."""
    prefix = shlex.quote(sys.base_prefix)
    script = f"""
        mount -t tmpfs -o mode=755 tmpfs /mnt && mkdir /mnt/python && mount --bind {prefix} /mnt/python
        mount -t tmpfs -o mode=755 tmpfs /root && mkdir -p {prefix} && mount --move /mnt/python {prefix}
        exec setpriv --reuid={uid} --regid={uid} --clear-groups env -i PATH=/usr/bin:/bin HOME=/tmp \\
            PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={shlex.quote(str(ROOT))} "$@"
    """
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]
