"""Facts about this machine, collected without judging them.

Standard library only at import: it must run where torch or triton is missing.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workshop import backend

VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
JUDGE_SECONDS = 120


@dataclass(frozen=True)
class Node:
    """A device file, whether this user may open it, and the group that may."""

    path: str
    usable: bool
    gid: int
    group: str | None


@dataclass(frozen=True)
class Machine:
    """The facts that doctor judges. A version, or the judge, is None where the package is missing."""

    system: str = "Linux"
    architecture: str = "x86_64"
    python: tuple[int, int] = (3, 12)
    torch: str | None = None
    torch_build: str = "CPU"
    torch_wants_triton: str | None = None
    triton: str | None = None
    compiler: bool = True  # whether Triton's library is there
    numpy: str | None = None
    jax: str | None = None
    jax_triton: str | None = None
    accelerator: str | None = None
    gpus: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    drivers: tuple[str, ...] = ()
    interpret: str | None = None
    cache: str = ""
    cache_writable: bool = True
    cache_free: int = 1 << 30
    dev_kernarg: str | None = None  # HIP_FORCE_DEV_KERNARG
    numa_balancing: str | None = None  # "1" where Linux moves memory between the processors' nodes
    clocks: str | None = None  # the performance level of an AMD GPU's driver
    judge: str | None = None  # why it cannot judge; "" where it can
    errors: dict[str, str] = field(default_factory=dict)


def probe() -> Machine:
    """The facts about this machine. The compiler and the GPU are started by the judge's own process alone."""
    errors: dict[str, str] = {}
    torch = _import("torch", errors)
    compiler = _has_library()
    triton = _import("triton", errors)
    cache = Path(os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache")
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        python=sys.version_info[:2],
        torch=getattr(torch, "__version__", None),
        torch_build=_torch_build(torch),
        torch_wants_triton=_wanted_triton(),
        triton=getattr(triton, "__version__", None),
        compiler=compiler,
        numpy=_version("numpy"),
        jax=_version("jax"),
        jax_triton=_version("jax-triton"),
        accelerator=_accelerator(torch),
        gpus=tuple(_pci_gpus()),
        nodes=tuple(_device_nodes()),
        drivers=tuple(name for name in ("nvidia", "amdgpu", "xe", "i915") if Path("/sys/module", name).exists()),
        interpret="1" if backend.WISHED else None,
        cache=str(cache),
        cache_writable=os.access(existing, os.W_OK),
        cache_free=shutil.disk_usage(existing).free,
        dev_kernarg=os.environ.get("HIP_FORCE_DEV_KERNARG"),
        numa_balancing=_line_of("/proc/sys/kernel", "numa_balancing"),
        clocks=_line_of("/sys/class/drm", "card*/device/power_dpm_force_performance_level"),
        judge=_judge(),
        errors=errors,
    )


def _import(name: str, errors: dict[str, str]):
    try:
        return importlib.import_module(name)
    except Exception as error:  # a broken wheel can fail in any way
        errors[name] = f"{type(error).__name__}: {error}".strip().rstrip(".")
        return None


def _torch_build(torch) -> str:
    if torch is None:
        return "nothing"
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    accelerator = torch.accelerator.current_accelerator()
    return accelerator.type if accelerator else "CPU"


def _accelerator(torch) -> str | None:
    """The name of the accelerator torch sees."""
    if torch is None or not backend.accelerator_visible():
        return None
    where = torch.accelerator.current_accelerator()
    return getattr(torch.get_device_module(where).get_device_properties(where), "name", where.type)


def _has_library() -> bool:
    """Whether Triton can compile here. Where its library does not load, what of it is Python is made to do without."""
    from workshop.executor import without_native

    return importlib.util.find_spec("triton") is None or not without_native.install()


def _wanted_triton() -> str | None:
    """The Triton release that the installed torch names in its metadata; a build for the CPU names none.

    3.8 for "triton~=3.8.0", as torch 2.14 says it.
    """
    try:
        requirements = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (re.match(r"(?:pytorch-)?triton(?:-rocm|-xpu)?\s*([=~])=\s*([\d.]+)", line) for line in requirements)
    named = next(filter(None, found), None)
    return named and (named[2] if named[1] == "=" else named[2].rpartition(".")[0])


def _judge() -> str | None:
    """Why the judge does not work here, "" where it does, None where it is not installed. Asked in another process."""
    if importlib.util.find_spec("autograder") is None:
        return None
    command = [sys.executable, "-m", "autograder.cli", "prove"]
    try:
        proof = subprocess.run(command, capture_output=True, text=True, timeout=JUDGE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not judge known answers within {JUDGE_SECONDS} s"
    return "" if proof.returncode == 0 else (proof.stderr.strip().splitlines() or ["it ended without a message"])[-1]


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _line_of(folder: str | Path, pattern: str) -> str | None:
    """What the first file of that name says; None where there is none or it may not be read."""
    for file in sorted(Path(folder).glob(pattern)):
        try:
            return file.read_text().strip()
        except OSError:
            continue
    return None


def _pci_gpus() -> Iterator[str]:
    """Display controllers (class 03) and accelerators (class 12) on the PCI bus, of GPU vendors."""
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        kind, vendor = (_line_of(device, name) or "" for name in ("class", "vendor"))
        computes = kind.startswith("0x12") or (kind.startswith("0x03") and vendor != "0x8086")
        if computes and vendor in VENDORS:
            yield f"{VENDORS[vendor]} {device.name}"


def _device_nodes() -> Iterator[Node]:
    import grp  # not on Windows, which has no such device files either

    for pattern in ("kfd", "dri/renderD*", "nvidiactl", "nvidia[0-9]*", "nvidia-uvm"):
        for path in sorted(Path("/dev").glob(pattern)):
            gid = path.stat().st_gid
            try:
                group = grp.getgrgid(gid).gr_name
            except KeyError:
                group = None
            yield Node(str(path), os.access(path, os.R_OK | os.W_OK), gid, group)
