"""The gradebook on a real PostgreSQL server, started here. Skipped where its programs or its driver are absent."""

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, at_the_same_moment, filled, new_course, submit
from nbgrader.api import Gradebook

from autograder.classroom.course import COURSE_ID, Course
from autograder.classroom.grading.grade import grade
from autograder.classroom.grading.gradebook import one_grader
from autograder.classroom.standing import export

pytest.importorskip("psycopg")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))  # where Debian has them
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="needs Debian's package postgresql")
ADD, _ = EXERCISES


@pytest.fixture(scope="module")
def server():
    """The URL of an empty server on a socket of its own. PostgreSQL does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = pwd.getpwuid(os.getuid()).pw_name
    become = []
    if os.getuid() == 0:
        user = "postgres"
        shutil.chown(folder, user, user)
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    data = folder / "data"
    programs = PROGRAMS[-1].parent
    subprocess.run([*become, programs / "initdb", "-D", data, "-A", "trust"], check=True, capture_output=True)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    control = [*become, programs / "pg_ctl", "-D", data, "-w"]
    subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], check=True, capture_output=True)
    yield f"postgresql+psycopg://{user}@/postgres?host={folder}"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, capture_output=True)
    shutil.rmtree(folder)


def test_two_graders_with_one_database_of_their_own_courses(server, tmp_path):
    """Both registered the assignments at the same moment, and one of them crashed."""
    courses = []
    for name in ("one", "two"):
        made = new_course(tmp_path / name)
        courses.append(Course.open(made.root, db=server))
        for n in range(4):
            submit(made, f"{name}{n}", filled(ADD, **RIGHT))
    at_the_same_moment(lambda course: grade(course, new_judge=StrawJudge, workers=1), courses)
    with Gradebook(server, COURSE_ID) as gradebook:
        assert sorted(s.id for s in gradebook.students) == [f"{name}{n}" for name in ("one", "two") for n in range(4)]
        assert {s.score for s in gradebook.assignment_submissions(ADD)} == {8}
    assert all(grade(course, new_judge=StrawJudge).rows[0].kept for course in courses)
    assert export(courses[0]).said[0].startswith("4 students")


def test_a_grader_waits_for_another_of_the_same_database(server, tmp_path):
    first, second = (Course.open(tmp_path / name, db=server) for name in ("a", "b"))
    for course in (first, second):
        course.root.mkdir()
    order, said = [], []

    def wait():
        with one_grader(second, said.append):
            order.append("second")

    with one_grader(first, said.append):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(1.0)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
    assert ["waiting" in line for line in said] == [True]
