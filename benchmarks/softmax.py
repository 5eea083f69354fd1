"""GB/s of this course's softmax kernels beside torch, torch.compile, Liger and QuACK, over the number of columns.

    python benchmarks/softmax.py --dtype bfloat16
    python benchmarks/softmax.py --dtype bfloat16 --drawn 60 --seed 1

Every call moves at least 1 GiB. Every repeat has fresh inputs, and every timed output is checked against float64.
Liger and QuACK take part where they are installed. With --drawn, the widths are drawn log-uniformly from 200 to
262,144, beside ten that people use; table and plot show the worst first.
"""

import argparse
import random
import statistics
from pathlib import Path

import torch
from answers import load
from kernels import softmax as kernels
from peers import softmax_peers
from timing import Clock, Contest, about, compare_with, need_gpu, results, save, short, write

from workshop import style
from workshop.backend import torch_device
from workshop.results import RECORDED, Results, Row

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
# Hidden sizes and vocabularies: BERT and GPT-2, Llama 3 8B, Llama 2 13B, Llama 3 70B, its MLP, Llama 2, GPT-2, Phi-4,
# Llama 3, Qwen 2.5.
BEST_KNOWN = (768, 4096, 5120, 8192, 14336, 32000, 50257, 100352, 128256, 151936)
TRAFFIC = 1 << 30  # bytes read and written by one call, at least
BOUNDS = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}  # half precision: one unit in the last place
OURS = "fused, stripes"


def functions(shapes: int, drawn: bool) -> dict:
    """name -> function of a matrix. The lessons refer to the lines by these names."""
    found = softmax_peers(shapes)
    if drawn:
        del found["torch.compile, max-autotune"]  # it tunes for seconds at each width
    else:
        found["tutorial, persistent"] = kernels.persistent_softmax
        found["naive, block 256"] = load("naive_softmax").naive_softmax
        found["online, block 256"] = load("online_softmax").online_softmax
        found["two passes"] = load("wide_softmax").wide_softmax
        found["fused, persistent"] = load("fused_softmax").fused_softmax
        found["fused, rows"] = kernels.rows_softmax
    found[OURS] = kernels.softmax
    return found


def drawn_columns(count: int, seed: int) -> list[int]:
    """`count` widths, log-uniform from 200 to 262,144, and the best-known ones, without repetition.

    A quarter of them is made odd, and a quarter multiples of 8 that are none of 16.
    """
    generator = random.Random(seed)
    found = set(BEST_KNOWN)
    while len(found) < count + len(BEST_KNOWN):
        columns = round(200 * (262_144 / 200) ** generator.random())
        kind = len(found) % 4
        found.add(columns | 1 if kind == 0 else columns // 16 * 16 + 8 if kind == 1 else columns)
    return sorted(found)


def worst_first(found: Results) -> Results:
    """The same numbers, and the widths in the order of our kernel's share of the copy."""
    share = {row.size: row.of_copy or 0 for row in found.rows if row.provider == OURS}
    found.rows.sort(key=lambda row: share.get(row.size, 0))
    return found


def summary(found: Results) -> str:
    """The worst width and the median of our kernel, and where a peer is ahead by more than 3 %."""
    ours = {row.size: row.of_copy for row in found.rows if row.provider == OURS and row.of_copy}
    lines = []
    for name, sizes in (("to 32,768", [n for n in ours if n <= 32_768]), ("beyond", [n for n in ours if n > 32_768])):
        if sizes:
            worst = min(sizes, key=ours.get)
            median = statistics.median(ours[n] for n in sizes)
            lines.append(f"{name}: {len(sizes)} widths, worst {ours[worst]:.3f} at {worst:,}, median {median:.3f}")
    for row in found.rows:
        if row.provider not in ("copy", OURS) and row.of_copy and row.of_copy > 1.03 * ours.get(row.size, 0):
            lines.append(f"{row.provider} is ahead at {row.size:,}: {row.of_copy:.3f} against {ours[row.size]:.3f}")
    return "\n".join(lines)


def scatter(found: Results, named: int = 6):
    """Share of the copy over the width: a dot for each width and function; our worst widths are ringed and listed."""
    with style.figure(found.title, "columns", "share of the copy's speed", found.alt()) as (figure, axes):
        names = [name for name in found.providers if name not in ("copy", OURS)]
        for number, name in enumerate((OURS, *names)):
            rows = [row for row in found.rows if row.provider == name and row.of_copy]
            look = style.look(number)
            points = [row.size for row in rows], [row.of_copy for row in rows]
            axes.scatter(*points, color=look["color"], s=26 if name == OURS else 12, label=name, zorder=3 - number / 9)
        worst = worst_rows(found, named)
        ringed = [row.size for row in worst], [row.of_copy for row in worst]
        axes.scatter(*ringed, s=70, facecolors="none", edgecolors=style.INK, zorder=4)
        listed = "\n".join(f"{row.size:,}: {row.of_copy:.2f}" for row in worst)
        axes.text(0.02, 0.04, f"worst widths of ours\n{listed}", transform=axes.transAxes, fontsize=9, color=style.INK)
        style.size_ticks(axes, [row.size for row in found.rows])
        axes.set_ylim(0, 1.1)
        figure.legend(loc="outside upper right", ncols=5)
        figure.supxlabel(found.caption(), fontsize=10, color=style.INK)
        return figure


def worst_rows(found: Results, count: int) -> list[Row]:
    rows = [row for row in found.rows if row.provider == OURS and row.of_copy]
    return sorted(rows, key=lambda row: row.of_copy)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=tuple(BOUNDS), default="float32")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N widths instead, beside ten that people use")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn widths")
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to say how far this one is from it")
    chosen = parser.parse_args()
    need_gpu()
    dtype = getattr(torch, chosen.dtype)
    widths = drawn_columns(chosen.drawn, chosen.seed) if chosen.drawn else chosen.columns
    facts = about("liger-kernel", "quack-kernels") | {"repeats": str(chosen.repeats)}
    providers = functions(len(widths), bool(chosen.drawn))
    if chosen.only:
        providers = {name: function for name, function in providers.items() if name in chosen.only}
    contest = Contest(providers, lambda x: torch.softmax(x.double(), dim=1), BOUNDS[chosen.dtype], Clock())
    entries = []
    for columns in widths:
        rows = -(-TRAFFIC // (2 * columns * dtype.itemsize))

        def make_inputs(rows=rows, columns=columns):
            return (torch.randn(rows, columns, device=torch_device(), dtype=dtype),)

        entries += contest.run(columns, make_inputs, 2 * rows * columns * dtype.itemsize, chosen.repeats)
    title, name = f"Softmax, {chosen.dtype}", f"softmax_{chosen.dtype}"
    if chosen.drawn:
        title, name = f"{title}, drawn widths", f"softmax_drawn_{chosen.seed}_{chosen.dtype}"
    found = results(entries, facts, title)
    if chosen.against:
        print(compare_with(chosen.against / f"{short(facts['gpu'])}_{name}.csv", found))
    if chosen.drawn:
        save(worst_first(found), entries, name, chosen.out, scatter(found))
        print(summary(found), flush=True)
    else:
        write(found, entries, name, chosen.out)


if __name__ == "__main__":
    main()
