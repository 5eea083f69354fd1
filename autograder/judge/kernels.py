"""Exercises whose function takes tensors and launches Triton kernels."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from workshop.executor.facts import Unused

from ..answer import is_starter, whole_numbers
from ..box.wire import CASTS, Input, Launch, Trace
from ..diagnosis import Observation, diagnose, error_map, overall, with_wrong_steps
from ..exercises.spec import Exercise, Strided
from ..text import listed, many
from ..verdict import CaseResult, Finding, Slug, Verdict, quoted
from . import compiling, nodes, slips, trials
from .autotuning import about_autotuning, about_idle_programs, about_the_grid
from .blanks import tells, with_blanks, wrong_blanks
from .consistency import LARGE_WORLD, inconsistency, kept, only_for_cards, with_the_line_of_nan, without_grids
from .differences import OF_ONE_LINE, blames_a_difference, blames_a_slip
from .trials import Drawn, Plans, Trials, trace_of, traces_of, types, verdict_of

NOT_ONE_BY_ONE = "The blanks are not judged one by one: the kernel was not launched, or is not the starter's."
FEW = 16  # elements of a case that may be right by chance
OF_A_ROUND = (
    "With another number of programs, all cases are right. So what a program does for one part of its work changes "
    "what it does for the next part."
)
ANEW = (
    "let each round of the loop that takes a program's next part begin anew: its sums, its pointers, its counters. The "
    "step of this loop is tl.num_programs(0)."
)
AROUND_THEM = "All blanks are right: the mistake is in a line around them, in the kernel or where it is launched."


class KernelJudgement:
    """One answer to an exercise of kind "kernel". `finding` asks STEPS in their order, until one finds something."""

    runs = Trials  # what plans and replays its cases

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.trials = self.runs(judge, exercise, source, seed)
        self.observations: list[Observation] = []
        self.findings: list[Finding | None] = []  # of the cases
        self.right_for_another_grid = False
        self.of_one_call = True  # whether the finding has its cause in the call that shows it
        self.large_plans: Plans = {}
        self.beyond_plans: Plans = {}

    # -- the steps: each returns what is wrong, or None ----------------------------------------------------

    def in_the_cases(self) -> Finding | None:
        """The exercise's cases: planned, replayed on the executor or the GPU, compared with the reference."""
        self.observations = self.trials.observe()
        self.findings = [diagnose(o) for o in self.observations]
        self.judge.launchers = types(self.trials.traces.values())
        found = only_for_cards(self.trials, self.observations) or overall(self.observations, self.findings)
        if found is None or self.exercise.kind == "jax" or self.trials.on_gpu:
            return found
        found = with_the_line_of_nan(self.trials, found)
        told = found if self.findings[0] else kept(self.trials, found)  # no call was before the first one
        self.of_one_call = told is found
        return told

    def on_other_machines(self) -> Finding | None:
        """The same calls on stand-ins for other machines, and after many other calls. Large sizes are planned there."""
        bounds, divisors = whole_numbers(self.source)
        sizes = trials.large_calls(self.exercise, self.trials.seed, bounds)
        if self.trials.on_gpu or self.exercise.kind == "jax":  # which is shown this machine only
            plans = self.trials.plan([self.source], sizes) if sizes else {}
            self.large_plans = {sizes[i]: plan for i, plan in plans.items()}
            return None
        beyond = trials.calls_beyond(self.trials, bounds, divisors)
        found, plans = inconsistency(self.trials, [*sizes, *beyond])
        self.large_plans, self.beyond_plans = ({d: plans[d] for d in each if d in plans} for each in (sizes, beyond))
        return found

    def as_an_operator(self) -> Finding | None:
        """What torch's own tests of operators and its compiler say, where the exercise asks for an operator."""
        return compiling.operator_finding(self.trials) if self.exercise.operator and not self.trials.on_gpu else None

    def in_the_compilers(self) -> Finding | None:
        """The later stages of the compilers, for everything that was launched on any machine."""
        planned = [trace for plans in (self.large_plans, self.beyond_plans) for trace in traces_of(plans).values()]
        traces = [*self.trials.traces.values(), *self.trials.elsewhere, *planned]
        return compiling.refusal(self.trials, traces)

    def at_large_sizes(self) -> Finding | None:
        here = self.trials.on_gpu or self.trials.unjudged  # planned on this machine: a stand-in lacks something
        device = {} if here else {"multiprocessors": LARGE_WORLD.multiprocessors}
        return trials.large_finding(self.trials, self.large_plans, **device)

    def beyond_its_numbers(self) -> Finding | None:
        """Sizes just beyond the whole numbers that stand in the source."""
        return trials.finding_beyond(self.trials, self.beyond_plans)

    def in_the_space(self) -> Finding | None:
        """Of an exercise about autotuning: the space of configurations."""
        return about_autotuning(self.trials) if self.exercise.timing_cases else None

    STEPS = (in_the_cases, on_other_machines, as_an_operator, in_the_compilers, in_the_space, at_large_sizes,
             beyond_its_numbers)  # fmt: skip

    def finding(self, until: int | None = None) -> tuple[Finding | None, int]:
        """What the first step that finds something finds, and its number. until: the last step that is asked."""
        for number, step in enumerate(self.STEPS[:until]):
            if found := step(self):
                return found, number
        return None, len(self.STEPS)

    def verdict(self) -> Verdict:
        finding, self.found_by = self.finding()
        wrong_blanks = self._wrong_blanks() if finding else None
        finding = self._explained(finding, wrong_blanks) if finding else None
        cases = (
            CaseResult(o.case.name, f and quoted(f, self.source), f and error_map(o))
            for o, f in zip(self.observations, self.findings)
        )
        names = self.exercise.blanks.names if self.exercise.blanks else ()
        right = [name for name in names if (finding is None if wrong_blanks is None else name not in wrong_blanks)]
        # every blank may be right and the whole still wrong: that is not full marks
        share = min(len(right), len(names) - 1) / len(names) if finding and wrong_blanks is not None else not finding
        return verdict_of(
            self, finding, cases,
            score=self.exercise.points * share,
            blanks={name: name in right for name in names},
            blank_findings=wrong_blanks or {},
            note=self._note(wrong_blanks) if finding else " ".join(filter(None, [self.trials.doubt, self._remark()])),
        )  # fmt: skip

    def _explained(self, finding: Finding, wrong_blanks: dict[str, Finding] | None) -> Finding:
        """The finding, explained by a launch, or in the words of the exercise: a space of configurations, or blanks."""
        if any(self.findings) and self.of_one_call and len(wrong_blanks or ()) < 2:
            # All that a starter lacks would be told at once: that is the answer.
            untouched = self.exercise.starter and is_starter(self.source, self.exercise.starter, self.exercise.entry)
            cases = enumerate(zip(self.observations, self.findings))
            launched = [(*case, self.trials.traces[i]) for i, case in cases if i in self.trials.traces]
            likely = with_a_stride_left_out(finding, launched)
            likely = with_what_is_unused(finding, self.trials.traces.values()) if likely is finding else likely
            likely = with_wrong_steps(finding, self.observations) if likely is finding else likely
            told = finding if untouched else self._beside_a_right_one(finding)
            explains = likely is not finding and likely.means and likely.line in (None, told.line)
            if told.means in OF_ONE_LINE and explains:
                told = replace(told, means=likely.means)
            finding = likely if told is finding else told
        if self.exercise.timing_cases:
            finding = about_the_grid(self.trials, finding)
        finding = with_what_is_rounded(finding, self.trials.traces.values())
        if self.of_one_call and not wrong_blanks:
            finding = with_what_was_launched(finding, self._trace_of(finding.case))
        return finding if wrong_blanks is None else with_blanks(finding, self.exercise.blanks, wrong_blanks)

    def _trace_of(self, case: str) -> Trace | None:
        """The trace of a call, by the name of its case."""
        if (number := self.trials.number(case)) is not None:
            return self.trials.traces[number]
        plans = (self.large_plans | self.beyond_plans).items()
        return next((trace_of(plan) for drawn, plan in plans if drawn.case.name == case), None)

    def _beside_a_right_one(self, finding: Finding) -> Finding:
        if self.trials.on_gpu or not self.judge.explains or not self.judge.seconds_left or "jit" not in self.source:
            return finding
        soon = self._soon_known()

        def quick(sources: list[str]) -> list[str]:
            return self.trials.right_sources(sources, soon)

        any_grid = "num_programs" in self.source and not finding.slug.of_right_numbers
        whole = partial(self._is_right, any_grid=any_grid)
        usual = partial(slips.usual, slug=finding.slug)
        told = blames_a_slip(self.source, finding, quick, whole, usual)
        if told is not finding:
            return told
        told = blames_a_difference(self.exercise.name, self.source, finding, quick, whole)
        clear = finding.by_numbers or finding.slug.of_right_numbers or finding.slug == Slug.TIMEOUT
        if told is finding and not clear:
            told = blames_a_slip(self.source, finding, quick, whole)
        if told is finding and self.right_for_another_grid:
            return replace(finding, means=OF_A_ROUND, advice=ANEW, second=None)
        return told

    def _soon_known(self) -> Drawn:
        """A case that is quickly run, and that fails if any does."""
        failing = [drawn for drawn in self.trials.cases if id(drawn.case) in self._failing]
        by_size = sorted(failing, key=lambda drawn: math.prod(drawn.shape))
        return next((d for d in by_size if math.prod(d.shape) >= FEW), (by_size or self.trials.cases)[0])

    def _is_right(self, source: str, any_grid: bool) -> bool:
        """Whether another source gets past the step that this answer fails. A change of the launch, such as too many
        programs, must get past all steps, and leave the launches of the cases that pass as they are. any_grid: the
        kernel must be right with any number of programs, so that another number hides the mistake."""
        other = type(self)(self.judge, self.exercise, source, self.trials.seed)
        of_the_host = _kernels(source) == _kernels(self.source)
        if other.finding(None if of_the_host else self.found_by + 1)[0] is not None:
            return False
        if not of_the_host:
            return True
        ours, theirs = self.trials.traces, other.trials.traces
        both = ours.keys() & theirs.keys()
        passing = [i for i in both if id(self.trials.cases[i].case) not in self._failing]
        chosen = [[(each.grid, each.numbers) for i in passing for each in of[i].launches] for of in (ours, theirs)]
        if chosen[0] != chosen[1]:
            return False
        any_grid = any_grid and ours.keys() == theirs.keys()
        hidden = any_grid and all(without_grids(ours[i]) == without_grids(theirs[i]) for i in both)
        self.right_for_another_grid |= hidden
        return not hidden

    @property
    def _failing(self) -> set[int]:
        """The ids of the cases that fail."""
        return {id(o.case) for o, f in zip(self.observations, self.findings) if f}

    def _remark(self) -> str:
        remark = self.exercise.remark(list(self.trials.traces.values()))
        remark = remark or (about_idle_programs(self.trials) if self.exercise.timing_cases else "")
        in_64_bits = "int64" in self.exercise.starter  # the lesson cares for large tensors
        return remark or (about_products(self.trials.traces.values()) if in_64_bits else "")

    def _note(self, wrong_blanks: dict[str, Finding] | None) -> str:
        if self.exercise.blanks and wrong_blanks is None:
            return NOT_ONE_BY_ONE
        told = any(f and tells(o.case.about) for o, f in zip(self.observations, self.findings))
        return AROUND_THEM if wrong_blanks == {} and told else ""

    def _wrong_blanks(self) -> dict[str, Finding] | None:
        """The blanks that are wrong; None if they cannot be judged one by one."""
        blanks = self.exercise.blanks
        launched = {launch.kernel for trace in self.trials.traces.values() for launch in trace.launches}
        refused = {o.trouble.kernel for o in self.observations if o.trouble}  # kernels whose launch failed
        if not blanks or blanks.kernel not in launched | refused:
            return None
        return wrong_blanks(self.trials)


def _kernels(source: str) -> list[str]:
    """The kernels of a source, as text that does not tell where they stand."""
    return [ast.dump(each) for each in ast.walk(ast.parse(source)) if nodes.is_kernel(each)]


# -- likely causes: what a kernel got or computed and nothing used, and strides that it did not get ----------
# See workshop.executor.facts.

# By kind: what happened and what to try. {0}: a name, {1}: the kernel, {2}: what is compared.
_TOLD: dict[str, tuple[str, str]] = {
    "parameter": (
        "No line of {1} uses {0}.",
        "use {0} where it belongs: in an address, in a mask, or in what is computed.",
    ),
    "loop": (
        "Nothing in this loop uses its variable, so each step does the same.",
        "add the loop's variable to the offsets: start + tl.arange(0, BLOCK_SIZE).",
    ),
    "step": (
        "This line gives its variable a new value in each step of the loop, and forgets the value of the step before: "
        "only the last step counts.",
        "use the value so far in this line, too: add to it, or take tl.maximum of it and the new value.",
    ),
    "line": (
        "Nothing uses what this line computes.",
        "use its value in the lines below. A mask counts only in a load or store that gets it: mask=mask.",
    ),
    "mask": (
        "The mask of this line is the same along axis {0} of the block: it compares only {2}.",
        "compare both: mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols).",
    ),
    "one mask": (
        "The mask of this line is one value for the whole block: what it compares is the same in all lanes.",
        "compare the offsets that are added to the pointer: mask = offsets < n.",
    ),
}
_ADVISED = {Slug.OVERFLOW, Slug.NAN, Slug.RELIES_ON_MASKED_LANES, Slug.NOT_NORMALISED}  # with what to compute
_OUTSIDE = {Slug.OUT_OF_BOUNDS_LOAD, Slug.OUT_OF_BOUNDS_STORE}
_OF_PLACES = {*_OUTSIDE, Slug.UNWRITTEN_OUTPUT, Slug.TAIL_WRONG, Slug.WRONG_PROGRAM_ID, Slug.WRONG_VALUE}
MOST_LAUNCHES = 2  # that are told
_COMPARED = {"0": "columns", "1": "rows"}


def with_what_is_unused(finding: Finding, traces: Iterable[Trace]) -> Finding:
    """The finding with the likely cause. One that is sure keeps its advice."""
    if not _blames_kernels(finding):
        return finding
    kernels = list(_by_kernel(traces))
    kinds = ["mask", "parameter", "step", "loop", "line"] if finding.slug in _OUTSIDE else [*_TOLD][:4]
    has_parameter = any(each.kind == "parameter" for _, unused in kernels for each in unused)
    for wanted in sorted(kinds, key=lambda kind: kind == "mask" and has_parameter):
        for kernel, unused in kernels:
            for each in unused:
                if each.kind == wanted and (wanted != "mask" or each.line == finding.line and not finding.sure):
                    return _told(finding, kernel, each.kind, each.line, each.name)
    return finding


def with_what_is_rounded(finding: Finding, traces: Iterable[Trace]) -> Finding:
    """The finding of numbers that are nearly right, with the lines that round them, or with the word that none does.

    Where torch casts, and in tensors between launches, numbers may be rounded in memory: there nothing is said.
    """
    traces = list(traces)
    facts = [each for trace in traces for launch in trace.launches for each in launch.unused]
    dots = sorted({(each.line, int(each.name)) for each in facts if each.kind == "dot"})
    line, times = max(dots, key=lambda each: each[1], default=(0, 0))
    if times > 1 and _blames_kernels(finding) or times == 1 and finding.slug == Slug.LOW_PRECISION:
        what = f"of so few that a card adds each {times} times" if times > 1 else "which rounds float32 to TF32"
        means = f"Triton's compiler makes a tl.dot of this sum of products, {what}."
        advice = 'write tl.dot(a, b, acc, input_precision="ieee") in its place, of 16 products or more.'
        return replace(finding, means=means, advice=advice, line=line, code="")
    if finding.slug != Slug.LOW_PRECISION or finding.sure or finding.line:
        return finding
    found = {each.line for each in facts if each.kind == "half"}
    if lines := sorted(found - {0}):
        where = f"line{'s' * (len(lines) > 1)} {listed(map(str, lines))}"
        means = f"Numbers of 16 bits are computed with in {where}: three digits."
        return replace(finding, means=means, line=lines[0])
    casts = any(getattr(step, "op", "") in CASTS for t in traces for step in t.steps)
    if found or casts or any(map(_in_short_memory, traces)):
        return finding
    means = "No line of the kernels computes in half precision: small numbers are left out, or count twice, or numbers "
    means += "become whole ones. Or tl.dot rounds float32 to TF32."
    advice = "look at each condition, limit and conversion: what is left out must be 0, not only small."
    return replace(finding, means=means, advice=advice)


def with_what_was_launched(finding: Finding, trace: Trace | None) -> Finding:
    """The finding of wrong places, where no repair is known, with the numbers that the last launches got."""
    if trace is None or finding.repair or finding.slug not in _OF_PLACES:
        return finding
    said = [_launched(launch) for launch in trace.launches[-MOST_LAUNCHES:]]
    return replace(finding, means=" ".join(filter(None, [finding.means, *said])))


def _launched(launch: Launch) -> str:
    numbers = launch.numbers.items()
    given = ", ".join(f"{name} = {value:g}" if type(value) is float else f"{name} = {value}" for name, value in numbers)
    return f"{launch.kernel} ran in {many(launch.programs, 'program', 'programs')}{' with ' * bool(given)}{given}."


def _in_short_memory(trace: Trace) -> bool:
    """Whether a kernel gets a tensor of 16 bits that is neither an input nor the result."""
    given = (each for launch in trace.launches for each in launch.given if each.kind in ("*fp16", "*bf16"))
    known = {out for step in trace.steps if isinstance(step, Input) for out in step.out} | {trace.result}
    return any(each.value.get("t") not in known for each in given if isinstance(each.value, dict))


def about_products(traces: Iterable[Trace]) -> str:
    """A remark about a right answer whose addresses overflow in tensors larger than those of the cases."""
    found = {u.line: u.name for t in traces for each in t.launches for u in each.unused if u.kind == "product"}
    if not found:
        return ""
    lines, names = sorted(found), listed(dict.fromkeys(found[line] for line in sorted(found)))
    where = f"line{'s' * (len(lines) > 1)} {listed(map(str, lines))}"
    return (
        f"The product with {names} in {where} has 32 bits: it overflows in a tensor of more than 2³¹ elements. There, "
        "convert the other factor with .to(tl.int64)."
    )


def _blames_kernels(finding: Finding) -> bool:
    """Whether kernels ran, and did something wrong."""
    return finding.slug.rank > Slug.RUNTIME_ERROR.rank and not finding.slug.of_right_numbers


def _told(finding: Finding, kernel: str, kind: str, line: int, name: str) -> Finding:
    told = _TOLD["one mask" if (kind, name) == ("mask", "-1") else kind]
    means, advice = (text.format(name, kernel, _COMPARED.get(name, "the other axes")) for text in told)
    shown = {"line": line, "code": ""} if line else {}
    if finding.sure:
        return replace(finding, means=f"{finding.means} {means}", **shown)
    if kind == "line" and finding.slug in _ADVISED:
        return replace(finding, means=f"{means} {finding.means}", **shown)
    return replace(finding, means=f"{means} {finding.means}".strip(), advice=advice, second=None, **shown)


def _by_kernel(traces: Iterable[Trace]) -> Iterator[tuple[str, list[Unused]]]:
    """Each kernel, and what is unused in all of its launches, the lowest line first."""
    kernels: dict[str, list[Launch]] = {}
    for launch in (launch for trace in traces for launch in trace.launches):
        kernels.setdefault(launch.kernel, []).append(launch)
    for kernel, launches in kernels.items():
        found = dict.fromkeys(each for launch in launches for each in _of(launch))
        common = [each for each in found if all(_is_in(each, launch) for launch in launches)]
        names = " and ".join(each.name for each in common if each.kind == "parameter")
        rest = [each for each in common if each.kind != "parameter"]
        yield kernel, [Unused("parameter", 0, names)] * bool(names) + sorted(rest, key=lambda each: -each.line)


def _of(launch: Launch) -> list[Unused]:
    """What is unused in a launch. An autotuner chooses by the parameters of its key: its kernel need not use them."""
    key = launch.tuned.key if launch.tuned else ()
    return [each for each in launch.unused if each.kind in _TOLD and each.name not in key]


def _is_in(each: Unused, launch: Launch) -> bool:
    """Whether it is unused in a launch, too. A parameter may be a constant there, and a cast that does nothing is in no
    line, so the last line that makes a value of a step differs."""
    unused = _of(launch)
    if each.kind == "step":
        return any(other.kind == "step" for other in unused)
    given = {argument.label for argument in launch.given}
    return each in unused or each.kind == "parameter" and each.name not in given


def with_a_stride_left_out(finding: Finding, cases: Iterable[tuple[Observation, Finding | None, Trace]]) -> Finding:
    """The finding with the tensor whose strides no launch passes, if only cases fail where they would count.

    cases: what was observed, what was found and what was launched.
    """
    if finding.sure or not _blames_kernels(finding):
        return finding
    axes: dict[str, set[int]] = {}  # by the tensor, in cases that fail
    right, own = set(), {}
    for o, found, trace in cases:
        for name, left in _left_out(o, trace):
            if found is None:
                right.add(name)
            else:
                axes.setdefault(name, set()).update(left)
                own |= {name: o} if o.case.name == finding.case else {}
    for name, o in own.items():
        if name not in right:
            stride = tuple(o.arguments[o.exercise.parameters.index(name)].stride)
            wanted = listed(f"{name}.stride({axis})" for axis in sorted(axes[name]))
            none = wanted.replace(" and ", " and no ")
            means = f"{name} has the strides {stride} here, and the launch passes no {none}."
            advice = f"pass {wanted} to the kernel, and use {'it' if len(axes[name]) == 1 else 'them'} to read {name}."
            return replace(finding, means=means, advice=advice, second=None)
    return finding


def _left_out(o: Observation, trace: Trace) -> Iterator[tuple[str, list[int]]]:
    """The tensors that a launch gets, and which of their strides nothing that it gets can be made of."""
    arguments = [value for launch in trace.launches for value in launch.args.values()]
    numbers = {value for value in arguments if type(value) is int}
    passed = [value["t"] for value in arguments if isinstance(value, dict) and "t" in value]
    given = [(name, a) for name, a in zip(o.exercise.parameters, o.arguments) if isinstance(a, Strided)]
    for step in trace.steps:
        if isinstance(step, Input) and step.index < len(given) and {*step.out} & {*passed}:
            name, a = given[step.index]
            each = enumerate(zip(a.values.shape, a.stride, Strided(a.values).stride))
            steps = {axis: stride for axis, (size, stride, usual) in each if size > 1 and stride not in (0, 1, usual)}
            if axes := [axis for axis, step in steps.items() if not any(n and n % step == 0 for n in numbers)]:
                yield name, axes
