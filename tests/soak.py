"""A soak: does a verdict depend on the answer alone?

    python tests/soak.py [--answers N] [--rounds R] [--seed S]

Judges N answers of the galleries, each by a judge of its own on a quiet machine. Then judges the same answers R times
in shuffled orders, by one long-lived judge per core, with a hostile answer of tests/attacks before each. Every second
round has other programs beside it, twice as many as the machine has cores. All draw the same inputs. Prints every
verdict that changed. Exit status 1 when one did, or when the judge was to blame for one (grader-error).
"""

import argparse
import contextlib
import functools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

from probes import ROOT

from autograder.exercises import EXERCISES
from autograder.gallery import answers_in
from autograder.judge import Judge
from autograder.judge.pool import JudgePool, SturdyJudge, side_by_side, size_here
from autograder.verdict import GRADER_ERROR, Verdict

TESTS = ROOT / "tests"
Answer = tuple[str, str, str]  # an exercise, how the answer is named, its source


def gallery(count: int, chance: random.Random) -> list[Answer]:
    """`count` answers, as many right as wrong ones of each exercise where there are enough."""
    groups = {}
    for answer in answers_in(TESTS):
        groups.setdefault((answer.exercise, answer.slug is None), []).append(answer)
    for group in groups.values():
        chance.shuffle(group)
    chosen = []
    while len(chosen) < count and any(groups.values()):
        for group in groups.values():
            if group:
                answer = group.pop()
                chosen.append((answer.exercise, answer.label, answer.source))
    return chosen[:count]


def hostile() -> list[Answer]:
    """The attacks that are answers. What they aim at outside does not exist here."""
    found = sorted(path for name in EXERCISES for path in (TESTS / "attacks" / name).glob("[0-9]*.py"))
    return [(path.parent.name, str(path), path.read_text(encoding="utf-8")) for path in found]


def judged(judge, answer: Answer, seed: int) -> Verdict:
    return judge.judge(answer[0], answer[2], seed)


def essence(verdict: Verdict) -> dict:
    """What must not change: the points, the name, each case and each blank. Words may name a place in memory."""
    said = verdict.to_json()
    cases = [(case["name"], case["passed"], case["diagnosis"]) for case in said["cases"]]
    return {key: said[key] for key in ("score", "diagnosis", "blanks")} | {"cases": cases}


@contextlib.contextmanager
def other_programs(count: int) -> Iterator[None]:
    """`count` processes that compute all the time."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: sum(range(10**6))"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def alone(answers: list[Answer], seed: int) -> dict[Answer, dict]:
    found = {}
    for number, answer in enumerate(answers, 1):
        with Judge() as judge:
            found[answer] = essence(judged(judge, answer, seed))
        if number % 50 == 0:
            print(f"  {number} of {len(answers)}", flush=True)
    return found


def together(answers: list[Answer], chance: random.Random, seed: int) -> Iterator[tuple[Answer, dict]]:
    """The verdicts of `answers` in another order, on judges that hostile answers use too."""
    order = [each for answer in chance.sample(answers, len(answers)) for each in (chance.choice(hostile()), answer)]
    with JudgePool(side_by_side(functools.partial(Judge, True), size_here([]))) as pool:

        def one(judge: SturdyJudge, answer: Answer) -> Verdict:
            return judged(judge, answer, seed)

        for answer, verdict in pool.each(one, order):
            if answer in answers:
                yield answer, essence(verdict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    answers = gallery(options.answers, chance)
    began = time.monotonic()
    print(f"alone: {len(answers)} answers, a judge for each", flush=True)
    expected = alone(answers, options.seed)
    changed = Counter()
    for number in range(1, options.rounds + 1):
        programs = 2 * (os.cpu_count() or 1) if number % 2 == 0 else 0
        print(f"round {number}: {programs} other programs, a hostile answer before each", flush=True)
        with other_programs(programs):
            for answer, got in together(answers, chance, options.seed):
                if got != expected[answer]:
                    changed[answer] += 1
                    print(f"CHANGED  {answer[1]}")
                    print(f"  alone:    {json.dumps(expected[answer])}\n  together: {json.dumps(got)}", flush=True)
    blamed = [answer[1] for answer, verdict in expected.items() if verdict["diagnosis"] == GRADER_ERROR]
    print(f"{len(answers)} answers, {options.rounds} rounds: {sum(changed.values())} verdicts changed")
    print(f"{time.monotonic() - began:.0f} s on {os.cpu_count()} cores")
    print("\n".join(f"grader-error alone: {name}" for name in blamed))
    return 1 if changed or blamed else 0


if __name__ == "__main__":
    sys.exit(main())
