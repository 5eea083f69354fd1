"""What ran in this notebook: the text of each cell when it ran, and whether the saved file holds another text by now.

A kernel knows the text of a cell only at the moment when it runs. Front ends that send the cell's id with it
(JupyterLab, Notebook 7) make two more things known: which runs belong to one cell, and which cell of the saved file
that is. Elsewhere nothing is claimed.
"""

import contextlib
import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

MOST_BYTES = 50 << 20  # of a notebook file that is read


@dataclass
class Run:
    """One cell that ran. `text` is what was typed, `code` is Python without magics, `at` is in seconds (epoch)."""

    code: str
    text: str = ""
    cell: str | None = None
    at: float = 0.0


class Saved(NamedTuple):
    """A cell of the notebook file. `answer` is the exercise whose answer it is, if it is one."""

    text: str
    id: str | None
    is_code: bool
    answer: str | None


@dataclass
class Session:
    """The cells that ran in an interactive shell, in their order."""

    shell: object
    seen: dict[int, Run] = field(default_factory=dict)  # by the place in the history

    def note(self, info) -> None:
        """Notes the id and the time of a cell that is about to run."""
        if info.store_history and not info.silent:
            run = Run("", info.raw_cell, getattr(info, "cell_id", None), time.time())
            self.seen[len(self.shell.user_ns.get("In", []))] = run  # the cell is not in the history yet

    def runs(self) -> list[Run]:
        history = enumerate(self.shell.user_ns.get("In", []))
        return [replace(self.seen.get(at, Run("")), code=code) for at, code in history if isinstance(code, str)]

    def answer_runs(self, exercise: str) -> tuple[list[str], Run | None]:
        """The code that counts for an exercise, and the latest run of its answer cell, if it is known.

        Of the answer cell only the latest run counts: a function that it does not define any more is not its answer,
        although the kernel still has it.
        """
        saved, runs = self.saved_answer(exercise), self.runs()
        own = [run for run in runs if run.cell is not None and run.cell in (exercise, saved and saved.id)]
        latest = own[-1] if own else None
        return [run.code for run in runs if run is latest or run not in own], latest

    def edited_since(self, exercise: str, latest: Run | None) -> bool:
        """Whether the saved notebook is newer than this run and holds another text in the answer cell."""
        file, saved = notebook_file(self.shell), self.saved_answer(exercise)
        with contextlib.suppress(OSError):
            if latest and latest.text and file and saved:
                return file.stat().st_mtime > latest.at and saved.text.strip() != latest.text.strip()
        return False

    def saved_answer(self, exercise: str) -> Saved | None:
        """The answer cell as the notebook file holds it. None if there is no such file or cell."""
        return next((cell for cell in self.saved() if cell.answer == exercise), None)

    def saved(self) -> list[Saved]:
        """The cells of the notebook file, up to the first one that is none."""
        file, cells = notebook_file(self.shell), []
        with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
            if file and file.stat().st_size <= MOST_BYTES:
                for cell in json.loads(file.read_text(encoding="utf-8")).get("cells", []):
                    answer = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
                    text = "".join(cell.get("source", ""))
                    cells.append(Saved(text, cell.get("id"), cell.get("cell_type") == "code", answer))
        return cells


def notebook_file(shell) -> Path | None:
    """The file of the notebook that this kernel belongs to, as Jupyter's server or VS Code names it."""
    name = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    file = Path(str(name))
    return file if file.suffix == ".ipynb" and file.is_file() else None
