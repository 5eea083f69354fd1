"""Judges mutants and variants, and says how well the judge did: what it accepted, misnamed or refused."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..exercises import EXERCISES
from ..judge import Judge
from ..judge.jax import JaxMissing
from ..judge.pool import JudgePool, SturdyJudge
from ..verdict import Verdict
from .right import Variant, variants
from .wrong import Mutant, mutants

RIGHT_SHARE = 6  # one variant for so many mutants
ASKED_NAMES = 0.95  # the share of mutants that must get a fair name


@dataclass
class Judged:
    """A mutant or a variant, and its verdict. `skipped` says why there is none."""

    answer: Mutant | Variant
    reason: str = ""  # why this mutant is equivalent to the solution, from the kept list
    verdict: Verdict | None = None
    skipped: str = ""

    @property
    def is_mutant(self) -> bool:
        return isinstance(self.answer, Mutant)

    @property
    def fault(self) -> str:
        """What the judge did wrong; empty if it did nothing wrong."""
        if self.verdict is None:
            return ""
        if not self.is_mutant:
            return "" if self.verdict.passed else "REFUSED"
        if self.reason:
            return "" if self.verdict.passed else "LISTED AS EQUIVALENT"
        if self.verdict.passed:
            return "ACCEPTED"
        return "" if self.verdict.diagnosis in self.answer.fair else "unfair name"


def run(
    count: int,
    equivalents: Path,
    exercises: Iterable[str] | None = None,
    seed: int = 0,
    jobs: int = 1,
    confine: bool = True,
    progress: Callable[[int, int, Judged], None] = lambda done, of, judged: None,
) -> list[Judged]:
    """Judges `count` mutants and a sixth as many variants, evenly over the exercises.

    Raises ValueError if the list of equivalent mutants cannot be read.
    """
    names = list(exercises or EXERCISES)
    reasons = read_equivalents(equivalents)
    chosen = _evenly(mutants, names, count, seed)
    batch = [Judged(mutant, reasons.get((mutant.exercise, mutant.change), "")) for mutant in chosen]
    batch += [Judged(variant) for variant in _evenly(variants, names, -(-count // RIGHT_SHARE), seed)]

    def judge_one(judge: SturdyJudge, judged: Judged) -> None:
        try:
            judged.verdict = judge.judge(judged.answer.exercise, judged.answer.source, seed)
        except JaxMissing as missing:
            judged.skipped = str(missing)

    with JudgePool(min(jobs, len(batch)), functools.partial(Judge, confine)) as pool:
        for number, (judged, _) in enumerate(pool.each(judge_one, batch), 1):
            progress(number, len(batch), judged)
    return batch


def _evenly(make: Callable, names: list[str], count: int, seed: int) -> list:
    """`count` answers over the exercises. What an exercise cannot give is taken from the others."""
    found, room = [], count
    everything = sorted(([*make(name, count, seed)] for name in names), key=len)
    for position, answers in enumerate(everything):
        share = -(-room // (len(everything) - position))
        found += answers[: min(share, room)]
        room = count - len(found)
    return found


def read_equivalents(path: Path) -> dict[tuple[str, str], str]:
    """(exercise, changed lines) -> why such a mutant is as right as the solution. Raises ValueError for a bad file."""
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
        return {
            (exercise, "\n".join(line.strip() for line in change.split("\n") if line.strip())): each["reason"].strip()
            for each in listed
            for exercise in each["exercises"]
            for change in each["changes"]
        }
    except FileNotFoundError:
        return {}
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path.name}: {error!r}; expected [[equivalent]] with reason, exercises, changes") from None


def faultless(batch: list[Judged]) -> bool:
    """None accepted, no variant refused, and at least 95% of the mutants named fairly."""
    faults = [judged.fault for judged in batch]
    named = sum(1 for judged in batch if _counts_as_wrong(judged))
    return not set(faults) - {"", "unfair name"} and faults.count("unfair name") <= (1 - ASKED_NAMES) * named


def _counts_as_wrong(judged: Judged) -> bool:
    return judged.is_mutant and judged.verdict is not None and not judged.reason


def table(batch: list[Judged]) -> str:
    """A line per exercise."""
    titles = ("mutants", "equivalent", "accepted", "named fairly", "right", "refused")
    lines = ["", f"{'exercise':<24}" + "".join(f"{title:>14}" for title in titles)]
    for name in EXERCISES:
        if group := [judged for judged in batch if judged.answer.exercise == name and judged.verdict]:
            lines.append(_line(name, group))
    lines.append(_line("all", [judged for judged in batch if judged.verdict]))
    lines += [f"not judged: {reason}" for reason in dict.fromkeys(j.skipped for j in batch if j.skipped)]
    return "\n".join(lines)


def to_json(batch: list[Judged]) -> list[dict]:
    """One object for each mutant and variant, in the order of the batch."""
    return [
        {
            "exercise": judged.answer.exercise,
            "kind": judged.answer.kind if judged.is_mutant else "variant",
            "change": judged.answer.change,
            "fair": sorted(judged.answer.fair) if judged.is_mutant else [],
            "equivalent": judged.reason,
            "fault": judged.fault,
            "passed": judged.verdict.passed,
            "diagnosis": judged.verdict.diagnosis,
            "message": judged.verdict.message,
            "source": judged.answer.source,
        }
        for judged in batch
        if judged.verdict
    ]


def described(judged: Judged) -> str:
    """What the judge did wrong, with the change that it was about."""
    answer, verdict = judged.answer, judged.verdict
    what = answer.kind if judged.is_mutant else "variant"
    named = f" as {verdict.diagnosis}; fair: {', '.join(sorted(answer.fair))}" if judged.fault == "unfair name" else ""
    said = "" if verdict.passed else f"\n    said: {verdict.message.splitlines()[0]}"
    change = "\n    ".join(answer.change.splitlines())
    return f"{judged.fault}  {answer.exercise}: {what}{named}\n    {change}{said}"


def _line(name: str, group: list[Judged]) -> str:
    wrong = [judged for judged in group if _counts_as_wrong(judged)]
    right = [judged for judged in group if not judged.is_mutant]
    faults = [judged.fault for judged in group]
    named = sum(not judged.fault for judged in wrong)
    cells = (
        len(wrong),
        sum(bool(judged.reason) for judged in group),
        faults.count("ACCEPTED"),
        f"{named} ({named / len(wrong):.1%})" if wrong else "-",
        len(right),
        faults.count("REFUSED"),
    )
    return f"{name:<24}" + "".join(f"{cell:>14}" for cell in cells)
