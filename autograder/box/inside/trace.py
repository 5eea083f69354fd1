"""Records what a host function does as data, and replays it.

The learner's host function is called once on decoy tensors, in a process without other data. Every tensor
operation and every kernel launch is recorded. Kernels do not run. The judge then replays the list on the real
data, with the programs of the kernels and without the learner's Python. So a host function can allocate, copy, cast,
view and launch, but nothing that it computes itself can reach the result.

Runs in children of the zygote: `Recorder` beside the learner's Python, `Replay` in a later process without it.
autograder.box.wire.answers describes a trace.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from ...tensors import DTYPES, bits, dtype_name, storage_of
from .earlier import Earlier, KeptTensor

ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILL = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
        "fill", "fill_", "zero_", "scalar_tensor"}  # fmt: skip
MOVE = {"clone", "_to_copy", "copy_", "copy", "cat", "stack", "constant_pad_nd"}
# Not _reshape_alias: it accepts any size, so its result can go past the memory of its input.
VIEW = {"view", "_unsafe_view", "reshape", "as_strided", "slice", "select", "t", "transpose", "permute", "expand",
        "unsqueeze", "squeeze", "alias", "detach", "split", "split_with_sizes", "unbind", "lift_fresh"}  # fmt: skip
REPLAYABLE = ALLOCATE | FILL | MOVE | VIEW
# On few numbers, where a recorder is told how many: under jax.jit a seed is a tensor, and a loss is a mean over rows.
ARITHMETIC = {"add", "sub", "mul", "div", "fmod", "neg", "abs", "maximum", "minimum", "bitwise_and", "bitwise_or",
              "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift", "eq", "ne", "lt", "le", "gt",
              "ge", "sign", "sum", "mean", "count_nonzero", "where", "masked_fill", "clamp", "clamp_min", "reciprocal",
              "logical_not"}  # fmt: skip

MAX_STEPS = 4096
MAX_CONSTANT = 64  # constants of the host function that may go into one result
MAX_COMPUTED = 64  # steps in which the host function computes with numbers
MAX_ELEMENTS = 1 << 30


class HostArithmetic(Exception):
    """The host function computed part of the result with torch. `operation` is its name."""

    def __init__(self, operation: str):
        super().__init__(operation)
        self.operation = operation


class WrongDevice(Exception):
    """The host function made or returned a tensor on a different device than its inputs."""


class NotReplayable(Exception):
    """A step of the trace cannot be replayed. The message is for the learner."""


@functools.cache
def _calls_others(operator) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")


@functools.cache
def operation_name(operator) -> str:
    return operator.name().removeprefix("aten::").split(".")[0]


def moves(operation: str, overload: str, args: Sequence) -> bool:
    """Whether a step only moves numbers. To view bits as another dtype and then cast them would be arithmetic.

    The bits of a bool are 0 or 1 in each type of one byte.
    """
    if overload != "dtype":
        return operation in REPLAYABLE
    return operation == "view" and args[0].dtype == torch.bool and args[1] in (torch.int8, torch.uint8)


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
        self.steps: list[dict] = []
        self.numbers: dict[int, int] = {}
        self.named = -1  # the last number that was given
        self.kept: list[Any] = []  # keeps tensors alive, so that ids and storages stay unique
        self.reads: list[set[int]] = []
        self.writes: list[set[int]] = []
        self.uniform: set[int] = set()  # storages in which the host function has set every element to one constant
        self.launches = 0
        for index, tensor in enumerate(inputs):
            self._define(tensor, {"op": "input", "index": index}, reads=set())

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch imports its compiler, which takes 1.5 s, to exclude this mode from it

    # -- recording ---------------------------------------------------------------------------------------

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
        inputs = _tensors((args, kwargs))
        for tensor in inputs:
            self._number(tensor)
        result = operator(*args, **kwargs)
        self._note(operator, args, kwargs, inputs, result)
        return result

    def check_devices(self, kernel: str, arguments: dict):
        for name, tensor in arguments.items():
            if isinstance(tensor, torch.Tensor):
                self._check_device(tensor, f"{name}, an argument of {kernel},")

    def launch(self, kernel: str, grid: tuple[int, ...], arguments: dict, leaves: list, options: dict, programs: dict,
               tuned: dict | None):  # fmt: skip
        """leaves: label, value and type of each argument that is not a constant. programs: see `programs.Programs`."""
        touched = {storage_of(t) for _, value, _ in leaves for t in _tensors(getattr(value, "base", value))}
        step = {
            "op": "launch",
            "kernel": kernel[:100],
            "grid": list(grid),
            "args": {name: self._shown(value) for name, value in arguments.items()},
            "given": [[label, self._encode(value), kind] for label, value, kind in leaves],
            "options": options,
            **programs,
        }
        if tuned:
            step["tuned"] = tuned
        self._add(step, touched, touched)
        self.uniform -= touched
        self.launches += 1

    def _shown(self, value):
        """An argument as the judge looks at it. What is no plain value has the name of its kind."""
        value = getattr(value, "value", value)  # of a tl.constexpr
        if value is None or isinstance(value, (bool, int, float, torch.Tensor)):
            return self._encode(value)
        return {"text": (value if isinstance(value, str) else type(value).__name__)[:32]}

    def _check_device(self, tensor: torch.Tensor, what: str):
        if tensor.device.type != self.device.type:
            raise WrongDevice(f"{what} is on {tensor.device.type!r}, the input on {self.device.type!r}")

    def _note(self, operator, args, kwargs, inputs: list[torch.Tensor], result):
        name = operation_name(operator)
        outputs = _tensors(result)
        if not outputs:
            return
        reads = {storage_of(t) for t in inputs}
        known = set(self.numbers)
        step: dict = {"op": name}
        few = all(tensor.numel() <= self.computes for tensor in (*inputs, *outputs))
        if moves(name, operator._overloadname, args) or few and name in ARITHMETIC:
            step |= {
                "overload": operator._overloadname,
                "args": [self._encode(a) for a in args],
                "kwargs": {k: self._encode(v) for k, v in kwargs.items() if k not in ("layout", "pin_memory")},
            }
        elif reads and reads <= self.uniform and len(outputs) == 1 and (value := _one_number(result)) is not None:
            step = self._filled(result, value, in_place=id(result) in known)
        else:
            step["opaque"] = True
        in_place = [t for t in outputs if id(t) in known]
        fresh = [t for t in outputs if id(t) not in known]
        writes = {storage_of(t) for t in outputs}
        if step["op"] not in FILL | VIEW:
            self.uniform -= writes
        elif step["op"] in FILL and fresh:
            self.uniform |= writes
        self._add(step, reads, writes)
        step["out"] = [self._name(t) for t in fresh] if isinstance(result, (list, tuple)) or fresh else []
        if in_place and not fresh:
            step["out"] = []

    def _filled(self, result: torch.Tensor, value: float, in_place: bool) -> dict:
        """Arithmetic on tensors with one constant gives another such tensor: -torch.ones(n) is torch.full((n,), -1)."""
        if in_place:
            return {"op": "fill_", "overload": "Scalar", "args": [self._encode(result), value], "kwargs": {}}
        kwargs = {"dtype": self._encode(result.dtype), "device": self._encode(result.device)}
        return {"op": "full", "overload": "default", "args": [list(result.shape), value], "kwargs": kwargs}

    def _add(self, step: dict, reads: set[int], writes: set[int]):
        if len(self.steps) >= MAX_STEPS:
            raise NotReplayable(f"the host function does more than {MAX_STEPS} tensor operations")
        self.steps.append(step)
        self.reads.append(reads)
        self.writes.append(writes)

    def _define(self, tensor: torch.Tensor, step: dict, reads: set[int]):
        self._add(step, reads, {storage_of(tensor)})
        step["out"] = [self._name(tensor)]

    def _name(self, tensor: torch.Tensor) -> int:
        self.kept.append(tensor)
        self.named += 1
        self.numbers[id(tensor)] = self.named
        return self.named

    def _number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor. A tensor that was not made in a recorded step is a constant, if it is small."""
        if id(tensor) not in self.numbers:
            if (known := self._seen_as(tensor)) is not None:
                return known
            if what := self.earlier.what(storage_of(tensor)):
                step = {"op": what, "opaque": True, "kept": True}
            elif tensor.numel() <= MAX_CONSTANT and dtype_name(tensor.dtype) in DTYPES:
                with torch.utils._python_dispatch._disable_current_modes():
                    step = {"op": "constant", "values": tensor.detach().cpu().reshape(-1).tolist(),
                            "shape": list(tensor.shape), "dtype": dtype_name(tensor.dtype)}  # fmt: skip
            else:
                step = {"op": "a tensor made outside the function", "opaque": True}
            self.outside.add(storage_of(tensor))
            self._define(tensor, step, reads=set())
        return self.numbers[id(tensor)]

    def _seen_as(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor that autograd gives back as another object: the same memory, in the same form."""
        form = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype
        for known in self.kept:
            same = storage_of(known) == storage_of(tensor)
            if same and (known.data_ptr(), known.shape, known.stride(), known.dtype) == form:
                self.kept.append(tensor)
                self.numbers[id(tensor)] = self.numbers[id(known)]
                return self.numbers[id(tensor)]
        return None

    def _encode(self, value):
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
        if isinstance(value, int) and abs(value) >> 64:
            raise NotReplayable("an integer of more than 64 bits cannot be replayed")
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str) and len(value) <= 32:
            return {"text": value}
        if hasattr(value, "block_shape") and hasattr(value, "base"):
            sizes = [[int(n) for n in part] for part in (value.shape, value.strides, value.block_shape)]
            return {"descriptor": [self._encode(value.base), *sizes, str(getattr(value, "padding", "zero"))]}
        raise NotReplayable(f"an argument of type {type(value).__name__} cannot be replayed")

    # -- the finished trace ------------------------------------------------------------------------------

    @property
    def made(self) -> list[torch.Tensor]:
        """The tensors that the call was given or made."""
        return [tensor for tensor in self.kept if storage_of(tensor) not in self.outside]

    def finish(self, result: torch.Tensor) -> dict:
        """The steps that the result depends on.

        Raises HostArithmetic if one of them is a computation by torch. Raises KeptTensor if the result depends on
        memory of an earlier call, or an earlier result was changed.
        """
        self._check_device(result, "the returned tensor")
        number = self._number(result)
        for step, writes in zip(self.steps, self.writes, strict=True):
            changes = not step.get("kept") and step["op"] not in {"input"} | VIEW
            if changes and "the result" in map(self.earlier.what, writes):
                raise KeptTensor("the result")
        live = {storage_of(result)}
        kept = []
        for step, reads, writes in zip(reversed(self.steps), reversed(self.reads), reversed(self.writes)):
            if writes & live or step["op"] == "input":
                if step.get("kept"):
                    raise KeptTensor(step["op"])
                if step.get("opaque"):
                    raise HostArithmetic(step["op"])
                live |= reads
                kept.append(step)
        kept.reverse()
        return {"steps": kept, "result": number, "launches": self.launches}


def _one_number(tensor: torch.Tensor) -> bool | int | float | None:
    """The number that every element of a tensor holds, or None."""
    if not tensor.numel() or tensor.is_complex() or tensor.is_meta:
        return None
    with torch.utils._python_dispatch._disable_current_modes():
        first = tensor.flatten()[0]
        return first.item() if bool((tensor == first).all()) else None


def _tensors(value) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for v in value for t in _tensors(v)]


# -- replay ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Descriptor:
    """What a kernel needs of triton.tools.tensor_descriptor.TensorDescriptor."""

    base: torch.Tensor
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str


@dataclass(frozen=True)
class Launch:
    """One launch of a trace. program: its digest. arguments: label, value and type of each that is not a constant."""

    kernel: str
    grid: tuple[int, int, int]
    program: str
    arguments: list[tuple[str, Any, str]]
    options: dict[str, int]


class Replay:
    """Runs a trace on real tensors. It checks every field, because the trace comes from a process that is not trusted.

    `fresh(tensor)` prepares fresh memory; `run_kernel(launch)` launches; `moved(operation, arguments, made)` is told of
    each step in which torch writes numbers; `rehearse(launch, restored, zeroed)` may run an autotuned kernel before its
    launch, as a measurement does. Raises KeptTensor where a kernel has changed a tensor that was made outside the host
    function: the next call would find it changed.
    """

    def __init__(self, inputs: list[torch.Tensor], device, fresh, run_kernel, moved=lambda *copy: None, rehearse=None,
                 target="", computes: int = 0):  # fmt: skip
        self.inputs, self.device, self.fresh, self.run_kernel = inputs, device, fresh, run_kernel
        self.computes, self.computed = computes, 0
        self.moved, self.rehearse, self.target = moved, rehearse, target
        self.tensors: dict[int, torch.Tensor] = {}
        self.launched: list[str] = []
        self.outside: list[tuple[torch.Tensor, torch.Tensor]] = []  # tensors made outside, and copies of them
        self.moves = False  # whether torch wrote numbers anywhere
        self.constants = 0

    def run(self, trace: dict) -> torch.Tensor:
        steps = _expect(trace.get("steps"), list)
        if len(steps) > MAX_STEPS:
            raise NotReplayable("too many steps")
        for step in steps:
            self._step(_expect(step, dict))
        if not all(torch.equal(bits(tensor), bits(before)) for tensor, before in self.outside):
            raise KeptTensor("a tensor")
        return self._tensor(trace.get("result"))

    def _step(self, step: dict):
        op = _expect(step.get("op"), str)
        self._charge(op, step)
        if op == "launch":
            self._launch(step)
            return
        if op == "input":
            made = self.inputs[_integer(step.get("index"), 0, len(self.inputs) - 1)]
        elif op == "constant":
            made = self._constant(step)
        elif op in REPLAYABLE | ARITHMETIC:
            made = self._operation(op, step)
        else:
            raise NotReplayable(f"torch.{op} is not replayed")
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(tensor, torch.Tensor) for tensor in made):
            raise NotReplayable(f"torch.{op} gave no tensor")
        names = _expect(step.get("out"), list)
        if names and len(names) != len(made):
            raise NotReplayable("a step has a different number of outputs than it announced")
        for name, tensor in zip(names, made):
            self.tensors[_integer(name, 0, 1 << 20)] = tensor

    def _operation(self, op: str, step: dict):
        overload = _expect(step.get("overload"), str)
        packet = getattr(torch.ops.aten, op)
        if overload not in packet.overloads():
            raise NotReplayable(f"torch.{op} has no form {overload!r}")
        args = [self._decode(a) for a in _expect(step.get("args"), list)]
        kwargs = {k: self._decode(v) for k, v in _expect(step.get("kwargs"), dict).items()}
        if op in REPLAYABLE and not moves(op, overload, args):
            raise NotReplayable(f"torch.{op} to another dtype is not replayed")
        if op in ALLOCATE | FILL and "device" in {a.name for a in getattr(packet, overload)._schema.arguments}:
            kwargs["device"] = self.device
        for sizes in (a for a in args if isinstance(a, list) and all(type(n) is int for n in a)):
            if math.prod(max(n, 0) for n in sizes) > MAX_ELEMENTS:
                raise MemoryError("a tensor of more than 2^30 elements")
        self.moves |= op in FILL | MOVE
        made = getattr(packet, overload)(*args, **kwargs)
        if op in ARITHMETIC:
            self._computed(op, [*_tensors(args), made])
        if op in ALLOCATE:
            made = self.fresh(made)
        if op in FILL | MOVE:
            self.moved(op, args, made)
        return made

    def _constant(self, step: dict) -> torch.Tensor:
        values = _expect(step.get("values"), list)
        if not all(type(v) in (int, float, bool) for v in values):
            raise NotReplayable("a constant with too many numbers, or with something else than numbers")
        shape = [_integer(n, 0, MAX_CONSTANT) for n in _expect(step.get("shape"), list)]
        tensor = torch.tensor(values, dtype=DTYPES[step.get("dtype")]).reshape(shape).to(self.device)
        self.outside.append((tensor, tensor.clone()))
        self.moved("constant", [], tensor)
        return tensor

    def _charge(self, op: str, step: dict):
        """Counts the numbers of the learner's in a step that can become a part of the result."""
        if not self.inputs:  # every number can, also several in one, or one told by which tensors are joined
            self.constants += numbers([step.get(key) for key in ("values", "args", "kwargs", "grid", "given")])
        elif op == "constant":
            self.constants += len(_expect(step.get("values"), list))
        elif op != "launch":
            self.constants += op in FILL or op == "constant_pad_nd"
        if self.constants > MAX_CONSTANT:
            raise NotReplayable(f"the host function uses more than {MAX_CONSTANT} constants")

    def _computed(self, op: str, tensors: list[torch.Tensor]):
        """Counts what the host function computes: in few steps, on tensors of few numbers."""
        self.computed += 1
        if self.computed > MAX_COMPUTED or any(tensor.numel() > self.computes for tensor in tensors):
            raise NotReplayable(f"torch.{op} is not replayed")

    def _launch(self, step: dict):
        grid = tuple(_integer(n, 0, 1 << 31) for n in _expect(step.get("grid"), list))
        if len(grid) != 3:
            raise NotReplayable("a launch grid that is not complete")
        launch = Launch(
            kernel=_expect(step.get("kernel"), str)[:100],
            grid=grid,
            program=_expect(step.get(self.target, step.get("program")), str),
            arguments=[self._argument(each) for each in _expect(step.get("given"), list)],
            options={str(k): _integer(v, 0, 1 << 10) for k, v in _expect(step.get("options"), dict).items()},
        )
        self.launched.append(launch.kernel)
        if not math.prod(grid):
            return
        again = step["tuned"].get("again") if isinstance(step.get("tuned"), dict) else None
        if self.rehearse and isinstance(again, dict):
            names = [{str(name) for name in _expect(again.get(key), list)} for key in ("restored", "zeroed")]
            self.rehearse(launch, *names)
        self.run_kernel(launch)

    def _argument(self, given) -> tuple[str, Any, str]:
        label, value, kind = _expect(given, list)
        value = self._decode(value)
        fits = {torch.Tensor: kind.startswith("*"), Descriptor: kind.startswith("tensordesc<")}
        number = isinstance(value, (bool, int, float)) and _NUMBERS.fullmatch(kind)
        if not (fits.get(type(value), number) and len(_expect(label, str)) <= 200):
            raise NotReplayable("an argument of another type than its program has")
        return label, value, kind

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
        sizes = ([_integer(n, 0, MAX_ELEMENTS) for n in _expect(part, list)] for part in (shape, strides, block))
        return Descriptor(self._decode(base), *sizes, _expect(padding, str))


def numbers(value) -> int:
    """How many numbers of 31 bits an argument of a step may carry."""
    if isinstance(value, list):
        return sum(map(numbers, value))
    if isinstance(value, dict):
        return 1 if set(value) & {"t", "text"} else sum(map(numbers, value.values()))
    if isinstance(value, int):
        return 1 + (abs(value).bit_length() - 1) // 31
    return 2 * isinstance(value, float)


_NUMBERS = re.compile(r"[iu](1|8|16|32|64)|fp(16|32|64)|bf16")


def _expect(value, kind: type):
    if type(value) is not kind:
        raise NotReplayable(f"a {kind.__name__} was expected in the trace")
    return value


def _integer(value, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise NotReplayable("a number in the trace is out of range")
    return value
