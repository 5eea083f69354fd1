"""The job "plan": runs the learner's module, calls the host function on decoys, reports the trace of each case.

Runs in a child of the zygote, beside the learner's Python. No kernel runs, and the process has no real inputs.
"""

from __future__ import annotations

import torch

from ..wire import Report
from ..wire.requests import Decoy, PlanCase
from .earlier import Earlier
from .job import Job
from .launches import Launches
from .learner import describe, learner_function
from .memory import decoys
from .trace import Recorder


def run(job: Job) -> None:
    launches = Launches(job.backend)
    launches.install()
    functions = [_Function(source, job.request.entry) for source in job.request.sources]
    for index, case in enumerate(job.request.cases):
        seed = torch.default_generator.manual_seed if job.interpreted else torch.manual_seed  # slow: it asks for GPUs
        seed(index)
        launches.configuration = index if case.configuration is None else case.configuration
        try:
            trace = functions[case.source].trace(case, launches, job.device)
            job.report(Report(index, trace=trace, programs=launches.programs.unsent(trace)))
        except BaseException as error:
            job.report(Report(index, error=describe(error)))


class _Function:
    """The function of one module. It is loaded when it is called first."""

    def __init__(self, source: str, entry: str):
        self.source, self.entry = source, entry
        self.function = self.failure = None
        self.earlier = Earlier()
        self.given: dict[tuple, list] = {}  # the arguments of the first call with tensors of this form

    def trace(self, case: PlanCase, launches: Launches, device) -> dict:
        self._load()
        arguments, tensors = decoys(case.arguments, device)
        form = tuple(each for each in case.arguments if isinstance(each, Decoy))
        trace = self._call(arguments, launches, device)
        if form in self.given:  # what is kept for an object or an address shows
            self._call(_in_the_same_memory(arguments, self.given[form]), launches, device)
        elif sum(tensor.numel() for tensor in tensors) <= 1 << 16:
            self.given[form] = arguments
        return trace

    def _load(self) -> None:
        if self.failure:
            raise self.failure
        try:
            self.function = self.function or learner_function(self.source, self.entry)
        except BaseException as error:
            self.failure = error
            raise

    def _call(self, arguments: list, launches: Launches, device) -> dict:
        inputs = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        recorder, result = Recorder(inputs, device, self.earlier), None
        try:
            with recorder:
                launches.recorder = recorder
                result = self.function(*arguments)
                launches.recorder = None
            return _finish(recorder, result)
        finally:
            launches.recorder = None
            self.earlier.remember(recorder.made, result)


def _in_the_same_memory(arguments: list, before: list) -> list:
    """The arguments, with each tensor's numbers in the tensor that stood there in an earlier call."""
    same = []
    with torch.no_grad():
        for argument, known in zip(arguments, before, strict=True):
            tensors = isinstance(argument, torch.Tensor) and isinstance(known, torch.Tensor)
            fits = tensors and (known.shape, known.stride()) == (argument.shape, argument.stride())
            same.append(known.copy_(argument) if fits else argument)
    return same


def _finish(recorder: Recorder, result) -> dict:
    if not isinstance(result, torch.Tensor):
        return {"returned": type(result).__name__[:80], "launches": recorder.launches}
    return recorder.finish(result)
