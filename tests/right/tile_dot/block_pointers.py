# needs triton<3.9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, m, n, k, K: tl.constexpr):
    a = tl.make_block_ptr(a_ptr, (m, k), (k, 1), (0, 0), (64, K), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (0, 0), (K, 64), (1, 0))
    acc = tl.zeros((64, 64), tl.float32)
    for _ in range(0, k, K):
        x = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(x, y, acc)
        a = tl.advance(a, (0, K))
        b = tl.advance(b, (K, 0))
    c = tl.make_block_ptr(c_ptr, (m, n), (n, 1), (0, 0), (64, 64), (1, 0))
    tl.store(c, acc, boundary_check=(0, 1))


def tile_dot(a, b):
    c = torch.empty((a.shape[0], b.shape[1]), dtype=torch.float32, device=a.device)
    kernel[(1,)](a, b, c, a.shape[0], b.shape[1], a.shape[1], K=32)
    return c
