"""`workshop doctor --room N`: what holds the room, and why."""

import json

import pytest

from workshop.cli import main
from workshop.doctor import GIB, MEASURED, Host, Needs, holds, room

NEEDS = Needs(idle=GIB // 2, checking=GIB, check_seconds=0.5, about="a machine")


def test_more_memory_holds_more_and_each_resource_counts_for_itself():
    small, large = Host(8 * GIB, 4), Host(16 * GIB, 4)
    assert holds(small, NEEDS)["memory"] < holds(large, NEEDS)["memory"]
    assert holds(small, NEEDS)["cores"] == holds(large, NEEDS)["cores"] == 120
    assert "card" not in holds(small, NEEDS)
    assert holds(Host(8 * GIB, 4, (80 * GIB, 80 * GIB)), NEEDS)["card"] == 80


def test_memory_is_counted_with_the_hub():
    """7 GiB after the hub's; 0.55 for each with a tenth of them checking."""
    assert holds(Host(8 * GIB, 4), NEEDS)["memory"] == 12
    assert holds(Host(GIB // 2, 4), NEEDS)["memory"] == 0


def test_a_room_that_is_too_large_says_what_is_missing():
    findings = room(13, Host(8 * GIB, 4), NEEDS)
    assert [finding.state for finding in findings] == ["bad", "ok", "warn"]
    assert "enough for 12" in str(findings) and "this host holds 12" in str(findings)
    assert room(12, Host(8 * GIB, 4), NEEDS).usable


def test_the_command(capsys):
    assert main(["doctor", "--room", "1"]) in (0, 1)
    assert "a room of 1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["doctor", "--room", "none"])
    assert "is no number of attendees" in capsys.readouterr().err


def test_what_was_measured_is_there():
    needs = Needs.measured()
    assert GIB / 10 < needs.idle <= needs.checking < 4 * GIB and 0 < needs.check_seconds < 60
    at_once = json.loads(MEASURED.with_name("room_at_once.json").read_text())
    assert at_once["passed"] == at_once["attendees"] == 20, "somebody's check failed"
