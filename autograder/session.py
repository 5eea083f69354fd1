"""What ran in this notebook: the text of each cell when it ran, and whether the saved file holds another text by now.

A kernel knows the text of a cell only at the moment when it runs. Front ends that send the cell's id with it
(JupyterLab, Notebook 7) make two more things known: which runs belong to one cell, and which cell of the saved file
that is. Elsewhere nothing is claimed.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

MOST_BYTES = 50 << 20  # of a notebook file that is read


@dataclass
class Run:
    """One cell that ran. `text` is what was typed, `code` is Python without magics, `at` is in seconds (epoch)."""

    code: str
    text: str = ""
    cell: str | None = None
    at: float = 0.0


@dataclass
class Session:
    """The cells that ran in an interactive shell, in their order."""

    shell: object
    seen: dict[int, Run] = field(default_factory=dict)  # by the place in the history

    def watch(self) -> None:
        """From now on, notes the id and the time of every cell that runs."""
        self.shell.events.register("pre_run_cell", self._note)

    def _note(self, info) -> None:
        if info.store_history and not info.silent:
            run = Run("", info.raw_cell, getattr(info, "cell_id", None), time.time())
            self.seen[len(self.shell.user_ns.get("In", []))] = run  # the cell is not in the history yet

    def runs(self) -> list[Run]:
        found = []
        for number, code in enumerate(self.shell.user_ns.get("In", [])):
            if isinstance(code, str):
                known = self.seen.get(number, Run(""))
                found.append(Run(code, known.text, known.cell, known.at))
        return found

    def answer_runs(self, exercise: str) -> tuple[list[str], Run | None]:
        """The code that counts for an exercise, and the latest run of its answer cell, if it is known.

        Of the answer cell only the latest run counts: a function that it does not define any more is not its answer,
        although the kernel still has it.
        """
        ids = {exercise} | ({saved["id"]} if (saved := self.saved_cell(exercise)) and "id" in saved else set())
        runs = self.runs()
        own = [run for run in runs if run.cell in ids]
        latest = own[-1] if own else None
        return [run.code for run in runs if run is latest or run not in own], latest

    def edited_since(self, exercise: str, latest: Run | None) -> bool:
        """Whether the saved notebook is newer than this run and holds another text in the answer cell."""
        file = notebook_file(self.shell)
        if latest is None or file is None or not latest.text:
            return False
        try:
            saved_at = file.stat().st_mtime
        except OSError:
            return False
        cell = self.saved_cell(exercise)
        return cell is not None and saved_at > latest.at and text_of(cell).strip() != latest.text.strip()

    def saved_cell(self, exercise: str) -> dict | None:
        """The answer cell as the notebook file holds it. None if there is no such file or cell."""
        with contextlib.suppress(AttributeError, TypeError):
            for cell in self._saved():
                if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == exercise:
                    return cell
        return None

    def first_code(self) -> str:
        """The first code cell of the notebook file, where a lesson's imports are; empty if there is none."""
        with contextlib.suppress(AttributeError, TypeError):
            return next((text_of(cell) for cell in self._saved() if cell.get("cell_type") == "code"), "")
        return ""

    def _saved(self) -> list:
        """The cells of the notebook file."""
        file = notebook_file(self.shell)
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if file and file.stat().st_size <= MOST_BYTES:
                return json.loads(file.read_text(encoding="utf-8")).get("cells", [])
        return []


def notebook_file(shell) -> Path | None:
    """The file of the notebook that this kernel belongs to, as Jupyter's server or VS Code names it."""
    name = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    file = Path(str(name))
    return file if file.suffix == ".ipynb" and file.is_file() else None


def text_of(cell: dict) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)
