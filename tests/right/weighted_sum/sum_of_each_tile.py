import torch
import triton
import triton.language as tl


@triton.jit
def weighted_sum_kernel(p_ptr, v_ptr, output_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for i in range(tl.cdiv(T, BLOCK_T)):
        rows = i * BLOCK_T + tl.arange(0, BLOCK_T)
        mask = (rows[:, None] < T) & (cols[None, :] < D)
        p = tl.load(p_ptr + rows, mask=rows < T, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + rows[:, None].to(tl.int64) * D + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        acc += tl.sum(p[:, None] * v, axis=0)
    tl.store(output_ptr + cols, acc, mask=cols < D)


def weighted_sum(p, v):
    T, D = v.shape
    output = torch.empty(D, dtype=torch.float32, device=v.device)
    if D:
        grid = (triton.cdiv(D, 64),)
        weighted_sum_kernel[grid](p, v, output, T, D, BLOCK_T=64, BLOCK_D=64)
    return output
