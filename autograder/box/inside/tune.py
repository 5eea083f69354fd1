"""The job "tune": compares the times of the launches of several traces, on a GPU.

Runs in a child of the zygote. The learner's Python does not run there, only kernels in the kernel language.
"""

from __future__ import annotations

import torch

from ..wire import Report
from .job import Job
from .kernels import Kernels, launched
from .memory import decoys
from .trace import KernelName, Replay

ROUNDS, WARM_ROUNDS = 25, 4  # rounds of timing; the first ones compile the kernels and wake the GPU


def run(job: Job) -> None:
    """Reports milliseconds per case: the median of interleaved rounds, so that the GPU's state is the same for all."""
    request = job.request
    job.give_memory()
    kernels = Kernels(request.source, launched([case.trace for case in request.cases]))[None]
    runs = [_launches(case, kernels, job.device) for case in job.request.cases]
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for launches, seen in zip(runs, times, strict=True):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for kernel, arguments, options in launches:
                kernel(**arguments, **options)
            end.record()
            torch.cuda.synchronize()
            seen.append(begin.elapsed_time(end))
    medians = [sorted(seen[WARM_ROUNDS:])[(ROUNDS - WARM_ROUNDS) // 2] for seen in times]
    job.report(Report(0, has_value=True, value=medians))


def _launches(case, kernels: dict, device: torch.device) -> list:
    """The launches of a trace, prepared on decoys: the kernel on its grid, arguments, options."""
    launches: list = []

    def launch(name, grid, arguments, options):
        arguments = {k: kernels[v] if isinstance(v, KernelName) else v for k, v in arguments.items()}
        launches.append((kernels[name][grid], arguments, options))

    Replay(decoys(case.arguments, device)[1], device, lambda tensor: tensor, launch).run(case.trace)
    return launches
