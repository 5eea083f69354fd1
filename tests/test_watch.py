"""`autograder watch`: each save is checked, a pass leads on, and what is typed is answered."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from autograder import notebook
from autograder.exercises import EXERCISES
from autograder.verdict import Finding, Verdict
from autograder.watch import Watch
from workshop import progress, record
from workshop.syllabus import SYLLABUS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "answer.py"


@pytest.fixture
def asked(monkeypatch):
    """What the judge is asked; an answer with the word `solved` in it passes."""
    seen = []

    def judged(name, source):
        seen.append((name, source))
        passed, points = "solved" in source, SYLLABUS[name].points
        record(name, points * passed, points, passed)
        finding = None if passed else Finding("wrong-value", "It is wrong.")
        return Verdict(name, passed, points * passed, points, "", finding)

    monkeypatch.setattr(notebook, "judged", judged)
    return seen


def test_a_pass_leads_to_the_next_exercise_whose_starter_is_in_the_file(file, asked, capsys):
    watched = Watch(file)
    watched.start()
    assert asked == [] and EXERCISES["first_kernel"].starter in file.read_text()
    file.write_text(file.read_text().replace("pid = 0", "pid = solved"))
    watched.saved()
    assert watched.exercise.name == "vector_add" and EXERCISES["vector_add"].starter in file.read_text()
    said = capsys.readouterr().out
    assert "PASS  first_kernel" in said and "▶ vector_add" in said and progress().entry("first_kernel").passed
    assert file.read_text().count("import torch") == 1


def test_only_a_changed_answer_is_judged_again(file, asked, capsys):
    file.write_text("import torch\n\ndef first_kernel(n):\n    return torch.ones(n)\n")
    watched = Watch(file)
    watched.start()
    file.write_text(file.read_text() + "\n\ndef other():\n    return 1\n")
    watched.saved()
    assert len(asked) == 1 and "as it was" in capsys.readouterr().out
    file.write_text("other = 1\n")
    watched.saved()
    assert len(asked) == 1 and "answer.py does not define first_kernel" in capsys.readouterr().out


def test_what_is_typed_is_answered(file, asked, capsys):
    watched = Watch(file, "vector_add")
    assert all(watched.command(word) for word in ("hint", "solution", "hnt", "", "question"))
    said = capsys.readouterr().out
    assert "Hint 1 of 4" in said and "3 more failed checks" in said and "'hnt' is no command" in said
    assert "Save the file first" in said
    watched.start()
    watched.saved()
    assert watched.command("question") and "Exercise vector_add of the Triton workshop" in capsys.readouterr().out
    assert watched.command("next") and watched.exercise.name == "vector_add_autotuned"
    assert not watched.command("quit")


def test_a_course_that_is_done_says_so(file, asked, capsys):
    for lesson in SYLLABUS.values():
        record(lesson.name, lesson.points, lesson.points)
    watched = Watch(file)
    watched.start()
    assert watched.command("hint") and "Every exercise is passed" in capsys.readouterr().out


def test_the_command_checks_on_each_save_and_ends_with_quit(file):
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "autograder.cli", "watch", str(file)]
    child = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(240, child.kill)  # its output ends then
    limit.start()
    try:
        said = _read_until(child, "Its starter")
        assert "Watching" in said
        file.write_text(file.read_text().replace("pid = 0", "pid = tl.program_id(axis=0)"))
        said = _read_until(child, "Its starter")
        assert "PASS  first_kernel" in said and "▶ vector_add" in said
        child.stdin.write("quit\n")
        child.stdin.flush()
        assert child.wait(60) == 0
    finally:
        limit.cancel()
        child.kill()
        child.communicate()


def _read_until(child, words: str) -> str:
    """What the child prints up to a line with these words, or to its first verdict that is no pass."""
    lines = []
    for line in child.stdout:
        lines.append(line)
        if words in line or "NOT YET" in line:
            break
    return "".join(lines)


@pytest.mark.parametrize("call, words", [(["answer.txt"], "no .py file"), (["a.py", "vector_ad"], "Did you mean")])
def test_a_wrong_call_is_one_line(tmp_path, call, words, capsys):
    from autograder.cli import main

    assert main(["watch", str(tmp_path / call[0]), *call[1:]]) == 2
    assert words in capsys.readouterr().err
