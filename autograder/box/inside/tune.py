"""The job "tune": compares the times of the launches of several traces, on a GPU.

Runs in a child of the zygote. The learner's Python does not run there, only the programs of launches.
"""

from __future__ import annotations

import torch

from ..wire import Report
from .job import Job
from .memory import decoys
from .programs import Known
from .replay import on_card
from .trace import Replay

ROUNDS, WARM_ROUNDS = 25, 4  # rounds of timing; the first ones compile the kernels and wake the GPU


def run(job: Job) -> None:
    """Reports milliseconds per case: the median of interleaved rounds, so that the GPU's state is the same for all."""
    request = job.request
    job.give_memory()
    programs = Known(request.programs)
    runs = [_launches(job, case, programs) for case in request.cases]
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for launches, seen in zip(runs, times, strict=True):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for launch in launches:
                launch()
            end.record()
            torch.cuda.synchronize()
            seen.append(begin.elapsed_time(end))
    medians = [sorted(seen[WARM_ROUNDS:])[(ROUNDS - WARM_ROUNDS) // 2] for seen in times]
    job.report(Report(0, has_value=True, value=medians))


def _launches(job: Job, case, programs: Known) -> list:
    """The launches of a trace, compiled and prepared on decoys."""
    launches: list = []

    def launch(given):
        launches.append(on_card(programs[given.program], given))

    tensors = decoys(case.arguments, job.device)[1]
    Replay(tensors, job.device, lambda tensor: tensor, launch, target=job.backend).run(case.trace)
    return launches
