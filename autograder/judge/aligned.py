"""Two sources side by side: statements and names that belong together, and what is left: their differences.

Statements are aligned body by body, so that pairs share as many names, numbers and operations as possible: Needleman
and Wunsch, 1970. Names that only one source has belong together if they stand in the same places of such pairs.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from textwrap import dedent

import triton.language as tl

ALIKE = 0.45  # statements that share less do not belong together
ELSEWHERE = 0.75  # the same for those in different bodies
SAME_TARGET, ALONE = 0.3, 0.3  # what else speaks for two statements: most bodies have one launch, one return, one loop
MOST_AROUND = 2  # parts in which another one is looked for
MOST_TERMS = 2  # of a sum or a product that differ
INSIDE = 0.7  # what two parts share, if one of the two answers has something around its part
UNLIKE = 20  # the most that one place adds to a distance
OTHER_BLOCK = 25  # how far one size of a block is from another one, which is seldom a mistake
SAME_NAME, SAME_PARAMETER = 2, 3  # votes
ROUNDS = 3  # of alignment, at most: names that belong together align more
_VERSION = "·"  # between a variable and the number of its value
LARGEST = 300  # parts of what a variable stands for in the normal form
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_BODIES = ("body", "orelse")
_WITH_BODIES = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.With)
_NAMED = (ast.FunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_CLOSED = (ast.Constant, ast.Name, ast.Call, ast.Attribute)  # need no parentheses
_BUILTINS = set(dir(builtins))


@dataclass(frozen=True)
class Difference:
    """edits: parts of the source, (begin, end) in bytes, and what the right answer has there.

    size: how much changes. what: "changed", "missing", "too much" or "moved". change: the same for the same change
    somewhere else. below: the line below which a line that is moved belongs. within: the line of its statement.
    """

    line: int
    edits: tuple[tuple[int, int, str], ...]
    size: int
    what: str = "changed"
    change: str = ""
    below: int = 0
    within: int = 0


@dataclass(frozen=True)
class _Missing:
    """A statement that only the right answer has. line: the learner's line below which it belongs. body: around it."""

    statement: ast.stmt
    line: int
    body: list[ast.stmt]


class Comparison:
    """A wrong source beside a right one."""

    def __init__(self, source: str, wrong: ast.Module, right: ast.Module):
        self.source = source.encode()
        self.starts = [0]  # of lines
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.launched = {ast.dump(each.func.value) for each in ast.walk(wrong) if _launches(each)}
        self.scopes = [*_Scope(wrong, _in_order(wrong, right), {}, set(), {}).all()]

    def differences(self) -> list[Difference]:
        return [each for scope in self.scopes for part in (self._in_pairs, self._of_lines) for each in part(scope)]

    @cached_property
    def distance(self) -> int:
        """How much only one of the two has."""
        left = [each for scope in self.scopes for each in (*(n for n, _ in scope.too_much),
                                                           *(n.statement for n in scope.missing))]  # fmt: skip
        pairs = [(a, scope.renamed(_header(b))) for scope in self.scopes for a, b in scope.pairs]
        parts = (part for a, b in pairs for part in _parts(_header(a), b) if not isinstance(a, _IMPORTS))
        sizes = {self._span(old): min(_change(old, new) % OTHER_BLOCK, UNLIKE) for old, new in parts}  # each place once
        return sum(_size(each) for each in left) + sum(sizes.values())

    def _in_pairs(self, scope: _Scope) -> Iterator[Difference]:
        for wrong, ours in scope.pairs:
            right = _as_written(scope.renamed(_header(ours)), wrong)
            parts = [*_parts(_header(wrong), right)] if not isinstance(wrong, _IMPORTS) else []
            if len(parts) > 1 and not isinstance(wrong, _WITH_BODIES):
                parts.append((wrong, right))
            if isinstance(wrong, ast.FunctionDef) and len(wrong.decorator_list) != len(right.decorator_list):
                begin, end = self._lines(wrong)[0], self.starts[wrong.lineno - 1]
                text = "".join(f"{' ' * wrong.col_offset}@{ast.unparse(each)}\n" for each in right.decorator_list)
                yield Difference(wrong.lineno, ((begin, end, text),), 3)
            for old, new in parts:
                new = scope.folded(new, _first_line(old))
                text = None if isinstance(old, _WITH_BODIES) else scope.written(new)
                begin, end = self._span(old)
                if text is None or begin == end:
                    continue
                if isinstance(old, ast.expr) and not isinstance(new, _CLOSED):
                    text = self._closed(begin, end, text)
                change, size = f"{ast.dump(old)} {ast.dump(new)}", _change(scope.folded(old, _first_line(old)), new)
                place = _first_line(old), ((begin, end, text),)
                yield Difference(*place, size, change=change, within=wrong.lineno)

    def _of_lines(self, scope: _Scope) -> Iterator[Difference]:
        """Statements that only one source has; one that stands somewhere else."""
        missing = [(each, scope.renamed(each.statement)) for each in scope.missing]
        for wrong, body in scope.too_much:
            begin, end = self._lines(wrong)
            for each, right in missing:
                if type(right) is type(wrong) and ast.dump(right) == ast.dump(wrong):
                    edits = (begin, end, ""), self._below(each, dedent(self.source[begin:end].decode()))
                    yield Difference(wrong.lineno, edits, 2, "moved", below=each.line)
            if not isinstance(wrong, (*_NAMED, *_IMPORTS)):
                rest = " " * wrong.col_offset + "pass\n" if len(body) == 1 else ""
                yield Difference(wrong.lineno, ((begin, end, rest),), 1 + min(_size(wrong), 4), "too much")
        for each, right in missing:
            ends = isinstance(right, ast.Return) and isinstance(each.body[-1], ast.Return)
            again = isinstance(right, ast.Expr) and _launches(right.value)
            again = again and ast.dump(right.value.func.value) in self.launched
            wanted = not ends and not again and not isinstance(right, (*_NAMED, *_IMPORTS))
            if wanted and (text := scope.written(scope.folded(right, each.line + 1))):
                yield Difference(each.line, (self._below(each, text),), 1 + min(_size(right), 6), "missing")

    # -- places in the source

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node stands, in bytes; (0, 0) if it has no text."""
        nodes = [node] if hasattr(node, "lineno") else [n for n in ast.walk(node) if hasattr(n, "lineno")]
        begin = min((self.starts[n.lineno - 1] + n.col_offset for n in nodes), default=0)
        return begin, max((self.starts[n.end_lineno - 1] + n.end_col_offset for n in nodes), default=0)

    def _lines(self, node: ast.stmt) -> tuple[int, int]:
        return self.starts[_first_line(node) - 1], self.starts[min(node.end_lineno, len(self.starts) - 1)]

    def _below(self, missing: _Missing, code: str) -> tuple[int, int, str]:
        """The edit that adds a statement where it is missing."""
        place, indent = self.starts[min(missing.line, len(self.starts) - 1)], " " * missing.body[0].col_offset
        text = "".join(f"{indent}{line}\n" for line in code.splitlines())
        return place, place, "\n" * (place > 0 and not self.source[:place].endswith(b"\n")) + text

    def _closed(self, begin: int, end: int, text: str) -> str:
        """In parentheses, if they change how the source around is read."""
        before, behind = self.source[:begin].rstrip(b" ")[-1:], self.source[end:].lstrip(b" ")[:1]
        if before in (b"(", b"[", b",", b"=") and behind in (b")", b"]", b",", b"\n"):
            return text
        made = [self.source[:begin] + each.encode() + self.source[end:] for each in (text, f"({text})")]
        try:
            bare, closed = (ast.dump(ast.parse(each)) for each in made)
        except UNREADABLE:
            return f"({text})"
        return text if bare == closed else f"({text})"


# -- what belongs together -----------------------------------------------------------------------------------


class _Scope:
    """Two modules, functions or classes side by side. outer: names around them, as `names`; known: names in use there.
    keywords: the names of parameters of all functions.

    names: what the learner calls a name of the right answer. pairs: statements that belong together. too_much: the
    learner's other statements, with the body that each stands in. missing: the right answer's other statements.
    """

    def __init__(self, wrong: ast.AST, right: ast.AST, outer: dict[str, str], known: set[str], keywords: dict):
        self.outer, self.names, self.keywords = outer, {}, keywords
        self.theirs, self.ours = _defined(wrong), _defined(right)  # the learner's names, and the right answer's
        self.known = known | self.theirs
        self.folds = getattr(wrong, "folds", {})
        given = [[each.arg for each in _parameters(node)] for node in (right, wrong)]
        self.given = [*zip(*given)] if len(given[0]) == len(given[1]) else []
        for _ in range(ROUNDS):
            self.pairs: list[tuple[ast.stmt, ast.stmt]] = []
            self.too_much: list[tuple[ast.stmt, list[ast.stmt]]] = []
            self.missing: list[_Missing] = []
            self._align(_body(wrong), _body(right))
            self._join()
            before, self.names = self.names, self._matched()
            if self.names == before:
                break
        keywords |= {n.arg: self.names[n.arg] for n in _parameters(right) if n.arg in self.names}
        inner = [pair for pair in self.pairs if isinstance(pair[0], _NAMED)]
        self.inner = [_Scope(*pair, self.outer | self.names, self.known, keywords) for pair in inner]

    def all(self) -> Iterator[_Scope]:
        yield self
        for each in self.inner:
            yield from each.all()

    def renamed(self, node: ast.AST) -> ast.AST:
        """A part of the right answer with the learner's names."""
        return _Renamed(self.outer | self.names, self.keywords).visit(_copied(node))

    def folded(self, node: ast.AST, line: int) -> ast.AST:
        """With the learner's variables, of those that have their value above a line, in the place of what they are."""
        names = {value: name for value, (name, defined, end) in self.folds.items() if defined < line <= end}
        return _Folded(names).visit(_copied(node)) if names else node

    def written(self, node: ast.AST) -> str | None:
        """As code of the learner's; None if it needs a name that the learner lacks."""
        unknown = _loaded(node) - self.known - _BUILTINS - set(_stored(node))
        return None if unknown else ast.unparse(_Grids().visit(_copied(node)))

    def _align(self, wrong: list[ast.stmt], right: list[ast.stmt]) -> None:
        """Pairs of statements of two bodies, in their order."""
        words = [_words(each, self._their_name) for each in wrong], [_words(each, self._our_name) for each in right]
        alike = [[self._alike(a, b, x, y) for b, y in zip(right, words[1])] for a, x in zip(wrong, words[0])]
        best = [[0.0] * (len(right) + 1) for _ in range(len(wrong) + 1)]  # of what comes behind
        for i in reversed(range(len(wrong))):
            for j in reversed(range(len(right))):
                both = alike[i][j] + best[i + 1][j + 1] if alike[i][j] else 0.0
                best[i][j] = max(best[i + 1][j], best[i][j + 1], both)
        i, j = 0, 0
        while i < len(wrong) or j < len(right):
            inside = i < len(wrong) and j < len(right)
            if inside and alike[i][j] and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
                self.pairs.append((wrong[i], right[j]))
                for name in () if isinstance(wrong[i], _NAMED) else _BODIES:
                    self._align(_body(wrong[i], name), _body(right[j], name))
                i, j = i + 1, j + 1
            elif i < len(wrong) and (j == len(right) or best[i][j] == best[i + 1][j]):
                self.too_much.append((wrong[i], wrong))
                i += 1
            else:
                line = _first_line(wrong[i]) - 1 if i < len(wrong) else wrong[-1].end_lineno if wrong else 0
                self.missing += [_Missing(right[j], line, wrong)] if wrong else []
                j += 1

    def _alike(self, a: ast.stmt, b: ast.stmt, x: Counter, y: Counter) -> float:
        """How much speaks for two statements; 0 if they do not belong together."""
        if _kind(a) is not _kind(b):
            return 0.0
        more = ALIKE * (isinstance(a, _NAMED) and a.name == b.name)
        more += ALONE * (isinstance(a, (*_WITH_BODIES, ast.Return)) or _launches(getattr(a, "value", a)))
        if stored := _stored(a):
            more += SAME_TARGET * (stored == [self.names.get(name, name) for name in _stored(b)])
        shared = 2 * (x & y).total() / max(1, x.total() + y.total()) + more
        return shared if shared >= ALIKE else 0.0

    def _their_name(self, name: str) -> str:
        return "?" if name in self.theirs - self.ours and name not in self.names.values() else name

    def _our_name(self, name: str) -> str:
        name = self.names.get(name, self.outer.get(name, name))
        return "?" if name in self.ours - self.theirs else name

    def _join(self) -> None:
        """Pairs of statements that stand in different bodies, such as a launch and one under an `if`."""
        theirs = [(left, _words(left[0], self._their_name)) for left in self.too_much]
        ours = [(each, _words(each.statement, self._our_name)) for each in self.missing]
        rest = [(self._alike(a[0], b.statement, x, y), a, b) for a, x in theirs for b, y in ours]
        for _, left, each in sorted((pair for pair in rest if pair[0] >= ELSEWHERE), key=lambda pair: -pair[0]):
            moved = ast.dump(left[0]) == ast.dump(self.renamed(each.statement))
            if left in self.too_much and each in self.missing and not moved:
                self.pairs.append((left[0], each.statement))
                self.too_much.remove(left)
                self.missing.remove(each)

    def _matched(self) -> dict[str, str]:
        """Names that stand in the same places. One name for different things is rare, and needs more votes."""
        counts: Counter = Counter(dict.fromkeys(self.given, SAME_PARAMETER))
        counts.update({(name, name): SAME_NAME for name in self.ours & self.theirs})
        for wrong, right in self.pairs:
            if isinstance(wrong, _NAMED):
                counts[right.name, wrong.name] += len(self.pairs)
            here, there = ([_called(n) for n in _own(each) if _called(n)] for each in (wrong, right))
            if len(here) != len(there):
                here, there = _stored(wrong), _stored(right)
            counts.update(zip(there, here) if len(here) == len(there) else ())
        found: dict[str, str] = {}
        for (ours, theirs), _ in counts.most_common():
            if ours in self.ours and theirs in self.theirs - {*found.values()}:
                found.setdefault(ours, theirs)
        taken = {name: f"{name}?" for name in {*found.values()} & self.ours - found.keys()}
        return taken | found


# -- the smallest parts in which two nodes differ ------------------------------------------------------------


def _parts(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if ast.dump(wrong) == ast.dump(right):
        return
    if used := getattr(wrong, "used", None):  # another variable may be meant, where this one is used
        yield used, right
    if isinstance(wrong, ast.Call) and isinstance(right, ast.Call) and _same_function(wrong, right):
        yield from _arguments_of(wrong, right)
        return
    if _spread(wrong) and _spread(right) and ast.dump(wrong.value) == ast.dump(right.value):
        yield wrong, right
        return
    alike = type(wrong) is type(right) or {type(wrong), type(right)} == {ast.List, ast.Tuple}
    pairs = _children(wrong, right) if alike else None
    if pairs is None:
        yield wrong, right
        yield from _around(wrong, right)
        return
    if isinstance(wrong, ast.BinOp) and sum(ast.dump(old) != ast.dump(new) for old, new in pairs) > 1:
        yield wrong, right
    for old, new in pairs:
        yield from _parts(old, new)


def _around(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What stands around something that both have, such as a factor, is missing or too much. Or it is in one of them
    only, and the mistake is inside."""
    if isinstance(wrong, ast.expr) and isinstance(right, ast.expr):
        ours, theirs = ([n for n in ast.walk(each) if n is not each] for each in (right, wrong))
        for part in [n for n in ours if _same_kind(wrong, n)][:MOST_AROUND]:
            yield wrong, _copied_with(right, part, wrong)
        for part in [n for n in theirs if _same_kind(n, right)][:MOST_AROUND]:
            yield wrong, part
        yield from _parts(*best) if (best := _inside_of(wrong, right)) else ()


def _spread(node: ast.AST) -> bool:
    """Whether this is a value along an axis of a larger block, such as x[:, None]."""
    return isinstance(node, ast.Subscript) and any(isinstance(each, ast.Slice) for each in ast.walk(node.slice))


def _share(a: ast.AST, b: ast.AST) -> float:
    """How much of two nodes both have."""
    here, there = (Counter(map(_label, ast.walk(each))) for each in (a, b))
    return 2 * (here & there).total() / (here.total() + there.total())


def _same_kind(a: ast.AST, b: ast.AST) -> bool:
    if isinstance(a, ast.Call) and isinstance(b, ast.Call):
        return _same_function(a, b)
    return type(a) is type(b) and isinstance(a, (ast.Name, ast.Attribute, ast.Subscript)) and ast.dump(a) == ast.dump(b)


def _copied_with(node, old: ast.AST, new: ast.AST):
    """A copy in which one part is another."""
    if node is old or not isinstance(node, (ast.AST, list)):
        return new if node is old else node
    if isinstance(node, list):
        return [_copied_with(each, old, new) for each in node]
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        setattr(made, name, _copied_with(value, old, new))
    return made


def _change(old: ast.AST, new: ast.AST) -> int:
    """How many parts only one of the two has."""
    here, there = (Counter(map(_label, ast.walk(each))) for each in (old, new))
    return 1 + ((here - there) + (there - here)).total() + OTHER_BLOCK * (_is_block(old) and _is_block(new))


def _label(node: ast.AST) -> str:
    names = (getattr(node, name) for name in ("id", "attr", "value") if isinstance(getattr(node, name, None), str))
    return type(node).__name__ + (repr(node.value) if isinstance(node, ast.Constant) else next(names, ""))


def _same_function(wrong: ast.Call, right: ast.Call) -> bool:
    return ast.dump(wrong.func) == ast.dump(right.func) and not _launches(wrong)


def _arguments_of(wrong: ast.Call, right: ast.Call) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Arguments that differ, and the call with those that are missing or without those that are too much."""
    theirs, ours = _given(wrong), _given(right)
    for name in theirs.keys() & ours.keys():
        yield from _parts(theirs[name], ours[name])
    missing, spare = [n for n in ours if n not in theirs], [n for n in theirs if n not in ours]
    if missing or spare:
        kept = {name: value for name, value in theirs.items() if name in ours}
        call = copy.copy(wrong)
        call.args = [value for value in wrong.args if any(value is each for each in kept.values())]
        call.args += [ours[name] for name in missing if isinstance(name, int)]
        call.keywords = [each for each in wrong.keywords if any(each.value is value for value in kept.values())]
        call.keywords += [ast.keyword(name, ours[name]) for name in missing if isinstance(name, str)]
        call.keywords.sort(key=lambda each: [*ours].index(each.arg) if each.arg in ours else len(ours))
        yield wrong, call


def _given(call: ast.Call) -> dict[str | int, ast.expr]:
    """The arguments of a call, by the names of the parameters; by their numbers where nobody knows these."""
    names = [*(_parameters_of(call.func.attr) if isinstance(call.func, ast.Attribute) else ())]
    found = {names[i] if i < len(names) else i: value for i, value in enumerate(call.args)}
    return found | {each.arg: each.value for each in call.keywords if each.arg}


@lru_cache
def _parameters_of(name: str) -> dict[str, bool]:
    """Of a function of triton.language, and whether each must be given."""
    function = getattr(tl, name, None)
    try:
        parameters = inspect.signature(getattr(function, "fn", function)).parameters.values()
    except (TypeError, ValueError):
        return {}
    several = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return {} if several else {each.name: each.default is each.empty for each in parameters}


def _children(wrong: ast.AST, right: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """The parts of two nodes of one type that belong together; None if the nodes differ in more than their parts."""
    if isinstance(wrong, ast.BinOp) and isinstance(wrong.op, (ast.Add, ast.Mult)) and type(wrong.op) is type(right.op):
        return _summands(wrong, right)
    if isinstance(wrong, ast.arguments):
        return None if len(wrong.args) == len(right.args) else []
    pairs = []
    for name, here in ast.iter_fields(wrong):
        there = getattr(right, name)
        if name in (*_BODIES, "name") and isinstance(wrong, ast.stmt) or name in ("ctx", "type_comment"):
            continue
        here, there = (each if isinstance(each, list) else [each] for each in (here, there))
        if name == "decorator_list" and len(here) != len(there):
            continue
        if name == "keywords":
            here, there = ([*sorted(each, key=lambda keyword: keyword.arg or "")] for each in (here, there))
            if [each.arg for each in here] != [each.arg for each in there]:
                return None
            here, there = ([each.value for each in keywords] for keywords in (here, there))
        if len(here) != len(there) or any(not _comparable(*pair) for pair in zip(here, there)):
            return None
        pairs += zip(here, there)
    return [pair for pair in pairs if isinstance(pair[0], ast.AST)]


def _summands(wrong: ast.BinOp, right: ast.BinOp) -> list[tuple[ast.AST, ast.AST]] | None:
    """Of two sums or products: the few terms that differ, those that share most beside each other."""
    here, there = _terms(wrong, type(wrong.op)), _terms(right, type(wrong.op))
    for each in list(here):
        same = next((other for other in there if ast.dump(each) == ast.dump(other)), None)
        if same is not None:
            here.remove(each)
            there.remove(same)
    if not 0 < len(here) == len(there) <= MOST_TERMS:
        return None
    if len(here) == 2 and _share(here[0], there[1]) + _share(here[1], there[0]) > sum(map(_share, here, there)):
        there.reverse()
    return [*zip(here, there)]


def _terms(node: ast.expr, kind: type) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        return _terms(node.left, kind) + _terms(node.right, kind)
    return [node]


def _comparable(here: object, there: object) -> bool:
    if isinstance(here, (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)):
        return type(here) is type(there)
    return isinstance(here, ast.AST) and isinstance(there, ast.AST) or here == there


def _inside_of(wrong: ast.AST, right: ast.AST) -> tuple[ast.AST, ast.AST] | None:
    """The part of one that shares most with the other, if it shares much."""
    ours, theirs = ([n for n in ast.walk(each) if n is not each] for each in (right, wrong))
    pairs = [*((each, right) for each in theirs), *((wrong, each) for each in ours)]
    pairs = [pair for pair in pairs if type(pair[0]) is type(pair[1]) in (ast.BinOp, ast.Call)]
    best = max(pairs, key=lambda pair: _share(*pair), default=None)
    return best if best and _share(*best) >= INSIDE else None


# -- nodes -----------------------------------------------------------------------------------------------------


@lru_cache(4096)
def _own(node: ast.AST) -> list[ast.AST]:
    """A statement's parts without the statements inside, in the order of the text."""
    found = [node]
    for name, value in ast.iter_fields(node):
        if not (name in _BODIES and isinstance(node, ast.stmt)):
            for each in value if isinstance(value, list) else [value]:
                found += _own(each) if isinstance(each, ast.AST) else ()
    return found


def _copied(node):
    """A copy with copies of all parts. copy.deepcopy takes five times as long."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)()
    for name, value in vars(node).items():
        setattr(new, name, _copied(value) if name in node._fields else value)
    return new


def _header(node: ast.AST) -> ast.AST:
    """A statement without the statements inside."""
    if isinstance(node, _WITH_BODIES):
        node = copy.copy(node)
        for name in _BODIES:
            setattr(node, name, [])
    return node


def _words(node: ast.AST, known: Callable[[str], str]) -> Counter:
    """What a statement has: names, numbers, operations. Of a function, what is inside, too."""
    named, other = _read(node)
    return Counter([*filter(None, map(known, named)), *other])


@lru_cache(4096)
def _read(node: ast.AST) -> tuple[list[str], list[str]]:
    """The names in a statement, and what else it has."""
    parts = list(ast.walk(node)) if isinstance(node, _NAMED) else _own(node)
    other = [getattr(n, "attr", None) or (repr(n.value) if isinstance(n, ast.Constant) else type(n).__name__)
             for n in parts if not _called(n) and not isinstance(n, (ast.expr_context, ast.arguments))]  # fmt: skip
    return [*filter(None, map(_called, parts))], other


def _kind(node: ast.stmt) -> type:
    return ast.Assign if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else type(node)


def _called(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""


def _body(node: ast.AST, name: str = "body") -> list[ast.stmt]:
    """The statements inside, but for docstrings."""
    return [n for n in getattr(node, name, []) if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]


def _stored(node: ast.AST) -> list[str]:
    return [n.id for n in _own(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _loaded(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_block(node: ast.AST) -> bool:
    number = getattr(node, "value", None)
    return type(number) is int and number >= 16 and number & (number - 1) == 0


def _size(node: ast.AST) -> int:
    return sum(isinstance(each, ast.expr) for each in ast.walk(node))


def _first_line(node: ast.AST) -> int:
    if not hasattr(node, "lineno"):
        return min((n.lineno for n in _own(node) if hasattr(n, "lineno")), default=1)
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _defined(node: ast.AST) -> set[str]:
    """The names that a module, class or function gives a value, outside of the functions in it, or imports."""
    inside = [*_inside(node)]
    found = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found |= {n.arg for n in inside if isinstance(n, ast.arg)}
    found |= {n.name for n in inside if isinstance(n, _NAMED)}
    imported = [each for n in inside if isinstance(n, _IMPORTS) for each in n.names]
    return found | {each.asname or each.name.partition(".")[0] for each in imported}


def _parameters(node: ast.AST) -> list[ast.arg]:
    return [n for n in ast.walk(node.args) if isinstance(n, ast.arg)] if isinstance(node, ast.FunctionDef) else []


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a module, class or function, but not in the functions inside."""
    for each in ast.iter_child_nodes(node):
        yield each
        yield from () if isinstance(each, _NAMED) else _inside(each)


def _launches(node: ast.AST) -> bool:
    """Whether an expression is kernel[grid](...)."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)


def _as_written(right: ast.AST, wrong: ast.AST) -> ast.AST:
    """x += y as x = x + y, or the other way, if the learner writes it so."""
    if isinstance(wrong, ast.Assign) and isinstance(right, ast.AugAssign) and isinstance(right.target, ast.Name):
        sum_ = ast.BinOp(ast.Name(right.target.id, ast.Load()), right.op, right.value)
        return ast.copy_location(ast.Assign([right.target], sum_), right)
    if isinstance(wrong, ast.AugAssign) and isinstance(right, ast.Assign) and isinstance(right.value, ast.BinOp):
        (target, *others), sum_ = right.targets, right.value
        if not others and getattr(sum_.left, "id", "") == getattr(target, "id", None):
            return ast.copy_location(ast.AugAssign(target, sum_.op, sum_.right), right)
    return right


def _in_order(wrong: ast.Module, right: ast.Module) -> ast.Module:
    """The right answer, with the parameters of its kernels in the learner's order.

    Two parameters belong together if they have one name, if their launches pass the same, or if they are what is left.
    """
    right = _copied(right)
    theirs, ours = _kernels(wrong), _kernels(right)
    for (kernel, calls), (other, launches) in zip(theirs, ours) if len(theirs) == len(ours) else ():
        places = _places(_passed(kernel, calls), _passed(other, launches))
        order = sorted(range(len(places)), key=places.__getitem__)
        for given in (other.args.args, *(each.args for each in launches)):
            given[: len(order)] = [given[i] for i in order]
    return right


def _places(theirs: list[tuple[str, str]], ours: list[tuple[str, str]]) -> list[int]:
    """For each of our parameters, with what is passed to it, the place of the learner's; [] unless all have one."""
    found: dict[int, int] = {}
    rules = [lambda a, b: a[0] == b[0], lambda a, b: a[1] == b[1], lambda a, b: len(theirs) == len(ours)]
    for alike in rules:
        for i, each in enumerate(ours):
            free = (n for n, other in enumerate(theirs) if n not in found.values() and alike(each, other))
            if i not in found and (place := next(free, None)) is not None:
                found[i] = place
    return [found[i] for i in range(len(ours))] if len(found) == len(ours) else []


def _kernels(module: ast.Module) -> list[tuple[ast.FunctionDef, list[ast.Call]]]:
    """The functions that are launched, with their launches."""
    launches = [n for n in ast.walk(module) if _launches(n) and isinstance(n.func.value, ast.Name)]
    functions = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    names = dict.fromkeys(n.func.value.id for n in launches)
    return [(functions[name], [n for n in launches if n.func.value.id == name]) for name in names if name in functions]


def _passed(kernel: ast.FunctionDef, launches: list[ast.Call]) -> list[tuple[str, str]]:
    """The parameters that all launches pass by their place, and what the first one passes."""
    count = min(len(n.args) for n in launches)
    starred = any(isinstance(each, ast.Starred) for n in launches for each in n.args)
    names = [each.arg for each in kernel.args.args[: 0 if starred else count]]
    return [(name, ast.dump(given)) for name, given in zip(names, launches[0].args)]


class _Grids(ast.NodeTransformer):
    """`ast.unparse` takes the parentheses of a grid away: kernel[n,](…)."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _launches(node) and isinstance(node.func.slice, ast.Tuple):
            node.func.slice = ast.Name(ast.unparse(node.func.slice))
        return node


class _Renamed(ast.NodeTransformer):
    """keywords: of the names, those of parameters."""

    def __init__(self, names: dict[str, str], keywords: dict[str, str]):
        self.names, self.keywords = names, keywords

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_keyword(self, node):
        node.arg = self.keywords.get(node.arg, node.arg)
        return self.generic_visit(node)


# -- the normal form -------------------------------------------------------------------------------------------


def normal(tree: ast.Module) -> ast.Module:
    """The same program, with what a variable stands for in its places, if it gets its values one after the other.

    `used` of such a part is the variable that stood there. `folds` of a function says which variable stands for what,
    and between which lines.
    """
    tree = _Usual().visit(_copied(tree))
    for function in [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]:
        bodies = [getattr(n, name) for n in [function, *_inside(function)] for name in _BODIES
                  if isinstance(getattr(n, name, None), list)]  # fmt: skip
        ends = {name: line for body in bodies for name, line in _numbered(function, body)}
        stored = _stores(function)
        values: dict[str, ast.expr] = {}
        function.folds = {}
        for body in bodies:
            for line in list(body):
                name = getattr(line.targets[0], "id", "") if isinstance(line, ast.Assign) else ""
                if stored[name] != 1 or _makes_a_tensor(line.value):
                    continue
                value = _Inlined(values).visit(line.value)
                if _size(value) <= LARGEST:
                    values[name] = value
                    end = ends.get(name, math.inf)
                    function.folds.setdefault(ast.dump(value), (name.partition(_VERSION)[0], line.lineno, end))
                    body.remove(line)
        function.body = [_Inlined(values).visit(line) for line in function.body]
    for each in ast.walk(tree):
        if isinstance(each, ast.Name):
            each.id = each.id.partition(_VERSION)[0]
    return tree


def _numbered(function: ast.FunctionDef, body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Gives each value of a variable a name of its own, if all are given in one body. Yields the name, and the line of
    the next value."""
    targets = [n.target if isinstance(n, ast.AugAssign) else n.targets[0] if isinstance(n, ast.Assign) else None
               for n in body]  # fmt: skip
    names = [getattr(each, "id", "") for each in targets]
    for name, count in Counter(filter(None, names)).items():
        lines = [i for i, each in enumerate(names) if each == name]
        first = body[lines[0]]
        uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
        early = {n for each in [*body[: lines[0]], getattr(first, "value", first)] for n in ast.walk(each)}
        here = {n for each in body for n in ast.walk(each)}
        if count < 2 or _stores(function)[name] != count or isinstance(first, ast.AugAssign):
            continue
        if any(n in early or n not in here for n in uses):
            continue
        for number, (i, after) in enumerate(zip(lines, [*lines[1:], len(body)])):
            if isinstance(body[i], ast.AugAssign):
                sum_ = ast.BinOp(ast.Name(body[i].target.id, ast.Load()), body[i].op, body[i].value)
                body[i] = ast.copy_location(ast.Assign([body[i].target], ast.copy_location(sum_, body[i].value)), body[i])
            body[i].targets[0].id = new = f"{name}{_VERSION}{number}"
            for each in body[i + 1 : after + 1]:
                for n in ast.walk(each):
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name:
                        n.id = new
            if after < len(body):
                yield new, body[after].lineno


def _stores(function: ast.FunctionDef) -> Counter:
    stored = Counter(n.id for n in _inside(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    stored.update(n.arg for n in _parameters(function))
    return stored


def _makes_a_tensor(value: ast.expr) -> bool:
    """Whether a value is a tensor of the host's: there it counts which one it is."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    module = getattr(value.func.value, "id", "")
    numbers = module in ("tl", "triton") or value.func.attr in ("to", "numel", "stride", "size")
    return module == "torch" or not numbers


class _Inlined(ast.NodeTransformer):
    def __init__(self, values: dict[str, ast.expr]):
        self.values = values

    def visit_Name(self, node):
        if node.id not in self.values or not isinstance(node.ctx, ast.Load):
            return node
        value = _copied(self.values[node.id])
        value.used = node
        return value


class _Usual(ast.NodeTransformer):
    """Calls of Triton's functions as most write them: what has a default by its name, all else by its place."""

    def visit_Call(self, node):
        self.generic_visit(node)
        given, known = _given(node), _parameters_of(node.func.attr) if isinstance(node.func, ast.Attribute) else {}
        if known and given.keys() <= known.keys():
            node.args = [given[name] for name, required in known.items() if required and name in given]
            optional = [name for name, required in known.items() if not required and name in given]
            node.keywords = [ast.keyword(name, given[name]) for name in optional]
        return node


class _Folded(ast.NodeTransformer):
    """names: of variables, by what they stand for."""

    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit(self, node):
        name = self.names.get(ast.dump(node)) if isinstance(node, ast.expr) else None
        return ast.Name(name, ast.Load()) if name else self.generic_visit(node)
