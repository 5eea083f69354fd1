import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, targets_ptr, loss_ptr, lse_ptr, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = x_ptr + row * x_stride
    row_max = -float("inf")
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + offsets, mask=offsets < n, other=-float("inf")).to(tl.float32)
        row_max = tl.maximum(row_max, tl.max(x, axis=0))
    row_sum = 0.0
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(row_ptr + offsets, mask=offsets < n, other=-float("inf")).to(tl.float32)
        row_sum += tl.sum(tl.exp(x - row_max), axis=0)
    lse = row_max + tl.log(row_sum)
    tl.store(lse_ptr + row, lse)
    target = tl.load(targets_ptr + row)
    valid = target != -100
    x_target = tl.load(row_ptr + target, mask=valid, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(valid, lse - x_target, 0.0))


@triton.jit
def gradient_kernel(x_ptr, targets_ptr, lse_ptr, scale_ptr, dx_ptr, x_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = x_ptr + row * x_stride
    dx_row_ptr = dx_ptr + row * n
    target = tl.load(targets_ptr + row)
    lse = tl.load(lse_ptr + row)
    scale = tl.load(scale_ptr)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(row_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        p = tl.exp(x - lse)
        one_hot = tl.where(offsets == target, 1.0, 0.0)
        dx = tl.where(target != -100, (p - one_hot) * scale, 0.0)
        tl.store(dx_row_ptr + offsets, dx, mask=mask)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        m, n = logits.shape
        losses = torch.empty(m, dtype=torch.float32, device=logits.device)
        lse = torch.empty(m, dtype=torch.float32, device=logits.device)
        if m:
            loss_kernel[(m,)](logits, targets, losses, lse, logits.stride(0), n, BLOCK=1024)
        count = (targets != -100).sum()
        ctx.save_for_backward(logits, targets, lse, count)
        return losses.sum() / count

    @staticmethod
    def backward(ctx, dloss):
        logits, targets, lse, count = ctx.saved_tensors
        m, n = logits.shape
        dx = torch.empty((m, n), dtype=logits.dtype, device=logits.device)
        scale = (dloss / count).to(torch.float32)
        if m:
            gradient_kernel[(m,)](logits, targets, lse, scale, dx, logits.stride(0), n, BLOCK=1024)
        return dx, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets)
