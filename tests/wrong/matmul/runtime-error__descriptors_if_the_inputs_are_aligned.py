import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def matmul_desc_kernel(
    a_desc, b_desc, c_desc, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    num_m, num_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        row, column = tile // num_n * BLOCK_M, tile % num_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_desc.load([row, start])
            b = b_desc.load([start, column])
            acc = tl.dot(a, b, acc, input_precision="ieee")
        c_desc.store([row, column], acc.to(c_desc.dtype))


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_n = tl.cdiv(n, BLOCK_N)
    rows = (tl.program_id(0) // num_n * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (tl.program_id(0) % num_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    along = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * a_row + along[None, :] * a_column
    b_ptrs = b_ptr + along[:, None] * b_row + columns[None, :] * b_column
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        mask = along < k - start
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * a_column
        b_ptrs += BLOCK_K * b_row
    places = rows[:, None] * n + columns[None, :]
    tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


def fits_descriptor(x):
    """Rows of neighbours, and every row begins at a multiple of 16 bytes."""
    aligned = x.data_ptr() % 16 == 0 and x.stride(0) * x.element_size() % 16 == 0
    return x.stride(1) == 1 and x.stride(0) >= x.shape[1] and aligned


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    if fits_descriptor(a) and fits_descriptor(b):
        matmul_desc_kernel[(min(tiles, 264),)](
            TensorDescriptor.from_tensor(a, [64, 32]),
            TensorDescriptor.from_tensor(b, [32, 64]),
            TensorDescriptor.from_tensor(c, [64, 64]),
            m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
        )
    else:
        matmul_kernel[(tiles,)](a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c
