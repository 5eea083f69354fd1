"""In a real browser: a learner opens the course, fills the cells, runs them and sees the verdicts."""

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from autograder.lessons import answers

ROOT = Path(__file__).resolve().parents[2]


def notebook_of(*sources):
    cells = [
        {"cell_type": "code", "id": f"cell-{number}", "metadata": {}, "source": source, "outputs": []}
        | {"execution_count": None}
        for number, source in enumerate(sources)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


def test_the_server_asks_for_its_token(server):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/api/contents")
    assert refused.value.code == 403


def test_typed_cells_run_and_show_their_output_or_their_error(open_notebook, server):
    # Whether a cell behind an error runs is a race in JupyterLab: its request may arrive after the error was answered.
    (server.folder / "plain.ipynb").write_text(notebook_of("1 + 1", "print('starter')", "1 / 0"))
    notebook = open_notebook("plain.ipynb")
    lines = ["def twice(x):", "    if x:", "        return (2 * x)", "    return 'none'", "print(twice(21))"]
    notebook.fill(1, "\n".join(lines))
    notebook.run_all()
    assert notebook.output(0) == "2"
    assert notebook.output(1).strip() == "42"
    assert "ZeroDivisionError" in notebook.errors()[0]
    assert "".join(notebook.save()["cells"][1]["source"]) == "\n".join(lines)
    # nbgrader's Validate would call an answer right when the visible cells ran. workshop/install.py hides it.
    assert "File" in (menus := notebook.page.locator(".lm-MenuBar-itemLabel").all_inner_texts())
    assert "Nbgrader" not in menus
    assert notebook.page.get_by_role("button", name="Validate").count() == 0


def test_a_filled_lesson_shows_that_it_passed(open_notebook, screenshots):
    """test_film.py fills an answer of lesson 1."""
    lesson = "00_setup"
    notebook = open_notebook(f"notebooks/{lesson}.ipynb")
    solutions = answers(ROOT / "solutions" / f"{lesson}.py")
    for exercise, source in solutions.items():
        notebook.fill(exercise, source)
    notebook.run_all()
    assert not notebook.errors()
    for exercise in solutions:
        panel = notebook.cell(f"check-{exercise}").locator(".verdict")
        panel.scroll_into_view_if_needed()
        notebook.page.screenshot(path=screenshots / f"{lesson}-{exercise}.png")
        assert "Passed" in panel.inner_text()
