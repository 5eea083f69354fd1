"""The exercises of the course, in the order of the syllabus. The module of each family exports EXERCISES."""

from __future__ import annotations

import importlib
import pkgutil

from workshop.advice import did_you_mean
from workshop.syllabus import SYLLABUS

from .spec import Exercise


class UnknownExercise(LookupError):
    pass


class _Exercises(dict[str, Exercise]):
    def __missing__(self, name: str) -> Exercise:
        raise UnknownExercise(f"there is no exercise {name!r}. {did_you_mean(name.lower(), self)}")


_modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
_found = {e.name: e for module in _modules for e in getattr(module, "EXERCISES", ())}
# By name. The message of UnknownExercise names similar ones.
EXERCISES = _Exercises({name: _found[name] for name in SYLLABUS if name in _found})
