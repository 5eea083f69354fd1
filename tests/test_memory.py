"""The executor's memory and language: what it must see, what it must leave alone, and what it computes."""

import pytest
import torch
import triton
import triton.language as tl
from executing import HEADER, body, kernel, watch
from triton.compiler import CompilationError

from workshop.executor import launch, records
from workshop.executor.memory import MAX_RACES

ADD = (
    HEADER
    + """def add(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)
"""
)
SOFTMAX = (
    HEADER
    + """def softmax(x_ptr, out_ptr, x_stride, out_stride, n, B: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, n, B):
        cols = start + tl.arange(0, B)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n, other=-float("inf"))
        new = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), axis=0)
        top = new
    for start in range(0, n, B):
        cols = start + tl.arange(0, B)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n)
        tl.store(out_ptr + row * out_stride + cols, tl.exp(x - top) / total, mask=cols < n)
"""
)


def run_add(function, n=1000, dtype=torch.float32, ):
    x, y = torch.rand(2, n).to(dtype)
    out = torch.full((n,), -7.0, dtype=dtype)
    with watch() as memory:
        function[(triton.cdiv(n, 256),)](x, y, out, n, B=256)
    return out, x + y, memory


def run_softmax(function, rows=3, n=300, pad=20):
    x = torch.randn(rows, n + pad)[:, :n]
    out = torch.full((rows, n + pad), -7.0)[:, :n]
    with watch() as memory:
        function[(rows,)](x, out, n + pad, n + pad, n, B=256)
    return out, x.softmax(1), memory


def fault_of(launch, *arguments, **keywords):
    with pytest.raises(records.Fault) as caught:
        launch(*arguments, **keywords)
    return caught.value


# --- right kernels pass, and are counted ---------------------------------------------------------------


def test_right_kernels_pass():
    got, wanted, memory = run_add(kernel(ADD))
    assert torch.equal(got, wanted)
    assert not memory.races
    got, wanted, memory = run_softmax(kernel(SOFTMAX))
    torch.testing.assert_close(got, wanted)
    assert not memory.races


def test_counts_and_bytes():
    _, _, memory = run_add(kernel(ADD), n=1000)
    (launch,) = memory.launches
    assert launch.kernel == "add" and launch.grid == (4, 1, 1)
    assert (launch.loads, launch.stores, launch.atomics) == (8, 4, 0)
    assert memory.bytes_loaded == 8000 and memory.bytes_stored == 4000
    assert launch.masked_lanes == 3 * 24
    assert (launch.arguments["x_ptr"].reads == 1).all() and (launch.arguments["out_ptr"].writes == 1).all()
    _, _, memory = run_softmax(kernel(SOFTMAX))
    arguments = memory.launches[0].arguments
    assert arguments["x_ptr"].reads.shape == (3, 300) and (arguments["x_ptr"].reads == 2).all()
    assert memory.bytes_loaded == 2 * 4 * 900 and memory.bytes_stored == 4 * 900
    assert arguments["out_ptr"].bytes_stored == 4 * 900 and arguments["out_ptr"].bytes_loaded == 0


def test_a_mask_that_all_programs_share_counts_for_each():
    one = body("p = tl.program_id(0)", "tl.store(y + p, tl.load(x + p, mask=n > 3), mask=n > 3)", parameters="x, y, n")
    with watch() as memory:
        one[(8,)](torch.rand(8), torch.empty(8), 8)
    (launch,) = memory.launches
    assert (launch.loads, launch.stores, launch.masked_lanes) == (8, 8, 0)


@pytest.mark.parametrize("atomic", ["tl.atomic_add(x, 0)", "if i == 5: tl.atomic_add(x, 1)"])
def test_a_loop_that_counts_is_no_wait(atomic):
    """It holds an atomic, which changes nothing for some rounds."""
    one, x = body("i = 0", "while i < n:", f"    {atomic}", "    i += 1", parameters="x, n"), torch.zeros(1).int()
    one[(2,)](x, 8)
    assert int(x) == (2 if "5" in atomic else 0)


def test_several_launches_are_kept_apart():
    add, x, out = kernel(ADD), torch.rand(100), torch.empty(100)
    with watch() as memory:
        add[(1,)](x, x, out, 100, B=128)
        add[(1,)](out, x, out, 50, B=128)
    assert torch.allclose(out[:50], 3 * x[:50])
    assert [launch.arguments["out_ptr"].writes.sum() for launch in memory.launches] == [100, 50]
    assert memory.bytes_stored == 600


def test_zero_dimensional_empty_transposed_and_expanded_tensors():
    copy = body(
        "i = tl.arange(0, B)[:, None]",
        "j = tl.arange(0, B)[None, :]",
        "m = (i < rows) & (j < cols)",
        "tl.store(y + i * ys + j * yt, tl.load(x + i * xs + j * xt, mask=m), mask=m)",
        parameters="x, xs, xt, y, ys, yt, rows, cols, B: tl.constexpr",
    )
    for x in (torch.rand(5, 3), torch.rand(3, 5).T, torch.rand(3).expand(5, 3), torch.rand(0, 3)):
        y = torch.empty(x.shape)
        with watch():
            copy[(1,)](x, *x.stride(), y, *y.stride(), *x.shape, B=8)
        assert torch.equal(x, y)
    scalar = torch.tensor(3.0)
    with watch() as memory:
        body("tl.store(x, tl.load(x) + 1)", parameters="x")[(1,)](scalar)
    assert scalar == 4 and memory.launches[0].arguments["x"].writes.shape == ()


def test_tuples_keywords_and_integer_tensors():
    k = body("i = tl.arange(0, B)", "tl.store(y + i, tl.load(x + i) * 2 + n)")
    x, y = torch.arange(8), torch.zeros(8, dtype=torch.int64)
    with watch():
        k[lambda meta: (1,)](x=x, y=y, n=1, B=8)
    assert torch.equal(y, x * 2 + 1)


@pytest.mark.skipif(not hasattr(tl, "make_block_ptr"), reason="no block pointers")
@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
def test_block_pointers_are_checked():
    lines = [
        "p = tl.make_block_ptr(x, (n, n), (n, 1), offsets=(0, 0), block_shape=(B, B), order=(1, 0))",
        "v = tl.load(p, boundary_check=(0, 1))",
        "q = tl.make_block_ptr(y, (n, n), (n, 1), offsets=(0, 0), block_shape=(B, B), order=(1, 0))",
        "tl.store(q, v, boundary_check=(0, 1))",
    ]
    x, y = torch.rand(6, 6), torch.zeros(6, 6)
    with watch() as memory:
        body(*lines)[(1,)](x, y, 6, B=8)
    assert torch.equal(x, y) and (memory.launches[0].arguments["y"].writes == 1).all()
    lines[1] = "v = tl.load(p, boundary_check=(0,))"
    with watch():
        fault = fault_of(body(*lines)[(1,)], x, y, 6, B=8)
    assert (fault.kind, fault.argument, fault.place) == ("load", "x", "past the end")


def test_tensor_descriptors_are_checked():
    from triton.tools.tensor_descriptor import TensorDescriptor

    source = HEADER + "def k(d, y, B: tl.constexpr):\n    v = d.load([0, 0])\n    i = tl.arange(0, B)\n"
    source += "    tl.store(y + i[:, None] * B + i[None, :], v)\n"
    function = kernel(source)
    # Triton 3.4 and 3.5 take strides for bytes: only multiples of 16 elements are allowed
    x, y = torch.rand(4, 16)[:, :4], torch.zeros(8, 8)
    with watch() as memory:
        function[(1,)](TensorDescriptor(x, [4, 4], [16, 1], [8, 8]), y, B=8)
    assert torch.equal(y[:4, :4], x)
    assert y[4:].sum() == 0
    assert (memory.launches[0].arguments["d"].reads == 1).all()


def test_a_descriptor_is_not_read_at_an_offset_between_units_of_16_bytes():
    lines = ["d = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[8, B])"]
    lines.append("v = d.load([1, START])")
    lines.append("tl.store(y + tl.arange(0, 8)[:, None] * B + tl.arange(0, B)[None, :], v)")
    k = body(*lines, parameters="x, y, n, START: tl.constexpr, B: tl.constexpr")
    x, y = torch.rand(16, 16), torch.zeros(8, 8)
    k[(1,)](x, y, 16, START=4, B=8)
    assert torch.equal(y, x[1:9, 4:12])
    with pytest.raises(records.IllegalInstruction, match="A GPU stops the kernel.*multiple of 16 bytes") as error:
        k[(1,)](x, y, 16, START=3, B=8)
    assert error.value.code.startswith("v = d.load") and error.value.program == (0, 0, 0)


# --- faults --------------------------------------------------------------------------------------------


def test_a_fault_says_what_where_and_by_whom():
    fault = fault_of(run_add, kernel(ADD, ("x + y, mask=mask", "x + y")))
    assert (fault.kind, fault.kernel, fault.program, fault.argument) == ("store", "add", (3, 0, 0), "out_ptr")
    assert (fault.shape, fault.stride, fault.block) == ((1000,), (1,), (256,))
    assert (fault.lane, fault.lanes) == ((232,), 24)
    assert (fault.element, fault.index, fault.place, fault.distance) == (1000, (1000,), "past the end", 1)
    assert (fault.line, fault.code) == (10, "tl.store(out_ptr + i, x + y)")
    assert str(fault).startswith("Program 3 writes outside of out_ptr: 24 lanes") and "In add, line 10: " in str(fault)


def test_memory_is_not_touched_by_a_fault():
    base = torch.full((1100,), 5.0)
    out = base[:1000]
    k = kernel(ADD, ("x + y, mask=mask", "x + y"))
    with watch():
        fault_of(k[(4,)], torch.rand(1000), torch.rand(1000), out, 1000, B=256)
    assert (base[768:] == 5.0).all()


MUTANTS = {  # what is wrong -> (kernel, kind, argument, place)
    "load without mask": (
        SOFTMAX,
        [("mask=cols < n, other=-float('inf')".replace("'", '"'), "")],
        "load",
        "x_ptr",
    ),
    "second load without mask": (
        SOFTMAX,
        [("cols, mask=cols < n)\n        tl", "cols)\n        tl")],
        "load",
        "x_ptr",
    ),
    "store without mask": (SOFTMAX, [("/ total, mask=cols < n", "/ total")], "store", "out_ptr"),
    "mask off by one": (SOFTMAX, [("cols < n", "cols <= n")], "load", "x_ptr"),
}


@pytest.mark.parametrize("at, place", [(0, None), (8, "gap")])
def test_a_single_number_is_loaded_from_a_view_with_gaps(at, place):
    """A load without a block has no counts of lanes: this was an IndexError of ours."""
    first = body(
        "row = tl.program_id(0)",
        "tl.store(out_ptr + row, tl.load(x_ptr + row * stride + at))",
        parameters="x_ptr, out_ptr, stride, at",
    )
    x, out = torch.rand(5, 10)[:, :8], torch.empty(5)
    with watch():
        if place:
            assert fault_of(first[(5,)], x, out, 10, at).place == place
        else:
            first[(5,)](x, out, 10, at)
            assert torch.equal(out, x[:, 0])


@pytest.mark.parametrize("name", MUTANTS)
def test_gaps_between_rows_are_out_of_bounds(name):
    source, substitutions, kind, argument = MUTANTS[name]
    fault = fault_of(run_softmax, kernel(source, *substitutions))
    assert (fault.kind, fault.argument, fault.place) == (kind, argument, "gap")
    assert fault.index == (0, 300) and fault.program == (0, 0, 0)


def test_both_directions_and_the_wrong_row():
    read = body("tl.store(y, tl.load(x + n))", parameters="x, y, n")
    x, y = torch.rand(10, 4), torch.zeros(1)
    for n, place, distance, index in [
        (-1, "before the start", 1, ()),
        (40, "past the end", 1, (10, 0)),
        (10**6, "past the end", 10**6 - 39, (250000, 0)),
        (2**31 - 1, "past the end", 2**31 - 40, (536870911, 3)),
        (2**40, "past the end", 2**40 - 39, (2**38, 0)),
    ]:
        with watch():
            fault = fault_of(read[(1,)], x, y, n)
        assert (fault.place, fault.distance, fault.index) == (place, distance, index)


def test_a_pointer_keeps_its_tensor():
    """Two tensors side by side in memory: reading past the first is not reading the second."""
    both = torch.rand(20)
    x, y = both[:10], both[10:]
    with watch():
        fault = fault_of(body("tl.store(y, tl.load(x + 10))", parameters="x, y")[(1,)], x, y)
    assert fault.argument == "x" and fault.distance == 1


def test_the_distance_between_tensors_reaches_nothing():
    """The real distance to memory that was not passed, as a constant of the kernel."""
    x, y, secret = torch.zeros(4), torch.zeros(4), torch.full((4,), 42.0)
    distance = (secret.data_ptr() - x.data_ptr()) // 4
    with watch():
        fault_of(body("tl.store(y, tl.load(x + n))", parameters="x, y, n: tl.int64")[(1,)], x, y, distance)
    assert y.sum() == 0


def test_an_invented_pointer_belongs_to_nothing():
    x = torch.zeros(4)
    with watch():
        fault = fault_of(
            body("tl.store(n.to(tl.int64).to(x.dtype), 1.0)", parameters="x, n")[(1,)], x, x.data_ptr()
        )
    assert (fault.argument, fault.place) == ("", "nowhere") and "every tensor" in str(fault)


def test_the_line_of_a_helper_function():
    source = HEADER + (
        "def helper(x, n):\n    i = n + 1\n    return tl.load(x + i)\n\n@triton.jit\ndef k(x, y, n):\n"
        "    tl.store(y, helper(x, n))\n"
    )
    k = kernel(source)
    with watch():
        fault = fault_of(k[(1,)], torch.zeros(4), torch.zeros(4), 3)
    assert (fault.line, fault.code) == (7, "return tl.load(x + i)")


def test_the_round_of_the_innermost_loop():
    k = body("for i in range(3):", "    for j in range(2, n, 2):", "        tl.store(x + j, 1.0)", parameters="x, n")
    fault = fault_of(k[(1,)], torch.zeros(8), 20)
    assert (fault.round, fault.loop, fault.line) == (4, 7, 8)
    assert "past the end, in round 4 of the loop in line 7." in str(fault)


def test_two_dimensional_lanes_and_programs():
    k = body(
        "i = tl.program_id(1) * B + tl.arange(0, B)[:, None]",
        "j = tl.arange(0, B)[None, :]",
        "tl.store(x + i * 4 + j, 1.0)",
        parameters="x, B: tl.constexpr",
    )
    with watch():
        fault = fault_of(k[(1, 3)], torch.zeros(6, 4), B=4)
    assert fault.program == (0, 1, 0) and fault.block == (4, 4) and fault.lane == (2, 0) and fault.lanes == 8
    assert fault.index == (6, 0)


def test_atomics_are_checked_and_counted():
    count = body(
        "i = tl.arange(0, B)", "tl.atomic_add(y + tl.load(x + i), 1)", parameters="x, y, B: tl.constexpr"
    )
    x, y = torch.tensor([0, 1, 1, 3], dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    with watch() as memory:
        count[(2,)](x, y, B=4)
    assert y.tolist() == [2, 4, 0, 2] and not memory.races
    assert memory.launches[0].arguments["y"].writes.tolist() == [2, 4, 0, 2]
    x[3] = 4
    with watch():
        fault = fault_of(count[(2,)], x, y, B=4)
    assert (fault.kind, fault.element) == ("atomic", 4)
    swap = body("tl.atomic_cas(x + 4, 0, 1)", parameters="x")
    with watch():
        assert fault_of(swap[(1,)], y).kind == "atomic"


def test_errors_arrive_as_they_were_raised():
    k = body("y = tl.load(x + tl.arange(0, 3))", parameters="x")
    with watch(), pytest.raises(CompilationError, match="power of 2"):
        k[(1,)](torch.zeros(4))


# --- masked-off lanes, unwritten elements, races -------------------------------------------------------

SUM = ["i = tl.arange(0, B)", "tl.store(y, tl.sum(tl.load(x + i, mask=i < n), axis=0))"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_masked_lanes_hold_nan(dtype):
    x, y = torch.ones(6, dtype=dtype), torch.zeros(1, dtype=dtype)
    with watch():
        body(*SUM)[(1,)](x, y, 6, B=8)
    assert not y.isfinite().any()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_masked_lanes_hold_garbage_in_integers(dtype):
    x, y = torch.ones(6, dtype=dtype), torch.zeros(1, dtype=dtype)
    with watch():
        body(*SUM)[(1,)](x, y, 6, B=8)
    assert y != 6


def test_other_is_respected():
    with watch():
        x, y = torch.ones(6), torch.zeros(1)
        body(SUM[0], SUM[1].replace("mask=i < n", "mask=i < n, other=0.5"))[(1,)](x, y, 6, B=8)
    assert y == 7


def test_unwritten_elements():
    _, _, memory = run_add(kernel(ADD, ("tl.program_id(0)", "(tl.program_id(0) // 2)")))
    unwritten = (memory.launches[0].arguments["out_ptr"].writes == 0).nonzero()[0]
    assert unwritten[0] == 512 and len(unwritten) == 488


def test_races_between_programs():
    _, _, memory = run_add(kernel(ADD, ("tl.program_id(0)", "(tl.program_id(0) // 2)")))
    assert len(memory.races) == MAX_RACES
    race = memory.races[0]
    assert (race.kind, race.argument, race.index) == ("write-write", "out_ptr", (0,))
    assert (race.first, race.second, race.same_value) == ((0, 0, 0), (1, 0, 0), True)
    assert race.line == 10


def test_races_with_other_values():
    k = body("tl.store(x + tl.program_id(0) // 2, tl.program_id(0))", parameters="x")
    with watch() as memory:
        k[(4,)](torch.zeros(2, dtype=torch.int32))
    assert [(r.index, r.first, r.same_value) for r in memory.races] == [
        ((0,), (0, 0, 0), False),
        ((1,), (2, 0, 0), False),
    ]


def test_reading_what_another_program_writes():
    after = body("p = tl.program_id(0)", "tl.store(x + p + 1, tl.load(x + p))", parameters="x")
    with watch() as memory:
        after[(3,)](torch.zeros(4))
    assert {(r.kind, r.index) for r in memory.races} == {("read-write", (1,)), ("read-write", (2,))}
    before = body("p = tl.program_id(0)", "tl.store(x + p, tl.load(x + p + 1))", parameters="x")
    with watch() as memory:
        before[(3,)](torch.zeros(4))
    assert {(r.kind, r.index) for r in memory.races} == {("read-write", (1,)), ("read-write", (2,))}


def test_two_names_of_one_tensor():
    k = body("p = tl.program_id(0)", "tl.store(x + p, 1.0)", "tl.store(y + 2 - p, 2.0)", parameters="x, y")
    x = torch.zeros(3)
    with watch() as memory:
        k[(3,)](x, x)
    assert memory.launches[0].arguments["x"].writes.tolist() == [2, 2, 2]
    assert {(r.index, r.same_value) for r in memory.races} == {((0,), False), ((2,), False)}


def test_working_in_place_is_no_race():
    k = body("i = tl.program_id(0) * B + tl.arange(0, B)", "tl.store(x + i, tl.load(x + i) * 2, mask=i < n)",
             parameters="x, n, B: tl.constexpr")  # fmt: skip
    x = torch.ones(8)
    with watch() as memory:
        k[(2,)](x, 8, B=4)
    assert not memory.races and (x == 2).all()


# --- the language --------------------------------------------------------------------


BFLOAT16 = {  # expression of bfloat16 blocks a and b -> the same in torch
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a * 0.1": lambda a, b: a * torch.tensor(0.1).bfloat16(),  # Triton gives a constant the block's dtype
    "-a": lambda a, b: -a,
    "a.to(tl.float32) * b.to(tl.float32)": lambda a, b: a.float() * b.float(),
    "a.to(tl.float16)": lambda a, b: a.half(),
    "(a * 100).to(tl.int32)": lambda a, b: (a * 100).int(),
    "i.to(tl.bfloat16)": lambda a, b: torch.arange(64).bfloat16(),
    "tl.where(a > b, a, b)": torch.maximum,
    "tl.where(a > 0, a, 0.01 * a)": lambda a, b: torch.where(a > 0, a, torch.tensor(0.01).bfloat16() * a),
    "tl.maximum(a, b)": torch.maximum,
    "tl.abs(a)": lambda a, b: a.abs(),
    "a * 0 + tl.max(a, axis=0)": lambda a, b: a * 0 + a.max(),
    "tl.zeros((B,), tl.bfloat16) + a": lambda a, b: a,
    "tl.full((B,), 0.3, tl.bfloat16) + a": lambda a, b: torch.tensor(0.3).bfloat16() + a,
}


@pytest.mark.parametrize("expression", BFLOAT16)
def test_bfloat16_computes_like_torch(expression):
    k = body(
        "i = tl.arange(0, B)", "a = tl.load(x + i)", "b = tl.load(y + i)", f"tl.store(n + i, {expression})"
    )
    a, b = torch.randn(2, 64).bfloat16()
    wanted = BFLOAT16[expression](a, b)
    got = torch.empty_like(wanted)
    k[(1,)](a, b, got, B=64)
    torch.testing.assert_close(got, wanted, rtol=0, atol=0)


WITHOUT_SHORTCUTS = {
    "sums beyond int32": "a * a + a",
    "a block and a row of it": "tl.sum(a[:, None] * 3 + tl.arange(0, 4)[None, :], axis=1)",
    "other types": "(a.to(tl.int64) * 5 + (a.to(tl.float32) / 7).to(tl.int64)).to(tl.int32)",
    "a number and a block": "tl.where(a > n_cols, a - n_cols, -a) + tl.max(a, axis=0)",
}


def test_bfloat16_addition_and_products():
    out, wanted, _ = run_add(kernel(ADD), dtype=torch.bfloat16)
    assert torch.equal(out, wanted)
    k = body(
        "i = tl.arange(0, B)[:, None]", "j = tl.arange(0, B)[None, :]",
        "tl.store(n + i * B + j, tl.dot(tl.load(x + i * B + j), tl.load(y + i * B + j)))",
    )  # fmt: skip
    a, b = torch.randn(2, 16, 16).bfloat16()
    got = torch.empty(16, 16)
    with watch():
        k[(1,)](a, b, got, B=16)
    torch.testing.assert_close(got, a.float() @ b.float(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "mask", ["i < n and i > 2", "i < n and (i > 2 or i == 0)", "i < n and not i < 3"]
)
def test_boolean_operators_work_lane_by_lane(mask):
    k = body("i = tl.arange(0, B)", f"tl.store(y + i, tl.load(x + i, mask={mask}, other=9.0))")
    x, y = torch.zeros(6), torch.zeros(8)
    with watch():
        k[(1,)](x, y, 6, B=8)
    chosen = [bool(eval(mask, {"i": i, "n": 6})) for i in range(8)]
    assert y.tolist() == [0.0 if lane else 9.0 for lane in chosen]


@pytest.mark.parametrize("mask", ["(i < n) & (p < 1)", "(i < n) & ~(p > 0)", "(p < 1) & (i < n) & (n > 2)"])
def test_comparisons_of_blocks_and_scalars_combine(mask):
    k = body("i = tl.arange(0, B)", "p = tl.program_id(0)", f"tl.store(x + i, p + 1, mask={mask})")
    x = torch.zeros(6)
    with watch():
        k[(2,)](x, None, 6, B=8)
    assert x.tolist() == [1.0] * 6


def test_a_constant_to_the_left_gives_a_block():
    source = HEADER + "def k(x, B: tl.constexpr):\n    i = tl.arange(0, B)\n    v = tl.load(x + i)\n"
    source = source.replace("@triton", "C = tl.constexpr(-2.0)\n\n\n@triton")
    k = kernel(source + "    tl.store(x + i, tl.maximum(C * v, C - v))\n")
    x = torch.randn(8)
    wanted = torch.maximum(-2 * x, -2 - x)
    with watch():
        k[(1,)](x, B=8)
    assert torch.equal(x, wanted)


def test_max_and_min_of_blocks_work_lane_by_lane():
    k = body("i = tl.arange(0, B)", "tl.store(y + i, max(tl.load(x + i), min(tl.load(y + i), 0.5), max(n, 0) - 1.0))")
    x, y = torch.randn(2, 8)
    wanted = torch.maximum(x, y.clamp(max=0.5)).clamp(min=-1)
    with watch():
        k[(1,)](x, y, 0, B=8)
    assert torch.equal(y, wanted)


COMBINE = """
import triton
import triton.language as tl
import triton.language as tl


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def k(x, y, BACK: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * B + tl.arange(0, B)[None, :]
    v = tl.load(x + i)
    p, q = tl.associative_scan((v, v + 1), 1, affine, reverse=BACK)
    tl.store(y + i, q)
    p, q = tl.reduce((v, v + 1), -1, affine, keep_dims=True)
    tl.store(y + 4 * B + tl.arange(0, 4)[:, None], q)
    tl.store(y + 4 * B + 4, tl.reduce(v, None, larger))
"""


@pytest.mark.parametrize("back", [False, True])
def test_reductions_with_a_function_of_ones_own(back):
    """The function is associative and not commutative; the other has an `if`."""
    x, y = torch.randn(4, 16), torch.empty(69)
    with watch():
        kernel(COMBINE)[(1,)](x, y, BACK=back, B=16)
    q, columns = torch.zeros(4), []
    for column in (x.flip(1) if back else x).unbind(1):
        q = q * column + column + 1
        columns.append(q)
    columns = torch.stack(columns, 1)
    torch.testing.assert_close(y[:64].view(4, 16), columns.flip(1) if back else columns)
    if not back:
        torch.testing.assert_close(y[64:68], q)
    assert y[68] == x.max()


def test_a_loop_keeps_the_shape_of_what_it_carries():
    start, loop, end = "s = 0.0", "for c in range(0, n, B):", "tl.store(y, tl.sum(s, axis=0))"
    block = "  s += tl.load(x + c + tl.arange(0, B))"
    with watch(), pytest.raises(CompilationError, match="Loop-carried variable s has initial type fp32"):
        body(start, loop, block, end)[(1,)](torch.ones(8), torch.empty(1), 8, B=4)


def test_a_block_is_no_condition():
    for line in ("if i < n: tl.store(x, 1.0)", "v = 1 if i < n else 2", "while i < n: i += 1"):
        with watch(), pytest.raises(CompilationError, match="more than one value|1-bit"):
            body("i = tl.arange(0, B)", line)[(1,)](torch.zeros(4), None, 2, B=4)


def test_scalars_are_conditions():
    k = body("p = tl.program_id(0)", "if p == 1 and n > 0: tl.store(x + p, 1.0 if p > 0 else 2.0)")
    x = torch.zeros(3)
    with watch():
        k[(3,)](x, None, 2, B=4)
    assert x.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["tanh", "log1p", "erf", "rsqrt", "pow", "isnan", "round"])
def test_libdevice(name):
    call = "libdevice.pow(v, 2.0)" if name == "pow" else f"libdevice.{name}(v)"
    source = (
        HEADER + "def k(x, y, B: tl.constexpr):\n    i = tl.arange(0, B)\n    v = tl.load(x + i)\n"
        f"    tl.store(y + i, {call})\n"
    ).replace("import triton\n", "import triton\nfrom triton.language.extra import libdevice\n")
    k = kernel(source)
    x, y = torch.rand(8) + 0.1, torch.zeros(8)
    with watch():
        k[(1,)](x, y, B=8)
    torch.testing.assert_close(
        y, x.pow(2.0) if name == "pow" else getattr(x, name)().float(), rtol=1e-5, atol=1e-6
    )




def test_device_assert_says_who_failed():
    k = body("p = tl.program_id(0)", 'tl.device_assert(p < 2, "too many programs")', "tl.store(x + p, 1.0)")
    with watch(), pytest.raises(records.DeviceAssert, match="too many programs. In k, program 2, line"):
        k[(4,)](torch.zeros(4), None, 0, B=1)


def test_device_assert_in_a_combine_function_says_who_failed(monkeypatch):
    """The programs of the first batch are right."""
    monkeypatch.setattr(launch, "LANES", 64)
    text = """import triton
import triton.language as tl

@triton.jit
def sum_of_small(a, b):
    tl.device_assert(a < 8, "too large")
    return a + b

@triton.jit
def k(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.reduce(tl.load(x + i), 0, sum_of_small))
"""
    x = torch.zeros(16, 16)
    x[9, 2] = 8
    with watch(), pytest.raises(records.DeviceAssert, match="too large. In k, program 9, line"):
        kernel(text)[(16,)](x, B=16)


def test_a_pointer_to_smaller_elements_counts_each_of_them():
    lines = "p = x.to(tl.pointer_type(tl.int8), bitcast=True)", "i = tl.arange(0, 8)", "tl.store(p + i, i.to(tl.int8))"
    k = body(*lines)
    x = torch.zeros(2, dtype=torch.int32)
    with watch() as memory:
        k[(1,)](x, None, 0, B=1)
    assert x.view(torch.int8).tolist() == list(range(8)) and not memory.races


def test_an_undefined_index_does_not_matter_where_its_lane_is_off():
    lines = ["i = tl.arange(0, B)", "j = tl.load(x + i, mask=i < n)"]
    lines += ["tl.store(y + i, tl.load(y + j, mask=i < n), mask=i < n)"]
    x, y = torch.tensor([2, 0, 1]), torch.tensor([5.0, 6.0, 7.0])
    with watch() as memory:
        body(*lines)[(1,)](x, y, 3, B=4)
    assert not memory.undefined


@pytest.mark.parametrize(("stored", "undefined"), [("(i < n) & (j < B)", False), ("(i < B) & (j < B)", True)])
def test_what_is_undefined_spoils_its_row_of_a_product(stored, undefined):
    lines = ["i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]"]
    lines += ["a = tl.load(x + i * B + j, mask=i < n)", "b = tl.load(x + i * B + j)"]
    lines += [f"tl.store(y + i * B + j, tl.dot(a, b), mask={stored})"]
    x, y = torch.ones(2, 16, 16)
    with watch() as memory:
        body(*lines)[(1,)](x, y, 5, B=16)
    assert bool(memory.undefined) == undefined


@pytest.mark.parametrize(
    ("scanned", "stored", "undefined"),
    [
        ("tl.cumsum(v)", "i < n", False),  # the undefined lanes come last
        ("tl.cumsum(v)", "i <= n", True),
        ("tl.cumsum(v, reverse=True)", "i < 1", True),
        ("tl.associative_scan(v, 0, larger, reverse=True)", "i < 1", True),
        ("tl.map_elementwise(larger, v, v)", "i < n", False),
        ("tl.map_elementwise(larger, v, v)", "i <= n", True),
    ],
)
def test_what_is_undefined_goes_on_through_a_scan_and_not_backwards(scanned, stored, undefined):
    text = f"""import triton
import triton.language as tl

@triton.jit
def larger(a, b):
    return tl.maximum(a, b)

@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, {scanned}, mask={stored})
"""
    if "map_elementwise" in scanned and not hasattr(tl, "map_elementwise"):
        pytest.skip("this Triton has no map_elementwise")
    x, y = torch.ones(2, 16)
    with watch() as memory:
        kernel(text)[(1,)](x, y, 13, B=16)
    assert bool(memory.undefined) == undefined
