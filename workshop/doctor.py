"""Looks at this machine and says what works, what does not, and what to do about it.

`probe` collects facts and judges nothing; each check below turns facts into at most a few findings.
Standard library only at import: it must run where torch or triton is missing.
"""

import html
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 14)
TRITONS = ((3, 4), (3, 9))  # the oldest and the newest release the course was tried with
TRITON_OF_NUMPY_2_4 = (3, 7)  # the interpreter of older ones fails with NumPy 2.4
DISK_NEEDED = 1 << 30  # bytes for compiled kernels
JUDGE_SECONDS = 120
VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. state: "ok", "warn" (works, with a limit) or "bad" (does not work)."""

    state: str
    what: str
    meaning: str = ""
    todo: str = ""

    def __str__(self) -> str:
        lines = [f"{SIGNS[self.state]} {self.what}", self.meaning, f"→ {self.todo}" if self.todo else ""]
        return "\n    ".join(line for line in lines if line)


class Findings(list):
    """A list of Finding that shows itself."""

    @property
    def usable(self) -> bool:
        return all(finding.state != "bad" for finding in self)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        items = "".join(
            f"<li><pre style='margin:0'>{html.escape(str(finding))}</pre></li>" for finding in self
        )
        return f"<ul style='list-style:none;padding:0'>{items}</ul>"


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
    cache_free: int = DISK_NEEDED
    judge: str | None = None  # why it cannot judge; "" where it can
    errors: dict[str, str] = field(default_factory=dict)


def doctor(machine: Machine | None = None) -> Findings:
    """What works here, and what to do about what does not. Tests give their own `machine`."""
    machine = machine or probe()
    return Findings(finding for check in CHECKS for finding in check(machine))


def check_platform(machine: Machine) -> Iterator[Finding]:
    python = ".".join(map(str, machine.python))
    if machine.system != "Linux":
        yield Finding(
            "bad",
            f"{machine.system} on {machine.architecture}",
            "Triton is published for Linux only.",
            "Use a Linux machine, WSL 2 on Windows, the container in docker/, or Colab.",
        )
    if machine.python < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        yield Finding(
            "bad", f"Python {python}", f"The course needs {wanted} or newer.", "Install a newer Python."
        )
    elif machine.python > NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        yield Finding("warn", f"Python {python}", f"The course was tried up to {newest}.")
    else:
        yield Finding("ok", f"Python {python}")


def check_torch(machine: Machine) -> Iterator[Finding]:
    if machine.torch is None:
        reason = machine.errors.get("torch", "it is not installed")
        yield Finding(
            "bad", "torch does not import", f"Reason: {reason}.", "Run `make lab`, which installs it."
        )
    else:
        yield Finding("ok", f"torch {machine.torch}, built for {machine.torch_build}")


def check_triton(machine: Machine) -> Iterator[Finding]:
    if machine.triton is None:
        reason = machine.errors.get("triton", "it is not installed")
        pin = f"triton=={machine.torch_wants_triton}" if machine.torch_wants_triton else "triton"
        yield Finding(
            "bad",
            "triton does not import",
            f"Reason: {reason}. torch for the CPU comes without it.",
            f"Run `make lab`, or `pip install {pin}` beside an image's own torch.",
        )
        return
    wanted = machine.torch_wants_triton
    oldest, newest = (".".join(map(str, version)) for version in TRITONS)
    if wanted and not machine.triton.startswith(wanted):
        yield Finding(
            "warn",
            f"triton {machine.triton}, but torch {machine.torch} was built for triton {wanted}",
            "torch.compile may fail; the course's own kernels usually work.",
            f"pip install triton=={wanted}",
        )
    elif not TRITONS[0] <= _numbers(machine.triton) <= TRITONS[1]:
        yield Finding("warn", f"triton {machine.triton}", f"The course was tried with {oldest} to {newest}.")
    else:
        yield Finding("ok", f"triton {machine.triton}")


def check_numpy(machine: Machine) -> Iterator[Finding]:
    if not (machine.numpy and machine.triton):
        return
    clash = _numbers(machine.numpy) >= (2, 4) and _numbers(machine.triton) < TRITON_OF_NUMPY_2_4
    if clash and machine.accelerator is None:
        yield Finding(
            "bad",
            f"numpy {machine.numpy} with triton {machine.triton}",
            "This interpreter fails: 'only 0-dimensional arrays can be converted to Python scalars'.",
            "pip install 'numpy<2.4'",
        )
    else:
        yield Finding("ok", f"numpy {machine.numpy}")


def check_gpu(machine: Machine) -> Iterator[Finding]:
    if machine.accelerator:
        yield Finding("ok", f"GPU: {machine.accelerator}")
        if machine.interpret:
            yield Finding(
                "warn",
                "TRITON_INTERPRET is set although there is a GPU",
                "Kernels run on the interpreter, slowly, and nothing is timed.",
                "Unset it and restart the notebook's kernel to use the GPU.",
            )
        return
    if not (machine.gpus or machine.nodes):
        yield Finding(
            "ok",
            "no GPU found",
            "Kernels run on Triton's interpreter: every exercise can be solved, nothing is timed.",
        )
        return
    found = ", ".join(machine.gpus) or "a GPU's device files"
    causes = list(_why_unused(machine))
    if not causes:
        what = f"found {found}, but torch does not see it"
        todo = "Look at the output of `nvidia-smi` or `rocminfo`."
        causes = [Finding("warn", what, "The cause is not one known here.", todo)]
    yield from causes


def _why_unused(machine: Machine) -> Iterator[Finding]:
    """Why torch does not see a GPU that is there. The course still works, on the interpreter."""
    vendors = {gpu.split()[0] for gpu in machine.gpus}
    build = machine.torch_build
    if machine.torch and build == "CPU":
        yield Finding(
            "warn",
            f"found {', '.join(machine.gpus) or 'a GPU'}, but this torch is built for the CPU",
            "Kernels run on the interpreter.",
            "Install a torch for this GPU: README has the table of PyTorch indexes for `make lab`.",
        )
    elif machine.torch and vendors and not vendors & _vendors_of(build):
        yield Finding(
            "warn",
            f"found {', '.join(machine.gpus)}, but this torch is built for {build}",
            "Kernels run on the interpreter.",
            "Install a torch for this GPU: README has the table of PyTorch indexes for `make lab`.",
        )
    if machine.gpus and not machine.drivers:
        yield Finding(
            "warn",
            f"found {', '.join(machine.gpus)} without a loaded driver",
            "No program can use the GPU.",
            "Install the vendor's kernel driver (amdgpu or nvidia) on the host; a container uses the host's.",
        )
    elif machine.gpus and not machine.nodes:
        yield Finding(
            "warn",
            f"found {', '.join(machine.gpus)}, but no device files in /dev",
            "Inside a container this means that the GPU was not passed in.",
            "docker run --device /dev/kfd --device /dev/dri … (AMD) or --gpus all … (NVIDIA).",
        )
    for node in machine.nodes:
        if not node.usable:
            yield _closed(node)


def _closed(node: Node) -> Finding:
    """What to do about a device file that this user may not open."""
    if node.group is None:
        todo = (
            f"The host's group {node.gid} has no name here: start the container with --group-add {node.gid}, "
            "or as root: groupadd and usermod with that number."
        )
    else:
        todo = f"sudo usermod -aG {node.group} $USER, then log in again (container: --group-add {node.gid})."
    group = node.group or "unnamed"
    what = f"{node.path} may not be opened: it belongs to group {group} ({node.gid})"
    return Finding("warn", what, "The driver is there, but this user has no access to the GPU.", todo)


def check_cache(machine: Machine) -> Iterator[Finding]:
    if not machine.cache_writable:
        yield Finding(
            "bad",
            f"{machine.cache} cannot be written",
            "Triton keeps compiled kernels there.",
            "Set TRITON_CACHE_DIR to a folder of yours.",
        )
    elif machine.cache_free < DISK_NEEDED:
        yield Finding(
            "warn",
            f"{machine.cache_free / 2**20:.0f} MiB free at {machine.cache}",
            "Compiled kernels may not fit.",
            "Free some space, or set TRITON_CACHE_DIR to another disk.",
        )
    else:
        yield Finding("ok", f"kernel cache {machine.cache}, {machine.cache_free / 2**30:.0f} GiB free")


def check_jax(machine: Machine) -> Iterator[Finding]:
    missing = [
        name for name, version in (("jax", machine.jax), ("jax-triton", machine.jax_triton)) if not version
    ]
    if missing:
        yield Finding(
            "warn",
            f"{' and '.join(missing)} not installed",
            "Only notebook 05 needs it.",
            "`make jax`, or `make lab` without what turned it off.",
        )
    else:
        yield Finding("ok", f"jax {machine.jax} with jax-triton {machine.jax_triton}")


def check_judge(machine: Machine) -> Iterator[Finding]:
    if machine.judge is None:
        return
    if machine.judge:
        yield Finding("bad", "the judge does not work here", machine.judge)
    else:
        yield Finding("ok", "the judge: known answers get their verdicts")


CHECKS: tuple[Callable[[Machine], Iterable[Finding]], ...] = (
    check_platform,
    check_torch,
    check_triton,
    check_numpy,
    check_gpu,
    check_cache,
    check_jax,
    check_judge,
)


def probe() -> Machine:
    """The facts about this machine. The compiler and the GPU are started by the judge's own process alone."""
    errors: dict[str, str] = {}
    torch = _import("torch", errors)
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
        numpy=_version("numpy"),
        jax=_version("jax"),
        jax_triton=_version("jax-triton"),
        accelerator=_accelerator(torch),
        gpus=tuple(_pci_gpus()),
        nodes=tuple(_device_nodes()),
        drivers=tuple(
            name for name in ("nvidia", "amdgpu", "xe", "i915") if Path("/sys/module", name).exists()
        ),
        interpret=_set_by_user(torch),
        cache=str(cache),
        cache_writable=os.access(existing, os.W_OK),
        cache_free=shutil.disk_usage(existing).free,
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
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else _other_build(torch)


def _other_build(torch) -> str:
    accelerator = torch.accelerator.current_accelerator()
    return accelerator.type if accelerator else "CPU"


def _accelerator(torch) -> str | None:
    """The name of the accelerator torch sees."""
    if torch is None:
        return None
    from workshop.backend import accelerator_visible

    if not accelerator_visible():
        return None
    where = torch.accelerator.current_accelerator()
    return getattr(torch.get_device_module(where).get_device_properties(where), "name", where.type)


def _set_by_user(torch) -> str | None:
    """TRITON_INTERPRET, but not where `import workshop` itself has set it."""
    return os.environ.get("TRITON_INTERPRET") if torch and _accelerator(torch) else None


def _wanted_triton() -> str | None:
    """The Triton release that the installed torch names in its metadata; a build for the CPU names none."""
    try:
        requirements = importlib.metadata.requires("torch") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    names = (re.match(r"(?:pytorch-)?triton(?:-rocm|-xpu)?\s*==\s*([\d.]+)", line) for line in requirements)
    return next((match[1] for match in names if match), None)


def _judge() -> str | None:
    """What `autograder prove` has to say against this installation, from a process of its own."""
    if importlib.util.find_spec("autograder") is None:
        return None
    command = [sys.executable, "-m", "autograder.cli", "prove"]
    try:
        proof = subprocess.run(command, capture_output=True, text=True, timeout=JUDGE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not judge known answers within {JUDGE_SECONDS} s"
    return "" if proof.returncode == 0 else (proof.stderr.strip().splitlines() or ["it ended without a word"])[-1]


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pci_gpus() -> Iterator[str]:
    """Display controllers (class 03) and accelerators (class 12) on the PCI bus, of GPU vendors."""
    for device in sorted(Path("/sys/bus/pci/devices").glob("*")):
        try:
            kind, vendor = ((device / name).read_text().strip() for name in ("class", "vendor"))
        except OSError:
            continue
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


def _vendors_of(build: str) -> set[str]:
    return {"CUDA": {"NVIDIA"}, "ROCm": {"AMD"}, "xpu": {"Intel"}}.get(
        build.split()[0], set(VENDORS.values())
    )


def _numbers(version: str) -> tuple[int, int]:
    """Major and minor of a version string."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
