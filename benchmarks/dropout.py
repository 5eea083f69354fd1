"""GB/s of leaky ReLU and dropout through JAX: op by op, compiled by XLA, and as the course's Triton kernel.

    python benchmarks/dropout.py

JAX's calls return before the work is done and run on a stream of JAX's own, which torch's events do not see.
So a queue of calls is timed from its first call until its last result is there. Every call has another seed.
"""

import os
import statistics
import time

from record import options, write

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_triton  # noqa: E402
from answers import load  # noqa: E402

from workshop.bench import REPEATS, Gbps, Results, Row, about_here  # noqa: E402

COLUMNS = (256, 1024, 4096, 8192, 12672, 32768)
ROWS = 4096
CALLS = 50
P = 0.5


def in_jax(x, seed):
    x = jnp.where(x >= 0, x, 0.01 * x)
    keep = jax.random.uniform(jax.random.key(seed), x.shape) >= P
    return jnp.where(keep, x / (1 - P), 0.0)


def providers() -> dict:
    leaky_dropout = load("leaky_dropout").leaky_dropout
    return {
        "copy": jax.jit(lambda x, seed: jnp.copy(x)),
        "JAX, op by op": in_jax,
        "jax.jit (XLA)": jax.jit(in_jax),
        "Triton": jax.jit(lambda x, seed: leaky_dropout(x, P, seed)),
    }


def seconds_per_call(function, x, seed: int) -> float:
    begin = time.perf_counter()
    for number in range(CALLS):
        y = function(x, seed + number)
    y.block_until_ready()
    return (time.perf_counter() - begin) / CALLS


def is_right(function, x) -> bool:
    """About half is zero, and what is not zero is leaky(x) / (1 - p)."""
    y, whole = function(x, 1), jnp.where(x >= 0, x, 0.01 * x) / (1 - P)
    dropped = y == 0
    close = jnp.abs(y - whole) <= 1e-5 * jnp.abs(whole)
    return bool((dropped | close).all()) and abs(float(dropped.mean()) - P) < 0.01


def measure(columns: int) -> list[Row]:
    x = jax.random.normal(jax.random.key(0), (ROWS, columns))
    functions = providers()
    wrong = {name for name, f in functions.items() if name != "copy" and not is_right(f, x)}
    functions["copy"](x, 0).block_until_ready()
    times = {name: [] for name in functions}
    for repeat in range(REPEATS):  # interleaved: a card that slows down does so for all
        for name, function in functions.items():
            times[name].append(seconds_per_call(function, x, repeat * CALLS))
    nbytes = 2 * x.nbytes
    speeds = {name: _gbps(nbytes, values) for name, values in times.items()}
    return [
        Row(columns, name, None, note="wrong result: no number")
        if name in wrong
        else Row(columns, name, speed, speed.median / speeds["copy"].median, nbytes)
        for name, speed in speeds.items()
    ]


def _gbps(nbytes: int, times: list[float]) -> Gbps:
    speeds = [nbytes / seconds / 1e9 for seconds in times]
    fifths = statistics.quantiles(speeds, n=5, method="inclusive")
    return Gbps(statistics.median(speeds), fifths[0], fifths[3])


def main() -> None:
    chosen = options(__doc__.splitlines()[0]).parse_args()
    rows = [row for columns in COLUMNS for row in measure(columns)]
    version = getattr(jax_triton, "__version__", "")
    how = f"{ROWS} rows; {CALLS} calls queued, then waited for; median of {REPEATS}"
    about = about_here() | {"jax": jax.__version__, "jax_triton": version, "how": how}
    title = "Leaky ReLU and dropout through JAX, float32"
    write(Results(rows, about, title), "course_leaky_dropout_float32", chosen.out)


if __name__ == "__main__":
    main()
