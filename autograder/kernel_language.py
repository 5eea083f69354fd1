"""The kernel language: which Python source counts as Triton kernels, and a clean copy of it.

`kernels_of(source)` reads a learner's source without running it. It takes the top-level ``@triton.jit``
functions, refuses every construct that is not on the lists below, and writes the rest again, with canonical
names and every statement on the line where the learner wrote it. The clean copy cannot run Python of the
learner's: no decorator, default or annotation stays as an expression, and no name that is not a parameter, a
local, a numeric constant, another kernel or a listed function of Triton's.

This is a policy and not a sandbox: `tl.load` and `tl.store` reach any address of their process, so the clean
copy still runs confined. Quietly dropped, because they cannot change a result: docstrings, `assert`, `print`,
`tl.device_print`, `tl.static_print`, `tl.device_assert`, `tl.static_assert`.
"""

from __future__ import annotations

import ast
import linecache
import math
import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_CHARACTERS = 40_000
MAX_NODES = 8_000
MAX_DEPTH = 60
MAX_INTEGER = 1 << 64

# --- the language ------------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TL_FUNCTIONS = _words(
    """abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas
    atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast broadcast_to cast cat cdiv ceil
    clamp constexpr cos cumprod cumsum debug_barrier div_rn dot erf exp exp2 expand_dims fdiv flip
    floor fma full gather histogram interleave join load log log2 make_block_ptr max max_constancy
    max_contiguous maximum min minimum mul multiple_of num_programs pair_uniform_to_normal permute
    philox program_id rand rand4x randint randint4x randn randn4x range ravel reduce reduce_or
    reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze static_range store sub sum
    swizzle2d topk trans uint_to_uniform_float umulhi unsqueeze view where xor_sum zeros zeros_like"""
)
TL_TYPES = _words(
    """bfloat16 float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 int1 int16
    int32 int64 int8 uint16 uint32 uint64 uint8"""
)
TL_VALUES = TL_TYPES | {"PropagateNan.ALL", "PropagateNan.NONE"}
TL_MATH = _words("""abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi""")
LIBDEVICE = _words(
    """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh div_rn erf erfc exp exp10
    exp2 expm1 fast_dividef fast_expf fast_logf fast_powf floor fma fmod hypot isinf isnan ldexp log
    log10 log1p log2 nearbyint pow rint round rsqrt sin sinh sqrt tan tanh trunc"""
)
TRITON_FUNCTIONS = frozenset({"cdiv", "next_power_of_2"})
METHODS = _words(
    """abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min
    atomic_or atomic_xchg atomic_xor broadcast_to cast ceil cos cumprod cumsum erf exp exp2
    expand_dims flip floor gather histogram is_bf16 is_floating is_fp16 is_fp32 is_fp64 is_int log
    log2 logical_and logical_or max min permute ravel reduce reshape rsqrt sigmoid sin softmax sort
    split sqrt sqrt_rn store sum to trans view xor_sum"""
)
ATTRIBUTES = _words("""T dtype element_ty ndim numel primitive_bitwidth scalar shape type value""")
BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range", "tuple"})
LOOPS = frozenset({"range", "tl.range", "tl.static_range"})
TAKES_FUNCTION = frozenset({"reduce", "associative_scan"})
DROPPED_CALLS = frozenset(
    {"print", "tl.device_assert", "tl.device_print", "tl.static_assert", "tl.static_print"}
)
STRING_KEYWORDS = _words(
    """cache_modifier eviction_policy fp_downcast_rounding input_precision padding_option scope sem"""
)
# Scalar types that a parameter's annotation can force; every other annotation is documentation.
FORCED_TYPES = {f"i{n}": f"int{n}" for n in (8, 16, 32, 64)} | {f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)}
FORCED_TYPES |= {name: name for name in FORCED_TYPES.values()}
# Names that the clean copy or Triton's interpreter uses itself.
RESERVED = frozenset(
    {"tl", "triton", "libdevice", "range", "interpreter_semantic", "_semantic", "_builder", "_generator"}
)

_SHORT_STRING = re.compile(r"[A-Za-z0-9_.]{0,24}")
_MATH_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
_MATH_FUNCTIONS = _words("""ceil exp exp2 floor log log10 log2 pow sqrt""")
_TL_MODULES = (
    "triton.language.core.",
    "triton.language.standard.",
    "triton.language.random.",
    "triton.language.",
)
_LIBDEVICE_MODULES = tuple(
    f"triton.language.{middle}libdevice." for middle in ("extra.", "extra.cuda.", "extra.hip.", "math.")
)

# What a learner may have meant, per construct: (what it is called, what to write instead).
ADVICE: dict[type[ast.AST], tuple[str, str]] = {
    ast.AsyncFunctionDef: ("an `async` function", "define it with plain `def`"),
    ast.Await: ("`await`", "kernels run straight through; remove it"),
    ast.Break: ("`break`", "give the loop its exact range, or use `while condition:`"),
    ast.ClassDef: ("a class", "use plain variables and tuples"),
    ast.Continue: ("`continue`", "put the rest of the loop's body under an `if`, or use a mask"),
    ast.Delete: ("`del`", "simply stop using the variable"),
    ast.Dict: ("a dict", "use separate variables, or a tuple"),
    ast.DictComp: ("a dict comprehension", "write the values out, or loop with `tl.static_range`"),
    ast.FunctionDef: ("a function inside a kernel", "move it to the top level, under its own `@triton.jit`"),
    ast.GeneratorExp: ("a generator expression", "loop with `range` or `tl.static_range`"),
    ast.Global: ("`global`", "pass the value as a parameter"),
    ast.Import: ("an import inside a kernel", "import at the top of the cell"),
    ast.ImportFrom: ("an import inside a kernel", "import at the top of the cell"),
    ast.JoinedStr: ("an f-string", "kernels have no strings; remove it"),
    ast.Lambda: ("a lambda", "write a small function of its own under `@triton.jit`"),
    ast.ListComp: ("a list comprehension", "write the values out, or loop with `tl.static_range`"),
    ast.NamedExpr: ("`:=`", "assign on a line of its own"),
    ast.Nonlocal: ("`nonlocal`", "pass the value as a parameter"),
    ast.Raise: ("`raise`", "check the arguments in the host function, before the launch"),
    ast.Set: ("a set", "use a tuple"),
    ast.SetComp: ("a set comprehension", "write the values out, or loop with `tl.static_range`"),
    ast.Starred: ("`*` arguments", "write the arguments out"),
    ast.Try: ("`try`", "kernels cannot catch errors; check the arguments in the host function"),
    ast.With: ("`with`", "remove it"),
    ast.Yield: ("`yield`", "use `return`"),
    ast.YieldFrom: ("`yield from`", "use `return`"),
}

TL_ADVICE = {
    "inline_asm_elementwise": "write it with the operators and functions of `tl`",
    "map_elementwise": "write it with `tl.where` and arithmetic on whole blocks",
    "make_tensor_descriptor": "use pointers with a mask",
    "dot_scaled": "use `tl.dot`",
    "extra": "use the functions of `tl`, or `from triton.language.extra import libdevice`",
    "tensor": "make blocks with `tl.zeros`, `tl.full` or `tl.arange`",
    "core": "use the public name, `tl.…`",
}


class NotAllowed(Exception):
    """A construct that the kernel language has not; `line` is 1-based, in the learner's source."""

    def __init__(self, line: int, construct: str, instead: str):
        super().__init__(line, construct, instead)
        self.line, self.construct, self.instead = line, construct, instead

    def __str__(self) -> str:
        return f"line {self.line}: {self.construct} cannot be used in a kernel here. Instead: {self.instead}."


class Restructured(KeyError):
    """A blank's expression cannot be judged alone, because the kernel was restructured around it."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Kernel:
    """Signature of one jit function; `constexprs` and the keys of `defaults` are names among `params`."""

    name: str
    line: int
    params: tuple[str, ...]
    constexprs: tuple[str, ...]
    defaults: dict[str, object]


@dataclass(frozen=True)
class KernelSource:
    """Clean source (plain ``@triton.jit`` functions, each statement on the learner's line) and signatures."""

    source: str
    kernels: dict[str, Kernel]
    constants: dict[str, object] = field(default_factory=dict)


def kernels_of(source: str, only: Iterable[str] | None = None) -> KernelSource:
    """Read the jit functions of `source` (a whole cell or file, host code included) without running it.

    With `only`, just these kernels and the helpers that they call. Raises NotAllowed at the first construct
    that is not part of the language, or when a name in `only` is no top-level jit function.
    """
    module = _Module(_parse(source))
    wanted = list(module.functions) if only is None else list(only)
    for name in wanted:
        if name not in module.functions:
            raise NotAllowed(
                1, f"`{name}`, which is not a function under `@triton.jit`,", "define it at top level"
            )
    page, kernels, budget = _Page(), {}, MAX_NODES
    while wanted:
        name = wanted.pop(0)
        if name in kernels:
            continue
        function = module.functions[name]
        budget -= _measure(function)
        if budget < 0:
            raise NotAllowed(function.lineno, "such a long kernel", "shorten it")
        translator = _Function(module, function)
        kernels[name] = translator.emit(page)
        wanted += sorted(translator.helpers)
    page.prelude(module, kernels)
    order = [name for name in module.functions if name in kernels]
    constants = {name: module.constants[name].value for name in sorted(module.used)}
    return KernelSource(page.text(), {name: kernels[name] for name in order}, constants)


def define(kernels: KernelSource, filename: str = "<answer>") -> dict[str, object]:
    """Execute the clean source; returns its namespace. `filename` is what tracebacks and inspect show."""
    lines = kernels.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(kernels.source), None, lines, filename)
    namespace: dict[str, object] = {"__name__": "answer"}
    exec(compile(kernels.source, filename, "exec"), namespace)
    return namespace


def blank_expressions(source: str, kernel: str, names: Iterable[str], template: str) -> dict[str, str]:
    """The learner's expression for each blank of a placeholder exercise.

    A blank is the right-hand side of the first assignment to its name in `template`'s kernel that is more
    than a constant; the blank "store" is the first `tl.store(...)`. The learner's counterpart is the
    assignment in the same position among those to the same name. Constants of the learner's module are
    written out as numbers. Raises Restructured when the learner's kernel has not the same assignments,
    NotAllowed when it is no kernel of the language.
    """
    learner, ours = kernels_of(source, [kernel]), kernels_of(template, [kernel])
    found = {}
    for name in names:
        theirs, places = _places(_function(learner, kernel), name), _places(_function(ours, kernel), name)
        position = _position(places, name, ours)
        if name != "store" and len(theirs) != len(places) or len(theirs) <= position:
            raise Restructured(f"`{name}` is not assigned where the starter assigns it")
        found[name] = ast.unparse(_Literals(learner.constants).visit(theirs[position].value))
    return found


def splice(template: str, kernel: str, blanks: dict[str, str]) -> str:
    """`template` with the expressions of `blanks` (from blank_expressions) in the place of its own.

    Raises Restructured when an expression uses a name that `template`'s kernel has not defined by then.
    """
    clean = kernels_of(template)
    tree = _plain_assignments(ast.parse(clean.source))
    function = _named(tree, kernel)
    known = (
        set(clean.kernels[kernel].params) | set(clean.constants) | BUILTINS | {"tl", "triton", "libdevice"}
    )
    for name, text in blanks.items():
        places = _places(function, name)
        place = places[_position(places, name, clean)]
        expression = ast.parse(text, mode="eval").body
        unknown = _names(expression, ast.Load) - known - _names(function, ast.Store, before=place.lineno)
        if unknown:
            raise Restructured(f"`{name}` uses `{min(unknown)}`, which the starter's kernel has not by then")
        place.value = expression
    page = _Page()
    for statement in tree.body:
        page.statement(statement, 0)
    return page.text()


# --- reading -----------------------------------------------------------------------------------------------


def _parse(source: str) -> ast.Module:
    if len(source) > MAX_CHARACTERS:
        raise NotAllowed(1, f"source of more than {MAX_CHARACTERS} characters", "shorten it")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise NotAllowed(
            error.lineno or 1, f"source that Python cannot read ({error.msg})", "correct it"
        ) from None
    except (ValueError, RecursionError, MemoryError):
        raise NotAllowed(
            1, "source that Python cannot read", "write it with less nesting and plain text"
        ) from None


def _measure(function: ast.AST) -> int:
    """Number of nodes below `function`; refuses deep nesting. Not recursive: nothing can overflow."""
    stack, count = [(function, 0)], 0
    while stack:
        node, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise NotAllowed(
                getattr(node, "lineno", function.lineno), "such deep nesting", "use more, shorter lines"
            )
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return count


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run with the module: nested blocks included, functions and classes not entered."""
    stack = body[::-1]
    while stack:
        statement = stack.pop()
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        stack += [
            child for child in ast.walk(statement) if child is not statement and isinstance(child, ast.stmt)
        ][::-1]


@dataclass(frozen=True)
class _Number:
    value: object
    constexpr: bool = False


_ARITHMETIC = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_FOLDED_BUILTINS = {"int": int, "float": float, "bool": bool, "abs": abs, "min": min, "max": max}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}


class _Module:
    """Top level of the learner's source: jit functions, numeric constants, and what each name means."""

    def __init__(self, tree: ast.Module):
        self.aliases = {"triton": "triton", "tl": "triton.language"}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, _Number] = {}
        self.lines: dict[str, int] = {}
        self.bound: set[str] = set()
        self.used: set[str] = set()
        self.uses_libdevice = False
        changed = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        top = set(map(id, tree.body))
        for statement in _module_level(tree.body):
            self._read(statement, id(statement) in top)
        for name in changed:
            self.constants.pop(name, None)
        self._refuse_nested_kernels(tree)

    def _read(self, statement: ast.stmt, at_top: bool) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._read_import(statement)
        elif isinstance(statement, ast.FunctionDef):
            self._bind(statement.name)
            if at_top and self._is_kernel(statement):
                self.functions[statement.name] = statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            self._read_assignment(statement, at_top)
        else:
            targets = [getattr(statement, "target", None), getattr(statement, "name", None)]
            for node in ast.walk(targets[0]) if isinstance(targets[0], ast.AST) else ():
                if isinstance(node, ast.Name):
                    self._bind(node.id)
            if isinstance(targets[1], str):
                self._bind(targets[1])

    def _bind(self, name: str) -> None:
        """The name now means something else; what it meant before is forgotten."""
        for table in (self.aliases, self.functions, self.constants):
            table.pop(name, None)
        self.bound.add(name)

    def _read_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for item in statement.names:
            if isinstance(statement, ast.Import):
                path = item.name if item.asname else item.name.partition(".")[0]
                name = item.asname or path
            else:
                base = statement.module or ""
                path, name = f"{base}.{item.name}", item.asname or item.name
                if item.name == "*" and base == "triton.language":
                    for star in TL_FUNCTIONS | TL_TYPES:
                        self._bind(star)
                        self.aliases[star] = f"{base}.{star}"
                    continue
            self._bind(name)
            self.aliases[name] = path

    def _read_assignment(self, statement: ast.Assign | ast.AnnAssign, at_top: bool) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        number = path = None
        if at_top and statement.value is not None and len(targets) == 1 and isinstance(targets[0], ast.Name):
            path = self.path(statement.value)
            number = None if path else self.fold(statement.value)
        for name in names:
            self._bind(name)
        if path and path.startswith("triton."):
            self.aliases[names[0]] = path
        elif number is not None:
            self.constants[names[0]] = number
            self.lines[names[0]] = statement.lineno

    def _is_kernel(self, function: ast.FunctionDef) -> bool:
        """Whether `function` is under `@triton.jit`; refuses other decorators beside it."""
        names = [self.path(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
        if not any(name in ("triton.jit", "triton.runtime.jit.jit") for name in names):
            return False
        allowed = ("triton.jit", "triton.runtime.jit.jit", "triton.autotune", "triton.heuristics")
        for decorator, name in zip(function.decorator_list, names, strict=True):
            if name not in allowed:
                text = _shorten(decorator)
                raise NotAllowed(decorator.lineno, f"the decorator `@{text}`", "keep `@triton.jit` alone")
        return True

    def _refuse_nested_kernels(self, tree: ast.Module) -> None:
        top = set(map(id, tree.body))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and id(node) not in top and self._is_kernel(node):
                place = "a kernel defined inside another block"
                raise NotAllowed(
                    node.lineno, f"`{node.name}`, {place},", "define it at the top level of the cell"
                )

    def path(self, node: ast.AST) -> str | None:
        """Dotted path that a name or attribute chain stands for, such as "triton.language.load"."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join([self.aliases[node.id], *reversed(parts)])

    def fold(self, node: ast.AST, depth: int = 0) -> _Number | None:
        """Value of a constant arithmetic expression, or None when it is something else."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, ast.Constant):
            small = (
                type(node.value) in (float, bool) or type(node.value) is int and abs(node.value) < MAX_INTEGER
            )
            return _Number(node.value) if small or node.value is None else None
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        path = self.path(node)
        if path:
            return (
                _Number(_MATH_CONSTANTS[path[5:]])
                if path[:5] == "math." and path[5:] in _MATH_CONSTANTS
                else None
            )
        if isinstance(node, ast.UnaryOp):
            return self._apply(_UNARY[type(node.op)], [node.operand], depth)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            return self._apply(_bounded(_ARITHMETIC[type(node.op)]), [node.left, node.right], depth)
        if isinstance(node, ast.Call) and not node.keywords:
            return self._fold_call(node, depth)
        return None

    def _fold_call(self, node: ast.Call, depth: int) -> _Number | None:
        path = self.path(node.func)
        name = node.func.id if isinstance(node.func, ast.Name) and node.func.id not in self.bound else None
        if path in ("triton.language.constexpr", "triton.language.core.constexpr") and len(node.args) == 1:
            number = self.fold(node.args[0], depth + 1)
            return number and _Number(number.value, constexpr=True)
        if name == "float" and len(node.args) == 1 and _infinity(node.args[0]):
            return _Number(float(node.args[0].value))
        if path and path[:5] == "math." and path[5:] in _MATH_FUNCTIONS:
            return self._apply(_bounded(getattr(math, path[5:], None)), node.args, depth)
        if path == "triton.next_power_of_2":
            return self._apply(lambda n: 1 << (n - 1).bit_length() if n > 0 else 0, node.args, depth)
        if path == "triton.cdiv":
            return self._apply(lambda a, b: -(-a // b), node.args, depth)
        if name in _FOLDED_BUILTINS:
            return self._apply(_FOLDED_BUILTINS[name], node.args, depth)
        return None

    def _apply(self, function, nodes: list[ast.expr], depth: int) -> _Number | None:
        operands = [self.fold(node, depth + 1) for node in nodes]
        if None in operands:
            return None
        try:
            value = function(*(operand.value for operand in operands))
        except (ArithmeticError, TypeError, ValueError):
            return None
        if type(value) not in (int, float, bool) or type(value) is int and abs(value) >= MAX_INTEGER:
            return None
        return _Number(value, any(operand.constexpr for operand in operands))


def _bounded(function):
    """The operation, refusing operands whose power or shift would be astronomically large."""

    def apply(*operands):
        if function in (operator.pow, operator.lshift, math.pow) and abs(operands[-1]) > 64:
            raise OverflowError
        return function(*operands)

    return apply


def _infinity(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in ("inf", "-inf", "+inf", "nan")


def _literal(value: object) -> ast.expr:
    """An expression for a number; infinities and NaN as calls of float, which Triton understands too."""
    if isinstance(value, float) and not math.isfinite(value):
        return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _shorten(node: ast.AST, limit: int = 60) -> str:
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return type(node).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"


# --- translating one function ------------------------------------------------------------------------------


class _Function:
    """Checks one jit function and writes it again. Statements map to statements one to one, lines kept."""

    def __init__(self, module: _Module, function: ast.FunctionDef):
        self.module, self.function = module, function
        self.helpers: set[str] = set()
        arguments = function.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
            self.refuse(function, "`*` or `/` among the parameters", "write plain parameters, as Triton asks")
        self.parameters = arguments.args
        self.check_name(function, function.name)
        self.locals = {parameter.arg for parameter in self.parameters}
        self.locals |= {
            n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        for name in sorted(self.locals):
            self.check_name(function, name)

    def refuse(self, node: ast.AST, construct: str, instead: str):
        raise NotAllowed(getattr(node, "lineno", self.function.lineno), construct, instead)

    def check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__") or name in RESERVED or len(name) > 64:
            self.refuse(node, f"the name `{name[:40]}` for something of your own", "choose another name")

    # -- the function as a whole

    def emit(self, page: _Page) -> Kernel:
        function, defaults = self.function, self.defaults()
        annotations = {p.arg: self.annotation(p.annotation) for p in self.parameters}
        texts = []
        for name in (p.arg for p in self.parameters):
            text = name + (f": tl.{annotations[name]}" if annotations[name] else "")
            if name in defaults:
                text += ("=" if text == name else " = ") + ast.unparse(defaults[name])
            texts.append(text)
        if function.lineno < 3:
            self.refuse(function, "a kernel before `import triton`", "import triton at the top of the cell")
        body = [self.statement(s) for s in function.body]
        page.put(function.lineno - 1, 0, "@triton.jit")
        page.put(function.lineno, 0, f"def {function.name}({', '.join(texts)}):")
        page.block(body, 4, function.lineno)
        constexprs = tuple(name for name, kind in annotations.items() if kind == "constexpr")
        values = {name: _default_value(node) for name, node in defaults.items()}
        return Kernel(function.name, function.lineno, tuple(annotations), constexprs, values)

    def annotation(self, node: ast.expr | None) -> str | None:
        """What an annotation means to Triton: "constexpr", a forced integer type, or nothing (None)."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.strip().rpartition(".")[2]
        else:
            name = _tl_name(self.module.path(node) or "") if node is not None else None
        return "constexpr" if name == "constexpr" else FORCED_TYPES.get(name)

    def defaults(self) -> dict[str, ast.expr]:
        defaults = self.function.args.defaults
        last = self.parameters[len(self.parameters) - len(defaults) :]
        return {parameter.arg: self.default(node) for parameter, node in zip(last, defaults, strict=True)}

    def default(self, node: ast.expr) -> ast.expr:
        number = self.module.fold(node)
        if number is not None:
            return _literal(number.value)
        name = _tl_name(self.module.path(node) or "")
        if name in TL_TYPES:
            return _dotted(f"tl.{name}")
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _SHORT_STRING.fullmatch(node.value)
        ):
            return node
        self.refuse(
            node, f"the default value `{_shorten(node)}`", "use a number, or pass the value at the launch"
        )

    # -- statements

    def statement(self, node: ast.stmt) -> ast.stmt:
        method = getattr(self, f"statement_{type(node).__name__}", None)
        if method is None:
            self.refuse_node(node)
        return ast.copy_location(method(node), node)

    def refuse_node(self, node: ast.AST):
        default = (f"`{_shorten(node)}`", "use the operators and functions of `tl`")
        self.refuse(node, *ADVICE.get(type(node), default))

    def statement_Pass(self, node):
        return node

    def statement_Assert(self, node):
        return ast.Pass()

    def statement_Return(self, node):
        return ast.Return(node.value and self.expression(node.value))

    def statement_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Constant):
            return ast.Pass()
        if not isinstance(call, ast.Call):
            if type(call) in ADVICE:
                self.refuse_node(call)
            self.refuse(node, f"`{_shorten(node)}` as a statement", "assign it to a variable, or remove it")
        if self.callee(call.func) in DROPPED_CALLS:
            return ast.Pass()
        return ast.Expr(self.expression(call))

    def statement_Assign(self, node):
        if len(node.targets) > 1:
            self.refuse(node, "`a = b = …`", "one assignment per line, as Triton asks")
        return ast.Assign([self.target(node.targets[0])], self.expression(node.value))

    def statement_AnnAssign(self, node):
        if node.value is None:
            return ast.Pass()
        target, value = self.target(node.target), self.expression(node.value)
        if self.annotation(node.annotation) == "constexpr":
            return ast.AnnAssign(target, _dotted("tl.constexpr"), value, 1)
        return ast.Assign([target], value)

    def statement_AugAssign(self, node):
        if isinstance(node.op, ast.Pow):
            self.refuse(node, "`**=`", "multiply")
        if isinstance(node.op, ast.MatMult):
            self.refuse(node, "`@=`", "use `tl.dot(a, b, acc)`")
        return ast.AugAssign(self.target(node.target), node.op, self.expression(node.value))

    def statement_If(self, node):
        return ast.If(self.expression(node.test), self.block(node.body), self.block(node.orelse))

    def statement_While(self, node):
        if node.orelse:
            self.refuse(node, "`else` after a loop", "put it behind the loop")
        return ast.While(self.expression(node.test), self.block(node.body), [])

    def statement_For(self, node):
        if node.orelse:
            self.refuse(node, "`else` after a loop", "put it behind the loop")
        if not isinstance(node.target, ast.Name):
            self.refuse(node, f"`{_shorten(node.target)}` as a loop variable", "use one plain name")
        if not isinstance(node.iter, ast.Call) or self.callee(node.iter.func) not in LOOPS:
            advice = "loop over `range(…)`, `tl.range(…)` or `tl.static_range(…)`"
            self.refuse(node, f"a loop over `{_shorten(node.iter)}`", advice)
        return ast.For(self.target(node.target), self.call(node.iter), self.block(node.body), [])

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.statement(statement) for statement in body]

    def target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, (ast.Tuple, ast.List)):
            return ast.Tuple([self.target(element) for element in node.elts], ast.Store())
        if isinstance(node, ast.Subscript):
            self.refuse(node, f"assigning to `{_shorten(node)}`", "build the new block with `tl.where`")
        if isinstance(node, ast.Attribute):
            self.refuse(node, f"assigning to `{_shorten(node)}`", "assign to a plain variable")
        self.refuse_node(node)

    # -- expressions

    def expression(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"expression_{type(node).__name__}", None)
        if method is None:
            self.refuse_node(node)
        return method(node)

    def expression_Constant(self, node):
        if type(node.value) in (str, bytes):
            self.refuse(node, "a string", "strings may stand only in options such as `eviction_policy=`")
        if type(node.value) not in (int, float, bool, type(None)):
            self.refuse(node, f"`{_shorten(node)}`", "use numbers")
        if type(node.value) is int and abs(node.value) >= MAX_INTEGER:
            self.refuse(node, "an integer of more than 64 bits", "use numbers that fit in 64 bits")
        return node

    def expression_Name(self, node):
        if node.id in self.locals:
            return node
        if node.id in self.module.constants:
            self.check_name(node, node.id)
            self.module.used.add(node.id)
            return node
        path = self.module.path(node)
        if path:
            return self.language_value(node, path)
        self.refuse_name(node)

    def refuse_name(self, node: ast.Name):
        name = node.id
        if name in self.module.functions:
            self.refuse(
                node, f"`{name}` as a value", "call it, or give it to `tl.reduce` or `tl.associative_scan`"
            )
        if name in self.module.bound:
            advice = (
                "pass it as a parameter (`tl.constexpr` if it is fixed), or make it one number at top level"
            )
            self.refuse(
                node, f"`{name}`, which is neither a variable of this kernel nor a plain number,", advice
            )
        self.refuse(node, f"the unknown name `{name[:40]}`", "assign it first, or pass it as a parameter")

    def expression_Attribute(self, node):
        path = None if self.root(node) in self.locals else self.module.path(node)
        if path:
            return self.language_value(node, path)
        if node.attr not in ATTRIBUTES:
            self.refuse(node, f"the attribute `.{node.attr[:40]}`", "use the functions of `tl`")
        return ast.Attribute(self.expression(node.value), node.attr, ast.Load())

    def language_value(self, node: ast.expr, path: str) -> ast.expr:
        number = self.module.fold(node)
        if number is not None:
            return _literal(number.value)
        name = _tl_name(path)
        if name in TL_VALUES:
            return _dotted(f"tl.{name}")
        if name in TL_FUNCTIONS:
            self.refuse(node, f"`tl.{name}` as a value", "call it")
        self.refuse_path(node, path)

    def refuse_path(self, node: ast.AST, path: str):
        text = _shorten(node)
        name = _tl_name(path)
        if name is not None:
            first = name.partition(".")[0]
            self.refuse(node, f"`{text}`", TL_ADVICE.get(first, "use the listed functions of `tl`"))
        if path.startswith("math."):
            self.refuse(node, f"Python's `{text}`", "use the function of `tl`, or compute a constant outside")
        if path.startswith("triton."):
            self.refuse(
                node, f"`{text}`", "use the functions of `tl`, `triton.cdiv` or `triton.next_power_of_2`"
            )
        self.refuse(node, f"`{text}`, which is not Triton,", "use the operators and functions of `tl`")

    def expression_UnaryOp(self, node):
        return ast.UnaryOp(node.op, self.expression(node.operand))

    def expression_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.refuse(node, f"`{_shorten(node)}`", "use `tl.dot(a, b)`")
        if isinstance(node.op, (ast.Pow, ast.LShift)):
            self.check_growth(node)
        return ast.BinOp(self.expression(node.left), node.op, self.expression(node.right))

    def check_growth(self, node: ast.BinOp) -> None:
        right = node.right.value if isinstance(node.right, ast.Constant) else 0
        if isinstance(node.op, ast.LShift) and isinstance(right, int) and right > 64:
            self.refuse(node, f"`{_shorten(node)}`", "shift by at most 64")
        if isinstance(node.op, ast.Pow) and self.module.fold(node) is None:
            advice = "multiply (`x * x`), shift (`1 << k`), or use `tl.exp2(y * tl.log2(x))`"
            self.refuse(node, f"the power `{_shorten(node)}`", advice)

    def expression_BoolOp(self, node):
        return ast.BoolOp(node.op, [self.expression(value) for value in node.values])

    def expression_Compare(self, node):
        if len(node.ops) > 1:
            self.refuse(node, f"the chained comparison `{_shorten(node)}`", "write `(a <= b) & (b < c)`")
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.refuse(node, "`in`", "compare with `==`, and combine with `|`")
        operands = [self.compared(operand) for operand in (node.left, node.comparators[0])]
        return ast.Compare(operands[0], node.ops, operands[1:])

    def compared(self, node: ast.expr) -> ast.expr:
        """A constexpr parameter may be compared with a short string: `ACTIVATION == "relu"`."""
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and _SHORT_STRING.fullmatch(node.value)
        ):
            return node
        return self.expression(node)

    def expression_IfExp(self, node):
        return ast.IfExp(*(self.expression(part) for part in (node.test, node.body, node.orelse)))

    def expression_Tuple(self, node):
        return ast.Tuple([self.expression(element) for element in node.elts], ast.Load())

    def expression_List(self, node):
        return ast.List([self.expression(element) for element in node.elts], ast.Load())

    def expression_Subscript(self, node):
        return ast.Subscript(self.expression(node.value), self.expression(node.slice), ast.Load())

    def expression_Slice(self, node):
        return ast.Slice(*(part and self.expression(part) for part in (node.lower, node.upper, node.step)))

    def expression_Call(self, node):
        if self.callee(node.func) in LOOPS:
            self.refuse(node, f"`{_shorten(node)}` outside a `for`", "loop over it: `for i in range(…)`")
        return self.call(node)

    # -- calls

    def root(self, node: ast.expr) -> str | None:
        while isinstance(node, ast.Attribute):
            node = node.value
        return node.id if isinstance(node, ast.Name) else None

    def callee(self, function: ast.expr) -> str | None:
        """Canonical name of what is called ("tl.load", "range"), or None when it has none."""
        root = self.root(function)
        if root is None or root in self.locals:
            return None
        path = self.module.path(function)
        if path is None:
            known = isinstance(function, ast.Name) and root not in self.module.bound
            return root if known and root in BUILTINS | {"print"} else None
        if path.startswith(_LIBDEVICE_MODULES):
            return f"libdevice.{path.rpartition('.')[2]}"
        name = _tl_name(path)
        return path if name is None else f"tl.{name}"

    def call(self, node: ast.Call) -> ast.Call:
        function, takes_function = self.called(node.func)
        if (
            isinstance(function, ast.Name)
            and function.id == "float"
            and len(node.args) == 1
            and _infinity(node.args[0])
        ):
            return ast.Call(function, node.args, [])
        arguments = [self.argument(argument, takes_function) for argument in node.args]
        keywords = [self.keyword(keyword, takes_function) for keyword in node.keywords]
        return ast.Call(function, arguments, keywords)

    def called(self, function: ast.expr) -> tuple[ast.expr, bool]:
        """The clean form of what is called, and whether it takes a combine function."""
        root = self.root(function)
        if isinstance(function, ast.Name) and root in self.module.functions and root not in self.locals:
            self.helpers.add(root)
            return function, False
        name = self.callee(function)
        if name is not None:
            return self.called_by_name(function, name)
        if isinstance(function, ast.Attribute):
            if function.attr not in METHODS:
                self.refuse(function, f"the method `.{function.attr[:40]}()`", "use the functions of `tl`")
            return ast.Attribute(self.expression(function.value), function.attr, ast.Load()), (
                function.attr in TAKES_FUNCTION
            )
        if root is not None and root in self.module.bound:
            advice = "put `@triton.jit` above the function, or use the functions of `tl`"
            self.refuse(function, f"a call of `{root}`, which is no kernel,", advice)
        self.refuse(
            function,
            f"a call of `{_shorten(function)}`",
            "call functions of `tl`, or your own `@triton.jit` ones",
        )

    def called_by_name(self, function: ast.expr, name: str) -> tuple[ast.expr, bool]:
        module, _, rest = name.rpartition(".")
        listed = {
            "": BUILTINS,
            "tl": TL_FUNCTIONS,
            "tl.math": TL_MATH,
            "triton": TRITON_FUNCTIONS,
            "libdevice": LIBDEVICE,
        }
        if rest in listed.get(module, ()):
            self.module.uses_libdevice |= module == "libdevice"
            return _dotted(name), module == "tl" and rest in TAKES_FUNCTION
        if name == "print" or name in DROPPED_CALLS:
            self.refuse(function, f"the result of `{name}`", "print on a line of its own")
        self.refuse_path(function, self.module.path(function) or name)

    def argument(self, node: ast.expr, takes_function: bool) -> ast.expr:
        if takes_function and isinstance(node, ast.Name) and node.id not in self.locals:
            if node.id in self.module.functions:
                self.helpers.add(node.id)
                return node
            if node.id in self.module.bound and node.id not in self.module.constants:
                self.refuse(node, f"`{node.id}` as a combine function", "put `@triton.jit` above it")
        return self.expression(node)

    def keyword(self, keyword: ast.keyword, takes_function: bool) -> ast.keyword:
        if keyword.arg is None:
            self.refuse(keyword.value, "`**` arguments", "write the arguments out")
        if keyword.arg.startswith("_"):
            self.refuse(keyword.value, f"the argument `{keyword.arg[:40]}=`", "leave it out")
        value = keyword.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if keyword.arg not in STRING_KEYWORDS or not _SHORT_STRING.fullmatch(value.value):
                self.refuse(value, f"a string for `{keyword.arg}=`", "leave it out, or use a number")
            return ast.keyword(keyword.arg, value)
        return ast.keyword(keyword.arg, self.argument(value, takes_function))


def _tl_name(path: str) -> str | None:
    """'load' for "triton.language.load" (and for the modules where Triton keeps it); None for other paths."""
    for module in _TL_MODULES:
        if path.startswith(module):
            return path[len(module) :]
    return None


def _dotted(name: str) -> ast.expr:
    first, *rest = name.split(".")
    node: ast.expr = ast.Name(first, ast.Load())
    for part in rest:
        node = ast.Attribute(node, part, ast.Load())
    return node


def _default_value(node: ast.expr) -> object:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node)
    if isinstance(node, ast.Call):
        return float(node.args[0].value)
    return ast.literal_eval(node)


# --- writing -----------------------------------------------------------------------------------------------


class _Page:
    """Text under construction, line by line: a statement stands on the line that its node names."""

    def __init__(self):
        self.lines: dict[int, str] = {}

    def put(self, line: int, indent: int, text: str) -> None:
        there = self.lines.get(line)
        self.lines[line] = f"{there}; {text}" if there else " " * indent + text

    def prelude(self, module: _Module, kernels: dict[str, Kernel]) -> None:
        for name in sorted(module.used, key=lambda name: module.lines[name]):
            number = module.constants[name]
            text = ast.unparse(_literal(number.value))
            self.put(
                module.lines[name],
                0,
                f"{name} = tl.constexpr({text})" if number.constexpr else f"{name} = {text}",
            )
        imports = "import triton; import triton.language as tl"
        if module.uses_libdevice:
            imports += "; from triton.language.extra import libdevice"
        self.lines[1] = f"{imports}; {self.lines[1]}" if 1 in self.lines else imports

    def block(self, body: list[ast.stmt], indent: int, header: int) -> None:
        """A body below its header; a body that began on the header's line stays there, as Python demands."""
        if body[0].lineno <= header:
            self.lines[header] += " " + "; ".join(_simple(statement) for statement in body)
            return
        for statement in body:
            self.statement(statement, indent)

    def statement(self, node: ast.stmt, indent: int) -> None:
        if isinstance(node, ast.If):
            self.if_chain(node, indent)
        elif isinstance(node, ast.FunctionDef):
            self.put(node.lineno - 1, indent, "@triton.jit")
            self.put(node.lineno, indent, f"def {node.name}({ast.unparse(node.args)}):")
            self.block(node.body, indent + 4, node.lineno)
        elif isinstance(node, ast.For):
            self.put(node.lineno, indent, f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}:")
            self.block(node.body, indent + 4, node.lineno)
        elif isinstance(node, ast.While):
            self.put(node.lineno, indent, f"while {ast.unparse(node.test)}:")
            self.block(node.body, indent + 4, node.lineno)
        else:
            self.put(node.lineno, indent, _simple(node))

    def if_chain(self, node: ast.If, indent: int) -> None:
        self.put(node.lineno, indent, f"if {ast.unparse(node.test)}:")
        self.block(node.body, indent + 4, node.lineno)
        while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            self.put(node.lineno, indent, f"elif {ast.unparse(node.test)}:")
            self.block(node.body, indent + 4, node.lineno)
        if node.orelse:
            first = node.orelse[0].lineno
            header = first - 1 if first - 1 > max(self.lines_of(node.body)) else first
            self.put(header, indent, "else:")
            self.block(node.orelse, indent + 4, header)

    @staticmethod
    def lines_of(body: list[ast.stmt]) -> list[int]:
        return [
            node.lineno for statement in body for node in ast.walk(statement) if isinstance(node, ast.stmt)
        ]

    def text(self) -> str:
        return "\n".join(self.lines.get(line, "") for line in range(1, max(self.lines) + 1)) + "\n"


def _simple(node: ast.stmt) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


# --- blanks ------------------------------------------------------------------------------------------------


class _Literals(ast.NodeTransformer):
    """Writes module constants out as numbers, so that an expression can move to another module."""

    def __init__(self, constants: dict[str, object]):
        self.constants = constants

    def visit_Name(self, node):
        return _literal(self.constants[node.id]) if node.id in self.constants else node


def _function(kernels: KernelSource, name: str) -> ast.FunctionDef:
    return _named(_plain_assignments(ast.parse(kernels.source)), name)


def _named(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _names(tree: ast.AST, context: type[ast.expr_context], before: float = math.inf) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context))
    return {node.id for node in nodes if node.lineno < before}


def _plain_assignments(tree: ast.Module) -> ast.Module:
    """`x += y` as `x = x + y`, so that every assignment has its whole right-hand side."""

    class Expand(ast.NodeTransformer):
        def visit_AugAssign(self, node):
            value = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))

    return Expand().visit(tree)


def _places(function: ast.FunctionDef, name: str) -> list:
    """Statements whose `.value` can fill the blank, in order: assignments to `name`, or calls of tl.store."""
    nodes = sorted(
        (n for n in ast.walk(function) if isinstance(n, ast.stmt)), key=lambda n: (n.lineno, n.col_offset)
    )
    if name == "store":
        return [n for n in nodes if isinstance(n, ast.Expr) and _shorten(n.value.func) == "tl.store"]
    targets = {ast.Assign: lambda node: node.targets[0], ast.AnnAssign: lambda node: node.target}
    nodes = [(node, targets[type(node)](node)) for node in nodes if type(node) in targets]
    return [node for node, target in nodes if isinstance(target, ast.Name) and target.id == name]


def _position(places: list, name: str, template: KernelSource) -> int:
    """Index of the first place that is more than the initial value of an accumulator."""
    fold = _Module(ast.parse(template.source)).fold
    for index, place in enumerate(places):
        if name == "store" or fold(place.value) is None:
            return index
    raise Restructured(f"the starter has no blank `{name}`")
