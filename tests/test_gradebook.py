"""The gradebook, with a judge of straw: every submission gets a row, and the right one its points."""

import csv
import io
import json
import shutil

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, at_the_same_moment, cell_of, filled, new_course, released, submit
from nbgrader.api import Gradebook
from nbgrader.preprocessors import SaveCells

from autograder import cli
from autograder.classroom.course import COURSE_ID, Course, CourseError
from autograder.classroom.grading.grade import grade
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.standing import _csv_cell, export
from autograder.classroom.submission import MAX_NOTEBOOK_BYTES
from autograder.lessons import BuildError
from autograder.verdict import CaseResult, Finding, Verdict

ADD, SOFTMAX = EXERCISES


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def graded(course, **options):
    report = grade(course, new_judge=StrawJudge, workers=2, **options)
    return report, {(row.student, row.assignment): row for row in report.rows}


def in_database(course) -> dict:
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        return {
            (student.id, submission.assignment.name): (
                submission.score,
                submission.max_score,
                submission.needs_manual_grade,
            )
            for student in gradebook.students
            for submission in gradebook.student_submissions(student.id)
        }


def split(notebook):
    """JupyterLab's "split cell": both halves keep the id."""
    cell = cell_of(notebook, "vector_add")
    first, second = cell["source"].split("\n")
    at = notebook["cells"].index(cell)
    notebook["cells"][at : at + 1] = [dict(cell, source=first), dict(cell, source=second)]


def copied(notebook):
    notebook["cells"].append(dict(cell_of(notebook, "vector_add")))


def stripped(notebook):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def of_format_3(notebook):
    cells = [
        {
            "cell_type": c["cell_type"],
            "input": c["source"].splitlines(True),
            "metadata": c["metadata"],
            "language": "python",
        }
        for c in notebook["cells"]
        if c["cell_type"] == "code"
    ]
    for key in ("cells", "nbformat_minor"):
        del notebook[key]
    notebook.update(nbformat=3, nbformat_minor=0, worksheets=[{"cells": cells}])


def hostile(notebook):
    notebook["metadata"] = {"kernelspec": {"name": ["x"]}, "nbgrader": 3}
    for name in RIGHT:
        cell_of(notebook, f"check-{name}").update(
            metadata={
                "tags": ["skip-execution"],
                "nbgrader": {"grade_id": name, "points": 1e9, "schema_version": 99},
            },
            source="0",
        )


def without_checks(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if not c["source"].startswith("check")]


@pytest.mark.parametrize("mishap", [split, copied, stripped, of_format_3, hostile, without_checks])
def test_mishaps_and_tricks_leave_the_grade_alone(mishap, course):
    right, wrong = filled(ADD, **RIGHT), filled(ADD, vector_add="half")
    mishap(right)
    mishap(wrong)
    submit(course, "ann", right)
    submit(course, "bob", wrong)
    _, rows = graded(course)
    assert (rows["ann", ADD].score, rows["bob", ADD].score) == (8, 2.5)
    assert not rows["ann", ADD].needs_review


BROKEN = {
    "empty": b"",
    "page": b"<html></html>",
    "text": b"not JSON at all",
    "binary": bytes(range(256)),
    "deep": b"[" * 50_000,
    "list": b"[]",
    "cells": b'{"cells": 7}',
    "huge": b'{"cells": [' + b" " * MAX_NOTEBOOK_BYTES + b"]}",
}


def test_a_batch_never_stops_for_a_bad_file(course, tmp_path):
    submit(course, "ann", filled(ADD, **RIGHT))
    for name, content in BROKEN.items():
        submit(course, name, content)
    submit(course, "absent", b"").unlink()
    link = submit(course, "link", b"")
    link.unlink()
    link.symlink_to("/etc/passwd")
    submit(course, "mangled", {"cells": [None, 3, {"metadata": [], "source": {}}]})
    submit(course, "unknown", b"{}", assignment="99_other")
    submit(course, "zoe", filled(ADD, **RIGHT))
    lines = []
    report, rows = graded(course, progress=lines.append)
    assert len(rows) == len(lines) == len(BROKEN) + 6
    for student in ("ann", "zoe"):
        assert (rows[student, ADD].score, rows[student, ADD].needs_review) == (8, False)
    for student in (*BROKEN, "absent", "link"):
        row = rows[student, ADD]
        assert (row.score, row.points if row.points else 8, row.needs_review) == (0, 8, True), student
        assert row.notes and "\n" not in str(row)
    assert rows["mangled", ADD].score == 0
    assert rows["unknown", "99_other"].needs_review
    assert report.status == 1
    recorded = in_database(course)
    assert recorded["ann", ADD] == recorded["zoe", ADD] == (8, 8, False)
    assert recorded["page", ADD] == (0, 8, True)
    assert set(recorded) == set(rows) - {("unknown", "99_other")}
    assert len(feedback(course).files) == len(recorded)


def test_a_notebook_of_another_lesson_is_no_zero_that_nobody_looks_at(course):
    """It was graded with 0 points like a notebook without answers, and the points went to the LMS."""
    submit(course, "ann", filled(SOFTMAX, naive_softmax="right"))
    pasted = filled(SOFTMAX, naive_softmax="right")
    pasted["cells"].append(
        {"cell_type": "code", "metadata": {}, "source": "def add():\n    return 'right'", "outputs": []}
    )
    submit(course, "bob", pasted)
    _, rows = graded(course)
    assert rows["ann", ADD].needs_review and (rows["ann", ADD].score, rows["bob", ADD].score) == (0, 5)
    assert rows["ann", ADD].notes == ["the notebook is of another lesson: it has the answers naive_softmax"]
    assert in_database(course)["ann", ADD] == (0, 8, True)
    assert rows["bob", ADD].score == 5
    notes = {row["student"]: row["notes"] for row in read_csv(export(course).files["grades"])}
    assert notes == dict.fromkeys(("ann", "bob"), f"waits for a decision of yours: {ADD}")
    feedback(course)
    assert "of another lesson" in course.notebook("feedback", "ann", ADD, ".html").read_text()


def test_a_fault_of_the_judge_costs_one_exercise_and_the_next_has_a_new_judge(course):
    submit(course, "ann", filled(ADD, vector_add="boom", bug_hunt="right"))
    submit(course, "bob", filled(ADD, **RIGHT))
    started = []

    class Counted(StrawJudge):
        def __enter__(self):
            started.append(self)
            return self

        def judge(self, exercise, source):
            assert started[-1] is self
            return super().judge(exercise, source)

    report = grade(course, new_judge=Counted, workers=1)
    assert len(started) == 3  # the second tries "boom" again
    assert [(r.score, r.needs_review) for r in report.rows] == [(3, True), (8, False)]
    assert "the judge broke badly" in str(report.rows[0])
    assert in_database(course)["ann", ADD] == (3, 8, True)


def test_without_a_judge_nothing_is_graded(course):
    submit(course, "ann", filled(ADD, **RIGHT))

    class Unconfined(StrawJudge):
        def __enter__(self):
            raise PermissionError("no confinement here")

    with pytest.raises(PermissionError):
        grade(course, new_judge=Unconfined)
    assert in_database(course) == {}


def test_grading_again_gives_the_same_and_keeps_what_a_person_decided(course):
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="right"))
    graded(course)
    notebook = course.notebook("autograded", "ann", ADD)
    once = notebook.read_bytes(), in_database(course)
    graded(course)
    assert (notebook.read_bytes(), in_database(course)) == once
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_grade("check-vector_add", ADD, ADD, "ann").manual_score = 4
        gradebook.db.commit()
    graded(course)
    assert in_database(course)["ann", ADD][0] == 7
    submit(course, "ann", filled(ADD, **RIGHT))
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_grade("check-vector_add", ADD, ADD, "ann").manual_score = None
        gradebook.db.commit()
    graded(course)
    assert in_database(course)["ann", ADD] == (8, 8, False)


def test_some_of_the_students_and_assignments(course):
    for student in ("ann", "bob"):
        submit(course, student, filled(ADD, **RIGHT))
        submit(course, student, filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    assert set(graded(course, students=["ann"])[1]) == {("ann", ADD), ("ann", SOFTMAX)}
    assert set(graded(course, assignments=[SOFTMAX], students=["bob"])[1]) == {("bob", SOFTMAX)}
    for wrong in ({"students": ["eve"]}, {"assignments": ["09_none"]}):
        with pytest.raises(CourseError, match="there are: .*(ann|01_vector_add)"):
            graded(course, **wrong)


def test_calls_that_are_wrong_say_what_to_do(course, tmp_path):
    with pytest.raises(CourseError, match="autograder collect"):
        graded(course)
    with pytest.raises(CourseError, match="autograder grade"):
        feedback(course)
    with pytest.raises(CourseError, match="autograder grade"):
        export(course)
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="is a file"):
        Course.open(tmp_path / "file")
    mistyped = Course.open(tmp_path / "mistyped")
    for call in (graded, feedback, export):
        with pytest.raises(CourseError, match="autograder (collect|grade)"):
            call(mistyped)
    assert not mistyped.root.exists()
    submit(course, "ann", filled(ADD, **RIGHT))
    for url in (
        "no-such-database://x/y",
        f"sqlite:///{tmp_path}/no/such/folder.db",
        "postgresql://u:secret@[bad",
    ):
        with pytest.raises(CourseError, match="cannot be opened") as caught:
            graded(Course.open(course.root, db=url))
        assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_course_without_lessons_is_not_made(tmp_path, monkeypatch):
    def nothing(root):
        raise BuildError("no lesson scripts")

    monkeypatch.setattr("autograder.lessons.write_course", nothing)
    with pytest.raises(CourseError, match="no lesson scripts"):
        Course.open(tmp_path / "course").create()
    assert not (tmp_path / "course").exists()


def test_a_released_notebook_that_changed_after_grading_is_refused(course):
    submit(course, "ann", filled(ADD, **RIGHT))
    graded(course)
    path = course.root / "release" / ADD / f"{ADD}.ipynb"
    notebook = released(ADD)
    notebook["cells"] = notebook["cells"][:-2]
    path.write_text(json.dumps(notebook))
    with pytest.raises(CourseError, match=f"{ADD}: release/ has other cells"):
        grade(Course.open(course.root), new_judge=StrawJudge)


def test_a_course_of_older_lessons_says_so_and_one_command_brings_the_new_ones(tmp_path, monkeypatch):
    """Points changed in the lessons, and the course went on with the old ones without a word."""
    course = Course.open(tmp_path / "course")
    course.create()
    assert course.outdated() == []
    path = course.root / "release" / "00_setup" / "00_setup.ipynb"
    path.write_bytes(path.read_bytes().replace(b'"points": 1,', b'"points": 50,'))
    (tmp_path / "in" / "ann").mkdir(parents=True)
    (tmp_path / "in" / "ann" / path.name).write_bytes(path.read_bytes())
    again = Course.open(course.root)
    assert again.outdated() == ["00_setup"]
    report = collect(tmp_path / "in", again)
    assert [note for note in report.notes if "`autograder update` brings these in" in note and "00_setup" in note]
    assert cli.main(["update", "--course", str(course.root)]) == 0
    assert Course.open(course.root).outdated() == []
    assert not [note for note in collect(tmp_path / "in", Course.open(course.root)).notes if "update" in note]


def test_a_course_that_was_moved_or_copied_keeps_its_grades(course, tmp_path):
    """Its gradebook's absolute path was in every record: all was judged again, as if into another gradebook."""
    submit(course, "ann", filled(ADD, **RIGHT))
    graded(course)
    shutil.copytree(course.root, tmp_path / "copied")
    course.root.rename(tmp_path / "moved")
    for name in ("copied", "moved"):
        there = Course.open(tmp_path / name)
        report, rows = graded(there)
        assert rows["ann", ADD].kept
        graded(there, again=True)
        assert in_database(there)["ann", ADD] == (8, 8, False)


def test_assignments_are_registered_once(course, monkeypatch):
    submit(course, "ann", filled(ADD, **RIGHT))
    graded(course)

    def again(*_):
        raise AssertionError("registered again")

    monkeypatch.setattr(SaveCells, "preprocess", again)
    submit(course, "bob", filled(ADD, **RIGHT))
    assert graded(course)[1]["bob", ADD].score == 8
    (course.root / "gradebook.db").unlink()
    with pytest.raises(AssertionError, match="registered again"):
        graded(course)


def test_a_new_gradebook_has_the_version_that_nbgrader_gives_it(tmp_path, capsys):
    from alembic.config import main
    from nbgrader.dbutil import write_alembic_ini

    from autograder.classroom.grading.gradebook import newest_schema

    write_alembic_ini(str(tmp_path / "alembic.ini"))
    main(["-c", str(tmp_path / "alembic.ini"), "heads"])
    assert newest_schema() == capsys.readouterr().out.split()[0]


def test_two_courses_with_one_sqlite_file_register_at_the_same_moment(tmp_path):
    """One of them crashed: ObjectDeletedError, or "table already exists"."""
    courses = []
    for name in ("one", "two"):
        made = new_course(tmp_path / name)
        courses.append(Course.open(made.root, db=f"sqlite:///{tmp_path / 'both.db'}"))
        submit(made, name, filled(ADD, **RIGHT))
    at_the_same_moment(graded, courses)
    assert in_database(courses[0]) == {("one", ADD): (8, 8, False), ("two", ADD): (8, 8, False)}


def test_another_database_by_url(course, tmp_path):
    elsewhere = Course.open(course.root, db=f"sqlite:///{tmp_path / 'elsewhere.db'}")
    submit(elsewhere, "ann", filled(ADD, **RIGHT))
    graded(elsewhere)
    assert in_database(elsewhere)["ann", ADD][0] == 8
    assert not (course.root / "gradebook.db").exists()
    grades = export(elsewhere).files["grades"].read_bytes()
    assert all("--db" in problem for problem in feedback(course).problems)
    with pytest.raises(CourseError, match="--db"):
        export(course)  # which would have written no grades over these
    assert (course.root / "grades.csv").read_bytes() == grades
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write(f"\nc.CourseDirectory.db_url = {elsewhere.db_url!r}\n")
    assert Course.open(course.root).db_url == elsewhere.db_url


@pytest.mark.parametrize("name", ["with blanks", "100% sure", "a#b", "jos\u00e9", "a;b&c"])
def test_a_course_in_a_folder_of_any_name(name, tmp_path):
    course = new_course(tmp_path / name)
    submit(course, "ann", filled(ADD, **RIGHT))
    graded(course)
    assert in_database(course)["ann", ADD][0] == 8
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert len(feedback(course).files) == 1


def test_a_question_mark_would_put_the_gradebook_elsewhere(tmp_path):
    with pytest.raises(CourseError, match="rename it"):
        Course.open(tmp_path / "what? now")
    assert Course.open(tmp_path / "what? now", db="sqlite://").db_url == "sqlite://"


def test_folders_of_any_name_leave_the_terminal_alone(course):
    names = ("\x1b[2Jeve", "a\u202eb", "x\n8 / 8 graded", "b\udcff")  # the last is no UTF-8
    for name in (*names, "ann"):
        submit(course, name, filled(ADD, **RIGHT))
    lines = []
    report, rows = graded(course, progress=lines.append)
    report.print(lines.append)
    feedback(course).print(lines.append)
    with pytest.raises(CourseError) as caught:
        graded(course, students=["nobody"])
    for line in (*lines, str(caught.value)):
        assert line.isprintable(), ascii(line)
    assert in_database(course)["ann", ADD] == (8, 8, False)


def test_a_better_notebook_after_a_broken_one_needs_no_person(course):
    for content, expected in (
        (b"<html>", (0, 8, True)),
        (filled(ADD, **RIGHT), (8, 8, False)),
        (filled(ADD, vector_add="half"), (2.5, 8, False)),
    ):
        submit(course, "ann", content)
        graded(course)
        assert in_database(course)["ann", ADD] == expected


def test_a_notebook_full_of_pictures_is_graded(course):
    notebook = filled(ADD, **RIGHT)
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBORw0KGgo" * 100_000}}
    cell_of(notebook, "vector_add")["outputs"] = [picture] * 45
    path = submit(course, "ann", notebook)
    assert path.stat().st_size > 45 << 20
    _, rows = graded(course)
    assert (rows["ann", ADD].score, rows["ann", ADD].needs_review) == (8, False)
    assert course.notebook("autograded", "ann", ADD).stat().st_size < 100_000


def read_csv(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def test_export(course):
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="right"))
    submit(course, "bob", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    graded(course)
    report = export(course)
    assert read_csv(report.files["grades"]) == [
        {"student": "ann", ADD: "5.5", SOFTMAX: "", "score": "5.5", "points": "12.0", "late": "", "notes": ""},
        {"student": "bob", ADD: "", SOFTMAX: "4.0", "score": "4.0", "points": "12.0", "late": "", "notes": ""},
    ]
    first, second, third = read_csv(report.files["exercises"])
    assert (first["exercise"], first["score"], first["diagnosis"]) == ("vector_add", "2.5", "wrong-value")
    assert first["reason"].startswith("wrong-value: def add()")
    assert (second["exercise"], second["passed"], second["reason"]) == ("bug_hunt", "1", "")
    assert (third["student"], third["points"]) == ("bob", "4.0")


def test_nothing_exported_is_a_formula(course):
    class Formulas(StrawJudge):
        def judge(self, exercise, source):
            verdict = super().judge(exercise, source)
            object.__setattr__(verdict.finding, "happened", "=HYPERLINK(1)\n@x")
            return verdict

    submit(course, "+1+1", filled(ADD, vector_add="half"))
    grade(course, new_judge=Formulas)
    report = export(course)
    for path in (report.files["grades"], report.files["exercises"]):
        for line in read_csv(path):
            for value in line.values():
                assert not value.startswith(("=", "+", "-", "@"))
    assert read_csv(report.files["exercises"])[0]["reason"].startswith("'=HYPERLINK(1) @x")


@pytest.mark.parametrize(
    "text",
    [
        "wrong;=HYPERLINK(1)",
        "wrong; =HYPERLINK(1)",
        'wrong;"=HYPERLINK(1)"',
        "wrong;\t+1",
        "a;b;-1;@x;＝1",
        ";=1",
    ],
)
def test_a_spreadsheet_that_splits_at_semicolons_finds_no_formula(text):
    """As Excel reads a line where the list separator is a semicolon: quotation marks inside of it are plain text."""
    line = io.StringIO()
    csv.writer(line).writerow(["ann", _csv_cell(text), 1])
    for cell in line.getvalue().split(";")[1:]:
        assert not cell.lstrip().strip("\"' ").startswith(("=", "+", "-", "@", "＝")) or cell.startswith("'")


@pytest.mark.parametrize("text", ["a; b - c", "x;y", "1 = 1; 2 > 1"])
def test_other_semicolons_stay_as_they_are(text):
    assert _csv_cell(text) == text


@pytest.mark.timeout(60)
@pytest.mark.parametrize("filler", [" \n", "\t\n", "\u2003\n", "\x0c\n", "(", "'", "\\", "%("])
def test_no_answer_holds_up_the_feedback(filler, course):
    notebook = filled(ADD, **RIGHT)
    cell_of(notebook, "vector_add")["source"] += "\n" + filler * (59_000 // len(filler))
    submit(course, "ann", notebook)
    graded(course)
    assert len(feedback(course).files) == 1


def test_what_was_not_handed_in_is_not_called_your_answer(course):
    for student, content in {"starter": released(ADD), "page": b"<html>"}.items():
        submit(course, student, content)
    graded(course)
    feedback(course)
    starter, page = (course.notebook("feedback", s, ADD, ".html").read_text() for s in ("starter", "page"))
    assert "Your answer" in starter and "Your answer" not in page
    assert "The file is not a notebook" in page
    for html in (starter, page):
        assert "No response" not in html and 'class="comment"' not in html


def in_a_new_cell(notebook):
    cell = dict(cell_of(notebook, "vector_add"), metadata={}, id="new")
    notebook["cells"].append(cell)
    cell_of(notebook, "vector_add")["source"] = cell_of(released(ADD), "vector_add")["source"]


def in_a_second_half(notebook):
    cell = cell_of(notebook, "vector_add")
    notebook["cells"].append(dict(cell, metadata={}, id="new"))
    cell["source"] = "BLOCK = 4"


def without_its_names(notebook):
    for cell in notebook["cells"]:
        cell.update(metadata={}, id="")


@pytest.mark.parametrize("moved", [in_a_new_cell, in_a_second_half, without_its_names])
def test_the_answer_shown_is_the_one_that_was_judged(moved, course):
    notebook = filled(ADD, **RIGHT)
    moved(notebook)
    submit(course, "ann", notebook)
    submit(course, "bob", released(ADD))
    _, rows = graded(course)
    assert rows["ann", ADD].score == 8
    shown = {s: cell_of(rows[s, ADD].notebook, "vector_add")["source"] for s in ("ann", "bob")}
    assert "'right'" in shown["ann"]
    assert shown["bob"] == cell_of(released(ADD), "vector_add")["source"]


def test_what_does_not_compile_marks_no_blank_as_wrong(course):
    """All five blanks of an answer with five right ones had a ✗ and the same sentence."""

    class Refuses(StrawJudge):
        def judge(self, exercise, source):
            blanks = {"offsets": False, "mask": False}
            says = Finding("compile-error", "the compiler refuses it", "compare the message with the line")
            cases = (CaseResult("n = 1"),)
            return Verdict(exercise, False, 0.0, 5, "interpreter", says, cases, blanks, dict.fromkeys(blanks, says))

    submit(course, "ann", filled(ADD, **RIGHT))
    grade(course, new_judge=Refuses)
    feedback(course)
    page = course.notebook("feedback", "ann", ADD, ".html").read_text()
    assert "2 not judged" in page and "✗ mask" not in page


def test_a_feedback_page_is_whole_and_harmless(course):
    notebook = filled(ADD, vector_add="half", bug_hunt="right")
    evil = "# </pre><script>alert(1)</script> \u202e <img src=//evil.example/x.png>"
    cell_of(notebook, "vector_add")["source"] += "\n" + evil
    submit(course, "ann", notebook)
    graded(course)
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_comment("vector_add", ADD, ADD, "ann").manual_comment = "see <me>"
        gradebook.db.commit()
    report = feedback(course)
    [page] = report.files.values()
    html = page.read_text()
    assert page == course.notebook("feedback", "ann", ADD, ".html")
    for said in ("01_vector_add: a lesson", "5.5 of 8", "wrong-value", "see &lt;me&gt;", "3 of 3 points"):
        assert said in html
    for harm in ("<script", "<img", "\u202e", "http://", "https://"):
        assert harm not in html
    assert "default-src 'none'" in html
    assert f'href="{ADD}/{ADD}.html"' in (page.parents[1] / "index.html").read_text()
