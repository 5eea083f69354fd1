"""GB/s of decoding, one query for each head against a long cache: lesson 7's kernels beside torch's attention.

    python benchmarks/attention.py --heads 8
    python benchmarks/attention.py --drawn 20 --seed 1
    python benchmarks/attention.py --everyday

Heads of 128 numbers in float16. Every repeat has fresh inputs, and every timed output is checked against float64. A
perfect kernel reads the cache once, so its bytes are those of the cache; "copy" moves as many, half of them as
writes. With --drawn, caches of 0.25 to 1 GiB for 1 to 256 heads; table and plot show the worst first. With --everyday,
1 to 32 requests with 8 heads and 4,096 tokens, as calls in a CUDA graph that read one cache after the other.
"""

import argparse
import random
from collections.abc import Callable
from pathlib import Path

import torch
from answers import load
from drawn import scatter, summary, worst_first
from peers import attention_peers
from timing import (
    Clock,
    Contest,
    about,
    compare_with,
    copying,
    first_line,
    need_gpu,
    results,
    save,
    short,
    whole_error,
    write,
)

from workshop.backend import driver, torch_device
from workshop.results import RECORDED

TOKENS = {8: (1024, 4096, 16384, 65536, 131072), 64: (1024, 4096, 8192, 16384)}  # by the heads
D = 128
BOUND = 2e-3  # of the whole output, in float16
ONE, OURS = "lesson 7, one program a head", "lesson 7, split"
REQUESTS, HEADS, EVERYDAY_TOKENS = (1, 2, 4, 8, 16, 32), 8, 4096
CALLS = 20  # of a graph, at least


def cache(heads: int, tokens: int) -> tuple:
    """q (heads, D), k and v (heads, tokens, D)."""
    q = torch.randn(heads, D, device=torch_device(), dtype=torch.float16)
    return q, *torch.randn(2, heads, tokens, D, device=torch_device(), dtype=torch.float16)


def expected(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The output in float64, head by head."""
    return torch.stack([torch.softmax(k.double() @ q.double() / D**0.5, 0) @ v.double() for q, k, v in zip(q, k, v)])


def nbytes(heads: int, tokens: int) -> int:
    return 2 * heads * tokens * D * 2


def functions(only: list[str] | None) -> dict[str, Callable]:
    found = attention_peers() | {
        ONE: load("decode_attention").decode_attention,
        OURS: load("split_decode_attention").split_decode_attention,
    }
    return {name: function for name, function in found.items() if not only or name in only}


def drawn_caches(count: int, seed: int) -> list[tuple[int, int]]:
    """(heads, tokens): heads log-uniform from 1 to 256, caches from 2**28 to 2**30 bytes."""
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        heads = round(2 ** generator.uniform(0, 8))
        found.append((heads, round(2 ** generator.uniform(28, 30) / nbytes(heads, 1))))
    return sorted(found)


def in_a_graph(providers: dict[str, Callable], requests: int, repeats: int) -> list[dict]:
    """One entry per function, the copy first: milliseconds of one call in a graph of calls on different caches."""
    moved = nbytes(requests * HEADS, EVERYDAY_TOKENS)
    caches = [cache(requests * HEADS, EVERYDAY_TOKENS) for _ in range(max(2, -(-(1 << 30) // moved)))]
    wanted = expected(*caches[-1])
    calls = -(-CALLS // len(caches)) * len(caches)
    copies = [copying(moved) for _ in caches]
    entries, graphs = [], {}
    for name, function in {"copy": None, **providers}.items():
        entry = {"size": requests, "provider": name, "ms": [], "error": 0.0, "note": "", "bytes": moved}
        entries.append(entry)
        steps = copies if function is None else [lambda c=c, f=function: f(*c) for c in caches]
        try:
            graph = torch.cuda.CUDAGraph()
            for _ in range(3):
                steps[0]()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                for number in range(calls):
                    result = steps[number % len(steps)]()
            graph.replay()
            if function is not None:
                entry["error"] = whole_error(result, wanted)
                if not entry["error"] <= BOUND:
                    entry["note"] = f"wrong result: relative error {entry['error']:.1e}"
            graphs[name] = graph
        except Exception as error:  # not every backend takes every shape, or a graph
            entry["note"] = first_line(error)
    interface = driver().get_device_interface()
    for _ in range(repeats):
        for entry in entries:
            if not entry["note"]:
                start, end = (interface.Event(enable_timing=True) for _ in range(2))
                start.record()
                graphs[entry["provider"]].replay()
                end.record()
                interface.synchronize()
                entry["ms"].append(start.elapsed_time(end) / calls)
    return entries


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--tokens", type=int, nargs="*")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N caches instead")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn caches")
    parser.add_argument("--everyday", action="store_true", help="calls in a CUDA graph instead")
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to say how far this one is from it")
    chosen = parser.parse_args(arguments)
    need_gpu()
    facts, providers = about() | {"repeats": str(chosen.repeats)}, functions(chosen.only)
    entries = []
    if chosen.everyday:
        for requests in REQUESTS:
            entries += in_a_graph(providers, requests, chosen.repeats)
        title = f"Decoding in a CUDA graph, {HEADS} heads of {D}, {EVERYDAY_TOKENS:,} tokens, float16"
        name, x_label = "decode_everyday_float16", "requests"
    else:
        tokens = chosen.tokens or TOKENS.get(chosen.heads, (8192,))
        shapes = drawn_caches(chosen.drawn, chosen.seed) if chosen.drawn else [(chosen.heads, t) for t in tokens]
        contest = Contest(providers, expected, BOUND, Clock(), whole_error)
        for heads, t in shapes:
            size = heads * t if chosen.drawn else t
            found = contest.run(size, lambda h=heads, t=t: cache(h, t), nbytes(heads, t), chosen.repeats)
            entries += [entry | {"heads": heads, "tokens": t} for entry in found]
        title = f"Decoding, {'drawn caches' if chosen.drawn else f'{chosen.heads} heads'} of {D}, float16"
        name = f"decode_drawn_{chosen.seed}_float16" if chosen.drawn else f"decode_{chosen.heads}_heads_float16"
        x_label = "heads × tokens" if chosen.drawn else "tokens in the cache"
    found = results(entries, facts, title, x_label)
    if chosen.against:
        print(compare_with(chosen.against / f"{short(facts['gpu'])}_{name}.csv", found))
    if chosen.drawn:
        save(worst_first(found, OURS), entries, name, chosen.out, scatter(found, OURS, x_label))
        print(summary(found, OURS), flush=True)
    else:
        write(found, entries, name, chosen.out)


if __name__ == "__main__":
    main()
