"""Says what works on this machine, what does not, and what to do about it.

`machine.probe` collects the facts; each check below turns facts into at most a few findings, whose words are in
doctor.toml. Standard library only at import: it must run where torch or triton is missing.
"""

import contextlib
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workshop.install import NEWEST_PYTHON, OLDEST_PYTHON, dotted
from workshop.machine import VENDORS, Machine, probe
from workshop.notebook import live, page

TRITONS = ((3, 4), (3, 9))  # the oldest and the newest release the course was tried with
DISK_NEEDED = 1 << 30  # bytes for compiled kernels
LOOKING = "Looking at this machine, and trying the judge …"
SIGNS = {"ok": "✓", "warn": "!", "bad": "✗"}
WORDS = tomllib.loads(Path(__file__).with_name("doctor.toml").read_text(encoding="utf-8"))


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
    """A finding about a machine."""
    gpus, build = ", ".join(m.gpus), m.torch_build
    absent = [name for name, version in (("jax", m.jax), ("jax-triton", m.jax_triton)) if not version]
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
        build="the CPU" if build == "CPU" else build,
        missing=" and ".join(absent),
        mib=m.cache_free / 2**20,
        gib=m.cache_free / 2**30,
        **more,
    )


def check_platform(m: Machine) -> Iterator[Finding]:
    if m.system != "Linux":
        yield _told("not-linux-with-triton" if m.triton else "not-linux", m)
    yield _told("python-old" if m.python < OLDEST_PYTHON else "python-new" if m.python > NEWEST_PYTHON else "python", m)
    yield _told("torch-missing" if m.torch is None else "torch", m)


def check_triton(m: Machine) -> Iterator[Finding]:
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


CHECKS = (check_platform, check_triton, check_gpu, check_amd_settings, check_rest)
