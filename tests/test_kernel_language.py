"""The kernel language: honest kernels keep their meaning and their lines, hostile source runs nothing."""

import ast
import contextlib
import os
import sys
from importlib.metadata import version

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported

from autograder.kernel_language import (  # noqa: E402
    NotAllowed,
    Restructured,
    blank_expressions,
    define,
    kernels_of,
    splice,
)

TRITON = tuple(map(int, version("triton").split(".")[:2]))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HEADER = "import torch, triton\nimport triton.language as tl\n"

# --- honest kernels: each source ends in main(device) -> (got, wanted) ---------------------------------

HONEST = {}


def honest(source, header=HEADER):
    name = source.strip().splitlines()[0].removeprefix("# ")
    HONEST[name] = header + source


honest('''
# plain vector add
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    """Adds.

    def this line begins like a function
    """
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)

def main(device):
    x, y = torch.rand(2, 1000, device=device)
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK_SIZE"]),)](x, y, out, 1000, BLOCK_SIZE=256)
    return out, x + y
''')

honest("""
# two-dimensional tiles
@triton.jit
def scale(x, out, rows, cols, stride, a, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.program_id(1) * C + tl.arange(0, C)[None, :]
    inside = (r < rows) & (c < cols)
    tl.store(out + r * cols + c, a * tl.load(x + r * stride + c, mask=inside, other=0.0), mask=inside)

def main(device):
    x = torch.rand(10, 50, device=device)[:, :37]
    out = torch.empty(10, 37, device=device)
    scale[(3, 3)](x, out, 10, 37, x.stride(0), 2.5, R=4, C=16)
    return out, 2.5 * x
""")

honest("""
# exp2 with log2(e), constants of the module
import math
LOG2E = tl.constexpr(math.log2(math.e))
NEGATIVE = tl.constexpr(float("-inf"))
HALF = tl.constexpr(1 << 3)
BLOCK = 8 * HALF

@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr = BLOCK):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + cols, mask=cols < n, other=NEGATIVE)
    e = tl.exp2((v - tl.max(v, axis=0)) * LOG2E)
    tl.store(out + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)

def main(device):
    x = torch.randn(5, 50, device=device)
    out = torch.empty_like(x)
    softmax[(5,)](x, out, 50)
    return out, x.softmax(1)
""")

honest("""
# persistent programs, tl.range with stages
@triton.jit
def fused(out, x, xs, os, rows, cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=num_stages):
        c = tl.arange(0, BLOCK)
        v = tl.load(x + row * xs + c, mask=c < cols, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(out + row * os + c, e / tl.sum(e, 0), mask=c < cols)

def main(device):
    x = torch.randn(9, 40, device=device)
    out = torch.empty_like(x)
    fused[(2, 1, 1)](out, x, 40, 40, 9, 40, 64, 2)
    return out, x.softmax(1)
""")

honest("""
# per-lane running maxima
@triton.jit
def online(x, out, n, B: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, B)
    m = tl.full((B,), -1e30, dtype=tl.float32)
    s = tl.zeros([B], tl.float32)
    for start in range(0, n, B):
        v = tl.load(x + row * n + start + lanes, mask=start + lanes < n, other=float("-inf"))
        new = tl.maximum(m, v)
        s = s * tl.exp(m - new) + tl.exp(v - new)
        m = new
    top = tl.max(m, axis=0)
    total = tl.sum(s * tl.exp(m - top), axis=0)
    for start in range(0, n, B):
        mask = start + lanes < n
        v = tl.load(x + row * n + start + lanes, mask=mask)
        tl.store(out + row * n + start + lanes, tl.exp(v - top) / total, mask=mask)

def main(device):
    x = torch.randn(3, 75, device=device)
    out = torch.empty_like(x)
    online[(3,)](x, out, 75, B=32)
    return out, x.softmax(1)
""")

honest("""
# 64-bit offsets, forced and cast
@triton.jit
def copy(x, out, n: tl.int64, stride: "i64", B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, B).to(tl.int64) + row * stride
    mask = tl.arange(0, B) < n
    tl.store(out + at, tl.load(x + at, mask=mask), mask=mask)

def main(device):
    x = torch.randn(3, 20, device=device)
    out = torch.empty_like(x)
    copy[(3,)](x, out, 20, 20, B=32)
    return out, x
""")

honest("""
# matmul with tl.dot
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        i = k * BK + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + i[None, :], mask=(m[:, None] < M) & (i[None, :] < K), other=0.0)
        y = tl.load(b + i[:, None] * N + n[None, :], mask=(i[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))

def main(device):
    a, b = torch.randn(20, 33, device=device), torch.randn(33, 18, device=device)
    c = torch.empty(20, 18, device=device)
    matmul[(2, 2)](a, b, c, 20, 18, 33, BM=16, BN=16, BK=16)
    return c, a @ b
""")

honest("""
# histogram by atomics
@triton.jit
def hist(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out + v, tl.full((B,), 1, tl.int32), mask=i < n, sem="relaxed", scope="gpu")

def main(device):
    x = torch.randint(0, 16, (100,), device=device, dtype=torch.int32)
    out = torch.zeros(16, dtype=torch.int32, device=device)
    hist[(4,)](x, out, 100, B=32)
    return out, torch.bincount(x.long(), minlength=16).int()
""")

honest("""
# reduction with a combine function of one's own
@triton.jit
def combine(a, b):
    return tl.where(a > b, a, b)

@triton.jit
def rowmax(x, out, n, B: tl.constexpr):
    c = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=-1e9)
    tl.store(out + tl.program_id(0), tl.reduce(v, 0, combine))

def main(device):
    x = torch.randn(3, 12, device=device)
    out = torch.empty(3, device=device)
    rowmax[(3,)](x, out, 12, B=16)
    return out, x.max(1).values
""")

honest("""
# online softmax as one reduction of a pair
@triton.jit
def merge(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)

@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    c = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * n + c, mask=c < n, other=-1e30)
    m, s = tl.reduce((v, tl.zeros_like(v) + 1.0), axis=0, combine_fn=merge)
    tl.store(out + tl.program_id(0) * n + c, tl.exp(v - m) / s, mask=c < n)

def main(device):
    x = torch.randn(2, 12, device=device)
    out = torch.empty_like(x)
    softmax[(2,)](x, out, 12, B=16)
    return out, x.softmax(1)
""")

honest("""
# associative scan and cumsum
@triton.jit
def plus(a, b):
    return a + b

@triton.jit
def scans(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, tl.associative_scan(v, 0, plus) + tl.cumsum(v, axis=0))

def main(device):
    x = torch.randn(16, device=device)
    out = torch.empty_like(x)
    scans[(1,)](x, out, B=16)
    return out, 2 * x.cumsum(0)
""")

honest("""
# helper functions, a tuple of results, early return
@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))

@triton.jit
def both(x):
    s = sigmoid(x)
    return s, x * s

@triton.jit
def k(x, a, b, n, B: tl.constexpr):
    pid = tl.program_id(0)
    if pid * B >= n:
        return
    i = pid * B + tl.arange(0, B)
    s, t = both(tl.load(x + i, mask=i < n, other=0.0))
    tl.store(a + i, s, mask=i < n)
    tl.store(b + i, t, mask=i < n)

def main(device):
    x = torch.randn(40, device=device)
    a, b = torch.empty_like(x), torch.empty_like(x)
    k[(7,)](x, a, b, 40, B=16)
    return torch.stack([a, b]), torch.stack([x.sigmoid(), x * x.sigmoid()])
""")

honest("""
# dropout by tl.rand, seed at run time
@triton.jit
def dropout(x, out, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    keep = tl.rand(seed, i) >= p
    v = tl.load(x + i, mask=mask)
    v = tl.where(v > 0, v, 0.01 * v)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=mask)

def main(device):
    x = torch.rand(4000, device=device) + 1
    out = torch.empty_like(x)
    dropout[(4,)](x, out, 4000, 0.25, 7, B=1024)
    kept = out != 0
    assert 0.7 < kept.float().mean() < 0.8
    return out[kept], x[kept] / 0.75
""")

honest("""
# rand4x and randint4x
@triton.jit
def k(out, seed, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b, c, d = tl.rand4x(seed, i)
    e, f, g, h = tl.randint4x(seed, i)
    fine = (a >= 0) & (b < 1) & (c != d) & ((e != f) | (g != h))
    tl.store(out + i, fine.to(tl.int32))

def main(device):
    out = torch.zeros(64, dtype=torch.int32, device=device)
    k[(1,)](out, 3, B=64)
    return out, torch.ones_like(out)
""")

honest("""
# static loops, ternaries, comparisons with None and strings
@triton.jit
def k(x, bias, out, n, MODE: tl.constexpr, STEPS: tl.constexpr = 3, B: tl.constexpr = 16):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if bias is not None:
        v += tl.load(bias + i, mask=i < n, other=0.0)
    if MODE == "square":
        v = v * v
    elif MODE == "none":
        v = v
    else:
        v = -v
    for step in tl.static_range(STEPS):
        v = v + step
    scale = 2.0 if STEPS > 2 else 1.0
    tl.store(out + i, v * scale, mask=i < n)

def main(device):
    x = torch.randn(10, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, None, out, 10, MODE="square")
    return out, (x * x + 3) * 2
""")

honest("""
# while loop, augmented assignment, and / or / not on scalars
@triton.jit
def k(out, n):
    total = 0
    i = 0
    while i < n:
        if (i % 2 == 0 and i > 2) or not i < 9:
            total += i
        i += 1
    tl.store(out, total)

def main(device):
    out = torch.zeros(1, dtype=torch.int32, device=device)
    k[(1,)](out, 12)
    return out, torch.tensor([4 + 6 + 8 + 9 + 10 + 11], dtype=torch.int32, device=device)
""")

honest("""
# tensor methods and attributes
@triton.jit
def k(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i).to(tl.float32).reshape(B // 4, 4)
    s = v.sum(axis=1).expand_dims(1).broadcast_to(v.shape)
    r = tl.reshape(v - s, (B,))
    tl.store(out + i, r.to(out.dtype.element_ty))

def main(device):
    x = torch.randn(16, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, B=16)
    v = x.view(4, 4)
    return out, (v - v.sum(1, keepdim=True)).view(-1)
""")

honest(
    """
# everything under other names
@tr.jit
def k(x, out, n: int, B: L.constexpr):
    i = L.program_id(0) * B + L.arange(0, B)
    v = load(x + i, mask=i < n, other=0)
    L.store(out + i, mexp(v) + L.math.floor(v) + twice(v), mask=i < n)

@jit
def twice(x: "an annotation") -> "another":
    return x * 2

def main(device):
    x = torch.randn(20, device=device)
    out = torch.empty_like(x)
    k[(2,)](x, out, 20, B=16)
    return out, x.exp() + x.floor() + 2 * x
""",
    header="import torch\nimport triton as tr\nfrom triton import language as L, jit\n"
    "from triton.language import load\nfrom triton.language.math import exp as mexp\n",
)

honest("""
# autotune and heuristics
@triton.autotune(configs=[triton.Config({"B": b}, num_warps=4) for b in (64, 128)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit(do_not_specialize=["n"])
def k(x, out, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(out + i, tl.load(x + i) + 1)
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

def main(device):
    x = torch.randn(100, device=device)
    out = torch.empty_like(x)
    k[(2,)](x, out, 100, B=64, EVEN=False)
    return out, x + 1
""")

honest("""
# statements of several lines, several statements a line
@triton.jit
def k(
    x, out,  # where
    n,
    B: tl.constexpr,
):
    i = (tl.program_id(0)
         * B) + tl.arange(0, B); m = i < n
    if B > 8: v = tl.load(x + i, mask=m); v = v + 1
    else: v = tl.load(x + i,
                      mask=m)
    tl.store(
        out + i,
        v,
        mask=m,
    )

def main(device):
    x = torch.randn(100, device=device)
    out = torch.empty_like(x)
    k[(2,)](x, out, 100, B=64)
    return out, x + 1
""")

honest("""
# min, max, argmax, sort and flip
@triton.jit
def k(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    best = tl.argmax(v, axis=0)
    span = tl.max(v, axis=0) - tl.min(v, axis=0)
    tl.store(out + i, tl.where(i == best, span, tl.minimum(tl.abs(v), 0.5)))

def main(device):
    x = torch.randn(16, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, B=16)
    want = x.abs().clamp(max=0.5)
    want[x.argmax()] = x.max() - x.min()
    return out, want
""")

honest("""
# cdiv, swizzle of program ids, integer arithmetic
@triton.jit
def k(out, rows, cols, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    width = GROUP * cols
    group = pid // width
    size = min(rows - group * GROUP, GROUP)
    r = group * GROUP + (pid % width) % size
    c = (pid % width) // size
    tl.store(out + r * cols + c, pid + 0 * tl.cdiv(pid, 2) + 0 * triton.cdiv(cols, 2))

def main(device):
    out = torch.full((5, 4), -1, dtype=torch.int32, device=device)
    k[(20,)](out, 5, 4, GROUP=2)
    return out.flatten().sort().values, torch.arange(20, dtype=torch.int32, device=device)
""")

honest("""
# half precision in, float32 inside, half out
@triton.jit
def k(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + i, (e / tl.sum(e, axis=0)).to(tl.float16), mask=i < n)

def main(device):
    x = torch.randn(60, device=device).half()
    out = torch.empty_like(x)
    k[(1,)](x, out, 60, B=64)
    return out, x.float().softmax(0).half()
""")

honest("""
# transpose through a two-dimensional block
@triton.jit
def k(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i[:, None] * B + i[None, :], eviction_policy="evict_last", cache_modifier=".ca")
    tl.store(out + i[:, None] * B + i[None, :], tl.trans(v) + v.T + tl.permute(v, (1, 0)))

def main(device):
    x = torch.randn(16, 16, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, B=16)
    return out, 3 * x.T
""")

honest("""
# fma, clamp, sigmoid, rsqrt, softmax, cast
@triton.jit
def k(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = tl.fma(v, v, 1.0)
    w = tl.clamp(w, 0.0, 3.0) + tl.sigmoid(v) + tl.rsqrt(w) + tl.softmax(v)
    tl.store(out + i, tl.cast(w, tl.float32))

def main(device):
    x = torch.randn(16, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, B=16)
    w = x * x + 1
    return out, w.clamp(0, 3) + x.sigmoid() + w.rsqrt() + x.softmax(0)
""")

honest("""
# layer norm with annotated locals and debugging left in
DTYPE = tl.float32
EPS: tl.constexpr = tl.constexpr(1e-5)

@triton.jit
def k(x, out, n, B: tl.constexpr):
    tl.static_assert(B >= 16, "too small")
    i = tl.arange(0, B)
    tl.device_print("i", i)
    v: tl.tensor = tl.load(x + i, mask=i < n, other=0.0).to(DTYPE)
    assert n > 0
    mean = tl.sum(v, axis=0) / n
    d = tl.where(i < n, v - mean, 0.0)
    var = tl.sum(d * d, axis=0) / n
    print("var", var)
    tl.store(out + i, d / tl.sqrt(var + EPS), mask=i < n)

def main(device):
    x = torch.randn(20, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, 20, B=32)
    return out, torch.nn.functional.layer_norm(x, (20,))
""")

honest("""
# parameters and locals named like builtins and like the other functions of the cell
def max_rows(): return 3

@triton.jit
def k(input, out, len, sum: tl.constexpr):
    abs = tl.arange(0, sum)
    max = tl.load(input + abs, mask=abs < len)
    main = max + 1
    tl.store(out + abs, main, mask=abs < len)

def main(device):
    x = torch.randn(20, device=device)
    out = torch.empty_like(x)
    k[(1,)](x, out, 20, 32)
    return out, x + 1
""")

honest("""
# tail bits: shifts, masks, powers of constants, modulo, xor
@triton.jit
def k(out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = ((i << 2) & 0xFF) ^ (i >> 1) | ~i & 1
    tl.store(out + i, v % 7 + 2 ** 3)

def main(device):
    i = torch.arange(32, dtype=torch.int32, device=device)
    out = torch.empty_like(i)
    k[(1,)](out, B=32)
    return out, ((i << 2) & 0xFF ^ (i >> 1) | ~i & 1) % 7 + 8
""")


@pytest.mark.parametrize("name", HONEST)
def test_honest_kernels_keep_their_meaning(name, tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(HONEST[name])
    clean = kernels_of(HONEST[name])
    namespace = {"__name__": "learner"}
    exec(compile(HONEST[name], str(path), "exec"), namespace)
    host = namespace["main"]
    rewritten = define(clean, f"<clean {name}>")
    assert set(clean.kernels) <= set(rewritten)
    namespace |= {kernel: rewritten[kernel] for kernel in clean.kernels if kernel != "main"}
    torch.manual_seed(0)
    with np.errstate(all="ignore"):
        got, wanted = host(DEVICE)
    torch.testing.assert_close(got, wanted, rtol=2e-5, atol=2e-5)


def test_there_is_honest_variety():
    assert len(HONEST) >= 25


@pytest.mark.skipif(TRITON >= (3, 9), reason="Triton 3.9 has no block pointers")
def test_block_pointers():
    source = (
        HEADER
        + """
@triton.jit
def k(x, out, M, N, B: tl.constexpr):
    p = tl.make_block_ptr(x, shape=(M, N), strides=(N, 1), offsets=(0, 0), block_shape=(B, B), order=(1, 0))
    q = tl.make_block_ptr(out, shape=(M, N), strides=(N, 1), offsets=(0, 0), block_shape=(B, B), order=(1, 0))
    for _ in range(0, tl.cdiv(N, B)):
        v = tl.load(p, boundary_check=(0, 1), padding_option="zero")
        tl.store(q, v + 1, boundary_check=(0, 1))
        p = tl.advance(p, (0, B))
        q = tl.advance(q, (0, B))
"""
    )
    x = torch.randn(7, 20, device=DEVICE)
    out = torch.zeros_like(x)
    define(kernels_of(source))["k"][(1,)](x, out, 7, 20, B=8)
    assert torch.equal(out, x + 1)


# --- lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HONEST)
def test_every_statement_stands_on_the_learners_line(name):
    clean = kernels_of(HONEST[name])

    def statements(source):
        """(line, kind) of the statements in kernels, without what the language drops."""
        found = set()
        for function in ast.parse(source).body:
            if isinstance(function, ast.FunctionDef) and function.name in clean.kernels:
                nodes = [n for n in ast.walk(function) if isinstance(n, ast.stmt)]
                found |= {
                    (n.lineno, type(n).__name__) for n in nodes if not isinstance(n, (ast.Expr, ast.Pass))
                }
        return {(line, kind.replace("AnnAssign", "Assign")) for line, kind in found if kind != "Assert"}

    assert statements(clean.source) == statements(HONEST[name])


def test_an_error_names_the_learners_line():
    source = (
        HEADER
        + "\n\n@triton.jit\ndef k(x):\n    y = 1\n\n    # a\n    tl.store(x, tl.zeros([y],\n tl.int1) / None)"
    )
    with pytest.raises(Exception) as caught:
        define(kernels_of(source), "<learner>")["k"][(1,)](torch.zeros(1, device=DEVICE))
    frames = []
    error = caught.value
    while error is not None:
        trace = error.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == "<learner>":
                frames.append(trace.tb_lineno)
            trace = trace.tb_next
        error = error.__cause__
    assert DEVICE != "cpu" or 10 in frames


# --- what it refuses -----------------------------------------------------------------------------------

SAFE_BODY = "\n    tl.store(x, 1.0)\n"
K = "@triton.jit\ndef k(x):\n    "
TOUCH = "open({canary!r}, 'w')"

HOSTILE = {  # name -> source; {canary} is a path that must not come to exist
    "decorator call": "@triton.jit\n@(lambda f: (open({canary!r}, 'w'), f)[1])\ndef k(x):" + SAFE_BODY,
    "decorator options": f"@triton.jit(debug={TOUCH})\ndef k(x):" + SAFE_BODY,
    "autotune expression": f"@triton.autotune([{TOUCH}], [])\n@triton.jit\ndef k(x):" + SAFE_BODY,
    "heuristics expression": f"@triton.heuristics(dict(a={TOUCH}))\n@triton.jit\ndef k(x):" + SAFE_BODY,
    "annotation": f"@triton.jit\ndef k(x: {TOUCH}):" + SAFE_BODY,
    "string annotation": f'@triton.jit\ndef k(x: "{TOUCH}"):' + SAFE_BODY,
    "return annotation": f"@triton.jit\ndef k(x) -> {TOUCH}:" + SAFE_BODY,
    "default": f"@triton.jit\ndef k(x, y={TOUCH}):" + SAFE_BODY,
    "local annotation": f"{K}y: {TOUCH} = 1{SAFE_BODY}",
    "module code": f"{TOUCH}\n@triton.jit\ndef k(x):" + SAFE_BODY,
    "module constant": f"C = {TOUCH}\n{K}tl.store(x, C)\n",
    "constant power": f"C = 10 ** 10 ** 10\n{K}tl.store(x, C)\n",
    "docstring def": "@triton.jit\ndef k(x):\n    '''\n    def k(x): open({canary!r}, 'w')\n    '''"
    + SAFE_BODY,
    "string def": f"{K}y = '''\ndef k(x): {TOUCH}\n'''{SAFE_BODY}",
    "open": f"{K}{TOUCH}",
    "dunder import": f"{K}__import__('os').mkdir({{canary!r}})",
    "eval": f'{K}eval("{TOUCH}")',
    "exec": f'{K}exec("{TOUCH}")',
    "getattr": f"{K}getattr(tl, 'core')",
    "globals": f"{K}globals()['x']",
    "type()": f"{K}type(x)",
    "interpreter names": f"{K}inspect.os.mkdir({{canary!r}})",
    "interpreter numpy": f"{K}np.save({{canary!r}}, np.zeros(1))",
    "interpreter builder": f"{K}interpreter_builder.grid_idx",
    "interpreter semantic": f"{K}interpreter_semantic = x",
    "tl.core walk": f"{K}tl.core.inspect.os.mkdir({{canary!r}})",
    "tl.core walk f-string": f"{K}tl.core.inspect.os.system(f'touch {{canary}}')",
    "tl.math walk": f"{K}tl.math.core.inspect.os.mkdir({{canary!r}})",
    "alias walk": f"c = tl.core\n{K}c.inspect.os.mkdir({{canary!r}})",
    "imported inner module": f"from triton.language import core as c\n{K}c.inspect.os.mkdir({{canary!r}})",
    "imported os": f"import os\n{K}os.mkdir({{canary!r}})",
    "imported os as tl name": f"from os import mkdir as load\n{K}load({{canary!r}})",
    "os under triton's name": f"import os as triton\n{K}triton.mkdir({{canary!r}})",
    "triton runtime": f"{K}triton.runtime.driver.os.mkdir({{canary!r}})",
    "module by attribute": f"{K}x.__class__.__init__.__globals__",
    "attribute walk": f"{K}x.handle.data.tofile({{canary!r}})",
    "dtype walk": f"{K}x.dtype.to_ir.__globals__",
    "method": f"{K}x.handle.set_attr(1, 2)",
    "inline asm": f"{K}tl.inline_asm_elementwise('', '', [x], tl.int32, False, 1)",
    "map_elementwise": f"{K}tl.map_elementwise(k, x)",
    "extra": f"{K}tl.extra.cuda.gdc_wait()",
    "libdevice other": f"from triton.language.extra import libdevice\n{K}libdevice.core(x)",
    "semantic": f"{K}tl.load(x, _semantic=x)",
    "builder": f"{K}tl.load(x, _builder=x)",
    "store to tl": f"{K}tl.load = x",
    "delete of tl": f"{K}del tl.load",
    "rebind tl": f"{K}tl = x",
    "rebind range": f"{K}range = x",
    "rebind triton": f"{K}triton = x",
    "parameter tl": "@triton.jit\ndef k(x, tl):" + SAFE_BODY,
    "kernel named tl": "@triton.jit\ndef tl(x):\n    pass\n",
    "kernel named range": "@triton.jit\ndef range(x):\n    pass\n",
    "dunder parameter": "@triton.jit\ndef k(x, __builtins__):" + SAFE_BODY,
    "dunder local": f"{K}__builtins__ = 1{SAFE_BODY}",
    "huge integer": f"{K}tl.store(x, {'9' * 4000})",
    "unreadable integer": f"{K}tl.store(x, {'9' * 6000})",
    "power bomb": f"{K}tl.store(x, 10 ** 10 ** 10)",
    "shift bomb": f"{K}tl.store(x, 1 << 10000000000)",
    "power of a parameter": f"{K}tl.store(x, x ** x)",
    "power of a name that is also a constant": "N = 2\n@triton.jit\ndef k(x, N):\n    tl.store(x, 9 ** N)\n",
    "power in place": f"{K}x **= 1000000",
    "string": f"{K}y = 'text'",
    "bytes": f"{K}y = b'text'",
    "string times": f"{K}y = 'a' * 1000000000",
    "string argument": f"{K}tl.load(x, other='x' )",
    "format string": f"{K}y = f'{{x}}'",
    "print flood": f"{K}for i in range(1000000): print('flood')",
    "device_print": f"{K}tl.device_print('flood' * 1000000000)",
    "static_print": f"{K}tl.static_print({TOUCH})",
    "static_assert": f"{K}tl.static_assert({TOUCH})",
    "assert": f"{K}assert {TOUCH}",
    "print result": f"{K}y = print({TOUCH})",
    "breakpoint": f"{K}breakpoint()",
    "lambda": f"{K}y = (lambda: {TOUCH})()",
    "list comprehension": f"{K}y = [{TOUCH} for _ in range(1)]",
    "generator": f"{K}y = tuple({TOUCH} for _ in range(1))",
    "dict": f"{K}y = dict(a={TOUCH})",
    "star arguments": f"{K}tl.load(*x)",
    "star star arguments": f"{K}tl.load(x, **y)",
    "star parameter": "@triton.jit\ndef k(*x):" + "\n    pass\n",
    "global": f"{K}global y\n    y = 1",
    "nested function": f"{K}def f(): {TOUCH}\n    f()",
    "nested class": f"{K}class A: a = {TOUCH}",
    "try": f"{K}try: {TOUCH}\n    except Exception: pass",
    "with": f"{K}with {TOUCH}: pass",
    "import": f"{K}import os",
    "yield": f"{K}yield {TOUCH}",
    "walrus": f"{K}y = (z := {TOUCH})",
    "match": f"{K}match {TOUCH}:\n        case _: pass",
    "raise": f"{K}raise {TOUCH}",
    "async": "@triton.jit\nasync def k(x):\n    pass\n",
    "loop over anything": f"{K}for i in {TOUCH}: pass",
    "loop target": f"{K}for tl.load in range(3): pass",
    "loop else": f"{K}for i in range(3): pass\n    else: {TOUCH}",
    "subscript store": f"{K}x[0] = {TOUCH}",
    "helper as value": f"@triton.jit\ndef f(a):\n    return a\n{K}y = f{SAFE_BODY}",
    "host function": f"def f(): {TOUCH}\n{K}f()",
    "host function as combine": f"def f(a, b): {TOUCH}\n{K}tl.reduce(x, 0, f)",
    "deep nesting": f"{K}tl.store(x, {'(' * 150}1{')' * 150})",
    "minus tower": f"{K}tl.store(x, {'-' * 5000}1)",
    "attribute tower": f"{K}y = x{'.a' * 9000}",
    "call tower": f"{K}y = x{'()' * 9000}",
    "many nodes": K + "\n    ".join("y = x + x + x" for _ in range(2000)),
    "long source": "#" * 50_000 + f"\n{K}pass",
    "null byte": f"{K}pass\0",
    "syntax": f"{K}tl.store(x,",
    "encoding cookie": f"# -*- coding: rot13 -*-\n{K}{TOUCH}",
    "kernel before import": "@triton.jit\ndef k(x): pass",
    "kernel in a block": f"if True:\n    @triton.jit\n    def k(x): {TOUCH}\n",
    "surrogate": f"{K}y = '\udc80'",
}
DROPPED_PARTS_ONLY = {  # the attack sits in what the clean copy leaves out, so the kernel itself is fine
    "decorator options", "autotune expression", "heuristics expression", "annotation", "string annotation",
    "return annotation", "local annotation", "module code", "docstring def", "device_print", "static_print",
    "static_assert", "assert", "print flood", "deep nesting",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_source_runs_nothing(name, tmp_path):
    canary = tmp_path / "canary"
    source = HOSTILE[name].replace("{canary!r}", repr(str(canary))).replace("{canary}", str(canary))
    source = source if name == "kernel before import" else HEADER + source
    try:
        clean = kernels_of(source)
    except NotAllowed as refusal:
        assert name not in DROPPED_PARTS_ONLY, refusal
        assert refusal.construct and refusal.instead and 1 <= refusal.line <= source.count("\n") + 1
        return
    if not clean.kernels:  # nothing there was `@triton.jit`
        assert clean.source == "import triton; import triton.language as tl\n"
        return
    assert name in DROPPED_PARTS_ONLY
    assert str(canary) not in clean.source
    kernel = define(clean, f"<hostile {name}>")["k"]
    kernel[(1,)](torch.zeros(4, device=DEVICE))
    assert not canary.exists()


def test_there_are_enough_hostile_sources():
    assert len(HOSTILE) >= 60
    assert len(HOSTILE) - len(DROPPED_PARTS_ONLY) >= 60


REFUSALS = {  # one statement -> what the learner reads
    "y = torch.exp(x)": "`torch.exp`",
    "y = math.exp(x)": "`math.exp`",
    "y = 0 <= x < 3": "`0 <= x < 3`",
    "y = x ** 2": "`x * x`",
    "y = x @ x": "`tl.dot(a, b)`",
    "a = b = 1": "one assignment per line",
    "for i in range(3): break": "`break`",
    "while z: continue": "`continue`",
    "x[0] = 1": "`tl.store(x + …, value)`",
    "z[0] = 1": "`tl.where`",
    "y = [i for i in range(3)]": "list comprehension",
    "y = N_ROWS + 1": "`N_ROWS`",
    "y = undefined": "`undefined`",
    "y = helper(x)": "`helper`",
    "y = x.cuda()": "`.cuda()`",
    "y = tl.lod(x)": "`tl.lod`",
    "if x in (1, 2): pass": "`in`",
    "y = tl.load(x, eviction_policy=x, bad='q')": "`bad=`",
}


@pytest.mark.parametrize("statement", REFUSALS)
def test_a_refusal_names_line_construct_and_remedy(statement):
    source = (
        "import math\nimport torch, triton\nimport triton.language as tl\n"
        "N_ROWS = torch.zeros(3).numel()\n\ndef helper(x): return x\n\n@triton.jit\ndef k(x):\n"
        f"    z = 1\n\n    {statement}\n"
    )
    with pytest.raises(NotAllowed) as refusal:
        kernels_of(source)
    assert refusal.value.line == 12
    assert REFUSALS[statement] in str(refusal.value)
    assert str(refusal.value).startswith("line 12: ")


def test_signatures():
    source = HEADER + (
        "N = 4\n\n@triton.jit\ndef k(x, n, B: tl.constexpr = 2 * N): pass\n"
        + "\n@triton.jit\ndef f(x, D: tl.constexpr = tl.float16, M: 'tl.constexpr' = 'a', e=-1.5): return x\n"
    )
    kernels = kernels_of(source).kernels
    assert list(kernels) == ["k", "f"]
    assert kernels["k"].params == ("x", "n", "B")
    assert kernels["k"].constexprs == ("B",) and kernels["k"].defaults == {"B": 8}
    assert kernels["f"].constexprs == ("D", "M")
    assert kernels["f"].defaults == {"D": "tl.float16", "M": "a", "e": -1.5}
    assert kernels["f"].line == 9


def test_only_what_is_launched_must_be_in_the_language():
    source = (
        HEADER
        + "\n@triton.jit\ndef good(x):\n    helper(x)\n@triton.jit\ndef helper(x):\n    tl.store(x, 1)\n"
    )
    source += "@triton.jit\ndef scratch(x):\n    open('x')\n"
    assert list(kernels_of(source, only=["good"]).kernels) == ["good", "helper"]
    with pytest.raises(NotAllowed):
        kernels_of(source)
    with pytest.raises(NotAllowed, match="missing"):
        kernels_of(source, only=["missing"])


def test_the_last_definition_counts():
    source = HEADER + "\n@triton.jit\ndef k(x): open('x')\n\n@triton.jit\ndef k(x): tl.store(x, 2.0)\n"
    assert kernels_of(source).kernels["k"].line == 8
    assert "open" not in kernels_of(source).source


def test_a_constant_that_changes_is_none():
    for change in ("N += 1", "for N in range(3): pass", "def f():\n    global N\n    N = 2", "if f: N = 3"):
        source = HEADER + f"f = 1\nN = 1\n{change}\n@triton.jit\ndef k(x): tl.store(x, N)\n"
        with pytest.raises(NotAllowed, match="`N`"):
            kernels_of(source)


def test_reading_never_crashes_the_process():
    """Sources that strain Python's own parser; a refusal or a clean copy, in this very process."""
    strains = [
        "(" * 20_000,
        "-" * 30_000 + "1",
        "[" * 99 + "]" * 99,
        "x" + "[0]" * 9_000,
        "a" + ".b" * 15_000,
    ]
    strains += [
        "lambda: " * 3_000 + "0",
        "not " * 9_000 + "0",
        "1 if 1 else " * 3_000 + "0",
        "x" + "+x" * 15_000,
    ]
    for strain in strains:
        for source in (
            f"{HEADER}y = {strain}\n@triton.jit\ndef k(x): pass\n",
            f"{HEADER}\n@triton.jit\ndef k(x): y = {strain}\n",
        ):
            with contextlib.suppress(NotAllowed):
                kernels_of(source)
    assert sys.getrecursionlimit() >= 1000


# --- blanks --------------------------------------------------------------------------------------------

TEMPLATE = (
    HEADER
    + """

@triton.jit
def online(in_ptr, out_ptr, row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    in_max = -float("inf")
    in_exp_sum = 0.0
    for col in range(0, n_cols, BLOCK_SIZE):
        offsets = col + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf"))
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))
        in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)
        in_max = in_max_new
    for col in range(0, n_cols, BLOCK_SIZE):
        offsets = col + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask)
        tl.store(out_ptr + pid * row_stride + offsets, tl.exp(in_data - in_max) / in_exp_sum, mask=mask)
"""
)
BLANKS = ["pid", "mask", "in_data", "in_max_new", "in_exp_sum", "store"]


def run_online(source):
    x = torch.randn(3, 50, device=DEVICE)
    out = torch.empty_like(x)
    define(kernels_of(source), "<spliced>")["online"][(3,)](x, out, 50, 50, BLOCK_SIZE=32)
    return out, x.softmax(1)


def test_blanks_of_the_solution_give_the_solution():
    blanks = blank_expressions(TEMPLATE, "online", BLANKS, TEMPLATE)
    assert blanks["pid"] == "tl.program_id(0)"
    assert blanks["in_exp_sum"].startswith("in_exp_sum * tl.exp")
    assert blanks["store"].startswith("tl.store(out_ptr")
    for name in BLANKS:
        assert splice(TEMPLATE, "online", {name: blanks[name]}) == kernels_of(TEMPLATE).source
    got, wanted = run_online(splice(TEMPLATE, "online", blanks))
    torch.testing.assert_close(got, wanted)


def test_one_wrong_blank_is_wrong_alone():
    wrong = TEMPLATE.replace("in_exp_sum * tl.exp(in_max - in_max_new)", "in_exp_sum")
    wrong = wrong.replace("mask = offsets < n_cols", "mask = LIMIT > offsets", 1)
    wrong = wrong.replace("\n\n@triton", "\nLIMIT = 25 * 2\n@triton")
    blanks = blank_expressions(wrong, "online", BLANKS, TEMPLATE)
    assert blanks["mask"] == "50 > offsets"
    got, wanted = run_online(splice(TEMPLATE, "online", {"mask": blanks["mask"]}))
    torch.testing.assert_close(got, wanted)
    spliced = splice(TEMPLATE, "online", {"in_exp_sum": blanks["in_exp_sum"]})
    assert spliced.count("tl.exp(in_max - in_max_new)") == 0
    kernels_of(spliced)


def test_in_place_updates_count_as_assignments():
    learner = TEMPLATE.replace("in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) +", "in_exp_sum +=")
    blanks = blank_expressions(learner, "online", ["in_exp_sum"], TEMPLATE)
    assert blanks["in_exp_sum"].startswith("in_exp_sum + tl.sum")


def test_restructured_kernels_are_said_to_be():
    missing = TEMPLATE.replace("in_max_new", "bigger")
    with pytest.raises(Restructured, match="`in_max_new`"):
        blank_expressions(missing, "online", BLANKS, TEMPLATE)
    renamed = TEMPLATE.replace("offsets", "cols")
    blanks = blank_expressions(renamed, "online", BLANKS, TEMPLATE)
    with pytest.raises(Restructured, match="`cols`"):
        splice(TEMPLATE, "online", {"mask": blanks["mask"]})
    twice = TEMPLATE.replace(
        "        in_max = in_max_new", "        in_exp_sum = in_exp_sum * 1\n        in_max = in_max_new"
    )
    with pytest.raises(Restructured, match="`in_exp_sum`"):
        blank_expressions(twice, "online", ["in_exp_sum"], TEMPLATE)
