"""TFLOP/s of matrix products: lesson 9's kernel in several launches and the fastest kernel, beside torch.matmul.

    python benchmarks/matmul.py --dtype bfloat16
    python benchmarks/matmul.py --layers
    python benchmarks/matmul.py --drawn 20 --seed 1
    python benchmarks/matmul.py --zeros

Square matrices from 1024 to 16384, the layers of Llama 3 8B, or drawn shapes of more than 10¹² operations with tails.
Every repeat has fresh random inputs, except with --zeros: zeros need less power, and the clock stays higher. Every
timed output is checked against float64.
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
from kernels import matmul as kernels
from kernels.matmul import Tile
from timing import Clock, Contest, about, need_gpu, short, whole_error

from workshop.backend import torch_device
from workshop.device import CARDS
from workshop.results import RECORDED

SQUARES = (1024, 2048, 4096, 8192, 16384)
LAYERS = ((4096, 14336, 4096), (4096, 4096, 14336), (4096, 6144, 4096), (16384, 28672, 4096))  # (m, n, k)
BOUND = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5}  # of the whole output
OURS = "lesson 9"
FASTEST = "descriptors, persistent"


def functions(only: list[str] | None) -> dict[str, Callable]:
    """torch, lesson 9's kernel, what changes when one thing about its launch does, and the fastest kernel."""

    def lesson(tile: Tile, **more) -> Callable:
        return lambda a, b: kernels.lesson_matmul(a, b, tile, **more)

    best = Tile(128, 256, 64, 4, 8)
    found = {
        "torch": torch.matmul,
        OURS: lesson(best),
        "group 1": lesson(best, group=1),
        **{f"{stages} stage{'s' * (stages > 1)}": lesson(best._replace(stages=stages)) for stages in (1, 2, 3)},
        "tiles of 128": lesson(Tile(128, 128, 64, 3, 8)),
        "tiles of 64": lesson(Tile(64, 64, 64, 4, 4)),
        "columns clamped": lesson(best, clamped=True),
        "descriptors": lambda a, b: kernels.matmul(a, b, persistent=False),
        FASTEST: kernels.matmul,
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
    parser.add_argument("--zeros", action="store_true", help="squares of zeros instead of random numbers")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N shapes instead")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn shapes")
    parser.add_argument("--only", nargs="*", help="these lines only; of layers and drawn shapes three")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV and JSON")
    chosen = parser.parse_args(arguments)
    need_gpu()
    dtype = getattr(torch, chosen.dtype)
    shapes = LAYERS if chosen.layers else [(n, n, n) for n in SQUARES]
    what = "layers" if chosen.layers else "squares"
    if chosen.drawn:
        shapes, what = drawn_shapes(chosen.drawn, chosen.seed), f"drawn_{chosen.seed}"
    draw = torch.zeros if chosen.zeros else torch.randn
    if chosen.zeros:
        what = "zeros"
    only = chosen.only or (None if what == "squares" else ["torch", OURS, FASTEST])
    contest = Contest(functions(only), expected, BOUND[dtype], Clock(), whole_error)
    facts, entries = about() | {"repeats": str(chosen.repeats)}, []
    for number, (m, n, k) in enumerate(shapes):

        def inputs(m=m, n=n, k=k):
            return tuple(draw(shape, device=torch_device(), dtype=dtype) for shape in ((m, k), (k, n)))

        moved = (m * k + k * n + m * n) * dtype.itemsize
        found = contest.run(number, inputs, moved, chosen.repeats)
        entries += [entry | {"shape": [m, n, k]} for entry in found]
    rows = table(entries, facts)
    stem = chosen.out / f"{short(facts['gpu'])}_matmul_{what}_{chosen.dtype}"
    chosen.out.mkdir(parents=True, exist_ok=True)
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([[*HEADER, *facts], *([*row, *facts.values()] for row in rows)])
    stem.with_suffix(".json").write_text(json.dumps({"about": facts, "entries": entries}) + "\n", encoding="utf-8")
    print("| " + " | ".join(HEADER) + " |", "|---" * len(HEADER) + "|", sep="\n")
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
