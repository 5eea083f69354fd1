"""The instructor's page about a class."""

import re

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, filled, new_course, released, submit

from autograder.classroom.collect import collect
from autograder.classroom.course import CourseError
from autograder.classroom.feedback import feedback
from autograder.classroom.grade import grade
from autograder.classroom.report import report

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
    made = report(course)
    html = made.page.read_text()
    said = text_of(html)
    for words in (
        "5 students, 6 graded submissions",
        f"{ADD} 5 of 5",
        f"{SOFTMAX} 1 of 5 missing: bob, eva, new, odd",
        "vector_add 1 of 3 passed wrong-value : bob , eva 2 not started: new 1",
        "bug_hunt 2 of 3 passed wrong-value : eva 1 not started: new 1",
        "naive_softmax 1 of 1 passed",
        f"Waiting for you odd , {ADD}: the file is not a notebook",
    ):
        assert words in said, words
    for target in re.findall(r'href="([^"]+)"', html):
        assert (made.page.parent / target).is_file(), target


def test_nothing_of_a_students_is_markup_on_it(course, tmp_path):
    evil = '<img src=x onerror="alert(1)">'
    submit(course, evil.replace("/", ""), filled(ADD, vector_add="half"))
    submit(course, "a&b\u202e", b"<script>alert(2)</script>")
    folder = tmp_path / "in" / f"{evil}_7_assignsubmission_file_"
    folder.mkdir(parents=True)
    (folder / "<b>x.rar").write_text("Rar!")
    collect(folder.parent, course)
    grade(course, new_judge=StrawJudge)
    html = report(course).page.read_text()
    for harm in ("<img", "<script", "<b>", "\u202e", "http://", "https://", 'onerror="'):
        assert harm not in html
    assert "default-src 'none'" in html and "prefers-color-scheme: dark" in html
    assert "&lt;img" in html and "Not understood" in html


def test_before_anything_is_graded_it_says_what_to_do(course):
    with pytest.raises(CourseError, match="autograder grade"):
        report(course)
