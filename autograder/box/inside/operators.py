"""Whether a function is an operator of torch: what torch.library.opcheck and torch.compile say of it.

Its kernels run on decoys, by the executor. The zygote imports this module before the first answer that registers an
operator, because a confined process cannot open the files of torch's compiler. It runs beside the learner's Python.
"""

from __future__ import annotations

import contextlib
import functools
import os
from unittest import mock

with mock.patch.dict(os.environ, {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}):  # the zygote must not start a driver
    import torch
    import torch._dynamo
    import torch._functorch.aot_autograd
    import torch.testing._internal.optests
from torch._library.triton import set_wrap_triton_enabled
from torch._subclasses import FakeTensorMode
from torch.library import opcheck
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from .job import Refused, line_of

SCHEMA = "test_schema", "test_faketensor"
GRADIENT = "test_autograd_registration", "test_aot_dispatch_dynamic"
BACKEND = "aot_eager"  # torch.compile up to the graphs of forward and backward, without a compiler of kernels


class NotAnOperator(Refused):
    """torch does not accept the function as an operator. words: the test that it fails. line: the learner's, if known.

    Its text is the operator's name and what torch says.
    """

    kind = "operator"


class _Called(TorchDispatchMode):
    """Notes the registered operators that are called, with their arguments and the strides of their results."""

    def __init__(self):
        super().__init__()
        self.operators: list[tuple] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        if operator.namespace not in ("aten", "prims") and all(operator != known for known, *_ in self.operators):
            leaves = (a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args)
            self.operators.append((operator, tuple(leaves), kwargs or {}, _strides(result)))
        return result


def check(function, arguments: list) -> None:
    """Raises NotAnOperator with the first test that the function does not pass. All floating tensors get a gradient."""
    inputs = [a for a in arguments if isinstance(a, torch.Tensor) and a.is_floating_point()]
    for each in inputs:
        torch.empty(0, dtype=each.dtype).set_(each.untyped_storage()).normal_()  # a decoy is not filled to its end
        each.requires_grad_()
    with _Called() as forward, set_wrap_triton_enabled(False), _named("called"):
        result = function(*arguments)
    if not forward.operators:
        raise NotAnOperator(words="registered")
    with _Called() as backward, set_wrap_triton_enabled(False), _named("gradient"):
        incoming = torch.ones_like(result)
        gradients = torch.autograd.grad(result, inputs, incoming)
    for called, tests in ((forward, SCHEMA), (backward, SCHEMA), (forward, GRADIENT)):
        for operator, args, kwargs, strides in called.operators:
            for test in tests:
                with _named(test, operator.name()):
                    opcheck(operator, args, kwargs, test_utils=test)
            if tests is SCHEMA:
                _check_strides(operator, args, kwargs, strides)
    with _named("compile"):
        torch._dynamo.reset()
        # torch.compile(function, fullgraph=True, backend=BACKEND), which would make a folder for a cache
        again = torch._dynamo.optimize(BACKEND, nopython=True)(function)(*arguments)
        found = [again, *torch.autograd.grad(again, inputs, incoming)]
    agree = functools.partial(torch.allclose, rtol=1e-2, atol=1e-2, equal_nan=True)
    if not all(map(agree, found, [result, *gradients])):
        raise NotAnOperator(words="other numbers")


@contextlib.contextmanager
def _named(step: str, operator: str = ""):
    """Tells an exception as one of this step."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        first = error.__cause__ or error  # opcheck tells another exception
        said = f"{operator}: " * bool(operator) + f"{type(first).__name__}: {first}"
        raise NotAnOperator(said, words=step, line=line_of(first)) from None


def _check_strides(operator, args, kwargs, strides: list) -> None:
    """The opcheck of torch 2.11 and earlier compares the strides of tensors without numbers on a GPU only."""
    with FakeTensorMode() as mode:
        without_numbers = tree_map_only(torch.Tensor, mode.from_tensor, (args, kwargs))
        found = _strides(operator(*without_numbers[0], **without_numbers[1]))
    if found != strides:
        raise NotAnOperator(f"{operator.name()}: strides {found} instead of {strides}", words="test_faketensor")


def _strides(result) -> list:
    return [each.stride() for each in tree_leaves(result) if isinstance(each, torch.Tensor)]


def warm_up() -> None:
    """Goes through all of it once, which loads what torch loads late."""

    @torch.library.triton_op("workshop_warm_up::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    double.register_autograd(lambda ctx, dy: double(dy))
    check(lambda x: double(x), [torch.ones(3)])
    with contextlib.suppress(NotAnOperator):  # what loads only where something is refused
        check(lambda x: double(x) if x.sum() > 0 else double(x), [torch.ones(3)])
