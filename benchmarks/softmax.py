"""GB/s of this course's softmax kernels beside torch, torch.compile, Liger and QuACK, over the number of columns.

    python benchmarks/softmax.py --dtype bfloat16

Every call moves at least 1 GiB. Every repeat has fresh inputs, and every timed output is checked against float64.
Liger and QuACK take part where they are installed.
"""

import argparse
from pathlib import Path

import torch
from answers import load
from kernels import softmax as kernels
from peers import softmax_peers
from timing import Clock, Contest, about, compare_with, need_gpu, results, short, write

from workshop.backend import torch_device
from workshop.results import RECORDED

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
TRAFFIC = 1 << 30  # bytes read and written by one call, at least
BOUNDS = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}  # half precision: one unit in the last place


def functions(shapes: int) -> dict:
    """name -> function of a matrix. The lessons refer to the lines by these names."""
    found = softmax_peers(shapes)
    found["tutorial, persistent"] = kernels.persistent_softmax
    found["naive, block 256"] = load("naive_softmax").naive_softmax
    found["online, block 256"] = load("online_softmax").online_softmax
    found["two passes"] = load("wide_softmax").wide_softmax
    found["fused, persistent"] = load("fused_softmax").fused_softmax
    found["fused, rows"] = kernels.rows_softmax
    found["fused, pieces and clusters"] = kernels.softmax
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=tuple(BOUNDS), default="float32")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to say how far this one is from it")
    chosen = parser.parse_args()
    need_gpu()
    dtype = getattr(torch, chosen.dtype)
    facts = about("liger-kernel", "quack-kernels")
    providers = functions(len(chosen.columns))
    if chosen.only:
        providers = {name: function for name, function in providers.items() if name in chosen.only}
    contest = Contest(providers, lambda x: torch.softmax(x.double(), dim=1), BOUNDS[chosen.dtype], Clock())
    entries = []
    for columns in chosen.columns:
        rows = -(-TRAFFIC // (2 * columns * dtype.itemsize))

        def make_inputs(rows=rows, columns=columns):
            return (torch.randn(rows, columns, device=torch_device(), dtype=dtype),)

        entries += contest.run(columns, make_inputs, 2 * rows * columns * dtype.itemsize)
        print("measured", columns, flush=True)
    found = results(entries, facts, f"Softmax, {chosen.dtype}")
    if chosen.against:
        name = f"{short(facts['gpu'])}_softmax_{chosen.dtype}.csv"
        print(compare_with(chosen.against / name, found))
    write(found, entries, f"softmax_{chosen.dtype}", chosen.out)


if __name__ == "__main__":
    main()
