"""course.toml: due dates, grace, penalties, extensions, weights, and what counts in the totals."""

import csv
import json
import os
import re
import shutil
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, filled, new_course, released, submit, zip_of
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from autograder.classroom.course import COURSE_ID, Course, CourseError
from autograder.classroom.duedates import spoken
from autograder.classroom.grading.grade import grade
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.run import run
from autograder.classroom.standing import Standing, export

ADD, SOFTMAX = EXERCISES
DUE = datetime(2024, 10, 3, 12, tzinfo=UTC)
RULES = f"""
penalty = "10% a day"
grace = "15 min"
[assignments.{ADD}]
due = 2024-10-03T12:00:00+00:00
"""


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def rules(course, text):
    (course.root / "course.toml").write_text(text)


def submit_at(course, student, when, content=None, assignment=ADD):
    path = submit(course, student, content or filled(ADD, **RIGHT), assignment)
    path.with_name("timestamp.txt").write_text(f"{when:%Y-%m-%d %H:%M:%S.%f} UTC\n")


def graded(course, **options):
    return grade(course, new_judge=StrawJudge, workers=1, **options)


def rows_of(path):
    return {line["student"]: line for line in csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())}


def page(course, student, assignment=ADD):
    return course.notebook("feedback", student, assignment, ".html").read_text()


def test_a_new_course_explains_the_file_and_asks_for_nothing(course):
    text = (course.root / "course.toml").read_text()
    rules = course.rules()
    assert (rules.assigned, any(map(rules.due, course.released)), rules.students) == (None, False, set())
    examples = re.findall(r"^# (\[.+|\w+ = .+)$", text, re.MULTILINE)
    assert len(examples) == 10
    (course.root / "course.toml").write_text("\n".join(examples).replace('"00_setup", ', ""))
    found = course.rules()  # the examples are valid
    assert found.assigned == [ADD] and found.weight(ADD, 8) == 10
    assert found.extension("ann", ADD) == timedelta(days=3)


def test_what_is_late_costs_points_everywhere(course):
    rules(course, RULES)
    times = {"ann": timedelta(0), "bob": timedelta(minutes=14), "eva": timedelta(hours=3), "zoe": timedelta(days=20)}
    for student, late in times.items():
        submit_at(course, student, DUE + late)
    graded(course)
    feedback(course)
    rows = rows_of(export(course).files["grades"])
    assert [float(rows[s][ADD]) for s in times] == [8, 8, 7.2, 0]
    assert [float(rows[s]["score"]) for s in times] == [8, 8, 7.2, 0]
    assert [rows[s]["late"] for s in times] == ["", "", ADD, ADD]
    assert rows["eva"]["notes"] == f"{ADD}: 3 hours late"
    assert "It was handed in 3 hours late. It was due on" in page(course, "eva")
    assert "0.8 points were taken off" in page(course, "eva") and "7.2 of 8" in page(course, "eva")
    assert "7.2 of 8" in (course.root / "feedback" / "eva" / "index.html").read_text()
    assert "late" not in page(course, "bob") and "0 of 8" in page(course, "zoe")
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        assert gradebook.find_assignment(ADD).duedate == DUE.replace(tzinfo=None)
        assert gradebook.find_submission(ADD, "eva").total_seconds_late == 3 * 3600


def test_a_score_in_the_csv_has_no_rounding_error(course):
    rules(course, RULES.replace("10%", "27.5%"))
    submit_at(course, "ann", DUE + timedelta(hours=2), filled(ADD, vector_add="half", bug_hunt="half"))
    graded(course)
    export(course)
    assert rows_of(course.root / "grades.csv")["ann"][ADD] == "1.8"  # 4 - 2.2


def test_the_csv_says_with_its_time_zone_when_something_was_handed_in(course):
    """It was UTC without a word, and a reader took it for the local time."""
    submit_at(course, "ann", DUE)
    submit(course, "bob", filled(ADD, **RIGHT))
    graded(course)
    rows = rows_of(export(course).files["exercises"])
    assert [rows[student]["handed_in"] for student in ("ann", "bob")] == ["2024-10-03T12:00:00+00:00", ""]


def test_a_changed_file_changes_penalties_without_a_judge(course):
    rules(course, RULES)
    submit_at(course, "eva", DUE + timedelta(days=1, hours=1))
    graded(course)
    assert float(rows_of(export(course).files["grades"])["eva"][ADD]) == 8 - 2 * 0.8
    for text, expected in (
        (RULES + f'[extensions.eva]\n{ADD} = "1 d"\n', 7.2),
        (RULES + f"[extensions.eva]\n{ADD} = 2024-10-05\n", 8),
        (RULES + f"[handed_in.eva]\n{ADD} = 2024-10-03T10:00:00+00:00\n", 8),
        (RULES + 'penalty = "3 points"', 5),
        (RULES + 'penalty = "2 points an hour"', 0),
        (RULES + 'penalty = "all"', 0),
        (RULES + 'penalty = "none"', 8),
        (RULES, 6.4),
    ):
        rules(course, text)
        assert graded(course).rows[0].kept
        assert float(rows_of(export(course).files["grades"])["eva"][ADD]) == expected, text


def test_totals_count_what_is_assigned_with_its_weight(course):
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="right"))  # 5.5 of 8
    submit(course, "bob", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)  # 4 of 4
    graded(course)
    for text, totals in (
        ("", {"ann": (5.5, 12), "bob": (4, 12)}),
        (f'assigned = ["{ADD}"]', {"ann": (5.5, 8), "bob": (0, 8)}),
        (f"[assignments.{ADD}]\nweight = 16\n[assignments.{SOFTMAX}]\nweight = 4", {"ann": (11, 20), "bob": (4, 20)}),
    ):
        rules(course, text)
        feedback(course)
        rows = rows_of(export(course).files["grades"])
        for student, (score, points) in totals.items():
            assert (float(rows[student]["score"]), float(rows[student]["points"])) == (score, points)
            said = (course.root / "feedback" / student / "index.html").read_text()
            assert f"{score:g} of {points:g}</span></div>" in said
    assert "01_vector_add</a> (counts as 16)" in (course.root / "feedback" / "ann" / "index.html").read_text()
    assert f"{SOFTMAX}: not graded" in (course.root / "feedback" / "ann" / "index.html").read_text()
    rules(course, f'assigned = ["{ADD}", "{SOFTMAX}"]')
    assert Standing(course).missing == {("ann", SOFTMAX), ("bob", ADD)}


@pytest.mark.parametrize(
    "text, said",
    [
        ("due = 3", "there is no 'due'"),
        ("assigned = [", "course.toml: Invalid value"),
        ('assigned = "00_setup"', "expected a list"),
        ('assigned = ["00_setup"]', f"no assignment '00_setup'; there are: {ADD}"),
        ("[assignments.99_x]\nweight = 1", "no assignment '99_x'"),
        (f'[assignments.{ADD}]\ndue = "soon"', "expected a date, such as 2026-10-03T23:59:00"),
        (f'[assignments.{ADD}]\nduedate = "soon"', "there is no 'duedate'; there are: due"),
        ('grace = "a while"', "found 'a while'; expected a time"),
        ("penalty = 10", 'course.toml: penalty: found 10; expected "10% a day"'),
        (f"[extensions]\n{ADD} = 3", "expected a table"),
        ('[extensions.ann]\n99_x = "3 d"', "no assignment '99_x'"),
        (f"[assignments.{ADD}]\nweight = -1", "expected a number"),
        ("assigned = 1\xff", "course.toml"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_before_anything_is_graded(text, said, course):
    (course.root / "course.toml").write_bytes(text.encode("latin-1"))
    submit(course, "ann", released(ADD))
    with pytest.raises(CourseError) as caught:
        graded(course)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not (course.root / "autograded").exists()


def test_rules_for_somebody_unknown_are_said(course, tmp_path):
    rules(course, RULES + f'[extensions.anne]\n{ADD} = "1 d"\n')
    report = run(zip_of(tmp_path / "x.zip", {"ann/01_vector_add.ipynb": filled(ADD, **RIGHT)}), course,
                 new_judge=StrawJudge)  # fmt: skip
    lines = []
    report.print(lines.append)
    assert "note: course.toml has rules for anne, of whom nothing is known" in lines


@pytest.mark.parametrize(
    "name",
    ["Ann Lee_7_assignsubmission_file_/01_vector_add.ipynb", "leeann_LATE_7_5001_01_vector_add.ipynb"],
    ids=["Moodle", "Canvas"],
)
def test_the_time_of_a_download_makes_nobody_late(name, course, tmp_path):
    rules(course, RULES)
    report = run(zip_of(tmp_path / "x.zip", {name: filled(ADD, **RIGHT)}), course, new_judge=StrawJudge)
    [row] = rows_of(report.steps["export"].files["grades"]).values()
    assert float(row[ADD]) == 8
    assert row["late"] == (ADD if "LATE" in name else "")  # the mark is recorded
    folder = course.root / "submitted" / row["student"] / ADD
    assert not (folder / "timestamp.txt").exists() and (folder / "collected.txt").exists()
    said = []
    report.print(said.append)
    expected = f"late, but nothing says how late, so no points were taken off: {ADD}: {row['student']}"
    assert (expected in said) == ("LATE" in name)
    rules(course, RULES + f"[handed_in.{row['student']}]\n{ADD} = 2024-10-03T13:00:00+00:00\n")
    graded(course)
    assert float(rows_of(export(course).files["grades"])[row["student"]][ADD]) == 7.2


@pytest.mark.parametrize("penalty, score", [("20%", 6.4), ("3 points", 5), ("all", 0), ("none", 8)])
def test_a_mark_of_late_costs_what_every_lateness_costs(penalty, score, course, tmp_path):
    """Canvas does not say how late. Where that does not matter, the points stayed all the same."""
    rules(course, f'penalty = "{penalty}"\ngrace = "1 h"\n')
    name = "leeann_LATE_7_5001_01_vector_add.ipynb"
    report = run(zip_of(tmp_path / "x.zip", {name: filled(ADD, **RIGHT)}), course, new_judge=StrawJudge)
    assert float(rows_of(report.steps["export"].files["grades"])["leeann_7"][ADD]) == score
    said = []
    report.print(said.append)
    assert not [line for line in said if "nothing says how late" in line]


# What Moodle exports: mod/assign/gradingtable.php gives columns and times, and PHP puts quotes around blanks.
WORKSHEET = """\ufeffIdentifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",\
"Last modified (submission)","Last modified (grade)","Feedback comments"\r
"Participant 4711","Ann Lee",ann@x.example,"Submitted for grading",,8.00,Yes,"Thursday, 3 October 2024, 11:59 AM",-,\r
"Participant 4712","Bob Roe",bob@x.example,"Submitted for grading - 3 hours late",,8.00,Yes,\
"Thursday, 3 October 2024, 3:00 PM",-,\r
"Participant 4713","Eva Kim",eva@x.example,"No submission",,8.00,Yes,-,-,\r
"""


def moodle(numbers, assignment=ADD, content=None):
    content = content or filled(ADD, **RIGHT)
    return {f"{who}_assignsubmission_file_/{assignment}.ipynb": content for who in numbers}


def test_moodles_worksheet_says_when_something_was_handed_in(course, tmp_path):
    rules(course, RULES.replace("2024-10-03T12:00:00+00:00", "2024-10-03T12:00:00"))  # by the local clock, as Moodle's
    download = zip_of(tmp_path / "x.zip", moodle(["Ann Lee_4711", "Bob Roe_4712"]))
    (tmp_path / "Grades-Course-Lab 1-77.csv").write_text(WORKSHEET, newline="")
    report = run(download, course, roster=tmp_path / "Grades-Course-Lab 1-77.csv", new_judge=StrawJudge)
    assert report.collected.notes == []
    rows = rows_of(report.steps["export"].files["grades"])
    assert [float(rows[who][ADD] or 0) for who in ("ann@x.example", "bob@x.example")] == [8, 7.2]
    assert "3 hours late" in rows["bob@x.example"]["notes"]
    # The number is of one assignment: the worksheet says nothing about others.
    other = zip_of(tmp_path / "y.zip", moodle(["Bob Roe_5712"], SOFTMAX, filled(SOFTMAX, naive_softmax="right")))
    collect(other, course)
    assert course.stamp("bob@x.example", ADD).exists() and not course.stamp("bob@x.example", SOFTMAX).exists()


def test_a_worksheet_that_comes_later_gives_the_time_and_one_that_goes_does_not_take_it(course, tmp_path):
    rules(course, RULES.replace("2024-10-03T12:00:00+00:00", "2024-10-03T12:00:00"))
    download = zip_of(tmp_path / "x.zip", moodle(["Ann Lee_4711", "Bob Roe_4712"]))
    sheet = tmp_path / "Grades.csv"
    sheet.write_text(WORKSHEET.replace("Last modified (submission)", "Zuletzt"), newline="")
    [note] = collect(download, course, roster=sheet).notes
    assert note.startswith("2 notebooks came without a time") and "nobody is late by it" in note
    assert Standing(course).late == set()
    sheet.write_text(WORKSHEET, newline="")
    assert collect(download, course, roster=sheet).notes == []
    assert Standing(course).late == {("bob@x.example", ADD)}
    sheet.write_text(WORKSHEET.replace("471", "881"), newline="")  # of next week's assignment
    assert collect(download, course, roster=sheet).notes == []
    assert Standing(course).late == {("bob@x.example", ADD)}


def test_a_systems_own_time_counts(course, tmp_path):
    rules(course, RULES.replace("2024-10-03T12:00:00+00:00", "2024-10-03T12:00:00"))  # by the local clock
    name = "Vector Add_ann7_attempt_2024-10-03-13-00-00_01_vector_add.ipynb"
    run(zip_of(tmp_path / "x.zip", {name: filled(ADD, **RIGHT)}), course, new_judge=StrawJudge)
    assert float(rows_of(course.root / "grades.csv")["ann7"][ADD]) == 7.2


def folder_at(tmp_path, times):
    for name, when in times.items():
        path = tmp_path / "in" / name / f"{ADD}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(filled(ADD, **RIGHT)))
        os.utime(path, (when.timestamp(), when.timestamp()))
    return tmp_path / "in"


def test_times_of_files_count_unless_all_are_of_one_copy(course, tmp_path):
    rules(course, RULES)
    late = {name: DUE + timedelta(hours=1, seconds=n) for n, name in enumerate(("ann", "bob", "eva"))}
    report = collect(folder_at(tmp_path, late), course)
    assert "taken for the time of a copy" in report.notes[0]
    assert Standing(course).late == set()
    shutil.rmtree(tmp_path / "in")
    collect(folder_at(tmp_path, late | {"ann": DUE - timedelta(days=1)}), course)
    assert Standing(course).late == {("bob", ADD), ("eva", ADD)}


def test_what_a_students_computer_or_git_wrote_is_no_time(course, tmp_path):
    rules(course, RULES)
    inner = tmp_path / "inner.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{ADD}.ipynb", (2024, 1, 1, 0, 0, 0)), json.dumps(filled(ADD, **RIGHT)))
    (tmp_path / "in" / "ann").mkdir(parents=True)
    inner.rename(tmp_path / "in" / "ann" / "work.zip")
    clone = tmp_path / "in" / "lab-bob"
    (clone / ".git").mkdir(parents=True)
    (clone / "notebooks").mkdir()
    (clone / "notebooks" / f"{ADD}.ipynb").write_text(json.dumps(filled(ADD, **RIGHT)))
    collect(tmp_path / "in", course)
    assert len(course.handed_in()) == 2
    assert not [s for s in course.handed_in() if course.stamp(*s).exists()]


@pytest.mark.parametrize("own", [False, True])
def test_plain_nbgrader_and_a_plug_in_of_ones_own_take_part(own, course, monkeypatch):
    """`nbgrader autograde` asks the same plug-in; a course may name another one."""
    rules(course, RULES)
    if own:
        with (course.root / "nbgrader_config.py").open("a") as config:
            config.write('\nc.AssignLatePenalties.plugin_class = "nbgrader.plugins.LateSubmissionPlugin"\n'
                         'c.LateSubmissionPlugin.penalty_method = "zero"\n')  # fmt: skip
    course = Course.open(course.root)
    submit_at(course, "eva", DUE + timedelta(hours=3))
    graded(course)
    feedback(course)
    expected = 0 if own else 7.2
    assert f"{expected:g} of 8" in page(course, "eva")
    monkeypatch.setattr("autograder.classroom.grading.nbgrader_plugins._shared_judge", lambda confine: StrawJudge())
    config = Config(course.config)
    config.CourseDirectory.root = str(course.root)
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_submission_notebook(ADD, ADD, "eva").late_submission_penalty = 3.3
        gradebook.db.commit()
    result = NbGraderAPI(config=config).autograde(ADD, "eva")
    assert result["success"], result["log"]
    assert float(rows_of(export(course).files["grades"])["eva"][ADD]) == expected


@pytest.mark.parametrize(
    "late, said",
    [(1, "1 minute"), (65 * 60, "1 hour 5 minutes"), (2 * 86400, "2 days"), (97500, "1 day 3 hours")],
)
def test_late_in_words(late, said):
    assert spoken(timedelta(seconds=late)) == said
