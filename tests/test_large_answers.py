"""Answers that are right at the sizes of every case, and wrong at larger ones: an edit of a solution for each class."""

import pytest
from known import source_of

from autograder import gallery
from autograder.exercises import EXERCISES
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge import KernelJudgement, consistency, trials

SEED = 20  # of the sizes that are drawn
OTHER_SEED = 24  # it draws few rows of matmul, so that each lane can be looked at, and many of row_sum

ADD = {
    "a grid that ends": ("(triton.cdiv(n_elements, 256),)", "(min(triton.cdiv(n_elements, 256), 60_000),)"),
    "programs that come again": ("pid * BLOCK_SIZE", "pid % 16384 * BLOCK_SIZE"),
    "offsets of 16 bits without a sign": ("pid * BLOCK_SIZE", "(pid * BLOCK_SIZE).to(tl.uint16)"),
    "offsets as float32": ("tl.arange(0, BLOCK_SIZE)", "tl.arange(0, BLOCK_SIZE).to(tl.float32)"),
    "another sum far away": ("output = x + y", "output = tl.where(offsets < 16_777_216, x + y, x - y)"),
}
SOFTMAX = {
    "rows that end": "tl.minimum(tl.program_id(0), 9999)",
    "a row number of 16 bits": "tl.program_id(0).to(tl.int16).to(tl.int32)",
}


def edited(source: str, old: str, new: str) -> str:
    assert old in source
    return source.replace(old, new)


@pytest.fixture
def fails_beyond_its_cases(judge, monkeypatch):
    """Whether an answer to an exercise, with a seed, fails in the steps at sizes that no case has. Only they run."""
    steps = KernelJudgement.on_other_machines, KernelJudgement.at_large_sizes, KernelJudgement.beyond_its_numbers
    monkeypatch.setattr(KernelJudgement, "STEPS", steps)
    monkeypatch.setattr(consistency, "_calls", lambda trials: [])  # on other machines: the first step plans sizes, too

    def found(name, source, seed):
        return judge.verdict_on(EXERCISES[name], source, seed).diagnosis not in (None, "grader-error")

    def fails(name, source, seed):
        with monkeypatch.context() as patched:  # sizes beyond its numbers are asked about last: drawn if need be
            patched.setattr(trials, "calls_beyond", lambda *_: [])
            if found(name, source, seed):
                return True
        return found(name, source, seed)

    return fails


@pytest.mark.parametrize("name", ADD)
def test_a_sum_that_is_wrong_for_large_vectors_only(fails_beyond_its_cases, name):
    source = edited(ADD_TEMPLATE, *ADD[name])
    if "float32" in name:  # a pointer takes integers
        source = edited(source, "offsets < n_elements", "offsets < n_elements\n    offsets = offsets.to(tl.int32)")
    assert fails_beyond_its_cases("vector_add", source, SEED)


@pytest.mark.parametrize("name", SOFTMAX)
def test_a_softmax_that_is_wrong_for_many_rows_only(fails_beyond_its_cases, name):
    source = gallery.solution("naive_softmax")
    number = "tl.program_id(0)" if "tl.program_id(0)" in source else "tl.program_id(axis=0)"
    assert fails_beyond_its_cases("naive_softmax", edited(source, number, SOFTMAX[name]), SEED)


# What no case can hold, of one dimension each: a loop or a grid that ends, narrow numbers, a promise, atomics.
ELSEWHERE = {
    ("matmul", "a walk that ends"): ("range(0, k, BLOCK_K)", "range(0, tl.minimum(k, 16384), BLOCK_K)"),
    ("matmul", "rows of 16 bits"): (
        "(pid_m * BLOCK_M + tl.arange(0, BLOCK_M))", "(pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int16)"
    ),
    ("decode_attention", "a cache that ends"): ("range(0, t, ROWS)", "range(0, tl.minimum(t, 16384), ROWS)"),
    ("decode_attention", "a promise"): ("    m = -float", "    tl.assume(t < 32768)\n    m = -float"),
    ("int8_decode_attention", "heads that end"): ("int8_kernel[(heads,)]", "int8_kernel[(min(heads, 64),)]"),
    ("paged_decode_attention", "a length that ends"): ("(0, length, PAGE)", "(0, tl.minimum(length, 8192), PAGE)"),
    ("cross_entropy", "columns that end"): ("(m, triton.cdiv(n, block))", "(m, min(32, triton.cdiv(n, block)))"),
    ("rms_norm", "a gradient that ends"): ("first + part_rows, m)", "first + part_rows, tl.minimum(m, 9999))"),
    ("row_sum", "rows that end"): ("[(n_rows,)]", "[(min(n_rows, 400_000),)]"),
}  # fmt: skip


@pytest.mark.parametrize("name, what", ELSEWHERE)
def test_what_is_wrong_for_one_large_dimension_only(fails_beyond_its_cases, name, what):
    assert fails_beyond_its_cases(name, edited(gallery.solution(name), *ELSEWHERE[name, what]), OTHER_SEED)


def test_what_is_right_stays_right(judge):
    for seed in (SEED, SEED + 1):
        assert judge.judge("vector_add", ADD_TEMPLATE, seed=seed).passed


def test_a_block_that_is_chosen_by_the_size_is_compiled_with_the_promises_of_other_sizes(judge, monkeypatch):
    """With this seed, the only matrix whose both sides are large has rows of a multiple of 16: then less is enough."""
    steps = KernelJudgement.on_other_machines, KernelJudgement.in_the_compilers
    monkeypatch.setattr(KernelJudgement, "STEPS", steps)
    monkeypatch.setattr(consistency, "_calls", lambda trials: [])
    source = source_of("transpose", "out-of-memory__large_tiles_for_large_matrices")
    assert judge.verdict_on(EXERCISES["transpose"], source, 51).diagnosis == "out-of-memory"
