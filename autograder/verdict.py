"""A verdict: what the judge decided, and how to show it as JSON, as text and as a panel in the notebook."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from markupsafe import Markup

from . import panel
from .text import visible

MAX_MESSAGE = 4000


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
    FALSE_PROMISE = "false-promise"
    RACE = "race"
    UNINITIALISED_READ = "uninitialised-read"
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
    # About the work behind right numbers.
    READS_TOO_OFTEN = "reads-too-often"
    WRITES_TOO_OFTEN = "writes-too-often"
    # About the operator.
    NOT_REGISTERED = "not-registered"
    WRONG_SCHEMA = "wrong-schema"
    GRAPH_BREAK = "graph-break"
    # About the compiled kernel.
    NOT_AUTOTUNED = "not-autotuned"
    POOR_CONFIGURATIONS = "poor-configurations"
    SPILLS = "spills"
    NARROW_ACCESS = "narrow-access"
    LOW_OCCUPANCY = "low-occupancy"

    @property
    def of_right_numbers(self) -> bool:
        return self in (Slug.READS_TOO_OFTEN, Slug.WRITES_TOO_OFTEN)

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
    thing to try. repair: the code for it, out of a right answer. line and code: the learner's line that caused it, if
    known. second: another likely slug, if unsure.
    case: the name of the case that failed. tensor: the parameter whose memory was accessed. Both are "" if unknown.
    sure: whether what it means and advises is about this mistake alone. by_numbers: whether a known mistake gives the
    numbers, which another one may give, too.
    A slug may be given as text. An unknown slug raises ValueError.
    """

    slug: Slug
    happened: str
    means: str = ""
    advice: str = ""
    line: int | None = None
    code: str = ""
    second: Slug | None = None
    case: str = ""
    tensor: str = ""
    sure: bool = False
    by_numbers: bool = False
    repair: str = ""

    def __post_init__(self):
        object.__setattr__(self, "slug", Slug(self.slug))
        object.__setattr__(self, "second", self.second and Slug(self.second))

    @property
    def told(self) -> str:
        """What happened, and in which case."""
        return f"{self.happened.removesuffix('.')} ({self.case})." if self.case else self.happened

    @property
    def message(self) -> str:
        place = f"Line {self.line}: {self.code}" if self.line and self.code else ""
        unsure = f"(It could also be {self.second}.)" if self.second else ""
        attempt = " Here, ".join(filter(None, (self.advice, self.repair)))
        return "\n".join(part for part in (self.told, place, self.means, unsure, attempt and f"Try: {attempt}") if part)


def quoted(finding: Finding, source: str) -> Finding:
    """The finding with its line as the learner wrote it."""
    lines = source.splitlines()
    if not finding.line or finding.line > len(lines):
        return finding
    return replace(finding, code=lines[finding.line - 1].strip()[:200])


NOT_RUN = {Slug.SYNTAX_ERROR, Slug.NOT_ATTEMPTED, Slug.NOT_ALLOWED, Slug.NOT_IN_THIS_TRITON}


@dataclass(frozen=True)
class Run:
    """Neighbouring elements of one state: right, wrong, nan, unwritten, outside, gap."""

    state: str
    length: int


@dataclass(frozen=True)
class Row:
    label: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class ErrorMap:
    """Which elements of a case's output are wrong: some of its rows, each of `columns` elements.

    block: elements of one program's block, 0 if unknown. words: the same as text. of_rows: rows of the whole output.
    lanes: the map shows lanes of one program, not elements of the output.
    """

    case: str
    columns: int
    rows: tuple[Row, ...]
    block: int
    words: str
    of_rows: int = 1
    lanes: bool = False


@dataclass(frozen=True)
class CaseResult:
    """`map` shows where a wrong output is wrong, if that can be drawn."""

    name: str
    finding: Finding | None = None
    map: ErrorMap | None = None

    @property
    def passed(self) -> bool:
        return self.finding is None

    @property
    def ran(self) -> bool:
        """Whether the answer ran on this case: code that cannot be read, or is not there, runs on none."""
        return self.passed or self.finding.slug not in NOT_RUN


@dataclass(frozen=True)
class Verdict:
    """The judge's decision. `score` and `points` are numbers of points. `blanks` is empty if the exercise has none.

    `backend` is empty for an answer that never reached a judge, such as a file that is not a notebook. `note` is about
    how it was judged, or a remark about an answer that passed. `warning` says that the verdict is about another text.
    `better` says what got better since the check before.
    `advised`: whether it says how to repair wrong places and numbers, or only where they are and what they mean.
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
    warning: str = ""
    better: str = ""
    advised: bool = True

    @property
    def diagnosis(self) -> str | None:
        return self.finding.slug if self.finding else None

    @property
    def message(self) -> str:
        if self.finding:
            return self.finding.message
        passed = f"All {len(self.cases)} cases pass." if len(self.cases) > 1 else "The case passes."
        return passed + (f" {self.note}" if self.note else "")

    @property
    def shown(self) -> Finding | None:
        """The finding as the learner sees it: without what would tell a repair, if that is withheld."""
        finding = self.finding
        if self.advised or finding is None:
            return finding
        kept = finding.advice if finding.slug.rank <= Slug.RUNTIME_ERROR.rank else ""
        return replace(
            finding, repair="", advice=kept or "find the cause with this. The next check says what to try."
        )

    @property
    def drawn(self) -> ErrorMap | None:
        """The map of the case that the finding is about; if it is about no case, of the first case that has one."""
        if self.finding and self.finding.case:
            return next((case.map for case in self.cases if case.name == self.finding.case), None)
        return next((case.map for case in self.cases if case.map), None)

    @property
    def judged_blanks(self) -> bool:
        """Whether the blanks were judged one by one: not in code that cannot be read, or in another kernel."""
        return any(self.blanks.values()) or bool(self.blank_findings)

    def to_json(self) -> dict:
        """The object that `autograder check --json` prints. What it says can be shown anywhere."""
        return {
            "exercise": self.exercise,
            "passed": self.passed,
            "score": self.score,
            "points": self.points,
            "backend": self.backend,
            "diagnosis": self.diagnosis,
            "message": visible(self.message, MAX_MESSAGE),
            "cases": [
                {
                    "name": visible(case.name, MAX_MESSAGE),
                    "passed": case.passed,
                    "diagnosis": case.finding.slug if case.finding else None,
                    "message": visible(case.finding.message, MAX_MESSAGE) if case.finding else "",
                }
                for case in self.cases
            ],
            "blanks": dict(self.blanks),
        }

    def to_text(self) -> str:
        """What a terminal may show."""
        lines = [f"! {self.warning}"] if self.warning else []
        mark, slug = "PASS" if self.passed else "NOT YET", f" — {self.diagnosis}" if self.diagnosis else ""
        backend = f"  [{self.backend}]" if self.backend else ""
        lines += [f"{mark}  {self.exercise}  {panel.points(self)}{slug}{backend}"]
        if self.better:
            lines.append(f"  {self.better}")
        if self.finding:
            lines += [f"  {line}" for line in self.shown.message.splitlines()]
        if self.blanks:
            marked = "  ".join(f"{'✓' if ok else '✗'} {name}" for name, ok in self.blanks.items())
            lines.append(f"  blanks: {marked if self.judged_blanks else f'{len(self.blanks)} not judged'}")
        for name, finding in self.blank_findings.items():
            happened = finding.happened.splitlines()[0].removesuffix(".")
            lines.append(f"    {name}: {happened}. {finding.advice if self.advised else ''}".rstrip())
        if self.drawn:
            lines.append(f"  {self.drawn.case}: {self.drawn.words}")
        if self.cases:
            lines.append(f"  cases:  {panel.cases_in_words(self.cases, self.passed)}")
        if self.note:
            lines.append(f"  {self.note}")
        return visible("\n".join(lines))

    def to_html(self, after: str = "") -> str:
        """A self-contained panel; all text is escaped. `after` is HTML that is added to it."""
        return panel.part("verdict", v=self, after=Markup(after))
