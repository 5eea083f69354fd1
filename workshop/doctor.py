"""Says what works on this machine, what does not, and what to do about it.

`machine.probe` collects the facts; each check below turns facts into at most a few findings.
Standard library only at import: it must run where torch or triton is missing.
"""

import contextlib
import html
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from workshop.install import NEWEST_PYTHON, OLDEST_PYTHON, dotted
from workshop.machine import VENDORS, Machine, Node, probe
from workshop.notebook import live

TRITONS = ((3, 4), (3, 9))  # the oldest and the newest release the course was tried with
DISK_NEEDED = 1 << 30  # bytes for compiled kernels
LOOKING = "Looking at this machine, and trying the judge …"
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
            f"<li><pre style='margin:0;word-break:normal'>{html.escape(str(finding))}</pre></li>" for finding in self
        )
        return f"<ul style='list-style:none;padding:0'>{items}</ul>"


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


def check_platform(machine: Machine) -> Iterator[Finding]:
    python = dotted(machine.python)
    if machine.system != "Linux":
        yield Finding("warn" if machine.triton else "bad", f"{machine.system} on {machine.architecture}",
                      "Triton is published for Linux only." + " Its Python files are here." * bool(machine.triton),
                      "Use a Linux machine, WSL 2 on Windows, the container in docker/, or Colab.")
    if machine.python < OLDEST_PYTHON:
        needs = f"The course needs {dotted(OLDEST_PYTHON)} or newer."
        yield Finding("bad", f"Python {python}", needs, "Install a newer Python.")
    elif machine.python > NEWEST_PYTHON:
        yield Finding("warn", f"Python {python}", f"The course was tried up to {dotted(NEWEST_PYTHON)}.")
    else:
        yield Finding("ok", f"Python {python}")


def check_torch(machine: Machine) -> Iterator[Finding]:
    if machine.torch is None:
        reason = machine.errors.get("torch", "it is not installed")
        yield Finding("bad", "torch does not import", f"Reason: {reason}.", "Run `make lab`, which installs it.")
    else:
        yield Finding("ok", f"torch {machine.torch}, built for {machine.torch_build}")


def check_triton(machine: Machine) -> Iterator[Finding]:
    if machine.triton is None:
        reason = machine.errors.get("triton", "it is not installed")
        pin = f"triton=={machine.torch_wants_triton}" if machine.torch_wants_triton else "triton"
        yield Finding("bad", "triton does not import", f"Reason: {reason}. torch for the CPU comes without it.",
                      f"Run `make lab`, or `pip install {pin}` beside an image's own torch.")
        return
    wanted = machine.torch_wants_triton
    numbers = tuple(int(part) for part in re.findall(r"\d+", machine.triton)[:2])
    if wanted and not machine.triton.startswith(wanted):
        yield Finding("warn", f"triton {machine.triton}, but torch {machine.torch} was built for triton {wanted}",
                      "torch.compile may fail; the course's own kernels usually work.",
                      f"pip install triton=={wanted}")
    elif not machine.compiler:
        yield Finding("warn", f"triton {machine.triton} without its library",
                      "Kernels run, and every exercise of lessons 0 to 5 can be solved. Nothing can be compiled: "
                      "xray() says so.", f"On Linux: pip install --force-reinstall triton=={machine.triton}")
    elif not TRITONS[0] <= numbers <= TRITONS[1]:
        tried = f"The course was tried with {' to '.join(map(dotted, TRITONS))}."
        yield Finding("warn", f"triton {machine.triton}", tried)
    else:
        yield Finding("ok", f"triton {machine.triton}")


def check_gpu(machine: Machine) -> Iterator[Finding]:
    if machine.accelerator:
        yield Finding("ok", f"GPU: {machine.accelerator}")
        if machine.interpret:
            yield Finding("warn", "TRITON_INTERPRET is set although there is a GPU",
                          "Kernels run on the CPU, every access to memory is checked, and nothing is timed.",
                          "Unset it and restart the notebook's kernel to use the GPU.")
        return
    if not (machine.gpus or machine.nodes):
        yield Finding("ok", "no GPU found",
                      "Kernels run on the CPU, every access to memory checked: every exercise can be solved, nothing "
                      "is timed.")
        return
    what = f"found {', '.join(machine.gpus) or 'device files of a GPU'}, but torch does not see it"
    todo = "Look at the output of `nvidia-smi` or `rocminfo`."
    yield from list(_why_unused(machine)) or [Finding("warn", what, "The doctor does not know the cause.", todo)]


def _why_unused(machine: Machine) -> Iterator[Finding]:
    """Why torch does not see a GPU that is there. The course still works, without it."""
    vendors, build = {gpu.split()[0] for gpu in machine.gpus}, machine.torch_build
    found, fits = ", ".join(machine.gpus), not vendors or vendors & _vendors_of(build)
    if machine.torch and (build == "CPU" or not fits):
        what = "the CPU" if build == "CPU" else build
        yield Finding("warn", f"found {found or 'a GPU'}, but this torch is built for {what}",
                      "Kernels run on the CPU.",
                      "Install a torch for this GPU: README has the table of PyTorch indexes for `make lab`.")
    if machine.gpus and not machine.drivers:
        yield Finding("warn", f"found {found} without a loaded driver", "No program can use the GPU.",
                      "Install the vendor's kernel driver (amdgpu or nvidia) on the host; a container uses the "
                      "host's.")
    elif machine.gpus and not machine.nodes:
        yield Finding("warn", f"found {found}, but no device files in /dev",
                      "Inside a container this means that the GPU was not passed in.",
                      "docker run --device /dev/kfd --device /dev/dri … (AMD) or --gpus all … (NVIDIA).")
    for node in machine.nodes:
        if not node.usable:
            yield _closed(node)


def _closed(node: Node) -> Finding:
    """What to do about a device file that this user may not open."""
    todo = f"sudo usermod -aG {node.group} $USER, then log in again (container: --group-add {node.gid})."
    if node.group is None:
        todo = (f"The host's group {node.gid} has no name here: start the container with --group-add {node.gid}, or "
                "as root: groupadd and usermod with that number.")  # fmt: skip
    group = node.group or "unnamed"
    what = f"{node.path} may not be opened: it belongs to group {group} ({node.gid})"
    return Finding("warn", what, "The driver is there, but this user has no access to the GPU.", todo)


def check_amd_settings(machine: Machine) -> Iterator[Finding]:
    """Settings that change timings on an AMD GPU, from AMD's workload and system optimization guides."""
    if not (machine.accelerator and machine.torch_build.startswith("ROCm")):
        return
    if machine.dev_kernarg != "1":
        yield Finding("warn", "HIP_FORCE_DEV_KERNARG is not 1",
                      "Every launch reads its arguments from the host's memory, so short kernels look slower.",
                      "export HIP_FORCE_DEV_KERNARG=1, before Python starts.")
    if machine.numa_balancing not in (None, "0"):
        yield Finding("warn", "NUMA balancing is on",
                      "Linux moves memory between processors while you measure, so timings vary.",
                      "sudo sh -c 'echo 0 > /proc/sys/kernel/numa_balancing'")
    if machine.clocks == "auto":
        yield Finding("ok", "the GPU chooses its clocks", "Timings vary with its temperature and power.",
                      "To compare small differences on an MI300X: rocm-smi --setperfdeterminism 1900 (back: rocm-smi "
                      "-r).")


def check_cache(machine: Machine) -> Iterator[Finding]:
    if not machine.cache_writable:
        yield Finding("bad", f"{machine.cache} cannot be written", "Triton keeps compiled kernels there.",
                      "Set TRITON_CACHE_DIR to a folder of yours.")
    elif machine.cache_free < DISK_NEEDED:
        yield Finding("warn", f"{machine.cache_free / 2**20:.0f} MiB free at {machine.cache}",
                      "Compiled kernels may not fit.", "Free some space, or set TRITON_CACHE_DIR to another disk.")
    else:
        yield Finding("ok", f"kernel cache {machine.cache}, {machine.cache_free / 2**30:.0f} GiB free")


def check_packages(machine: Machine) -> Iterator[Finding]:
    if machine.numpy:
        yield Finding("ok", f"numpy {machine.numpy}")
    missing = [name for name, version in (("jax", machine.jax), ("jax-triton", machine.jax_triton)) if not version]
    if missing:
        yield Finding("warn", f"{' and '.join(missing)} not installed", "Only notebook 05 needs it.",
                      "Run `make jax`. (`make lab` installs it too where there is no GPU.)")
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
    check_gpu,
    check_amd_settings,
    check_cache,
    check_packages,
    check_judge,
)


def _vendors_of(build: str) -> set[str]:
    return {"CUDA": {"NVIDIA"}, "ROCm": {"AMD"}, "xpu": {"Intel"}}.get(build.split()[0], set(VENDORS.values()))
