"""The job "replay": runs only the learner's kernels, as a trace says, on real inputs.

Runs in a child of the zygote. The learner's Python does not run there, only kernels in the kernel language.
"""

from __future__ import annotations

import torch

from ...tensors import LARGE, UNWRITTEN, bits, to_bytes
from ..wire import Evidence, Report
from ..wire.layout import read_tensor, write_result
from ..wire.requests import ReplayCase
from .copies import Copies
from .job import Job
from .kernels import Kernels, launched
from .launches import OPTIONS
from .learner import describe
from .memory import Guarded, GuardedAllocations
from .reports import race_records, result_record
from .specialise import Specialisations
from .trace import KernelName, NotReplayable, Replay


def run(job: Job) -> None:
    request = job.request
    job.give_memory()
    kernels = Kernels(request.source, launched([case.trace for case in request.cases]), request.template)
    with job.interpreting():
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
    tensors = [each.tensor for each in inputs]
    launcher = _Launcher(job, case, kernels, Copies(tensors))
    rehearse = launcher.rehearse if job.interpreted else None
    steps = Replay(tensors, job.device, allocations.place, launcher, launcher.copies.moved, rehearse)
    result = steps.run(case.trace)
    if not job.interpreted:
        torch.cuda.synchronize()
    damage = [found for each in inputs if (found := each.damage())]
    if allocations.damaged():
        damage.append("out-of-bounds-store")
    output = to_bytes(result)
    idle = False  # whether torch alone makes the same output
    if steps.launched and steps.moves and not damage:
        alone = Replay(tensors, job.device, allocations.place, lambda *launch: None)
        idle = output == to_bytes(alone.run(case.trace))
    # a kernel whose code uses no name does nothing: its body is `pass`, `...` or a docstring
    empty = [n for n in kernels if n in steps.launched and not kernels[n].fn.__code__.co_names]
    evidence = Evidence(
        idle=idle,
        accumulates=launcher.accumulates,
        launched=tuple(name[:100] for name in steps.launched[:16]),
        races=tuple(launcher.races),
        accesses=launcher.accesses,
        reads=() if job.unchecked else launcher.copies.reads,
        damage=tuple(damage[:4]),
        unchecked=job.unchecked[:300],
        empty_kernels=tuple(name[:100] for name in empty[:16]),
        specialisations=tuple(launcher.specialisations),
        poisoned=launcher.poisoned,
    )
    described = result_record(result, [each.buffer for each in inputs])
    write_result(case.slot, job.output, output)
    return Report(index, result=described, evidence=evidence)


class _Launcher:
    """Launches kernels as a trace says. Collects their specialisations, and what the memory checker finds."""

    def __init__(self, job: Job, case: ReplayCase, kernels: dict, copies: Copies):
        self.job, self.case, self.kernels, self.copies = job, case, kernels, copies
        self.races: list = []
        self.specialisations = Specialisations()
        self.accesses = 0
        self.poisoned = False
        self.accumulates = False
        self.rehearsed = None  # what the memory checker saw in a rehearsal that stands for the launch itself

    def __call__(self, name: str, grid: tuple[int, ...], arguments: dict, options: dict) -> None:
        kernel = self._kernel(name)
        if unknown := [*set(arguments) - set(kernel.arg_names), *set(options) - set(OPTIONS)]:
            raise NotReplayable(f"{name[:60]} has no parameter {unknown[0][:60]}")
        arguments = self._with_kernels(arguments)
        if not self.job.interpreted:
            kernel[grid](**arguments, **options)
            torch.cuda.synchronize()
            return
        self.specialisations.add(kernel, arguments, options)
        memory = self._run(kernel, grid, arguments) if self.rehearsed is None else self.rehearsed
        self.rehearsed = None
        if memory:
            self.races += race_records(memory.launches)
            self.copies.count(memory.launches)
            self.poisoned |= memory.poisoned
            for launch in memory.launches:
                self.accesses = hash((self.accesses, launch.accesses))

    def rehearse(self, name: str, grid, arguments: dict, restored: set[str], zeroed: set[str]) -> None:
        """Runs a kernel as its autotuner does to measure it. What it wrote stays only where it also reads.

        Where nothing stays, the launch that follows begins as this one did and does the same. It is not run again.
        """
        kernel = self._kernel(name)
        arguments = self._with_kernels(arguments)
        before = {k: v.clone() for k, v in arguments.items() if isinstance(v, torch.Tensor)}
        memory = self._run(kernel, grid, arguments)
        launches = memory.launches if memory else ()
        loaded = {k for launch in launches for k, argument in launch.arguments.items() if argument.bytes_loaded}
        kept = (before.keys() & loaded) - restored - zeroed
        stays = any(not torch.equal(bits(arguments[k]), bits(before[k])) for k in kept)
        self.accumulates |= stays
        if not stays and not before.keys() & zeroed:
            self.rehearsed = memory or ()
            return
        for k in before.keys() - kept:
            arguments[k].copy_(before[k])
            if k in zeroed:
                arguments[k].zero_()

    def _run(self, kernel, grid: tuple[int, ...], arguments: dict):
        """One launch on the interpreter: what the memory checker saw, or None if it does not work here."""
        with self.job.watched(self.case.poison, self.case.backwards) as memory:
            kernel[grid](**arguments)
        return memory

    def _with_kernels(self, arguments: dict) -> dict:
        return {k: self._kernel(str(v)) if isinstance(v, KernelName) else v for k, v in arguments.items()}

    def _kernel(self, name: str):
        if name not in self.kernels:
            raise NotReplayable(f"{name[:60]} is not one of the kernels that the answer defines at top level")
        return self.kernels[name]
