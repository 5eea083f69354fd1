"""The exercises of the course, in the order of the syllabus. The module of each family exports EXERCISES."""

from __future__ import annotations

import importlib
import pkgutil

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


def _of_the_course() -> dict[str, Exercise]:
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found = {e.name: e for module in modules for e in getattr(module, "EXERCISES", ())}
    return {name: found[name] for name in SYLLABUS if name in found}


EXERCISES.update(_of_the_course())
