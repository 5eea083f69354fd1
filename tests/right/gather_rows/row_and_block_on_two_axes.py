import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(table_ptr, index_ptr, out_ptr, table_stride, out_stride, d, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < d
    row = tl.load(index_ptr + i).to(tl.int64)
    x = tl.load(table_ptr + row * table_stride + cols, mask=mask)
    tl.store(out_ptr + i * out_stride + cols, x, mask=mask)


def gather_rows(table, index):
    m, d = index.shape[0], table.shape[1]
    out = torch.empty((m, d), dtype=table.dtype, device=table.device)
    if out.numel() == 0:
        return out
    grid = (m, triton.cdiv(d, 256))
    gather_kernel[grid](table, index, out, table.stride(0), out.stride(0), d, BLOCK=256)
    return out
