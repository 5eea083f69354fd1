"""A verdict as a panel in the notebook. All text in it is escaped; it needs no script and no other file."""

from __future__ import annotations

import re
from html import escape

BACKENDS = {"interpreter": "interpreter, without a GPU", "cuda": "NVIDIA GPU", "hip": "AMD GPU"}

# JupyterLab and nbgrader also style p, pre, code and ul. Some of their selectors are more specific than div.verdict.
_STYLE = """<style>
div.verdict{border-left:4px solid #d55e00;border-radius:4px;padding:9px 16px;margin:6px 0;max-width:58em;
background:rgba(127,127,127,.09);color:var(--jp-content-font-color1,inherit);
font:14px/1.5 var(--jp-content-font-family,system-ui,sans-serif)}
div.verdict.passed{border-color:#009e73}
div.verdict.running{border-color:#56b4e9}
div.verdict p{margin:3px 0;overflow-wrap:anywhere}
div.verdict p.head{font-size:15px;margin-bottom:5px}
div.verdict.passed p.head b{font-size:18px}
div.verdict p.warning{border:1.5px solid #e69f00;border-radius:4px;padding:4px 10px;margin-bottom:7px}
div.verdict p.next a{color:var(--jp-content-link-color,#0072b2);font-weight:600}
div.verdict code,div.verdict pre{font:13px/1.45 var(--jp-code-font-family,ui-monospace,monospace);color:inherit;
background:rgba(127,127,127,.15)!important;border:0;border-radius:3px;padding:1px 5px}
div.verdict pre{padding:5px 10px!important;margin:6px 0!important;white-space:pre-wrap;word-break:normal;
overflow-wrap:anywhere}
div.verdict p.better{color:inherit;border-left:3px solid #009e73;padding-left:8px}
div.verdict details pre{max-height:16em;overflow:auto}
div.verdict button{font:inherit;font-size:13px;padding:1px 9px;color:inherit;cursor:pointer;
background:rgba(127,127,127,.14);border:1px solid rgba(127,127,127,.6);border-radius:4px}
div.verdict .slug{white-space:nowrap}
div.verdict .try{font-weight:600}
div.verdict .chips,div.verdict details{margin-top:6px}
div.verdict summary{cursor:pointer}
div.verdict .kind,div.verdict .foot,div.verdict summary{opacity:.8;font-size:12.5px}
div.verdict .kind{margin-right:8px}
div.verdict .chip{display:inline-block;margin:2px 6px 2px 0;padding:0 8px;border-radius:9px;font-size:12.5px;
line-height:19px;max-width:100%;box-sizing:border-box}
div.verdict .ok{box-shadow:inset 0 0 0 1.5px #009e73}
div.verdict .no{box-shadow:inset 0 0 0 1.5px #d55e00}
div.verdict .not-run{box-shadow:inset 0 0 0 1.5px rgba(127,127,127,.6)}
div.verdict ul{list-style:none;margin:2px 0!important;padding:0!important}
div.verdict li{margin:0}
div.verdict svg{display:block;width:100%;max-width:680px;height:auto;margin:8px 0 2px}
div.verdict svg text{fill:currentColor;font-size:12px}
@media (max-width:1100px){div.verdict svg text{font-size:15px}}
div.verdict .keys{padding-left:min(13.5%,92px);font-size:12.5px}
div.verdict .key{display:inline-block;margin-right:18px;white-space:nowrap}
div.verdict .key svg{display:inline-block;width:22px;height:12px;margin:0 6px 0 0}
</style>"""


def html(verdict, after: str = "") -> str:
    """The panel of a Verdict. `after` is HTML of the caller's."""
    parts = [f"<div class='verdict {'passed' if verdict.passed else 'failed'}'>{_STYLE}"]
    if verdict.warning:
        parts.append(f"<p class='warning'>{_words(verdict.warning)}</p>")
    mark = "✓ Passed" if verdict.passed else "Not yet"
    slug = f" <code class='slug'>{escape(verdict.diagnosis)}</code>" if verdict.diagnosis else ""
    parts.append(f"<p class='head'><b>{mark}</b> · {escape(verdict.exercise)} · {points(verdict)}{slug}</p>")
    if verdict.better:
        parts.append(f"<p class='better'>{_words(verdict.better)}</p>")
    if verdict.finding:
        parts.append(_finding(verdict.shown))
    if verdict.drawn:
        parts.append(_map(verdict.drawn))
    if verdict.blanks:
        parts.append(_blanks(verdict))
    if verdict.passed:
        parts.append(f"<p>{_words(verdict.note)}</p>" if verdict.note else "")
    parts.append(after)
    if verdict.cases:
        parts.append(_cases(verdict.cases))
    judged = f"judged on the {BACKENDS.get(verdict.backend, verdict.backend)}" if verdict.backend else ""
    foot = " · ".join(filter(None, [judged, "" if verdict.passed else verdict.note]))
    parts.append(f"<p class='foot'>{_words(foot)}</p></div>" if foot else "</div>")
    return "".join(parts)


def running(exercise: str, words: str) -> str:
    """The panel while a check runs."""
    return f"<div class='verdict running'>{_STYLE}<p class='head'><b>Checking</b> · {escape(exercise)}</p>" + (
        f"<p role='status'>{escape(words)}</p></div>"
    )


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


def _cases(cases) -> str:
    """How many cases passed; the cases themselves unfold."""
    passed, ran = sum(case.passed for case in cases), sum(case.ran for case in cases)
    count = f"{len(cases)} case{'s' * (len(cases) != 1)}"
    summary = f"{count}, not run" if not ran else f"{count}: {passed} passed, {ran - passed} failed"
    if passed == len(cases):
        summary = f"{count}, passed" if len(cases) == 1 else f"{count}, all passed"
    chips = "".join(
        _chip(c.name, "ok" if c.passed else "no" if c.ran else "not-run", _mark(c), c.finding.slug if c.finding else "")
        for c in cases
    )
    return f"<details><summary>{summary}</summary><p class='chips'>{chips}</p></details>"


def _chip(name: str, kind: str, mark: str, title: str = "") -> str:
    hover = f" title='{escape(title)}'" if title else ""
    return f"<span class='chip {kind}'{hover}>{mark} {escape(name)}</span>"


def _words(text: str) -> str:
    """Text as HTML: what stands between backticks is code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def _finding(finding) -> str:
    parts = [f"<p>{_words(finding.told).replace(chr(10), '<br>')}</p>"]
    if finding.line and finding.code:
        parts.append(f"<pre>line {finding.line}: {escape(finding.code)}</pre>")
    if finding.means:
        parts.append(f"<p>{_words(finding.means)}</p>")
    if finding.second:
        parts.append(f"<p>It could also be <code>{escape(finding.second)}</code>.</p>")
    if finding.advice:
        parts.append(f"<p class='try'>Try: {_words(finding.advice)}</p>")
    return "".join(parts)


def _blanks(verdict) -> str:
    """The blanks in one row. Each blank with advice is on a separate line."""
    if not verdict.judged_blanks:
        return f"<p class='chips'><span class='kind'>blanks</span>{len(verdict.blanks)} not judged</p>"
    told = verdict.blank_findings.items() if verdict.advised else ()
    advised = {name: f.advice or f.happened for name, f in told if name in verdict.blanks}
    plain = "".join(
        _chip(name, *(("ok", "✓", "right") if ok else ("no", "✗", "not yet")))
        for name, ok in verdict.blanks.items()
        if name not in advised
    )
    lines = "".join(f"<li>{_chip(name, 'no', '✗', 'not yet')}{_words(advice)}</li>" for name, advice in advised.items())
    return f"<p class='chips'><span class='kind'>blanks</span>{plain}</p>" + (f"<ul>{lines}</ul>" if lines else "")


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


def _map(drawn) -> str:
    """Rows of an output as strips in the colours of the launch grid: a block has one colour."""
    from workshop.picture import WRONG

    if not _tells(drawn):
        return f"<p class='foot'>{_words(f'{drawn.case}: {drawn.words}')}</p>"
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
    return (
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
