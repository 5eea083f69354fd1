"""Variants: the course's solutions written differently. Each computes the same, so each must pass.

A variant is made in several steps. A step takes a tree, the kind of the exercise and a random generator, and returns a
new tree, or None where it finds nothing to rewrite.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass

from ..exercises import find
from . import expressions, structure
from .solutions import solution

Step = Callable[[ast.Module, str, random.Random], ast.Module | None]
STEPS: tuple[Step, ...] = structure.STEPS + expressions.STEPS


@dataclass(frozen=True)
class Variant:
    """A right answer. `change` names the steps that made it."""

    exercise: str
    source: str
    change: str


def variants(exercise: str, count: int, seed: int) -> list[Variant]:
    """`count` different variants, or fewer if so many are not found. The same arguments give the same variants."""
    chosen = random.Random(f"{exercise} {seed}")
    found: dict[str, Variant] = {solution(exercise): None}
    for _ in range(20 * count):
        tree, names = ast.parse(solution(exercise)), []
        for step in chosen.sample(STEPS, chosen.choice((1, 2, 3, 4, 6))):
            new = step(tree, find(exercise).kind, chosen)
            if new is not None:
                tree = ast.parse(ast.unparse(ast.fix_missing_locations(new)))
                names.append(step.__name__)
        source = ast.unparse(tree)
        found.setdefault(source, Variant(exercise, source, " + ".join(names)))
        if len(found) > count:
            break
    return [variant for variant in found.values() if variant]
