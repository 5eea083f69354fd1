"""Blanks: each expression that a learner filled in is tried alone, in the solution's kernel."""

from __future__ import annotations

import ast
import builtins
import functools
import math
from dataclasses import replace

from ..diagnosis import Observation, diagnose
from ..exercises.spec import Blanks, Tag
from ..verdict import Finding, Slug
from . import nodes
from .trials import Trials, traces_of

# Blanks are judged on the cases that tell them apart. Precision and extreme values are judged on the whole kernel.
TELLING = {Tag.RAGGED, Tag.ASCENDING, Tag.DESCENDING, Tag.NEGATIVE, Tag.STRIDED}
REPEATING = {Tag.HALF, Tag.SHORT, Tag.HUGE, Tag.MANY, Tag.MASKED, Tag.FAR, Tag.SPECIAL, Tag.AGAIN}
# Of the exercise's time. All blanks together take milliseconds without a GPU, which compiles each one.
BLANK_SHARE = {False: 0.25, True: 0.5}
_NOT_TRIED = Finding("timeout", "This blank was not tried: the others used up the time of the answer.")


def wrong_blanks(trials: Trials) -> dict[str, Finding] | None:
    """The blanks that are wrong, with what is wrong; None for a kernel that is not the starter's any more."""
    blanks = trials.exercise.blanks
    try:
        modules = spliced(trials.source, blanks.template, blanks.kernel, blanks.names)
    except Restructured:
        return None
    telling, names = [drawn for drawn in trials.cases if tells(drawn.case.about)], list(modules)
    keys = [(name, i) for name in names for i in range(len(telling))]
    if not keys:
        return {}
    order = list(modules.values())
    plans = trials.plan(order, [telling[i] for _, i in keys], [names.index(name) for name, _ in keys])
    traces = traces_of(plans)
    seen: dict[tuple[str, int], Observation] = {
        keys[n]: trials.unplanned(telling[keys[n][1]], plan, True) for n, plan in plans.items() if n not in traces
    }
    cases = {keys[n]: (telling[keys[n][1]], trace) for n, trace in traces.items()}
    # a fault ends a GPU's context: there each blank has a process of its own
    groups = [[name] for name in names] if trials.on_gpu else [names]
    for group in groups:
        chosen = {key: case for key, case in cases.items() if key[0] in group}
        seen |= trials.replay(chosen, BLANK_SHARE[trials.on_gpu], group=lambda key: key[0])
    wrong: dict[str, Finding] = {}
    for name in names:
        found = [diagnose(seen[name, i]) for i in range(len(telling)) if (name, i) in seen]
        finding = next((f for f in found if f), None if len(found) == len(telling) else _NOT_TRIED)
        if finding:
            wrong[name] = replace(finding, advice=blanks.advice.get(name, finding.advice))
    return wrong


def tells(about: set[Tag]) -> bool:
    """Whether a case with these tags is one of those on which each blank is judged."""
    return bool(about & TELLING) and not about & REPEATING


def with_blanks(finding: Finding, blanks: Blanks, wrong: dict[str, Finding]) -> Finding:
    """Where one blank alone is wrong, it names the mistake that the numbers do not tell."""
    name = next(iter(wrong), None)
    slug = blanks.slugs.get(name)
    if len(wrong) != 1 or not slug or finding.slug not in (Slug.NAN, Slug.WRONG_VALUE):
        return finding
    if finding.sure:
        return replace(finding, slug=slug)
    advice = blanks.advice[name]
    advice = advice[0].lower() + advice[1:]
    return replace(finding, slug=slug, means=f"All blanks but {name} are right.", advice=advice)


# -- the learner's expression in the solution's kernel: source goes in, source comes out -----------------


class Restructured(Exception):
    """The learner's kernel is not the starter's with other expressions. The message says where."""


@functools.lru_cache(256)
def spliced(source: str, text: str, kernel: str, names: tuple[str, ...]) -> dict[str, str]:
    """By the name of a blank: the template's module with the learner's expression in this one place.

    A blank in which the learner writes what the template has is left out: it is right.

    A blank is the right-hand side of the first assignment to its name in the template's kernel that is more than a
    constant, or a block of one; the blank "store" is the first `tl.store(...)`. The learner's counterpart is the
    assignment at the same position among the assignments to that name. Constants of the learner's module are replaced
    by their numbers.
    """
    learner, template = _Module(source, kernel), _Module(text, kernel)
    found, right = {}, template.text()
    for name in names:
        theirs, ours = learner.places(name), template.places(name)
        position = next(i for i, each in enumerate(ours) if name == "store" or not template.is_constant(each.value))
        if name != "store" and len(theirs) != len(ours) or len(theirs) <= position:
            raise Restructured(f"`{name}` is not assigned where the starter assigns it")
        expression = _Names(learner, template).visit(theirs[position].value)
        # a name that nobody defines stays, for the compiler to refuse
        if unknown := (_loaded(expression) - template.known(before=ours[position])) & learner.defined():
            raise Restructured(f"`{name}` uses `{min(unknown)}`, which the starter's kernel does not define before it")
        before, ours[position].value = ours[position].value, expression
        found[name] = template.text()
        ours[position].value = before
    return {name: module for name, module in found.items() if module != right}


class _Module:
    """A module with the kernel of that name, its last definition at the top level."""

    def __init__(self, source: str, kernel: str):
        try:
            self.tree = ast.fix_missing_locations(_Whole().visit(ast.parse(source)))
        except nodes.UNREADABLE as error:
            raise Restructured("it is not Python") from error
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel]
        if not found:
            raise Restructured(f"there is no kernel {kernel}")
        self.kernel = found[-1]
        self.constants: dict[str, ast.expr] = {}
        self.imported: dict[str, str] = {}  # names of modules and their parts, by what they are called here
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                whole = [(n.asname, n.name) if n.asname else [n.name.partition(".")[0]] * 2 for n in node.names]
                self.imported |= dict(whole)
            elif isinstance(node, ast.ImportFrom):
                self.imported |= {n.asname or n.name: f"{node.module}.{n.name}" for n in node.names}
            elif isinstance(target := _target(node), ast.Name) and node.value:
                self.constants.pop(target.id, None)
                if (value := _number(node.value)) is not None:
                    self.constants[target.id] = value

    def places(self, name: str) -> list[ast.stmt]:
        """Statements whose `.value` can fill the blank, in order: assignments to `name`, or calls of tl.store."""
        found = [n for n in ast.walk(self.kernel) if isinstance(n, (ast.Assign, ast.AnnAssign, ast.Expr)) and n.value]
        found.sort(key=lambda n: (n.lineno, n.col_offset))
        if name == "store":
            calls = [n for n in found if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
            return [n for n in calls if self.path(n.value.func) == "triton.language.store"]
        return [n for n in found if isinstance(target := _target(n), ast.Name) and target.id == name]

    def path(self, node: ast.expr) -> str:
        """The full name of a function of a module: "triton.language.store"; "" if it is none."""
        if isinstance(node, ast.Attribute):
            start = self.path(node.value)
            return start and f"{start}.{node.attr}"
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    def is_constant(self, value: ast.expr) -> bool:
        function = self.path(value.func) if isinstance(value, ast.Call) else ""
        return function in ("triton.language.zeros", "triton.language.full") or _number(value) is not None

    def known(self, before: ast.stmt) -> set[str]:
        """What an expression in the place of this statement's may use."""
        parameters = {each.arg for each in self.kernel.args.args}
        stored = (n for n in ast.walk(self.kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        locals_ = {n.id for n in stored if n.lineno < before.lineno}
        return parameters | locals_ | self.imported.keys() | self.constants.keys() | set(dir(builtins))

    def defined(self) -> set[str]:
        """Every name that the module gives a value anywhere."""
        found = {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        found |= {n.name for n in ast.walk(self.tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        return found | {n.arg for n in ast.walk(self.tree) if isinstance(n, ast.arg)} | self.imported.keys()

    def text(self) -> str:
        return ast.unparse(ast.fix_missing_locations(self.tree)) + "\n"


def _target(node: ast.stmt) -> ast.expr | None:
    return node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)


class _Whole(ast.NodeTransformer):
    """Rewrites `x += y` as `x = x + y`, so that every assignment has its whole right-hand side."""

    visit_AugAssign = staticmethod(nodes.assigned)


class _Names(ast.NodeTransformer):
    """Gives an expression the template's names of modules, and the numbers of the learner's constants."""

    def __init__(self, learner: _Module, template: _Module):
        self.learner = learner
        self.own = {node.arg for node in learner.kernel.args.args}
        self.own |= {n.id for n in ast.walk(learner.kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.names = {path: name for name, path in template.imported.items()}

    def visit_Name(self, node):
        if node.id in self.own:
            return node
        if node.id in self.learner.constants:
            return self.learner.constants[node.id]
        return self._imported(node) or node

    def visit_Attribute(self, node):
        return self._imported(node) or self.generic_visit(node)

    def _imported(self, node) -> ast.expr | None:
        """The same part of a module, as the template calls it."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self.own or not (path := self.learner.path(node)):
            return None
        for length in range(path.count("."), -1, -1):
            parts = path.split(".")
            start, rest = ".".join(parts[: length + 1]), parts[length + 1 :]
            if start in self.names:
                return ast.parse(".".join([self.names[start], *rest]), mode="eval").body
        return None


def _loaded(expression: ast.expr) -> set[str]:
    names = [n for n in ast.walk(expression) if isinstance(n, ast.Name)]
    return {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _number(value: ast.expr) -> ast.expr | None:
    """The expression as a number, if it is one: 3, -1.5, float("-inf"), -math.inf, tl.constexpr(3); None for others."""
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        if name == "constexpr":
            return _number(value.args[0])
        if name == "float" and isinstance(value.args[0], ast.Constant):
            return value
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.USub, ast.UAdd)):
        inner = _number(value.operand)
        return inner and ast.UnaryOp(value.op, inner)
    if isinstance(value, ast.Attribute) and getattr(value.value, "id", "") == "math":
        number = getattr(math, value.attr, None)
        return ast.parse(f'float("{number}")', mode="eval").body if isinstance(number, float) else None
    return value if isinstance(value, ast.Constant) and type(value.value) in (int, float, bool) else None
