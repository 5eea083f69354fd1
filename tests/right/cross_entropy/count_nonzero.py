"""The rows that count, by torch.count_nonzero."""

import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, x_stride, n, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    lse = m + tl.log(s)
    target = tl.load(target_ptr + row)
    counts = target != ignored
    x_target = tl.load(x_ptr + row * x_stride + target, mask=counts, other=0.0).to(tl.float32)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, tl.where(counts, lse - x_target, 0.0))


@triton.jit
def loss_gradient_kernel(
    x_ptr, target_ptr, lse_ptr, scale_ptr, dx_ptr, x_stride, n, ignored, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
    lse = tl.load(lse_ptr + row)
    target = tl.load(target_ptr + row)
    scale = tl.load(scale_ptr)  # the gradient of the loss, divided by the number of rows that count
    dx = tl.exp(x - lse) - tl.where(columns == target, 1.0, 0.0)
    dx = tl.where(target == ignored, 0.0, dx * scale)
    tl.store(dx_ptr + row * n + columns, dx, mask=mask)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignored):
        m, n = logits.shape
        losses, lse = torch.empty((2, m), dtype=torch.float32, device=logits.device)
        if m:
            block = min(triton.next_power_of_2(n), 8192)
            loss_kernel[(m,)](
                logits, targets, losses, lse, logits.stride(0), n, ignored, BLOCK=block,
                num_warps=max(1, block // 2048),
            )  # fmt: skip
        count = torch.count_nonzero(targets != ignored)
        ctx.save_for_backward(logits, targets, lse, count)
        ctx.ignored = ignored
        return losses.sum() / count

    @staticmethod
    def backward(ctx, dloss):
        logits, targets, lse, count = ctx.saved_tensors
        m, n = logits.shape
        dx = torch.empty((m, n), dtype=logits.dtype, device=logits.device)
        scale = (dloss / count).to(torch.float32)
        if m:
            block = min(triton.next_power_of_2(n), 2048)
            loss_gradient_kernel[(m, triton.cdiv(n, block))](
                logits, targets, lse, scale, dx, logits.stride(0), n, ctx.ignored, BLOCK=block,
                num_warps=max(1, block // 512),
            )  # fmt: skip
        return dx, None, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets, -100)
