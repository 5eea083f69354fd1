"""A Program as plain data for JSON, and back. What comes back may be anybody's.

Values are numbers in the order in which they are defined in their function; -1, -2, ... are the program's constants.
The types of what an operation gives are not sent but found again, as the front end found them.

`from_data` refuses what Triton's front end does not make: unknown names, values before they are defined, values of
other types, branches backwards, functions that call themselves, and more of anything than a kernel has. What then only
raises an exception when the program runs needs no check here: whoever runs what was sent is confined.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import partial

from . import program as ir
from .program import NOWHERE, Block, Enum, Function, Location, Operation, Program, Region, Type, Value
from .program import values as values_of
from .without_native import ENUMERATIONS

# What the data can hold is limited where they are received: these are what few words can stand for.
MAX_OPERATIONS = 20_000
MAX_EXPANDED = 1_000_000  # operations, with each call counted as what it calls
MAX_DEPTH = 50  # of regions, and of calls
MAX_ELEMENTS = 2**20  # of a block, as Triton has it
_ATTRIBUTES = {"get_int32_attr", "get_unit_attr", "get_disable_loop_licm_attr"}
_INFINITE = {"inf", "-inf", "nan"}  # JSON has no numbers for these


class BadProgram(ValueError):
    """Not the data of a program that Triton's front end makes."""


def _need(condition, what: str):
    if not condition:
        raise BadProgram(what)


# --- to data -----------------------------------------------------------------------------------------------


def to_data(program: Program) -> dict:
    """The program as lists, numbers and texts."""
    writer = _Writer()
    functions = [writer.function(each) for each in program.functions.values()]
    return {"files": writer.files, "types": writer.types, "constants": writer.constants, "functions": functions}


class _Writer:
    def __init__(self):
        self.files: list[str] = []
        self.types: list[list] = []
        self.constants: list[list] = []
        self.shared: dict[str | Type | Value, int] = {}  # the numbers of files, types and constants

    def function(self, function: Function) -> list:
        self.blocks = {block: i for i, block in enumerate(function.region.blocks)}
        self.values: dict[Value, int] = {}
        promises = [[i, name, value] for i, each in function.promises.items() for name, value in each.items()]
        blocks = [[[self.data(v.type) for v in each.arguments], self.block(each)] for each in function.region.blocks]
        return [function.name, self.data(function.type), function.noinline, promises, blocks]

    def define(self, values: list[Value]):
        self.values.update(zip(values, itertools.count(len(self.values))))

    def block(self, block: Block) -> list[list]:
        self.define(block.arguments)
        return [self.operation(each) for each in block.operations]

    def operation(self, operation: Operation) -> list:
        """[name, arguments, line, regions, attributes]; what is empty at the end is left away."""
        where = operation.location
        line = [self.share(where.file, self.files, where.file), where.line] if where.file else 0
        row = [operation.name, self.data(operation.args), line]
        row += [self.block(region.blocks[0]) for region in operation.regions], operation.attributes
        self.define(operation.results)
        while not row[-1] and len(row) > 2:
            row.pop()
        return row

    def data(self, given):
        """An argument, or a part of a type or constant."""
        if isinstance(given, (list, tuple)):
            return [self.data(each) for each in given]
        if isinstance(given, Type):
            return self.share(given, self.types, list(vars(given).values()))
        if isinstance(given, Value):
            return -1 - self.share(given, self.constants, given.constant) if given.constant else self.values[given]
        if isinstance(given, Block):
            return self.blocks[given]
        if isinstance(given, Function):
            return given.name
        if isinstance(given, Enum):
            return f"{given.kind}.{given.name}"
        return str(given) if isinstance(given, float) and not math.isfinite(given) else given

    def share(self, given: str | Type | Value, rows: list, parts) -> int:
        """The number of a file, type or constant, which is written once."""
        if given not in self.shared:
            rows.append(self.data(parts))
            self.shared[given] = len(rows) - 1
        return self.shared[given]


# --- from data ---------------------------------------------------------------------------------------------


def from_data(data) -> Program:
    """The program that `to_data` made. Raises BadProgram for all else."""
    try:
        return _Reader(data).program
    except (TypeError, ValueError, LookupError, AttributeError, RuntimeError, OverflowError) as error:
        raise error if isinstance(error, BadProgram) else BadProgram(f"{type(error).__name__}: {error}") from error


def _is(kind: type, given):
    if type(given) is not kind:
        raise BadProgram(f"{type(given).__name__}, not {kind.__name__}")
    return given


def _number(given, low: int = -(2**63), high: int = 2**64 - 1) -> int:
    _need(low <= _is(int, given) <= high, "a number is too large")
    return given


def _enum(given) -> Enum:
    kind, _, name = given.partition(".")
    _need(name in ENUMERATIONS[kind], f"no {given}")
    return Enum(kind, name)


def _valid(type: Type) -> Type:
    element, kind = type.element, type.kind
    if kind in ("int", "float", "void"):
        _need(type in ir.TYPES.values(), "no number")
    elif kind in ("block", "descriptor"):
        _need(element.kind in ("int", "float", "pointer") and 0 < len(type.shape) <= 25, "no block")
        _need(all(n > 0 and n & (n - 1) == 0 for n in type.shape), "a block whose lengths are no powers of two")
        _need(math.prod(type.shape) <= MAX_ELEMENTS, "too large a block")
    elif kind == "pointer":
        _need(element.kind in ("int", "float", "pointer", "block"), "a pointer to nothing")
    else:
        parts = [each.kind for part in type.parts for each in part]
        _need(kind == "function" and not {"void", "function"} & {*parts}, "no function")
    return type


class _Reader:
    def __init__(self, data):
        self.program = Program()
        self.files = [_is(str, each) for each in data["files"]]
        self.types: list[Type] = []
        for row in data["types"]:
            self.types.append(self.new_type(*row))
        self.constants = [self.constant(*row) for row in data["constants"]]
        self.count = 0
        self.sizes: dict[str, int] = {}  # by function: its operations, with those of what it calls
        functions = self.program.functions
        self.arguments = dict.fromkeys("vopwme", self.value)
        self.arguments |= {"t": self.type, "x": _enum, "b": self.target, "n": _number, "f": functions.__getitem__,
                           "y": partial(_is, bool), "s": partial(_is, str)}  # fmt: skip
        rows = data["functions"]
        for row in rows:
            self.declare(*row)
        for row in rows:
            self.body(functions[row[0]], row[-1])
        _need(rows, "no kernel")
        for name in functions:
            self.size(name)

    # types and constants

    def type(self, number) -> Type:
        return self.types[_number(number, 0)]

    def new_type(self, kind: str, name: str, element, shape, parts, signed, space) -> Type:
        element = None if element is None else self.type(element)
        inputs, outputs = (tuple(map(self.type, part)) for part in parts)
        shape = tuple(map(_number, shape))
        return _valid(Type(kind, _is(str, name), element, shape, (inputs, outputs), _is(bool, signed), _number(space)))

    def constant(self, method: str, argument) -> Value:
        type = ir.CONSTANTS.get(method)
        if type is None:
            _need(method in ("get_null_value", "get_all_ones_value"), "no constant")
            argument = type = self.type(argument)
        elif type.kind == "float":
            argument = float(argument) if argument in _INFINITE else argument
            _need(isinstance(argument, float), "no floating point number")
        else:
            _number(argument)
        return Value(type, (method, argument))

    # functions

    def declare(self, name, number, noinline, promises, blocks):
        function = Function(_is(str, name), self.type(number), bool(noinline))
        _need(function.type.kind == "function" and name not in self.program.functions, "not a function")
        for number, promise, value in promises:
            _need(re.fullmatch(r"tt\.\w+", _is(str, promise)), "not a promise")
            _number(number, 0, len(function.type.parts[0]) - 1)
            function.promises.setdefault(number, {})[promise] = _number(value)
        self.program.functions[name] = function

    def body(self, function: Function, rows: list):
        self.values: list[Value | None] = []  # None: not to be seen from here
        self.blocks = [Block(function.region, (Value(self.type(n)) for n in types)) for types, _ in rows]
        _same(function.entry.arguments, function.type.parts[0])
        for i, (block, (_, operations)) in enumerate(zip(self.blocks, rows)):
            self.at = i
            end = self.operations(block, operations, 0)
            if end.name == "ret":
                _same(end.args[0], function.type.parts[1])
            elif end.name == "branch":
                _same(end.args[1], [each.type for each in end.args[0].arguments])
            else:
                _need(end.name == "cond_branch", "a block without an end")
                _same(end.args[:1], [ir.BOOL])
                _need(not end.args[1].arguments and not end.args[2].arguments, "a condition hands on no values")

    def target(self, number) -> Block:
        """The front end branches forwards only: loops are operations of their own."""
        return self.blocks[_number(number, self.at + 1)]

    def size(self, name: str, depth: int = 0) -> int:
        """How many operations a function is, with those of what it calls."""
        _need(depth <= MAX_DEPTH, "a function that calls itself, or too many in one another")
        if name not in self.sizes:
            operations = list(ir.operations_in(self.program.functions[name].region))
            called = [each.args[0].name for each in operations if each.name == "call"]
            self.sizes[name] = len(operations) + sum(self.size(each, depth + 1) for each in called)
        _need(self.sizes[name] <= MAX_EXPANDED, "too many calls")
        return self.sizes[name]

    # operations

    def operations(self, block: Block, rows, depth: int) -> Operation:
        """Fills a block. Returns its last operation."""
        _need(depth <= MAX_DEPTH, "too deep")
        self.values += block.arguments
        for row in rows:
            self.count += 1
            _need(self.count <= MAX_OPERATIONS, "too many operations")
            block.operations.append(self.operation(depth, *row))
        _need(all(each.name not in ir.TERMINATORS for each in block.operations[:-1]), "an operation after the end")
        return block.operations[-1] if block.operations else Operation("yield_op", [[]], [])

    def operation(self, depth: int, name: str, args, where=0, regions=(), attributes=None) -> Operation:
        _need(name in ir.OPERATIONS, "no operation")
        letters = next((each for each in ir.OPERATIONS[name][0] if len(each) == len(args)), None)
        _need(letters is not None, f"{name} of {len(args)} arguments")
        args = [self.argument(letter, each) for letter, each in zip(letters, args)]
        if where != 0:
            where = Location(self.files[_number(where[0], 0)], _number(where[1], 0))
        made = Operation(name, args, [Value(_valid(each)) for each in ir.results(name, args)], where or NOWHERE)
        for key, (method, *numbers) in (attributes or {}).items():
            _need(re.fullmatch(r"(tt|llvm)\.\w+", key) and method in _ATTRIBUTES, "attributes")
            made.attributes[key] = [method, *map(_number, numbers)]
        expected_inside = ir.inside(made)
        _need(len(regions) == len(expected_inside), "regions")
        for rows, expected in zip(regions, expected_inside):
            made.regions.append(self.region(rows, depth + 1, *expected))
        self.values += made.results
        return made

    def region(self, rows, depth: int, inputs: list[Type], end: str, outputs: list[Type]) -> Region:
        region, before = Region(), len(self.values)
        block = Block(region, map(Value, inputs))
        last = self.operations(block, rows, depth)
        if last.name in ir.TERMINATORS or outputs:
            _need(last.name == end, f"{last.name} at the end of a region")
            _same(values_of(last.args), outputs)
        self.values[before:] = [None] * (len(self.values) - before)
        return region

    def argument(self, letter: str, given):
        if letter.isupper():
            return [self.argument(letter.lower(), each) for each in given]
        return None if given is None and letter in "oex" else self.arguments[letter](given)

    def value(self, number) -> Value:
        if _number(number) < 0:
            return self.constants[-1 - number]
        _need(self.values[number] is not None, "a value that is not defined here")
        return self.values[number]


def _same(values: list[Value], types):
    _need([each.type for each in values] == list(types), "values of other types")
