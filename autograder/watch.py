"""`autograder watch answer.py`: checks a file each time it is saved, and goes from one exercise to the next.

The answer of the exercise that is looked at is taken out of the file as it is taken out of a notebook, so that one file
holds the answers of a whole course. It counts as progress, as a check in a notebook does.
"""

import contextlib
import os
import select
import sys
from pathlib import Path

from workshop import hint, progress, solution

from . import answer, notebook
from .box import BoxError
from .exercises import EXERCISES
from .exercises.spec import Exercise
from .judge.jax import JaxMissing
from .text import many, visible
from .verdict import Verdict

LOOK = 0.2  # seconds between two looks at the file
IMPORTS = {
    "jax": "import jax\nimport jax.numpy as jnp\nimport jax_triton as jt",
    "": "import torch\n\nfrom workshop import DEVICE",
}
COMMANDS = "hint, solution, question, next, quit"


class Watch:
    """The state of a watched file: which exercise is looked at, and what of it was judged last."""

    def __init__(self, path: Path, name: str = ""):
        """name: the exercise to begin with; without it, the first one that is not passed. UnknownExercise is raised."""
        self.path, self.judged, self.seen = path, "", None
        self.verdict: Verdict | None = None
        self.exercise: Exercise | None = EXERCISES[name] if name else self._following("")

    def start(self) -> None:
        """Says what is watched, and checks what is in the file already."""
        print(f"Watching {self.path}: it is checked each time you save it. Type one of {COMMANDS}, then Enter.")
        self.seen = self.stamp()
        new = not self.text().strip()
        self._announce(write=new)
        if self.exercise and not new:
            self.saved()

    def saved(self) -> None:
        """Checks the file as it is now. After a pass it goes on to the next exercise."""
        self.seen = self.stamp()  # a save while the judge is at work is another one
        if self.exercise is None or not self.text().strip():  # an editor empties a file for a moment before it writes
            return
        source = answer.from_history([self.text()], self.exercise.entry)
        if not source.strip():
            print(f"\n{self.path.name} does not define {self.exercise.entry}: write {self.exercise.signature}.")
            return
        if source == self.judged:
            print(f"\nSaved. The answer to {self.exercise.name} is as it was.")
            return
        print(f"\nChecking {self.exercise.name} …", flush=True)
        try:
            verdict = self.verdict = notebook.judged(self.exercise.name, source)
        except (BoxError, JaxMissing) as error:
            print(error)
            return
        self.judged = "" if verdict.diagnosis in notebook.PASSING else source
        print(verdict.to_text())
        if verdict.passed:
            print(f"  {self.exercise.lesson.shows}\n  {progress().headline()}")
            self._go_on()

    def command(self, word: str) -> bool:
        """Does what was typed; False for the end."""
        deeds = {"hint": lambda: hint(self.exercise.name), "solution": lambda: solution(self.exercise.name)}
        ask = notebook.question(self.verdict) if self.verdict else "Save the file first: nothing is judged yet."
        deeds |= {"next": self._go_on, "question": lambda: print(visible(ask))}
        if word in ("quit", "exit", "q"):
            return False
        if word and word not in deeds:
            print(f"{visible(word, 40)!r} is no command here; there are: {COMMANDS}.")
        elif word and self.exercise:
            deeds[word]()
        return True

    def _go_on(self) -> None:
        self.exercise, self.judged = self._following(self.exercise.name), ""
        self._announce(write=True)

    @staticmethod
    def _following(name: str) -> Exercise | None:
        """The exercise behind this one that is not passed; None when all are."""
        following = progress().next(name)
        return EXERCISES[following.name] if following else None

    def _announce(self, write: bool) -> None:
        """Says which exercise it is. write: put its starter at the end of the file, if it is not begun there."""
        if self.exercise is None:
            print("\nEvery exercise is passed. Type quit, or Ctrl-C.")
            return
        lesson = self.exercise.lesson
        print(f"\n▶ {lesson.name}, {many(lesson.points, 'point', 'points')}: {self.exercise.signature}")
        print(f"  notebooks/{lesson.notebook}.ipynb explains it.")
        text, signature = self.text(), self.exercise.signature.split(" ->")[0]
        if write and not answer.from_history([text], self.exercise.entry).strip():
            imports = "import triton\nimport triton.language as tl\n" + IMPORTS.get(self.exercise.kind, IMPORTS[""])
            head = "" if set(imports.splitlines()) <= {*text.splitlines(), ""} else imports
            starter = self.exercise.starter or f"def {signature}:\n    ...  # your code here"
            parts = filter(None, (text.rstrip(), head, f"# {self.exercise.name}\n{starter}"))
            self.path.write_text("\n\n\n".join(parts) + "\n", encoding="utf-8")
            self.seen = self.stamp()  # no save of the learner's
            print(f"  Its starter is now at the end of {self.path.name}.")

    def text(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self.path.read_text(encoding="utf-8-sig", errors="replace")
        return ""

    def stamp(self) -> tuple[int, int] | None:
        """Another one after each save; None while there is no file."""
        with contextlib.suppress(OSError):
            found = self.path.stat()
            return found.st_mtime_ns, found.st_size
        return None


def watch(path: Path, name: str = "") -> None:
    """Looks at the file until the learner types quit. Raises OSError where the file cannot be read or written."""
    notebook.warm_up()
    watched = Watch(path, name)
    watched.start()
    before = watched.stamp()
    typed, listening = b"", True
    while True:
        ready = select.select([sys.stdin] if listening else [], [], [], LOOK)[0]
        if ready:
            read = os.read(sys.stdin.fileno(), 4096)
            listening = bool(read)  # nobody types into a watch that runs in the background
            *lines, typed = (typed + read).split(b"\n")
            if not all(watched.command(line.decode(errors="replace").strip().lower()) for line in lines):
                return
        now = watched.stamp()
        if now == before and now != watched.seen:  # written to its end
            watched.saved()
        before = now
