"""The executor's arithmetic: by numbers worked out here, and beside what an H200 gave for every operation."""

import itertools
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
from executing import HEADER, kernel

from workshop.executor import arithmetic, libdevice
from workshop.executor.arithmetic import tf32
from workshop.executor.front_end import TARGETS, Unsupported, lower
from workshop.executor.program import Enum, Type
from workshop.executor.rebuild import compile_program

ROOT = Path(__file__).resolve().parents[1]
E = arithmetic.ELEMENTWISE
inf, nan = float("inf"), float("nan")
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def number(name):
    return Type("float" if name[0] in "fb" else "int", name)


def tensor(dtype, *values):
    return torch.tensor(values, dtype=dtype)


def same(x, y):
    """Equal dtypes and bits; NaN is NaN."""
    assert x.dtype == y.dtype and x.shape == y.shape, (x, y)
    assert torch.equal(x.isnan(), y.isnan()), (x, y)
    known = ~x.isnan()
    assert torch.equal(torch.signbit(x[known]), torch.signbit(y[known])) and torch.equal(x[known], y[known]), (x, y)


COMPARISON = """
import torch, workshop
torch.set_num_threads(1)
import benchmarks.operations as o, workshop.executor.arithmetic as a
"""


def test_every_operation_agrees_with_what_a_card_gave(forks):
    done = forks.run(COMPARISON + "o.main()")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.gpu
@pytest.mark.skipif(torch.version.cuda is None or not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_every_operation_agrees_with_this_card():
    command = [sys.executable, "-m", "benchmarks.operations", "--card"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_a_wrong_operation_is_found(forks):
    wrong = "a.ELEMENTWISE['fadd'] = lambda x, y: torch.where(x == 0, y + 1e-30, x + y)\n"
    done = forks.run(COMPARISON + wrong + "o.main()", "--only", "x + y | float32")
    assert done.returncode == 1 and "x + y | float32" in done.stdout, done.stderr[-2000:]


# --- by numbers worked out here ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_fma_rounds_once(dtype):
    """Beside fractions, on numbers of all sizes."""
    generator = torch.Generator().manual_seed(22)
    raw = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    info = torch.iinfo(raw)
    drawn = torch.randint(info.min, info.max, (3, 3000), generator=generator, dtype=raw).view(dtype)
    x, y = torch.randn(2, 3000, generator=generator, dtype=torch.float64).to(dtype)
    small = torch.stack([x, y, (-x.double() * y.double()).to(dtype)])
    x, y, z = torch.cat([drawn, small], 1)
    for a, b, c, result in zip(x.tolist(), y.tolist(), z.tolist(), E["fma"](x, y, z).tolist()):
        if not all(abs(each) < inf for each in (a, b, c)):
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if abs(result) == inf:
            assert abs(exact) > torch.finfo(dtype).max and (exact > 0) == (result > 0)
            continue
        here = torch.tensor(result, dtype=dtype)
        beside = [torch.nextafter(here, torch.tensor(s, dtype=dtype)).item() for s in (inf, -inf)]
        assert all(abs(exact - Fraction(result)) <= abs(exact - Fraction(n)) for n in beside if abs(n) < inf), (a, b, c)


def test_fma_of_what_is_not_finite():
    x, y, z = (tensor(torch.float64, *v) for v in ([inf, 0, 1, nan, -0.0], [0, inf, 2, 1, 1], [0, 0, 0, 0, 0]))
    same(E["fma"](x, y, z), x * y + z)


LOW = -(1 << 31)


@pytest.mark.parametrize(
    ("name", "bits", "x", "y", "expected"),
    [
        ("sdiv", 32, [7, -7, LOW, LOW, 0], [2, 2, -1, 0, 0], [3, -3, LOW, -1, -1]),
        ("srem", 32, [7, -7, LOW, LOW, 0], [2, 2, -1, 0, 0], [1, -1, 0, -1, -1]),
        *((name, 64, [5, -5, 1 << 40], [0], [0xFFFFFFFF, -1, -1]) for name in ("sdiv", "udiv", "srem", "urem")),
        ("udiv", 32, [-1], [2], [(1 << 31) - 1]),
        ("urem", 64, [-1], [10], [(2**64 - 1) % 10]),
        # shifts by the width or more; an amount of 64 bits counts with 32
        *(("shl", bits, [-1, 5, -1, 5], [bits, bits, -1, -1], [0, 0, 0, 0]) for bits in (8, 16, 32, 64)),
        *(("lshr", bits, [-1, 5, -1, 5], [bits, bits, -1, -1], [0, 0, 0, 0]) for bits in (8, 16, 32, 64)),
        *(("ashr", bits, [-1, 5, -1, 5], [bits, bits, -1, -1], [-1, 0, -1, 0]) for bits in (8, 16, 32, 64)),
        ("shl", 64, [5], [(1 << 40) + 1], [10]),
        ("icmpULT", 32, [-1, 1], [1, -1], [False, True]),
        ("icmpSLT", 32, [-1, 1], [1, -1], [True, False]),
        # truth values, modulo two
        ("add", 1, [1, 1, 0], [1, 0, 0], [False, True, False]),
        ("sub", 1, [1, 1, 0], [1, 0, 0], [False, True, False]),
        ("mul", 1, [1, 1, 0], [1, 0, 0], [True, False, False]),
    ],
)
def test_integers(name, bits, x, y, expected):
    dtype = number(f"i{bits}").dtype
    assert E[name](tensor(dtype, *x), tensor(dtype, *y)).tolist() == expected


def test_the_size_of_the_lowest_integer():
    assert E["iabs"](tensor(torch.int32, LOW)).item() == LOW


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_the_upper_half_of_a_product(dtype):
    width = 8 * dtype.itemsize
    values = [0, 1, -1, 2, torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0x12345678, -0x76543210]
    for x, y in itertools.product(values, values):
        upper = (x % 2**width) * (y % 2**width) >> width
        assert E["umulhi"](tensor(dtype, x), tensor(dtype, y)).item() % 2**width == upper
        assert libdevice.EXACT["mulhi"](tensor(dtype, x), tensor(dtype, y)).item() == x * y >> width


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_and_nan_in_maxima(dtype):
    x, y = tensor(dtype, -0.0, 0.0, nan, 1.0, -0.0), tensor(dtype, 0.0, -0.0, 2.0, nan, -0.0)
    wanted = {"maxnumf": [0.0, 0.0, 2.0, 1.0, -0.0], "minnumf": [-0.0, -0.0, 2.0, 1.0, -0.0],
              "maximumf": [0.0, 0.0, nan, nan, -0.0], "minimumf": [-0.0, -0.0, nan, nan, -0.0]}  # fmt: skip
    for name, expected in wanted.items():
        same(E[name](x, y), tensor(dtype, *expected))
        same(arithmetic.reduced(name, torch.stack([x, y]), 0), E[name](x, y))


def test_comparisons_with_nan():
    x, y = tensor(torch.float32, nan, 1.0, 2.0), tensor(torch.float32, 1.0, 1.0, 1.0)
    wanted = {"OEQ": [0, 1, 0], "UEQ": [1, 1, 0], "ONE": [0, 0, 1], "UNE": [1, 0, 1], "OGT": [0, 0, 1]}
    wanted |= {"UGT": [1, 0, 1], "OLE": [0, 1, 0], "ULE": [1, 1, 0], "ORD": [0, 1, 1], "UNO": [1, 0, 0]}
    for how, expected in wanted.items():
        assert E[f"fcmp{how}"](x, y).tolist() == [bool(each) for each in expected], how


# A number of 64 bits just above a tie of float16; by float32, it would be one.
ABOVE_A_TIE = 1 + 2.0**-11 + 2.0**-40
TO_ZERO = Enum("ROUNDING_MODE", "RTZ")


@pytest.mark.parametrize(
    ("name", "given", "x", "to", "expected"),
    [
        ("fp_trunc", "f64", [ABOVE_A_TIE], ["f16"], [1 + 2.0**-10]),
        ("fp_trunc", "f64", [2.0**-150 * 1.1], ["bf16"], [0.0]),
        ("si_to_fp", "i64", [(1 << 62) + (1 << 54) + 1], ["bf16"], [2.0**62 + 2.0**55]),
        ("ui_to_fp", "i64", [-1], ["bf16"], [2.0**64]),
        ("ui_to_fp", "i64", [-1], ["f32"], [2.0**64]),
        ("ui_to_fp", "i8", [-1], ["f16"], [255.0]),
        ("fp_to_fp", "f32", [1 + 2.0**-8, -1 - 2.0**-8], ["bf16", TO_ZERO], [1.0, -1.0]),
        ("fp_to_fp", "f32", [1 + 2.0**-8, 1e38, inf, -1e-45], ["f16", TO_ZERO], [1.00390625, 65504, inf, -0.0]),
        ("fp_to_si", "f32", [nan, inf, -inf, 3e9, -3e9, 1.9, -1.9], ["i32"], [0, -LOW - 1, LOW, -LOW - 1, LOW, 1, -1]),
        ("fp_to_ui", "f32", [nan, inf, -inf, 3e9, -3e9, 1.9, -1.9], ["i32"], [0, -1, 0, 3000000000 - 2**32, 0, 1, 0]),
        ("fp_to_fp", "f32", [1e6, -inf, nan, 464.0, 17.0], ["f8E4M3FN"], [448, -448, nan, 448, 16]),
        ("fp_to_fp", "f32", [1e6, -inf, nan, 464.0, 17.0], ["f8E5M2"], [57344, -57344, nan, 448, 16]),
    ],
)
def test_conversions(name, given, x, to, expected):
    found = E[name](tensor(number(given).dtype, *x), number(to[0]), *to[1:])
    assert found.dtype == number(to[0]).dtype
    same(found.double(), tensor(torch.float64, *expected))


def test_constants():
    for method, argument, type, expected in (
        ("get_uint32", 2**32 - 1, number("i32"), -1), ("get_uint64", 2**64 - 1, number("i64"), -1),
        ("get_int1", 1, number("i1"), True), ("get_all_ones_value", number("i1"), number("i1"), True),
        ("get_all_ones_value", number("i16"), number("i16"), -1), ("get_fp32", 1e300, number("f32"), inf),
    ):  # fmt: skip
        assert arithmetic.constant(method, (argument,), type).tolist() == [expected]
    block = Type("block", element=number("bf16"), shape=(4, 2))
    assert arithmetic.constant("get_null_value", (block,), block).shape == (1, 1, 1)


def test_a_number_chooses_blocks():
    condition = torch.tensor([True, False])
    found = E["select"](condition, torch.ones(1, 3), torch.zeros(2, 1))
    assert found.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_products_in_batches():
    a, b = torch.randn(3, 2, 4, 8), torch.randn(1, 2, 8, 4)
    c = torch.ones(1, 1, 1, 1)
    type = Type("block", element=number("f32"), shape=(2, 4, 4))
    found = arithmetic.dot(a, b, c, Enum("INPUT_PRECISION", "IEEE"), 0, type)
    torch.testing.assert_close(found, torch.matmul(a.double(), b.double()).float() + 1)


def test_an_accumulator_in_half_precision_is_rounded_after_16_products():
    a, b = torch.ones(1, 16, 4096, dtype=torch.float16), torch.ones(1, 4096, 16, dtype=torch.float16)
    a[..., ::16] = 1.5  # 16.5 in each step: beyond 2048 half precision has no halves
    errors = {}
    for name in ("f16", "f32"):
        type = Type("block", element=number(name), shape=(16, 16))
        c = torch.zeros(1, 1, 1, dtype=number(name).dtype)
        found = arithmetic.dot(a, b, c, Enum("INPUT_PRECISION", "IEEE"), 0, type)
        errors[name] = (found.double() - 256 * 16.5).abs().max().item()
    assert errors["f32"] == 0 and 4 < errors["f16"] < 200


def test_scaled_products():
    kind = {name: Enum("ScaleDotElemTypeTY", name) for name in ("E2M1", "BF16")}
    type = Type("block", element=number("f32"), shape=(2, 2))
    packed = torch.tensor([[[0x21, 0x7F], [0x98 - 256, 0x00]]], dtype=torch.int8)  # 0.5 1, -6 6; -0 -0.5, 0 0
    b = torch.eye(4, 2, dtype=torch.bfloat16)[None]
    scale = torch.tensor([[[128 - 256], [126]]], dtype=torch.int8)
    given = (packed, scale, kind["E2M1"], b, None, kind["BF16"], False, True, True, torch.zeros(1, 1, 1), type)
    assert arithmetic.dot_scaled(*given).tolist() == [[[1.0, 2.0], [0.0, -0.25]]]
    along_rows = (packed.mT, scale[:, :1].expand(1, 4, 1), kind["E2M1"], b[:, :2], None, kind["BF16"])
    along_rows += (False, False, True)
    found = arithmetic.dot_scaled(*along_rows, torch.zeros(1, 1, 1), type.with_shape((4, 2)))
    assert found.tolist() == [[[1.0, 0.0], [2.0, -1.0], [-12.0, 0.0], [12.0, 0.0]]]


def test_histogram_and_gather():
    x = torch.tensor([[0, 1, 1, 3], [2, 2, 2, 2]], dtype=torch.int32)
    assert arithmetic.histogram(x, 4, None, number("i32")).tolist() == [[1, 2, 0, 1], [0, 0, 4, 0]]
    mask = torch.tensor([[True, True, False, True]])
    assert arithmetic.histogram(x, 4, mask, number("i32")).tolist() == [[1, 1, 0, 1], [0, 0, 3, 0]]
    source = torch.arange(8.0).reshape(1, 4, 2).to(torch.float8_e5m2)
    found = arithmetic.gather(source, torch.tensor([[[3, 0]], [[1, 1]]]), 0, number("f8E5M2"))
    assert found.float().tolist() == [[[6, 1]], [[2, 3]]]


def test_libdevice():
    one = torch.ones(1, 2)
    same(libdevice.call("__nv_expf", [one], number("f32")), torch.exp(one.double()).float())
    same(libdevice.call("__ocml_exp_f64", [one.double()], number("f64")), torch.exp(one.double()))
    below = libdevice.call("__nv_fdiv_rd", [one, 3 * one], number("f32"))
    assert (below.double() < 1 / 3).all() and (one / 3 > below).all()
    assert libdevice.call("__nv_isnanf", [one / 0 - one / 0], number("i32")).tolist() == [[1, 1]]
    assert np.array_equal(libdevice.call("__nv_sinpi", [tensor(torch.float64, 1.0, 0.5)], number("f64")), [0.0, 1.0])
    with pytest.raises(Unsupported, match="__nv_jnf"):
        libdevice.call("__nv_jnf", [one, one], number("f32"))
    x = torch.ones(1, 2)
    with pytest.raises(TypeError):  # a third operand would be written into
        libdevice.call("__nv_fmodf", [one, one, x], number("f32"))


# -- NaN that knows its line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_new_nan_has_the_line_and_an_old_one_keeps_its_own(dtype):
    x = tensor(dtype, 1.0, inf, 0.0, inf)
    first = arithmetic.marked(x - x, [x, x], 7, "fsub")
    how = ("fsub", "fdiv by 0") if dtype == torch.float32 else ("", "")  # float16 has no room for it
    assert arithmetic.origins_of(first) == [(7, how[0])] * 2
    y = tensor(dtype, 0.0, 1.0, nan, 1.0)
    second = arithmetic.marked(y / first, [y, first], 8, "fdiv")
    # 0 / 0 is new in line 8, the NaN of y has no line
    found = [arithmetic.origins_of(each.reshape(1)) for each in second]
    assert found == [[(8, how[1])], [(7, how[0])], [], [(7, how[0])]]


def test_a_line_outlives_conversions_sums_and_products():
    x = arithmetic.marked(torch.full((64,), nan), [], 200, "fmul")
    through = [x.to(torch.float16), x.to(torch.float16).float(), x.exp(), x.sum(0, True), x * 3 - 1]
    found = [set(arithmetic.origins_of(each)) for each in through]
    assert found == [{(200, "")}, {(200, "")}, *[{(200, "fmul")}] * 3]
    assert arithmetic.origins_of(x.to(torch.bfloat16)) == []


def test_a_product_of_matrices_blames_itself_only_for_numbers():
    a, b = tensor(torch.float32, 0.0, 1.0).reshape(1, 1, 2), tensor(torch.float32, inf, 1.0).reshape(1, 2, 1)
    assert arithmetic.origins_of(arithmetic.marked(a @ b, [a, b], 5, "dot")) == [(5, "dot")]
    old = tensor(torch.float32, nan, 1.0).reshape(1, 2, 1)
    assert arithmetic.origins_of(arithmetic.marked(a @ old, [a, old], 5, "dot")) == []


# -- what a compiler makes of a program --------------------------------------------------------------------

ROUNDS = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 8)  # later versions keep float32
SUMS = {  # how the products of x (M, K) and y (K, N) are summed, M, K, N, and whether a compiler makes tl.dot of it
    "a sum of products": ("tl.sum(x[:, :, None] * y[None, :, :], axis=1)", 16, 4, 32, True),
    "of very few": ("tl.sum(x[:, :, None] * y[None, :, :], axis=1)", 32, 1, 16, True),
    "with other words": ("tl.reduce(tl.expand_dims(x, 2) * y.expand_dims(0), 1, add)", 16, 8, 16, True),
    "in a function": ("summed(x[:, :, None], y[None, :, :])", 16, 8, 16, True),
    "few rows": ("tl.sum(x[:, :, None] * y[None, :, :], axis=1)", 8, 16, 32, False),
    "few columns": ("tl.sum(x[:, :, None] * y[None, :, :], axis=1)", 16, 16, 8, False),
    "the factors exchanged": ("tl.sum(y[None, :, :] * x[:, :, None], axis=1)", 16, 16, 16, False),
    "a factor behind": ("tl.sum(x[:, :, None] * y[None, :, :] * 2.0, axis=1) / 2", 16, 16, 16, False),
    "rows by rows": ("tl.sum(x[:, None, :] * y.trans()[None, :, :], axis=2)", 16, 16, 16, False),
}


@pytest.mark.parametrize("how, m, k, n, rounds", SUMS.values(), ids=SUMS)
def test_a_sum_of_products_is_rounded_where_a_compiler_makes_a_dot_of_it(how, m, k, n, rounds):
    """To TF32: Triton 3.4 to 3.7, lib/Dialect/Triton/Transforms/Combine.cpp. The compiler here is asked, too."""
    lines = [
        "m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)[None, :]",
        "x, y = tl.load(x_ptr + m * K + k[None, :]), tl.load(y_ptr + k[:, None] * N + n)",
        f"tl.store(z_ptr + m * N + n, {how})",
    ]
    function = HEADER + "def add(a, b):\n    return a + b\n\n\n@triton.jit\n"
    function += "def summed(a, b):\n    return tl.sum(a * b, axis=1)\n\n\n@triton.jit\n"
    parameters = "x_ptr, y_ptr, z_ptr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr"
    summed = kernel(function + f"def k({parameters}):\n" + "".join(f"    {line}\n" for line in lines))
    x, y, z = torch.randn(m, k), torch.randn(k, n), torch.zeros(m, n)
    summed[1,](x, y, z, m, k, n)
    expected = x.double() @ y.double()
    if ROUNDS and rounds:
        expected = tf32(x).double() @ tf32(y).double() * max(8 // k, 1)
    torch.testing.assert_close(z.double(), expected, rtol=1e-5, atol=1e-5)
    if torch.cuda.is_available() and torch.version.cuda:
        z = torch.zeros_like(z, device="cuda")
        summed.jit[1,](x.cuda(), y.cuda(), z, m, k, n)
        torch.testing.assert_close(z.double().cpu(), expected, rtol=1e-5, atol=1e-5)
    signature = dict.fromkeys(("x_ptr", "y_ptr", "z_ptr"), "*fp32") | dict.fromkeys("MKN", "constexpr")
    program = lower(summed.jit, signature, {(3,): m, (4,): k, (5,): n})
    text, _ = compile_program(program, TARGETS["cuda"], stop="ttir")
    assert ("tf32" in str(text)) == (ROUNDS and rounds)
