"""What of a submitted notebook counts, and how its text is shown."""

import json
from pathlib import Path

import pytest
from classroom import RIGHT, cell_of, filled, released

from autograder.answer import from_notebook
from autograder.classroom.submission import (
    MAX_CELLS,
    MAX_NOTEBOOK_BYTES,
    cells_of,
    clean_notebook,
    notebook_of,
    read_submission,
    rebuild,
    visible,
)
from autograder.cli import CALL_WRONG, main
from autograder.exercises import EXERCISES

ROOT = Path(__file__).resolve().parents[1]
LESSON = "01_vector_add"


def rebuilt(notebook: dict):
    return rebuild(released(LESSON), cells_of(json.dumps(notebook).encode()))


def source(notebook: dict, name: str) -> str:
    return cell_of(notebook, name)["source"]


def test_the_answers_survive_and_nothing_else_does():
    handed_in = filled(LESSON, **RIGHT)
    handed_in["metadata"]["kernelspec"] = {"name": "evil", "display_name": "evil"}
    check = cell_of(handed_in, "check-vector_add")
    check["source"] = "print('100/100')"
    check["metadata"]["tags"] = ["skip-execution"]
    check["metadata"]["nbgrader"].update(points=1000, grade=False)
    check["outputs"] = [{"output_type": "display_data", "data": {"text/html": "<script>alert(1)</script>"}}]
    for kind, text in (("markdown", "<script>alert(2)</script>"), ("code", "import os")):
        handed_in["cells"].append({"cell_type": kind, "metadata": {}, "source": text})

    submission = rebuilt(handed_in)

    assert submission.notebook == filled(LESSON, **RIGHT)
    assert submission.problem == ""


def test_a_cell_is_found_by_its_id_where_the_metadata_was_lost():
    handed_in = filled(LESSON, vector_add="right")
    for cell in handed_in["cells"]:
        cell["metadata"] = {}
    assert "'right'" in source(rebuilt(handed_in).notebook, "vector_add")


def test_a_missing_and_a_doubled_answer_are_said():
    handed_in = filled(LESSON, **RIGHT)
    handed_in["cells"].remove(cell_of(handed_in, "bug_hunt"))
    copy = dict(cell_of(handed_in, "vector_add"), source="# a second thought")
    handed_in["cells"].append(copy)
    submission = rebuilt(handed_in)
    assert submission.cells_of_answers == {"vector_add": 2, "bug_hunt": 0}
    shown = source(submission.notebook, "vector_add")
    assert shown.index("'right'") < shown.index("second thought")


def test_an_answer_cell_that_was_saved_as_a_script_has_the_imports_of_its_lesson():
    """It was judged without them, and failed at the first name."""
    lesson = json.loads((ROOT / "notebooks" / "01_vector_add.ipynb").read_bytes())
    for cell in lesson["cells"]:
        cell["source"] = "".join(cell["source"])
    script = "def add(x, y):\n    return torch.empty_like(x)\n"
    source = from_notebook({"cells": cells_of(notebook_of(script.encode(), lesson))}, EXERCISES["vector_add"])
    assert "import torch" in source and script.strip() in source


def test_a_notebook_of_format_3_is_read():
    cells = [{"cell_type": "code", "input": ["def add():\n", "    pass"], "metadata": {}}]
    old = {"nbformat": 3, "worksheets": [{"cells": cells}]}
    assert [c["source"] for c in cells_of(json.dumps(old).encode())] == ["def add():\n    pass"]


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"not a notebook", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 10_000, "not JSON"),
        (b"[1, 2]", "not an object"),
        (b"{}", "no list of cells"),
        (b'{"cells": {"0": 1}}', "no list of cells"),
        (b'{"worksheets": 3}', "no list of cells"),
        (json.dumps({"cells": [{}] * (MAX_CELLS + 1)}).encode(), f"{MAX_CELLS + 1} cells"),
        (b'{"cells": [' + b"[]," * (20 << 20) + b"[]]}", "too much"),
    ],
)
def test_what_is_no_notebook_is_said(content, reason):
    with pytest.raises(ValueError, match=reason):
        cells_of(content)


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, [None], {"nbgrader": []}, {"nbgrader": {"grade_id": [1]}}]
)
def test_values_of_the_wrong_type_do_no_harm(junk):
    for field in ("metadata", "source", "cell_type", "id", "outputs"):
        handed_in = filled(LESSON, **RIGHT)
        cell_of(handed_in, "bug_hunt")[field] = junk
        handed_in["cells"].append(junk)
        submission = rebuilt(handed_in)
        assert "'right'" in source(submission.notebook, "vector_add")
        json.dumps(submission.notebook).encode()


def test_lone_surrogates_can_be_written_again():
    handed_in = json.dumps(filled(LESSON, vector_add="right")).replace("'right'", "'\\ud800'")
    submission = rebuild(released(LESSON), cells_of(handed_in.encode()))
    source(submission.notebook, "vector_add").encode()


def test_unreadable_files_give_the_released_notebook_and_a_reason(tmp_path):
    there, absent, link = tmp_path / "a.ipynb", tmp_path / "b.ipynb", tmp_path / "c.ipynb"
    there.write_bytes(b" " * (MAX_NOTEBOOK_BYTES + 1))
    link.symlink_to("/etc/passwd")
    for path, reason in ((there, "MB"), (absent, "no notebook"), (link, "no notebook")):
        submission = read_submission(path, released(LESSON))
        assert reason in submission.problem
        assert submission.notebook == released(LESSON)


def test_invisible_characters_are_spelled_out():
    assert visible("\x1b[31mred\x1b[0m \x1b]0;title\x07x") == "red x"
    assert visible("a\u202eb\x00\u200b") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+200B⟩"
    assert visible("\u3164\u115f") == "⟨U+3164⟩⟨U+115F⟩"
    assert visible("tab\tline\r\nend 1️⃣ é") == "tab\tline\nend 1️⃣ é"
    assert visible("a \t\n\u2003\n b") == "a\n\n b"
    assert visible("a" + "\u0301" * 500) == "a" + "\u0301" * 3
    assert len(visible("x" * 10**6, 100)) < 120


def test_answers_that_are_shown_are_text():
    notebook = released(LESSON)
    answer = cell_of(notebook, "vector_add")
    answer.update(
        cell_type="markdown",
        source="<img src=x onerror=alert(1)> [a](javascript:alert(2))\u202e",
        attachments={"a.png": {"image/svg+xml": "<svg/>"}},
    )
    shown = cell_of(clean_notebook(notebook), "vector_add")
    assert "<" not in shown["source"] and "](" not in shown["source"] and "\u202e" not in shown["source"]
    assert "attachments" not in shown


BAD_NOTEBOOKS = {
    "millions of lists": (b'{"cells": [' + b"[]," * (1 << 20) + b"[]]}", "too much"),
    "a web page": (b"<html></html>", "web page"),
    "too large": (b" " * (MAX_NOTEBOOK_BYTES + 1), "more than 64 MB"),
    "deep": (b"[" * 100_000, "not JSON"),
    "no list": (b'{"cells": 7}', "no list of cells"),
}


@pytest.mark.parametrize("content", BAD_NOTEBOOKS)
def test_the_command_check_reads_a_notebook_with_the_same_limits(content, tmp_path, capsys):
    content, reason = BAD_NOTEBOOKS[content]
    path = tmp_path / "answer.ipynb"
    path.write_bytes(content)
    assert main(["check", "vector_add", str(path)]) == CALL_WRONG
    error = capsys.readouterr().err
    assert reason in error and error.count("\n") == 1
