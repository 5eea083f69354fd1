"""Further calls of a host function in the process of the first ones: state that it keeps from call to call shows."""

from __future__ import annotations

import torch

from ..exercises.spec import Case, Exercise, Strided, Tag

ENOUGH = 64  # elements; a shorter case may look like another one
_UNFIT = {Tag.SHORT, Tag.EMPTY, Tag.DRAWN, Tag.WIDE, Tag.MANY, Tag.STRIDED, Tag.REPEAT}


def calls_again(exercise: Exercise, drawn: list) -> list[Case]:
    """Cases like the first ordinary one: with other values, with as many elements in another shape, in another dtype.

    drawn: the exercise's cases, with arguments. A case is left out where the exercise has one like it.
    """
    base = next((each for each in drawn if _ordinary(each)), None)
    if base is None:
        return []
    case, about = base.case, base.case.about | {Tag.AGAIN}
    cases = [Case(f"{case.name}, again", case.make, about)]
    if len(shapes := {tuple(a.values.shape) for a in base.tensors}) != 1:
        return cases
    (shape,) = shapes
    if len(shape) == 2 and shape[1] % 2 == 0:
        other = (2 * shape[0], shape[1] // 2)
        make = _changed(case, lambda values: values.reshape(other))
        cases.append(Case(f"{other[0]} × {other[1]}, as many elements as {shape[0]} × {shape[1]}", make, about))
    kinds = {_kind(each) for each in drawn}
    dtype = next((dtype for dtype in exercise.bounds if dtype != base.tensors[0].values.dtype), None)
    if dtype and len({shape for shape, _ in kinds}) == len(kinds):
        name = str(dtype).removeprefix("torch.")
        half = {Tag.HALF} if dtype.itemsize == 2 else set()
        cases.append(Case(f"{case.name}, {name}", _changed(case, lambda values: values.to(dtype)), about | half))
    return cases


def _ordinary(each) -> bool:
    return each.expected.numel() > ENOUGH and not each.case.gpu_only and not each.case.about & _UNFIT


def _kind(each) -> tuple:
    return tuple(a.values.shape for a in each.tensors), tuple(a.values.dtype for a in each.tensors)


def _changed(case: Case, change):
    def make(generator: torch.Generator):
        return tuple(Strided(change(a.values)) if isinstance(a, Strided) else a for a in case.make(generator))

    return make
