"""The judge's requests to the box. The judge's process makes these records; a child of the zygote reads them.

A job is one request and its tensors, in one piece of memory. The memory holds an 8-byte length, the request as JSON
of that length, and, from the next multiple of ALIGNMENT bytes, the tensors. `layout.Packer` places them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from . import codec
from .answers import Trace

ALIGNMENT = 64  # bytes, of the tensors in a job's memory and of the results in its output
GUARD = 512  # elements before and after a tensor; a multiple of 16 keeps the alignment that Triton specialises on

Number = int | float | bool

# -- tensors and results ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Decoy:
    """A tensor argument without its values. A process that runs the learner's Python gets nothing more."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class TensorSpec:
    """A tensor whose elements lie, in row-major order, at `offset` in the job's tensors.

    `stride` is the layout that the learner's code gets. The bytes in the job are always contiguous.
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
    """An argument that is a number. The learner's Python gets the real value."""

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
    """The solution's kernel that the learner's blanks are put into: its source, its name, and its blanks' names."""

    source: str
    kernel: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ReplayCase:
    """One trace on real inputs.

    poison: the content of masked-off lanes and fresh memory: "nan", "zero" or "large". backwards: run the programs of a
    launch from the last to the first. blank: the blank of the template to test; None for the whole answer.
    """

    trace: Trace
    inputs: tuple[TensorSpec, ...]
    slot: Slot
    poison: str = "nan"
    backwards: bool = False
    blank: str | None = None


@dataclass(frozen=True)
class ReplayRequest:
    """Replay traces with the learner's kernels, without the learner's Python. `guard`: elements around a tensor."""

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
    """Compare the times of the launches of several traces, on a GPU. The value is a list of milliseconds."""

    kind: ClassVar[str] = "tune"
    source: str
    cases: tuple[TuneCase, ...]


# -- values ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """An argument that is a plain value: a number, a string, or a list or dict of plain values."""

    plain: object


@dataclass(frozen=True)
class Device:
    """An argument that is a `workshop.device.DeviceFacts`, as a dict of its fields."""

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
    """An argument that is a Python number, even under jit."""

    static: Number


@dataclass(frozen=True)
class Traced:
    """An argument that is a Python number in a plain call and traced under jit."""

    traced: Number


@dataclass(frozen=True)
class JaxCall:
    """One call of the learner's function.

    grad: the result is the gradient of (function(*arguments) * cotangent).sum() with respect to the first argument.
    needs_kernel: the program that jit compiles for this call must launch a kernel.
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

    The last report comes after those of the calls. Its value is {"kernels": [...], "arithmetic": [...]}: the kernels
    that JAX traced, and the arithmetic outside of them. With `empty_kernels`, the kernels do nothing, and this report
    is not sent.
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
    """The settings that a zygote gets once, before it imports torch and Triton."""

    backend: str
    confine: bool
    scratch: str
    memory: int
    seconds: float
    read: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Start:
    """The command to fork a child for a job of this kind. The job's descriptors come with the message."""

    kind: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class End:
    """How a child ended: its exit status, and "time" or "space" if it used too much of it."""

    exceeded: str | None = None
    exit: int = 0


# -- the memory of a job ---------------------------------------------------------------------------------


def encode_job(request: Request, tensors: bytes = b"") -> bytes:
    """The memory of a job: the request, then the tensors."""
    text = codec.to_json({"kind": request.kind, "request": request}).encode()
    header = len(text).to_bytes(8, "little") + text
    return header + b"\0" * padding(len(header)) + tensors


def decode_job(memory) -> tuple[Request, memoryview]:
    """The request and the tensors in the memory of a job (any object with the buffer protocol)."""
    view = memoryview(memory)
    end = 8 + int.from_bytes(view[:8], "little")
    message = json.loads(bytes(view[8:end]))
    return codec.record(_REQUESTS[message["kind"]], message["request"]), view[end + padding(end) :]


def padding(size: int) -> int:
    """The number of bytes from `size` to the next multiple of ALIGNMENT."""
    return -size % ALIGNMENT
