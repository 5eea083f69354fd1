"""Mutants: the course's solutions with one thing changed, and the names of mistakes that are fair for the change."""

from __future__ import annotations

import ast
import functools
import inspect
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest

import triton

from ..exercises import find
from ..exercises.spec import Exercise
from . import hosts, kernels, plain
from .fair import FAIR
from .roles import Roles, is_kernel
from .solutions import solution, starter
from .trees import Place, changed, first_line_changed, lines_changed, places


@dataclass(frozen=True)
class Mutant:
    """An answer with a mistake. `fair`: the slugs that name it. `change`: the lines that differ from the solution."""

    exercise: str
    source: str
    kind: str
    change: str

    @property
    def fair(self) -> frozenset[str]:
        return FAIR[self.kind]


MOST = {"syntax": 6, "unknown name in a kernel": 15, "unknown name on the host": 15}  # of one kind, which look alike


def mutants(exercise: str, count: int, seed: int) -> list[Mutant]:
    """`count` mutants of one exercise, or all that there are. The same arguments give the same mutants.

    The kinds take turns, so that a small number of mutants has many kinds.
    """
    shuffled = random.Random(f"{exercise} {seed}")
    groups: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in every_mutant(exercise):
        groups[mutant.kind].append(mutant)
    for kind, group in groups.items():
        shuffled.shuffle(group)
        del group[MOST.get(kind, len(group)) :]
    in_turn = zip_longest(*shuffled.sample(list(groups.values()), len(groups)))
    return [mutant for turn in in_turn for mutant in turn if mutant][:count]


@functools.cache
def every_mutant(exercise: str) -> tuple[Mutant, ...]:
    """All mutants with one mutation, in the order of the text; of equal ones, the first."""
    original, about = solution(exercise), find(exercise)
    tree = ast.parse(original)
    roles = Roles(tree, about.kind)
    made: dict[str, Mutant | None] = {original: None}
    known: set[str] = set()

    def add(source: str, kind: str, change: str = "") -> None:
        if source in made:
            return
        change = change or lines_changed(original, source)
        if change in known:  # passes over a row have lines in common
            change += f"\nin line {first_line_changed(original, source)}"
        known.add(change)
        made[source] = Mutant(exercise, source, kind, change)

    for place in places(tree):
        for new, kind in _changes(place, roles, about):
            add(ast.unparse(changed(tree, place.path, new)), kind)
    add(starter(exercise), "starter", "the starter")
    for source in _broken(original):
        add(source, "syntax")
    return tuple(filter(None, made.values()))


def _changes(place: Place, roles: Roles, about: Exercise):
    if _only_on_a_card(place) or _for_another_triton(place):
        return
    in_kernel = any(is_kernel(node) for node in (*place.parents, place.node))
    known = plain if about.kind == "value" else kernels if in_kernel else hosts
    role = roles.of(place)
    given = {"entry": about.entry, "dropout": about.kind == "jax"}
    for mutation in known.MUTATIONS:
        wanted = inspect.signature(mutation).parameters
        for new, kind in mutation(place, role, **{key: value for key, value in given.items() if key in wanted}):
            yield new, "configuration" if about.accept and kind.startswith("plain number") else kind


def _only_on_a_card(place: Place) -> bool:
    """Whether this place runs on a GPU only: it comes after `if interpreting(): return`."""
    for depth, parent in enumerate(place.parents):
        field, index = place.path[depth]
        if isinstance(parent, ast.FunctionDef) and field == "body":
            before = parent.body[:index]
            if any(isinstance(node, ast.If) and "interpreting" in ast.unparse(node.test) for node in before):
                return True
    return False


def _for_another_triton(place: Place) -> bool:
    """Whether this place is in a table by versions of Triton, and not in the line of this version."""
    for step, parent in zip(place.path, place.parents):
        if isinstance(parent, ast.Dict) and all(re.fullmatch(r"'\d\.\d+'", ast.unparse(key)) for key in parent.keys):
            return not triton.__version__.startswith(parent.keys[step[1]].value)
    return isinstance(place.node, ast.Dict) and "'3." in ast.unparse(place.node.keys[0])


def _broken(source: str):
    """Sources that Python cannot read: a colon, a bracket, a quotation mark or an indentation is missing."""
    lines = source.splitlines()
    for number, line in enumerate(lines):
        begins_block = line.endswith(":") and line.lstrip().startswith(("def ", "for ", "if "))
        for wrong in (
            line[:-1] if begins_block else None,
            line[:-1] if line.endswith(")") and "(" in line else None,
            f" {line}" if line.startswith("    ") and not lines[number - 1].endswith(":") else None,
        ):
            if wrong is not None:
                yield "\n".join([*lines[:number], wrong, *lines[number + 1 :]])
