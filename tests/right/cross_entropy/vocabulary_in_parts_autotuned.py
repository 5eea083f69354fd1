import torch
import triton
import triton.language as tl

PART = 2048  # columns


@triton.jit
def parts_kernel(x, tops, sums, stride, n, parts, PART: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // parts).to(tl.int64)
    c = pid % parts * PART + tl.arange(0, PART)
    v = tl.load(x + row * stride + c, mask=c < n, other=-float("inf")).to(tl.float32)
    top = tl.max(v, axis=0)
    tl.store(tops + pid, top)
    tl.store(sums + pid, tl.sum(tl.exp(v - top), axis=0))


@triton.jit
def merge_kernel(x, targets, tops, sums, lses, losses, stride, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -float("inf")
    for start in range(0, parts, BLOCK):
        j = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.max(tl.load(tops + row * parts + j, mask=j < parts, other=-float("inf")), axis=0))
    total = 0.0
    for start in range(0, parts, BLOCK):
        j = start + tl.arange(0, BLOCK)
        m = tl.load(tops + row * parts + j, mask=j < parts, other=-float("inf"))
        s = tl.load(sums + row * parts + j, mask=j < parts, other=0.0)
        total += tl.sum(s * tl.exp(m - top), axis=0)
    lse = top + tl.log(total)
    target = tl.load(targets + row)
    picked = tl.load(x + row * stride + target, mask=target != -100, other=0.0).to(tl.float32)
    tl.store(lses + row, lse)
    tl.store(losses + row, tl.where(target != -100, lse - picked, 0.0))


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((512, 2), (2048, 4))], key=["n"]
)
@triton.jit
def gradient_kernel(x, targets, lses, scales, dx, stride, n, BLOCK: tl.constexpr):
    blocks = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    c = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scales + row)
    v = tl.load(x + row * stride + c, mask=c < n, other=0.0).to(tl.float32)
    p = tl.exp(v - tl.load(lses + row))
    tl.store(dx + row * n + c, scale * (p - (c == tl.load(targets + row))), mask=c < n)


class CrossEntropyLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets):
        m, n = logits.shape
        parts = triton.cdiv(n, PART)
        tops, sums = torch.empty((2, m, parts), dtype=torch.float32, device=logits.device)
        lses, losses = torch.empty((2, m), dtype=torch.float32, device=logits.device)
        if m:
            parts_kernel[(m * parts,)](logits, tops, sums, logits.stride(0), n, parts, PART=PART)
            merge_kernel[(m,)](logits, targets, tops, sums, lses, losses, logits.stride(0), parts, BLOCK=64)
        ctx.save_for_backward(logits, targets, lses)
        return losses.sum() / (targets != -100).sum()

    @staticmethod
    def backward(ctx, upstream):
        logits, targets, lses = ctx.saved_tensors
        m, n = logits.shape
        counts = targets != -100
        scales = torch.where(counts, upstream / counts.sum(), 0.0).float()  # one number for each row
        dx = torch.empty((m, n), dtype=logits.dtype, device=logits.device)
        if m:
            gradient_kernel[lambda meta: (m * triton.cdiv(n, meta["BLOCK"]),)](
                logits, targets, lses, scales, dx, logits.stride(0), n
            )
        return dx, None


def cross_entropy(logits, targets):
    return CrossEntropyLoss.apply(logits, targets)
