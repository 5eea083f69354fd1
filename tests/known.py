"""Answers of the galleries, kept as files or as edits."""

import functools
import os
import zlib
from pathlib import Path

import torch
from said import SAID

from autograder import lessons
from autograder.answer import from_notebook
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Strided
from autograder.gallery import SOLUTION, Known, answers_in
from autograder.tensors import each_place

PAGE = os.environ.get("GALLERY")  # the page of what learners are told; with it, all answers are judged


def source_of(exercise: str, name: str) -> str:
    """name: of a right answer, or slug__name of a wrong one."""
    return next(known.source for known in answers_in(Path(__file__).parent, [exercise]) if known.name == name)


def called(known: Known) -> str:
    """As in `said`: kind/exercise/name."""
    return f"{'wrong' if known.slug else 'right'}/{known.exercise}/{known.name}"


@functools.cache
def _known() -> dict[str, Known]:
    """By name, those of `said` first; then it is as if by chance, by a checksum of their names."""
    everything = {called(known): known for known in answers_in(Path(__file__).parent)}
    return dict(sorted(everything.items(), key=lambda each: (each[0] not in SAID, zlib.crc32(each[0].encode()))))


@functools.cache
def some() -> set[str]:
    """Wrong answers, as `called` names them, so that each slug and each exercise is there."""
    chosen, seen = set(), set()
    for new in (2, 1):  # answers with a new slug of a new exercise, then those with one of both
        for name, known in _known().items():
            about = {known.slug, known.exercise}
            if known.slug and len(about - seen) >= new:
                seen |= about
                chosen.add(name)
    return chosen


def judged() -> set[str]:
    """What is judged, the same in every run: with a PAGE all; otherwise some wrong answers, those of `said`, and a
    right one to each exercise."""
    known = _known()
    right = {known[name].exercise: name for name in reversed(known) if not known[name].slug}
    return set(known) if PAGE else some() | SAID.keys() | set(right.values())


@functools.cache
def notebooks() -> dict:
    """Those with the solutions, by lesson."""
    return {script.stem: lessons.source_notebook(script) for script in lessons.scripts()}


def answers_of(found: dict) -> dict[str, str]:
    """What the judge gets of each exercise in these notebooks."""
    found = {e.name: from_notebook(found[e.notebook], e) for e in EXERCISES.values() if e.notebook in found}
    return {name: source for name, source in found.items() if source}


@functools.cache
def solutions() -> dict[str, str]:
    return answers_of(notebooks())


@functools.cache
def starters() -> dict[str, str]:
    return answers_of({name: lessons.release(notebook) for name, notebook in notebooks().items()})


def solved() -> list[Known]:
    """The solutions, as right answers."""
    files = {name: Path(f"solutions/{EXERCISES[name].notebook}.py") for name in solutions()}
    return [Known(files[name], SOLUTION, name, source) for name, source in solutions().items()]


def tensor_of(argument: Strided) -> torch.Tensor:
    """The tensor that a case describes."""
    tensor = torch.empty_strided(argument.values.shape, argument.stride, dtype=argument.values.dtype)
    each_place(tensor).copy_(each_place(argument.values, argument.stride))
    return tensor
