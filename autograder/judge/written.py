"""What a learner's source says where a program has an operation: names of values, and a changed line.

An operation is found in the source by its line and by what it is written as: the second `+` of a line is the second
operation of this line that `+` makes, if the line has as many of the one as of the other.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Iterator

from workshop.executor.changes import Change, called
from workshop.executor.program import Operation, Program, blocks_of

MOST = 120  # characters of code in a message
_ORDERS = {"LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "==", "NE": "!="}
_SYMBOLS = {"+": "add fadd addptr", "-": "sub fsub", "*": "mul fmul", "/": "fdiv precise_divf", "//": "sdiv udiv",
            "%": "srem urem frem", "&": "and", "|": "or", "maximum": "maxnumf maximumf maxsi maxui",
            "minimum": "minnumf minimumf minsi minui", "where": "select", "load": "load masked_load",
            "store": "store masked_store", "program_id": "get_program_id", "arange": "make_range",
            "cast": "int_cast"}  # fmt: skip
WRITTEN = {name: symbol for symbol, names in _SYMBOLS.items() for name in names.split()}
_CODE = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&",
         ast.BitOr: "|", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
         ast.NotEq: "!="}  # fmt: skip
_WITH = {  # what is written, where the new text is not known
    "order": "with its operands in the other order",
    "combine": "as another reduction",
    "along": "along the other axis",
    "from_0": "beginning at 0",
    "axis": "along another axis",
    "turn": "along the other axis",
    "transposed": "with rows and columns exchanged",
    "unmask": "without its mask",
    "mask": "with a mask",
    "other": "with a value for masked-off lanes",
    "uncast": "without the cast",
}


class Written:
    """A source. Raises SyntaxError, ValueError, RecursionError or MemoryError for what is no Python."""

    def __init__(self, source: str):
        self.variables: dict[int, str] = {}
        self.loops: dict[int, list[str]] = {}
        self.statements: dict[int, ast.stmt] = {}  # by line, the innermost
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                self._read(node.body, [each.arg for each in node.args.args])

    def _read(self, body: list[ast.stmt], known: list[str]) -> None:
        for each in body:
            inner = [part for name in ("body", "orelse") for part in getattr(each, name, [])]
            end = inner[0].lineno - 1 if inner else each.end_lineno
            self.statements |= dict.fromkeys(range(each.lineno, end + 1), each)
            if isinstance(each, ast.For) and isinstance(each.target, ast.Name):
                stored = set(_stored(each))
                self.loops[each.lineno] = [each.target.id, *(name for name in known if name in stored)]
                self._read(each.body, list(dict.fromkeys([*known, each.target.id])))
                continue
            if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and each.value:
                target = each.targets[0] if isinstance(each, ast.Assign) else each.target
                if isinstance(target, ast.Name):
                    self.variables[each.value.lineno] = target.id
            self._read(inner, known)
            known += [name for name in _stored(each) if name not in known]

    def told(self, program: Program, change: Change) -> tuple[int, str, str]:
        """The line of a change, what is wrong in it, and what to write there."""
        line, old, new = change.line, None, None
        if change.name == "for_op" and change.what in ("number", "value"):
            line, new = self._first_value(change)
        else:
            old, new = self._changed(program, change)
            whole = _header(self.statements[line]) if line in self.statements else None
            if old is not None and new is not None and ast.unparse(whole).count(ast.unparse(old)) > 1:
                old, new = None, copy.deepcopy(whole, {id(old): new})
        old, new = (ast.unparse(each) if each is not None else "" for each in (old, new))
        means = f"`{old}` is the mistake" if 0 < len(old) <= MOST else "The mistake is in this line"
        advice = f"write `{new}`." if 0 < len(new) <= MOST else f"{_in_words(change)}."
        return line, f"{means}: with one change there, all cases are right.", advice

    def _first_value(self, change: Change) -> tuple[int, ast.stmt | None]:
        """Of a loop's variable: the line that gives it its first value, and what should stand there."""
        _, j, *more = change.more
        names = self.loops.get(change.line, [])
        name = names[j + 1] if j is not None and j + 1 < len(names) else ""
        lines = [line for line, variable in self.variables.items() if variable == name and line < change.line]
        if not lines:
            return change.line, None
        statement = copy.deepcopy(self.statements[max(lines)])
        if change.what == "value":
            statement.value = ast.Name(more[1])
        elif isinstance(statement.value, ast.Call) and getattr(statement.value.func, "attr", "") == "zeros":
            statement.value.func.attr = "full"
            statement.value.args.insert(1, _literal(more[1]))
        elif (constant := _only(_constants(statement.value, more[0]))) is not None:
            statement = copy.deepcopy(statement, {id(constant): _literal(more[1])})
        else:
            return max(lines), None
        return max(lines), statement

    def _changed(self, program: Program, change: Change) -> tuple[ast.AST | None, ast.AST | None]:
        """What a change is about, and what should stand there; None where that is not known."""
        statement = self.statements.get(change.line)
        if statement is None:
            return None, None
        root = _header(statement)
        if change.what == "everywhere":
            return None, copy.deepcopy(root, {id(n): ast.Name(change.more[1]) for n in _names(root, change.more[0])})
        node = self._node(program, change, root)
        make = getattr(self, f"_{change.what}")
        if change.what in ("number", "value", "of", "operand", "turn", "uncast"):
            found = _only(make(node or root, change)) or (node and _only(make(root, change)))
            if not found:
                return node, None
            old, new = found
            whole = node if isinstance(node, ast.expr) else root
            return (whole if isinstance(whole, ast.expr) else None), copy.deepcopy(whole, {id(old): new})
        whole = change.what in ("put", "with", "where") and isinstance(statement, ast.Assign)
        if node is None and whole and change.more[0] not in ("add", "sub", "mul", "sdiv"):  # in parts of addresses
            node = statement.value
        new = None if node is None else make(node, change)
        return node, new

    def _node(self, program: Program, change: Change, root: ast.AST) -> ast.AST | None:
        """The part of a statement that an operation is written as."""
        for function in program.functions.values():
            operations = [o for b in blocks_of(function.region) for o in b.operations if o.location.line == change.line]
            named = [o for o in operations if o.name == change.name]
            if len(named) > change.number and operations[0].location.file:
                each = named[change.number]
                made = [o for o in operations if written_as(o) == written_as(each)]
                nodes = [n for n in _in_order(root) if _symbol(n) == written_as(each) and n.lineno == change.line]
                return nodes[made.index(each)] if len(nodes) == len(made) else None
        return None

    # -- what should stand there, by kind of change: of a node, or the parts that are exchanged

    def _name(self, node: ast.AST, change: Change) -> ast.AST | None:
        return _operation(written(change.more[0]), _operands(node), node)

    def _order(self, node: ast.AST, change: Change) -> ast.AST | None:
        operands = _operands(node)
        if isinstance(node, ast.Call) and len(node.args) == 3:
            return ast.Call(node.func, [node.args[0], node.args[2], node.args[1]], node.keywords)
        return _operation(_symbol(node), operands[::-1], node)

    def _combine(self, node: ast.AST, change: Change) -> ast.AST | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        return ast.Call(ast.Attribute(node.func.value, change.more[0], ast.Load()), node.args, node.keywords)

    def _along(self, node: ast.AST, change: Change) -> ast.AST | None:
        found = _only([n for n in ast.walk(node) if isinstance(n, ast.Constant) and n.value in (0, 1)])
        return None if found is None else copy.deepcopy(node, {id(found): ast.Constant(1 - found.value)})

    def _from_0(self, node: ast.AST, change: Change) -> ast.AST | None:
        first, end = node.args if isinstance(node, ast.Call) and len(node.args) == 2 else (None, None)
        if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add):  # start + a size, or a size + start
            sides = [end.left, end.right]
            others = [each for each in sides if ast.dump(each) != ast.dump(first)]
            end = others[0] if len(others) == 1 else None
        elif _number_of(end) is not None and _number_of(first) is not None:
            end = ast.Constant(_number_of(end) - _number_of(first))
        else:
            end = None
        return end and ast.Call(node.func, [ast.Constant(0), end], [])

    def _less(self, node: ast.AST, change: Change) -> ast.AST | None:
        if not (isinstance(node, ast.Call) and len(node.args) == 1):
            return None
        return ast.Call(node.func, [ast.BinOp(node.args[0], ast.Sub(), ast.Name(change.more[0]))], [])

    def _axis(self, node: ast.AST, change: Change) -> ast.AST | None:
        return ast.Call(node.func, [ast.Constant(change.more[0])], [])

    def _unmask(self, node: ast.AST, change: Change) -> ast.AST | None:
        return ast.Call(node.func, node.args, [each for each in node.keywords if each.arg not in ("mask", "other")])

    def _mask(self, node: ast.AST, change: Change) -> ast.AST | None:
        return ast.Call(node.func, node.args, [ast.keyword("mask", ast.Name(change.more[0])), *node.keywords])

    def _other(self, node: ast.AST, change: Change) -> ast.AST | None:
        return ast.Call(node.func, node.args, [*node.keywords, ast.keyword("other", _literal(change.more[0]))])

    def _skip(self, node: ast.AST, change: Change) -> ast.AST | None:
        parts = node.args if isinstance(node, ast.Call) else _operands(node)
        if len(parts) <= change.more[0]:
            return None
        part = parts[change.more[0]]
        return ast.fix_missing_locations(ast.Assign([node.target], part)) if isinstance(node, ast.AugAssign) else part

    def _put(self, node: ast.AST, change: Change) -> ast.AST | None:
        return _call(change.more[0], [node]) if isinstance(node, ast.expr) else None

    def _transposed(self, node: ast.AST, change: Change) -> ast.AST | None:
        return _call("trans", [node]) if isinstance(node, ast.expr) else None

    def _with(self, node: ast.AST, change: Change) -> ast.AST | None:
        operation, label, _ = change.more
        if isinstance(node, ast.AugAssign):
            return None
        return _operation(written(operation), [node, ast.Name(label)], node)

    def _where(self, node: ast.AST, change: Change) -> ast.AST | None:
        return (
            _call("where", [ast.Name(change.more[0]), node, ast.Constant(0.0)]) if isinstance(node, ast.expr) else None
        )

    def _number(self, node: ast.AST, change: Change) -> list[tuple]:
        i, _, old, new = change.more
        return [(each, _literal(new)) for each in _given(node, i) or _constants(node, old)]

    def _value(self, node: ast.AST, change: Change) -> list[tuple]:
        i, _, old, new, _ = change.more
        found = _constants(node, old) if not isinstance(old, str) else _names(node, old)
        return [(each, ast.Name(new)) for each in _given(node, i) or found]

    def _of(self, node: ast.AST, change: Change) -> list[tuple]:
        i, function, name = change.more
        return [(each, _call(function, [each])) for each in _given(node, i) or _names(node, name)]

    def _operand(self, node: ast.AST, change: Change) -> list[tuple]:
        _, _, operation, name, other, _ = change.more
        return [(n, _operation(written(operation), [n, ast.Name(other)], n)) for n in _names(node, name)]

    def _turn(self, node: ast.AST, change: Change) -> list[tuple]:
        found = [n for n in ast.walk(node) if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Tuple)]
        return [(n, ast.Subscript(n.value, ast.Tuple(n.slice.elts[::-1]))) for n in found]

    def _uncast(self, node: ast.AST, change: Change) -> list[tuple]:
        return [(n, n.func.value) for n in ast.walk(node) if isinstance(n, ast.Call) and _symbol(n) == "to"]


def written(name: str) -> str:
    """What an operation of this name is written as."""
    return _ORDERS[name[-2:]] if name[:4] in ("icmp", "fcmp") else WRITTEN.get(name, name)


def written_as(operation: Operation) -> str:
    return called(operation) if operation.name == "call" else written(operation.name)


def _in_words(change: Change) -> str:
    if change.what == "name":
        return f"take `{written(change.more[0])}` in the place of `{written(change.name)}`"
    if change.what in ("number", "value", "everywhere"):
        old, new = change.more[:2] if change.what == "everywhere" else change.more[2:4]
        return f"take `{new}` in the place of `{old}`"
    if change.what == "less":
        return f"subtract {change.more[0]} before `{written(change.name)}`"
    if change.what == "operand":
        _, _, operation, name, other, _ = change.more
        return f"take `{name} {written(operation)} {other}` in the place of `{name}`"
    if change.what == "with":
        return f"add `{written(change.more[0])} {change.more[1]}`"
    if change.what == "where":
        return f"add `tl.where({change.more[0]}, …, 0.0)`"
    if change.what in ("put", "of"):
        return f"add `tl.{change.more[0 if change.what == 'put' else 1]}`"
    if change.what == "skip":
        return f"leave out `{written(change.name)}`"
    return f"try it {_WITH[change.what]}"


def _stored(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _header(statement: ast.stmt) -> ast.AST:
    """A statement without the statements inside."""
    parts = {"For": "iter", "If": "test", "While": "test"}
    return getattr(statement, parts.get(type(statement).__name__, ""), statement)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node in the order in which they are computed, and then itself."""
    for each in ast.iter_child_nodes(node):
        yield from _in_order(each)
    if hasattr(node, "lineno"):
        yield node


def _symbol(node: ast.AST) -> str:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return _CODE.get(type(node.op), "")
    if isinstance(node, ast.Compare):
        return _CODE.get(type(node.ops[0]), "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _number_of(node) is None:
        return "-"
    return getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.AugAssign):
        return [ast.Name(node.target.id), node.value] if isinstance(node.target, ast.Name) else []
    return list(node.args) if isinstance(node, ast.Call) else []


def _operation(symbol: str, operands: list[ast.expr], old: ast.AST) -> ast.AST | None:
    """An operation as code, in the place of an old one."""
    names = {code: kind for kind, code in _CODE.items()}
    if symbol not in names:
        made = _call(symbol, operands) if operands else None
    elif len(operands) != 2:
        return None
    elif issubclass(names[symbol], ast.cmpop):
        made = ast.Compare(operands[0], [names[symbol]()], [operands[1]])
    else:
        made = ast.BinOp(operands[0], names[symbol](), operands[1])
    if isinstance(old, ast.AugAssign) and made is not None:
        return ast.fix_missing_locations(ast.Assign([old.target], made))
    return made


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("tl"), name), arguments, [])


def _literal(number: float) -> ast.expr:
    text = repr(number) if math.isfinite(number) else f'{"-" * (number < 0)}float("inf")'
    return ast.parse(text, mode="eval").body


def _number_of(node: ast.AST) -> float | None:
    """The number that a literal is: 1, -1, float("-inf")."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number_of(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "float" and len(node.args) == 1:
        text = getattr(node.args[0], "value", None)
        return float(text) if text in ("inf", "-inf") else None
    return None


def _given(node: ast.AST, i: int) -> list[ast.expr]:
    """The operand of that number, if it is a name or a number."""
    return [each for each in _operands(node)[i : i + 1] if isinstance(each, (ast.Name, ast.Constant))]


def _names(node: ast.AST, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]


def _constants(node: ast.AST, number: float) -> list[ast.AST]:
    """The outermost literals of a node that are this number."""
    value = _number_of(node)
    if value is not None:
        return [node] if value == number else []
    return [found for each in ast.iter_child_nodes(node) for found in _constants(each, number)]


def _only(found: list):
    return found[0] if len(found) == 1 else None
