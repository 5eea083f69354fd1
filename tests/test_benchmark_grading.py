"""benchmarks/grading.py goes through all its steps, with commands that are not run and a judge of straw."""

import argparse
import shutil
import sys
from pathlib import Path

import classroom
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import grading  # noqa: E402

from autograder.verdict import Verdict  # noqa: E402


class Pleased(classroom.StrawJudge):
    def judge(self, exercise, source):
        return Verdict(exercise, True, 1.0, 1.0, "interpreter")


def course_with_sources(root):
    course = classroom.new_course(root)
    shutil.copytree(root / "release", root / "source")
    return course


@pytest.fixture
def chosen(monkeypatch):
    monkeypatch.setattr(grading, "new_course", course_with_sources)
    monkeypatch.setattr(grading, "Judge", Pleased)
    monkeypatch.setattr(grading, "timed", lambda command, *_: (2.0, 3.0))
    return argparse.Namespace(notebooks=2, stock=1, students=3, kills=1, workers=None)


def test_beside_stock_nbgrader(chosen, tmp_path):
    """It called `register` as it had been, and nothing but a measurement of minutes showed it."""
    found = grading.beside(chosen, tmp_path)
    assert found["times_by_seconds_each"] == 2.0
    assert (tmp_path / "stock" / "gradebook.db").exists()


def test_the_profile_names_its_parts(chosen, tmp_path):
    found = grading.profile(chosen, tmp_path)
    assert {"collect", "feedback", "judge: vector_add"} <= set(found["processor_seconds_each"])


def test_a_class_of_the_galleries_is_compared_with_them(chosen, tmp_path, monkeypatch):
    def grade_once(command, course, kill_after):
        grading.grade(course, new_judge=Pleased)
        return 0, 1.0, [100.0]

    monkeypatch.setattr(grading, "grade_once", grade_once)
    found = grading.whole_class(chosen, tmp_path)
    assert found["graded_after_each"] == [3, 3]
    assert [line.partition(":")[0] for line in found["wrong_rows"]] == ["student-0000", "student-0002"]
