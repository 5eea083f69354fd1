"""Makes a submitted notebook harmless.

`rebuild` decides what counts: the released notebook, with nothing of the student's in it but the text of the
answer cells; tags, metadata, outputs, attachments and further cells are gone. `clean_notebook` decides how that
text is shown: of bounded size, with every control character spelled out.

Everything here works on plain JSON values and expects any of them to be of the wrong type.
"""

import copy
import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..text import visible

MAX_NOTEBOOK_BYTES = 64 << 20  # full of pictures
MAX_VALUES = 2_000_000  # of JSON: 64 MB of empty lists would take 2 GB of memory
MAX_CELLS = 5_000
MAX_ANSWER_CHARACTERS = 60_000
REVIEW = "review"  # why a person must look at an answer, in the metadata of its check cell


@dataclass
class Submission:
    """What was handed in: `notebook` is rebuilt from the released one, `cells` are the student's, text only.

    `problem` says in plain words why nothing of the file could be used; the notebook is then the released one.
    `foreign` are its answers where they are another lesson's. `cells_of_answers` says how often the cell of an answer
    is there, where that is not once.
    """

    notebook: dict
    cells: list[dict] = field(default_factory=list)
    problem: str = ""
    foreign: list[str] = field(default_factory=list)
    cells_of_answers: dict[str, int] = field(default_factory=dict)


def read_submission(path: Path, released: dict) -> Submission:
    """The submission in the file `path`, rebuilt from `released`. A bad file is a problem, never an error."""
    try:
        if path.is_symlink() or not path.is_file():
            raise ValueError("there is no notebook in this submission")
        cells = cells_of(read_bounded(path))
    except (ValueError, OSError) as error:
        return Submission(copy.deepcopy(released), problem=str(error))
    return rebuild(released, cells)


def read_bounded(path: Path) -> bytes:
    """The content of a file of at most MAX_NOTEBOOK_BYTES; ValueError if it is larger, OSError as usual."""
    with path.open("rb") as file:
        return read_from(file)


def read_from(file: BinaryIO) -> bytes:
    content = file.read(MAX_NOTEBOOK_BYTES + 1)
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise ValueError(f"the file has more than {MAX_NOTEBOOK_BYTES >> 20} MB; clear its outputs and save it again")
    return content


def cells_of(content: bytes) -> list[dict]:
    """The cells of a notebook file of format 3 or 4; ValueError says why it is not a notebook."""
    if not content.strip():
        raise ValueError("the file is empty")
    if sum(map(content.count, (b"[", b"{", b",", b":"))) > MAX_VALUES:
        raise ValueError("the notebook holds too much; clear its outputs and save it again")
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError) as error:
        what = "a web page" if content.lstrip()[:1] == b"<" else "not JSON"
        expected = "it should be the .ipynb file that JupyterLab saves"
        raise ValueError(f"the file is not a notebook: it is {what} ({visible(error, 120)}); {expected}") from None
    if not isinstance(notebook, dict):
        raise ValueError("the file is not a notebook: its JSON is not an object")
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):  # format 3
        sheets = [s for s in notebook["worksheets"] if isinstance(s, dict)]
        cells = [c for s in sheets if isinstance(s.get("cells"), list) for c in s["cells"]]
    if not isinstance(cells, list):
        raise ValueError("the file is not a notebook: it has no list of cells")
    if len(cells) > MAX_CELLS:
        raise ValueError(f"the notebook has {len(cells)} cells; at most {MAX_CELLS} are read")
    return [_plain(cell) for cell in cells if isinstance(cell, dict)]


def notebook_of(source: bytes, released: dict) -> bytes:
    """The released notebook as a file, with the text of a Python file in a last cell.

    So an answer cell that was saved as .py has its lesson's imports, and what is not in it is an answer not begun.
    """
    text = source.decode("utf-8-sig", "replace")
    script = {"cell_type": "code", "metadata": {}, "outputs": [], "source": text}
    return json.dumps({**released, "cells": [*released["cells"], script]}).encode()


def _plain(cell: dict) -> dict:
    """A cell of a submission with nothing but its type, ids and text, each of the right type."""
    metadata = cell.get("metadata")
    mine = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    mine = mine if isinstance(mine, dict) else {}
    return {
        "id": _text(cell.get("id")),
        "cell_type": _text(cell.get("cell_type")),
        "source": _text(cell.get("source", cell.get("input"))),
        "metadata": {"nbgrader": {k: _text(mine.get(k)) for k in ("grade_id", "checksum") if k in mine}},
    }


def _text(value: object) -> str:
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    value = value if isinstance(value, str) else ""
    return value.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates: they cannot be written


def rebuild(released: dict, cells: list[dict]) -> Submission:
    """`released` with the text of its answer cells taken from `cells`; all else of the student's is dropped.

    A cell belongs to an answer by its nbgrader id, or by its cell id where an editor lost the metadata.
    """
    notebook, counts = copy.deepcopy(released), {}
    for cell in notebook["cells"]:
        cell["metadata"].pop("tags", None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    for name, cell in answers_in(notebook).items():
        mine = [c for c in cells if grade_id(c) == name] or [c for c in cells if c["id"] == name]
        texts = list(dict.fromkeys(c["source"] for c in mine))
        if len(texts) != 1:
            counts[name] = len(texts)
        if texts:
            cell["source"] = "\n\n".join(texts)
    here, there = ({name for c in some if (name := grade_id(c))} for some in (notebook["cells"], cells))
    foreign = sorted(name for name in there if exercise_of(name) == name) if not here & there else []
    return Submission(notebook, cells, foreign=foreign, cells_of_answers=counts)


def grade_id(cell: dict) -> str | None:
    """nbgrader's name of a cell, None if it has none."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def exercise_of(name: str) -> str:
    """The exercise that the check cell with this grade_id grades."""
    return name.removeprefix("check-")


class Check(NamedTuple):
    """A cell that holds the points of an exercise."""

    exercise: str
    points: float
    cell: dict


def checks_in(notebook: dict) -> list[Check]:
    """The check cells of a released notebook, or of one that was made of it."""
    marked = [(cell, cell["metadata"].get("nbgrader", {})) for cell in notebook["cells"]]
    return [Check(exercise_of(m["grade_id"]), float(m["points"]), cell) for cell, m in marked if m.get("grade")]


def answers_in(notebook: dict) -> dict[str, dict]:
    """exercise -> the cell of such a notebook that the student fills in."""
    marked = [(cell, cell["metadata"].get("nbgrader", {})) for cell in notebook["cells"]]
    return {m["grade_id"]: cell for cell, m in marked if m.get("solution")}


def clean_notebook(notebook: dict) -> dict:
    """A rebuilt `notebook`, in place, fit to be shown: only answer cells hold a student's words, and no markup."""
    for cell in answers_in(notebook).values():
        cell["source"] = visible(cell["source"], MAX_ANSWER_CHARACTERS)
        cell.pop("attachments", None)
        if cell["cell_type"] == "markdown":
            cell["source"] = html.escape(cell["source"], quote=False).replace("](", "] (")
    return notebook
