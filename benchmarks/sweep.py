"""Which launch of which kernel is fastest on this card: what `choose` in kernels/softmax.py is checked with.

    python benchmarks/sweep.py softmax --dtype bfloat16 --out sweep.csv
    python benchmarks/sweep.py dropout --out sweep.csv

The candidates are compiled by all cores at once. Each is checked, then timed in turns with a copy of the same size.
The CSV has a line per candidate: speed / copy, registers, spills; or why there is no number. `chosen` marks the launch
that `choose` takes.
"""

import argparse
import csv
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
import triton
from kernels import dropout, softmax
from softmax import BOUNDS, TRAFFIC
from timing import Clock, first_line, need_gpu, relative_error

from workshop.backend import torch_device

# Log-uniform, every second one odd, and some that people use.
COLUMNS = (
    (200, 261, 300, 373, 512, 650, 781, 1000, 1024, 1363, 1500, 2000, 2048, 2689, 3072, 4001, 4096, 5120, 6143, 8000)
    + (8192, 10240, 11111, 12672, 14336, 17001, 20000, 24576, 28673, 32000, 32768, 37001, 40000, 44001, 50257, 57344)
    + (65536, 80001, 100352, 128256, 131072, 151936, 177777, 200064, 262144, 300001, 524288, 1048576)
)
SPILLS = 32  # bytes: a candidate that spills more is not timed
VARIANTS = {
    "forward": (dropout.leaky_dropout_kernel, 1),
    "backward": (dropout.leaky_dropout_backward_kernel, 2),
    "one number": (dropout.one_number_kernel, 1),
}


def softmax_candidates(dtype: torch.dtype, n: int) -> list[dict]:
    """What to give to `stripes_launch` for rows of n elements: all that might be worth trying."""
    vector = softmax.WORD // dtype.itemsize
    words, found = -(-n // vector), []
    for programs in (1, 2, 4, 8, 16):
        for lanes in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
            stripes = -(-words // (lanes * programs))
            if not 1 <= stripes <= (9 if lanes == 1024 else 17) or lanes * programs * stripes > 1.75 * words + 4:
                continue
            if programs > 1 and (n < 16384 or lanes < 128 or stripes < 2):
                continue
            if lanes >= 128 and stripes == 1 or lanes < 32 and stripes > 8:
                continue
            for rows in (1, 2, 4, 8, 16, 32):
                threads = lanes * rows
                if rows > 1 and (programs > 1 or threads > 256 or n * dtype.itemsize > 8192):
                    continue
                if threads < 32 or rows > 1 and rows * n * dtype.itemsize > 16384:
                    continue
                if n % vector and lanes < 16:
                    continue
                launch = {"lanes": lanes, "rows": rows, "programs": programs}
                found += [launch | {"registers": limit} for limit in _limits(4 * stripes, threads)]
    narrow = n & -n
    if narrow < vector and n * dtype.itemsize < 4096:
        for lanes in (8, 16, 32, 64, 128, 256):
            for rows in (1, 2, 4, 8):
                stripes = -(-n // (narrow * lanes))
                if stripes <= 16 and 32 <= lanes * rows <= 256 and lanes * stripes * narrow < 1.5 * n:
                    found.append({"lanes": lanes, "rows": rows, "vector": narrow})
    if words > 60_000:  # rows that no cluster can keep: some of it is read again
        for programs, lanes, stripes in ((1, 512, 8), (8, 256, 16), (8, 512, 8), (16, 256, 16), (16, 512, 8)):
            for again in (2, 4):
                launch = {"lanes": lanes, "programs": programs, "stripes": stripes, "again": again}
                if lanes * programs * stripes < words:
                    found.append(launch)
    return found


def _limits(live: int, threads: int):
    """None, and numbers of registers that make room for one program more, for `live` that hold data."""
    yield None
    usual = 65536 // (threads * (live + 28))
    for fit in (usual + 1, usual + 2):
        limit = 65536 // (threads * fit) // 8 * 8
        if live >= 16 and live + 14 <= limit <= 168 and fit * threads <= 2048:
            yield limit


def softmax_launch(dtype: torch.dtype, n: int, candidate: dict | None) -> softmax.Launch:
    """The launch of a candidate; None stands for what `choose` takes."""
    vector, ragged = softmax.words(dtype, n, n, 0)
    if candidate is None:
        return softmax.choose(dtype, n, vector, ragged, "cuda", 90)
    candidate = dict(candidate)
    narrow = candidate.pop("vector", None)  # words so narrow that rows consist of whole ones
    return softmax.stripes_launch(dtype, n, narrow or vector, ragged and not narrow, "cuda", **candidate)


def compile_softmax(job: tuple) -> tuple:
    """(registers, spills) of a candidate, or (None, the compiler's words). Runs in a process of its own."""
    dtype, n, candidate = job
    try:
        launch = softmax_launch(dtype, n, candidate)
        compiled = launch.kernel.warmup(dtype, dtype, n, n, 7, n, grid=(1,), **launch.constants, **launch.options)
        compiled._init_handles()
        return compiled.n_regs, compiled.n_spills
    except Exception as error:
        return None, first_line(error)


def times(calls: dict, copy, clock: Clock, repeats: int) -> dict:
    """Speed / copy of each call: medians, all in turns with the copy."""
    found = {name: [] for name in calls}
    copies = []
    for _ in range(repeats):
        copies.append(clock.milliseconds(copy)[0])
        for name, call in calls.items():
            found[name].append(clock.milliseconds(call)[0])
        copies.append(clock.milliseconds(copy)[0])
    return {name: statistics.median(copies) / statistics.median(values) for name, values in found.items()}


def sweep_softmax(dtypes: list[torch.dtype], widths: list[int], writer, repeats: int) -> None:
    jobs = [(dtype, n, one) for dtype in dtypes for n in widths for one in (None, *softmax_candidates(dtype, n))]
    with ProcessPoolExecutor(max(1, os.cpu_count() - 1), get_context("spawn")) as pool:
        compiled = list(pool.map(compile_softmax, jobs, chunksize=2))
    print("compiled", len(jobs), flush=True)
    clock = Clock()
    for dtype in dtypes:
        for n in widths:
            mine = [(job[2], facts) for job, facts in zip(jobs, compiled, strict=True) if job[:2] == (dtype, n)]
            _sweep_width(dtype, n, mine, clock, writer, repeats)


def _sweep_width(dtype: torch.dtype, n: int, candidates: list, clock: Clock, writer, repeats: int) -> None:
    rows = -(-TRAFFIC // (2 * n * dtype.itemsize))
    x = torch.randn(rows, n, device=torch_device(), dtype=dtype)
    y, expected = torch.empty_like(x), torch.softmax(x.double(), dim=1)
    calls, facts, name = {}, {}, str(dtype).removeprefix("torch.")
    for candidate, (registers, spills) in candidates:
        said = str(candidate or "chosen")
        if registers is None or spills > SPILLS and candidate:
            writer.writerow([name, n, said, "", registers, spills])
            continue
        try:
            call = softmax.prepared(softmax_launch(dtype, n, candidate), x, (n, n, rows, n))
            y.fill_(float("nan"))
            call(x, y)
            error = relative_error(y, expected)
            if not error <= BOUNDS[name]:
                raise ValueError(f"wrong result: relative error {error:.1e}")
        except Exception as error:
            print(name, n, candidate, first_line(error), flush=True)
            writer.writerow([name, n, said, "", registers, first_line(error)])
            continue
        calls[said], facts[said] = lambda call=call: call(x, y), (registers, spills)
    speeds = times(calls, lambda: y.copy_(x), clock, repeats)
    for rank, (said, speed) in enumerate(sorted(speeds.items(), key=lambda item: -item[1])):
        writer.writerow([name, n, said, f"{speed:.4f}", *facts[said]])
        if rank < 3 or said == "chosen":
            print(name, n, f"{speed:.3f}", said, "registers:", facts[said][0], flush=True)


def sweep_dropout(writer, repeats: int) -> None:
    clock = Clock()
    for n in (TRAFFIC // 8 + 3 * 1024, TRAFFIC // 8 + 3 * 1024 + 1):
        _sweep_elements(n, clock, writer, repeats)


def _sweep_elements(n: int, clock: Clock, writer, repeats: int) -> None:
    x, dy, y = (torch.randn(n, device=torch_device()) for _ in range(3))
    p, seed = torch.full((1,), 0.5, device=x.device), torch.full((1,), 7, device=x.device, dtype=torch.int32)
    calls, moved = {}, {}
    for name, (kernel, arrays) in VARIANTS.items():
        for size in (1024, 4096) if name == "one number" else (128, 256, 512, 1024, 2048):
            for warps in (4,) if name == "one number" else (1, 2, 4, 8, 16):
                if name != "one number" and not 2 <= size / (32 * warps) <= 16:
                    continue
                constants = {"BLOCK_SIZE" if name == "one number" else "QUARTER": size, "num_warps": warps}
                grid = (triton.cdiv(n, size if name == "one number" else 4 * size),)
                args = (*(x, dy)[:arrays], p, seed, y, n)

                def call(kernel=kernel, grid=grid, args=args, constants=constants):
                    kernel[grid](*args, **constants)

                call()
                calls[f"{name} {constants}"], moved[f"{name} {constants}"] = call, (arrays + 1) / 2
    for candidate, speed in sorted(times(calls, lambda: y.copy_(x), clock, repeats).items(), key=lambda item: -item[1]):
        share = speed * moved[candidate]
        writer.writerow(["float32", n, candidate, f"{share:.4f}", "", ""])
        print(n, f"{share:.3f}", candidate, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("softmax", "dropout"))
    parser.add_argument("--dtype", nargs="+", choices=tuple(BOUNDS), default=["float32"])
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write")
    chosen = parser.parse_args()
    need_gpu()
    with chosen.out.open("w", newline="", buffering=1, encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["dtype", "n", "candidate", "of_copy", "registers", "spills"])
        if chosen.what == "softmax":
            sweep_softmax([getattr(torch, name) for name in chosen.dtype], list(chosen.columns), writer, chosen.repeats)
        else:
            sweep_dropout(writer, chosen.repeats)


if __name__ == "__main__":
    main()
