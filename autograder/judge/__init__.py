"""The judge draws inputs, sends jobs to the box, compares the results and explains them.

It never imports, unpickles or executes anything from a learner. The learner's source goes into the box as text. The
judge reads traces, bytes and short reports only after the process that made them is dead. See autograder/box.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Callable
from dataclasses import replace

import torch

from workshop.backend import interpreting
from workshop.executor.launch import one_thread

from ..answer import from_history, is_starter, line_with_dots, unfilled
from ..box import Box, BoxError, Outcome, Overloaded
from ..box.wire import Request
from ..exercises import EXERCISES
from ..exercises.spec import Exercise
from ..verdict import GRADER_ERROR, Finding, Slug, Verdict
from . import proof
from .jax import JaxJudgement, JaxMissing
from .kernels import KernelJudgement
from .proof import CannotJudge
from .values import ValueJudgement

__all__ = ["BoxError", "CannotJudge", "JaxMissing", "Judge", "this_backend"]

MAX_SOURCE = 200_000
ANSWER_LIMITS = 2  # time for all jobs of an answer together, as a multiple of the exercise's limit
# These depend on the compiler, the clock and the device, which differ between executor and GPU.
CARD_DECIDES = {"compile-error", "runtime-error", "timeout", "crash", "out-of-memory", "wrong-device"}


def this_backend() -> str:
    """The backend that kernels run on here: "interpreter", "cuda" or "hip"."""
    if interpreting() or not torch.cuda.is_available():
        return "interpreter"
    return "hip" if torch.version.hip else "cuda"


class Judge:
    """A context manager that owns its boxes. Only one thread may use a judge: make one judge per thread.

    On a machine with a GPU, an answer runs on the executor first, because the executor checks every lane of every
    access and a GPU does not. The executor's findings are final, except for those in CARD_DECIDES. A function of
    plain values runs there only.

    confine=False runs the code with the caller's rights: use it only for your own code. Raises lockdown.Unconfined if
    confinement is requested and this machine does not support it.
    """

    def __init__(self, confine: bool = True, backend: str | None = None, early: Box | None = None):
        """early: a box that was started before torch was imported here. It is closed if it is for another backend."""
        self.backend = backend or this_backend()
        if early and early.backend != self.backend:
            early.close()
            early = None
        self.box = early or Box(self.backend, confine)
        self.seconds_left = math.inf  # for the rest of the answer's jobs
        self.explains = True  # looks for what to write in the place of a mistake
        self.launchers: tuple[tuple[str, ...], ...] = ()  # of the answer's kernels, see box.wire.Start
        self.proven: set[str] = set()
        self.say: Callable[[str], None] = lambda words: None  # told how far a judgement is
        self.checker = Judge(confine, "interpreter") if self.backend != "interpreter" else None
        self.compiles = self.backend == "interpreter"  # on a GPU, the GPU's own compiler decides

    def __enter__(self) -> Judge:
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts the boxes and does not wait until they are ready."""
        self.box.start()
        if self.checker:
            self.checker.start()

    def close(self):
        self.box.close()
        if self.checker:
            self.checker.close()

    def judge(self, name: str, source: str, seed: int | None = None) -> Verdict:
        """The verdict on `source` as an answer to exercise `name`. `seed` repeats an earlier draw of inputs.

        Raises UnknownExercise, JaxMissing, BoxError if the box does not work on this machine, and CannotJudge if the
        judge gives wrong verdicts.
        """
        self.prove(name)
        return self.verdict_on(EXERCISES[name], source, seed)

    def prove(self, name: str) -> None:
        """Raises CannotJudge if known answers get wrong verdicts here. They are of the same kind as exercise `name`."""
        exercise = EXERCISES[name]
        for kind in [exercise.kind] + ["compiler"] * exercise.compiles:
            if kind not in self.proven:
                self.say("trying known answers, to see that the judge works here")
                say, self.say, self.explains = self.say, lambda words: None, False
                try:
                    proof.prove(self, kind)
                finally:
                    self.say, self.explains = say, True
                self.proven.add(kind)

    def verdict_on(self, exercise: Exercise, source: str, seed: int | None = None) -> Verdict:
        """As `judge`, but without a proof, and `exercise` may be one that is not in the course."""
        self.seconds_left, self.launchers = ANSWER_LIMITS * exercise.limit_seconds, ()
        try:
            with one_thread():
                return self._judge(exercise, source, seed)
        except (BoxError, JaxMissing):
            raise
        except Overloaded as error:
            told = str(error), "The answer is not the cause.", "close other programs, then check again."
        except Exception as error:
            told = (
                f"The judge failed: {type(error).__name__}: {str(error)[:300]}",
                "This is an error of the judge, not of the answer.",
                "send the answer to the authors of the course.",
            )
        return self._verdict(exercise, Finding(GRADER_ERROR, *told))

    def _judge(self, exercise: Exercise, source: str, seed: int | None) -> Verdict:
        if len(source) > MAX_SOURCE:
            finding = Finding("runtime-error", f"The answer is longer than {MAX_SOURCE} characters.")
            return self._verdict(exercise, finding)
        if not source.strip():
            finding = Finding("not-attempted", "There is no code.", advice=f"define {exercise.signature}.")
            return self._verdict(exercise, finding)
        source = from_history([source], exercise.entry) or source  # not left-over prints or benchmarks
        seed = secrets.randbits(62) if seed is None else seed
        if self.checker and (found := self._found_by_checker(exercise, source, seed)):
            return found
        return unfinished(_KINDS[exercise.kind](self, exercise, source, seed).verdict(), exercise, source)

    def _found_by_checker(self, exercise: Exercise, source: str, seed: int) -> Verdict | None:
        """The executor's verdict if it is final; None if the GPU must decide, in the rest of the answer's time."""
        # The GPU compiles the configuration that wins, and an autotuner passes over those that fail. All must compile.
        self.checker.compiles = "autotune" in source
        self.checker.seconds_left, self.checker.launchers = self.seconds_left, ()
        try:
            self.checker.say = self.say
            verdict = self.checker._judge(exercise, source, seed)
            self.seconds_left, self.launchers = self.checker.seconds_left, self.checker.launchers
        except BoxError:  # the executor does not run here: only the GPU decides
            self.checker.close()
            self.checker = None
            return None
        if exercise.kind == "value":  # it needs no card
            return replace(verdict, backend=self.backend)
        final = verdict.diagnosis not in CARD_DECIDES or (
            self.checker.compiles and verdict.diagnosis == Slug.COMPILE_ERROR
        )
        if verdict.passed or not final:
            return None
        return replace(verdict, backend=self.backend, note="found by the memory checker, on the interpreter")

    def run(
        self, exercise: Exercise, request: Request, tensors: bytes = b"", output_size: int = 0, share: float = 1.0
    ) -> Outcome:
        """Runs one job of an answer in the rest of the answer's time, and in at most `share` of the exercise's limit.

        The time that the job waits for a core is not charged, so that a loaded machine does not change a verdict. On
        the executor, all threads of the job together may compute for this time.
        """
        on_gpu = self.backend != "interpreter"  # where a job compiles first, and others may use the card
        seconds = min(share * exercise.limit_seconds * (2 if on_gpu else 1), self.seconds_left)
        cpu_seconds = math.inf if on_gpu else seconds
        self.box.reported = lambda count: self.say(_in_words(request, count, seconds))
        self.box.reported(0)
        outcome = self.box.run(request, tensors, output_size, seconds, cpu_seconds, self.launchers if on_gpu else ())
        self.seconds_left = max(self.seconds_left - outcome.seconds, 0.0)
        return outcome

    def _verdict(self, exercise: Exercise, finding: Finding) -> Verdict:
        blanks = dict.fromkeys(exercise.blanks.names, False) if exercise.blanks else {}
        return Verdict(exercise.name, False, 0, exercise.points, self.backend, finding, (), blanks)


def unfinished(verdict: Verdict, exercise: Exercise, source: str) -> Verdict:
    """The verdict, with another name if the answer that fails is still the starter, or has `...` in it."""
    finding = verdict.finding
    if finding is None or finding.slug in (GRADER_ERROR, Slug.SYNTAX_ERROR):
        return verdict
    if exercise.rests_on and (found := _unsolved_before(finding, exercise, source)):
        return replace(verdict, finding=found)
    if finding.slug == Slug.NOT_ATTEMPTED:
        return verdict
    if exercise.starter and is_starter(source, exercise.starter, exercise.entry):
        happened = f"The starter is unchanged. {finding.happened}"
        return replace(verdict, finding=replace(finding, slug=Slug.NOT_ATTEMPTED, happened=happened, second=None))
    if line := line_with_dots(source, exercise.entry):
        happened = f"Line {line} still has `...` in the place of code."
        return replace(verdict, finding=Finding(Slug.NOT_ATTEMPTED, happened, advice="write what belongs there."))
    return verdict


def _unsolved_before(finding: Finding, exercise: Exercise, source: str) -> Finding | None:
    """The finding about the exercise whose answer this one takes, if that is the starter still, or is missing."""
    before = EXERCISES[exercise.rests_on]
    means = f"{exercise.name} uses your answer to {before.name}."
    missing = re.search(r"name '(\w+)' is not defined", finding.happened)
    if missing and re.search(rf"^def {missing[1]}\(", before.starter, re.M):
        happened = f"NameError: name '{missing[1]}' is not defined. It belongs to {before.name}."
        advice = f"run the cell of {before.name}, then this one. If it has another name there, write that name here."
        return replace(finding, happened=happened, means=means, advice=advice)
    if name := unfilled(source, before.starter, exercise.entry):
        happened = f"{name} is still as in the starter of {before.name}: its blanks are not filled."
        return Finding(Slug.NOT_ATTEMPTED, happened, means, f"solve {before.name} first. Run its cell, then this one.")
    return None


def _in_words(request: Request, count: int, seconds: float) -> str:
    """How far a job is, after `count` reports. Learners' code may have sent them: nothing rests on this number."""
    of = len(getattr(request, "cases", ()))
    what, each = _STAGES.get(request.kind, "running your code"), "case"
    if len(getattr(request, "sources", ())) > 1:
        what, each = "trying each blank by itself", "trial"
    where = f", {each} {min(count + 1, of)} of {of}" if of > 1 else ""
    return f"{what}{where}. A loop is stopped after {seconds:.0f} s of computing."


_STAGES = {
    "plan": "recording your host function's launches",
    "replay": "running your kernels",
    "jax-plan": "tracing your function",
}
_KINDS = {"kernel": KernelJudgement, "value": ValueJudgement, "jax": JaxJudgement}
