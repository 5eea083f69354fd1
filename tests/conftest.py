"""workshop comes first: it has kernels run on the executor where there is no GPU."""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

import pytest
from chromium import browser, screenshots  # noqa: F401
from forking import Forks

# A validator that jsonschema does not need here takes a second to import.
sys.modules.setdefault("rfc3987_syntax", None)

# With Python's own threshold, which is 700, a third of the time of comparing sources goes into looking for garbage.
gc.set_threshold(20_000, 20, 50)

# What is tested is small: more threads of torch would wait for each other most of the time, in our subprocesses too.
os.environ["OMP_NUM_THREADS"] = "1"

# As in the box: a tensor that is freed gives its memory to the next one. The system would clear the pages of each.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # names of glibc; another C library may lack them
if limit := getattr(ctypes.CDLL(None), "mallopt", None):
    limit(M_MMAP_THRESHOLD, 32 << 20)
    limit(M_TRIM_THRESHOLD, 1 << 30)

import workshop  # noqa: E402, F401
from workshop.backend import uncollected  # noqa: E402


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """The tests import nbgrader, JAX and more."""
    with uncollected():
        return (yield)


@pytest.fixture(scope="session")
def judge():
    """One judge, with its box, for all the tests of a worker. Only with seed=None it draws other inputs in each run."""
    from autograder.box import lockdown
    from autograder.judge import Judge

    class Repeated(Judge):
        def judge(self, name, source, seed=1):
            return super().judge(name, source, seed)

        def verdict_on(self, exercise, source, seed=1):
            return super().verdict_on(exercise, source, seed)

    with Repeated(confine=not lockdown.missing()) as judge:
        yield judge


@pytest.fixture
def briefly(judge, monkeypatch):
    """For tests of the verdict alone: the judge looks for nothing to write in the place of a mistake."""
    monkeypatch.setattr(judge, "explains", False)


@pytest.fixture
def few(monkeypatch):
    """`with few()`: the judge draws all cases and tries the first three. What fails there fails with all of them."""
    from autograder.judge.jax import JaxTrials
    from autograder.judge.trials import Trials

    @contextlib.contextmanager
    def first_cases(count: int = 3):
        with monkeypatch.context() as patched:
            for kind in (Trials, JaxTrials):
                patched.setattr(kind, "draw", lambda trials, draw=kind.draw: draw(trials)[:count])
            yield

    return first_cases


@pytest.fixture(scope="session")
def forks():
    """Runs scripts without the time of their largest imports."""
    with Forks() as running:
        yield running


@pytest.fixture(scope="session")
def answers():
    """Known answers with their verdicts: the solutions, and those of `known.judged`. All cores judge."""
    from known import PAGE, called, judged, solved

    from autograder import selftest
    from autograder.gallery import answers_in

    chosen = judged()
    known = [each for each in answers_in(Path(__file__).parent) if called(each) in chosen]
    found = selftest.run([*solved(), *known], seed=1)
    if PAGE:
        Path(PAGE).write_text(selftest.page(found), encoding="utf-8")
    return found
