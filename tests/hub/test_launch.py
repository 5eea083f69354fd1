"""People come into a room from an LMS: launches of a reference platform, to a hub that runs."""

import base64
import csv
import functools
import json
import re
import secrets
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from opened import ROOT, opened_room, why_not

pytest.importorskip("ltiauthenticator", reason="no ltiauthenticator (make test-hub installs it)")

from lms_platform import running  # noqa: E402

from autograder.classroom.course import Course  # noqa: E402
from autograder.classroom.lms import lti  # noqa: E402

sys.path.append(str(ROOT / "docker" / "hub"))
import room as doors  # noqa: E402


@pytest.fixture(scope="module")
def platform():
    with running() as one:
        for user, role in (("u1", "Learner"), ("u2", "Learner"), ("t1", "Instructor")):
            one.member(user, role, name=f"Ann {user}", email="ann@x.example")
        yield one


@pytest.fixture(scope="module")
def room(platform, tmp_path_factory):
    if reason := why_not():
        pytest.skip(reason)
    about = tmp_path_factory.mktemp("lti") / "lti.toml"
    said = platform.settings() | {"authorize_url": f"{platform.url}/authorize", "jwks_url": f"{platform.url}/jwks"}
    said |= {"deployment_id": platform.deployment, "room_url": "http://127.0.0.1"}
    about.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
    with opened_room({"ROOM_LTI": str(about), "ROOM_CODE": "", "ROOM_INSTRUCTOR_CODE": ""}) as running_room:
        yield running_room


def launched(room, platform, member, nonce=None, state=None, sign=None, **claims):
    """What the hub answers to a launch; and the browser's session, signed in where it was good."""
    browser = requests.Session()
    begin = {"iss": platform.url, "client_id": platform.client_id, "login_hint": member["user_id"]}
    begin["target_link_uri"] = f"{room.url}/hub/token"
    asked = browser.get(f"{room.url}/hub/lti13/oauth_login", params=begin, allow_redirects=False)
    assert asked.status_code == 302 and asked.headers["Location"].startswith(f"{platform.url}/authorize?")
    said = {name: values[0] for name, values in parse_qs(urlsplit(asked.headers["Location"]).query).items()}
    token = (sign or platform.id_token)(member, nonce or said["nonce"], **claims)
    form = {"state": state or said["state"], "id_token": token}
    return browser.post(said["redirect_uri"], data=form, allow_redirects=False), browser


def name_in(browser, room):
    page = browser.get(f"{room.url}/hub/token").text
    return re.search(r'user: "([^"]*)"', page)[1]


def test_a_room_is_open_once_its_instructor_came_and_everybody_is_themselves(room, platform):
    ann, other_ann, instructor = platform.people
    early, _ = launched(room, platform, ann)
    assert early.status_code == 403 and "is not open yet" in early.text
    answer, browser = launched(room, platform, instructor)
    assert answer.status_code == 302 and name_in(browser, room) == "instructor"
    settings = room.folder / "course" / lti.SETTINGS
    assert settings.owner() == "instructor" and settings.stat().st_mode & 0o077 == 0
    names = []
    for member in (ann, other_ann):
        answer, browser = launched(room, platform, member)
        assert answer.status_code == 302
        names.append(name_in(browser, room))
        assert browser.get(f"{room.url}/hub/admin").status_code == 403
    assert len(set(names)) == 2 and all(name.startswith("ann-") for name in names), "one e-mail address, two people"
    assert names == [lti.name_of(platform.url, member) for member in (ann, other_ann)], "the course knows them so"
    course = Course.open(room.folder / "course")
    platform.tool_key = lti.public_key(course).said[0]
    lti.roster(course)
    assert sorted(row["id"] for row in csv.DictReader((course.root / "roster.csv").open())) == sorted(names)


def forged(platform, member, nonce):
    """A launch that says another role than the platform has signed."""
    head, body, mark = platform.id_token(member, nonce).split(".")
    said = json.loads(base64.urlsafe_b64decode(body + "=="))
    said["https://purl.imsglobal.org/spec/lti/claim/roles"] = platform.people[2]["roles"]
    return ".".join([head, base64.urlsafe_b64encode(json.dumps(said).encode()).decode().strip("="), mark])


@pytest.mark.parametrize(
    "trick",
    [
        {"context": "course-2"},
        {"https://purl.imsglobal.org/spec/lti/claim/deployment_id": "another"},
        {"aud": "another tool"},
        {"iss": "https://another.example"},
        {"exp": 1},
        {"nonce": "replayed"},
        {"state": "of another browser"},
        {"sign": forged},
    ],
    ids=lambda trick: next(iter(trick)).rpartition("/")[2],  # a function's own text has an address in it
)
def test_a_launch_that_is_not_of_this_room_opens_nothing(trick, room, platform):
    launched(room, platform, platform.people[2])  # the room belongs to course-1 from here on
    member = platform.people[0]
    if "sign" in trick:
        trick = {"sign": functools.partial(forged, platform)}
    answer, browser = launched(room, platform, member, **trick)
    assert answer.status_code in (400, 401, 403), answer.text
    assert browser.get(f"{room.url}/hub/token", allow_redirects=False).status_code == 302, "signed in all the same"


def test_an_instructor_of_another_course_is_no_instructor_here(room, platform):
    launched(room, platform, platform.people[2])
    answer, _ = launched(room, platform, platform.people[2], context="course-2")
    assert answer.status_code == 403
    elsewhere = {"user_id": "t9", "roles": ["http://purl.imsglobal.org/vocab/lis/v2/institution/person#Instructor"]}
    answer, browser = launched(room, platform, elsewhere)
    assert answer.status_code == 302 and name_in(browser, room).startswith("person-")


def test_both_sides_name_people_alike():
    for person in ({"sub": "1", "email": "Zoë.Müller@x"}, {"user_id": "2", "name": "孙"}, {"sub": secrets.token_hex()}):
        assert lti.name_of("https://lms", person) == doors.name_of("https://lms", person)
        assert doors.NAME.fullmatch(doors.name_of("https://lms", person))
