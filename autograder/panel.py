"""A verdict as a panel in the notebook, from panel.html. All text in it is escaped; it needs no script."""

from __future__ import annotations

import functools
import re
from html import escape
from pathlib import Path

from markupsafe import Markup

from .text import many, templates_in

BACKENDS = {"interpreter": "interpreter, without a GPU", "cuda": "NVIDIA GPU", "hip": "AMD GPU"}

def html(verdict, after: str = "") -> str:
    """The panel of a Verdict. `after` is HTML of the caller's."""
    return str(_panels().verdict(verdict, Markup(after)))


def running(exercise: str, words: str) -> str:
    """The panel while a check runs."""
    return str(_panels().running(exercise, words))


@functools.cache
def _panels():
    """The macros of panel.html.

    JupyterLab and nbgrader also style p, pre, code and ul. Some of their selectors are more specific than div.verdict.
    """
    style = Markup(f"<style>\n{Path(__file__).with_name('panel.css').read_text(encoding='utf-8')}</style>")
    functions = {"points": points, "mark": _mark, "counted": _counted, "drawn": _map, "backends": BACKENDS}
    return templates_in(Path(__file__).parent, words=_words)("panel.html").make_module({"style": style} | functions)


def points(verdict) -> str:
    return f"{verdict.score:g} of {verdict.points:g} point{'s' * (verdict.points != 1)}"


def cases_in_words(cases) -> str:
    """All in one word where they are alike; otherwise how many failed, and the first of them."""
    if len(cases) > 1 and all(case.passed for case in cases):
        return f"all {len(cases)} pass"
    if not any(case.ran for case in cases):
        return f"{len(cases)} not run"
    failed = [case.name for case in cases if not case.passed]
    if len(cases) < 4:
        return "  ".join(f"{_mark(case)} {case.name}" for case in cases)
    return f"{len(failed)} of {len(cases)} failed: {'; '.join(failed[:3])}{'; …' * (len(failed) > 3)}"


def _mark(case) -> str:
    return "✓" if case.passed else "✗" if case.ran else "–"


def _counted(cases) -> str:
    """How many cases passed."""
    passed, ran = sum(case.passed for case in cases), sum(case.ran for case in cases)
    count = many(len(cases), "case", "cases")
    if passed == len(cases):
        return f"{count}, passed" if len(cases) == 1 else f"{count}, all passed"
    return f"{count}: {passed} passed, {ran - passed} failed" if ran else f"{count}, not run"


def _words(text: str) -> Markup:
    """Text as HTML: what stands between backticks is code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text)).replace("\n", "<br>"))


# -- the map of a failure ----------------------------------------------------------------------------------

_LEFT, _WIDTH, _LINE, _HEIGHT = 92, 580, 24, 18
_LEAST = 3  # pixels of the narrowest run
MOST_RUNS = 40  # pieces of one row
_SINGLE = 32  # so many elements are drawn one by one
_LEGEND = {
    "right": "right: a block has one colour",
    "wrong": "wrong",
    "nan": "NaN or infinite",
    "unwritten": "never written",
    "outside": "outside of the tensor",
    "gap": "gap between rows",
    "masked": "masked lane, no element",
}


def _map(drawn) -> Markup:
    """Rows of an output as strips in the colours of the launch grid: a block has one colour."""
    from workshop.picture import WRONG

    if not _tells(drawn):
        return Markup(f"<p class='foot'>{_words(f'{drawn.case}: {drawn.words}')}</p>")
    masked = -drawn.columns % drawn.block if drawn.block else 0
    tail = min(masked, drawn.columns)  # a tail that is longer than the row itself is cut
    scale = _WIDTH / (drawn.columns + tail)
    marks, faults, states = [], [], set()
    for number, row in enumerate(drawn.rows):
        y = 4 + number * _LINE
        marks.append(f"<text x='0' y='{y + 13}'>{escape(row.label)}</text>")
        start = 0
        for run in [*row.runs, *([_Masked(tail)] if tail else [])]:
            states.add(run.state)
            (marks if run.state in ("right", "gap", "masked") else faults).extend(_run(run, start, scale, y, drawn))
            start += run.length
    marks += faults  # a narrow one is drawn wider than it is, over its neighbours
    below = 4 + len(drawn.rows) * _LINE
    marks += _ticks(drawn, scale, below)
    hatch = "".join(
        f"<pattern id='verdict-{name}' width='6' height='6' patternUnits='userSpaceOnUse' "
        f"patternTransform='rotate(45)'><rect width='6' height='6' fill='{color}' fill-opacity='{ground}'/>"
        f"<line y2='6' stroke='{color}' stroke-width='3'/></pattern>"
        for name, color, ground in (("unwritten", WRONG, 0.12), ("masked", "#808081", 0.05))
    )
    label = escape(f"{drawn.case}: {drawn.words}", quote=True)
    more = drawn.of_rows - len(drawn.rows)
    words = drawn.words + (f" {more} more row{'s' * (more != 1)} not drawn." if more > 0 else "")
    return Markup(
        f"<svg viewBox='0 0 680 {below + 18}' role='img' aria-label='{label}'><defs>{hatch}</defs>"
        f"{''.join(marks)}</svg>{_legend(states)}<p class='foot'>{_words(f'{drawn.case}: {words}')}</p>"
    )


def _tells(drawn) -> bool:
    """Whether a drawing says more than its words: not if all is of one state, or scattered in many small pieces."""
    states = {run.state for row in drawn.rows for run in row.runs}
    return len(states) > 1 and max(len(row.runs) for row in drawn.rows) <= MOST_RUNS


class _Masked:
    state = "masked"

    def __init__(self, length: int):
        self.length = length


def _run(run, start: int, scale: float, y: int, drawn):
    """A run as rectangles; right elements take the colour of their block."""
    single = drawn.columns <= _SINGLE
    step = 1 if single else drawn.block if drawn.block and run.state == "right" else 0
    at, end = start, start + run.length
    while at < end:
        after = min(end, (at // step + 1) * step) if step else end
        x, width = _LEFT + at * scale, max(_LEAST, (after - at) * scale - 3 * single)
        block = at // drawn.block if drawn.block else 0
        what = "lanes" if drawn.lanes else "elements"
        place = f"{what} {at} to {after - 1}" if after - at > 1 else f"{what[:-1]} {at}"
        note = _LEGEND[run.state] if run.state == "masked" else f"{place}: {_LEGEND[run.state]}"
        yield (
            f"<rect x='{x:.1f}' y='{y}' width='{min(width, 680 - x):.1f}' height='{_HEIGHT}' "
            f"{_paint(run.state, block)}>"
            f"<title>{note}</title></rect>"
        )
        at = after


def _paint(state: str, block: int = 0) -> str:
    from workshop.picture import CYCLE, WRONG

    color = CYCLE[block % len(CYCLE)]
    return {
        "right": f"fill='{color}' fill-opacity='.5'",
        "wrong": f"fill='{WRONG}'",
        "nan": f"fill='#cc79a7' stroke='{WRONG}' stroke-width='2'",
        "unwritten": f"fill='url(#verdict-unwritten)' stroke='{WRONG}' stroke-dasharray='4 3'",
        "outside": f"fill='url(#verdict-unwritten)' stroke='{WRONG}' stroke-width='2'",
        "gap": "fill='url(#verdict-masked)'",
        "masked": "fill='url(#verdict-masked)' stroke='#808081' stroke-dasharray='4 3'",
    }[state]


def _ticks(drawn, scale: float, y: int):
    """Numbers below the strips: where blocks begin, where the tensor ends, and the end of the row."""
    for at in _places(drawn):
        if at == 0 or (drawn.columns - at) * scale > 60:  # the label of the end must not lie on this one
            anchor = "middle" if at else "start"
            yield f"<text x='{_LEFT + at * scale:.1f}' y='{y + 12}' text-anchor='{anchor}'>{at:,}</text>"
    end = _LEFT + drawn.columns * scale
    yield f"<text x='{min(end, 678):.1f}' y='{y + 12}' text-anchor='end'>{drawn.columns:,}</text>"


def _places(drawn) -> list[int]:
    if drawn.block and not drawn.lanes:
        starts = range(0, drawn.columns, drawn.block)
        return list(starts) if len(starts) <= 8 else [0]
    first, *others = drawn.rows[0].runs
    return [0, first.length] if others and others[0].state in ("gap", "outside") else [0]


def _legend(states: set[str]) -> str:
    """Outside of the drawing: its words keep their size where the drawing is small."""
    keys = "".join(
        f"<span class='key'><svg viewBox='0 0 22 12'><rect width='22' height='12' {_paint(state)}/></svg>{words}</span>"
        for state, words in _LEGEND.items()
        if state in states
    )
    return f"<p class='keys'>{keys}</p>"
