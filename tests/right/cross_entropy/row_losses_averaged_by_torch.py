import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride
    biggest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        biggest = tl.maximum(biggest, tl.load(x_row + j, mask=j < n, other=-float("inf")).to(tl.float32))
    m = tl.max(biggest, axis=0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        sums += tl.exp(tl.load(x_row + j, mask=j < n, other=-float("inf")).to(tl.float32) - m)
    lse = m + tl.log(tl.sum(sums, axis=0))
    tl.store(lse_ptr + row, lse)
    target = tl.load(target_ptr + row)
    if target == -100:
        tl.store(loss_ptr + row, 0.0)
    else:
        tl.store(loss_ptr + row, lse - tl.load(x_row + target).to(tl.float32))


@triton.jit
def backward_kernel(x_ptr, target_ptr, lse_ptr, d_ptr, dx_ptr, stride, d_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    lse = tl.load(lse_ptr + row)
    d = tl.load(d_ptr + row * d_stride)
    d = tl.where(target == -100, 0.0, d)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + j, mask=j < n, other=-float("inf")).to(tl.float32)
        tl.store(dx_ptr + row * n + j, d * (tl.exp(x - lse) - (j == target).to(tl.float32)), mask=j < n)


class RowLosses(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        m, n = logits.shape
        losses = torch.empty(m, dtype=torch.float32, device=logits.device)
        lse = torch.empty_like(losses)
        if m:
            forward_kernel[(m,)](logits, targets, losses, lse, logits.stride(0), n, BLOCK=1024)
        ctx.save_for_backward(logits, targets, lse)
        return losses

    @staticmethod
    def backward(ctx, d):
        logits, targets, lse = ctx.saved_tensors
        m, n = logits.shape
        dx = torch.empty((m, n), dtype=logits.dtype, device=logits.device)
        if m:
            backward_kernel[(m,)](
                logits, targets, lse, d, dx, logits.stride(0), d.stride(0), n, BLOCK=1024
            )
        return dx, None


def cross_entropy(logits, targets):
    return RowLosses.apply(logits, targets).sum() / (targets != -100).sum()
