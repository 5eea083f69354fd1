"""Answers of the galleries, kept as files or as edits."""

import functools
import zlib
from pathlib import Path

import torch
from said import SAID

from autograder.exercises.cases import Strided
from autograder.gallery import Known, answers_in
from autograder.tensors import each_place

LANDING = "landing"  # GALLERY=landing: what is judged before a change lands (.ci/run)


def source_of(exercise: str, name: str) -> str:
    """name: of a right answer, or slug__name of a wrong one."""
    return next(known.source for known in answers_in(Path(__file__).parent, [exercise]) if known.name == name)


def called(known: Known) -> str:
    """As in `said`: kind/exercise/name."""
    return f"{'wrong' if known.slug else 'right'}/{known.exercise}/{known.name}"


@functools.cache
def part(gallery: str | None) -> set[str]:
    """What a run with this GALLERY judges, as `called` names it. Any other word stands for everything.

    None: wrong answers only, so that each slug and each exercise is there. test_promises.py judges right ones.
    LANDING: these, the answers of `said`, and a right answer to each exercise.
    Answers of `said` come first; then it is as if by chance, by a checksum of their names.
    """
    everything = {called(known): known for known in answers_in(Path(__file__).parent)}
    if gallery not in (None, LANDING):
        return set(everything)
    names = sorted(everything, key=lambda name: (name not in SAID, zlib.crc32(name.encode())))
    if gallery == LANDING:
        right = {everything[name].exercise: name for name in reversed(names) if not everything[name].slug}
        return part(None) | SAID.keys() | set(right.values())
    chosen, seen = set(), set()
    names = [name for name in names if everything[name].slug]
    for new in (2, 1):  # answers with a new slug of a new exercise, then those with one of both
        for name in names:
            about = {everything[name].slug, everything[name].exercise}
            if len(about - seen) >= new:
                seen |= about
                chosen.add(name)
    return chosen


def tensor_of(argument: Strided) -> torch.Tensor:
    """The tensor that a case describes."""
    tensor = torch.empty_strided(argument.values.shape, argument.stride, dtype=argument.values.dtype)
    each_place(tensor).copy_(each_place(argument.values, argument.stride))
    return tensor
