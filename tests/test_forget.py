"""A person is forgotten: nothing of them is left in a course, and everybody else's is."""

import json
import os
import shutil
from pathlib import Path

import pytest
from classroom import EXERCISES, StrawJudge, filled, new_course, zip_of

from autograder import cli
from autograder.classroom.course import CourseError
from autograder.classroom.forget import forget
from autograder.classroom.lms.filled import export_for
from autograder.classroom.lms.lti import SENT
from autograder.classroom.run import run

ADD, _ = EXERCISES
ROSTER = "id,name,email\nquentin77,Quentin Vale,qv@x.example\nann,Ann Lee,ann@x.example\n"


@pytest.fixture
def course(tmp_path):
    made = new_course(tmp_path / "course")
    (tmp_path / "class.csv").write_text(ROSTER)
    files = {f"{who}/{ADD}.ipynb": filled(ADD, vector_add="half") for who in ("quentin77", "ann")}
    run(zip_of(tmp_path / "in.zip", files), made, roster=tmp_path / "class.csv", new_judge=StrawJudge)
    table = f"Student,ID,SIS Login ID,Section,{ADD} (1)\nVale,1,quentin77,x,\nLee,2,ann,x,\n"
    (tmp_path / "canvas.csv").write_text(table)
    export_for(made, "canvas", tmp_path / "canvas.csv", made.root / "exports")
    export_for(made, "canvas", tmp_path / "canvas.csv")
    shutil.copy(made.root / "canvas.csv", made.root / "canvas-filled.csv")  # what `export` makes of a table in there
    (made.root / SENT).write_text(json.dumps({f"{who} {ADD}": [1, 8] for who in ("quentin77", "ann")}))
    return made


def where(course, *words):
    """The files of a course that say one of the words, in their names or inside."""
    files = [path for path in course.root.rglob("*") if path.is_file()]
    names = {path.relative_to(course.root).as_posix(): path.read_bytes() for path in files}
    return [name for name, content in names.items() for word in words if word in name or word.encode() in content]


def test_nothing_of_a_person_is_left_in_a_course_and_all_of_the_others(course, capsys):
    assert len(where(course, "quentin77", "Quentin")) > 8
    before = course.notebook("autograded", "ann", ADD).read_bytes()
    assert cli.main(["forget", "quentin77", "--course", str(course.root)]) == 0
    assert where(course, "quentin77", "Quentin", "qv@x") == []
    assert course.notebook("autograded", "ann", ADD).read_bytes() == before
    assert {"grades.csv", "report.html", "roster.csv"} <= set(where(course, "Ann Lee", ">ann<"))
    said = capsys.readouterr().out
    assert "forgotten: submitted/quentin77" in said and "look through: backups" in said


def test_whom_a_rule_names_is_said(course):
    (course.root / "course.toml").write_text(
        f'[assignments.{ADD}]\ndue = 2026-10-03\n[extensions.quentin77]\n{ADD} = "3 d"\n'
    )
    assert any("course.toml has rules" in line for line in forget(course, "quentin77").said)


def test_the_last_one_leaves_no_table(course):
    for name in ("quentin77", "ann"):
        forget(course, name)
    assert not (course.root / "grades.csv").exists() and where(course, "Ann Lee", "Quentin") == []


@pytest.mark.parametrize("name", ["nobody-here", "", "..", "../course"])
def test_who_is_not_there_is_said_and_nothing_is_touched(name, course):
    before = where(course, "quentin77")
    with pytest.raises(CourseError, match="there is nobody called .*; there are: ann, quentin77"):
        forget(course, name)
    assert where(course, "quentin77") == before


def test_every_place_is_on_the_page_about_privacy():
    page = (Path(__file__).resolve().parents[1] / "docs" / "PRIVACY.md").read_text()
    from autograder.classroom.forget import ABOUT_ALL, STEPS

    others = ("gradebook.db", "class.json", "roster.csv", "course.toml", "exports", "changes.csv")
    for name in (*ABOUT_ALL, *STEPS, *others):
        assert f"`{name}" in page, name
    for name in ("people.json", "names.json", "hub.sqlite", "passwd", "home/", "progress/", "inbound", "feedback"):
        assert name in page, name


@pytest.mark.skipif(os.geteuid() == 0, reason="root may")
def test_a_room_needs_root(course, tmp_path):
    with pytest.raises(CourseError, match="expected root"):
        forget(course, "quentin77", tmp_path)
