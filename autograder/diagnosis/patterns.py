"""Rules about patterns in the numbers of a wrong output. Each one holds for every exercise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

import torch

from workshop.executor.arithmetic import origins_of, tf32

from ..exercises.design import TensorArgument
from ..exercises.spec import OVERFLOWING, UNUSUAL, Strided, Tag, as_if_by_rows, rows_one_apart
from ..tensors import dtype_name
from ..text import many
from ..verdict import Finding, Slug
from .observation import Comparison, Observation, agrees, place_in_words

MOST_FOR_EXP = 40  # of a row whose exponentials add up to a number, whatever is subtracted: exp(2 * 40) is finite


def known_mistake(o: Observation) -> Finding | None:
    if not (mistake := o.mistake):
        return None
    attempt = mistake.advice[0].lower() + mistake.advice[1:]
    return Finding(mistake.slug, o.worst_in_words, mistake.explanation, attempt, sure=True, by_numbers=True)


def unwritten(o: Observation) -> Finding | None:
    c = o.comparison
    if not bool((left := o.left_as_they_were).any()):
        return None
    count = f"{many(int(left.sum()), 'element was', 'elements were')} never written, of {left.numel()}."
    if not o.evidence.stores:
        return Finding(
            "unwritten-output",
            count,
            "No line of the kernel stores anything. What stands below a `return` is not part of the kernel.",
            "end the kernel with tl.store, and take a `return` above it out: a kernel returns nothing.",
        )
    if left.all():
        return Finding(
            "unwritten-output",
            count,
            "The store is missing, or it writes to another place, or its mask is true for too few lanes.",
            "store the result at output_ptr + offsets, with the same mask as the loads.",
        )
    if block := c.only_tail(o.constants if o.block else o.blocks):
        return Finding(
            "tail-wrong",
            f"{count} All of them lie behind the last multiple of {block}.",
            "The grid or the loop ends before the last block, which is not full.",
            "round up: triton.cdiv(n, BLOCK_SIZE) programs, or range(0, n, BLOCK_SIZE).",
            second="unwritten-output",
        )
    happened = f"{count} One of them: {place_in_words(c)}." if left[c.worst] else count
    means = "No program wrote them: the grid is too small, a loop ends too early, the store stands outside of its "
    means += "loop, or its mask is too narrow."
    attempt = "count the elements: programs × elements per program must cover the output."
    if o.evidence.without_work:  # programs store nothing, while elements are never written: they work in another place
        idle, programs, first = o.evidence.without_work[:3]
        means = f"{idle:,} of {programs:,} programs store nothing, such as program {first}: all of their lanes are "
        means += "masked off. The place of a program does not follow from its number as it should."
        attempt = o.place_of_a_program
    one_block = _one_block_of_each_row(o)
    return Finding("unwritten-output", happened, one_block or means, attempt, sure=bool(one_block))


def _one_block_of_each_row(o: Observation) -> str:
    """The first block of each row was written, or the last one, and nothing else."""
    left, columns = o.left_as_they_were, o.comparison.columns
    if left.ndim != 2 or o.comparison.flat or not o.block or columns <= o.block or o.sides > 1:
        return ""
    written, place = ~left.all(0), torch.arange(columns) // o.block
    if bool((written == (place == int(place[-1]))).all()):
        return "Only the last block of each row was written: the store is behind the loop over the blocks, not in it."
    if bool((written == (place == 0)).all()):
        return "Only the first block of each row was written: one program takes a row, and has no loop over its blocks."
    return ""


ANY_NAN = "-inf - (-inf) is NaN, and so are 0 * inf, 0 / 0 and inf / inf."
_MAKES_NAN = {
    "fsub": "infinity is subtracted from infinity, or -inf from -inf.",
    "fadd": "inf and -inf are added.",
    "fmul": "0 is multiplied by infinity.",
    "fdiv": "infinity is divided by infinity.",
    "fdiv by 0": "0 is divided by 0.",
    "dot": "0 is multiplied by infinity, or inf and -inf are added.",
}


def not_finite(o: Observation) -> Finding | None:
    """NaN or infinity. It is an overflow where exp overflows, or where the results that are finite are right."""
    c = o.comparison
    if not c.made_not_finite.any():
        return None
    count = int((c.bad & ~c.value.isfinite()).sum())
    happened = f"{o.worst_in_words} {many(count, 'wrong element is', 'wrong elements are')} NaN or infinite."
    made_infinite = bool((torch.isinf(c.value) & c.made_not_finite).any())
    only_infinite = made_infinite and not bool((c.bad & ~c.made_not_finite).any())
    numbers = [x for x in o.values if isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel()]
    largest = max((float(x.abs().max()) for x in numbers), default=0.0)
    if only_infinite and c.bound.row_sum is not None and largest < MOST_FOR_EXP:
        return Finding(
            "nan",
            happened,
            f"A number is divided by 0. No input is larger than {largest:.3g}, so nothing overflows.",
            "look at the sum that is divided by: its blocks must cover all elements, also where the last block is not "
            "full.",
        )
    if only_infinite or o.case.about & OVERFLOWING:
        return Finding(
            "overflow",
            happened,
            "The result has room in this dtype, but a number on the way to it is too large: exp(89) is infinite in "
            "float32, and so is 70000 in float16.",
            "compute in float32, multiply once, and give exp no number above 0: subtract the maximum of the whole row "
            "first.",
        )
    origins = Counter(origins_of(c.got[c.made_not_finite]))
    if not origins and any(bool(x.isnan().any()) for x in numbers):
        means = "There is NaN in memory that the result must not depend on, and 0 * NaN is NaN, too."
        return Finding("nan", happened, means, "leave it out by a mask or tl.where, not by a factor of 0.")
    still = " A maximum is still -inf where nothing was seen, or nothing but -inf." * (c.bound.row_sum is not None)
    if origins:
        (line, how), _ = origins.most_common(1)[0]
        means = f"NaN comes from line {line}: {_MAKES_NAN.get(how, ANY_NAN)}{still * (how in ('', 'fsub'))}"
        attempt = "find out where these numbers come from. Where the exercise allows them, compute the result without "
        attempt += "this operation; else keep them out of this line."
        return Finding("nan", happened, means, attempt, line)
    return Finding(
        "nan",
        happened,
        f"{ANY_NAN} Infinity comes from a division by 0, or from exp of a large number.{still}",
        "check what masked-off lanes hold, the initial value of every running maximum and sum, and that the loop gives "
        "each of them its new value.",
    )


def tail(o: Observation) -> Finding | None:
    c = o.comparison
    if not c.bad.any() or Tag.MASKED in o.case.about:
        return None
    block = c.only_tail(o.blocks)
    if block is None:
        return None
    return Finding(
        "tail-wrong",
        f"{o.worst_in_words} All wrong elements lie behind the last multiple of {block}.",
        "The last block is shorter than the others, but its mask or its offsets do not allow for that.",
        "compare the offsets with the length: mask = offsets < n.",
    )


def low_precision(o: Observation) -> Finding | None:
    c = o.comparison
    if c.relative_error > 0.06:
        return None
    if c.ratio is not None and abs(c.ratio - 1) > (1e-2 if Tag.HALF in o.case.about else 2e-3):
        return None
    if Tag.HALF not in o.case.about and c.relative_error > 0.012:
        return None
    apart = c.ratio is not None and abs(c.ratio - 1) > c.bound.relative
    if apart and c.varies and not c.bound.row_sum:  # rounded elements have no common factor
        return None
    if c.bound.row_sum:
        off, what = f"row sums are off by {c.row_sum_error:.1e}", "a sum or an exponential"
    else:
        off, what = f"errors reach {c.relative_error:.1e}", "an intermediate value"
    return Finding(
        "low-precision",
        f"The result is close, but {off}.",
        f"Most often, {what} was kept in half precision, which has 8 or 11 bits: about three digits.",
        "convert to float32 right after the load, x.to(tl.float32), and accumulate in float32. The store converts "
        "back.",
    )


def constant_factor(o: Observation) -> Finding | None:
    c = o.comparison
    rounding = 1e-6 if c.bound.row_sum else c.bound.relative
    if c.ratio is None or abs(c.ratio - 1) <= rounding or not c.varies:
        return None
    means = "The kernel is right except for one constant factor."
    advice = "look for a factor that should not be there, or for a missing division."
    for factor, name in ((math.log2(math.e), "log2(e)"), (math.log(2), "ln(2)")):
        if math.isclose(c.ratio, factor, rel_tol=1e-3):  # exp2 or log2 stands in the place of exp or log
            means = f"That is {name}: exp2 and log2 have the base 2. log(x) = log2(x) * {math.log(2):.16f}."
            advice = "multiply by ln(2) what log2 gives, and by log2(e) what exp2 takes."
    return Finding("constant-factor", f"Every element is {c.ratio:.6g} times the right one.", means, advice)


def factor_of_each_row(o: Observation) -> Finding | None:
    """Each row is a multiple of the right row, where rows have a known sum."""
    c = o.comparison
    if c.bound.row_sum is None or c.row_ratios is None:
        return None
    low, high = float(c.row_ratios.min()), float(c.row_ratios.max())
    return Finding(
        "not-normalised",
        f"Each row is a multiple of the right row, with factors from {low:.4g} to {high:.4g}.",
        "The rows do not sum to 1. The exponentials are right, and the number that they are divided by is not their "
        "sum.",
        "check the divisor, the initial value of the sum, what each block adds to it, and what masked-off lanes add. "
        "All exponentials of a row subtract the same maximum.",
    )


def wrong_value(o: Observation) -> Finding:
    c = o.comparison
    rows = c.bad_rows
    pattern = f"{int(c.bad.sum())} of {c.bad.numel()} elements are wrong"
    if len(rows) > 1 and not bool(rows[0]) and int(rows.sum()) == len(rows) - 1:
        pattern += ": all rows but the first"
    elif len(rows) > 1 and not rows.all():
        pattern += f", in {int(rows.sum())} of {len(rows)} rows"
    given = zip(o.exercise.parameters, o.values, strict=False)
    same = (name for name, x in given if isinstance(x, torch.Tensor) and torch.equal(x.double(), c.value))
    means = next((f"The output is {name}, as it was given." for name in same), "")
    if not c.value.any():
        means = "Every element is 0: the kernel stored zeros, or it divided by infinity."
    return Finding(
        "wrong-value",
        f"{o.worst_in_words} {pattern}.",
        means,
        advice="follow one program by hand: its offsets, its mask, what it loads, what it stores.",
    )


def unread(o: Observation) -> Finding | None:
    """No kernel reads an element of an input that decides the output: its gradient is not 0."""
    runs = o.evidence.unread
    if not any(runs) or o.exercise.random or o.case.gradient is not None:
        return None
    given = [(name, a) for name, a in zip(o.exercise.parameters, o.arguments) if isinstance(a, Strided)]
    for (name, argument), places in zip(given, runs, strict=False):
        x = argument.values
        gradient = _gradient(o, name) if places and x.is_floating_point() else None
        if gradient is None:
            continue
        left = torch.zeros(x.numel(), dtype=torch.bool)
        for begin, end in zip(places[::2], places[1::2]):
            left[begin:end] = True
        left = (left.reshape(x.shape) & (gradient != 0)).nonzero()
        if len(left):
            place = left[len(left) // 2].tolist()
            element = f"{name}[{', '.join(map(str, place))}]"
            lies = " + ".join(f"{i} * {stride}" for i, stride in zip(place, argument.stride, strict=True))
            return Finding(
                Slug.WRONG_VALUE,
                f"{o.worst_in_words} No program reads {element}, and the result depends on it.",
                f"The loads from {name} go to other places, or fewer, than the task asks for.",
                f"follow the offsets of the loads from {name}. Its strides are {argument.stride}, so {element} lies "
                f"{lies} elements behind the first one.",
            )
    return None


def _gradient(o: Observation, name: str) -> torch.Tensor | None:
    """Of the sum of the squares of a right result; None if there is none."""
    values = list(o.values)
    i = o.exercise.parameters.index(name)
    values[i] = x = values[i].double().requires_grad_()
    try:
        return torch.autograd.grad(o.exercise.expected(o.case, values).square().sum(), x)[0]
    except RuntimeError:  # it is not differentiable
        return None


# -- the right result of other inputs --------------------------------------------------------------------
# An argument that was not used, two that changed places, rows read in wrong places, or a part of a dimension, as in a
# sum that leaves out a block. The reference computes it, so nothing here knows an exercise.

_FIRST = "walk over all blocks, in a loop: for start in range(0, n, BLOCK_SIZE)."
_LAST = "let each step of the loop keep what the steps before it found, such as total += …, and store behind the loop."
_ENDS = "let the blocks reach the end: round their number, or their length, up, as tl.cdiv does, and mask the last one."
_BEGINS = "begin at 0: range(0, n, BLOCK_SIZE)."

SMALL = 16  # a length up to it may stand for any factor


class Other(NamedTuple):
    """Other values, by the number of the argument, and what it means that the output is right for them.

    sure: whether it names the place, so that no repair of the kernel can tell more. to, times: the dtype of the result,
    and a factor of it.
    """

    values: dict[int, object]
    means: str
    advice: str
    slug: Slug = Slug.WRONG_VALUE
    sure: bool = False
    to: torch.dtype = torch.float64
    times: float = 1.0


def right_for_other_inputs(o: Observation) -> Finding | None:
    """The output would be right for other inputs."""
    c = o.comparison
    if not c.expected.numel() or o.exercise.random:
        return None
    for other in _others(o):
        computed = _expected(o, other)
        if computed is None or not agrees(c.value, computed, c.near) or agrees(computed, c.expected, c.near):
            continue
        if c.is_told_by(computed):
            return Finding(other.slug, o.worst_in_words, other.means, other.advice, sure=other.sure)
    return None


def _expected(o: Observation, other: Other) -> torch.Tensor | None:
    """The right result for other values; None if there is none, or if it has another shape."""
    values = [other.values.get(i, value) for i, value in enumerate(o.values)]
    try:
        computed = o.exercise.expected(o.case, values)
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError):  # not computable for these
        return None
    return other.times * computed.to(other.to).double() if computed.shape == o.comparison.expected.shape else None


def _others(o: Observation) -> Iterator[Other]:
    names = [*o.exercise.parameters, *["the incoming gradient"] * (o.case.gradient is not None)]
    given = {i: (name, value) for i, (name, value) in enumerate(zip(names, o.values, strict=False))}
    tensors = {i: each for i, each in given.items() if isinstance(each[1], torch.Tensor)}
    yield from _in_other_places(given)
    if not o.case.about & UNUSUAL:  # there, many a kernel gives the same number everywhere
        yield from _unused(given)
    if o.comparison.ratio is None:  # otherwise the sign is one factor of all elements
        yield from _with_the_other_sign(given)
    yield from _limited(o.comparison, tensors)
    yield from _elsewhere(tensors, len(o.comparison.bad_rows))
    yield from _rounded(tensors)
    axes = _axes(o)
    yield from _scaled(o, tensors, axes)
    if o.case.gradient is None:
        yield from _parts(o, axes)
        yield from _again(o, axes)


def _axes(o: Observation) -> dict[str, list[tuple[int, int]]]:
    """By the name of a dimension: the arguments that have it, and where."""
    found: dict[str, list[tuple[int, int]]] = {}
    for i, argument in enumerate(o.exercise.inputs.arguments if o.exercise.inputs else ()):
        for axis, name in enumerate(argument.shape if isinstance(argument, TensorArgument) else ()):
            found.setdefault(name, []).append((i, axis))
    return found


def _in_other_places(given: dict) -> Iterator[Other]:
    """An argument was read in the place of another one."""
    for (i, (name, x)), (j, (other, y)) in permutations(given.items(), 2):
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            alike = (x.shape, x.dtype) == (y.shape, y.dtype)
        else:
            alike = type(x) is type(y) is float
        if not alike:
            continue
        if i < j:
            means, advice = f"{name} and {other} changed places.", "exchange them where they are read or passed."
            yield Other({i: y, j: x}, means, advice)
        means = f"That would be the right result with {other} in the place of {name}."
        yield Other({i: y}, means, f"read {name} in one of the places where {other} is read.")


def _unused(given: dict) -> Iterator[Other]:
    """The numbers of an argument do not count."""
    for i, (name, value) in given.items():
        for constant in (1.0, 0.0, -math.inf, math.inf):
            if isinstance(value, torch.Tensor) and math.isfinite(constant):
                changed = torch.full_like(value, constant)
            elif type(value) is float:
                changed = constant
            else:
                continue
            means = f"That would be the right result if {name} were always {constant:g}: {name} has hardly any effect."
            slug = Slug.NOT_SCALED if constant == 1 and i else Slug.WRONG_VALUE  # what is scaled comes first
            advice = f"use {name} in what is computed, as the exercise asks for it. A later line may undo it."
            yield Other({i: changed}, means, advice, slug)


def _with_the_other_sign(given: dict) -> Iterator[Other]:
    for i, (name, value) in given.items():
        if isinstance(value, float) or isinstance(value, torch.Tensor) and value.is_floating_point():
            means = f"That would be the right result with the other sign of {name}."
            yield Other({i: -value}, means, "look for a minus that is missing, or there once too often.")


def _limited(c: Comparison, tensors: dict) -> Iterator[Other]:
    """The numbers of a tensor end at 0, or at the number that all wrong elements are."""
    ends = {0.0} | {float(v) for v in c.value[c.bad][:1] if bool((c.value[c.bad] == v).all()) and v.isfinite()}
    numbers = [(i, name, x) for i, (name, x) in tensors.items() if x.dtype != torch.bool]
    for (i, name, x), end in product(numbers, sorted(ends)):
        most = (torch.finfo if x.is_floating_point() else torch.iinfo)(x.dtype)
        if not most.min <= end <= most.max:
            continue
        end = end if x.is_floating_point() else int(end)
        for than, limited in (("smaller", x.clamp(min=end)), ("larger", x.clamp(max=end))):
            if not torch.equal(x, limited):
                means = f"That would be the right result if no number of {name} were {than} than {end:g}."
                advice = f"look for {end:g} as a limit, as the first value of a maximum or a minimum, or as `other`."
                yield Other({i: limited}, means, advice)


def _elsewhere(tensors: dict, rows: int) -> Iterator[Other]:
    """The rows of a matrix, or the numbers of a vector, were read in wrong places."""
    matrices = {i: each for i, each in tensors.items() if each[1].ndim == 2 and min(each[1].shape) > 1}
    for i, (name, x) in matrices.items():
        means = f"Row r of {name} was read from element r on: its stride was taken as 1."
        advice = f"pass {name}.stride(0) to the kernel, and begin row r at r * row_stride."
        yield Other({i: rows_one_apart(x)}, means, advice, Slug.STRIDE_IGNORED)
        means = f"{name} was read as if its rows followed each other; it is transposed in memory."
        advice = f"pass both strides of {name}: element (i, j) lies at i * stride(0) + j * stride(1)."
        yield Other({i: as_if_by_rows(x)}, means, advice, Slug.STRIDE_IGNORED)
    if len(matrices) > 1:
        means = "The matrices were read as if their rows followed each other; they are transposed in memory."
        advice = "pass both strides of each: element (i, j) lies at i * stride(0) + j * stride(1)."
        yield Other({i: as_if_by_rows(x) for i, (_, x) in matrices.items()}, means, advice, Slug.STRIDE_IGNORED)
    for i, (name, x) in tensors.items():
        if x.ndim == 1 and len(x) > 1 and rows > 1:
            means = f"Each row got one number of {name}: {name}[row] was read, not {name}[column]."
            advice = f"load {name} for the columns, and spread it over the rows: [None, :]."
            yield Other({i: x[torch.arange(rows) % len(x)][:, None]}, means, advice)


def _rounded(tensors: dict) -> Iterator[Other]:
    """The numbers of all arguments were rounded to fewer bits; or these, and their result."""
    numbers = {i: x for i, (_, x) in tensors.items() if x.is_floating_point()}
    for dtype in (torch.float16, torch.bfloat16):
        if any(x.dtype != dtype for x in numbers.values()):
            rounded = {i: x.to(dtype).to(x.dtype) for i, x in numbers.items()}
            means = f"The numbers were rounded to {dtype_name(dtype)} on the way to the result."
            advice = "compute in the dtype of the inputs, or in float32. The store converts to the output's dtype."
            for to in (torch.float64, dtype):
                yield Other(rounded, means, advice, Slug.LOW_PRECISION, to=to)
    if factors := {i: tf32(x) for i, x in numbers.items() if x.ndim > 1 and x.dtype == torch.float32}:
        means = "The factors were rounded to TF32, which keeps 10 of the 23 bits of float32."
        advice = 'write tl.dot(a, b, acc, input_precision="ieee").'
        yield Other(factors, means, advice, Slug.LOW_PRECISION, sure=True)


def _scaled(o: Observation, tensors: dict, axes: dict) -> Iterator[Other]:
    """The result, or the first tensor, is too large or too small by a length, or by the root of one."""
    i, (name, x) = next(iter(tensors.items()), (0, ("", None)))
    for dimension, [(argument, axis), *_] in axes.items() if x is not None and x.is_floating_point() else ():
        length = o.values[argument].shape[axis]
        for label, size in ((dimension, length), (f"√{dimension}", math.sqrt(length))):
            for how, factor in (("times", size), ("divided by", 1 / size)) if length > SMALL else ():
                missing, spare = ("division by", "factor") if how == "times" else ("factor", "division by")
                advice = f"a {missing} {label} is missing, or a {spare} {label} is there once too often."
                means = f"That is the right result {how} {label}, which is {size:.4g}."
                yield Other({}, means, advice, Slug.NOT_SCALED, times=factor)
                means = f"That would be the right result for {name} {how} {label}, which is {size:.4g}."
                yield Other({i: x.double() * factor}, means, advice, Slug.NOT_SCALED)


def _parts(o: Observation, axes: dict) -> Iterator[Other]:
    """A dimension that the output does not have was used in part only."""
    for name, places in axes.items():
        i, axis = places[0]
        length = o.values[i].shape[axis]
        for begin, end, advice in _slices(length, o.constants):
            change = {i: o.values[i].narrow(axis, begin, end - begin) for i, axis in places}
            means = f"That is the right result for {name} {begin:,} to {end - 1:,} alone, of {length:,}."
            yield Other(change, means, advice, sure=True)


def _again(o: Observation, axes: dict) -> Iterator[Other]:
    """The first block along a dimension was read in the place of each further block, in one argument or in all."""
    flat = o.comparison.flat
    for name, places in axes.items():
        i, axis = places[0]
        length = o.values[i].numel() if flat else o.values[i].shape[axis]
        for block in (block for block in o.constants if block < length):
            first = torch.arange(length) % block
            for read in (places, *([place] for place in places if len(places) > 1)):
                x = {i: o.values[i] for i, _ in read}
                change = {i: x[i].take(first).reshape(x[i].shape) if flat else x[i].index_select(axis, first)
                          for i, axis in read}  # fmt: skip
                of = " and ".join(o.exercise.parameters[i] for i in x)
                means = f"Each step reads {name} 0 to {block - 1:,} of {of} again."
                advice = "let the place follow the step, or the program: a block begins at its number times its size."
                of_programs = read == places and (flat or length in o.comparison.expected.shape)
                yield Other(change, means, advice, Slug.WRONG_PROGRAM_ID if of_programs else Slug.WRONG_VALUE)


def _slices(length: int, blocks: tuple[int, ...]) -> Iterator[tuple[int, int, str]]:
    for block in (block for block in blocks if block < length):
        last = (length - 1) // block * block
        yield 0, block, _FIRST if block < last else f"{_FIRST} Or {_ENDS}"
        yield last, length, _LAST if block < last else f"{_LAST} Or {_BEGINS}"
        yield 0, last, _ENDS
        yield block, length, _BEGINS
    if length > 2:
        yield 0, length - 1, "find what ends one too early: a mask, the end of a loop, or a half that is rounded down."
        yield 1, length, _BEGINS
