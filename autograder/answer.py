"""Extracts the learner's source from a notebook or a session's history: one Python source per exercise.

A notebook holds more than an answer: prints, plots, measurements, older attempts. This module keeps a slice of its
statements: the last definition of the exercise's function and everything that it needs, transitively, in the order
of execution. It executes nothing, because the notebook is not trusted.
"""

import ast
import hashlib
import io
import operator
import re
import symtable
import threading
import tokenize
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

MAX_CELL = 60_000  # characters of one cell that are read
MAX_TOTAL = 500_000  # characters of all cells together
MAX_STATEMENTS = 5_000
BLANK = "your code here"  # what a starter says where something is missing
MAX_STEPS = 200_000  # of the search for the names that a function needs

_NOT_PARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
# a line magic, a shell line, or an assignment from one of them; then: cell magics whose body is Python
_MAGIC = re.compile(r"(\?|([\w, ]+=\s*)?(%%?\w|![^=])).*|.*\w\?{1,2}")
_PYTHON_CELL_MAGIC = re.compile(r"\s*%%(time|timeit|capture|prun)\b")


def from_notebook(nb: dict, exercise) -> str | None:
    """The source of one exercise in a notebook; None if it has no answer. Its sources are texts, as in `submission`.

    The answer is in the cells whose nbgrader grade_id is the exercise's name. Split cells count together. A copy that
    is still the released starter counts only if there is no other cell. Names that these cells do not define are
    looked up in the other code cells. If they do not define the exercise's function, everything is, but not in the
    answer of another exercise: two exercises may ask for functions of one name. An answer that is not Python is
    returned unchanged, so that the judge can report the line.
    """
    marked, others = _cells_of(nb, exercise.name)
    changed = [text for text, is_released in marked if not is_released]
    free = [text for text, is_answer in others if not is_answer]
    for own in (changed, [text for text, _ in marked]):
        parts = _parts(own)
        if _slice(parts, exercise.entry):
            before = [text for text, _ in others]
        elif any(not _read(text).is_python for text in own):
            return "\n".join(own)
        elif _slice([*free, *parts], exercise.entry):
            before = [*(text for text, is_answer in others if is_answer), *free]
        else:
            continue
        if source := _slice([*before, *parts], exercise.entry, own=len(parts)):
            return source
    return "\n".join(changed) or None


def from_history(cells: list[str], entry: str) -> str:
    """The source that defines the function `entry`, from cells in their order of execution; "" if none defines it.

    If the last definition is not valid Python, the raw text of its cell is returned.
    """
    texts = _capped(text for text in cells if isinstance(text, str))
    definition = re.compile(rf"^[^\S\n]*def\s+{re.escape(entry)}\b", re.MULTILINE)
    latest = next((text for text in reversed(texts) if definition.search(text)), "")
    return _slice(texts, entry) if _read(latest).is_python else latest


def without_comments(source: str) -> str:
    """A source without its comments; each line keeps its number. A text that is no Python comes back as it is."""
    lines = source.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column].rstrip()
    except (SyntaxError, tokenize.TokenError):
        return source
    return "\n".join(lines).rstrip() + "\n"


def is_starter(source: str, starter: str, entry: str) -> bool:
    """Whether `source` still has every statement of the starter that the function `entry` needs, unchanged."""
    own, released = (_dumped(from_history([text], entry)) for text in (source, starter))
    return bool(released) and released <= own


def unfilled(source: str, starter: str, entry: str) -> str:
    """The first function of the starter that `entry` needs, and that is as it was released, blanks included; or ""."""
    own = _dumped(from_history([source], entry))
    for statement in _statements(starter):
        name = getattr(statement, "name", "")
        if name and ast.dump(statement) in own and BLANK in (ast.get_source_segment(starter, statement) or ""):
            return name
    return ""


def _dumped(source: str) -> set[str]:
    return set(map(ast.dump, _statements(source)))


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except _NOT_PARSED:
        return []


def line_with_dots(source: str, entry: str) -> int | None:
    """The first line with `...` in the place of code, among what `entry` needs; None if there is none."""
    nodes = (node for statement in _statements(from_history([source], entry)) for node in ast.walk(statement))
    parts = (part for node in nodes for part in _parts_of_code(node))
    return min((p.lineno for p in parts if isinstance(p, ast.Constant) and p.value is ...), default=None)


def _parts_of_code(node: ast.AST) -> list[ast.expr | None]:
    """Where `...` stands for missing code. Indices such as x[..., 0], annotations and empty branches are no gaps."""
    match node:
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return():
            return [node.value]
        case ast.FunctionDef() | ast.For() | ast.While() | ast.With():
            return [statement.value for statement in node.body if isinstance(statement, ast.Expr)]
        case ast.Call():
            return [*node.args, *(keyword.value for keyword in node.keywords)]
    return []


def is_python(text: str) -> bool:
    """Whether a cell can be parsed, apart from its magics."""
    return _read(text[:MAX_CELL]).is_python


# -- cells of a notebook ----------------------------------------------------------------------------------


def _cells_of(nb: dict, name: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """An exercise's cells as (text, unchanged since the release); the other code cells as (text, another's answer)."""
    marked: dict[str, bool] = {}
    others = []
    for cell in nb["cells"]:
        text, about = cell["source"][:MAX_CELL], cell["metadata"].get("nbgrader", {})
        grade_id = about.get("grade_id", "")
        if grade_id == name:
            marked[text] = about.get("checksum") == _released_checksum(text, name)
        elif text and cell["cell_type"] == "code":
            others.append((text, bool(grade_id) and not grade_id.startswith("check-")))
    kept = len(_capped(text for text, _ in others))
    return [(text, marked[text]) for text in _capped(marked)], others[len(others) - kept :]


def _released_checksum(text: str, grade_id: str) -> str:
    """nbgrader's checksum of an answer cell: its source, type, (grade, solution, locked) and grade_id."""
    parts = (text, "code", "False", "True", "False", grade_id)
    return hashlib.md5("".join(parts).encode(errors="replace"), usedforsecurity=False).hexdigest()


def _capped(texts: Iterable[str]) -> list[str]:
    """The last cells that fit into MAX_TOTAL, each cut at MAX_CELL, in the same order."""
    kept, room = [], MAX_TOTAL
    for text in reversed([text[:MAX_CELL] for text in texts]):
        room -= len(text)
        if room < 0:
            break
        kept.append(text)
    return kept[::-1]


def _parts(own: list[str]) -> list[str]:
    """The answer cells one by one, or joined if the learner split a function between two cells."""
    readable = [text for text in own if _read(text).is_python]
    joined = "\n".join(own)
    return [joined] if len(readable) < len(own) and _read(joined).is_python else readable


# -- statements -------------------------------------------------------------------------------------------


@dataclass
class _Statement:
    text: str  # unparsed: no comments, one line if it is a simple statement
    first: int  # lines in its cell, from 1; decorators belong to it
    last: int
    lines: list[str]  # these lines, or the text where another statement is on them
    is_definition: bool  # def, class or import
    binds: set[str] = field(default_factory=set)  # names it defines
    rebinds: set[str] = field(default_factory=set)  # names it may define, or defines from their old value
    touches: set[str] = field(default_factory=set)  # names of objects that it may change: x[0] = …, x.append(…)
    now: set[str] = field(default_factory=set)  # names it uses when it runs
    later: set[str] = field(default_factory=set)  # names its functions use when they are called

    @property
    def stored(self) -> set[str]:
        return self.binds | self.rebinds


@dataclass
class _Cell:
    lines: list[str]  # without magics
    statements: list[_Statement]
    is_python: bool = True


# Python 3.11 counts the nesting of every thread's tree together, and may raise SystemError where two threads parse.
_PARSING = threading.Lock()


@lru_cache(maxsize=512)  # every check reads the history again
def _read(text: str) -> _Cell:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].lstrip().startswith("%%"):
        if not _PYTHON_CELL_MAGIC.match(lines[0]):
            return _Cell([], [])
        lines[0] = ""
    without_magics = ["" if _MAGIC.fullmatch(line.strip()) else line for line in lines]
    for attempt in (lines, without_magics):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with _PARSING:
                    tree = ast.parse("\n".join(attempt))
                    return _Cell(attempt, [_statement(node, attempt) for node in tree.body[:MAX_STATEMENTS]])
        except _NOT_PARSED:
            continue
    return _Cell(lines, [], is_python=False)


def _statement(node: ast.stmt, lines: list[str]) -> _Statement:
    text, tail = ast.unparse(node), lines[node.end_lineno - 1].encode()[node.end_col_offset :].strip()
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    alone = node.col_offset == 0 and tail[:1] in (b"", b"#")
    found = _Statement(
        text=text,
        first=first,
        last=node.end_lineno,
        lines=lines[first - 1 : node.end_lineno] if alone else [text],
        is_definition=isinstance(node, (*_FUNCTIONS, ast.Import, ast.ImportFrom)),
        touches=set(_touched(node)),
    )
    if any(isinstance(part, _COMPREHENSIONS) for part in ast.walk(node)):
        text = ast.unparse(_OwnScopes().visit(ast.parse(text)))
    table = symtable.symtable(text, "cell", "exec")
    stored = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        stored = {"*"}
    if found.is_definition or isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and node.value):
        found.binds = stored
    elif not isinstance(node, ast.Delete):
        found.rebinds = stored
    found.rebinds = found.rebinds | set(_completed(node))
    operators = set(_operators(node))
    if any(name.endswith("_op") for name in _calls(node)):  # torch.library.custom_op and triton_op
        found.binds |= operators
        found.later |= found.binds  # what is registered for one of its names
    elif any(name.startswith("register_") for name in _calls(node)):
        found.rebinds |= operators
    _collect_uses(table, found, deferred=False)
    found.later |= operators
    if not found.is_definition:
        found.now |= found.later
    return found


class _OwnScopes(ast.NodeTransformer):
    """Gives comprehensions their own scopes: Python 3.12 puts their variables into the enclosing scope."""

    def _generator(self, node):
        self.generic_visit(node)
        element = ast.Tuple([node.key, node.value], ast.Load()) if isinstance(node, ast.DictComp) else node.elt
        return ast.copy_location(ast.GeneratorExp(element, node.generators), node)

    visit_ListComp = visit_SetComp = visit_DictComp = _generator


def _collect_uses(table: symtable.SymbolTable, found: _Statement, deferred: bool) -> None:
    module = table.get_type() == "module"
    used = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (module or s.is_global())}
    (found.later if deferred else found.now).update(used)
    for child in table.get_children():
        called_later = child.get_type() == "function" and child.get_name() != "genexpr"
        _collect_uses(child, found, deferred or called_later)


def _completed(node: ast.stmt) -> Iterable[str]:
    """The function whose definition a statement completes: `f.defvjp(forward, backward)`, or `f.register_fake(g)`.

    That may be the decorator of another function.
    """
    for part in [node.value] if isinstance(node, ast.Expr) else getattr(node, "decorator_list", []):
        match part:
            case ast.Call(ast.Attribute(ast.Name(name), method)) | ast.Attribute(ast.Name(name), method):
                if method.startswith(("def", "register_")):
                    yield name


def _calls(node: ast.stmt) -> Iterable[str]:
    """The last names of the functions that a statement calls itself, or has as decorators."""
    parts = getattr(node, "decorator_list", [getattr(node, "value", None)])
    for part in (part.func for part in parts if isinstance(part, ast.Call)):
        yield getattr(part, "attr", getattr(part, "id", ""))


def _operators(node: ast.stmt) -> Iterable[str]:
    """Operators of torch that a statement names: "library::name", or torch.ops.library.name."""
    for inner in ast.walk(node):
        match inner:
            case ast.Constant(str(text)) if re.fullmatch(r"[\w.]+::\w+", text):
                yield text
            case ast.Attribute(ast.Attribute(ast.Attribute(ast.Name("torch"), "ops"), library), name):
                yield f"{library}::{name}"


def _touched(node: ast.stmt) -> Iterable[str]:
    """Names of objects that a statement outside a function changes in place."""
    if isinstance(node, _FUNCTIONS):
        return
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                target = inner
            case ast.Expr(ast.Call(ast.Attribute() as target)):
                pass
            case _:
                continue
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


# -- slicing ----------------------------------------------------------------------------------------------


def _slice(texts: list[str], entry: str, own: int = 0) -> str:
    """One source from cells: everything that `entry` needs. "" if it is not defined.

    The lines of the last `own` cells keep their numbers if there is room. Without `own`, the lines of the cell with the
    last definition of `entry` do.
    """
    cells = [_read(text) for text in texts]
    program = [(cell, s) for cell, content in enumerate(cells) for s in content.statements][-MAX_STATEMENTS:]
    kept = _needed([statement for _, statement in program], entry)
    if not kept:
        return ""
    needed: dict[int, list[_Statement]] = defaultdict(list)  # cell -> its statements that are kept
    for index in kept:
        cell, statement = program[index]
        needed[cell].append(statement)
    homes = [c for c, found in needed.items() if any(entry in s.stored for s in found)]
    first, last = (len(cells) - own, len(cells)) if own else (max(homes), max(homes) + 1)
    before = [s for cell, found in needed.items() if cell < first for s in found]
    home = [cell for cell in needed if first <= cell < last]
    body = [line for cell in home for line in _own_lines(cells[cell], needed[cell])]
    after = [line for cell, found in needed.items() if cell >= last for s in found for line in s.lines]
    free = needed[home[0]][0].first - 1 if home else 0
    return "\n".join([*_with_prelude(before, body, free), *after]).rstrip() + "\n"


def _needed(statements: list[_Statement], entry: str) -> list[int]:
    """The statements that define `entry` and the names that they use; [] if none defines it.

    A name is looked up before a point of the program. This is the place where a statement runs. For names that a
    function uses when it is called, it is the end.
    """
    defining: dict[str, list[int]] = defaultdict(list)
    for index, statement in enumerate(statements):
        for name in statement.stored | statement.touches:
            defining[name].append(index)
    keep: set[int] = set()
    seen: set[tuple[str, int]] = set()
    todo = [(entry, len(statements))]
    steps = 0
    while todo:
        wanted = name, point = todo.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        sources = _sources(statements, defining.get(name, []), name, point)
        if not sources and wanted == (entry, len(statements)):
            return []
        steps += 1 + len(sources)
        if steps > MAX_STEPS:
            return []
        for index in sources or defining.get("*", []):
            keep.add(index)
            todo += [(used, index) for used in statements[index].now]
            todo += [(used, point) for used in statements[index].later]
    return sorted(keep)


def _sources(statements: list[_Statement], defining: list[int], name: str, point: int) -> list[int]:
    """The statements that give `name` its value before `point`: its last definition and the changes after it."""
    found = []
    for position in range(bisect_left(defining, point) - 1, -1, -1):
        found.append(index := defining[position])
        if name in statements[index].binds:
            if statements[index].is_definition:
                # A method call on a module or a function uses it, but does not change it.
                found = [i for i in found if name in statements[i].stored]
            return found
    return found if any(name in statements[i].rebinds for i in found) else []


def _own_lines(cell: _Cell, needed: list[_Statement]) -> list[str]:
    """All lines of a cell. The lines of statements that are not needed are empty."""
    wanted, all_lines = (
        {number for s in statements for number in range(s.first, s.last + 1)}
        for statements in (needed, cell.statements)
    )
    return ["" if n in all_lines - wanted else line for n, line in enumerate(cell.lines, 1)]


def _with_prelude(before: list[_Statement], body: list[str], free: int) -> list[str]:
    """`before` and then `body`. Lines of `body` keep their numbers if `before` fits into the `free` lines above."""
    prelude = [line for statement in before for line in statement.lines]
    if len(prelude) > free:
        on_one_line = "; ".join(statement.text for statement in before)
        prelude = prelude if "\n" in on_one_line else [on_one_line]
    if len(prelude) > free:
        return prelude + body
    return body[: free - len(prelude)] + prelude + body[free:]


# -- the whole numbers in a source: sizes just beyond them are cases of their own ------------------------------------

LEAST, MOST = 100, 1 << 27  # of an answer's numbers that may bound a size
MAX_MODULUS = 512
SHORTEST = 16  # block
FOLDED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
          ast.LShift: operator.lshift, ast.Pow: operator.pow}  # fmt: skip
ENDS = {"int16": 1 << 15, "uint16": 1 << 16, "short": 1 << 15}  # numbers of elements at which a type ends


def whole_numbers(source: str) -> tuple[list[int], list[int]]:
    """The numbers that may bound a size, and those by which the source divides one, ascending."""
    bounds, divisors, blocks = set(), set(), set()
    for node in _outermost(ast.parse(source)):
        if (number := _folded(node)) is not None:
            bounds.add(number)
        elif isinstance(node, ast.BinOp) and (number := _folded(node.right) or _folded(node.left)):
            if isinstance(node.op, ast.Mod):
                divisors.add(number)
            elif isinstance(node.op, ast.BitAnd):
                divisors.add(number + 1)
            elif isinstance(node.op, ast.RShift) and 0 <= number < 64:
                bounds.add(1 << number)
            elif isinstance(node.op, ast.Mult):
                blocks.add(number)
        else:
            bounds.add(ENDS.get(getattr(node, "attr", ""), 0))
    lengths = [n for n in bounds if n >= SHORTEST and n & n - 1 == 0]
    bounds |= {count * length for count in blocks for length in lengths}
    return sorted(n for n in bounds if LEAST <= n <= MOST), sorted(n for n in divisors if 2 <= n <= MAX_MODULUS)


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, but those inside of a number that is computed, such as 1 << 20."""
    yield node
    if _folded(node) is None:
        for child in ast.iter_child_nodes(node):
            yield from _outermost(child)


def _folded(node: ast.AST) -> int | None:
    """The whole number that an expression of constants gives; None for others."""
    if isinstance(node, ast.Constant):
        value = node.value
        return int(value) if type(value) in (int, float) and abs(value) <= MOST and value == int(value) else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in FOLDED:
        return None
    left, right = _folded(node.left), _folded(node.right)
    if left is None or right is None or isinstance(node.op, (ast.LShift, ast.Pow)) and not 0 <= right < 64:
        return None
    return None if isinstance(node.op, ast.FloorDiv) and not right else FOLDED[type(node.op)](left, right)
