"""Points are remembered beside the notebook, whatever happens to the file."""

import json
import os
import subprocess
import sys

import pytest

from workshop import here, progress, record
from workshop.cli import main
from workshop.progress import COURSE, path, record_hint
from workshop.syllabus import LESSONS, SYLLABUS

STRETCH = [name for name, lesson in SYLLABUS.items() if lesson.stretch]
POINTS = sum(lesson.points for lesson in SYLLABUS.values() if not lesson.stretch)


@pytest.fixture(autouse=True)
def beside_the_notebook(tmp_path, monkeypatch):
    monkeypatch.delenv("WORKSHOP_PROGRESS", raising=False)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (folder / "00_setup.ipynb").touch()
    monkeypatch.chdir(folder)
    return folder / ".progress.json"


def test_stretch_exercises_are_not_asked_for():
    assert STRETCH
    assert progress().points == POINTS


def test_nothing_is_earned_at_first():
    start = progress()
    assert start.score == 0
    assert start.next().name == next(iter(SYLLABUS))
    assert f"0 of {POINTS} points" in str(start)


def test_the_best_score_is_kept():
    record("vector_add", 5, 5)
    record("vector_add", 2, 5)
    entry = progress().entry("vector_add")
    assert (entry.score, entry.passed, entry.checks, entry.failed) == (5, True, 2, 1)


def test_next_is_the_first_that_is_not_passed_and_stretch_comes_last():
    for name, lesson in SYLLABUS.items():
        if not lesson.stretch:
            record(name, lesson.points, lesson.points)
    for name in STRETCH:
        assert progress().next().name == name
        record(name, SYLLABUS[name].points, SYLLABUS[name].points)
    assert progress().next() is None
    assert "Every exercise is passed" in str(progress())


def test_the_view_lists_every_lesson_and_the_exercises_of_one():
    """It printed a row for each exercise of the course, 43 in all."""
    record("vector_add", 3, 5)
    asked, page = str(progress("01_vector_add")), progress()._repr_html_()
    assert all(name in page for name in SYLLABUS) and "3 / 5" in page
    assert all(lesson in asked for lesson in LESSONS) and "3 / 5" in asked
    assert [name for name in SYLLABUS if f" {name} " in asked.partition("\n")[2]] == list(LESSONS["01_vector_add"])
    assert len(asked.splitlines()) < 25


def test_without_a_lesson_the_exercises_of_the_next_one_are_shown(monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["workshop.progress"], "_shown", [])
    record("first_kernel", 1, 1)
    assert "· vector_add " in str(progress()) and "first_kernel" not in str(progress())
    assert main(["progress", "03_online_softmax"]) == 0 and "· online_softmax " in capsys.readouterr().out
    assert main(["progress", "03_online"]) == 2 and "Did you mean 03_online_softmax" in capsys.readouterr().err


def test_the_view_unfolds_the_lesson_at_hand_alone():
    here("01_vector_add")._ipython_display_()
    assert progress()._repr_html_().count("<details open><summary>01_vector_add") == 1
    assert progress()._repr_html_().count("<details open>") == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b'{"exercises": 3}',
        b'{"exercises": {"vector_add": 7}}',
        b'{"exercises": {"vector_add": {"score": "many", "checks": null, "unknown": 1}}}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_counts_as_nothing_earned(beside_the_notebook, content):
    beside_the_notebook.write_bytes(content)
    assert progress().score == 0
    record("vector_add", 5, 5)
    assert progress().entry("vector_add").score == 5


def test_a_failed_write_leaves_the_old_file(beside_the_notebook, monkeypatch):
    record("vector_add", 5, 5)
    monkeypatch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(OSError("disk full")))
    record("bug_hunt", 3, 3)
    assert list(json.loads(beside_the_notebook.read_text())["exercises"]) == ["vector_add"]
    there = {file.name for file in beside_the_notebook.parent.iterdir()}
    assert there == {"00_setup.ipynb", ".progress.json"}


def test_a_folder_that_cannot_be_written_is_no_error(monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", "/proc/none/progress.json")
    assert record("vector_add", 5, 5).entry("vector_add").score == 5


def test_another_file_can_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "mine.json"))
    record_hint("vector_add")
    assert json.loads((tmp_path / "mine.json").read_text())["exercises"]["vector_add"]["hints"] == 1


def test_the_command_prints_the_view(capsys):
    assert main(["progress"]) == 0
    assert "vector_add" in capsys.readouterr().out


def test_stretch_points_are_counted_apart():
    for name, lesson in SYLLABUS.items():
        record(name, lesson.points, lesson.points)
    stretch = sum(lesson.points for lesson in SYLLABUS.values() if lesson.stretch)
    assert progress().headline() == (
        f"{progress().points} of {progress().points} points, and {stretch} from stretch exercises. "
        "Every exercise is passed."
    )


def test_the_next_exercise_is_behind_this_one_if_there_is_one():
    names = list(SYLLABUS)
    assert progress().next("vector_add").name == names[names.index("vector_add") + 1]
    assert progress().next(names[-1]).name == names[0]


@pytest.mark.parametrize("stretch", STRETCH)
def test_a_stretch_exercise_comes_behind_the_others_of_its_notebook(stretch):
    notebook = SYLLABUS[stretch].notebook
    others = [each for each in SYLLABUS.values() if each.notebook == notebook and not each.stretch]
    for each in others:
        record(each.name, each.points, each.points)
    found = progress().next(others[0].name)
    assert found.stretch and found.notebook == notebook


def test_the_strip_marks_this_lesson_and_leads_to_the_others():
    record("vector_add", 3, 5)
    lesson = [each for each in SYLLABUS.values() if each.notebook == "01_vector_add"]
    points = sum(each.points for each in lesson if not each.stretch)
    strip = here("01_vector_add")
    html = strip._repr_html_()
    assert html.count("aria-current='page'") == 1 and "01_vector_add.ipynb" not in html
    assert "href='00_setup.ipynb'" in html and f"3 of {points}" in html
    assert "▶ 01_vector_add" in str(strip)


def test_progress_is_the_same_from_every_folder(beside_the_notebook, tmp_path, monkeypatch):
    record("vector_add", 5, 5)
    for folder in (tmp_path, tmp_path / "work"):
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        assert progress().score == 5 and str(beside_the_notebook) in str(progress())
    monkeypatch.chdir("/")
    assert path().parent == COURSE / "notebooks"


def test_a_lesson_greets_who_comes_back():
    assert here("01_vector_add").greeting == ""
    record("vector_add", 2, 5)
    _, points = progress().of_lesson("01_vector_add")
    expected = f"Welcome back: 2 of {points} points in this lesson, next is vector_add."
    assert here("01_vector_add").greeting == expected


def test_the_strip_follows_the_points(monkeypatch):
    shown = []
    strip = here("01_vector_add")
    strip._handle = type("Handle", (), {"update": lambda self, bundle, raw: shown.append(bundle["text/html"])})()
    monkeypatch.setattr(sys.modules["workshop.progress"], "_shown", [strip])
    record("vector_add", 5, 5)
    assert f"5 of {progress().of_lesson('01_vector_add')[1]}" in shown[-1]


def test_the_strip_keeps_the_words_of_plain_outputs_whole():
    """JupyterLab breaks them anywhere. Only pictures brought the rule against it, and many pages begin without one."""
    assert ".jp-RenderedText pre {word-break: normal" in here("01_vector_add")._repr_html_()


def test_output_that_nobody_reads_ends_the_command_quietly():
    """As `| head` does. It printed that a pipe is broken, and had the status of a wrong call."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "workshop.cli", "progress"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
