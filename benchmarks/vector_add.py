"""GB/s of the course's vector addition beside torch and torch.compile, over the number of elements.

    python benchmarks/vector_add.py

A small vector is launch-bound and fits in the caches. So a CUDA graph holds as many calls as move 1 GiB, each on
other inputs, and one replay of the graph is timed. Every output of every replay is checked against float64.
"""

import argparse
from pathlib import Path

import torch
from answers import load
from timing import Clock, about, need_gpu, results, write

from workshop.backend import torch_device
from workshop.results import RECORDED

SIZES = (98_432, 2**20, 2**22, 2**24, 2**26, 2**28)
BLOCKS = (4, 256, 4096)
TRAFFIC = 1 << 30
REPEATS = 25


def functions() -> dict:
    """name -> function of two vectors."""
    kernel = load("vector_add").add_kernel

    def with_block(block_size: int):
        def add(x, y):
            output = torch.empty_like(x)
            n = x.numel()
            kernel[(-(-n // block_size),)](x, y, output, n, BLOCK_SIZE=block_size)
            return output

        return add

    return {
        "torch": torch.add,
        "torch.compile": torch.compile(torch.add, dynamic=False),
        "add": load("vector_add").add,
        "add_autotuned": load("vector_add_autotuned").add_autotuned,
        **{f"BLOCK_SIZE={block_size}": with_block(block_size) for block_size in BLOCKS},
    }


class Replay:
    """One call of a function for each pair of inputs, which stay where they are; a CUDA graph where there are several.

    A single call needs no graph, and a copy of more than a gigabyte is slower in one than by itself.
    """

    def __init__(self, function, pairs: list[tuple]):
        for pair in pairs[:3]:
            function(*pair)
        torch.cuda.synchronize()
        self.function, self.pairs, self.graph, self.outputs = function, pairs, None, []
        if len(pairs) == 1:
            return
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for pair in pairs:
                self.outputs.append(function(*pair))

    def __call__(self) -> None:
        if self.graph:
            self.graph.replay()
        else:
            self.outputs = [self.function(*self.pairs[0])]

    def is_right(self, pairs: list[tuple]) -> bool:
        """Whether every output is within one rounding of the sum in float64."""
        return all(
            bool(((output.double() - (x.double() + y.double())).abs() <= 2**-24 * output.abs() * 2).all())
            for output, (x, y) in zip(self.outputs, pairs, strict=True)
        )

    def poison(self) -> None:
        for output in self.outputs:
            output.fill_(float("nan"))


def measure(n: int, clock: Clock) -> list[dict]:
    """One entry per function, the copy first: milliseconds of one call in every repeat."""
    nbytes = 12 * n
    calls = max(1, -(-TRAFFIC // nbytes))
    pool = torch.empty(calls, 2, n, device=torch_device())
    pairs = [(pool[call, 0], pool[call, 1]) for call in range(calls)]
    sources = [(pool.new_empty(nbytes // 8).uniform_(),) for _ in range(calls)]
    replays = {"copy": Replay(torch.clone, sources)}
    entries = {}
    for name, function in functions().items():
        replays[name] = Replay(function, pairs)
    for name in replays:
        entries[name] = {"size": n, "provider": name, "ms": [], "note": "", "bytes": nbytes, "calls": calls}
    for _ in range(REPEATS):
        pool.uniform_()
        for name, replay in replays.items():
            milliseconds, _ = clock.milliseconds(replay)
            entries[name]["ms"].append(milliseconds / calls)
            if name != "copy" and not replay.is_right(pairs):
                entries[name]["note"] = "wrong result: no number"
            replay.poison()
    return list(entries.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    chosen = parser.parse_args()
    need_gpu()
    clock, entries = Clock(), []
    for n in SIZES:
        entries += measure(n, clock)
        print("measured", n, flush=True)
    found = results(entries, about(), "Vector addition, float32", "elements")
    write(found, entries, "vector_add_float32", chosen.out)


if __name__ == "__main__":
    main()
