"""nbgrader's exchange, from release to feedback, with a judge of straw: whose a hand-in is, and what comes back."""

import getpass
import json
import os
import pwd
import shutil
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from classroom import RIGHT, StrawJudge, filled, new_course
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchAssignment, ExchangeFetchFeedback, ExchangeSubmit
from traitlets.config import Config

from autograder.classroom import interrupt
from autograder.classroom.course import COURSE_ID, CourseError, read_timestamp
from autograder.classroom.grading.grade import grade
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.room.exchange import exchange
from autograder.classroom.standing import Standing

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


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def give(path, number):
    """Make everything in a folder another user's."""
    for each in (path, *path.rglob("*")):
        os.chown(each, number, number, follow_symlinks=False)


def collected(course):
    return exchange(course, course.root.parent / "exchange", "collect")


@AS_ROOT
def test_a_hand_in_is_its_owners_whatever_name_it_bears(course):
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    forged = inbound(course) / f"{ME}+{LESSON}+2099-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    shutil.copytree(mine, forged)
    give(forged, pwd.getpwnam("nobody").pw_uid)
    strange = inbound(course) / f"zoe+{LESSON}+2026-01-01 00:00:00.000000 UTC+BBBBBBBBBBBB"
    shutil.copytree(mine, strange)
    give(strange, 54321)
    collected(course)
    assert {student for student, _ in course.handed_in()} == {ME, "nobody", "user-54321"}


def test_the_time_of_a_hand_in_is_the_servers(course):
    """The names and the stamp are the attendee's word: a late one could be early."""
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    early = inbound(course) / f"{ME}+{LESSON}+2001-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    mine.rename(early)
    (early / "timestamp.txt").write_text("2001-01-01 00:00:00.000000 UTC")
    for path in (early, *early.iterdir()):
        os.utime(path, (0, 0))
    assert not collected(course).problems
    came = read_timestamp(course.stamp(ME, LESSON))
    assert abs(datetime.now(UTC) - came) < timedelta(minutes=1)


def test_the_latest_hand_in_counts_and_a_backup_that_was_put_back_makes_nobody_late(course):
    hand_in(course, {})
    hand_in(course, RIGHT)
    assert not collected(course).problems
    before = course.notebook("submitted", ME, LESSON).read_bytes(), course.stamp(ME, LESSON).read_text()
    assert json.loads(before[0]) == filled(LESSON, **RIGHT)
    latest = max(inbound(course).iterdir(), key=lambda path: path.stat().st_ctime_ns)
    os.chmod(latest, 0o755)  # what changes is new, by the system's clock
    assert not collected(course).problems
    assert before == (course.notebook("submitted", ME, LESSON).read_bytes(), course.stamp(ME, LESSON).read_text())


@AS_ROOT
@pytest.mark.parametrize("swapped", ["notebook", "folder"])
def test_nobody_hands_in_what_is_another_users(course, monkeypatch, swapped):
    """A link that is swapped in while a folder is read brought another's notebook into one's own submission."""
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    thief = inbound(course) / f"nobody+{LESSON}+2026-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    shutil.copytree(mine, thief)
    give(thief, pwd.getpwnam("nobody").pw_uid)
    before = os.open

    def swaps(path, flags, *rest, **options):
        at = f"{LESSON}.ipynb" if swapped == "notebook" else thief.name
        target = thief / at if swapped == "notebook" else thief
        if path == at and not target.is_symlink() and (swapped == "folder" or thief_is_open()):
            shutil.rmtree(target) if target.is_dir() else target.unlink()
            target.symlink_to(mine / at if swapped == "notebook" else mine)
        return before(path, flags, *rest, **options)

    def thief_is_open():
        links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
        return any(os.path.exists(link) and os.readlink(link) == str(thief) for link in links)

    monkeypatch.setattr(os, "open", swaps)
    report = collected(course)
    monkeypatch.undo()
    assert course.handed_in() == [(ME, LESSON)] and len(report.problems) == 1
    assert report.problems[0].startswith(f"nobody {LESSON}: not collected: ")


@AS_ROOT
def test_a_hard_link_is_nobodys_way_to_another(course):
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    thief = inbound(course) / f"nobody+{LESSON}+2026-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    thief.mkdir()
    os.link(mine / f"{LESSON}.ipynb", thief / f"{LESSON}.ipynb")
    os.chown(thief, pwd.getpwnam("nobody").pw_uid, -1)
    assert len(collected(course).problems) == 1 and course.handed_in() == [(ME, LESSON)]


def a_pipe(there, notebook):
    os.mkfifo(there)


def a_pipe_for_a_notebook(there, notebook):
    there.mkdir()
    os.mkfifo(there / f"{LESSON}.ipynb")


def a_file_for_a_folder(there, notebook):
    there.write_text("not a folder")


def an_empty_folder(there, notebook):
    there.mkdir()


def a_folder_for_a_notebook(there, notebook):
    (there / f"{LESSON}.ipynb").mkdir(parents=True)


def a_link(there, notebook):
    there.symlink_to(notebook.parent)


def a_link_to_nothing(there, notebook):
    there.symlink_to(there)


def a_giant(there, notebook):
    """It needs no room on the disk where it is, and a gigabyte where it is copied to."""
    there.mkdir()
    with (there / f"{LESSON}.ipynb").open("wb") as file:
        file.truncate(1 << 30)


STRANGE = [a_pipe, a_pipe_for_a_notebook, a_file_for_a_folder, an_empty_folder, a_folder_for_a_notebook, a_link]
STRANGE += [a_link_to_nothing, a_giant]


@AS_ROOT
@pytest.mark.parametrize("make", STRANGE)
@pytest.mark.parametrize("when", ["2026-01-01 00:00:00.000000 UTC", "never"])
def test_what_one_hands_in_stops_nobody(course, make, when):
    """Each of these ended the collection of the lesson for everybody. Now it is a row with a reason."""
    hand_in(course, RIGHT)
    [mine] = inbound(course).iterdir()
    there = inbound(course) / f"nobody+{LESSON}+{when}+AAAAAAAAAAAA"
    make(there, mine / f"{LESSON}.ipynb")
    number = pwd.getpwnam("nobody").pw_uid
    give(there, number) if there.is_dir() and not there.is_symlink() else os.lchown(there, number, number)
    report = collected(course)
    assert course.handed_in() == [(ME, LESSON)] and report.status == 1
    assert [line[:30] for line in report.problems] == [f"nobody {LESSON}: not collected: "[:30]]
    assert Standing(course).trouble == {"nobody": report.problems}
    assert sum(path.stat().st_size for path in course.root.glob("submitted/**/*")) < 1 << 20
    shutil.rmtree(there) if there.is_dir() and not there.is_symlink() else there.unlink()
    assert not collected(course).problems


def test_a_bad_stamp_of_an_earlier_hand_in_stops_nothing(course):
    hand_in(course, {})
    collected(course)
    course.stamp(ME, LESSON).write_text("never")
    hand_in(course, RIGHT)
    assert not collected(course).problems
    assert json.loads(course.notebook("submitted", ME, LESSON).read_bytes()) == filled(LESSON, **RIGHT)


def test_where_the_latest_cannot_be_read_the_one_before_counts(course):
    hand_in(course, RIGHT)
    (inbound(course) / f"{ME}+{LESSON}+2026-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA").mkdir()
    report = collected(course)
    assert course.handed_in() == [(ME, LESSON)]
    assert len(report.problems) == 1 and f"there is no {LESSON}.ipynb in it" in report.problems[0]


def test_what_is_no_hand_in_is_said_once(course):
    hand_in(course, RIGHT)
    for name in ("x", f"{ME}+99_none+now+AAAA", "+", "++++"):
        (inbound(course) / name).mkdir()
    report = collected(course)
    assert not report.problems and len(report.notes) == 1 and "no hand-in of a lesson" in report.notes[0]


def test_only_files_of_a_hand_in_are_collected(course, tmp_path):
    hand_in(course, RIGHT)
    secret = tmp_path / "gradebook"
    secret.write_text("the grades of everybody")
    [mine] = inbound(course).iterdir()
    (mine / "also.txt").symlink_to(secret)
    (mine / "folder").symlink_to(tmp_path)
    (mine / "films").mkdir()
    collected(course)
    there = {path.name for path in course.root.glob("submitted/*/*/*")}
    assert there == {f"{LESSON}.ipynb", "timestamp.txt", "submission_secret.txt"}


def test_nbgraders_own_collect_is_the_same(course):
    """Formgrader's button, and `nbgrader collect`."""
    hand_in(course, RIGHT)
    os.mkfifo(inbound(course) / f"{ME}+{LESSON}+never+AAAAAAAAAAAA")
    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.course_id = str(course.root), COURSE_ID
    config.CourseDirectory.db_url = course.db_url
    config.Exchange.root = str(course.root.parent / "exchange")
    config.ExchangeFactory.collect = "autograder.classroom.room.exchange.CollectByOwner"
    result = NbGraderAPI(CourseDirectory(config=config), config=config).collect(LESSON)
    assert result["success"] and course.handed_in() == [(ME, LESSON)]


def test_a_collect_that_is_stopped_ends_and_leaves_no_half_of_a_hand_in(course, monkeypatch):
    """nbgrader took Ctrl-C for an error of one lesson, and later the half that was copied for the whole."""
    hand_in(course, RIGHT)
    whole = Path.write_bytes

    def stopped(path, content):
        whole(path, content[: len(content) // 2])
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "write_bytes", stopped)
    with pytest.raises(KeyboardInterrupt), interrupt.remembered():
        collected(course)
    assert course.handed_in() == []
    monkeypatch.setattr(Path, "write_bytes", whole)
    collected(course)
    assert json.loads(course.notebook("submitted", ME, LESSON).read_bytes()) == filled(LESSON, **RIGHT)
    assert not list(course.root.glob("submitted/*/.*"))


def test_a_lesson_that_changed_is_released_again_and_says_when_it_is_due(course):
    """`release` refused a lesson that was there; and attendees could see nowhere when one is due."""
    there = course.root.parent / "exchange" / COURSE_ID / "outbound" / LESSON / f"{LESSON}.ipynb"
    (course.root / "course.toml").write_text(f"[assignments.{LESSON}]\ndue = 2026-10-03T23:59:00\n")
    assert not exchange(course, course.root.parent / "exchange", "release").problems
    assert "Hand in by 03 October 2026, 23:59" in "".join(json.loads(there.read_bytes())["cells"][0]["source"])
    assert there.stat().st_mode & 0o777 == 0o644
    before = there.stat().st_ino
    assert not exchange(course, course.root.parent / "exchange", "release").problems
    assert there.stat().st_ino == before, "what is the same stays"


def test_a_room_without_an_exchange_is_said(course, tmp_path):
    with pytest.raises(CourseError, match="there is no exchange"):
        exchange(course, tmp_path / "nowhere", "release")


def test_one_lesson_alone(course):
    root = course.root.parent / "exchange"
    shutil.rmtree(root / COURSE_ID / "outbound")
    (root / COURSE_ID / "outbound").mkdir()
    assert exchange(course, root, "release", [LESSON]).said == ["release: 1 lesson"]
    assert [path.name for path in (root / COURSE_ID / "outbound").iterdir()] == [LESSON]
    with pytest.raises(CourseError, match="there is no lesson '99_none'"):
        exchange(course, root, "release", ["99_none"])
