"""Says what works on this machine, what does not, and what to do about it.

`probe` collects the facts and judges none of them; each check turns facts into at most a few findings, whose words are
in doctor.toml. Standard library only at import: it must run where torch or triton is missing.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from workshop import backend
from workshop.install import NEWEST_PYTHON, OLDEST_PYTHON, dotted
from workshop.notebook import live, page

TRITONS = ((3, 4), (3, 9))  # the oldest and the newest release the course was tried with
DISK_NEEDED = 1 << 30  # bytes for compiled kernels
LOOKING = "Looking at this machine, and trying the judge …"
SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}
VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
JUDGE_SECONDS = 120
WORDS = tomllib.loads(Path(__file__).with_name("doctor.toml").read_text(encoding="utf-8"))

# -- facts about this machine --------------------------------------------------------------------------------


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
    from workshop.executor import without_native

    errors: dict[str, str] = {}
    torch = _import("torch", errors)
    # Where Triton's library does not load, what of it is Python is made to do without.
    compiler = importlib.util.find_spec("triton") is None or not without_native.install()
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
    if torch is None or not backend.accelerator_visible():
        return None
    where = torch.accelerator.current_accelerator()
    return getattr(torch.get_device_module(where).get_device_properties(where), "name", where.type)


def _wanted_triton() -> str | None:
    """The Triton release that the installed torch names in its metadata; a build for the CPU names none.

    3.8 for "triton~=3.8.0", as torch 2.14 says it.
    """
    requirements: list[str] = []
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        requirements += importlib.metadata.requires("torch") or []
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
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(distribution)


def _line_of(folder: str | Path, pattern: str) -> str | None:
    """What the first file of that name says; None where there is none or it may not be read."""
    for file in sorted(Path(folder).glob(pattern)):
        with contextlib.suppress(OSError):
            return file.read_text().strip()
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
            gid, group = path.stat().st_gid, None
            with contextlib.suppress(KeyError):
                group = grp.getgrgid(gid).gr_name
            yield Node(str(path), os.access(path, os.R_OK | os.W_OK), gid, group)


# -- what they mean ------------------------------------------------------------------------------------------


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
        return page("doctor.html", findings=self, signs=SIGNS)


def doctor(machine: Machine | None = None) -> Findings:
    """What works here, and what to do about what does not. Tests give their own `machine`."""
    if machine is None:
        with _looking():
            machine = probe()
    return Findings(finding for check in CHECKS for finding in check(machine))


@contextlib.contextmanager
def _looking() -> Iterator[None]:
    """Says in a notebook, and in a terminal, that something happens. It goes when that is over."""
    shown = live({"text/plain": LOOKING})
    terminal = not shown and sys.stderr.isatty()
    if terminal:
        print(LOOKING, end="\r", file=sys.stderr, flush=True)
    yield
    if shown:
        shown.update({"text/html": ""}, raw=True)
    elif terminal:
        print(" " * len(LOOKING), end="\r", file=sys.stderr, flush=True)


def told(name: str, **words) -> Finding:
    """A finding as doctor.toml words it."""
    said = WORDS[name]
    return Finding(said["state"], *(said.get(part, "").format(**words) for part in ("what", "meaning", "todo")))


def _told(name: str, m: Machine, **more) -> Finding:
    gpus, needed = ", ".join(m.gpus), {"jax": m.jax, "jax-triton": m.jax_triton}
    return told(
        name,
        m=m,
        python=dotted(m.python),
        oldest=dotted(OLDEST_PYTHON),
        newest=dotted(NEWEST_PYTHON),
        tritons=" to ".join(map(dotted, TRITONS)),
        pin=f"triton=={m.torch_wants_triton}" if m.torch_wants_triton else "triton",
        reasons=dict.fromkeys(("torch", "triton"), "it is not installed") | m.errors,
        gpus=gpus or "a GPU",
        gpus_or_files=gpus or "device files of a GPU",
        build="the CPU" if m.torch_build == "CPU" else m.torch_build,
        missing=" and ".join(name for name, version in needed.items() if not version),
        mib=m.cache_free / 2**20,
        gib=m.cache_free / 2**30,
        **more,
    )


def check_software(m: Machine) -> Iterator[Finding]:
    if m.system != "Linux":
        yield _told("not-linux-with-triton" if m.triton else "not-linux", m)
    yield _told("python-old" if m.python < OLDEST_PYTHON else "python-new" if m.python > NEWEST_PYTHON else "python", m)
    yield _told("torch-missing" if m.torch is None else "torch", m)
    if m.triton is None:
        yield _told("triton-missing", m)
    elif m.torch_wants_triton and not m.triton.startswith(m.torch_wants_triton):
        yield _told("triton-of-another-torch", m)
    elif not m.compiler:
        yield _told("triton-without-library", m)
    else:
        numbers = tuple(int(part) for part in re.findall(r"\d+", m.triton)[:2])
        yield _told("triton" if TRITONS[0] <= numbers <= TRITONS[1] else "triton-untried", m)


def check_gpu(m: Machine) -> Iterator[Finding]:
    if m.accelerator:
        yield _told("gpu", m)
        if m.interpret:
            yield _told("gpu-not-wished", m)
    elif not (m.gpus or m.nodes):
        yield _told("no-gpu", m)
    else:
        yield from list(_why_unseen(m)) or [_told("gpu-unseen", m)]


def _why_unseen(m: Machine) -> Iterator[Finding]:
    """Why torch does not see a GPU that is there. The course still works, without it."""
    vendors = {gpu.split()[0] for gpu in m.gpus}
    of_build = {"CUDA": {"NVIDIA"}, "ROCm": {"AMD"}, "xpu": {"Intel"}}.get(m.torch_build.split()[0])
    fits = not vendors or vendors & (of_build or set(VENDORS.values()))
    if m.torch and (m.torch_build == "CPU" or not fits):
        yield _told("gpu-of-another-build", m)
    if m.gpus and not m.drivers:
        yield _told("no-driver", m)
    elif m.gpus and not m.nodes:
        yield _told("no-device-files", m)
    for node in m.nodes:
        if not node.usable:
            yield _told("closed" if node.group else "closed-to-a-number", m, node=node)


def check_amd_settings(m: Machine) -> Iterator[Finding]:
    if m.accelerator and m.torch_build.startswith("ROCm"):
        if m.dev_kernarg != "1":
            yield _told("kernarg", m)
        if m.numa_balancing not in (None, "0"):
            yield _told("numa", m)
        if m.clocks == "auto":
            yield _told("clocks", m)


def check_rest(m: Machine) -> Iterator[Finding]:
    full = "cache-full" if m.cache_free < DISK_NEEDED else "cache"
    yield _told(full if m.cache_writable else "cache-closed", m)
    if m.numpy:
        yield _told("numpy", m)
    yield _told("jax" if m.jax and m.jax_triton else "jax-missing", m)
    if m.judge is not None:
        yield _told("judge-broken" if m.judge else "judge", m)


CHECKS = (check_software, check_gpu, check_amd_settings, check_rest)


# What one attendee needs was measured by benchmarks/room.py; what the host has is read.
MEASURED = Path(__file__).parents[1] / "benchmarks" / "recorded" / "room.json"
GIB = 1 << 30
HUB = GIB  # bytes for the hub, its proxy and the system
AT_ONCE = 0.1  # of the attendees have a check running; at the end of an exercise it is more, and all wait longer
PATIENCE = 3.0  # times as long as alone: what a check may take while AT_ONCE of them run
CARD = 2 * GIB  # bytes of a card for one attendee: a context of CUDA or HIP, twice, and lessons' tensors


@dataclass(frozen=True)
class Needs:
    """What one attendee needs, as it was measured. Bytes; seconds that a check takes alone."""

    idle: int
    checking: int
    check_seconds: float
    about: str

    @classmethod
    def measured(cls) -> "Needs":
        told = json.loads(MEASURED.read_text(encoding="utf-8"))
        return cls(told["idle_bytes"], told["checking_bytes"], told["check_seconds"], told["about"])


@dataclass(frozen=True)
class Host:
    """What there is. memory: bytes that are free now; card_memory: bytes of each card, empty without one."""

    memory: int
    cores: int
    card_memory: tuple[int, ...] = ()


def this_host() -> Host:
    """The memory, the cores and the cards. In a container with limits, what the limits leave."""
    import psutil
    import torch

    folder = Path("/sys/fs/cgroup")
    limits = [_line_of(folder, name) or "" for name in ("memory.max", "memory/memory.limit_in_bytes")]
    free = min([psutil.virtual_memory().available, *(int(limit) for limit in limits if limit.isdigit())])
    cards = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()  # ROCm's torch says it so, too
    memory = tuple(torch.cuda.get_device_properties(card).total_memory for card in cards)
    return Host(free, len(os.sched_getaffinity(0)), memory)


def holds(host: Host, needs: Needs) -> dict[str, int]:
    """The number of attendees for which each resource is enough."""
    each = needs.idle + AT_ONCE * (needs.checking - needs.idle)
    found = {
        "memory": max(0, int((host.memory - HUB) / each)),
        # A core serves one check at a time. While n of them run on c cores, each takes n / c times as long.
        "cores": int(PATIENCE * host.cores / AT_ONCE),
    }
    if host.card_memory:
        found["card"] = sum(int(memory / CARD) for memory in host.card_memory)
    return found


def room(attendees: int, host: Host | None = None, needs: Needs | None = None) -> Findings:
    """What this host says to a room of so many attendees: a finding for each resource, and a last one for all."""
    host, needs = host or this_host(), needs or Needs.measured()
    sizes = {"memory": host.memory, "card_memory": sum(host.card_memory), "idle": needs.idle,
             "checking": needs.checking, "hub": HUB, "card": CARD}  # fmt: skip
    gib = {name: size / GIB for name, size in sizes.items()}
    words = {"host": host, "needs": needs, "at_once": AT_ONCE, "patience": PATIENCE, "cards": len(host.card_memory)}
    findings, found = Findings(), holds(host, needs)
    for what, number in found.items():
        finding = told(f"room-{what}", number=number, **words, **gib)
        findings.append(finding if number < attendees else replace(finding, state="ok", todo=""))
    most = min(found.values())
    enough = "room" if most >= attendees else "room-too-large"
    findings.append(told(enough, attendees=attendees, most=most, about=needs.about))
    return findings
