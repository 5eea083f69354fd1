"""The job "large": launches over up to 10⁸ elements, without a GPU and without the memory.

The trace runs on tensors whose memory nobody touches. Each launch is run twice: the addresses of all its programs are
checked and counted, and some programs compute on memory that is made where they touch it. The inputs follow from a
seed.
"""

from __future__ import annotations

import functools
import math

import torch

from workshop.executor import launch as executor
from workshop.executor.memory import TooLarge, Watch, covered
from workshop.executor.records import Pages

from ...tensors import DTYPES, poison, seeded, to_bytes
from ..wire import ARITHMETIC, FAR_WINDOW, FILL, MOST_FOUND, LargeCase, Launch, Report, write_result
from .job import Job
from .recorder import NotReplayable, tensors_in
from .replay import Arguments, Known, Replay

MOST_LOOKS, MOST_STEPS = 3000, 600  # accesses of all programs, and of those that compute: what is more takes too long
WORK = 1 << 19  # elements that the chosen programs may read and write, about
FEW = 6  # programs that are chosen by chance, beside the first, the last and those at the crossings
CROSSINGS = 1 << 15, 1 << 16, 1 << 24  # elements at which narrow numbers end


def run(job: Job, case: LargeCase, programs: Known) -> Report:
    try:
        value = _Large(job, case, programs).judged()
    except (NotReplayable, TooLarge, MemoryError, NotImplementedError) as error:
        value = {"unjudged": type(error).__name__}  # it is too large for us, which is no fault of the answer's
    return Report(has_value=True, value=value)


class _Large(Replay):
    """One case: tensors by the address of their memory."""

    vast = True

    def __init__(self, job: Job, case: LargeCase, programs: Known):
        self.job, self.case, self.programs = job, case, programs
        self.pages: dict[int, Pages] = {}
        self.uncounted = False
        self.steps = 0  # accesses of a program, on average, of the launch that has most
        self.work = 0  # elements that all programs of the launches read and write, where that was counted
        self.generator = torch.Generator().manual_seed(case.seed)
        # By storage: what the launches store, and what they load.
        self.spans: dict[int, list[torch.Tensor]] = {}
        self.loaded: dict[int, list[torch.Tensor]] = {}
        self.copies: set[int] = set()  # storages that torch wrote, from others
        self.sources: set[int] = set()  # storages that torch read
        super().__init__([self._input(number) for number in range(len(case.inputs))], job.device, case.computes)

    def judged(self) -> dict:
        result = self.run(self.case.trace)
        value = {"elements": result.numel()}
        stored = self._stored(result)
        unread = [] if self.uncounted or stored < result.numel() else self._unread()
        found = self._found(result)
        if found is None:
            return value | {"stored": 0, "found": 0}
        return value | {"stored": stored, "unread": unread, "found": found}

    def _stored(self, result: torch.Tensor) -> int:
        """How many elements of the result the launches store; all of them where nobody can tell.

        Raises Fault if a program reaches outside of a tensor.
        """
        try:
            for launch, arguments in self.launches:
                self._look(launch, arguments)
        except TooLarge:
            self.uncounted = True
            return result.numel()
        if not result.is_contiguous() or _start(result) in self.copies:
            return result.numel()
        first = result.storage_offset()
        return covered(self.spans.get(_start(result), []), first, first + result.numel())

    def _unread(self) -> list[int]:
        """An input of which the launches do not load all elements: its number, how many they load, and all."""
        for number, tensor in enumerate(self.inputs):
            own, extent = _start(tensor), tensor.untyped_storage().nbytes() // tensor.element_size()
            if self.case.inputs[number].whole and own not in self.sources:
                elements = math.prod(n for n, step in zip(tensor.shape, tensor.stride()) if step)
                loaded = covered(self.loaded.get(own, []), 0, extent)
                if loaded < elements:
                    return [number, loaded, elements]
        return []

    def _input(self, number: int) -> torch.Tensor:
        spec = self.case.inputs[number]
        dtype = DTYPES[spec.dtype]
        tensor = torch.empty_strided(spec.shape, spec.stride, dtype=dtype)
        content = functools.partial(seeded, self.case.seed + number, dtype=dtype, span=spec.span)
        self._add(tensor, content)
        return tensor

    def _add(self, tensor: torch.Tensor, content) -> None:
        self.pages[_start(tensor)] = Pages(tensor, content)

    def fresh(self, tensor: torch.Tensor) -> torch.Tensor:
        self._add(tensor, None)
        return tensor

    def moved(self, operation: str, args: list, made: torch.Tensor) -> None:
        """What torch writes: one number everywhere, a few constants, a copy of a tensor, or what it computes."""
        if operation == "constant":
            self._add(made, lambda at: made.flatten()[at.clamp(max=made.numel() - 1)])  # whole pages are asked for
            return
        if operation in ARITHMETIC:  # nobody knows its numbers
            self.copies.add(_start(made))
            self.sources |= set(map(_start, tensors_in(args)))
            self._add(made, None)
            return
        if made.numel() * made.element_size() != made.untyped_storage().nbytes():
            raise NotReplayable("torch writes a part of a large tensor")
        if operation in ("clone", "_to_copy", "copy", "copy_"):
            source = args[operation in ("copy", "copy_")]
            self.copies.add(_start(made))
            self.sources.add(_start(source))
            self._add(made, functools.partial(self._copied, source, made))
            return
        value = 0 if "zero" in operation else 1 if "ones" in operation else args[1] if len(args) > 1 else None
        if operation not in FILL or type(value) not in (bool, int, float):
            raise NotReplayable(f"torch.{operation} on a large tensor")
        self._add(made, lambda at: torch.full(at.shape, value, dtype=made.dtype))

    def _copied(self, source: torch.Tensor, made: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        """Elements of a copy, from those that were copied."""
        content = self.pages[_start(source)].content
        if content is None or source.shape != made.shape:
            raise NotReplayable("a copy of what no launch has written")
        place = torch.full(at.shape, source.storage_offset())
        axes = sorted(range(made.ndim), key=lambda axis: -made.stride(axis))
        for axis in axes:
            index = torch.div(at, max(made.stride(axis), 1), rounding_mode="floor")
            at = at - index * made.stride(axis)
            place = place + index * source.stride(axis)
        return content(place).to(made.dtype)

    def _run(self, launch: Launch, arguments: Arguments, watch: Watch, programs: torch.Tensor | None = None):
        """The addresses of all programs, or some programs."""
        return executor.execute(
            self.programs[launch.program], arguments, launch.grid, watch, programs, name=launch.kernel,
            only_addresses=programs is None, pages=self.pages.values(),
        )  # fmt: skip

    def _look(self, launch: Launch, arguments: Arguments) -> None:
        """Every address of a launch. Raises Fault, or TooLarge where addresses stand in memory."""
        seen = self._run(launch, arguments, Watch(most=MOST_LOOKS))
        self.steps = max(self.steps, (seen.loads + seen.stores + seen.atomics) // max(launch.programs, 1))
        self.work += sum((a.bytes_loaded + a.bytes_stored) // a.itemsize for a in seen.arguments.values())
        for each in seen.arguments.values():
            self.spans.setdefault(each.storage.start, []).extend(each.stored)
            self.loaded.setdefault(each.storage.start, []).extend(each.loaded)

    def _found(self, result: torch.Tensor) -> int | None:
        """Runs some programs of the only launch. Returns how many elements of the result they wrote, into the slots.

        None if programs write the same elements, so that others are left out.
        """
        compared = self.case.compared and not self.computed
        if not compared or len(self.launches) != 1 or not result.is_contiguous() or self.steps > MOST_STEPS:
            return 0
        ((launch, arguments),) = self.launches
        total = launch.programs
        guessed = sum(math.prod(spec.shape) for spec in self.case.inputs) * 2
        each = max(1, (guessed if self.uncounted else self.work) // total)
        if each > WORK:
            return 0
        programs = self._chosen(total, result.numel(), max(1, WORK // each))
        if any(each.name.startswith("atomic") for each in self.programs[launch.program].operations()):
            return 0  # what the chosen programs leave in an element is a part of it
        watch = Watch(races=self.uncounted, most=MOST_STEPS)
        try:
            seen = self._run(launch, arguments, watch, programs)
        except TooLarge:
            return 0
        at, values, who = self.pages[_start(result)].found()
        at = at - result.storage_offset()
        if self.uncounted and _overlap(seen, len(programs), total, result.numel()):
            return None
        if self.uncounted:
            at, values = _with_holes(at, values, programs[who], result.numel())
        order = torch.randperm(len(at), generator=self.generator)
        if self.case.starts:
            starts = torch.tensor(self.case.starts)
            behind = at - starts[torch.searchsorted(starts, at, right=True) - 1]
            inside = (behind >= 0) & (behind < FAR_WINDOW)
            order = order[inside[order].int().argsort(descending=True, stable=True)]
        some = order[:MOST_FOUND].sort().values
        write_result(self.case.places, self.job.output, to_bytes(at[some]))
        write_result(self.case.slot, self.job.output, to_bytes(values[some]))
        return len(at[some])

    def _chosen(self, total: int, elements: int, most: int) -> torch.Tensor:
        """Numbers of programs: the first, the last, those at the crossings if they follow the elements, and some.

        With neighbours, where holes between them must be found: where nobody counted what all programs store.
        """
        crossings = [at * total // elements for at in (*CROSSINGS, *self.case.starts) if at < elements]
        crossings += [min((at + elements // total) * total // elements, total - 1) for at in self.case.starts]  # and on
        drawn = torch.randint(0, total, (FEW,), generator=self.generator).tolist()
        wanted = dict.fromkeys([0, total - 1, *crossings, *drawn])
        near = dict.fromkeys(min(p + step, total - 1) for p in wanted for step in ((0, 1) if self.uncounted else (0,)))
        return torch.tensor(sorted(list(near)[:most]))


def _start(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _overlap(seen, chosen: int, total: int, elements: int) -> bool:
    """Whether programs that are no neighbours write the same elements, although all together just fill the result."""
    apart = [race for race in seen.races if race.first and abs(race.first[0] - race.second[0]) > 1]
    itemsize = min(argument.itemsize for argument in seen.arguments.values() if argument.bytes_stored)
    return bool(apart) and seen.bytes_stored / chosen * total < 1.05 * elements * itemsize


def _with_holes(at: torch.Tensor, values: torch.Tensor, who: torch.Tensor, elements: int):
    """Adds elements that nobody writes, with the pattern of memory that is not written.

    Programs of blocks write neighbours: a program fills a hole between two that were written, or the next one does, and
    both were chosen. Where each program begins behind the one before it, what is behind the last one is left out, too.
    """
    small = (at.diff() == 2) & (who.diff() <= 1)  # a program between, which was not chosen, may fill it
    many = len(small) and float(small.float().mean()) > 0.1
    holes = at[:-1][small] + 1 if many else at[:0]
    if len(at) and bool((who.diff() >= 0).all()) and len(who.unique()) > FEW and int(at[-1]) < elements - 1:
        holes = torch.cat([holes, at[-1:] + 1])
    nothing = poison(torch.empty(len(holes), dtype=values.dtype))
    at, order = torch.cat([at, holes]).sort()
    return at, torch.cat([values, nothing])[order]
