"""Rules about what an answer did, whatever its numbers are."""

from __future__ import annotations

import math

import torch

from ..box.wire import Race
from ..exercises.spec import Strided, Tag
from ..verdict import Finding
from .comparison import close
from .observation import Observation, shape_in_words


def not_attempted(o: Observation) -> Finding | None:
    if not o.evidence.empty_kernels:
        return None
    return Finding(
        "not-attempted",
        f"The kernel does nothing: {', '.join(o.evidence.empty_kernels)} has no statement.",
        advice="write its body.",
    )


def no_kernel(o: Observation) -> Finding | None:
    if o.result is None or o.evidence.launched or not math.prod(o.result.shape or (0,)):
        return None
    return Finding(
        "no-triton-kernel",
        f"No Triton kernel had a part in the output ({o.case.name}).",
        "The numbers of the output must come out of a Triton kernel.",
        "launch your kernel, kernel[grid](…), and return the tensor that it stores to.",
    )


def wrong_device(o: Observation) -> Finding | None:
    wanted = "cpu" if o.backend == "interpreter" else "cuda"
    if o.result is None or o.result.device == wanted:
        return None
    return Finding(
        "wrong-device",
        f"The output is on {o.result.device}, the input on {wanted}.",
        advice="allocate the output where the input is: torch.empty_like(x), or device=x.device.",
    )


def wrong_shape(o: Observation) -> Finding | None:
    expected = tuple(o.comparison.expected.shape) if o.comparison else None
    if o.result is None or expected is None or o.result.shape == expected:
        return None
    return Finding(
        "wrong-shape",
        f"The output has shape {shape_in_words(o.result.shape)}, expected {shape_in_words(expected)} ({o.case.name}).",
        advice="allocate the output with the input's shape."
        if _has_tensors(o)
        else f"allocate it with the shape {shape_in_words(expected)}.",
    )


def wrong_dtype(o: Observation) -> Finding | None:
    wanted = o.comparison and str(o.comparison.got.dtype).removeprefix("torch.")
    if o.result is None or not wanted or o.result.dtype == wanted:
        return None
    return Finding(
        "wrong-dtype",
        f"The output is {o.result.dtype}, expected {wanted} ({o.case.name}).",
        "tl.store converts to the dtype of the tensor that it stores to.",
        f"allocate the output with dtype={'x.dtype' if _has_tensors(o) else f'torch.{wanted}'}.",
    )


def _has_tensors(o: Observation) -> bool:
    return any(isinstance(argument, Strided) for argument in o.arguments)


def not_contiguous(o: Observation) -> Finding | None:
    if o.result is None or o.result.contiguous or o.comparison is None or not o.exercise.contiguous:
        return None
    return Finding(
        "not-contiguous",
        f"The output is not contiguous ({o.case.name}).",
        "It is a view of something else; the contract asks for a new contiguous tensor.",
        "allocate exactly the output, torch.empty(x.shape, dtype=x.dtype, device=x.device), and store there.",
    )


def aliased(o: Observation) -> Finding | None:
    if o.result is None or not o.result.aliases_input:
        return None
    return Finding(
        "input-modified",
        f"The returned tensor shares memory with the input ({o.case.name}).",
        "The contract asks for a new tensor; the caller still needs the old one.",
        "allocate the output with torch.empty_like(x) and store there.",
    )


def damaged(o: Observation) -> Finding | None:
    if "out-of-bounds-store" in o.evidence.damage:
        return Finding(
            "out-of-bounds-store",
            f"Memory around a tensor was overwritten ({o.case.name}).",
            "A store without a mask, or a mask that is true too often, writes behind the end or into the gaps "
            "between rows.",
            "give the store a mask that is true only for elements of the tensor.",
        )
    if "input-modified" in o.evidence.damage:
        return Finding(
            "input-modified",
            f"The input changed ({o.case.name}).",
            "A kernel stored through the input's pointer, or the host function worked in place.",
            "store to the output's pointer only.",
        )
    return None


def wrong_program(o: Observation) -> Finding | None:
    """Every program worked on the same part, the rest was left alone: unwritten, or as it was filled."""
    c = o.comparison
    if c is None or c.right or not o.evidence.races:
        return None
    race = o.evidence.races[0]
    left = c.bad & c.unwritten
    if race.same_value and int(c.bad.sum()) > 1 and len(c.value[c.bad].unique()) == 1:
        left = c.bad
    if not left.any():
        return None
    return Finding(
        "wrong-program-id",
        f"Several programs wrote the same elements of {race.argument}, and {int(left.sum())} of "
        f"{c.bad.numel()} elements were never written ({o.case.name}).",
        "Programs that should share the work do the same part of it.",
        "let the offsets depend on tl.program_id(0): pid * BLOCK_SIZE, or pid * row_stride.",
        race.line or None,
        race.code,
    )


def raced(o: Observation) -> Finding | None:
    """Two programs wrote the same element with other values, or read what another one writes; or most of the
    work is done several times over. Two blocks that overlap where the last one was moved back are neither."""
    race = next((r for r in o.evidence.races if _is_serious(r, o)), None)
    if race is None:
        return None
    if race.kind != "write-write":
        return Finding(
            "race",
            f"{_programs(race)} share elements of {race.argument}: one reads what the other writes ({o.case.name}).",
            "Programs of one launch run in any order and at once: the reader may come before the writer.",
            "let a program read only what it wrote itself; or launch a second kernel, which begins when the first "
            "has ended; or use tl.atomic_add.",
            race.line or None,
            race.code,
        )
    return Finding(
        "race",
        f"{_programs(race)} both write to {race.argument}, {race.elements} element{'s' * (race.elements != 1)} in all "
        f"({o.case.name}).",
        "Programs run in any order and at once: the last program to write wins, and that differs from run to run."
        if not race.same_value
        else "They write the same values there: the work is done several times over.",
        "give each element to one program: let the offsets depend on tl.program_id; a loop over rows starts there, "
        "and steps by tl.num_programs.",
        race.line or None,
        race.code,
    )


def _is_serious(race: Race, o: Observation) -> bool:
    if race.atomics:
        return o.comparison is not None and not o.comparison.right
    if race.kind != "write-write" or not race.same_value or race.writers > 2:
        return True
    return race.share >= 0.5 and Tag.RAGGED not in o.case.about


def _programs(race: Race) -> str:
    first, second = race.programs
    return f"Programs {first} and {second}" if first >= 0 else f"Program {second} and several others"


def misplaced(o: Observation) -> Finding | None:
    """Each wrong row is the right one of another row."""
    c = o.comparison
    if c is None or c.right or c.expected.ndim != 2 or not c.varies:
        return None
    wrong = (c.bad_rows & ~c.unwritten.any(1)).nonzero().flatten().tolist()[:16]
    finite = torch.isfinite(c.expected)
    same = [(close(c.value[i].expand_as(finite), c.expected, c.bound.relative, 0.0) & finite).all(1) for i in wrong]
    if not wrong or not all(bool(rows.any()) for rows in same):
        return None
    row, origin = wrong[0], int(same[0].nonzero()[0])
    return Finding(
        "wrong-program-id",
        f"Row {row} of the output holds what belongs into row {origin} ({o.case.name}).",
        "A row was read at one place and written to another.",
        "use the same row for both, in_ptr + row * in_stride and output_ptr + row * output_stride: "
        "tl.program_id(0), or the variable of the loop over rows.",
    )


def masked_lanes(o: Observation) -> Finding | None:
    if not o.right_without_poison:
        return None
    return Finding(
        "relies-on-masked-lanes",
        f"The result depends on what a masked-off lane holds ({o.case.name}).",
        "Without other=…, a masked-off lane of tl.load holds anything. It happened to be 0 here; on a GPU it may "
        "not be.",
        "say what such lanes read as: other=0.0 for a sum, other=-float('inf') for a maximum.",
    )
