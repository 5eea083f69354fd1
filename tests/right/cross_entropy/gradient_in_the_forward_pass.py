import torch
import triton
import triton.language as tl

IGNORE = tl.constexpr(-100)


@triton.jit
def loss_and_gradient(x, targets, losses, grads, stride, n, GRADIENT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    t = tl.load(targets + row)
    m = -float("inf")
    s = 0.0
    hit = 0.0
    for start in range(0, n, BLOCK):
        c = start + offsets
        v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(v))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(v - new))
        hit += tl.sum(tl.where(c == t, v, 0.0))
        m = new
    tl.store(losses + row, tl.where(t == IGNORE, 0.0, tl.log(s) + (m - hit)))
    if GRADIENT:
        for start in range(0, n, BLOCK):
            c = start + offsets
            v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf")).to(tl.float32)
            g = tl.exp(v - m) / s - tl.where(c == t, 1.0, 0.0)
            tl.store(grads + row * n + c, tl.where(t == IGNORE, 0.0, g), mask=c < n)


@triton.jit
def multiply(grads, scale, dx, elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(grads + i, mask=i < elements, other=0.0)
    tl.store(dx + i, tl.where(g == 0.0, 0.0, g * tl.load(scale)), mask=i < elements)


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        m, n = logits.shape
        wanted = ctx.needs_input_grad[0]
        losses = torch.zeros(m, dtype=torch.float32, device=logits.device)
        grads = torch.empty((m, n) if wanted else (1,), dtype=torch.float32, device=logits.device)
        if m:
            loss_and_gradient[(m,)](
                logits, targets, losses, grads, logits.stride(0), n, GRADIENT=wanted, BLOCK=2048
            )
        count = (targets != -100).sum()
        ctx.dtype = logits.dtype
        ctx.save_for_backward(grads, count)
        return losses.sum() / count

    @staticmethod
    def backward(ctx, upstream):
        grads, count = ctx.saved_tensors
        dx = torch.empty(grads.shape, dtype=ctx.dtype, device=grads.device)
        scale = upstream.float() / count
        if grads.numel():
            multiply[(triton.cdiv(grads.numel(), 1024),)](grads, scale, dx, grads.numel(), BLOCK=1024)
        return dx, None


def cross_entropy(logits, targets):
    return Loss.apply(logits, targets)
