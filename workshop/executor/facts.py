"""What is known of a Program before it runs: what it may write, where it may wait, which accesses may meet."""

from __future__ import annotations

import functools

from .operations import ACCESSES, ATOMICS, STORES
from .program import Block, Operation, Program, Region, Value, values


class Facts:
    """What holds for every launch of a Program.

    written: numbers of the kernel's arguments that a store may reach. waits: operations that read memory until another
    program changes it. combines: by reduction, the name of the one operation that it does, or "". marks: whether two
    accesses of one program may meet. narrowest: bytes of the smallest element that a pointer is cast to; 8 without one.
    largest: elements of the largest block. holders: loops, conditions, calls and functions with an access inside.
    steps, fixed, constants: what a Machine has prepared of the blocks, the values that are the same in every program
    and launch, and these as they are kept.
    """

    def __init__(self, program: Program):
        self.program = program
        operations = list(program.operations())
        self.waits = {o for o in operations if o.name == "while_op" and self._has(o, ATOMICS)}
        self.waits |= {o for o in operations if o.name == "atomic_poll"}
        self.combines = {o: self._only_operation(o.regions[0].blocks[0]) for o in operations if o.name == "reduce"}
        sources = {value: [each for each in given if _is_pointer(each)] for value, given in sources_of(program).items()}
        arguments = {value: number for number, value in enumerate(program.kernel.entry.arguments)}
        accesses = [o for o in operations if o.name in ACCESSES]
        reached = [(o, _origins(next(filter(_is_pointer, values(o.args))), sources)) for o in accesses]
        stored = set().union(*(origins for o, origins in reached if o.name in STORES))
        self.written = {arguments[value] for value in stored if value in arguments}
        loops = any(o.name in ("for_op", "while_op") and self._has(o, STORES) for o in operations)
        meet = sum(not stored.isdisjoint(origins) for _, origins in reached)
        self.marks = meet > 1 or loops or any(o.name.startswith("atomic") for o in operations)
        casts = [o.results[0].type.scalar for o in operations if o.name == "bitcast"]
        self.narrowest = min((max(t.element.bits // 8, 1) for t in casts if t.kind == "pointer"), default=8)
        self.steps: dict[Block, list] = {}
        self.fixed: set[Value] = set()
        self.constants: dict[Value, object] = {}
        self.largest = max((v.type.elements for o in operations for v in o.results), default=1)

    @functools.cached_property
    def holders(self) -> set[Operation]:
        return {o for o in self.program.operations() if self._has(o, ACCESSES)}

    @functools.cached_property
    def unfilled(self) -> dict[Value, list[Operation]]:
        """By value that a store writes, the masked loads without `other` that it follows from."""
        sources = sources_of(self.program)
        stores = [o for o in self.program.operations() if o.name in ("store", "masked_store")]
        loads = [o for o in self.program.operations() if o.name == "masked_load" and o.args[2] is None]
        reached = {o.args[1]: _reached(o.args[1], sources) for o in stores}
        return {value: [o for o in loads if o.results[0] in each] for value, each in reached.items()}

    def _has(self, operation: Operation, names: set[str]) -> bool:
        """Whether there is an operation of these names in the regions of one, or in the function that it calls."""
        blocks = [block for region in operation.bodies for block in region.blocks]
        return any(each.name in names or self._has(each, names) for block in blocks for each in block.operations)

    def _only_operation(self, body: Block) -> str:
        """The name of the operation on its two arguments that a combine function consists of; "" if it does more."""
        first = body.operations[0]
        if len(body.operations) != 2 or list(values(first.args)) != body.arguments:
            return ""
        if first.name != "call":
            return first.name
        blocks = first.args[0].region.blocks
        return self._only_operation(blocks[0]) if len(blocks) == 1 else ""


def _is_pointer(value: Value) -> bool:
    return value.type.scalar.kind in ("pointer", "descriptor")


def _origins(pointer: Value, sources: dict[Value, list[Value]]) -> set[Value]:
    """The pointers that nothing in the program makes, and that one may come from."""
    return {value for value in _reached(pointer, sources) if not sources.get(value)}


def _reached(value: Value, sources: dict[Value, list[Value]]) -> set[Value]:
    """All that a value may come from, and itself."""
    found, waiting = {value}, [value]
    while waiting:
        new = set(sources.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def handed_on(region: Region) -> list[Value]:
    """The values that a region hands on."""
    return [*values(region.blocks[-1].operations[-1].args)] if region.blocks and region.blocks[-1].operations else []


def sources_of(program: Program) -> dict[Value, list[Value]]:
    """Each value, and those that it is made of: of a loop's variable, its first value and that of each step."""
    found: dict[Value, list[Value]] = {}

    def comes(made: list[Value], *given: list[Value]) -> None:
        for number, value in enumerate(made):
            found.setdefault(value, []).extend(each[number] for each in given if number < len(each))

    for each in program.operations():
        if each.name == "for_op":
            initial, body = each.args[3], each.regions[0].blocks[0]
            found.setdefault(body.arguments[0], []).extend(each.args[:3])
            comes(body.arguments[1:], initial, handed_on(each.regions[0]))
            comes(each.results, initial, handed_on(each.regions[0]))
        elif each.name == "while_op":
            tested = handed_on(each.regions[0])[1:]
            comes(each.regions[0].blocks[0].arguments, each.args[1], handed_on(each.regions[1]))
            comes(each.regions[1].blocks[0].arguments, tested)
            comes(each.results, tested)
        elif each.name == "if_op":
            comes(each.results, *map(handed_on, each.regions))
        elif each.name == "call":
            function = each.args[0]
            comes(function.entry.arguments, each.args[1])
            comes(each.results, *([*values(b.operations[-1].args)] for b in function.region.blocks))
        elif each.name in ("branch", "cond_branch"):
            for block in (arg for arg in each.args if isinstance(arg, Block)):
                comes(block.arguments, [v for arg in each.args if isinstance(arg, list) for v in arg])
        else:
            for result in each.results:
                found.setdefault(result, []).extend(values(each.args))
    return found


def about(program: Program) -> Facts:
    """The Facts of a program, found once."""
    program.facts = program.facts or Facts(program)
    return program.facts
