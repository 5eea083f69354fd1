"""The reports from the box, and the checks on them.

The child that runs the learner's code writes reports, one line of JSON each, with `encode`. The judge reads them
with `parse` after that child is dead. The learner's code may have written anything: `parse` accepts lines of the
known shapes and raises ProtocolError for everything else.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from ...text import visible
from . import codec

MAX_STATUS = 32 << 20
MAX_LINES = 512
MAX_STEPS = 4096
MAX_PROGRAMS = 256  # of one case
MAX_PROGRAM = 2 << 20  # characters
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
#       are all of them by name, for the judge to look at; "hip": the program for AMD, where it is another one; where an
#       autotuner made it there is "tuned": {"space": [configuration, ...], "choice": index, "key": [name, ...],
#       "again": what is done to arguments between two runs, {"restored": [name, ...], "zeroed": [name, ...]}, or null,
#       "others": [[name of a constant, digest of the program with another value of it, or null], ...]}
#
# A value is null, a bool, a number, a list of values, or one of {"t": number of a tensor}, {"dtype": name},
# {"device": true}, {"memory_format": name}, {"text": short string}, {"descriptor": [tensor, shape, strides, block,
# padding]}. The programs are texts beside the trace, by their digests: JSON of workshop.executor.codec. Only the box
# reads them, where the learner's Python is not.
Trace = dict


@dataclass(frozen=True)
class Fault:
    """A lane that accessed memory outside of its tensor: see workshop.executor.records."""

    kind: str
    kernel: str
    program: tuple[int, ...]
    argument: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    lane: int
    lanes: int
    where: str
    line: int
    code: str


@dataclass(frozen=True)
class Trouble:
    """An exception, or another reason why a case has no result.

    construct: what is refused, promised or missing. instead: a name that may have been meant. kernel: the one whose
    launch was refused.
    """

    kind: str
    type: str = ""
    message: str = ""
    line: int | None = None
    code: str = ""
    construct: str = ""
    instead: str = ""
    kernel: str = ""
    fault: Fault | None = None


@dataclass(frozen=True)
class Race:
    """Elements of one argument that several programs of a launch accessed, or several lanes of one program. At least
    one of them wrote, and nothing orders them.

    `elements` is the number of elements that were written more than once, `share` their fraction of the argument, and
    `writers` the largest number of writes to one element. `kind` is "write-write", "read-write" or "write-read". A
    program of -1 means several programs.
    """

    argument: str
    line: int
    code: str
    programs: tuple[int, int]
    elements: int
    share: float
    same_value: bool
    writers: int = 2
    kind: str = "write-write"

    @property
    def within(self) -> bool:
        """Whether lanes of one program race, not programs."""
        return self.programs[0] == self.programs[1]


@dataclass(frozen=True)
class Undefined:
    """A kernel used what nothing had defined: see workshop.executor.records."""

    kind: str
    kernel: str
    argument: str
    program: tuple[int, ...]
    line: int
    code: str


@dataclass(frozen=True)
class Evidence:
    """What was observed beside the result: launched kernels, races, reads, and damage to tensors.

    `undefined`: what kernels used although nothing had defined it.
    `reads` says for each tensor argument how often the kernels read one of its elements, on average. It is empty where
    nothing counts them. `stored` are the bytes that kernels wrote, if they are counted. `accesses` is a hash of all
    accesses to memory in their order; 0 if there were none, or nothing sees them. `idle`: kernels were launched, and
    without them the result would be the same. `accumulates`: an autotuned kernel reads what it wrote in an earlier run.
    `adds_atomically`: kernels add floating-point numbers in any order.
    """

    launched: tuple[str, ...] = ()
    races: tuple[Race, ...] = ()
    damage: tuple[str, ...] = ()
    undefined: tuple[Undefined, ...] = ()
    empty_kernels: tuple[str, ...] = ()
    reads: tuple[float, ...] = ()
    stored: int = 0
    accesses: int = 0
    idle: bool = False
    accumulates: bool = False
    adds_atomically: bool = False


@dataclass(frozen=True)
class Result:
    """The properties of a result. Its bytes are in the output."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    contiguous: bool
    aliases_input: bool


@dataclass(frozen=True)
class Report:
    """The outcome of one case: a trace, a result, a value or an error. Without a case: the end, or an early error.

    programs: those that the trace names and no earlier trace of the job did, by digest. same: the earlier case whose
    trace this one has, too.
    """

    case: int | None
    done: bool = False
    trace: Trace | None = None
    same: int | None = None
    programs: dict[str, str] = field(default_factory=dict)
    result: Result | None = None
    evidence: Evidence = Evidence()
    error: Trouble | None = None
    has_value: bool = False
    value: object = None


def encode(report: Report) -> bytes:
    """A report as a line for `parse`, without the newline."""
    if report.done:
        message: dict = {"done": True}
    elif report.error:
        message = {"error": report.error}
    elif report.same is not None:
        message = {"same": report.same}
    elif report.trace is not None:
        message = {"trace": report.trace, "programs": report.programs}
    elif report.result:
        message = {"result": report.result, "evidence": report.evidence}
    else:
        message = {"value": report.value}
    if report.case is not None:
        message["case"] = report.case
    return codec.to_json(message).encode()


def parse(status: bytes) -> list[Report]:
    """The reports of one job. Raises ProtocolError for anything that our own code would not send."""
    if len(status) > MAX_STATUS:
        raise ProtocolError("the report is too long")
    lines = status.split(b"\n")
    if len(lines) > MAX_LINES:
        raise ProtocolError("the report has too many lines")
    try:
        return [_report(json.loads(line)) for line in lines if line]
    except ProtocolError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, MemoryError, OverflowError) as error:
        raise ProtocolError(f"the report is malformed ({type(error).__name__})") from None


def _report(message) -> Report:
    message = _dict(message)
    if message.get("done") is True:
        return Report(None, done=True)
    case = message.get("case")
    case = None if case is None else _integer(case, 0, 4096)
    if "error" in message:
        return Report(case, error=_trouble(_dict(message["error"])))
    if case is None:
        raise ProtocolError("a report without a case")
    if "same" in message:
        return Report(case, same=_integer(message["same"], 0, case))
    if "trace" in message:
        programs = _programs(_dict(message.get("programs", {})))
        return Report(case, trace=_trace(_dict(message["trace"])), programs=programs)
    if "result" in message:
        return Report(case, result=_result(message["result"]), evidence=_evidence(_dict(message["evidence"])))
    if "value" in message:
        return Report(case, has_value=True, value=_plain(message["value"]))
    raise ProtocolError("a report of an unknown kind")


def _trace(trace: dict) -> Trace:
    """Checks that the steps are objects. The box checks their fields when it replays them."""
    if "steps" in trace:
        for step in _list(trace["steps"], MAX_STEPS):
            _dict(step)
    _shallow(trace, MAX_NESTING)
    return trace


def digest_of(program: str) -> str:
    return hashlib.sha256(program.encode()).hexdigest()


def _programs(programs: dict) -> dict[str, str]:
    """Texts by their digests, so that nobody can give a program the name of another one."""
    if len(programs) > MAX_PROGRAMS:
        raise ProtocolError("too many programs")
    for name, text in programs.items():
        if type(text) is not str or len(text) > MAX_PROGRAM or digest_of(text) != name:
            raise ProtocolError("a program that is not what it is called")
    return programs


def _shallow(value, room: int):
    if not room:
        raise ProtocolError("a trace is nested too deeply")
    if type(value) is int and abs(value) >> 64:
        raise ProtocolError("a trace with endless numbers")
    for inner in value.values() if type(value) is dict else value if type(value) is list else ():
        _shallow(inner, room - 1)


def _trouble(error: dict) -> Trouble:
    line = error.get("line")
    return Trouble(
        kind=_text(error.get("kind"), 40),
        type=_text(error.get("type", ""), 80),
        message=_text(error.get("message", ""), 4000),
        line=None if line is None else _integer(line, 0, 1 << 31),
        code=_text(error.get("code", ""), 400),
        construct=_text(error.get("construct", ""), 400),
        instead=_text(error.get("instead", ""), 800),
        kernel=_text(error.get("kernel", ""), 100),
        fault=_fault(_dict(error["fault"])) if "fault" in error else None,
    )


def _fault(fault: dict) -> Fault:
    return Fault(
        kind=_text(fault["kind"], 10),
        kernel=_text(fault["kernel"], 100),
        program=_integers(fault["program"]),
        argument=_text(fault["argument"], 100),
        shape=_integers(fault["shape"]),
        stride=_integers(fault["stride"]),
        lane=_integer(fault["lane"], 0, 1 << 40),
        lanes=_integer(fault["lanes"], 0, 1 << 40),
        where=_text(fault["where"], 300),
        line=_integer(fault["line"], 0, 1 << 31),
        code=_text(fault["code"], 400),
    )


def _result(result) -> Result:
    result = _dict(result)
    return Result(
        shape=_integers(result["shape"]),
        dtype=_text(result["dtype"], 40),
        device=_text(result["device"], 40),
        contiguous=_flag(result["contiguous"]),
        aliases_input=_flag(result["aliases_input"]),
    )


def _evidence(evidence: dict) -> Evidence:
    return Evidence(
        launched=tuple(_text(n, 100) for n in _list(evidence["launched"], 16)),
        races=tuple(_race(_dict(r)) for r in _list(evidence["races"], 4096)[:16]),
        damage=tuple(_text(d, 40) for d in _list(evidence["damage"], 16)),
        undefined=tuple(_undefined(_dict(each)) for each in _list(evidence.get("undefined", []), 16)),
        empty_kernels=tuple(_text(n, 100) for n in _list(evidence.get("empty_kernels", []), 16)),
        accesses=_integer(evidence.get("accesses", 0), -(1 << 63), 1 << 63),
        idle=_flag(evidence.get("idle", False)),
        accumulates=_flag(evidence.get("accumulates", False)),
        adds_atomically=_flag(evidence.get("adds_atomically", False)),
        reads=tuple(_count(n) for n in _list(evidence.get("reads", []), 16)),
        stored=_integer(evidence.get("stored", 0), 0, 1 << 62),
    )


def _undefined(undefined: dict) -> Undefined:
    return Undefined(
        kind=_text(undefined["kind"], 20),
        kernel=_text(undefined["kernel"], 100),
        argument=_text(undefined["argument"], 100),
        program=_integers(undefined["program"]),
        line=_integer(undefined["line"], 0, 1 << 31),
        code=_text(undefined["code"], 400),
    )


def _race(race: dict) -> Race:
    first, second = _integers(race["programs"])
    return Race(
        argument=_text(race["argument"], 100),
        line=_integer(race["line"], 0, 1 << 31),
        code=_text(race["code"], 400),
        programs=(first, second),
        elements=_integer(race["elements"], 0, 1 << 40),
        share=_fraction(race["share"]),
        same_value=_flag(race["same_value"]),
        writers=_integer(race.get("writers", 2), 0, 1 << 40),
        kind=_text(race.get("kind", "write-write"), 20),
    )


def _plain(value, depth: int = 0):
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str and len(value) <= 400:
        return value
    if depth < 4 and type(value) is list and len(value) <= 64:
        return [_plain(v, depth + 1) for v in value]
    if depth < 4 and type(value) is dict and len(value) <= 64:
        return {_text(k, 80): _plain(v, depth + 1) for k, v in value.items()}
    raise ProtocolError("a value of an unknown kind")


def _dict(value) -> dict:
    if type(value) is not dict:
        raise ProtocolError("an object was expected")
    return value


def _list(value, most: int) -> list:
    if type(value) is not list or len(value) > most:
        raise ProtocolError("a short list was expected")
    return value


def _text(value, most: int) -> str:
    """A text that is safe to show: the learner's code may choose the message of an error."""
    if type(value) is not str or len(value) > most:
        raise ProtocolError("a short text was expected")
    return visible(value)


def _integer(value, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ProtocolError("an integer was expected")
    return value


def _integers(value) -> tuple[int, ...]:
    return tuple(_integer(v, -(1 << 62), 1 << 62) for v in _list(value, 16))


def _fraction(value) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ProtocolError("a fraction was expected")
    return float(value)


def _count(value) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1 << 40:
        raise ProtocolError("a count was expected")
    return float(value)


def _flag(value) -> bool:
    if type(value) is not bool:
        raise ProtocolError("a flag was expected")
    return value
