"""The pages that students get: verdict, points and their own answer, one self-contained file per assignment.

Nothing is loaded from elsewhere and no script runs: a policy in each page forbids both (templates/base.html).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ..templates import template


@dataclass(frozen=True)
class ExerciseFeedback:
    """What a student hears about an exercise. `panel` is HTML of ours; all other texts are escaped in the template."""

    name: str
    score: float
    points: float
    panel: str
    answer: str
    comment: str = ""


def submission_page(
    *,
    student: str,
    assignment: str,
    title: str,
    score: float,
    points: float,
    exercises: Sequence[ExerciseFeedback],
    notices: Sequence[str] = (),
) -> str:
    """The page of one submission."""
    about = {"student": student, "assignment": assignment, "heading": title, "score": score, "points": points}
    return document("page.html", f"{assignment} · {student}", **about, exercises=exercises, notices=notices)


@dataclass(frozen=True)
class LessonScore:
    """A line of a student's overview. `counts` is as how many points it counts in the total."""

    assignment: str
    score: float
    points: float
    counts: float
    graded: bool = True


def overview(student: str, lessons: Sequence[LessonScore]) -> str:
    """A student's lessons, and the total of those that count."""
    earned = round(sum(lesson.score * lesson.counts / (lesson.points or 1.0) for lesson in lessons), 6)
    points = sum(lesson.counts for lesson in lessons)
    about = {"student": student, "lessons": lessons, "score": earned, "points": points}
    return document("overview.html", f"Feedback · {student}", **about)


def document(name: str, title: str, **about: object) -> str:
    """A page from a template that extends base.html."""
    return template(name).render(title=title, colours=_colours(), highlighted=highlighted, **about)


@functools.cache
def _colours() -> str:
    """The styles of highlighted code."""
    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="monokai").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


def highlighted(source: str) -> Markup:
    """Python in colours. Any text gives harmless HTML."""
    coloured = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(f'<pre class="code">{coloured}</pre>')
