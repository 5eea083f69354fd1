"""The course's solutions and starters as answers: one source each, as the judge gets it from a notebook."""

from __future__ import annotations

import ast
import functools

from workshop.hints import SOLUTIONS, answer_cell
from workshop.syllabus import SYLLABUS

from ..answer import from_history
from ..exercises import find


@functools.cache
def solution(exercise: str) -> str:
    return _answer(exercise, part=0)


@functools.cache
def starter(exercise: str) -> str:
    """The exercise's starter. The earlier answers of its notebook, which it may need, are solutions."""
    return _answer(exercise, part=1)


def _answer(exercise: str, part: int) -> str:
    about = find(exercise)
    earlier = [name for name, lesson in SYLLABUS.items() if lesson.notebook == about.notebook]
    cells = [answer_cell(name)[0] for name in earlier[: earlier.index(exercise)]]
    source = from_history([_imports(about.notebook), *cells, answer_cell(exercise)[part]], [about.entry])
    return ast.unparse(ast.parse(source))


def _imports(notebook: str) -> str:
    script = ast.parse((SOLUTIONS / f"{notebook}.py").read_text(encoding="utf-8"))
    return "\n".join(ast.unparse(node) for node in script.body if isinstance(node, (ast.Import, ast.ImportFrom)))
