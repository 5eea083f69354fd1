"""Which launch of which kernel is fastest on this card: the data behind the tables in kernels/.

    python benchmarks/sweep.py softmax --dtype bfloat16 --out sweep.csv
    python benchmarks/sweep.py dropout --out sweep.csv

The candidates are compiled by all cores at once. Each is checked, then timed in turns with a copy of the same size.
The CSV has a line per candidate: speed / copy, registers, spills; or why there is no number.
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
from softmax import BOUNDS, COLUMNS, TRAFFIC
from timing import Clock, first_line, need_gpu, relative_error

from workshop import device
from workshop.backend import torch_device

SPILLS = 32  # bytes: a candidate that spills more is not timed
VARIANTS = {
    "forward": (dropout.leaky_dropout_kernel, 1),
    "backward": (dropout.leaky_dropout_backward_kernel, 2),
    "one number": (dropout.one_number_kernel, 1),
}


def softmax_candidates(n: int, size: int) -> list[tuple]:
    """(kernel's name, constants, options) that are worth trying for rows of n elements of `size` bytes."""
    found = []
    for packed in (False, True) if size == 2 and n >= 4096 else (False,):
        found += [*_tiles(n, size, packed), *_clusters(n, packed)]
    if n > softmax.WIDE:
        for block_size in (4096, 8192, 16384):
            for warps in (8, 16, 32):
                found.append(("two_pass", {"BLOCK_SIZE": block_size}, {"num_warps": warps}))
        for part, warps, per in ((4096, 4, 8), (8192, 8, 4), (16384, 16, 2)):
            constants = {"PROGRAMS": n // part, "PART": part, "per": per}
            found.append(("group", constants, {"num_warps": warps, "launch_cooperative_grid": True}))
    if n <= 16384:
        constants = {"BLOCK_SIZE": triton.next_power_of_2(n), "num_stages": 4}
        found.append(("persistent", constants, {"num_warps": 8}))
    return found


def _tiles(n: int, size: int, packed: bool):
    """Launches of tile_kernel: padded or in pieces, aligned or not, 1 to 8 rows, 4 to 64 numbers per thread."""
    if n > softmax.WIDE:
        return
    a, b, rest = softmax.pieces(n)
    splits = {(a, b, triton.next_power_of_2(rest) if rest else 0, 1)}
    if n > a:
        splits.add((a, 0, triton.next_power_of_2(n - a), 1))
    if n * size % 16:
        splits.add((a, b, triton.next_power_of_2(rest), 16 // size))
    for a, b, rest, vector in sorted(splits):
        for rows in (1, 2, 4, 8) if n <= 2048 else (1,):
            for warps in (1, 2, 4, 8, 16, 32):
                each = rows * a / (32 * warps)
                if not (4 if size == 4 else 8) <= each <= 64:
                    continue
                constants = {"ROWS": rows, "A": a, "B": b, "REST": rest, "VECTOR": vector, "PACKED": packed}
                for limit in _limits((each / 2 if packed else each) * (a + b) / a, warps, n >= 4096):
                    yield "tile", constants, {"num_warps": warps, "maxnreg": limit}


def _clusters(n: int, packed: bool):
    """Launches of cluster_kernel: 2 to 8 programs a row, 16 to 64 numbers per thread."""
    for programs in (2, 4, 8) if n >= 12672 else ():
        part = triton.next_power_of_2(-(-n // programs))
        for warps in (4, 8, 16, 32):
            each = part / (32 * warps)
            if part > softmax.WIDE or (n > softmax.WIDE and part < 8192) or not 16 <= each <= 64:
                continue
            for limit in _limits(each / 2 if packed else each, warps, True):
                for masked in {programs * part != n, packed or programs * part != n}:
                    constants = {"PROGRAMS": programs, "PART": part, "MASKED": masked, "PACKED": packed}
                    yield "cluster", constants, {"num_warps": warps, "num_ctas": programs, "maxnreg": limit}


def _limits(live: float, warps: int, wanted: bool):
    """None, and numbers of registers to which a kernel with `live` numbers per thread may be held."""
    yield None
    for limit in (32, 40, 48, 56, 64, 72, 80) if wanted else ():
        if live + 10 <= limit <= 2.2 * (live + 10) and limit * 32 * warps <= 65536:
            yield limit


def softmax_call(candidate: tuple, x: torch.Tensor, y: torch.Tensor):
    """(kernel, grid, arguments, constants and options, what to do before each call) of a candidate on x."""
    name, constants, options = candidate
    constants = constants | {key: value for key, value in options.items() if value is not None}
    kernel = getattr(softmax, f"{name}_kernel")
    (rows, n), strides, before = x.shape, (x.stride(0), y.stride(0)), None
    grid, args = (rows,), (x, y, *strides, n)
    if name == "tile":
        grid, args = (triton.cdiv(rows, constants["ROWS"]),), (x, y, *strides, rows, n)
    elif name == "persistent":
        grid, args = (8 * device().multiprocessors,), (x, y, *strides, rows, n)
    elif name == "group":
        programs = constants["PROGRAMS"]
        grid = (device().multiprocessors * constants.pop("per") // programs * programs,)
        parts = torch.empty(2, rows, programs, device=x.device)
        arrived = torch.zeros(rows, dtype=torch.int32, device=x.device)
        args, before = (x, y, parts[0], parts[1], arrived, *strides, rows, n), arrived.zero_
    return kernel, grid, args, constants, before


def compile_softmax(job: tuple) -> tuple:
    """(registers, spills) of a candidate, or (None, the compiler's words). Runs in a process of its own."""
    dtype, n, candidate = job
    x = torch.empty(_rows(n, dtype), n, dtype=dtype, device=torch_device())
    try:
        kernel, grid, args, constants, _ = softmax_call(candidate, x, torch.empty_like(x))
        compiled = kernel.warmup(*args, grid=grid, **constants)
        compiled._init_handles()
        return compiled.n_regs, compiled.n_spills
    except Exception as error:
        return None, first_line(error)


def _rows(n: int, dtype: torch.dtype) -> int:
    return -(-TRAFFIC // (2 * n * dtype.itemsize))


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


def sweep_softmax(dtype: torch.dtype, widths: list[int], writer, repeats: int) -> None:
    jobs = [(dtype, n, candidate) for n in widths for candidate in softmax_candidates(n, dtype.itemsize)]
    with ProcessPoolExecutor(max(1, os.cpu_count() - 2), get_context("spawn")) as pool:
        compiled = list(pool.map(compile_softmax, jobs, chunksize=4))
    clock = Clock()
    for n in widths:
        mine = [(job[2], facts) for job, facts in zip(jobs, compiled, strict=True) if job[1] == n]
        _sweep_width(dtype, n, mine, clock, writer, repeats)


def _sweep_width(dtype: torch.dtype, n: int, candidates: list, clock: Clock, writer, repeats: int) -> None:
    x = torch.randn(_rows(n, dtype), n, device=torch_device(), dtype=dtype)
    y, expected = torch.empty_like(x), torch.softmax(x.double(), dim=1)
    calls, facts, name = {}, {}, str(dtype).removeprefix("torch.")
    for candidate, (registers, spills) in candidates:
        if registers is None or spills > SPILLS:
            writer.writerow([name, n, candidate, "", registers, spills])
            continue
        kernel, grid, args, constants, before = softmax_call(candidate, x, y)

        def call(kernel=kernel, grid=grid, args=args, constants=constants, before=before):
            if before:
                before()
            kernel[grid](*args, **constants)

        try:
            y.fill_(float("nan"))
            call()
            error = relative_error(y, expected)
            if error > 2 * BOUNDS[name]:
                raise ValueError(f"wrong result: relative error {error:.1e}")
        except Exception as error:
            writer.writerow([name, n, candidate, "", registers, first_line(error)])
            continue
        calls[str(candidate)], facts[str(candidate)] = call, (registers, spills)
    speeds = times(calls, lambda: y.copy_(x), clock, repeats)
    for rank, (candidate, speed) in enumerate(sorted(speeds.items(), key=lambda item: -item[1])):
        writer.writerow([name, n, candidate, f"{speed:.4f}", *facts[candidate]])
        if rank < 5:
            print(name, n, f"{speed:.3f}", candidate, "registers:", facts[candidate][0], flush=True)


def sweep_dropout(writer, repeats: int) -> None:
    clock = Clock()
    n = TRAFFIC // 8 + 3 * 1024  # not a multiple of every block
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
        print(f"{share:.3f}", candidate, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("softmax", "dropout"))
    parser.add_argument("--dtype", choices=tuple(BOUNDS), default="float32")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write")
    chosen = parser.parse_args()
    need_gpu()
    with chosen.out.open("w", newline="", buffering=1, encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["dtype", "n", "candidate", "of_copy", "registers", "spills"])
        if chosen.what == "softmax":
            sweep_softmax(getattr(torch, chosen.dtype), list(chosen.columns), writer, chosen.repeats)
        else:
            sweep_dropout(writer, chosen.repeats)


if __name__ == "__main__":
    main()
