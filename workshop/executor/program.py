"""A kernel as typed operations: what Triton's front end makes of it, before any compiler.

A Program is data. It holds functions, a function holds blocks, a block holds operations. An operation is one call
that the front end made of Triton's builder: `create_fadd(x, y)` is the operation "fadd" with the arguments (x, y).
So the same program can be run by `machine`, sent as JSON, and built again with Triton's own builder (`rebuild`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


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

    def with_element(self, element: Type) -> Type:
        """A block of the same shape of other elements, or `element` itself for a number."""
        return Type("block", element=element, shape=self.shape) if self.kind == "block" else element

    def with_shape(self, shape) -> Type:
        """A block of the same elements with another shape; a number for an empty shape."""
        return Type("block", element=self.scalar, shape=tuple(shape)) if shape else self.scalar

    # Triton's front end asks its own types so.
    def is_integer(self, bits: int) -> bool:
        return self.kind == "int" and self.bits == bits

    def is_fp16(self) -> bool:
        return self.name == "f16"

    def __str__(self) -> str:
        if self.kind == "block":
            return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"
        return f"ptr<{self.element}>" if self.kind == "pointer" else self.name or self.kind


@dataclass(frozen=True)
class Enum:
    """A member of one of the enumerations of Triton's IR, such as CACHE_MODIFIER.CA."""

    kind: str
    name: str


# Those of Triton 3.4 to 3.9.
ENUMERATIONS = {
    "ATOMIC_OP": ["ADD", "FADD", "AND", "OR", "XOR", "XCHG", "MAX", "MIN", "UMIN", "UMAX"],
    "CACHE_MODIFIER": ["NONE", "CA", "CG", "WB", "CS", "WT", "CV"],
    "DESCRIPTOR_REDUCE_KIND": ["ADD", "AND", "OR", "XOR", "MAX", "MIN", "INC", "DEC"],
    "EVICTION_POLICY": ["NORMAL", "EVICT_FIRST", "EVICT_LAST"],
    "INPUT_PRECISION": ["TF32", "TF32x3", "IEEE", "BF16x3", "BF16x6"],
    "MEM_SEMANTIC": ["ACQUIRE_RELEASE", "ACQUIRE", "RELEASE", "RELAXED"],
    "MEM_SYNC_SCOPE": ["GPU", "CTA", "SYSTEM"],
    "PADDING_OPTION": ["PAD_ZERO", "PAD_NAN"],
    "PROPAGATE_NAN": ["NONE", "ALL"],
    "ROUNDING_MODE": ["RTZ", "RTNE"],
    "ScaleDotElemTypeTY": ["E4M3", "E5M2", "E2M3", "E3M2", "E2M1", "BF16", "FP16"],
}


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
    """name: of the builder's method, without `create_`. args: of that call, as they are in `operations`.

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

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(str(a.type) if isinstance(a, Value) else repr(a) for a in self.args)})"


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
    visibility: str = "public"
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

    def blocks(self) -> Iterator[Block]:
        """All blocks of all functions, outer ones before inner ones."""
        for function in self.functions.values():
            yield from blocks_of(function.region)

    def operations(self) -> Iterator[Operation]:
        """All operations of all functions, those of outer blocks before those of inner ones."""
        for block in self.blocks():
            yield from block.operations


def blocks_of(region: Region) -> Iterator[Block]:
    """All blocks of a region, outer ones before inner ones."""
    for block in region.blocks:
        yield block
        for operation in block.operations:
            for inner in operation.regions:
                yield from blocks_of(inner)


def values(arg) -> Iterator[Value]:
    """The Values among the arguments of an operation, those in lists too, in their order."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, (list, tuple)):
        for each in arg:
            yield from values(each)
