"""The executor beside Triton's own interpreter: the same launches, one after the other, each in a fresh process.

    python -m benchmarks.executor [--record]

Times are of a kernel's first launch with these constants, after two small launches of others: the executor reads the
kernel with Triton's front end in it. Memory is the most
that the process held during the launch, beyond what it held before the tensors were made, divided by the tensors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import torch
import triton
import triton.language as tl

RECORDED = Path(__file__).parent / "recorded"
TIMEOUT = 600  # seconds of one launch
SMALL = 16 << 20  # bytes; the memory of smaller tensors disappears in the process


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def persistent_kernel(x_ptr, y_ptr, stride, rows, columns, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * stride + place, mask=place < columns, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * stride + place, e / tl.sum(e, axis=0), mask=place < columns)


@triton.jit
def online_kernel(x_ptr, y_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    top = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + place
        x = tl.load(x_ptr + row * stride + at, mask=at < columns, other=-float("inf"))
        new = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    for start in range(0, columns, BLOCK):
        at = start + place
        x = tl.load(x_ptr + row * stride + at, mask=at < columns)
        tl.store(y_ptr + row * stride + at, tl.exp(x - top) / total, mask=at < columns)


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.where(tl.rand(seed, offsets) >= p, x / (1 - p), 0.0), mask=mask)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    x = tl.load(x_ptr + i * columns + j, mask=inside)
    tl.store(y_ptr + j * rows + i, x, mask=inside)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, m, n, k, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, DEPTH):
        along = start + tl.arange(0, DEPTH)
        a = tl.load(a_ptr + i * k + along[None, :], mask=(i < m) & (along < k)[None, :], other=0.0)
        b = tl.load(b_ptr + along[:, None] * n + j, mask=(along < k)[:, None] & (j < n), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + i * n + j, total, mask=(i < m) & (j < n))


@triton.jit
def decode_kernel(q_ptr, k_ptr, v_ptr, out_ptr, t, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d)
    top = -float("inf")
    total = 0.0
    sums = tl.zeros((D,), tl.float32)
    for start in range(0, t, BLOCK):
        at = start + tl.arange(0, BLOCK)
        place = (head * t + at)[:, None] * D + d[None, :]
        inside = (at < t)[:, None]
        s = tl.sum(q[None, :] * tl.load(k_ptr + place, mask=inside, other=0.0), axis=1) * scale
        s = tl.where(at < t, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=0))
        p = tl.exp(s - new)
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(p, axis=0)
        sums = sums * shrink + tl.sum(p[:, None] * tl.load(v_ptr + place, mask=inside, other=0.0), axis=0)
        top = new
    tl.store(out_ptr + head * D + d, sums / total)


def _add(n):
    x, y = torch.randn(2, n)
    out = torch.empty(n)
    return add_kernel, (triton.cdiv(n, 1024),), (x, y, out, n), {"BLOCK": 1024}, out, lambda: x + y


def _softmax(kernel, rows, columns, block, programs=None):
    x = torch.randn(rows, columns)
    out = torch.empty_like(x)
    sizes = (columns, rows, columns) if kernel is persistent_kernel else (columns, columns)
    return kernel, (programs or rows,), (x, out, *sizes), {"BLOCK": block}, out, lambda: torch.softmax(x, 1)


def _dropout(n):
    x, out = torch.ones(n), torch.empty(n)
    return dropout_kernel, (triton.cdiv(n, 256),), (x, out, n, 0.25, 7), {"BLOCK": 256}, out, None


def _transpose(n):
    x, out = torch.randn(n, n), torch.empty(n, n)
    grid = (triton.cdiv(n, 32), triton.cdiv(n, 32))
    return transpose_kernel, grid, (x, out, n, n), {"BLOCK": 32}, out, lambda: x.T


def _matmul(n):
    a, b = torch.randn(2, n, n)
    out = torch.empty(n, n)
    grid = (triton.cdiv(n, 64), triton.cdiv(n, 64))
    return matmul_kernel, grid, (a, b, out, n, n, n), {"BLOCK": 64, "DEPTH": 32}, out, lambda: a @ b


def _decode(heads, t, d):
    q, k, v = torch.randn(heads, d), torch.randn(heads, t, d), torch.randn(heads, t, d)
    out = torch.empty(heads, d)

    def expected():
        scores = torch.einsum("hd,htd->ht", q, k) / math.sqrt(d)
        return torch.einsum("ht,htd->hd", scores.softmax(1), v)

    return decode_kernel, (heads,), (q, k, v, out, t, d**-0.5), {"D": d, "BLOCK": 64}, out, expected


CASES = {
    "vector add, 98,432 elements": lambda: _add(98_432),
    "vector add, 16,777,216 elements": lambda: _add(1 << 24),
    "persistent softmax, 1823 × 781": lambda: _softmax(persistent_kernel, 1823, 781, 1024, 264),
    "persistent softmax, 4096 × 8192": lambda: _softmax(persistent_kernel, 4096, 8192, 8192, 264),
    "online softmax, 1823 × 781": lambda: _softmax(online_kernel, 1823, 781, 256),
    "online softmax, 256 × 32768": lambda: _softmax(online_kernel, 256, 32768, 1024),
    "dropout, 1,048,576 elements": lambda: _dropout(1 << 20),
    "transpose, 2048 × 2048": lambda: _transpose(2048),
    "matrix product with tl.dot, 1024 × 1024 × 1024": lambda: _matmul(1024),
    "attention decode, 32 heads × 4096 × 64": lambda: _decode(32, 4096, 64),
}


def held() -> int:
    """Bytes of memory that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one(name: str, executor: bool) -> dict:
    """Runs a case in this process: seconds, the largest error, and memory."""
    if executor:
        from workshop import launching

        launching.install()
    torch.manual_seed(0)
    for first in (_add(8), _softmax(online_kernel, 2, 8, 8)):  # Python, torch and Triton's library are read and warm
        first[0][first[1]](*first[2], **first[3])
    before = held()
    kernel, grid, args, constants, out, expected = CASES[name]()
    out.fill_(float("nan"))
    tensors = sum(each.nbytes for each in args if isinstance(each, torch.Tensor))
    start = time.perf_counter()
    kernel[grid](*args, **constants)
    seconds = time.perf_counter() - start
    memory = (held() - before) / tensors if tensors >= SMALL else None
    wanted = expected() if expected else None
    error = float((out - wanted).abs().max()) if expected else float(((out == 0).float().mean() - 0.25).abs())
    return {"seconds": seconds, "error": error, "memory": memory}


def measured(name: str, side: str) -> dict:
    """What a process of its own found: side is "executor" or "interpreter"."""
    environment = {**os.environ, "TRITON_INTERPRET": str(int(side == "interpreter"))}
    command = [sys.executable, "-m", "benchmarks.executor", "--one", name, side]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the table to benchmarks/recorded/")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, side = options.one
        print(json.dumps(one(name, side == "executor")))
        return
    lines = ["| launch | executor | Triton's interpreter | times faster | memory ÷ tensors |", "|---|--:|--:|--:|--:|"]
    ratios = []
    for name in CASES:
        ours, theirs = measured(name, "executor"), measured(name, "interpreter")
        if max(ours["error"], theirs["error"]) > 1e-2:
            raise RuntimeError(f"{name}: wrong by {ours['error']:.2g} and {theirs['error']:.2g}")
        ratios.append(theirs["seconds"] / ours["seconds"])
        memory = "" if ours["memory"] is None else f"{ours['memory']:.1f}"
        lines.append(f"| {name} | {ours['seconds']:.3f} s | {theirs['seconds']:.2f} s | {ratios[-1]:.0f} | {memory} |")
        print(lines[-1], flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    about = f"{os.cpu_count()} cores of {_processor()}, Python {platform.python_version()}, torch {torch.__version__}, Triton {triton.__version__}, {date.today()}"  # noqa: E501
    text = f"# The executor beside Triton's interpreter\n\n{about}. Geometric mean: {mean:.0f} times faster; the least is {min(ratios):.0f}.\n\n"  # noqa: E501
    text += "\n".join(lines) + "\n\nThe first launch of a kernel, with reading it. `python -m benchmarks.executor --record` wrote this page.\n"  # noqa: E501
    print(text)
    if options.record:
        (RECORDED / "executor.md").write_text(text)


def _processor() -> str:
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
