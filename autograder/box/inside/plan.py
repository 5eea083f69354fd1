"""The job "plan": runs the learner's module, calls the host function on decoys, reports the trace of each case.

Runs in a child of the zygote, beside the learner's Python. No kernel runs, and the process has no real inputs.
"""

from __future__ import annotations

import torch

from ..wire import Report
from ..wire.requests import Decoy
from .earlier import Earlier
from .job import Job
from .launches import Launches
from .learner import describe, learner_function
from .memory import decoys
from .trace import Recorder


def run(job: Job) -> None:
    launches = Launches(job.backend)
    launches.install()
    function = learner_function(job.request.source, job.request.entry)
    earlier = Earlier()
    given: dict[tuple, list] = {}  # the arguments of the first call with tensors of this form

    def call(arguments: list) -> dict:
        recorder, result = Recorder([a for a in arguments if isinstance(a, torch.Tensor)], job.device, earlier), None
        try:
            with recorder:
                launches.recorder = recorder
                result = function(*arguments)
                launches.recorder = None
            return _finish(recorder, result)
        finally:
            launches.recorder = None
            earlier.remember(recorder.made, result)

    for index, case in enumerate(job.request.cases):
        seed = torch.default_generator.manual_seed if job.interpreted else torch.manual_seed  # slow: it asks for GPUs
        seed(index)
        arguments, tensors = decoys(case.arguments, job.device)
        launches.configuration = index if case.configuration is None else case.configuration
        form = tuple(each for each in case.arguments if isinstance(each, Decoy))
        try:
            trace = call(arguments)
            if form in given:
                call(_in_the_same_memory(arguments, given[form]))  # what is kept for an object or an address shows
            elif sum(tensor.numel() for tensor in tensors) <= 1 << 16:
                given[form] = arguments
            job.report(Report(index, trace=trace))
        except BaseException as error:
            job.report(Report(index, error=describe(error)))


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
