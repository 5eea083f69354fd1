import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, x_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(y_ptr + row * n + cols, x * rstd * w, mask=mask)


@triton.jit
def dx_kernel(x_ptr, w_ptr, dy_ptr, rstd_ptr, dx_ptr, x_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + eps)
    mean = tl.sum(dy * w * x, axis=0) / n
    dx = rstd * (dy * w - x * rstd * rstd * mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(dx_ptr + row * n + cols, dx, mask=mask)


@triton.jit
def dw_kernel(x_ptr, dy_ptr, rstd_ptr, dw_ptr, x_stride, m, n, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    acc = tl.zeros((ROWS, COLS), tl.float32)
    for start in range(0, m, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < m) & (cols[None, :] < n)
        x = tl.load(x_ptr + rows[:, None] * x_stride + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + rows, mask=rows < m, other=0.0)
        acc += dy * x * rstd[:, None]
    tl.store(dw_ptr + cols, tl.sum(acc, axis=0), mask=cols < n)


@triton_op("ship_it::rms_norm", mutates_args=())
def rms_norm_op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    m, n = x.shape
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        block = triton.next_power_of_2(n)
        wrap_triton(forward_kernel)[(m,)](x, weight, y, x.stride(0), n, eps, BLOCK=block, num_warps=8)
    return y


@triton_op("ship_it::rms_norm_backward", mutates_args=())
def rms_norm_backward(
    x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    m, n = x.shape
    dy = dy.contiguous()
    dx = torch.empty((m, n), dtype=x.dtype, device=x.device)
    dw = torch.empty_like(weight)
    rstd = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        block = triton.next_power_of_2(n)
        wrap_triton(dx_kernel)[(m,)](x, weight, dy, rstd, dx, x.stride(0), n, eps, BLOCK=block, num_warps=8)
    wrap_triton(dw_kernel)[(triton.cdiv(n, 64),)](x, dy, rstd, dw, x.stride(0), m, n, ROWS=32, COLS=64)
    return dx, dw


def setup_context(ctx, inputs, output):
    x, weight, eps = inputs
    ctx.save_for_backward(x, weight)
    ctx.eps = eps


def backward(ctx, dy):
    x, weight = ctx.saved_tensors
    dx, dw = rms_norm_backward(x, weight, dy, ctx.eps)
    return dx, dw, None


rms_norm_op.register_autograd(backward, setup_context=setup_context)
