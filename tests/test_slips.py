"""Slips of one kind, made in the solutions of several exercises: a message names the place, and what to write."""

import ast
import contextlib
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from known import source_of
from mutants import solution, undoes
from test_vote import ANSWERS, SHAPES, seen

from autograder.box.wire import ProtocolError, parse
from autograder.diagnosis import diagnose, in_common, overall
from autograder.exercises import EXERCISES
from autograder.judge import kernels
from autograder.judge.aligned import Difference
from autograder.judge.differences import told as told_differences
from autograder.judge.differences import undone
from autograder.judge.slips import slips
from autograder.judge.trials import Trials, traces_of
from autograder.verdict import Finding, Verdict

SEED = 1
FINDING = Finding("wrong-value", "Element 0 is 1, expected 2.")


@pytest.fixture
def judged(judge, few):
    """The verdict on an answer: with few cases if one of these fails, or with all."""

    def verdict(exercise: str, source: str) -> Verdict:
        judge.seconds_left = math.inf
        with few():
            tried = Trials(judge, EXERCISES[exercise], source, SEED).observe()
        with few() if any(map(diagnose, tried)) else contextlib.nullcontext():
            return judge.judge(exercise, source, SEED)

    return verdict


def launches(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)]


def kernel_of(tree: ast.Module) -> ast.FunctionDef:
    name = launches(tree)[0].func.value.id
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def changed(exercise: str, change: Callable[[ast.Module], None]) -> str:
    tree = ast.parse(solution(exercise))
    change(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


# -- arguments of a launch -------------------------------------------------------------------------------------


def swapped(exercise: str) -> Iterator[tuple[str, str, str]]:
    """Two neighbours, and the solution with their arguments exchanged: of tensors, or of numbers."""
    tree = ast.parse(solution(exercise))
    names = [each.arg for each in kernel_of(tree).args.args][: len(launches(tree)[0].args)]
    for (i, a), (j, b) in pairwise(enumerate(names)):
        if a.endswith("_ptr") == b.endswith("_ptr"):

            def exchange(tree, i=i, j=j):
                given = launches(tree)[0].args
                given[i], given[j] = given[j], given[i]

            yield a, b, changed(exercise, exchange)


@pytest.mark.parametrize("exercise", ["vector_add", "bug_hunt", "decode_scores"])
def test_arguments_that_changed_places_are_named(judged, exercise):
    right = ", ".join(map(ast.unparse, launches(ast.parse(solution(exercise)))[0].args))
    count = 0
    for a, b, source in swapped(exercise):
        verdict = judged(exercise, source)
        if verdict.passed or verdict.diagnosis == "compile-error" or {a, b} & {"a", "scale"}:
            continue  # x + y is y + x, the front end refuses it, or it is a float that fits no other name
        count += 1
        assert right in verdict.message, verdict.message
    assert count


# -- grids -----------------------------------------------------------------------------------------------------


WRONG_GRIDS = ["(1, *({}))", "(({})[0] // 2,)", "(*({})[:-1], 1)"]
SAME_GRIDS = ["({})[::-1]", "({})[:1]"]  # where a grid has one axis, as in these exercises


@pytest.mark.parametrize("exercise, text", [
    *itertools.product(["naive_softmax", "column_sum", "bug_hunt"], WRONG_GRIDS),
    *itertools.product(["bug_hunt"], SAME_GRIDS),
])  # fmt: skip
def test_the_grid_is_told(judged, exercise, text):
    """`text` is another grid. `{}` stands for the right one."""

    def regrid(tree):
        subscript = launches(tree)[0].func
        subscript.slice = ast.parse(text.format(ast.unparse(subscript.slice)), mode="eval").body

    verdict = judged(exercise, changed(exercise, regrid))
    right = launches(ast.parse(solution(exercise)))[0].func
    right = f"{right.value.id}[{ast.unparse(right.slice).strip('()')}"
    assert verdict.passed or right in verdict.message.replace("[(", "["), verdict.message


# -- a running maximum -------------------------------------------------------------------------------------------


def keeping(tree: ast.Module) -> tuple[ast.For, ast.Assign]:
    """The loop of the kernel that keeps a new maximum, and the line that does, such as m = m_new."""
    for loop in (node for node in ast.walk(kernel_of(tree)) if isinstance(node, ast.For)):
        for line in loop.body:
            if isinstance(line, ast.Assign) and isinstance(line.value, ast.Name) and "new" in line.value.id:
                return loop, line
    raise AssertionError("no such line")


def forgotten(tree):
    loop, line = keeping(tree)
    loop.body.remove(line)


def too_early(tree):
    loop, line = keeping(tree)
    loop.body.remove(line)
    first = next(i for i, each in enumerate(loop.body) if ast.unparse(each).startswith(f"{line.value.id} ="))
    loop.body.insert(first + 1, line)


@pytest.mark.parametrize("change", [forgotten, too_early])
@pytest.mark.parametrize("exercise", ["online_softmax_masked"])
def test_the_line_that_keeps_the_maximum_is_named(judged, exercise, change):
    assert "`in_max = in_max_new`" in judged(exercise, changed(exercise, change)).message


# -- returns -----------------------------------------------------------------------------------------------------


def without_return(name: str):
    def change(tree):
        entry = EXERCISES[name].entry
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry)
        assert isinstance(function.body.pop(), ast.Return)

    return change


@pytest.mark.parametrize("exercise", ["vector_add", "row_sum", "online_softmax", "bug_hunt", "transpose"])
def test_a_missing_return_is_named(judged, exercise):
    assert "with `return`" in judged(exercise, changed(exercise, without_return(exercise))).message


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("exercise", ["row_sum", "bug_hunt"])
def test_a_return_above_the_store_is_named(judged, exercise, place):
    source = changed(exercise, lambda tree: kernel_of(tree).body.insert(place, ast.Return()))
    assert "leave out `return`" in judged(exercise, source).message


def test_a_store_behind_its_loop_is_named(judged):
    def behind(tree):
        body = kernel_of(tree).body
        loop = [each for each in body if isinstance(each, ast.For)][-1]
        before = "offsets = tl.arange(0, BLOCK_SIZE); mask = offsets < 1; softmax = tl.zeros((BLOCK_SIZE,), tl.float32)"
        body[body.index(loop) : body.index(loop)] = ast.parse(before).body
        body.append(loop.body.pop())

    message = judged("online_softmax", changed("online_softmax", behind)).message
    assert "Only the last block of each row was written: the store is behind the loop" in message


def test_a_missing_apply_is_named(judged):
    message = judged("cross_entropy", solution("cross_entropy").replace(".apply(", "(")).message
    assert "write .apply between the name of the class and its arguments" in message


# -- what the failing cases have in common ---------------------------------------------------------------------


def told(observations) -> str:
    return overall(observations, [diagnose(o) for o in observations]).message


RIGHT, ROLLED = ANSWERS["right"], ANSWERS["rolled"]


PASSING = [seen(shape, RIGHT) for shape in ((4, 256), (3, 256), (2, 100))]


@pytest.mark.parametrize(
    "failing, said",
    [
        ([seen((4, 250), ROLLED, "half", "half", torch.float16)], "the input is float16"),
        ([seen((4, 301), ROLLED), seen((6, 777), ROLLED)], "a row is longer than one block"),
        ([seen((4, 250), ROLLED, "-inf", one=-torch.inf)], "-inf is among the numbers"),
    ],
)
def test_what_all_failing_cases_have_and_no_other_is_said(failing, said):
    assert f"The failing cases are those in which {said}" in told([*PASSING, *failing])


def test_nothing_is_said_of_what_passing_cases_have_too():
    assert "those in which" not in told([*PASSING, seen((3, 250), ROLLED)])
    assert "those in which" not in told([seen(shape, ROLLED) for shape in SHAPES])


def test_what_one_passing_case_has_too_proves_nothing():
    said = in_common([["a", "b"], ["a", "b"]], [["c"], []])
    assert said == "The failing cases are those in which a and b."
    assert in_common([["a"]] * 3, [["a"], *[["b"]] * 8]) == ""


@pytest.mark.parametrize("given", [["x_ptr", 1, "i32", 2], ["x_ptr", 1], "x_ptr", {"label": 1, "value": 2, "kind": 3}])
def test_a_launch_of_another_form_is_not_looked_at(given):
    """The trace comes from a process that is not trusted."""
    launch = {"kernel": "k", "program": "", "grid": [1, 1, 1], "args": {}, "given": [], "options": {}}
    report = {"case": 0, "trace": {"steps": [launch], "result": 0}}
    assert parse(json.dumps(report).encode())[0].trace.launches
    launch["given"].append(given)
    with pytest.raises(ProtocolError):
        parse(json.dumps(report).encode())


# -- what is told, and what is used ------------------------------------------------------------------------------


def test_an_answer_that_may_not_be_told_is_not_told(judge):
    source = solution("read_the_isa")
    finding = judge.judge("read_the_isa", source.replace("'vgprs': 64", "'vgprs': 65"), 1).finding
    assert "64" not in finding.message


@pytest.mark.parametrize("name", ["decode_attention", "fused_softmax", "tile_dot", "online_softmax", "cross_entropy"])
def test_a_right_kernel_uses_all(judge, name):
    trials = Trials(judge, EXERCISES[name], solution(name), SEED)
    traces = traces_of(trials.plan([trials.source], trials.cases[:3]))
    kinds = {each.kind for trace in traces.values() for launch in trace.launches for each in launch.unused}
    assert traces and kinds <= {"mask", "product"}


@pytest.mark.usefixtures("briefly")  # a repair would be told in the place of what is not used
def test_the_key_of_an_autotuner_needs_no_use(judge):
    source = solution("rms_norm").replace("tl.sum(squares, axis=0) / n + eps", "tl.sum(squares, axis=0) / n")
    judge.seconds_left = math.inf
    judgement = kernels.KernelJudgement(judge, EXERCISES["rms_norm"], source, SEED)
    judgement.trials.cases = [each for each in judgement.trials.cases if "eps = 0.25" in each.case.name][:3]
    finding = judgement.verdict().finding
    assert finding and "bucket" not in finding.means.partition(" ran in ")[0]


# -- slips that are undone without a right answer --------------------------------------------------------------


def test_most_slips_of_a_right_answer_are_undone_by_another_slip():
    undone_by_another = count = 0
    for exercise in (each.name for each in EXERCISES.values() if each.kind == "kernel"):
        right = solution(exercise)
        made = slips(right, most=300)
        wrong = undone(right, random.Random(exercise).choice(made))
        count += 1
        undone_by_another += any(undoes(wrong, each, right) for each in slips(wrong, 300))
    assert undone_by_another > 0.75 * count


@pytest.mark.parametrize("exercise, right, wrong", [
    ("transpose", "tl.cdiv(m, COLUMNS)", "m // COLUMNS"),
    ("found_race", "tl.full((BLOCK,), -float('inf'), tl.float32)", "tl.zeros((BLOCK,), tl.float32)"),
    ("naive_softmax", "lane_sum += tl.exp(block - row_max)", "lane_sum = tl.exp(block - row_max)"),
    ("row_max_and_sum", "(x, maxima, sums, n_cols, BLOCK_SIZE=1024)", "(x, sums, maxima, n_cols, BLOCK_SIZE=1024)"),
    ("row_max_and_sum", "dtype=torch.float32, device=x.device)", "dtype=x.dtype, device=x.device)"),
    ("found_race", "tl.full((BLOCK,), -float('inf'), tl.float32)", "tl.full((BLOCK,), -1e30, tl.float32)"),
    ("bug_hunt", "scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)",
     "scale_kernel[grid](x, output, a, max(x.stride(0), n_cols), output.stride(0), n_cols, BLOCK=256)"),
    ("column_sum", "tl.zeros((ROWS, COLUMNS), tl.float32)", "tl.zeros((ROWS, COLUMNS), x_ptr.dtype.element_ty)"),
])  # fmt: skip
def test_a_slip_is_named_where_no_right_answer_resembles_the_answer(judged, monkeypatch, exercise, right, wrong):
    monkeypatch.setattr(kernels, "blames_a_difference", lambda exercise, source, finding, *_: finding)
    assert right in solution(exercise)
    message = judged(exercise, solution(exercise).replace(right, wrong)).message
    assert f"{right}`" in message, message


def test_another_grid_is_no_repair_where_the_kernel_asks_for_it(judged, monkeypatch):
    """The sum goes on into the next tile of a program. With a program for each tile, that does not show."""
    right = source_of("matmul", "persistent_groups")
    acc, loop = "        acc = tl.zeros((M, N), tl.float32)\n", "    for tile in"
    wrong = right.replace(acc, "").replace(loop, f"{acc[4:]}{loop}").replace("min(tiles, 264)", "min(tiles, 2)")

    def other_grid(exercise, source, finding, quick, whole):
        assert not whole(source.replace("min(tiles, 2)", "tiles")) and whole(right)
        return finding

    monkeypatch.setattr(kernels, "blames_a_difference", other_grid)
    message = judged("matmul", wrong).message
    assert "With another number of programs, all cases are right" in message and "begin anew" in message, message


def test_an_error_of_the_host_is_repaired_whatever_grid_the_kernel_takes(judged, monkeypatch):
    """Nothing was launched, so that no launch can have another grid."""
    right, asked = source_of("matmul", "persistent_groups"), []

    def tried(exercise, source, finding, quick, whole):
        asked.append(whole(right))
        return finding

    monkeypatch.setattr(kernels, "blames_a_difference", tried)
    message = judged("matmul", right.replace("n = a.shape, b.shape[1]", "n = a.shape, b.shape[2]")).message
    assert asked == [True] and "another number of programs" not in message, message


def test_two_variables_of_a_kernel_that_changed_places_are_named(judged):
    """The rows that are asked for, and the rows that are written: a scatter in the place of a gather."""
    right = solution("gather_rows")
    a, b = "index[:, None] * row_stride", "rows[:, None] * d"
    assert a in right and b in right
    source = right.replace(a, "rows[:, None] * row_stride").replace(b, "index[:, None] * d")
    message = judged("gather_rows", source).message
    assert "in each of the lines" in message and a in message and b in message, message


@pytest.mark.parametrize("first, second", [("0", "1"), ("axis=0", "axis=1"), ("axis=1", "0")])
def test_the_axes_of_a_grid_change_places_however_they_are_written(first, second):
    text = "@triton.jit\ndef kernel(p):\n    i = tl.program_id({})\n    j = tl.program_id({})\n"
    source, wanted = text.format(first, second), text.format(*(
        each.translate({ord("0"): "1", ord("1"): "0"}) for each in (first, second)))  # fmt: skip
    assert wanted in [undone(source, each) for each in slips(source)]


def test_differences_of_one_line_are_told_as_one():
    source = "a = f(x)\n"
    both = [Difference(1, ((0, 1, "(a, b)"),), 2), Difference(1, ((6, 7, "(2, y)"),), 2)]
    assert "write `(a, b) = f((2, y))`." in told_differences(source, tuple(both), FINDING).message


def test_a_repair_of_a_launch_is_right_at_large_sizes(judge):
    """max(n, n // BLOCK) programs pass all small cases, and are too many."""
    source = solution("scale_vector")
    right = next(text for text in source.splitlines() if "cdiv" in text)
    cdiv = re.search(r"triton\.cdiv\((\w+), (\w+)\)", right)
    wrong = source.replace(cdiv[0], f"max(1, {cdiv[1]} // {cdiv[2]})")
    assert "cdiv(" in judge.judge("scale_vector", wrong, SEED).finding.repair


# -- addresses in 32 bits ----------------------------------------------------------------------------------------


def test_a_product_in_32_bits_is_a_remark_on_a_right_answer(judge, few):
    source = solution("row_bias")
    line = next(i for i, text in enumerate(source.splitlines(), 1) if "* row_stride" in text)
    with few():
        assert not judge.judge("row_bias", source, SEED).note
        verdict = judge.judge("row_bias", source.replace(".to(tl.int64)", ""), SEED)
    assert verdict.passed and f"The product with row_stride and m in lines {line} and" in verdict.note, verdict.note
