"""GB/s of leaky ReLU and dropout through JAX, forward and backward: by XLA with two generators, and by Triton.

    python benchmarks/dropout.py
    python benchmarks/dropout.py --backward --drawn 12 --seed 1

JAX's calls return before the work is done and run on a stream of JAX's own, which torch's events do not see. So a
queue of calls is timed from its first call until its last result is there. Every call has another seed, which is on
the GPU before the clock starts; every repeat has fresh inputs. What is timed is checked: which elements are kept is
read off the result, their share must be binomial, and their values must agree with float64. With --drawn, the numbers
of elements are drawn log-uniformly from 2**24 to 2**28; half of them are odd.
"""

import argparse
import os
import random
import time
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from workshop import device  # noqa: E402

device()  # before jax_triton, which takes away the folder of Triton's cache that finding the GPU needs

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_triton as jt  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton  # noqa: E402
from kernels import dropout as kernels  # noqa: E402
from timing import about, compare_with, first_line, need_gpu, results, short, write  # noqa: E402

from workshop.results import RECORDED  # noqa: E402

COLUMNS = (256, 1024, 4096, 8192, 12672, 32768)
ROWS = 4096
CALLS, REPEATS = 40, 15
P = 0.5
BOUND = 1e-6  # relative, against float64


def triton_call(kernel, arrays, seed, block_size: int, **constants):
    """A kernel of this course on arrays of one shape; the seed is an array of one number."""
    x = arrays[0]
    return jt.triton_call(
        *arrays,
        jnp.asarray(P, jnp.float32),
        seed,
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, block_size),),
        n=x.size,
        **constants,
    )


def in_jax(x, seed, generator: str | None = None):
    x = jnp.where(x >= 0, x, 0.01 * x)
    keep = jax.random.uniform(jax.random.key(seed, impl=generator), x.shape) >= P
    return jnp.where(keep, x / (1 - P), 0.0)


def gradient_in_jax(generator: str | None = None):
    """dx of (x, dy, seed): XLA draws the mask again, as the kernel does."""

    def gradient(x, dy, seed):
        return jax.vjp(lambda x: in_jax(x, seed, generator), x)[1](dy)[0]

    return gradient


def functions(backward: bool) -> dict:
    """name -> function of (x, seed), or of (x, dy, seed). The lesson refers to the lines by these names."""
    warps = (kernels.BACKWARD_WARPS if backward else kernels.FORWARD_WARPS)[device().backend]
    launch = {"QUARTER": kernels.QUARTER, "num_warps": warps}
    block_size = 4 * kernels.QUARTER
    if backward:
        return {
            "copy": jax.jit(lambda x, dy, seed: jnp.copy(x)),
            "jax.jit (XLA)": jax.jit(gradient_in_jax()),
            "jax.jit (XLA), rbg": jax.jit(gradient_in_jax("rbg")),
            "Triton": jax.jit(
                lambda x, dy, seed: triton_call(
                    kernels.leaky_dropout_backward_kernel, (x, dy), seed, block_size, **launch
                )
            ),
        }
    return {
        "copy": jax.jit(lambda x, seed: jnp.copy(x)),
        "JAX, op by op": in_jax,
        "jax.jit (XLA)": jax.jit(in_jax),
        "jax.jit (XLA), rbg": jax.jit(lambda x, seed: in_jax(x, seed, "rbg")),
        "Triton, one number in four": jax.jit(
            lambda x, seed: triton_call(kernels.one_number_kernel, (x,), seed, 4096, BLOCK_SIZE=4096)
        ),
        "Triton": jax.jit(
            lambda x, seed: triton_call(kernels.leaky_dropout_kernel, (x,), seed, block_size, **launch)
        ),
    }


def seconds_per_call(function, inputs: tuple, seeds: list) -> tuple[float, jax.Array]:
    """Time of a call in a queue of them, and the last result."""
    begin = time.perf_counter()
    for seed in seeds:
        result = function(*inputs, seed)
    result.block_until_ready()
    return (time.perf_counter() - begin) / len(seeds), result


def fate(result: jax.Array, x: jax.Array, incoming: jax.Array) -> tuple[float, float]:
    """(share of elements that are 0, largest relative error of the others in float64)."""
    result, x, incoming = (torch.from_dlpack(array) for array in (result, x, incoming))
    kept = result != 0
    whole = incoming.double().mul_(torch.where(x >= 0, 1.0, 0.01).double()).div_(1 - P)[kept]
    error = ((result[kept] - whole) / whole).abs_().max().item()
    return 1 - kept.sum().item() / kept.numel(), error if error == error else float("inf")


def drawn_shapes(count: int, seed: int) -> list[tuple[int, int]]:
    """(rows, columns), with an odd number of elements in every second of them."""
    generator = random.Random(seed)
    found = []
    for number in range(count):
        elements = 2 ** generator.uniform(24, 28)
        columns = round(2 ** generator.uniform(8, 17))
        rows = round(elements / columns) + 1
        found.append((rows | 1, columns | 1) if number % 2 == 0 else (rows, columns))
    return sorted(found, key=lambda shape: shape[0] * shape[1])


def measure(shape: tuple[int, int], size: int, backward: bool, repeats: int, only: list[str] | None) -> list[dict]:
    """One entry per function, the copy first: milliseconds of one call in every repeat. size: what to call it."""
    elements = shape[0] * shape[1]
    nbytes = elements * (12 if backward else 8)
    entries = {}
    found = {name: function for name, function in functions(backward).items() if not only or name in (*only, "copy")}
    for name in found:
        # A copy moves 8 bytes for each element, whichever pass it is beside.
        moved = elements * 8 if name == "copy" else nbytes
        entries[name] = {"size": size, "provider": name, "ms": [], "error": 0.0, "note": "", "bytes": moved}
    for repeat in range(repeats + 1):  # the first compiles
        key = jax.random.key(1000 + repeat)
        x = jax.random.normal(key, shape)
        inputs = (x, jax.random.normal(jax.random.fold_in(key, 1), shape)) if backward else (x,)
        seeds = [jax.device_put(jnp.int32(repeat * CALLS + number)) for number in range(CALLS)]
        jax.block_until_ready((inputs, seeds))
        for name, function in found.items():
            entry = entries[name]
            if entry["note"]:
                continue
            try:
                seconds, result = seconds_per_call(function, inputs, seeds[:1] if repeat == 0 else seeds)
            except Exception as error:
                entry["note"] = first_line(error)
                continue
            if repeat:
                entry["ms"].append(seconds * 1e3)
            if name != "copy":
                share, error = fate(result, x, inputs[-1])
                entry["error"] = max(entry["error"], error)
                deviation = 6 * np.sqrt(P * (1 - P) / x.size)
                if abs(share - P) > deviation or error > BOUND:
                    entry["note"] = f"wrong result: {share:.4%} dropped, relative error {error:.1e}"
    return list(entries.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--columns", type=int, nargs="*", default=COLUMNS)
    parser.add_argument("--drawn", type=int, metavar="N", help="draw N shapes instead")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn shapes")
    parser.add_argument("--only", nargs="*", help="these lines only")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for CSV, JSON and SVG")
    parser.add_argument("--against", type=Path, help="folder of an earlier run, to say how far this one is from it")
    chosen = parser.parse_args()
    need_gpu()
    entries = []
    shapes = {columns: (ROWS, columns) for columns in chosen.columns}
    if chosen.drawn:
        shapes = {rows * columns: (rows, columns) for rows, columns in drawn_shapes(chosen.drawn, chosen.seed)}
    for size, shape in shapes.items():
        entries += measure(shape, size, chosen.backward, chosen.repeats, chosen.only)
        print("measured", *shape, flush=True)
    rows = "drawn shapes" if chosen.drawn else f"{ROWS} rows"
    facts = about("jax", "jax-triton") | {
        "how": f"{rows}; {CALLS} calls queued, then waited for; median of {chosen.repeats}"
    }
    name = "leaky_dropout_backward_float32" if chosen.backward else "leaky_dropout_float32"
    name += f"_drawn_{chosen.seed}" if chosen.drawn else ""
    title = f"Leaky ReLU and dropout through JAX, float32{', gradient' if chosen.backward else ''}"
    found = results(entries, facts, title, "elements" if chosen.drawn else "N")
    if chosen.against:
        print(compare_with(chosen.against / f"{short(facts['gpu'])}_{name}.csv", found))
    write(found, entries, name, chosen.out)


if __name__ == "__main__":
    main()
