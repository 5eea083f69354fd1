"""Exercises whose answer is a number: bytes moved (02) and the size of a persistent launch (04).

Here `reference` returns a plain value. A mistake computes the plain value that results from a misconception.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from types import SimpleNamespace

import torch

from workshop.device import KNOWN_DEVICES, DeviceFacts
from workshop.occupancy import num_programs
from workshop.syllabus import find

from ..text import many
from .design import Inputs, Level, Number, between, each_of, fixed, memory_of_a_program, of_each_size, rows_of
from .spec import Exercise, changed, choice, integer, wrong_values


def bytes_moved(m: int, n: int, element_size: int) -> dict[str, int]:
    """Five torch operations on an m × n matrix: max, subtract, exp, sum, divide; and one fused kernel."""
    return {
        "torch_read": (5 * m * n + 2 * m) * element_size,
        "torch_written": (3 * m * n + 2 * m) * element_size,
        "fused_read": m * n * element_size,
        "fused_written": m * n * element_size,
    }


def _scaled(change):
    return lambda m, n, size: {key: change(count, size) for key, count in bytes_moved(m, n, 1).items()}


LENGTHS = (
    Level("one", fixed(1)),
    Level("few", of_each_size(2, 30)),
    Level("hundreds", of_each_size(31, 999)),
    Level("thousands", of_each_size(1000, 9999)),
    Level("more", of_each_size(10_000, 10_000_000)),
)
BYTES_INPUTS = Inputs(
    (Number("m", LENGTHS), Number("n", LENGTHS), Number("element_size", each_of(1, 2, 4, 8))),
    first=({"m": 1823, "n": 781, "element_size": 4}, {"m": 4096, "n": 8192, "element_size": 2}),
    named=lambda m, n, size: f"{m:,} × {n:,}, {many(size, 'byte', 'bytes')} each",
)


BYTES_MISTAKES = wrong_values(
    (_scaled(lambda count, size: count), "These are numbers of elements, not of bytes.",
     "Multiply each by element_size."),
    (_scaled(lambda count, size: 4 * count), "Every element is counted as 4 bytes, as in float32.",
     "Multiply by element_size."),
    (_scaled(lambda count, size: size * size * count), "The numbers are multiplied by element_size twice.",
     "Once is enough: write numbers of elements into the table, and multiply where they are returned."),
    *(
        (_scaled(lambda count, size, unit=unit: size * count / unit),
         f"These are not bytes: they are divided by {unit:,}.", "Return numbers of bytes.")
        for unit in (10**3, 2**10, 10**6, 2**20, 10**9, 2**30)
    ),
    *(
        (lambda m, n, size, key=key: bytes_moved(m, n, size) | {key: 0}, f"One fused kernel also {does}.",
         "Count the bytes of one matrix.")
        for key, does in (("fused_read", "reads x"), ("fused_written", "writes its output"))
    ),
)  # fmt: skip


def _counted(arguments: tuple, key: str | None, got: float, expected: float) -> tuple[str, str]:
    """A wrong number of bytes as matrices of M × N and vectors of M elements, and the steps to go through."""
    m, n, size = arguments
    matrices, rest = divmod(got / size, m * n)
    vectors = rest / m
    whole = vectors == int(vectors) and min(m, n) > 20  # in a small matrix the two terms look alike
    means = f"That is {matrices:g} × MN + {vectors:g} × M elements: " + (
        f"{matrices:g} {'matrix' if matrices == 1 else 'matrices'} and {vectors:g} vector{'s' * (vectors != 1)}."
    )
    advice = {
        "torch_read": "go through max, subtract, exp, sum, divide: each of them reads one matrix, and two of them read "
        "one number per row as well.",
        "torch_written": "go through max, subtract, exp, sum, divide: which of them write a matrix, and which one "
        "number per row?",
        "fused_read": "the fused kernel reads each element of x once; row_max and row_sum stay on the chip.",
        "fused_written": "the fused kernel writes each element of the output once, and nothing else.",
    }[key]
    return means if whole else "", advice


def what_decides(limit: str, larger: str, got: float, expected: float) -> str:
    """larger: why an answer may be larger than expected."""
    side = f"larger: {larger}"
    if got < expected:
        side = "smaller: this limit or another one is too strict, or a rounding loses too much"
    return f"Here {limit} decide{'s' * (limit in ('LDS', 'shared memory'))}. The answer is {side}."


def _by_limit(arguments: tuple, key: str | None, got: float, expected: float) -> tuple[str, str]:
    registers, shared, warps, device = arguments
    threads = warps * device.warp_size
    room = {
        "registers": device.registers * (1 + device.is_cdna) // (registers * threads),
        "shared memory": device.shared_memory // shared if shared else math.inf,
        "threads": device.max_threads // threads,
    }
    decides = min(room, key=room.get)
    for fact, means, advice in (
        ({"is_cdna": False}, f"The registers that the driver reports were not doubled for {device.arch}.",
         "decide by device.arch, for all of gfx90a, gfx940, gfx941, gfx942 and gfx950."),
        *(({"warp_size": size}, f"That counts warps of {size} threads. On this GPU, a warp has {device.warp_size}.",
           "use device.warp_size.") for size in (32, 64)),
    ):  # fmt: skip
        if got == num_programs(*arguments[:3], _with(device, **fact)):
            return means, advice
    return (
        what_decides(decides, "this limit is missing or too loose, or a rounding goes up", got, expected),
        "print the three limits for one multiprocessor, by registers, by shared memory and by threads, and compare "
        "them with the facts of this device.",
    )


_RADEON = DeviceFacts("AMD Radeon RX 7900 XTX", "hip", "gfx1100", 48, 65536, 65536, 32, 1024)

# Architectures on which every reading of the lesson agrees whether the register file is doubled.
_ARCHITECTURES = (
    ("cuda", "sm_80", 32), ("cuda", "sm_89", 32), ("cuda", "sm_90", 32), ("hip", "gfx1100", 32),
    ("hip", "gfx90a", 64), ("hip", "gfx942", 64), ("hip", "gfx950", 64),
)  # fmt: skip


def _made_up(architecture: tuple[str, str, int], generator: torch.Generator) -> DeviceFacts:
    """A device that no table contains. Others have its name."""
    backend, arch, warp_size = architecture
    multiprocessors = integer(generator, 10, 320)
    registers = 1024 * choice(generator, (32, 64, 128))
    shared = 1024 * integer(generator, 32, 256)
    threads = warp_size * integer(generator, 512 // warp_size, 2048 // warp_size)
    return DeviceFacts(f"A GPU of {arch}", backend, arch, multiprocessors, registers, shared, warp_size, threads)


def _launch_in_words(regs: int, shared: int, warps: int, device: DeviceFacts) -> str:
    facts = f" with {device.multiprocessors} × ({device.registers} registers, {device.shared_memory} bytes, "
    facts += f"{device.max_threads} threads)"
    where = device.name + facts * (device not in _DEVICES)  # so that a learner can repeat the case
    return f"{where}: {regs} registers, {many(shared, 'byte', 'bytes')}, {many(warps, 'warp', 'warps')}"


_DEVICES = (*KNOWN_DEVICES.values(), _RADEON)
# With such kernels the registers of a device decide: that is what tables of devices differ in.
_BY_REGISTERS = {"num_regs": ("many",), "shared_bytes": ("none",), "num_warps": ("1", "2", "4")}
LAUNCH_INPUTS = Inputs(
    (
        Number(
            "num_regs",
            (Level("few", between(8, 32)), Level("some", between(33, 128)), Level("many", between(129, 255))),
        ),
        Number("shared_bytes", memory_of_a_program(40_000, 250_000)),
        Number("num_warps", each_of(1, 2, 4, 8, 16, 32)),
        Number(
            "device",
            (
                *(Level(each[1], partial(_made_up, each)) for each in _ARCHITECTURES),
                *(Level(each.name, fixed(each), once=True, only_with=_BY_REGISTERS) for each in _DEVICES),
            ),
        ),
    ),
    # in each of these another limit applies; in the fourth steps of 8 registers would make one program less
    first=rows_of(
        "num_regs shared_bytes num_warps device",
        (62, 32, 8, KNOWN_DEVICES["NVIDIA H200"]),
        (40, 41000, 4, KNOWN_DEVICES["NVIDIA A100"]),
        (20, 0, 4, KNOWN_DEVICES["NVIDIA H200"]),
        (73, 0, 4, KNOWN_DEVICES["AMD Instinct MI300X"]),
        (16, 0, 1, KNOWN_DEVICES["NVIDIA H200"]),  # 64 programs on each multiprocessor
        (40, 16_384, 4, KNOWN_DEVICES["AMD Instinct MI300X"]),  # shared memory is full to the last byte
    ),
    named=_launch_in_words,
)


def _with(device: DeviceFacts, **facts) -> SimpleNamespace:
    """A device with other facts: those that a misconception overlooks."""
    return SimpleNamespace(**asdict(device) | {"is_cdna": device.is_cdna} | facts)


def _limits(regs, shared, warps, device) -> list[float]:
    """How many programs fit on a multiprocessor by registers, by threads and by shared memory, parts of them too."""
    threads = warps * device.warp_size
    limits = [device.registers * (1 + device.is_cdna) / (regs * threads), device.max_threads / threads]
    return limits + ([device.shared_memory / shared] if shared else [])


def _unrounded(*launch):
    return launch[-1].multiprocessors * max(1, min(_limits(*launch)))


def _if_none_fits(result: int):
    return lambda *launch: result if min(_limits(*launch)) < 1 else num_programs(*launch)


LAUNCH_MISTAKES = wrong_values(
    (_if_none_fits(0),
     "If not even one program fits by this count, the result is 0: a launch of no programs computes nothing.",
     "Start at least one program for each multiprocessor: max(1, …)."),
    *(
        (compute, "The result counts parts of programs, but a multiprocessor runs only whole programs.",
         "Round down for each multiprocessor: divide with //.")
        for compute in (_unrounded, lambda *launch: int(_unrounded(*launch)))
    ),
    *(
        (compute, "Registers are counted in steps of 8 here. The formula of this lesson takes num_regs as it is.",
         "Divide by num_regs * num_warps * device.warp_size, without rounding num_regs.")
        for compute in (
            changed(num_programs, num_regs=lambda regs: -(-regs // 8) * 8),
            lambda regs, *rest: num_programs(-(-regs // 8) * 8 if rest[-1].is_cdna else regs, *rest),
        )
    ),
    (lambda *launch: min(num_programs(*launch), 32 * launch[-1].multiprocessors),
     "At most 32 programs are counted for each multiprocessor. That is a limit of Hopper which the driver does not "
     "report.", "Take three limits: registers, shared memory and threads."),
    (lambda *launch: num_programs(*launch) if launch[1] else launch[-1].multiprocessors,
     "0 bytes of shared memory were taken for a limit: then only one program for each multiprocessor is left.",
     "A program that needs no shared memory is not limited by it: leave this limit out if shared_bytes is 0."),
    (_if_none_fits(1),
     "If not even one program fits by this count, the result is 1: one program for all multiprocessors together.",
     "Start at least one program for each multiprocessor: device.multiprocessors * max(1, …)."),
    (lambda *launch: num_programs(*launch) // launch[-1].multiprocessors, "That is the number for one multiprocessor.",
     "Multiply by device.multiprocessors."),
    (changed(num_programs, device=lambda device: _with(device, warp_size=1)),
     "Warps are counted as threads.", "A program has num_warps * device.warp_size threads."),
)  # fmt: skip

EXERCISES = (
    Exercise(
        kind="value",
        signature="bytes_moved(m, n, element_size) -> dict(torch_read, torch_written, fused_read, fused_written)",
        inputs=BYTES_INPUTS,
        reference=bytes_moved,
        mistakes=BYTES_MISTAKES,
        explain=_counted,
    ),
    Exercise(
        lesson=find("occupancy_launch"),
        limit_seconds=5.0,  # a formula; the kernels of its notebook need the time
        kind="value",
        signature="num_programs(num_regs, shared_bytes, num_warps, device) -> int",
        inputs=LAUNCH_INPUTS,
        reference=num_programs,
        mistakes=LAUNCH_MISTAKES,
        explain=_by_limit,
    ),
)
