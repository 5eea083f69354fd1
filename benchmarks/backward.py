"""GB/s of the gradients of lessons 8 and 10, beside torch, torch.compile and Liger, over the number of columns.

    python benchmarks/backward.py softmax --dtype float16
    python benchmarks/backward.py cross_entropy --dtype bfloat16 --drawn 20 --seed 1
    python benchmarks/backward.py weight
    python benchmarks/backward.py rms_norm --dtype bfloat16

"copy" is a kernel with the same mix: it reads and writes as many bytes as the gradient must. Every repeat has fresh
inputs, and every timed output is checked against float64. With --drawn, the widths are drawn log-uniformly, beside
some that people use; table and plot show the worst first.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from answers import load
from drawn import drawn_columns, scatter, summary, worst_first
from kernels import backward as kernels
from peers import (
    EPS,
    cross_entropy_peers,
    gradient_of,
    rms_norm,
    rms_norm_peers,
    softmax_backward_peers,
    through,
    weight_grad_peers,
)
from timing import Clock, Contest, about, compare_with, need_gpu, results, save, short, whole_error, write

from workshop.backend import torch_device
from workshop.results import RECORDED

BOUNDS = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}  # of the whole tensor; gradients may be denormal numbers
LESSON, OURS, SHIPPED = "lesson 8", "whole words", "lesson 10"


@dataclass(frozen=True)
class Gradient:
    """What is measured. mix: matrices that are read and written. traffic: bytes of a call, at least.

    inputs(rows, columns, dtype) -> a tuple. expected(*inputs) -> the result in float64. peers(shapes) and `mine` are
    functions of the inputs. ours: the line that drawn widths are sorted by.
    """

    title: str
    mix: tuple[int, int]
    traffic: int
    columns: tuple[int, ...]
    drawn: tuple[int, int]
    inputs: Callable
    expected: Callable
    peers: Callable
    mine: Callable
    ours: str = OURS


def normal(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(rows, columns, device=torch_device(), dtype=dtype)


def softmax_inputs(rows: int, columns: int, dtype: torch.dtype) -> tuple:
    return torch.softmax(normal(rows, columns, dtype), dim=1), normal(rows, columns, dtype)


def softmax_expected(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    product = y.double() * dy
    return product - y.double() * product.sum(1, keepdim=True)


def loss_inputs(rows: int, columns: int, dtype: torch.dtype) -> tuple:
    """Logits, a copy of them for a function that writes over it, and targets of which one in 16 does not count."""
    logits = normal(rows, columns, dtype)
    targets = torch.randint(0, columns, (rows,), device=logits.device)
    targets[torch.rand(rows, device=logits.device) < 1 / 16] = -100
    return logits, logits.clone(), targets


def loss_expected(logits: torch.Tensor, _: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    counts = targets != -100
    dx = torch.softmax(logits.double(), dim=1)
    dx[torch.arange(len(targets), device=dx.device), targets.clamp(min=0)] -= 1
    return dx.mul_(counts[:, None]).div_(counts.sum())


def weight_inputs(rows: int, columns: int, dtype: torch.dtype) -> tuple:
    rstd = torch.rand(rows, device=torch_device()) + 0.5
    return normal(rows, columns, dtype), normal(rows, columns, dtype), rstd


def weight_expected(x: torch.Tensor, dy: torch.Tensor, rstd: torch.Tensor) -> torch.Tensor:
    return (x.double() * dy * rstd[:, None]).sum(0)


def norm_inputs(rows: int, columns: int, dtype: torch.dtype) -> tuple:
    return normal(rows, columns, dtype), 1 + 0.1 * normal(1, columns, dtype)[0], normal(rows, columns, dtype)


def norm_expected(x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return through(rms_norm)(x.double(), weight.double(), dy.double())


GRADIENTS = {
    "softmax": Gradient(
        title="Gradient of softmax",
        mix=(2, 1),
        traffic=1 << 30,
        columns=(256, 781, 1024, 4096, 8192, 16384, 32768, 65536, 131072),
        drawn=(200, 262_144),
        inputs=softmax_inputs,
        expected=softmax_expected,
        peers=softmax_backward_peers,
        mine=lambda: {LESSON: load("softmax_backward").softmax_backward, OURS: kernels.softmax_backward},
    ),
    "cross_entropy": Gradient(
        title="Cross-entropy, forward and backward",
        mix=(2, 1),
        traffic=4 << 30,  # of small matrices, the sums over the rows are a part that one sees
        columns=(4096, 32000, 50257, 50304, 128256, 151936),
        drawn=(2000, 262_144),
        inputs=loss_inputs,
        expected=loss_expected,
        peers=cross_entropy_peers,
        mine=lambda: {
            LESSON: gradient_of(load("cross_entropy").cross_entropy),
            OURS: gradient_of(kernels.cross_entropy),
        },
    ),
    "weight": Gradient(
        title="Gradient of an RMS norm's weight",
        mix=(2, 0),
        traffic=1 << 30,
        columns=(768, 1024, 2048, 4096, 5120, 8192, 14336),
        drawn=(200, 32_768),
        inputs=weight_inputs,
        expected=weight_expected,
        peers=weight_grad_peers,
        mine=lambda: {
            LESSON: load("rms_norm_weight_grad").rms_norm_weight_grad,
            OURS: kernels.rms_norm_weight_grad,
        },
    ),
    "rms_norm": Gradient(
        title="RMS norm, forward and backward",
        mix=(3, 2),
        traffic=1 << 30,
        columns=(768, 1024, 2048, 4096, 5120, 8192, 14336, 32768),
        drawn=(200, 32_768),
        inputs=norm_inputs,
        expected=norm_expected,
        peers=rms_norm_peers,
        mine=lambda: {SHIPPED: through(partial(load("rms_norm").rms_norm, eps=EPS))},
        ours=SHIPPED,
    ),
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=tuple(GRADIENTS))
    parser.add_argument("--dtype", choices=tuple(BOUNDS), default="float32")
    parser.add_argument("--columns", type=int, nargs="*")
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N widths instead, beside some that people use")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn widths")
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to say how far this one is from it")
    chosen = parser.parse_args(arguments)
    need_gpu()
    gradient, dtype = GRADIENTS[chosen.what], getattr(torch, chosen.dtype)
    widths = chosen.columns or gradient.columns
    if chosen.drawn:
        widths = drawn_columns(chosen.drawn, chosen.seed, *gradient.drawn)
    reads, writes = gradient.mix
    facts = about("liger-kernel") | {"repeats": str(chosen.repeats), "copy": f"{reads} reads, {writes} writes"}
    providers = gradient.peers(len(widths)) | gradient.mine()
    if chosen.only:
        providers = {name: function for name, function in providers.items() if name in chosen.only}
    contest = Contest(providers, gradient.expected, BOUNDS[chosen.dtype], Clock(), whole_error, gradient.mix)
    entries = []
    for columns in widths:
        row_bytes = (reads + writes) * columns * dtype.itemsize
        rows = -(-gradient.traffic // row_bytes)

        def make_inputs(rows=rows, columns=columns):
            return gradient.inputs(rows, columns, dtype)

        entries += contest.run(columns, make_inputs, rows * row_bytes, chosen.repeats)
    title, name = f"{gradient.title}, {chosen.dtype}", f"{chosen.what}_backward_{chosen.dtype}"
    if chosen.drawn:
        title, name = f"{title}, drawn widths", f"{chosen.what}_backward_drawn_{chosen.seed}_{chosen.dtype}"
    found = results(entries, facts, title)
    if chosen.against:
        print(compare_with(chosen.against / f"{short(facts['gpu'])}_{name}.csv", found))
    if chosen.drawn:
        save(worst_first(found, gradient.ours), entries, name, chosen.out, scatter(found, gradient.ours))
        print(summary(found, gradient.ours), flush=True)
    else:
        write(found, entries, name, chosen.out)


if __name__ == "__main__":
    main()
