"""Replays traces: runs the steps of a host function on real tensors, with the programs of its launches.

The jobs "replay", on real inputs, "large", on inputs that no memory could hold, and "tune", which compares the times of
the launches of several traces on a GPU.

A guarded tensor is placed inside a larger buffer, with a guard zone before it and one after it. A row-strided view
also has gaps between the rows. Guards and gaps hold a poison pattern. After the launches they must still hold it.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import torch

from workshop.executor import launch as executor
from workshop.executor import rebuild
from workshop.executor.memory import TooLarge, Watch, covered
from workshop.executor.program import STORES, BadProgram, Program, from_data, values
from workshop.executor.records import Launch as Seen
from workshop.executor.records import Pages, Race, Steps, Undefined

from ...tensors import (
    DTYPES,
    LARGE,
    UNWRITTEN,
    bits,
    dtype_name,
    each_place,
    poison,
    seeded,
    span,
    storage_of,
    to_bytes,
)
from .. import wire
from .job import Job
from .recorder import KeptTensor, NotReplayable, moves, tensors_in, untouched

MAX_COMPUTED = 64  # steps in which the host function computes with numbers
MAX_ELEMENTS = 1 << 30
MOST_TOLD = 8  # races, and what else is told one by one
ROUNDS, WARM_ROUNDS = 25, 4  # rounds of timing; the first ones compile the kernels and wake the GPU


@dataclass(frozen=True)
class Descriptor:
    """What a kernel needs of triton.tools.tensor_descriptor.TensorDescriptor."""

    base: torch.Tensor
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str


Arguments = list[tuple[str, Any, str]]  # of a launch: label, value and type of each that is not a constant


class Replay:
    """Runs a trace on real tensors, and notes its launches. It checks what each step asks for: a process that ran
    learners' code recorded it.

    Raises KeptTensor where a kernel has changed a tensor that was made outside the host function: the next call would
    find it changed. pattern: what fresh memory holds. target: whose programs are launched.
    """

    vast = False  # torch's copies of much memory are not made, only told

    def __init__(self, inputs: list[torch.Tensor], device, computes: int = 0, pattern: dict[int, int] = UNWRITTEN,
                 target: str = ""):  # fmt: skip
        self.inputs, self.device, self.pattern, self.target = inputs, device, pattern, target
        self.computes, self.computed = computes, 0
        self.tensors: dict[int, torch.Tensor] = {}
        self.made: list[Guarded] = []  # fresh memory
        self.launched: list[str] = []  # kernels
        self.launches: list[tuple[wire.Launch, Arguments]] = []  # that were not run
        self.outside: list[tuple[torch.Tensor, torch.Tensor]] = []  # tensors made outside, and copies of them
        self.viewed: set[int] = set()  # see recorder.moves
        self.moves = False  # whether torch wrote numbers anywhere
        self.constants = 0

    def fresh(self, tensor: torch.Tensor) -> torch.Tensor:
        """Prepares fresh memory: with guards around it, if it is contiguous."""
        poison(tensor, self.pattern)
        if not tensor.is_contiguous() or not tensor.numel() or tensor.dtype == torch.bool:
            return tensor
        self.made.append(Guarded(tensor, tensor.stride(), tensor.device, self.pattern))
        return self.made[-1].tensor

    def moved(self, operation: str, args: list, made: torch.Tensor) -> None:
        """Is told of each step in which torch writes numbers."""

    def rehearse(self, launch: wire.Launch, arguments: Arguments) -> None:
        """May run an autotuned kernel before its launch, as a measurement does."""

    def launch(self, launch: wire.Launch, arguments: Arguments) -> None:
        """Runs a kernel. Here it is noted only."""
        self.launches.append((launch, arguments))

    def run(self, trace: wire.Trace) -> torch.Tensor:
        for step in trace.steps:
            self._step(step)
        if not all(torch.equal(bits(tensor), bits(before)) for tensor, before in self.outside):
            raise KeptTensor("a tensor")
        return self._tensor(trace.result)

    def _step(self, step: wire.Step):
        self._charge(step)
        if isinstance(step, wire.Launch):
            self._begin(step)
            return
        if isinstance(step, wire.Input):
            made = self.inputs[_integer(step.index, 0, len(self.inputs) - 1)]
        elif isinstance(step, wire.Constant):
            made = self._constant(step)
        else:
            made = self._operation(step)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(tensor, torch.Tensor) for tensor in made):
            raise NotReplayable(f"torch.{step.op} gave no tensor")
        if step.out and len(step.out) != len(made):
            raise NotReplayable("a step has a different number of outputs than it announced")
        self.tensors |= dict(zip(step.out, made))

    def _operation(self, step: wire.Operation):
        op, overload = step.op, step.overload
        if op not in wire.REPLAYABLE | wire.ARITHMETIC:
            raise NotReplayable(f"torch.{op} is not replayed")
        packet = getattr(torch.ops.aten, op)
        if overload not in packet.overloads():
            raise NotReplayable(f"torch.{op} has no form {overload!r}")
        args = self._decode(step.args)
        kwargs = {name: self._decode(value) for name, value in step.kwargs.items()}
        if op in wire.REPLAYABLE and not moves(op, overload, args, self.viewed):
            raise NotReplayable(f"torch.{op} to another dtype is not replayed")
        makes = op in wire.ALLOCATE | wire.FILL
        if makes and "device" in {a.name for a in getattr(packet, overload)._schema.arguments}:
            kwargs["device"] = self.device
        for sizes in (a for a in args if isinstance(a, list) and all(type(n) is int for n in a)):
            if math.prod(max(n, 0) for n in sizes) > MAX_ELEMENTS:
                raise MemoryError("a tensor of more than 2^30 elements")
        self.moves |= op in wire.FILL | wire.MOVE
        made = untouched(op, args, kwargs) if self.vast else None
        made = getattr(packet, overload)(*args, **kwargs) if made is None else made
        if self.viewed & {storage_of(tensor) for tensor in tensors_in(args)}:
            self.viewed |= {storage_of(tensor) for tensor in tensors_in(made)}
        if op in wire.ARITHMETIC:
            self._computed(op, [*tensors_in(args), made])
        if op in wire.ALLOCATE:
            made = self.fresh(made)
        if op in wire.FILL | wire.MOVE | wire.ARITHMETIC:
            self.moved(op, args, made)
        return made

    def _constant(self, step: wire.Constant) -> torch.Tensor:
        if not all(type(v) in (int, float, bool) for v in step.values):
            raise NotReplayable("a constant with something else than numbers")
        shape = [_integer(n, 0, wire.MAX_CONSTANT) for n in step.shape]
        tensor = torch.tensor(step.values, dtype=DTYPES[step.dtype]).reshape(shape).to(self.device)
        self.outside.append((tensor, tensor.clone()))
        self.moved("constant", [], tensor)
        return tensor

    def _charge(self, step: wire.Step):
        """Counts the numbers of the learner's in a step that can become a part of the result."""
        if not self.inputs:  # every number can, also several in one, or one told by which tensors are joined
            said = (getattr(step, name, None) for name in ("values", "args", "kwargs", "grid"))
            self.constants += numbers([*said, *(each.value for each in getattr(step, "given", ()))])
        elif isinstance(step, wire.Constant):
            self.constants += len(step.values)
        elif isinstance(step, wire.Operation):
            self.constants += step.op in wire.FILL or step.op == "constant_pad_nd"
        if self.constants > wire.MAX_CONSTANT:
            raise NotReplayable(f"the host function uses more than {wire.MAX_CONSTANT} constants")

    def _computed(self, op: str, tensors: list[torch.Tensor]):
        """Counts what the host function computes: in few steps, on tensors of few numbers."""
        self.computed += 1
        if self.computed > MAX_COMPUTED or any(tensor.numel() > self.computes for tensor in tensors):
            raise NotReplayable(f"torch.{op} is not replayed")

    def _begin(self, step: wire.Launch):
        for size in step.grid:
            _integer(size, 0, 1 << 31)
        for value in step.options.values():
            _integer(value, 0, 1 << 10)
        arguments = [self._argument(each) for each in step.given]
        self.launched.append(step.kernel)
        if not step.programs:
            return
        if step.tuned and step.tuned.again:
            self.rehearse(step, arguments)
        self.launch(step, arguments)

    def _argument(self, given: wire.Argument) -> tuple[str, Any, str]:
        value, kind = self._decode(given.value), given.kind
        fits = {torch.Tensor: kind.startswith("*"), Descriptor: kind.startswith("tensordesc<")}
        number = isinstance(value, (bool, int, float)) and _NUMBERS.fullmatch(kind)
        if not fits.get(type(value), number):
            raise NotReplayable("an argument of another type than its program has")
        return given.label, value, kind

    def _tensor(self, number) -> torch.Tensor:
        if type(number) is not int or number not in self.tensors:
            raise NotReplayable("a step uses a tensor that no step made")
        return self.tensors[number]

    def _decode(self, value):
        if value is None or type(value) in (bool, float) or type(value) is int and abs(value) < 1 << 64:
            return value
        if type(value) is list:
            return [self._decode(v) for v in value]
        if type(value) is dict and len(value) == 1:
            ((kind, content),) = value.items()
            if kind == "t":
                return self._tensor(content)
            if kind == "dtype" and content in DTYPES:
                return DTYPES[content]
            if kind == "device":
                return self.device
            if kind == "memory_format" and content in ("contiguous_format", "preserve_format", "channels_last"):
                return getattr(torch, content)
            if kind == "text" and type(content) is str and len(content) <= 32:
                return content
            if kind == "descriptor" and type(content) is list:
                return self._descriptor(*content)
        raise NotReplayable("an argument of a kind that cannot be replayed")

    def _descriptor(self, base, shape, strides, block, padding) -> Descriptor:
        sizes = ([_integer(n, 0, MAX_ELEMENTS) for n in part] for part in (shape, strides, block))
        return Descriptor(self._decode(base), *sizes, self._decode(padding))


_NUMBERS = re.compile(r"[iu](1|8|16|32|64)|fp(16|32|64)|bf16")


def _integer(value, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise NotReplayable("a number in the trace is out of range")
    return value


# -- programs --------------------------------------------------------------------------------------------


class Known(dict):
    """Programs by digest, read when they are needed. Raises NotReplayable for what is no program."""

    def __init__(self, texts: dict[str, str]):
        super().__init__()
        self.texts = texts

    def __missing__(self, digest: str) -> Program:
        if digest not in self.texts:
            raise NotReplayable("a launch names a program that was not sent")
        try:
            self[digest] = from_data(json.loads(self.texts[digest]))
        except (BadProgram, ValueError, RecursionError) as error:
            raise NotReplayable(f"a program cannot be read: {str(error)[:200]}") from None
        return self[digest]


def numbers(value) -> int:
    """How many numbers of 31 bits an argument of a step may carry."""
    if isinstance(value, (list, tuple)):
        return sum(map(numbers, value))
    if isinstance(value, dict):
        return 1 if set(value) & {"t", "text"} else sum(map(numbers, value.values()))
    if isinstance(value, int):
        return 1 + (abs(value).bit_length() - 1) // 31
    return 2 * isinstance(value, float)


def constants(program: Program) -> int:
    """How many numbers of 31 bits the constants of a program may carry."""
    given = (value for each in program.operations() for arg in each.args for value in values(arg))
    return numbers([list(each) for each in {value.constant for value in given if value.constant}])


# -- the job "replay" ------------------------------------------------------------------------------------


def run(job: Job, case: wire.ReplayCase, programs: Known) -> wire.Report:
    pattern = LARGE if case.poison == "large" else UNWRITTEN
    read = ((wire.read_tensor(spec, job.tensors), spec) for spec in case.inputs)
    inputs = [Guarded(values, spec.stride, job.device, pattern, spec.shift) for values, spec in read]
    tensors = [each.tensor for each in inputs]
    kind = _OnExecutor if job.interpreted else _OnCard
    watched = kind(programs, tensors, job.device, case.computes, pattern, job.backend)
    result = watched.run(case.trace)
    if not job.interpreted:
        torch.cuda.synchronize()
    found = [each.damage() for each in inputs]
    damage, changed = [*filter(None, found)], [i for i, each in enumerate(found) if each == CHANGED]
    if any(each.damage() == OUTSIDE for each in watched.made):
        damage.append(OUTSIDE)
    output = to_bytes(result)
    idle = False  # whether torch alone makes the same output
    if watched.launched and watched.moves and not damage:
        alone = Replay(tensors, job.device, case.computes, pattern)
        idle = output == to_bytes(alone.run(case.trace))
    aliases = any(result.numel() and storage_of(result) == storage_of(each.buffer) for each in inputs)
    described = wire.Result(tuple(result.shape), dtype_name(result.dtype), result.is_contiguous(), aliases)
    wire.write_result(case.slot, job.output, output)
    seen = wire.Evidence(**watched.evidence(), damage=damage[:4], changed=changed[:4], idle=idle)
    return wire.Report(result=described, evidence=seen)


class _Watched(Replay):
    """Launches programs as a trace says, and collects what is seen: attributes with the names of Evidence's fields."""

    def __init__(self, programs: Known, inputs: list[torch.Tensor], *how):
        super().__init__(inputs, *how)
        self.programs = programs
        self.of_kernels = 0  # constants; without inputs, all numbers of the result could be some
        self.empty_kernels: list[str] = []
        self.adds_atomically = self.stores = False

    def program(self, launch: wire.Launch) -> Program:
        program = self.programs[launch.on(self.target)]
        atomics = (each for each in program.operations() if each.name == "atomic_rmw")
        self.adds_atomically |= any(each.args[0].name == "FADD" for each in atomics)
        self.stores |= any(each.name in STORES for each in program.operations())
        if not self.inputs:
            self.of_kernels += constants(program)
            if self.of_kernels > wire.MAX_CONSTANT:
                raise NotReplayable(f"the kernels use more than {wire.MAX_CONSTANT} constants")
        if launch.kernel not in self.empty_kernels and all(each.name == "ret" for each in program.operations()):
            self.empty_kernels.append(launch.kernel)  # its body is `pass`, `...` or a docstring
        return program

    def evidence(self) -> dict:
        names = vars(self).keys() & {each.name for each in fields(wire.Evidence)}
        found = {name: getattr(self, name) for name in names}
        return {name: value[:MOST_TOLD] if isinstance(value, list) else value for name, value in found.items()}


class _OnExecutor(_Watched):
    """Runs programs without a GPU, with every access checked."""

    def __init__(self, programs: Known, inputs: list[torch.Tensor], *how):
        super().__init__(programs, inputs, *how)
        self.copies = Copies(inputs)
        self.rehearsed: Seen | None = None  # a rehearsal that stands for the launch itself
        self.races: list[Race] = []
        self.undefined: list[Undefined] = []
        self.steps: list[Steps] = []
        self.stored = 0
        self.accumulates = False
        self.without_work: tuple[int, ...] = ()

    def fresh(self, tensor: torch.Tensor) -> torch.Tensor:
        placed = super().fresh(tensor)
        self.copies.allocated(placed)
        return placed

    def moved(self, operation: str, args: list, made: torch.Tensor) -> None:
        self.copies.moved(operation, args, made)

    def launch(self, launch: wire.Launch, arguments: Arguments) -> None:
        seen, self.rehearsed = self.rehearsed or self._run(launch, arguments), None
        self.races += seen.races_by_kind
        self.steps += [each for each in seen.steps.values() if each.line and each.odd_axis is not None]
        self.copies.count(seen)
        self.stored += sum(argument.bytes_stored for argument in seen.arguments.values())
        idle = (~seen.storing).nonzero().flatten()
        if not self.without_work and 0 < idle.numel() < seen.storing.numel() and self.stores:
            self.without_work = idle.numel(), seen.storing.numel(), int(idle[0])

    def rehearse(self, launch: wire.Launch, arguments: Arguments) -> None:
        """Runs a kernel as its autotuner does to measure it. What it wrote stays only where it also reads.

        Where nothing stays, the launch that follows begins as this one did and does the same. It is not run again.
        """
        again = launch.tuned.again
        tensors = {label: value for label, value, _ in arguments if isinstance(value, torch.Tensor)}
        before = {label: tensor.clone() for label, tensor in tensors.items()}
        seen = self._run(launch, arguments)
        loaded = {label for label, argument in seen.arguments.items() if argument.bytes_loaded}
        kept = (before.keys() & loaded) - {*again.restored, *again.zeroed}
        stays = any(not torch.equal(bits(tensors[label]), bits(before[label])) for label in kept)
        self.accumulates |= stays
        if not stays and not before.keys() & set(again.zeroed):
            self.rehearsed = seen
            return
        for label in before.keys() - kept:
            tensors[label].copy_(before[label])
            if label in again.zeroed:
                tensors[label].zero_()

    def _run(self, launch: wire.Launch, arguments: Arguments) -> Seen:
        watch, defined = Watch(counts=True, races=True, passes=True), self.copies.defined()
        program = self.program(launch)
        seen = executor.execute(program, arguments, launch.grid, watch, defined=defined, name=launch.kernel)
        self.undefined += seen.undefined
        return seen

    def evidence(self) -> dict:
        return super().evidence() | {"reads": self.copies.reads, "unread": self.copies.unread}


class _OnCard(_Watched):
    """Compiles programs for the GPU of this machine, and launches them."""

    def launch(self, launch: wire.Launch, arguments: Arguments) -> None:
        on_card(self.program(launch), launch, arguments)()
        torch.cuda.synchronize()


def on_card(program: Program, launch: wire.Launch, arguments: Arguments):
    """A function that launches a program on the GPU. It is compiled here."""
    types = {label: kind for label, _, kind in arguments}
    if len(types) < len(arguments):
        raise NotReplayable("two arguments of one name")
    compiled = rebuild.compiled(program, types, launch.options)[launch.grid]
    values = [value for _, value, _ in arguments]
    return lambda: compiled(*values)


# -- the job "tune" --------------------------------------------------------------------------------------


def tune(job: Job, programs: Known) -> None:
    """Reports milliseconds per case: the median of interleaved rounds, so that the GPU's state is the same for all."""
    runs = []  # of each trace, its launches, compiled and prepared on decoys
    for case in job.request.cases:
        replay = Replay(tensors_in(decoys(case.arguments, job.device)), job.device)
        replay.fresh = lambda tensor: tensor  # nobody looks at the results
        replay.run(case.trace)
        runs.append([on_card(programs[each.on(job.backend)], each, given) for each, given in replay.launches])
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
    job.report(wire.Report(0, has_value=True, value=medians))


# -- the job "large" -------------------------------------------------------------------------------------
# Launches over up to 10⁸ elements, without a GPU and without the memory. The trace runs on tensors whose memory nobody
# touches. Each launch is run twice: the addresses of all its programs are checked and counted, and some programs
# compute on memory that is made where they touch it. The inputs follow from a seed.

MOST_LOOKS, MOST_STEPS = 3000, 600  # accesses of all programs, and of those that compute: what is more takes too long
WORK = 1 << 19  # elements that the chosen programs may read and write, about
FEW_PROGRAMS = 6  # programs that are chosen by chance, beside the first, the last and those at the crossings
CROSSINGS = 1 << 15, 1 << 16, 1 << 24  # elements at which narrow numbers end


def run_large(job: Job, case: wire.LargeCase, programs: Known) -> wire.Report:
    try:
        value = _OnVastTensors(job, case, programs).judged()
    except (NotReplayable, TooLarge, MemoryError, NotImplementedError) as error:
        value = {"unjudged": type(error).__name__}  # it is too large for us, which is no fault of the answer's
    return wire.Report(has_value=True, value=value)


class _OnVastTensors(Replay):
    """One case: tensors by the address of their memory."""

    vast = True

    def __init__(self, job: Job, case: wire.LargeCase, programs: Known):
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
        if operation in wire.ARITHMETIC:  # nobody knows its numbers
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
        if operation not in wire.FILL or type(value) not in (bool, int, float):
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

    def _run(self, launch: wire.Launch, arguments: Arguments, watch: Watch, programs: torch.Tensor | None = None):
        """The addresses of all programs, or some programs."""
        return executor.execute(
            self.programs[launch.program], arguments, launch.grid, watch, programs, name=launch.kernel,
            only_addresses=programs is None, pages=self.pages.values(),
        )  # fmt: skip

    def _look(self, launch: wire.Launch, arguments: Arguments) -> None:
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
            inside = (behind >= 0) & (behind < wire.FAR_WINDOW)
            order = order[inside[order].int().argsort(descending=True, stable=True)]
        some = order[:wire.MOST_FOUND].sort().values
        wire.write_result(self.case.places, self.job.output, to_bytes(at[some]))
        wire.write_result(self.case.slot, self.job.output, to_bytes(values[some]))
        return len(at[some])

    def _chosen(self, total: int, elements: int, most: int) -> torch.Tensor:
        """Numbers of programs: the first, the last, those at the crossings if they follow the elements, and some.

        With neighbours, where holes between them must be found: where nobody counted what all programs store.
        """
        crossings = [at * total // elements for at in (*CROSSINGS, *self.case.starts) if at < elements]
        crossings += [min((at + elements // total) * total // elements, total - 1) for at in self.case.starts]  # and on
        drawn = torch.randint(0, total, (FEW_PROGRAMS,), generator=self.generator).tolist()
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
    if len(at) and bool((who.diff() >= 0).all()) and len(who.unique()) > FEW_PROGRAMS and int(at[-1]) < elements - 1:
        holes = torch.cat([holes, at[-1:] + 1])
    nothing = poison(torch.empty(len(holes), dtype=values.dtype))
    at, order = torch.cat([at, holes]).sort()
    return at, torch.cat([values, nothing])[order]


# -- tensors ---------------------------------------------------------------------------------------------

FEW = 1 << 12
GUARD = 512  # elements before and after a tensor; a multiple of 16 keeps the alignment that Triton specialises on
NOTHING = -1
OUTSIDE, CHANGED = "out-of-bounds-store", "input-modified"
_numbers, _starts = torch.randn(2 * FEW), itertools.count(0, 257)  # drawn once; a decoy begins at another of them


def decoys(arguments: Iterable[wire.Decoy | wire.Number], device) -> list:
    """The arguments of a call: numbers, and random tensors with the right shapes, strides and dtypes.

    The learner's Python gets nothing else.
    """
    made = []
    for argument in arguments:
        if not isinstance(argument, wire.Decoy):
            made.append(argument)
            continue
        size = span(argument.shape, argument.stride) + argument.shift
        if argument.same is not None:
            first = made[argument.same]
            alike = (tuple(first.shape), first.stride()) == (tuple(argument.shape), tuple(argument.stride))
            made.append(first if alike else torch.as_strided(first, argument.shape, argument.stride))
            continue
        base = torch.empty(size, dtype=DTYPES[argument.dtype], device=device)  # a large one stays untouched
        few = min(size, FEW)  # the rest holds anything: to fill millions takes long, and nothing looks at them
        start = next(_starts) % FEW
        base[:few] = _numbers[start : start + few]
        made.append(torch.as_strided(base, argument.shape, argument.stride, argument.shift))
    return made


class Guarded:
    """`values` (contiguous) laid out with `stride`, between guards of GUARD elements. shift: as of a Decoy."""

    def __init__(self, values: torch.Tensor, stride: tuple[int, ...], device, pattern=UNWRITTEN, shift: int = 0):
        size, first = span(values.shape, stride) + shift + 2 * GUARD, GUARD + shift
        self.buffer = poison(torch.empty(size, dtype=values.dtype, device=device), pattern)
        self.tensor = torch.as_strided(self.buffer, tuple(values.shape), tuple(stride), first)
        each_place(self.tensor).copy_(each_place(values, stride))
        self.before = bits(self.buffer).clone()
        self.inside = torch.zeros(size, dtype=torch.bool, device=device)
        each_place(torch.as_strided(self.inside, tuple(values.shape), tuple(stride), first)).fill_(True)

    def damage(self) -> str | None:
        """CHANGED if the tensor changed, OUTSIDE if a guard or gap changed, else None."""
        changed = bits(self.buffer) != self.before
        if bool((changed & ~self.inside).any()):
            return OUTSIDE
        return CHANGED if bool(changed.any()) else None


class Copies:
    """Follows what each element of memory holds during a replay: an element of an input, another number, or nothing.

    So it can be said how often the kernels read each element of an input, in the input or in copies of it, and what
    nothing has written yet. `moved` follows what torch writes for the host.
    """

    def __init__(self, inputs: list[torch.Tensor]):
        self._inputs = inputs
        self._read: dict[int, torch.Tensor] = {}  # by storage: the elements that a kernel has read
        self._copied: set[int] = set()  # storages that torch has read, too
        self._reads = [0] * len(inputs)
        # By storage: for each element, 1 + the number of its input, 0 for another number, or NOTHING.
        self._owners: dict[int, torch.Tensor] = {}
        for number, tensor in enumerate(inputs):
            each_place(self._owner(tensor)).fill_(1 + number)

    def _owner(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._owners:
            self._owners[storage.data_ptr()] = torch.zeros(storage.nbytes() // tensor.itemsize, dtype=torch.int8)
        owners = self._owners[storage.data_ptr()]
        return torch.as_strided(owners, tensor.shape, tensor.stride(), tensor.storage_offset())

    def allocated(self, tensor: torch.Tensor) -> None:
        """Fresh memory: nothing has written it."""
        self._owner(tensor).fill_(NOTHING)

    def moved(self, operation: str, args: list, made: torch.Tensor) -> None:
        """`made` is what one of answers.FILL, MOVE or ARITHMETIC made of these arguments."""
        self._copied |= {tensor.untyped_storage().data_ptr() for tensor in tensors_in(args)}
        if operation in ("cat", "stack"):
            owners = getattr(torch, operation)([self._owner(tensor) for tensor in args[0]], *args[1:])
        elif operation == "constant_pad_nd":
            owners = torch.nn.functional.pad(self._owner(args[0]), args[1])
        elif operation in ("clone", "_to_copy", "copy", "copy_"):
            owners = self._owner(args[operation in ("copy_", "copy")])
        else:
            owners = torch.zeros((), dtype=torch.int8)
        self._owner(made).copy_(owners)

    def defined(self) -> dict[int, torch.Tensor]:
        """By the address of a storage: which of its elements have been written. Complete ones are left out."""
        known = {start: owners != NOTHING for start, owners in self._owners.items() if len(owners)}
        return {start: each for start, each in known.items() if not each.all()}

    def count(self, launch) -> None:
        """Adds what an execution saw. What a kernel has stored is its own result, no copy any more.

        A line of a kernel counts for each element that it loads as often as for the element that it loads least:
        blocks that overlap, to cover a ragged end, are not a second pass.
        """
        for storage in {id(a.storage): a.storage for a in launch.arguments.values()}.values():
            owners = self._owners.get(storage.start)
            if owners is None or not len(owners):
                continue
            units = storage.units // len(owners)  # of an element: another tensor of this launch may have smaller ones
            read = self._read.setdefault(storage.start, torch.zeros(len(owners), dtype=torch.bool)).numpy()
            for loads in storage.passes.values():
                loads = loads.numpy() if units == 1 else loads.reshape(-1, units).amax(1).numpy()
                loaded, who = loads > 0, owners.numpy()
                read |= loaded
                for owner in range(1, 1 + int(who.max())):
                    seen = loads[loaded & (who == owner)]
                    self._reads[owner - 1] += int(seen.min()) * len(seen) if len(seen) else 0
            if storage.written:
                owners[(storage.writes > 0).reshape(-1, units).any(1)] = 0

    @property
    def reads(self) -> tuple[float, ...]:
        """For each input: how often an element was read, on average."""
        return tuple(round(n / max(each.numel(), 1), 3) for n, each in zip(self._reads, self._inputs, strict=True))

    @property
    def unread(self) -> tuple[tuple[int, ...], ...]:
        """For each input that was not copied, the first runs of elements that no kernel read, in row-major order."""
        return tuple(map(self._unread, self._inputs))

    def _unread(self, tensor: torch.Tensor) -> tuple[int, ...]:
        start = tensor.untyped_storage().data_ptr()
        read = self._read.get(start)
        if read is None or start in self._copied or read.all():
            return ()
        left = ~torch.as_strided(read, tensor.shape, tensor.stride(), tensor.storage_offset()).flatten()
        edges = torch.nn.functional.pad(left.to(torch.int8), (1, 1)).diff().nonzero().flatten()
        return tuple(edges[: 2 * wire.MAX_RUNS].tolist())
