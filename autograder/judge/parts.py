"""The smallest parts in which two nodes of syntax trees differ."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from . import nodes

MOST_AROUND = 2  # parts in which another one is looked for
MOST_TERMS = 2  # of a sum or a product that differ
INSIDE = 0.7  # what two parts share, if one of the two answers has something around its part
OTHER_BLOCK = 25  # how far one size of a block is from another one


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
