"""Sizes that follow from the whole numbers in an answer's source: beyond them it may take another way.

An answer may cut a size off, count it in few bits, or branch at it. The drawn sizes meet such a number by chance only.
What passes is planned and replayed once more, with sizes just beyond these numbers and at their multiples. Most right
answers hold no number that the drawn sizes have not passed, so these cases cost them nothing.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator

import torch

from ..box import Outcome
from ..box.wire import Report
from ..diagnosis import diagnose
from ..exercises.cases import Strided
from ..exercises.design import TensorArgument
from ..verdict import Finding, Slug
from .large import blames
from .trials import Drawn, Trials, traces_of

LEAST, MOST = 100, 1 << 27  # of numbers that may bound a size
MOST_MODULUS = 512
SHORTEST = 16  # block
OUR_LIMITS = {Slug.TIMEOUT, Slug.OUT_OF_MEMORY}  # for sizes that we chose
FEW = 4  # cases; one of them may be about something else
FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
          ast.LShift: operator.lshift, ast.Pow: operator.pow}  # fmt: skip
ENDS = {"int16": 1 << 15, "uint16": 1 << 16, "short": 1 << 15}  # numbers of elements at which a type ends


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


def drawn(trials: Trials) -> list[Drawn]:
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


def finding(trials: Trials, cases: list[Drawn], plans: dict[int, Report | Outcome]) -> Finding | None:
    """What is wrong with an answer in these cases; None if nothing is, or if they take too long. plans: by case."""
    for i, plan in plans.items():
        if isinstance(plan, Report) and plan.error and blames(plan.error):
            return diagnose(trials.unplanned(cases[i], plan, True))
    seen = trials.replay({i: (cases[i], trace) for i, trace in traces_of(plans).items()})
    found = (diagnose(each) for each in seen.values() if not each.exceeded)
    return next((each for each in found if each and each.slug not in OUR_LIMITS), None)
