"""Wrong answers beside right ones: what differs is found, and what decides is told."""

import ast
import random
from dataclasses import replace

import pytest
from mutants import mutants, solution

from autograder import gallery
from autograder.exercises import EXERCISES
from autograder.judge import right_answers
from autograder.judge.differences import _right_trees, differences, undone
from workshop import hints

SHARE = 0.9  # of drawn changes that are found


def renamed(source: str, seed: int) -> str:
    """The source with other names for the variables and parameters of its functions, some of them."""
    tree = ast.parse(source)
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.decorator_list):
        stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        chosen = {name for name in sorted(stored) if random.Random(f"{seed} {name}").random() < 0.5}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in chosen:
                node.id += "_here"
    return ast.unparse(tree)


def same(a: str, b: str) -> bool:
    return ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))


@pytest.mark.parametrize("names", ["the solution's names", "other names"])
def test_a_drawn_change_of_a_solution_is_found_and_undone(names):
    found = count = 0
    for exercise in EXERCISES:
        for mutant in mutants(exercise, 6, seed=20261125):
            wrong, right = mutant.source, solution(exercise)
            if names == "other names":
                wrong, right = renamed(wrong, 1), renamed(right, 1)
            count += 1
            found += any(same(text, right) for each in differences(exercise, wrong) if (text := undone(wrong, (each,))))
    assert found > SHARE * count, f"{found} of {count}"


TOLD = [  # exercise, what stands there in the place of what, and what the message says
    ("weighted_sum", {"p[:, None] * v": "v"}, ["p[:, None] * v", "Line "]),
    ("column_sum", {"columns < m)\n\n": "columns < n)\n\n", "row_stride + ": "n + "}, ["change in each", "row_stride"]),
    ("split_decode_attention", {"acc_of_parts * rescale[:, None]": "acc_of_parts"}, ["rescale[:, None]"]),
    ("swizzle", {"min(num_m - first_m, group)": "group"}, ["write `height = min(num_m - first_m, group)`"]),
    ("leaky_dropout", {"1 / (1 - p)": "(1 - p)"}, ["1 / (1 - p)"]),
]


def wrong(exercise: str, changes: dict[str, str]) -> str:
    source = solution(exercise)
    for old, new in changes.items():
        source = source.replace(old, new)
    assert source != solution(exercise), f"{exercise} has none of {list(changes)}"
    return source


@pytest.mark.parametrize("exercise, changes, said", TOLD)
def test_what_decides_is_told(judge, exercise, changes, said):
    text = judge.judge(exercise, wrong(exercise, changes)).to_text()
    assert all(words in text for words in said), text


def test_a_line_in_the_wrong_place_is_told(judge):
    line, below = "        in_max = in_max_new\n", "        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))\n"
    source = solution("online_softmax").replace(line, "").replace(below, below + line)
    text = judge.judge("online_softmax", source).to_text()
    assert "move `in_max = in_max_new` below `in_exp_sum = " in text, text


def test_a_repair_that_was_told_passes(judge):
    source = wrong("row_sum", {"n_cols, other=0.0": "n_cols"})
    (found,) = differences("row_sum", source)
    assert judge.judge("row_sum", undone(source, (found,))).passed


def test_the_first_check_withholds_the_repair(judge):
    verdict = judge.judge("weighted_sum", wrong("weighted_sum", {"p[:, None] * v": "v"}))
    first = replace(verdict, advised=False).to_text()
    assert "Line " in first and "The next check says what to try" in first and "p[:, None] * v`" not in first, first


def test_an_image_without_solutions_compares_with_its_packed_copy(tmp_path, monkeypatch):
    source = wrong("row_sum", {"n_cols, other=0.0": "n_cols"})
    here = differences("row_sum", source)
    monkeypatch.setattr(right_answers, "PACKED", tmp_path / "packed")
    right_answers.pack()
    monkeypatch.setattr(hints, "SOLUTIONS", tmp_path / "none")
    for cached in (gallery.solution, _right_trees, differences, right_answers._packed):
        cached.cache_clear()
    assert differences("row_sum", source) == here
    for cached in (gallery.solution, _right_trees, differences, right_answers._packed):
        cached.cache_clear()
