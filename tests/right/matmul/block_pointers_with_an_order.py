# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, N)
    top, left = tl.program_id(0) // across * M, tl.program_id(0) % across * N
    a = tl.make_block_ptr(a_ptr, (m, k), (am, ak), (top, 0), (M, K), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (bk, bn), (0, left), (K, N), (0, 1))
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x, y, acc, input_precision="ieee")
        a, b = tl.advance(a, (0, K)), tl.advance(b, (K, 0))
    c = tl.make_block_ptr(c_ptr, (m, n), (n, 1), (top, left), (M, N), (1, 0))
    tl.store(c, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 16) * triton.cdiv(n, 128),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), M=16, N=128, K=64
    )
    return c
