"""The calls of a JAX function that an answer is judged by, as records and as requests to the box."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..box.wire import Report
from ..box.wire.layout import Packer
from ..box.wire.programs import Program
from ..box.wire.requests import Decoy, JaxCall, JaxProgram, Scalar, Traced
from ..exercises.spec import Call, Case, Strided, Varying
from ..tensors import dtype_name
from ..verdict import ErrorMap, Finding


@dataclass
class Asked:
    """A program that calls share: what was asked for, and what was traced, or the finding that says why nothing was."""

    request: JaxProgram
    trace: dict | None = None
    program: Program | None = None
    finding: Finding | None = None


@dataclass
class Made:
    """One call: its arguments as tensors and numbers, and its output or the finding that says why it has none."""

    case: Case
    call: Call
    arguments: tuple
    cotangent: torch.Tensor | None
    expected: torch.Tensor | None  # float64; None if the exercise does not compare with it
    like: torch.Tensor  # a tensor of the output's shape and dtype
    program: Asked | None = None
    report: Report | None = None
    got: torch.Tensor | None = None
    finding: Finding | None = None
    map: ErrorMap | None = None


def requested(made: Made) -> JaxProgram:
    """The program of a call. Under jit integers are traced, such as seeds. Other numbers are part of the program."""

    def described(argument):
        if isinstance(argument, torch.Tensor):
            return decoy(argument)
        traced = made.call.jit and type(argument) is int
        return Traced("int") if traced else Scalar(argument)

    cotangent = decoy(made.cotangent) if made.call.grad else None
    return JaxProgram(tuple(map(described, made.arguments)), cotangent)


def decoy(tensor: torch.Tensor) -> Decoy:
    return Decoy(tuple(tensor.shape), tuple(tensor.stride()), dtype_name(tensor.dtype))


def described(made: Made, program: int, packer: Packer) -> JaxCall:
    """A call for the box: the inputs of its program."""
    arguments = zip(made.program.request.arguments, made.arguments, strict=True)
    inputs = [value for about, value in arguments if not isinstance(about, Scalar)]
    inputs += [made.cotangent] if made.call.grad else []
    packed = tuple(packer.tensor(each) if isinstance(each, torch.Tensor) else Scalar(each) for each in inputs)
    return JaxCall(program, packed, packer.slot(made.like.nbytes))


def value_of(argument, variant: int):
    if isinstance(argument, Varying):
        return argument.values[variant]
    return argument.values if isinstance(argument, Strided) else argument
