import torch
import triton
import triton.language as tl


def programs_for(n_rows, device):
    if device.type == "cuda":
        return min(n_rows, 4 * torch.cuda.get_device_properties(device).multi_processor_count)
    return min(n_rows, 3)


@triton.jit
def persistent_kernel(x_ptr, y_ptr, sx, sy, n_rows, n_cols, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x_row = x_ptr + row.to(tl.int64) * sx
        y_row = y_ptr + row.to(tl.int64) * sy
        m = -float("inf")
        d = 0.0
        for c in range(0, n_cols, BLOCK):
            cols = c + tl.arange(0, BLOCK)
            x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
            m_new = tl.maximum(m, tl.max(x))
            if m_new > -float("inf"):
                d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new))
            m = m_new
        for c in range(0, n_cols, BLOCK):
            cols = c + tl.arange(0, BLOCK)
            x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
            tl.store(y_row + cols, tl.exp(x - m) / d, mask=cols < n_cols)


def fused_softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.shape[0] == 0:
        return y
    persistent_kernel[(programs_for(x.shape[0], x.device),)](x, y, x.stride(0), y.stride(0), *x.shape, BLOCK=1024)
    return y
