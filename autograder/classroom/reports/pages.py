"""The pages that students get: verdict, points and their own answer, one self-contained file per assignment.

Nothing is loaded from elsewhere and no script runs: a policy in each page forbids both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5d6570; --page: #f6f7f9; --card: #fff;
  --line: #dfe3e8; --good: #009e73; --some: #b8860b; --none: #d55e00; --code: #f3f5f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --soft: #9aa3ae; --page: #14171b;
  --card: #1d2126; --line: #333a42; --good: #2fc79b; --some: #e0b341; --none: #ff8b4a; --code: #15181c; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 2.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 54rem; margin: 0 auto; }
h1 { margin: 0; font-size: 1.7rem; line-height: 1.25; } h2 { margin: 0; font-size: 1.15rem; }
a { color: inherit; text-underline-offset: .2em; }
.who { margin: .3rem 0 0; color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.1rem 1.3rem;
  margin-top: 1.25rem; overflow-wrap: anywhere; }
.row { display: flex; align-items: baseline; justify-content: space-between; gap: 1rem; }
.row > :last-child { white-space: nowrap; font-variant-numeric: tabular-nums; }
.total { font-size: 1.15rem; font-weight: 600; }
.bar { height: 8px; border-radius: 4px; background: var(--line); margin: .5rem 0 .2rem; overflow: hidden; }
.bar i { display: block; height: 100%; border-radius: 4px; background: var(--some); }
.full i, .dot.full { background: var(--good); } .zero i, .dot.zero { background: var(--none); }
.dot { display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; background: var(--some);
  margin-right: .55rem; }
.columns { display: flex; align-items: flex-end; gap: 4px; margin-top: .9rem; border-bottom: 1px solid var(--line); }
.columns div { flex: 1; text-align: center; font-size: .85rem; }
.columns i { display: block; background: var(--good); border-radius: 3px 3px 0 0; }
.list { list-style: none; margin: .9rem 0 0; padding: 0; }
.list li { padding: .4rem 0; border-top: 1px solid var(--line); }
section.card div.verdict { margin: .7rem 0 0; max-width: none; }
.comment { margin: .8rem 0 0; padding: .5rem .8rem; border-left: 4px solid #0072b2; background: var(--code);
  white-space: pre-wrap; }
details { margin-top: .8rem; } summary { cursor: pointer; color: var(--soft); }
pre { margin: .6rem 0 0; padding: .8rem 1rem; background: var(--code); border-radius: 6px; overflow-x: auto;
  font: 13.5px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre.code { background: var(--code); }
@media print { body { padding: 0; } .card { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class ExerciseFeedback:
    """What a student hears about an exercise. `panel` is HTML of ours; all other texts are escaped here."""

    name: str
    score: float
    points: float
    panel: str
    answer: str
    comment: str = ""


def page(
    *,
    student: str,
    assignment: str,
    title: str,
    score: float,
    points: float,
    exercises: Sequence[ExerciseFeedback],
    notices: Sequence[str] = (),
) -> str:
    """The page of one submission: the total, notices, a line per exercise, then verdict and answer of each."""
    lines = "".join(
        _line(f'<a href="#{escape(e.name)}">{escape(e.name)}</a>', e.score, e.points) for e in exercises
    )
    who = f"{escape(assignment)} · {escape(student)}"
    head = f'<header><h1>{escape(title)}</h1><p class="who">{who}</p></header>'
    said = "".join(f'<p class="comment">{escape(notice)}</p>' for notice in notices)
    total = f'<section class="card">{_total(score, points)}{said}<ul class="list">{lines}</ul></section>'
    return document(f"{assignment} · {student}", head + total + "".join(map(_exercise, exercises)))


@dataclass(frozen=True)
class LessonScore:
    """A line of a student's overview. `counts` is as how many points it counts in the total."""

    assignment: str
    score: float
    points: float
    counts: float
    graded: bool = True

    @property
    def line(self) -> str:
        name = escape(self.assignment)
        said = f'<a href="{name}/{name}.html">{name}</a>' if self.graded else f"{name}: not graded"
        if self.counts != self.points:
            said += f" (counts as {self.counts:g})"
        return _line(said, self.score, self.points)


def overview(student: str, lessons: Sequence[LessonScore]) -> str:
    """A student's lessons, each linked to its page, and the total of those that count."""
    lines = "".join(lesson.line for lesson in lessons)
    earned = sum(lesson.score * lesson.counts / (lesson.points or 1.0) for lesson in lessons)
    total = _total(round(earned, 6), sum(lesson.counts for lesson in lessons))
    head = f'<header><h1>Feedback</h1><p class="who">{escape(student)}</p></header>'
    return document(
        f"Feedback · {student}", f'{head}<section class="card">{total}<ul class="list">{lines}</ul></section>'
    )


def _exercise(e: ExerciseFeedback) -> str:
    parts = [
        f'<div class="row"><h2>{escape(e.name)}</h2><span>{_points(e.score, e.points)}</span></div>',
        e.panel,
    ]
    if e.comment:
        parts.append(f'<p class="comment">{escape(e.comment)}</p>')
    if e.answer.strip():
        opened = "" if e.score >= e.points else " open"
        parts.append(f"<details{opened}><summary>Your answer</summary>{highlighted(e.answer)}</details>")
    return f'<section class="card" id="{escape(e.name)}">{"".join(parts)}</section>'


def _total(score: float, points: float) -> str:
    return f'<div class="row total"><span>Points</span><span>{_points(score, points)}</span></div>{bar(score, points)}'


def bar(score: float, points: float) -> str:
    """A bar that is as full as the share of the points."""
    share = 100 * score / points if points else 0
    return f'<div class="bar {_grade(score, points)}"><i style="width:{min(max(share, 0), 100):.0f}%"></i></div>'


def highlighted(source: str) -> str:
    """Python in colours. Any text gives harmless HTML."""
    return f'<pre class="code">{highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))}</pre>'


def histogram(labels: Sequence[str], counts: Sequence[int]) -> str:
    """Columns side by side, as high as their counts; each says its label and count when pointed at."""
    most = max(*counts, 1)
    columns = "".join(
        f'<div title="{escape(label)}: {count}">{count or ""}<i style="height:{80 * count / most:.0f}px"></i></div>'
        for label, count in zip(labels, counts)
    )
    return f'<div class="columns">{columns}</div><div class="row who"><span>0 %</span><span>100 %</span></div>'


def _line(link: str, score: float, points: float) -> str:
    dot = f'<i class="dot {_grade(score, points)}"></i>'
    return f'<li class="row"><span>{dot}{link}</span><span>{_points(score, points)}</span></li>'


def _points(score: float, points: float) -> str:
    return f"{score:g} of {points:g}"


def _grade(score: float, points: float) -> str:
    return "full" if score >= points else "some" if score > 0 else "zero"


def document(title: str, body: str) -> str:
    """A page of its own: light or dark as the reader's system is, printable. `body` is HTML, `title` is text."""
    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="monokai").get_style_defs(".code")
    style = f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n{_STYLE}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )
