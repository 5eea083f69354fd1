"""Who has passed everything gets a page to show, and projects to go on with."""

import pytest

from autograder import notebook
from autograder.verdict import Verdict
from workshop import progress, record
from workshop.cli import main
from workshop.progress import write_page
from workshop.syllabus import SYLLABUS


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / ".progress.json"))
    return tmp_path


def pass_all():
    for lesson in SYLLABUS.values():
        record(lesson.name, lesson.points, lesson.points)


def test_the_page_lists_what_is_passed_and_needs_nothing_else(kept):
    record("vector_add", 5, 5)
    page = write_page(kept / "mine.html").read_text()
    assert "1 of" in page and "vector_add" in page and "bug_hunt" not in page.partition("<table")[2]
    projects = ("Attention for a whole prompt", "Quantise while you normalise", "A kernel in a model that you use")
    assert all(title in page for title in projects)
    assert "src=" not in page and "href=" not in page and "<script" not in page


def test_the_command_writes_the_page(kept, capsys):
    assert main(["progress", "--page", str(kept / "mine.html")]) == 0
    assert (kept / "mine.html").read_text().startswith("<!doctype html>") and "mine.html" in capsys.readouterr().out
    assert main(["progress", "--page", "/proc/none/mine.html"]) == 2


def test_the_last_pass_leads_to_the_page(kept, monkeypatch):
    pass_all()
    monkeypatch.setattr(notebook, "interactive_shell", lambda: type("Shell", (), {"user_ns": {}}))
    html = notebook._after(Verdict("vector_add", True, 5, 5, "interpreter"))
    assert "href='what_i_built.html'" in html and (kept / "what_i_built.html").is_file()
    assert "workshop progress --page" in str(progress())
