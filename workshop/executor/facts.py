"""What is known of a Program before it runs: what it may write, where it may wait, what makes its addresses."""

from __future__ import annotations

import functools

from .front_end import TERMINATORS
from .program import Block, Operation, Program, Value, values

ATOMICS = {"atomic_rmw", "atomic_cas", "atomic_load", "atomic_store", "atomic_poll"}
STORES = ATOMICS | {"store", "masked_store", "tensor_pointer_store", "descriptor_store",
           "descriptor_scatter", "descriptor_reduce"}  # fmt: skip
LOADS = {"load", "masked_load", "tensor_pointer_load", "descriptor_load", "descriptor_gather"}
ACCESSES = LOADS | STORES
CONTROL = {"call", "if_op", "for_op", "while_op"}  # what may hold an access


class Facts:
    """What holds for every launch of a Program.

    written: numbers of the kernel's arguments that a store may reach. waits: operations that read memory until another
    program changes it. combines: by reduction, the name of the one operation that it does, or "". marks: whether two
    accesses of one program may meet. narrowest: bytes of the smallest element that a pointer is cast to; 8 without one.
    """

    def __init__(self, program: Program):
        self.waits: set[Operation] = set()
        self.combines: dict[Operation, str] = {}
        groups = _Groups()
        stores, atomics, touched = [], False, []
        for operation in program.operations():
            name = operation.name
            if name == "reduce":
                self.combines[operation] = _only_operation(program, operation.regions[0].blocks[0])
            if name == "atomic_poll" or name == "while_op" and any(_inside(program, operation, ATOMICS)):
                self.waits.add(operation)
            if name in ACCESSES:
                touched.append(
                    next(v for v in values(operation.args) if v.type.scalar.kind in ("pointer", "descriptor"))
                )
            if name in STORES:
                stores.append(touched[-1])
            atomics |= name.startswith("atomic")
            groups.join(_pointers(program, operation))
        self.atomics = atomics
        self.written = {
            number for number, argument in enumerate(program.kernel.entry.arguments)
            if any(groups.same(argument, pointer) for pointer in stores)
        }  # fmt: skip
        meet = sum(any(groups.same(one, store) for store in stores) for one in touched)
        loops = any(
            o.name in ("for_op", "while_op") and any(_inside(program, o, STORES)) for o in program.operations()
        )
        self.marks = meet > 1 or loops or atomics
        self.program = program
        casts = [o.results[0].type.scalar for o in program.operations() if o.name == "bitcast"]
        self.narrowest = min((max(t.element.bits // 8, 1) for t in casts if t.kind == "pointer"), default=8)

    @functools.cached_property
    def holders(self) -> set[Operation]:
        """Loops, conditions and calls with an access inside."""
        return {o for o in self.program.operations() if o.name in CONTROL and any(_inside(self.program, o, ACCESSES))}

    @functools.cached_property
    def addresses(self) -> set[Value]:
        sources, found = _sources(self.program), set()
        waiting = []
        for operation in self.program.operations():
            if operation.name in ACCESSES or operation.name == "cond_branch" or operation in self.holders:
                waiting += _decides(operation)
        while waiting:
            value = waiting.pop()
            if value not in found:
                found.add(value)
                waiting += sources.get(value, ())
        return found


def _decides(operation: Operation) -> list[Value]:
    """The operands that decide where an access goes, or which way a program takes."""
    name, args = operation.name, operation.args
    if name in ACCESSES:
        given = [v for arg in args for v in values(arg)]
        number = {"store": 1, "masked_store": 1, "tensor_pointer_store": 1, "descriptor_store": 1}.get(name)
        return [v for i, v in enumerate(given) if i != number and not (name == "masked_load" and i == 2)]
    if name in ("if_op", "cond_branch"):
        return [args[0]]
    if name == "while_op":
        return [operation.regions[0].blocks[0].operations[-1].args[0]]
    return list(args[:3]) if name == "for_op" else []


def _handed(block: Block) -> list[Value]:
    """The values that a block hands on at its end."""
    if not block.operations or block.operations[-1].name not in TERMINATORS:
        return []
    last = block.operations[-1]
    return [v for arg in (last.args[1:] if last.name == "condition_op" else last.args) for v in values(arg)]


def _sources(program: Program) -> dict[Value, list[Value]]:
    """By value, those that it comes from, through loops, conditions, branches and calls."""
    found: dict[Value, list[Value]] = {}

    def joined(targets, *sources):
        for i, target in enumerate(targets):
            found.setdefault(target, []).extend(each[i] for each in sources if i < len(each))

    for operation in program.operations():
        name, args, regions, follow = operation.name, operation.args, operation.regions, []
        if name == "for_op":
            body = regions[0].blocks[0]
            joined(operation.results, args[3], _handed(body))
            joined(body.arguments[1:], args[3], _handed(body))
            follow = args[:3]
            joined(body.arguments[:1], args[:1])
        elif name == "while_op":
            before, after = (region.blocks[0] for region in regions)
            joined(operation.results, _handed(before))
            follow = _decides(operation)
            joined(after.arguments, _handed(before))
            joined(before.arguments, args[0], _handed(after))
        elif name == "if_op":
            joined(operation.results, *(_handed(region.blocks[0]) for region in regions if region.blocks))
            follow = args[:1]
        elif name == "call":
            blocks = program.functions[args[0]].region.blocks
            joined(blocks[0].arguments, args[1])
            joined(operation.results, *(_handed(b) for b in blocks if b.operations[-1].name == "ret"))
        elif name == "branch":
            joined(args[0].arguments, args[1])
        else:
            inner = [v for region in regions for block in region.blocks for o in block.operations for v in o.results]
            for result in operation.results:
                found.setdefault(result, []).extend([*(v for arg in args for v in values(arg)), *inner])
        for result in operation.results if follow else ():
            found.setdefault(result, []).extend(follow)
    return found


_known: dict[int, tuple[Program, Facts]] = {}


def about(program: Program) -> Facts:
    if id(program) not in _known:
        while len(_known) > 256:
            del _known[next(iter(_known))]
        _known[id(program)] = program, Facts(program)
    return _known[id(program)][1]


class _Groups:
    """Pointers that may be the same, by what made them."""

    def __init__(self):
        self.parent: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        while (up := self.parent.get(value, value)) is not value:
            value = up
        return value

    def join(self, pointers: list[Value]) -> None:
        for each in pointers[1:]:
            self.parent[self.root(each)] = self.root(pointers[0])

    def same(self, one: Value, other: Value) -> bool:
        return self.root(one) is self.root(other)


def _pointers(program: Program, operation: Operation) -> list[Value]:
    """All pointers and descriptors that an operation takes, gives or hands into its regions."""
    found = [*(v for arg in operation.args for v in values(arg)), *operation.results]
    blocks = [block for region in operation.regions for block in region.blocks]
    if operation.name == "call":
        blocks = program.functions[operation.args[0]].region.blocks
    for block in blocks:
        found += block.arguments
        if block.operations:
            found += [v for arg in block.operations[-1].args for v in values(arg)]
    return list(filter(_is_pointer, found))


def _is_pointer(value: Value) -> bool:
    return value.type.scalar.kind in ("pointer", "descriptor")


def _inside(program: Program, operation: Operation, names: set[str]):
    """For each operation inside the regions of one, or in the function that it calls: whether it has such a name."""
    regions = [program.functions[operation.args[0]].region] if operation.name == "call" else operation.regions
    for region in regions:
        for block in region.blocks:
            for each in block.operations:
                yield each.name in names
                yield from _inside(program, each, names)


def _only_operation(program: Program, body: Block) -> str:
    """The name of the operation on its two arguments that a combine function consists of; "" if it does more."""
    first = body.operations[0]
    if len(body.operations) != 2 or [v for arg in first.args for v in values(arg)] != body.arguments:
        return ""
    if first.name == "call":
        blocks = program.functions[first.args[0]].region.blocks
        return _only_operation(program, blocks[0]) if len(blocks) == 1 else ""
    return first.name
