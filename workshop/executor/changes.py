"""Small changes of one operation of a Program: what the writer of a wrong kernel may have meant.

A Change names an operation by its line, its name and its number among the operations of this name on that line. So the
same change can be made in all programs of a kernel: they differ by the types and the numbers of a launch.

Source: the changes are those of mutation testing (DeMillo, Lipton and Sayward, 1978), used to repair.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from .facts import reached, sources_of
from .program import BOOL, Block, Function, Operation, Program, Type, Value, blocks_of, values

FLOATS, INTEGERS = ["fadd", "fsub", "fmul", "fdiv", "maxnumf", "minnumf"], ["add", "sub", "mul", "sdiv", "srem"]
ORDERS = ["LT", "LE", "GT", "GE", "EQ", "NE"]
COMPARED = [f"icmpS{order}" for order in ORDERS]
ALIKE = (FLOATS, INTEGERS, ["maxsi", "minsi"], ["and", "or"], ["exp", "exp2"], ["log", "log2"], ["sqrt", "rsqrt"],
         COMPARED, [f"fcmpO{order}" for order in ORDERS])  # fmt: skip
MIXED_UP = {frozenset(pair.split()) for pair in (
    "fadd fsub", "fadd fmul", "fmul fdiv", "maxnumf minnumf", "fadd maxnumf", "add sub", "add mul", "mul sdiv",
    "sdiv srem", "maxsi minsi", "and or", "exp exp2", "log log2", "sqrt rsqrt", "LT LE", "GT GE", "LT GT", "LE GE",
    "LT GE", "EQ NE",
)}  # fmt: skip
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

    def data(self, constants: dict[str, int]) -> list:
        """For a call whose launches have these constants."""
        more = [self._of(each, constants) for each in self.more]
        return [*astuple(self)[:4], more]

    @staticmethod
    def _of(each: object, constants: dict[str, int]) -> object:
        named = isinstance(each, tuple) and each[0] == "constant" and each[1] in constants
        return ("number", constants[each[1]]) if named else each


# -- candidates ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What the source calls the values: by line, the variable that gets a value, and the variables of a loop."""

    labels: list[str]  # of the arguments of a launch, in their order
    variables: dict[int, str]
    loops: dict[int, list[str]]
    constants: dict[str, int]


def candidates(program: Program, names: Names, line: int | None = None) -> Iterator[tuple[int, bool, Change]]:
    """All changes: the distance from what is written (0 for another operator, or a variable that nothing uses; more for
    another value), whether it is a change of numbers and not of places, and the change.

    line: only what decides where the loads and stores of this line go is changed.
    """
    for function in _own(program):
        scope = {}
        used = {value for b in blocks_of(function.region) for each in b.operations for value in values(each.args)}
        if function is program.kernel:
            scope = {v: (label, ("parameter", label)) for label, v in zip(names.labels, function.entry.arguments)}
        numbers = _numbers(function)
        decide = {numbers[each] for each in _deciding(program, function, line)}
        for block in function.region.blocks:
            for distance, of_numbers, change, other in _in_block(block, scope, names, numbers):
                if not decide or (change.line, change.name, change.number) in decide:
                    yield 0 if other and other not in used else distance, of_numbers, change


def _deciding(program: Program, function: Function, line: int | None) -> set[Operation]:
    """The operations that the pointers and masks of a line's loads and stores come from, and these themselves.

    Source: the slice of Weiser, "Program slicing", 1981.
    """
    operations = [each for block in blocks_of(function.region) for each in block.operations]
    accesses = [each for each in operations if each.location.line == line and each.name.endswith(("load", "store"))]
    wanted = [v for each in accesses for i, arg in enumerate(each.args) for v in values([arg])
              if (i, each.name) not in ((1, "store"), (1, "masked_store"))]  # fmt: skip
    found = reached(wanted, sources_of(program))
    inside = {each: {v for region in each.regions for b in region.blocks for v in b.arguments} for each in operations}
    return {each for each in operations if each in accesses or not found.isdisjoint([*each.results, *inside[each]])}


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
    scope, made, before = dict(scope), {}, 0
    last = {each.location.line: each for each in block.operations if len(each.results) == 1 and not each.regions}
    for each in block.operations:
        line, *_ = site = numbers[each]
        if line:
            of_place = {place: value for value, (_, place) in scope.items()}
            for distance, what, *more in _of(each, scope, names, made):
                other = of_place.get(more[-1]) if more else None
                yield distance, _computes(each, what, more), Change(*site, what, tuple(more)), other
            if line != before:
                here = [o for o in block.operations if o.location.line == line]
                for more in _other_everywhere(here, scope):
                    yield 1, here[-1].results[0].type.scalar.kind == "float", Change(*site, "everywhere", more), None
            before = line
        made |= {result: each for result in each.results}
        variables = names.loops.get(line, []) if each.name == "for_op" else []
        variables = variables if len(variables) == 1 + len(each.results) else []
        for region in each.regions if each.name != "reduce" else ():
            inner = region.blocks[0] if region.blocks else Block()
            named = {v: (n, ("inside", *site, i)) for i, (v, n) in enumerate(zip(inner.arguments, variables))}
            yield from _in_block(inner, _renewed(scope, named), names, numbers)
        after = {v: (n, ("after", *site, i)) for i, (v, n) in enumerate(zip(each.results, variables[1:]))}
        if last.get(line) is each and line in names.variables:
            after[each.results[0]] = names.variables[line], ("line", line)
        scope = _renewed(scope, after)


def _renewed(scope: dict, new: dict) -> dict:
    """A scope in which a name means its newest value."""
    names = {name for name, _ in new.values()}
    return {value: each for value, each in scope.items() if each[0] not in names} | new


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
        pairs = ((other, frozenset((_order_of(name), _order_of(other)))) for other in alike)
        yield from ((0 if pair in MIXED_UP else 3, "name", other) for other, pair in pairs if other != name)
    if name in TURNED:
        yield 0, "order"
    if name == "call" and (combine := combine_of(each)):
        yield from (
            (3 * ({combine, other} == {"sum", "min"}), "combine", other) for other in COMBINES if other != combine
        )
        if combine == "max":  # of this block alone, and not of those before it
            for value, (label, place) in scope.items():
                if value.type == result.type:
                    yield 1, "with", "maxnumf" if kind == "float" else "maxsi", label, place
        shape = args[1][0].type.shape
        if len(shape) == 2 and shape[0] == shape[1]:
            yield 0, "along"
    if name == "make_range" and args[-2]:
        yield 0, "from_0"
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
    if name in ("exp", "exp2"):
        for value, (label, place) in scope.items():
            if value.type in (result.type, result.type.scalar) and value is not args[0]:
                yield 1 + (args[0] in made and made[args[0]].name == "fsub"), "less", label, place
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
        near = name in ("fadd", "fsub") or name.endswith("load")
        yield from ((2 - near, "put", function) for function, after in PUT.items() if name in after)
        shape = result.type.shape
        if len(shape) == 2 and shape[0] == shape[1] > 1:
            yield 1, "transposed"
    yield from _other_values(each, scope, names, made)
    if kind in ("float", "int") and name not in ("splat", "broadcast", "expand_dims", "make_range", "poison"):
        yield from _put_in(result, kind, scope, names, name)


def _order_of(name: str) -> str:
    """The order that a comparison asks for; another name as it is."""
    return name[5:] if name.startswith(("icmpS", "fcmpO")) else name


def _other_numbers(each: Operation, names: Names, made: dict) -> Iterator[tuple]:
    """Other constants, at each place of one."""
    for i, j, value in _places(each, made):
        zeros = value in made and made[value].name == "call" and called(made[value]) == "zeros"
        if value.constant is None and not zeros or value.type.scalar.kind not in ("int", "float"):
            continue
        old = 0 if zeros else number_of(value)
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


def _other_values(each: Operation, scope: dict, names: Names, made: dict) -> Iterator[tuple]:
    """Another variable of the same type in the place of one or of a constant, or a function of it."""
    for i, j, value in _places(each, made):
        if value not in scope and not value.constant:
            continue
        name = scope[value][0] if value in scope else number_of(value)
        for other, (its_name, place) in scope.items():
            if other.type == value.type and its_name != name:
                yield 1 if value in scope else 2, "value", i, j, name, its_name, place
        if value in scope and value.type.kind == "int" and each.name in ("add", "addptr", *COMPARED):
            for label in names.constants:
                yield 2, "operand", i, j, "sdiv", name, label, ("constant", label)
            for other, (label, place) in scope.items():
                if other.type == value.type and other is not value and place[0] == "inside":
                    yield 2, "operand", i, j, "sub", name, label, place
                if other.type == value.type and place[0] == "parameter" and scope[value][1][0] == "inside":
                    yield 1, "operand", i, j, "mul", name, label, place
        if i == 0 and each.name.endswith(("load", "store")) and value in scope and not value.type.shape:
            for other, (label, place) in scope.items():
                if other.type.kind == "int" and not other.type.shape:
                    yield 0, "operand", i, j, "addptr", name, label, place
        if value in scope and each.name == "call" and combine_of(each):
            for other, (label, place) in scope.items():
                if other.type == value.type and other is not value:
                    yield 1, "operand", i, j, "fmul", name, label, place
                for spread in _spread(other.type, value.type, label, place):
                    yield 1, "operand", i, j, "fmul", name, *spread
        if value in scope and value.type.scalar.kind == "float" and each.name in FLOATS:
            yield from (
                (2 - (function == "log" and each.name == "fadd"), "of", i, function, name)
                for function in ("log", "exp")
            )


def _put_in(result: Value, kind: str, scope: dict, names: Names, name: str) -> Iterator[tuple]:
    """One more operation, with another variable or constant of the launch."""
    if kind == "int" and not result.type.shape and result.type.scalar.bits > 16:
        for label in names.constants:
            yield from ((2, "with", o, label, ("constant", label)) for o in ("mul", "sdiv"))
    for other, (label, place) in scope.items():
        if _fits(other.type, result.type) and other is not result:
            operations = ("fmul", "fdiv", "fadd", "fsub") if kind == "float" else ("add", "mul", "sub")
            operations = ("and",) if result.type.scalar.bits == 1 else operations
            likely = ("fmul", "mul") if other.type == result.type else ()
            steps = kind == "int" and result.type.shape and place[0] == "parameter"  # row, in the place of row * stride
            yield from ((0 if steps and o == "mul" else 3 - (o in likely), "with", o, label, place) for o in operations)
        if kind == "float" and other.type == result.type.with_element(BOOL):
            yield 2, "where", label, place
        if kind == "float":
            yield from ((1, "with", "fmul", *each) for each in _spread(other.type, result.type, label, place))
        if name == "add" and not result.type.shape and other.type.kind == "int" and place[0] == "parameter":
            yield 1, "with", "minsi", label, place  # where a part ends


def _spread(type: Type, wanted: Type, label: str, place: tuple) -> Iterator[tuple[str, tuple]]:
    """A vector as a row or as a column of a tile: what is written, and its place."""
    for axis, written in enumerate((f"{label}[None, :]", f"{label}[:, None]")):
        if len(wanted.shape) == 2 and type == wanted.with_shape(wanted.shape[1 - axis : 2 - axis]):
            yield written, ("spread", axis, place)


def _fits(type: Type, wanted: Type) -> bool:
    """Whether the front end makes one type of these: integers may be of two widths, a number fits a block."""
    scalar = wanted.scalar
    alike = type.scalar == scalar or type.kind == scalar.kind == "int" and BOOL not in (type, scalar)
    return alike and type.shape in ((), wanted.shape)


def _other_everywhere(operations: list[Operation], scope: dict) -> Iterator[tuple]:
    """Another variable in the place of one that some operations of one line use, if more than one of them does."""
    used = Counter(arg for each in operations for arg in each.args if isinstance(arg, Value) and arg in scope)
    for value, count in used.items():
        if count > 1 and operations[-1].results:
            name, place = scope[value]
            for other, (its_name, its_place) in scope.items():
                if other.type == value.type and its_name != name:
                    yield name, its_name, place, its_place


def _places(each: Operation, made: dict) -> Iterator[tuple[int, int | None, Value]]:
    """The values that an operation gets, as they were before the front end fitted them to each other."""

    def before(value: Value) -> Value:
        first = made.get(value)
        return value if first is None or first.name not in FITS else before(values(first.args)[0])

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
                make = getattr(_Changer(program, function, labels, sites, block), "do_" + what)
                alike = [o for o in block.operations if o.location.line == line] if what == "everywhere" else [each]
                made = {each: make(each, *more) for each in alike}
                blocks[block] = block.operations
                block.operations = [new for each in block.operations for new in made.get(each, [each])]
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

    def do_from_0(self, each: Operation) -> list[Operation]:
        *first, start, end = each.args
        return [_like(each, args=[*first, 0, end - start])]

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

    def do_operand(
        self, each: Operation, i: int, j: int | None, operation: str, old: str, label: str, place: list
    ) -> list[Operation]:
        value = each.args[i] if j is None else each.args[i][j]
        made, other = ([], self.value(place)) if operation == "addptr" else self.other(value.type, place, each)
        last = Operation(operation, [value, other], [Value(value.type)], each.location)
        return [*made, last, _with(each, i, j, last.results[0])]

    def other(self, type: Type, place: list, near: Operation) -> tuple[list[Operation], Value]:
        """A variable or a number as a type, and the operations that make it. ("spread", axis, place): along an axis."""
        if place[0] == "number":
            return _constant(type, place[1], near)
        if place[0] == "spread":
            axis, value = place[1], self.value(place[2])
            shape = [*value.type.shape[:axis], 1, *value.type.shape[axis:]]
            wider, block = Value(value.type.with_shape(tuple(shape))), Value(type)
            spread = [Operation("expand_dims", [value, axis], [wider], near.location),
                      Operation("broadcast", [wider, list(type.shape)], [block], near.location)]  # fmt: skip
            return spread, block
        return _fitted(self.value(place, type.scalar), type, near)

    def do_value(self, each: Operation, i: int, j: int | None, old: str, new: str, place: list) -> list[Operation]:
        type = (each.args[i] if j is None else each.args[i][j]).type
        made = _fitted(self.value(place, type.scalar), type, each)
        return [*made[0], _with(each, i, j, made[1])]

    def do_less(self, each: Operation, label: str, place: list) -> list[Operation]:
        made, other = _fitted(self.value(place), each.args[0].type, each)
        inner = Operation("fsub", [each.args[0], other], [Value(other.type)], each.location)
        return [*made, inner, _like(each, args=inner.results)]

    def do_everywhere(self, each: Operation, old: str, new: str, place: list, its_place: list) -> list[Operation]:
        """Made of each operation of the line."""
        value, other = self.value(place), self.value(its_place)
        return [_like(each, args=[other if arg is value else arg for arg in each.args])]

    def do_with(self, each: Operation, operation: str, label: str, place: list) -> list[Operation]:
        type = each.results[0].type
        inner = Value(type)
        made, other = self.other(type, place, each)
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
