"""A class from the download to the CSV: everybody has a row, only what changed is judged, nothing stays behind."""

import contextlib
import csv
import errno
import importlib
import itertools
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

import pytest
import sqlalchemy
import torch
from classroom import EXERCISES, RIGHT, StrawJudge, cell_of, filled, new_course, submit, zip_of
from nbgrader.api import Gradebook

from autograder import cli
from autograder.classroom import interrupt
from autograder.classroom.course import COURSE_ID, LESSONS, Course
from autograder.classroom.grading import gradebook, judges
from autograder.classroom.grading.grade import grade
from autograder.classroom.grading.gradebook import one_grader
from autograder.classroom.grading.judges import PREFIX, scratch_folder
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.reports.report import report as report_of
from autograder.classroom.run import run
from autograder.classroom.standing import export
from autograder.verdict import Finding, Verdict

ADD, SOFTMAX = EXERCISES
MOODLE = "{}_{}_assignsubmission_file_/{}"


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


class Counting(StrawJudge):
    """Says what it judged."""

    judged = []

    def judge(self, exercise, source):
        self.judged.append(exercise)
        return super().judge(exercise, source)


@pytest.fixture(autouse=True)
def nothing_judged():
    Counting.judged = []


LINES = itertools.count(1)


def submit_own(course, student, notebook):
    """Submit answers that nobody else has, on other lines: the same program is judged once."""
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = "\n" * next(LINES) + cell["source"]
    submit(course, student, notebook)


def test_a_program_is_judged_once_whatever_its_comments(course):
    for student in ("ann", "bob"):
        notebook = filled(ADD, **RIGHT)
        for name in RIGHT:
            cell_of(notebook, name)["source"] += f"  # {student}"
        submit(course, student, notebook)
    grade(course, new_judge=Counting)
    assert set(RIGHT) <= set(Counting.judged) and len(Counting.judged) == len(set(Counting.judged))


def rows_of(path):
    return {line["student"]: line for line in csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())}


def download(tmp_path, files, name="download.zip"):
    return zip_of(tmp_path / name, files)


CLASS = {
    MOODLE.format("Ann Lee", 1, "01_vector_add.ipynb"): filled(ADD, **RIGHT),
    MOODLE.format("Ann Lee", 1, "comment.txt"): "please be kind",
    MOODLE.format("Bob Roe", 2, "01_vector_add.ipynb"): b"<html>sign in</html>",
    MOODLE.format("Eva Kim", 3, "mine.rar"): b"Rar!",
    "index.html": "<html>",
}
ROSTER = "id,name,email,section\nann,Ann Lee,ann@x.example,Mon\nbob,Bob Roe,,\neva,Eva Kim,,\nzoe,Zoe Fox,,\n"


def test_one_command_finishes_whatever_was_handed_in(course, tmp_path):
    (tmp_path / "class.csv").write_text(ROSTER)
    report = run(download(tmp_path, CLASS), course, roster=tmp_path / "class.csv", new_judge=StrawJudge)
    lines = []
    report.print(lines.append)
    text = "\n".join(lines)
    for said in (
        "not understood: Eva Kim_3_assignsubmission_file_/mine.rar: is an archive, but no zip",
        "needs review: bob",
        "the file is not a notebook",
        f"missing: {ADD}: eva, zoe",
        "1 graded; 1 to review; 1 not understood; 0 late; 2 missing",
        "2 feedback pages",
        "2 submissions in",
        "4 students: totals in",
    ):
        assert said in text, said
    assert report.status == 1
    rows = rows_of(course.root / "grades.csv")
    assert list(rows) == ["ann", "bob", "eva", "zoe"]
    assert (rows["ann"]["name"], rows["ann"]["section"], rows["ann"]["score"]) == ("Ann Lee", "Mon", "8.0")
    assert "mine.rar" in rows["eva"]["notes"] and rows["zoe"]["notes"] == ""
    assert {row["points"] for row in rows.values()} == {"8.0"}  # 02_naive_softmax is nobody's yet
    assert (course.root / "feedback" / "ann" / "index.html").exists()
    page = (course.root / "report.html").read_text()
    assert "4 students, 2 graded" in page and "Eva Kim: what came was not understood" in page


def test_a_line_names_twelve_people_at_most(course, tmp_path):
    """One who handed in the next lesson made a line of the names of all others."""
    people = [f"s{n:02}" for n in range(15)]
    (tmp_path / "class.csv").write_text("id\n" + "\n".join(people))
    files = {f"s00/{ADD}.ipynb": filled(ADD, **RIGHT)}
    report, lines = run(download(tmp_path, files), course, roster=tmp_path / "class.csv", new_judge=StrawJudge), []
    report.print(lines.append)
    missing = [line for line in lines if line.startswith("missing: ")]
    assert missing == [f"missing: {ADD}: {', '.join(people[1:13])} and 2 more (grades.csv has all)"]


def test_it_succeeds_where_nobody_must_act(course, tmp_path):
    files = {
        "leeann_1_9_01_vector_add.ipynb": filled(ADD, **RIGHT),
        "roebob_LATE_2_9_01_vector_add.ipynb": filled(ADD, vector_add="half"),
        "kimeva_3_8_02_naive_softmax.ipynb": filled(SOFTMAX, naive_softmax="right"),
        "kimeva_3_text.html": "<p>done</p>",
    }
    report = run(download(tmp_path, files), course, new_judge=StrawJudge)
    assert report.status == 0
    assert report.now.late == {("roebob_2", ADD)} and len(report.now.missing) == 3
    assert all("." in row["score"] for row in rows_of(report.steps["export"].files["grades"]).values())
    assert rows_of(report.steps["export"].files["grades"])["roebob_2"]["late"] == ADD
    assert "It was handed in late." in course.notebook("feedback", "roebob_2", ADD, ".html").read_text()
    assert "late" not in course.notebook("feedback", "leeann_1", ADD, ".html").read_text()


def test_nothing_handed_in_is_said(course, tmp_path):
    report = run(download(tmp_path, {"notes.txt": "x"}), course, new_judge=StrawJudge)
    assert report.status == 1 and report.graded.rows == []
    report.print(lambda line: None)


def test_a_student_without_a_roster_whose_file_is_not_understood_has_a_row(course, tmp_path):
    run(download(tmp_path, CLASS), course, new_judge=StrawJudge)
    rows = rows_of(course.root / "grades.csv")
    assert list(rows) == ["Ann_Lee", "Bob_Roe", "Eva_Kim"]
    assert "mine.rar" in rows["Eva_Kim"]["notes"] and rows["Eva_Kim"][ADD] == ""


def test_a_grade_of_something_older_is_marked_until_it_is_graded(course):
    submit(course, "ann", filled(ADD, vector_add="half"))
    grade(course, new_judge=StrawJudge)
    submit(course, "ann", filled(ADD, **RIGHT))
    submit(course, "bob", filled(ADD, **RIGHT))
    rows = rows_of(export(course).files["grades"])
    feedback(course)
    page = course.notebook("feedback", "ann", ADD, ".html")
    assert rows["ann"]["notes"] == f"collected anew after it was graded: {ADD}"
    assert rows["bob"]["notes"] == f"not graded: {ADD}"
    assert "Something newer was handed in" in page.read_text()
    grade(course, new_judge=StrawJudge)
    feedback(course)
    rows = rows_of(export(course).files["grades"])
    assert [row["notes"] for row in rows.values()] == ["", ""]
    assert "Something newer" not in page.read_text()


def test_a_late_penalty_is_on_the_students_page(course):
    submit(course, "ann", filled(ADD, **RIGHT))
    grade(course, new_judge=StrawJudge)
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_submission_notebook(ADD, ADD, "ann").late_submission_penalty = 2
        gradebook.db.commit()
    feedback(course)
    page = course.notebook("feedback", "ann", ADD, ".html").read_text()
    assert "2 points were taken off" in page and "6 of 8" in page


# -- only what changed ------------------------------------------------------------------------------------


def regrade(course, **options):
    Counting.judged.clear()
    return grade(course, new_judge=Counting, workers=1, **options)


def test_only_what_changed_is_judged_again(course):
    for student in ("ann", "bob"):
        submit_own(course, student, filled(ADD, **RIGHT))
    submit(course, "eve", b"<html>")
    first = regrade(course)
    assert len(Counting.judged) == 4
    second = regrade(course)
    assert Counting.judged == []
    assert [(r.score, r.points, r.notes, r.needs_review) for r in second.rows] == [
        (r.score, r.points, r.notes, r.needs_review) for r in first.rows
    ]
    assert second.status == first.status == 1
    submit_own(course, "ann", filled(ADD, vector_add="half"))
    third = regrade(course)
    assert sorted(Counting.judged) == ["bug_hunt", "vector_add"]
    assert [row.score for row in third.rows] == [2.5, 8, 0]
    assert [row.kept for row in third.rows] == [False, True, True]
    regrade(course, again=True)
    assert len(Counting.judged) == 4


def test_the_same_text_gets_one_verdict_in_a_batch(course, tmp_path):
    """Starters and copies: they were judged one by one, with other inputs each time."""
    files = {f"{name}/{ADD}.ipynb": filled(ADD, vector_add="half") for name in ("ann", "bob", "cyd")}
    report = run(download(tmp_path, files), course, new_judge=Counting, workers=1)
    assert sorted(Counting.judged) == ["bug_hunt", "vector_add"]
    assert [row.score for row in report.graded.rows] == [2.5, 2.5, 2.5]


def test_what_failed_in_the_judge_is_tried_for_the_next_one(course, tmp_path):
    files = {f"{name}/{ADD}.ipynb": filled(ADD, **RIGHT | {"bug_hunt": "boom"}) for name in ("ann", "bob")}
    run(download(tmp_path, files), course, new_judge=Counting, workers=1)
    assert Counting.judged.count("vector_add") == 1 and Counting.judged.count("bug_hunt") > 2


def test_outputs_alone_change_nothing(course):
    notebook = filled(ADD, **RIGHT)
    submit(course, "ann", notebook)
    regrade(course)
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "42"}]
    submit(course, "ann", notebook)
    regrade(course)
    assert Counting.judged == []


@pytest.mark.skipif(not torch.__version__.endswith("+cpu"), reason="only torch says whether there is a card")
def test_a_run_with_nothing_new_imports_nothing_of_the_judge(course, tmp_path):
    """It took four seconds, two of them for torch, and half a second for nbgrader's extensions of a Jupyter server."""
    submit(course, "ann", filled(ADD, **RIGHT))
    handed_in = (course.root / "submitted").rename(tmp_path / "handed in")
    run(handed_in, course, new_judge=StrawJudge)
    code = (
        "import sys; from autograder import cli\n"
        f"status = cli.main(['run', {str(handed_in)!r}, '--course', {str(course.root)!r}])\n"
        "modules = 'torch triton workshop jupyter_server nbconvert alembic dask'.split()\n"
        "print(status, [name for name in modules if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "1 graded (1 of them unchanged)" in said[-5] and said[-1] == "0 []", said


@pytest.mark.parametrize("what", ["grading.judging.judge_version", "grading.judging.exercise_version"])
def test_another_judge_or_exercise_grades_again(what, course, monkeypatch):
    submit(course, "ann", filled(ADD, **RIGHT))
    submit(course, "ann", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    regrade(course)
    monkeypatch.setattr(
        f"autograder.classroom.{what}", lambda *name: "new" if name != ("naive_softmax",) else "kept"
    )
    regrade(course)
    assert len(Counting.judged) == 3
    monkeypatch.setattr(
        f"autograder.classroom.{what}", lambda *name: "newer" if name != ("naive_softmax",) else "kept"
    )
    regrade(course)
    assert len(Counting.judged) == (3 if "judge" in what else 2)


class Stricter(Counting):
    """Says of every answer to bug_hunt that it is half right."""

    def judge(self, exercise, source):
        return super().judge(exercise, source.replace("right", "half") if exercise == "bug_hunt" else source)


def other_version(monkeypatch, version):
    monkeypatch.setattr("autograder.classroom.grading.judging.exercise_version", lambda name: version)


def test_another_grade_for_the_same_answer_is_shown_before_it_is_written(course, monkeypatch):
    for student, answers in {"ann": RIGHT, "bob": {"vector_add": "right"}}.items():
        submit(course, student, filled(ADD, **answers))
    regrade(course)
    other_version(monkeypatch, "new")
    report = grade(course, new_judge=Stricter, workers=1)
    assert report.status == 1 and [row.score for row in report.rows] == [8, 5]
    lines = []
    report.print(lines.append)
    said = f"would change: ann {ADD} bug_hunt: 3 → 1.5 (another exercise vector_add, another exercise bug_hunt)"
    assert any(line.startswith(f"{said}: wrong-value:") for line in lines)
    assert "nothing of it is written" in lines[-2] and "--write-changes" in lines[-2]
    [change] = csv.DictReader((course.root / "changes.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (change["student"], change["before"], change["after"]) == ("ann", "3.0", "1.5")
    rows = rows_of(export(course).files["grades"])
    assert rows["ann"][ADD] == "8.0"
    assert rows["ann"]["notes"] == f"would get other points today (see changes.csv): {ADD}"
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        assert gradebook.find_submission(ADD, "ann").score == 8
    assert "would get other points today: see changes.csv" in report_of(course).files["page"].read_text()


def test_what_was_shown_is_written_without_a_judge(course, monkeypatch):
    test_another_grade_for_the_same_answer_is_shown_before_it_is_written(course, monkeypatch)
    Counting.judged.clear()
    shown = grade(course, new_judge=Stricter, workers=1)
    assert shown.status == 1 and len(shown.changes) == 1  # it is shown again, and costs nothing
    report = grade(course, new_judge=Stricter, workers=1, write_changes=True)
    assert Counting.judged == [] and report.status == 0
    assert [row.score for row in report.rows] == [6.5, 5]
    assert rows_of(export(course).files["grades"])["ann"]["notes"] == ""
    assert not (course.root / "changes.csv").exists() and course.handed_in("held") == []
    again = grade(course, new_judge=Stricter, workers=1)
    assert [row.kept for row in again.rows] == [True, True]


def test_grading_one_student_keeps_the_list_of_the_others(course, monkeypatch):
    test_another_grade_for_the_same_answer_is_shown_before_it_is_written(course, monkeypatch)
    before = (course.root / "changes.csv").read_bytes()
    assert grade(course, students=["bob"], new_judge=Stricter, workers=1).status == 0
    assert (course.root / "changes.csv").read_bytes() == before


def test_a_new_answer_or_the_old_exercise_forgets_what_was_held(course, monkeypatch):
    test_another_grade_for_the_same_answer_is_shown_before_it_is_written(course, monkeypatch)
    monkeypatch.undo()
    assert regrade(course).status == 0
    assert course.handed_in("held") == [] and not (course.root / "changes.csv").exists()
    other_version(monkeypatch, "new")
    grade(course, new_judge=Stricter, workers=1)
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="right"))
    report = grade(course, new_judge=Stricter, workers=1)
    assert report.status == 0 and [row.score for row in report.rows] == [4, 5]


def test_a_fault_of_the_grader_takes_no_grade_away(course, monkeypatch):
    class Broken(Counting):
        def judge(self, exercise, source):
            raise RuntimeError("broken today")

    submit(course, "ann", filled(ADD, **RIGHT))
    regrade(course)
    report = grade(course, new_judge=Broken, workers=1, again=True)
    assert report.status == 1 and [row.score for row in report.rows] == [8]
    assert "broken today" in str(report.changes[0])
    assert rows_of(export(course).files["grades"])["ann"][ADD] == "8.0"
    assert regrade(course).status == 0


def test_judging_all_again_holds_back_what_differs(course):
    submit(course, "ann", filled(ADD, **RIGHT))
    regrade(course)
    report = grade(course, new_judge=Stricter, workers=1, again=True)
    assert "judged again" in str(report.changes[0]) and report.rows[0].score == 8


def test_versions_follow_the_source():
    from autograder.classroom.grading.judging import exercise_version, judge_version

    assert judge_version() == judge_version()
    assert len({exercise_version(name) for name in ("vector_add", "naive_softmax", "leaky_dropout")}) == 3
    assert exercise_version("naive_softmax") == exercise_version("online_softmax")  # of one module


def test_the_judges_version_is_that_of_the_modules_that_judge():
    """Where another module changes, no class is judged again."""
    from autograder.classroom.grading import judging

    code = "import sys, autograder.judge.pool; print(*[m.__file__ for n, m in sys.modules.items() if NAME in n[:10]])"
    code = code.replace("NAME", "'autograder'")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    package = Path(judging.__file__).parents[2]
    loaded = {*map(Path, out.split()), *(package / "box" / "inside").glob("*.py")}
    files = {file for file in judging.judge_files() if file.is_relative_to(package)}
    assert files == loaded - {*(package / "exercises").glob("*.py")}


def test_a_record_that_says_something_else_is_judged_again(course):
    submit(course, "ann", filled(ADD, **RIGHT))
    regrade(course)
    path = course.notebook("autograded", "ann", ADD)
    notebook = json.loads(path.read_text())
    notebook["metadata"]["autograder"]["by"] = "a person"
    path.write_text(json.dumps(notebook))
    assert regrade(course).rows[0].score == 8 and len(Counting.judged) == 2


def test_a_panel_that_is_too_long_is_shown_as_text(monkeypatch):
    """Cut within its HTML, it would leave tags open on the feedback page."""
    from autograder.classroom.grading import judging

    verdict = Verdict("vector_add", False, 0, 5, "interpreter", Finding("wrong-value", "<blink>"))
    cell = {"metadata": {}}
    for most, ends in ((judging.MAX_PANEL, "</div>"), (100, "</pre>")):
        monkeypatch.setattr(judging, "MAX_PANEL", most)
        judging._write_verdict(cell, verdict, 0.0)
        html = cell["outputs"][0]["data"]["text/html"]
        assert "vector_add" in html and "<blink>" not in html and html.endswith(ends)


def test_a_fault_of_the_grader_is_tried_again(course):
    submit(course, "ann", filled(ADD, vector_add="boom", bug_hunt="right"))
    regrade(course)
    regrade(course)
    assert Counting.judged == ["vector_add", "vector_add", "bug_hunt"]


def test_another_gradebook_is_graded_into(course, tmp_path):
    submit(course, "ann", filled(ADD, **RIGHT))
    regrade(course)
    regrade(Course.open(course.root, db=f"sqlite:///{tmp_path / 'other.db'}"))
    assert len(Counting.judged) == 2


def test_a_run_that_was_stopped_goes_on_where_it_was(course):
    for n in range(6):
        submit_own(course, f"s{n}", filled(ADD, **RIGHT))

    class Stops(Counting):
        def judge(self, exercise, source):
            if len(self.judged) == 5:
                raise KeyboardInterrupt
            return super().judge(exercise, source)

    with pytest.raises(KeyboardInterrupt):
        grade(course, new_judge=Stops, workers=1)
    report = regrade(course)
    assert len(report.rows) == 6 and 0 < sum(row.kept for row in report.rows) < 6
    assert len(Counting.judged) == 2 * sum(not row.kept for row in report.rows)
    assert {row.score for row in report.rows} == {8}


def test_a_run_that_dies_between_database_and_files_grades_the_rest_again(course, monkeypatch):
    for n in range(8):
        submit_own(course, f"s{n}", filled(ADD, **RIGHT))
    write, written = gradebook.write_atomically, []

    class Died(BaseException):
        pass

    def some(path, content):
        if path.suffix == ".ipynb" and len(written) == 3:
            raise Died
        written.extend([write(path, content)] * (path.suffix == ".ipynb"))

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(gradebook, "write_atomically", some)
        regrade(course)
    report = regrade(course)
    assert sum(row.kept for row in report.rows) == 3 and len(Counting.judged) == 2 * 5
    assert {row.score for row in report.rows} == {8} and len(rows_of(export(course).files["grades"])) == 8


def test_a_row_that_the_database_refuses_keeps_no_other_back(course):
    for n in range(30):
        submit(course, f"s{n:02}", filled(ADD, **RIGHT))
    submit(course, "s15 no UTF-8 \udcff", filled(ADD, **RIGHT))
    report = regrade(course)
    bad = [row for row in report.rows if row.failed]
    assert [row.student for row in bad] == ["s15 no UTF-8 \udcff"] and "UnicodeEncodeError" in bad[0].notes[0]
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        assert {s.score for a in gradebook.assignments for s in a.submissions} == {8}


def test_a_row_that_cannot_be_written_whole_is_not_in_the_gradebook(course, monkeypatch):
    """Without its grades it would count as 0, and an LMS would get that."""
    for student in ("ann", "bob"):
        submit(course, student, filled(ADD, **RIGHT))
    apply = gradebook.Lateness.apply

    def breaks(self, submission):
        if submission.student_id == "ann":
            raise RuntimeError("the plug-in broke")
        apply(self, submission)

    monkeypatch.setattr(gradebook.Lateness, "apply", breaks)
    report = regrade(course)
    assert [row.failed for row in report.rows] == [True, False] and "the plug-in broke" in report.rows[0].notes[0]
    with Gradebook(course.db_url, COURSE_ID) as database:
        assert [s.student_id for a in database.assignments for s in a.submissions] == ["bob"]


class Slow(StrawJudge):
    """Takes 0.3 seconds for an exercise, and says when it begins."""

    def __init__(self, begun):
        self.begun = begun

    def judge(self, exercise, source):
        self.begun.send(exercise)
        time.sleep(0.3)
        return super().judge(exercise, source)


def grade_slowly(course: Course, temporary: Path, begun) -> None:
    """What a child does: the command, with all that it says in a file."""
    tempfile.tempdir = str(temporary)
    sys.stdout = sys.stderr = (temporary.parent / "said").open("w", buffering=1)
    judges.Here.prove, judges.Judge = (lambda *_: None), (lambda confine: Slow(begun))
    sys.exit(cli.main(["grade", "--workers", "1", "--course", str(course.root)]))


@pytest.fixture
def slow_grader(course, tmp_path):
    """A grading process at work, in a temporary folder of its own, and the file with what it says.

    It is forked: a new one would import torch and nbgrader first.
    """
    for n in range(40):
        submit_own(course, f"s{n}", filled(ADD, **RIGHT))
    (tmp_path / "tmp").mkdir()
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=grade_slowly, args=(course, tmp_path / "tmp", theirs))
    process.start()
    for _ in range(5):  # between the rows of who is graded
        assert ours.poll(60) and ours.recv()
    yield process, tmp_path / "tmp"
    process.kill()
    process.join()


def test_control_c_is_one_line_and_leaves_nothing(slow_grader, course):
    process, temporary = slow_grader
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    said = (temporary.parent / "said").read_text()
    assert process.exitcode == 130
    assert "Traceback" not in said and "the same command goes on from here" in said.splitlines()[-1]
    assert list(temporary.glob(f"{PREFIX}*")) == []
    report = regrade(course)
    assert any(row.kept for row in report.rows) and len(report.rows) == 40


@contextlib.contextmanager
def interrupted_wait():
    """The block is left by Ctrl-C, which must end a wait inside the system, too."""
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupt.remembered():
        yield
        time.sleep(10)
    assert time.monotonic() - began < 5


def test_an_interrupt_inside_the_database_waits_until_it_is_left(caplog):
    engine = sqlalchemy.create_engine("sqlite://")
    sqlalchemy.event.listen(engine, "reset", lambda *_: signal.raise_signal(signal.SIGINT))
    with interrupted_wait():
        engine.connect().close()
    assert not caplog.records


def test_an_interrupt_inside_an_import_waits_until_it_is_done(tmp_path, monkeypatch):
    (tmp_path / "imported_whole.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with interrupted_wait():
        importlib.import_module("imported_whole")
    assert sys.modules.pop("imported_whole").whole


def test_control_c_is_one_line_for_every_command(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_prove", lambda options: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    try:
        assert cli.main(["prove"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "autograder: stopped\n"


@pytest.mark.parametrize("lines", [1, 10_000], ids=["waits in a buffer", "is written at once"])
def test_output_that_nobody_reads_ends_a_command_without_a_traceback(lines):
    """As `| head` does."""
    loud = f"from autograder import cli\ncli._prove = lambda options: print('line\\n' * {lines})\n"
    code = f"{loud}raise SystemExit(cli.main(['prove']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_that_the_database_drops_is_heard_before_the_next_submission():
    with interrupt.remembered():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
    interrupt.check()  # the next batch of this process begins anew


def test_an_interrupt_that_nobody_has_heard_is_heard_at_the_end():
    for problem in (None, ValueError("the command's own")):
        with pytest.raises(KeyboardInterrupt), interrupt.remembered():
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            if problem:
                raise problem


def test_what_a_killed_run_left_is_removed_by_the_next(slow_grader, course, monkeypatch):
    process, temporary = slow_grader
    [left] = temporary.glob(f"{PREFIX}*")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with scratch_folder():
        assert left.exists()  # its grader lives
        assert Path(tempfile.gettempdir()).parent == temporary
    process.kill()
    process.join()
    with scratch_folder():
        assert not left.exists()
    assert list(temporary.iterdir()) == []
    report = regrade(course)  # the lock of a killed grader holds nobody
    assert any(row.kept for row in report.rows) and {row.score for row in report.rows} == {8}


def test_two_graders_of_one_course_wait_for_each_other(course):
    for n in range(8):
        submit_own(course, f"s{n}", filled(ADD, **RIGHT))
    said, reports = [], []

    def grade_all():
        reports.append(grade(course, new_judge=Counting, workers=1, progress=said.append))

    threads = [threading.Thread(target=grade_all) for _ in range(2)]
    with one_grader(course, said.append):
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        assert reports == []
    for thread in threads:
        thread.join(60)
    assert len(Counting.judged) == 16  # the second found all done
    assert sorted(sum(row.kept for row in report.rows) for report in reports) == [0, 8]
    assert sum("waiting for it to end" in line for line in said) >= 1


def test_the_progress_says_what_is_left(course):
    for n in range(3):
        submit(course, f"s{n}", filled(ADD, **RIGHT))
    lines = []
    grade(course, new_judge=StrawJudge, workers=1, progress=lines.append)
    assert lines[0].startswith("[1/3] s") and lines[0].endswith(" left)")
    assert lines[-1].endswith("0 s left)")


def test_collecting_again_what_was_graded_is_not_stale(course, tmp_path):
    path = download(tmp_path, {"ann/01_vector_add.ipynb": json.dumps(filled(ADD, **RIGHT))})
    run(path, course, new_judge=StrawJudge)
    collect(path, course)
    assert rows_of(export(course).files["grades"])["ann"]["notes"] == ""
    assert run(path, course, new_judge=Counting).status == 0
    assert Counting.judged == []


# -- what the documents promise -----------------------------------------------------------------------------


@pytest.mark.parametrize("extra, package", [("postgresql", "psycopg"), ("dask", "distributed"), ("lti", "PyJWT")])
def test_an_extra_of_the_class_is_named_pinned_and_in_the_tests_environment(extra, package):
    """PostgreSQL needed a driver that no document named and nothing pinned."""
    root = Path(__file__).resolve().parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(need.startswith(package) for need in extras[extra])
    assert any(need.startswith(package) for need in extras["dev"])
    assert f"{package}==" in (root / "constraints.txt").read_text()
    readme = (root / "README.md").read_text()
    assert f"the extra `{extra}`" in readme


def test_make_grade_is_one_command_that_finishes():
    """`make` ended at the first step that had something to say, before feedback and CSV."""
    makefile = (Path(__file__).resolve().parents[1] / "Makefile").read_text()
    recipe = makefile.split("\ngrade:", 1)[1].split("\n\n", 1)[0]
    assert recipe.count("$(BIN)/autograder") == 1 and "autograder run" in recipe


def test_every_target_of_make_is_there_once():
    """A second recipe of one name replaced the first without an error: `make build` only checked."""
    makefile = (Path(__file__).resolve().parents[1] / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):(?!=)", makefile, re.MULTILINE)
    assert len(targets) == len(set(targets))
    assert set(re.search(r"^\.PHONY: (.*)", makefile, re.MULTILINE)[1].split()) == set(targets)


def test_a_full_disk_leaves_no_course_with_some_of_the_lessons(tmp_path, monkeypatch, capsys):
    """It left five of seven, and the next run took them for the course; the message did not say which disk."""
    write, made = Path.write_bytes, []

    def until_full(path, content):
        made.append(path)
        if len(made) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    (tmp_path / "in").mkdir()
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", until_full)
        assert cli.main(["collect", str(tmp_path / "in"), "--course", str(tmp_path / "course")]) == 2
    said = capsys.readouterr().err
    assert "No space left" in said and str(tmp_path / "course") in said
    assert not list(tmp_path.glob("course/release/*"))
    cli.main(["collect", str(tmp_path / "in"), "--course", str(tmp_path / "course")])
    assert len(list(tmp_path.glob("course/release/*/*.ipynb"))) == len(list(LESSONS.glob("*.ipynb")))
