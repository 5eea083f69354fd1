"""What the host does for one call of a small kernel: microseconds per call, and where they go.

    python benchmarks/launch_overhead.py
    python benchmarks/launch_overhead.py --few

The kernels are tiny, so the GPU is idle and only the host counts. A queue of 300 calls is timed by the host's clock
and emptied afterwards. "done" is the time of one call until its result is there. With --few: softmax of 64 rows, this
course's and torch's.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from answers import load
from kernels import softmax as kernels
from timing import about, first_line, need_gpu, short

from workshop.backend import torch_device
from workshop.results import RECORDED

FEW_ROWS = (781, 4096, 12672, 32768)  # columns of 64 rows
CALLS = 300  # the driver's queue holds about a thousand launches
REPEATS = 15


def microseconds(functions: dict[str, Callable]) -> dict[str, dict]:
    """For each function the time of a call in a queue, with its quantiles, and until the result is there, or a note."""
    queued, done, notes = {name: [] for name in functions}, {name: [] for name in functions}, {}
    for repeat in range(-1, REPEATS):  # in turns, because the host's clock changes; the first round warms up
        for name, function in functions.items():
            try:
                begin = time.perf_counter()
                for _ in range(CALLS):
                    function()
                queued[name].append((time.perf_counter() - begin) / CALLS * 1e6)
                for _ in range(CALLS // REPEATS):
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    function()
                    torch.cuda.synchronize()
                    done[name].append((time.perf_counter() - begin) * 1e6)
            except Exception as error:
                notes[name] = {"note": first_line(error)}
            if repeat < 0:
                queued[name], done[name] = [], []
    found = {}
    for name in functions.keys() - notes.keys():
        fifths = statistics.quantiles(queued[name], n=5, method="inclusive")
        numbers = {"us": statistics.median(queued[name]), "us_20": fifths[0], "us_80": fifths[3]}
        numbers["us_done"] = statistics.median(done[name])
        found[name] = {key: round(value, 2) for key, value in numbers.items()}
    return {name: notes.get(name) or found[name] for name in functions}


def few_rows() -> dict:
    """Softmax of 64 rows: name -> function without arguments."""
    found = {}
    for columns in FEW_ROWS:
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.rand(64, columns, device=torch_device()).to(dtype)
            name = f"64 × {columns}, {str(dtype).removeprefix('torch.')}"
            found[f"softmax of {name}"] = lambda x=x: kernels.softmax(x)
            found[f"torch.softmax of {name}"] = lambda x=x: torch.softmax(x, dim=1)
    return found


def calls() -> dict:
    """What is timed: name -> function without arguments."""
    lesson1, lesson4 = load("vector_add"), load("fused_softmax")
    x, y = torch.rand(1024, device=torch_device()), torch.rand(1024, device=torch_device())
    out = torch.empty_like(x)
    matrix = torch.rand(64, 1024, device=torch_device())
    compiled_add = torch.compile(torch.add)
    kernel = lesson1.add_kernel
    handle = kernel[(1,)](x, y, out, 1024, BLOCK_SIZE=1024)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            torch.add(x, y, out=out)
    launch = lesson4.fused_launch
    return {
        "torch.empty_like": lambda: torch.empty_like(x),
        "torch.add, into a given tensor": lambda: torch.add(x, y, out=out),
        "torch.add": lambda: torch.add(x, y),
        "torch.compile(torch.add)": lambda: compiled_add(x, y),
        "kernel[grid](...), into a given tensor": lambda: kernel[(1,)](x, y, out, 1024, BLOCK_SIZE=1024),
        "the compiled kernel itself, without Triton's look-up": lambda: handle[(1, 1, 1)](x, y, out, 1024, 1024),
        "add, as in lesson 1": lambda: lesson1.add(x, y),
        "fused_softmax, as in lesson 4": lambda: lesson4.fused_softmax(matrix),
        "its launch from the cache": lambda: launch(matrix.dtype, 1024, 1024),
        "its launch computed every time": lambda: launch.__wrapped__(matrix.dtype, 1024, 1024),
        "rows_softmax": lambda: kernels.rows_softmax(matrix),
        "softmax, the fastest kernels": lambda: kernels.softmax(matrix),
        "torch.softmax": lambda: torch.softmax(matrix, dim=1),
        f"one of {CALLS} calls in a CUDA graph": _Replay(graph),
    }


class _Replay:
    """Replays a graph of CALLS calls once in every CALLS calls, so that its time is that of one of them."""

    def __init__(self, graph):
        self.graph, self.number = graph, 0

    def __call__(self):
        if self.number % CALLS == 0:
            self.graph.replay()
        self.number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--few", action="store_true", help="softmax of 64 rows instead")
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for the JSON")
    chosen = parser.parse_args()
    need_gpu()
    found = microseconds(few_rows() if chosen.few else calls())
    entries = [{"call": name, **numbers} for name, numbers in found.items()]
    facts = about()
    print(f"{facts['gpu']}, microseconds of the host for one call\n")
    print("| call | median | 20 % | 80 % | done |\n|---|---|---|---|---|")
    for entry in entries:
        numbers = [f"{entry[key]:.1f}" for key in ("us", "us_20", "us_80", "us_done") if key in entry]
        cells = numbers or [entry["note"], "", "", ""]
        print(f"| {entry['call']} | {' | '.join(cells)} |")
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / f"{short(facts['gpu'])}_{'few_rows' if chosen.few else 'launch_overhead'}.json"
    path.write_text(json.dumps({"about": facts, "entries": entries}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
