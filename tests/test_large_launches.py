"""Launches of any size: some of their programs on memory that is made when it is touched, all of their addresses."""

import json
import math

import numpy as np
import pytest
import torch
from executing import HEADER, body, kernel

from workshop.executor import front_end, launch, machine, memory, values
from workshop.executor.memory import TooLarge, Watch, covered
from workshop.executor.program import to_data
from workshop.executor.records import Fault, Pages

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


def vast(shape, stride, dtype=torch.float32, content=None):
    """A tensor whose own memory nobody touches."""
    tensor = torch.empty_strided(shape, stride, dtype=dtype)
    tensor.pages = Pages(tensor, content)
    return tensor


def run(k, grid, *args, programs=None, **constants):
    """Some programs, or the addresses of all."""
    bound, options = launch.bind(k.jit, args, constants)
    special = launch.specialise(k.jit, bound)
    watch = Watch() if programs is None else Watch(counts=True, races=True)
    program = launch.lowered(k.jit, special, options)
    chosen = None if programs is None else torch.tensor(programs)
    grid, pages = launch.grid_of(grid, bound), [each.pages for each in args if hasattr(each, "pages")]
    return launch.execute(program, special.arguments, grid, watch, chosen, only_addresses=chosen is None, pages=pages)


def vectors(n):
    return [vast((n,), (1,), content=content) for _ in range(2)] + [vast((n,), (1,))]


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


def test_elements_of_two_sizes_in_one_launch():
    keep = vast((10**9,), (1,), torch.bool, lambda at: at % 2 == 0)
    x, out = (vast((10**9,), (1,), torch.float32, content if each else None) for each in (True, False))
    text = """
def k(x_ptr, keep_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.where(tl.load(keep_ptr + i), tl.load(x_ptr + i), 0.0))
"""
    done = run(kernel(HEADER + text), (10**9 // 1024,), x, keep, out, programs=[5, 900_000], B=1024)
    at, values, _ = done.arguments["out_ptr"].storage.found()
    assert torch.equal(values, torch.where(at % 2 == 0, content(at), 0.0)) and len(at) == 2048


def test_rows_with_gaps_and_a_fixed_number_of_programs():
    m, n, stride = 40_001, 5_000, 5_003
    x = vast((m, n), (stride, 1), content=content)
    out = vast((m, n), (n, 1))
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
    index = vast((1 << 27,), (1,), torch.int32, lambda at: at)
    with pytest.raises(TooLarge):
        run(k, (1 << 17,), index, vast((1 << 27,), (1,), torch.int32), 0, B=1024)


# Each doubles x, (m, n), and says how many programs it wants. What a loop hands on grows evenly, or does not.
DOUBLED = {
    "rows and blocks": (ROWS, "few"),
    "a program for each row": (ROWS, "m"),
    "more programs than rows": (ROWS, "many"),
    "a pointer that moves": (
        """def moves(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at, to, left = x_ptr + row * stride + tl.arange(0, B), out_ptr + row * n + tl.arange(0, B), n
    most, total = -float("inf"), tl.zeros((B,), tl.float32)
    for _ in range(0, n, B):
        x = tl.load(at, mask=tl.arange(0, B) < left, other=0.0)
        most, total = tl.maximum(most, tl.max(x, axis=0)), total + x
        tl.store(to, x * 2, mask=tl.arange(0, B) < left)
        at, to, left = at + B, to + B, left - B
""", "m"),
    "block pointers": (
        """def blocks(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x = tl.make_block_ptr(x_ptr + row * stride, (n,), (1,), (0,), (B,), (0,))
    out = tl.make_block_ptr(out_ptr + row * n, (n,), (1,), (0,), (B,), (0,))
    for _ in range(0, n, B):
        tl.store(out, tl.load(x, boundary_check=(0,)) * 2, boundary_check=(0,))
        x, out = tl.advance(x, (B,)), tl.advance(out, (B,))
""", "m"),
    "backwards, in a part of the programs": (
        """def backwards(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    if row < m:
        for start in range((n - 1) // B * B, -1, -B):
            i = start + tl.arange(0, B)
            if start + B <= n:
                tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + i) * 2)
            else:
                tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + i, mask=i < n) * 2, mask=i < n)
""", "many"),
    "steps that double": (
        """def doubling(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    row, width = tl.program_id(0).to(tl.int64), 1
    for _ in range(0, 24):
        i = width - 1 + tl.arange(0, B)
        tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + i, mask=i < n) * 2, mask=i < n)
        width *= 2
""", "m"),
    "a last row too many": (ROWS.replace("m, tl.num", "m + 1, tl.num"), "few"),
    "a block too many": (ROWS.replace("mask=i < n)\n", "mask=i < n + B)\n"), "few"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBLED)
@pytest.mark.parametrize("m, n, block", [(5, 3_001, 64), (300, 600, 128), (60, 300, 16)])
def test_rounds_that_run_at_once_access_what_they_would_one_by_one(name, m, n, block, monkeypatch):
    text, programs = DOUBLED[name]

    def found() -> list:
        x = vast((m, n), (n + 3, 1), content=content)
        grid = {"few": 5, "m": m, "many": m + 20}[programs]
        try:
            done = run(kernel(HEADER + text), (grid,), x, vast((m, n), (n, 1)), n + 3, m, n, B=block)
        except (Fault, TooLarge) as error:
            return [repr(error)]
        stored = covered(done.arguments["out_ptr"].stored, 0, m * n)
        tensors = [(each.bytes_loaded, each.bytes_stored) for each in done.arguments.values()]
        return [stored, done.loads, done.stores, done.masked_lanes, *tensors]

    together = found()
    monkeypatch.setattr(machine, "MOST_TOGETHER", 0)
    assert together == found()


TILES = """def tiles(x_ptr, out_ptr, stride, m, n, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.program_id(1) * B + tl.arange(0, B)
    tl.store(out_ptr + row * n + i, tl.load(x_ptr + row * stride + i, mask=i < n, other=0.0), mask=i < END)
"""


@pytest.mark.parametrize("end", ["n", "n + (row // 6)"])
def test_blocks_that_are_in_no_row_are_counted_as_one_by_one(end, monkeypatch):
    """Programs beside one another in the grid have other rows: the distance between their blocks is not the same."""
    m, n, block, looked = 7, 3_001, 64, []

    def found() -> list:
        x, out = vast((m, n), (n + 3, 1), content=content), vast((m, n), (n, 1))
        try:
            done = run(kernel(HEADER + TILES.replace("END", end)), (m, -(-n // block)), x, out, n + 3, m, n, B=block)
        except Fault as error:
            return [repr(error)]
        tensors = [(each.bytes_loaded, each.bytes_stored) for each in done.arguments.values()]
        return [covered(done.arguments["out_ptr"].stored, 0, m * n), done.masked_lanes, *tensors]

    count = memory.Memory._count
    monkeypatch.setattr(memory.Memory, "_count", lambda self, *given: looked.extend(given[1]) or count(self, *given))
    together = found()
    assert len(looked) <= 4
    monkeypatch.setattr(memory.Memory, "_by_corners", lambda *_: None)
    assert found() == together and (together[0] == m * n) == (end == "n")


def test_rounds_run_at_once_where_that_can_be(monkeypatch):
    """Else the test above shows nothing."""
    blocks, whole = [], machine.Machine.block
    monkeypatch.setattr(machine.Machine, "block", lambda self, *given: blocks.append(0) or whole(self, *given))
    for name in ("a program for each row", "a pointer that moves", "block pointers"):
        blocks.clear()
        x, out = (vast((7, 70_001), (70_001, 1), content=content) for _ in range(2))
        run(kernel(HEADER + DOUBLED[name][0]), (7,), x, out, 70_001, 7, 70_001, B=64)
        assert len(blocks) < 20  # of 1,094 rounds


def test_a_kernel_is_read_once_for_all_that_launches_promise(monkeypatch):
    k, read, whole = kernel(HEADER + ADD).jit, [], front_end.lower
    x = torch.zeros(64)
    specials = [launch.specialise(k, launch.bind(k, (t, x, x, n), {"B": 16})[0]) for t in (x, x[1:]) for n in (48, 49)]
    expected = [whole(k, s.signature, s.constants, s.attributes, {"debug": True}) for s in specials]
    monkeypatch.setattr(front_end, "lower", lambda *given: read.append(0) or whole(*given))
    found = [launch.lowered(k, special, {}) for special in specials]
    texts = [json.dumps(to_data(program)) for program in found]
    assert texts == [json.dumps(to_data(program)) for program in expected]
    assert len(set(texts)) == 4 and len(read) == 1


def test_a_shape_may_be_tritons_own_tuple():
    """As Triton 3.4 gives it, whose tuple raises ValueError for a name that it does not have."""
    from workshop.executor import front_end

    shape = front_end.core.tuple([front_end.core.constexpr(16), front_end.core.constexpr(1)])
    assert front_end._argument(shape) == [16, 1]


def test_programs_of_a_view_whose_padding_is_nan():
    number = torch.tensor([1, 2, 3])
    view = values.View(number, [number], [number], [number], (16,), math.nan)
    assert values.of(view, torch.tensor([2])).base.tolist() == [3]
    merged = values.merged(torch.tensor([True, False, True]), view, values.of(view, torch.tensor([0, 0, 0])))
    assert merged.offsets[0].tolist() == [1, 1, 3] and math.isnan(merged.padding)


def test_different_numbers_are_found_as_numpy_finds_them():
    for numbers in ([], [5], [7, 7, 7], [1 << 40, -3, 1024, 0, 1024, -3]):
        assert memory.each_once(np.array(numbers, np.int64)).tolist() == np.unique(numbers).tolist()
