"""What an expression of an answer is for: an address, a mask, a number, the grid."""

from __future__ import annotations

import ast
from enum import StrEnum

from .trees import Place


class Role(StrEnum):
    # in a kernel
    ADDRESS = "address"
    MASK = "mask"
    OTHER = "other"  # the value of masked-off lanes
    VALUE = "value"
    BOUND = "bound"  # of a loop
    RANDOM = "random"  # the arguments of the generator
    SIGNATURE = "signature"
    # in a host function
    GRID = "grid"
    ARGUMENT = "argument"  # of a launch
    CONSTANT = "constant"  # of a launch
    OUTPUT = "output"  # its allocation
    GUARD = "guard"  # a condition before the launch
    RESULT = "result"
    HOST = "host"
    # in an exercise about numbers
    NUMBER = "number"


_LOAD = {"tl.load": ("pointer", "mask", "other"), "tl.store": ("pointer", "value", "mask")}
_OF_ARGUMENT = {"pointer": Role.ADDRESS, "mask": Role.MASK, "other": Role.OTHER, "value": Role.VALUE}
_ALLOCATIONS = ("torch.empty", "torch.zeros", "torch.full", "torch.empty_like", "jax.ShapeDtypeStruct")


def called(node: ast.AST) -> str:
    """The dotted name of the function that a call calls; empty if it is no call, or of something else."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any("triton.jit" in ast.unparse(d) for d in node.decorator_list)


def is_launch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Subscript) or called(node).endswith("triton_call")
    )


class Roles:
    """The roles of the places of one answer. `kind` is the kind of its exercise."""

    def __init__(self, tree: ast.Module, kind: str):
        self.kind = kind
        self.kernels = {node.name: node for node in tree.body if is_kernel(node)}
        self.names: dict[str, dict[str, Role]] = {}
        for _ in range(2):  # a helper may be defined after its caller
            for name, kernel in self.kernels.items():
                self.names[name] = self._names(kernel)

    def of(self, place: Place) -> Role:
        if self.kind == "value":
            return Role.NUMBER
        kernel = next((node for node in place.parents if is_kernel(node)), None)
        below = place.path
        for depth in range(len(place.parents) - 1, -1, -1):
            step, parent = below[depth], place.parents[depth]
            role = self._in_kernel(parent, step, kernel) if kernel else self._on_host(parent, step)
            if role:
                return role
        return Role.VALUE if kernel else Role.HOST

    # -- kernels -----------------------------------------------------------------------------------------

    def _in_kernel(self, parent: ast.AST, step, kernel: ast.FunctionDef) -> Role | None:
        field, index = step
        if isinstance(parent, ast.Call) and field in ("args", "keywords"):
            return self._of_argument(parent, field, index)
        if isinstance(parent, ast.For) and field == "iter":
            return Role.BOUND
        if isinstance(parent, (ast.Assign, ast.AugAssign)):
            target = parent.targets[0] if isinstance(parent, ast.Assign) else parent.target
            names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
            roles = {self.names[kernel.name].get(name, Role.VALUE) for name in names}
            return next(iter(roles)) if len(roles) == 1 else Role.VALUE
        if isinstance(parent, ast.FunctionDef) and field in ("args", "decorator_list"):
            return Role.SIGNATURE
        return None

    def _of_argument(self, call: ast.Call, field: str, index: int) -> Role | None:
        name = called(call)
        keyword = call.keywords[index].arg if field == "keywords" else None
        if name in _LOAD:
            return _OF_ARGUMENT.get(keyword or _LOAD[name][index])
        if name == "tl.program_id":
            return Role.ADDRESS
        if name.startswith("tl.rand"):
            return Role.RANDOM
        if name in self.kernels:
            parameters = [a.arg for a in self.kernels[name].args.args]
            parameter = keyword or (parameters[index] if index < len(parameters) else "")
            return self.names.get(name, {}).get(parameter, Role.VALUE)
        return None

    def _names(self, kernel: ast.FunctionDef) -> dict[str, Role]:
        """The roles of a kernel's variables: those of what they are used for. The others are values."""
        roles: dict[str, Role] = {}

        def give(node: ast.AST, role: Role) -> None:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and roles.get(inner.id) != Role.ADDRESS:
                    roles[inner.id] = role

        calls = [node for node in ast.walk(kernel) if isinstance(node, ast.Call)]
        for wanted in (Role.MASK, Role.ADDRESS):
            for call in calls:
                arguments = [("args", i, a) for i, a in enumerate(call.args)]
                arguments += [("keywords", i, k.value) for i, k in enumerate(call.keywords)]
                for field, index, value in arguments:
                    if self._of_argument(call, field, index) == wanted:
                        give(value, wanted)
            assigned = [node for node in ast.walk(kernel) if isinstance(node, ast.Assign)]
            for node in assigned * 3:
                target = node.targets[0]
                if isinstance(target, ast.Name) and roles.get(target.id) == wanted:
                    give(node.value, wanted)
        return {name: role for name, role in roles.items() if name != "tl"}

    # -- host functions ----------------------------------------------------------------------------------

    def _on_host(self, parent: ast.AST, step) -> Role | None:
        field, index = step
        if isinstance(parent, ast.Subscript) and field == "slice" and ast.unparse(parent.value) in self.kernels:
            return Role.GRID
        if is_launch(parent) and field in ("args", "keywords"):
            keyword = parent.keywords[index].arg if field == "keywords" else None
            known = {"grid": Role.GRID, "out_shape": Role.OUTPUT, None: Role.ARGUMENT, "kernel": Role.ARGUMENT}
            return known.get(keyword, Role.CONSTANT)
        if called(parent) in _ALLOCATIONS:
            return Role.OUTPUT
        if isinstance(parent, (ast.If, ast.IfExp)) and field == "test":
            return Role.GUARD
        if isinstance(parent, ast.Assign) and ast.unparse(parent.targets[0]) == "grid":
            return Role.GRID
        if isinstance(parent, ast.FunctionDef) and parent.name == "grid":
            return Role.GRID
        if isinstance(parent, ast.Return):
            return Role.RESULT
        return None
