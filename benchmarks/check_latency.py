"""How long a learner waits for check("vector_add"), with a box that is open and with one yet to start.

    python benchmarks/check_latency.py --repeats 20

The answer is the course's own solution. Seconds of wall time: median, and the 20 % and 80 % quantiles.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

import workshop  # before the judge imports triton
from autograder.box import lockdown
from autograder.judge import Judge
from workshop.hints import solution_source

EXERCISE = "vector_add"
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n\n"


def seconds(call: Callable[[], object], repeats: int) -> list[float]:
    """The wall time of each of `repeats` calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def line(name: str, times: list[float]) -> str:
    low, *_, high = statistics.quantiles(times, n=5, method="inclusive") if len(times) > 1 else times * 2
    return f"{name}  {statistics.median(times):.2f} s  ({low:.2f} to {high:.2f}, {len(times)} checks)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="warm checks")
    parser.add_argument("--cold", type=int, default=3, help="checks that start a box first")
    chosen = parser.parse_args()
    source = IMPORTS + solution_source(EXERCISE)
    confine = not lockdown.missing()

    def cold() -> None:
        with Judge(confine=confine) as judge:
            judge.judge(EXERCISE, source)

    here = workshop.device()
    print(
        f"{here.name}, {os.cpu_count()} cores, torch {here.torch}, triton {here.triton}, confined: {confine}"
    )
    with Judge(confine=confine) as judge:
        verdict = judge.judge(EXERCISE, source)
        if not verdict.passed:
            sys.exit(f"{EXERCISE} did not pass ({verdict.diagnosis}): its time says nothing")
        print(f"{EXERCISE}: passed on the {verdict.backend}")
        print(line("warm", seconds(lambda: judge.judge(EXERCISE, source), chosen.repeats)))
    print(line("cold", seconds(cold, chosen.cold)))


if __name__ == "__main__":
    main()
