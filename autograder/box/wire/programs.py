"""A program of JAX as data: what a function of arrays does, with its kernel launches.

A planning process, which runs the learner's Python, traces the function and sends the program as JSON. `read` makes
records of it. The learner's code may have written anything: `read` accepts known operations of a limited size, and
raises ProtocolError for everything else. It runs on both ends of the wire: the judge looks at the program, and a
replaying process, which never runs the learner's Python, evaluates it on the real inputs.

    {"inputs": [form, ...], "steps": [step, ...], "outputs": [value, ...]}

A form is {"shape": [...], "dtype": "float32"}. A value is {"v": n} or a constant, {"c": form, ...}: with "values": all
its elements, or with "first" and "step": numbers in a row, or with "table": true: it has too many other numbers, which
are not sent. Variables are numbered: first the inputs, then the outputs of each step. A step is

    {"op": name, "in": [value, ...], "out": [form, ...], "params": {name: parameter}}   an operation of JAX
    {"op": "launch", "in": ..., "out": ..., "launch": {...}}                            a kernel; see Launch
    {"op": "cond" | "scan" | "while", "in", "out", "params", "inner": [program, ...]}   control flow

A parameter is null, a bool, an integer, a float, a short string, {"dtype": name} or a list of parameters.
An operation that is not in OPERATIONS comes without parameters. Nothing evaluates it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from .answers import ProtocolError

MAX_STEPS = 2048  # of a program, with those of its inner programs
MAX_DEPTH = 3  # of inner programs
MAX_VALUES = 16  # inputs or outputs of a step
MAX_ELEMENTS = 1 << 28  # of an array
SMALL = 64  # elements: a constant of more has its values in the program only if they are numbers in a row
MAX_INPUTS = 1024  # of a step
MAX_NUMBERS = 4 * SMALL  # in the constants of a program that have more than one; the judge may accept fewer

MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "dynamic_slice", "dynamic_update_slice", "iota", "pad",
    "reshape", "rev", "slice", "split", "squeeze", "stack", "tile", "transpose",
}  # fmt: skip
ARITHMETIC = {
    "abs", "add", "add_any", "and", "bitcast_convert_type", "cbrt", "ceil", "clamp", "clz", "cos", "cosh", "div", "eq",
    "erf", "erf_inv", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log", "log1p",
    "logistic", "lt", "max", "min",
    "mul", "mulhi", "ne", "neg", "not", "or", "population_count", "pow", "reduce_and", "reduce_max", "reduce_min",
    "reduce_or", "reduce_precision", "reduce_prod", "reduce_sum", "rem", "round", "rsqrt", "select_n", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh",
    "xor",
}  # fmt: skip
RANDOM = {"random_bits", "random_fold_in", "random_seed", "random_split", "random_unwrap", "random_wrap"}
OPERATIONS = MOVES | ARITHMETIC | RANDOM
CONTROL = {"cond", "scan", "while"}
DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "key<fry>"}  # fmt: skip


@dataclass(frozen=True)
class Form:
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Constant:
    """All elements as `values`, or numbers in a row, or a table, whose numbers are not here."""

    form: Form
    values: tuple | None = None
    first: int | float = 0
    step: int | float = 0
    table: bool = False


@dataclass(frozen=True)
class Launch:
    """A kernel, the digest of its program, its grid, and its arguments that are not constants.

    given: label, value and type of each. A value is a number, or ("in", i) for the i-th array that the step takes, or
    ("out", i) for the i-th that it makes. zeroed: outputs that begin as zeros. aliases: pairs of an array that the step
    takes and the output that begins as a copy of it.
    """

    kernel: str
    program: str
    grid: tuple[int, ...]
    given: tuple[tuple[str, object, str], ...]
    options: dict[str, int]
    zeroed: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Step:
    op: str
    inputs: tuple[int | Constant, ...]
    outputs: tuple[int, ...]  # the numbers of the variables that it makes
    params: dict = field(default_factory=dict)
    launch: Launch | None = None
    inner: tuple[Program, ...] = ()


@dataclass(frozen=True)
class Program:
    """`forms` has the form of each variable. Steps whose outputs are not needed are left out."""

    inputs: int
    forms: tuple[Form, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int | Constant, ...]

    def launches(self) -> Iterator[Launch]:
        for step in self.steps:
            if step.launch:
                yield step.launch
            for inner in step.inner:
                yield from inner.launches()

    def constants(self) -> Iterator[Constant]:
        for value in (*(each for step in self.steps for each in step.inputs), *self.outputs):
            if isinstance(value, Constant):
                yield value
        for step in self.steps:
            for inner in step.inner:
                yield from inner.constants()

    @property
    def known(self) -> bool:
        """Whether every operation can be evaluated, and no number is missing."""
        operations = all(s.launch or s.op in OPERATIONS | CONTROL for s in self.steps)
        inner = all(each.known for s in self.steps for each in s.inner)
        return operations and inner and not any(each.table for each in self.constants())


def read(given) -> Program:
    """The records of a program. Raises ProtocolError for what is none."""
    try:
        return _Reader().program(given, MAX_DEPTH)
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise ProtocolError(f"a program is malformed ({type(error).__name__})") from None


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ProtocolError(f"a program with {what}")


class _Reader:
    def __init__(self):
        self.steps = self.numbers = 0

    def program(self, given, depth: int) -> Program:
        _expect(depth > 0, "programs in programs in programs")
        forms = [self.form(each) for each in _list(given["inputs"])]
        inputs, steps = len(forms), []
        for each in _list(given["steps"], MAX_STEPS):
            steps.append(self.step(each, forms, depth))
        outputs = tuple(self.value(each, len(forms)) for each in _list(given["outputs"]))
        return Program(inputs, tuple(forms), tuple(_needed(steps, outputs)), outputs)

    def step(self, given, forms: list[Form], depth: int) -> Step:
        self.steps += 1
        _expect(self.steps <= MAX_STEPS, "too many steps")
        op = _name(given["op"])
        inputs = tuple(self.value(each, len(forms)) for each in _list(given["in"], MAX_INPUTS))
        made = [self.form(each) for each in _list(given["out"], 64)]
        outputs = tuple(range(len(forms), len(forms) + len(made)))
        forms += made
        if op == "launch":
            return Step(op, inputs, outputs, launch=self.launch(given["launch"], len(inputs), len(outputs)))
        if op not in OPERATIONS | CONTROL:
            return Step(op, inputs, outputs)
        params = {_name(name): self.parameter(value, 3) for name, value in given["params"].items()}
        inner = tuple(self.program(each, depth - 1) for each in _list(given["inner"], 8)) if op in CONTROL else ()
        return Step(op, inputs, outputs, params, inner=inner)

    def launch(self, given, arrays: int, outputs: int) -> Launch:
        limits = {"in": arrays, "out": outputs}
        return Launch(
            kernel=_name(given["kernel"]),
            program=_name(given["program"]),
            grid=_grid(given["grid"]),
            given=tuple(self.argument(each, limits) for each in _list(given["given"], 64)),
            options={_name(name): _integer(n, 0, 1 << 10) for name, n in given["options"].items()},
            zeroed=tuple(_integer(n, 0, outputs - 1) for n in _list(given["zeroed"], 64)),
            aliases=tuple(
                (_integer(a, 0, arrays - 1), _integer(b, 0, outputs - 1)) for a, b in _list(given["aliases"], 64)
            ),
        )

    def argument(self, given, limits: dict[str, int]) -> tuple[str, object, str]:
        label, value, kind = _list(given, 3)
        if type(value) is list:
            where, number = value
            value = where, _integer(number, 0, limits[where] - 1)
        else:
            _number(value)
        _expect(_name(kind).startswith("*") == (type(value) is tuple), "an argument of another type")
        return _name(label), value, kind

    def form(self, given) -> Form:
        shape = tuple(_integer(n, 0, MAX_ELEMENTS) for n in _list(given["shape"], 8))
        _expect(given["dtype"] in DTYPES and math.prod(shape) <= MAX_ELEMENTS, "an array that cannot be")
        return Form(shape, given["dtype"])

    def value(self, given, made: int) -> int | Constant:
        if "v" in given:
            return _integer(given["v"], 0, made - 1)
        form = self.form(given["c"])
        if given.get("table") is True:
            return Constant(form, table=True)
        if "values" in given:
            values = tuple(map(_number, _list(given["values"], SMALL)))
            _expect(len(values) == form.size, "a constant of another size")
            self.numbers += len(values) if len(values) > 1 else 0
            _expect(self.numbers <= MAX_NUMBERS, "too many constants")
            return Constant(form, values)
        return Constant(form, None, _number(given["first"]), _number(given["step"]))

    def parameter(self, given, depth: int):
        if given is None or type(given) in (bool, float):
            return given
        if type(given) is int:
            return _integer(given, -(1 << 63), 1 << 64)
        if type(given) is str:
            return _name(given)
        if type(given) is dict:
            _expect(set(given) == {"dtype"} and given["dtype"] in DTYPES, "an unknown parameter")
            return given
        _expect(depth > 0, "nested parameters")
        return tuple(self.parameter(each, depth - 1) for each in _list(given, 64))


def _needed(steps: list[Step], outputs: tuple) -> list[Step]:
    """The steps that the outputs depend on."""
    needed, kept = {value for value in outputs if type(value) is int}, []
    for step in reversed(steps):
        if needed.intersection(step.outputs):
            needed.update(value for value in step.inputs if type(value) is int)
            kept.append(step)
    return kept[::-1]


def _grid(given) -> tuple[int, ...]:
    _expect(len(_list(given, 3)) == 3, "a grid that is not complete")
    return tuple(_integer(n, 0, 1 << 31) for n in given)


def _list(given, most: int = MAX_VALUES) -> list:
    _expect(type(given) is list and len(given) <= most, "an endless list")
    return given


def _name(given) -> str:
    _expect(type(given) is str and len(given) <= 100 and given.isprintable(), "an unreadable name")
    return given


def _number(given):
    _expect(type(given) in (bool, float) or type(given) is int and abs(given) < 1 << 64, "an endless number")
    return given


def _integer(given, low: int, high: int) -> int:
    _expect(type(given) is int and low <= given <= high, "a number out of range")
    return given
