"""In a room, attendees choose whether the instructor sees their progress; what is shared has no code in it."""

import json
import os
from datetime import UTC, datetime

import pytest

from workshop import progress, record, share_progress, shared
from workshop.cli import main
from workshop.progress import record_hint
from workshop.shared import STUCK, attendees


@pytest.fixture
def share(tmp_path, monkeypatch):
    """Ada's folder in a room, as docker/hub/room.py makes it."""
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "home.json"))
    monkeypatch.setenv("ROOM", str(tmp_path))
    monkeypatch.setenv("WORKSHOP_SHARE", str(tmp_path / "progress" / "ada"))
    (tmp_path / "progress" / "ada").mkdir(parents=True)
    return tmp_path / "progress" / "ada"


def test_nothing_is_shared_until_it_is_chosen(share):
    record("first_kernel", 1, 1)
    assert not list(share.iterdir())
    assert "does not see" in str(share_progress()) and "share_progress('on')" in str(progress())
    assert not list(share.iterdir()), "asking is not choosing"


def test_what_is_shared_follows_and_is_gone_afterwards(share):
    record("vector_add", 0, 5)
    assert "The instructor sees" in str(share_progress("on"))
    record("vector_add", 5, 5)
    record("bug_hunt", 1, 3)
    record_hint("bytes_moved")
    seen = shared.read(share)
    assert [(name, one.passed, one.failed) for name, one in seen.items()] == [
        ("vector_add", True, 1),
        ("bug_hunt", False, 1),
        ("bytes_moved", False, 0),
    ]
    assert abs((datetime.now(UTC) - seen["bug_hunt"].last).total_seconds()) < 60
    assert "does not see" in str(share_progress("off"))
    record("bug_hunt", 3, 3)
    assert not list(share.iterdir()), "something stayed after sharing ended"


def test_what_is_shared_is_what_the_attendee_is_told(share):
    """WHAT names every field; another field needs another sentence."""
    record("vector_add", 2, 5)
    share_progress("on")
    told = json.loads((share / shared.FILE).read_text())
    assert set(told) == {"version", "exercises"}
    assert set(told["exercises"]["vector_add"]) == {"passed", "failed", "last"}
    for words in ("your name", "passed", "failed", "when", "Never your code"):
        assert words in shared.WHAT
    assert (share / shared.FILE).stat().st_mode & 0o777 == 0o640


def test_the_command(share, capsys):
    record("first_kernel", 1, 1)
    for arguments, state in ((["on"], True), ([], True), (["off"], False), (["off"], False)):
        assert main(["share-progress", *arguments]) == 0
        assert ("The instructor sees" in capsys.readouterr().out) == state == shared.is_on()


def test_outside_a_room_there_is_nobody_to_share_with(share, monkeypatch, capsys):
    monkeypatch.delenv("WORKSHOP_SHARE")
    assert main(["share-progress", "on"]) == 2 and "this is no room" in capsys.readouterr().err
    assert main(["share-progress", "off"]) == 0
    assert "instructor" not in str(progress()) and "instructor" not in progress()._repr_html_()


def test_a_lesson_goes_on_where_sharing_fails(share, monkeypatch):
    share_progress("on")

    def full(entries):
        raise OSError("no space left")

    monkeypatch.setattr(shared, "write", full)
    assert record("first_kernel", 1, 1).entry("first_kernel").passed


def test_a_time_that_is_none_hides_only_its_exercise(share, tmp_path):
    record("vector_add", 5, 5)
    stored = json.loads((tmp_path / "home.json").read_text())
    stored["exercises"]["bug_hunt"] = {"checks": 1, "last": "yesterday"}
    (tmp_path / "home.json").write_text(json.dumps(stored))
    share_progress("on")
    assert list(shared.read(share)) == ["vector_add"]


FINE = {"passed": True, "failed": 0, "last": "2026-01-01T00:00:00+00:00"}


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff", b'{"exercises": 3}', b"[" * 60_000, b'{"exercises": {"a": "' + b"x" * 100_000],
)
def test_a_file_of_another_kind_counts_as_not_shared(share, content):
    (share / shared.FILE).write_bytes(content)
    assert shared.read(share) is None


def test_only_what_the_course_knows_is_read(share):
    bad = {"bug_hunt": 3, "bytes_moved": FINE | {"last": "never"}, "occupancy": FINE | {"failed": "1e999"}}
    exercises = {"vector_add": FINE, "<script>": FINE, "naive_softmax": FINE | {"failed": 10**12}, **bad}
    (share / shared.FILE).write_text(json.dumps({"exercises": exercises}))
    assert {name: one.failed for name, one in shared.read(share).items()} == {"vector_add": 0, "naive_softmax": 9999}


def test_links_and_pipes_are_not_read(share, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"exercises": {"vector_add": FINE}}))
    (share / shared.FILE).symlink_to(secret)
    assert shared.read(share) is None
    (share / shared.FILE).unlink()
    os.mkfifo(share / shared.FILE)
    assert shared.read(share) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_that_is_not_its_owners_is_not_read(share):
    share_progress("on")
    os.chown(share / shared.FILE, 12345, -1)
    assert shared.read(share) is None


def test_who_needs_help_comes_first(share, tmp_path, monkeypatch, capsys):
    for name, checks in (("zoe", STUCK), ("ben", STUCK - 1)):
        monkeypatch.setenv("WORKSHOP_SHARE", str(share.with_name(name)))
        monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / f"{name}.json"))
        share.with_name(name).mkdir()
        share_progress("on")
        for _ in range(checks):
            record("bug_hunt", 0, 3)
    found = attendees()
    assert [(one["name"], one["stuck"]) for one in found["sharing"]] == [("zoe", ["bug_hunt"]), ("ben", [])]
    assert found["hidden"] == 1
    assert main(["attendees"]) == 0 and "STUCK: bug_hunt, 5 failed checks" in capsys.readouterr().out
    record("bug_hunt", 3, 3)  # ben
    assert main(["attendees", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sharing"][1]["exercises"]["bug_hunt"] == {"passed": True, "failed": STUCK - 1}


def test_no_room_has_no_attendees(tmp_path):
    assert attendees(tmp_path / "nowhere")["sharing"] == []
