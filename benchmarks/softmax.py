"""GB/s of this course's softmax kernels beside torch, torch.compile, Liger and QuACK, over the number of columns.

    python benchmarks/softmax.py --dtype bfloat16
    python benchmarks/softmax.py --dtype bfloat16 --drawn 60 --seed 1

Every call moves at least 1 GiB. Every repeat has fresh inputs, and every timed output is checked against float64.
Liger and QuACK take part where they are installed. With --drawn, the widths are drawn log-uniformly from 200 to
262,144, beside ten that people use; table and plot show the worst first.
"""

import argparse
from pathlib import Path

import torch
from answers import load
from drawn import drawn_columns, scatter, summary, worst_first
from kernels import softmax as kernels
from peers import softmax_peers
from timing import Clock, Contest, about, compare_with, need_gpu, results, save, short, write

from workshop.backend import torch_device
from workshop.results import RECORDED

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
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
        save(worst_first(found, OURS), entries, name, chosen.out, scatter(found, OURS))
        print(summary(found, OURS, (32_768,)), flush=True)
    else:
        write(found, entries, name, chosen.out)


if __name__ == "__main__":
    main()
