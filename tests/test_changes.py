"""A drawn change of one operation in a solution's kernel is named on its line, with what stood there."""

import ast
import random

import pytest
from mutants import solution

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


@pytest.mark.parametrize("exercise", ["outer_add", "found_race", "found_nan", "row_sum", "logsumexp_rows"])
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
    assert "without the cast" in finding.means and "a * x, mask=mask" in finding.advice


def test_a_change_that_leaves_all_work_to_one_program_is_not_told(judge):
    source = solution("fused_softmax").replace("tl.range(first, n_rows, step,", "tl.range(first, n_rows, 1,")
    finding = judge.judge("fused_softmax", source, 1).finding
    assert finding.slug == "race" and "* n_rows" not in finding.message
