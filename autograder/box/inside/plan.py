"""The job "plan": runs the learner's module, calls the host function on decoys, reports the trace of each case.

Runs in a child of the zygote, beside the learner's Python. No kernel runs, and the process has no real inputs.
"""

from __future__ import annotations

import torch

from ..wire import Report
from .job import Job
from .launches import Launches
from .learner import describe, learner_function
from .memory import decoys
from .trace import Recorder


def run(job: Job) -> None:
    launches = Launches()
    launches.install()
    function = learner_function(job.request.source, job.request.entry)
    for index, case in enumerate(job.request.cases):
        torch.manual_seed(index)
        arguments, tensors = decoys(case.arguments, job.device)
        launches.configuration = index
        try:
            with Recorder(tensors, job.device) as recorder:
                launches.recorder = recorder
                result = function(*arguments)
                launches.recorder = None
            job.report(Report(index, trace=_finish(recorder, result)))
        except BaseException as error:
            launches.recorder = None
            job.report(Report(index, error=describe(error)))


def _finish(recorder: Recorder, result) -> dict:
    if not isinstance(result, torch.Tensor):
        return {"returned": type(result).__name__[:80], "launches": recorder.launches}
    return recorder.finish(result)
