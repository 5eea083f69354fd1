"""Runs a Program: all programs of a batch at once, in torch operations.

A value has a leading axis for the programs, or length 1 there if it is the same for all. Where programs take
different ways (loops, conditions, an early return), those that do not take part are masked, as the lanes of a warp are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import torch

from . import arithmetic
from .facts import ACCESSES, about
from .front_end import Unsupported
from .lazy import Affine, BlockPointer, Doubtful, Rect, column, plain
from .memory import Memory, TooLarge
from .program import Block, Operation, Program, Type, Value, values
from .records import DeviceAssert, FalsePromise, NeverEnds

PATIENCE = 4096  # rounds of a loop, between two looks whether it can ever end
GRANULE = 16  # bytes; a Hopper GPU stores the blocks of tensor descriptors in such units
MAX_PRINTED = 64
_TERMINATORS = {"ret", "yield_op", "condition_op", "reduce_ret", "scan_ret", "map_elementwise_ret"}

Steps = Generator[None, None, object]


def merged(on: torch.Tensor, new, old):
    """For each program the new value where `on`, else the old one."""
    if new is None or old is None:  # where only addresses are wanted
        return None
    if isinstance(new, Affine) and isinstance(old, Affine) and (new.steps, new.shape) == (old.steps, old.shape):
        return Affine(torch.where(on, new.base, old.base), new.steps, new.shape, new.dtype)
    if isinstance(new, BlockPointer):
        offsets = [torch.where(on, a, b) for a, b in zip(new.offsets, old.offsets)]
        return BlockPointer(new.base, new.shape, new.strides, offsets, new.block)
    if isinstance(new, Descriptor):
        return new
    if isinstance(new, Doubtful) or isinstance(old, Doubtful):
        one, two = merged(on, plain(new), plain(old)), merged(on, _doubt(new), _doubt(old))
        return Doubtful(one, two)
    new, old = plain(new), plain(old)
    axes = max(new.ndim, old.ndim) - 1
    return torch.where(column(on, axes), new, old)


def _doubt(value) -> torch.Tensor:
    if isinstance(value, Doubtful):
        return value.undefined
    return torch.zeros((1,) * plain(value).ndim, dtype=torch.bool)


class Descriptor:
    """A tensor descriptor: base (programs,), sizes and strides as tensors of one number for each program, the block."""

    __slots__ = ("base", "shape", "strides", "block", "nan")

    def __init__(self, base, shape, strides, block, nan=False):
        self.base, self.shape, self.strides, self.block, self.nan = base, shape, strides, block, nan


class Machine:
    """Runs batches of programs of one launch. `written`: the tensors that a store may reach."""

    def __init__(self, program: Program, memory: Memory, grid: tuple[int, int, int], written: set[str]):
        self.program, self.memory, self.grid = program, memory, grid
        self.facts = about(program)
        self.written = memory.written = written
        self.needed = self.facts.addresses if memory.only_addresses else None
        self.env: dict[Value, object] = {}
        self.ids: tuple[torch.Tensor, ...] = ()
        self.where = None  # the learner's line that runs

    def start(self, arguments: list, batch: torch.Tensor) -> Steps:
        """Run the programs with these numbers (in memory.programs). Each step ends where a program waits for others."""
        self.memory.batch = batch
        rest, ids = self.memory.programs[batch.long()], []
        for size in self.grid:
            ids.append((rest % size).to(torch.int32) if size > 1 else torch.zeros(1, dtype=torch.int32))
            rest = torch.div(rest, size, rounding_mode="floor")
        self.ids = tuple(ids)
        self.env = {}
        return self.function(self.program.kernel.name, arguments, None)

    # --- values -----------------------------------------------------------------------------------------

    def lazy(self, value: Value):
        """The value as it is kept: a tensor, or one of `lazy`'s."""
        if value.constant is not None and value not in self.env:
            self.env[value] = arithmetic.constant(value.constant[0], value.constant[1:], value.type)
        return self.env.get(value) if self.needed is not None else self.env[value]

    def get(self, value: Value) -> torch.Tensor:
        return plain(self.lazy(value))

    def number(self, value: Value) -> torch.Tensor:
        """A number for each program, (programs,) or (1,)."""
        return self.get(value).reshape(-1)

    def whole(self, value: Value) -> torch.Tensor:
        """The value with all of its block's axes written out."""
        x = self.get(value)
        return x.expand(x.shape[:1] + value.type.shape)

    # --- functions, blocks, branches --------------------------------------------------------------------

    def function(self, name: str, arguments: list, on) -> Steps:
        """Runs a function. Returns its values."""
        blocks = self.program.functions[name].region.blocks
        last = blocks[0].operations[-1] if blocks[0].operations else None
        if last is None:
            return []
        if last.name not in ("branch", "cond_branch"):
            return (yield from self.block(blocks[0], arguments, on))[1]
        return (yield from self._graph(blocks, arguments, on))

    def _graph(self, blocks: list[Block], arguments: list, on) -> Steps:
        """Blocks with branches between them, as an early return makes them."""
        waiting: dict[Block, tuple] = {blocks[0]: (on, arguments)}
        results = None
        while waiting:
            block = next(each for each in blocks if each in waiting)
            on, arguments = waiting.pop(block)
            end, given = yield from self.block(block, arguments, on)
            if end.name == "ret":
                results = given if results is None else [merged(on, a, b) for a, b in zip(given, results)]
                continue
            if end.name == "branch":
                ways = [(end.args[0], on, [self.lazy(v) for v in end.args[1]])]
            else:
                choice = self._condition(self.lazy(end.args[0]), on)
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

    def block(self, block: Block, arguments: list, on) -> Steps:
        """Runs the operations. Returns the last one and the values that it hands on."""
        env = self.env
        for name, value in zip(block.arguments, arguments):
            env[name] = value
        for operation in block.operations:
            name = operation.name
            if operation.location.file >= 0:
                self.where = operation.location
            if name in _TERMINATORS:
                handed = [v for arg in operation.args for v in values(arg)]
                return operation, [self.lazy(v) for v in handed]
            if name in ("branch", "cond_branch"):
                return operation, []
            if self.needed is not None and not self._matters(operation):
                continue
            if name in _CONTROL:
                given = yield from _CONTROL[name](self, operation, on)
                env.update(zip(operation.results, given))
                continue
            self._one(operation, name, on)
        return None, []

    def _matters(self, operation: Operation) -> bool:
        """Where only addresses are wanted: whether an operation is an access, holds one, or makes an address."""
        touches = operation.name in ACCESSES or operation in self.facts.holders
        return touches or not self.needed.isdisjoint(operation.results)

    def _one(self, operation: Operation, name: str, on) -> None:
        special = _SPECIAL.get(name)
        if special is not None:
            found = special(self, operation, on)
        else:
            function = arithmetic.ELEMENTWISE.get(name)
            if function is None:
                raise Unsupported(name)
            given = [self.lazy(arg) if isinstance(arg, Value) else arg for arg in operation.args]
            if any(isinstance(each, Doubtful) for each in given):
                found = self._doubtful(name, function, given)
            else:
                found = function(*[plain(each) for each in given])
        if len(operation.results) == 1:
            self.env[operation.results[0]] = found
        elif operation.results:
            self.env.update(zip(operation.results, found))

    def _doubtful(self, name: str, function: Callable, given: list):
        """An operation on lanes that nothing defined: its result is undefined there, too, unless it cannot matter."""
        found = function(*[plain(each) for each in given])
        doubts = [_doubt(each) for each in given if isinstance(each, (Doubtful, torch.Tensor, Affine, Rect))]
        if name == "select":
            choice, one, other = doubts
            undefined = choice | torch.where(plain(given[0]), one, other)
        elif name in ("and", "or") and found.dtype == torch.bool:
            decides = name == "or"  # `False & undefined` is False
            known = [(plain(each) == decides) & ~doubt for each, doubt in zip(given, doubts)]
            undefined = (doubts[0] | doubts[1]) & ~(known[0] | known[1])
        else:
            undefined = doubts[0]
            for each in doubts[1:]:
                undefined = undefined | each
        return Doubtful(found, undefined) if undefined.any() else found

    def _condition(self, value, on) -> torch.Tensor:
        """A condition of control flow as a bool tensor, (programs,) or (1,). Notes where it is undefined."""
        if isinstance(value, Doubtful):
            self._note_undefined(_both(value.undefined.reshape(-1), on))
        return plain(value).reshape(-1)

    def _note_undefined(self, lanes: torch.Tensor) -> None:
        if lanes.any():
            self.memory.undefined("condition", None, int(lanes.nonzero()[0][0]), self.where)

    def _fail(self, kind: type, words: str, bad: torch.Tensor):
        """Raise an error of `records` about the first program for which `bad` is true."""
        program = int(bad.reshape(bad.shape[0], -1).any(dim=1).nonzero()[0])
        raise kind(words, self.memory.launch.kernel, self.memory.program_at(program), *self.memory.text(self.where))

    # --- control flow -----------------------------------------------------------------------------------

    def _call(self, operation: Operation, on) -> Steps:
        where = self.where
        found = yield from self.function(operation.args[0], [self.lazy(v) for v in operation.args[1]], on)
        self.where = where
        return found

    def _if(self, operation: Operation, on) -> Steps:
        choice = self._condition(self.lazy(operation.args[0]), on)
        yes, no = _both(choice, on), _both(~choice, on)
        then, other = (region.blocks[0] if region.blocks else None for region in operation.regions)
        if not no.any():
            return (yield from self.block(then, [], on))[1]
        if not yes.any():
            return (yield from self.block(other, [], on))[1] if other else []
        one = (yield from self.block(then, [], yes))[1]
        two = (yield from self.block(other, [], no))[1] if other else []
        return [merged(choice, a, b) for a, b in zip(one, two)]

    def _for(self, operation: Operation, on) -> Steps:
        low, high, step, initial = operation.args
        index, high, step = self.number(low), self.number(high), self.number(step)
        carried = [self.lazy(v) for v in initial]
        if (step == 0).any():
            self._fail(NeverEnds, "the step of this loop is 0", step == 0)
        body, where = operation.regions[0].blocks[0], self.where
        while True:
            go = _both(torch.where(step > 0, index < high, index > high), on)
            if not go.any():
                return carried
            everybody = on is None and bool(go.all())
            new = (yield from self.block(body, [index, *carried], None if everybody else go))[1]
            carried = new if everybody else [merged(go, a, b) for a, b in zip(new, carried)]
            index = index + step
            self.where = where

    def _while(self, operation: Operation, on) -> Steps:
        carried = [self.lazy(v) for v in operation.args[0]]
        before, body = (region.blocks[0] for region in operation.regions)
        waits, where, rounds = operation in self.facts.waits, self.where, 0
        kept = None
        while True:
            end, handed = yield from self.block(before, carried, on)
            go, *given = handed
            go = _both(self._condition(go, on), on)
            if not go.any():
                return given
            if rounds:
                self.where = where
            everybody = on is None and bool(go.all())
            new = (yield from self.block(body, given, None if everybody else go))[1]
            if waits:
                yield
            carried = new if everybody else [merged(go, a, b) for a, b in zip(new, given)]
            rounds += 1
            if not waits and rounds % PATIENCE == 0:
                now = [*(plain(each).clone() for each in carried), *self.memory.contents()]
                if kept is not None and _all_equal(now, kept):
                    self.where = where
                    self._fail(NeverEnds, "this loop never ends: nothing changes from one round to the next", go)
                kept = now

    def _reduce(self, operation: Operation, on) -> Steps:
        operands, axis = operation.args
        axis += 1
        lazies = [self.lazy(v) for v in operands]
        undefined = None
        if any(isinstance(each, Doubtful) for each in lazies):
            undefined = torch.zeros((), dtype=torch.bool)
            for each, operand in zip(lazies, operands):
                doubt = _doubt(each)
                undefined = undefined | doubt.expand(doubt.shape[:1] + operand.type.shape).any(dim=axis)
        parts = [self.whole(v) for v in operands]
        body = operation.regions[0].blocks[0]
        known = arithmetic.reduction(self.facts.combines[operation]) if len(parts) == 1 else None
        if known is not None:
            found = [known(parts[0], axis)]
        else:
            found = [each.squeeze(axis) for each in (yield from self._halved(parts, axis, body, on))]
        return [Doubtful(each, undefined) for each in found] if undefined is not None and undefined.any() else found

    def _halved(self, parts: list, axis: int, body: Block, on) -> Steps:
        """Combine neighbours, again and again: the order stays, as an associative function may ask."""
        while parts[0].shape[axis] > 1:
            size = parts[0].shape[axis]
            even, odd = torch.arange(0, size, 2), torch.arange(1, size, 2)
            pairs = [p.index_select(axis, even) for p in parts] + [p.index_select(axis, odd) for p in parts]
            parts = yield from self._combined(body, pairs, on)
        return parts

    def _combined(self, body: Block, pairs: list, on) -> Steps:
        """The combine function of a reduction or scan, which is written for numbers, on blocks."""
        shape = torch.Size(map(max, *(p.shape for p in pairs)))  # torch.broadcast_shapes would import sympy
        programs = shape[0]
        flat = [p.expand(shape).reshape(-1) for p in pairs]
        batch, ids = self.memory.batch, self.ids
        each = shape[1:].numel()
        self.memory.batch = (
            torch.arange(batch.numel()).repeat_interleave(each) if programs > 1 else batch[:1].repeat(each)
        )
        self.ids = tuple(i.repeat_interleave(each) if i.numel() > 1 else i for i in ids)
        own = None if on is None else (on.expand(programs).repeat_interleave(each) if programs > 1 else None)
        found = (yield from self.block(body, flat, own))[1]
        self.memory.batch, self.ids = batch, ids
        return [plain(f).expand(shape.numel()).reshape(shape) for f in found]

    def _scan(self, operation: Operation, on) -> Steps:
        operands, axis, reverse = operation.args
        axis += 1
        parts = [self.whole(v) for v in operands]
        parts = [p.flip(axis) for p in parts] if reverse else parts
        body, step, size = operation.regions[0].blocks[0], 1, parts[0].shape[axis]
        while step < size:  # each element with the one 1, 2, 4, … before it
            early = [p.narrow(axis, 0, size - step) for p in parts]
            late = [p.narrow(axis, step, size - step) for p in parts]
            found = yield from self._combined(body, early + late, on)
            parts = [
                torch.cat(
                    [
                        p.narrow(axis, 0, step).expand(f.shape[0], *p.shape[1:axis], step, *p.shape[axis + 1 :]),
                        f.to(p.dtype),
                    ],
                    axis,
                )
                for p, f in zip(parts, found)
            ]
            step *= 2
        return [p.flip(axis) for p in parts] if reverse else parts

    def _map(self, operation: Operation, on) -> Steps:
        operands, pack = operation.args
        parts = [self.whole(v) for v in operands]
        if pack > 1:
            parts = [p.reshape(*p.shape[:-1], -1, pack)[..., i] for p in parts for i in range(pack)]
        found = yield from self._combined(operation.regions[0].blocks[0], parts, on)
        if pack > 1:
            found = [torch.stack(found[i : i + pack], dim=-1) for i in range(0, len(found), pack)]
            found = [f.reshape(*f.shape[:-2], -1) for f in found]
        return found

    # --- shapes and indices -----------------------------------------------------------------------------

    def _splat(self, operation: Operation, on):
        type, value = operation.args
        number, axes = self.lazy(value), len(type.shape)
        if isinstance(number, Doubtful):
            return Doubtful(column(number.value, axes), column(number.undefined, axes))
        if type.scalar.kind == "int" and type.scalar.bits in (32, 64) or type.scalar.kind == "pointer":
            number = plain(number)
            return Affine(number.reshape(-1).long(), (0,) * axes, tuple(type.shape), number.dtype)
        return column(plain(number), axes)

    def _make_range(self, operation: Operation, on):
        type, start, end = operation.args
        return Affine(torch.tensor([start]), (1,), (end - start,), torch.int32)

    def _add(self, operation: Operation, on):
        x, y = (self.lazy(v) for v in operation.args)
        for one, other in ((x, y), (y, x)):
            if isinstance(one, Affine) and isinstance(other, (Affine, torch.Tensor)):
                found = one.plus(other)
                if found is not None:
                    return found
        return self._plain(operation, x, y)

    def _sub(self, operation: Operation, on):
        x, y = (self.lazy(v) for v in operation.args)
        if isinstance(x, Affine) and isinstance(y, Affine):
            negative = y.times(-1)
            if isinstance(negative, Affine) and (found := x.plus(negative)) is not None:
                return found
        return self._plain(operation, x, y)

    def _mul(self, operation: Operation, on):
        x, y = (self.lazy(v) for v in operation.args)
        for one, other in ((x, y), (y, x)):
            if isinstance(one, Affine) and isinstance(other, Affine) and not any(other.steps):
                if other.base.numel() == 1:
                    found = one.times(int(other.base))
                elif not any(one.steps):
                    found = Affine(
                        one.base * other.base,
                        one.steps,
                        one.broadcast(operation.results[0].type.shape).shape,
                        one.dtype,
                    ).fits()
                else:
                    continue
                return found.broadcast(operation.results[0].type.shape) if isinstance(found, Affine) else found
        return self._plain(operation, x, y)

    def _plain(self, operation: Operation, *given):
        function = arithmetic.ELEMENTWISE[operation.name]
        if any(isinstance(each, Doubtful) for each in given):
            return self._doubtful(operation.name, function, list(given))
        return function(*[plain(each) for each in given])

    def _addptr(self, operation: Operation, on):
        pointer, offset = (self.lazy(v) for v in operation.args)
        element = operation.args[0].type.scalar.element
        size = arithmetic.torch_dtype(element).itemsize
        if isinstance(offset, Affine):
            offset = Affine(offset.base, offset.steps, offset.shape, torch.int64).times(size)
        else:
            offset = plain(offset).long() * size  # an undefined one lies outside, where a lane uses it
        for one, other in ((pointer, offset), (offset, pointer)):
            if isinstance(one, Affine) and (found := one.plus(other)) is not None:
                return found
        return plain(pointer) + plain(offset)

    def _compare(self, operation: Operation, on):
        x, y = (self.lazy(v) for v in operation.args)
        how = operation.name[4:]
        if how in ("SGT", "SGE"):
            x, y, how = y, x, {"SGT": "SLT", "SGE": "SLE"}[how]
        uniform = isinstance(y, Affine) and not any(y.steps)
        if isinstance(x, Affine) and uniform and how in ("SLT", "SLE"):
            shape = operation.results[0].type.shape
            rect = x.below(y.base + (how == "SLE"))
            if rect is not None and (rect := rect.broadcast(shape)) is not None:
                return rect
        return self._plain(operation, *(self.lazy(v) for v in operation.args))

    def _and(self, operation: Operation, on):
        x, y = (self.lazy(v) for v in operation.args)
        if isinstance(x, Rect) and isinstance(y, Rect):
            return x.both(y)
        return self._plain(operation, x, y)

    def _int_cast(self, operation: Operation, on):
        value, type, signed = operation.args
        x = self.lazy(value)
        if isinstance(x, Affine) and signed and type.scalar.bits == 64:
            return Affine(x.base, x.steps, x.shape, torch.int64)
        if isinstance(x, Doubtful):
            return self._doubtful(operation.name, arithmetic.ELEMENTWISE["int_cast"], [x, type, signed])
        return arithmetic.ELEMENTWISE["int_cast"](plain(x), type, signed)

    def _bitcast(self, operation: Operation, on):
        value, type = operation.args
        x = self.lazy(value)
        if type.scalar.kind == "pointer" or isinstance(x, Affine) and arithmetic.torch_dtype(type.scalar) == x.dtype:
            return x
        return (
            self._plain(operation, x, type)
            if not isinstance(x, Doubtful)
            else self._doubtful("bitcast", arithmetic.ELEMENTWISE["bitcast"], [x, type])
        )

    def _reshaping(self, operation: Operation, on):
        """expand_dims, broadcast, trans, reshape, unsplat: of lazy values too."""
        x, name = self.lazy(operation.args[0]), operation.name
        argument = operation.args[1] if len(operation.args) > 1 else None
        if isinstance(x, Doubtful):
            shape = operation.args[0].type.shape
            doubt = x.undefined.expand(x.undefined.shape[:1] + shape) if name == "reshape" else x.undefined
            return Doubtful(*(self._reshaped(name, each, argument, shape) for each in (x.value, doubt)))
        if name == "broadcast":
            if isinstance(x, Rect):
                return wide if (wide := x.broadcast(tuple(argument))) is not None else x.tensor()
            return x.broadcast(tuple(argument)) if isinstance(x, Affine) else x
        if isinstance(x, (Affine, Rect)):
            if name == "expand_dims":
                return x.expand_dims(argument)
            if name == "trans":
                return x.permute(argument)
        return self._reshaped(name, plain(x), argument, operation.args[0].type.shape)

    @staticmethod
    def _reshaped(name: str, x: torch.Tensor, argument, shape) -> torch.Tensor:
        if name == "expand_dims":
            return x.unsqueeze(argument + 1)
        if name == "trans":
            return x.permute(0, *(i + 1 for i in argument))
        if name == "unsplat":
            return x.reshape(-1)
        if name == "broadcast":
            return x
        return x.expand(x.shape[:1] + tuple(shape)).reshape((-1, *argument))

    def _join(self, operation: Operation, on):
        return torch.stack(torch.broadcast_tensors(*(self.whole(v) for v in operation.args)), dim=-1)

    def _split(self, operation: Operation, on):
        x = self.whole(operation.args[0])
        return x[..., 0], x[..., 1]

    def _cat(self, operation: Operation, on):
        one, two = (self.whole(v) for v in operation.args)
        count = max(one.shape[0], two.shape[0])
        return torch.cat([each.expand(count, *each.shape[1:]) for each in (one, two)], dim=1)

    def _gather(self, operation: Operation, on):
        source, index, axis = operation.args
        return arithmetic.gather(self.whole(source), self.whole(index), axis)

    def _histogram(self, operation: Operation, on):
        mask = self.whole(operation.args[2]) if len(operation.args) > 2 and operation.args[2] is not None else None
        return arithmetic.histogram(self.whole(operation.args[0]), operation.args[1], mask)

    def _poison(self, operation: Operation, on):
        type = operation.args[0]
        return torch.zeros((1,) * (1 + len(type.shape)), dtype=arithmetic.torch_dtype(type.scalar))

    def _program_id(self, operation: Operation, on):
        return self.ids[operation.args[0]]

    def _num_programs(self, operation: Operation, on):
        return torch.tensor([self.grid[operation.args[0]]], dtype=torch.int32)

    def _dot(self, operation: Operation, on):
        a, b, c, *rest = operation.args
        return arithmetic.dot(self.whole(a), self.whole(b), self.whole(c), *rest, operation.results[0].type)

    def _dot_scaled(self, operation: Operation, on):
        given = [self.whole(arg) if isinstance(arg, Value) else arg for arg in operation.args]
        return arithmetic.dot_scaled(*given, operation.results[0].type)

    def _extern(self, operation: Operation, on):
        _, _, symbol, args, type, *_ = operation.args
        given = [self.lazy(v) for v in args]
        call = lambda *parts: arithmetic.extern(symbol, list(parts), type)  # noqa: E731
        if any(isinstance(each, Doubtful) for each in given):
            return self._doubtful("extern", call, given)
        return call(*map(plain, given))

    # --- memory -----------------------------------------------------------------------------------------

    def _address(self, value: Value):
        """An address for `memory.regions`: Affine or int64 tensor, and the block's shape."""
        found = self.lazy(value)
        found = found.value if isinstance(found, Doubtful) else found
        if not value.type.shape and isinstance(found, torch.Tensor):
            found = Affine(found.reshape(-1), (), (), torch.int64)
        return found, tuple(value.type.shape)

    def _mask(self, value: Value | None, shape):
        if value is None:
            return None
        found = self.lazy(value)
        if isinstance(found, Doubtful):
            self._note_undefined(found.undefined)
        if not shape:
            return plain(found)
        return found if isinstance(found, Rect) else plain(found)

    def _load(self, operation: Operation, on):
        masked = operation.name == "masked_load"
        address, shape = self._address(operation.args[0])
        mask = self._mask(operation.args[1], shape) if masked else None
        other = operation.args[2] if masked else None
        type = operation.results[0].type
        filled = None if other is None else self.lazy(other)
        wanted = self.needed is not None and operation.results[0] in self.needed
        return self._loaded(address, shape, mask, filled, type, on, wanted)

    def _loaded(self, address, shape, mask, other, type: Type, on, wanted: bool = False):
        """What lies at the addresses. Lanes that the mask switches off hold `other`; without it they are undefined."""
        dtype = arithmetic.torch_dtype(type.scalar)
        if mask is not None and not shape:  # a number: its mask chooses programs
            on, mask = _both(mask.reshape(-1), on), None
            off = ~on
        else:
            off = None
        memory = self.memory
        regions = memory.regions("load", address, shape, mask, on, dtype, self.where)
        if memory.only_addresses:
            if wanted:
                raise TooLarge  # what an address is, stands in memory
            return None
        count = memory.batch.numel()
        if len(regions) == 1 and regions[0].lanes == count * torch.Size(shape).numel():
            found = memory.load(regions[0], dtype, shape, self.where)
            whole = found.reshape(count, *shape) if found.ndim != len(shape) + 1 else found
            return whole.clone() if regions[0].argument.name in self.written else whole
        switched_off = off is not None or mask is not None
        if sum(region.lanes for region in regions) == count * torch.Size(shape).numel():
            whole = torch.empty((count, *shape), dtype=dtype)
        elif other is not None:
            whole = plain(other).to(dtype).expand(count, *shape).clone()
        else:
            whole = _garbage((count, *shape), dtype) if switched_off else torch.zeros((count, *shape), dtype=dtype)
        for region in regions:
            _put(region, whole, memory.load(region, dtype, shape, self.where))
        if isinstance(other, Doubtful):
            return Doubtful(whole, other.undefined)
        if other is None and switched_off:
            missing = column(off, len(shape)) if off is not None else ~plain(mask)
            if missing.any():
                return Doubtful(whole, missing)
        return whole

    def _store(self, operation: Operation, on):
        address, shape = self._address(operation.args[0])
        mask = self._mask(operation.args[2], shape) if operation.name == "masked_store" else None
        if mask is not None and not shape:
            on, mask = _both(mask.reshape(-1), on), None
        self._stored(address, shape, mask, self.lazy(operation.args[1]), operation.args[1].type, on)

    def _stored(self, address, shape, mask, value, type: Type, on) -> None:
        dtype, memory = arithmetic.torch_dtype(type.scalar), self.memory
        number = plain(value)
        for region in memory.regions("store", address, shape, mask, on, dtype, self.where):
            if memory.only_addresses:
                continue
            if isinstance(value, Doubtful):
                doubt = region.of(value.undefined.expand((value.undefined.shape[0], *shape)))
                if doubt.any():
                    program = region.program_of(tuple(doubt.nonzero()[0].tolist()) if doubt.ndim else (0,))
                    memory.undefined("store", region.argument.name, program, self.where)
            part = number if number.numel() == 1 else number.expand((number.shape[0], *shape))
            memory.store(region, dtype, region.of(part), shape, self.where)

    def _atomic(self, operation: Operation, on):
        how, pointer, value, mask, *_ = operation.args
        return self._atomic_change(operation, pointer, value, mask, on, arithmetic.ATOMICS[how.name])

    def _cas(self, operation: Operation, on):
        pointer, expected, value, *_ = operation.args
        wanted = self._flat(expected)
        return self._atomic_change(
            operation, pointer, value, None, on, lambda old, new, at: torch.where(_same(old, wanted[at]), new, old)
        )

    def _atomic_load(self, operation: Operation, on):
        pointer, mask, *_ = operation.args
        return self._atomic_change(operation, pointer, None, mask, on, lambda old, new: old)

    def _atomic_store(self, operation: Operation, on):
        pointer, value, mask, *_ = operation.args
        self._atomic_change(operation, pointer, value, mask, on, arithmetic.ATOMICS["XCHG"])

    def _atomic_poll(self, operation: Operation, on) -> Steps:
        """Waits until each element has its expected value."""
        pointer, expected, *_ = operation.args
        wanted, waiting = self.whole(expected), on
        while True:
            found = self._atomic_change(operation, pointer, None, None, waiting, lambda old, new: old)
            same = (found == wanted).reshape(found.shape[0], -1).all(dim=1)
            waiting = ~same if waiting is None else waiting & ~same
            if not waiting.any():
                return [torch.ones(found.shape, dtype=torch.bool)]
            yield

    def _flat(self, value: Value) -> torch.Tensor:
        return self.get(value).expand(self.memory.batch.numel(), *value.type.shape).reshape(-1)

    def _atomic_change(self, operation, pointer: Value, value: Value | None, mask: Value | None, on, change):
        """An atomic of each lane. change(old, new) or change(old, new, lanes): what it writes. Gives the old values."""
        address, shape = self._address(pointer)
        mask = self._mask(mask, shape)
        if mask is not None and not shape:
            on, mask = _both(mask.reshape(-1), on), None
        dtype = arithmetic.torch_dtype(pointer.type.scalar.element)
        semantics = next((arg.name for arg in operation.args if getattr(arg, "kind", "") == "MEM_SEMANTIC"), "")
        new = None if value is None else self._flat(value)
        return self._atomically(address, shape, mask, new, dtype, on, semantics, change)

    def _atomically(self, address, shape, mask, new, dtype: torch.dtype, on, semantics: str, change):
        memory = self.memory
        if memory.only_addresses:
            raise TooLarge
        old = torch.zeros(memory.batch.numel() * torch.Size(shape).numel(), dtype=dtype)
        takes_lanes = change.__code__.co_argcount == 3 if hasattr(change, "__code__") else False
        for region in memory.regions("atomic", address, shape, mask, on, dtype, self.where):
            region = region.one_by_one(shape)
            at = region.programs * region.size + region.lane

            def changed(before, chosen, at=at):
                lanes = at[chosen]
                given = before if new is None else new[lanes]
                return change(before, given, lanes) if takes_lanes else change(before, given)

            old[at] = memory.atomic(region, dtype, shape, semantics, self.where, changed)
        return old.reshape(-1, *shape)

    # --- block pointers and descriptors -----------------------------------------------------------------

    def _make_block_pointer(self, operation: Operation, on):
        base, shape, strides, offsets, block, _ = operation.args
        parts = ([self.number(v) for v in part] for part in (shape, strides, offsets))
        return BlockPointer(self.number(base), *parts, tuple(block))

    def _advance(self, operation: Operation, on):
        pointer, by = operation.args
        return self.lazy(pointer).advanced([self.number(v) for v in by])

    def _block_pointer_access(self, pointer: Value, checked):
        found, block = self.lazy(pointer), pointer.type.element
        *places, address = found.places(arithmetic.torch_dtype(block.element).itemsize)
        mask = None
        for axis in checked:
            size = column(found.shape[axis], len(block.shape))
            inside = (places[axis] >= 0) & (places[axis] < size)
            mask = inside if mask is None else mask & inside
        return address, tuple(block.shape), mask, block

    def _block_load(self, operation: Operation, on):
        pointer, checked, padding, *_ = operation.args
        address, shape, mask, type = self._block_pointer_access(pointer, checked)
        other = None
        if mask is not None and padding is not None:
            nan = getattr(padding, "name", "") == "PAD_NAN"
            dtype = arithmetic.torch_dtype(type.scalar)
            other = torch.full((1,) * (len(shape) + 1), float("nan") if nan else 0).to(dtype)
        return self._loaded(address, shape, mask, other, type, on)

    def _block_store(self, operation: Operation, on):
        pointer, value, checked, *_ = operation.args
        address, shape, mask, type = self._block_pointer_access(pointer, checked)
        self._stored(address, shape, mask, self.lazy(value), type, on)

    def _make_descriptor(self, operation: Operation, on):
        base, shape, strides, block, *rest = operation.args
        nan = any(getattr(each, "name", "") == "PAD_NAN" for each in rest)
        sizes, steps = ([self.number(v) for v in part] for part in (shape, strides))
        return Descriptor(self.number(base), sizes, steps, tuple(block), nan)

    def _descriptor_access(self, value: Value, indices: list, rows: torch.Tensor | None = None, granule: bool = False):
        """Addresses and mask of a descriptor's block; with `rows`, of those rows (gather, scatter)."""
        found = self.lazy(value)
        size = arithmetic.torch_dtype(value.type.element).itemsize
        offsets, block = [self.number(v) for v in indices], found.block
        if rows is not None:
            offsets, block = [torch.zeros(1, dtype=torch.int64), *offsets], (rows.shape[1], block[-1])
        pointer = BlockPointer(found.base, found.shape, found.strides, offsets, block)
        *places, address = pointer.places(size)
        if rows is not None:
            moved = rows.long().unsqueeze(-1) - places[0]
            places[0] = places[0] + moved
            address = address + moved * column(found.strides[0].long(), 2) * size
        axes, mask = len(pointer.block), None
        for axis, place in enumerate(places):
            whole = column(found.shape[axis].long(), axes)
            if granule and axis == axes - 1:
                per = GRANULE // size
                whole = torch.div(whole + per - 1, per, rounding_mode="floor") * per
            inside = (place >= 0) & (place < whole)
            mask = inside if mask is None else mask & inside
        return address, pointer.block, mask

    def _descriptor_load(self, operation: Operation, on):
        descriptor, indices = operation.args[:2]
        return self._descriptor_loaded(operation, on, *self._descriptor_access(descriptor, indices))

    def _descriptor_gather(self, operation: Operation, on):
        descriptor, rows, column_offset = operation.args[:3]
        access = self._descriptor_access(descriptor, [column_offset], self.whole(rows))
        return self._descriptor_loaded(operation, on, *access)

    def _descriptor_loaded(self, operation: Operation, on, address, shape, mask):
        type = operation.results[0].type
        nan = self.lazy(operation.args[0]).nan
        other = torch.full((1,) * (len(shape) + 1), float("nan") if nan else 0).to(arithmetic.torch_dtype(type.scalar))
        found = self._loaded(address, shape, mask, other, Type("block", element=type.scalar, shape=shape), on)
        if found is None:
            return None
        return found.expand(found.shape[0], *shape).reshape(-1, *type.shape)

    def _descriptor_store(self, operation: Operation, on):
        descriptor, value, indices = operation.args[:3]
        address, shape, mask = self._descriptor_access(descriptor, indices)
        type = Type("block", element=value.type.scalar, shape=shape)
        if self.memory.only_addresses:
            self._stored(address, shape, mask, None, type, on)
            return
        number = self.whole(value).reshape(-1, *shape)
        wide = self._descriptor_access(descriptor, indices, granule=True)[2]
        self._stored(address, shape, wide, torch.where(mask, number, torch.zeros((), dtype=number.dtype)), type, on)

    def _descriptor_scatter(self, operation: Operation, on):
        descriptor, value, rows, column_offset = operation.args[:4]
        address, shape, mask = self._descriptor_access(descriptor, [column_offset], self.whole(rows))
        self._stored(address, shape, mask, self.lazy(value), value.type, on)

    def _descriptor_reduce(self, operation: Operation, on):
        how, descriptor, value, indices = operation.args[:4]
        address, shape, mask = self._descriptor_access(descriptor, indices)
        dtype, new = arithmetic.torch_dtype(value.type.scalar), self._flat(value)
        name = "FADD" if how.name == "ADD" and dtype.is_floating_point else how.name
        self._atomically(address, shape, mask, new, dtype, on, "RELAXED", arithmetic.ATOMICS[name])

    # --- promises, assertions, prints -------------------------------------------------------------------

    def _barrier(self, operation: Operation, on):
        self.memory.synchronise(on)

    def _assume(self, operation: Operation, on):
        bad = _both(~self.number(operation.args[0]), on)
        if bad.any():
            self._fail(FalsePromise, "tl.assume", bad)

    def _assert(self, operation: Operation, on):
        condition, message, *rest = operation.args
        bad = ~self.get(condition)
        if on is not None:
            bad = bad & column(on, bad.ndim - 1)
        if bad.any():
            self._fail(DeviceAssert, str(message), bad)

    def _promise(self, operation: Operation, on):
        value, promise, numbers = operation.args
        found = self.lazy(value)
        x = plain(found) if not value.type.shape else plain(found).expand(plain(found).shape[:1] + value.type.shape)
        is_pointer = value.type.scalar.kind == "pointer"
        size = arithmetic.torch_dtype(value.type.scalar.element).itemsize if is_pointer else 1
        bad = broken_promise(x, promise, numbers, size)
        if bad is not None:
            bad = bad if on is None else bad & column(on, bad.ndim - 1)
            if bad.any():
                name = {"tt.divisibility": "tl.multiple_of", "tt.contiguity": "tl.max_contiguous"}
                self._fail(FalsePromise, name.get(promise, "tl.max_constancy"), bad)

    def _print(self, operation: Operation, on):
        prefix, _, given, *_ = operation.args
        printed = self.memory.launch.printed
        everybody = torch.ones(self.memory.batch.shape, dtype=torch.bool)
        for program in (everybody if on is None else everybody & on).nonzero().reshape(-1).tolist():
            if len(printed) >= MAX_PRINTED:
                return
            parts = [self.whole(v)[program if self.get(v).shape[0] > 1 else 0] for v in given]
            text = ", ".join(_printed(part) for part in parts)
            printed.append(f"pid {self.memory.program_at(program)} {prefix}{text}")
            if len(printed) == MAX_PRINTED:
                printed[-1] += "\n… (what the kernel prints from here on is not shown)"
            if self.memory.watch.tell:
                self.memory.watch.tell(printed[-1])


def _printed(x: torch.Tensor) -> str:
    """A number, or the numbers of a block; of many, those at the ends."""
    if x.ndim == 1 and x.numel() > MAX_PRINTED:
        return f"{str(x[:8].tolist())[:-1]}, …, {str(x[-4:].tolist())[1:]}"
    return str(x.tolist())


def broken_promise(x: torch.Tensor, promise: str, numbers: list[int], size: int) -> torch.Tensor | None:
    """Where a promise about a block, (programs, …), is not true. size: bytes of an element for pointers, else 1.

    Divisibility is promised of the first element of each run of neighbours, as Triton's axis analysis means it.
    """
    if x.ndim == 1:
        return x % (numbers[0] * (1 if size == 1 else 1)) != 0 if promise == "tt.divisibility" else None
    bad = torch.zeros((), dtype=torch.bool)
    for axis, number in enumerate(numbers, start=1):
        if number <= 1:
            continue
        length = x.shape[axis]
        if promise == "tt.divisibility":
            first = torch.ones(x.shape, dtype=torch.bool)
            if axis == x.ndim - 1 or len(numbers) == 1:
                first.narrow(axis, 1, length - 1).copy_(x.diff(dim=axis) != size)
            bad = bad | first & (x % number != 0)
            continue
        if number > length:
            number = length
        groups = x.unfold(axis, number, number)
        wanted = size if promise == "tt.contiguity" else 0
        wrong = (groups.diff(dim=-1) != wanted).any(dim=-1)
        bad = bad | wrong.reshape(wrong.shape[0], -1).any(dim=1).reshape(-1, *[1] * (x.ndim - 1))
    return bad.expand(x.shape)


def _both(choice: torch.Tensor, on) -> torch.Tensor:
    return choice if on is None else choice & on


def _all_equal(one: list, two: list) -> bool:
    return all(a.shape == b.shape and _same(a, b).all() for a, b in zip(one, two))


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    same = a == b
    return same | (a != a) & (b != b) if a.is_floating_point() else same


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


def _put(region, whole: torch.Tensor, part: torch.Tensor) -> None:
    """Write what a region gave into a value of the whole batch."""
    if hasattr(region, "counts"):
        region.of(whole).copy_(part)
    else:
        whole.view(-1)[region.programs * region.size + region.lane] = part


_CONTROL = {"call": Machine._call, "if_op": Machine._if, "for_op": Machine._for, "while_op": Machine._while,
            "reduce": Machine._reduce, "scan": Machine._scan, "map_elementwise": Machine._map,
            "atomic_poll": Machine._atomic_poll}  # fmt: skip
_SPECIAL = {
    "splat": Machine._splat, "make_range": Machine._make_range, "add": Machine._add, "sub": Machine._sub,
    "mul": Machine._mul, "addptr": Machine._addptr, "and": Machine._and, "int_cast": Machine._int_cast,
    "bitcast": Machine._bitcast, "join": Machine._join, "split": Machine._split, "cat": Machine._cat,
    "gather": Machine._gather, "histogram": Machine._histogram, "poison": Machine._poison,
    "get_program_id": Machine._program_id, "get_num_programs": Machine._num_programs, "dot": Machine._dot,
    "dot_scaled": Machine._dot_scaled, "extern_elementwise": Machine._extern, "load": Machine._load,
    "masked_load": Machine._load, "store": Machine._store, "masked_store": Machine._store,
    "atomic_rmw": Machine._atomic, "atomic_cas": Machine._cas, "atomic_load": Machine._atomic_load,
    "atomic_store": Machine._atomic_store, "make_block_ptr": Machine._make_block_pointer,
    "advance": Machine._advance, "tensor_pointer_load": Machine._block_load,
    "tensor_pointer_store": Machine._block_store, "make_tensor_descriptor": Machine._make_descriptor,
    "descriptor_load": Machine._descriptor_load, "descriptor_gather": Machine._descriptor_gather,
    "descriptor_store": Machine._descriptor_store, "descriptor_scatter": Machine._descriptor_scatter,
    "descriptor_reduce": Machine._descriptor_reduce, "barrier": Machine._barrier, "assume": Machine._assume,
    "assert": Machine._assert, "promise": Machine._promise, "print": Machine._print,
    **dict.fromkeys(("expand_dims", "broadcast", "trans", "reshape", "unsplat"), Machine._reshaping),
    **dict.fromkeys(("icmpSLT", "icmpSLE", "icmpSGT", "icmpSGE"), Machine._compare),
}  # fmt: skip
