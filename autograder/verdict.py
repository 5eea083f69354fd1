"""A verdict: what the judge decided, and how it is said as JSON, as text and as a panel in the notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Finding:
    """Why a case failed. `slug` names the misconception; the rest is for the learner.

    happened: where it broke, expected and got. means: what this pattern usually means. advice: one thing to
    try. line and code: the learner's own, where one is to blame. second: the next likeliest slug, if unsure.
    """

    slug: str
    happened: str
    means: str = ""
    advice: str = ""
    line: int | None = None
    code: str = ""
    second: str | None = None

    @property
    def message(self) -> str:
        place = f"Line {self.line}: {self.code}" if self.line and self.code else ""
        unsure = f"(It could also be {self.second}.)" if self.second else ""
        return "\n".join(
            part for part in (self.happened, place, self.means, unsure, self.advice and f"Try: {self.advice}") if part
        )


@dataclass(frozen=True)
class CaseResult:
    name: str
    finding: Finding | None = None

    @property
    def passed(self) -> bool:
        return self.finding is None


@dataclass(frozen=True)
class Verdict:
    """The judge's answer. `score` and `points` are numbers of points; `blanks` is empty where there are none.

    `backend` is empty for an answer that never reached a judge, such as a file that is no notebook.
    """

    exercise: str
    passed: bool
    score: float
    points: float
    backend: str
    finding: Finding | None = None
    cases: tuple[CaseResult, ...] = ()
    blanks: dict[str, bool] = field(default_factory=dict)
    blank_findings: dict[str, Finding] = field(default_factory=dict)
    note: str = ""

    @property
    def diagnosis(self) -> str | None:
        return self.finding.slug if self.finding else None

    @property
    def message(self) -> str:
        if self.finding:
            return self.finding.message
        return f"All {len(self.cases)} cases pass." + (f" {self.note}" if self.note else "")

    def to_json(self) -> dict:
        """The object that `autograder check --json` prints."""
        return {
            "exercise": self.exercise,
            "passed": self.passed,
            "score": self.score,
            "points": self.points,
            "backend": self.backend,
            "diagnosis": self.diagnosis,
            "message": self.message,
            "cases": [
                {
                    "name": case.name,
                    "passed": case.passed,
                    "diagnosis": case.finding.slug if case.finding else None,
                    "message": case.finding.message if case.finding else "",
                }
                for case in self.cases
            ],
            "blanks": dict(self.blanks),
        }

    def to_text(self) -> str:
        lines = [self._headline() + (f"  [{self.backend}]" if self.backend else "")]
        if self.finding:
            lines += [f"  {line}" for line in self.finding.message.splitlines()]
        if self.blanks:
            lines.append("  blanks: " + "  ".join(f"{'✓' if ok else '✗'} {name}" for name, ok in self.blanks.items()))
        for name, finding in self.blank_findings.items():
            lines.append(f"    {name}: {finding.happened.splitlines()[0]} {finding.advice}".rstrip())
        if self.cases:
            lines.append("  cases:  " + "  ".join(f"{'✓' if c.passed else '✗'} {c.name}" for c in self.cases))
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)

    def _headline(self) -> str:
        mark = "PASS" if self.passed else "NOT YET"
        slug = f" — {self.diagnosis}" if self.diagnosis else ""
        return f"{mark}  {self.exercise}  {_number(self.score)} of {_number(self.points)} points{slug}"

    def to_html(self) -> str:
        """A self-contained panel, everything in it escaped."""
        parts = [f"<div class='verdict {'passed' if self.passed else 'failed'}'>{_STYLE}"]
        points = f"{_number(self.score)} of {_number(self.points)} points"
        mark = "✓ Passed" if self.passed else "Not yet"
        slug = f" <code class='slug'>{escape(self.diagnosis)}</code>" if self.diagnosis else ""
        parts.append(f"<p class='head'><b>{mark}</b> · {escape(self.exercise)} · {points}{slug}</p>")
        if self.finding:
            parts.append(_finding_html(self.finding))
        if self.blanks:
            parts.append(_blanks_html(self))
        if self.cases:
            chips = "".join(
                f"<span class='{'ok' if c.passed else 'no'}' title='{escape(c.finding.slug if c.finding else 'passed')}'>"
                f"{'✓' if c.passed else '✗'} {escape(c.name)}</span>"
                for c in self.cases
            )
            parts.append(f"<p class='cases'>{chips}</p>")
        judged = f"judged on the {_BACKENDS.get(self.backend, self.backend)}" if self.backend else ""
        foot = " · ".join(filter(None, [judged, self.note]))
        parts.append(f"<p class='foot'>{escape(foot)}</p></div>")
        return "".join(parts)


_BACKENDS = {"interpreter": "interpreter, without a GPU", "cuda": "NVIDIA GPU", "hip": "AMD GPU"}

_STYLE = """<style>
.verdict{border-left:4px solid #d55e00;border-radius:4px;padding:8px 14px;margin:4px 0;max-width:60em;line-height:1.45;
background:rgba(127,127,127,.08);color:var(--jp-content-font-color1,inherit);
font:14px/1.45 var(--jp-content-font-family,system-ui,sans-serif)}
.verdict.passed{border-color:#009e73}
.verdict p{margin:4px 0}.verdict .head{font-size:15px}
.verdict code,.verdict pre{font:13px/1.4 var(--jp-code-font-family,ui-monospace,monospace);background:rgba(127,127,127,.14);
color:inherit;border-radius:3px;padding:1px 4px}
.verdict pre{padding:6px 10px;margin:6px 0;white-space:pre-wrap;overflow-wrap:anywhere}
.verdict .try{font-weight:600}
.verdict .cases span,.verdict .blanks span{display:inline-block;margin:2px 6px 2px 0;padding:0 7px;border-radius:9px;
font-size:12.5px;background:rgba(127,127,127,.14)}
.verdict .ok{box-shadow:inset 0 0 0 1px #009e73}.verdict .no{box-shadow:inset 0 0 0 1px #d55e00}
.verdict .foot{opacity:.7;font-size:12.5px}
.verdict ul{margin:4px 0 4px 1.2em;padding:0}
</style>"""


def _finding_html(finding: Finding) -> str:
    parts = [f"<p>{escape(finding.happened).replace(chr(10), '<br>')}</p>"]
    if finding.line and finding.code:
        parts.append(f"<pre>line {finding.line}: {escape(finding.code)}</pre>")
    if finding.means:
        parts.append(f"<p>{escape(finding.means)}</p>")
    if finding.second:
        parts.append(f"<p>It could also be <code>{escape(finding.second)}</code>.</p>")
    if finding.advice:
        parts.append(f"<p class='try'>Try: {escape(finding.advice)}</p>")
    return "".join(parts)


def _blanks_html(verdict: Verdict) -> str:
    chips = "".join(
        f"<span class='{'ok' if ok else 'no'}'>{'✓' if ok else '✗'} {escape(name)}</span>"
        for name, ok in verdict.blanks.items()
    )
    advice = "".join(
        f"<li><code>{escape(name)}</code>: {escape(finding.advice or finding.happened)}</li>"
        for name, finding in verdict.blank_findings.items()
    )
    return f"<p class='blanks'>{chips}</p>" + (f"<ul>{advice}</ul>" if advice else "")


def _number(value: float) -> str:
    return f"{value:g}"
