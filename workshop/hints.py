"""Hints, one step at a time, and the solution for learners who passed or tried three times."""

import functools
import re
import tomllib
from collections.abc import Callable
from html import escape
from pathlib import Path

from workshop import syllabus
from workshop.notebook import in_notebook, page
from workshop.picture import count
from workshop.progress import progress, record_hint
from workshop.starters import split_answer

FOLDER = Path(__file__).parent / "hints"
SOLUTIONS = Path(__file__).parent.parent / "solutions"
GALLERY = SOLUTIONS.parent / "tests" / "right"  # in the repository, and in no image for attendees
RUNGS = ("Concept", "Documentation", "Pseudo-formula", "Code")
HONEST_TRIES = 3  # failed checks after which the solution opens


def ladder(name: str, folder: Path | None = None) -> list[tuple[str, str]]:
    """The hints of an exercise, (title, Markdown) each, from concept to code; empty when it has none.

    Raises ValueError for an unknown exercise.
    """
    syllabus.find(name)
    file = (folder or FOLDER) / f"{name}.md"
    if not file.exists():
        return []
    parts = re.split(r"^## +(.+)$", file.read_text(encoding="utf-8"), flags=re.M)
    return [(title.strip(), body.strip()) for title, body in zip(parts[1::2], parts[2::2], strict=True)]


def _known(function: Callable) -> Callable:
    """Answers a name that no exercise has with one line, which names similar ones, and not with an error.

    A function stands for its name.
    """

    @functools.wraps(function)
    def called(name: str):
        name = str(getattr(name, "__name__", name))
        try:
            syllabus.find(name)
        except ValueError as error:
            return _show(str(error))
        return function(name)

    return called


@_known
def hint(name: str):
    """Open the next hint of an exercise. What was opened is noted in the progress file and stays readable."""
    rungs = ladder(name)
    if not rungs:
        return _show(f"There is no hint for `{name}`.")
    opened = min(progress().entry(name).hints, len(rungs))
    if opened < len(rungs):
        record_hint(name)
        opened += 1
    if not in_notebook():
        title, body = rungs[opened - 1]
        return _show(f"**Hint {opened} of {len(rungs)}: {title}**\n\n{body}")
    from IPython.display import HTML, display

    shown = [(title, _html(body)) for title, body in rungs[:opened]]
    following = next((title for title, _ in rungs[opened:]), "")
    return display(HTML(page("hints.html", opened=shown, of=len(rungs), following=following)))


@_known
def solution(name: str):
    """Show the course's own solution, once the exercise is passed or was tried honestly."""
    entry = progress().entry(name)
    if not entry.passed and entry.failed < HONEST_TRIES:
        left = count(HONEST_TRIES - entry.failed, "more failed check")
        return _show(f"The solution opens when you pass `{name}`, or after {left}. Until then: `hint({name!r})`.")
    source = solution_source(name)
    if source is None:
        return _show("The solutions are not part of this copy of the course: ask your instructor.")
    more = [f"**{style}.** {why}\n\n```python\n{source}\n```" for style, why, source in others(name)]
    return _show("\n\n".join([f"```python\n{source}\n```", *(["Other right answers:"] if more else []), *more]))


def others(name: str) -> list[tuple[str, str, str]]:
    """Right answers in other styles, (style, why it is so, source) each; none before a pass, or in an image."""
    table = SOLUTIONS / "other_answers.toml"
    if not progress().entry(name).passed or not table.is_file():
        return []
    found = []
    for style, why in tomllib.loads(table.read_text(encoding="utf-8")).get(name, {}).items():
        file = GALLERY / name / f"{style}.py"
        if file.is_file():
            found.append((style.replace("_", " "), why, file.read_text(encoding="utf-8").strip()))
    return found


def solution_source(name: str) -> str | None:
    """The exercise's answer cell in solutions/*.py, without the build's markers; None if there is none."""
    cell = answer_cell(name)
    return cell and cell[0]


def answer_cell(name: str) -> tuple[str, str] | None:
    """(solution, starter) of an exercise, from solutions/*.py; None if there is none."""
    for script in sorted(SOLUTIONS.glob("*.py")):
        for cell in re.split(r"^# %%", script.read_text(encoding="utf-8"), flags=re.M):
            head, _, body = cell.partition("\n")
            if re.search(rf'\banswer="{re.escape(name)}"', head):
                solution, starter = split_answer(body)
                return solution.strip(), starter.strip()
    return None


def _html(markdown: str) -> str:
    """Markdown as HTML; nbconvert brings mistune wherever a notebook runs."""
    try:
        import mistune
    except ImportError:
        return f"<pre>{escape(markdown)}</pre>"
    return mistune.html(markdown)


def _show(markdown: str) -> None:
    if in_notebook():
        from IPython.display import Markdown, display

        display(Markdown(markdown))
    else:
        print(markdown)

