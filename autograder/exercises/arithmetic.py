"""Exercises whose answer is a number: bytes moved (02) and the size of a persistent launch (04).

Here `reference` returns a plain value. A Mistake computes the plain value that results from a misconception.
"""

from __future__ import annotations

from dataclasses import asdict

from workshop.device import KNOWN_DEVICES, DeviceFacts
from workshop.occupancy import num_programs
from workshop.syllabus import find

from .spec import Case, Exercise, Mistake


def bytes_moved(m: int, n: int, element_size: int) -> dict[str, int]:
    """Five torch operations on an m × n matrix: max, subtract, exp, sum, divide; and one fused kernel."""
    return {
        "torch_read": (5 * m * n + 2 * m) * element_size,
        "torch_written": (3 * m * n + 2 * m) * element_size,
        "fused_read": m * n * element_size,
        "fused_written": m * n * element_size,
    }


def _scaled(factor):
    return lambda m, n, size: {k: v * factor(m, n, size) for k, v in bytes_moved(m, n, 1).items()}


def _per_operation(read: int, row_read: int, written: int, row_written: int):
    def compute(m, n, size):
        return bytes_moved(m, n, size) | {
            "torch_read": (read * m * n + row_read * m) * size,
            "torch_written": (written * m * n + row_written * m) * size,
        }

    return compute


BYTES_MISTAKES = (
    Mistake(
        "wrong-value",
        _scaled(lambda m, n, size: 1),
        "These are numbers of elements, not of bytes.",
        "Multiply each by element_size.",
    ),
    Mistake(
        "wrong-value",
        _scaled(lambda m, n, size: 8 * size),
        "These are bits.",
        "element_size is in bytes already.",
    ),
    Mistake(
        "wrong-value",
        _per_operation(5, 0, 3, 0),
        "The M row maxima and the M row sums are missing. Each of them is written once and read once.",
        "Add 2M elements to what is read and 2M to what is written.",
    ),
    Mistake(
        "wrong-value",
        _per_operation(5, 0, 3, 2),
        "The row maxima and the row sums are not only written. They are also read again.",
        "subtract reads the M maxima, and divide reads the M sums: add 2M elements to what is read.",
    ),
    Mistake(
        "wrong-value",
        _per_operation(7, 0, 3, 2),
        "row_max and row_sum have M elements, not MN. Broadcasting reads each element once.",
        "Count 2M for them, not 2MN.",
    ),
    Mistake(
        "wrong-value",
        lambda m, n, size: bytes_moved(m, n, size)
        | {"torch_read": (5 * m + 2) * n * size, "torch_written": (3 * m + 2) * n * size},
        "max and sum give one number for each of the M rows, but you counted N.",
        "Count 2M for row_max and row_sum.",
    ),
    Mistake(
        "wrong-value",
        _per_operation(5, 2, 5, 0),
        "max and sum write one number per row, not a whole matrix.",
        "Count the output of each operation by its shape.",
    ),
    Mistake(
        "wrong-value",
        _per_operation(3, 0, 1, 0),
        "That is what the three-pass kernel moves. torch also writes the result of each operation to memory.",
        "Go through max, subtract, exp, sum, divide: each operation reads its inputs and writes its output.",
    ),
)


_RADEON = DeviceFacts("AMD Radeon RX 7900 XTX", "hip", "gfx1100", 48, 65536, 65536, 32, 1024)

# (device, registers of a thread, shared bytes of a program, warps): in each row a different limit applies, and each
# program fits. No GPU launches a program that does not fit, so an answer of 0 for it would be acceptable too.
_LAUNCHES = (
    ("NVIDIA H200", 62, 32, 8),
    ("NVIDIA H200", 20, 0, 4),
    ("NVIDIA A100", 40, 41000, 4),
    ("NVIDIA H100", 255, 16, 4),
    ("AMD Instinct MI210", 114, 16, 4),
    ("AMD Instinct MI250X", 128, 0, 2),
    ("AMD Instinct MI300X", 62, 32, 8),
    ("AMD Instinct MI300X", 114, 16, 4),
    ("AMD Instinct MI300X", 24, 20000, 4),
    ("AMD Instinct MI355X", 168, 32784, 4),
    ("AMD Instinct MI355X", 40, 64, 16),
    (_RADEON.name, 96, 0, 4),
)


def _launch_case(name: str, regs: int, shared: int, warps: int) -> Case:
    device = KNOWN_DEVICES.get(name, _RADEON)
    return Case(
        f"{name}: {regs} registers, {shared} bytes, {warps} warps", lambda _: (regs, shared, warps, device)
    )


LAUNCH_CASES = tuple(_launch_case(*launch) for launch in _LAUNCHES)


def _launch(**changed):
    """The launch on a device with changed facts: those that a misconception overlooks."""
    return lambda regs, shared, warps, device: num_programs(regs, shared, warps, _With(device, **changed))


class _With:
    """A device with some of its facts replaced. A new fact may be a function of the device."""

    def __init__(self, device, **changed):
        facts = asdict(device) | {"is_cdna": device.is_cdna}
        self.__dict__.update(facts | {k: v(device) if callable(v) else v for k, v in changed.items()})


def _unrounded(regs, shared, warps, device):
    threads = warps * device.warp_size
    limits = [device.registers * (1 + device.is_cdna) / (regs * threads), device.max_threads / threads]
    if shared:
        limits.append(device.shared_memory / shared)
    return device.multiprocessors * max(1, min(limits))


LAUNCH_MISTAKES = (
    *(
        Mistake(
            "wrong-value",
            compute,
            "The result counts parts of programs, but a multiprocessor runs only whole programs.",
            "Round down for each multiprocessor: divide with //.",
        )
        for compute in (_unrounded, lambda *launch: int(_unrounded(*launch)))
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: device.multiprocessors,
        "That is one program for each multiprocessor. Most have room for more.",
        "Calculate how many fit by registers, by shared memory and by threads, and take the smallest number.",
    ),
    Mistake(
        "wrong-value",
        _launch(is_cdna=False),
        "On CDNA a multiprocessor has twice the registers that the driver reports: the accumulation registers count "
        "too.",
        "Double device.registers for gfx908, gfx90a, gfx942 and gfx950.",
    ),
    Mistake(
        "wrong-value",
        _launch(is_cdna=lambda d: d.backend == "hip"),
        "Only CDNA (gfx9…) has the doubled register file; RDNA (gfx10…, gfx11…) does not.",
        "Decide by device.arch, not by device.backend.",
    ),
    Mistake(
        "wrong-value",
        _launch(max_threads=1 << 30),
        "A multiprocessor holds a limited number of threads, even if they use few registers.",
        "Take device.max_threads // (num_warps * warp_size) as a third limit.",
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: num_programs(regs, 0, warps, device),
        "The limit by shared memory is missing.",
        "At most device.shared_memory // shared_bytes programs fit on a multiprocessor; with 0 bytes there is no "
        "limit.",
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: num_programs(0, shared, warps, device),
        "The limit by registers is missing.",
        "A program needs num_regs * num_warps * warp_size registers.",
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: num_programs(regs, shared, warps, device) // device.multiprocessors,
        "That is the number for one multiprocessor.",
        "Multiply by device.multiprocessors.",
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: num_programs(regs, shared, warps, _With(device, warp_size=32)),
        "A warp does not always have 32 threads: a wavefront of CDNA has 64.",
        "Use device.warp_size.",
    ),
    Mistake(
        "wrong-value",
        lambda regs, shared, warps, device: num_programs(regs, shared, 1, device),
        "The number of warps of a program is ignored.",
        "A program has num_warps * device.warp_size threads.",
    ),
)

EXERCISES = (
    Exercise(
        lesson=find("bytes_moved"),
        kind="value",
        entry="bytes_moved",
        signature="bytes_moved(m, n, element_size) -> dict(torch_read, torch_written, fused_read, fused_written)",
        cases=tuple(
            Case(f"{m} × {n}, {size} bytes each", lambda _, a=(m, n, size): a)
            for m, n, size in ((1823, 781, 4), (1, 1, 4), (4096, 8192, 2), (7, 1000, 8))
        ),
        reference=bytes_moved,
        mistakes=BYTES_MISTAKES,
    ),
    Exercise(
        lesson=find("occupancy_launch"),
        kind="value",
        entry="num_programs",
        signature="num_programs(num_regs, shared_bytes, num_warps, device) -> int",
        cases=LAUNCH_CASES,
        reference=num_programs,
        mistakes=LAUNCH_MISTAKES,
    ),
)
