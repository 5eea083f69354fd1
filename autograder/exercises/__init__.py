"""The exercises of the course, in its order. Each family has a module that exports EXERCISES."""

from __future__ import annotations

from importlib import import_module

from .spec import Exercise

_FAMILIES = ("first_kernel", "vector_add", "softmax", "arithmetic", "dropout", "amd")

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for exercise in sorted(
        (e for family in _FAMILIES for e in import_module(f"{__name__}.{family}").EXERCISES),
        key=lambda e: e.notebook,
    )
}


class UnknownExercise(LookupError):
    pass


def find(name: str) -> Exercise:
    """The exercise called `name`; UnknownExercise says which ones there are."""
    try:
        return EXERCISES[name]
    except KeyError:
        raise UnknownExercise(f"there is no exercise {name!r}; there are: {', '.join(EXERCISES)}") from None
