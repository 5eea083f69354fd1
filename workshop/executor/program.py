"""A kernel as typed operations: what Triton's front end makes of it, before any compiler.

A Program is data. It holds functions, a function holds blocks, a block holds operations. An operation is one call
that the front end made of Triton's builder: `create_fadd(x, y)` is the operation "fadd" with the arguments (x, y).
So the same program can be run by `machine`, sent as JSON, and built again with Triton's own builder (`rebuild`).

All of this package read the table of operations. What one computes is found by its name: in `arithmetic.ELEMENTWISE`
(numbers), `arithmetic.WHOLE` (blocks), `values.MOVES` (places of elements), or as a method of `machine.Machine`
(memory, control flow).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import torch


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
        self.regions: list[Region] = list(regions)
        self.attributes: dict[str, list] = {}

    @property
    def bodies(self) -> list[Region]:
        """Its regions, or that of the function that it calls."""
        return [self.args[0].region] if self.name == "call" else self.regions


class Region:
    __slots__ = ("blocks",)

    def __init__(self):
        self.blocks: list[Block] = []


class Block:
    __slots__ = ("arguments", "operations", "region")

    def __init__(self, region: Region | None = None, arguments: Iterable[Value] = ()):
        self.arguments: list[Value] = list(arguments)
        self.operations: list[Operation] = []
        self.region = region
        if region is not None:
            region.blocks.append(self)


@dataclass(eq=False)
class Function:
    """type: of kind "function". promises: by number of the argument, attributes such as tt.divisibility."""

    name: str
    type: Type
    noinline: bool = False
    region: Region = field(default_factory=Region)
    promises: dict[int, dict[str, int]] = field(default_factory=dict)

    @property
    def entry(self) -> Block:
        return self.region.blocks[0]


@dataclass
class Program:
    """functions: by name; the first one is the kernel. facts: what `facts.about` has found."""

    functions: dict[str, Function] = field(default_factory=dict)
    facts: object = field(default=None, compare=False, repr=False)

    @property
    def kernel(self) -> Function:
        return next(iter(self.functions.values()))

    def operations(self) -> Iterator[Operation]:
        """All operations of all functions."""
        for function in self.functions.values():
            yield from operations_in(function.region)


def operations_in(region: Region, calls: bool = False) -> Iterator[Operation]:
    """All operations of a region, those of a block before those inside of them. calls: with the functions called."""
    for block in region.blocks:
        yield from block.operations
        for operation in block.operations:
            for inner in operation.bodies if calls else operation.regions:
                yield from operations_in(inner, calls)


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
_ONLY_HARDWARE = {"inline_asm": "inline assembly"}


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
        raise Unsupported(_ONLY_HARDWARE.get(name, name))
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
