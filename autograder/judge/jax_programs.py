"""Looks at the programs that JAX traced: which kernels they launch, and what JAX computes outside of them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from ..box.wire.programs import MOVES, SMALL, Constant, Program
from ..verdict import Finding


@dataclass
class Seen:
    """What one or more programs do.

    kernels: those that they launch. bare: one that needs a kernel launches none. bare_gradient: no kernel of a gradient
    takes the incoming gradient, or what was made of it. arithmetic: elements that JAX computes, by operation; empty if
    they are no more than the values of scalar arguments, such as 1 / (1 - p).
    """

    kernels: set[str] = field(default_factory=set)
    arithmetic: Counter = field(default_factory=Counter)
    bare: bool = False
    bare_gradient: bool = False

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.kernels | other.kernels,
            self.arithmetic + other.arithmetic,
            self.bare or other.bare,
            self.bare_gradient or other.bare_gradient,
        )

    def finding(self) -> Finding | None:
        if not self.kernels or self.bare:
            return Finding(
                "no-triton-kernel",
                "The forward pass launches no Triton kernel."
                if self.kernels
                else "No Triton kernel is launched between the input and the output.",
                "A Triton kernel must compute the result.",
                "call your kernel with jt.triton_call(…), and return its result.",
            )
        if self.bare_gradient:
            return Finding(
                "no-triton-kernel",
                "No Triton kernel computes the gradient: none is given dy, the gradient that comes in.",
                "JAX computed it with operations of its own. Each of them is one more pass over memory.",
                "write a kernel that takes x and dy and draws the mask again, and launch it in the backward function.",
            )
        return self.about_arithmetic() if self.arithmetic else None

    def about_arithmetic(self) -> Finding:
        names = sorted(self.arithmetic)[:4]
        return Finding(
            "no-triton-kernel",
            f"JAX computes part of the result outside of the kernel: {', '.join(names)}.",
            "The kernel must do all the arithmetic: each operation outside of it can cost one more pass over memory.",
            "keep reshapes, casts and the call, and move the arithmetic into the kernel.",
        )


def look(program: Program, grad: bool, needs_kernel: bool) -> Seen:
    """What a program does. `grad`: it computes a gradient, and its last input is the incoming one."""
    kernels = {launch.kernel for launch in program.launches()}
    arithmetic = _arithmetic(program)
    if program.known and arithmetic.total() <= SMALL:
        arithmetic.clear()
    bare_gradient = grad and needs_kernel and not _launches_on(program, program.inputs - 1)
    return Seen(kernels, arithmetic, needs_kernel and not grad and not kernels, bare_gradient)


def _arithmetic(program: Program, times: float = 1) -> Counter:
    """The number of elements that JAX computes, by operation. A loop may run any number of times."""
    found = Counter()
    for step in program.steps:
        for inner in step.inner:
            found += _arithmetic(inner, times if step.op == "cond" else math.inf)
        if not step.launch and not step.inner and step.op not in MOVES:
            found[step.op[:40]] += times * sum(max(program.forms[n].size, 1) for n in step.outputs)
    tables = sum(each.form.size for each in set(program.constants()) if _table(each))
    if tables > SMALL:
        found["table"] += tables
    return found


def _table(constant: Constant) -> bool:
    """Whether it holds several numbers that are not in a row."""
    return constant.table or constant.values is not None and len(set(constant.values)) > 1


def _launches_on(program: Program, number: int) -> bool:
    """Whether a kernel takes this input, or what was made of it."""
    made = {number}
    for step in program.steps:
        if made.intersection(each for each in step.inputs if type(each) is int):
            made.update(step.outputs)
            if step.launch or any(True for inner in step.inner for _ in inner.launches()):
                return True
    return False
