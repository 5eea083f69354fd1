"""Sizes that no case can hold: what passes is run at drawn sizes between 10⁴ and 10⁸ elements, others each time.

The host function is planned with tensors of that size. Then the addresses of all programs are checked and counted, and
some programs compute (box/inside/large.py). The rows that they wrote are compared with the reference.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import torch

from ..box import Outcome
from ..box.wire import Report, Trouble
from ..box.wire.layout import Packer, read_result
from ..box.wire.requests import MOST_FOUND, Decoy, LargeCase, LargeRequest, LargeTensor, PlanCase, PlanRequest, Scalar
from ..diagnosis import Observation, diagnose
from ..diagnosis.comparison import Comparison
from ..exercises.spec import Case, Exercise, Large, Strided
from ..tensors import dtype_name, seeded
from ..verdict import Finding
from .launched import digests
from .trials import traces_of

MOST_COMPARED = 1 << 22  # elements of the rows that are compared
TOO_FEW = "Smaller inputs are right. The launch, or a loop of the kernel, ends too early for large ones."
ADVICE = (
    "let the grid grow with the size, as triton.cdiv(n, BLOCK_SIZE) does, or let each program take as many blocks as "
    "there are."
)


# Kinds of Trouble that are the answer's at any size. Others may come from our limits, or from programs that do not run.
ON_THE_HOST = {"compile", "launch-option", "host-arithmetic", "kept", "wrong-device", "exception"}
IN_THE_KERNEL = {"fault", "false-promise", "device-assert"}


@dataclass
class _Drawn:
    case: Case
    arguments: tuple
    seed: int

    @property
    def tensors(self) -> list[Large]:
        return [a for a in self.arguments if isinstance(a, Large)]

    @property
    def size(self) -> tuple[int, int]:
        """Elements of the output, and how many of them a row has."""
        if not self.tensors:
            return self.arguments[0], 1
        shape = self.tensors[0].shape
        return math.prod(shape), math.prod(shape[1:])

    def rows(self, exercise: Exercise, rows: torch.Tensor) -> tuple[tuple, torch.Tensor]:
        """The arguments with these rows only, as the box has made them, and the expected output."""
        if not self.tensors:
            return self.arguments, exercise.reference(*self.arguments).double()[rows]
        few = []
        for argument in self.arguments:
            if isinstance(argument, Large):
                at = rows * argument.stride[0]
                at = at[:, None] + torch.arange(argument.shape[1]) if argument.shape[1:] else at
                argument = Strided(seeded(self.seed + len(few), at, argument.dtype))
            few.append(argument)
        values = [a.values if isinstance(a, Strided) else a for a in few]
        return tuple(few), exercise.reference(*values).double()

    def described(self) -> tuple[Decoy | Scalar, ...]:
        return tuple(
            Decoy(a.shape, a.stride, dtype_name(a.dtype)) if isinstance(a, Large) else Scalar(a) for a in self.arguments
        )


def finding(judge, exercise: Exercise, source: str, seed: int) -> Finding | None:
    """What is wrong with an answer at large sizes; None if nothing is, or if we cannot tell."""
    generator = torch.Generator().manual_seed(seed)
    cases = [_Drawn(case, case.make(generator), seed + 97 * i) for i, case in enumerate(exercise.large(generator))]
    if not cases:
        return None
    described = tuple(PlanCase(drawn.described()) for drawn in cases)
    plans = judge.run(exercise, PlanRequest((source,), exercise.entry, described)).by_case(len(cases))
    for i, plan in plans.items():
        if isinstance(plan, Report) and plan.error and _blames(plan.error):
            return _about(exercise, cases[i], stage="plan", trouble=plan.error)
    traces = traces_of(plans)
    programs = {k: v for plan in plans.values() if isinstance(plan, Report) for k, v in plan.programs.items()}
    return _run(judge, exercise, source, [cases[i] for i in traces], list(traces.values()), programs)


def _run(judge, exercise: Exercise, source: str, cases: list[_Drawn], traces: list[dict], programs) -> Finding | None:
    packer, asked = Packer(), []
    dtypes = [exercise.output_dtype or drawn.tensors[0].dtype for drawn in cases]
    for drawn, trace, dtype in zip(cases, traces, dtypes):
        inputs = tuple(LargeTensor(a.shape, a.stride, dtype_name(a.dtype)) for a in drawn.tensors)
        places, slot = packer.slot(8 * MOST_FOUND), packer.slot(dtype.itemsize * MOST_FOUND)
        asked.append(LargeCase(trace, inputs, drawn.seed, places, slot))
    named = {name: programs[name] for name in digests(traces) if name in programs}
    outcome = judge.run(exercise, LargeRequest(source, tuple(asked), named), packer.tensors, packer.output_size)
    for i, report in sorted(outcome.by_case(len(cases)).items()):
        if isinstance(report, Outcome):
            return None  # it took too much of our time or memory, for a size that we chose
        if report.error and report.error.kind in IN_THE_KERNEL:
            return _about(exercise, cases[i], trouble=report.error)
        found = _judged(exercise, cases[i], asked[i], dtypes[i], report.value, outcome.output)
        if found:
            return found
    return None


def _judged(exercise: Exercise, drawn: _Drawn, asked: LargeCase, dtype, value, output: bytes) -> Finding | None:
    if not isinstance(value, dict) or type(value.get("stored")) is not int or type(value.get("found")) is not int:
        return None
    elements, columns = drawn.size
    if value["stored"] < elements:
        share = f"store {value['stored']:,} of {elements:,} elements" if value["stored"] else "leave elements out"
        return Finding("unwritten-output", f"All programs together {share} ({drawn.case.name}).", TOO_FEW, ADVICE)
    count = min(value["found"], MOST_FOUND)
    at = read_result(asked.places, output, torch.int64, (MOST_FOUND,))[:count]
    got = read_result(asked.slot, output, dtype, (MOST_FOUND,))[:count]
    if not count or bool(((at < 0) | (at >= elements)).any()):
        return None
    rows, row = torch.unique(torch.div(at, columns, rounding_mode="floor"), return_inverse=True)
    rows = rows[: max(8, MOST_COMPARED // columns)]
    arguments, expected = drawn.rows(exercise, rows)
    known = row < len(rows)
    output = expected.to(dtype)  # what no chosen program wrote counts as right
    output.reshape(-1)[(row * columns + at % columns)[known]] = got[known]
    bound = replace(exercise.bounds[dtype], row_sum=None)  # which is for long rows: errors do not average out in a few
    comparison = Comparison(output, expected, bound)
    return None if comparison.right else _about(exercise, replace(drawn, arguments=arguments), comparison=comparison)


def _blames(error: Trouble) -> bool:
    """Whether an error of the host function, at a size that we chose, is the answer's, and not one of our limits."""
    return error.kind in ON_THE_HOST and not re.search(r"memory|allocate", error.message)


def _about(exercise: Exercise, drawn: _Drawn, **seen) -> Finding | None:
    return diagnose(Observation(exercise, drawn.case, drawn.arguments, "interpreter", **seen))
