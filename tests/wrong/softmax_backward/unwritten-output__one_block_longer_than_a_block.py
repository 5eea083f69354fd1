import torch
import triton
import triton.language as tl


@triton.heuristics({
    "BLOCK": lambda args: min(triton.next_power_of_2(args["n"]), 8192),
    "ONE_BLOCK": lambda args: args["n"] <= 16384,
    "num_warps": lambda args: max(1, min(triton.next_power_of_2(args["n"]) // 512, 16)),
})
@triton.jit
def softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, y_stride, dy_stride, n, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    y_row, dy_row, dx_row = y_ptr + row * y_stride, dy_ptr + row * dy_stride, dx_ptr + row * n
    columns = tl.arange(0, BLOCK)
    if ONE_BLOCK:
        mask = columns < n
        y = tl.load(y_row + columns, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_row + columns, y * (dy - tl.sum(y * dy, axis=0)), mask=mask)
    else:
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            at = start + columns
            y = tl.load(y_row + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
            sums += y * tl.load(dy_row + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        total = tl.sum(sums, axis=0)
        for start in range(0, n, BLOCK):
            at = start + columns
            y = tl.load(y_row + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
            dy = tl.load(dy_row + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
            tl.store(dx_row + at, y * (dy - total), mask=at < n)


def softmax_backward(y, dy):
    m, n = y.shape
    dx = torch.empty((m, n), dtype=y.dtype, device=y.device)
    if m:
        softmax_backward_kernel[(m,)](y, dy, dx, y.stride(0), dy.stride(0), n)
    return dx
