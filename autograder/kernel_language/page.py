"""Writes statements as text, each on the line where the learner wrote it."""

from __future__ import annotations

import ast

from .module import Module, literal


class Page:
    """Text that is built line by line. A statement goes to the line number of its node."""

    def __init__(self):
        self.lines: dict[int, str] = {}

    def put(self, line: int, indent: int, text: str) -> None:
        there = self.lines.get(line)
        self.lines[line] = f"{there}; {text}" if there else " " * indent + text

    def prelude(self, module: Module) -> None:
        """The imports, on line 1, and the constants in use, each on its own line."""
        for name in sorted(module.used, key=lambda name: module.lines[name]):
            number = module.constants[name]
            text = ast.unparse(literal(number.value))
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
        """A body below its header. A body that begins on the header's line stays there, as Python requires."""
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
