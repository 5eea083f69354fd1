"""A drawn change of one operation in a solution's kernel is named on its line, with what stood there.

Where a message says what to write, that passes.
"""

import ast
import random
import re

import pytest
from mutants import solution

pytestmark = pytest.mark.usefixtures("without_solutions")

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Sub, ast.Div: ast.Mult}
FUNCTIONS = {"maximum": "minimum", "minimum": "maximum", "max": "min", "sum": "max", "exp": "exp2", "log": "exp2"}


def places(tree: ast.Module) -> list[ast.AST]:
    """The operations of the kernels that OPERATORS and FUNCTIONS change."""
    kernels = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.decorator_list]
    nodes = [n for kernel in kernels for statement in kernel.body for n in ast.walk(statement)]
    return [
        n for n in nodes if isinstance(n, ast.BinOp) and type(n.op) in OPERATORS
        or isinstance(n, ast.Call) and getattr(n.func, "attr", "") in FUNCTIONS
    ]  # fmt: skip


def changed(exercise: str, number: int) -> tuple[str, int, str]:
    """The solution with one operation changed, its line, and the operation as it was."""
    tree = ast.parse(ast.unparse(ast.parse(solution(exercise))))
    node = places(tree)[number]
    was = ast.unparse(node)
    if isinstance(node, ast.BinOp):
        node.op = OPERATORS[type(node.op)]()
    else:
        node.func.attr = FUNCTIONS[node.func.attr]
    return ast.unparse(tree), node.lineno, was


@pytest.mark.parametrize("exercise", ["outer_add", "found_race", "logsumexp_rows"])
def test_one_changed_operation_is_named_on_its_line(judge, exercise):
    count = len(places(ast.parse(solution(exercise))))
    told = 0
    for number in random.Random(1).sample(range(count), min(count, 3)):
        source, line, was = changed(exercise, number)
        verdict = judge.judge(exercise, source, 1)
        if verdict.passed or "all cases are right" not in verdict.finding.means:
            continue  # another change than a right one, or a finding that is sure of its own
        told += 1
        assert verdict.finding.line == line, verdict.message
        assert "write" in verdict.finding.advice and "all cases are right" in verdict.message, (was, verdict.message)
    assert told >= 1


def test_a_repair_is_written_as_code(judge):
    source = solution("logsumexp_rows").replace("m + tl.log(s)", "m * tl.log(s)")
    finding = judge.judge("logsumexp_rows", source, 1).finding
    assert "`m * tl.log(s)` is the mistake" in finding.means and finding.advice == "write `m + tl.log(s)`."
    source = solution("bug_hunt").replace("a * x", "a * x.to(tl.int32)")
    finding = judge.judge("bug_hunt", source, 1).finding
    assert "with one change" in finding.means and "a * x, mask=mask" in finding.advice


def advised(source: str, finding) -> str:
    """The source with what a message says to write."""
    new = re.match("write `(.*?)`", finding.advice)[1]
    old = re.search("in the place of `(.*)`[.]", finding.advice) or re.search("`(.*)` is the mistake", finding.means)
    lines = source.splitlines()
    before = lines[finding.line - 1]
    lines[finding.line - 1] = before.replace(old[1], new) if old else before[: -len(before.lstrip())] + new
    return "\n".join(lines)


WRITTEN = (
    # of plain values
    ("bytes_moved", "'torch_read': 5 * m * n", "'torch_read': 4 * m * n"),
    ("occupancy", "min(8, 512 // allocated) * 4 // num_warps", "min(8, 512 // allocated) // num_warps"),
    ("occupancy", "return workgroups * num_warps // 4", "return workgroups * num_warps // 2"),
    ("swizzle", "first_m + within % height", "first_m + within % group"),
    # which the front end refuses
    ("outer_add", "x[:, None] + y[None, :]", "x[None, :] + y[:, None]"),
    ("weighted_sum", "tl.sum(sums, axis=0)", "tl.sum(sums, axis=1)"),
    ("decode_scores", "k.to(tl.float32), axis=1)", "k.to(tl.float32), axis=0)"),
    # two variables changed places; a reduction too many
    ("transpose", "columns[None, :] * n + rows[:, None]", "rows[:, None] * n + columns[None, :]"),
    ("column_sum", "sums += tile.to(tl.float32)", "sums += tl.sum(tile.to(tl.float32), axis=0)"),
    # a function, a limit, a step, a number, a variable that is used twice
    ("naive_softmax", "tl.exp(block - row_max) / row_sum", "tl.exp(block) / row_sum"),
    ("lost_lane", "tl.arange(0, BLOCK_SIZE)", "tl.arange(1, BLOCK_SIZE + 1)"),
    ("found_race", "tl.full((BLOCK,), -float('inf'), tl.float32)", "tl.zeros((BLOCK,), tl.float32)"),
    ("online_softmax_masked", "tl.where(in_max_new == -float('inf'), 0.0, in_max_new)",
     "tl.where(in_max == -float('inf'), 0.0, in_max)"),
    ("matmul", "mask = along < k - start", "mask = along < k"),
    ("online_softmax", "tl.exp(in_max - in_max_new)", "tl.exp(in_max_new - in_max)"),
)  # fmt: skip


@pytest.mark.parametrize("exercise, right, wrong", WRITTEN)
def test_what_a_message_says_to_write_passes(judge, exercise, right, wrong):
    source = solution(exercise)
    assert right in source
    changed = source.replace(right, wrong)
    verdict = judge.judge(exercise, changed, 1)
    assert not verdict.passed
    repaired = advised(changed, verdict.finding)  # the solution passes: test_promises.py
    assert repaired == source or judge.judge(exercise, repaired, 1).passed, verdict.message


def test_an_answer_that_may_not_be_told_is_not_told(judge):
    source = solution("read_the_isa")
    finding = judge.judge("read_the_isa", source.replace("'vgprs': 64", "'vgprs': 65"), 1).finding
    assert "64" not in finding.message


def test_a_change_that_leaves_all_work_to_one_program_is_not_told(judge):
    source = solution("fused_softmax").replace("tl.range(first, n_rows, step,", "tl.range(first, n_rows, 1,")
    finding = judge.judge("fused_softmax", source, 1).finding
    assert finding.slug == "race" and "* n_rows" not in finding.message
