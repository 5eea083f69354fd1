"""Which launch of which kernel is fastest on this card: the data behind the tables in kernels/.

    python benchmarks/sweep.py softmax --dtype bfloat16
    python benchmarks/sweep.py dropout
    python benchmarks/sweep.py add

Every candidate is checked, then timed in turns with a copy of the same size. The output is a CSV with one line per
candidate: speed / copy, registers, spills.
"""

import argparse
import csv
import os
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
import triton
from kernels import dropout, softmax

TRAFFIC = 1 << 30
WIDTHS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
CARD = torch.device("cuda")


class Clock:
    """Times single calls with cold caches. Reading a large buffer evicts what the last call left there."""

    def __init__(self, nbytes: int = 1 << 30):
        self.buffer = torch.zeros(nbytes // 4, device=CARD)

    def milliseconds(self, call) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.buffer.sum()
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)


def softmax_candidates(n: int, size: int) -> list[tuple]:
    """(kernel name, constants, options) that are worth trying for rows of n elements of `size` bytes."""
    found = []
    power = 1 << (n.bit_length() - 1)
    if n == power:
        splits = [(n, 0, 0, 1)]
    else:
        next_rest = triton.next_power_of_2(n - power)
        second = 1 << ((n - power).bit_length() - 1)
        splits = [(power, 0, next_rest, 1)]
        splits.append((power, second, triton.next_power_of_2(n - power - second), 1))
        if n * size % 16:
            vector = 16 // size
            splits.append((power, second, triton.next_power_of_2(n - power - second), vector))
    packings = (False, True) if size == 2 and n >= 4096 else (False,)
    for packed in packings:
        for a, b, rest, vector in splits if n <= 32768 else ():
            for rows in (1, 2, 4, 8) if n <= 2048 else (1,):
                for warps in (1, 2, 4, 8, 16, 32):
                    each = rows * a / (32 * warps)
                    if not (4 if size == 4 else 8) <= each <= 64:
                        continue
                    for limit in (None, 32, 40, 48, 56, 64, 80):
                        live = (each / 2 if packed else each) * (a + b) / a + 10
                        if limit and (live > limit or live * 2 < limit or n < 4096 or limit * 32 * warps > 65536):
                            continue
                        constants = dict(ROWS=rows, A=a, B=b, REST=rest, VECTOR=vector, PACKED=packed)
                        found.append(("tile", constants, dict(num_warps=warps, maxnreg=limit)))
        for programs in (2, 4, 8) if n >= 12672 else ():
            part = triton.next_power_of_2(-(-n // programs))
            if part > 32768 or n > 32768 and part < 8192:
                continue
            for warps in (4, 8, 16, 32):
                each = part / (32 * warps)
                if not 16 <= each <= 64:
                    continue
                for limit in (None, 32, 40, 48, 56, 64, 72, 80):
                    live = (each / 2 if packed else each) + 10
                    if limit and (live > limit or live * 2.2 < limit or limit * 32 * warps > 65536):
                        continue
                    for masked in {programs * part != n, True} if packed else {programs * part != n}:
                        constants = dict(PROGRAMS=programs, PART=part, MASKED=masked, PACKED=packed)
                        found.append(("cluster", constants, dict(num_warps=warps, num_ctas=programs, maxnreg=limit)))
    if n > 32768:
        for block in (4096, 8192, 16384):
            for warps in (8, 16, 32):
                found.append(("two_pass", dict(BLOCK_SIZE=block), dict(num_warps=warps)))
        for part, warps, per in ((4096, 4, 8), (8192, 4, 6), (8192, 8, 6), (16384, 16, 3), (16384, 8, 4)):
            options = dict(num_warps=warps, launch_cooperative_grid=True)
            found.append(("group", dict(PROGRAMS=n // part, PART=part, per=per), options))
    if n <= 16384:
        block = triton.next_power_of_2(n)
        found.append(("persistent", dict(BLOCK_SIZE=block, num_stages=4), dict(num_warps=8)))
    return found


def softmax_call(candidate, x, y, warm=False):
    """A call of the candidate on x into y, or its compilation only."""
    name, constants, options = candidate
    options = {key: value for key, value in options.items() if value is not None}
    rows, n = x.shape
    kernel = getattr(softmax, f"{name}_kernel")
    strides = (x.stride(0), y.stride(0))
    if name == "tile":
        grid, args = (triton.cdiv(rows, constants["ROWS"]),), (x, y, *strides, rows, n)
    elif name in ("cluster", "two_pass"):
        grid, args = (rows,), (x, y, *strides, n)
    elif name == "group":
        constants = dict(constants)
        per = constants.pop("per")
        members = constants["PROGRAMS"]
        grid = (132 * per // members * members,)
        parts = torch.empty(2, rows, members, device=CARD)
        arrived = torch.zeros(rows, dtype=torch.int32, device=CARD)
        args = (x, y, parts[0], parts[1], arrived, *strides, rows, n)
        if not warm:
            def call():
                arrived.zero_()
                kernel[grid](*args, **constants, **options)
            return call
    elif name == "persistent":
        grid, args = (132 * 8,), (x, y, *strides, rows, n)
    if warm:
        return kernel.warmup(*args, grid=grid, **constants, **options)
    return lambda: kernel[grid](*args, **constants, **options)


def dropout_candidates(backward: bool) -> list[tuple]:
    found = []
    for quarter in (128, 256, 512, 1024, 2048):
        for warps in (1, 2, 4, 8, 16):
            if 2 <= quarter / (32 * warps) <= 16:
                found.append(("backward4" if backward else "forward4", dict(QUARTER=quarter), dict(num_warps=warps)))
    if not backward:
        for block in (1024, 4096):
            found.append(("one_number", dict(BLOCK_SIZE=block), dict(num_warps=4)))
    return found


def compile_softmax(job):
    dtype, n, candidate = job
    x = torch.empty(-(-TRAFFIC // (2 * n * dtype.itemsize)), n, dtype=dtype, device=CARD)
    try:
        compiled = softmax_call(candidate, x, torch.empty_like(x), warm=True)
        compiled._init_handles()
        return compiled.n_regs, compiled.n_spills
    except Exception as error:
        return type(error).__name__, str(error)[:200]


def _quiet():
    sys.stderr = open(os.devnull, "w")


def precompile(jobs):
    with ProcessPoolExecutor(min(14, os.cpu_count()), get_context("spawn"), initializer=_quiet) as pool:
        return list(pool.map(compile_softmax, jobs, chunksize=4))


def time_all(calls: dict, copy, clock, repeats: int) -> dict:
    """Speed / copy of each call: median over repeats, each beside its own copy."""
    for call in calls.values():
        call()
    times = {name: [] for name in calls}
    copies = []
    for _ in range(repeats):
        copies.append(clock.milliseconds(copy))
        for name, call in calls.items():
            times[name].append(clock.milliseconds(call))
        copies.append(clock.milliseconds(copy))
    base = statistics.median(copies)
    return {name: base / statistics.median(values) for name, values in times.items()}


def is_right(y, expected) -> bool:
    bound = 2e-2 if y.dtype == torch.bfloat16 else 1e-4
    return bool(((y.float() - expected.float()).abs() <= bound * expected.float().abs() + 1e-30).all())


def sweep_softmax(dtype, widths, writer, clock, repeats):
    jobs = [(dtype, n, candidate) for n in widths for candidate in softmax_candidates(n, dtype.itemsize)]
    compiled = precompile(jobs)
    for n in widths:
        x = torch.randn(-(-TRAFFIC // (2 * n * dtype.itemsize)), n, device=CARD, dtype=dtype)
        y, expected = torch.empty_like(x), torch.softmax(x.double(), 1)
        calls, facts = {}, {}
        for (_, width, candidate), (registers, spills) in zip(jobs, compiled, strict=True):
            if width != n:
                continue
            if isinstance(registers, str) or spills > 32:
                writer.writerow([dtype, n, candidate, "", registers, spills])
                continue
            try:
                call = softmax_call(candidate, x, y)
                y.fill_(float("nan"))
                call()
                torch.cuda.synchronize()
                if not is_right(y, expected):
                    writer.writerow([dtype, n, candidate, "", "wrong", ""])
                    continue
            except Exception as error:
                writer.writerow([dtype, n, candidate, "", type(error).__name__, str(error)[:200]])
                if "CUDA" in str(error) and "illegal" in str(error):
                    raise
                continue
            calls[str(candidate)], facts[str(candidate)] = call, (registers, spills)
        speeds = time_all(calls, lambda: y.copy_(x), clock, repeats)
        best = sorted(speeds.items(), key=lambda item: -item[1])
        print(str(dtype)[6:], n, *(f"{speed:.3f} {name.replace(chr(39), '')} r{facts[name][0]};" for name, speed in best[:6]), flush=True)
        seen = set()
        for name, speed in best:
            kind = name.split("'")[1]
            if kind not in seen:
                seen.add(kind)
                print("      best", f"{speed:.3f}", name.replace("'", ""), flush=True)
            writer.writerow([dtype, n, name, f"{speed:.4f}", *facts[name]])


def sweep_dropout(writer, clock, repeats):
    for backward in (False, True):
        n = TRAFFIC // (12 if backward else 8)
        n += 3 * 1024  # not a multiple of every block
        x, dy, y = (torch.randn(n, device=CARD) for _ in range(3))
        p, seed = torch.full((1,), 0.5, device=CARD), torch.full((1,), 7, device=CARD, dtype=torch.int32)
        calls = {}
        for name, constants, options in dropout_candidates(backward):
            kernel = {"forward4": dropout.leaky_dropout_kernel, "backward4": dropout.leaky_dropout_backward_kernel,
                      "one_number": dropout.one_number_kernel}[name]
            block = 4 * constants["QUARTER"] if "QUARTER" in constants else constants["BLOCK_SIZE"]
            inputs = (x, dy) if backward else (x,)
            calls[str((name, constants, options))] = (
                lambda kernel=kernel, block=block, constants=constants, options=options, inputs=inputs: kernel[(triton.cdiv(n, block),)](
                    *inputs, p, seed, n, y, **constants, **options))
        half = torch.randn(TRAFFIC // 8, device=CARD)
        target = torch.empty_like(half)
        speeds = time_all(calls, lambda: target.copy_(half), clock, repeats)
        for name, speed in sorted(speeds.items(), key=lambda item: -item[1]):
            print("dropout", f"{speed * n * (12 if backward else 8) / TRAFFIC:.3f}", name, flush=True)
            writer.writerow(["float32", n, name, f"{speed:.4f}", "", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("softmax", "dropout"))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--widths", type=int, nargs="*", default=WIDTHS)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("sweep.csv"))
    chosen = parser.parse_args()
    clock = Clock()
    with chosen.out.open("w", newline="", buffering=1) as file:
        writer = csv.writer(file)
        writer.writerow(["dtype", "n", "candidate", "of_copy", "registers", "spills"])
        if chosen.what == "softmax":
            sweep_softmax(getattr(torch, chosen.dtype), chosen.widths, writer, clock, chosen.repeats)
        else:
            sweep_dropout(writer, clock, chosen.repeats)


if __name__ == "__main__":
    main()
