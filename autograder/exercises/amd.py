"""Exercises about AMD's GPUs (06): what the compiler generates for the fused softmax, and the occupancy that follows.

Only the course's own kernel is compiled here, in a child process. The learner's answer is numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace

import triton
import triton.language as tl

from workshop.compiling import Compiled, CompileFailed, xray
from workshop.occupancy import COMPUTE_UNITS, EXECUTION_UNITS, occupancy

from ..text import many
from ..verdict import Finding
from .arithmetic import what_decides
from .design import Inputs, Level, Number, between, each_of, fixed, memory_of_a_program, rows_of
from .spec import Case, Exercise, changed, integer, wrong_values

TARGET = "gfx942"  # MI300X
ROWS = 4096
READ = {"BLOCK_SIZE": 8192, "num_warps": 4, "num_stages": 2, "waves_per_eu": 8}
TUNED_COLUMNS = 4096
ASKED_WAVES = 8
MOST_PER_LANE = 64  # float32 elements of one row in a lane: a lane has as many registers at eight waves

# The values that a configuration may have. Larger blocks and more stages take minutes to compile and gain nothing.
CHOICES = {
    "BLOCK_SIZE": tuple(2**k for k in range(14)),
    "num_warps": (1, 2, 4, 8, 16),
    "waves_per_eu": tuple(range(9)),
    "num_stages": (1, 2, 3, 4),
}


@triton.jit
def fused_softmax_kernel(
    in_ptr,
    output_ptr,
    row_stride,
    output_row_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_cols
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, n_rows, step, num_stages=num_stages):
        in_row = in_ptr + tl.cast(row, tl.int64) * row_stride
        output_row = output_ptr + tl.cast(row, tl.int64) * output_row_stride
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(in_data - tl.max(in_data, axis=0))
        softmax = numerator / tl.sum(numerator, axis=0)
        tl.store(output_row + offsets, softmax, mask=mask)


def compiled(dtype: str, n_cols: int, configuration: dict[str, int]) -> Compiled:
    """The kernel for contiguous rows of n_cols, for the MI300X. Compiled once per process."""
    pointer = f"*{dtype}"
    report = xray(fused_softmax_kernel, pointer, pointer, n_cols, n_cols, ROWS, n_cols, targets=TARGET, **configuration)
    return report[TARGET]


def isa_numbers() -> dict[str, int]:
    """The numbers that the learner reads, as this version of Triton compiles the kernel."""
    found = compiled("fp32", READ["BLOCK_SIZE"], READ)
    return {
        "vgprs": found.vgprs,
        "lds_bytes": found.shared,
        "load_bits": max(found.loads),
        "spills": found.spills,
    }


@triton.jit
def copy_kernel(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


def widths_of_a_copy() -> dict[str, int]:
    """Bits of the widest load and store of a float16 copy. They show that the compiler works."""
    found = xray(copy_kernel, "*fp16", "*fp16", targets=TARGET, BLOCK_SIZE=4096, num_warps=4)[TARGET]
    return {"load": max(found.loads, default=0), "store": max(found.stores, default=0)}


def _misread(**changed: int):
    return lambda: isa_numbers() | changed


WHERE_TO_LOOK = {
    "vgprs": "read the table's row about registers, or .vgpr_count in the ISA",
    "lds_bytes": "read the table's row about shared memory, which AMD calls LDS",
    "load_bits": "find a buffer_load or global_load in the ISA: the x2 or x4 in its name counts words of 32 bits",
    "spills": "find .vgpr_spill_count in the ISA, or the table's row about spills",
}


READ_MISTAKES = wrong_values(
    (_misread(lds_bytes=0), "The ISA's .group_segment_fixed_size is always 0 here, because Triton requests LDS when it "
     "launches the kernel.", "Read the row of the table about shared memory."),
    (_misread(load_bits=4), "The 4 in dwordx4 counts double words. Each has 32 bits.", "Multiply by 32."),
    (_misread(load_bits=16), "This is a number of bytes.",
     "Multiply by 8: load_bits counts the bits that one lane gets from one load."),
    (_misread(load_bits=32), "That is one element. One instruction loads several elements for each lane.",
     "Look for the x at the end of the instruction's name."),
    (_misread(spills=0), "The kernel does spill: the compiler had to use fewer registers than the kernel needs.",
     "Look for .vgpr_spill_count in the ISA (.sgpr_spill_count is about scalar registers)."),
)  # fmt: skip


LDS_STEPS = {"gfx90a": 512, "gfx942": 512, "gfx950": 1280}  # bytes


def _in_whole_steps(vgprs: int, lds: int, warps: int, arch: str) -> bool:
    """Whether the steps in which LDS is handed out change nothing: the lesson leaves them out."""
    whole = -(-lds // LDS_STEPS[arch]) * LDS_STEPS[arch]
    return occupancy(vgprs, whole, warps, arch) == occupancy(vgprs, lds, warps, arch)


OCCUPANCY_INPUTS = Inputs(
    (
        Number(
            "vgprs",
            (
                Level("few", between(1, 24)),
                Level("a multiple of 8", lambda generator: 8 * integer(generator, 3, 32)),
                Level("one more", lambda generator: 8 * integer(generator, 3, 32) + 1),
                Level("some", between(25, 256)),
                Level("many", between(257, 512)),
                Level("all of a unit's registers, for whole waves", fixed(64, 128, 256, 512)),
            ),
        ),
        Number("lds_bytes", memory_of_a_program(30_000, 160_000)),
        Number("num_warps", each_of(1, 2, 4, 8, 16)),
        Number("arch", each_of(*COMPUTE_UNITS)),
    ),
    # in each of these another limit applies, or a rounding decides
    first=rows_of(
        "vgprs lds_bytes num_warps arch",
        (114, 16, 4, "gfx942"),
        (72, 32, 8, "gfx942"),
        (72, 32, 4, "gfx942"),  # 7 waves; in steps of 16 registers it would be 6
        (73, 32, 4, "gfx90a"),  # 6 waves; without steps it would be 7
        (97, 32, 4, "gfx950"),  # 4 waves; in steps of 4 registers it would be 5
        (20, 20_000, 4, "gfx942"),
        (20, 20_000, 4, "gfx950"),
        (24, 6_000, 1, "gfx942"),  # 10 waves on 4 execution units
        (20, 100_000, 4, "gfx942"),  # one workgroup does not fit
        # workgroups fill the LDS to the last byte, and then one byte is missing for the last of them
        *(
            (20, unit.lds // parts + more, 4, arch)
            for arch, unit in COMPUTE_UNITS.items()
            for parts in (1, 2, 4)
            for more in (0, 1)
        ),
    ),
    asked=_in_whole_steps,
    named=lambda vgprs, lds, warps, arch: (
        f"{arch}: {many(vgprs, 'VGPR', 'VGPRs')}, {many(lds, 'byte', 'bytes')}, {many(warps, 'warp', 'warps')}"
    ),
)


def _kernel(**new):
    return changed(occupancy, **new)


def _on(**facts):
    return _kernel(arch=lambda arch: replace(COMPUTE_UNITS[arch], **facts))


def _unrounded(*kernel):
    return occupancy(*kernel).workgroups * kernel[2] / EXECUTION_UNITS


def _limits(vgprs: int, lds: int, arch: str) -> tuple[int, float]:
    """Waves of an execution unit by registers, and workgroups of a compute unit by LDS."""
    return occupancy(vgprs, 0, 1, arch).waves_by_vgprs, COMPUTE_UNITS[arch].lds // lds if lds else math.inf


def _parts_of_workgroups(vgprs: int, lds: int, warps: int, arch: str) -> int:
    waves, workgroups = _limits(vgprs, lds, arch)
    return int(min(waves, workgroups * warps / EXECUTION_UNITS))


OCCUPANCY_MISTAKES = wrong_values(
    (_on(vgpr_granule=1), "Registers are allocated in steps of 8: a wave that uses 170 registers gets 176.",
     "Round vgprs up to the next multiple of 8 before you divide."),
    (_kernel(vgprs=lambda vgprs: max(8, vgprs // 8 * 8)),
     "The registers of a wave are rounded down. A wave gets at least as many as it uses.",
     "Round up: (vgprs + 7) // 8 * 8."),
    (_on(vgpr_granule=16),
     "The step is 8 registers on these three architectures. Some guides say 16, but that is too large: 72 stays "
     "72.", "Round vgprs up to the next multiple of 8."),
    *(
        (compute, "The result is not rounded down at the end: 10 waves on 4 execution units are 2 for each, and 2 are "
         "left.", "Divide workgroups * num_warps by 4 with //.")
        for compute in (_unrounded, lambda *kernel: math.ceil(_unrounded(*kernel)))
    ),
    (lambda *kernel: max(1, occupancy(*kernel)),
     "A workgroup that needs more LDS than there is cannot run at all: that is 0 waves, not 1.",
     "Return what the formula gives, without max(1, …)."),
    (_on(vgprs=256), "An execution unit has 512 registers per lane. 256 leaves out the accumulation registers.",
     "Divide 512, not 256: vgprs already counts both kinds."),
    *(
        (_on(max_waves=slots),
         "An execution unit of these three architectures holds at most 8 waves, even if they use few registers.",
         "Take the smaller of 8 and 512 // registers.")
        for slots in (512, 10, 16)
    ),
    (lambda vgprs, lds, warps, arch: int(min(_limits(vgprs, lds, arch))) * EXECUTION_UNITS // warps * warps
     // EXECUTION_UNITS,
     "The workgroups that the LDS of a compute unit holds were compared with the waves of one execution unit.",
     "Compare workgroups with workgroups: waves * 4 // num_warps by registers, and LDS // lds_bytes."),
    (lambda vgprs, lds, warps, arch: min(_limits(vgprs, lds, arch)) * warps // EXECUTION_UNITS,
     "The waves of one execution unit were taken for the workgroups of a compute unit.",
     "Times 4 execution units, divided by num_warps and rounded down: that many workgroups fit by registers."),
    *(
        (lambda *kernel, whole=whole: whole * occupancy(*kernel) / 8,
         "That is a share of the 8 waves that an execution unit can hold.", "Return the number of waves.")
        for whole in (1, 100)
    ),
    (_kernel(num_warps=1), "num_warps is not used: each workgroup is counted as one wave.",
     "A workgroup has num_warps waves, and starts only where all of them fit."),
    (_kernel(lds_bytes=lambda lds: 4 * lds),
     "The LDS was divided among the execution units, but a workgroup can use all of it.",
     "At most LDS // lds_bytes workgroups fit on a compute unit."),
    (_kernel(lds_bytes=0), "The LDS limit is missing.",
     "At most LDS // lds_bytes workgroups fit on a compute unit; with 0 bytes there is no limit."),
    (_kernel(arch="gfx942"), "Not every architecture has 64 KiB of LDS: gfx950 has 160.", "Choose the LDS by arch."),
    (lambda *kernel: occupancy(*kernel).workgroups, "That is the number of workgroups on a compute unit.",
     "Multiply by num_warps and divide by the 4 execution units."),
    (_parts_of_workgroups,
     "Parts of workgroups are counted by registers: where 3.5 of them have room, only 3 can run.",
     "Round to whole workgroups, waves * 4 // num_warps. At the end, workgroups * num_warps // 4 are waves."),
    (lambda *kernel: occupancy(*kernel).waves_by_vgprs,
     "That is the limit by registers for single waves. A GPU runs whole workgroups, and a workgroup also needs LDS.",
     "Count workgroups per compute unit for each limit, take the smallest count, then convert it to waves."),
)  # fmt: skip


def _by_limit(arguments: tuple, key: str | None, got: float, expected: float) -> tuple[str, str]:
    limiter = occupancy(*arguments).limiter
    return (
        what_decides(limiter, "this limit is missing or too loose, or a rounding goes up", got, expected),
        "print the steps of this case: registers rounded up to 8, waves per execution unit, workgroups per compute "
        "unit by registers, by wave slots and by LDS, and last the waves again.",
    )


def tuned(configuration) -> Finding | None:
    """Why this configuration is not good enough for the kernel on float16 rows; None if it is."""
    if finding := _no_configuration(configuration):
        return finding
    configuration = {key: int(value) for key, value in configuration.items()}
    block, warps = configuration["BLOCK_SIZE"], configuration["num_warps"]
    if block // (warps * 64) > MOST_PER_LANE:
        return Finding("low-occupancy",
                       f"{block} elements over {warps} × 64 lanes are {block // (warps * 64)} float32 for each lane, "
                       f"which leaves no room for {ASKED_WAVES} waves of 64 registers each.",
                       advice="divide the row among more warps, or choose a smaller block.")
    try:
        found = compiled("fp16", TUNED_COLUMNS, configuration)
    except (CompileFailed, RuntimeError) as error:
        return Finding("compile-error", f"{_shown(configuration)}: {error}")
    return _not_good(found, configuration)


def _no_configuration(got) -> Finding | None:
    keys = ", ".join(CHOICES)
    if not isinstance(got, dict) or set(got) != set(CHOICES):
        number_or_list = isinstance(got, (int, float, list)) and not isinstance(got, bool)
        slug = "wrong-value" if isinstance(got, dict) else "wrong-shape" if number_or_list else "wrong-dtype"
        return Finding(slug, f"The answer is {got!r:.80}.", advice=f"return a dict with the keys {keys}.")
    for key, allowed in CHOICES.items():
        if type(got[key]) not in (int, float):
            return Finding("wrong-dtype", f"{key} is {got[key]!r:.40}.", advice="return numbers.")
        if got[key] not in allowed:
            values = f"one of {', '.join(map(str, allowed))}"
            if key == "BLOCK_SIZE":
                values = f"a power of two up to {allowed[-1]}"
            return Finding("wrong-value", f"{key} is {got[key]!r:.40}.", advice=f"choose {values}.")
    if got["BLOCK_SIZE"] < TUNED_COLUMNS:
        return Finding(
            "wrong-value",
            f"BLOCK_SIZE is {got['BLOCK_SIZE']}, and a row has {TUNED_COLUMNS} columns: the rest is never read.",
            "This kernel holds the whole row in one block.",
            "choose a block that is at least as long as the row.",
        )
    return None


def _not_good(found: Compiled, configuration: dict) -> Finding | None:
    waves, shown = found.occupancy, _shown(configuration)
    narrow = [
        f"{count} {kind}{'s' * (count != 1)} of {bits} bits"
        for kind, counts in (("load", found.loads), ("store", found.stores))
        for bits, count in sorted(counts.items())
        if bits < 128
    ]
    if narrow:
        lane = configuration["BLOCK_SIZE"] // (configuration["num_warps"] * 64)
        return Finding("narrow-access", f"{shown}: {' and '.join(narrow)}.",
                       f"Each lane has {lane} neighbouring elements of 16 bits. An access of 128 bits needs eight.",
                       "give each lane more elements: fewer warps for the same block.")
    less = "make each lane hold less: use more warps or fewer stages."
    if found.spills:
        return Finding("spills", f"{shown}: {found.spills} registers are spilled to memory.",
                       "waves_per_eu makes the compiler use fewer registers for a wave. Values that do not fit go to "
                       "memory.", less)
    if waves < ASKED_WAVES:
        return Finding("low-occupancy",
                       f"{shown}: {int(waves)} waves per execution unit, limited by {waves.limiter}; "
                       f"expected {ASKED_WAVES}. A wave uses {found.vgprs} registers.",
                       f"With {ASKED_WAVES} waves, each wave can have 64 registers.", less)
    return None


def _shown(configuration: dict) -> str:
    return ", ".join(f"{key} {configuration[key]}" for key in CHOICES)


EXERCISES = (
    Exercise(
        kind="value",
        signature="read_the_isa() -> dict(vgprs, lds_bytes, load_bits, spills)",
        cases=(Case(f"compiled for {TARGET} by Triton {triton.__version__}", lambda generator: ()),),
        compiles=True,
        reference=isa_numbers,
        mistakes=READ_MISTAKES,
        explain=lambda arguments, key, got, expected: (
            "", f"{WHERE_TO_LOOK[key]}. Look at the kernel that the lesson compiles, with its configuration unchanged."
        ),
        untold=True,
    ),
    Exercise(
        kind="value",
        signature="occupancy(vgprs, lds_bytes, num_warps, arch) -> waves per execution unit",
        inputs=OCCUPANCY_INPUTS,
        reference=lambda *kernel: int(occupancy(*kernel)),
        mistakes=OCCUPANCY_MISTAKES,
        explain=_by_limit,
    ),
    Exercise(
        kind="value",
        signature="tune_for_mi300x() -> dict(BLOCK_SIZE, num_warps, waves_per_eu, num_stages)",
        cases=(Case(f"float16 rows of {TUNED_COLUMNS}, {TARGET}, Triton {triton.__version__}", lambda _: ()),),
        reference=lambda: {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1},
        compiles=True,
        accept=tuned,
    ),
)  # fmt: skip
