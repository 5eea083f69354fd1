"""Slips of one place, made in the solutions of several exercises: each message must name the place."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from mutants import solution
from test_vote import ANSWERS, SHAPES, seen

from autograder.box.wire import ProtocolError, parse
from autograder.diagnosis import diagnose, overall
from autograder.exercises import find
from autograder.judge.trials import Trials, traces_of

SEED = 1
pytestmark = pytest.mark.usefixtures("without_solutions")


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
def test_arguments_that_changed_places_are_named(judge, exercise):
    unnamed, count = [], 0
    for a, b, source in swapped(exercise):
        verdict = judge.judge(exercise, source, SEED)
        if verdict.passed or verdict.diagnosis == "compile-error" or {a, b} & {"a", "scale"}:
            continue  # x + y is y + x, the front end refuses it, or it is a float that fits no other name
        count += 1
        said = f"{a} got .*, and {b} got .*changed places"
        unnamed += [] if re.search(said, verdict.message) else [verdict.message]
    assert count and unnamed == []


def test_an_argument_is_named_that_its_parameter_does_not_fit(judge):
    verdict = judge.judge("row_sum", solution("row_sum").replace("output, x.stride(0)", "output, n_cols"), SEED)
    assert "row_stride got" in verdict.message and "pass x.stride(0) as row_stride" in verdict.message
    verdict = judge.judge("vector_add", solution("vector_add").replace("(x, y, output", "(x, x, output"), SEED)
    assert "y_ptr got x" in verdict.message and "pass y as y_ptr" in verdict.message


# -- grids -----------------------------------------------------------------------------------------------------


def with_grid(exercise: str, text: str) -> str:
    """The solution with another grid. `{}` stands for the grid that it has."""

    def regrid(tree):
        subscript = launches(tree)[0].func
        subscript.slice = ast.parse(text.format(ast.unparse(subscript.slice)), mode="eval").body

    return changed(exercise, regrid)


@pytest.mark.parametrize("exercise", ["naive_softmax", "column_sum"])
def test_programs_along_another_axis_are_named(judge, exercise):
    verdict = judge.judge(exercise, with_grid(exercise, "(1, *({}))"), SEED)
    assert "counts programs along axis 1, and the kernel reads tl.program_id(0)" in verdict.message


@pytest.mark.parametrize("exercise", ["naive_softmax", "column_sum"])
def test_half_of_the_programs_are_counted(judge, exercise):
    verdict = judge.judge(exercise, with_grid(exercise, "(({})[0] // 2,)"), SEED)
    assert re.search(r"The grid \(\d+,\) has \d+ programs?, and with \d+ the results are right", verdict.message)


def test_grids_of_two_dimensions(judge):
    verdict = judge.judge("bug_hunt", with_grid("bug_hunt", "({})[::-1]"), SEED)
    assert "check the order of the grid" in verdict.message
    verdict = judge.judge("bug_hunt", with_grid("bug_hunt", "({})[:1]"), SEED)
    assert "start triton.cdiv(n_cols, BLOCK) programs along axis 1" in verdict.message


def test_programs_for_columns_in_place_of_rows(judge):
    verdict = judge.judge("row_sum", with_grid("row_sum", "(n_cols,)"), SEED)
    assert "start x.shape[0] programs" in verdict.message


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


def behind_the_loop(tree):
    loop, line = keeping(tree)
    loop.body.remove(line)
    body = kernel_of(tree).body
    body.insert(body.index(loop) + 1, line)
    body.insert(body.index(loop), ast.parse(f"{line.value.id} = {line.targets[0].id}").body[0])


@pytest.mark.parametrize("change", [forgotten, too_early, behind_the_loop])
@pytest.mark.parametrize("exercise", ["online_softmax_masked"])
def test_the_line_that_keeps_the_maximum_is_named(judge, exercise, change):
    message = judge.judge(exercise, changed(exercise, change), SEED).message
    assert "m = m_new" in message or "add `in_max = in_max_new` below this line" in message


# -- returns -----------------------------------------------------------------------------------------------------


def without_return(name: str):
    def change(tree):
        entry = find(name).entry
        function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == entry)
        assert isinstance(function.body.pop(), ast.Return)

    return change


@pytest.mark.parametrize("exercise", ["vector_add", "row_sum", "online_softmax", "bug_hunt", "transpose"])
def test_a_missing_return_is_named(judge, exercise):
    assert "with `return`" in judge.judge(exercise, changed(exercise, without_return(exercise)), SEED).message


@pytest.mark.parametrize("place, said", [(0, "stand below a `return`"), (-1, "No line of the kernel stores anything")])
@pytest.mark.parametrize("exercise", ["row_sum", "bug_hunt"])
def test_a_return_above_the_store_is_named(judge, exercise, place, said):
    source = changed(exercise, lambda tree: kernel_of(tree).body.insert(place, ast.Return()))
    assert said in judge.judge(exercise, source, SEED).message


def test_a_store_behind_its_loop_is_named(judge):
    def behind(tree):
        body = kernel_of(tree).body
        loop = [each for each in body if isinstance(each, ast.For)][-1]
        before = "offsets = tl.arange(0, BLOCK_SIZE); mask = offsets < 1; softmax = tl.zeros((BLOCK_SIZE,), tl.float32)"
        body[body.index(loop) : body.index(loop)] = ast.parse(before).body
        body.append(loop.body.pop())

    message = judge.judge("online_softmax", changed("online_softmax", behind), SEED).message
    assert "Only the last block of each row was written: the store is behind the loop" in message


def test_a_missing_apply_is_named(judge):
    message = judge.judge("cross_entropy", solution("cross_entropy").replace(".apply(", "("), SEED).message
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
    assert f"It fails only where {said}" in told([*PASSING, *failing])


def test_nothing_is_said_of_what_passing_cases_have_too():
    assert "only where" not in told([*PASSING, seen((3, 250), ROLLED)])
    assert "only where" not in told([seen(shape, ROLLED) for shape in SHAPES])


@pytest.mark.parametrize("given", [["x_ptr", 1, "i32", 2], ["x_ptr", 1], "x_ptr", {"label": 1, "value": 2, "kind": 3}])
def test_a_launch_of_another_form_is_not_looked_at(given):
    """The trace comes from a process that is not trusted."""
    launch = {"kernel": "k", "program": "", "grid": [1, 1, 1], "args": {}, "given": [], "options": {}}
    report = {"case": 0, "trace": {"steps": [launch], "result": 0}}
    assert parse(json.dumps(report).encode())[0].trace.launches
    launch["given"].append(given)
    with pytest.raises(ProtocolError):
        parse(json.dumps(report).encode())


# -- what nothing uses, steps that are no strides, and parts of a sum ------------------------------------------------

SLIPS = [
    ("decode_scores", "k_ptr + head * k_head + rows", "k_ptr + rows", "No line of scores_kernel uses k_head"),
    ("fused_softmax", "tl.int64) * output_row_stride", "tl.int64)", r"write `tl.cast\(.*\) \* output_row_stride"),
    ("column_sum", "sums += tile.to", "sums = tile.to", "forgets the value of the step before"),
    ("row_sum", "offsets = start + tl.arange", "offsets = tl.arange", "Nothing in this loop uses its variable"),
    ("weighted_sum", "p[:, None] * v", "v", r"other=0.0\) \* p\[:, None\]`"),
    ("bug_hunt", "mask = columns < n_cols", "mask = row < n_cols", "one value for the whole block"),
    ("matmul", "mask=(rows[:, None] < m) & mask[None, :]", "mask=rows[:, None] < m", "it compares only rows"),
    ("outer_add", "rows[:, None] * m", "rows[:, None] * n", r"write `rows\[:, None\] \* m`"),
    ("linear_gelu", "along[:, None] + columns[None, :] * k", "along[:, None] * n + columns[None, :]", "as if its"),
    ("row_bias", "tiles_across = tl.cdiv(m, COLUMNS)", "tiles_across = tl.cdiv(n, ROWS)", "programs store nothing"),
    ("vector_add", "pid * BLOCK_SIZE", "pid * n_elements", "4 of 5 programs store nothing, such as program 1"),
    ("outer_add", "(triton.cdiv(n, 32) * ", "(triton.cdiv(n, 32) + ", r"cdiv\(n, ROWS\) \* triton.cdiv\(m, COLUMNS\)"),
    ("row_sum", "range(0, n_cols, ", "range(0, n_cols - n_cols % BLOCK_SIZE, ", "is the right result for columns 0 to"),
    ("row_sum", "range(0, n_cols, ", "range(BLOCK_SIZE, n_cols, ", "begin at 0"),
    ("column_sum", "torch.empty(m, ", "torch.empty(n, ", r"allocate it with the shape \(300,\)"),
    ("matmul", "*a.stride(), *b.stride()", "*b.stride(), *a.stride()", "b_row: b.stride"),
    ("vector_add", "output.numel()", "len(output)", "It fails only where the input has more than one axis that is"),
    ("gather_rows", "output, table.stride(0)", "output, d", r"pass table.stride\(0\) as row_stride"),
    ("transpose", "return output", "return output.T", "return this very tensor, without .T"),
]


@pytest.mark.parametrize("exercise, old, new, said", SLIPS)
def test_a_slip_of_one_place_is_named(judge, exercise, old, new, said):
    source = solution(exercise)
    assert old in source
    *before, after = source.rsplit(old, 1)
    text = judge.judge(exercise, new.join([*before, after]), SEED).to_text()
    assert re.search(said, text), text


@pytest.mark.parametrize("name", ["decode_attention", "fused_softmax", "tile_dot", "online_softmax", "cross_entropy"])
def test_a_right_kernel_uses_all(judge, name):
    trials = Trials(judge, find(name), solution(name), SEED)
    traces = traces_of(trials.plan([trials.source], trials.cases[:3]))
    kinds = {each.kind for trace in traces.values() for launch in trace.launches for each in launch.unused}
    assert traces and kinds <= {"mask"}


def test_the_key_of_an_autotuner_needs_no_use(judge):
    source = solution("rms_norm").replace("tl.sum(squares, axis=0) / n + eps", "tl.sum(squares, axis=0) / n")
    finding = judge.judge("rms_norm", source, SEED).finding
    assert finding and "bucket" not in finding.means
