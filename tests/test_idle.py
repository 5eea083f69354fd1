"""Kernels that are launched and change nothing: torch made the result, by copies alone."""

import pytest
import torch

from autograder.box.wire import Evidence
from autograder.diagnosis import overall
from autograder.exercises.spec import Bound, Case, Exercise, Strided
from workshop.syllabus import Lesson

SIDES = Exercise(
    lesson=Lesson("sides", "", 1),
    entry="sides",
    signature="sides(x) -> x.T",
    cases=tuple(
        Case(f"{m} × {n}", lambda generator, m=m, n=n: (Strided(torch.randn(m, n, generator=generator)),))
        for m, n in ((5, 30), (30, 4), (0, 3))
    ),
    reference=lambda x: x.double().T,
    bounds={torch.float32: Bound(0.0)},
)

KERNELS = """
import torch, triton
import triton.language as tl

@triton.jit
def touch(y_ptr):
    tl.store(y_ptr, tl.load(y_ptr))

@triton.jit
def nothing(x_ptr, y_ptr, n):
    i = tl.program_id(0)
    if i >= n:
        tl.store(y_ptr + i, tl.load(x_ptr + i))

@triton.jit
def turn(x_ptr, y_ptr, rows, columns, x_stride, B: tl.constexpr):
    i = tl.program_id(0)
    for start in range(0, rows, B):
        j = start + tl.arange(0, B)
        tl.store(y_ptr + i * rows + j, tl.load(x_ptr + j * x_stride + i, mask=j < rows), mask=j < rows)

def sides(x):
    rows, columns = x.shape
    if not x.numel():
        return torch.empty((columns, rows), dtype=x.dtype, device=x.device)
"""
IDLE = (
    "y = x.T.contiguous()\n    touch[(1,)](y)\n    return y",
    "y = torch.cat([x[:, i] for i in range(columns)]).view(columns, rows)\n    touch[(1,)](y)\n    return y",
    "y = x.T.clone(memory_format=torch.contiguous_format)\n    nothing[(8,)](x, y, 8)\n    return y",
)
WORKING = (
    "y = torch.empty((columns, rows), device=x.device)\n    turn[(columns,)](x, y, rows, columns, x.stride(0), B=16)\n    return y",  # noqa: E501
    "y = torch.zeros((columns, rows), device=x.device)\n    turn[(columns,)](x, y, rows, columns, x.stride(0), B=16)\n    return y",  # noqa: E501
    "y = torch.empty((columns, rows), device=x.device)\n    turn[(columns,)](x.clone(), y, rows, 0, columns, B=8)\n    return y.clone()",  # noqa: E501
)


@pytest.mark.parametrize("body", IDLE)
def test_a_launch_that_adds_nothing_is_no_kernel(judge, body):
    verdict = judge.verdict_on(SIDES, f"{KERNELS}    {body}\n")
    assert (verdict.passed, verdict.diagnosis) == (False, "no-triton-kernel")
    assert "without them the result is the same" in verdict.message


@pytest.mark.parametrize("body", WORKING)
def test_kernels_that_work_pass(judge, body):
    assert judge.verdict_on(SIDES, f"{KERNELS}    {body}\n").passed


def test_one_case_that_needs_the_kernel_is_enough():
    from test_gallery import observed

    def seen(name, idle):
        return observed(name, lambda x: torch.softmax(x, 1), evidence=Evidence(launched=("kernel",), idle=idle))

    both = [seen({"rows": 3, "columns": 1}, True), seen({"rows": 4, "columns": 300}, False)]
    assert overall(both, [None, None]) is None
    assert overall(both[:1], [None]).slug == "no-triton-kernel"
