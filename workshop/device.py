"""Facts about this machine's accelerator and about known cards, for lessons and exercises to compute with.

Triton's active driver names the backend (cuda, hip, xpu, npu, ...). Everything that needs to know the device
asks here. Without a GPU, a stand-in driver answers the host code that asks Triton for its device.
"""

import functools
import os
import platform
import re
import tomllib
from collections import namedtuple
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace

import torch
import triton
from triton.backends.compiler import GPUTarget

from workshop.advice import did_you_mean
from workshop.backend import driver, interpreting
from workshop.notebook import page
from workshop.timing import Gbps, measure_copy

CDNA = frozenset({"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"})  # 2 and newer: one unified register file


@dataclass(frozen=True)
class DeviceFacts:
    """The numbers a launch is computed from.

    registers, shared_memory (bytes), warp_size (threads) and max_threads are per multiprocessor (NVIDIA) or
    compute unit (AMD), as Triton's driver reports them. From CDNA 2 on `registers` counts half of the register
    file, which ordinary and accumulation registers share. A driver that does not report a number leaves it 0.
    """

    name: str
    backend: str
    arch: str
    multiprocessors: int
    registers: int
    shared_memory: int
    warp_size: int
    max_threads: int

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"a device has no {name!r}. {did_you_mean(name, (each.name for each in fields(self)))}")

    @property
    def is_cdna(self) -> bool:
        """Whether this is CDNA 2 or newer, whose unified register file is twice `registers`.

        The MI100 (gfx908) has two separate files instead, so its waves cannot use the second for other values.
        """
        return self.backend == "hip" and self.arch in CDNA


Card = namedtuple("Card", "name gbps tflops")  # what a data sheet says, see cards.toml
_SHEET = tomllib.loads(Path(__file__).with_name("cards.toml").read_text(encoding="utf-8"))
KNOWN_DEVICES = {name: DeviceFacts(name, **card["facts"]) for name, card in _SHEET.items()}
CARDS = [Card(name, **card["peaks"]) for name, card in _SHEET.items() if "peaks" in card]


@dataclass(frozen=True)
class Device(DeviceFacts):
    """This machine's device: its facts, its memory (bytes) and the software that drives it."""

    memory: int
    driver: str
    interpreting: bool
    torch: str = torch.__version__
    triton: str = triton.__version__

    def copy_gbps(self) -> Gbps:
        """Measured speed of a device-to-device copy of 1 GiB, reads and writes together, in GB/s.

        Each process measures it once. Raises RuntimeError without a GPU, where a time says nothing about one.
        """
        if self.interpreting:
            raise RuntimeError("there is no GPU here: a copy's speed can only be measured on one")
        return measure_copy()

    def __str__(self) -> str:
        if self.interpreting:
            return (
                f"No GPU here: your kernels run on the CPU ({self.name}), as Triton's own front end reads them. "
                "They compute the same values as on a GPU, and every access to memory is checked. Nothing is timed. "
                "Compiling needs no GPU: xray() shows what your kernel becomes on an MI300X or an H100."
            )
        return (
            f"Your kernels run on this device: {self.name} ({self.backend}, {self.arch}). "
            f"It has {self.multiprocessors} {self.unit}s and {self.memory / 2**30:.0f} GiB of memory. "
            f"Each {self.unit} has {self.registers} registers, {self.shared_memory // 1024} KiB of shared "
            f"memory and room for {self.max_threads} threads in warps of {self.warp_size}."
        )

    @property
    def unit(self) -> str:
        """What one multiprocessor is called."""
        return {"cuda": "multiprocessor", "hip": "compute unit"}.get(self.backend, "core")

    def _repr_html_(self) -> str:
        return page("device.html", device=self)


@functools.cache
def device() -> Device:
    """The device that kernels run on in this process."""
    if not interpreting():
        return _accelerator()
    cpuinfo = Path("/proc/cpuinfo")
    named = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.M) if cpuinfo.exists() else None
    return Device(
        name=named[1].strip() if named else platform.processor() or platform.machine(),
        backend="interpreter",
        arch=platform.machine(),
        multiprocessors=os.cpu_count() or 1,
        registers=0,
        shared_memory=0,
        warp_size=1,
        max_threads=1,
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        driver="none",
        interpreting=True,
    )


def _accelerator() -> Device:
    active = driver()
    where = active.get_active_torch_device()
    target = active.get_current_target()
    reported = active.utils.get_device_properties(active.get_current_device())
    properties = torch.get_device_module(where).get_device_properties(where)

    def number(*names: str) -> int:
        values = (reported.get(name, getattr(properties, name, None)) for name in names)
        return int(next((value for value in values if value is not None), 0))

    return Device(
        name=getattr(properties, "name", where.type),
        backend=target.backend,
        arch=f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch),
        multiprocessors=number("multiprocessor_count", "multi_processor_count", "num_aicore"),
        registers=number("max_num_regs", "regs_per_multiprocessor"),
        shared_memory=number("max_shared_mem", "shared_memory_per_multiprocessor"),
        warp_size=number("warpSize", "warp_size") or target.warp_size,
        max_threads=number("max_threads_per_sm", "max_threads_per_multi_processor"),
        memory=number("total_memory"),
        driver=_driver_version(),
        interpreting=False,
    )


def _driver_version() -> str:
    for name, module in (("NVIDIA", "nvidia"), ("amdgpu", "amdgpu")):
        version = Path("/sys/module", module, "version")
        if version.exists():
            return f"{name} {version.read_text().strip()}"
    return "unknown"


# -- a driver for machines without a GPU ---------------------------------------------------------------------

# No lesson shows these numbers as properties of real hardware: two compute units, so that a persistent kernel has to
# loop. Triton's own tutorial computes the number of persistent programs from them.
STAND_IN = {
    "multiprocessor_count": 2,
    "max_num_regs": 65536,
    "max_shared_mem": 65536,
    "warpSize": 64,
    "sm_clock_rate": 0,
    "mem_clock_rate": 0,
    "mem_bus_width": 0,
}


class StandInDriver:
    """Answers with a small made-up device. Its stopwatch always says 1 ms: autotune takes the first configuration."""

    target = GPUTarget("hip", "gfx942", 64)  # what is compiled for
    utils = SimpleNamespace(get_device_properties=lambda device: dict(STAND_IN))
    get_active_torch_device = staticmethod(lambda: torch.device("cpu"))
    get_current_device = staticmethod(lambda: 0)
    get_current_stream = staticmethod(lambda device=0: 0)
    get_device_interface = staticmethod(lambda: torch.cpu)

    def get_current_target(self):
        return self.target

    def get_benchmarker(self):
        return lambda function, *, quantiles=None, **_: [1.0] * len(quantiles or [0])


def install_stand_in() -> None:
    """From now on it is Triton's active driver in this process."""
    triton.runtime.driver.set_active(StandInDriver())
