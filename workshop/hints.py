"""Hints, one step at a time, and the solution for learners who passed or tried three times.

The grammar of answer cells in solutions/*.py: each holds the solution, and the starter that learners get.

    mask = offsets < n  # ② starter: offsets >= 0         beside an assignment, the value; for any other
                                                          statement, the whole statement
    ### BEGIN SOLUTION / ### STARTER / ### END SOLUTION   a block: the commented lines after STARTER
"""

import ast
import contextlib
import io
import re
import tokenize
import tomllib
from html import escape
from pathlib import Path

from workshop import syllabus
from workshop.notebook import in_notebook, page
from workshop.picture import count
from workshop.progress import progress, record_hint

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


def _known(name: str) -> str:
    """The name, for which a function may stand; "" for what no exercise has: a line then names similar ones."""
    try:
        return syllabus.find(str(getattr(name, "__name__", name))).name
    except ValueError as error:
        _show(str(error))
        return ""


def hint(name: str):
    """Open the next hint of an exercise. What was opened is noted in the progress file and stays readable."""
    if not (name := _known(name)):
        return None
    if not (rungs := ladder(name)):
        return _show(f"There is no hint for `{name}`.")
    before = progress().entry(name).hints
    if before < len(rungs):
        record_hint(name)
    opened = min(before + 1, len(rungs))
    if not in_notebook():
        title, body = rungs[opened - 1]
        return _show(f"**Hint {opened} of {len(rungs)}: {title}**\n\n{body}")
    from IPython.display import HTML, display

    try:
        from mistune import html  # nbconvert brings it
    except ImportError:
        html = lambda markdown: f"<pre>{escape(markdown)}</pre>"  # noqa: E731
    shown = [(title, html(body)) for title, body in rungs[:opened]]
    following = next((title for title, _ in rungs[opened:]), "")
    return display(HTML(page("hints.html", opened=shown, of=len(rungs), following=following)))


def solution(name: str):
    """Show the course's own solution, once the exercise is passed or was tried honestly."""
    if not (name := _known(name)):
        return None
    entry = progress().entry(name)
    if not entry.passed and entry.failed < HONEST_TRIES:
        left = count(HONEST_TRIES - entry.failed, "more failed check")
        return _show(f"The solution opens when you pass `{name}`, or after {left}. Until then: `hint({name!r})`.")
    if (source := solution_source(name)) is None:
        return _show("The solutions are not part of this copy of the course: ask your instructor.")
    more = [f"**{style}.** {why}\n\n```python\n{source}\n```" for style, why, source in others(name)]
    return _show("\n\n".join([f"```python\n{source}\n```", *(["Other right answers:"] if more else []), *more]))


def others(name: str) -> list[tuple[str, str, str]]:
    """Right answers in other styles, (style, why it is so, source) each; none before a pass, or in an image."""
    table = SOLUTIONS / "other_answers.toml"
    if not progress().entry(name).passed or not table.is_file():
        return []
    reasons = tomllib.loads(table.read_text(encoding="utf-8")).get(name, {})
    there = {style: file for style in reasons if (file := GALLERY / name / f"{style}.py").is_file()}
    return [(style.replace("_", " "), reasons[style], file.read_text("utf-8").strip()) for style, file in there.items()]


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


def _show(markdown: str) -> None:
    if in_notebook():
        from IPython.display import Markdown, display

        display(Markdown(markdown))
    else:
        print(markdown)


# -- answer cells --------------------------------------------------------------------------------------------


class MalformedAnswer(ValueError):
    """An answer cell does not follow the grammar; the message says where and how."""


BLOCK = ("BEGIN SOLUTION", "STARTER", "END SOLUTION")
_STARTER_COMMENT = re.compile(r"#\s*(.*?)\s*starter:\s*(.+)")  # its mark and the starter
_DIRECTIVE = re.compile(rf"^[^\S\n]*### ({'|'.join(BLOCK)})[^\S\n]*(?:\n|\Z)", re.M)


def split_answer(source: str) -> tuple[str, str]:
    """(solution, starter) of an answer cell's source, both without markers.

    Raises MalformedAnswer when a block is malformed, no starter is written, or the starter is not Python.
    """
    given = source.splitlines()
    released = list(given)
    try:
        comments = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type == tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError) as error:
        raise MalformedAnswer(f"the answer is not Python: {error}") from None
    for comment in comments:
        if match := _STARTER_COMMENT.fullmatch(comment.string):
            number, column = comment.start
            code = given[number - 1][:column].rstrip()
            given[number - 1], released[number - 1] = _starter_line(code, *match.groups(), number)
    texts = _with_parts("\n".join(given), "BEGIN SOLUTION"), _with_parts("\n".join(released), "STARTER")
    if texts[0] == texts[1]:
        raise MalformedAnswer("no starter: write `# starter: …` beside a line, or a ### STARTER part in a block")
    for name, text in zip(("solution", "starter"), texts, strict=True):
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = (error.text or "").strip()
            raise MalformedAnswer(f"the {name} is not Python: {error.msg}: {line!r}") from None
    return texts


def _with_parts(text: str, part: str) -> str:
    """The text without directives, and of each block one part: what follows BEGIN SOLUTION, or STARTER."""
    kept, *rest = _DIRECTIVE.split(text)
    for number, (directive, following) in enumerate(zip(rest[::2], rest[1::2])):
        if directive != BLOCK[number % 3]:
            raise MalformedAnswer(f"### {directive} out of order; a block is BEGIN, STARTER, END")
        if directive in (part, "END SOLUTION"):
            kept += _uncommented(following) if directive == "STARTER" else following
    if len(rest) % 6:
        raise MalformedAnswer("### BEGIN SOLUTION without ### END SOLUTION")
    return kept if text.endswith("\n") else kept.removesuffix("\n")


def _starter_line(code: str, mark: str, text: str, number: int) -> tuple[str, str]:
    """A line as the solution has it, and as it is released. mark: such as ①, or empty. text: of the starter."""
    indent = code[: len(code) - len(code.lstrip())]
    try:
        [statement] = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        raise MalformedAnswer(f"line {number}: `starter:` stands beside one whole statement on one line") from None
    released = text
    if isinstance(statement, ast.Assign | ast.AugAssign):
        with contextlib.suppress(SyntaxError):
            ast.parse(text, mode="eval")
            released = f"{code.strip().partition('=')[0]}= {text}"
    given = f"{code}  # {mark}" if mark else code
    return given, f"{indent}{released}  # {f'{mark} ' if mark else ''}your code here"


def _uncommented(text: str) -> str:
    for line in text.splitlines():
        if not re.fullmatch(r"\s*(#( .*)?)?", line):
            raise MalformedAnswer(f"after ### STARTER every line begins with '# ': {line!r}")
    return re.sub(r"^(?:(\s*)# |\s*#?$)", r"\1", text, flags=re.M)
