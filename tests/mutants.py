"""Mutants: the course's solutions with one small change. A mutant that computes something else must not be accepted.

    .venv/bin/python tests/mutants.py 300 --seed 7 [--exercise vector_add]

judges 300 of them and prints each that is accepted although it differs. A change is an operator, a constant, a sign,
two arguments that change places, an argument or a statement that is left out. The same seed makes the same mutants.

Some mutants compute the same: a guard of the host function is gone, or a grid has programs with nothing to do. So an
accepted mutant runs here beside the solution, on inputs drawn anew, and what both return is compared.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import functools
import itertools
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from executing import load
from known import tensor_of

import workshop  # noqa: F401  before triton: it says how kernels run here
from autograder.answer import from_history
from autograder.box.inside.plan import _asked_for
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Cotangent, Exercise, Strided, Varying
from autograder.judge import Judge
from autograder.judge.aligned import Difference
from autograder.judge.differences import undone
from autograder.judge.jax import JaxMissing
from autograder.judge.pool import JudgePool, SturdyJudge, side_by_side
from autograder.tensors import close
from autograder.verdict import Verdict
from workshop.executor.records import Fault
from workshop.hints import SOLUTIONS, answer_cell
from workshop.syllabus import SYLLABUS

# What is as right as the solution, although it computes something else: exercise, a changed line, and why.
ALSO_RIGHT = {
    ("leaky_dropout", "u0, u1, u2, u3 = tl.rand4x(seed, pid * QUARTER - lanes)"): "each element has its own counter",
    ("leaky_dropout", "u0, u1, u2, u3 = tl.rand4x(pid * QUARTER + lanes, seed)"): "each element has its own key",
    ("leaky_dropout", "quarter = 512"): "the counters have another order",
    ("leaky_dropout_grad", "quarter = 512"): "in both passes",
    ("cross_entropy", "block = min(triton.next_power_of_2(n), 16384)"): "long sums are rounded in another order",
}

OTHER_OPERATOR = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
    ast.Not: ast.UAdd,
}

LAYOUT = dict.fromkeys(map(ord, " \n\"'(),"))  # what ast.unparse may write in another way
LEFT_OUT = (ast.Assign, ast.AugAssign, ast.Return, ast.For, ast.If, ast.Expr)

Change = tuple[ast.AST, str, object]  # a node, one of its fields, and another value for it


@dataclass(frozen=True)
class Mutant:
    """A changed solution. `change`: the lines that differ from the solution, as `- old` and `+ new`."""

    exercise: str
    source: str
    change: str


def undoes(source: str, differences: tuple[Difference, ...], right: str) -> bool:
    """Whether a source without these differences is a right one, that `ast.unparse` wrote."""
    code = source.encode()
    for begin, end, text in sorted((edit for each in differences for edit in each.edits), reverse=True):
        code = code[:begin] + text.encode() + code[end:]
    same = code.decode(errors="replace").translate(LAYOUT) == _without_layout(right)
    # most are not, and this is soon known: `undone` reads each as Python
    return same and ast.unparse(ast.parse(undone(source, differences))) == right


@functools.lru_cache(4)
def _without_layout(source: str) -> str:
    return source.translate(LAYOUT)


@functools.cache
def solution(exercise: str) -> str:
    """The exercise's solution as the judge gets it from a notebook: with its imports, and earlier answers it needs."""
    about = EXERCISES[exercise]
    lesson = [name for name, each in SYLLABUS.items() if each.notebook == about.notebook]
    script = ast.parse((SOLUTIONS / f"{about.notebook}.py").read_text(encoding="utf-8"))
    imports = [ast.unparse(node) for node in script.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    cells = [answer_cell(name)[0] for name in lesson[: lesson.index(exercise) + 1]]
    return ast.unparse(ast.parse(from_history(["\n".join(imports), *cells], about.entry)))


def mutants(exercise: str, count: int, seed: int) -> list[Mutant]:
    """`count` mutants of one exercise: with one change as long as there are such, then with two."""
    original = solution(exercise)
    tree = ast.parse(original)
    changes = list(_changes(tree))
    random.Random(f"{exercise} {seed}").shuffle(changes)
    made = {original: None}
    for chosen in itertools.chain(zip(changes), itertools.combinations(changes, 2)):
        if len(made) > count:
            break
        source = _changed(tree, chosen)
        made.setdefault(source, Mutant(exercise, source, _lines_changed(original, source)))
    return [mutant for mutant in made.values() if mutant]


def _changed(tree: ast.Module, changes: tuple[Change, ...]) -> str:
    """The text of the tree with these changes. The tree stays as it was."""
    before = []
    for node, field, new in changes:
        before.append((node, field, getattr(node, field)))
        setattr(node, field, new)
    source = ast.unparse(tree)
    for node, field, old in reversed(before):
        setattr(node, field, old)
    return source


def _changes(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp, ast.UnaryOp)) and type(node.op) in OTHER_OPERATOR:
            yield node, "op", OTHER_OPERATOR[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_OPERATOR:
            yield node, "ops", [OTHER_OPERATOR[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            for value in {node.value + 1, node.value - 1, node.value * 2} - {node.value}:
                yield node, "value", value
        elif isinstance(node, ast.Call):
            for i in range(len(node.args) - 1):
                yield node, "args", [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
            for i in range(len(node.keywords)):
                yield node, "keywords", _without(node.keywords, i)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.For, ast.If)):
            for i, statement in enumerate(node.body):
                kept = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)  # a docstring
                if isinstance(statement, LEFT_OUT) and not kept:
                    yield node, "body", _without(node.body, i) or [ast.Pass()]


def _without(values: list, index: int) -> list:
    return values[:index] + values[index + 1 :]


def _lines_changed(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in list(lines)[2:] if line[0] in "+-" and line[1:])


# -- does it compute something else? -----------------------------------------------------------------------------------


def differs(mutant: Mutant, draws: int = 3) -> bool:
    """Whether an accepted mutant computes something else than the solution. draws: so often inputs are drawn."""
    about = EXERCISES[mutant.exercise]
    if about.accept or any((mutant.exercise, line[2:]) in ALSO_RIGHT for line in mutant.change.splitlines()):
        return False  # accept: several answers are right, and the exercise has the rule that says which
    answers = load(mutant.source), load(solution(mutant.exercise))
    for seed in range(101, 101 + (300 if about.kind == "value" else draws)):
        try:
            for (one, rounding), (other, _) in zip(
                *(_outputs(about, answer[about.entry], seed) for answer in answers), strict=True
            ):
                if not _alike(one, other, about, rounding):
                    return True
        except Fault:  # of the mutant: the solution has none
            return True
    return False


def _outputs(about: Exercise, function: Callable, seed: int) -> Iterator[tuple[object, float | torch.Tensor]]:
    """What an answer returns for each case, and how far sums may be rounded. Its inputs must stay as they were: they
    come, too."""
    generator = torch.Generator().manual_seed(seed)
    for case, arguments in [(each, each.make(generator)) for each in about.cases_of(generator)]:
        if about.kind == "jax":
            yield from ((each, 0.0) for each in _jax_outputs(about, function, arguments))
        else:
            given = [a.values if isinstance(a, Cotangent) else tensor_of(a) if isinstance(a, Strided) else a
                     for a in arguments]  # fmt: skip
            values = [a.values if isinstance(a, (Cotangent, Strided)) else a for a in arguments]
            of = {} if case.gradient is None else {"gradient": case.gradient}
            sums = about.sums(*values, **of) if about.sums else None
            result = _asked_for(case, function, list(given))
            bound = about.bounds.get(getattr(result, "dtype", None))
            yield result, bound.of_sums(sums).absolute if sums and bound else 0.0
            yield from ((tensor.detach(), 0.0) for tensor in given if isinstance(tensor, torch.Tensor))


def _jax_outputs(about: Exercise, function: Callable, arguments: tuple) -> Iterator[object]:
    import jax

    x, *given = (argument for argument in arguments if not isinstance(argument, Cotangent))
    given = [argument.values[0] if isinstance(argument, Varying) else argument for argument in given]
    x = jax.numpy.asarray(x.values.numpy())
    yield _torch(function(x, *given))
    for argument in arguments:
        if isinstance(argument, Cotangent):
            value, pullback = jax.vjp(lambda x: function(x, *given), x)
            yield from map(_torch, (value, *pullback(jax.numpy.asarray(argument.values.numpy()))))


def _torch(array) -> torch.Tensor:
    import numpy

    return torch.from_numpy(numpy.array(array))


def _alike(one: object, other: object, about: Exercise, rounding: float | torch.Tensor = 0.0) -> bool:
    """The same values, but for the order in which sums are rounded: their terms may be larger than they are.

    rounding: how far a right output may be from the reference, for sums of products.
    """
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return one == other
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    near = 16 * torch.finfo(one.dtype).eps if one.is_floating_point() else 0
    least = getattr(about.bounds.get(one.dtype), "absolute", 0.0)
    if about.sums is not None and other.numel():
        least = 16 * near * float(other.double().abs().max())
    return bool(close(one.double(), other.double(), near, least + 2 * rounding).all())


DIFFERS = "It computes something else than the solution."


class Comparing(Judge):
    """A judge whose note says of an accepted mutant whether it computes something else."""

    def judge(self, exercise: str, source: str, seed: int | None = None) -> Verdict:
        verdict = super().judge(exercise, source, seed)
        accepted = verdict.passed and differs(Mutant(exercise, source, _lines_changed(solution(exercise), source)))
        return replace(verdict, note=DIFFERS) if accepted else verdict


# -- the command ------------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="so many mutants, evenly over the exercises")
    parser.add_argument("--seed", type=int, default=0, help="choose other mutants (default: 0)")
    parser.add_argument("--exercise", action="append", choices=EXERCISES, help="only this one (may be repeated)")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="judges side by side")
    options = parser.parse_args(arguments)
    names, batch = options.exercise or list(EXERCISES), []
    made = sorted((mutants(name, options.count, options.seed) for name in names), key=len)
    for position, group in enumerate(made):  # what an exercise cannot give is taken from the others
        batch += group[: -(-(options.count - len(batch)) // (len(made) - position))]

    def judge_one(judge: SturdyJudge, mutant: Mutant) -> Verdict | None:
        try:
            return judge.judge(mutant.exercise, mutant.source)
        except JaxMissing:
            return None

    accepted = same = skipped = 0
    with JudgePool(side_by_side(Comparing, min(options.workers, len(batch)))) as pool:
        for judged, (mutant, verdict) in enumerate(pool.each(judge_one, batch), 1):
            if judged % 100 == 0:
                print(f"{judged} of {len(batch)} judged", file=sys.stderr, flush=True)
            skipped += verdict is None
            if verdict and verdict.note == DIFFERS:
                accepted += 1
                print(f"ACCEPTED {mutant.exercise}\n{mutant.change}\n", flush=True)
            elif verdict and verdict.passed:
                same += 1
    print(f"{len(batch)} mutants: {accepted} accepted, {same} that compute the same, {skipped} not judged")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
