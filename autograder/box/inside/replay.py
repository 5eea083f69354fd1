"""The job "replay": runs only the programs of launched kernels, as a trace says, on real inputs.

Runs in a child of the zygote. The learner's Python does not run there.
"""

from __future__ import annotations

import contextlib

import torch

from workshop.executor import launch as executor
from workshop.executor import rebuild
from workshop.executor.changes import Inapplicable, changed
from workshop.executor.memory import Watch
from workshop.executor.program import STORES, Program
from workshop.executor.records import Launch as Seen

from ...tensors import LARGE, UNWRITTEN, bits, to_bytes
from ..wire import Evidence, Report
from ..wire.layout import read_tensor, write_result
from ..wire.requests import ReplayCase
from .copies import Copies
from .job import Job
from .learner import describe
from .memory import Guarded, GuardedAllocations
from .programs import Known, constants
from .reports import race_records, result_record, steps_records, undefined_records
from .trace import MAX_CONSTANT, Launch, NotReplayable, Replay


def run(job: Job) -> None:
    job.give_memory()
    job.show_source()
    programs = Known(job.request.programs)
    for index, case in enumerate(job.request.cases):
        try:
            report = _replay(job, index, case, programs)
        except BaseException as error:
            report = Report(index, error=describe(error))
        job.report(report)


def _replay(job: Job, index: int, case: ReplayCase, programs: Known) -> Report:
    around = {"guard": job.request.guard, "pattern": LARGE if case.poison == "large" else UNWRITTEN}
    inputs = [Guarded(read_tensor(spec, job.tensors), spec.stride, job.device, **around) for spec in case.inputs]
    allocations = GuardedAllocations(**around)
    tensors = [each.tensor for each in inputs]
    launcher = launcher_of(job)(programs, tensors)
    launcher.change = case.change
    launcher.limited = not tensors  # then all numbers of the result could be constants

    def fresh(tensor: torch.Tensor) -> torch.Tensor:
        placed = allocations.place(tensor)
        launcher.copies.allocated(placed)
        return placed

    steps = Replay(
        tensors, job.device, fresh, launcher, launcher.copies.moved, launcher.rehearse, job.backend, case.computes
    )
    result = steps.run(case.trace)
    if case.change and not launcher.applied:
        raise Inapplicable("no program has the operation that is changed")
    if not job.interpreted:
        torch.cuda.synchronize()
    damage = [found for each in inputs if (found := each.damage())]
    if allocations.damaged():
        damage.append("out-of-bounds-store")
    output = to_bytes(result)
    idle = False  # whether torch alone makes the same output
    if steps.launched and steps.moves and not damage:
        alone = Replay(tensors, job.device, allocations.place, lambda launch: None, computes=case.computes)
        idle = output == to_bytes(alone.run(case.trace))
    evidence = Evidence(
        idle=idle,
        accumulates=launcher.accumulates,
        adds_atomically=launcher.adds_atomically,
        stores=launcher.stores,
        without_work=launcher.without_work,
        steps=tuple(launcher.steps[:4]),
        launched=tuple(name[:100] for name in steps.launched[:16]),
        races=tuple(launcher.races[:16]),
        undefined=tuple(launcher.undefined[:8]),
        accesses=launcher.accesses,
        reads=launcher.copies.reads if job.interpreted else (),
        stored=launcher.stored,
        damage=tuple(damage[:4]),
        empty_kernels=tuple(launcher.empty[:16]),
    )
    described = result_record(result, [each.buffer for each in inputs])
    write_result(case.slot, job.output, output)
    return Report(index, result=described, evidence=evidence)


def launcher_of(job: Job) -> type[_Launcher]:
    return _Executor if job.interpreted else _Card


class _Launcher:
    """Launches programs as a trace says, and collects what is seen."""

    rehearse = None

    def __init__(self, programs: Known, inputs: list[torch.Tensor]):
        self.programs, self.copies = programs, Copies(inputs)
        self.limited, self.constants = False, 0
        self.change: list | None = None
        self.applied = False
        self.races: list = []
        self.undefined: list = []
        self.empty: list[str] = []
        self.accesses = self.stored = 0
        self.accumulates = self.adds_atomically = self.stores = False
        self.without_work: tuple[int, ...] = ()
        self.steps: list = []

    def program(self, launch: Launch) -> Program:
        program = self.programs[launch.program]
        atomics = (each for each in program.operations() if each.name == "atomic_rmw")
        self.adds_atomically |= any(each.args[0].name == "FADD" for each in atomics)
        self.stores |= any(each.name in STORES for each in program.operations())
        if self.limited:
            self.constants += constants(program)
            if self.constants > MAX_CONSTANT:
                raise NotReplayable(f"the kernels use more than {MAX_CONSTANT} constants")
        if launch.kernel not in self.empty and all(each.name == "ret" for each in program.operations()):
            self.empty.append(launch.kernel)  # its body is `pass`, `...` or a docstring
        return program


class _Executor(_Launcher):
    """Runs programs without a GPU, with every access checked."""

    def __init__(self, programs: Known, inputs: list[torch.Tensor]):
        super().__init__(programs, inputs)
        self.rehearsed: Seen | None = None  # a rehearsal that stands for the launch itself

    def __call__(self, launch: Launch) -> None:
        seen, self.rehearsed = self.rehearsed or self._run(launch), None
        self.races += race_records([seen])
        self.steps += steps_records(seen)
        self.copies.count(seen)
        self.accesses = hash((self.accesses, seen.accesses))
        self.stored += sum(argument.bytes_stored for argument in seen.arguments.values())
        idle = (~seen.storing).nonzero().flatten()
        if not self.without_work and 0 < idle.numel() < seen.storing.numel() and self.stores:
            self.without_work = idle.numel(), seen.storing.numel(), int(idle[0])

    def rehearse(self, launch: Launch, restored: set[str], zeroed: set[str]) -> None:
        """Runs a kernel as its autotuner does to measure it. What it wrote stays only where it also reads.

        Where nothing stays, the launch that follows begins as this one did and does the same. It is not run again.
        """
        tensors = {label: value for label, value, _ in launch.arguments if isinstance(value, torch.Tensor)}
        before = {label: tensor.clone() for label, tensor in tensors.items()}
        seen = self._run(launch)
        loaded = {label for label, argument in seen.arguments.items() if argument.bytes_loaded}
        kept = (before.keys() & loaded) - restored - zeroed
        stays = any(not torch.equal(bits(tensors[label]), bits(before[label])) for label in kept)
        self.accumulates |= stays
        if not stays and not before.keys() & zeroed:
            self.rehearsed = seen
            return
        for label in before.keys() - kept:
            tensors[label].copy_(before[label])
            if label in zeroed:
                tensors[label].zero_()

    def _run(self, launch: Launch) -> Seen:
        watch, defined = Watch(counts=True, races=True, passes=True), self.copies.defined()
        program = self.program(launch)
        with self._changed(program, launch):
            seen = executor.execute(program, launch.arguments, launch.grid, watch, defined=defined, name=launch.kernel)
        self.undefined += undefined_records(seen)
        return seen

    @contextlib.contextmanager
    def _changed(self, program: Program, launch: Launch):
        """With the change of the case, if the program has what is changed."""
        with contextlib.ExitStack() as stack:
            if self.change:
                with contextlib.suppress(Inapplicable):
                    stack.enter_context(changed(program, [label for label, *_ in launch.arguments], self.change))
                    self.applied = True
            yield


class _Card(_Launcher):
    """Compiles programs for the GPU of this machine, and launches them."""

    def __call__(self, launch: Launch) -> None:
        on_card(self.program(launch), launch)()
        torch.cuda.synchronize()


def on_card(program: Program, launch: Launch):
    """A function that launches a program on the GPU. It is compiled here."""
    types = {label: kind for label, _, kind in launch.arguments}
    if len(types) < len(launch.arguments):
        raise NotReplayable("two arguments of one name")
    compiled = rebuild.compiled(program, types, {}, launch.options)[launch.grid]
    values = [value for _, value, _ in launch.arguments]
    return lambda: compiled(*values)
