"""nbgrader's exchange, from release to feedback, with a judge of straw: whose a hand-in is, and what comes back."""

import getpass
import json
import os
import pwd
import shutil
import signal

import pytest
from classroom import RIGHT, StrawJudge, filled, new_course
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchAssignment, ExchangeFetchFeedback, ExchangeSubmit
from traitlets.config import Config

from autograder.classroom import interrupt
from autograder.classroom.course import COURSE_ID, CourseError
from autograder.classroom.exchange import exchange
from autograder.classroom.feedback import feedback
from autograder.classroom.grade import grade

ME = getpass.getuser()
LESSON = "01_vector_add"


@pytest.fixture
def course(tmp_path, monkeypatch):
    root = tmp_path / "exchange"
    root.mkdir()
    root.chmod(0o777)
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    made = new_course(tmp_path / "course")
    assert not exchange(made, root, "release").problems
    return made


def attendee(step, course):
    """One of nbgrader's own steps, as an attendee takes it."""
    config = Config()
    config.CourseDirectory.course_id, config.CourseDirectory.assignment_id = COURSE_ID, LESSON
    config.Exchange.root = str(course.root.parent / "exchange")
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    step(coursedir=api.coursedir, authenticator=api.authenticator, config=config).start()


def hand_in(course, answers):
    home = course.root.parent / "home"
    if not (home / LESSON).exists():
        attendee(ExchangeFetchAssignment, course)
    (home / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(filled(LESSON, **answers)))
    attendee(ExchangeSubmit, course)


def inbound(course):
    return course.root.parent / "exchange" / COURSE_ID / "inbound"


def to_feedback(course):
    assert not exchange(course, course.root.parent / "exchange", "collect").problems
    grade(course, new_judge=StrawJudge)
    feedback(course)
    return exchange(course, course.root.parent / "exchange", "give-back")


def test_there_and_back(course):
    hand_in(course, RIGHT)
    assert not to_feedback(course).problems
    attendee(ExchangeFetchFeedback, course)
    [page] = (course.root.parent / "home" / LESSON / "feedback").glob("*/*.html")
    assert "Passed" in page.read_text()


def test_a_page_of_an_older_hand_in_stays_until_the_new_one_is_graded(course):
    hand_in(course, RIGHT)
    to_feedback(course)
    hand_in(course, {})
    exchange(course, course.root.parent / "exchange", "collect")
    report = exchange(course, course.root.parent / "exchange", "give-back")
    assert report.status == 1 and "grade again" in report.problems[0]


def test_what_came_another_way_does_not_stop_the_others(course):
    hand_in(course, RIGHT)
    exchange(course, course.root.parent / "exchange", "collect")
    shutil.copytree(course.notebook("submitted", ME, LESSON).parent, course.notebook("submitted", "zoe", LESSON).parent)
    (course.notebook("submitted", "zoe", LESSON).parent / "submission_secret.txt").unlink()
    assert not to_feedback(course).problems
    attendee(ExchangeFetchFeedback, course)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_a_hand_in_is_its_owners_whatever_name_it_bears(course):
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    forged = inbound(course) / f"{ME}+{LESSON}+2099-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    shutil.copytree(mine, forged)
    nobody = pwd.getpwnam("nobody")
    for path in (forged, *forged.iterdir()):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    strange = inbound(course) / f"zoe+{LESSON}+2026-01-01 00:00:00.000000 UTC+BBBBBBBBBBBB"
    shutil.copytree(mine, strange)
    os.chown(strange, 54321, 54321)
    exchange(course, course.root.parent / "exchange", "collect")
    assert {student for student, _ in course.handed_in()} == {ME, "nobody", "user-54321"}
    stamp = course.notebook("submitted", ME, LESSON).with_name("timestamp.txt").read_text()
    assert not stamp.startswith("2099")


def test_links_are_not_followed(course, tmp_path):
    hand_in(course, RIGHT)
    secret = tmp_path / "gradebook"
    secret.write_text("the grades of everybody")
    [mine] = inbound(course).iterdir()
    (mine / "also.txt").symlink_to(secret)
    (mine / "folder").symlink_to(tmp_path)
    link = inbound(course) / f"{ME}+02_naive_softmax+2026-01-01 00:00:00.000000 UTC+CCCCCCCCCCCC"
    link.symlink_to(mine)
    exchange(course, course.root.parent / "exchange", "collect")
    collected = [path for path in course.root.glob("submitted/**/*") if path.is_file()]
    assert {path.name for path in collected} == {f"{LESSON}.ipynb", "timestamp.txt", "submission_secret.txt"}


def test_a_collect_that_is_stopped_ends_and_leaves_no_half_of_a_hand_in(course, monkeypatch):
    """nbgrader took Ctrl-C for an error of one lesson, and later the half that was copied for the whole."""
    hand_in(course, RIGHT)
    whole = shutil.copytree

    def stopped(source, target, **options):
        whole(source, target, **options)
        os.unlink(os.path.join(target, f"{LESSON}.ipynb"))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(shutil, "copytree", stopped)
    with pytest.raises(KeyboardInterrupt), interrupt.remembered():
        exchange(course, course.root.parent / "exchange", "collect")
    assert course.handed_in() == []
    monkeypatch.setattr(shutil, "copytree", whole)
    exchange(course, course.root.parent / "exchange", "collect")
    assert course.handed_in() == [(ME, LESSON)] and course.notebook("submitted", ME, LESSON).is_file()
    assert not list(course.root.glob("submitted/*/.*"))


def test_a_room_without_an_exchange_is_said(course, tmp_path):
    with pytest.raises(CourseError, match="there is no exchange"):
        exchange(course, tmp_path / "nowhere", "release")


def test_one_lesson_alone(course):
    root = course.root.parent / "exchange"
    shutil.rmtree(root / COURSE_ID / "outbound")
    (root / COURSE_ID / "outbound").mkdir()
    assert exchange(course, root, "release", [LESSON]).done == [LESSON]
    assert [path.name for path in (root / COURSE_ID / "outbound").iterdir()] == [LESSON]
    with pytest.raises(CourseError, match="there is no lesson '99_none'"):
        exchange(course, root, "release", ["99_none"])
