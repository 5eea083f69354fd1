"""Who is who in a room, without a room: names, passwords, numbers, cards."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jupyterhub", reason="no jupyterhub (make test-hub installs it)")
sys.path.append(str(Path(__file__).resolve().parents[2] / "docker" / "hub"))

import open_room  # noqa: E402
import room  # noqa: E402
from classroom import RIGHT, StrawJudge, filled, new_course, submit  # noqa: E402
from jupyterhub import orm  # noqa: E402
from nbgrader.utils import notebook_hash  # noqa: E402
from open_room import others_can  # noqa: E402
from sqlalchemy import create_engine  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402
from tornado.web import HTTPError  # noqa: E402

from autograder.classroom.course import CourseError  # noqa: E402
from autograder.classroom.forget import forget  # noqa: E402
from autograder.classroom.grading.grade import grade  # noqa: E402


def test_nobody_comes_in_as_a_user_of_the_machine(tmp_path):
    """A server would run as that user, with that user's files."""
    with pytest.raises(HTTPError, match="belongs to a user of this machine"):
        room.number_on_this_machine(tmp_path, "nobody")


@pytest.mark.parametrize("given, name", [("Ana María", "ana-maria"), (" Bo  Li ", "bo-li"), ("x_y.Z", "x-y-z")])
def test_names_become_plain(given, name):
    door = room.WorkshopAuthenticator()
    assert door.normalize_username(given) == name and door.validate_username(name)


@pytest.mark.parametrize("name", ["", "root", "a", "-rf", "1st", "x" * 40])
def test_some_names_are_refused(name):
    assert not room.WorkshopAuthenticator().validate_username(name)


def test_a_name_belongs_to_its_first_password(tmp_path):
    room.lay_out(tmp_path)
    assert not room.known(tmp_path, "ada", "short")
    assert room.known(tmp_path, "ada", "long enough") and room.known(tmp_path, "ada", "long enough")
    assert not room.known(tmp_path, "ada", "another one")
    assert "long enough" not in (tmp_path / "hub/people.json").read_text()
    assert (tmp_path / "hub").stat().st_mode & 0o077 == 0


def door(folder, **settings):
    return room.WorkshopAuthenticator(folder=str(folder), code="six kernels", instructor_code="secret", **settings)


def knock(door, name, code="six kernels", address="10.0.0.1", password="long enough"):
    handler = SimpleNamespace(request=SimpleNamespace(remote_ip=address))
    return door.authenticate(handler, {"username": name, "password": password, "otp": code})


def test_guesses_of_a_code_are_few_however_many_come_at_once(tmp_path, monkeypatch):
    """A thousand guesses at once took no longer than one."""
    room.lay_out(tmp_path)
    monkeypatch.setattr(room, "SLOW", 0.05)
    here = door(tmp_path)

    async def attack():
        guesses = [knock(here, "instructor", f"guess {n}") for n in range(1000)]
        said = await asyncio.gather(*guesses, return_exceptions=True)
        assert sum(isinstance(one, HTTPError) for one in said) == 1000 - room.MOST and not any(map(is_in, said))
        with pytest.raises(HTTPError, match="Too many wrong sign-ins"):
            await knock(here, "instructor", "secret")
        assert is_in(await knock(here, "instructor", "secret", address="10.0.0.2"))
        assert is_in(await knock(here, "ada")), "attendees are not kept out by guesses of the instructor's code"

    def is_in(said):
        return isinstance(said, dict)

    asyncio.run(attack())


def test_a_class_behind_one_address_comes_in(tmp_path):
    room.lay_out(tmp_path)
    here = door(tmp_path)
    people = [f"person-{n}" for n in range(3 * room.MOST)]

    async def all_of_them():
        return [await knock(here, name) for name in people]

    assert [said["name"] for said in asyncio.run(all_of_them())] == people


def test_a_room_with_a_list_is_for_those_on_it(tmp_path):
    listed = door(tmp_path, names=["ada"])
    assert listed.validate_username("ada") and listed.validate_username("instructor")
    assert not listed.validate_username("ben")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_the_exchange_is_the_instructors_before_anybody_can_make_it(tmp_path):
    """An attendee who made the course's folder first kept every lesson from being released."""
    room.lay_out(tmp_path)
    course = tmp_path / "exchange" / room.COURSE
    course.mkdir()
    os.chown(course, 20000, 20000)
    room.lay_out_exchange(tmp_path, 20009, 20009)
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (course, *course.iterdir())}
    assert modes == {room.COURSE: 0o755, "outbound": 0o755, "inbound": 0o2733, "feedback": 0o711}
    assert {path.stat().st_uid for path in (course, *course.iterdir())} == {20009}
    (course / "inbound").rmdir()
    (course / "inbound").symlink_to("/etc")
    with pytest.raises(SystemExit, match="is not a folder of this room"):
        room.lay_out_exchange(tmp_path, 20009, 20009)


def test_numbers_in_containers_stay_and_are_appended_in_place(tmp_path):
    """A container has the file mounted: a new file in its place would never be seen there."""
    room.lay_out(tmp_path)
    inode = (tmp_path / "passwd").stat().st_ino
    numbers = [room.number_in_containers(tmp_path, name) for name in ("ada", "ben", "ada")]
    assert numbers == [20000, 20001, 20000]
    assert (tmp_path / "passwd").stat().st_ino == inode


def test_a_room_of_a_careful_administrator_is_open_to_its_attendees(tmp_path):
    before = os.umask(0o077)
    try:
        room.lay_out(tmp_path / "room")
    finally:
        os.umask(before)
    modes = {name: (tmp_path / "room" / name).stat().st_mode & 0o7777 for name in ("", "hub", "exchange", "passwd")}
    assert modes == {"": 0o755, "hub": 0o700, "exchange": 0o1777, "passwd": 0o644}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_a_home_is_closed(tmp_path):
    room.lay_out(tmp_path)
    home = room.home_of(tmp_path, "ada", 20000)
    assert home.stat().st_uid == 20000 and home.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_a_container_has_what_its_role_needs_and_nothing_of_others(tmp_path):
    room.lay_out(tmp_path)
    ada = {place: read_only for place, _, read_only in room.mounts(tmp_path, "ada", os.getuid())}
    assert ada == {"exchange": False, "turns": False, "passwd": True, "progress/ada": False}
    instructor = {place: read_only for place, _, read_only in room.mounts(tmp_path, room.INSTRUCTOR, os.getuid())}
    assert instructor == {"exchange": False, "turns": False, "passwd": True, "course": False, "progress": True}
    paths = {place: at for place, at, _ in room.mounts(tmp_path, "ada", os.getuid())}
    assert paths["passwd"] == "/etc/passwd" and paths["exchange"] == str(tmp_path / "exchange")



@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_what_is_shared_is_written_by_one_and_read_by_the_instructor_alone(tmp_path):
    room.lay_out(tmp_path)
    share = room.share_of(tmp_path, "ada", 20000, 20009)
    room.share_of(tmp_path, "ben", 20001, 20009)
    ada, ben, instructor = 20000, 20001, 20009

    def can(number: int, script: str) -> bool:
        user = {"user": number, "group": number, "extra_groups": ()}
        return not subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, **user).returncode

    assert can(ada, "umask 027 && echo seen > progress/ada/progress.json")
    assert share.stat().st_gid == (share / "progress.json").stat().st_gid == instructor
    assert can(instructor, "ls progress/* && cat progress/ada/progress.json")
    for number in (ben, instructor):
        assert not can(number, "echo forged > progress/ada/progress.json")
        assert not can(number, "rm -f progress/ada/progress.json || touch progress/ada/x")
    assert not can(ben, "cat progress/ada/progress.json") and not can(ben, "ls progress")


def test_cards_are_shared_evenly_and_a_full_room_says_so():
    cards = room.Cards(["0", "1"], most=2)
    taken = [cards.take(name) for name in ("a", "b", "c", "d")]
    assert sorted(taken) == ["0", "0", "1", "1"] and cards.take("a") in ("0", "1")
    with pytest.raises(HTTPError, match="The room is full"):
        cards.take("e")
    cards.give_back("b")
    assert cards.take("e") == taken[1]
    assert room.Cards([]).take("a") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_program_in_a_closed_folder_is_not_for_others(tmp_path):
    """A room would start, and nobody's server in it."""
    tmp_path.chmod(0o700)
    shutil.copy("/bin/true", tmp_path)
    assert others_can("/bin/true") and not others_can(tmp_path / "true")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_a_class_list_says_who_comes_in_and_is_the_courses_roster(tmp_path):
    room.lay_out(tmp_path)
    (tmp_path / "course").mkdir()
    users = tmp_path / "class.csv"
    users.write_text("Username,Last Name,First Name\nZMüller,Müller,Zoë\nob1,O'Brien,Sean\n")
    assert open_room.expect(tmp_path, users) == ["zmuller", "ob1"]
    lines = (tmp_path / "course/roster.csv").read_text().splitlines()
    assert lines == ["id,name,email,section", "zmuller,Zoë Müller,,", "ob1,Sean O'Brien,,"]
    users.write_text("id,name\nann,Ann Lee\nÄnn,Änn Lee\n")
    with pytest.raises(SystemExit, match="would sign in as 'ann'"):
        open_room.expect(tmp_path, users)


def test_codes_are_made_once_and_are_nobody_elses(tmp_path, monkeypatch):
    monkeypatch.delenv("ROOM_CODE", raising=False)
    room.lay_out(tmp_path)
    made = open_room.kept_codes(tmp_path)
    assert open_room.kept_codes(tmp_path) == made and len(made["ROOM_INSTRUCTOR_CODE"]) >= 16
    assert (tmp_path / "hub/codes.json").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("ROOM_CODE", "six kernels")
    assert open_room.kept_codes(tmp_path)["ROOM_CODE"] == "six kernels"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_python_that_others_cannot_run_is_said_before_the_room_opens(tmp_path):
    """Whoever had a Python in /root found out when the first attendee came in."""
    tmp_path.chmod(0o700)
    shutil.copy("/bin/true", tmp_path / "python")
    assert any("other users cannot run" in problem for problem in open_room.problems(str(tmp_path / "python")))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
def test_a_room_forgets_one_person_and_nobody_else(tmp_path):
    room.lay_out(tmp_path)
    numbers = {name: room.number_in_containers(tmp_path, name) for name in ("quentin77", "ann", room.INSTRUCTOR)}
    room.lay_out_exchange(tmp_path, numbers[room.INSTRUCTOR], numbers[room.INSTRUCTOR])
    hub = create_engine(f"sqlite:///{tmp_path / 'hub/hub.sqlite'}")
    orm.Base.metadata.create_all(hub)
    with Session(hub) as session:
        session.add_all([orm.User(name=name) for name in numbers])
        session.commit()
    made = new_course(tmp_path / "course")
    room.home_of(tmp_path, room.INSTRUCTOR, numbers[room.INSTRUCTOR])
    for name in ("quentin77", "ann"):
        assert room.known(tmp_path, name, "long enough")
        home = room.home_of(tmp_path, name, numbers[name])
        (home / ".progress.json").write_text("{}")
        share = room.share_of(tmp_path, name, numbers[name], numbers[room.INSTRUCTOR])
        (share / "progress.json").write_text("{}")
        there = tmp_path / "exchange" / room.COURSE / "inbound" / f"{name}+01_vector_add+now+AAAA"
        there.mkdir()
        (there / "submission_secret.txt").write_text(f"secret of {name}")
        (there / "01_vector_add.ipynb").write_text(json.dumps(filled(**RIGHT)))
        for path in (there, *there.iterdir()):
            os.chown(path, numbers[name], -1)
        page = notebook_hash(secret=f"secret of {name}", notebook_id="01_vector_add")
        (tmp_path / "exchange" / room.COURSE / "feedback" / f"{page}.html").write_text(name)
        submit(made, name, filled(**RIGHT))
    grade(made, new_judge=StrawJudge)

    (tmp_path / "hub/proxy.pid").write_text(str(os.getpid()))
    with pytest.raises(CourseError, match="the room is open"):
        forget(made, "quentin77", tmp_path)
    (tmp_path / "hub/proxy.pid").unlink()
    with pytest.raises(CourseError, match="nobody called daemon"):
        forget(made, "daemon", tmp_path)
    with pytest.raises(CourseError, match="to whom the course belongs"):
        forget(made, room.INSTRUCTOR, tmp_path)
    forget(made, "quentin77", tmp_path)

    def who_has(name):
        files = [path for path in tmp_path.rglob("*") if name in path.name or path.is_file() and name in said(path)]
        return sorted({str(path.relative_to(tmp_path)).replace(name, "*").partition("/")[0] for path in files})

    def said(path):
        return path.read_bytes().decode("latin-1")

    assert who_has("quentin77") == []
    assert who_has("ann") == ["course", "exchange", "home", "hub", "passwd", "progress"]
    assert room.number_in_containers(tmp_path, "new") == max(numbers.values()) + 1, "a number is one person's for ever"
    owners = {path.stat().st_uid for path in (tmp_path / "course").iterdir()}
    assert owners == {numbers[room.INSTRUCTOR]}
