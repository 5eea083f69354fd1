"""The judge draws inputs, sends jobs to the box, compares the results and explains them.

It never imports, unpickles or executes anything from a learner. The learner's source goes into the box as text. The
judge reads traces, bytes and short reports only after the process that made them is dead. See autograder/box.
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
ANSWER_LIMITS = 4  # time for all jobs of an answer together, as a multiple of the exercise's limit
# These depend on the compiler, the clock and the device, which differ between interpreter and GPU.
CARD_DECIDES = {"compile-error", "runtime-error", "timeout", "crash", "out-of-memory", "wrong-device"}


def this_backend() -> str:
    """The backend that kernels run on here: "interpreter", "cuda" or "hip"."""
    if os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available():
        return "interpreter"
    return "hip" if torch.version.hip else "cuda"


class Judge:
    """A context manager that owns its boxes. Only one thread may use a judge: make one judge per thread.

    On a machine with a GPU, an answer runs on the interpreter first, because the interpreter checks every lane of every
    access and a GPU does not. The interpreter's findings are final, except for those in CARD_DECIDES.

    confine=False runs the code with the caller's rights: use it only for your own code. Raises lockdown.Unconfined if
    confinement is requested and this machine does not support it.
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
        return self.verdict_on(find(name), source, seed)

    def prove(self, name: str) -> None:
        """Raises CannotJudge if known answers get wrong verdicts here. They are of the same kind as exercise `name`."""
        exercise = find(name)
        for kind in [exercise.kind] + ["compiler"] * exercise.compiles:
            if kind not in self.proven:
                proof.prove(self, kind)
                self.proven.add(kind)

    def verdict_on(self, exercise: Exercise, source: str, seed: int | None = None) -> Verdict:
        """As `judge`, but without a proof, and `exercise` may be one that is not in the course."""
        try:
            return self._judge(exercise, source, seed)
        except (BoxError, JaxMissing):
            raise
        except Exception as error:
            finding = Finding(
                GRADER_ERROR,
                f"The judge failed: {type(error).__name__}: {str(error)[:300]}",
                "This is an error of the judge, not of the answer.",
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
        """The interpreter's verdict if it is final; None if the GPU must decide."""
        try:
            verdict = self.checker._judge(exercise, source, seed)
        except BoxError:  # this Triton's interpreter does not run here: only the GPU decides
            self.checker.close()
            self.checker = None
            return None
        if verdict.passed or verdict.diagnosis in CARD_DECIDES:
            return None
        return replace(verdict, backend=self.backend, note="found by the memory checker, on the interpreter")

    def run(self, exercise: Exercise, request: Request, tensors: bytes = b"", output_size: int = 0) -> Outcome:
        """Runs one job of an answer in the rest of the answer's time.

        On the interpreter the limit counts CPU time, so that a loaded machine does not change a verdict.
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
