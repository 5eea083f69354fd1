# %% [markdown]
# # 10 · Ship it: your kernel in other people's programs

# %%
from workshop import DEVICE, count_bytes, device, explore, here, progress, xray

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton

from autograder import check

here("10_ship_it")

# %% answer="rms_norm"
### BEGIN SOLUTION
CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((1024, 4), (4096, 8), (16384, 16))
]


@triton.autotune(CONFIGS, key=["bucket"])
@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, x_stride, n, eps, bucket, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row, y_row = x_ptr + row * x_stride, y_ptr + row * n
    columns = tl.arange(0, BLOCK)
    if n <= BLOCK:  # the row is one block: x is read once
        x = tl.load(x_row + columns, mask=columns < n, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
        tl.store(y_row + columns, x * rstd * weight, mask=columns < n)
    else:
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            at = start + columns
            x = tl.load(x_row + at, mask=at < n, other=0.0).to(tl.float32)
            squares += x * x
        rstd = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
        for start in range(0, n, BLOCK):
            at = start + columns
            x = tl.load(x_row + at, mask=at < n, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
            tl.store(y_row + at, x * rstd * weight, mask=at < n)


@triton.autotune(CONFIGS, key=["bucket"])
@triton.jit
def rms_norm_backward_kernel(
    x_ptr, weight_ptr, dy_ptr, dx_ptr, parts_ptr, x_stride, dy_stride, m, n, eps, part_rows, bucket, BLOCK: tl.constexpr
):
    part = tl.program_id(0).to(tl.int64)
    parts = parts_ptr + part * n
    columns = tl.arange(0, BLOCK)
    first = part * part_rows
    end = tl.minimum(first + part_rows, m)
    if n <= BLOCK:
        mask = columns < n
        weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for row in range(first, end):
            x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row * dy_stride + columns, mask=mask, other=0.0).to(tl.float32)
            rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
            slope = tl.sum(dy * weight * x, axis=0) / n * rstd * rstd
            tl.store(dx_ptr + row * n + columns, rstd * (dy * weight - x * slope), mask=mask)
            sums += dy * x * rstd
        tl.store(parts + columns, sums, mask=mask)
    else:
        for row in range(first, end):
            squares = tl.zeros((BLOCK,), tl.float32)
            slopes = tl.zeros((BLOCK,), tl.float32)
            for start in range(0, n, BLOCK):
                at = start + columns
                x = tl.load(x_ptr + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * dy_stride + at, mask=at < n, other=0.0).to(tl.float32)
                squares += x * x
                slopes += dy * x * tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
            rstd = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
            slope = tl.sum(slopes, axis=0) / n * rstd * rstd
            for start in range(0, n, BLOCK):
                at = start + columns
                x = tl.load(x_ptr + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * dy_stride + at, mask=at < n, other=0.0).to(tl.float32)
                weight = tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
                tl.store(dx_ptr + row * n + at, rstd * (dy * weight - x * slope), mask=at < n)
                before = tl.load(parts + at, mask=(at < n) & (row > first), other=0.0)  # of this program's rows
                tl.store(parts + at, before + dy * x * rstd, mask=at < n)
            tl.debug_barrier()


@triton.jit
def add_parts_kernel(parts_ptr, output_ptr, parts, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, parts, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < parts) & (columns[None, :] < n)
        sums += tl.load(parts_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(output_ptr + columns, tl.sum(sums, axis=0), mask=columns < n)


def normalized(x, weight, eps):
    m, n = x.shape
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        rms_norm_kernel[(m,)](x, weight, y, x.stride(0), n, eps, triton.next_power_of_2(n))
    return y


def gradients(x, weight, dy, eps):
    m, n = x.shape
    if m == 0:
        return torch.empty_like(x), torch.zeros_like(weight)
    dx, dw = torch.empty((m, n), dtype=x.dtype, device=x.device), torch.empty_like(weight)
    dy = dy if dy.stride(1) == 1 else dy.contiguous()  # of y.sum() it is one number, with strides of 0
    part_rows = triton.cdiv(m, 512)
    parts = triton.cdiv(m, part_rows)
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    rms_norm_backward_kernel[(parts,)](
        x, weight, dy, dx, sums, x.stride(0), dy.stride(0), m, n, eps, part_rows, triton.next_power_of_2(n)
    )
    add_parts_kernel[(triton.cdiv(n, 32),)](sums, dw, parts, n, ROWS=32, COLUMNS=32)
    return dx, dw


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return normalized(x, weight, eps)

    @staticmethod
    def backward(ctx, dy):
        return *gradients(*ctx.saved_tensors, dy, ctx.eps), None


def rms_norm(x, weight, eps):
    return RMSNorm.apply(x, weight, eps)
### STARTER
# def rms_norm(x, weight, eps):
#     """x: (m, n), any row stride. weight: (n,), of x's dtype. Returns x / sqrt(mean(x², of a row) + eps) * weight.
#
#     The result is (m, n), of x's dtype, contiguous, and differentiable in x and weight.
#     """
#     ...  # your code here: kernels, a torch.autograd.Function, and this function
### END SOLUTION

# %% answer="rms_norm_op"
@triton_op("ship_it::rms_norm", mutates_args=())
def rms_norm_op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    ### BEGIN SOLUTION
    m, n = x.shape
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        wrap_triton(rms_norm_kernel)[(m,)](x, weight, y, x.stride(0), n, eps, triton.next_power_of_2(n))
    return y
    ### STARTER
    # return torch.empty_like(x)  # your code here: launch wrap_triton(your kernel)
    ### END SOLUTION


@triton_op("ship_it::rms_norm_backward", mutates_args=())
def rms_norm_backward(
    x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    ### BEGIN SOLUTION
    m, n = x.shape
    if m == 0:
        return torch.empty_like(x), torch.zeros_like(weight)
    dx, dw = torch.empty((m, n), dtype=x.dtype, device=x.device), torch.empty_like(weight)
    dy = dy if dy.stride(1) == 1 else dy.contiguous()
    part_rows = triton.cdiv(m, 512)
    parts = triton.cdiv(m, part_rows)
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    wrap_triton(rms_norm_backward_kernel)[(parts,)](
        x, weight, dy, dx, sums, x.stride(0), dy.stride(0), m, n, eps, part_rows, triton.next_power_of_2(n)
    )
    wrap_triton(add_parts_kernel)[(triton.cdiv(n, 32),)](sums, dw, parts, n, ROWS=32, COLUMNS=32)
    return dx, dw
    ### STARTER
    # return torch.empty_like(x), torch.empty_like(weight)  # your code here
    ### END SOLUTION


### BEGIN SOLUTION
def setup_context(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def backward(ctx, dy):
    return *rms_norm_backward(*ctx.saved_tensors, dy, ctx.eps), None


rms_norm_op.register_autograd(backward, setup_context=setup_context)
### STARTER
# # your code here: a function that saves what the backward pass needs, the backward pass, and their registration
### END SOLUTION
