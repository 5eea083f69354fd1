"""The galleries of answers: right/<exercise>/<variant>.py must pass, wrong ones must fail under a name.

A wrong answer is a file, wrong/<exercise>/<slug>__<name>.py, or an `Edit` of a right answer: wrong/<exercise>.py lists
them in `EDITS`. An answer that needs a version of Triton gets the slug not-in-this-triton on other versions. A file
says so in its first line, `# needs triton<3.9`; an edit in its field `needs`.
"""

import ast
import re
import runpy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from packaging.specifiers import SpecifierSet

from workshop import hints

from .answer import from_history
from .exercises import EXERCISES
from .versions import stack

SOLUTION = "the solution"


class BadEdit(ValueError):
    """An edit does not apply to the answer that it changes. The message says why."""


@dataclass(frozen=True)
class Edit:
    """A wrong answer that is a right one with a few changes.

    slug: the diagnosis that the answer must get. name: what is wrong, in a few words joined by `_`.
    changes: old text -> new text. Each old text occurs exactly once in what is changed.
    thought: what the learner thought. of: the variant that is changed, a file of right/<exercise>/ or the solution.
    needs: the versions of Triton that can compile it, as "triton<3.9".
    """

    slug: str
    name: str
    changes: dict[str, str]
    thought: str = ""
    of: str = SOLUTION
    needs: str = ""

    def applied_to(self, text: str) -> str:
        """The wrong answer. Raises BadEdit if an old text does not occur exactly once in `text`."""
        for old, new in self.changes.items():
            if text.count(old) != 1:
                raise BadEdit(f"{old!r} occurs {text.count(old)} times in {self.of}, and not once")
            text = text.replace(old, new)
        return text


@dataclass(frozen=True)
class Known:
    """An answer of a gallery: where it is kept, its source, its slug (None if it is right), what Triton it needs."""

    path: Path
    name: str
    exercise: str
    source: str
    slug: str | None = None
    needs: str = ""

    @property
    def label(self) -> str:
        """How reports name it: a file, or a file and an edit in it."""
        return str(self.path) if self.path.stem == self.name else f"{self.path}: {self.name}"

    @cached_property
    def expected(self) -> str | None:
        """The diagnosis that it must get with the Triton that is installed; None where it must pass."""
        version = ".".join(stack()["triton"].split(".")[:2])
        fits = SpecifierSet(self.needs.removeprefix("triton")).contains(version)  # "triton<3.9", or "" for all versions
        return self.slug if fits else "not-in-this-triton"


def answers_in(folder: Path, exercises: Iterable[str] | None = None) -> list[Known]:
    """The answers of a gallery, of all or of `exercises`, right ones first. BadEdit names an edit that fails."""
    wanted, found = set(exercises or EXERCISES), []
    for path in (path for kind in ("right", "wrong") for path in sorted((folder / kind).glob("*/*.py"))):
        if path.parent.name in wanted:
            source = path.read_text(encoding="utf-8")
            slug = path.stem.split("__")[0] if path.parts[-3] == "wrong" else None
            needs = re.match(r"# needs (\S+)$", source, re.M)
            found.append(Known(path, path.stem, path.parent.name, source, slug, needs[1] if needs else ""))
    for path in (path for path in sorted((folder / "wrong").glob("*.py")) if path.stem in wanted):
        right = {known.name: known.source for known in found if known.exercise == path.stem}
        for edit in runpy.run_path(str(path))["EDITS"]:
            name = f"{edit.slug}__{edit.name}"
            try:
                source = edit.applied_to(solution(path.stem) if edit.of == SOLUTION else right[edit.of])
            except KeyError:
                raise BadEdit(f"{path}: {name}: there is no right answer {edit.of}") from None
            except BadEdit as error:
                raise BadEdit(f"{path}: {name}: {error}") from None
            found.append(Known(path, name, path.stem, source, edit.slug, edit.needs))
    return sorted(found, key=lambda known: (known.slug is not None, known.exercise, known.name))


@cache
def solution(exercise: str) -> str:
    """A solution, below the imports that it uses and what it takes of the one it rests on. BadEdit if there is none."""
    cell = hints.answer_cell(exercise)
    if cell is None:
        raise BadEdit(f"the solution of {exercise} is not part of this copy of the course")
    about, text = EXERCISES[exercise], cell[0]
    if before := hints.answer_cell(about.rests_on):
        text = from_history([before[0], text], about.entry)
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    script = ast.parse((hints.SOLUTIONS / f"{about.notebook}.py").read_text(encoding="utf-8"))
    imports = [node for node in script.body if isinstance(node, ast.Import | ast.ImportFrom)]
    needed = [node for node in imports if any((each.asname or each.name) in used for each in node.names)]
    return "\n".join([*map(ast.unparse, needed), "", "", text.strip(), ""])
