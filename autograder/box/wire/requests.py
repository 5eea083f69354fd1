"""What the judge asks of the box. The judge's process makes these records; a child of the zygote reads them.

A job is one request with the memory that its tensors lie in. That memory holds an 8-byte length, the request as
JSON of that length, and, from the next multiple of ALIGNMENT bytes, the tensors. `layout.Packer` places them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from . import codec
from .answers import Trace

ALIGNMENT = 64  # bytes, of the tensors in a job's memory and of the results in its output
GUARD = 512  # elements before and behind a tensor; a multiple of 16 keeps the alignment that Triton specialises on

Number = int | float | bool

# -- tensors and results ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decoy:
    """A tensor argument without its values: all that a process that runs the learner's Python learns of it."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class TensorSpec:
    """A tensor whose elements lie, in row-major order, at `offset` in the job's tensors.

    `stride` is the layout that the learner's code meets; the bytes in the job are always contiguous.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    offset: int
    bytes: int


@dataclass(frozen=True)
class Slot:
    """Where a result goes in the output: `capacity` bytes from `offset`. A result of more bytes is not written."""

    offset: int
    capacity: int


@dataclass(frozen=True)
class Scalar:
    """An argument that is a number; the learner's Python gets the real one."""

    scalar: Number


# -- kernels ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanCase:
    arguments: tuple[Decoy | Scalar, ...]


@dataclass(frozen=True)
class PlanRequest:
    """Run the learner's module, call `entry` on decoys, and report the trace of each case."""

    kind: ClassVar[str] = "plan"
    source: str
    entry: str
    cases: tuple[PlanCase, ...]


@dataclass(frozen=True)
class TemplateRequest:
    """The solution's kernel in which blanks are tried: its source, its name, and the names of its blanks."""

    source: str
    kernel: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ReplayCase:
    """One trace on real inputs.

    poison: what masked-off lanes and fresh memory hold, "nan", "zero" or "large". backwards: the programs of a
    launch run from the last to the first. blank: the blank of the template that is tried; None is the whole answer.
    """

    trace: Trace
    inputs: tuple[TensorSpec, ...]
    slot: Slot
    poison: str = "nan"
    backwards: bool = False
    blank: str | None = None


@dataclass(frozen=True)
class ReplayRequest:
    """Run the learner's kernels, without the learner's Python, along traces. `guard`: elements around a tensor."""

    kind: ClassVar[str] = "replay"
    source: str
    cases: tuple[ReplayCase, ...]
    template: TemplateRequest | None = None
    guard: int = GUARD


@dataclass(frozen=True)
class TuneCase:
    trace: Trace
    arguments: tuple[Decoy | Scalar, ...]


@dataclass(frozen=True)
class TuneRequest:
    """Time the launches of several traces against each other, on a GPU. The value is a list of milliseconds."""

    kind: ClassVar[str] = "tune"
    source: str
    cases: tuple[TuneCase, ...]


# -- values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """An argument that is a plain value: a number, a string, or lists and dicts of them."""

    plain: object


@dataclass(frozen=True)
class Device:
    """An argument that is a `workshop.device.DeviceFacts`: its fields."""

    device: dict


@dataclass(frozen=True)
class ValueCase:
    arguments: tuple[Plain | Device, ...]


@dataclass(frozen=True)
class ValueRequest:
    """Call a function of plain values, and report what it returns."""

    kind: ClassVar[str] = "value"
    source: str
    entry: str
    cases: tuple[ValueCase, ...]


# -- JAX -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """An argument that is a JAX array."""

    array: TensorSpec


@dataclass(frozen=True)
class Static:
    """An argument that is a Python number, under jit too."""

    static: Number


@dataclass(frozen=True)
class Traced:
    """An argument that is a Python number in a plain call, and is traced under jit."""

    traced: Number


@dataclass(frozen=True)
class JaxCall:
    """One call of the learner's function.

    grad: the result is the gradient of (function(*arguments) * cotangent).sum() by the first argument.
    needs_kernel: the program that jit compiles for this call has to launch a kernel.
    """

    arguments: tuple[Array | Static | Traced, ...]
    slot: Slot
    jit: bool = False
    grad: bool = False
    cotangent: TensorSpec | None = None
    needs_kernel: bool = True


@dataclass(frozen=True)
class JaxRequest:
    """Call a function of JAX arrays.

    The last report, one after those of the calls, has the value {"kernels": [...], "arithmetic": [...]}: the
    kernels that JAX traced, and the arithmetic beside them. With `empty_kernels` the kernels do nothing, and that
    report is not sent.
    """

    kind: ClassVar[str] = "jax"
    source: str
    entry: str
    calls: tuple[JaxCall, ...]
    empty_kernels: bool = False


Request = PlanRequest | ReplayRequest | TuneRequest | ValueRequest | JaxRequest
_REQUESTS = {each.kind: each for each in (PlanRequest, ReplayRequest, TuneRequest, ValueRequest, JaxRequest)}

# -- the zygote ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """What a zygote is told once, before it imports anything."""

    backend: str
    confine: bool
    scratch: str
    memory: int
    seconds: float
    read: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Start:
    """The order to fork a child for a job of this kind. Its descriptors come with the message."""

    kind: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class End:
    """How a child ended: "time" or "space" where it used too much of it, and its exit status."""

    exceeded: str | None = None
    exit: int = 0


# -- the memory of a job ---------------------------------------------------------------------------------


def encode_job(request: Request, tensors: bytes = b"") -> bytes:
    """The memory of a job: the request, then the tensors."""
    text = codec.to_json({"kind": request.kind, "request": request}).encode()
    header = len(text).to_bytes(8, "little") + text
    return header + b"\0" * padding(len(header)) + tensors


def decode_job(memory) -> tuple[Request, memoryview]:
    """The request, and the tensors, in the memory of a job (anything with the buffer protocol)."""
    view = memoryview(memory)
    end = 8 + int.from_bytes(view[:8], "little")
    message = json.loads(bytes(view[8:end]))
    return codec.record(_REQUESTS[message["kind"]], message["request"]), view[end + padding(end) :]


def padding(size: int) -> int:
    """How many bytes bring `size` to a multiple of ALIGNMENT."""
    return -size % ALIGNMENT
