"""The results of the kernel language: clean source and signatures, or an error."""

from __future__ import annotations

from dataclasses import dataclass, field


class NotAllowed(Exception):
    """A construct that the kernel language does not have. `line` counts from 1, in the learner's source."""

    def __init__(self, line: int, construct: str, instead: str):
        super().__init__(line, construct, instead)
        self.line, self.construct, self.instead = line, construct, instead

    def __str__(self) -> str:
        return f"line {self.line}: {self.construct} cannot be used in a kernel here. Instead: {self.instead}."


class Restructured(KeyError):
    """A blank's expression cannot be judged alone, because the learner restructured the kernel around it."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Kernel:
    """Signature of one jit function. `constexprs` and the keys of `defaults` are names in `params`."""

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
