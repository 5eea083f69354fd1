"""notebooks/ is what solutions/ builds: nothing more, nothing less, the same bytes every time."""

import ast
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest

from autograder import lessons as build
from autograder.exercises import EXERCISES
from autograder.lessons import BuildError, release, source_notebook
from workshop import recorded
from workshop.hints import MalformedAnswer, split_answer

SCRIPTS = build.scripts()
RHYTHM = ["Picture", "Idea", "Predict", "Write", "Check", "Measure", "Look inside", "Go further"]

LESSON = """\
# %% [markdown]
# # A lesson
#
# ![a grid](../assets/grid.svg)

# %% answer="vector_add"
def add(x, y):
    total = x + y  # ① starter: x
    return total

# %% [markdown] hints="vector_add"

# %% check="vector_add"
check("vector_add")
"""


@pytest.fixture
def root(tmp_path):
    """A repository with one small lesson."""
    for folder in ("solutions", "assets", "workshop/hints"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "solutions" / "01_vector_add.py").write_text(LESSON)
    (tmp_path / "assets" / "grid.svg").write_text("<svg/>")
    (tmp_path / "workshop" / "hints" / "vector_add.md").write_text(
        "".join(f"## {title}\n\nabout {title}\n\n" for title in build.RUNGS)
    )
    return tmp_path


def write_lesson(root, text):
    script = root / "solutions" / "01_vector_add.py"
    script.write_text(text)
    return script


# -- answers and starters ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line, solution, starter",
    [
        ("mask = a < b  # ② starter: a < 1", "mask = a < b  # ②", "mask = a < 1  # ② your code here"),
        ("x = y # starter: None", "x = y", "x = None  # your code here"),
        ("x[0], y = f()  # starter: 1, 2", "x[0], y = f()", "x[0], y = 1, 2  # your code here"),
        ("store(a)  # ⑤ starter: store(b)", "store(a)  # ⑤", "store(b)  # ⑤ your code here"),
        ("x = 1  # starter: y = 2", "x = 1", "y = 2  # your code here"),
        ("x += 1  # starter: pass", "x += 1", "pass  # your code here"),
        ("x += f(1)  # starter: 2", "x += f(1)", "x += 2  # your code here"),
        ("x = '# starter: no'  # starter: ''", "x = '# starter: no'", "x = ''  # your code here"),
    ],
)
def test_a_starter_beside_a_line(line, solution, starter):
    assert split_answer(f"if 1:\n    {line}\n    z = 1") == (
        f"if 1:\n    {solution}\n    z = 1",
        f"if 1:\n    {starter}\n    z = 1",
    )


def test_a_starter_block_keeps_its_indentation():
    source = """\
def f():
    ### BEGIN SOLUTION
    for i in range(3):
        g(i)
    ### STARTER
    # if True:
    #     g(0)  # your code here
    #
    ### END SOLUTION
    return 1"""
    solution, starter = split_answer(source)
    assert solution == "def f():\n    for i in range(3):\n        g(i)\n    return 1"
    assert starter == "def f():\n    if True:\n        g(0)  # your code here\n\n    return 1"


@pytest.mark.parametrize(
    "source, message",
    [
        ("x = 1", "no starter"),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "END SOLUTION out of order"),
        ("### STARTER\n# x = 1\n### END SOLUTION", "STARTER out of order"),
        ("### BEGIN SOLUTION\nx = 1\n### STARTER\n# x", "without ### END"),
        ("### BEGIN SOLUTION\nx = 1\n### STARTER\ny = 1\n### END SOLUTION", "begins with '# '"),
        ("x = f(1,  # starter: 2\n  3)", "one whole statement"),
        ("x = 1  # starter: 2 +", "the starter is not Python"),
        ("x = (1", "not Python"),
    ],
)
def test_a_malformed_answer_is_one_clear_line(source, message):
    with pytest.raises(MalformedAnswer, match=re.escape(message)) as caught:
        split_answer(source)
    assert "\n" not in str(caught.value)


# -- a small lesson ---------------------------------------------------------------------------------------


def test_cells_become_what_nbgrader_expects(root):
    text, answer, hints, check = release(source_notebook(root / "solutions" / "01_vector_add.py")).cells
    assert [c.id for c in (text, answer, hints, check)] == [
        "cell-01",
        "vector_add",
        "hints-vector_add",
        "check-vector_add",
    ]
    assert answer.source == "def add(x, y):\n    total = x  # ① your code here\n    return total"
    expected = {"schema_version": 3, "task": False, "cell_type": "code"}
    expected_answer = {"grade_id": "vector_add", "grade": False, "solution": True, "locked": False}
    expected_check = {"grade_id": "check-vector_add", "grade": True, "solution": False, "locked": True}
    assert {**expected, **expected_answer}.items() <= answer.metadata.nbgrader.items()
    assert {**expected, **expected_check, "points": 5}.items() <= check.metadata.nbgrader.items()
    assert check.metadata.editable is False and answer.metadata.deletable is False
    assert hints.source.count("<details>") == hints.source.count("</details>") == 4
    assert "about Pseudo-formula" in hints.source


def test_bytes_do_not_depend_on_time_or_place(root, tmp_path_factory):
    assert build.build(root=root) == 0
    first = (root / "notebooks" / "01_vector_add.ipynb").read_bytes()
    other = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(root, other, ignore=shutil.ignore_patterns("notebooks"))
    os.utime(other / "solutions" / "01_vector_add.py", (0, 0))
    assert build.build(root=other) == 0
    assert (other / "notebooks" / "01_vector_add.ipynb").read_bytes() == first
    assert str(root).encode() not in first


def test_check_names_what_differs_and_writes_nothing(root, capsys):
    assert build.build(check=True, root=root) == 1
    assert not (root / "notebooks").exists()
    build.build(root=root)
    assert build.build(check=True, root=root) == 0
    notebook = root / "notebooks" / "01_vector_add.ipynb"
    notebook.write_text(notebook.read_text().replace("A lesson", "a lesson"))
    (root / "notebooks" / "09_gone.ipynb").write_text("{}")
    capsys.readouterr()
    assert build.build(check=True, root=root) == 1
    assert capsys.readouterr().out.split()[-1] == "notebooks/09_gone.ipynb"
    assert "a lesson" in notebook.read_text()


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('answer="vector_add"', 'answer="vector_ad"', "there is no such exercise"),
        ('answer="vector_add"', 'answer="first_kernel"', "belongs in 00_setup.py"),
        ('answer="vector_add"', 'anwser="vector_add"', "one of answer, check, hints was expected"),
        ('# %% check="vector_add"\ncheck("vector_add")\n', "", 'no cell marked check="vector_add"'),
        ("  # ① starter: x", "", 'answer="vector_add": no starter'),
        ('check("vector_add")\n', 'check("bug_hunt")\n', "must hold"),
        ('# %% check="vector_add"', '# %% answer="vector_add"', "is there twice"),
    ],
)
def test_a_mistake_in_a_script_is_one_clear_line(root, old, new, message):
    assert old in LESSON
    write_lesson(root, LESSON.replace(old, new))
    with pytest.raises(BuildError, match=re.escape(message)) as caught:
        build.build(root=root)
    assert "\n" not in str(caught.value)
    assert not (root / "notebooks").exists()


def test_measured_numbers_come_from_the_recorded_files(root):
    numbers = "{{h200_vector_add_float32; 98432; add; GB/s}} {{h200_vector_add_float32; 98432; BLOCK_SIZE=4; of copy}}"
    write_lesson(root, LESSON.replace("A lesson", numbers))
    add, four = source_notebook(root / "solutions" / "01_vector_add.py").cells[0].source.splitlines()[0].split()[1:]
    speeds = {row.provider: row for row in recorded("h200_vector_add_float32").rows if row.size == 98432}
    assert add == f"{speeds['add'].gbps.median:.0f}" and four == f"{speeds['BLOCK_SIZE=4'].of_copy:.0%}"


@pytest.mark.parametrize("wrong", ["h100_add; 98432; add; GB/s", "h200_vector_add_float32; 7; add; GB/s", "a; b"])
def test_a_number_that_was_not_recorded_is_refused(root, wrong):
    write_lesson(root, LESSON.replace("A lesson", "{{" + wrong + "}}"))
    with pytest.raises(BuildError, match="names no recorded number"):
        build.build(root=root)


def test_missing_hints_and_missing_scripts_say_so(root, tmp_path):
    (root / "workshop" / "hints" / "vector_add.md").write_text("## Concept\n\nonly one\n")
    with pytest.raises(BuildError, match="its sections are not Concept, Documentation"):
        build.build(root=root)
    (root / "workshop" / "hints" / "vector_add.md").unlink()
    with pytest.raises(BuildError, match="there is no workshop/hints/vector_add.md"):
        build.build(root=root)
    with pytest.raises(BuildError, match="no lesson scripts"):
        build.build(root=tmp_path / "empty")


def test_the_course_has_source_and_release_with_figures(root, tmp_path):
    course = tmp_path / "course"
    assert build.write_course(course, root=root) == ["01_vector_add"]
    for step, has_answer in (("source", True), ("release", False)):
        folder = course / step / "01_vector_add"
        text = (folder / "01_vector_add.ipynb").read_text()
        assert ("total = x + y" in text) is has_answer
        assert "](assets/grid.svg)" in text and (folder / "assets" / "grid.svg").read_text() == "<svg/>"
    (root / "assets" / "grid.svg").unlink()
    with pytest.raises(BuildError, match="there is no assets/grid.svg"):
        build.write_course(tmp_path / "again", root=root)


# -- the lessons ------------------------------------------------------------------------------------------


def test_the_committed_notebooks_are_what_the_scripts_build(capsys):
    assert build.build(check=True) == 0, capsys.readouterr().out


class Lesson(NamedTuple):
    script: Path
    source: nbformat.NotebookNode
    released: nbformat.NotebookNode


@pytest.fixture(scope="module", params=SCRIPTS, ids=lambda script: script.stem)
def lesson(request) -> Lesson:
    source = source_notebook(request.param)
    return Lesson(request.param, source, release(source))


def markdown(nb) -> str:
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def test_solution_and_starter_differ_in_answer_cells_only(lesson):
    for with_answer, without in zip(lesson.source.cells, lesson.released.cells, strict=True):
        is_answer = without.metadata.get("nbgrader", {}).get("solution", False)
        assert (with_answer.source != without.source) is is_answer
        assert with_answer.id == without.id


def test_nothing_leaks_into_the_student_notebook(lesson):
    nb = lesson.released
    text = build.to_text(nb)
    for leak in ("starter:", "### BEGIN", "### STARTER", "### END", "jupytext", "lines_to_next_cell"):
        assert leak not in text
    assert set(nb.metadata) == {"kernelspec", "language_info"} and nb.metadata.kernelspec.name == "python3"
    for cell in nb.cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None
        assert set(cell.metadata) <= {"nbgrader", "deletable", "editable"}
    nbformat.validate(nb)


def test_each_line_of_a_starter_does_something(lesson):
    for cell in (cell for cell in lesson.released.cells if cell.id in EXERCISES):
        name, starter = cell.id, cell.source
        values = [each.value for each in ast.walk(ast.parse(starter)) if isinstance(each, ast.Expr)]
        assert all(isinstance(value, ast.Call | ast.Constant) for value in values), name


def test_every_exercise_of_the_notebook_is_in_it_with_hints(lesson):
    expected = {name for name, exercise in EXERCISES.items() if exercise.notebook == lesson.script.stem}
    ids = [cell.id for cell in lesson.source.cells]
    assert set(build.answers(lesson.script)) == {cell_id for cell_id in ids if cell_id in EXERCISES} == expected
    assert {f"hints-{name}" for name in expected} <= set(ids)
    assert len(ids) == len(set(ids))


def test_an_exercise_is_defined_in_its_answer_cell_only(lesson):
    homes: dict[str, set[str]] = {}  # two exercises may ask for the same function, each in its own cell
    for cell in lesson.released.cells:
        if cell.id in EXERCISES:
            homes.setdefault(EXERCISES[cell.id].entry, set()).add(cell.id)
    for cell in lesson.released.cells:
        if cell.cell_type != "code":
            continue
        defined = {
            node.name for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.FunctionDef)
        }
        for entry in defined & set(homes):
            assert cell.id in homes[entry]


def test_a_link_leads_to_what_an_attendee_has(lesson):
    """Who sits in a room has the lessons and their figures, nothing else of the repository."""
    words = re.sub(r"(`+).*?\1", "", markdown(lesson.released), flags=re.DOTALL)  # kernel[grid](x) is no link
    for target in re.findall(r"\]\(([^)\s#]+)", words):
        if "://" not in target:
            file = (build.ROOT / "notebooks" / target).resolve()
            assert file.exists() and file.parent.name in ("notebooks", "assets"), target


def test_the_rhythm_never_changes(lesson):
    """A lesson may predict, write and check more than once before it measures; nothing else comes twice.

    A lesson in several sittings does so in each of them. It may open with a kernel from memory.
    """
    headings = re.findall(r"^## (\w[\w ]*\w)", markdown(lesson.source), re.MULTILINE)
    assert list(dict.fromkeys(headings)) in (RHYTHM, ["From memory", *RHYTHM])
    for part in re.split(r"^# Sitting ", markdown(lesson.source), flags=re.MULTILINE):
        steps = re.findall(r"^## (\w[\w ]*\w)", part, re.MULTILINE)
        assert all(steps.count(step) <= 1 for step in RHYTHM if step not in ("Predict", "Write", "Check"))


def test_figures_are_there_and_described(lesson):
    for description, figure in re.findall(r"!\[(.*?)\]\((.*?)\)", markdown(lesson.source), re.DOTALL):
        assert len(description) > 20, f"{figure} needs alternative text"
        assert (lesson.script.parent / figure).is_file(), figure
