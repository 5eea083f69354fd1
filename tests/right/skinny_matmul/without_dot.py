import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x, w, out, n, k, length, C: tl.constexpr, K: tl.constexpr):
    row, part = tl.program_id(1), tl.program_id(2).to(tl.int64)
    c = tl.program_id(0) * C + tl.arange(0, C)
    acc = tl.zeros((K, C), tl.float32)
    end = tl.minimum((part + 1) * length, k)
    for start in range(part * length, end, K):
        p = start + tl.arange(0, K)
        a = tl.load(x + row.to(tl.int64) * k + p, p < end, 0.0).to(tl.float32)
        b = tl.load(w + p[:, None] * n + c[None, :], (p[:, None] < end) & (c[None, :] < n), 0.0)
        acc += a[:, None] * b.to(tl.float32)
    tl.store(out + (part * tl.num_programs(1) + row) * n + c, tl.sum(acc, 0), c < n)


@triton.jit
def merge_kernel(parts, out, many, size, C: tl.constexpr, P: tl.constexpr):
    c, p = tl.program_id(0) * C + tl.arange(0, C), tl.arange(0, P)
    ok = (p[:, None] < many) & (c[None, :] < size)
    tl.store(out + c, tl.sum(tl.load(parts + p[:, None] * size + c[None, :], ok, 0.0), 0), c < size)


def skinny_matmul(x, w):
    (m, k), n = x.shape, w.shape[1]
    length = max(1024, triton.cdiv(k, 64))
    many = triton.cdiv(k, length)
    parts = torch.empty((many, m, n), dtype=torch.float32, device=x.device)
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    parts_kernel[(triton.cdiv(n, 64), m, many)](x, w, parts, n, k, length, C=64, K=32)
    merge_kernel[(triton.cdiv(m * n, 128),)](parts, out, many, m * n, C=128, P=triton.next_power_of_2(many))
    return out
