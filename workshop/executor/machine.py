"""Runs a Program: all programs of a batch at once, in torch operations.

Where programs take different ways (loops, conditions, an early return), those that do not take part are masked, as
the lanes of a warp are. A method `do_NAME` is what the operation NAME does, where it is not a function of its operands:
of the operation, the programs that take part (None: all) and the operation's arguments.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Generator
from dataclasses import replace

import numpy as np
import torch

from . import arithmetic, libdevice
from . import program as ir
from .facts import about
from .loops import LIKE_ONE, MOST_TOGETHER, Rounds, ahead, compare, continued, left
from .memory import MOST_LANES, Access, Memory
from .program import Block, Enum, Function, Location, Operation, Program, Unsupported, Value, values
from .records import DeviceAssert, FalsePromise, Fault, IllegalInstruction, NeverEnds
from .values import (
    MOVES,
    SYMBOLIC,
    UNKNOWN,
    Affine,
    Doubtful,
    Number,
    Rect,
    TooLarge,
    Unlike,
    View,
    column,
    doubt,
    follows,
    merged,
    number,
    of,
    plain,
    tensor,
    uniform,
    whole,
    without_doubt,
)  # fmt: skip

GRANULE = 16  # bytes; a Hopper GPU reads and stores the blocks of tensor descriptors in such units
UNALIGNED = f"a tensor descriptor is read at an inner offset that is no multiple of {GRANULE} bytes"
MAX_PRINTED = 64
PROMISES = {"tt.divisibility": "tl.multiple_of", "tt.contiguity": "tl.max_contiguous"}

Steps = Generator[None, None, object]


class Env(dict):
    """The values of the programs that run, as they are kept; see `values`.

    constants: those of facts. outside: of rounds at once: the Env around the loop, and the programs of the rounds.
    """

    def __init__(self, constants: dict[Value, object], outside: tuple[Env, torch.Tensor] | None = None):
        self.constants, self.outside = constants, outside

    def __missing__(self, value: Value):
        if value.constant and value not in self.constants:
            made = arithmetic.constant(value.constant[0], value.constant[1:], value.type)
            self.constants[value] = uniform(value.type, made)
        if value in self.constants:
            self[value] = self.constants[value]
        else:
            self[value] = of(self.outside[0][value], self.outside[1]) if self.outside else UNKNOWN
        return self[value]


class Step:
    """An operation of a block, with what is known before it runs.

    where: its line, if it is the learner's. control, method: of the Machine, which do it; pure operations have none.
    ends: whether it is the last of its block. given: the arguments of a pure one, and which of them are values.
    stays: whether it gives the same in each round of the loop whose body this is. rule: of values.SYMBOLIC. result:
    its only one. lanes: elements of its largest value.

    made: the values of the block so far that may differ from round to round. times: of facts.of_dots, or 0.
    """

    __slots__ = ("operation", "where", "control", "method", "ends", "given", "stays", "rule", "result", "does", "lanes")

    def __init__(self, operation: Operation, made: set[Value], times: int):
        name = operation.name
        self.operation, self.where = operation, operation.location if operation.location.file else None
        self.control = CONTROL.get(name)
        self.method = None if self.control else METHODS.get(name)
        self.ends = name in ir.TERMINATORS
        arguments = operation.args[3] if name == "extern_elementwise" else operation.args
        self.given = [(each, isinstance(each, Value)) for each in arguments]
        self.rule = SYMBOLIC.get(name)
        self.does = functools.partial(arithmetic.product_of_a_dot, times) if times else None
        self.result = operation.results[0] if len(operation.results) == 1 else None
        pure = not (self.control or self.method or self.ends) and self.result is not None
        self.stays = pure and made.isdisjoint(values(arguments))
        if not self.stays:
            made.update(operation.results)
        self.lanes = max((each.type.elements for each in values([arguments, operation.results])), default=1)

    def compute(self, given: list, too_many: bool = False):
        """The result, written out only where that has to be. It is UNKNOWN where that is too_many lanes.

        What follows from undefined lanes is undefined, too.
        """
        operation, name = self.operation, self.operation.name
        found = None if self.rule is None else self.rule(operation, *given)
        if found is not None:
            return found
        if too_many or any(each is UNKNOWN for each in given):
            return UNKNOWN if self.result is not None else [UNKNOWN] * len(operation.results)
        if self.does is None:
            self.does = _function(operation)
        found = self.does(*map(plain, given))
        if Doubtful not in map(type, given) or name in arithmetic.WHOLE.keys() - {"dot"}:
            return found
        if name not in MOVES:
            return without_doubt(found, follows(name, given, found))
        also = [doubt(each) if is_value else each for each, (_, is_value) in zip(given, self.given)]
        return without_doubt(found, MOVES[name](operation, *also))


class Machine:
    """Runs some programs of a launch. batch: their numbers in memory.programs."""

    def __init__(self, program: Program, memory: Memory, grid: tuple[int, int, int], batch: torch.Tensor):
        self.program, self.memory, self.grid, self.batch = program, memory, grid, batch
        self.facts = about(program)
        self.only_addresses = memory.only_addresses
        self.env = Env(self.facts.constants)
        self.where = None  # the learner's line that runs
        rest, self.ids = number(memory.programs[batch.long()]), ()
        for size in grid:
            self.ids += (rest % size if size > 1 else 0,)
            rest = rest // size

    # --- values -----------------------------------------------------------------------------------------

    def known(self, value: Value):
        """The value as it is kept. Raises TooLarge if nobody knows it."""
        if (found := self.env[value]) is UNKNOWN:
            raise TooLarge
        return found

    def get(self, value: Value) -> torch.Tensor:
        return plain(self.known(value))

    def number(self, value: Value) -> Number:
        found = self.known(value)
        return found.base if isinstance(found, Affine) else number(plain(found))

    def numbers(self, given: list[Value]) -> list[Number]:
        return [self.number(value) for value in given]

    def whole(self, value: Value) -> torch.Tensor:
        """The value with all of its block's axes written out."""
        return whole(value, self.known(value))

    # --- functions, blocks, branches --------------------------------------------------------------------

    def function(self, function: Function, arguments: list, on) -> Steps:
        """Runs a function: blocks, and the branches between them that an early return makes. Returns its values.

        Each step ends where a program waits for others, and the next one needs memory.batch.
        """
        blocks = function.blocks
        waiting: dict[Block, tuple] = {blocks[0]: (on, arguments)}
        results = None
        while waiting:
            block = next(each for each in blocks if each in waiting)
            on, arguments = waiting.pop(block)
            end, given = yield from self.block(block, arguments, on)
            if end is None or end.name not in ir.BRANCHES:
                results = given if results is None else [merged(on, a, b) for a, b in zip(given, results)]
                continue
            if end.name == "branch":
                ways = [(end.args[0], on, given)]
            else:
                choice = self._condition(given[0], on)
                ways = [(end.args[1], _both(choice, on), []), (end.args[2], _both(~choice, on), [])]
            for target, mask, given in ways:
                if mask is not None and not mask.any():
                    continue
                if target in waiting:
                    before, old = waiting[target]
                    given = [merged(mask, a, b) for a, b in zip(given, old)]
                    mask = None if mask is None or before is None else mask | before
                waiting[target] = (None if mask is not None and bool(mask.all()) else mask, given)
        return results or []

    def block(self, block: Block, arguments: list, on, again: bool = False) -> Steps:
        """Runs the operations. Returns the last one and the values that it hands on.

        again: whether this is the body of a loop, and not its first round.
        """
        env, facts = self.env, self.facts
        env.update(zip(block.arguments, arguments))
        if block not in facts.steps:
            made = set(block.arguments)
            facts.steps[block] = [Step(each, made, facts.of_dots.get(each, 0)) for each in block.operations]
        for step in facts.steps[block]:
            operation, result = step.operation, step.result
            if step.where is not None:
                self.where = step.where
            if step.ends:
                return operation, [env[value] for value in values(operation.args)]
            if self.only_addresses and operation not in facts.needed:
                continue
            if step.control is not None:
                found = yield from self._control(step, on)
                env.update(zip(operation.results, found))
                continue
            if step.method is not None:
                found = step.method(self, operation, on, *operation.args)
            elif again and step.stays:
                continue
            else:
                given = [env[each] if is_value else each for each, is_value in step.given]
                found = step.compute(given, self._too_many(step.lanes))
                if isinstance(found, torch.Tensor) and self.where:
                    given = [*map(plain, given)]
                    found = arithmetic.marked(found, given, self.where.line, operation.name)
            if result is not None:
                env[result] = found
            elif operation.results:
                env.update(zip(operation.results, found))
        return None, []

    def _control(self, step: Step, on) -> Steps:
        """A loop, condition, call or reduction. If only addresses are wanted, one without accesses may be unknown."""
        operation = step.operation
        try:
            return (yield from step.control(self, operation, on, *operation.args))
        except TooLarge:
            if not self.only_addresses or operation in self.facts.holders or operation.name in ir.ACCESSES:
                raise
            return [UNKNOWN] * len(operation.results)

    def _too_many(self, lanes: int) -> bool:
        """Whether so many lanes of each program are not written out where only addresses are wanted."""
        return self.only_addresses and self.memory.batch.numel() * lanes > MOST_LANES

    def _condition(self, value, on) -> torch.Tensor:
        """A condition of control flow as a bool tensor, (programs,) or (1,). Notes where it is undefined."""
        if isinstance(value, Doubtful):
            self._note_undefined(_both(value.undefined.reshape(-1), on))
        return plain(value).reshape(-1)

    def _note_undefined(self, lanes: torch.Tensor) -> None:
        if lanes.any():
            self.memory.undefined("condition", "", int(lanes.nonzero()[0][0]), self.where)

    def _fail(self, kind: type, words: str, bad: torch.Tensor, on=None):
        """Raise an error of `records` about the first running program for which `bad` is true, if there is one."""
        bad = _both(bad.reshape(len(bad), -1).any(dim=1), on)
        if bad.any():
            program = self.memory.program_at(int(bad.nonzero()[0]))
            raise kind(words, self.memory.launch.kernel, program, *self.memory.text(self.where))

    # --- control flow -----------------------------------------------------------------------------------

    def do_call(self, operation: Operation, on, function: Function, given) -> Steps:
        where = self.where
        found = yield from self.function(function, [self.env[v] for v in given], on)
        self.where = where
        return found

    def do_if_op(self, operation: Operation, on, types, condition, _) -> Steps:
        choice = self._condition(self.known(condition), on)
        yes, no = _both(choice, on), _both(~choice, on)
        then, other = (region[0] if region else Block() for region in operation.regions)
        if not no.any():
            return (yield from self.block(then, [], on))[1]
        if not yes.any():
            return (yield from self.block(other, [], on))[1]
        one = (yield from self.block(then, [], yes))[1]
        two = (yield from self.block(other, [], no))[1]
        return [merged(choice, a, b) for a, b in zip(one, two)]

    def _round(self, body: Block, given: list, carried: list, go: torch.Tensor | None, on, turn: int) -> Steps:
        """One round of a loop for the programs that `go` on; None: all of `on`. Returns what all carry from here.

        turn: the number of the round, from 1 on.
        """
        loop, all_go = self.where, go is None or on is None and bool(go.all())
        try:
            new = (yield from self.block(body, given, on if all_go else go, turn > 1))[1]
        except Fault as fault:
            if not fault.round:
                fault.round, fault.loop = turn, self.memory.text(loop)[0]
            raise
        return new if all_go else [merged(go, a, b) for a, b in zip(new, carried)]

    def do_for_op(self, operation: Operation, on, low, high, step, initial) -> Steps:
        dtype = low.type.dtype
        index, high, step = self.numbers([low, high, step])
        carried = [self.env[v] for v in initial]
        self._fail(NeverEnds, "The step of this loop is 0", tensor(step) == 0)
        body, where = operation.regions[0][0], self.where
        for turn in itertools.count(1):
            go = _before(index, high, step)
            if not isinstance(go, bool):
                go = _both(torch.from_numpy(go), on)
            if go is False or go is not True and not go.any():
                return carried
            go, given = None if go is True else go, [Affine(index, (), (), dtype), *carried]
            carried = yield from self._round(body, given, carried, go, on, turn)
            index = index + step
            self.where = where
            if self.only_addresses and turn == 1:
                found = yield from self._at_once(body, (index, high, step), given, carried, on)
                if found is not None:
                    return found

    def _at_once(self, body: Block, bounds: tuple, before: list, carried: list, on) -> Steps:
        """What a loop hands on after all rounds of these bounds, run together; None if they cannot: see `loops`."""
        memory, count = self.memory, self.memory.batch.numel()
        rounds = left(*map(tensor, bounds), on, count)
        most, first = int(rounds.max()), 0
        if most < 3 or count > MOST_TOGETHER:
            return None
        env, batch, ids, weight, seen = self.env, memory.batch, self.ids, memory.weight, memory.noted()
        pairs = [*zip(before, [Affine(bounds[0], (), (), before[0].dtype), *carried])]

        def guess(number, programs):
            return [continued(old, new, number, programs) for old, new in pairs]

        try:
            while first < most:
                last = min(first + max(1, MOST_TOGETHER // count), most)
                number, programs = ahead(rounds, first, last)
                given = guess(number, programs)
                self.env = Env(self.facts.constants, (env, programs))
                self.ids = tuple(i if isinstance(i, int) else i[programs.numpy()] for i in ids)
                memory.batch, memory.weight = batch[programs], max(1, programs.numel() // LIKE_ONE)
                new = (yield from self.block(body, given, None))[1]
                for one, other in zip(guess(number + 1, programs)[1:], new):
                    compare(one, other)
                first = last
            return guess(rounds, torch.arange(count))[1:]
        except (Unlike, TooLarge, Fault, IllegalInstruction):  # one round after the other finds it in the usual order
            memory.forget(seen)
            return None
        finally:
            self.env, memory.batch, memory.weight, self.ids = env, batch, weight, ids

    def do_while_op(self, operation: Operation, on, types, initial) -> Steps:
        carried = [self.env[v] for v in initial]
        before, body = (region[0] for region in operation.regions)
        rounds, where = Rounds(self.facts.deciding(operation), self.memory), self.where
        waits = operation in self.facts.waits
        for turn in itertools.count(1):
            go, *given = (yield from self.block(before, carried, on, turn > 1))[1]
            go = _both(self._condition(go, on), on)
            if not go.any():
                return given
            self.where = where
            if not waits and (endless := rounds.repeated(carried, go)) is not None:
                self._fail(NeverEnds, rounds.why(self.memory.text(where)[1]), endless)
            old, carried = carried, (yield from self._round(body, given, given, go, on, turn))
            if waits:
                self.memory.changes += rounds.moved(old, carried)  # such as a counter of tries
                yield

    # --- reductions, scans, maps: a function of numbers on blocks -----------------------------------------

    def _do_combine(self, operation: Operation, on, operands, *more) -> Steps:
        how = {"reduce": self._reduce, "scan": self._scan, "map_elementwise": self._map}[operation.name]
        if self._too_many(operands[0].type.elements):
            raise TooLarge
        given = [self.env[v] for v in operands]
        parts = yield from how(operation, on, [whole(v, each) for v, each in zip(operands, given)], *more)
        if not any(isinstance(each, Doubtful) for each in given):
            return parts
        doubts = functools.reduce(torch.bitwise_or, [whole(v, doubt(each)) for v, each in zip(operands, given)])
        return [without_doubt(part, _combined_doubts(operation.name, doubts, *more)) for part in parts]

    do_reduce = do_scan = do_map_elementwise = _do_combine

    def _reduce(self, operation: Operation, on, parts: list, axis: int) -> Steps:
        axis, body = axis + 1, operation.regions[0][0]
        known = arithmetic.reduced(self.facts.combines[operation], parts[0], axis) if len(parts) == 1 else None
        if known is not None:
            return [known]
        while parts[0].shape[axis] > 1:  # neighbours: the order stays, as an associative function may ask
            pairs = [p.unflatten(axis, (-1, 2)).unbind(axis + 1) for p in parts]
            parts = yield from self._combined(body, [one for one, _ in pairs] + [two for _, two in pairs], on)
        return [p.squeeze(axis) for p in parts]

    def _combined(self, body: Block, pairs: list, on) -> Steps:
        """The function of a reduction, scan or map, which is written for numbers, on blocks."""
        shape = torch.Size(map(max, *(p.shape for p in pairs)))  # torch.broadcast_shapes would import sympy
        programs, each = shape[0], shape[1:].numel()
        flat = [p.expand(shape).reshape(-1) for p in pairs]
        batch, ids = self.memory.batch, self.ids
        self.memory.batch = batch[:programs].repeat_interleave(each)
        self.ids = tuple(i if isinstance(i, int) else i.repeat(each) for i in ids)
        own = None if on is None or programs == 1 else on.expand(programs).repeat_interleave(each)
        found = (yield from self.block(body, flat, own))[1]
        self.memory.batch, self.ids = batch, ids
        return [plain(f).expand(shape.numel()).reshape(shape) for f in found]

    def _scan(self, operation: Operation, on, parts: list, axis: int, reverse: bool) -> Steps:
        axis, body, step = axis + 1, operation.regions[0][0], 1
        parts = [p.flip(axis) for p in parts] if reverse else parts
        size = parts[0].shape[axis]
        while step < size:  # each element with the one 1, 2, 4, … before it
            early = [p.narrow(axis, 0, size - step) for p in parts]
            late = [p.narrow(axis, step, size - step) for p in parts]
            found = yield from self._combined(body, early + late, on)
            heads = [p.narrow(axis, 0, step) for p in parts]
            heads = [h.expand(len(f), *h.shape[1:]) for h, f in zip(heads, found)]
            parts = [torch.cat([h, f.to(h.dtype)], axis) for h, f in zip(heads, found)]
            step *= 2
        return [p.flip(axis) for p in parts] if reverse else parts

    def _map(self, operation: Operation, on, parts: list, types, pack: int) -> Steps:
        parts = [p.reshape(*p.shape[:-1], -1, pack)[..., i] for p in parts for i in range(pack)]
        found = yield from self._combined(operation.regions[0][0], parts, on)
        found = [torch.stack(found[i : i + pack], dim=-1) for i in range(0, len(found), pack)]
        return [f.reshape(*f.shape[:-2], -1) for f in found]

    # --- what a program is -------------------------------------------------------------------------------

    def do_get_program_id(self, operation: Operation, on, axis):
        return Affine(self.ids[axis], (), (), torch.int32)

    def do_get_num_programs(self, operation: Operation, on, axis):
        return Affine(self.grid[axis], (), (), torch.int32)

    def do_poison(self, operation: Operation, on, type):
        return torch.zeros((1,) * (1 + len(type.shape)), dtype=type.dtype)

    # --- memory -----------------------------------------------------------------------------------------

    def _access(self, kind: str, operation: Operation, on) -> Access:
        """An access of a pointer or a block of pointers."""
        pointer, mask = ir.part(operation, "p"), ir.part(operation, "m")
        address, shape, dtype = self.known(pointer), pointer.type.shape, pointer.type.scalar.element.dtype
        address = plain(address) if isinstance(address, Doubtful) else address
        if not shape and isinstance(address, torch.Tensor):
            address = Affine(number(address), (), (), torch.int64)
        if mask is not None:
            mask = self.known(mask)
            if isinstance(mask, Doubtful):
                self._note_undefined(mask.undefined)
            mask = mask if isinstance(mask, Rect) else plain(mask)
            if not shape:  # a number: its mask chooses programs
                on, mask = _both(mask.reshape(-1), on), None
        return Access(kind, address, shape, mask, on, dtype, self.where)

    def do_load(self, operation: Operation, on, *_):
        other, masked = ir.part(operation, "e"), ir.part(operation, "m") is not None
        decides = self.only_addresses and operation.results[0] in self.facts.deciding_values
        other = None if other is None else self.env[other]
        return self._loaded(self._access("load", operation, on), other, masked, decides)

    def _loaded(self, access: Access, other, switched_off: bool, decides: bool = False):
        """What lies at the addresses. Lanes that the mask switches off hold `other`; without it they are undefined.

        decides: whether addresses follow from it.
        """
        memory, shape, dtype = self.memory, access.shape, access.dtype
        regions = memory.regions(access)
        if self.only_addresses:
            found = memory.whole_numbers(access, other) if decides else None
            return UNKNOWN if found is None else found
        count = memory.batch.numel()
        active, total = sum(region.lanes for region in regions), count * access.size
        if len(regions) == 1 and active == total:
            found = memory.load(regions[0]).reshape(count, *shape)
            return found.clone() if regions[0].argument.name in memory.written else found
        if active == total:
            found = torch.empty((count, *shape), dtype=dtype)
        elif other is not None:
            found = plain(other).to(dtype).expand(count, *shape).clone()
        else:
            found = _garbage((count, *shape), dtype) if switched_off else torch.zeros((count, *shape), dtype=dtype)
        for region in regions:
            region.put(found, memory.load(region))
        if isinstance(other, Doubtful):
            return Doubtful(found, other.undefined)
        if other is None and switched_off:
            return without_doubt(found, ~plain(access.mask) if shape else ~access.on)
        return found

    do_masked_load = do_load

    def do_store(self, operation: Operation, on, pointer, value, *_):
        self._stored(self._access("store", operation, on), self.env[value], value)

    do_masked_store = do_store

    def _stored(self, access: Access, value, source: Value | None = None) -> None:
        memory, regions = self.memory, self.memory.regions(access)
        if self.only_addresses:
            return
        number = plain(value)
        for region in regions:
            if isinstance(value, Doubtful):
                lanes = region.of(value.undefined.expand((len(value.undefined), *access.shape)))
                if lanes.any():
                    who, line = region.program_of(lanes), self._undefined_by(source)
                    memory.undefined("store", region.argument.name, who, line)
            part = number if number.numel() == 1 else number.expand((len(number), *access.shape))
            memory.store(region, region.of(part))

    def _undefined_by(self, source: Value | None) -> Location:
        """The line of the load without `other` that left what is stored undefined; if none is known, the store's."""
        loads = self.facts.unfilled.get(source, ())
        doubtful = [each for each in loads if isinstance(self.env.get(each.results[0]), Doubtful)]
        return next((each.location for each in doubtful or loads if each.location.file), self.where)

    # --- atomics ----------------------------------------------------------------------------------------

    def do_atomic_rmw(self, operation: Operation, on, how, pointer, value, *_):
        return self._atomic(operation, on, how.name, value)

    def do_atomic_cas(self, operation: Operation, on, pointer, expected, value, *_):
        return self._atomic(operation, on, "CAS", expected, value)

    def do_atomic_load(self, operation: Operation, on, *_):
        return self._atomic(operation, on, "LOAD")

    def do_atomic_store(self, operation: Operation, on, pointer, value, *_):
        self._atomic(operation, on, "XCHG", value)

    def do_atomic_poll(self, operation: Operation, on, pointer, expected, *_) -> Steps:
        """Waits until each element has its expected value."""
        wanted, waiting = self.whole(expected), on
        while True:
            found = self._atomic(operation, waiting, "LOAD")
            same = (found == wanted).reshape(len(found), -1).all(dim=1)
            waiting = ~same if waiting is None else waiting & ~same
            if not waiting.any():
                return [torch.ones(found.shape, dtype=torch.bool)]
            yield

    def _atomic(self, operation: Operation, on, how: str, *given: Value, access: Access | None = None):
        """An atomic of each lane. how: of arithmetic.ATOMICS. access: None for pointers. Returns the old values."""
        if self.only_addresses:
            raise TooLarge
        access = access or self._access("atomic", operation, on)
        semantics = next((arg.name for arg in operation.args if getattr(arg, "kind", "") == "MEM_SEMANTIC"), "RELAXED")
        count = self.memory.batch.numel()
        values = [self.get(each).expand(count, *each.type.shape).reshape(-1) for each in given]
        old = torch.zeros(count * access.size, dtype=access.dtype)
        for region in self.memory.regions(access):
            region = region.one_by_one()
            at = region.places
            old[at] = self.memory.atomic(region, semantics, arithmetic.ATOMICS[how], [each[at] for each in values])
        return old.reshape(-1, *access.shape)

    # --- block pointers and tensor descriptors ------------------------------------------------------------

    def do_make_block_ptr(self, operation: Operation, on, base, sizes, strides, offsets, block, _):
        return View(self.number(base), *map(self.numbers, (sizes, strides, offsets)), tuple(block))

    def do_advance(self, operation: Operation, on, pointer, by):
        view = self.known(pointer)
        return replace(view, offsets=[a + b for a, b in zip(view.offsets, self.numbers(by), strict=True)])

    def do_make_tensor_descriptor(self, operation: Operation, on, base, sizes, strides, block, *rest):
        return View(self.number(base), *map(self.numbers, (sizes, strides)), [], tuple(block), _padding(*rest))

    def _view_access(self, kind: str, pointer: Value, on, checked=None, indices=None, rows=None, granule=1) -> Access:
        """An access of a view: `checked` are the axes along which lanes may lie outside; None: all.

        Of a tensor descriptor: of the block that begins at these indices, or of these rows.
        """
        view, rows = self.known(pointer), None if rows is None else self.whole(rows)
        if indices is not None:
            first = [] if rows is None else [0]
            view = replace(view, offsets=first + self.numbers(indices))
        dtype = pointer.type.element.dtype
        axes = range(len(view.block)) if checked is None else checked
        address, mask = view.lanes(dtype.itemsize, axes, rows, granule)
        shape = view.block if rows is None else (rows.shape[1], *view.block[1:])
        return Access(kind, address, shape, mask, on, dtype, self.where)

    def _view_loaded(self, operation: Operation, access: Access, fills: float | None):
        other = None
        if access.mask is not None and fills is not None:
            other = torch.full((1,) * (len(access.shape) + 1), fills).to(access.dtype)
        found, shape = self._loaded(access, other, access.mask is not None), operation.results[0].type.shape
        if found is UNKNOWN or access.shape == shape:
            return found
        return found.expand(len(found), *access.shape).reshape(-1, *shape)

    def do_tensor_pointer_load(self, operation: Operation, on, pointer, checked, padding, *_):
        fills = None if padding is None else _padding(padding)
        return self._view_loaded(operation, self._view_access("load", pointer, on, checked), fills)

    def do_tensor_pointer_store(self, operation: Operation, on, pointer, value, checked, *_):
        self._stored(self._view_access("store", pointer, on, checked), self.env[value])

    def do_descriptor_load(self, operation: Operation, on, descriptor, indices, *_):
        size = descriptor.type.element.dtype.itemsize
        apart = tensor(self.number(indices[-1]) * size % GRANULE) != 0
        self._fail(IllegalInstruction, UNALIGNED, apart, on)
        access = self._view_access("load", descriptor, on, indices=indices)
        return self._view_loaded(operation, access, self.known(descriptor).padding)

    def do_descriptor_gather(self, operation: Operation, on, descriptor, rows, column_offset, *_):
        access = self._view_access("load", descriptor, on, indices=[column_offset], rows=rows)
        return self._view_loaded(operation, access, self.known(descriptor).padding)

    def do_descriptor_store(self, operation: Operation, on, descriptor, value, indices, *_):
        access = self._view_access("store", descriptor, on, indices=indices)
        if self.only_addresses:
            self._stored(access, None)
            return
        granule = GRANULE // access.dtype.itemsize
        wide = self._view_access("store", descriptor, on, indices=indices, granule=granule)
        number = self.whole(value).reshape(-1, *access.shape)
        self._stored(wide, torch.where(plain(access.mask), number, torch.zeros((), dtype=number.dtype)))

    def do_descriptor_scatter(self, operation: Operation, on, descriptor, value, rows, column_offset, *_):
        self._stored(self._view_access("store", descriptor, on, indices=[column_offset], rows=rows), self.env[value])

    def do_descriptor_reduce(self, operation: Operation, on, how, descriptor, value, indices, *_):
        access = self._view_access("atomic", descriptor, on, indices=indices)
        name = "FADD" if how.name == "ADD" and access.dtype.is_floating_point else how.name
        self._atomic(operation, on, name, value, access=access)

    # --- what a kernel says -------------------------------------------------------------------------------

    def do_barrier(self, operation: Operation, on):
        self.memory.synchronise(on)

    def do_assume(self, operation: Operation, on, condition):
        self._fail(FalsePromise, "tl.assume", ~self.get(condition), on)

    def do_assert(self, operation: Operation, on, condition, message):
        self._fail(DeviceAssert, message, ~self.get(condition), on)

    def do_promise(self, operation: Operation, on, value, promise, numbers):
        is_pointer = value.type.scalar.kind == "pointer"
        size = value.type.scalar.element.dtype.itemsize if is_pointer else 1
        bad = broken_promise(self.whole(value), promise, numbers, size)
        self._fail(FalsePromise, PROMISES.get(promise, "tl.max_constancy"), bad, on)

    def do_print(self, operation: Operation, on, prefix, is_hex, given, *_):
        memory = self.memory
        if not memory.watch.tell:
            return
        everybody = torch.ones(memory.batch.shape, dtype=torch.bool)
        wholes = [self.whole(value) for value in given]
        for program in _both(everybody, on).nonzero().reshape(-1).tolist()[: MAX_PRINTED - memory.printed]:
            text = ", ".join(_printed(whole[program if len(whole) > 1 else 0]) for whole in wholes)
            memory.printed += 1
            end = "\n… (what the kernel prints from here on is not shown)" * (memory.printed == MAX_PRINTED)
            memory.watch.tell(f"pid {memory.program_at(program)} {prefix}{text}{end}")


def _function(operation: Operation) -> Callable:
    """What a pure operation computes, of tensors and of what is no value."""
    name = operation.name
    if name in MOVES:
        return functools.partial(MOVES[name], operation)
    if name in arithmetic.WHOLE:
        compute, type = arithmetic.WHOLE[name], operation.results[0].type
        return lambda *given: compute(
            *(whole(arg, x) if isinstance(arg, Value) else x for arg, x in zip(operation.args, given)), type
        )
    if name == "addptr":
        size = operation.args[0].type.scalar.element.dtype.itemsize
        return lambda pointer, offset: pointer + offset.long() * size
    if name == "extern_elementwise":
        return lambda *given: libdevice.call(operation.args[2], list(given), operation.args[4])
    if name not in arithmetic.ELEMENTWISE:
        raise Unsupported(name)
    return arithmetic.ELEMENTWISE[name]


def _combined_doubts(name: str, doubts: torch.Tensor, *more) -> torch.Tensor:
    """Which lanes of a reduction, a scan or a map are undefined, because lanes that they follow from are."""
    if name == "reduce":
        return doubts.any(dim=more[0] + 1)
    if name == "scan":
        axis, reverse = more[0] + 1, more[1]
        doubts = doubts.flip(axis) if reverse else doubts
        found = doubts.cumsum(axis) > 0
        return found.flip(axis) if reverse else found
    pack = more[-1]
    return doubts.unflatten(-1, (-1, pack)).any(-1).repeat_interleave(pack, -1)


def _printed(x: torch.Tensor) -> str:
    """A number, or the numbers of a block; of many, those at the ends."""
    if x.ndim == 1 and x.numel() > MAX_PRINTED:
        return f"{str(x[:8].tolist())[:-1]}, …, {str(x[-4:].tolist())[1:]}"
    return str(x.tolist())


def broken_promise(x: torch.Tensor, promise: str, numbers: list[int], size: int) -> torch.Tensor:
    """Where a promise about a block, (programs, …), is not true. size: bytes of an element for pointers, else 1.

    Divisibility is promised of the first element of each run of neighbours, as Triton's axis analysis means it.
    """
    if x.ndim == 1:
        return x % numbers[0] != 0 if promise == "tt.divisibility" else torch.tensor([False])
    bad = torch.zeros(x.shape, dtype=torch.bool)
    for axis, promised in enumerate(numbers, start=1):
        if promised <= 1:
            continue
        length = x.shape[axis]
        if promise == "tt.divisibility":
            first = torch.ones(x.shape, dtype=torch.bool)
            if axis == x.ndim - 1 or len(numbers) == 1:
                first.narrow(axis, 1, length - 1).copy_(x.diff(dim=axis) != size)
            bad |= first & (x % promised != 0)
        else:
            together = min(promised, length)
            wrong = x.unfold(axis, together, together).diff(dim=-1) != (size if promise == "tt.contiguity" else 0)
            bad |= column(wrong.reshape(len(x), -1).any(dim=1), x.ndim - 1)
    return bad


def _before(index: Number, high: Number, step: Number) -> bool | np.ndarray:
    """For which programs a loop has another round."""
    if isinstance(step, int):
        return index < high if step > 0 else index > high
    return np.where(step > 0, index < high, index > high)


def _both(choice: torch.Tensor, on) -> torch.Tensor:
    return choice if on is None else choice & on


def _padding(*args) -> float:
    """What lanes outside of a view hold, by the arguments of an operation."""
    return math.nan if Enum("PADDING_OPTION", "PAD_NAN") in args else 0.0


def _garbage(shape, dtype: torch.dtype) -> torch.Tensor:
    """What lanes that a load's mask switches off hold here: NaN, and infinity (tl.max passes over NaN)."""
    if dtype == torch.bool:
        return torch.ones(shape, dtype=dtype)
    if not dtype.is_floating_point:
        return torch.full(shape, torch.iinfo(dtype).max // 3, dtype=dtype)
    found = torch.full(shape, float("nan")).to(dtype)
    if dtype.itemsize > 1 and len(shape) > 1:
        found[..., ::2] = float("inf")
    return found


METHODS: dict[str, Callable] = {
    name: getattr(Machine, f"do_{name}") for name in ir.OPERATIONS if hasattr(Machine, f"do_{name}")
}
CONTROL = {name: method for name, method in METHODS.items() if inspect.isgeneratorfunction(method)}
