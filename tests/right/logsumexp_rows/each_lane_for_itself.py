import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + start + lane, mask=start + lane < n, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        seen = larger > -float("inf")
        old = tl.where(seen, sums * tl.exp(largest - larger), 0.0)
        sums = old + tl.where(seen, tl.exp(x - larger), 0.0)
        largest = larger
    top = tl.max(largest, axis=0)
    shift = tl.where(top > -float("inf"), top, 0.0)
    total = tl.sum(sums * tl.exp(largest - shift), axis=0)
    tl.store(out_ptr + row, shift + tl.log(total))


def logsumexp_rows(x):
    rows, n = x.shape
    out = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows:
        kernel[(rows,)](x, out, n, BLOCK=512)
    return out
