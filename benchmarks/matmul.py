"""TFLOP/s of matrix products: lesson 9's kernel in several launches, and persistent, beside torch.matmul.

    python benchmarks/matmul.py --dtype bfloat16
    python benchmarks/matmul.py --layers
    python benchmarks/matmul.py --drawn 20 --seed 1

Square matrices from 1024 to 16384, the layers of Llama 3 8B, or drawn shapes of more than 10¹² operations with tails.
Every repeat has fresh random inputs: zeros need less power, and the clock stays higher. Every timed output is checked
against float64.
"""

import argparse
import csv
import itertools
import json
import random
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl
from timing import Clock, Contest, about, need_gpu, short, whole_error

from workshop.backend import torch_device
from workshop.device import device
from workshop.results import RECORDED
from workshop.roofline import CARDS

SQUARES = (1024, 2048, 4096, 8192, 16384)
LAYERS = ((4096, 14336, 4096), (4096, 4096, 14336), (4096, 6144, 4096), (16384, 28672, 4096))  # (m, n, k)
BOUND = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5}  # of the whole output
OURS = "lesson 9"


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Lesson 9's product in groups of tiles. With fewer programs than tiles each takes tile after tile."""
    num_m, num_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    along = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), num_m * num_n, tl.num_programs(0), flatten=True):
        first_m = tile // (GROUP * num_n) * GROUP
        height = tl.minimum(num_m - first_m, GROUP)
        within = tile % (GROUP * num_n)
        rows = ((first_m + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        columns = (within // height * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
        a_rows = a_ptr + tl.where(rows < m, rows, 0)[:, None] * a_row
        b_columns = b_ptr + tl.where(columns < n, columns, 0)[None, :] * b_column
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in tl.range(0, tl.cdiv(k, BLOCK_K), num_stages=STAGES):
            p = step * BLOCK_K + along
            a = tl.load(a_rows + p[None, :] * a_column, mask=p[None, :] < k, other=0.0)
            b = tl.load(b_columns + p[:, None] * b_row, mask=p[:, None] < k, other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        places = rows[:, None] * n + columns[None, :]
        tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


def product(tile=(128, 128, 64), group=8, stages=3, warps=8, persistent=False) -> Callable:
    """matmul(a, b) with one launch of the kernel."""
    block_m, block_n, block_k = tile

    def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype, device=a.device)
        tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        programs = min(tiles, device().multiprocessors) if persistent else tiles
        matmul_kernel[(programs,)](
            a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP=group,
            STAGES=stages, num_warps=warps,
        )  # fmt: skip
        return c

    return matmul


def functions(only: list[str] | None) -> dict[str, Callable]:
    """torch, the kernel, and what changes when one thing about its launch does."""
    wide = (128, 256, 64)
    found = {
        "torch": torch.matmul,
        OURS: product(),
        "group 1": product(group=1),
        "tiles of 64": product((64, 64, 64), warps=4),
        **{f"{stages} stages": product(stages=stages) for stages in (1, 2, 4)},
        "persistent": product(persistent=True),
        "128 × 256": product(wide),
        "128 × 256, persistent": product(wide, persistent=True),
    }
    return {name: function for name, function in found.items() if not only or name in only}


def drawn_shapes(count: int, seed: int) -> list[tuple[int, int, int]]:
    """(m, n, k) with 10¹² to 10¹³ operations. Three of four have odd sides somewhere."""
    generator = random.Random(seed)
    found = []
    while len(found) < count:
        sides = [round(2 ** generator.uniform(9, 14.5)) for _ in range(3)]
        odd = len(found) % 4
        sides = [side | 1 if i < odd else side // 64 * 64 for i, side in enumerate(sides)]
        if 1e12 <= 2 * sides[0] * sides[1] * sides[2] <= 1e13:
            found.append(tuple(sides))
    return found


def expected(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """In float64, 2048 rows at a time."""
    return torch.cat([part.double() @ b.double() for part in a.split(2048)])


def tflops(entry: dict) -> list[float]:
    m, n, k = entry["shape"]
    return [2 * m * n * k / ms / 1e9 for ms in entry["ms"]]


def table(entries: list[dict], facts: dict[str, str]) -> list[list]:
    """A row for each shape and function: the median of TFLOP/s, its quantiles, the share of torch and of the peak."""
    peak = next((card.tflops for card in CARDS if facts["gpu"].startswith(card.name)), None)
    rows = []
    for shape, group in itertools.groupby(entries, key=lambda entry: entry["shape"]):
        timed = {entry["provider"]: entry for entry in group if entry["provider"] != "copy"}
        torch_speed = statistics.median(tflops(timed["torch"])) if "torch" in timed else None
        for name, entry in timed.items():
            if entry["note"]:
                rows.append([*shape, name, "", "", "", "", "", entry["note"]])
                continue
            speeds = tflops(entry)
            fifths = statistics.quantiles(speeds, n=5, method="inclusive")
            middle = statistics.median(speeds)
            numbers = [f"{each:.1f}" for each in (middle, fifths[0], fifths[3])]
            shares = [f"{middle / each:.3f}" if each else "" for each in (torch_speed, peak)]
            rows.append([*shape, name, *numbers, *shares, ""])
    return rows


HEADER = ["m", "n", "k", "provider", "tflops", "low", "high", "of_torch", "of_peak", "note"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=("bfloat16", "float16", "float32"), default="bfloat16")
    parser.add_argument("--layers", action="store_true", help="the layers of a model instead of squares")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N shapes instead")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn shapes")
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV and JSON")
    chosen = parser.parse_args(arguments)
    need_gpu()
    dtype = getattr(torch, chosen.dtype)
    shapes = LAYERS if chosen.layers else [(n, n, n) for n in SQUARES]
    what = "layers" if chosen.layers else "squares"
    if chosen.drawn:
        shapes, what = drawn_shapes(chosen.drawn, chosen.seed), f"drawn_{chosen.seed}"
    contest = Contest(functions(chosen.only), expected, BOUND[dtype], Clock(), whole_error)
    facts, entries = about() | {"repeats": str(chosen.repeats)}, []
    for number, (m, n, k) in enumerate(shapes):

        def inputs(m=m, n=n, k=k):
            return tuple(torch.randn(shape, device=torch_device(), dtype=dtype) for shape in ((m, k), (k, n)))

        moved = (m * k + k * n + m * n) * dtype.itemsize
        found = contest.run(number, inputs, moved, chosen.repeats)
        entries += [entry | {"shape": [m, n, k]} for entry in found]
    rows = table(entries, facts)
    stem = chosen.out / f"{short(facts['gpu'])}_matmul_{what}_{chosen.dtype}"
    chosen.out.mkdir(parents=True, exist_ok=True)
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in facts.items())
        csv.writer(file).writerows([HEADER, *rows])
    stem.with_suffix(".json").write_text(json.dumps({"about": facts, "entries": entries}) + "\n", encoding="utf-8")
    print("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|", sep="\n")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
