"""What a kernel computes or gets, and nothing uses: often the place where a learner forgot something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .facts import conditions, handed_on, reached, sources_of
from .operations import STORES
from .program import Operation, Program, Value, values

EFFECTS = STORES | {"assert", "print", "assume", "promise", "condition_op", "cond_branch"}


class Unused(NamedTuple):
    """kind: "parameter", which no line names; "line", whose value nothing uses; "loop", each step of which does the
    same; "step", a line in a loop that forgets the value of the step before; "mask", one of a load or store that is
    the same along an axis. name: of a parameter, or the axis; -1 is a mask that is one value.
    """

    kind: str
    line: int = 0
    name: str = ""


def unused(program: Program, labels: list[str]) -> list[Unused]:
    """labels: the names of the kernel's arguments that are no constants, in their order."""
    operations = list(program.operations())
    if not any(each.name in STORES for each in operations):
        return []  # nothing is used
    effects = [value for each in operations if each.name in EFFECTS for value in values(each.args)]
    effects += [value for each in operations for value in conditions(each)]
    live = reached(effects, sources_of(program))  # what an effect or the course of the kernel depends on
    named = {value for each in operations for value in values(each.args)}
    parameters = zip(labels, program.kernel.entry.arguments)
    found = [Unused("parameter", 0, label) for label, value in parameters if value not in named]
    found += _loops(operations, live, named)
    found += _dead_lines(operations, live)
    found += _masks(operations)
    return list(dict.fromkeys(found))


def _loops(operations: list[Operation], live: set[Value], named: set[Value]) -> Iterator[Unused]:
    made = {result: each for each in operations for result in each.results}
    for loop in (each for each in operations if each.name == "for_op"):
        body = loop.regions[0].blocks[0]
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
    lines = {line: True for line in at.values() if line}
    for value, line in at.items():
        lines[line] = lines.get(line, True) and value not in live
    for each in operations:
        if not each.results or each.regions:
            lines[each.location.line] = False
        for value in values(each.args) if each.name not in ("yield_op", "ret") else ():
            if each.location.line != at.get(value):
                lines[at.get(value, 0)] = False
    yield from (Unused("line", line) for line in sorted(lines) if line and lines[line])


def _masks(operations: list[Operation]) -> Iterator[Unused]:
    """Masks that are the same for all lanes, or along an axis along which the pointer is not."""
    made = {result: each for each in operations for result in each.results}
    for each in operations:
        if each.name in ("masked_load", "masked_store") and each.location.line:
            pointer, mask = each.args[0], each.args[1 if each.name == "masked_load" else 2]
            same = sorted(_varies(pointer, made) - _varies(mask, made))
            if same and mask in made:
                axis = -1 if len(same) == len(pointer.type.shape) else same[0]
                yield Unused("mask", each.location.line, str(axis))


def _varies(value: Value, made: dict[Value, Operation]) -> set[int]:
    """The axes of a block along which a value may differ."""
    shape = value.type.shape
    each = made.get(value)
    if each is None:  # a constant, or the argument of a loop
        return set() if value.constant or not shape else {axis for axis, size in enumerate(shape) if size > 1}
    if each.name == "splat":
        return set()
    if each.name == "broadcast":
        return _varies(each.args[0], made)
    if each.name == "expand_dims":
        return {axis + (axis >= each.args[1]) for axis in _varies(each.args[0], made)}
    parts = [part for part in values(each.args) if part.type.shape == shape]
    if each.regions or each.name in ("make_range", "call") or len(parts) != len([*values(each.args)]):
        return {axis for axis, size in enumerate(shape) if size > 1}
    return set().union(*(_varies(part, made) for part in parts))
