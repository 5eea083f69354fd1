"""Records what a host function does as data, a trace: see autograder.box.wire.

The learner's host function is called once on decoy tensors, in a process without other data. Every tensor
operation and every kernel launch is recorded. Kernels do not run. A later process replays the list on the real
data, with the programs of the kernels and without the learner's Python: see `replay`. So a host function can allocate,
copy, cast, view and launch, but nothing that it computes itself can reach the result.

`Launches` is installed before the learner's module is executed. A launch inside a recorded call goes into its trace:
Triton's front end reads the very object that was launched, with the globals that it has now, and the trace names the
program that comes of it. So what the front end refuses ends the host function, as it does on a GPU. A launch outside of
a recorded call (such as a left-over benchmark at the end of the file) does nothing.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch._library.custom_ops import OPDEFS
from torch._ops import HigherOrderOperator
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from triton.compiler import CompilationError
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from workshop import launching
from workshop.compiling import compiler_options
from workshop.executor import launch
from workshop.executor.facts import unused
from workshop.executor.program import Program, to_data

from ...tensors import DTYPES, dtype_name, storage_of
from ...versions import LAUNCH_OPTIONS
from .. import wire
from .job import Refused

MUCH = 32 << 20  # bytes: for so much the system gives new pages, which take no time before they are touched


class HostArithmetic(Refused):
    """The host function computed part of the result with torch. Its text is the operation's name."""

    kind = "host-arithmetic"


class NotReplayable(Refused):
    """A step of the trace cannot be replayed."""

    kind = "not-replayable"


class KeptTensor(Refused):
    """The host function used memory of an earlier call, or leaves its own to a later one. The message says which."""

    kind = "kept"


@functools.cache
def _calls_others(operator) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")


@functools.cache
def operation_name(operator) -> str:
    return operator.name().removeprefix("aten::").split(".")[0]


def moves(operation: str, overload: str, args: Sequence, viewed: set[int]) -> bool:
    """Whether a step only moves numbers. To view bits as another dtype and then cast them would be arithmetic.

    viewed: the storages whose bits are viewed so, to which this step may add one. The bits of a bool are 0 or 1 in each
    type of one byte.
    """
    own = {storage_of(tensor) for tensor in tensors_in(args)}
    if overload != "dtype":
        return operation in wire.REPLAYABLE and not (operation in wire.CASTS and own & viewed)
    if args[0].dtype != torch.bool or args[1] not in (torch.int8, torch.uint8):
        viewed |= own
    return operation == "view" and args[0].dtype.itemsize == args[1].itemsize


ASKS = {"_local_scalar_dense", "equal", "is_nonzero"}  # operations that give Python a number of a tensor
_ZEROS = {"zeros": torch.ops.aten.empty.memory_format, "zeros_like": torch.ops.aten.empty_like.default,
          "new_zeros": torch.ops.aten.new_empty.default}  # fmt: skip


def untouched(operation: str, args: Sequence, kwargs: dict) -> torch.Tensor | None:
    """What a step makes that copies much memory, or makes much with zeros. Its pages stay untouched.

    So a copy holds anything, as a decoy does. None for other steps.
    """
    if operation not in _ZEROS.keys() | {"clone", "_to_copy"} or not args:
        return None
    tensors, last = tensors_in(args), args[-1]
    elements = last.numel() if isinstance(last, torch.Tensor) else math.prod(last)
    if elements * max((tensor.itemsize for tensor in tensors), default=4) < MUCH:
        return None
    devices = [tensor.device for tensor in tensors] + [torch.device(kwargs.get("device") or "cpu")]
    if any(device.type != "cpu" for device in devices):
        return None
    if operation not in _ZEROS:
        return torch.empty_like(last, **{name: value for name, value in kwargs.items() if name != "non_blocking"})
    made = _ZEROS[operation](*args, **kwargs)
    memory = torch.from_numpy(np.zeros(made.untyped_storage().nbytes(), np.uint8))
    return memory.view(made.dtype).as_strided(made.shape, made.stride())


class Earlier:
    """The memory that earlier calls made, by identity. No later call may use it: each call gives a fresh result.

    A weak reference keeps an identity from being given again.
    """

    def __init__(self):
        self._kept: dict[int, tuple[StorageWeakRef, str]] = {}

    def remember(self, tensors: list[torch.Tensor], result: object) -> None:
        """A call has ended: it was given or made these tensors, and it returned `result`."""
        results = [result] if isinstance(result, torch.Tensor) else []
        for what, kept in (("a tensor", tensors), ("the result", results)):
            for tensor in kept:
                reference = StorageWeakRef(tensor.untyped_storage())
                self._kept[reference.cdata] = (reference, what)

    @property
    def results(self) -> int:
        """How many results of earlier calls are still there, although nobody here has them."""
        return sum(what == "the result" and not kept.expired() for kept, what in self._kept.values())

    def what(self, storage: int) -> str | None:
        """ "a tensor" or "the result" for the memory of an earlier call; None for other memory."""
        return self._kept[storage][1] if storage in self._kept else None


@dataclass(frozen=True)
class _Noted:
    """A step, with the storages that it reads and writes. What cannot be replayed is known by its name only.

    kept: it takes memory of an earlier call.
    """

    step: wire.Step | str
    reads: set[int]
    writes: set[int]
    kept: bool

    @property
    def changes(self) -> bool:
        """Whether it may change memory that is there."""
        name = self.step if isinstance(self.step, str) else getattr(self.step, "op", "")
        return not self.kept and not isinstance(self.step, wire.Input) and name not in wire.VIEW


class Recorder(TorchDispatchMode):
    """Records tensor operations and launches between `__enter__` and `finish`.

    inside: what a registered operator's function runs in.
    """

    supports_higher_order_operators = True  # a launch by wrap_triton outside of an operator

    def __init__(self, inputs: list[torch.Tensor], device: torch.device | None = None, earlier: Earlier | None = None,
                 computes: int = 0, inside: Callable = contextlib.nullcontext):  # fmt: skip
        super().__init__()
        self.inside = inside
        self.computes = computes  # the host function may compute with tensors of at most so many elements
        self.device = device or torch.device("cpu")
        self.earlier = earlier or Earlier()
        self.outside: set[int] = set()  # storages that no call has made
        self.noted: list[_Noted] = []
        self.numbers: dict[tuple, int] = {}  # by form: autograd gives a tensor back as another object
        self.named = -1  # the last number that was given
        self.kept: list[Any] = []  # keeps tensors alive, so that storages stay unique
        self.follows = set(map(storage_of, inputs))  # storages that depend on the inputs
        self.viewed: set[int] = set()  # see moves
        self.uniform: set[int] = set()  # storages in which the host function has set every element to one constant
        self.launches = 0
        for index, tensor in enumerate(inputs):
            self._define(tensor, lambda out, index=index: wire.Input(index, out))

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler, which takes 1.5 s, to exclude this mode from it

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if isinstance(operator, HigherOrderOperator):
            return operator(*args, **kwargs)
        if registered := OPDEFS.get(operator.name()):
            functions = registered._backend_fns  # by kind of device
            with self, self.inside():
                return (functions.get("cpu") or functions.get("cuda") or functions[None])(*args, **kwargs)
        if _calls_others(operator):
            with self:  # torch takes these apart itself, but not inside of a registered one
                return operator._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        inputs = tensors_in((args, kwargs))
        for tensor in inputs:
            self._number(tensor)
        result = untouched(operation_name(operator), args, kwargs)
        result = operator(*args, **kwargs) if result is None else result
        self._note(operator, args, kwargs, inputs, result)
        return result

    def launch(self, kernel: str, grid: tuple[int, ...], arguments: dict, leaves: list, options: dict,
               found: wire.Found, tuned: wire.Tuned | None = None):  # fmt: skip
        """leaves: label, value and type of each argument that is not a constant. found: its programs."""
        touched = {storage_of(t) for _, value, _ in leaves for t in tensors_in(getattr(value, "base", value))}
        args = {name: self._shown(value) for name, value in arguments.items()}
        given = tuple(wire.Argument(label, self._encode(value), kind) for label, value, kind in leaves)
        step = wire.Launch(kernel[:100], grid, found.program, given, args, options, found.hip, found.unused, tuned)
        self.follows |= touched
        self._add(step, touched, touched)
        self.uniform -= touched
        self.launches += 1

    def _shown(self, value):
        """An argument as the judge looks at it. What is no plain value has the name of its kind."""
        value = getattr(value, "value", value)  # of a tl.constexpr
        if value is None or isinstance(value, (bool, int, float, torch.Tensor)):
            return self._encode(value)
        return {"text": (value if isinstance(value, str) else type(value).__name__)[:32]}

    def check_device(self, tensor: torch.Tensor, what: str):
        if tensor.device.type != self.device.type:
            words = f"{what} is on {tensor.device.type!r}, the input on {self.device.type!r}"
            raise Refused(words, kind="wrong-device")

    def _note(self, operator, args, kwargs, inputs: list[torch.Tensor], result):
        name = operation_name(operator)
        outputs = tensors_in(result)
        reads, writes = {storage_of(t) for t in inputs}, {storage_of(t) for t in outputs}
        if reads & self.follows:
            if name in ASKS:
                raise NotReplayable("what it launches depends on the numbers in a tensor, and the judge plans launches "
                                    "without them. Reading them makes the host wait for the GPU")  # fmt: skip
            self.follows |= writes
        if not outputs:
            return
        fresh = any(_form(t) not in self.numbers for t in outputs)
        few = all(tensor.numel() <= self.computes for tensor in (*inputs, *outputs))
        step: tuple | None = None
        if moves(name, operator._overloadname, args, self.viewed) or few and name in wire.ARITHMETIC:
            named = {k: self._encode(v) for k, v in kwargs.items() if k not in ("layout", "pin_memory")}
            step = name, operator._overloadname, [self._encode(a) for a in args], named
        elif reads and reads <= self.uniform and len(outputs) == 1 and (value := _one_number(result)) is not None:
            step = self._filled(result, value, in_place=not fresh)
            name = step[0]
        if reads & self.viewed:
            self.viewed |= writes
        if name not in wire.FILL | wire.VIEW:
            self.uniform -= writes
        elif name in wire.FILL and fresh:
            self.uniform |= writes
        out = tuple(map(self._name, outputs)) if fresh else ()
        as_bits = " as another dtype" * (operator._overloadname == "dtype")  # other views are no computation
        self._add(wire.Operation(*step, out) if step else name + as_bits, reads, writes)

    def _filled(self, result: torch.Tensor, value: float, in_place: bool) -> tuple:
        """Arithmetic on tensors with one constant gives another such tensor: -torch.ones(n) is torch.full((n,), -1)."""
        if in_place:
            return "fill_", "Scalar", [self._encode(result), value], {}
        kwargs = {"dtype": self._encode(result.dtype), "device": self._encode(result.device)}
        return "full", "default", [list(result.shape), value], kwargs

    def _add(self, step: wire.Step | str, reads: set[int], writes: set[int], kept: bool = False):
        if len(self.noted) >= wire.MAX_STEPS:
            raise NotReplayable(f"the host function does more than {wire.MAX_STEPS} tensor operations")
        self.noted.append(_Noted(step, reads, writes, kept))

    def _define(self, tensor: torch.Tensor, step: Callable[[tuple[int]], wire.Step | str], kept: bool = False):
        """Adds the step that makes a tensor, which `step` makes of its name."""
        self._add(step((self._name(tensor),)), set(), {storage_of(tensor)}, kept)

    def opaque(self, tensor: torch.Tensor, name: str):
        """Adds a step of this name, which cannot be replayed."""
        self._define(tensor, lambda out: name)

    def _name(self, tensor: torch.Tensor) -> int:
        self.kept.append(tensor)
        self.named += 1
        self.numbers[_form(tensor)] = self.named
        return self.named

    def _number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor. A tensor that was not made in a recorded step is a constant, if it is small."""
        if _form(tensor) not in self.numbers:
            self.outside.add(storage_of(tensor))
            if what := self.earlier.what(storage_of(tensor)):
                self._define(tensor, lambda out: what, kept=True)
            elif tensor.numel() <= wire.MAX_CONSTANT and dtype_name(tensor.dtype) in DTYPES:
                with torch.utils._python_dispatch._disable_current_modes():
                    values = tensor.detach().cpu().reshape(-1).tolist()
                shape, dtype = tuple(tensor.shape), dtype_name(tensor.dtype)
                self._define(tensor, lambda out: wire.Constant(values, shape, dtype, out))
            else:
                self.opaque(tensor, "a tensor made outside the function")
        return self.numbers[_form(tensor)]

    def _encode(self, value):
        if isinstance(value, int) and abs(value) >> 64:
            raise NotReplayable("an integer of more than 64 bits cannot be replayed")
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, torch.Tensor):
            return {"t": self._number(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": dtype_name(value)}
        if isinstance(value, torch.device):
            return {"device": True}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self._encode(v) for v in value]
        if isinstance(value, str) and len(value) <= 32:
            return {"text": value}
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            sizes = [[int(n) for n in part] for part in (value.shape, value.strides, value.block_shape)]
            padding = self._encode(str(getattr(value, "padding", "zero")))
            return {"descriptor": [self._encode(value.base), *sizes, padding]}
        raise NotReplayable(f"an argument of type {type(value).__name__} cannot be replayed")

    @property
    def made(self) -> list[torch.Tensor]:
        """The tensors that the call was given or made."""
        return [tensor for tensor in self.kept if storage_of(tensor) not in self.outside]

    def finish(self, result: torch.Tensor) -> wire.Trace:
        """The steps that the result depends on.

        Raises HostArithmetic if one of them is a computation by torch. Raises KeptTensor if the result depends on
        memory of an earlier call, or an earlier result was changed.
        """
        self.check_device(result, "the returned tensor")
        number = self._number(result)
        if any(noted.changes and "the result" in map(self.earlier.what, noted.writes) for noted in self.noted):
            raise KeptTensor("the result")
        live = {storage_of(result)}
        steps = []
        for noted in reversed(self.noted):
            if noted.writes & live or isinstance(noted.step, wire.Input):
                if isinstance(noted.step, str):
                    raise KeptTensor(noted.step) if noted.kept else HostArithmetic(noted.step)
                live |= noted.reads
                steps.append(noted.step)
        return wire.Trace(tuple(reversed(steps)), number, self.launches)


def _form(tensor: torch.Tensor) -> tuple:
    """What two tensors share that are the same elements of the same memory."""
    return storage_of(tensor), tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype


def _one_number(tensor: torch.Tensor) -> bool | int | float | None:
    """The number that every element of a tensor holds, or None."""
    if not tensor.numel() or tensor.is_complex() or tensor.is_meta:
        return None
    with torch.utils._python_dispatch._disable_current_modes():
        first = tensor.flatten()[0]
        return first.item() if bool((tensor == first).all()) else None


def tensors_in(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for v in value for t in tensors_in(v)]


OPTIONS = ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "maxnreg")
MAX_THREADS = 1024  # of one program, on NVIDIA's and on AMD's GPUs
WARP_SIZES = {"cuda": {"NVIDIA": 32}, "hip": {"AMD": 64}, "interpreter": {"NVIDIA": 32, "AMD": 64}}
COMPILER_OPTIONS = compiler_options()  # most have no meaning for a verdict
MAX_VARIANTS = 4  # other values of one constant of a space
MAX_UNUSED = 8  # of a program


class BadOption(Refused, ValueError):
    """A launch option that no GPU can use."""

    kind = "launch-option"


class UnknownOption(Refused, TypeError):
    """A launch names an option that is neither a parameter of the kernel nor known to this Triton's compilers."""


def check_options(options: dict, backend: str) -> None:
    """Raises BadOption for options that a GPU of this backend refuses at the launch."""
    for name in ("num_warps", "num_ctas", "num_stages", "maxnreg"):
        value = options.get(name)
        if value is None:
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise BadOption(f"{name} is {str(value)[:40]!r}, and must be an integer") from None
        if number < (name != "num_stages"):
            raise BadOption(f"{name} is {number}, and must be at least {int(name != 'num_stages')}")
        if name in ("num_warps", "num_ctas") and number & (number - 1):
            raise BadOption(f"{name} is {number}, and must be a power of two")
    for vendor, lanes in WARP_SIZES[backend].items():
        threads = lanes * operator.index(options.get("num_warps") or 1)
        if threads > MAX_THREADS:
            raise BadOption(
                f"num_warps is {threads // lanes}: with {lanes} lanes in a warp, as on {vendor}'s GPUs, these are "
                f"{threads} threads, and a program has at most {MAX_THREADS}"
            )


class Launches:
    """Records launches. `configuration` chooses one of the configurations of an autotuned kernel.

    variants: the programs for other values of its constants are read, too. one_vendor: see Programs.
    """

    def __init__(self, backend: str, known: tuple[wire.Found, ...] = (), one_vendor: bool = False):
        self.vendor = backend  # whose limits hold for launch options
        self.programs = Programs(backend, known, one_vendor)
        self.recorder: Recorder | None = None
        self.executes = False  # launches run, and are not recorded
        self.configuration, self.variants = 0, False
        self.tuned: wire.Tuned | None = None  # of the launch that an autotuner is making
        self.space: list = []  # its configurations

    def install(self):
        def run(kernel, *args, grid, warmup, **kwargs):
            if self.executes:
                return launching.run(kernel, *args, grid=grid, warmup=warmup, **kwargs)
            if warmup:
                return Uncompiled(kernel, args, kwargs)
            self.record(kernel, grid, args, kwargs)
            return None

        def tuned_run(tuner, *args, **kwargs):
            tuner.nargs = dict(zip(tuner.arg_names, args))  # pruning functions of the learner read it
            if twice := sorted({key for each in tuner.configs for key in each.all_kwargs()} & kwargs.keys()):
                name = tuner.base_fn.__name__
                raise TypeError(f"{name}() got multiple values for keyword argument {twice[0]!r}")
            candidates = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
            index = self.configuration % len(candidates)
            config = candidates[index]
            for each in candidates:
                options = {k: v for k, v in each.all_kwargs().items() if k not in tuner.arg_names}
                check_options(options, self.vendor)
            if config.pre_hook is not None:
                config.pre_hook({**tuner.nargs, **kwargs, **config.all_kwargs()})
            space, key = tuple(_plain(c.all_kwargs()) for c in candidates), tuple(map(str, tuner.keys))
            self.tuned = wire.Tuned(space, index, key, _again(tuner, candidates))
            self.space = candidates
            try:
                return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
            finally:
                self.tuned, self.space = None, []

        Autotuner.run = tuned_run
        JITFunction.run = launch.method(run)
        JITFunction.__getitem__ = lambda kernel, grid: functools.partial(kernel.run, grid=grid, warmup=False)
        JITFunction.warmup = lambda kernel, *args, grid, **kw: kernel.run(*args, grid=grid, warmup=True, **kw)

    def record(self, kernel, grid, args, kwargs):
        if self.recorder is None:
            return
        name = kernel.fn.__name__
        bound, options = launch.bind(kernel, args, kwargs)
        for option in sorted(set(options) - set(OPTIONS) - COMPILER_OPTIONS):
            of_another_version = {"kind": "not-in-triton", "words": option} if option in LAUNCH_OPTIONS else {}
            raise UnknownOption(f"{name}() got an unexpected keyword argument {option!r}", **of_another_version)
        check_options(options, self.vendor)
        shape = launch.grid_of(grid, bound)
        for label, tensor in bound.items():
            if isinstance(tensor, torch.Tensor):
                self.recorder.check_device(tensor, f"{label}, an argument of {name},")
        options = {k: int(v) for k, v in options.items() if k in OPTIONS and isinstance(v, int)}
        try:
            special = launch.specialise(kernel, bound)
            programs = self.programs.of(kernel, special, options)
            others = self._others(kernel, bound, options) if self.variants else ()
            tuned = self.tuned and replace(self.tuned, others=tuple(others))
        except Exception as error:
            error.kernel = name
            raise
        self.recorder.launch(name, shape, bound, special.arguments, options, programs, tuned)

    def _others(self, kernel, bound: dict, options: dict) -> list[wire.Other]:
        """The programs with another value of one constant of the space."""
        values: dict[str, list] = {}
        for config in self.space:
            chosen = config.all_kwargs()
            for name in chosen.keys() & bound.keys():
                values.setdefault(name, []).append(chosen[name])
        found = []
        for name, given in values.items():
            if len(set(map(repr, given))) > 1:
                more = [1, *given] if type(given[0]) is int else given
                others = list({repr(v): v for v in more if repr(v) != repr(bound[name])}.values())[:MAX_VARIANTS]
                found += [wire.Other(name, self._with(kernel, bound | {name: value}, options)) for value in others]
        return found

    def _with(self, kernel, bound: dict, options: dict) -> str | None:
        try:
            return self.programs.of(kernel, launch.specialise(kernel, bound), options).program
        except Exception:
            return None


def _again(tuner: Autotuner, candidates: list) -> wire.Again | None:
    """What Triton puts back before it runs a kernel again; None where it runs it once, or where hooks do it."""
    hooks = [tuner, "user_defined_pre_hook"], [tuner, "user_defined_post_hook"], *([c, "pre_hook"] for c in candidates)
    if len(candidates) < 2 or any(getattr(owner, name, None) for owner, name in hooks):
        return None
    return wire.Again(tuple(map(str, tuner.restore_value)), tuple(map(str, tuner.reset_to_zero)))


class Uncompiled(launching.Compiled):
    """The result of `kernel.warmup(...)`. Its resources are made up: enough for host code that computes a launch."""

    n_regs, n_spills = 32, 0

    @property
    def metadata(self):
        return SimpleNamespace(shared=64, num_warps=self._kwargs.get("num_warps", 4), name=self._kernel.fn.__name__)

    def __getattr__(self, name: str):  # nothing is compiled here
        raise AttributeError(name)


def _plain(constants: dict) -> dict:
    return {str(k): v for k, v in constants.items() if isinstance(v, (int, float, bool, str))}


class Programs:
    """Reads kernels with Triton's front end. `texts`: what came of it, by digest.

    A program is named by the digest of its text, so two that do the same are one.
    known: what an earlier process with the same modules found. one_vendor: only what a replay runs is read.
    """

    def __init__(self, backend: str, known: tuple[wire.Found, ...] = (), one_vendor: bool = False):
        # Without a GPU, a kernel must be right for both vendors. Rarely their programs differ.
        self.both = backend == "interpreter" and not one_vendor
        self.target = "hip" if backend == "hip" else "cuda"
        self.texts: dict[str, str] = {}
        self.sent: set[str] = set()
        self._found = {each.key: each for each in known}
        self._known = set(self._found)

    def of(self, kernel, special: launch.Specialisation, options: dict) -> wire.Found:
        """The programs of a launch, and what is unused in them. Raises what Triton's front end raises."""
        key = wire.digest_of(repr(launch.key_of(kernel, special, options)))
        if key not in self._found:
            self._found[key] = self._read(key, kernel, special, options)
        launch.check_globals(kernel)
        return self._found[key]

    def _read(self, key: str, kernel, special: launch.Specialisation, options: dict) -> wire.Found:
        program = launch.lowered(kernel, special, options, self.target)
        labels = [label for label, *_ in special.arguments]
        told = tuple(unused(program, labels)[:MAX_UNUSED])
        found = wire.Found(key, self._digest(program), unused=told)
        alike = self._found.get(kernel.cache_key)
        if not self.both or alike and alike.alike:
            return found
        try:
            other = self._digest(launch.lowered(kernel, special, options, "hip"))
        except CompilationError:  # such as input_precision="tf32x3": one compiler that accepts it is enough
            return found
        self._found.setdefault(kernel.cache_key, wire.Found(kernel.cache_key, alike=other == found.program))
        return found if other == found.program else replace(found, hip=other)

    def _digest(self, program: Program) -> str:
        text = json.dumps(to_data(program), separators=(",", ":"))
        digest = wire.digest_of(text)
        self.texts[digest] = text
        return digest

    def unsent(self, trace: wire.Trace) -> dict[str, str]:
        """Those that a trace names and no earlier one named, by digest."""
        names = {name for name in trace.digests if name in self.texts and name not in self.sent}
        self.sent |= names
        return {name: self.texts[name] for name in names}

    def news(self) -> tuple[wire.Found, ...]:
        """What was found, for a later process. The judge has all its programs."""
        new = (each for key, each in self._found.items() if key not in self._known)
        return tuple(each for each in new if {each.program, each.hip} - {""} <= self.sent)
