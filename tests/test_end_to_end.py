"""The instructor's way with the real lessons and the real judge: collect, grade, feedback, export."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from classroom import cell_of, zip_of

from autograder import lessons as build
from autograder.classroom.course import Course
from autograder.classroom.grading.grade import grade
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.standing import export
from workshop.syllabus import SYLLABUS

LESSON = "01_vector_add"
POINTS = {name: lesson.points for name, lesson in SYLLABUS.items() if lesson.notebook == LESSON}
ALL = sum(POINTS.values())
ANSWERS = build.answers(build.ROOT / "solutions" / f"{LESSON}.py")
WRONG_BLANK = ANSWERS["vector_add"].replace("tl.load(y_ptr", "tl.load(x_ptr")
HOSTILE = {
    "vector_add": "def add(x, y):\n    torch.allclose = lambda *a, **k: True\n    return x + y",
    "vector_add_autotuned": "import os\nos.kill(os.getppid(), 9)\nos._exit(0)",
    "bug_hunt": "import sqlite3\nsqlite3.connect('gradebook.db').execute('update grade set auto_score=9')",
}


def filled(course: Course, answers: dict[str, str]) -> dict:
    notebook = json.loads(json.dumps(course.released[LESSON]))
    for exercise, source in answers.items():
        cell_of(notebook, exercise)["source"] = source
    return notebook


def forged(course: Course) -> dict:
    """A notebook that does all it can: no answer in it is right, and its metadata ask for full marks."""
    notebook = filled(course, HOSTILE)
    for exercise in POINTS:
        cell = cell_of(notebook, f"check-{exercise}")
        cell["source"] = "1000.0"
        cell["metadata"]["tags"] = ["skip-execution"]
        cell["outputs"] = [
            {"output_type": "execute_result", "data": {"text/plain": "1000.0"}, "metadata": {}}
        ]
        cell["metadata"]["verdict"] = {"passed": True, "score": 1000.0}
    evil = "<script>fetch('https://evil.example')</script>"
    notebook["cells"].append({"cell_type": "markdown", "id": "evil", "metadata": {}, "source": evil})
    return notebook


def totals(course: Course) -> dict[str, float]:
    text = export(course).files["grades"].read_text(encoding="utf-8-sig")
    return {line["student"]: float(line["score"]) for line in csv.DictReader(text.splitlines())}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Three students, handed in by Moodle, graded."""
    root = tmp_path_factory.mktemp("course")
    course = Course.open(root / "course")
    course.create()
    half_right = {**ANSWERS, "vector_add": WRONG_BLANK, "bug_hunt": ""}
    handed_in = {
        "Ann Right": filled(course, ANSWERS),
        "Bob Half": filled(course, half_right),
        "Eve Hostile": forged(course),
    }
    path = zip_of(
        root / "moodle.zip",
        {
            f"{name}_{number}_assignsubmission_file_/{LESSON}.ipynb": notebook
            for number, (name, notebook) in enumerate(handed_in.items())
        },
    )
    assert collect(path, course).status == 0
    report = grade(course, workers=1)
    assert report.status == 0, report.rows
    feedback(course)
    return course


def beside(course: Course, root: Path) -> Course:
    """Another course, with the lessons that were built for this one."""
    for step in ("source", "release"):
        shutil.copytree(course.root / step, root / step)
    another = Course.open(root)
    another.create()
    return another


def test_three_notebooks_give_three_rows(course):
    of_bob = ALL - 1 - POINTS["bug_hunt"]  # one blank of vector_add is wrong
    assert totals(course) == {"Ann_Right": ALL, "Bob_Half": of_bob, "Eve_Hostile": 0}
    text = export(course).files["exercises"].read_text(encoding="utf-8-sig")
    lines = {(line["student"], line["exercise"]): line for line in csv.DictReader(text.splitlines())}
    assert len(lines) == 3 * len(POINTS)
    assert {exercise: float(lines["Ann_Right", exercise]["score"]) for exercise in POINTS} == POINTS
    assert lines["Bob_Half", "vector_add"]["score"] == f"{POINTS['vector_add'] - 1:.1f}"
    assert lines["Bob_Half", "bug_hunt"]["diagnosis"] == "not-attempted"
    assert lines["Eve_Hostile", "vector_add"]["diagnosis"] == "no-triton-kernel"
    assert all(line["reason"] for (_, _), line in lines.items() if line["passed"] == "0")


def test_three_pages_say_it(course):
    pages = {s: course.notebook("feedback", s, a, ".html").read_text() for s, a in course.handed_in()}
    assert len(pages) == 3
    for student, total in totals(course).items():
        assert f"{total:g} of {ALL}" in pages[student]
    assert "no-triton-kernel" in pages["Eve_Hostile"]
    for page in pages.values():
        assert "<script" not in page and "https://" not in page


def test_nothing_of_the_hostile_notebook_is_shown_but_its_answers(course):
    shown = course.notebook("autograded", "Eve_Hostile", LESSON).read_text()
    assert "evil.example" not in shown and "skip-execution" not in shown and "1000.0" not in shown
    released = course.released[LESSON]["cells"]
    assert [c["id"] for c in json.loads(shown)["cells"]] == [c["id"] for c in released]


# Each command runs in a fork of one process that has imported nbgrader: importing it takes most of a command's time.
NBGRADER = """
import gc, json, os, runpy, sys
sys.modules["rfc3987_syntax"] = None  # as in conftest.py
import nbgrader.apps.nbgraderapp
gc.freeze()

for arguments in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        sys.argv[:] = ["nbgrader", *arguments]
        runpy.run_module("nbgrader", run_name="__main__", alter_sys=True)
        sys.exit()
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(f"nbgrader {arguments}: {status}")
"""


def nbgrader(course: Course, *commands: list[str]) -> None:
    """Run plain nbgrader commands where an instructor would: in the course directory."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    run = [sys.executable, "-c", NBGRADER, json.dumps(commands)]
    done = subprocess.run(run, cwd=course.root, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]


def said(page: Path) -> list[str]:
    """Points and diagnoses on a feedback page; the numbers in its sentences are drawn anew each time."""
    return re.findall(r"[\d.]+ of \d+|<code class='slug'>[\w-]+", page.read_text())


def test_plain_nbgrader_commands_give_the_same(course, tmp_path):
    plain = beside(course, tmp_path / "plain")
    handed_in = [(student, assignment) for student, assignment in course.handed_in() if student != "Ann_Right"]
    for student, assignment in handed_in:
        source = course.notebook("submitted", student, assignment)
        target = plain.notebook("submitted", student, assignment)
        target.parent.mkdir(parents=True)
        target.write_bytes(source.read_bytes())
    released = {a: plain.notebook("release", ".", a).read_bytes() for a in plain.released}
    steps = ["generate_assignment", LESSON, "--force"], ["autograde", LESSON], ["generate_feedback", LESSON], ["export"]
    nbgrader(plain, *steps)
    assert {a: plain.notebook("release", ".", a).read_bytes() for a in plain.released} == released
    with (plain.root / "nbgrader_grades.csv").open() as file:
        assert {line["student_id"]: float(line["score"]) for line in csv.DictReader(file)} == {
            student: total for student, total in totals(course).items() if student != "Ann_Right"
        }
    for student, assignment in handed_in:
        ours, theirs = (c.notebook("feedback", student, assignment, ".html") for c in (course, plain))
        assert said(theirs) == said(ours)


def test_a_batch_with_twelve_bad_files(course, few, tmp_path):
    course = beside(course, tmp_path / "course")
    right = filled(course, ANSWERS)
    folder = tmp_path / "handed in"

    def hand_in(student: str, content: object, name: str = f"{LESSON}.ipynb") -> None:
        path = folder / student / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    def changed(change) -> dict:
        notebook = json.loads(json.dumps(right))
        change(notebook)
        return notebook

    hand_in("ann", right)
    hand_in("zoe", right, "my final version.ipynb")
    zero = {
        "bad01": b"",
        "bad02": b"<html>sign in</html>",
        "bad03": b"PK\x03\x04 a zip",
        "bad04": b"[" * 10_000,
        "bad05": {"cells": "none"},
        "bad06": json.dumps(right).encode("utf-16"),
        "bad07": json.dumps(right).encode()[:2000],
        "bad08": {"cells": [None, 3, [], {"source": {}, "metadata": []}]},
        "bad09": changed(lambda nb: nb["cells"].clear()),
        "bad10": changed(lambda nb: [cell_of(nb, e).update(source="\x00\ud800") for e in POINTS]),
        "bad11": changed(lambda nb: [cell_of(nb, e).update(source="(" * 50_000) for e in POINTS]),
        "bad12": changed(lambda nb: [cell_of(nb, e).update(source="raise SystemExit") for e in POINTS]),
    }
    for student, content in zero.items():
        hand_in(student, content)
    collect(folder, course)
    with few():
        report = grade(course, workers=1)
    scores = {row.student: row.score for row in report.rows}
    # utf-16 is JSON all the same, and the notebook in it is right
    assert scores == {"ann": ALL, "zoe": ALL, **dict.fromkeys(zero, 0), "bad06": ALL}
    unreadable = {f"bad0{n}" for n in (1, 2, 3, 4, 5, 7)}
    without_answers = {"bad08", "bad09"}
    assert {row.student for row in report.rows if row.needs_review} == unreadable | without_answers
    assert report.status == 1
    assert totals(course) == scores
    assert len(feedback(course).files) == 14


def test_a_checked_file_leaves_the_terminal_alone(forks, tmp_path):
    answer = tmp_path / "answer.py"
    answer.write_text("def add(x, y):\n    raise ValueError('\\x1b[2J \\u202e \\ud800 \\x9b')\n")
    call = f"main(['check', 'vector_add', {str(answer)!r}, *form])"
    ascii_only = "import sys\nsys.stdout.reconfigure(encoding='ascii', errors='strict')\n"
    code = f"from autograder.cli import main\nassert [{call} for form in ([], ['--json'])] == [1, 1]"
    done = forks.run(ascii_only + code)
    assert done.returncode == 0, done.stderr
    as_text, _, as_json = done.stdout.partition('"exercise"')
    assert "ValueError" in as_text and "ValueError" in as_json
    assert all(line.isascii() and line.isprintable() for line in done.stdout.splitlines())
