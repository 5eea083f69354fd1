"""Sizes that no case can hold: what passes is run at drawn sizes between 10⁴ and 10⁸ elements, others each time.

`Inputs.large_cases` draws them.

The host function is planned with tensors of that size. Then the addresses of all programs are checked and counted, and
some programs compute (box/inside/large.py). The rows that they wrote are compared with the reference.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..box import Outcome
from ..box.wire import MOST_FOUND, LargeCase, LargeTensor, Packer, ProgramRequest, Report, Trace, read_result
from ..diagnosis import Observation, diagnose
from ..diagnosis.conduct import other_programs
from ..diagnosis.observation import Comparison
from ..exercises.design import TensorArgument
from ..exercises.masks import far_places, far_windows
from ..exercises.spec import Case, Exercise, Large, Strided
from ..tensors import dtype_name, seeded
from ..verdict import Finding, Slug
from .trials import Drawn, Plans, Trials, bound_of, ended, has_ended, named, traces_of

MOST_COMPARED = 1 << 22  # elements of the rows that are compared
MOST_SHARED = 1 << 23  # elements that every row follows from
MOST_NEEDED = 1 << 18  # elements that one row follows from
TOO_FEW = "Smaller inputs are right. The launch, or a loop of the kernel, ends too early for this size."
ADVICE = (
    "let the grid grow with the size, as triton.cdiv(n, BLOCK_SIZE) does, or let each program take as many blocks as "
    "there are. Look at each number that is chosen by the size."
)

PRIMES = 2, 3, 5, 7, 11, 13, 17, 19
LEAST, MOST = 100, 1 << 27  # of an answer's numbers that may bound a size
MOST_MODULUS = 512
SHORTEST = 16  # block
FEW = 4  # cases; one of them may be about something else
OUR_LIMITS = {Slug.TIMEOUT, Slug.OUT_OF_MEMORY}  # for sizes that we chose
FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
          ast.LShift: operator.lshift, ast.Pow: operator.pow}  # fmt: skip
ENDS = {"int16": 1 << 15, "uint16": 1 << 16, "short": 1 << 15}  # numbers of elements at which a type ends

# Kinds of Trouble of a plan that may come from our limits. And those that are the answer's where kernels run.
OUR_KINDS = {"not-replayable"}
IN_THE_KERNEL = {"fault", "false-promise", "device-assert"}


@dataclass(eq=False, kw_only=True)
class LargeDrawn(Drawn):
    """shape: None where the rows of the output do not follow from a few of the tensors'."""

    seed: int
    by_element: bool = False  # each element of the output follows from one of each tensor

    @property
    def size(self) -> tuple[int, int]:
        """Elements of the output, and how many of them a row has."""
        return math.prod(self.shape), 1 if self.by_element else math.prod(self.shape[1:])

    @property
    def needed(self) -> int:
        """Elements that a row of the output follows from, or has: the most of one tensor."""
        cut = (a for a in self.tensors if a.axis is not None and not self.by_element)
        return max([self.size[1], *(math.prod(a.shape) // a.shape[a.axis] for a in cut)])

    @property
    def compared(self) -> bool:
        """Whether rows are compared with the reference. Of others the addresses are looked at."""
        return self.shape is not None and self.needed <= MOST_NEEDED and self.shared <= MOST_SHARED

    @property
    def shared(self) -> int:
        return sum(math.prod(a.shape) for a in self.tensors if a.axis is None)

    def rows(self, rows: torch.Tensor) -> tuple:
        """The arguments with these rows only, as the box has made them."""
        few = []
        for argument in self.arguments:
            if isinstance(argument, Large):
                at = rows
                if not self.by_element:
                    along = [rows if i == argument.axis else torch.arange(n) for i, n in enumerate(argument.shape)]
                    at = sum(torch.meshgrid(*(n * s for n, s in zip(along, argument.stride)), indexing="ij"))
                argument = Strided(seeded(self.seed + len(few), at, argument.dtype, argument.span))
            few.append(argument)
        return tuple(few)


def drawn(exercise: Exercise, seed: int, bounds: Sequence[int] = ()) -> list[LargeDrawn]:
    """The cases of an exercise at large sizes. bounds: numbers of the answer that some sizes exceed."""
    generator = torch.Generator().manual_seed(seed)
    by_element = _by_element(exercise)
    made = []
    for i, case in enumerate(exercise.large_cases(generator, bounds)):
        arguments = case.make(generator)
        tensors = [a for a in arguments if isinstance(a, Large)]
        dtype = exercise.output_dtype or tensors[0].dtype
        rows = max((a.shape[0] for a in tensors if a.shape), default=0) if exercise.computes else 0
        made.append(LargeDrawn(
            case, arguments, _output_shape(exercise, arguments, case), dtype,
            configuration=i, computes=rows, seed=seed + 97 * i, by_element=by_element,
        ))  # fmt: skip
    return made


def finding(trials: Trials, plans: Plans, **device: int) -> Finding | None:
    """What is wrong with an answer in cases of large sizes; None if nothing is, or if we cannot tell.

    device: the `multiprocessors` of that on which the plans were made.
    """
    for drawn, plan in plans.items():
        if _is_its_fault(plan, trials, drawn):
            return _about(trials.exercise, drawn, **ended(plan, "plan"))
    traces = traces_of(plans)
    for drawn, trace in traces.items():
        started = [launch.programs for launch in trace.launches]
        if device and (found := other_programs(trials.exercise, drawn.arguments, started, **device)):
            return replace(found, case=drawn.case.name)
    return _run(trials, traces) if traces else None


def _by_element(exercise: Exercise) -> bool:
    return exercise.inputs is not None and exercise.inputs.any_rank


def _output_shape(exercise: Exercise, arguments: tuple, case: Case) -> tuple[int, ...] | None:
    if case.gradient is not None or exercise.inputs and not (exercise.inputs.large or exercise.inputs.rows):
        return None
    shapes = [a.shape for a in arguments if isinstance(a, Large)]
    if not shapes or exercise.random or _by_element(exercise):  # a random reference takes the output
        return np.broadcast_shapes(*shapes) if shapes else tuple(exercise.reference(*arguments).shape)
    # Of small tensors: each size has its prime. The arithmetic of "meta" imports torch._dynamo, which takes a second.
    small = dict(zip(dict.fromkeys(n for shape in shapes for n in shape), PRIMES, strict=False))
    tensors = [
        torch.ones([small[n] for n in a.shape], dtype=a.dtype) if isinstance(a, Large) else a for a in arguments
    ]
    known = {prime: size for size, prime in small.items()}
    return tuple(known[n] for n in _picked(exercise.reference(*tensors), case.pick).shape)


def _picked(output, pick: int | None) -> torch.Tensor:
    """The output, or that of several that is judged."""
    return output if pick is None else output[pick]


def _run(trials: Trials, traces: dict[LargeDrawn, Trace]) -> Finding | None:
    packer, asked, cases, exercise = Packer(), [], [*traces], trials.exercise
    for drawn, trace in traces.items():
        inputs = tuple(LargeTensor(a.shape, a.stride, dtype_name(a.dtype), a.span, a.whole) for a in drawn.tensors)
        places, slot = packer.slot(8 * MOST_FOUND), packer.slot(drawn.dtype.itemsize * MOST_FOUND)
        starts = far_places(*drawn.size) if exercise.random else ()
        asked.append(LargeCase(trace, inputs, drawn.seed, places, slot, drawn.compared, drawn.computes, starts))
    request = ProgramRequest("large", trials.source, tuple(asked), named(trials.programs, traces.values()))
    outcome = trials.run(request, packer.tensors, packer.output_size)
    windows: dict[bytes, tuple[int, int]] = {}
    for i, report in sorted(outcome.by_case(len(cases)).items()):
        if isinstance(report, Outcome):
            return None  # it took too much of our time or memory, for a size that we chose
        if report.error and report.error.kind in IN_THE_KERNEL:
            return _about(exercise, cases[i], trouble=report.error)
        found = _judged(exercise, cases[i], asked[i], report.value, outcome.output, windows)
        if found:
            return found
    return None


def _judged(
    exercise: Exercise, drawn: LargeDrawn, asked: LargeCase, value, output: bytes, windows: dict
) -> Finding | None:
    """windows: of the masks of an answer, see far_windows."""
    if not isinstance(value, dict) or any(type(value.get(name)) is not int for name in ("elements", "stored", "found")):
        return None
    if left_out := _left_out(exercise, drawn, value):
        return Finding(*left_out, TOO_FEW, ADVICE, case=drawn.case.name)
    if not drawn.compared:
        return None
    (elements, columns), dtype = drawn.size, drawn.dtype
    count = min(value["found"], MOST_FOUND)
    at = read_result(asked.places, output, torch.int64, (MOST_FOUND,))[:count]
    got = read_result(asked.slot, output, dtype, (MOST_FOUND,))[:count]
    if not count or bool(((at < 0) | (at >= elements)).any()):
        return None
    if exercise.random and (again := far_windows(at, got != 0, asked.starts, drawn.arguments[-1], windows)):
        return replace(again, case=drawn.case.name)
    rows, row = torch.unique(torch.div(at, columns, rounding_mode="floor"), return_inverse=True)
    rows = rows[: max(8, MOST_COMPARED // drawn.needed)]
    arguments, known = drawn.rows(rows), row < len(rows)
    place = (row * columns + at % columns)[known]
    if exercise.random:  # what no chosen program wrote counts as dropped
        output = torch.zeros(arguments[0].values.shape, dtype=dtype)
        output.reshape(-1)[place] = got[known]
        arguments = *arguments, Strided(output)
    expected = exercise.reference(*(a.values if isinstance(a, Strided) else a for a in arguments))
    expected = _picked(expected, drawn.case.pick).double()
    expected = expected if drawn.tensors else expected[rows]
    if not exercise.random:  # what no chosen program wrote counts as right
        output = expected.to(dtype)
        output.reshape(-1)[place] = got[known]
    # A bound of row sums is for long rows: in a few elements, errors do not average out.
    bound = replace(bound_of(exercise, replace(drawn, arguments=arguments)), row_sum=None)
    comparison = Comparison(output, expected, bound)
    return None if comparison.right else _about(exercise, replace(drawn, arguments=arguments), comparison=comparison)


def _left_out(exercise: Exercise, drawn: LargeDrawn, value: dict) -> tuple[str, str] | None:
    """What all programs together do not store, or do not read: the slug, and a sentence."""
    elements, stored = value["elements"], value["stored"]
    if stored < elements:
        share = f"store {stored:,} of {elements:,} elements" if stored else "leave elements out"
        return "unwritten-output", f"All programs together {share}."
    match value.get("unread"):
        case [int(number), int(read), int(whole)] if read < whole:
            names = [name for name, a in zip(exercise.parameters, drawn.arguments) if isinstance(a, Large)]
            what = names[number] if number < len(names) else "the gradient that comes in"
            return "wrong-value", f"All programs together read {read:,} of {whole:,} elements of {what}."
    return None


def _is_its_fault(plan: Report | Outcome, trials: Trials, drawn: Drawn) -> bool:
    """Whether the answer is why a plan failed, at a size that we chose, and not one of our limits, which is noted.

    Where each element is read once, a program holds whole rows, and no block holds several of the longest ones.
    """
    if isinstance(plan, Outcome) or plan.error is None:
        return has_ended(plan)
    error = plan.error
    if error.kind == "compile" and trials.exercise.reads_per_element == 1 and "maximum tensor numel" in error.message:
        return False
    ours = error.message if error.kind in OUR_KINDS else ""
    if error.kind == "memory" or re.search("memory|allocate", error.message):
        ours = "it needs too much memory"
    if ours:
        trials.unjudged.setdefault(ours, drawn.case.name)
    return not ours


def _about(exercise: Exercise, drawn: LargeDrawn, **seen) -> Finding | None:
    return diagnose(Observation(exercise, drawn.case, drawn.arguments, "interpreter", **seen))


# -- sizes beyond the numbers of an answer ---------------------------------------------------------------
# An answer may cut a size off, count it in few bits, or branch at it. The drawn sizes meet such a number by chance. So
# there are cases just beyond the whole numbers of the source, and at their multiples. Most right answers hold no number
# that the drawn sizes have not passed: these cases cost them nothing.


def whole_numbers(source: str) -> tuple[list[int], list[int]]:
    """The numbers that may bound a size, and those by which the source divides one, ascending."""
    bounds, divisors, blocks = set(), set(), set()
    for node in _outermost(ast.parse(source)):
        if (number := _folded(node)) is not None:
            bounds.add(number)
        elif isinstance(node, ast.BinOp) and (number := _folded(node.right) or _folded(node.left)):
            if isinstance(node.op, ast.Mod):
                divisors.add(number)
            elif isinstance(node.op, ast.BitAnd):
                divisors.add(number + 1)
            elif isinstance(node.op, ast.RShift) and 0 <= number < 64:
                bounds.add(1 << number)
            elif isinstance(node.op, ast.Mult):
                blocks.add(number)
        else:
            bounds.add(ENDS.get(getattr(node, "attr", ""), 0))
    lengths = [n for n in bounds if n >= SHORTEST and n & n - 1 == 0]
    bounds |= {count * length for count in blocks for length in lengths}
    return sorted(n for n in bounds if LEAST <= n <= MOST), sorted(n for n in divisors if 2 <= n <= MOST_MODULUS)


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but those inside of a number that is computed, such as 1 << 20."""
    yield node
    if _folded(node) is None:
        for child in ast.iter_child_nodes(node):
            yield from _outermost(child)


def _folded(node: ast.AST) -> int | None:
    """The whole number that an expression of constants gives; None for others."""
    if isinstance(node, ast.Constant):
        value = node.value
        return int(value) if type(value) in (int, float) and abs(value) <= MOST and value == int(value) else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in FOLDED:
        return None
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None or isinstance(node.op, (ast.LShift, ast.Pow)) and not 0 <= right < 64:
        return None
    return None if isinstance(node.op, ast.FloorDiv) and not right else FOLDED[type(node.op)](left, right)


def beyond(trials: Trials) -> list[Drawn]:
    """The cases that the numbers of an answer ask for, beside those that it has passed."""
    inputs = trials.exercise.inputs
    if inputs is None or not inputs.tensors:
        return []
    bounds, divisors = whole_numbers(trials.source)
    generator = torch.Generator().manual_seed(trials.seed)
    cases = inputs.beyond(bounds, divisors, _reached(trials), generator)
    return [trials.drawn(case, 800 + i) for i, case in enumerate(cases)]


def _reached(trials: Trials) -> dict[str, int]:
    """By dimension, the size that FEW cases so far have, or more."""
    sizes: dict[str, list[int]] = {}
    for case in trials.cases:
        for argument, spec in zip(case.arguments, trials.exercise.inputs.arguments):
            if isinstance(argument, Strided) and isinstance(spec, TensorArgument):
                shape = argument.values.shape[argument.values.ndim - len(spec.shape) :]
                for name, size in zip(spec.shape, shape):
                    sizes.setdefault(name, []).append(size)
    return {name: sorted(each)[-FEW:][0] for name, each in sizes.items()}


def finding_beyond(trials: Trials, plans: Plans) -> Finding | None:
    """What is wrong with an answer in such cases; None if nothing is, or if they take too long."""
    for drawn, plan in plans.items():
        if _is_its_fault(plan, trials, drawn):
            return diagnose(trials.unplanned(drawn, plan, True))
    seen = trials.replay({drawn: (drawn, trace) for drawn, trace in traces_of(plans).items()})
    found = (diagnose(each) for each in seen.values() if not each.exceeded)
    return next((each for each in found if each and each.slug not in OUR_LIMITS), None)
