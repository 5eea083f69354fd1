"""A kernel as typed operations: what Triton's front end makes of it, before any compiler.

A Program is data. It holds functions, a function holds blocks, a block holds operations. An operation is one call
that the front end made of Triton's builder: `create_fadd(x, y)` is the operation "fadd" with the arguments (x, y).
So the same program can be run by `machine`, sent as JSON, and built again with Triton's own builder (`rebuild`).

All of this package read the table of operations. What one computes is found by its name: in `arithmetic.ELEMENTWISE`
(numbers), `arithmetic.WHOLE` (blocks), `values.MOVES` (places of elements), or as a method of `machine.Machine`
(memory, control flow).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import torch

from .without_native import ENUMERATIONS


class Unsupported(NotImplementedError):
    """Only hardware can do it, such as inline assembly, or this executor cannot. `construct` is its name."""

    kind = "not-allowed"

    def __init__(self, construct: str):
        super().__init__(f"{construct} cannot be run without a GPU")
        self.construct = self.words = construct


@dataclass(frozen=True)
class Type:
    """A type of Triton's IR.

    kind: "void", "int", "float", "pointer", "block", "function" or "descriptor". name: of a number, as MLIR writes it
    (i32, f32, bf16, f8E4M3FN). element: what a pointer points to, what a block or descriptor consists of. shape: of
    a block or descriptor. parts: of a function, the types of its inputs and outputs.
    """

    kind: str
    name: str = ""
    element: Type | None = None
    shape: tuple[int, ...] = ()
    parts: tuple[tuple[Type, ...], tuple[Type, ...]] = ((), ())
    signed: bool = True  # of a descriptor
    space: int = 1  # of a pointer

    @property
    def scalar(self) -> Type:
        """The type of one element of a block; the type itself if it is not a block."""
        return self.element if self.kind == "block" else self

    @property
    def bits(self) -> int:
        """The width of a number."""
        return int(re.search(r"\d+", self.name)[0])

    @property
    def elements(self) -> int:
        """How many elements a block has; 1 for a number."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> torch.dtype:
        """That of tensors of such numbers, or of a block of them. Pointers are addresses."""
        scalar = self.scalar
        return torch.int64 if scalar.kind == "pointer" else DTYPES[scalar.name]

    def with_element(self, element: Type) -> Type:
        """A block of the same shape of other elements, or `element` itself for a number."""
        return Type("block", element=element, shape=self.shape) if self.kind == "block" else element

    def with_shape(self, shape) -> Type:
        """A block of the same elements with another shape; a number for an empty shape."""
        return Type("block", element=self.scalar, shape=tuple(shape)) if shape else self.scalar

    def __str__(self) -> str:
        if self.kind == "block":
            return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"
        return f"ptr<{self.element}>" if self.kind == "pointer" else self.name or self.kind


@dataclass(frozen=True)
class Enum:
    """A member of one of the enumerations of Triton's IR, such as CACHE_MODIFIER.CA."""

    kind: str
    name: str


class Value:
    """What an operation gives, or an argument of a block. `constant`: the call that makes it, for a constant."""

    __slots__ = ("type", "constant")

    def __init__(self, type: Type, constant: tuple | None = None):
        self.type, self.constant = type, constant


@dataclass(frozen=True)
class Location:
    """A line of a file; NOWHERE for Triton's own library."""

    file: str
    line: int

    def get_name(self) -> str:  # Triton 3.9's front end asks
        return ""


NOWHERE = Location("", 0)


class Operation:
    """name: of the builder's method, without `create_`. args: of that call, as they are in OPERATIONS.

    regions: the bodies of a loop, a condition or a reduction. attributes: what the front end set afterwards.
    """

    __slots__ = ("name", "args", "results", "location", "regions", "attributes")

    def __init__(self, name: str, args: list, results: list[Value], location: Location = NOWHERE, regions=()):
        self.name, self.args, self.results, self.location = name, args, results, location
        self.regions: list[list[Block]] = list(regions)
        self.attributes: dict[str, list] = {}

    @property
    def bodies(self) -> list[list[Block]]:
        """Its regions, or that of the function that it calls."""
        return [self.args[0].blocks] if self.name == "call" else self.regions


class Block:
    """region: all blocks among which it is: those of a function, or those of a part of an operation."""

    __slots__ = ("arguments", "operations", "region")

    def __init__(self, region: list[Block] | None = None, arguments: Iterable[Value] = ()):
        self.arguments: list[Value] = list(arguments)
        self.operations: list[Operation] = []
        self.region = region
        if region is not None:
            region.append(self)


@dataclass(eq=False)
class Function:
    """type: of kind "function". promises: by number of the argument, attributes such as tt.divisibility."""

    name: str
    type: Type
    noinline: bool = False
    blocks: list[Block] = field(default_factory=list)
    promises: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def entry(self) -> Block:
        return self.blocks[0]


@dataclass
class Program:
    """functions: by name; the first one is the kernel. facts: what `facts.about` has found."""

    functions: dict[str, Function] = field(default_factory=dict)
    facts: object = field(default=None, compare=False, repr=False)

    @property
    def kernel(self) -> Function:
        return next(iter(self.functions.values()))

    def promising(self, promises: dict[int, dict[str, int]]) -> Program:
        """The same operations, with these promises of the kernel's arguments."""
        kernel = replace(self.kernel, promises=promises)
        return Program(self.functions | {kernel.name: kernel})

    def operations(self) -> Iterator[Operation]:
        """All operations of all functions."""
        return operations_in([function.blocks for function in self.functions.values()])


def operations_in(regions: Iterable[list[Block]], calls: bool = False) -> Iterator[Operation]:
    """All operations of regions, those of a block before those inside of them. calls: with the functions called."""
    for block in itertools.chain(*regions):
        yield from block.operations
        for operation in block.operations:
            yield from operations_in(operation.bodies if calls else operation.regions, calls)


def values(arg) -> list[Value]:
    """The Values among the arguments of an operation, those in lists too, in their order."""
    if isinstance(arg, (list, tuple)):
        return [value for each in arg for value in values(each)]
    return [arg] if isinstance(arg, Value) else []


# --- the operations: what each takes, gives and does --------------------------------------------------------


class Format(NamedTuple):
    """A kind of number: its name in MLIR, in the signature of a kernel, and in the methods of Triton's builder."""

    mlir: str
    name: str
    method: str
    dtype: torch.dtype  # of tensors here


FORMATS = [Format(*row) for row in (
    ("i1", "i1", "int1", torch.bool), ("i8", "i8", "int8", torch.int8), ("i16", "i16", "int16", torch.int16),
    ("i32", "i32", "int32", torch.int32), ("i64", "i64", "int64", torch.int64), ("f16", "fp16", "half", torch.float16),
    ("bf16", "bf16", "bf16", torch.bfloat16), ("f32", "fp32", "float", torch.float32),
    ("f64", "fp64", "double", torch.float64), ("f8E4M3FN", "fp8e4nv", "fp8e4nv", torch.float8_e4m3fn),
    ("f8E5M2", "fp8e5", "fp8e5", torch.float8_e5m2), ("f8E4M3FNUZ", "fp8e4b8", "fp8e4b8", torch.float8_e4m3fnuz),
    ("f8E5M2FNUZ", "fp8e5b16", "fp8e5b16", torch.float8_e5m2fnuz),
)]  # fmt: skip
DTYPES = {each.mlir: each.dtype for each in FORMATS}
# The simple types, and those of the constants, by the methods of the builder.
TYPES = {f"get_{each.method}_ty": Type("int" if each.mlir[0] == "i" else "float", each.mlir) for each in FORMATS}
BOOL, INT32 = TYPES["get_int1_ty"], TYPES["get_int32_ty"]
CONSTANTS = {f"get_{sign}int{type.bits}": type for type in TYPES.values() if type.kind == "int" for sign in ("", "u")}
CONSTANTS |= {f"get_{name}": Type("float", name.replace("fp", "f")) for name in ("fp16", "fp32", "fp64", "bf16")}
TYPES |= {"get_void_ty": Type("void")}
BRANCHES = {"branch", "cond_branch"}
TERMINATORS = BRANCHES | {"ret", "yield_op", "condition_op", "reduce_ret", "scan_ret", "map_elementwise_ret"}
REGIONS = {"for_op": 1, "if_op": 2, "while_op": 2, "reduce": 1, "scan": 1, "map_elementwise": 1}


def _like(position: int) -> Callable:
    return lambda *args: [args[position].type]


def _given(position: int) -> Callable:
    return lambda *args: [args[position]]


def _nothing(*args):
    return []


def _alike(first, *others):
    """All operands are of one type, and so is the result."""
    if any(each.type != first.type for each in others if isinstance(each, Value)):
        raise TypeError("operands of unlike types")
    return [first.type]


def _compared(x, y):
    return [_alike(x, y)[0].with_element(BOOL)]


def _scanned(operands, axis, *_):
    shape = operands[0].type.shape
    if not 0 <= axis < len(shape):
        raise TypeError("no such axis")
    return [each.type for each in operands]


def _mapped(operands, types, pack):
    if not 0 < pack <= 64:
        raise TypeError("so many elements at once")
    return types


def _given_to(types, values, found=None):
    """`found`, or `types`, if the values have these types."""
    if [each.type for each in values] != list(types):
        raise TypeError("values of other types")
    return types if found is None else found


def _loaded(pointer, *_):
    return [pointer.type.with_element(pointer.type.scalar.element)]


def _block(element: Type, shape) -> list[Type]:
    return [Type("block", element=element, shape=tuple(shape))]


# The operations, their arguments, and the rule for the types of their results. A letter for each argument: Value,
# Optional value, Type, Enum or None (x), Block, Function, Number, Yes or no, String. A capital is a list of them: of
# strings, a cache policy of Triton 3.9. Spaces part what versions of Triton pass. Values of an access have letters of
# their own: the Pointer or descriptor, what is Written, the Mask, and what lanes hold Else, which is optional.
_TABLE = (
    ("add and ashr fadd fdiv fmul frem fsub lshr maximumf maxnumf maxsi maxui minimumf minnumf minsi minui mul or "
     "approx_divf precise_divf sdiv shl srem sub udiv umulhi urem xor", "vv", _alike),
    ("ceil cos erf exp exp2 fabs floor fneg iabs log log2 precise_sqrt rsqrt sin sqrt", "v", _alike),
    ("fma", "vvv", _alike),
    ("clampf", "vvvx", _alike),
    ("icmpEQ icmpNE icmpSGE icmpSGT icmpSLE icmpSLT icmpUGE icmpUGT icmpULE icmpULT", "vv", _compared),
    ("fcmpOEQ fcmpOGE fcmpOGT fcmpOLE fcmpOLT fcmpONE fcmpUEQ fcmpUGE fcmpUGT fcmpULE fcmpULT fcmpUNE", "vv",
     _compared),
    ("select", "vvv", lambda condition, x, y: _alike(x, y)),
    ("bitcast fp_ext fp_to_si fp_to_ui fp_trunc int_to_ptr ptr_to_int si_to_fp ui_to_fp", "vt", _given(1)),
    ("fp_to_fp", "vtx", _given(1)),
    ("int_cast", "vty", _given(1)),
    # numbers and shapes
    ("get_program_id get_num_programs", "n", lambda axis: [INT32]),
    ("poison", "t", _given(0)),
    ("make_range", "tnn", _given(0)),
    ("splat", "tv", _given(0)),
    ("unsplat", "v", lambda x: [x.type.scalar]),
    ("expand_dims", "vn", lambda x, axis: [x.type.with_shape((*x.type.shape[:axis], 1, *x.type.shape[axis:]))]),
    ("broadcast", "vN", lambda x, shape: [x.type.with_shape(shape)]),
    ("trans", "vN", lambda x, order: [x.type.with_shape([x.type.shape[i] for i in order])]),
    ("reshape", "vNy", lambda x, shape, reorder: _block(x.type.scalar, shape)),
    ("join", "vv", lambda x, y: _block(x.type.scalar, (*x.type.shape, 2))),
    ("split", "v", lambda x: [x.type.with_shape(x.type.shape[:-1])] * 2),
    ("cat", "vv", lambda x, y: _block(x.type.scalar, (x.type.shape[0] + y.type.shape[0], *x.type.shape[1:]))),
    ("gather", "vvn", lambda source, index, axis: [source.type.with_shape(index.type.shape)]),
    ("histogram", "vno", lambda x, bins, mask: _block(INT32, [bins])),
    ("dot", "vvvxn", _like(2)),
    ("dot_scaled", "voxvoxyyyv", _like(-1)),
    ("extern_elementwise", "sssVty", _given(4)),
    # memory
    ("addptr", "vv", _like(0)),
    ("load", "pxxy pSy", _loaded),
    ("masked_load", "pmexxy pmeSy", _loaded),
    ("store", "pwxx pwS", _nothing),
    ("masked_store", "pwmxx pwmS", _nothing),
    ("atomic_rmw", "xpwmxx", _like(2)),
    ("atomic_cas", "pvwxx", _like(2)),
    ("atomic_load", "pmxx", _loaded),
    ("atomic_store", "pwmxx", _nothing),
    ("atomic_poll", "pvoxx", lambda pointer, *_: [pointer.type.with_element(BOOL)]),
    ("make_block_ptr", "vVVVNN", lambda base, shape, strides, offsets, block, order:
     [Type("pointer", element=_block(base.type.element, block)[0])]),
    ("advance", "vV", _like(0)),
    ("tensor_pointer_load", "pNxxxy", lambda pointer, *_: [pointer.type.element]),
    ("tensor_pointer_store", "pwNxx", _nothing),
    ("make_tensor_descriptor", "vVVNy vVVNyx", lambda base, shape, strides, block, signed, *_:
     [Type("descriptor", element=base.type.element, shape=tuple(block), signed=bool(signed))]),
    ("descriptor_load", "pVxx pVS", lambda descriptor, *_: _block(descriptor.type.element, descriptor.type.shape)),
    ("descriptor_gather", "pvvt", _given(3)),
    ("descriptor_store", "pwV", _nothing),
    ("descriptor_reduce", "xpwV", _nothing),
    ("descriptor_scatter", "pwvv", _nothing),
    # control
    ("for_op", "vvvV", lambda low, high, step, initial: _alike(low, high, step) and [each.type for each in initial]),
    ("while_op", "TV", _given_to),
    ("if_op", "Tvy", lambda types, condition, _: _given_to([BOOL], [condition], types)),
    ("call", "fV", lambda function, given: _given_to(function.type.parts[0], given, function.type.parts[1])),
    ("reduce", "Vn", lambda operands, axis:
     [each.with_shape(each.shape[:axis] + each.shape[axis + 1 :]) for each in _scanned(operands, axis)]),
    ("scan", "Vny", _scanned),
    ("map_elementwise", "VTn", _mapped),
    ("ret yield_op map_elementwise_ret reduce_ret scan_ret", "V", _nothing),
    ("condition_op", "vV", _nothing),
    ("branch", "bV", _nothing),
    ("cond_branch", "vbb", _nothing),
    # what a kernel says
    ("barrier grid_dependency_wait grid_dependency_launch_dependents", "", _nothing),
    ("assume", "v", _nothing),
    ("assert", "vs", _nothing),
    ("promise", "vsN", _nothing),
    ("print", "syVY", _nothing),
)  # fmt: skip
OPERATIONS = {name: (letters.split(" "), rule) for names, letters, rule in _TABLE for name in names.split()}
ACCESSES = {name for name, (letters, _) in OPERATIONS.items() if "p" in letters[0]}
ATOMICS = {name for name in ACCESSES if name.startswith("atomic")}
STORES = ATOMICS | {name for name in ACCESSES if "w" in OPERATIONS[name][0][0]}


def part(operation: Operation, letter: str):
    """The argument of an access that has this letter in the table; None where it has none."""
    place = OPERATIONS[operation.name][0][0].find(letter)
    return None if place < 0 else operation.args[place]


def results(name: str, args) -> list[Type]:
    """The types of what the builder's method gives."""
    if name not in OPERATIONS:
        raise Unsupported("inline assembly" if name == "inline_asm" else name)
    return OPERATIONS[name][1](*args)


def inside(operation: Operation) -> list[tuple[list[Type], str, list[Type]]]:
    """Of each region: the types of its arguments, the name of its last operation, the types that this hands on."""
    name, args, given = operation.name, operation.args, [each.type for each in operation.results]
    if name == "if_op":
        return [([], "yield_op", given)] * 2
    if name == "for_op":
        return [([args[0].type, *given], "yield_op", given)]
    if name == "while_op":
        return [(given, "condition_op", [BOOL, *given]), (given, "yield_op", given)]
    if name not in REGIONS:
        return []
    inputs = [each.type.scalar for each in args[0]]
    if name == "map_elementwise":
        packed = [[each.scalar for each in types for _ in range(args[2])] for types in (inputs, given)]
        return [(packed[0], f"{name}_ret", packed[1])]
    return [(inputs * 2, f"{name}_ret", inputs)]


# --- as plain data for JSON, and back. What comes back may be anybody's. --------------------------------------
#
# Values are numbers in the order in which they are defined in their function; -1, -2, ... are the program's constants.
# The types of what an operation gives are not sent but found again, as the front end found them.
#
# `from_data` refuses what Triton's front end does not make: unknown names, values before they are defined, values of
# other types, branches backwards, functions that call themselves, and more of anything than a kernel has. What then
# only raises an exception when the program runs needs no check here: whoever runs what was sent is confined.

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
        self.blocks = {block: i for i, block in enumerate(function.blocks)}
        self.values: dict[Value, int] = {}
        promises = [[i, name, value] for i, each in function.promises.items() for name, value in each.items()]
        blocks = [[[self.data(v.type) for v in each.arguments], self.block(each)] for each in function.blocks]
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
        row += [self.block(region[0]) for region in operation.regions], operation.attributes
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
    _need(type(given) is kind, f"{type(given).__name__}, not {kind.__name__}")
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
        _need(type in TYPES.values(), "no number")
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
        type = CONSTANTS.get(method)
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
        self.blocks = [Block(function.blocks, (Value(self.type(n)) for n in types)) for types, _ in rows]
        _given_to(function.type.parts[0], function.entry.arguments)
        for i, (block, (_, operations)) in enumerate(zip(self.blocks, rows)):
            self.at = i
            end = self.operations(block, operations, 0)
            if end.name == "ret":
                _given_to(function.type.parts[1], end.args[0])
            elif end.name == "branch":
                _given_to([each.type for each in end.args[0].arguments], end.args[1])
            else:
                _need(end.name == "cond_branch", "a block without an end")
                _given_to([BOOL], end.args[:1])
                _need(not end.args[1].arguments and not end.args[2].arguments, "a condition hands on no values")

    def target(self, number) -> Block:
        """The front end branches forwards only: loops are operations of their own."""
        return self.blocks[_number(number, self.at + 1)]

    def size(self, name: str, depth: int = 0) -> int:
        """How many operations a function is, with those of what it calls."""
        _need(depth <= MAX_DEPTH, "a function that calls itself, or too many in one another")
        if name not in self.sizes:
            operations = list(operations_in([self.program.functions[name].blocks]))
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
        _need(all(each.name not in TERMINATORS for each in block.operations[:-1]), "an operation after the end")
        return block.operations[-1] if block.operations else Operation("yield_op", [[]], [])

    def operation(self, depth: int, name: str, args, where=0, regions=(), attributes=None) -> Operation:
        _need(name in OPERATIONS, "no operation")
        letters = next((each for each in OPERATIONS[name][0] if len(each) == len(args)), None)
        _need(letters is not None, f"{name} of {len(args)} arguments")
        args = [self.argument(letter, each) for letter, each in zip(letters, args)]
        if where != 0:
            where = Location(self.files[_number(where[0], 0)], _number(where[1], 0))
        made = Operation(name, args, [Value(_valid(each)) for each in results(name, args)], where or NOWHERE)
        for key, (method, *numbers) in (attributes or {}).items():
            _need(re.fullmatch(r"(tt|llvm)\.\w+", key) and method in _ATTRIBUTES, "attributes")
            made.attributes[key] = [method, *map(_number, numbers)]
        expected_inside = inside(made)
        _need(len(regions) == len(expected_inside), "regions")
        for rows, expected in zip(regions, expected_inside):
            made.regions.append(self.region(rows, depth + 1, *expected))
        self.values += made.results
        return made

    def region(self, rows, depth: int, inputs: list[Type], end: str, outputs: list[Type]) -> list[Block]:
        region, before = [], len(self.values)
        block = Block(region, map(Value, inputs))
        last = self.operations(block, rows, depth)
        if last.name in TERMINATORS or outputs:
            _need(last.name == end, f"{last.name} at the end of a region")
            _given_to(outputs, values(last.args))
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
