"""A verdict: what the judge decided, and how to show it as JSON, as text and as a panel in the notebook."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from html import escape


class Slug(StrEnum):
    """The names of misconceptions. The order is their rank: a finding that explains the whole answer comes first."""

    # About the judge or the file, not the answer.
    GRADER_ERROR = "grader-error"
    NO_NOTEBOOK = "no-notebook"
    # About what the answer did, independent of addresses and numbers.
    SYNTAX_ERROR = "syntax-error"
    NOT_ATTEMPTED = "not-attempted"
    NOT_IN_THIS_TRITON = "not-in-this-triton"
    NOT_ALLOWED = "not-allowed"
    NO_TRITON_KERNEL = "no-triton-kernel"
    COMPILE_ERROR = "compile-error"
    OUT_OF_MEMORY = "out-of-memory"
    WRONG_DEVICE = "wrong-device"
    WRONG_SHAPE = "wrong-shape"
    WRONG_DTYPE = "wrong-dtype"
    INPUT_MODIFIED = "input-modified"
    NOT_CONTIGUOUS = "not-contiguous"
    TIMEOUT = "timeout"
    CRASH = "crash"
    RUNTIME_ERROR = "runtime-error"
    # About where programs read and wrote.
    WRONG_PROGRAM_ID = "wrong-program-id"
    OUT_OF_BOUNDS_STORE = "out-of-bounds-store"
    OUT_OF_BOUNDS_LOAD = "out-of-bounds-load"
    RACE = "race"
    UNWRITTEN_OUTPUT = "unwritten-output"
    RELIES_ON_MASKED_LANES = "relies-on-masked-lanes"
    # About the numbers.
    MISSING_RESCALE = "missing-rescale"
    WRONG_OTHER_VALUE = "wrong-other-value"
    OVERFLOW = "overflow"
    NOT_SCALED = "not-scaled"
    CONSTANT_FACTOR = "constant-factor"
    NOT_NORMALISED = "not-normalised"
    NAN = "nan"
    TAIL_WRONG = "tail-wrong"
    STRIDE_IGNORED = "stride-ignored"
    LOW_PRECISION = "low-precision"
    WRONG_VALUE = "wrong-value"
    SAME_MASK = "same-mask"
    WRONG_RATE = "wrong-rate"
    SEED_IGNORED = "seed-ignored"
    # About the compiled kernel.
    NOT_AUTOTUNED = "not-autotuned"
    POOR_CONFIGURATIONS = "poor-configurations"
    SPILLS = "spills"
    NARROW_ACCESS = "narrow-access"
    LOW_OCCUPANCY = "low-occupancy"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    @property
    def about_conduct(self) -> bool:
        """Whether it is about what the answer did, not about addresses or numbers."""
        return Slug.SYNTAX_ERROR.rank <= self.rank <= Slug.RUNTIME_ERROR.rank and self != Slug.CRASH


_RANKS = {slug: rank for rank, slug in enumerate(Slug)}
GRADER_ERROR = Slug.GRADER_ERROR


@dataclass(frozen=True)
class Finding:
    """Why a case failed. `slug` names the misconception; the rest is for the learner.

    happened: where it failed, the expected and the actual value. means: what this pattern usually means. advice: one
    thing to try. line and code: the learner's line that caused it, if known. second: another likely slug, if unsure.
    A slug may be given as text. An unknown slug raises ValueError.
    """

    slug: Slug
    happened: str
    means: str = ""
    advice: str = ""
    line: int | None = None
    code: str = ""
    second: Slug | None = None

    def __post_init__(self):
        object.__setattr__(self, "slug", Slug(self.slug))
        object.__setattr__(self, "second", self.second and Slug(self.second))

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
    """The judge's decision. `score` and `points` are numbers of points. `blanks` is empty if the exercise has none.

    `backend` is empty for an answer that never reached a judge, such as a file that is not a notebook.
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
        """A self-contained panel. All text in it is escaped."""
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
            cases = "".join(_chip(c.name, c.passed, c.finding.slug if c.finding else "passed") for c in self.cases)
            parts.append(f"<p class='chips'><span class='kind'>cases</span>{cases}</p>")
        judged = f"judged on the {_BACKENDS.get(self.backend, self.backend)}" if self.backend else ""
        foot = " · ".join(filter(None, [judged, self.note]))
        parts.append(f"<p class='foot'>{escape(foot)}</p></div>")
        return "".join(parts)


_BACKENDS = {"interpreter": "interpreter, without a GPU", "cuda": "NVIDIA GPU", "hip": "AMD GPU"}

# JupyterLab and nbgrader also style p, pre, code and ul. Some of their selectors are more specific than div.verdict.
_STYLE = """<style>
div.verdict{border-left:4px solid #d55e00;border-radius:4px;padding:9px 16px;margin:6px 0;max-width:58em;
background:rgba(127,127,127,.09);color:var(--jp-content-font-color1,inherit);
font:14px/1.5 var(--jp-content-font-family,system-ui,sans-serif)}
div.verdict.passed{border-color:#009e73}
div.verdict p{margin:3px 0}
div.verdict p.head{font-size:15px;margin-bottom:5px}
div.verdict code,div.verdict pre{font:13px/1.45 var(--jp-code-font-family,ui-monospace,monospace);color:inherit;
background:rgba(127,127,127,.15)!important;border:0;border-radius:3px;padding:1px 5px}
div.verdict pre{padding:5px 10px!important;margin:6px 0!important;white-space:pre-wrap;overflow-wrap:anywhere}
div.verdict .try{font-weight:600}
div.verdict .chips{margin-top:6px}
div.verdict .kind,div.verdict .foot{opacity:.75;font-size:12.5px}
div.verdict .kind{margin-right:8px}
div.verdict .chip{display:inline-block;margin:2px 6px 2px 0;padding:0 8px;border-radius:9px;font-size:12.5px;
line-height:19px;white-space:nowrap}
div.verdict .ok{box-shadow:inset 0 0 0 1.5px #009e73}
div.verdict .no{box-shadow:inset 0 0 0 1.5px #d55e00}
div.verdict ul{list-style:none;margin:2px 0!important;padding:0!important}
div.verdict li{margin:0}
</style>"""


def _chip(name: str, passed: bool, title: str) -> str:
    kind, mark = ("ok", "✓") if passed else ("no", "✗")
    return f"<span class='chip {kind}' title='{escape(title)}'>{mark} {escape(name)}</span>"


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
    """The blanks in one row. Each blank with advice is on a separate line."""
    advised = {name: f.advice or f.happened for name, f in verdict.blank_findings.items() if name in verdict.blanks}
    plain = "".join(
        _chip(name, ok, "right" if ok else "not yet") for name, ok in verdict.blanks.items() if name not in advised
    )
    lines = "".join(f"<li>{_chip(name, False, 'not yet')}{escape(advice)}</li>" for name, advice in advised.items())
    return f"<p class='chips'><span class='kind'>blanks</span>{plain}</p>" + (f"<ul>{lines}</ul>" if lines else "")


def _number(value: float) -> str:
    return f"{value:g}"
