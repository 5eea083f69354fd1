"""The job "replay": runs only the learner's kernels, as a trace says, on real inputs.

Runs in a child of the zygote. The learner's Python does not run there, only kernels in the kernel language.
"""

from __future__ import annotations

import torch

from ...tensors import LARGE, UNWRITTEN, to_bytes
from ..wire import Evidence, Report
from ..wire.layout import read_tensor, write_result
from ..wire.requests import ReplayCase
from .job import Job
from .kernels import Kernels
from .launches import OPTIONS
from .learner import describe
from .memory import Guarded, GuardedAllocations
from .reports import race_records, result_record
from .trace import KernelName, NotReplayable, Replay


def run(job: Job) -> None:
    kernels = Kernels(job.request)
    for index, case in enumerate(job.request.cases):
        try:
            report = _replay(job, index, case, kernels[case.blank])
        except BaseException as error:
            report = Report(index, error=describe(error))
        job.report(report)


def _replay(job: Job, index: int, case: ReplayCase, kernels: dict) -> Report:
    around = {"guard": job.request.guard, "pattern": LARGE if case.poison == "large" else UNWRITTEN}
    inputs = [Guarded(read_tensor(spec, job.tensors), spec.stride, job.device, **around) for spec in case.inputs]
    allocations = GuardedAllocations(**around)
    launcher = _Launcher(job, case, kernels)
    steps = Replay([each.tensor for each in inputs], job.device, allocations.place, launcher)
    result = steps.run(case.trace)
    if not job.interpreted:
        torch.cuda.synchronize()
    damage = [found for each in inputs if (found := each.damage())]
    if allocations.damaged():
        damage.append("out-of-bounds-store")
    # a kernel whose code uses no name does nothing: its body is `pass`, `...` or a docstring
    empty = [n for n in kernels if n in steps.launched and not kernels[n].fn.__code__.co_names]
    evidence = Evidence(
        launched=tuple(name[:100] for name in steps.launched[:16]),
        races=tuple(launcher.races),
        damage=tuple(damage[:4]),
        unchecked=job.unchecked[:300],
        empty_kernels=tuple(name[:100] for name in empty[:16]),
    )
    described = result_record(result, [each.buffer for each in inputs])
    write_result(case.slot, job.output, to_bytes(result))
    return Report(index, result=described, evidence=evidence)


class _Launcher:
    """Launches kernels as a trace says, and collects the races that the memory checker finds."""

    def __init__(self, job: Job, case: ReplayCase, kernels: dict):
        self.job, self.case, self.kernels = job, case, kernels
        self.races: list = []

    def __call__(self, name: str, grid: tuple[int, ...], arguments: dict, options: dict) -> None:
        kernel = self._kernel(name)
        if unknown := [*set(arguments) - set(kernel.arg_names), *set(options) - set(OPTIONS)]:
            raise NotReplayable(f"{name[:60]} has no parameter {unknown[0][:60]}")
        arguments = {k: self._kernel(str(v)) if isinstance(v, KernelName) else v for k, v in arguments.items()}
        if not self.job.interpreted:
            kernel[grid](**arguments, **options)
            torch.cuda.synchronize()
            return
        with self.job.watched(self.case.poison, self.case.backwards) as memory:
            kernel[grid](**arguments)
        if memory:
            self.races += race_records(memory.launches)

    def _kernel(self, name: str):
        if name not in self.kernels:
            raise NotReplayable(f"{name[:60]} is not one of the kernels that the answer defines at top level")
        return self.kernels[name]
