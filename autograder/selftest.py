"""Tests the judge with galleries of right and wrong answers (`gallery`), and makes a table of its verdicts.

A right answer must pass. A wrong one must fail with its slug.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from packaging.specifiers import SpecifierSet

from . import gallery
from .exercises import EXERCISES
from .judge import Judge
from .judge.jax import JaxMissing
from .judge.pool import JudgePool, SturdyJudge
from .verdict import Verdict
from .versions import stack


@dataclass
class Answer:
    """A known answer and what the judge said. `expected` is the slug of a wrong answer, None for a right one."""

    known: gallery.Known
    expected: str | None
    verdicts: list[Verdict] = field(default_factory=list)
    skipped: str = ""  # why it could not be judged here

    @property
    def exercise(self) -> str:
        return self.known.exercise

    @property
    def is_right(self) -> bool:
        return self.expected is None

    @property
    def misjudged(self) -> bool:
        """Whether a wrong answer passed, or a right one did not, in any repetition."""
        return any(v.passed != self.is_right for v in self.verdicts)

    @property
    def named(self) -> bool:
        """Whether every repetition gave the expected diagnosis."""
        return all(v.diagnosis == self.expected for v in self.verdicts)

    @property
    def got(self) -> str:
        slugs = dict.fromkeys("passed" if v.passed else v.diagnosis or "no diagnosis" for v in self.verdicts)
        return ", ".join(slugs)


def answers_in(folder: Path, exercises: Iterable[str] | None = None) -> list[Answer]:
    """The answers of a gallery. One that needs another version of Triton must get the slug not-in-this-triton."""
    version = ".".join(stack()["triton"].split(".")[:2])
    return [
        Answer(known, known.slug if fits.contains(version) else "not-in-this-triton")
        for known in gallery.answers_in(folder, exercises)
        for fits in [SpecifierSet(known.needs.removeprefix("triton"))]  # "triton<3.9", or "" for all versions
    ]


def run(
    folder: Path,
    exercises: Iterable[str] | None = None,
    repeat: int = 1,
    workers: int | None = None,
    confine: bool = True,
    seed: int | None = None,
    chosen: Callable[[Answer], bool] = lambda answer: True,
) -> list[Answer]:
    """Judges every answer, or those that are chosen, `repeat` times. Each worker has its own judge and its own box.

    With a seed, the inputs are the same in every run, so the page of verdicts is the same too.
    """
    answers = [answer for answer in answers_in(folder, exercises) if chosen(answer)]
    workers = workers or min(os.cpu_count() or 1, 8)

    def judge_one(judge: SturdyJudge, answer: Answer) -> None:
        try:
            answer.verdicts = [judge.judge(answer.exercise, answer.known.source, seed) for _ in range(repeat)]
        except JaxMissing as missing:
            answer.skipped = str(missing)

    with JudgePool(min(workers, len(answers)), functools.partial(Judge, confine)) as pool:
        for _ in pool.each(judge_one, answers):
            pass
    return answers


def faultless(answers: list[Answer]) -> bool:
    """Whether no answer is misjudged, and at least 95% of the wrong ones get the expected diagnosis."""
    wrong = [a for a in answers if not a.is_right and not a.skipped]
    return not any(a.misjudged for a in answers) and sum(a.named for a in wrong) >= 0.95 * len(wrong)


def table(answers: list[Answer]) -> str:
    lines = [f"{'exercise':<24}{'right':>12}{'wrong':>12}{'named':>12}"]
    for name, group in _by_exercise(answers):
        lines.append(f"{name:<24}" + "".join(f"{cell:>12}" for cell in _counts(group)))
    lines.append(f"{'all':<24}" + "".join(f"{cell:>12}" for cell in _counts(answers)))
    for answer in _worst_first(answers):
        if answer.misjudged or not answer.named:
            word = "MISJUDGED" if answer.misjudged else "misnamed"
            lines.append(f"{word}  {answer.known.label}: expected {answer.expected or 'passed'}, got {answer.got}")
    lines += [f"not judged: {reason}" for reason in dict.fromkeys(a.skipped for a in answers if a.skipped)]
    if judged := [a for a in answers if a.verdicts]:
        lines.append(f"judged on: {judged[0].verdicts[0].backend}")
    return "\n".join(lines)


def to_json(answers: list[Answer]) -> dict:
    """Misjudged answers first, then misnamed ones."""
    judged = [a for a in answers if a.verdicts]
    return {
        "versions": stack(),
        "backend": judged[0].verdicts[0].backend if judged else None,
        "answers": len(answers),
        "misjudged": sum(a.misjudged for a in answers),
        "misnamed": sum(not a.named and not a.misjudged for a in answers),
        "results": [
            {
                "file": a.known.label,
                "exercise": a.exercise,
                "expected": a.expected or "passed",
                "got": a.got,
                "misjudged": a.misjudged,
                "named": a.named,
                "verdict": a.verdicts[0].to_json() if a.verdicts else None,
            }
            for a in _worst_first(answers)
        ],
    }


def page(answers: list[Answer]) -> str:
    """Every verdict of the gallery as the learner sees it, in Markdown with the panels' HTML."""
    parts = [
        "# What learners are told",
        "",
        "Generated by `autograder selftest --page VERDICTS.md`. One section per exercise, one verdict per "
        "wrong answer of the gallery in `tests/wrong`.",
    ]
    for name, group in _by_exercise(answers):
        parts += ["", f"## {name}"]
        for answer in group:
            if not answer.is_right:
                verdict = answer.verdicts[0]
                parts += ["", f"### {answer.known.name.replace('__', ': ').replace('_', ' ')}", ""]
                parts += [f"<pre>{escape(verdict.to_text())}</pre>"]
    return "\n".join(parts) + "\n"


def _by_exercise(answers: list[Answer]) -> Iterator[tuple[str, list[Answer]]]:
    for name in EXERCISES:
        if group := [a for a in answers if a.exercise == name and not a.skipped]:
            yield name, group


def _counts(answers: list[Answer]) -> tuple[str, str, str]:
    answers = [a for a in answers if not a.skipped]
    right, wrong = [a for a in answers if a.is_right], [a for a in answers if not a.is_right]
    return (
        f"{sum(not a.misjudged for a in right)}/{len(right)}",
        f"{sum(not a.misjudged for a in wrong)}/{len(wrong)}",
        f"{sum(a.named for a in wrong)}/{len(wrong)}",
    )


def _worst_first(answers: list[Answer]) -> list[Answer]:
    return sorted(answers, key=lambda a: (not a.misjudged, a.named))
