import torch
import triton
import triton.language as tl


@triton.jit
def weighted_sum_kernel(p_ptr, v_ptr, out_ptr, t, d, BLOCK: tl.constexpr):
    col = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, t, BLOCK):
        rows = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = rows < t
        p = tl.load(p_ptr + rows, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + rows * d + col, mask=mask, other=0.0).to(tl.float32)
        acc += p * v
    tl.store(out_ptr + col, tl.sum(acc, axis=0))


def weighted_sum(p, v):
    t, d = v.shape
    out = torch.empty(d, dtype=torch.float32, device=v.device)
    if d == 0:
        return out
    weighted_sum_kernel[(d,)](p, v, out, t, d, BLOCK=256)
    return out
