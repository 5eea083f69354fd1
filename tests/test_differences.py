"""Wrong answers beside right ones: what differs is found, and what decides is told."""

import ast
import itertools
import random
import time
from collections import Counter
from dataclasses import replace

import pytest
from mutants import mutants, solution, undoes

from autograder import gallery
from autograder.exercises import EXERCISES
from autograder.judge import differences as comparing
from autograder.judge.aligned import Difference
from autograder.judge.differences import _right_trees, differences, least, undone
from autograder.judge.nodes import normal
from workshop import hints


def kernels_of(tree: ast.Module) -> list[ast.FunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.decorator_list]


def stores(node: ast.AST) -> Counter:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def other_names(tree: ast.Module) -> None:
    for function in kernels_of(tree):
        chosen = {name for name in sorted(stores(function)) if random.Random(name).random() < 0.5}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in chosen:
                node.id += "_here"


def other_order(tree: ast.Module) -> None:
    """Of the parameters of kernels."""
    launches = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript)]
    for kernel in kernels_of(tree):
        calls = [n for n in launches if getattr(n.func.value, "id", "") == kernel.name]
        count = min((len(n.args) for n in calls), default=0)
        if any(isinstance(each, ast.Starred) for n in calls for each in n.args):
            continue
        order = random.Random(kernel.name).sample(range(count), count)
        for given in (kernel.args.args, *(n.args for n in calls)):
            given[:count] = [given[i] for i in order]


def fewer_variables(tree: ast.Module) -> None:
    """A variable that is used once stands there as what it is, if nothing in it changes."""
    for kernel in kernels_of(tree):
        stored = stores(kernel)
        loads = Counter(n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        changing = {name for name, count in stored.items() if count > 1}
        changing |= {name for n in ast.walk(kernel) if isinstance(n, (ast.For, ast.AugAssign)) for name in stores(n)}
        for line in list(kernel.body):
            name = getattr(line.targets[0], "id", "") if isinstance(line, ast.Assign) else ""
            if not name or name in changing or loads[name] != 1 or changing & {
                n.id for n in ast.walk(line.value) if isinstance(n, ast.Name)
            }:  # fmt: skip
                continue
            kernel.body.remove(line)
            Inlined({name: line.value}).visit(kernel)


class Inlined(ast.NodeTransformer):
    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def more_variables(tree: ast.Module) -> None:
    """The places of loads and stores have names."""
    for kernel in kernels_of(tree):
        count = itertools.count()
        for body in [n.body for n in ast.walk(kernel) if isinstance(n, (ast.FunctionDef, ast.For, ast.If))]:
            for line in list(body):
                simple = isinstance(line, (ast.Assign, ast.Expr, ast.AugAssign))
                for call in ast.walk(line) if simple else ():
                    accesses = isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("load", "store")
                    if accesses and isinstance(call.args[0], ast.BinOp):
                        name = f"places_{next(count)}"
                        value, call.args[0] = call.args[0], ast.Name(name, ast.Load())
                        body.insert(body.index(line), ast.Assign([ast.Name(name, ast.Store())], value))


def longer_sums(tree: ast.Module) -> None:
    """x = x + y in the place of x += y."""
    for node in ast.walk(tree):
        for body in (getattr(node, name, None) for name in ("body", "orelse")):
            for i, line in enumerate(body if isinstance(body, list) else ()):
                if isinstance(line, ast.AugAssign) and isinstance(line.target, ast.Name):
                    value = ast.BinOp(ast.Name(line.target.id, ast.Load()), line.op, line.value)
                    body[i] = ast.Assign([line.target], value)


STYLES = [  # and the share of drawn changes that are found in it, and undone with one edit
    (0.95, ()),
    (0.95, (other_names,)),
    (0.95, (other_order, longer_sums)),
    (0.9, (fewer_variables,)),
    (0.9, (more_variables,)),
    (0.85, (fewer_variables, more_variables, longer_sums, other_order, other_names)),
]


def in_style(source: str, changes: tuple) -> str:
    tree = ast.parse(source)
    for change in changes:
        change(tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def alone(exercise: str, source: str) -> list[Difference]:
    return [each for found in differences(exercise, source) for each in found]


@pytest.mark.parametrize("place", range(len(STYLES)))
def test_a_drawn_change_of_a_solution_is_found_and_undone(place):
    """Each style is tried with a part of the exercises."""
    share, style = STYLES[place]
    found = count = 0
    for exercise in [*EXERCISES][place :: len(STYLES)]:
        right = in_style(solution(exercise), style)
        for mutant in mutants(exercise, 3, seed=20261125):
            wrong = in_style(mutant.source, style)
            count += 1
            found += any(undoes(wrong, (each,), right) for each in alone(exercise, wrong))
    assert found > share * count, f"{found} of {count}"


def test_a_repair_loses_the_changes_that_it_does_not_need():
    source = "a = 1\nb = 2\nc = 3\n"
    changes = tuple(Difference(line, ((6 * line - 2, 6 * line - 1, "9"),), 1) for line in (1, 2, 3))
    assert undone(source, changes) == "a = 9\nb = 9\nc = 9\n"
    for needed in ({"b = 9"}, {"a = 9", "c = 9"}):
        quick = lambda texts, needed=needed: [text for text in texts if needed <= {*text.splitlines()}]  # noqa: E731
        left = undone(source, least(source, changes, quick, bool)).splitlines()
        assert {line for line in left if "9" in line} == needed


TOLD = [  # exercise, what stands there in the place of what, and what the message says
    ("weighted_sum", {"p[:, None] * v": "v"}, ["p[:, None] * v", "Line "]),
    ("column_sum", {"columns < m)\n\n": "columns < n)\n\n", "row_stride + ": "n + "}, ["change in each", "row_stride"]),
    ("split_decode_attention", {"acc_of_parts * rescale[:, None]": "acc_of_parts"}, ["rescale[:, None]"]),
    ("swizzle", {"min(num_m - first_m, group)": "group"}, ["write `height = min(num_m - first_m, group)`"]),
    ("leaky_dropout", {"1 / (1 - p)": "(1 - p)"}, ["1 / (1 - p)"]),
    ("found_nan", {"sums / tl.maximum(counts, 1.0)": "tl.where(counts == 0, sums / counts, 0.0)"},
     ["sums / tl.maximum(counts, 1.0)"]),  # one tensor is of bools
]


def wrong(exercise: str, changes: dict[str, str]) -> str:
    source = solution(exercise)
    for old, new in changes.items():
        source = source.replace(old, new)
    assert source != solution(exercise), f"{exercise} has none of {list(changes)}"
    return source


@pytest.mark.parametrize("exercise, changes, said", TOLD)
def test_what_decides_is_told(judge, few, exercise, changes, said):
    with few():
        text = judge.judge(exercise, wrong(exercise, changes)).to_text()
    assert all(words in text for words in said), text


def test_a_line_in_the_wrong_place_is_told(judge):
    line, below = "        in_max = in_max_new\n", "        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))\n"
    source = solution("online_softmax").replace(line, "").replace(below, below + line)
    text = judge.judge("online_softmax", source).to_text()
    assert "move `in_max = in_max_new` below `in_exp_sum = " in text, text


def test_the_line_that_sets_a_variable_is_told_not_the_one_that_reads_it(judge, few):
    launch = "gather_rows_kernel[grid](table, index, output, table.stride(0)"
    there = f"    stride = table.stride(0) + 1\n    {launch.replace('table.stride(0)', 'stride')}"
    with few():
        text = judge.judge("gather_rows", wrong("gather_rows", {f"    {launch}": there})).to_text()
    assert "write `stride = table.stride(0)`" in text, text


def test_a_repair_that_was_told_passes(judge):
    source = wrong("row_sum", {"n_cols, other=0.0": "n_cols"})
    (found, *_) = alone("row_sum", source)
    assert judge.judge("row_sum", undone(source, (found,))).passed


def test_the_first_check_withholds_the_repair(judge):
    verdict = judge.judge("weighted_sum", wrong("weighted_sum", {"p[:, None] * v": "v"}))
    first = replace(verdict, advised=False).to_text()
    assert "Line " in first and "The next check says what to try" in first and "p[:, None] * v`" not in first, first


LONG = ["\nz = 1" * 40_000, "\nz = " + "-" * 20_000 + "1", "\nz = z", "\nz = x + y * (n - m) / w[a, b](c, d)" * 280]


@pytest.mark.parametrize("more", LONG)
def test_an_answer_that_is_long_or_deep_holds_nobody_up(more):
    begin = time.process_time()
    differences("row_sum", wrong("row_sum", {"n_cols, other=0.0": "n_cols"}) + more)
    assert time.process_time() - begin < 10


def test_variables_that_double_each_other_stay_small():
    lines = ["x0 = n_cols + 1", *(f"x{i} = x{i - 1} + x{i - 1}" for i in range(1, 60)), "return x59"]
    tree = ast.parse("def f(n_cols):\n    " + "\n    ".join(lines))
    assert sum(1 for _ in ast.walk(normal(tree))) < 20_000


def test_an_image_without_solutions_compares_with_its_packed_copy(tmp_path, monkeypatch):
    source = wrong("row_sum", {"n_cols, other=0.0": "n_cols"})
    here = differences("row_sum", source)
    monkeypatch.setattr(comparing, "PACKED", tmp_path / "packed")
    comparing.pack_right_answers()
    monkeypatch.setattr(hints, "SOLUTIONS", tmp_path / "none")
    for cached in (gallery.solution, _right_trees, differences, comparing._packed):
        cached.cache_clear()
    assert differences("row_sum", source) == here
    for cached in (gallery.solution, _right_trees, differences, comparing._packed):
        cached.cache_clear()
