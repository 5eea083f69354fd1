"""Answers a minute that judges side by side manage: with one card and with all of this machine, or without a GPU.

    python benchmarks/cards.py --exercise fused_softmax --answers 24

The answers are the right ones of tests/right/, by turns. Each judge is a process that sees one card. Without a GPU
there are 1, 2, 4, … judges on the interpreter, up to one per processor.
"""

import argparse
import functools
import itertools
import json
import sys
import time
from datetime import date
from pathlib import Path

import workshop  # before the judge imports triton
from autograder.box import lockdown
from autograder.judge import Judge
from autograder.judge.pool import JudgePool, cards, side_by_side, size_here

ROOT = Path(__file__).resolve().parents[1]


def minutes(exercise: str, sources: list[str], size: int, bound: list[dict[str, str]], confine: bool) -> float:
    """Minutes for all answers, the start of the judges and their proof not counted. Exits where one does not pass."""
    with JudgePool(side_by_side(functools.partial(Judge, confine), size, bound)) as pool:
        ready = list(pool.each(lambda judge, source: judge.judge(exercise, source), sources[:size]))
        start = time.perf_counter()
        done = list(pool.each(lambda judge, source: judge.judge(exercise, source), sources))
        took = (time.perf_counter() - start) / 60
    for _, verdict in ready + done:
        if not verdict.passed:
            sys.exit(f"a right answer was not: {verdict.to_text()[:500]}")
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exercise", default="fused_softmax")
    parser.add_argument("--answers", type=int, default=24)
    parser.add_argument("--out", type=Path, help="write what was measured to this file, as JSON")
    chosen = parser.parse_args()
    answers = [path.read_text() for path in sorted((ROOT / "tests" / "right" / chosen.exercise).glob("*.py"))]
    sources = list(itertools.islice(itertools.cycle(answers), chosen.answers))
    confine, found, here = not lockdown.missing(), cards(), workshop.device()
    measured = {"device": here.name, "torch": here.torch, "triton": here.triton, "confined": confine}
    measured |= {"exercise": chosen.exercise, "date": date.today().isoformat()}
    most = size_here(found)
    sizes = {1, most} if found else {most, *(1 << power for power in range(most.bit_length()))}
    for size in sorted(sizes):
        took = minutes(chosen.exercise, sources, size, found[:size], confine)
        where = f"{'cards' if found else 'judges'}: {size}"
        measured[f"answers a minute, {where}"] = round(len(sources) / took, 1)
        print(f"{chosen.exercise}, {where}: {len(sources) / took:.1f} answers a minute")
    print(json.dumps(measured))
    if chosen.out:
        chosen.out.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
