import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(src, dst, factor, src_stride, dst_stride, width, TILE: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    for start in range(0, width, TILE):
        c = start + tl.arange(0, TILE)
        inside = c < width
        v = tl.load(src + r * src_stride + c, mask=inside)
        tl.store(dst + r * dst_stride + c, v * factor, mask=inside)


def scale(x: torch.Tensor, a: float) -> torch.Tensor:
    """a * x"""
    if x.dim() != 2:
        raise ValueError("a matrix, please")
    out = x.new_empty(x.shape)
    if x.shape[0] == 0:
        return out
    row_kernel[(x.shape[0],)](src=x, dst=out, factor=a, src_stride=x.stride(0), dst_stride=out.stride(0), width=x.shape[1], TILE=256)
    return out
