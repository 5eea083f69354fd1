"""The judge: draws inputs, asks the box, compares, explains.

It never imports, unpickles or executes anything of a learner's. The learner's source goes into the box as text;
traces, bytes and short reports come back, after the process that made them is dead. See autograder/box.
"""

from __future__ import annotations

import math
import os
import secrets
from dataclasses import replace

import torch

from ..box import Box, BoxError, Outcome
from ..box.wire.requests import Request
from ..exercises import find
from ..exercises.spec import Exercise
from ..verdict import GRADER_ERROR, Finding, Verdict
from . import proof
from .jax import JaxJudgement, JaxMissing
from .kernels import KernelJudgement
from .proof import CannotJudge
from .values import ValueJudgement

__all__ = ["BoxError", "CannotJudge", "JaxMissing", "Judge", "this_backend"]

MAX_SOURCE = 200_000
ANSWER_LIMITS = 4  # all jobs of an answer together, in limits of the exercise
# The interpreter's compiler, clock and devices are not the card's.
CARD_DECIDES = {"compile-error", "runtime-error", "timeout", "crash", "out-of-memory", "wrong-device"}


def this_backend() -> str:
    """What kernels run on here: "interpreter", "cuda" or "hip"."""
    if os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available():
        return "interpreter"
    return "hip" if torch.version.hip else "cuda"


class Judge:
    """A context manager that owns its boxes. Not for several threads at once: make one judge each.

    On a GPU an answer is tried on the interpreter first: there every lane of every access is checked, which
    no card does. What it finds is final; what it cannot know, the card decides.

    confine=False runs the code with the caller's rights: for one's own code only. Raises lockdown.Unconfined
    where confinement is asked for and this machine has none.
    """

    def __init__(self, confine: bool = True, backend: str | None = None):
        self.backend = backend or this_backend()
        self.box = Box(self.backend, confine)
        self.template_traces: dict[str, dict[int, dict]] = {}
        self.seconds_left = math.inf
        self.proven: set[str] = set()
        self.checker = Judge(confine, "interpreter") if self.backend != "interpreter" else None

    def __enter__(self) -> Judge:
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts the boxes without waiting for them."""
        self.box.start()
        if self.checker:
            self.checker.start()

    def close(self):
        self.box.close()
        if self.checker:
            self.checker.close()

    def judge(self, name: str, source: str, seed: int | None = None) -> Verdict:
        """The verdict on `source` as an answer to exercise `name`. `seed` repeats an earlier draw of inputs.

        Raises UnknownExercise, JaxMissing, BoxError where the box does not work on this machine, and CannotJudge
        where it works and misjudges.
        """
        self.prove(name)
        return self.verdict_on(find(name), source, seed)

    def prove(self, name: str) -> None:
        """Raises CannotJudge where known answers of the kind of exercise `name` get wrong verdicts here."""
        exercise = find(name)
        for kind in [exercise.kind] + ["compiler"] * exercise.compiles:
            if kind not in self.proven:
                proof.prove(self, kind)
                self.proven.add(kind)

    def verdict_on(self, exercise: Exercise, source: str, seed: int | None = None) -> Verdict:
        """As `judge`, for an exercise that need not be one of the course's, and without a proof."""
        try:
            return self._judge(exercise, source, seed)
        except (BoxError, JaxMissing):
            raise
        except Exception as error:
            finding = Finding(
                GRADER_ERROR,
                f"The judge failed: {type(error).__name__}: {str(error)[:300]}",
                "This is a fault of the judge, whatever the answer is.",
                "send the answer to the authors of the course.",
            )
            return self._verdict(exercise, finding)

    def _judge(self, exercise: Exercise, source: str, seed: int | None) -> Verdict:
        if len(source) > MAX_SOURCE:
            finding = Finding("runtime-error", f"The answer is longer than {MAX_SOURCE} characters.")
            return self._verdict(exercise, finding)
        if not source.strip():
            finding = Finding("not-attempted", "There is no code.", advice=f"define {exercise.signature}.")
            return self._verdict(exercise, finding)
        seed = secrets.randbits(62) if seed is None else seed
        self.seconds_left = ANSWER_LIMITS * exercise.limit_seconds
        if self.checker and exercise.kind != "value" and (found := self._found_by_checker(exercise, source, seed)):
            return found
        return _KINDS[exercise.kind](self, exercise, source, seed).verdict()

    def _found_by_checker(self, exercise: Exercise, source: str, seed: int) -> Verdict | None:
        """The interpreter's verdict, where it is one that the card would not overrule."""
        try:
            verdict = self.checker._judge(exercise, source, seed)
        except BoxError:  # a Triton whose interpreter does not run here: the card alone decides
            self.checker.close()
            self.checker = None
            return None
        if verdict.passed or verdict.diagnosis in CARD_DECIDES:
            return None
        return replace(verdict, backend=self.backend, note="found by the memory checker, on the interpreter")

    def run(self, exercise: Exercise, request: Request, tensors: bytes = b"", output_size: int = 0) -> Outcome:
        """One job of an answer, in what is left of the answer's time.

        What is limited is computing time, where a loaded machine must not change a verdict.
        """
        limit = exercise.limit_seconds
        seconds, cpu_seconds = (3 * limit, limit) if self.backend == "interpreter" else (2 * limit, math.inf)
        outcome = self.box.run(request, tensors, output_size, min(seconds, self.seconds_left), cpu_seconds)
        self.seconds_left = max(self.seconds_left - outcome.seconds, 0.0)
        return outcome

    def _verdict(self, exercise: Exercise, finding: Finding) -> Verdict:
        blanks = dict.fromkeys(exercise.blanks.names, False) if exercise.blanks else {}
        return Verdict(exercise.name, False, 0, exercise.points, self.backend, finding, (), blanks)


_KINDS = {"kernel": KernelJudgement, "value": ValueJudgement, "jax": JaxJudgement}
