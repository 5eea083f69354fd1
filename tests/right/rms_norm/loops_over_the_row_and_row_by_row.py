import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, rstd_ptr, x_stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * n
    sum_sq = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < n, other=0.0).to(tl.float32)
        sum_sq += x * x
    rstd = tl.rsqrt(tl.sum(sum_sq, axis=0) / n + eps)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_row + cols, x * rstd * w, mask=mask)


@triton.jit
def dx_kernel(x_ptr, w_ptr, dy_ptr, rstd_ptr, dx_ptr, x_stride, dy_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    dy_row = dy_ptr + row * dy_stride
    rstd = tl.load(rstd_ptr + row)
    dot = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + cols, mask=mask, other=0.0).to(tl.float32)
        dot += dy * w * x
    mean = tl.sum(dot, axis=0) / n
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + cols, mask=mask, other=0.0).to(tl.float32)
        dx = rstd * (dy * w - x * rstd * rstd * mean)
        tl.store(dx_ptr + row * n + cols, dx, mask=mask)


@triton.jit
def dw_kernel(x_ptr, dy_ptr, rstd_ptr, dw_ptr, x_stride, dy_stride, m, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n
    acc = tl.zeros((BLOCK,), tl.float32)
    for row in range(m):
        x = tl.load(x_ptr + row.to(tl.int64) * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row.to(tl.int64) * dy_stride + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        acc += dy * x * rstd
    tl.store(dw_ptr + cols, acc, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        m, n = x.shape
        y = torch.empty((m, n), dtype=x.dtype, device=x.device)
        rstd = torch.empty(m, dtype=torch.float32, device=x.device)
        if m:
            forward_kernel[(m,)](x, weight, y, rstd, x.stride(0), n, eps, BLOCK=1024)
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, rstd = ctx.saved_tensors
        if dy.stride(1) != 1:
            dy = dy.contiguous()
        m, n = x.shape
        dx = torch.empty((m, n), dtype=x.dtype, device=x.device)
        dw = torch.empty_like(weight)
        if m:
            dx_kernel[(m,)](x, weight, dy, rstd, dx, x.stride(0), dy.stride(0), n, BLOCK=1024)
        dw_kernel[(triton.cdiv(n, 128),)](x, dy, rstd, dw, x.stride(0), dy.stride(0), m, n, BLOCK=128)
        return dx, dw, None


def rms_norm(x, weight, eps):
    return RMSNorm.apply(x, weight, eps)
