"""Checks one jit function against the words of the language, and builds its tree again."""

from __future__ import annotations

import ast
import difflib

from . import prints
from .module import Module, is_infinity, literal, shorten
from .page import Page
from .records import Kernel, NotAllowed
from .words import (
    ADVICE,
    ATTRIBUTE_ADVICE,
    ATTRIBUTES,
    BUILTINS,
    DROPPED_CALLS,
    FORCED_TYPES,
    LIBDEVICE_MODULES,
    LISTED,
    LOOPS,
    MAX_INTEGER,
    METHOD_ADVICE,
    METHODS,
    RESERVED,
    SHORT_STRING,
    STRING_KEYWORDS,
    TAKES_FUNCTION,
    TL_ADVICE,
    TL_FUNCTIONS,
    TL_MODULES,
    TL_TYPES,
    TL_VALUES,
)


class Translator:
    """Checks one jit function and writes it again. Each statement becomes one statement on the same line."""

    def __init__(self, module: Module, function: ast.FunctionDef):
        self.module, self.function = module, function
        self.helpers: set[str] = set()
        arguments = function.args
        if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
            self.refuse(function, "`*` or `/` among the parameters", "write plain parameters, as Triton requires")
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
            self.refuse(node, f"the name `{name[:40]}` for a variable or function of your own", "choose another name")

    # -- the function as a whole

    def emit(self, page: Page) -> Kernel:
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
        """The meaning of an annotation for Triton: "constexpr", a forced integer type, or none (None)."""
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
            return literal(number.value)
        name = _tl_name(self.module.path(node) or "")
        if name in TL_TYPES:
            return _dotted(f"tl.{name}")
        if _is_short_string(node):
            return node
        advice = "use a number, or pass the value at the launch"
        self.refuse(node, f"the default value `{shorten(node)}`", advice)

    # -- statements

    def statement(self, node: ast.stmt) -> ast.stmt:
        method = getattr(self, f"statement_{type(node).__name__}", None)
        if method is None:
            self.refuse_node(node)
        return ast.copy_location(method(node), node)

    def refuse_node(self, node: ast.AST):
        default = (f"`{shorten(node)}`", "use the operators and functions of `tl`")
        self.refuse(node, *ADVICE.get(type(node), default))

    def statement_Pass(self, node):
        return node

    def statement_Assert(self, node):
        return self.dropped(node)

    def dropped(self, node: ast.Call | ast.Assert) -> ast.Pass:
        """A print or an assertion is left out, if a compiler accepts it."""
        constants = {p.arg for p in self.parameters if self.annotation(p.annotation) == "constexpr"}
        constants |= set(self.module.constants) - self.locals
        if found := prints.refused(node, self.function, constants, self.callee):
            self.refuse(node, *found)
        return ast.Pass()

    def statement_Return(self, node):
        return ast.Return(node.value and self.expression(node.value))

    def statement_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Constant):
            return ast.Pass()
        if isinstance(call, ast.Call) and self.callee(call.func) in DROPPED_CALLS:
            return self.dropped(call)
        return ast.Expr(self.expression(call))

    def statement_Assign(self, node):
        if len(node.targets) > 1:
            self.refuse(node, "`a = b = …`", "write one assignment per line, as Triton requires")
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
            self.refuse(node, "`else` after a loop", "put it after the loop")
        return ast.While(self.expression(node.test), self.block(node.body), [])

    def statement_For(self, node):
        if node.orelse:
            self.refuse(node, "`else` after a loop", "put it after the loop")
        if not isinstance(node.target, ast.Name):
            self.refuse(node, f"`{shorten(node.target)}` as a loop variable", "use one name")
        if not isinstance(node.iter, ast.Call) or self.callee(node.iter.func) not in LOOPS:
            advice = "loop over `range(…)`, `tl.range(…)` or `tl.static_range(…)`"
            self.refuse(node, f"a loop over `{shorten(node.iter)}`", advice)
        return ast.For(self.target(node.target), self.call(node.iter), self.block(node.body), [])

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.statement(statement) for statement in body]

    def target(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, (ast.Tuple, ast.List)):
            return ast.Tuple([self.target(element) for element in node.elts], ast.Store())
        if isinstance(node, ast.Subscript):
            name = getattr(node.value, "id", "")
            advice = "build the new block with `tl.where`"
            if name in {parameter.arg for parameter in self.parameters}:
                advice = f"store through the pointer: `tl.store({name} + …, value)`"
            self.refuse(node, f"assigning to `{shorten(node)}`", advice)
        if isinstance(node, ast.Attribute):
            self.refuse(node, f"assigning to `{shorten(node)}`", "assign to a plain variable")
        self.refuse_node(node)

    # -- expressions

    def expression(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"expression_{type(node).__name__}", None)
        if method is None:
            self.refuse_node(node)
        return method(node)

    def expression_Constant(self, node):
        if type(node.value) in (str, bytes):
            self.refuse(node, "a string", "use strings only in options such as `eviction_policy=`")
        if type(node.value) not in (int, float, bool, type(None)):
            self.refuse(node, f"`{shorten(node)}`", "use numbers")
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
            advice = "call it, or pass it to `tl.reduce` or `tl.associative_scan`"
            self.refuse(node, f"`{name}` as a value", advice)
        if name in self.module.bound:
            construct = f"`{name}`, which is not a variable of this kernel,"
            advice = "pass it as a parameter (`tl.constexpr` if it is fixed), or make it a plain number"
            self.refuse(node, construct, advice)
        known = [*self.locals, *self.module.functions, *LOOPS, *(f"tl.{word}" for word in TL_FUNCTIONS)]
        similar = difflib.get_close_matches(name, known, 1, 0.75)
        advice = f"write `{similar[0]}`" if similar else "assign it first, or pass it as a parameter"
        self.refuse(node, f"the unknown name `{name[:40]}`", advice)

    def expression_Attribute(self, node):
        path = None if self.root(node) in self.locals else self.module.path(node)
        if path:
            return self.language_value(node, path)
        if node.attr not in ATTRIBUTES:
            advice = ATTRIBUTE_ADVICE.get(node.attr, "use the functions of `tl`")
            self.refuse(node, f"the attribute `.{node.attr[:40]}`", advice)
        return ast.Attribute(self.expression(node.value), node.attr, ast.Load())

    def language_value(self, node: ast.expr, path: str) -> ast.expr:
        number = self.module.fold(node)
        if number is not None:
            return literal(number.value)
        name = _tl_name(path)
        if name in TL_VALUES:
            return _dotted(f"tl.{name}")
        if name in TL_FUNCTIONS:
            self.refuse(node, f"`tl.{name}` without a call", f"call it: `tl.{name}(…)`")
        self.refuse_path(node, path)

    def refuse_path(self, node: ast.AST, path: str):
        text = shorten(node)
        name = _tl_name(path)
        if name is not None:
            first = name.partition(".")[0]
            similar = difflib.get_close_matches(first, TL_FUNCTIONS, 1, 0.7)
            advice = f"write `tl.{similar[0]}`" if similar else "use the functions of `tl` that the hints name"
            self.refuse(node, f"`{text}`", TL_ADVICE.get(first, advice))
        if path.startswith("math."):
            advice = _same_in_tl(path[5:]) or "use the functions of `tl`, or compute the constant outside of the kernel"
            self.refuse(node, f"Python's `{text}`", advice)
        if path.startswith("triton."):
            advice = "use the functions of `tl`, `triton.cdiv` or `triton.next_power_of_2`"
            self.refuse(node, f"`{text}`", advice)
        advice = _same_in_tl(path.rpartition(".")[2]) or "use the operators and functions of `tl`"
        self.refuse(node, f"`{text}`, which is not Triton,", advice)

    def expression_UnaryOp(self, node):
        return ast.UnaryOp(node.op, self.expression(node.operand))

    def expression_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.refuse(node, f"`{shorten(node)}`", "use `tl.dot(a, b)`")
        if isinstance(node.op, (ast.Pow, ast.LShift)):
            self.check_growth(node)
        return ast.BinOp(self.expression(node.left), node.op, self.expression(node.right))

    def check_growth(self, node: ast.BinOp) -> None:
        right = node.right.value if isinstance(node.right, ast.Constant) else 0
        if isinstance(node.op, ast.LShift) and isinstance(right, int) and right > 64:
            self.refuse(node, f"`{shorten(node)}`", "shift by at most 64")
        variable = any(isinstance(n, ast.Name) and n.id in self.locals for n in ast.walk(node))
        if isinstance(node.op, ast.Pow) and (variable or self.module.fold(node) is None):
            advice = "multiply (`x * x`), shift (`1 << k`), or use `tl.exp2(y * tl.log2(x))`"
            self.refuse(node, f"the power `{shorten(node)}`", advice)

    def expression_BoolOp(self, node):
        return ast.BoolOp(node.op, [self.expression(value) for value in node.values])

    def expression_Compare(self, node):
        if len(node.ops) > 1:
            self.refuse(node, f"the chained comparison `{shorten(node)}`", "write `(a <= b) & (b < c)`")
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            self.refuse(node, "`in`", "compare with `==`, and combine with `|`")
        operands = [self.compared(operand) for operand in (node.left, node.comparators[0])]
        return ast.Compare(operands[0], node.ops, operands[1:])

    def compared(self, node: ast.expr) -> ast.expr:
        """An operand of a comparison. It may be a short string: `ACTIVATION == "relu"`, for a constexpr parameter."""
        return node if _is_short_string(node) else self.expression(node)

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
            advice = "to loop, write `for i in range(…)`; a block of numbers is `tl.arange(0, BLOCK_SIZE)`"
            self.refuse(node, f"`{shorten(node)}` outside a `for`", advice)
        return self.call(node)

    # -- calls

    def root(self, node: ast.expr) -> str | None:
        while isinstance(node, ast.Attribute):
            node = node.value
        return node.id if isinstance(node, ast.Name) else None

    def callee(self, function: ast.expr) -> str | None:
        """Canonical name of the called function ("tl.load", "range"), or None if it has none."""
        root = self.root(function)
        if root is None or root in self.locals:
            return None
        path = self.module.path(function)
        if path is None:
            known = isinstance(function, ast.Name) and root not in self.module.bound
            return root if known and root in BUILTINS | {"print"} else None
        if path.startswith(LIBDEVICE_MODULES):
            return f"libdevice.{path.rpartition('.')[2]}"
        name = _tl_name(path)
        return path if name is None else f"tl.{name}"

    def call(self, node: ast.Call) -> ast.Call:
        function, takes_function = self.called(node.func)
        if getattr(function, "id", None) == "float" and len(node.args) == 1 and is_infinity(node.args[0]):
            return ast.Call(function, node.args, [])
        arguments = [self.argument(argument, takes_function) for argument in node.args]
        keywords = [self.keyword(keyword, takes_function) for keyword in node.keywords]
        return ast.Call(function, arguments, keywords)

    def called(self, function: ast.expr) -> tuple[ast.expr, bool]:
        """The clean form of the called function, and whether it takes a combine function."""
        root = self.root(function)
        if isinstance(function, ast.Name) and root in self.module.functions and root not in self.locals:
            self.helpers.add(root)
            return function, False
        name = self.callee(function)
        if name is not None:
            return self.called_by_name(function, name)
        if isinstance(function, ast.Attribute):
            if function.attr not in METHODS:
                advice = METHOD_ADVICE.get(function.attr, "use the functions of `tl`")
                self.refuse(function, f"the method `.{function.attr[:40]}()`", advice)
            method = ast.Attribute(self.expression(function.value), function.attr, ast.Load())
            return method, function.attr in TAKES_FUNCTION
        if root is not None and root in self.module.bound:
            advice = "put `@triton.jit` above the function, or use the functions of `tl`"
            self.refuse(function, f"a call of `{root}`, which is not a kernel,", advice)
        advice = _same_in_tl(root) or "call functions of `tl`, or your own `@triton.jit` ones"
        self.refuse(function, f"a call of `{shorten(function)}`", advice)

    def called_by_name(self, function: ast.expr, name: str) -> tuple[ast.expr, bool]:
        module, _, rest = name.rpartition(".")
        if rest in LISTED.get(module, ()):
            self.module.uses_libdevice |= module == "libdevice"
            return _dotted(name), module == "tl" and rest in TAKES_FUNCTION
        if name == "print" or name in DROPPED_CALLS:
            self.refuse(function, f"the result of `{name}`", "use it on a separate line")
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
            self.refuse(keyword.value, "`**` arguments", "write each argument")
        if keyword.arg.startswith("_"):
            self.refuse(keyword.value, f"the argument `{keyword.arg[:40]}=`", "remove it")
        value = keyword.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            if keyword.arg not in STRING_KEYWORDS or not _is_short_string(value):
                self.refuse(value, f"a string for `{keyword.arg}=`", "remove it, or use a number")
            return ast.keyword(keyword.arg, value)
        return ast.keyword(keyword.arg, self.argument(value, takes_function))


def _tl_name(path: str) -> str | None:
    """'load' for "triton.language.load" (and for the modules where Triton keeps it); None for other paths."""
    for module in TL_MODULES:
        if path.startswith(module):
            return path[len(module) :]
    return None


def _same_in_tl(name: str | None) -> str | None:
    return f"use `tl.{name}`" if name in TL_FUNCTIONS else None


def _is_short_string(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and type(node.value) is str
        and bool(SHORT_STRING.fullmatch(node.value))
    )


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
