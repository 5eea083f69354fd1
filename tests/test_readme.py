"""README is true where that can be checked: versions, commands, links, minutes."""

import re
import shlex
from pathlib import Path

import jupytext
import pytest

from autograder.cli import _parser
from workshop.doctor import OLDEST_PYTHON, TRITONS
from workshop.syllabus import SYLLABUS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
SETUP = (ROOT / "solutions" / "00_setup.py").read_text()
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("[0-9]*.py"))
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)


def short(version) -> str:
    return ".".join((version.split(".") if isinstance(version, str) else list(map(str, version)))[:2])


def test_the_versions_are_those_of_the_course():
    assert f"installs torch {short(PINS['torch'])} and Triton {short(PINS['triton'])}" in README
    assert f"Python {short(OLDEST_PYTHON)} or newer" in README
    assert f"Triton {short(TRITONS[0])} to {short(TRITONS[1])}" in README
    assert f"{ {10: 'Ten', 11: 'Eleven', 12: 'Twelve'}[len(LESSONS)]} notebooks" in README


def test_every_link_leads_to_a_file():
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_every_command_exists():
    targets = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.M)
    code = re.findall(r"`([^`\n]+)`", README) + re.findall(r"^(?:make|autograder) .*", README, re.M)
    for words in (shlex.split(text, comments=True) for text in code if text.startswith(("make ", "autograder "))):
        if words[0] == "make":
            assert words[1] in targets, words
        else:
            known = next(action for action in _parser()._actions if action.choices).choices
            assert words[1] in known, words


def minutes(lesson: str) -> float:
    """As README says that they are computed."""
    cells = jupytext.read(ROOT / "solutions" / f"{lesson}.py").cells
    words = sum(len(re.findall(r"[A-Za-z]+", cell.source)) for cell in cells if cell.cell_type == "markdown")
    lines = sum(len(cell.source.splitlines()) for cell in cells if cell.cell_type == "code")
    points = sum(each.points for each in SYLLABUS.values() if each.notebook == lesson and not each.stretch)
    return words / 120 + lines / 15 + 4 * points


def told() -> dict[str, int]:
    """The minutes of the lessons in the table of 00_setup."""
    rows = re.findall(r"^# \| (?:\*\*0|\[(\w+)).*? \| (\d+) \|", SETUP, re.M)
    return {number or "0": int(minutes) for number, minutes in rows}


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_minutes_of_a_lesson_are_honest(lesson):
    number = lesson.split("_")[0].lstrip("0") or "0"
    assert told()[number] == pytest.approx(minutes(lesson), rel=0.25)


def test_the_routes_add_up():
    routes = dict(re.findall(r"^\| (three hours|six hours|alone).*?\| .* \| (\d+) \|", README, re.M))
    wished = {"three hours": "0 1 2", "six hours": "0 1 2 3 4", "alone": " ".join(told())}
    for route, lessons in wished.items():
        assert int(routes[route]) == sum(told()[number] for number in lessons.split()), route
    assert int(routes["three hours"]) < 180 and int(routes["six hours"]) < 360
