"""Two sources side by side: statements and names that belong together, and what is left: their differences.

Statements are aligned body by body, so that pairs share as many names, numbers and operations as possible: Needleman
and Wunsch, 1970. Names that only one source has belong together if they stand in the same places of such pairs.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from textwrap import dedent

from . import nodes

ALIKE = 0.45  # statements that share less do not belong together
ELSEWHERE = 0.75  # the same for those in different bodies
SAME_TARGET, ALONE = 0.3, 0.3  # what else speaks for two statements: most bodies have one launch, one return, one loop
UNLIKE = 20  # the most that one place adds to a distance
SAME_NAME, SAME_PARAMETER = 2, 3  # votes
ROUNDS = 3  # of alignment, at most: names that belong together align more
_BUILTINS = set(dir(builtins))
MOST_AROUND = 2  # parts in which another one is looked for
MOST_TERMS = 2  # of a sum or a product that differ
INSIDE = 0.7  # what two parts share, if one of the two answers has something around its part
OTHER_BLOCK = 25  # how far one size of a block is from another one


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
        self.places = nodes.Places(source)
        self.launched = {ast.dump(each.func.value) for each in ast.walk(wrong) if nodes.launches(each)}
        self.scopes = [*_Scope(wrong, _in_order(wrong, right), {}, set(), {}).all()]

    def differences(self) -> list[Difference]:
        return [each for scope in self.scopes for part in (self._in_pairs, self._of_lines) for each in part(scope)]

    @cached_property
    def distance(self) -> int:
        """How much only one of the two has."""
        left = [each for scope in self.scopes for each in (*(n for n, _ in scope.too_much),
                                                           *(n.statement for n in scope.missing))]  # fmt: skip
        pairs = [(a, scope.renamed(nodes.header(b))) for scope in self.scopes for a, b in scope.pairs]
        apart = (part for a, b in pairs for part in parts(nodes.header(a), b) if not isinstance(a, nodes.IMPORTS))
        sizes = {self.places.span(old): min(extent(old, new), UNLIKE) for old, new in apart}  # each place once
        return sum(nodes.size(each) for each in left) + sum(sizes.values())

    def _in_pairs(self, scope: _Scope) -> Iterator[Difference]:
        for wrong, ours in scope.pairs:
            right = _as_written(scope.renamed(nodes.header(ours)), wrong)
            pairs = [*parts(nodes.header(wrong), right)] if not isinstance(wrong, nodes.IMPORTS) else []
            if len(pairs) > 1 and not isinstance(wrong, nodes.WITH_BODIES):
                pairs.append((wrong, right))
            if isinstance(wrong, ast.FunctionDef) and len(wrong.decorator_list) != len(right.decorator_list):
                begin, end = self.places.lines(wrong)[0], self.places.starts[wrong.lineno - 1]
                text = "".join(f"{' ' * wrong.col_offset}@{ast.unparse(each)}\n" for each in right.decorator_list)
                yield Difference(wrong.lineno, ((begin, end, text),), 3)
            for old, new in pairs:
                new = scope.folded(new, nodes.first_line(old))
                text = None if isinstance(old, nodes.WITH_BODIES) else scope.written(new)
                begin, end = self.places.span(old)
                if text is None or begin == end:
                    continue
                text = self.places.closed(old, new, text)
                line, same = nodes.first_line(old), f"{self.places.source[begin:end].decode()} → {text}"
                size = change(scope.folded(old, line), new)
                yield Difference(line, ((begin, end, text),), size, change=same, within=wrong.lineno)

    def _of_lines(self, scope: _Scope) -> Iterator[Difference]:
        """Statements that only one source has; one that stands somewhere else."""
        missing = [(each, scope.renamed(each.statement)) for each in scope.missing]
        for wrong, body in scope.too_much:
            begin, end = self.places.lines(wrong)
            for each, right in missing:
                if nodes.same(right, wrong):
                    edits = (begin, end, ""), self._below(each, dedent(self.places.source[begin:end].decode()))
                    yield Difference(wrong.lineno, edits, 2, "moved", below=each.line)
            if not isinstance(wrong, (*nodes.NAMED, *nodes.IMPORTS)):
                rest = " " * wrong.col_offset + "pass\n" if len(body) == 1 else ""
                yield Difference(wrong.lineno, ((begin, end, rest),), 1 + min(nodes.size(wrong), 4), "too much")
        for each, right in missing:
            ends = isinstance(right, ast.Return) and isinstance(each.body[-1], ast.Return)
            again = isinstance(right, ast.Expr) and nodes.launches(right.value)
            again = again and ast.dump(right.value.func.value) in self.launched
            whole = isinstance(right, (*nodes.NAMED, *nodes.IMPORTS, ast.For, ast.While))
            wanted = not ends and not again and not whole
            if wanted and (text := scope.written(scope.folded(right, each.line + 1))):
                yield Difference(each.line, (self._below(each, text),), 1 + min(nodes.size(right), 6), "missing")

    def _below(self, missing: _Missing, code: str) -> tuple[int, int, str]:
        """The edit that adds a statement where it is missing."""
        starts, indent = self.places.starts, " " * missing.body[0].col_offset
        place = starts[min(missing.line, len(starts) - 1)]
        text = "".join(f"{indent}{line}\n" for line in code.splitlines())
        return place, place, "\n" * (place > 0 and not self.places.source[:place].endswith(b"\n")) + text


# -- what belongs together -----------------------------------------------------------------------------------


class _Scope:
    """Two modules, functions or classes side by side. outer: names around them, as `names`; known: names in use there.
    keywords: the names of parameters of all functions.

    names: what the learner calls a name of the right answer. pairs: statements that belong together. too_much: the
    learner's other statements, with the body that each stands in. missing: the right answer's other statements.
    """

    def __init__(self, wrong: ast.AST, right: ast.AST, outer: dict[str, str], known: set[str], keywords: dict):
        self.outer, self.names, self.keywords = outer, {}, keywords
        self.theirs, self.ours = nodes.defined(wrong), nodes.defined(right)  # names: the learner's, the right answer's
        self.folds = getattr(wrong, "folds", {})
        self.known = known | self.theirs | {name for name, *_ in self.folds.values()}
        given = [[each.arg for each in nodes.parameters(node)] for node in (right, wrong)]
        self.given = [*zip(*given)] if len(given[0]) == len(given[1]) else []
        for _ in range(ROUNDS):
            self.pairs: list[tuple[ast.stmt, ast.stmt]] = []
            self.too_much: list[tuple[ast.stmt, list[ast.stmt]]] = []
            self.missing: list[_Missing] = []
            self._align(nodes.body(wrong), nodes.body(right))
            self._join()
            before, self.names = self.names, self._matched()
            if self.names == before:
                break
        keywords |= {n.arg: self.names[n.arg] for n in nodes.parameters(right) if n.arg in self.names}
        inner = [pair for pair in self.pairs if isinstance(pair[0], nodes.NAMED)]
        self.inner = [_Scope(*pair, self.outer | self.names, self.known, keywords) for pair in inner]

    def all(self) -> Iterator[_Scope]:
        yield self
        for each in self.inner:
            yield from each.all()

    def renamed(self, node: ast.AST) -> ast.AST:
        """A part of the right answer with the learner's names."""
        return nodes.Renamed(self.outer | self.names, self.keywords).visit(nodes.copied(node))

    def folded(self, node: ast.AST, line: int) -> ast.AST:
        """With the learner's variables, of those that have their value above a line, in the place of what they are."""
        names = {value: name for value, (name, defined, end) in self.folds.items() if defined < line <= end}
        return nodes.Folded(names).visit(nodes.copied(node)) if names else node

    def written(self, node: ast.AST) -> str | None:
        """As code of the learner's; None if it needs a name that the learner lacks."""
        unknown = nodes.loaded(node) - self.known - _BUILTINS - set(nodes.stored(node))
        return None if unknown else ast.unparse(nodes.Grids().visit(nodes.copied(node)))

    def _align(self, wrong: list[ast.stmt], right: list[ast.stmt]) -> None:
        """Pairs of statements of two bodies, in their order."""
        sides = (wrong, self._their_name), (right, self._our_name)
        words = [[nodes.words(each, known) for each in body] for body, known in sides]
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
                for name in () if isinstance(wrong[i], nodes.NAMED) else nodes.BODIES:
                    self._align(nodes.body(wrong[i], name), nodes.body(right[j], name))
                i, j = i + 1, j + 1
            elif i < len(wrong) and (j == len(right) or best[i][j] == best[i + 1][j]):
                self.too_much.append((wrong[i], wrong))
                i += 1
            else:
                line = nodes.first_line(wrong[i]) - 1 if i < len(wrong) else wrong[-1].end_lineno if wrong else 0
                self.missing += [_Missing(right[j], line, wrong)] if wrong else []
                j += 1

    def _alike(self, a: ast.stmt, b: ast.stmt, x: Counter, y: Counter) -> float:
        """How much speaks for two statements; 0 if they do not belong together."""
        if nodes.kind(a) is not nodes.kind(b):
            return 0.0
        more = ALIKE * (isinstance(a, nodes.NAMED) and a.name == b.name)
        more += ALONE * (isinstance(a, (*nodes.WITH_BODIES, ast.Return)) or nodes.launches(getattr(a, "value", a)))
        if stored := nodes.stored(a):
            more += SAME_TARGET * (stored == [self.names.get(name, name) for name in nodes.stored(b)])
        shared = 2 * (x & y).total() / max(1, x.total() + y.total()) + more
        return shared if shared >= ALIKE else 0.0

    def _their_name(self, name: str) -> str:
        return "?" if name in self.theirs - self.ours and name not in self.names.values() else name

    def _our_name(self, name: str) -> str:
        name = self.names.get(name, self.outer.get(name, name))
        return "?" if name in self.ours - self.theirs else name

    def _join(self) -> None:
        """Pairs of statements that stand in different bodies, such as a launch and one under an `if`."""
        theirs = [(left, nodes.words(left[0], self._their_name)) for left in self.too_much]
        ours = [(each, nodes.words(each.statement, self._our_name)) for each in self.missing]
        rest = [(self._alike(a[0], b.statement, x, y), a, b) for a, x in theirs for b, y in ours]
        for _, left, each in sorted((pair for pair in rest if pair[0] >= ELSEWHERE), key=lambda pair: -pair[0]):
            moved = nodes.same(left[0], self.renamed(each.statement))
            if left in self.too_much and each in self.missing and not moved:
                self.pairs.append((left[0], each.statement))
                self.too_much.remove(left)
                self.missing.remove(each)

    def _matched(self) -> dict[str, str]:
        """Names that stand in the same places. One name for different things is rare, and needs more votes."""
        counts: Counter = Counter(dict.fromkeys(self.given, SAME_PARAMETER))
        counts.update({(name, name): SAME_NAME for name in self.ours & self.theirs})
        for wrong, right in self.pairs:
            if isinstance(wrong, nodes.NAMED):
                counts[right.name, wrong.name] += len(self.pairs)
            here, there = ([nodes.called(n) for n in nodes.own(each) if nodes.called(n)] for each in (wrong, right))
            if len(here) != len(there):
                here, there = nodes.stored(wrong), nodes.stored(right)
            counts.update(zip(there, here) if len(here) == len(there) else ())
        found: dict[str, str] = {}
        for (ours, theirs), _ in counts.most_common():
            if ours in self.ours and theirs in self.theirs - {*found.values()}:
                found.setdefault(ours, theirs)
        taken = {name: f"{name}?" for name in {*found.values()} & self.ours - found.keys()}
        return taken | found


def _as_written(right: ast.AST, wrong: ast.AST) -> ast.AST:
    """x += y as x = x + y, or the other way, if the learner writes it so."""
    if isinstance(wrong, ast.Assign):
        return nodes.assigned(right)
    if isinstance(wrong, ast.AugAssign) and isinstance(right, ast.Assign) and isinstance(right.value, ast.BinOp):
        (target, *others), sum_ = right.targets, right.value
        if not others and getattr(sum_.left, "id", "") == getattr(target, "id", None):
            return ast.copy_location(ast.AugAssign(target, sum_.op, sum_.right), right)
    return right


def _in_order(wrong: ast.Module, right: ast.Module) -> ast.Module:
    """The right answer, with the parameters of its kernels in the learner's order.

    Two parameters belong together if they have one name, if their launches pass the same, or if they are what is left.
    """
    right = nodes.copied(right)
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
    launches = [n for n in ast.walk(module) if nodes.launches(n) and isinstance(n.func.value, ast.Name)]
    functions = {n.name: n for n in module.body if isinstance(n, ast.FunctionDef)}
    names = dict.fromkeys(n.func.value.id for n in launches)
    return [(functions[name], [n for n in launches if n.func.value.id == name]) for name in names if name in functions]


def _passed(kernel: ast.FunctionDef, launches: list[ast.Call]) -> list[tuple[str, str]]:
    """The parameters that all launches pass by their place, and what the first one passes."""
    count = min(len(n.args) for n in launches)
    starred = any(isinstance(each, ast.Starred) for n in launches for each in n.args)
    names = [each.arg for each in kernel.args.args[: 0 if starred else count]]
    return [(name, ast.dump(given)) for name, given in zip(names, launches[0].args)]


# -- the smallest parts in which two nodes differ ------------------------------------------------------------


def parts(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if nodes.same(wrong, right):
        return
    if used := getattr(wrong, "used", None):  # another variable may be meant, where this one is used
        yield used, right
    if isinstance(wrong, ast.Call) and isinstance(right, ast.Call) and _same_function(wrong, right):
        yield from _arguments_of(wrong, right)
        return
    if _spread(wrong) and _spread(right) and nodes.same(wrong.value, right.value):
        yield wrong, right
        return
    alike = type(wrong) is type(right) or {type(wrong), type(right)} == {ast.List, ast.Tuple}
    pairs = _children(wrong, right) if alike else None
    if pairs is None:
        yield wrong, right
        yield from _around(wrong, right)
        return
    if isinstance(wrong, (ast.BinOp, ast.Call)) and sum(not nodes.same(*pair) for pair in pairs) > 1:
        yield wrong, right
        yield from _around(wrong, right) if isinstance(wrong, ast.Call) else ()
    for old, new in pairs:
        yield from parts(old, new)


def _around(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """What stands around something that both have, such as a factor, is missing or too much. Or it is in one of them
    only, and the mistake is inside."""
    if isinstance(wrong, ast.expr) and isinstance(right, ast.expr):
        ours, theirs = ([n for n in ast.walk(each) if n is not each] for each in (right, wrong))
        for part in [n for n in ours if _same_kind(wrong, n)][:MOST_AROUND]:
            yield wrong, _copied_with(right, part, wrong)
        for part in [n for n in theirs if _same_kind(n, right)][:MOST_AROUND]:
            yield wrong, part
        pairs = [*((each, right) for each in theirs), *((wrong, each) for each in ours)]
        pairs = [pair for pair in pairs if type(pair[0]) is type(pair[1]) in (ast.BinOp, ast.Call)]
        best = max(pairs, key=lambda pair: _share(*pair), default=None)
        yield from parts(*best) if best and _share(*best) >= INSIDE else ()


def _spread(node: ast.AST) -> bool:
    """Whether this is a value along an axis of a larger block, such as x[:, None]."""
    return isinstance(node, ast.Subscript) and any(isinstance(each, ast.Slice) for each in ast.walk(node.slice))


@lru_cache(4096)
def _bag(node: ast.AST) -> Counter:
    return Counter(map(_label, ast.walk(node)))


def _share(a: ast.AST, b: ast.AST) -> float:
    """How much of two nodes both have."""
    here, there = _bag(a), _bag(b)
    return 2 * (here & there).total() / (here.total() + there.total())


def _same_kind(a: ast.AST, b: ast.AST) -> bool:
    if isinstance(a, ast.Call) and isinstance(b, ast.Call):
        return _same_function(a, b)
    return isinstance(a, (ast.Name, ast.Attribute, ast.Subscript)) and nodes.same(a, b)


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


def change(old: ast.AST, new: ast.AST) -> int:
    """How many parts only one of the two has. Another size of a block is seldom a mistake."""
    return extent(old, new) + OTHER_BLOCK * (nodes.is_block(old) and nodes.is_block(new))


def extent(old: ast.AST, new: ast.AST) -> int:
    here, there = _bag(old), _bag(new)
    return 1 + ((here - there) + (there - here)).total()


def _label(node: ast.AST) -> str:
    names = (getattr(node, name) for name in ("id", "attr", "value") if isinstance(getattr(node, name, None), str))
    return type(node).__name__ + (repr(node.value) if isinstance(node, ast.Constant) else next(names, ""))


def _same_function(wrong: ast.Call, right: ast.Call) -> bool:
    return nodes.same(wrong.func, right.func) and not nodes.launches(wrong)


def _arguments_of(wrong: ast.Call, right: ast.Call) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Arguments that differ, and the call with those that are missing or without those that are too much."""
    theirs, ours = nodes.given(wrong), nodes.given(right)
    for name in theirs.keys() & ours.keys():
        yield from parts(theirs[name], ours[name])
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


def _children(wrong: ast.AST, right: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """The parts of two nodes of one type that belong together; None if the nodes differ in more than their parts."""
    if isinstance(wrong, ast.BinOp) and isinstance(wrong.op, (ast.Add, ast.Mult)) and type(wrong.op) is type(right.op):
        return _summands(wrong, right)
    if isinstance(wrong, ast.arguments):
        return None if len(wrong.args) == len(right.args) else []
    pairs = []
    for name, here in ast.iter_fields(wrong):
        there = getattr(right, name)
        if name in (*nodes.BODIES, "name") and isinstance(wrong, ast.stmt) or name in ("ctx", "type_comment"):
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
        same = next((other for other in there if nodes.same(each, other)), None)
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
