import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(logits_ptr, targets_ptr, loss_ptr, lse_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(logits_ptr + row * stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    target = tl.load(targets_ptr + row)
    x_target = tl.sum(tl.where(cols == target, x, 0.0), axis=0)
    loss = tl.where(target == -100, 0.0, lse - x_target)
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)


@triton.jit
def backward_kernel(logits_ptr, targets_ptr, lse_ptr, scale_ptr, grad_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(logits_ptr + row * stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    lse = tl.load(lse_ptr + row)
    target = tl.load(targets_ptr + row)
    scale = tl.load(scale_ptr)
    p = tl.exp(x - lse)
    grad = tl.where(cols == target, p - 1.0, p) * scale
    grad = tl.where(target == -100, 0.0, grad)
    tl.store(grad_ptr + row * n_cols + cols, grad, mask=mask)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        n_rows, n_cols = logits.shape
        loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
        lse = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
        if n_rows > 0:
            BLOCK = triton.next_power_of_2(n_cols)
            forward_kernel[(n_rows,)](logits, targets, loss, lse, logits.stride(0), n_cols, BLOCK=BLOCK, num_warps=8)
        count = (targets != -100).sum()
        ctx.save_for_backward(logits, targets, lse, count)
        return loss.sum() / count

    @staticmethod
    def backward(ctx, grad_output):
        logits, targets, lse, count = ctx.saved_tensors
        n_rows, n_cols = logits.shape
        grad = torch.empty((n_rows, n_cols), dtype=logits.dtype, device=logits.device)
        scale = (grad_output / count).float()
        if n_rows > 0:
            BLOCK = triton.next_power_of_2(n_cols)
            backward_kernel[(n_rows,)](
                logits, targets, lse, scale, grad, logits.stride(0), n_cols, BLOCK=BLOCK, num_warps=8
            )
        return grad, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets)
