"""An answer has a budget of charged time, a loaded machine changes no verdict, and no answer's run outlives it."""

import json
import multiprocessing
import os
import time
from dataclasses import replace

import pytest

from autograder.box.inside.zygote import Charge
from autograder.exercises import EXERCISES
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge import ANSWER_LIMITS

LIMIT = 0.6  # seconds; the exercises' own limit is 10
ENDLESS = "i = pid\n    while i < 2000000000:\n        i += 1\n    "
NEVER = "while pid >= 0:\n        pass\n    "
ANSWER_SECONDS = 60


@pytest.fixture
def short():
    return replace(EXERCISES["vector_add"], limit_seconds=LIMIT)


def charged(judge, exercise, source):
    """The verdict, and the charged seconds of all jobs together."""
    verdict = judge.verdict_on(exercise, source)
    return verdict, ANSWER_LIMITS * exercise.limit_seconds - judge.seconds_left


def add_with(old, new):
    assert old in ADD_TEMPLATE
    return ADD_TEMPLATE.replace(old, new)


# -- what is charged ----------------------------------------------------------------------------------------


def spin(seconds):
    """On one core, so that others are not loaded."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def charge_of(target, *arguments):
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    start, charge = time.monotonic(), Charge(process.pid)  # the wall clock runs around the charge's own
    while process.is_alive():
        time.sleep(0.05)
        charge.update()
    return charge, time.monotonic() - start


def test_a_process_is_not_charged_for_waiting_for_a_core():
    context = multiprocessing.get_context("fork")
    others = [context.Process(target=spin, args=(60,), daemon=True) for _ in range(4)]
    for other in others:
        other.start()
    try:
        charge, wall = charge_of(spin, 0.3)
    finally:
        for other in others:
            other.kill()
    assert wall > 0.9, "the core was not loaded"
    assert charge.seconds < 0.5 * wall
    assert 0.2 < charge.computed < 0.5


def test_a_process_is_charged_for_sleeping():
    charge, wall = charge_of(time.sleep, 0.6)
    assert 0.5 < charge.seconds <= wall and charge.computed < 0.2


@pytest.mark.parametrize(
    ("slow", "seconds", "work", "exceeded"),
    [(1.0, 60, "pass", "time"), (2.0, 60, "pass", "time"), (3.0, 2, "pass", None), (3.0, 60, "time.sleep(2)", "time")],
)
def test_a_slow_machine_has_more_time_to_compute(slow, seconds, work, exceeded, forks):
    code = f"""
import json, os, time
from autograder.box.inside import zygote
from autograder.box.wire import Settings

zygote.slowness = lambda: {slow}
if not (child := os.fork()):
    while time.process_time() < {seconds}:
        {work}
    os._exit(0)
settings = Settings("interpreter", False, "/tmp", 1 << 33, (), ())
print(zygote._wait(child, 1.0, 1.0, settings, set()).decode())
"""
    answer = forks.run(code)
    end = json.loads(answer.stdout)
    assert end.get("exceeded") == exceeded, answer.stderr
    assert exceeded or end["seconds"] < 1.0  # charged are those of the machine on which the limits were chosen


def test_how_slow_the_machine_is_follows_from_work_and_not_from_the_clock(forks):
    code = """
from autograder.box.inside import zygote

zygote._warm_up_executor()
print(1.0 <= zygote.slowness() <= zygote.MOST_SLOW)
zygote.USUAL /= 1000
print(zygote.slowness() == zygote.MOST_SLOW)
"""
    answer = forks.run("import workshop\n" + code)
    assert answer.stdout == "True\nTrue\n", answer.stderr


# -- budgets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import time\ndef add(x, y):\n    while True:\n        time.sleep(0.01)\n",
        "import time\ndef add(x, y):\n    while True:\n        time.sleep(0.0002)\n        sum(range(100))\n",
        f"import time\ntime.sleep({0.8 * LIMIT})\n{ADD_TEMPLATE}",
        "import time\n" + add_with("    output = torch", f"    time.sleep({0.6 * LIMIT})\n    output = torch"),
        add_with("output = x + y", f"{ENDLESS}output = x + y"),
        add_with("output = x + y", f"{NEVER}output = x + y"),
    ],
    ids=["sleeps", "sleeps and computes", "sleeps once", "sleeps in each case", "endless kernel", "changes nothing"],
)
def test_no_answer_takes_more_than_its_budget(judge, short, source):
    verdict, seconds = charged(judge, short, source)
    assert seconds <= ANSWER_LIMITS * LIMIT, verdict.to_text()
    assert verdict.passed or verdict.diagnosis == "timeout", verdict.to_text()


def test_no_answer_has_a_budget_of_more_than_a_minute():
    assert max(ANSWER_LIMITS * exercise.limit_seconds for exercise in EXERCISES.values()) <= ANSWER_SECONDS


# -- blanks ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("briefly")
def test_a_blank_that_takes_too_long_does_not_take_the_others_along(judge, short, monkeypatch):
    short = replace(short, limit_seconds=4.0)  # a blank has a quarter of it: a wait for the disk must fit too
    run = judge.run  # here the whole answer has a quarter, too: it would use up all
    monkeypatch.setattr(judge, "run", lambda *job, share=1.0, **how: run(*job, share=min(share, 0.25), **how))
    slow = " + ".join(["tl.sum(tl.cumsum(tl.zeros([1048576], tl.int32), 0), 0)"] * 20)
    source = add_with("mask = offsets < n_elements", f"mask = offsets < n_elements + {slow}")
    # A blank like the template's is not run: another one stands behind the slow one.
    source = source.replace("tl.load(x_ptr + offsets, mask=mask)", "tl.load(x_ptr + offsets, mask=mask, other=0.0)")
    assert "other=0.0" in source
    verdict = judge.verdict_on(short, source)
    assert verdict.diagnosis == "timeout", verdict.to_text()
    assert [name for name, right in verdict.blanks.items() if not right] == ["mask"], verdict.to_text()
    assert verdict.score == 4


@pytest.mark.usefixtures("briefly")
def test_hostile_neighbours_change_no_partial_credit(judge, short):
    """The verdict on an answer is the same first, after an endless one, and after one that dies."""
    exercise = EXERCISES["vector_add"]
    partly = add_with("mask = offsets < n_elements", "mask = offsets < n_elements - 1")
    neighbours = [
        add_with("output = x + y", f"{ENDLESS}output = x + y"),
        "import os\nos._exit(0)\n",
        "import time\ntime.sleep(100)\n",
        add_with("x_ptr + offsets,", "x_ptr + offsets * 1000000007,"),
    ]
    before = judge.verdict_on(exercise, partly)
    for neighbour in neighbours:
        assert not judge.verdict_on(short, neighbour).passed
        after = judge.verdict_on(exercise, partly)
        assert (after.score, after.blanks, after.diagnosis) == (before.score, before.blanks, before.diagnosis)
