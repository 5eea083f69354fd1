"""A page to show: what has been passed in the course, and projects to go on with. One HTML file that needs no other."""

from __future__ import annotations

from pathlib import Path

from workshop import pages
from workshop.progress import Progress, progress
from workshop.syllabus import SYLLABUS


def page(current: Progress | None = None) -> str:
    """The page as HTML. It lists what is passed, so it can be written at any time."""
    current = current or progress()
    passed = [lesson for lesson in SYLLABUS.values() if current.entry(lesson.name).passed]
    last = max((current.entry(lesson.name).last[:10] for lesson in passed), default="")
    headline = current.headline()
    return pages.page("finish.html", passed=passed, exercises=len(SYLLABUS), last=last, headline=headline)


def write(path: str | Path) -> Path:
    """Writes the page, and returns its whole path. Raises OSError."""
    file = Path(path).absolute()
    file.write_text(page(), encoding="utf-8")
    return file
