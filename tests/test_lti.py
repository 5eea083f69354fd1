"""Roster and grades by LTI 1.3, with a reference platform (lms_platform.py)."""

import csv
import json

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, filled, new_course, submit

pytest.importorskip("jwt", reason="no PyJWT (make test installs it)")

from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: E402
from lms_platform import running  # noqa: E402
from nbgrader.api import Gradebook  # noqa: E402

from autograder import cli  # noqa: E402
from autograder.classroom.course import COURSE_ID, CourseError  # noqa: E402
from autograder.classroom.grading.grade import grade  # noqa: E402
from autograder.classroom.lms import lti  # noqa: E402

ADD, SOFTMAX = EXERCISES


@pytest.fixture
def platform():
    with running() as one:
        for user, name in (("u1", "Ann Lee"), ("u2", "Bob Roe"), ("u3", "Ann Lee"), ("u4", "Zoë Müller")):
            one.member(user, name=name, email=f"{name.split()[0].lower()}@{user}.example")
        one.member("t1", "Instructor", name="Ina Structor")
        one.member("u5", name="Gone Away")["status"] = "Inactive"
        yield one


@pytest.fixture
def course(tmp_path, platform, monkeypatch):
    make = rsa.generate_private_key  # to make and to read a longer key takes three times as long
    monkeypatch.setattr(rsa, "generate_private_key", lambda **how: make(**how | {"key_size": 2048}))
    made = new_course(tmp_path / "course")
    (made.root / lti.SETTINGS).write_text(json.dumps(platform.settings()))
    platform.tool_key = lti.public_key(made).said[0]
    return made


def name_of(platform, number):
    return lti.name_of(platform.url, platform.people[number])


def test_the_learners_are_the_roster_and_namesakes_have_names_of_their_own(course, platform, capsys):
    assert cli.main(["lti", "roster", "--course", str(course.root)]) == 0
    assert "4 learners" in capsys.readouterr().out
    rows = list(csv.DictReader((course.root / "roster.csv").open()))
    assert {row["name"] for row in rows} == {"Ann Lee", "Bob Roe", "Zoë Müller"}
    assert len({row["id"] for row in rows}) == 4
    assert {row["id"].rpartition("-")[0] for row in rows} == {"ann", "bob", "zoe"}


def test_scores_arrive_once_and_again_when_they_change(course, platform):
    ann, bob = name_of(platform, 0), name_of(platform, 1)
    platform.items += [{"id": f"{platform.url}/items/{n}", "label": f"Quiz {n}"} for n in range(3)]  # more than a page
    platform.items.append({"id": f"{platform.url}/items/3?type=X", "label": "Lab 1: vector add", "scoreMaximum": 100})
    submit(course, ann, filled(ADD, **RIGHT))
    submit(course, bob, filled(ADD, vector_add="half"))
    submit(course, ann, filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    grade(course, new_judge=StrawJudge)
    report = lti.grades(course)
    assert not report.problems and report.said == [f"3 scores sent to {platform.url}; 0 are there already"]
    assert sorted(platform.scores) == sorted(
        [("Lab 1: vector add", "u1", 8.0, 8.0), ("Lab 1: vector add", "u2", 2.5, 8.0), (SOFTMAX, "u1", 4.0, 4.0)]
    )
    assert platform.items[-1]["resourceId"] == SOFTMAX and platform.items[-1]["scoreMaximum"] == 4
    assert lti.grades(course).said == [f"0 scores sent to {platform.url}; 3 are there already"]
    submit(course, bob, filled(ADD, **RIGHT))
    assert lti.grades(course).problems == [f"{bob} {ADD}: something newer was collected; grade it first"]
    grade(course, new_judge=StrawJudge)
    lti.grades(course)
    assert platform.scores[3:] == [("Lab 1: vector add", "u2", 8.0, 8.0)] and len(platform.items) == 5


def test_what_waits_and_who_is_no_learner_is_not_sent_but_said(course, platform):
    ann = name_of(platform, 0)
    for who in (ann, "stranger"):
        submit(course, who, filled(ADD, vector_add="half"))
    grade(course, new_judge=StrawJudge)
    with Gradebook(course.db_url, COURSE_ID) as gradebook:
        gradebook.find_grade("check-vector_add", ADD, ADD, ann).manual_score = 1
        gradebook.db.commit()
    submit(course, ann, filled(ADD, **RIGHT))
    grade(course, new_judge=StrawJudge)
    report = lti.grades(course)
    assert report.status == 1 and platform.scores == []
    assert any("waits for a decision of yours" in line and line.startswith(ann) for line in report.problems)
    assert f"stranger {ADD}: is no learner of the course in the LMS" in report.problems


def test_a_system_that_goes_away_is_one_line_and_what_was_sent_is_known(course, platform, monkeypatch):
    for number in (0, 1):
        submit(course, name_of(platform, number), filled(ADD, **RIGHT))
    grade(course, new_judge=StrawJudge)
    whole, sent = lti._Platform.send, []

    def send(self, url, scope, media, content):
        if scope == "score" and sent:
            platform.broken = "/items"
        sent.append(scope) if scope == "score" else None
        return whole(self, url, scope, media, content)

    monkeypatch.setattr(lti._Platform, "send", send)
    with pytest.raises(CourseError, match="says 503"):
        lti.grades(course)
    monkeypatch.undo()
    platform.broken = ""
    assert lti.grades(course).said == [f"1 scores sent to {platform.url}; 1 are there already"]
    assert len(platform.scores) == 2


def test_another_key_gets_no_token(course, platform):
    (course.root / lti.KEY).unlink()
    lti.public_key(course)
    with pytest.raises(CourseError, match="token: says 400"):
        lti.roster(course)
    assert (course.root / lti.KEY).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change, said",
    [
        ({"lineitems": None}, "does not say lineitems; open the room from the LMS"),
        ({"token_url": "http://lms.example/token"}, "expected https"),
        ({"token_url": "http://127.0.0.1:9/token"}, "ConnectionError"),
    ],
)
def test_a_course_that_cannot_ask_is_one_line(change, said, course, platform):
    (course.root / lti.SETTINGS).write_text(json.dumps(platform.settings() | change))
    with pytest.raises(CourseError, match=said) as caught:
        lti.roster(course)
    assert "\n" not in str(caught.value)
