"""Exercises whose function takes tensors and launches Triton kernels."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import partial

from ..answer import is_starter
from ..box.wire.requests import PlanRequest
from ..diagnosis import Observation, diagnose, error_map, overall, with_wrong_steps
from ..exercises.spec import Exercise
from ..verdict import CaseResult, Finding, Slug, Verdict, quoted
from . import compiling, large, nodes, slips
from .autotuning import about_autotuning, about_idle_programs, about_the_grid
from .blanks import tells, with_blanks, wrong_blanks
from .consistency import LARGE_WORLD, inconsistency, only_for_cards
from .differences import OF_ONE_LINE, blames_a_difference, blames_a_slip
from .trials import Drawn, Trials, traces_of, types, verdict_of
from .unused import about_products, with_a_stride_left_out, with_what_is_unused

NOT_ONE_BY_ONE = "The blanks are not judged one by one: the kernel was not launched, or is not the starter's."
FEW = 16  # elements of a case that may be right by chance
AROUND_THEM = "All blanks are right: the mistake is in a line around them, in the kernel or where it is launched."


class KernelJudgement:
    """One answer to an exercise of kind "kernel". `finding` asks STEPS in their order, until one finds something."""

    def __init__(self, judge, exercise: Exercise, source: str, seed: int):
        self.judge, self.exercise, self.source = judge, exercise, source
        self.trials = Trials(judge, exercise, source, seed)
        self.observations: list[Observation] = []
        self.findings: list[Finding | None] = []  # of the cases
        self.large: list[large.LargeDrawn] = []
        self.large_plans: dict = {}
        self.beyond: list[Drawn] = []
        self.beyond_plans: dict = {}

    # -- the steps: each returns what is wrong, or None ----------------------------------------------------

    def in_the_cases(self) -> Finding | None:
        """The exercise's cases: planned, replayed on the executor or the GPU, compared with the reference."""
        self.observations = self.trials.observe()
        self.findings = [diagnose(o) for o in self.observations]
        self.judge.launchers = types(self.trials.traces.values())
        return only_for_cards(self.trials, self.observations) or overall(self.observations, self.findings)

    def on_other_machines(self) -> Finding | None:
        """The same calls on stand-ins for other machines, and after many other calls. Large sizes are planned there."""
        self.large = large.drawn(self.exercise, self.trials.seed, large.whole_numbers(self.source)[0])
        sizes = [case.planned(number) for number, case in enumerate(self.large)]
        if self.trials.on_gpu:
            request = PlanRequest((self.source,), self.exercise.entry, tuple(sizes))
            self.large_plans = self.trials.ask(request) if sizes else {}
            return None
        self.beyond = large.beyond(self.trials)
        found, plans = inconsistency(self.trials, [*sizes, *(each.planned() for each in self.beyond)])
        self.large_plans = {i: each for i, each in plans.items() if i < len(sizes)}
        self.beyond_plans = {i - len(sizes): each for i, each in plans.items() if i >= len(sizes)}
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
        device = {} if self.trials.on_gpu else {"multiprocessors": LARGE_WORLD.multiprocessors}
        return large.finding(self.trials, self.large, self.large_plans, **device)

    def beyond_its_numbers(self) -> Finding | None:
        """Sizes just beyond the whole numbers that stand in the source."""
        return large.finding_beyond(self.trials, self.beyond, self.beyond_plans) if self.beyond else None

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
            CaseResult(o.case.name, quoted(f, self.source), error_map(o) if f else None)
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
            note=self._note(wrong_blanks) if finding else self._remark(),
        )  # fmt: skip

    def _explained(self, finding: Finding, wrong_blanks: dict[str, Finding] | None) -> Finding:
        """The finding, explained by a launch, or in the words of the exercise: a space of configurations, or blanks."""
        if any(self.findings) and len(wrong_blanks or ()) < 2:
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
        return finding if wrong_blanks is None else with_blanks(finding, self.exercise.blanks, wrong_blanks)

    def _beside_a_right_one(self, finding: Finding) -> Finding:
        if self.trials.on_gpu or not self.judge.explains or not self.judge.seconds_left or "jit" not in self.source:
            return finding
        soon = self._soon_known()

        def quick(sources: list[str]) -> list[str]:
            return self.trials.right_sources(sources, soon)

        usual = partial(slips.usual, slug=finding.slug)
        told = blames_a_slip(self.source, finding, quick, self._is_right, usual)
        if told is not finding:
            return told
        told = blames_a_difference(self.exercise.name, self.source, finding, quick, self._is_right)
        clear = finding.by_numbers or finding.slug.of_right_numbers or finding.slug == Slug.TIMEOUT
        if told is not finding or clear:
            return told
        return blames_a_slip(self.source, finding, quick, self._is_right)

    def _soon_known(self) -> Drawn:
        """A case that is quickly run, and that fails if any does."""
        wrong = {id(o.case) for o, f in zip(self.observations, self.findings) if f}
        failing = [drawn for drawn in self.trials.cases if id(drawn.case) in wrong]
        by_size = sorted(failing, key=lambda drawn: drawn.expected.numel())
        return next((d for d in by_size if d.expected.numel() >= FEW), (by_size or self.trials.cases)[0])

    def _is_right(self, source: str) -> bool:
        """Whether another source gets past the step that this answer fails. A change of the launch, such as too many
        programs, must get past all steps."""
        other = KernelJudgement(self.judge, self.exercise, source, self.trials.seed)
        until = None if _kernels(source) == _kernels(self.source) else self.found_by + 1
        return other.finding(until)[0] is None

    def _remark(self) -> str:
        """About a right answer."""
        remark = self.exercise.remark(list(self.trials.traces.values()))
        remark = remark or (about_idle_programs(self.trials) if self.exercise.timing_cases else "")
        in_64_bits = "int64" in self.exercise.starter  # the lesson cares for large tensors
        return remark or (about_products(self.trials.traces.values()) if in_64_bits else "")

    def _note(self, wrong_blanks: dict[str, Finding] | None) -> str:
        """About the blanks of a wrong answer."""
        if self.exercise.blanks and wrong_blanks is None:
            return NOT_ONE_BY_ONE
        told = any(f and tells(o.case.about) for o, f in zip(self.observations, self.findings))
        return AROUND_THEM if wrong_blanks == {} and told else ""

    def _wrong_blanks(self) -> dict[str, Finding] | None:
        """The blanks that are wrong; None if they cannot be judged one by one."""
        blanks = self.exercise.blanks
        refused = {o.trouble.kernel for o in self.observations if o.trouble}  # kernels whose launch failed
        if not blanks or blanks.kernel not in self.trials.launched | refused:
            return None
        return wrong_blanks(self.trials)


def _kernels(source: str) -> list[str]:
    """The kernels of a source, as text that does not tell where they stand."""
    return [ast.dump(each) for each in ast.walk(ast.parse(source)) if nodes.is_kernel(each)]
