"""Launches of any size: some of their programs on memory that is made when it is touched, all of their addresses."""

import pytest
import torch
from executing import HEADER, body, kernel

from workshop.executor import launch
from workshop.executor.memory import TooLarge, Watch
from workshop.executor.records import Fault
from workshop.executor.vast import Vast

ADD = """def add(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)
"""
ROWS = """def rows(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    for row in range(tl.program_id(0), m, tl.num_programs(0)):
        for start in range(0, n, B):
            i = start + tl.arange(0, B)
            x = tl.load(x_ptr + row.to(tl.int64) * stride + i, mask=i < n, other=0.0)
            tl.store(out_ptr + row.to(tl.int64) * n + i, x * 2, mask=i < n)
"""


def content(at):
    return (at % 1000003).float() / 1000003


def run(k, grid, *args, programs=None, **constants):
    """Some programs, or the addresses of all."""
    bound, options = launch.bind(k.jit, args, constants)
    special = launch.specialise(k.jit, bound)
    arguments = list(launch.leaves(bound, special, k.jit.arg_names))
    watch = Watch() if programs is None else Watch(counts=True, races=True)
    program = launch.lowered(k.jit, special, options)
    chosen = None if programs is None else torch.tensor(programs)
    return launch.execute(program, arguments, launch.grid_of(grid, bound), watch, chosen, only_addresses=chosen is None)


def vectors(n):
    return [Vast((n,), (1,), torch.float32, content) for _ in range(2)] + [Vast((n,), (1,), torch.float32)]


@pytest.mark.parametrize("n", [10_007, 1 << 24, 10**9 - 7])
def test_every_address_of_a_large_launch_is_checked_and_counted(n):
    x, y, out = vectors(n)
    done = run(kernel(HEADER + ADD), (-(-n // 1024),), x, y, out, n, B=1024)
    assert done.arguments["out_ptr"].bytes_stored == done.arguments["x_ptr"].bytes_loaded == 4 * n


def test_programs_of_a_large_launch_compute_what_they_would():
    n = 10**9 - 7
    x, y, out = vectors(n)
    last = -(-n // 1024) - 1
    done = run(kernel(HEADER + ADD), (last + 1,), x, y, out, n, programs=[0, 77_777, last], B=1024)
    at, values, _ = done.arguments["out_ptr"].storage.found()
    assert at[[0, 1023, 1024, -1]].tolist() == [0, 1023, 77_777 * 1024, n - 1] and len(at) == 2048 + n - last * 1024
    assert torch.equal(values, 2 * content(at)) and not done.races and not done.undefined


def test_rows_with_gaps_and_a_fixed_number_of_programs():
    m, n, stride = 40_001, 5_000, 5_003
    x = Vast((m, n), (stride, 1), torch.float32, content)
    out = Vast((m, n), (n, 1), torch.float32)
    done = run(kernel(HEADER + ROWS), (264,), x, out, stride, m, n, B=1024)
    assert done.arguments["out_ptr"].bytes_stored == 4 * m * n
    done = run(kernel(HEADER + ROWS), (m,), x, out, stride, m, n, programs=[0, m - 1], B=1024)
    at, values, _ = done.arguments["out_ptr"].storage.found()
    row, place = at // n, at % n
    assert torch.equal(values, 2 * content(row * stride + place)) and row.unique().tolist() == [0, m - 1]


@pytest.mark.parametrize(
    "old, new",
    [("i = tl.program_id(0) * B", "i = tl.program_id(0).to(tl.int16) * B"), ("mask=mask)\n", "mask=i <= n)\n")],
)
def test_an_address_outside_of_a_large_tensor_is_found(old, new):
    n = (1 << 26) + 3
    with pytest.raises(Fault):
        run(kernel(HEADER + ADD, (old, new)), (-(-n // 1024),), *vectors(n), n, B=1024)


def test_a_grid_that_ends_too_early_stores_too_little():
    n = 1 << 27
    done = run(kernel(HEADER + ADD), (65_535,), *vectors(n), n, B=1024)
    assert done.arguments["out_ptr"].bytes_stored == 4 * 65_535 * 1024 < 4 * n


def test_an_element_that_nothing_wrote_is_undefined():
    n = 10**8
    done = run(kernel(HEADER + ADD), (-(-n // 1024),), *vectors(n)[::-1], n, programs=[5], B=1024)
    assert [(each.kind, each.argument) for each in done.undefined] == [("read", "x_ptr")]


def test_addresses_that_stand_in_memory_are_too_large():
    k = body("i = tl.program_id(0) * B + tl.arange(0, B)", "tl.store(y + tl.load(x + i), 1)")
    index = Vast((1 << 27,), (1,), torch.int32, lambda at: at)
    with pytest.raises(TooLarge):
        run(k, (1 << 17,), index, Vast((1 << 27,), (1,), torch.int32), 0, B=1024)
