"""What the course writes needs no internet to be looked at: notebooks, figures, feedback, the page about a class."""

import re
from pathlib import Path

import pytest
from classroom import RIGHT, StrawJudge, filled, new_course, submit

from autograder.classroom.grading.grade import grade
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.reports.report import report

ROOT = Path(__file__).resolve().parents[1]
# What a browser loads by itself. A link that somebody may click is no request.
LOADED = re.compile(
    r"""(?:\bsrc|\bsrcset|\bdata)\s*=\s*["'](?:https?:)?//|<link\b[^>]*href\s*=\s*["'](?:https?:)?//"""
    r"""|@import\s|url\(\s*["']?(?:https?:)?//|!\[[^\]]*\]\(\s*https?://|xlink:href\s*=\s*["']https?://""",
    re.IGNORECASE,
)
FILES = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "assets").glob("*.svg"), *(ROOT / "benchmarks").rglob("*.svg")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_loads_nothing_from_elsewhere(file):
    assert not LOADED.search(file.read_text())


def test_pages_for_students_and_for_the_instructor_load_nothing_from_elsewhere(tmp_path):
    course = new_course(tmp_path / "course")
    submit(course, "ada", filled(**RIGHT))
    grade(course, new_judge=StrawJudge)
    pages = [*feedback(course).files.values(), course.root / "feedback/ada/index.html"]
    report(course)
    pages += sorted(course.root.glob("*.html"))
    assert len(pages) >= 3
    for page in pages:
        assert not LOADED.search(page.read_text()), page.name


@pytest.mark.parametrize("text", ['<img src="https://a.b/c.svg">', "![x](https://a.b/c.png)", "<script src='//cdn/x'>"])
def test_the_search_finds_what_would_be_loaded(text):
    assert LOADED.search(text)
