"""Rules about what an answer did. They do not depend on its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from workshop.advice import program_in_words

from ..box.wire.answers import Race
from ..exercises.cases import Strided, Tag
from ..exercises.spec import MAX_COUNTED_COLUMNS, Exercise
from ..text import many
from ..verdict import Finding
from .comparison import close
from .observation import Observation, shape_in_words


def not_attempted(o: Observation) -> Finding | None:
    if not o.evidence.empty_kernels:
        return None
    return Finding(
        "not-attempted",
        f"The kernel does nothing: {', '.join(o.evidence.empty_kernels)} has no statement, or all of them stand below "
        "a `return`.",
        advice="write the body of the kernel, without a `return`.",
    )


def no_kernel(o: Observation) -> Finding | None:
    """Nothing was launched for an output with elements, from inputs with elements."""
    if o.result is None or o.evidence.launched or not math.prod(o.result.shape):
        return None
    given = [a.values.numel() for a in o.arguments if isinstance(a, Strided)]
    if given and not min(given):  # the sum of nothing is 0
        return None
    if o.comparison and not o.comparison.value.any():
        return Finding(
            "not-attempted",
            "The output is zero everywhere, and no Triton kernel wrote it.",
            advice="write the kernel, launch it with kernel[grid](…), and return the tensor that it stores to.",
        )
    return Finding(
        "no-triton-kernel",
        "No Triton kernel contributed to the output.",
        "A Triton kernel must compute the numbers of the output.",
        "launch your kernel with kernel[grid](…), and return the tensor that the kernel stores to.",
    )


def kept_from_earlier(o: Observation) -> Finding | None:
    """A later call used memory of an earlier one."""
    if o.trouble is None or o.trouble.kind != "kept":
        return None
    what = "the result" if o.trouble.message == "the result" else "a tensor"
    return Finding(
        "wrong-value",
        f"{o.exercise.entry} used {what} of an earlier call again.",
        "The caller still needs the earlier result. And what is kept holds the numbers of the earlier call.",
        "make the output and every buffer in each call, with torch.empty_like or torch.empty. Only plain numbers, such "
        "as a grid, may be kept.",
    )


def wrong_shape(o: Observation) -> Finding | None:
    expected = tuple(o.comparison.expected.shape) if o.comparison else None
    if o.result is None or expected is None or o.result.shape == expected:
        return None
    if len(expected) > 1 and o.result.shape == expected[::-1]:
        return Finding(
            "wrong-shape",
            f"The output has shape {shape_in_words(o.result.shape)}, expected {shape_in_words(expected)}.",
            "Rows and columns of the output are exchanged.",
            f"allocate it with the shape {shape_in_words(expected)}, and return this very tensor, without .T.",
        )
    return Finding(
        "wrong-shape",
        f"The output has shape {shape_in_words(o.result.shape)}, expected {shape_in_words(expected)}.",
        advice="allocate the output with the input's shape."
        if expected in [tuple(each.values.shape) for each in o.arguments if isinstance(each, Strided)]
        else f"allocate it with the shape {shape_in_words(expected)}.",
    )


def wrong_dtype(o: Observation) -> Finding | None:
    wanted = o.comparison and str(o.comparison.got.dtype).removeprefix("torch.")
    if o.result is None or not wanted or o.result.dtype == wanted:
        return None
    return Finding(
        "wrong-dtype",
        f"The output is {o.result.dtype}, expected {wanted}.",
        "tl.store converts to the dtype of the tensor that it stores to.",
        f"allocate the output with dtype={f'torch.{wanted}' if o.exercise.output_dtype else 'x.dtype'}.",
    )


def not_contiguous(o: Observation) -> Finding | None:
    if o.result is None or o.result.contiguous or o.comparison is None or not o.exercise.contiguous:
        return None
    return Finding(
        "not-contiguous",
        "The output is not contiguous.",
        "The exercise asks for a new contiguous tensor. A view such as x.T is not contiguous, and empty_like keeps the "
        "order of its strides.",
        "allocate the output with torch.empty(x.shape, dtype=x.dtype, device=x.device), and store to it.",
    )


def aliased(o: Observation) -> Finding | None:
    if o.result is None or not o.result.aliases_input:
        return None
    return Finding(
        "input-modified",
        "The returned tensor shares memory with the input.",
        "The exercise asks for a new tensor, because the caller still needs the input.",
        "allocate the output with torch.empty_like(x), and store to it.",
    )


def damaged(o: Observation) -> Finding | None:
    if "out-of-bounds-store" in o.evidence.damage:
        return Finding(
            "out-of-bounds-store",
            "Memory around a tensor was overwritten.",
            "The store has no mask, or its mask is true for too many lanes. It writes past the end of the tensor or "
            "into the gaps between rows.",
            "give the store a mask that is true only for elements of the tensor.",
        )
    if "input-modified" in o.evidence.damage:
        return Finding(
            "input-modified",
            "The input was changed.",
            "A kernel stored through the input's pointer, or the host function changed the input in place.",
            "store only through the output's pointer.",
        )
    return None


def accumulated(o: Observation) -> Finding | None:
    """A kernel that adds to its output, under an autotuner that runs it many times."""
    if o.wrong is None or not o.evidence.accumulates:
        return None
    return Finding(
        "wrong-value",
        f"{o.worst_in_words} The kernel reads what it wrote in an earlier run.",
        "To measure a configuration, autotune runs the kernel many times on the same tensors. A kernel that adds to "
        "its output adds each time.",
        "store the result without reading the output. Or tell autotune to put back what was there before each run: "
        'restore_value=["output_ptr"], with the name that your kernel has for it.',
    )


def wrong_program(o: Observation) -> Finding | None:
    """All programs worked on the same part. The rest was not written, or still holds its fill value."""
    c = o.wrong
    race = next((race for race in o.evidence.races if not race.within), None)
    if c is None or race is None:
        return None
    left = c.bad & c.unwritten
    if race.same_value and int(c.bad.sum()) > 1 and len(c.value[c.bad].unique()) == 1:
        left = c.bad
    # Blocks that overlap are no repetition: there, elements at the ends have one writer.
    if not left.any() or race.elements < int((~left).sum()):
        return None
    return Finding(
        "wrong-program-id",
        f"Several programs wrote the same elements of {race.argument}, and {int(left.sum())} of "
        f"{c.bad.numel()} elements were never written.",
        "Programs should divide the work, but here they all do the same part.",
        o.place_of_a_program,
        race.line or None,
        race.code,
        tensor=race.argument,
    )


def raced(o: Observation) -> Finding | None:
    """Two programs or two lanes wrote different values to one element, or one read what the other writes, or most of
    the work is done several times. A last block that was moved back and overlaps the block before it is no race."""
    race = next((r for r in o.evidence.races if _is_serious(r, o)), None)
    if race is None:
        return None
    if race.within:
        return _raced_within(race, o)
    if race.kind != "write-write":
        return Finding(
            "race",
            f"{_programs(race)} use the same elements of {race.argument}: "
            "one reads what the other writes.",
            "The programs of one launch run in any order and at the same time. The read can happen before the write.",
            "make each program read only what it wrote itself. Or launch a second kernel: it begins after the first "
            "one ends. An atomic with sem=\"relaxed\" orders nothing.",
            race.line or None,
            race.code,
            tensor=race.argument,
        )
    return Finding(
        "race",
        f"{_programs(race)} both write to {race.argument}, {race.elements} element{'s' * (race.elements != 1)} in all.",
        "Programs run in any order and at the same time. The last program to write wins, and which one that is "
        "differs from run to run."
        if not race.same_value
        else "They write the same values, so the same work is done several times.",
        f"give each element to one program, and compute the offsets from tl.program_id: {o.place_of_a_program}"
        if o.comparison
        else "give each element to one program: compute the offsets from tl.program_id.",
        race.line or None,
        race.code,
        tensor=race.argument,
    )


def _raced_within(race: Race, o: Observation) -> Finding:
    if race.kind == "write-write":
        return Finding(
            "race",
            f"Two lanes of program {race.programs[0]} store different values to one element of {race.argument}.",
            "The lanes of a program run on many threads. Which of them stores last differs from run to run.",
            "give each element to one lane. To join values of several lanes, use tl.sum or tl.max before the store.",
            race.line or None,
            race.code,
            tensor=race.argument,
        )
    return Finding(
        "race",
        f"In program {race.programs[0]}, a lane reads an element of {race.argument} that another lane of the same "
        f"program wrote.",
        "The lanes of a program run on many threads, and a number is stored by one thread and loaded by all. The load "
        "can happen before the store.",
        "keep the values in a variable. Or put tl.debug_barrier() between the store and the load.",
        race.line or None,
        race.code,
        tensor=race.argument,
    )


def _is_serious(race: Race, o: Observation) -> bool:
    if race.within and race.kind == "write-read" and Tag.SHORT in o.case.about:
        return False  # a block of one element looks like a number there
    if race.kind != "write-write" or not race.same_value or race.writers > 2:
        return True
    return race.share >= 0.9 and Tag.RAGGED not in o.case.about  # a last tile of rows may be moved back, too


def _programs(race: Race) -> str:
    first, second = race.programs
    return f"Programs {first} and {second}" if first >= 0 else f"Program {second} and several others"


def misplaced(o: Observation) -> Finding | None:
    """Each wrong row holds the right result of another row."""
    c = o.wrong
    if c is None or c.expected.ndim != 2 or not c.varies:
        return None
    wrong = (c.bad_rows & ~c.unwritten.any(1)).nonzero().flatten().tolist()[:16]
    finite = torch.isfinite(c.expected)

    def alike(i: int) -> torch.Tensor:
        """The rows whose right result is in row i."""
        return (close(c.value[i].expand_as(finite), c.expected, c.bound.relative, 0.0) & finite).all(1)

    if not wrong or not all(bool(alike(i).any()) for i in wrong):
        return None
    row, origin = wrong[0], int(alike(wrong[0]).nonzero()[0])
    return Finding(
        "wrong-program-id",
        f"Row {row} of the output holds the result of row {origin}.",
        "The kernel read one row and wrote its result to another row.",
        "use the same row number in in_ptr + row * in_stride and in output_ptr + row * output_stride: "
        "tl.program_id(0), or the variable of the loop over rows.",
    )


def read_what_nothing_wrote(o: Observation) -> Finding | None:
    found = next((each for each in o.evidence.undefined if each.kind == "read"), None)
    if found is None:
        return None
    return Finding(
        "uninitialised-read",
        f"Program {program_in_words(found.program)} of {found.kernel} reads elements of {found.argument} that nothing "
        f"has written.",
        "torch.empty gives memory as it was left behind: each element can hold any number, a different one next time.",
        "allocate with torch.zeros if the kernel needs zeros there, or store before you load.",
        found.line or None,
        found.code,
        tensor=found.argument,
    )


def masked_lanes(o: Observation) -> Finding | None:
    """A value of lanes that a mask switched off was stored, or decided which way a program went."""
    kinds = {"condition", "store"} if o.wrong else {"condition"}
    found = next((each for each in o.evidence.undefined if each.kind in kinds), None)
    if found is None:
        return None
    return Finding(
        "relies-on-masked-lanes",
        "The result depends on what a masked-off lane holds.",
        "Without other=…, the value of a masked-off lane of tl.load is undefined: on a GPU it can be any value.",
        "give tl.load a value for these lanes: other=0.0 for a sum, other=-float('inf') for a maximum. Where such a "
        "lane has an element, repair the mask.",
        found.line or None,
        found.code,
        tensor=found.argument,
    )


def wrong_number_of_programs(o: Observation) -> Finding | None:
    """The numbers are right, but the exercise asks for more programs, or for one."""
    if o.comparison is None or not o.comparison.right:
        return None
    return other_programs(o.exercise, o.values, o.programs)


def other_programs(exercise: Exercise, values: tuple, programs: Sequence[int], **device) -> Finding | None:
    """programs: of each launch. device: its `multiprocessors`, if it is not the stand-in."""
    if exercise.in_one_program and max((1, *programs)) > 1:
        return Finding(
            "wrong-program-id",
            f"The numbers are right, but a launch has {max(programs)} programs. The exercise asks for one program.",
            "One program is to go through all of it, in a loop.",
            "launch the kernel with the grid (1,).",
        )
    started = (max if exercise.in_one_launch else sum)((0, *programs))
    if exercise.programs_at_least is None or started >= (least := exercise.programs_at_least(*values, **device)):
        return None
    return Finding(
        "wrong-program-id",
        f"The numbers are right, but the answer launched {many(started, 'program', 'programs')}. The exercise asks "
        f"for at least {least}.",
        "A block or a loop does the work that several programs should share.",
        f"launch at least {least} programs, and let each do its own part: tl.program_id(axis=0) says which one it is.",
    )


def changing_bits(o: Observation) -> Finding | None:
    """The numbers are right, but the order of their additions is open."""
    if not o.exercise.same_bits or not o.evidence.adds_atomically or o.comparison is None or not o.comparison.right:
        return None
    return Finding(
        "race",
        "The numbers are right, but programs add to them with tl.atomic_add.",
        "The order of the additions differs from call to call, and each addition rounds: the last bits differ, too.",
        "let each program store its part to a place of its own, and add the parts in a second kernel.",
    )


def reads_too_often(o: Observation) -> Finding | None:
    """The numbers are right, but the kernels read an input again and again."""
    limit, c = o.exercise.reads_per_element if o.case.gradient is None else None, o.comparison
    if limit is None or c is None or not c.right or Tag.SHORT in o.case.about:  # there one load more is a whole pass
        return None
    tensors = [(n, a) for n, a in zip(o.exercise.parameters, o.arguments, strict=False) if isinstance(a, Strided)]
    limit *= max(sum(a is other for _, other in tensors) for _, a in tensors)  # one tensor may be given twice
    largest = max((argument.values.numel() for _, argument in tensors), default=0)
    counted = [
        (reads, name)
        for reads, (name, argument) in zip(o.evidence.reads, tensors, strict=False)
        if 2 * argument.values.numel() >= largest > 0 and (argument.values.shape or (1,))[-1] <= MAX_COUNTED_COLUMNS
    ]
    reads, name = max(counted, default=(0.0, ""))
    if reads <= limit + 0.5:  # a row that two tiles share is read a little more often
        return None
    return Finding(
        "reads-too-often",
        f"Each element of {name} is read {_times(reads)}; the lesson's kernel reads it {_times(limit)}.",
        "The result is right. But memory limits the speed of this kernel, so each further pass over the rows costs "
        "time.",
        "load the whole row as one block, and keep it in a variable: one tl.load, then everything else."
        if limit == 1
        else "compute more in each pass: the maximum and the sum can be found in the same loop.",
    )


def writes_too_often(o: Observation) -> Finding | None:
    """The numbers are right, but the kernels write more than the output."""
    c = o.comparison
    if not o.exercise.writes_once or c is None or not c.right:
        return None
    written = o.evidence.stored / max(c.got.numel() * c.got.itemsize, 1)
    if written <= 1.5:  # tiles that overlap at a ragged end write a little more
        return None
    return Finding(
        "writes-too-often",
        f"The kernels write {_times(written)} as many bytes as the output has.",
        "The result is right. But a matrix in between is written to memory, and read again: that is what a fused "
        "kernel is there to avoid.",
        "compute everything on the tile that is still in registers, and store it once, at the end.",
    )


def _times(count: float) -> str:
    words = {1: "once", 2: "twice", 3: "three times", 4: "four times"}
    return words.get(round(count, 1)) or f"{count:.2g} times"
