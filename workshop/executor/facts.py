"""What is known of a Program before it runs: what it may write, where it may wait, which accesses may meet.

And what it computes or gets, and nothing uses: often the place where a learner forgot something.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import triton

from . import program as ir
from .program import ACCESSES, ATOMICS, STORES, Block, Operation, Program, Value, operations_in, part, values

# Triton 3.4 to 3.7 make a tl.dot of tl.sum(x[:, :, None] * y[None, :, :], axis=1), if both lengths of the result are at
# least LEAST_OF_A_DOT, and round float32 to TF32 there (lib/Dialect/Triton/Transforms/Combine.cpp). Later ones do not.
# An instruction adds MULTIPLIED products. Of fewer, an H200 adds each several times.
SUMS_ARE_ROUNDED = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 8)
LEAST_OF_A_DOT, MULTIPLIED = 16, 8


class Facts:
    """What holds for every launch of a Program.

    written: numbers of the kernel's arguments that a store may reach. waits: operations that read memory until another
    program changes it. combines: by reduction, the name of the one operation that it does, or "". narrowest: bytes
    of the smallest element that a pointer is cast to; 8 without one. largest: elements of the largest block. holders:
    loops, conditions and calls with an access inside. needed: the program slice of all addresses and masks: the
    operations that decide which elements are touched. of_dots: products of float32 of which a compiler makes tl.dot,
    with TF32; how often each is added. steps, constants: what a Machine has prepared of the blocks, and the constants
    as they are kept.
    """

    def __init__(self, program: Program):
        self.operations = operations = list(program.operations())
        self.waits = {o for o in operations if o.name == "atomic_poll" or o.name == "while_op" and _has(o, ATOMICS)}
        self.combines = {o: _only_operation(o.regions[0][0]) for o in operations if o.name == "reduce"}
        self.sources = _sources_of(operations)
        kinds = "pointer", "descriptor"
        made_of = {value: [v for v in given if v.type.scalar.kind in kinds] for value, given in self.sources.items()}
        stored = reached([part(o, "p") for o in operations if o.name in STORES], made_of)
        self.written = {number for number, value in enumerate(program.kernel.entry.arguments) if value in stored}
        casts = [o.results[0].type.scalar for o in operations if o.name == "bitcast"]
        self.narrowest = min((max(t.element.bits // 8, 1) for t in casts if t.kind == "pointer"), default=8)
        self.steps: dict[Block, list] = {}
        self.constants: dict[Value, object] = {}
        self.largest = max((v.type.elements for o in operations for v in o.results), default=1)
        self.of_dots = self._products_of_dots(program) if SUMS_ARE_ROUNDED and "fadd" in self.combines.values() else {}

    @functools.cached_property
    def holders(self) -> set[Operation]:
        return {o for o in self.operations if _has(o, ACCESSES)}

    @functools.cached_property
    def deciders(self) -> dict[Value, list[Value]]:
        """`sources`, and the conditions that decide which of them it is."""
        found = {value: list(given) for value, given in self.sources.items()}
        for each in self.operations:
            for value in (*each.results, *(v for r in each.regions for b in r for v in b.arguments)):
                found.setdefault(value, []).extend(conditions(each))
        return found

    @functools.cached_property
    def _kept(self) -> set[Operation]:
        """Accesses, what holds them, and `while` loops, which may never end."""
        kept = {"while_op", *ACCESSES}
        return {o for o in self.operations if o.name in kept or _has(o, kept)}

    @functools.cached_property
    def deciding_values(self) -> set[Value]:
        """The values that decide which elements are touched."""
        wanted = [v for o in self.operations if o in self._kept or o.name == "cond_branch" for v in conditions(o)]
        for each in self.operations:
            if each.name in ACCESSES:  # all but what is stored, or stands in lanes that are switched off
                letters = ir.OPERATIONS[each.name][0][0]
                wanted += values([arg for letter, arg in zip(letters, each.args) if letter not in "we"])
        found = reached(wanted, self.deciders)
        loads = [o for o in self.operations if o.name == "masked_load" and o.results[0] in found]
        return found | reached(values([part(o, "e") for o in loads]), self.deciders)

    @functools.cached_property
    def needed(self) -> set[Operation]:
        """And scalars that a kernel asserts or assumes, if they follow from no tensor."""
        says = [o for o in self.operations if o.name in ("assert", "assume") and not o.args[0].type.shape]
        said = {o: reached(o.args[:1], self.deciders) for o in says}
        read = {result for o in self.operations if o.name in ACCESSES for result in o.results}
        said = {o: found for o, found in said.items() if found.isdisjoint(read)}
        found = self.deciding_values.union(*said.values())
        return self._kept | said.keys() | {o for o in self.operations if not found.isdisjoint(o.results)}

    def deciding(self, loop: Operation) -> tuple[list[int], bool]:
        """What a `while` loop goes on by: numbers of the values that it carries, and whether it reads memory."""
        found = reached(conditions(loop), self.deciders)
        carried = loop.regions[0][0].arguments
        reads = any(each.name in ACCESSES and not found.isdisjoint(each.results) for each in _inner(loop))
        return [number for number, value in enumerate(carried) if value in found], reads

    @functools.cached_property
    def unfilled(self) -> dict[Value, list[Operation]]:
        """By value that a store writes, the masked loads without `other` that it follows from."""
        stores = [o for o in self.operations if o.name in ("store", "masked_store")]
        loads = [o for o in self.operations if o.name == "masked_load" and part(o, "e") is None]
        made_of = {part(o, "w"): reached([part(o, "w")], self.sources) for o in stores}
        return {value: [o for o in loads if o.results[0] in each] for value, each in made_of.items()}

    def _products_of_dots(self, program: Program) -> dict[Operation, int]:
        """The factors have two axes, and one more: behind those of the first, before those of the second."""
        called = (value for each in program.functions.values() for value in each.entry.arguments)
        passed = {value: self.sources.get(value, []) for value in called}  # compilers inline functions
        sums = [o.args[0][0] for o, name in self.combines.items() if o.args[1] == 1 and name == "fadd"]
        summed = reached(sums, passed)
        made = {o.results[0]: o for o in self.operations if o.name in ("broadcast", "expand_dims")}

        def maker(value: Value) -> Operation | None:
            while len(given := passed.get(value, ())) == 1:
                (value,) = given
            return made.get(value)

        found = {}
        for each in self.operations:
            if each.name == "fmul" and each.results[0] in summed and each.results[0].type.scalar.name == "f32":
                added = [(o := maker(factor)) and maker(o.args[0]) for factor in each.args]
                axes = [o and o.args[1] for o in added]
                shape = each.results[0].type.shape
                if len(shape) == 3 and axes == [2, 0] and min(shape[0], shape[2]) >= LEAST_OF_A_DOT:
                    found[each] = max(MULTIPLIED // shape[1], 1)
        return found


def _only_operation(body: Block) -> str:
    """The name of the operation on its two arguments that a combine function consists of; "" if it does more."""
    first = body.operations[0]
    if len(body.operations) != 2 or values(first.args) != body.arguments:
        return ""
    if first.name != "call":
        return first.name
    blocks = first.args[0].blocks
    return _only_operation(blocks[0]) if len(blocks) == 1 else ""


def _has(operation: Operation, names: set[str]) -> bool:
    return any(each.name in names for each in _inner(operation))


def _inner(operation: Operation) -> Iterator[Operation]:
    """All operations in the regions of one, or in the function that it calls."""
    return operations_in(operation.bodies, calls=True)


def reached(wanted: Iterable[Value], sources: dict[Value, list[Value]]) -> set[Value]:
    """All that values may come from, and themselves."""
    found = set(wanted)
    waiting = list(found)
    while waiting:
        new = set(sources.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def handed_on(region: list[Block]) -> list[Value]:
    """The values that a region hands on."""
    return values(region[-1].operations[-1].args) if region and region[-1].operations else []


def conditions(operation: Operation) -> list[Value]:
    """The values that decide which of its blocks an operation runs, or how often."""
    if operation.name == "call":
        ends = [block.operations[-1] for block in operation.args[0].blocks]
        return [value for each in ends if each.name == "cond_branch" for value in conditions(each)]
    if operation.name == "while_op":
        return handed_on(operation.regions[0])[:1]
    places = {"for_op": slice(0, 3), "if_op": slice(1, 2), "cond_branch": slice(0, 1)}
    return operation.args[places.get(operation.name, slice(0))]


def _sources_of(operations: list[Operation]) -> dict[Value, list[Value]]:
    """Each value, and those that it is made of: of a loop's variable, its first value and that of each step."""
    found: dict[Value, list[Value]] = {}

    def comes(made: list[Value], *given: list[Value]) -> None:
        for number, value in enumerate(made):
            found.setdefault(value, []).extend(each[number] for each in given if number < len(each))

    for each in operations:
        if each.name == "for_op":
            initial, body = each.args[3], each.regions[0][0]
            found.setdefault(body.arguments[0], []).extend(each.args[:3])
            comes(body.arguments[1:], initial, handed_on(each.regions[0]))
            comes(each.results, initial, handed_on(each.regions[0]))
        elif each.name == "while_op":
            tested = handed_on(each.regions[0])[1:]
            comes(each.regions[0][0].arguments, each.args[1], handed_on(each.regions[1]))
            comes(each.regions[1][0].arguments, tested)
            comes(each.results, tested)
        elif each.name == "if_op":
            comes(each.results, *map(handed_on, each.regions))
        elif each.name == "call":
            function = each.args[0]
            comes(function.entry.arguments, each.args[1])
            comes(each.results, *(values(b.operations[-1].args) for b in function.blocks))
        elif each.name in ("branch", "cond_branch"):
            for block in (arg for arg in each.args if isinstance(arg, Block)):
                comes(block.arguments, [v for arg in each.args if isinstance(arg, list) for v in arg])
        else:
            given = [*values(each.args), *(value for region in each.regions for value in handed_on(region))]
            for result in each.results:
                found.setdefault(result, []).extend(given)
    return found


def about(program: Program) -> Facts:
    """The Facts of a program, found once."""
    program.facts = program.facts or Facts(program)
    return program.facts


# --- what is not used, or has few bits -----------------------------------------------------------------------

EFFECTS = STORES | {"assert", "print", "assume", "promise", "condition_op"}


@dataclass(frozen=True)
class Unused:
    """kind: "parameter", which no line names; "line", whose value nothing uses; "loop", each step of which does the
    same; "step", a line in a loop that forgets the value of the step before; "mask", one of a load or store that is
    the same along an axis; "product", of a parameter and a number of the program in an address, in 32 bits; "half",
    which computes with 16 bits, or with what was rounded to them (line 0: in a function of Triton's); "dot", whose
    products a compiler rounds to TF32. name: of a parameter, or the axis; -1 is a mask that is one value; or how often
    a product is added.
    """

    kind: str
    line: int = 0
    name: str = ""


def unused(program: Program, labels: list[str]) -> list[Unused]:
    """labels: the names of the kernel's arguments that are no constants, in their order."""
    facts = about(program)
    operations, sources = facts.operations, facts.sources
    if not any(each.name in STORES for each in operations):
        return []  # nothing is used
    effects = [value for each in operations if each.name in EFFECTS for value in values(each.args)]
    effects += [value for each in operations for value in conditions(each)]
    live = reached(effects, sources)  # what an effect or the course of the kernel depends on
    named = {value for each in operations for value in values(each.args)}
    made = {result: each for each in operations for result in each.results}
    parameters = zip(labels, program.kernel.entry.arguments)
    found = [Unused("parameter", 0, label) for label, value in parameters if value not in named]
    found += _loops(operations, live, named, made)
    found += _dead_lines(operations, live)
    found += _masks(operations, made)
    found += _products(operations, sources, made, dict(zip(program.kernel.entry.arguments, labels)))
    found += _in_half(operations)
    found += [Unused("dot", each.location.line, str(times)) for each, times in facts.of_dots.items()]
    return list(dict.fromkeys(found))


def _loops(operations: list[Operation], live: set[Value], named: set[Value], made: dict) -> Iterator[Unused]:
    for loop in (each for each in operations if each.name == "for_op"):
        body = loop.regions[0][0]
        walks = any(v in live and v.type.scalar.kind in ("int", "pointer") for v in body.arguments[1:])
        if body.arguments[0] not in named and loop.location.line and not walks:
            yield Unused("loop", loop.location.line)
        handed = handed_on(loop.regions[0])
        for carried, result, value in zip(body.arguments[1:], loop.results, handed):
            line = made[value].location.line if value in made else 0
            if result in live and carried not in live and line > loop.location.line:
                yield Unused("step", line)


def _dead_lines(operations: list[Operation], live: set[Value]) -> Iterator[Unused]:
    """Lines that compute what nothing uses, on which no other such line builds."""
    at = {result: each.location.line for each in operations if not each.regions for result in each.results}
    wanted = {0} | {line for value, line in at.items() if value in live}
    for each in operations:
        if not each.results or each.regions:
            wanted.add(each.location.line)
        if each.name not in ("yield_op", "ret"):
            wanted |= {at.get(value, 0) for value in values(each.args)} - {each.location.line}
    yield from (Unused("line", line) for line in sorted(set(at.values()) - wanted))


def _masks(operations: list[Operation], made: dict[Value, Operation]) -> Iterator[Unused]:
    """Masks that are the same for all lanes, or along an axis along which the pointer is not."""
    for each in operations:
        if each.name in ("masked_load", "masked_store") and each.location.line:
            pointer, mask = part(each, "p"), part(each, "m")
            same = sorted(_varies(pointer, made) - _varies(mask, made))
            if same and mask in made:
                axis = -1 if len(same) == len(pointer.type.shape) else same[0]
                yield Unused("mask", each.location.line, str(axis))


def _varies(value: Value, made: dict[Value, Operation]) -> set[int]:
    """The axes of a block along which a value may differ."""
    shape, each = value.type.shape, made.get(value)
    everywhere = {axis for axis, size in enumerate(shape) if size > 1}
    if each is None:  # a constant, or the argument of a loop
        return set() if value.constant else everywhere
    if each.name == "splat":
        return set()
    if each.name == "broadcast":
        return _varies(each.args[0], made)
    if each.name == "expand_dims":
        return {axis + (axis >= each.args[1]) for axis in _varies(each.args[0], made)}
    parts = [part for part in values(each.args) if part.type.shape == shape]
    if each.regions or each.name in ("make_range", "call") or len(parts) != len(values(each.args)):
        return everywhere
    return set().union(*(_varies(part, made) for part in parts))


def _products(operations: list[Operation], sources: dict, made: dict, arguments: dict[Value, str]) -> Iterator[Unused]:
    """Lines in which a number that follows from the program's, times an argument, overflows in a large tensor."""
    numbers = {result for each in operations if each.name == "get_program_id" for result in each.results}
    terms = {value: sources[value] for value, each in made.items() if each.name in _OF_OFFSETS}
    offsets = reached([each.args[1] for each in operations if each.name == "addptr"], terms)
    for each in operations:  # in their order: two processes must say the same
        if each.name == "mul" and each.results[0] in offsets and each.results[0].type.scalar == ir.INT32:
            given = values(each.args)
            names = [arguments[first] for first in (_spread(value, made) for value in given) if first in arguments]
            if len(names) == 1 and not numbers.isdisjoint(reached(given, sources)):
                yield Unused("product", each.location.line, names[0])


_OF_OFFSETS = {"add", "sub", "mul", "splat", "broadcast", "expand_dims", "int_cast", "reshape"}


def _in_half(operations: list[Operation]) -> Iterator[Unused]:
    """Lines that compute with 16 bits. To round what is only stored then, or loaded, is no computation."""
    used = {value for each in operations if each.name not in ACCESSES for value in values(each.args)}
    for each in operations:
        short = any(result.type.scalar.name in ("f16", "bf16") for result in each.results)
        if short and (each.name in _ROUNDED or each.name == "fp_trunc" and used.intersection(each.results)):
            yield Unused("half", each.location.line)


_ROUNDED = {"fadd", "fsub", "fmul", "fdiv", "precise_divf", "approx_divf", "fma", "exp", "exp2", "log", "log2", "sqrt",
            "rsqrt", "dot"}  # fmt: skip


def _spread(value: Value, made: dict[Value, Operation]) -> Value:
    """The scalar that a block holds in all lanes; otherwise the value itself."""
    while (each := made.get(value)) and each.name in ("splat", "broadcast", "expand_dims"):
        value = values(each.args)[0]
    return value
