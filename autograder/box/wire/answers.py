"""The reports from the box, and the checks on them.

The child that runs the learner's code writes reports, one line of JSON each, with `encode`. The judge reads them
with `parse` after that child is dead. The learner's code may have written anything: `parse` accepts lines of the
known shapes and raises ProtocolError for everything else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Annotated

from . import codec

MAX_STATUS = 32 << 20
MAX_LINES = 512
MAX_STEPS = 4096
MAX_PROGRAMS = 256  # of one case
MAX_FOUND = 4096
MAX_PROGRAM = 2 << 20  # characters
MAX_CONSTANT = 64  # constants of the host function that may go into one result
MAX_NESTING = 16  # of a trace; our own have five levels, and JSON that can be parsed may be too deep to encode again


class ProtocolError(Exception):
    """The bytes that came out of the box are not reports."""


# What a host function did, as JSON. A planning process records it, the judge sends it back into the box, and a
# replaying process runs it on real inputs. It comes from a process that ran the learner's Python, so it stays plain
# JSON: `parse` checks its size and shape, and `inside.trace.Replay` checks every field when it runs a step.
#
#   {"steps": [step, ...], "result": t, "launches": n}   the result is tensor t; n launches were recorded
#   {"returned": "list", "launches": n}                  the function returned no tensor, but a list
#
# A step makes tensors and names them by numbers, "out": [t, ...]. `op` says which kind of step it is:
#
#   {"op": "input", "index": i, "out": [t]}                                       the i-th tensor argument
#   {"op": "constant", "values": [...], "shape": [...], "dtype": "...", "out"}    a few numbers of the learner's
#   {"op": "empty", "overload": "...", "args": [value, ...], "kwargs": {}, "out"} an operation of torch.ops.aten
#   {"op": "launch", "kernel": "...", "grid": [x, y, z], "program": digest, "given": [[label, value, type], ...],
#       "args": {}, "options": {}}   a launch of the program; `given` are the arguments that are no constants; `args`
#       are all of them by name, for the judge to look at; "hip": the program for AMD, where it is another one;
#       "unused": [[kind, line, name], ...], see workshop.executor.facts, for the judge to look at, too; where an
#       autotuner made it there is "tuned": {"space": [configuration, ...], "choice": index, "key": [name, ...],
#       "again": what is done to arguments between two runs, {"restored": [name, ...], "zeroed": [name, ...]}, or null,
#       "others": [[name of a constant, digest of the program with another value of it, or null], ...], where the case
#       asks for them}
#
# A value is null, a bool, a number, a list of values, or one of {"t": number of a tensor}, {"dtype": name},
# {"device": true}, {"memory_format": name}, {"text": short string}, {"descriptor": [tensor, shape, strides, block,
# padding]}. The programs are texts beside the trace, by their digests: JSON of workshop.executor.codec. Only the box
# reads them, where the learner's Python is not.
Trace = dict

# The operations of torch that a host function may use.
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


Kind = Annotated[str, codec.text(40)]
Name = Annotated[str, codec.text(100)]
Line = Annotated[int, codec.integer(0, 1 << 31)]
Code = Annotated[str, codec.text(400)]
Size = Annotated[int, codec.integer(0, 1 << 40)]
Flag = Annotated[bool, codec.flag]
Case = Annotated[int, codec.integer(0, 4096)]
Integer = Annotated[int, codec.integer(-(1 << 62), 1 << 62)]
Integers = Annotated[tuple[Integer, ...], codec.items(16)]
Names = Annotated[tuple[Name, ...], codec.items(16)]


@dataclass(frozen=True)
class Fault:
    """A lane that accessed memory outside of its tensor: see workshop.executor.records. "" is no argument's name."""

    kind: Kind
    kernel: Name
    program: Integers
    block: Integers
    lane: Integers
    lanes: Size
    argument: Name = ""
    shape: Integers = ()
    stride: Integers = ()
    element: Integer = 0
    index: Integers = ()
    place: Name = "nowhere"
    distance: Annotated[int, codec.integer(0, 1 << 62)] = 0
    line: Line = 0
    code: Code = ""
    steps: Integers = ()

    def __post_init__(self):
        known = self.kind in ("load", "store", "atomic") and len(self.lane) == len(self.block)
        if not known or self.place == "gap" and not self.index:
            raise ValueError("a fault that cannot be")

    @property
    def number(self) -> int:
        """The lane, by its number in the block."""
        number = 0
        for index, size in zip(self.lane, self.block, strict=True):
            number = number * size + index
        return number


@dataclass(frozen=True)
class Trouble:
    """An exception, or another reason why a case has no result.

    construct: what is refused, promised or missing. instead: a name that may have been meant. kernel: the one whose
    launch was refused.
    """

    kind: Kind
    type: Name = ""
    message: Annotated[str, codec.text(4000)] = ""
    line: Line | None = None
    code: Code = ""
    construct: Code = ""
    instead: Annotated[str, codec.text(800)] = ""
    kernel: Name = ""
    fault: Fault | None = None


@dataclass(frozen=True)
class Race:
    """Elements of one argument that several programs of a launch accessed, or several lanes of one program. At least
    one of them wrote, and nothing orders them.

    `elements` is the number of elements that were written more than once, `share` their fraction of the argument, and
    `writers` the largest number of writes to one element. `kind` is "write-write", "read-write" or "write-read". A
    program of -1 means several programs.
    """

    argument: Name
    line: Line
    code: Code
    programs: Annotated[tuple[Integer, ...], codec.items(2, least=2)]
    elements: Size
    share: Annotated[float, codec.number(1)]
    same_value: Flag
    writers: Size = 2
    kind: Kind = "write-write"

    @property
    def within(self) -> bool:
        """Whether lanes of one program race, not programs."""
        return self.programs[0] == self.programs[1]


@dataclass(frozen=True)
class Undefined:
    """A kernel used what nothing had defined: see workshop.executor.records."""

    kind: Kind
    kernel: Name
    argument: Name = ""
    program: Integers = ()
    line: Line = 0
    code: Code = ""


@dataclass(frozen=True)
class Steps:
    """A line that goes through a tensor in steps that are none of its strides."""

    argument: Name
    line: Line
    code: Code
    shape: Integers
    stride: Integers
    block: Integers
    steps: Integers


@dataclass(frozen=True)
class Evidence:
    """What was observed beside the result: launched kernels, races, reads, and damage to tensors.

    `undefined`: what kernels used although nothing had defined it.
    `reads` says for each tensor argument how often the kernels read one of its elements, on average. It is empty where
    nothing counts them. `stored` are the bytes that kernels wrote, if they are counted. `accesses` is a hash of all
    accesses to memory in their order; 0 if there were none, or nothing sees them. `idle`: kernels were launched, and
    without them the result would be the same. `accumulates`: an autotuned kernel reads what it wrote in an earlier run.
    `adds_atomically`: kernels add floating-point numbers in any order. `stores`: a program of a kernel has a line that
    writes to memory. `without_work`: of a launch, the programs that stored nothing: how many, of how many, the first.
    """

    launched: Names = ()
    races: Annotated[tuple[Race, ...], codec.items(16)] = ()
    damage: Names = ()
    undefined: Annotated[tuple[Undefined, ...], codec.items(16)] = ()
    empty_kernels: Names = ()
    reads: Annotated[tuple[Annotated[float, codec.number(1 << 40)], ...], codec.items(16)] = ()
    stored: Annotated[int, codec.integer(0, 1 << 62)] = 0
    accesses: Annotated[int, codec.integer(-(1 << 63), 1 << 63)] = 0
    idle: Flag = False
    accumulates: Flag = False
    adds_atomically: Flag = False
    stores: Flag = True
    without_work: Integers = ()
    steps: Annotated[tuple[Steps, ...], codec.items(16)] = ()


@dataclass(frozen=True)
class Result:
    """The properties of a result. Its bytes are in the output."""

    shape: Integers
    dtype: Name
    device: Name
    contiguous: Flag
    aliases_input: Flag


@dataclass(frozen=True)
class Report:
    """The outcome of one case: a trace, a result, a value or an error. Without a case: the end, or an early error.

    programs: those that the trace names and no earlier trace of the job did, by digest. same: the earlier case whose
    trace this one has, too. found: behind all cases of a plan, what Triton's front end made of kernels, for a later
    plan of the same sources; see inside.programs. The judge only carries it.
    """

    case: Case | None = None
    done: Flag = False
    trace: Annotated[Trace, _trace] | None = None
    same: Case | None = None
    programs: Annotated[dict, _programs] = field(default_factory=dict)
    found: Annotated[dict, _found] | None = None
    result: Result | None = None
    evidence: Evidence = Evidence()
    error: Trouble | None = None
    has_value: Flag = False
    value: Annotated[object, _plain] = None


def encode(report: Report) -> bytes:
    """A report as a line for `parse`, without the newline."""
    return codec.to_json(report).encode()


def parse(status: bytes) -> list[Report]:
    """The reports of one job. Raises ProtocolError for anything that our own code would not send."""
    if len(status) > MAX_STATUS:
        raise ProtocolError("the report is too long")
    lines = status.split(b"\n")
    if len(lines) > MAX_LINES:
        raise ProtocolError("the report has too many lines")
    try:
        return [_of_one_kind(codec.from_json(Report, line)) for line in lines if line]
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


def _trace(trace: dict) -> Trace:
    """Checks that the steps are objects. The box checks their fields when it replays them."""
    for step in codec.items(MAX_STEPS)(_dict(trace).get("steps", [])):
        _dict(step)
    _shallow(trace, MAX_NESTING)
    return trace


def digest_of(program: str) -> str:
    return hashlib.sha256(program.encode()).hexdigest()


def _programs(programs: dict) -> dict[str, str]:
    """Texts by their digests, so that nobody can give a program the name of another one."""
    if len(_dict(programs)) > MAX_PROGRAMS:
        raise ProtocolError("too many programs")
    for name, text in programs.items():
        if type(text) is not str or len(text) > MAX_PROGRAM or digest_of(text) != name:
            raise ProtocolError("a program that is not what it is called")
    return programs


def _found(found: dict) -> dict:
    if len(_dict(found)) > MAX_FOUND:
        raise ProtocolError("too much was found")
    for each in found.values():
        _shallow(_dict(each), MAX_NESTING)
    return found


def _shallow(value, room: int):
    if not room:
        raise ProtocolError("a trace is nested too deeply")
    if type(value) is int and abs(value) >> 64:
        raise ProtocolError("a trace with endless numbers")
    for inner in value.values() if type(value) is dict else value if type(value) is list else ():
        _shallow(inner, room - 1)


def _plain(value, depth: int = 0):
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str and len(value) <= 400:
        return value
    if depth < 4 and type(value) is list and len(value) <= 64:
        return [_plain(v, depth + 1) for v in value]
    if depth < 4 and type(value) is dict and len(value) <= 64:
        return {codec.text(80)(k): _plain(v, depth + 1) for k, v in value.items()}
    raise ProtocolError("a value of an unknown kind")


def _dict(value) -> dict:
    if type(value) is not dict:
        raise ProtocolError("an object was expected")
    return value
