"""The exercises of the course, in the order of the syllabus. The module of each family exports EXERCISES."""

from __future__ import annotations

import importlib
import pkgutil
import runpy
from pathlib import Path

from workshop.advice import did_you_mean
from workshop.syllabus import SYLLABUS

from .spec import Exercise

EXERCISES: dict[str, Exercise] = {}


class UnknownExercise(LookupError):
    pass


def find(name: str) -> Exercise:
    """The exercise called `name`. The message of UnknownExercise names similar ones."""
    try:
        return EXERCISES[name]
    except KeyError:
        raise UnknownExercise(f"there is no exercise {name!r}. {did_you_mean(name.lower(), EXERCISES)}") from None


def add_from(folder: Path) -> list[str]:
    """Adds the EXERCISES of every Python file in `folder`, and returns their names.

    The files run with the rights of this process: they must belong to a course, not to a learner. Raises ValueError for
    a name that is in use.
    """
    added = [e for file in sorted(folder.glob("*.py")) for e in runpy.run_path(str(file)).get("EXERCISES", ())]
    for exercise in added:
        if exercise.name in EXERCISES:
            raise ValueError(f"there is an exercise {exercise.name!r} already")
        EXERCISES[exercise.name] = exercise
    return [exercise.name for exercise in added]


def _of_the_course() -> dict[str, Exercise]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found = {e.name: e for module in modules for e in getattr(module, "EXERCISES", ())}
    return {name: found[name] for name in SYLLABUS if name in found}


EXERCISES.update(_of_the_course())
