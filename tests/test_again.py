"""A check knows the one before it, and a notebook whose kernel is new."""

import json
from types import SimpleNamespace

import pytest

from autograder import notebook, panel, session
from autograder.exercises import EXERCISES
from autograder.verdict import CaseResult, ErrorMap, Finding, Row, Run, Verdict


def failed(slug="wrong-value", blanks=None, score=0):
    return Verdict("vector_add", False, score, 5, "interpreter", Finding(slug, "…"), blanks=blanks or {})


@pytest.fixture
def judged(monkeypatch):
    """What the judge is asked, and the verdicts that it will give."""
    asked, verdicts = [], []
    monkeypatch.setattr(notebook, "_latest", {})
    monkeypatch.setattr(notebook, "_judged_anew", lambda name, source, say: asked.append(source) or verdicts.pop(0))
    return asked, verdicts


def test_the_same_code_is_answered_at_once_and_told_so(judged):
    asked, verdicts = judged
    verdicts[:] = [failed()]
    assert notebook.judged("vector_add", "a").warning == ""
    assert "code of the last check" in notebook.judged("vector_add", "a").warning and asked == ["a"]


@pytest.mark.parametrize("slug", ["timeout", "crash", "grader-error"])
def test_what_may_end_in_another_way_is_judged_again(judged, slug):
    asked, verdicts = judged
    verdicts[:] = [failed(slug), failed()]
    notebook.judged("vector_add", "a")
    notebook.judged("vector_add", "a")
    assert asked == ["a", "a"]


def test_what_got_better_is_said(judged):
    blanks = dict.fromkeys(("offsets", "mask", "x"), False)
    judged[1][:] = [failed(blanks=blanks | {"x": True}), failed(blanks=blanks | {"x": True, "mask": True})]
    notebook.judged("vector_add", "a")
    now = notebook.judged("vector_add", "b")
    assert now.better == "Better: 1 → 2 blanks; mask is right now."
    assert now.better in now.to_text() and now.better in now.to_html()
    assert notebook.better(now, failed(blanks=blanks)) == ""


def test_a_new_kernel_gets_the_saved_answer_and_a_greeting(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "progress.json"))
    from workshop import record

    record("vector_add", 2, 5)
    file = tmp_path / "01_vector_add.ipynb"
    answer = {"cell_type": "code", "source": "def add(x, y):\n    return x\nraise SystemExit(1)"}
    answer["metadata"] = {"nbgrader": {"grade_id": "vector_add"}}
    first = {"cell_type": "code", "source": "import math\n1 / 0", "metadata": {}}
    file.write_text(json.dumps({"cells": [first, answer]}))
    monkeypatch.setenv("JPY_SESSION_NAME", str(file))
    shell = SimpleNamespace(user_ns={"In": [""]})
    source, words = notebook._restored(shell, session.Session(shell), EXERCISES["vector_add"])
    assert source == answer["source"] and words.startswith("Welcome back: 2 of 11 points")
    assert shell.user_ns["add"](3, 4) == 3 and "math" in shell.user_ns


def test_a_drawing_that_says_nothing_is_left_out_and_backticks_are_code():
    def drawn(*runs):
        shown = ErrorMap("n = 64", 64, (Row("row 0", tuple(Run(*run) for run in runs)),), 16, "some words")
        finding = Finding("wrong-value", "use `tl.exp` <here>")
        case = CaseResult("n = 64", finding, shown)
        return Verdict("vector_add", False, 0, 5, "", finding, (case,)).to_html()

    assert "<svg viewBox='0 0 680" in drawn(("right", 32), ("wrong", 32))
    assert "<svg viewBox='0 0 680" not in drawn(("wrong", 64))
    assert "<svg viewBox='0 0 680" not in drawn(*[("right", 1), ("wrong", 1)] * 32)
    assert "use <code>tl.exp</code> &lt;here&gt;" in drawn(("wrong", 64)) and "some words" in drawn(("wrong", 64))


def test_a_wrong_answer_can_be_copied_as_a_question(judged):
    judged[1][:] = [failed()]
    verdict = notebook.judged("vector_add", "def add(x, y):\n    return x < y")
    question = notebook.question(verdict)
    assert "vector_add" in question and "return x < y" in question and "wrong-value" in question
    html = verdict.to_html(panel.part("ask", question=notebook.question(verdict)))
    assert "Copy as a question" in html and "return x &lt; y" in html
