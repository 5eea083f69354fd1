# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, y_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    across = tl.cdiv(n, N)
    top, left = tl.program_id(0) // across * M, tl.program_id(0) % across * N
    x = tl.make_block_ptr(x_ptr, (m, k), (k, 1), (top, 0), (M, K), (1, 0))
    w = tl.make_block_ptr(w_ptr, (k, n), (1, k), (0, left), (K, N), (0, 1))
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        acc = tl.dot(
            tl.load(x, boundary_check=(0, 1), padding_option="zero"),
            tl.load(w, boundary_check=(0, 1), padding_option="zero"),
            acc,
            input_precision="ieee",
        )
        x = tl.advance(x, (0, K))
        w = tl.advance(w, (K, 0))
    b = tl.make_block_ptr(b_ptr, (n,), (1,), (left,), (N,), (0,))
    z = acc + tl.load(b, boundary_check=(0,), padding_option="zero").to(tl.float32)[None, :]
    y = tl.make_block_ptr(y_ptr, (m, n), (n, 1), (top, left), (M, N), (1, 0))
    tl.store(y, (z * (0.5 + 0.5 * tl.erf(z * 0.7071067811865476))).to(y_ptr.dtype.element_ty), boundary_check=(0, 1))


def linear_gelu(x, w, b):
    (m, k), n = x.shape, w.shape[0]
    y = x.new_empty((m, n))
    kernel[(triton.cdiv(m, 64) * triton.cdiv(n, 32),)](x, w, b, y, m, n, k, M=64, N=32, K=32)
    return y
