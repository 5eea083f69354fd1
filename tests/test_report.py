"""The instructor's page about a class."""

import csv
import re
from pathlib import Path

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, cell_of, filled, new_course, released, submit

from autograder.classroom.course import CourseError
from autograder.classroom.grading.grade import grade
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.reports.report import report, runs, similar

ADD, SOFTMAX = EXERCISES


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def text_of(html):
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_class_at_a_glance(course):
    for student, content in {
        "ann": filled(ADD, **RIGHT),
        "bob": filled(ADD, vector_add="half", bug_hunt="right"),
        "eva": filled(ADD, vector_add="half", bug_hunt="half"),
        "new": released(ADD),
        "odd": b"<html>",
    }.items():
        submit(course, student, content)
    submit(course, "ann", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    grade(course, new_judge=StrawJudge)
    feedback(course)
    submit(course, "sam", released(SOFTMAX), SOFTMAX)
    (course.root / "roster.csv").write_text("id,name\nzoe,Zoe Fox\n")
    grade(course, new_judge=StrawJudge)
    feedback(course)
    made = report(course)
    html = made.files["page"].read_text()
    said = text_of(html)
    for words in (
        "7 students, 7 graded submissions",
        "Points of a submission 3 1 1 2 0 % 100 %",
        f"{ADD} 5 of 7 2 missing: Zoe Fox, sam",
        f"{SOFTMAX} 2 of 7 5 missing: Zoe Fox, bob, eva, new, odd",
        "Not started Zoe Fox: nothing was handed in new: no answer, or only starters sam: no answer, or only starters",
        "vector_add 1 of 3 passed wrong-value : bob , eva 2 "
            "wrong-value: def add(): return &#39;half&#39; Answer of bob def add (): return 'half' Answer of eva",
        "bug_hunt 2 of 3 passed wrong-value : eva 1",
        "not started: new 1 naive_softmax 1 of 1 passed not started: sam 1",
        f"Waiting for you odd , {ADD}: the file is not a notebook",
    ):
        assert words in said, words
    for target in re.findall(r'href="([^"]+)"', html):
        assert (made.files["page"].parent / target).is_file(), target
    rows = list(csv.DictReader(made.files["misconceptions"].read_text(encoding="utf-8-sig").splitlines()))
    assert [(r["exercise"], r["diagnosis"], r["students"], r["tried"], r["who"]) for r in rows] == [
        ("vector_add", "wrong-value", "2", "3", "bob eva"),
        ("bug_hunt", "wrong-value", "1", "3", "eva"),
    ]
    assert rows[0]["example"].startswith("wrong-value: def add()")
    assert "Similar answers" not in html


def test_nothing_of_a_students_is_markup_on_it(course, tmp_path):
    evil = '<img src=x onerror="alert(1)">'
    submit(course, evil.replace("/", ""), filled(ADD, vector_add="half"))
    submit(course, "a&b\u202e", b"<script>alert(2)</script>")
    folder = tmp_path / "in" / f"{evil}_7_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / "<b>x.rar").write_text("Rar!")
    collect(folder.parent, course)
    grade(course, new_judge=StrawJudge)
    html = report(course).files["page"].read_text()
    for harm in ("<img", "<script", "<b>", "\u202e", "http://", "https://", 'onerror="'):
        assert harm not in html
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html
    assert "&lt;img" in html and "Not understood" in html


def test_before_anything_is_graded_it_says_what_to_do(course):
    with pytest.raises(CourseError, match="autograder grade"):
        report(course)


def test_it_is_made_again_only_where_something_is_new(course, monkeypatch):
    compared = []
    monkeypatch.setattr("autograder.classroom.reports.report.similar", lambda *about: compared.append(about) or [])
    for student, graded, times in (("ann", 1, 2), ("ann", 1, 2), ("bob", 2, 4)):  # for each exercise of the lesson
        submit(course, student, filled(ADD, **RIGHT))
        grade(course, new_judge=StrawJudge)
        page = report(course).files["page"].read_text()
        assert f"{graded} graded submissions" in page and len(compared) == times


RIGHT_ANSWERS = sorted((Path(__file__).parent / "right" / "online_softmax").glob("*.py"))
OWN = """
def helper(rows):
    total = {}
    for number, row in enumerate(sorted(rows, key=len)):
        while len(row) > 3 and not row[0].isdigit():
            row, total[number] = row[1:], total.get(number, 0) + row.count("x") * 2
    return [value ** 2 for value in total.values() if value % 7 == 3] or None
"""


def test_copies_are_found_though_names_and_comments_differ():
    answer = RIGHT_ANSWERS[0].read_text() + OWN
    own = OWN.replace("total", "t").replace("row", "line").replace(":\n", ":  # mine\n").replace("7", "1_000")
    renamed = RIGHT_ANSWERS[0].read_text() + own
    other = RIGHT_ANSWERS[0].read_text() + "def other(x):\n    return x\n"
    [pair] = similar("online_softmax", {"ann": answer, "bob": renamed, "eva": other}, "")
    assert (pair.first, pair.second) == ("ann", "bob") and pair.share > 0.8


def test_what_the_exercise_explains_is_not_similar():
    """The starter, the gallery, and what half the class has."""
    same = {student: RIGHT_ANSWERS[0].read_text() for student in ("ann", "bob")}
    assert similar("online_softmax", same, "") == []
    assert similar("no_gallery", same, RIGHT_ANSWERS[0].read_text()) == []
    assert len(similar("no_gallery", same, "")) == 1
    assert similar("no_gallery", dict.fromkeys(map(str, range(21)), OWN), "") == []
    assert len(similar("no_gallery", dict.fromkeys(map(str, range(20)), OWN), "")) == 190


@pytest.mark.parametrize("source", ["", "def f(:\n", "\t  x\n y", "'" * 50_000, "(" * 50_000, "\x00", "\ud800"])
def test_no_text_breaks_the_comparison(source):
    assert isinstance(runs(source), set)


def test_the_hint_is_on_the_page_and_called_a_hint(course):
    for student in ("ann", "bob"):
        notebook = filled(ADD, vector_add="right")
        cell_of(notebook, "vector_add")["source"] += OWN
        submit(course, student, notebook)
    grade(course, new_judge=StrawJudge)
    said = text_of(report(course).files["page"].read_text())
    assert "Similar answers A hint to look at both, and no proof" in said
    assert "vector_add: ann and bob 100% of" in said
