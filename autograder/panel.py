"""A verdict as a panel in the notebook, from panel.html. All text in it is escaped; it needs no script."""

import functools
import itertools
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from markupsafe import Markup

from .text import many, templates_in


def part(name: str, **about) -> str:
    """A macro of panel.html. It escapes what is in `about`."""
    return str(getattr(_panels(), name)(**about))


@functools.cache
def _panels():
    """The macros of panel.html.

    JupyterLab and nbgrader also style p, pre, code and ul. Some of their selectors are more specific than div.verdict.
    """
    style = Markup(f"<style>\n{Path(__file__).with_name('panel.css').read_text(encoding='utf-8')}</style>")
    functions = {"points": points, "mark": _mark, "counted": _counted}
    functions |= {"boxes": _boxes, "ticks": _ticks, "legend": _LEGEND}
    return templates_in(Path(__file__).parent, words=_words)("panel.html").make_module({"style": style} | functions)


def points(verdict) -> str:
    return f"{verdict.score:g} of {verdict.points:g} point{'s' * (verdict.points != 1)}"


def cases_in_words(cases, passed: bool) -> str:
    """All in one word where they are alike; otherwise how many failed, and the first of them. passed: the answer."""
    if len(cases) > 1 and all(case.passed for case in cases):
        return f"all {len(cases)} pass" + ("" if passed else ", and the call that is told above fails")
    if not any(case.ran for case in cases):
        return f"{len(cases)} not run"
    failed = [case.name for case in cases if not case.passed]
    if len(cases) < 4:
        return "  ".join(f"{_mark(case)} {case.name}" for case in cases)
    return f"{len(failed)} of {len(cases)} failed: {'; '.join(failed[:3])}{'; …' * (len(failed) > 3)}"


def _mark(case) -> str:
    return "✓" if case.passed else "✗" if case.ran else "–"


def _counted(cases) -> str:
    passed, ran = sum(case.passed for case in cases), sum(case.ran for case in cases)
    count = many(len(cases), "case", "cases")
    if passed == len(cases):
        return f"{count}, passed" if len(cases) == 1 else f"{count}, all passed"
    return f"{count}: {passed} passed, {ran - passed} failed" if ran else f"{count}, not run"


def _words(text: str) -> Markup:
    """Text as HTML: what stands between backticks is code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text)).replace("\n", "<br>"))


_LEFT, _RIGHT, _WIDTH, _LINE = 92, 680, 580, 24  # pixels
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
_NO_FAULT = ("right", "gap", "masked")


def _boxes(drawn) -> list[dict]:
    """Rows of an output as strips in the colours of the launch grid; none if all is of one state, or scattered."""
    states = {run.state for row in drawn.rows for run in row.runs}
    if len(states) == 1 or max(len(row.runs) for row in drawn.rows) > MOST_RUNS:
        return []
    tail, _ = _scale(drawn)
    boxes, masked = [], [("masked", tail)] * bool(tail)
    for number, row in enumerate(drawn.rows):
        start = 0
        for state, length in [*((run.state, run.length) for run in row.runs), *masked]:
            boxes += _run(drawn, state, start, start + length, 4 + number * _LINE)
            start += length
    return sorted(boxes, key=lambda box: box["state"] not in _NO_FAULT)  # a narrow one lies over its neighbours


def _scale(drawn) -> tuple[int, float]:
    """The masked lanes of the last block, no more than the row has elements; pixels of an element."""
    tail = min(-drawn.columns % drawn.block, drawn.columns) if drawn.block else 0
    return tail, _WIDTH / (drawn.columns + tail)


def _run(drawn, state: str, start: int, end: int, y: float) -> Iterator[dict]:
    """A run as boxes, in pixels: one for each block where it is right, one for each element in a short row."""
    from workshop.picture import CYCLE

    single, (_, scale) = drawn.columns <= _SINGLE, _scale(drawn)
    step = 1 if single else drawn.block if state == "right" else 0
    inner = range((start // step + 1) * step, end, step) if step else ()
    for at, after in itertools.pairwise([start, *inner, end]):
        x, width = _LEFT + at * scale, max(_LEAST, (after - at) * scale - 3 * single)
        color = CYCLE[at // (drawn.block or end) % len(CYCLE)] if state == "right" else ""
        what = "lanes" if drawn.lanes else "elements"
        place = f"{what} {at} to {after - 1}: " if after - at > 1 else f"{what[:-1]} {at}: "
        note = ("" if state == "masked" else place) + _LEGEND[state]
        yield {"state": state, "x": x, "y": y, "width": min(width, _RIGHT - x), "color": color, "note": note}


def _ticks(drawn) -> list[tuple[float, str, int]]:
    """(x, anchor, number) below the strips: where blocks begin, where the tensor ends, and the end of the row."""
    (_, scale), columns = _scale(drawn), drawn.columns
    first, *others = drawn.rows[0].runs
    places = [0, first.length] if others and others[0].state in ("gap", "outside") else [0]
    if drawn.block and not drawn.lanes:
        starts = range(0, columns, drawn.block)
        places = starts if len(starts) <= 8 else [0]
    # The label of the end must not lie on another one.
    ticks = [(at, "middle" if at else "start") for at in places if at == 0 or (columns - at) * scale > 60]
    ends = (min(_LEFT + columns * scale, _RIGHT - 2), "end", columns)
    return [*((_LEFT + at * scale, anchor, at) for at, anchor in ticks), ends]
