"""Gradescope's autograder: the zip, and what its run_autograder writes about a submission."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from classroom import EXERCISES, StrawJudge, filled, new_course

from autograder import cli, lessons
from autograder.classroom.course import Course, CourseError
from autograder.classroom.lms.gradescope import build_zip, grade_folder
from autograder.classroom.submission import grade_id

ADD, _ = EXERCISES
ROOT = Path(__file__).resolve().parents[1]
# gradescope-autograders.readthedocs.io/en/latest/specs, "Output format".
OF_RESULTS = {"score", "execution_time", "output", "output_format", "visibility", "stdout_visibility", "extra_data",
              "tests", "leaderboard", "test_output_format", "test_name_format"}  # fmt: skip
OF_A_TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
             "visibility", "extra_data"}  # fmt: skip


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


@pytest.fixture
def release(course, tmp_path):
    """A release/ with one assignment, as it is in the zip."""
    (tmp_path / "release").mkdir()
    (course.root / "release" / ADD).rename(tmp_path / "release" / ADD)
    return tmp_path / "release"


def handed_in(tmp_path, **files):
    folder = tmp_path / "submission"
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_results_are_in_the_documented_form(release, tmp_path):
    answers = filled(ADD, vector_add="half", bug_hunt="right")
    found = grade_folder(release, handed_in(tmp_path, my_work__ipynb=answers, notes__txt="x"), StrawJudge)
    assert set(found) <= OF_RESULTS and all(set(test) <= OF_A_TEST for test in found["tests"])
    assert found["score"] == 5.5 and found["extra_data"] == {"points": 8}
    assert [(t["name"], t["score"], t["max_score"], t["status"]) for t in found["tests"]] == [
        ("vector_add", 2.5, 5, "failed"),
        ("bug_hunt", 3, 3, "passed"),
    ]
    assert "wrong-value" in found["tests"][0]["output"] and "notes.txt" in found["output"]
    json.dumps(found)


def test_what_cannot_be_read_gets_no_points_and_the_reason(release, tmp_path):
    folder = handed_in(tmp_path, **{f"{ADD}__ipynb": "<html>"})
    found = grade_folder(release, folder, StrawJudge)
    assert found["score"] == 0 and "is not a notebook" in found["output"]
    (folder / f"{ADD}.ipynb").unlink()
    found = grade_folder(release, folder, StrawJudge)
    assert (found["score"], found["tests"]) == (0, []) and f"expected {ADD}.ipynb" in found["output"]


def test_a_fault_of_the_grader_is_no_result(release, tmp_path):
    with pytest.raises(RuntimeError, match="the judge broke"):
        grade_folder(release, handed_in(tmp_path, **{f"{ADD}__ipynb": filled(ADD, vector_add="boom")}), StrawJudge)


def test_the_zip_has_what_gradescope_needs_and_no_solution(course, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TORCH_INDEX_URL", "https://index.example/cpu")
    report = build_zip(course, ADD, confine=False)
    with zipfile.ZipFile(report.files["zip"]) as archive:
        names = archive.namelist()
        assert {"setup.sh", "run_autograder"} <= set(names)
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o111
        setup, run = (archive.read(name).decode() for name in ("setup.sh", "run_autograder"))
    assert "export TORCH_INDEX_URL=https://index.example/cpu\n" in setup and setup.startswith("#!/")
    assert " --trust-submissions \\\n" in run and run.startswith("#!/")
    assert not [name for name in names if "solutions/" in name or "__pycache__" in name]
    for name in ("pyproject.toml", "workshop/install.py", f"release/{ADD}/{ADD}.ipynb"):
        assert f"course/{name}" in names
    with pytest.raises(CourseError, match="no assignment '99_x'"):
        build_zip(course, "99_x")
    assert cli.main(["gradescope", "--course", str(course.root), ADD, "--to", str(tmp_path / "x.zip")]) == 0
    assert "upload it as the autograder of a programming assignment with 8 points" in capsys.readouterr().out
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert "trust" not in archive.read("run_autograder").decode()


@pytest.mark.timeout(600)
def test_the_unpacked_zip_grades_with_the_real_judge(tmp_path):
    """All that Gradescope runs but the container: the call of run_autograder in the unpacked zip."""
    course = Course.open(tmp_path / "course")
    lesson = "00_setup"
    with zipfile.ZipFile(build_zip(course, lesson, confine=False).files["zip"]) as archive:
        archive.extractall(tmp_path / "source")
    notebook, answers = course.released[lesson], lessons.answers(ROOT / "solutions" / f"{lesson}.py")
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell), cell["source"])
    folder = handed_in(tmp_path, work__ipynb=notebook)
    results = tmp_path / "r" / "results.json"
    call = [sys.executable, "-m", "autograder.classroom.lms.gradescope", "--trust-submissions", folder, results]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "source" / "course")}
    done = subprocess.run(call, cwd=tmp_path / "source" / "course", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(results.read_text())
    assert [(t["name"], t["score"], t["status"]) for t in found["tests"]] == [("first_kernel", 1, "passed")]
    assert found["score"] == 1
