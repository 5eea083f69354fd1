"""Messages and panels: what each must say, and what it must not. `said.py` and test_gallery.py have more messages."""

import re
import types
from dataclasses import replace
from pathlib import Path

import pytest
import triton
import triton.language as tl

from autograder import check, gallery
from autograder.box import wire
from autograder.judge.kernels import with_what_is_rounded
from autograder.verdict import CaseResult, Finding, Verdict
from workshop.executor.facts import Unused, unused
from workshop.executor.front_end import lower
from workshop.hints import answer_cell

TESTS = Path(__file__).parent


def test_the_starter_of_the_gradient_is_explained_in_the_lessons_names(judge, few):
    imports = "import jax, triton\nimport jax.numpy as jnp\nimport jax_triton as jt\nimport triton.language as tl\n"
    cells = [imports, answer_cell("leaky_dropout")[0], answer_cell("leaky_dropout_grad")[1]]
    with few():
        said = judge.judge("leaky_dropout_grad", "\n".join(cells), seed=1).to_text()
    assert "The starter is unchanged" in said and "dy · slope / (1 - p)" in said, said


# -- the panel -------------------------------------------------------------------------------------------


def verdict(*cases, **more):
    finding = next((case.finding for case in cases if case.finding), None)
    return Verdict("vector_add", finding is None, 0 if finding else 5, 5, "interpreter", finding, cases, **more)


def test_cases_are_folded_and_counted():
    passed = verdict(*(CaseResult(f"n = {n}") for n in range(18))).to_html()
    assert "<summary>18 cases, all passed</summary>" in passed
    wrong = Finding("wrong-value", "x is wrong (n = 1).")
    panel = verdict(CaseResult("n = 1", wrong), CaseResult("n = 2")).to_html()
    assert "<summary>2 cases: 1 passed, 1 failed</summary>" in panel


def test_cases_that_code_never_reached_are_not_run():
    unread = Finding("syntax-error", "Python cannot read the code.")
    panel = verdict(CaseResult("n = 1", unread), CaseResult("n = 2", unread)).to_html()
    assert "<summary>2 cases, not run</summary>" in panel and "✗" not in panel


def test_blanks_that_nobody_judged_have_no_marks():
    unread = verdict(CaseResult("n = 1", Finding("syntax-error", "Python cannot read the code.")))
    panel = replace(unread, blanks={"mask": False, "x": False}).to_html()
    assert "2 not judged" in panel and "✗" not in panel
    judged = replace(unread, blanks={"mask": False, "x": False}, blank_findings={"mask": Finding("nan", "NaN.")})
    assert "✗" in judged.to_html() and "not judged" not in judged.to_html()


def test_a_warning_stands_first_and_is_escaped():
    panel = verdict(CaseResult("n = 1"), warning="edited <since>").to_html()
    assert panel.index("edited &lt;since&gt;") < panel.index("Passed")


def test_one_case_is_not_called_all_cases():
    assert verdict(CaseResult("n = 1")).message == "The case passes."


def test_a_check_says_which_case_runs_and_what_its_limit_is(judge):
    judge.prove("naive_softmax")
    said = []
    judge.say = said.append
    try:
        judge.judge("naive_softmax", next((TESTS / "right" / "naive_softmax").glob("*.py")).read_text(), seed=1)
    finally:
        judge.say = lambda words: None
    running = [words for words in said if words.startswith("running your kernels, case ")]
    assert re.fullmatch(
        r"running your kernels, case 1 of \d\d\. A loop is stopped after 10 s of computing\.", running[0]
    )
    assert len(set(running)) > 1  # it changes while the kernels run
    assert said[0].startswith("recording your host function's launches, case 1 of ")


# -- rules that one answer may or may not meet, as the numbers are drawn ----------------------------------------------


# Mistakes of a trial whose first message named another mistake: (exercise, old text, new text, what must be said).
OF_A_TRIAL = (
    ("row_sum", "@triton.jit\n", "", "put @triton.jit above"),
    ("row_sum", "dtype=torch.float32", "dtype=x.dtype", "allocate the output with dtype=torch.float32"),
    ("row_sum", "tl.zeros((BLOCK_SIZE,), tl.float32)", "tl.zeros(BLOCK_SIZE)", "tl.zeros((BLOCK_SIZE,), tl.float32)"),
    ("row_sum", "torch.empty(n_rows,", "torch.empty((n_rows, n_cols),", "allocate it with the shape (37,)"),
    ("row_sum", "(output_ptr + row, tl.sum(lane_sum, axis=0))", "(tl.sum(lane_sum, axis=0), output_ptr)",
     "the pointer comes first"),
    ("row_max_and_sum", "tl.maximum(m, tl.max(x, axis=0))", "tl.max(m, tl.max(x, axis=0))", "tl.maximum(a, b)"),
    ("row_max_and_sum", "tl.exp(m - m_new)", "exp(m - m_new)", "did you mean tl.exp?"),
    ("row_max_and_sum", "tl.arange(0, BLOCK_SIZE)", "tl.arange(BLOCK_SIZE)", "tl.arange(0, BLOCK_SIZE)"),
)  # fmt: skip


@pytest.mark.parametrize("exercise, old, new, said", OF_A_TRIAL)
def test_the_first_message_names_the_mistake(judge, exercise, old, new, said):
    text = judge.judge(exercise, gallery.Edit("", "", {old: new}).applied_to(gallery.solution(exercise)), 1).to_text()
    assert said in text, text


def test_check_takes_a_name_and_says_so(capsys):
    def row_bias(x, b): ...

    assert check(row_bias) is None
    assert 'check("row_bias")' in capsys.readouterr().out


# -- which lines round numbers -----------------------------------------------------------------------------------------


@triton.jit
def rounds(x_ptr, output_ptr, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(x_ptr + at)
    y = (2 * x.to(tl.float32)).to(x.dtype)
    tl.store(output_ptr + at, tl.exp(y.to(tl.float32)) + tl.sum(x, axis=0))


@triton.jit
def stores_rounded(x_ptr, output_ptr, B: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B), mask=tl.arange(0, B) < 3, other=-float("inf")).to(tl.float32)
    tl.store(output_ptr + tl.arange(0, B), 2 * x)


def rounded(kernel, dtype: str) -> list[int]:
    """The lines of a kernel that round, from its `def` on; 0 is a function of Triton's."""
    program = lower(kernel, {"x_ptr": dtype, "output_ptr": dtype}, {"B": 16})
    first = kernel.starting_line_number
    found = [each.line for each in unused(program, ["x_ptr", "output_ptr"]) if each.kind == "half"]
    return [line and line - first for line in found]


def test_the_executor_says_which_lines_round():
    assert rounded(rounds, "*fp16") == [4, 0]  # tl.sum is Triton's
    assert rounded(rounds, "*fp32") == rounded(stores_rounded, "*fp16") == []


BUFFER = 1  # a tensor that is neither the input, 0, nor the result, 2


@pytest.mark.parametrize(("lines", "given", "steps", "said"), [
    ([34, 0], {}, (), "in line 34"),
    ([], {0: "*fp16", BUFFER: "*fp32", 2: "*fp16"}, (), "No line of the kernels"),
    ([0], {}, (), "Most often"),  # in a function of Triton's
    ([], {BUFFER: "*bf16"}, (), "Most often"),  # what one launch hands to the next is rounded
    ([], {}, ("_to_copy",), "Most often"),  # a cast by torch
])  # fmt: skip
def test_no_line_is_cleared_where_numbers_may_be_rounded(lines, given, steps, said):
    arguments = tuple(wire.Argument(f"x{i}", {"t": i}, kind) for i, kind in given.items())
    launch = wire.Launch("kernel", (1, 1, 1), "", arguments, {}, {}, unused=tuple(Unused("half", n) for n in lines))
    operations = (wire.Operation(op, "", [], {}, (BUFFER,)) for op in steps)
    trace = wire.Trace((wire.Input(0, (0,)), *operations, launch), 2)
    finding = Finding("low-precision", "The result is close.", "Most often, a sum was kept in half precision.")
    assert said in with_what_is_rounded(finding, [trace]).means


def test_a_sum_that_a_compiler_rounds_is_named():
    launch = types.SimpleNamespace(unused=[Unused("dot", 9, "1"), Unused("half", 4)])
    trace = types.SimpleNamespace(launches=[launch], steps=[])
    finding = with_what_is_rounded(Finding("low-precision", "The result is close.", sure=True), [trace])
    assert finding.line == 9 and "TF32" in finding.means and "tl.dot" in finding.advice
