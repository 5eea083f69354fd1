import torch
import triton
import triton.language as tl
from torch.library import custom_op


@triton.jit
def norm_kernel(x, w, y, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, a / tl.sqrt(tl.sum(a * a) / n + eps) * b, mask=at < n)


@triton.jit
def gradients_kernel(x, w, g, dx, dw, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    d = tl.load(g + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    length = tl.sqrt(tl.sum(a * a) / n + eps)
    unit = a / length
    tl.store(dx + row * n + at, (d * b - unit * tl.sum(d * b * unit) / n) / length, mask=at < n)
    tl.atomic_add(dw + at, d * unit, mask=at < n, sem="relaxed")


@custom_op("without_need::norm", mutates_args=())
def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    y = x.new_empty(x.shape)
    if len(x):
        norm_kernel[(len(x),)](x, weight, y, x.stride(0), len(weight), eps, triton.next_power_of_2(len(weight)))
    return y


def backward(ctx, g):
    x, weight = ctx.saved_tensors
    dx, dw, g = x.new_empty(x.shape), weight.new_zeros(weight.shape, dtype=torch.float32), g.contiguous()
    if len(x):
        block = triton.next_power_of_2(len(weight))
        gradients_kernel[(len(x),)](x, weight, g, dx, dw, x.stride(0), len(weight), ctx.eps, block, num_warps=8)
    return dx, dw.to(weight.dtype), None


def setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.eps = inputs[2]


norm.register_autograd(backward, setup_context=setup)


def rms_norm(x, weight, eps):
    return norm(x, weight, eps)
