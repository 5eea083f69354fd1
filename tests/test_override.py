"""A score that a person gave, and what waits for a person: summary, report, CSV and LMS say the same."""

import csv

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, cell_of, filled, new_course, submit
from nbgrader.api import Gradebook

from autograder import cli
from autograder.classroom.course import COURSE_ID
from autograder.classroom.grading.grade import grade
from autograder.classroom.lms.filled import export_for
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.reports.report import report
from autograder.classroom.run import run
from autograder.classroom.standing import export
from autograder.verdict import Verdict

ADD, SOFTMAX = EXERCISES
CANVAS = f"Student,ID,SIS Login ID,Section,{ADD} (77)\nLee Ann,1,ann,x,\nRoe Bob,2,bob,x,\n"


@pytest.fixture
def course(tmp_path):
    made = new_course(tmp_path / "course")
    submit(made, "ann", filled(ADD, vector_add="half", bug_hunt="right"))
    submit(made, "bob", filled(ADD, **RIGHT))
    grade(made, new_judge=StrawJudge)
    return made


def override(course, score, exercise="vector_add"):
    """What formgrader's page does when somebody types a score."""
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        mark = gradebook.find_grade(f"check-{exercise}", ADD, ADD, "ann")
        mark.manual_score, mark.needs_manual_grade = score, False
        gradebook.db.commit()


def nothing_new(course):
    """A folder in which there is nothing to collect."""
    folder = course.root.parent / "nothing new"
    folder.mkdir(exist_ok=True)
    return folder


def run_again(course, **options):
    """The run's report, and how many each of its views says to wait: the summary, the page, the CSV, the LMS's file."""
    done = run(nothing_new(course), course, new_judge=StrawJudge, **options)
    lines = []
    done.print(lines.append)
    summary = next(line for line in lines if " to review" in line)
    page = (course.root / "report.html").read_text()
    table = course.root.parent / "canvas.csv"
    table.write_text(CANVAS)
    grades = done.steps["export"].files["grades"].open(encoding="utf-8-sig")
    notes = {row["student"]: row["notes"] for row in csv.DictReader(grades)}
    left_out = [line for line in export_for(course, "canvas", table).problems if "waits for a decision" in line]
    counts = {
        "summary": int(summary.split(" to review")[0].rsplit(" ", 1)[-1]),
        "page": page.partition("Waiting for you")[2].partition("</ul>")[0].count("<li>"),
        "csv": sum("waits for a decision of yours" in note for note in notes.values()),
        "lms": len(left_out),
        "status": done.graded.status,
    }
    assert len(set(counts.values())) == 1, counts
    return counts["summary"]


def score_of_ann(course):
    rows = csv.DictReader((course.root / "grades.csv").open(encoding="utf-8-sig"))
    return next(float(row[ADD]) for row in rows if row["student"] == "ann")


def test_an_override_of_an_answer_that_stays_is_kept_and_nobody_is_asked(course):
    """It was held back from the LMS for ever, and neither summary nor page said so."""
    override(course, 4.5)
    assert run_again(course) == 0 and score_of_ann(course) == 7.5
    assert run_again(course, again=True) == 0 and score_of_ann(course) == 7.5
    changed = filled(ADD, vector_add="half", bug_hunt="right")
    changed["cells"][0]["source"] = "my own notes"
    submit(course, "ann", changed)
    assert run_again(course) == 0 and score_of_ann(course) == 7.5
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="half"))  # another answer than the overridden one
    assert run_again(course) == 0 and score_of_ann(course) == 6


def test_an_override_of_another_answer_waits_everywhere_until_somebody_decides(course):
    override(course, 4.5)
    submit(course, "ann", filled(ADD, **RIGHT))
    assert run_again(course) == 1
    assert run_again(course) == 1, "nobody has decided yet"
    assert run_again(course, again=True) == 1
    assert "4.5 was given by hand for another answer" in (course.root / "report.html").read_text()
    override(course, 5)
    assert run_again(course, again=True) == 0 and score_of_ann(course) == 8
    submit(course, "ann", filled(ADD, vector_add="half", bug_hunt="right"))
    assert run_again(course) == 1
    override(course, None)
    assert run_again(course) == 0 and score_of_ann(course) == 5.5


def test_a_submission_that_cannot_be_read_waits_everywhere_until_somebody_decides(course):
    submit(course, "ann", b"<html>")
    assert run_again(course) == 1
    for exercise in ("vector_add", "bug_hunt"):
        override(course, 1, exercise)
    assert run_again(course) == 0 and score_of_ann(course) == 2
    assert run_again(course, again=True) == 0
    submit(course, "ann", b"<html> again")
    assert run_again(course) == 1


def without(name):
    notebook = filled(ADD, **RIGHT)
    notebook["cells"].remove(cell_of(notebook, name))
    return notebook


def doubled(name, word):
    notebook = filled(ADD, **RIGHT)
    source = cell_of(notebook, name)["source"].replace("right", word)
    notebook["cells"].append(dict(cell_of(notebook, name), source=source))
    return notebook


def empty():
    return dict(filled(ADD), cells=[])


def moved_elsewhere():
    notebook = filled(ADD, **RIGHT)
    cell_of(notebook, "vector_add")["metadata"] = {}
    return notebook


class Sees(StrawJudge):
    """An empty answer earns nothing; of two texts of a cell the last one counts."""

    def judge(self, exercise: str, source: str) -> Verdict:
        return super().judge(exercise, source.rpartition("def ")[2])


@pytest.mark.parametrize(
    "notebook, waits",
    [
        (without("vector_add"), 1),
        (doubled("vector_add", "half"), 1),
        (empty(), 1),
        (doubled("vector_add", "right"), 0),
        (moved_elsewhere(), 0),
    ],
    ids=["deleted", "doubled", "empty", "doubled and the same", "in another cell"],
)
def test_what_deserves_a_look_waits(course, notebook, waits):
    """A deleted answer cell cost its points, and only a line among hundreds said so."""
    submit(course, "ann", notebook)
    grade(course, new_judge=Sees)
    assert run_again(course) == waits


def test_the_page_of_a_moved_answer_says_nothing_of_a_missing_cell(course):
    submit(course, "ann", moved_elsewhere())
    [row] = [row for row in grade(course, new_judge=StrawJudge).rows if row.student == "ann"]
    assert (row.score, row.notes) == (8, [])


def test_a_step_that_fails_takes_no_summary_away(course, monkeypatch):
    """Whoever cannot read a folder of the report's learned nothing of the grades either."""
    from autograder.classroom import run

    def report(course, now):
        raise PermissionError(13, "Permission denied", "/somewhere/right")

    monkeypatch.setattr(run, "report", report)
    done = run.run(nothing_new(course), course, new_judge=StrawJudge)
    lines = []
    done.print(lines.append)
    assert done.status == 1 and set(done.steps) == {"feedback", "export"}
    assert any(line.startswith("failed: report: PermissionError") and "/somewhere/right" in line for line in lines)
    assert any("2 graded; 0 to review" in line or "0 to review" in line for line in lines)


def test_feedback_export_and_report_alone_say_the_same(course):
    override(course, 4.5)
    submit(course, "ann", filled(ADD, **RIGHT))
    grade(course, new_judge=StrawJudge)
    feedback(course), report(course), export(course)
    assert "Waiting for you" in (course.root / "report.html").read_text()


def test_one_comment_for_all_with_one_diagnosis_is_on_their_pages_and_nobody_elses(course, capsys):
    submit(course, "eva", filled(ADD, vector_add="half", bug_hunt="right"))
    grade(course, new_judge=StrawJudge)
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_comment("vector_add", ADD, ADD, "eva").manual_comment = "well tried, Eva"
        gradebook.db.commit()

    def on_pages(text):
        feedback(course)
        pages = {who: course.notebook("feedback", who, ADD, ".html").read_text() for who in ("ann", "bob", "eva")}
        return [who for who, page in pages.items() if text in page]

    call = ["comment", "vector_add", "wrong-value", "Look at the last block.", "--course", str(course.root)]
    assert cli.main(call) == 0
    assert "have another comment, which stays (--replace takes its place): eva" in capsys.readouterr().out
    assert on_pages("Look at the last block.") == ["ann"] and on_pages("well tried") == ["eva"]
    assert cli.main([*call, "--replace"]) == 0 and on_pages("Look at the last block.") == ["ann", "eva"]
    call[3] = ""
    assert cli.main([*call, "--replace"]) == 0 and on_pages("Look at the last block.") == []
    call[2] = "race"
    assert cli.main(call) == 2 and "there are: wrong-value" in capsys.readouterr().err


def test_the_same_answers_handed_in_again_are_not_new(course):
    """Only the outputs of the notebook differ. It said "something newer was collected; grade it first" for ever."""
    again = filled(ADD, vector_add="half", bug_hunt="right")
    cell_of(again, "vector_add")["execution_count"] = 7
    submit(course, "ann", again)
    assert run_again(course) == 0
    table = course.root.parent / "canvas.csv"
    assert export_for(course, "canvas", table).problems == []
    assert "newer" not in course.notebook("feedback", "ann", ADD, ".html").read_text()
