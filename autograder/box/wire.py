"""The wire: typed records for everything that crosses the wall of the box, and their JSON. Both ends use this module.

Two processes meet here. The judge's process encodes requests and parses reports. The box's process decodes requests and
encodes reports; it runs learners' code, so the judge trusts none of its bytes: `parse` reads them after that process is
dead, accepts lines of the known shapes, one line of JSON each, and raises ProtocolError for everything else.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Union, get_args, get_origin, get_type_hints

from ..text import visible

if TYPE_CHECKING:  # a box is started before torch is imported here
    import torch

MAX_STATUS = 32 << 20
MAX_LINES = 1024
MAX_STEPS = 4096
MAX_PROGRAMS = 256  # of one case
MAX_FOUND = 4096
MAX_PROGRAM = 2 << 20  # characters
MAX_CONSTANT = 64  # constants of the host function that may go into one result
MAX_NESTING = 8  # of a value; our own have three levels
MAX_RUNS = 32  # of elements of a tensor that nothing read


class ProtocolError(Exception):
    """The bytes that came out of the box are not reports."""


# -- records as JSON and back ------------------------------------------------------------------------------
# A record is a dataclass. Its fields are records, tuples of them, unions of them, or plain JSON values. A field of type
# `Annotated[kind, check, …]` is checked. A check is a limit, see `_within`, or a function: it returns what the next one
# gets, and the last one what to make the kind of, or raises ValueError. So a record whose fields are all checked can be
# read from a process that is not trusted.


def to_json(value: Any) -> bytes:
    """The JSON of a record, or of plain values that contain records, in one line. A field that has its default is left
    out."""
    return json.dumps(value, default=_given).encode()


def _given(record) -> dict:
    given = {}
    for name, default, most in _fields(type(record)):
        if (value := getattr(record, name)) != default:
            given[name] = value[:most] if isinstance(value, str) else value
    return given


@functools.cache
def _fields(kind: type) -> list[tuple[str, Any, int | None]]:
    """Of records of a kind: each field, its default, and how long its text is at most. A longer one is cut."""
    if not is_dataclass(kind):
        raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")
    texts = {name: hint for name, hint in _hints(kind).items() if getattr(hint, "__origin__", None) is str}
    return [(f.name, f.default, texts[f.name].__metadata__[0] if f.name in texts else None) for f in fields(kind)]


def _hints(kind: type) -> dict[str, Any]:
    """The types of a record's fields. Those of the executor are plain, and get their checks here."""
    hints = get_type_hints(kind, include_extras=True)
    if not kind.__module__.startswith("workshop."):
        return hints
    return {name: _BY_NAME.get(name) or _BY_TYPE[hint] for name, hint in hints.items()}


def from_json(kind: type, text: bytes):
    """The record of this kind that `to_json` wrote."""
    return reader(kind)(json.loads(text))


@functools.cache
def reader(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of the annotated kind out of JSON; None where JSON has it already."""
    if get_origin(kind) is Annotated:
        plain = get_origin(kind.__origin__) or kind.__origin__
        checks = [each if callable(each) else functools.partial(_within, plain, each) for each in kind.__metadata__]
        first, *others = [*checks, *filter(None, [reader(kind.__origin__)])]
        return functools.reduce(lambda before, check: lambda value: check(before(value)), others, first)
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        readers = {each: reader(each) for each in get_args(kind)}
        return (lambda value: _member(readers, value)) if any(readers.values()) else None
    if get_origin(kind) is tuple:
        each = reader(get_args(kind)[0])
        return tuple if each is None else lambda value: tuple(map(each, value))
    if is_dataclass(kind):
        readers = {name: reads for name, hint in _hints(kind).items() if (reads := reader(hint))}
        return lambda value: _made(kind, readers, value)
    return None


def _made(kind: type, readers: dict[str, Callable], value: Any):
    if type(value) is not dict:
        raise ValueError("an object was expected")
    return kind(**{name: readers[name](each) if name in readers else each for name, each in value.items()})


def _member(readers: dict[Any, Callable | None], value: Any):
    """A value of the member of a union that fits. The records of a union have different fields."""
    if value is None and NoneType in readers:
        return None
    for kind, reads in readers.items():
        names = getattr(kind, "__dataclass_fields__", None)
        if reads and (names is None or type(value) is dict and value.keys() <= names.keys()):
            return reads(value)
    if all(readers[kind] for kind in readers if kind is not NoneType):
        raise ValueError("a record of an unknown kind")
    return value


def _within(kind: type, limit: int | range, value):
    """The value, if it is what JSON has for this kind. limit: the range of a whole number, the maximum of another
    number that is not negative, or how many characters or items there are at most.

    A text is made safe to show: a learner's code may choose the message of an error.
    """
    kind = list if kind is tuple else kind
    if kind is float:
        good = type(value) in (int, float) and 0 <= value <= limit
    elif good := type(value) is kind:
        size = value if kind in (int, bool) else len(value)
        good = size in (limit if isinstance(limit, range) else range(limit + 1))
    if not good:
        raise ValueError(f"a {kind.__name__} within {limit} was expected")
    return visible(value) if kind is str else float(value) if kind is float else value


def _of_executor(name: str, module: str = "records") -> Any:
    """A record of the executor. To import its module takes long, and a box is started before this is done."""
    found = functools.cache(lambda: getattr(importlib.import_module(f"workshop.executor.{module}"), name))
    return Annotated[Any, lambda value: reader(found())(value)]


Fault, Race, Undefined, Steps = map(_of_executor, ("Fault", "Race", "Undefined", "Steps"))
Unused = _of_executor("Unused", "facts")
Kind, Name, Label, Code, Digest = (Annotated[str, most] for most in (40, 100, 200, 400, 64))
Line, Size, Far = (Annotated[int, range((1 << bits) + 1)] for bits in (31, 40, 62))
Integer, Wide = (Annotated[int, range(-(1 << bits), (1 << bits) + 1)] for bits in (62, 64))
Case, Flag = Annotated[int, range(4097)], Annotated[bool, range(2)]
Integers, Names = Annotated[tuple[Integer, ...], 16], Annotated[tuple[Name, ...], 16]
# Of the executor's records: by the name of a field, and by the type of the others.
_BY_NAME = {"kind": Kind, "name": Label, "code": Code, "line": Line, "distance": Far,
            "lanes": Size, "elements": Size, "writers": Size}  # fmt: skip
_BY_TYPE = {str: Name, int: Integer, bool: Flag, float: Annotated[float, 1], tuple[int, ...]: Integers}

# The operations of torch that a host function may use.
ALLOCATE = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
FILL = {"zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like", "new_full",
        "fill", "fill_", "zero_", "scalar_tensor"}  # fmt: skip
CASTS = {"_to_copy", "copy", "copy_"}
MOVE = {"clone", "cat", "stack", "constant_pad_nd"} | CASTS
# Not _reshape_alias: it accepts any size, so its result can go past the memory of its input.
VIEW = {"view", "_unsafe_view", "reshape", "as_strided", "slice", "select", "t", "transpose", "permute", "expand",
        "unsqueeze", "squeeze", "alias", "detach", "split", "split_with_sizes", "unbind", "lift_fresh"}  # fmt: skip
REPLAYABLE = ALLOCATE | FILL | MOVE | VIEW
# On few numbers, where a recorder is told how many: under jax.jit a seed is a tensor, and a loss is a mean over rows.
ARITHMETIC = {"add", "sub", "mul", "div", "fmod", "neg", "abs", "maximum", "minimum", "bitwise_and", "bitwise_or",
              "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift", "eq", "ne", "lt", "le", "gt",
              "ge", "sign", "sum", "mean", "count_nonzero", "where", "masked_fill", "clamp", "clamp_min", "reciprocal",
              "logical_not"}  # fmt: skip

# -- what a host function did ------------------------------------------------------------------------------
# A planning process records it, the judge sends it back into the box, and a replaying process runs it on real inputs.
# It comes from a process that ran the learner's Python: `parse` checks its form, and inside.replay what it asks for.
#
# A value is null, a bool, a number, a list of values, or one of {"t": number of a tensor}, {"dtype": name},
# {"device": true}, {"memory_format": name}, {"text": short string}, {"descriptor": [tensor, shape, strides, block,
# text]}.


def _plain(value, depth: int = 0):
    """JSON as our own code sends it: JSON that can be parsed may be too deep to encode again."""
    kind = type(value)
    if value is None or kind in (bool, int, float) or kind is str and len(value) <= 400:
        return value
    if depth < MAX_NESTING and kind is list and len(value) <= MAX_STEPS:
        return [_plain(each, depth + 1) for each in value]
    if depth < MAX_NESTING and kind is dict and len(value) <= 256:
        return {reader(Label)(name): _plain(each, depth + 1) for name, each in value.items()}
    raise ProtocolError("a value of an unknown kind")


def _numbers(value: dict) -> dict[str, int]:
    return {reader(Label)(name): reader(Wide)(each) for name, each in value.items()}


Tensors = Annotated[tuple[Integer, ...], MAX_STEPS]  # what a step makes, by number
Values = Annotated[list, MAX_STEPS, _plain]
Named = Annotated[dict, 256, _plain]
Labels = Annotated[tuple[Label, ...], 64]


@dataclass(frozen=True)
class Input:
    """The tensor argument of that number."""

    index: Integer
    out: Tensors


@dataclass(frozen=True)
class Constant:
    """A few numbers of the learner's."""

    values: Values
    shape: Integers
    dtype: Name
    out: Tensors


@dataclass(frozen=True)
class Operation:
    """An operation of torch.ops.aten."""

    op: Name
    overload: Name
    args: Values
    kwargs: Named
    out: Tensors


@dataclass(frozen=True)
class Argument:
    """An argument of a program that is not one of its constants."""

    label: Label
    value: Annotated[object, _plain]
    kind: Label  # its type in Triton


@dataclass(frozen=True)
class Again:
    """What is done to arguments between two runs of an autotuned kernel."""

    restored: Labels
    zeroed: Labels


@dataclass(frozen=True)
class Other:
    """The program with another value of a constant of the space."""

    name: Label
    program: Digest | None  # None where it could not be read


@dataclass(frozen=True)
class Tuned:
    """What an autotuner had to choose from, and its choice."""

    space: Annotated[tuple[Named, ...], MAX_STEPS]
    choice: Size
    key: Labels
    again: Again | None = None  # None where it runs a kernel once, or hooks do it
    others: Annotated[tuple[Other, ...], MAX_PROGRAMS] = ()


@dataclass(frozen=True)
class Launch:
    """A launch of a program, which is named by the digest of its text.

    The texts of programs are beside the trace: JSON of workshop.executor.program, which only the box reads, where the
    learner's Python is not.
    """

    kernel: Name
    grid: Annotated[tuple[Wide, ...], range(3, 4)]
    program: Digest
    given: Annotated[tuple[Argument, ...], 256]  # the arguments that are no constants
    args: Named  # all arguments, for the judge to look at
    options: Annotated[dict, 256, _numbers]
    hip: Digest = ""  # the program for AMD, where it is another one
    unused: Annotated[tuple[Unused, ...], 16] = ()
    tuned: Tuned | None = None

    def on(self, target: str) -> str:
        """The digest of the program for a target."""
        return self.hip or self.program if target == "hip" else self.program

    @property
    def digests(self) -> set[str]:
        return {self.program, self.hip} - {""}

    @property
    def programs(self) -> int:
        """How many run."""
        return math.prod(self.grid)

    @property
    def constants(self) -> dict:
        """The arguments that are constants of the program."""
        given = {each.label for each in self.given}
        return {name: value for name, value in self.args.items() if name not in given}

    @property
    def numbers(self) -> dict:
        """The arguments that are plain numbers."""
        return {name: value for name, value in self.args.items() if isinstance(value, (int, float))}


Step = Input | Constant | Operation | Launch


@dataclass(frozen=True)
class Trace:
    """The steps that lead to the tensor `result`; or the type of what was `returned`, which is no tensor."""

    steps: Annotated[tuple[Step, ...], MAX_STEPS] = ()
    result: Integer | None = None
    recorded: Size = 0  # launches, also such that the result does not depend on
    returned: Name | None = None

    @property
    def launches(self) -> list[Launch]:
        return [step for step in self.steps if isinstance(step, Launch)]

    @property
    def tuned(self) -> list[Launch]:
        """The launches that went through @triton.autotune."""
        return [launch for launch in self.launches if launch.tuned]

    @property
    def digests(self) -> set[str]:
        """The programs that the launches name."""
        return set().union(*(launch.digests for launch in self.launches))


@dataclass(frozen=True)
class Found:
    """What Triton's front end made of a kernel, by a digest of its arguments; or whether the vendors' programs of a
    kernel are alike, by the kernel. For a later plan of the same sources. The judge only carries it."""

    key: Name
    program: Digest = ""
    hip: Digest = ""
    unused: Annotated[tuple[Unused, ...], 16] = ()
    alike: Flag = False


# -- what a replay saw -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trouble:
    """An exception, or another reason why a case has no result."""

    kind: Kind
    type: Name = ""
    message: Annotated[str, 2000] = ""
    line: Line | None = None
    code: Code = ""
    construct: Code = ""  # what is refused, promised or missing
    instead: Annotated[str, 800] = ""  # a name that may have been meant
    kernel: Name = ""  # the one whose launch was refused
    fault: Fault | None = None


@dataclass(frozen=True)
class Evidence:
    """What was observed beside the result: launched kernels, races, reads, and damage to tensors.

    What nothing counts or sees, as on a GPU, is empty or 0. changed: which tensor arguments are not as they were.
    unread: for each tensor argument, the first runs of elements that no kernel read, in row-major order: begin, end,
    begin, … without_work: of a launch, the programs that stored nothing: how many, of how many, the first.
    """

    launched: Names = ()
    races: Annotated[tuple[Race, ...], 16] = ()
    damage: Names = ()
    undefined: Annotated[tuple[Undefined, ...], 16] = ()
    empty_kernels: Names = ()
    reads: Annotated[tuple[Annotated[float, 1 << 40], ...], 16] = ()  # average of an element
    unread: Annotated[tuple[Annotated[tuple[Integer, ...], 2 * MAX_RUNS], ...], 16] = ()
    stored: Far = 0  # bytes that kernels wrote
    idle: Flag = False  # kernels were launched, and without them the result would be the same
    accumulates: Flag = False  # an autotuned kernel reads what it wrote in an earlier run
    adds_atomically: Flag = False  # kernels add floating-point numbers in any order
    stores: Flag = True  # a program of a kernel has a line that writes to memory
    without_work: Integers = ()
    steps: Annotated[tuple[Steps, ...], 16] = ()
    changed: Integers = ()


@dataclass(frozen=True)
class Result:
    """The properties of a result. Its bytes are in the output."""

    shape: Integers
    dtype: Name
    contiguous: Flag
    aliases_input: Flag


@dataclass(frozen=True)
class Report:
    """The outcome of one case: a trace, a result, a value or an error. Without a case: the end, or an early error."""

    case: Case | None = None
    done: Flag = False
    trace: Trace | None = None
    same: Case | None = None  # the earlier case whose trace this one has, too
    # Those that the trace names and no earlier trace of the job did, by digest.
    programs: Annotated[dict, MAX_PROGRAMS, _programs] = field(default_factory=dict)
    found: Annotated[tuple[Found, ...], MAX_FOUND] | None = None  # behind all cases of a plan
    result: Result | None = None
    evidence: Evidence = Evidence()
    error: Trouble | None = None
    has_value: Flag = False
    value: Annotated[object, _plain] = None


def parse(status: bytes) -> list[Report]:
    """The reports of one job. Raises ProtocolError for anything that our own code would not send."""
    if len(status) > MAX_STATUS:
        raise ProtocolError("the report is too long")
    lines = status.split(b"\n")
    if len(lines) > MAX_LINES:
        raise ProtocolError("the report has too many lines")
    try:
        return [_of_one_kind(from_json(Report, line)) for line in lines if line]
    except ProtocolError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError, OverflowError) as error:
        raise ProtocolError(f"the report is malformed ({type(error).__name__})") from None


def _of_one_kind(report: Report) -> Report:
    said = [report.trace, report.same, report.result, report.error, report.found]
    said += [report.done or None, report.has_value or None]
    if sum(each is not None for each in said) != 1:
        raise ProtocolError("a report of an unknown kind")
    of_all_cases = report.done or report.found is not None
    if (report.case is None) != of_all_cases and not report.error:
        raise ProtocolError("a report with or without a case")
    if report.same is not None and report.same > report.case:
        raise ProtocolError("a report about a later case")
    return report


def digest_of(program: str) -> str:
    return hashlib.sha256(program.encode()).hexdigest()


def _programs(programs: dict) -> dict[str, str]:
    """Texts by their digests, so that nobody can give a program the name of another one."""
    for name, text in programs.items():
        if type(text) is not str or len(text) > MAX_PROGRAM or digest_of(text) != name:
            raise ProtocolError("a program that is not what it is called")
    return programs


# -- requests ----------------------------------------------------------------------------------------------
# A job is one request and its tensors, in one piece of memory. The memory holds an 8-byte length, the request as JSON
# of that length, and, from the next multiple of ALIGNMENT bytes, the tensors. `Packer` places them. The judge packs
# inputs and unpacks results; a child of the zygote reads inputs and writes results.

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
class LargeTensor(Form):
    """A tensor that is too large to hold. Its elements follow from a seed: see tensors.seeded."""

    span: tuple[float, float] | None
    whole: bool  # whether all of them must be read


@dataclass(frozen=True)
class LargeCase:
    """One trace on large tensors. Their seeds are seed, seed + 1, …

    The value is {"elements": of the result, "stored": those that all programs store, "unread": [] or, of an input, its
    number, elements that all programs read, and all elements, "found": elements in the output}; or {"unjudged": why}
    where it is too much for us.
    """

    trace: Trace
    inputs: tuple[LargeTensor, ...]
    seed: int
    places: Slot  # where elements lie that some programs wrote into the result, int64, MOST_FOUND at most
    slot: Slot  # their values
    compared: bool = True  # whether both are asked for
    computes: int = 0  # see PlanCase
    starts: tuple[int, ...] = ()  # elements of the result that are wanted


@dataclass(frozen=True)
class CompileCase:
    """One program to compile down to LLVM's representation.

    The value is the number of bytes of shared memory, or None if this machine cannot compile for the target. What the
    compiler refuses is an error of the kind "compile".
    """

    program: str
    options: dict[str, int]
    target: str  # "cuda" or "hip"
    divisible: tuple[int, ...] = ()  # arguments that are promised to be multiples of 16, whatever the program says
    odd: tuple[int, ...] = ()  # those of which that is not promised


@dataclass(frozen=True)
class TuneCase:
    """A trace whose launches are timed. There is one value for all cases: a list of milliseconds."""

    trace: Trace
    arguments: tuple[Decoy | Number, ...]


@dataclass(frozen=True)
class ProgramRequest:
    """A job with the programs of launches, by digest. Triton's front end has accepted them. No Python of the learner's
    runs.

    kind: "replay" runs traces on real inputs. "large" checks all addresses of large launches, and runs some of their
    programs, without a GPU. "compile" compiles programs for GPUs that are not here. "tune" compares the times of the
    launches of several traces, on a GPU.
    """

    kind: str
    source: str  # to quote its lines
    cases: tuple[ReplayCase | LargeCase | CompileCase | TuneCase, ...]
    programs: dict[str, str]


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


Request = PlanRequest | JaxPlanRequest | ValueRequest | ProgramRequest
_READERS = {each.__name__: reader(each) for each in get_args(Request)}  # made once, before any process is forked


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


def encode_job(request: Request, tensors: bytes | bytearray = b"") -> bytes:
    """The memory of a job: the request, then the tensors."""
    text = to_json({"type": type(request).__name__, "request": request})
    header = len(text).to_bytes(8, "little") + text
    return header + b"\0" * padding(len(header)) + tensors


def decode_job(memory) -> tuple[Request, memoryview]:
    """The request and the tensors in the memory of a job (any object with the buffer protocol)."""
    view = memoryview(memory)
    end = 8 + int.from_bytes(view[:8], "little")
    message = json.loads(bytes(view[8:end]))
    return _READERS[message["type"]](message["request"]), view[end + padding(end) :]


def padding(size: int) -> int:
    """The number of bytes from `size` to the next multiple of ALIGNMENT."""
    return -size % ALIGNMENT


class Packer:
    """Lays out the input tensors and the output slots of one job.

    The three arguments of `Box.run` are the request, `packer.tensors` and `packer.output_size`.
    """

    def __init__(self):
        self.tensors = bytearray()  # the memory that the offsets of the specs point into
        self._packed: dict[int, tuple[torch.Tensor, int, int]] = {}  # keeps the tensor alive: its id stays unique
        self.output_size = 0

    def tensor(self, values: torch.Tensor, stride: Sequence[int] | None = None, shift: int = 0) -> TensorSpec:
        """Packs a tensor, once for each object. `stride` and `shift` are the layout that the learner's code gets."""
        from ..tensors import dtype_name, to_bytes

        if id(values) not in self._packed:
            raw = to_bytes(values)
            self._packed[id(values)] = (values, len(self.tensors), len(raw))
            self.tensors += raw + b"\0" * padding(len(raw))
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
    from ..tensors import DTYPES, from_bytes

    return from_bytes(tensors[spec.offset : spec.offset + spec.bytes], DTYPES[spec.dtype], spec.shape)


def write_result(slot: Slot, output, raw: bytes) -> None:
    """Writes a result's bytes if they fit into the slot. If they do not, its shape is wrong, and the judge says so."""
    if len(raw) <= slot.capacity:
        output[slot.offset : slot.offset + len(raw)] = raw


def read_result(slot: Slot, output: bytes, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The tensor of this dtype and shape in a slot of the output."""
    from ..tensors import from_bytes

    return from_bytes(output[slot.offset : slot.offset + slot.capacity], dtype, shape)
