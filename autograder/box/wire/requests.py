"""The judge's requests to the box. The judge's process makes these records; a child of the zygote reads them.

A job is one request and its tensors, in one piece of memory. The memory holds an 8-byte length, the request as JSON
of that length, and, from the next multiple of ALIGNMENT bytes, the tensors. `Packer` places them. The judge packs
inputs and unpacks results; the child of the zygote reads inputs and writes results.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, get_args

from .answers import Found, Trace, reader, to_json

if TYPE_CHECKING:  # a box is started before torch is imported here
    import torch

ALIGNMENT = 64  # bytes, of the tensors in a job's memory and of the results in its output
PATIENCE = 10  # a job may take so many times its charged seconds by the clock on the wall
MOST_FOUND = 1 << 16  # elements of a large result that come back
FAR_WINDOW = 256  # elements from each of LargeCase.starts on: they come back before others


@dataclass(frozen=True)
class Form:
    """What is known of a tensor without its values."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Decoy(Form):
    """A tensor argument without its values. A process that runs the learner's Python gets nothing more."""

    same: int | None = None  # the earlier argument that is the same tensor, or in whose memory this one lies
    shift: int = 0  # elements behind a multiple of 16 bytes, where it begins


Number = int | float | bool  # an argument of which the learner's Python gets the real value
TRACED = Decoy((), (), "int32")  # a number that is traced: the learner's Python gets its dtype only


@dataclass(frozen=True)
class TensorSpec(Form):
    """A tensor whose elements lie contiguous, in row-major order, at `offset` in the job's tensors.

    `stride` and `shift` (see Decoy) are the layout that the learner's code gets.
    """

    offset: int
    bytes: int
    shift: int = 0


@dataclass(frozen=True)
class Slot:
    """Where a result goes in the output: `capacity` bytes from `offset`. A result of more bytes is not written."""

    offset: int
    capacity: int


@dataclass(frozen=True)
class Shown:
    """A machine that a host function is shown."""

    device: str  # "cpu", "cuda" or "hip"
    multiprocessors: int
    interpret: bool = False  # whether TRITON_INTERPRET is 1
    # Which GPU of this kind, see inside.plan.CARDS. With another than the first, there are two GPUs, and torch may
    # round the factors of its own float32 products.
    card: int = 0

    def __str__(self) -> str:
        name = {"cpu": "the CPU", "cuda": "an NVIDIA GPU", "hip": "an AMD GPU"}[self.device]
        return f"{name} with {self.multiprocessors} multiprocessors{', TRITON_INTERPRET=1' * self.interpret}"


@dataclass(frozen=True)
class PlanCase:
    """A call of a host function. Modules and machines are told by their numbers in the request."""

    arguments: tuple[Decoy | Number, ...]
    configuration: int = 0  # of autotuned kernels, by its number; behind the last one, the first one comes again
    source: int = 0  # the module whose function is called
    world: int = 0  # the machine that it is shown
    alone: bool = False  # the module is loaded again for this call, so that it knows of no other one
    pick: int | None = None  # the number of one output, if the function returns several
    gradient: int | None = None  # the argument whose gradient is asked for; the last one is the output's gradient
    computes: int = 0  # the host function may compute with tensors of at most so many elements
    times: int = 1  # calls; the first trace that is not as the one before it is reported
    operator: bool = False  # only asks whether torch accepts the function as an operator, see inside.operators
    variants: bool = False  # the programs with other values of autotuned constants are asked for, too
    part: str = "result"  # of a function of JAX arrays, see JaxPlanRequest


@dataclass(frozen=True)
class PlanRequest:
    """Run the learner's modules, call the function `entry` of each on decoys, and report the trace of each case."""

    kind: ClassVar[str] = "plan"
    sources: tuple[str, ...]
    entry: str
    cases: tuple[PlanCase, ...]
    worlds: tuple[Shown, ...] = ()  # what the function is shown; none for this machine as it is
    known: tuple[Found, ...] = ()  # what earlier jobs with the same sources found in kernels

    @property
    def needs(self) -> str:
        """Where the modules may register operators, or somebody asks for one, torch must load its compiler."""
        asked = any(case.operator for case in self.cases) or any("library" in source for source in self.sources)
        return "operators" if asked else ""


@dataclass(frozen=True)
class ReplayCase:
    """One trace on real inputs."""

    trace: Trace
    inputs: tuple[TensorSpec, ...]
    slot: Slot
    poison: str = "nan"  # what fresh memory holds: "nan" or "large"
    computes: int = 0  # see PlanCase


@dataclass(frozen=True)
class ReplayRequest:
    """Replay traces with the programs of their launches, by digest, without the learner's Python."""

    kind: ClassVar[str] = "replay"
    source: str  # to quote its lines
    cases: tuple[ReplayCase, ...]
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LargeTensor(Form):
    """A tensor that is too large to hold. Its elements follow from a seed: see tensors.seeded."""

    span: tuple[float, float] | None
    whole: bool  # whether all of them must be read


@dataclass(frozen=True)
class LargeCase:
    """One trace on large tensors. Their seeds are seed, seed + 1, …"""

    trace: Trace
    inputs: tuple[LargeTensor, ...]
    seed: int
    places: Slot  # where elements lie that some programs wrote into the result, int64, MOST_FOUND at most
    slot: Slot  # their values
    compared: bool = True  # whether both are asked for
    computes: int = 0  # see PlanCase
    starts: tuple[int, ...] = ()  # elements of the result that are wanted


@dataclass(frozen=True)
class LargeRequest:
    """Check all addresses of large launches, and run some of their programs, without a GPU.

    The value of a case is {"elements": of the result, "stored": those that all programs store, "unread": [] or, of an
    input, its number, elements that all programs read, and all elements, "found": elements in the output}; or
    {"unjudged": why} where it is too much for us.
    """

    kind: ClassVar[str] = "large"
    source: str
    cases: tuple[LargeCase, ...]
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CompileCase:
    """One program to compile down to LLVM's representation."""

    program: str
    options: dict[str, int]
    target: str  # "cuda" or "hip"


@dataclass(frozen=True)
class CompileRequest:
    """Compile programs, which Triton's front end has accepted, for GPUs that are not here. Nothing runs.

    The value of a case is the number of bytes of shared memory, or None if this machine cannot compile for the target.
    What the compiler refuses is an error of the kind "compile".
    """

    kind: ClassVar[str] = "compile"
    source: str
    cases: tuple[CompileCase, ...]
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneCase:
    trace: Trace
    arguments: tuple[Decoy | Number, ...]


@dataclass(frozen=True)
class TuneRequest:
    """Compare the times of the launches of several traces, on a GPU. The value is a list of milliseconds."""

    kind: ClassVar[str] = "tune"
    cases: tuple[TuneCase, ...]
    programs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueCase:
    """A call with plain values: numbers, strings, and lists and dicts of them."""

    arguments: tuple[object, ...]
    source: int = 0  # the number of the module whose function is called
    devices: tuple[int, ...] = ()  # the numbers of arguments that are a `workshop.device.DeviceFacts`, as its fields


@dataclass(frozen=True)
class ValueRequest:
    """Call the function `entry` of modules with plain values, and report what it returns."""

    kind: ClassVar[str] = "value"
    sources: tuple[str, ...]  # the learner's, and others that are made of it
    entry: str
    cases: tuple[ValueCase, ...]


@dataclass(frozen=True)
class JaxPlanRequest(PlanRequest):
    """As a PlanRequest, for a function of JAX arrays, with one source and no worlds.

    Of a case counts: each Number is a Python number, and part of the trace. The inputs of the trace are the Decoys,
    TRACED among them, in their order. part: "result" of the function; "value" or "gradient" of jax.value_and_grad of
    the sum of its result times a cotangent, with respect to the first argument. A gradient's last argument is the
    cotangent.
    """

    kind: ClassVar[str] = "jax-plan"
    needs: ClassVar[str] = "jax"


Request = PlanRequest | ReplayRequest | LargeRequest | CompileRequest | TuneRequest | ValueRequest | JaxPlanRequest
_READERS = {each.kind: reader(each) for each in get_args(Request)}  # made once, before any process is forked


@dataclass(frozen=True)
class Settings:
    """The settings that a zygote gets once, before it imports torch and Triton."""

    backend: str
    confine: bool
    scratch: str
    memory: int
    read: tuple[str, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Start:
    """The command to fork a child for a job of this kind. The job's descriptors come with the message."""

    kind: str
    seconds: float  # charged time, without the time that the job waits for a core
    cpu_seconds: float  # CPU time of all its threads
    launchers: tuple[tuple[str, ...], ...] = ()  # types of parameters of kernels that later jobs launch on a GPU
    needs: str = ""  # what the job needs that others do not: "jax", "operators" or nothing


@dataclass(frozen=True)
class End:
    """How a child ended."""

    exceeded: str | None = None  # "time" or "space": it used too much of it; "load": a loaded machine hardly ran it
    exit: int = 0  # status
    seconds: float = 0.0  # that it was charged for


def encode_job(request: Request, tensors: bytes = b"") -> bytes:
    """The memory of a job: the request, then the tensors."""
    text = to_json({"kind": request.kind, "request": request}).encode()
    header = len(text).to_bytes(8, "little") + text
    return header + b"\0" * padding(len(header)) + tensors


def decode_job(memory) -> tuple[Request, memoryview]:
    """The request and the tensors in the memory of a job (any object with the buffer protocol)."""
    view = memoryview(memory)
    end = 8 + int.from_bytes(view[:8], "little")
    message = json.loads(bytes(view[8:end]))
    return _READERS[message["kind"]](message["request"]), view[end + padding(end) :]


def padding(size: int) -> int:
    """The number of bytes from `size` to the next multiple of ALIGNMENT."""
    return -size % ALIGNMENT


class Packer:
    """Lays out the input tensors and the output slots of one job.

    The three arguments of `Box.run` are the request, `packer.tensors` and `packer.output_size`.
    """

    def __init__(self):
        self._memory = bytearray()
        self._packed: dict[int, tuple[torch.Tensor, int, int]] = {}  # keeps the tensor alive: its id stays unique
        self.output_size = 0

    @property
    def tensors(self) -> bytes:
        """The memory that the offsets of the specs point into."""
        return bytes(self._memory)

    def tensor(self, values: torch.Tensor, stride: Sequence[int] | None = None, shift: int = 0) -> TensorSpec:
        """Packs a tensor, once for each object. `stride` and `shift` are the layout that the learner's code gets."""
        from ...tensors import dtype_name, to_bytes

        if id(values) not in self._packed:
            raw = to_bytes(values)
            self._packed[id(values)] = (values, len(self._memory), len(raw))
            self._memory += raw + b"\0" * padding(len(raw))
        _, offset, size = self._packed[id(values)]
        stride = tuple(values.stride() if stride is None else stride)
        return TensorSpec(tuple(values.shape), stride, dtype_name(values.dtype), offset, size, shift)

    def slot(self, capacity: int) -> Slot:
        """Reserves `capacity` bytes for a result."""
        slot = Slot(self.output_size, capacity)
        self.output_size += capacity + padding(capacity)
        return slot


def read_tensor(spec: TensorSpec, tensors: memoryview) -> torch.Tensor:
    """A contiguous tensor from the job's memory."""
    from ...tensors import DTYPES, from_bytes

    return from_bytes(tensors[spec.offset : spec.offset + spec.bytes], DTYPES[spec.dtype], spec.shape)


def write_result(slot: Slot, output, raw: bytes) -> None:
    """Writes a result's bytes if they fit into the slot. If they do not, its shape is wrong, and the judge says so."""
    if len(raw) <= slot.capacity:
        output[slot.offset : slot.offset + len(raw)] = raw


def read_result(slot: Slot, output: bytes, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The tensor of this dtype and shape in a slot of the output."""
    from ...tensors import from_bytes

    return from_bytes(output[slot.offset : slot.offset + slot.capacity], dtype, shape)
