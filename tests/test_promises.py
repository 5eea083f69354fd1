"""What the course promises about its own exercises: each starter runs and earns nothing. Solutions: see the gallery."""

import ast
import contextlib
import io
import os

import pytest
from known import notebooks, solutions, starters

from autograder import lessons as build
from autograder.answer import from_history, is_python
from autograder.exercises import EXERCISES
from workshop.syllabus import SYLLABUS

SCRIPTS = {script.stem: script for script in build.scripts()}
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"


def test_every_exercise_of_the_syllabus_exists_and_stands_in_a_lesson():
    assert list(SYLLABUS) == list(EXERCISES)
    assert set(solutions()) == set(EXERCISES)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_starter_earns_nothing(judge, few, name):
    with few():
        verdict = judge.judge(name, starters()[name])
    assert not verdict.passed
    assert verdict.score == 0, verdict.to_text()
    assert not any(verdict.blanks.values())
    assert verdict.diagnosis == "not-attempted"
    of_another = "is still as in the starter of leaky_dropout"
    empty_cell = "returns None and launches no kernel" in verdict.message
    unchanged = of_another if name == "leaky_dropout_grad" else "The starter is unchanged."
    assert empty_cell or unchanged in verdict.message


@pytest.mark.parametrize("lesson", SCRIPTS if "LESSONS" in os.environ else list(SCRIPTS)[1::6])
def test_the_starter_notebook_runs_top_to_bottom(lesson, tmp_path, forks):
    """Unfilled, as a learner's Run All does it: no exception, whatever the checks say.

    Two of the lessons: LESSONS=all runs each, and so does tests/browser/test_notebooks.py.
    """
    notebook = build.release(notebooks()[lesson])
    code = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    script = tmp_path / f"{lesson}.py"
    script.write_text(code)
    done = forks.run(script, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "NOT YET" in done.stdout or lesson.startswith("00"), done.stdout
    assert "PASS" not in done.stdout


def bound(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def sizes(function: ast.AST) -> set[str]:
    """Names that a host function takes from a tensor's shape."""
    shapes = {"shape", "numel", "size"}
    assigned = (node for node in ast.walk(function) if isinstance(node, ast.Assign))
    taken = (a for a in assigned if shapes & {n.attr for n in ast.walk(a.value) if isinstance(n, ast.Attribute)})
    return set().union(*map(bound, taken))


@pytest.mark.parametrize("lesson", SCRIPTS)
def test_a_size_that_an_answer_forgets_is_not_found_in_another_cell(lesson):
    """`n_elements` of an example, 2**28, made a forgotten one an out-of-bounds load."""
    cells = [cell for cell in notebooks()[lesson].cells if cell.cell_type == "code"]
    trees = {cell.id: ast.parse(cell.source) for cell in cells if is_python(cell.source)}
    answers = {cell.id for cell in cells if cell.metadata.get("nbgrader", {}).get("solution")}
    wanted = set().union(*(sizes(trees[number]) for number in answers))
    examples = [statement for number in trees.keys() - answers for statement in trees[number].body]
    named = set().union(*(bound(s) for s in examples if not isinstance(s, (ast.FunctionDef, ast.ClassDef))))
    assert not wanted & named


def test_a_notebook_history_gives_the_solution():
    """What check() finds in a session is the answer cell, whatever was run around it."""
    source = solutions()["vector_add"]
    history = [IMPORTS, "x = 1", source, "add(torch.ones(3), torch.ones(3))", "%timeit 1"]
    with contextlib.redirect_stdout(io.StringIO()):
        found = from_history(history, "add")
    assert "def add_kernel" in found and "def add(" in found and "timeit" not in found
