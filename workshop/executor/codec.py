"""A Program as plain data for JSON, and back. What comes back may be anybody's: `from_data` checks all of it.

Values are numbers in the order in which they are defined in their function; -1, -2, ... are the program's constants.
The types of what an operation gives are not sent but found again, as the front end found them.
"""

from __future__ import annotations

import math
import re

from . import front_end
from .front_end import FLOAT8, FLOATS, REGIONS, TERMINATORS
from .program import ENUMERATIONS, NOWHERE, Block, Enum, Function, Location, Operation, Program, Region, Type, Value

MAX_OPERATIONS = 20_000
MAX_EXPANDED = 1_000_000  # operations with each call counted as what it calls
MAX_DEPTH = 50
MAX_ELEMENTS = 2**20  # of a block, as Triton has it
MAX_BLOCKS = 1_000  # of a function
MAX_FUNCTIONS = 500
MAX_ITEMS = 1_000  # of a list
MAX_TEXT = 5_000
_INTEGERS = {"i1", "i8", "i16", "i32", "i64"}
_FLOATS = {*FLOATS.values(), *FLOAT8.values()}
_ATTRIBUTES = {"get_int32_attr": 1, "get_unit_attr": 0, "get_disable_loop_licm_attr": 0}
_PROMISES = {"tt.divisibility", "tt.contiguity", "tt.constancy"}
_CONSTANTS = {f"get_{sign}int{bits}": Type("int", f"i{bits}") for sign in ("", "u") for bits in (1, 8, 16, 32, 64)}
_CONSTANTS |= {f"get_{name}": Type("float", mlir) for name, mlir in front_end.CONSTANTS.items()}

# The arguments of each operation, a letter for each: Value, Optional value, Type, Enum or None (x), Block, Number,
# Yes or no, String, cache Policy (Triton 3.9). A capital is a list of them; * stands for any number of values.
_KINDS = {
    "barrier grid_dependency_wait grid_dependency_launch_dependents": "",
    "ret yield_op map_elementwise_ret while_op": "V",
    "map_elementwise reduce": "Vn",
    "scan": "Vny",
    "reduce_ret scan_ret": "*",
    "branch": "bV",
    "cond_branch": "vbb",
    "condition_op": "vV",
    "call": "sV",
    "if_op": "vy",
    "for_op": "vvvV",
    "extern_elementwise": "sssVty",
    "print": "syVY",
    "poison": "t",
    "make_range": "tnn",
    "splat": "tv",
    "get_program_id get_num_programs": "n",
    "assume ceil cos erf exp exp2 fabs floor fneg iabs log log2 precise_sqrt rsqrt sin split sqrt unsplat": "v",
    "add addptr and ashr cat fadd fdiv fmul frem fsub join lshr maxnumf maximumf maxsi maxui minimumf minnumf minsi "
    "minui mul or precise_divf approx_divf sdiv shl srem sub udiv umulhi urem xor": "vv",
    "icmpEQ icmpNE icmpSGE icmpSGT icmpSLE icmpSLT icmpUGE icmpUGT icmpULE icmpULT": "vv",
    "fcmpOEQ fcmpOGE fcmpOGT fcmpOLE fcmpOLT fcmpONE fcmpUNE fcmpUEQ fcmpUGE fcmpUGT fcmpULE fcmpULT": "vv",
    "fma select": "vvv",
    "clampf": "vvvx",
    "bitcast fp_ext fp_to_si fp_to_ui fp_trunc int_to_ptr ptr_to_int si_to_fp ui_to_fp": "vt",
    "fp_to_fp": "vtx",
    "int_cast": "vty",
    "expand_dims": "vn",
    "broadcast trans": "vN",
    "reshape": "vNy",
    "gather": "vvn",
    "histogram": "vno",
    "assert": "vs",
    "promise": "vsN",
    "load": "vxxy vpy",
    "masked_load": "vvoxxy vvopy",
    "store": "vvxx vvp",
    "masked_store": "vvvxx vvvp",
    "atomic_load": "vvxx",
    "atomic_store atomic_cas": "vvvxx",
    "atomic_poll": "vvoxx",
    "atomic_rmw": "xvvvxx",
    "make_block_ptr": "vVVVNN",
    "advance": "vV",
    "tensor_pointer_load": "vNxxxy",
    "tensor_pointer_store": "vvNxx",
    "make_tensor_descriptor": "vVVNy vVVNyx",
    "descriptor_load": "vVxx vVp",
    "descriptor_store": "vvV",
    "descriptor_reduce": "xvvV",
    "descriptor_gather": "vvvt",
    "descriptor_scatter": "vvvv",
    "dot": "vvvxn",
    "dot_scaled": "voxvoxyyyv",
}
_ARGUMENTS = {name: kinds.split(" ") for names, kinds in _KINDS.items() for name in names.split()}
# What must be of one type, and of which kind.
_INTEGER = set(
    front_end.words("""
    add sub mul sdiv udiv srem urem and or xor shl lshr ashr maxsi maxui minsi minui umulhi iabs
""")
)
_FLOAT = set(
    front_end.words("""
    fadd fsub fmul fdiv fneg frem maxnumf minnumf maximumf minimumf exp exp2 log log2 sin cos sqrt rsqrt fabs floor
    ceil erf precise_divf approx_divf precise_sqrt fma clampf
""")
)


class BadProgram(ValueError):
    """Not the data of a program that Triton's front end makes."""


def _need(condition, what: str):
    if not condition:
        raise BadProgram(what)


# --- to data ---------------------------------------------------------------------------------------------


def to_data(program: Program) -> dict:
    """The program as lists, numbers and texts."""
    return _Writer().program(program)


class _Writer:
    def __init__(self):
        self.types: dict[Type, int] = {}
        self.rows: list[list] = []  # of the types
        self.constants: dict[Value, int] = {}
        self.made: list[list] = []  # the constants

    def program(self, program: Program) -> dict:
        functions = [self.function(each) for each in program.functions.values()]
        return {"files": program.files, "types": self.rows, "constants": self.made, "functions": functions}

    def type(self, type: Type | None) -> int | None:
        if type is None or type in self.types:
            return self.types.get(type)
        parts = [[self.type(each) for each in part] for part in type.parts]
        row = [type.kind, type.name, self.type(type.element), list(type.shape), parts, type.signed, type.space]
        self.rows.append(row)
        return self.types.setdefault(type, len(self.rows) - 1)

    def function(self, function: Function) -> dict:
        self.numbers: dict[Value, int] = {}
        self.blocks = {block: i for i, block in enumerate(function.region.blocks)}
        blocks = []
        for block in function.region.blocks:
            self.define(block.arguments)
            blocks.append([[self.type(each.type) for each in block.arguments], self.operations(block)])
        promises = [[i, name, value] for i, each in function.promises.items() for name, value in each.items()]
        head = {"name": function.name, "type": self.type(function.type), "public": function.visibility == "public"}
        return head | {"noinline": function.noinline, "promises": promises, "blocks": blocks}

    def define(self, values):
        for each in values:
            self.numbers[each] = len(self.numbers)

    def operations(self, block: Block) -> list[list]:
        return [self.operation(each) for each in block.operations]

    def operation(self, operation: Operation) -> list:
        """[name, arguments, line, regions, types, attributes]; what is empty at the end is left away."""
        kinds = _kinds(operation.name, len(operation.args))
        args = [self.argument(kind, each) for kind, each in zip(kinds, operation.args)]
        where = operation.location
        row = [operation.name, args, 0 if where == NOWHERE else [where.file, where.line], [], [], {}]
        for region in operation.regions:
            _need(len(region.blocks) == 1, f"a region of {operation.name} is not one block")
            self.define(region.blocks[0].arguments)
            row[3].append(self.operations(region.blocks[0]))
        if operation.name in ("if_op", "map_elementwise"):
            row[4] = [self.type(each.type) for each in operation.results]
        row[5] = operation.attributes
        self.define(operation.results)
        while not row[-1] and len(row) > 2:
            row.pop()
        return row

    def argument(self, kind: str, given):
        if kind.isupper():
            return [self.argument(kind.lower(), each) for each in given]
        if kind in "vo*":
            return None if given is None else self.value(given)
        if kind == "t":
            return self.type(given)
        if kind == "x":
            return None if given is None else f"{given.kind}.{given.name}"
        return self.blocks[given] if kind == "b" else given

    def value(self, value: Value) -> int:
        if value.constant is None:
            return self.numbers[value]
        if value not in self.constants:
            method, argument = value.constant
            if isinstance(argument, Type):
                argument = self.type(argument)
            elif isinstance(argument, float) and not math.isfinite(argument):
                argument = str(argument)  # JSON has none of these
            self.made.append([method, argument])
            self.constants[value] = -len(self.made)
        return self.constants[value]


def _kinds(name: str, count: int) -> str:
    for kinds in _ARGUMENTS.get(name, ()):
        if "*" in kinds:
            return "*" * count
        if len(kinds) == count:
            return kinds
    raise BadProgram(f"{name} of {count} arguments")


# --- from data -------------------------------------------------------------------------------------------


def from_data(data) -> Program:
    """The program that `to_data` made. Raises BadProgram for all else."""
    try:
        return _Reader(data).program
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, OverflowError) as error:
        raise error if isinstance(error, BadProgram) else BadProgram(f"{type(error).__name__}: {error}") from error


def _text(given) -> str:
    _need(type(given) is str and len(given) <= MAX_TEXT, "a text is none, or too long")
    return given


def _number(given, low: int = -(2**63), high: int = 2**64 - 1) -> int:
    _need(type(given) is int and low <= given <= high, "a number is none, or too large")
    return given


def _yes(given) -> bool:
    _need(type(given) is bool, "neither true nor false")
    return given


def _list(given, most: int = MAX_ITEMS) -> list:
    _need(type(given) is list and len(given) <= most, "a list is none, or too long")
    return given


class _Reader:
    def __init__(self, data):
        _need(type(data) is dict and set(data) == {"files", "types", "constants", "functions"}, "not a program")
        files = [_text(each) for each in _list(data["files"])]
        self.program = Program({}, files)
        self.types: list[Type] = []
        for row in _list(data["types"]):
            self.types.append(self.new_type(row))
        self.constants = [self.constant(*_list(row)) for row in _list(data["constants"], MAX_OPERATIONS)]
        self.count = 0
        heads = _list(data["functions"], MAX_FUNCTIONS)
        for head in heads:
            self.declare(head)
        _need(heads and self.program.kernel.visibility == "public", "no kernel")
        self.sizes: dict[str, int] = {}
        self.calls: dict[str, list[str]] = {}
        for head in heads:
            self.body(head)
        self.costs: dict[str, int | None] = {}
        for name in self.sizes:
            self.cost(name)

    # types and constants

    def type(self, number) -> Type:
        return self.types[_number(number, 0, len(self.types) - 1)]

    def new_type(self, row) -> Type:
        kind, name, element, shape, (inputs, outputs), signed, space = _list(row)
        element = None if element is None else self.type(element)
        parts = tuple(self.type(n) for n in _list(inputs)), tuple(self.type(n) for n in _list(outputs))
        shape = tuple(_number(n, 1) for n in _list(shape))
        made = Type(_text(kind), _text(name), element, shape, parts, _yes(signed), _number(space, 0, 9))
        _need(_is_type(made), f"{kind} {name} is no type")
        return made

    def constant(self, method, argument) -> Value:
        if method in ("get_null_value", "get_all_ones_value"):
            argument = type = self.type(argument)
            _need(type.scalar.kind in ("int", "float", "pointer"), "a constant of no number")
        else:
            type = _CONSTANTS[method]
            if type.kind == "float":
                argument = float(argument) if argument in ("inf", "-inf", "nan") else argument
                _need(isinstance(argument, float), "a constant of no number")
            else:
                _number(argument)
        return Value(type, (method, argument))

    # functions

    def declare(self, head):
        expected = {"name", "type", "public", "noinline", "promises", "blocks"}
        _need(type(head) is dict and set(head) == expected, "not a function")
        function = Function(_text(head["name"]), self.type(head["type"]))
        _need(function.type.kind == "function" and function.name not in self.program.functions, "not a function")
        function.visibility = "public" if _yes(head["public"]) else "private"
        function.noinline = _yes(head["noinline"])
        for number, name, value in _list(head["promises"]):
            _need(re.fullmatch(r"tt\.\w+", _text(name)), "not a promise")
            _number(number, 0, len(function.type.parts[0]) - 1)
            function.promises.setdefault(number, {})[name] = _number(value)
        self.program.functions[function.name] = function

    def body(self, head):
        self.function = function = self.program.functions[head["name"]]
        self.values: list[Value] = []
        self.homes: list[int] = []  # of each value: the block of the function, or the region (negative)
        self.regions, before_this = 0, self.count
        self.called = self.calls[function.name] = []
        rows = _list(head["blocks"], MAX_BLOCKS)
        _need(rows, "a function without a block")
        blocks = [Block(function.region) for _ in rows]
        before: list[list[int]] = [[] for _ in rows]  # the blocks that branch to each
        for block, (types, _) in zip(blocks, rows):
            block.arguments = [Value(self.type(n)) for n in _list(types)]
        _need([each.type for each in blocks[0].arguments] == list(function.type.parts[0]), "other parameters")
        dominators: list[set[int]] = []
        for i, (block, (_, operations)) in enumerate(zip(blocks, rows)):
            ways = [dominators[way] for way in before[i]]
            dominators.append({i} | (set.intersection(*ways) if ways else set(range(i))))
            self.open = dominators[i]
            self.define(block.arguments, i)
            self.operations(block, operations, i, 0)
            end = block.operations[-1] if block.operations else None
            _need(end and end.name in ("ret", "branch", "cond_branch"), "a block without an end")
            for target in end.args:
                if isinstance(target, int):
                    # Loops are operations of their own, so the front end branches forwards only.
                    _need(i < target < len(blocks), "a branch backwards")
                    before[target].append(i)
            end.args = [blocks[each] if isinstance(each, int) else each for each in end.args]
            self.branch_fits(end)
        self.sizes[function.name] = self.count - before_this

    def cost(self, name: str) -> int:
        """The operations of a function and of what it calls."""
        if name not in self.costs:
            self.costs[name] = None
            self.costs[name] = self.sizes[name] + sum(self.cost(callee) for callee in self.calls[name])
        cost = self.costs[name]
        _need(cost is not None, "a function that calls itself")
        _need(cost <= MAX_EXPANDED, "too many calls")
        return cost

    def branch_fits(self, end: Operation):
        if end.name == "ret":
            _same(end.args[0], self.function.type.parts[1])
        elif end.name == "branch":
            _same(end.args[1], [each.type for each in end.args[0].arguments])
        else:
            _need(end.args[0].type == front_end.BOOL, "a condition of another type")
            _need(not end.args[1].arguments and not end.args[2].arguments, "a branch without arguments")

    def define(self, values: list[Value], home: int):
        self.values += values
        self.homes += [home] * len(values)

    # operations

    def operations(self, block: Block, rows, home: int, depth: int):
        _need(depth <= MAX_DEPTH, "too deep")
        for row in _list(rows, MAX_OPERATIONS):
            self.count += 1
            _need(self.count <= MAX_OPERATIONS, "too many operations")
            ended = block.operations and block.operations[-1].name in TERMINATORS
            _need(not ended, "an operation after the end")
            block.operations.append(self.operation(row, home, depth))

    def operation(self, row, home: int, depth: int) -> Operation:
        defaults = [None, None, 0, [], [], {}]
        name, args, where, regions, types, attributes = row + defaults[len(_list(row, len(defaults))) :]
        args = [self.argument(k, each) for k, each in zip(_kinds(_text(name), len(_list(args))), args)]
        _need(home >= 0 or name not in ("ret", "branch", "cond_branch"), "a branch out of a region")
        if where != 0:
            where = Location(_number(where[0], 0, len(self.program.files) - 1), _number(where[1], 0))
        if name == "call":
            callee = self.program.functions[args[0]]
            self.called.append(callee.name)
            _same(args[1], callee.type.parts[0])
            results = list(callee.type.parts[1])
        elif name in ("if_op", "map_elementwise"):
            results = [self.type(n) for n in _list(types)]
        else:
            _need(not types, "types that are known")
            results = front_end.results(name, args)
        _need(all(_is_type(each) for each in results), f"{name} of these types")
        made = Operation(name, args, results, where or NOWHERE)
        _fits(made)
        _need(type(attributes) is dict and (name in ("for_op", "while_op") or not attributes), "attributes")
        for key, (method, *numbers) in attributes.items():
            _need(re.fullmatch(r"(tt|llvm)\.\w+", key) and len(numbers) == _ATTRIBUTES[method], "attributes")
            made.attributes[key] = [method, *map(_number, numbers)]
        _need(len(_list(regions)) == REGIONS.get(name, 0), "regions")
        for rows, inputs in zip(regions, _region_inputs(made) if regions else []):
            self.region(made, rows, inputs, depth)
        self.define(made.results, home)
        return made

    def region(self, owner: Operation, rows, inputs: list[Type], depth: int):
        owner.regions.append(Region())
        block = Block(owner.regions[-1])
        block.arguments = [Value(each) for each in inputs]
        self.regions -= 1
        home = self.regions
        self.open.add(home)
        self.define(block.arguments, home)
        self.operations(block, rows, home, depth + 1)
        self.open.remove(home)
        end = block.operations[-1] if block.operations else Operation("yield_op", [[]], [])
        expected, types = _region_end(owner, len(owner.regions) - 1)
        if end.name not in TERMINATORS and not types:
            end = Operation(expected, [[]], [])
        _need(end.name == expected, f"{owner.name} with {end.name} at its end")
        given = end.args if expected in ("reduce_ret", "scan_ret") else end.args[-1]
        _same(given, types)

    def argument(self, kind: str, given):
        if kind.isupper():
            return [self.argument(kind.lower(), each) for each in _list(given)]
        if kind in "vo*":
            return None if kind == "o" and given is None else self.value(given)
        if kind == "t":
            return self.type(given)
        if kind == "x" and given is not None:
            group, _, name = _text(given).partition(".")
            _need(name in ENUMERATIONS[group], f"no {given}")
            return Enum(group, name)
        if kind == "p":
            _need(len(_list(given)) == 3 and given[0] == "get_cache_policy", "no cache policy")
            return [_text(each) for each in given]
        check = {"n": _number, "b": _number, "y": _yes, "s": _text}.get(kind)
        return check(given) if check else None

    def value(self, number) -> Value:
        if _number(number, -len(self.constants), len(self.values) - 1) < 0:
            return self.constants[-1 - number]
        _need(self.homes[number] in self.open, "a value that is not defined here")
        return self.values[number]


# --- what fits together ----------------------------------------------------------------------------------


def _same(values: list[Value], types):
    _need([each.type for each in values] == list(types), "values of other types")


def _is_type(type: Type) -> bool:
    """Whether Triton has such a type."""
    bare = type.element is None and not type.shape
    if type.kind != "function" and type.parts != ((), ()):
        return False
    if type.kind == "int":
        return bare and type.name in _INTEGERS
    if type.kind == "float":
        return bare and type.name in _FLOATS
    if type.name or type.kind in ("void", "function"):
        return bare and not type.name and all(each.kind not in ("void", "function") for p in type.parts for each in p)
    if type.element is None or type.element.kind not in ("int", "float", "pointer", "block"):
        return False
    if type.kind == "pointer":  # to a number, to a pointer, to a block (Triton 3.4 to 3.7) or to a block of pointers
        inner = type.element.scalar
        return not type.shape and (inner.kind != "pointer" or inner.element.kind in ("int", "float"))
    if type.kind not in ("block", "descriptor") or type.element.kind == "block" or not 0 < len(type.shape) <= 25:
        return False
    return all(n > 0 and n & (n - 1) == 0 for n in type.shape) and math.prod(type.shape) <= MAX_ELEMENTS


def _region_inputs(operation: Operation) -> list[list[Type]]:
    """The types of the arguments of each region's block."""
    name, args = operation.name, operation.args
    if name == "for_op":
        return [[args[0].type, *(each.type for each in args[3])]]
    if name == "while_op":
        return [[each.type for each in args[0]]] * 2
    if name == "if_op":
        return [[], []]
    scalars = [each.type.scalar for each in args[0]]
    if name == "map_elementwise":
        return [[each for each in scalars for _ in range(_number(args[1], 1, 64))]]
    return [scalars * 2]


def _region_end(operation: Operation, number: int) -> tuple[str, list[Type]]:
    """The name of the last operation of a region, and the types that it hands over."""
    types = [each.type for each in operation.results]
    if operation.name == "while_op" and number == 0:
        return "condition_op", types
    if operation.name in ("for_op", "if_op", "while_op"):
        return "yield_op", types
    if operation.name == "map_elementwise":
        return "map_elementwise_ret", [each.scalar for each in types for _ in range(operation.args[1])]
    return operation.name + "_ret", [each.type.scalar for each in operation.args[0]]


def _fits(operation: Operation):
    """That the types of the arguments suit an operation. What is not here is looked at where it runs."""
    name, args = operation.name, operation.args
    types = [each.type for each in args if isinstance(each, Value)]
    shapes = [each.shape for each in types if each.kind == "block"]
    first = types[0] if types else None
    if name in _INTEGER or name in _FLOAT or name.startswith(("icmp", "fcmp")):
        kinds = ("int", "pointer") if name.startswith("icmp") else ("int",) if name in _INTEGER else ("float",)
        _need(first.scalar.kind in kinds and types == [first] * len(types), f"{name} of these types")
    elif name == "addptr":
        _need(types[1].scalar.kind == "int", f"{name} of these types")
    elif name == "select":
        _need(types[1] == types[2] and first.scalar == front_end.BOOL, f"{name} of these types")
    elif name in ("load", "masked_load", "store", "masked_store", "atomic_load", "atomic_store", "atomic_rmw",
                  "atomic_cas", "atomic_poll"):  # fmt: skip
        element = first.scalar.element
        _need(first.scalar.kind == "pointer" and element.kind != "block", f"{name} of no pointer")
        valued = 1 if name not in ("load", "masked_load", "atomic_load") else 2
        for each in types[valued:]:
            _need(each.scalar in (element, front_end.BOOL), f"{name} of these types")
    elif name == "splat":
        _need(args[0].kind == "block" and args[0].element == first, f"{name} of these types")
    elif name == "make_range":
        _need(args[0].shape == (args[2] - args[1],), f"{name} of these numbers")
    elif name == "reshape":
        _need(math.prod(first.shape) == math.prod(args[1]), f"{name} to another size")
    elif name == "trans":
        _need(sorted(args[1]) == list(range(len(first.shape))), f"{name} in this order")
    elif name == "broadcast":
        fits = len(first.shape) == len(args[1]) and all(a in (1, b) for a, b in zip(first.shape, args[1]))
        _need(first.kind == "block" and fits, f"{name} to this shape")
    elif name == "expand_dims":
        _need(0 <= args[1] <= len(first.shape), f"{name} of this axis")
    elif name in ("reduce", "scan"):
        operands = [each.type for each in args[0]]
        _need(operands and 0 <= args[1] < len(operands[0].shape), f"{name} of this axis")
        _need(all(each.shape == operands[0].shape for each in operands), f"{name} of these shapes")
    elif name == "map_elementwise":
        each = [*args[0], *operation.results]
        _need(args[0] and all(one.type.shape == args[0][0].type.shape for one in each), f"{name} of these shapes")
    elif name == "for_op":
        _need(first.kind == "int" and types == [first] * 3, f"{name} of these types")
    elif name in ("if_op", "condition_op"):
        _need(first == front_end.BOOL, f"{name} of this type")
    elif name in ("get_program_id", "get_num_programs"):
        _need(args[0] in (0, 1, 2), f"{name} of this axis")
    elif name == "promise":
        _need(args[1] in _PROMISES and len(args[2]) == max(1, len(first.shape)), "an unknown promise")
    if name in _INTEGER or name in _FLOAT or name in ("addptr", "load", "masked_load", "store", "masked_store"):
        _need(len(set(shapes)) <= 1 and len(shapes) in (0, len(types)), f"{name} of these shapes")
