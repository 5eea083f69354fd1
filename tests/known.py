"""Answers of the galleries, kept as files or as edits."""

import functools
import zlib
from pathlib import Path

import torch

from autograder.exercises.cases import Strided
from autograder.gallery import answers_in
from autograder.tensors import each_place


def source_of(exercise: str, name: str) -> str:
    """name: of a right answer, or slug__name of a wrong one."""
    return next(known.source for known in answers_in(Path(__file__).parent, [exercise]) if known.name == name)


@functools.cache
def few() -> set[str]:
    """The labels of a right and a wrong answer of each exercise, as if by chance: by a checksum of their names."""
    mixed = sorted(answers_in(Path(__file__).parent), key=lambda known: zlib.crc32(known.name.encode()), reverse=True)
    return set({(known.exercise, known.slug is None): known.label for known in mixed}.values())


def tensor_of(argument: Strided) -> torch.Tensor:
    """The tensor that a case describes."""
    tensor = torch.empty_strided(argument.values.shape, argument.stride, dtype=argument.values.dtype)
    each_place(tensor).copy_(each_place(argument.values, argument.stride))
    return tensor
