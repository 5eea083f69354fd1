"""Answers that are right for the drawn sizes, and wrong beyond a number that stands in them."""

import pytest

from autograder import gallery
from autograder.answer import whole_numbers

SEED = 3


def test_the_numbers_of_a_source():
    source = "A = 1 << 20\nB = x[:12_000]\nC = 3 * 2**10 - 1\nD = y.to(tl.int16)\nE = y >> 14\nF = 40 * BLOCK"
    bounds = {1 << 20, 12_000, 3071, 1 << 15, 1 << 14}
    of_blocks = {40 << 20, 40 << 15, 40 << 14}
    assert whole_numbers(source) == (sorted(bounds | of_blocks), [])
    assert whole_numbers("a = n % 24 == 0 or not n & 63\nb = 7\nc = 2.5e3") == ([2500], [24, 64])


LATER = {
    ("decode_attention", "a third read"): (
        "    tl.store(output_ptr + head * D",
        "    if t > 5_000:\n"
        "        for again in range(0, 2):\n"
        "            for start in range(0, t, ROWS):\n"
        "                rows = start + tl.arange(0, ROWS).to(tl.int64)\n"
        "                places = head * k_head + rows[:, None] * k_row + columns[None, :]\n"
        "                k = tl.load(k_ptr + places, (rows < t)[:, None], other=0.0)\n"
        "                acc += 0.0 * tl.sum(k.to(tl.float32), axis=0)\n"
        "    tl.store(output_ptr + head * D",
    ),
    ("matmul", "half precision"): (
        "        a_ptrs += BLOCK_K * a_column",
        "        acc = acc.to(tl.float16).to(tl.float32) if k > 9000 else acc\n        a_ptrs += BLOCK_K * a_column",
    ),
    ("cross_entropy", "a target of few bits"): ("columns == target", "columns == (target & 0x7fff)"),
    ("cross_entropy", "columns that end"): ("columns < n, other=-f", "columns < tl.minimum(n, 150_000), other=-f"),
    ("row_bias", "a mask of whole tiles"): ("(rows[:, None] < n)", "((rows[:, None] < n) | (n % 8 == 0))"),
    ("skinny_matmul", "parts that end"): ("for part in range(parts):", "for part in range(tl.minimum(parts, 16)):"),
    ("row_sum", "rows that end"): ("[(n_rows,)]", "[(min(n_rows, 5_000_000),)]"),
}  # fmt: skip


# What a case shows that is not one of the first three, but of so many: in another dtype, or at another size. Or what a
# case shows when it is called on another machine.
IN_A_CASE = {"a target of few bits": 8, "a mask of whole tiles": 8, "parts that end": None}


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize(("exercise", "what"), LATER)
def test_an_answer_that_is_wrong_beyond_its_number(judge, few, monkeypatch, exercise, what):
    monkeypatch.setattr(judge, "compiles", False)  # the compilers take all of these
    old, new = LATER[exercise, what]
    source = gallery.solution(exercise)
    assert old in source
    with few(IN_A_CASE.get(what, 3)):
        assert not judge.judge(exercise, source.replace(old, new), seed=SEED).passed
