"""Small changes of one operation of a Program: what the writer of a wrong kernel may have meant.

A Change names an operation by its line, its name and its number among the operations of this name on that line. So the
same change can be made in all programs of a kernel: they differ by the types and the numbers of a launch.

Source: the changes are those of mutation testing (DeMillo, Lipton and Sayward, 1978), used to repair.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from .program import BOOL, Block, Function, Operation, Program, Type, Value, blocks_of, values

FLOATS, INTEGERS = ["fadd", "fsub", "fmul", "fdiv", "maxnumf", "minnumf"], ["add", "sub", "mul", "sdiv", "srem"]
ORDERS = ["LT", "LE", "GT", "GE", "EQ", "NE"]
ALIKE = (FLOATS, INTEGERS, ["maxsi", "minsi"], ["and", "or"], ["exp", "exp2"], ["log", "log2"], ["sqrt", "rsqrt"],
         *([kind + order for order in ORDERS] for kind in ("icmpS", "fcmpO")))  # fmt: skip
EXTREMES = {"maxnumf", "minnumf"}
COMBINES = {"sum": ("fadd", "add"), "max": ("maxnumf", "maxsi"), "min": ("minnumf", "minsi")}  # of reductions
TURNED = {"fsub", "fdiv", "sub", "sdiv", "srem", "select"}  # whose operands have an order
PUT = {"exp": {*FLOATS, "load", "masked_load", "select", "call"}, "sqrt": {"fadd", "fdiv"}, "rsqrt": {"fadd", "fdiv"}}
SKIPPED = {*FLOATS, *INTEGERS, *PUT, "log", "exp2", "log2", "and", "select", "trans"}
FITS = {"splat", "int_cast", "si_to_fp", "fp_ext"}  # what the front end adds, so that operands are of one type
CASTS = {("fp_to_si", "si_to_fp"), ("fp_trunc", "fp_ext")}  # there and back


class Inapplicable(LookupError):
    """This program has no such operation, or it is of another type there."""


@dataclass(frozen=True)
class Change:
    """what: a method of `_Changer`; more: its arguments, which JSON can hold."""

    line: int
    name: str
    number: int
    what: str
    more: tuple = ()

    @property
    def data(self) -> list:
        return [*astuple(self)[:4], list(self.more)]


# -- candidates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What the source calls the values: by line, the variable that gets a value, and the variables of a loop."""

    labels: list[str]  # of the arguments of a launch, in their order
    variables: dict[int, str]
    loops: dict[int, list[str]]
    constants: dict[str, int]


def candidates(program: Program, names: Names) -> Iterator[tuple[int, bool, Change]]:
    """All changes: the distance from what is written (0 for another operator, or a variable that nothing uses; more for
    another value), whether it is a change of numbers and not of places, and the change."""
    for function in _own(program):
        scope = {}
        used = {value for b in blocks_of(function.region) for each in b.operations for value in values(each.args)}
        if function is program.kernel:
            scope = {v: (label, ("parameter", label)) for label, v in zip(names.labels, function.entry.arguments)}
        numbers = _numbers(function)
        for block in function.region.blocks:
            for distance, of_numbers, change, other in _in_block(block, scope, names, numbers):
                yield 0 if other and other not in used else distance, of_numbers, change


def _own(program: Program) -> list[Function]:
    """The functions that a learner wrote."""
    return [
        f for f in program.functions.values() if any(o.location.file for b in blocks_of(f.region) for o in b.operations)
    ]


def _numbers(function: Function) -> dict[Operation, tuple[int, str, int]]:
    """The line, name and number of each operation."""
    seen: dict[tuple[int, str], int] = {}
    found = {}
    for each in (each for block in blocks_of(function.region) for each in block.operations):
        key = each.location.line, each.name
        found[each] = *key, seen.setdefault(key, 0)
        seen[key] += 1
    return found


def _in_block(
    block: Block, scope: dict, names: Names, numbers: dict
) -> Iterator[tuple[int, bool, Change, Value | None]]:
    """The same, and the variable that a change uses."""
    scope, made = dict(scope), {}
    last = {each.location.line: each for each in block.operations if len(each.results) == 1 and not each.regions}
    for each in block.operations:
        line, *_ = site = numbers[each]
        if line:
            of_place = {place: value for value, (_, place) in scope.items()}
            for distance, what, *more in _of(each, scope, names, made):
                other = of_place.get(more[-1]) if more else None
                yield distance, _computes(each, what, more), Change(*site, what, tuple(more)), other
        made |= {result: each for result in each.results}
        variables = names.loops.get(line, []) if each.name == "for_op" else []
        variables = variables if len(variables) == 1 + len(each.results) else []
        for region in each.regions if each.name != "reduce" else ():
            inner = region.blocks[0] if region.blocks else Block()
            named = {v: (n, ("inside", *site, i)) for i, (v, n) in enumerate(zip(inner.arguments, variables))}
            yield from _in_block(inner, scope | named, names, numbers)
        scope |= {v: (n, ("after", *site, i)) for i, (v, n) in enumerate(zip(each.results, variables[1:]))}
        if last.get(line) is each and line in names.variables:
            scope[each.results[0]] = names.variables[line], ("line", line)


def _computes(each: Operation, what: str, more: list) -> bool:
    """Whether an operation computes numbers, and not places. Of a loop: whether the value that changes is a number."""
    changed = each.results
    if each.name == "for_op":
        changed = [] if more[1] is None else [each.results[more[1]]]
    elif each.name.endswith("load") and what in ("value", "mask", "unmask"):
        return False
    elif each.name.startswith(("fcmp", "store", "masked_store")):
        changed = [each.args[min(1, len(each.args) - 1)]]
    return any(value.type.scalar.kind == "float" for value in changed)


def _of(each: Operation, scope: dict, names: Names, made: dict) -> Iterator[tuple]:
    """Distance, kind and arguments of each change of an operation."""
    name, args = each.name, each.args
    result = each.results[0] if len(each.results) == 1 and not each.regions else None
    kind = result.type.scalar.kind if result else ""
    for alike in (alike for alike in ALIKE if name in alike):
        far = EXTREMES - {name} if name not in EXTREMES else {"fsub", "fmul", "fdiv"}
        yield from ((3 if other in far else 0, "name", other) for other in alike if other != name)
    if name in TURNED:
        yield 0, "order"
    if name == "call" and (combine := combine_of(each)):
        yield from ((0, "combine", other) for other in COMBINES if other != combine)
        shape = args[1][0].type.shape
        if len(shape) == 2 and shape[0] == shape[1]:
            yield 0, "along"
    if name == "get_program_id":
        yield from ((0, "axis", axis) for axis in range(3) if axis != args[0])
    if name == "broadcast" and each.results[0].type.shape == (max(args[0].type.shape),) * 2:
        yield 0, "turn"
    if name in ("masked_load", "masked_store"):
        yield 2, "unmask"
        if name == "masked_load" and args[2] is None and kind == "float":
            yield from ((1, "other", number) for number in (0.0, -math.inf, 1.0))
    if name in ("load", "store"):
        shape = args[0].type.shape
        for value, (label, place) in scope.items():
            if value.type.shape == shape and value.type.scalar == BOOL:
                yield 1, "mask", label, place
    yield from _other_numbers(each, names, made)
    if result and name in SKIPPED:
        kept = [
            i for i, arg in enumerate(args) if isinstance(arg, Value) and arg.type == result.type and not arg.constant
        ]
        yield from ((1 if len(args) == 1 else 2, "skip", i) for i in kept)
    if result and (made.get(args[0] if args and isinstance(args[0], Value) else None) or each) is not each:
        first = made[args[0]]
        if (first.name, name) in CASTS and first.args[0].type.scalar.kind == "float":
            yield 1, "uncast"
    if kind == "float" and name != "splat":
        yield from ((1, "put", function) for function, after in PUT.items() if name in after)
        shape = result.type.shape
        if len(shape) == 2 and shape[0] == shape[1] > 1:
            yield 1, "transposed"
    yield from _other_values(each, scope, made)
    if kind in ("float", "int") and name not in ("splat", "broadcast", "expand_dims", "make_range", "poison"):
        yield from _put_in(result, kind, scope, names, name)


def _other_numbers(each: Operation, names: Names, made: dict) -> Iterator[tuple]:
    """Other constants, at each place of one."""
    for i, j, value in _places(each, made):
        if value.constant is None or value.type.scalar.kind not in ("int", "float"):
            continue
        old = number_of(value)
        if value.type.scalar.kind == "float":
            new = [0.0, 1.0, -math.inf, -old] + ([2 * old, old / 2] if old and math.isfinite(old) else [])
        elif value.type.scalar.bits == 1:
            new = [1 - old]
        else:
            sizes = list(names.constants.values())
            new = sizes if old in sizes else [old + 1, old - 1, 0, 1] + sizes * (each.name in ("add", "mul"))
        for number in dict.fromkeys(new):
            if number != old and not math.isnan(number):
                yield (1 if value.type.scalar.kind == "float" else 2), "number", i, j, old, number


def _other_values(each: Operation, scope: dict, made: dict) -> Iterator[tuple]:
    """Another variable of the same type in the place of one or of a constant, or a function of it."""
    for i, j, value in _places(each, made):
        if value not in scope and not value.constant:
            continue
        name = scope[value][0] if value in scope else number_of(value)
        for other, (its_name, place) in scope.items():
            if other.type == value.type and its_name != name:
                yield 1 if value in scope else 2, "value", i, j, name, its_name, place
        if value in scope and value.type.scalar.kind == "float" and each.name in FLOATS:
            yield from ((1, "of", i, function, name) for function in ("log", "exp"))


def _put_in(result: Value, kind: str, scope: dict, names: Names, name: str) -> Iterator[tuple]:
    """One more operation, with another variable or constant of the launch."""
    if kind == "int" and not result.type.shape and result.type.scalar.bits == 32:
        for label, number in names.constants.items():
            yield 2, "with", "mul", label, ("number", number)
    for other, (label, place) in scope.items():
        if other.type in (result.type, result.type.scalar) and other is not result:
            operations = ("fmul", "fdiv", "fadd", "fsub") if kind == "float" else ("add", "mul")
            operations = ("and",) if result.type.scalar.bits == 1 else operations
            near = other.type == result.type
            yield from ((2 + (o != "fmul" or not near), "with", o, label, place) for o in operations)
        if kind == "float" and other.type == result.type.with_element(BOOL):
            yield 2, "where", label, place


def _places(each: Operation, made: dict) -> Iterator[tuple[int, int | None, Value]]:
    """The values that an operation gets, as they were before the front end fitted them to each other."""

    def before(value: Value) -> Value:
        first = made.get(value)
        return value if first is None or first.name not in FITS else before(next(values(first.args)))

    for i, arg in enumerate(each.args if each.name not in FITS else ()):
        if isinstance(arg, Value):
            yield i, None, before(arg)
        elif isinstance(arg, list) and each.name in ("for_op", "call"):
            yield from ((i, j, before(value)) for j, value in enumerate(arg) if isinstance(value, Value))


def combine_of(call: Operation) -> str:
    """ "sum", "max" or "min", of a call of such a reduction in Triton's library; "" for all else."""
    name = called(call)
    return name if name in COMBINES and not any(o.location.file for o in call.args[0].entry.operations) else ""


def called(call: Operation) -> str:
    """The name of the function that is called, without its module and types."""
    return call.args[0].name.split("__")[0].rpartition(".")[2]


def number_of(value: Value) -> float:
    method, number = value.constant
    return {"get_null_value": 0, "get_all_ones_value": 1}.get(method, number)


# -- a change is made --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def changed(program: Program, labels: list[str], change: list) -> Iterator[None]:
    """Makes a change (its data) in a program, for a while. Raises Inapplicable, or what wrong data raise."""
    line, name, number, what, more = change
    blocks, functions, facts = {}, program.functions, program.facts
    program.facts, program.functions = None, dict(functions)
    try:
        for function in _own(program):
            sites = {site: each for each, site in _numbers(function).items()}
            if each := sites.get((line, name, number)):
                block = next(b for b in blocks_of(function.region) if each in b.operations)
                made = getattr(_Changer(program, function, labels, sites, block), "do_" + what)(each, *more)
                blocks[block] = block.operations
                at = block.operations.index(each)
                block.operations = [*block.operations[:at], *made, *block.operations[at + 1 :]]
        if not blocks:
            raise Inapplicable
        yield
    finally:
        for block, operations in blocks.items():
            block.operations = operations
        program.facts, program.functions = facts, functions


class _Changer:
    """What stands in the place of an operation, by kind of change. The last operation gives the old results."""

    def __init__(self, program: Program, function: Function, labels: list[str], sites: dict, block: Block):
        self.program, self.function, self.labels, self.sites, self.block = program, function, labels, sites, block

    def do_name(self, each: Operation, new: str) -> list[Operation]:
        return [_like(each, name=new)]

    def do_order(self, each: Operation) -> list[Operation]:
        *first, x, y = each.args
        return [_like(each, args=[*first, y, x])]

    def do_axis(self, each: Operation, axis: int) -> list[Operation]:
        return [_like(each, args=[axis])]

    def do_combine(self, each: Operation, new: str) -> list[Operation]:
        function = self._copied(each.args[0])
        old = {name for names in COMBINES.values() for name in names}
        for inner in (o for f in _called(function) for b in blocks_of(f.region) for o in b.operations):
            if inner.name in old:
                inner.name = COMBINES[new][inner.results[0].type.scalar.kind == "int"]
        return [_like(each, args=[function, *each.args[1:]])]

    def do_along(self, each: Operation) -> list[Operation]:
        function = self._copied(each.args[0])
        for inner in (o for o in function.entry.operations if o.name == "reduce"):
            inner.args = [inner.args[0], 1 - inner.args[1]]
        return [_like(each, args=[function, *each.args[1:]])]

    def _copied(self, function: Function) -> Function:
        made = copy.deepcopy(function)
        self.program.functions |= {f"{each.name}, changed": each for each in _called(made)}
        return made

    def do_turn(self, each: Operation) -> list[Operation]:
        turned = _transposed(each.args[0])
        return [turned, _like(each, args=[turned.results[0], *each.args[1:]])]

    def do_transposed(self, each: Operation) -> list[Operation]:
        inner = Value(each.results[0].type)
        return [_like(each, results=[inner]), Operation("trans", [inner, [1, 0]], each.results, each.location)]

    def do_unmask(self, each: Operation) -> list[Operation]:
        gone = (1, 2) if each.name == "masked_load" else (2,)
        args = [arg for i, arg in enumerate(each.args) if i not in gone]
        return [_like(each, name=each.name.removeprefix("masked_"), args=args)]

    def do_mask(self, each: Operation, label: str, place: list) -> list[Operation]:
        pointer, *more = each.args
        _, mask = _fitted(self.value(place), pointer.type.with_element(BOOL), each)
        if each.name == "load":
            return [_like(each, name="masked_load", args=[pointer, mask, None, *more])]
        return [_like(each, name="masked_store", args=[pointer, more[0], mask, *more[1:]])]

    def do_other(self, each: Operation, number: float) -> list[Operation]:
        made, value = _constant(each.results[0].type, number, each)
        return [*made, _with(each, 2, None, value)]

    def do_number(self, each: Operation, i: int, j: int | None, old: float, new: float) -> list[Operation]:
        made, value = _constant((each.args[i] if j is None else each.args[i][j]).type, new, each)
        return [*made, _with(each, i, j, value)]

    def do_skip(self, each: Operation, i: int) -> list[Operation]:
        return [_same(each.args[i], each)]

    def do_uncast(self, each: Operation) -> list[Operation]:
        first = next((o for o in self.block.operations if each.args[0] in o.results), None)
        if first is None or (first.name, each.name) not in CASTS:
            raise Inapplicable
        return [_same(first.args[0], each)]

    def do_put(self, each: Operation, function: str) -> list[Operation]:
        inner = Value(each.results[0].type)
        return [_like(each, results=[inner]), Operation(function, [inner], each.results, each.location)]

    def do_of(self, each: Operation, i: int, function: str, name: str) -> list[Operation]:
        made = Operation(function, [each.args[i]], [Value(each.args[i].type)], each.location)
        return [made, _with(each, i, None, made.results[0])]

    def do_value(self, each: Operation, i: int, j: int | None, old: str, new: str, place: list) -> list[Operation]:
        type = (each.args[i] if j is None else each.args[i][j]).type
        made = _fitted(self.value(place, type.scalar), type, each)
        return [*made[0], _with(each, i, j, made[1])]

    def do_with(self, each: Operation, operation: str, label: str, place: list) -> list[Operation]:
        type = each.results[0].type
        inner, made = Value(type), []
        if place[0] == "number":
            made, other = _constant(type, place[1], each)
        else:
            made, other = _fitted(self.value(place, type.scalar), type, each)
        last = Operation(operation, [inner, other], each.results, each.location)
        return [_like(each, results=[inner]), *made, last]

    def do_where(self, each: Operation, label: str, place: list) -> list[Operation]:
        inner = Value(each.results[0].type)
        made, zero = _constant(inner.type, 0.0, each)
        fitted, condition = _fitted(self.value(place), inner.type.with_element(BOOL), each)
        return [
            _like(each, results=[inner]),
            *made,
            *fitted,
            Operation("select", [condition, inner, zero], each.results, each.location),
        ]

    def value(self, place: list, type: Type | None = None) -> Value:
        """The value of a variable: see `_in_block`."""
        kind, *where = place
        if kind == "parameter":
            found = dict(zip(self.labels, self.function.entry.arguments)).get(where[0])
            if found is None and type and type.kind == "int":  # the front end makes a constant of 1
                found = Value(type, (f"get_int{type.bits}", 1))
        elif kind == "line":
            found = [
                o for (line, *_), o in self.sites.items() if line == where[0] and len(o.results) == 1 and not o.regions
            ]
            found = found[-1].results[0] if found else None
        else:
            *site, i = where
            loop = self.sites.get(tuple(site))
            found = loop and (loop.regions[0].blocks[0].arguments if kind == "inside" else loop.results)[i]
        if found is None:
            raise Inapplicable
        return found


def _like(each: Operation, name: str = "", args: list | None = None, results: list[Value] | None = None) -> Operation:
    made = Operation(
        name or each.name, each.args if args is None else args, results or each.results, each.location, each.regions
    )
    made.attributes = each.attributes
    return made


def _with(each: Operation, i: int, j: int | None, value: Value) -> Operation:
    args = list(each.args)
    args[i] = value if j is None else [value if n == j else old for n, old in enumerate(args[i])]
    return _like(each, args=args)


def _same(value: Value, each: Operation) -> Operation:
    """The results are this value."""
    if value.type != each.results[0].type:
        raise Inapplicable
    if value.type.shape:
        return Operation("broadcast", [value, list(value.type.shape)], each.results, each.location)
    return Operation("bitcast", [value, value.type], each.results, each.location)


def _transposed(value: Value) -> Operation:
    return Operation("trans", [value, [1, 0]], [Value(value.type.with_shape(value.type.shape[::-1]))])


def _fitted(value: Value, type: Type, near: Operation) -> tuple[list[Operation], Value]:
    """A value as a type, as the front end fits it, and the operations that do it."""
    made, scalar = [], type.scalar
    if value.type.scalar != scalar:
        if {value.type.scalar.kind, scalar.kind} != {"int"} or BOOL in (value.type.scalar, scalar):
            raise Inapplicable
        made.append(
            Operation(
                "int_cast", [value, value.type.with_element(scalar), True], [Value(value.type.with_element(scalar))]
            )
        )
    if type.shape and not value.type.shape:
        made.append(Operation("splat", [type, made[-1].results[0] if made else value], [Value(type)], near.location))
    value = made[-1].results[0] if made else value
    if value.type != type:
        raise Inapplicable
    return made, value


def _constant(type: Type, number: float, near: Operation) -> tuple[list[Operation], Value]:
    """A constant of a type, and the operations that make it."""
    scalar = type.scalar
    if scalar.kind not in ("int", "float") or scalar.kind == "int" and number != int(number):
        raise Inapplicable
    method = f"get_int{scalar.bits}" if scalar.kind == "int" else "get_" + scalar.name.replace("f", "fp", 1)
    method = "get_bf16" if scalar.name == "bf16" else method
    value = Value(scalar, (method, int(number) if scalar.kind == "int" else float(number)))
    if not type.shape:
        return [], value
    made = Operation("splat", [type, value], [Value(type)], near.location)
    return [made], made.results[0]


def _called(function: Function) -> Iterator[Function]:
    """A function and all that it calls."""
    yield function
    for block in blocks_of(function.region):
        for each in block.operations:
            if each.name == "call":
                yield from _called(each.args[0])
