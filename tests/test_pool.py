"""The pool of judges, with judges of straw."""

import os
import threading
import time

import pytest
from card_judge import Sees
from classroom import StrawJudge

from autograder.judge.jax import JaxMissing
from autograder.judge.pool import JudgePool, SturdyJudge, cards, side_by_side, size_here
from autograder.verdict import GRADER_ERROR, Finding, Verdict


class Counted(StrawJudge):
    """Counts who is open, and fails as the answer says."""

    opened, closed = [], []

    def __enter__(self):
        self.opened.append(self)
        return self

    def __exit__(self, *error):
        self.closed.append(self)

    def judge(self, exercise, source, seed=None):
        if source == "no jax":
            raise JaxMissing("install jax")
        if "once" in source and len(self.opened) == 1 or "always" in source:
            return Verdict(exercise, False, 0, 5, "interpreter", Finding(GRADER_ERROR, "The judge failed."))
        return super().judge(exercise, source)


@pytest.fixture(autouse=True)
def count():
    Counted.opened, Counted.closed = [], []


def test_each_item_is_judged_once_and_every_judge_is_closed():
    with JudgePool([Counted] * 3) as pool:
        done = dict(pool.each(lambda judge, n: judge.judge("vector_add", "'right'" if n % 2 else "half", n), range(20)))
    assert {n: verdict.passed for n, verdict in done.items()} == {n: bool(n % 2) for n in range(20)}
    assert len(Counted.opened) == 3 and set(Counted.opened) == set(Counted.closed)


def test_two_judges_work_at_the_same_time():
    both = threading.Barrier(2, timeout=60)
    with JudgePool([Counted] * 2) as pool:
        assert len(list(pool.each(lambda judge, n: both.wait(), range(4)))) == 4


def test_a_missing_library_costs_no_judge_and_a_fault_costs_two():
    with JudgePool([Counted]) as pool:
        judge = pool._judges[0]
        with pytest.raises(JaxMissing):
            judge.judge("vector_add", "no jax")
        assert len(Counted.opened) == 1
        with pytest.raises(RuntimeError, match="the judge broke"):
            judge.judge("vector_add", "boom")
        assert len(Counted.opened) == 2
        assert judge.judge("vector_add", "'right'").passed
    assert len(Counted.closed) == 3


def test_a_verdict_that_says_the_judge_failed_is_tried_again_by_a_new_one():
    with JudgePool([Counted]) as pool:
        [judge] = pool._judges
        assert judge.judge("vector_add", "'right' once").passed
        assert len(Counted.opened) == 2
        assert judge.judge("vector_add", "always").diagnosis == GRADER_ERROR
        assert len(Counted.opened) == 3


def test_where_one_judge_does_not_start_all_are_closed():
    class Second(Counted):
        def __enter__(self):
            super().__enter__()
            if len(self.opened) == 2:
                raise PermissionError("no confinement here")
            return self

    with pytest.raises(PermissionError), JudgePool([Second] * 2):
        pass
    assert len(Counted.closed) == 1


def test_who_stops_early_waits_for_no_more_than_what_began():
    begun = []

    def work(judge: SturdyJudge, n: int) -> None:
        begun.append(n)
        time.sleep(0.001)

    with JudgePool([Counted]) as pool:
        results = pool.each(work, range(10_000))
        next(results)
        results.close()
    assert len(begun) < 10_000
    assert Counted.closed == Counted.opened


CARDS = [{"CUDA_VISIBLE_DEVICES": "2"}, {"CUDA_VISIBLE_DEVICES": "GPU-5"}]


def test_each_judge_is_a_process_and_sees_one_card():
    both = threading.Barrier(2, timeout=60)

    def work(judge, n):
        both.wait()
        return judge.judge("vector_add", "'right'").note

    with JudgePool(side_by_side(Sees, 2, CARDS)) as pool:
        notes = {note for _, note in pool.each(work, range(4))}
        judge = pool._judges[0]
        with pytest.raises(JaxMissing):
            judge.judge("vector_add", "no jax")
        with pytest.raises(Exception, match="process ended, with status 3"):
            judge.judge("vector_add", "die")
        assert judge.judge("vector_add", "'right'").note.startswith("2 ")  # a new process, the same card
    seen, processes = zip(*(note.split() for note in notes))
    assert {*seen} == {"2", "GPU-5"} and len({*processes}) == 2 and str(os.getpid()) not in processes
    assert os.environ.get("CUDA_VISIBLE_DEVICES") is None


def test_one_judge_is_in_this_process_and_several_are_not():
    assert side_by_side(Sees, 8, CARDS[:1]) == side_by_side(Sees, 1) == [Sees]
    assert [each.args for each in side_by_side(Sees, 8, CARDS)] == [(Sees, card) for card in CARDS]
    assert [each.args for each in side_by_side(Sees, 3)] == [(Sees, {})] * 3


def test_there_is_a_judge_for_each_card_and_without_cards_for_each_processor(monkeypatch):
    assert cards() == [] and size_here([]) == os.cpu_count()
    monkeypatch.setattr("autograder.judge.pool.this_backend", lambda: "cuda")
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert cards() == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}] and size_here(cards()) == 2
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3, 5")
    monkeypatch.setattr("autograder.judge.pool.this_backend", lambda: "hip")
    assert cards() == [{"HIP_VISIBLE_DEVICES": "3"}, {"HIP_VISIBLE_DEVICES": "5"}]
