"""One small kernel for each thing that Triton can say. `CASES` holds them with what a launch would tell the compiler.

Import this file only where TRITON_INTERPRET is not set: `test_front_end` starts a process for it.
"""

from collections import namedtuple
from dataclasses import dataclass, field

import triton
import triton.language as tl
from triton.language.extra import libdevice

from workshop.executor import front_end

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
POINTERS = {"f": "*fp32", "h": "*fp16", "b": "*bf16", "i": "*i32", "l": "*i64", "u": "*u32", "c": "*i8", "q": "*u8"}
Pair = namedtuple("Pair", ["left", "right"])


@dataclass
class Case:
    kernel: object
    signature: dict
    constants: dict
    attributes: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    cuda_only: bool = False

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def lower(self, target: str):
        return front_end.lower(self.kernel, self.signature, self.constants, self.attributes, self.options, target)


CASES: list[Case] = []


def case(types: str = "", since=(3, 4), until=(9, 9), aligned=False, options=None, cuda_only=False, **constants):
    """types: of the arguments in order, one letter for a pointer, or words; `constants` are the others, by name."""

    def add(function):
        kernel = triton.jit(function)
        if not since <= VERSION <= until:
            return kernel
        letters = list(types) if set(types) <= set(POINTERS) else types.split()
        given = iter([POINTERS.get(each, each) for each in letters])
        signature = {name: "constexpr" if name in constants else _parsed(next(given)) for name in kernel.arg_names}
        names = kernel.arg_names
        paths = {(names.index(n), i): 3 for n, t in signature.items() for i, p in enumerate(t) if p == "constexpr"}
        paths |= {(kernel.arg_names.index(name),): value for name, value in constants.items()}
        attributes = {(0,): [["tt.divisibility", 16]]} if aligned else {}
        CASES.append(Case(kernel, signature, paths, attributes, options or {}, cuda_only))
        return kernel

    return add


def _parsed(type: str):
    if not type.startswith("("):
        return type
    parts = tuple(POINTERS.get(each, each) for each in type[1:-1].split(";"))
    return Pair(*parts) if len(parts) == 2 else parts


N = 64


@triton.jit
def double(x):
    return x * 2


@triton.jit(noinline=True)
def apart(x, y):
    return x + y


@triton.jit
def combined(x, y):
    return x + y


@triton.jit
def early(x):
    if x > 3:
        return x - 1
    return x


@triton.jit
def larger(a, i, b, j):
    better = a > b
    return tl.where(better, a, b), tl.where(better, i, j)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


# --- arithmetic ------------------------------------------------------------------------------------------


@case("ffi", aligned=True, B=N)
def add(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < 1000
    tl.store(y + i, tl.load(x + i, mask=m, other=0.0) + 1, mask=m)
    tl.store(n, tl.num_programs(1))


@case("fi", B=N)
def floats(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    b = a * 2 - 1.5
    c = tl.maximum(a, b) + tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    c += tl.maximum(a, 1.0) + tl.clamp(a, -1.0, 1.0)
    c = c / b + a % b + -a + tl.fdiv(a, b, ieee_rounding=True) + tl.div_rn(a, b) + tl.fma(a, b, c)
    c += tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a) + tl.sin(a) + tl.cos(a) + tl.sqrt(a) + tl.sqrt_rn(a)
    c += tl.rsqrt(a) + tl.abs(a) + tl.erf(a) + tl.floor(a) + tl.ceil(a) + tl.sigmoid(a) + tl.softmax(a)
    ok = (a < b) | (a <= b) & (a > b) ^ (a >= b)
    tl.store(x + i, tl.where(ok & (a == b) | (a != b), c, float("inf")))
    tl.store(y + i, c.to(tl.int32))


@case("iuc", B=N)
def integers(x, y, z, B: tl.constexpr):
    i = tl.arange(0, B)
    a, u, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    a = (a + 3) * a - i // 3 + a // 2 + a % 7 + (a & 5) + (a | 9) + (a ^ i) + (a << 2) + (a >> 1) + ~a + -a + tl.abs(a)
    u = u // 2 + u % 3 + (u >> 1) + tl.umulhi(u, u) + tl.maximum(u, 3) + tl.minimum(u, 9) + (u * 2)
    ok = (a < 3) & (a <= i) | (a == i) & (a != 5) & (a >= 2) & (a > 1) & (u < 3) & (u <= 2) & (u > 1) & (u >= 8)
    tl.store(x + i, tl.maximum(a, i) + tl.minimum(a, c), mask=ok)
    tl.store(y + i, tl.cdiv(u, 4), mask=not ok)


@case("fhbil", B=N)
def casts(f, h, b, i32, i64, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y, z, n, m = tl.load(f + i), tl.load(h + i), tl.load(b + i), tl.load(i32 + i), tl.load(i64 + i)
    tl.store(f + i, y + z + n.to(tl.float32) + m.to(tl.uint32).to(tl.float32) + n.to(tl.float32, bitcast=True))
    tl.store(h + i, x.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(b + i, y)
    tl.store(i32 + i, m + x.to(tl.uint8) + (x > 0) + n.to(tl.int1).to(tl.int32))
    tl.store(i64 + i, x.to(tl.float64).to(tl.int64) + y.to(tl.int16) + f.to(tl.int64))


@case("li", B=N)
def addresses(x, y, B: tl.constexpr):
    p = tl.load(x + tl.arange(0, B)).to(tl.pointer_type(tl.int32))
    tl.store(p, tl.load(y) + p.to(tl.int64).to(tl.int32))
    q = x.to(tl.pointer_type(tl.float32), bitcast=True)
    tl.store(q + 1, 3.0)


@case("*fp8e5 *fp8e4nv f h", B=N)
def float8(x, y, f, h, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(f + i, tl.load(x + i).to(tl.float32) + tl.load(y + i).to(tl.float32))
    tl.store(x + i, tl.load(h + i).to(tl.float8e5))
    tl.store(y + i, tl.load(f + i).to(tl.float8e4nv))


@case("f", B=N)
def literals(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.zeros([B], tl.float32) + tl.full([B], 0.1, tl.float64).to(tl.float32) + tl.full([B], 3, tl.float16)
    a += tl.full([B], -1, tl.int8) + tl.full([B], 2**40, tl.int64) + tl.full([B], 4000000000, tl.uint32)
    a += tl.full([B], 7, tl.bfloat16) + tl.full([B], True, tl.int1) + float("nan") + float("-inf") + 1e-50
    tl.store(x + i, a + tl.zeros_like(a) + tl.cast(3, tl.float32))


@case("fi", cuda_only=True, B=N)
def library(x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    a = libdevice.tanh(a) + libdevice.pow(a, a) + libdevice.isnan(a).to(tl.float32) + libdevice.ilogb(a)
    tl.store(x + i, a)
    tl.store(y + i, libdevice.popc(tl.load(y + i)))


@case("f", B=N, seed=7)
def randoms(x, B: tl.constexpr, seed: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.rand(seed, i) + tl.randn(seed, i) + tl.randint(seed, i))


# --- shapes ----------------------------------------------------------------------------------------------


@case("fh", A=16, B=32)
def shapes(x, y, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, A), tl.arange(0, B)
    a = tl.load(x + i[:, None] * B + j[None, :])
    b = tl.trans(a) + a.T + tl.permute(a, 1, 0)
    c = tl.reshape(b, A * B) + tl.ravel(a) + b.reshape(B * A) + tl.view(a, [A * B])
    d = tl.join(c, c + 1)
    e, f = tl.split(d)
    g = tl.interleave(e, f)
    h = tl.cat(e, f, can_reorder=True)
    tl.store(x + tl.arange(0, 2 * A * B), g + h)
    k = tl.broadcast_to(tl.expand_dims(i, 1), [A, B]).to(tl.float16)
    tl.store(y + i[:, None] * B + j, tl.flip(k, 1))
    tl.store(y, tl.load(y + tl.arange(0, 1)).sum())


@case("fi", A=16, B=32)
def gathers(x, y, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    a = tl.gather(tl.load(x + i), tl.load(y + i), axis=1)
    tl.store(x + i, a)
    t = tl.load(y + tl.arange(0, 64))
    tl.store(y + tl.arange(0, 32), tl.histogram(t, 32))


@case("i", since=(3, 5), B=N)
def histogram_masked(y, B: tl.constexpr):
    t = tl.load(y + tl.arange(0, B))
    tl.store(y + tl.arange(0, 32), tl.histogram(t, 32, mask=t < 9))


@case("f", since=(3, 5), B=1)
def unsplats(x, B: tl.constexpr):
    a = tl.load(x + tl.arange(0, B))
    tl.store(x + 1, a.item() if hasattr(a, "item") else tl.sum(a))


# --- reductions and scans --------------------------------------------------------------------------------


@case("fi", A=16, B=32)
def reductions(x, y, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    a, n = tl.load(x + i), tl.load(y + i)
    s = tl.sum(a, axis=1) + tl.max(a, axis=1) + tl.min(a, 1) + tl.sum(a) + tl.max(a, 1, keep_dims=True).reshape(A)
    v, w = tl.max(a, axis=1, return_indices=True)
    best, where = tl.reduce((a, n), 1, larger)
    tl.store(x + tl.arange(0, A), s + v + best)
    tl.store(y + tl.arange(0, A), tl.argmax(a, 1) + tl.argmin(a, 1) + w + where + tl.xor_sum(n, 1))
    tl.store(y, tl.reduce(n.reshape(A * B), 0, combined))


@case("fi", A=16, B=32)
def scans(x, y, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    a, n = tl.load(x + i), tl.load(y + i)
    p, q = tl.associative_scan((a, a), 1, affine)
    tl.store(x + i, tl.cumsum(a, 1) + tl.cumprod(a, 0) + tl.cumsum(a, 1, reverse=True) + p + q)
    tl.store(y + i, tl.sort(n, 1))


# --- memory ----------------------------------------------------------------------------------------------


@case("*kfp32 f", B=N)
def read_only(x, y, B: tl.constexpr):
    tl.store(y + tl.arange(0, B), tl.load(x + tl.arange(0, B)))


@case("f", B=N)
def hints(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_first", volatile=True)
    b = tl.load(x + i, mask=i < 9, cache_modifier=".ca", eviction_policy="evict_last")
    tl.store(x + i, a + b, cache_modifier=".wt")
    tl.store(x + i, a, mask=i < 3, eviction_policy="evict_first")
    tl.debug_barrier()


@case("filuh", B=N)
def atomics(f, i32, i64, u32, h, B: tl.constexpr):
    i = tl.arange(0, B)
    n = tl.atomic_add(i32 + i, 1, mask=i < 5) + tl.atomic_max(i32 + i, 2) + tl.atomic_min(i32 + i, 3)
    n += tl.atomic_and(i32 + i, 1) + tl.atomic_or(i32 + i, 2) + tl.atomic_xor(i32 + i, 3) + tl.atomic_xchg(i32 + i, 4)
    n += tl.atomic_cas(i32 + i, n, n + 1, sem="acquire", scope="cta")
    x = tl.atomic_add(f + i, 1.0, sem="relaxed") + tl.atomic_max(f + i, 2.0) + tl.atomic_min(f + i, 3.0)
    x += tl.atomic_xchg(f + i, 4.0) + tl.atomic_add(h + i, 1.0)
    u = tl.atomic_max(u32 + i, 1) + tl.atomic_min(u32 + i, 2)
    tl.atomic_add(i64, 1, scope="sys")
    tl.store(f + i, x + n + u)


@case("fii", until=(3, 7), B=N)
def block_pointers(x, n, m, B: tl.constexpr):
    rows, columns = tl.load(n), tl.load(m)
    p = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 4), (16, 32), (1, 0))
    a = tl.load(p, boundary_check=(0, 1), padding_option="nan")
    for _ in range(0, 3):
        a += tl.load(p)
        p = tl.advance(p, (0, 32))
    tl.store(p, a, boundary_check=(0,))


@case("f i32", B=32)
def descriptors(x, n, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[16, B])
    a = d.load([0, 4]) + tl.load_tensor_descriptor(d, [1, 2])
    d.store([3, 4], a)
    d.atomic_add([0, 0], a)


@case("tensordesc<fp16[16,32]> h", cuda_only=True)
def host_descriptors(d, x):
    a = d.load([0, 4])
    tl.store(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32), a + d.shape[0])
    d.atomic_max([0, 0], a)


@case("f i", since=(3, 5), options={"arch": "sm100"}, cuda_only=True)
def descriptor_gathers(x, y):
    d = tl.make_tensor_descriptor(x, shape=[64, 64], strides=[64, 1], block_shape=[1, 32])
    rows = tl.load(y + tl.arange(0, 32))
    d.scatter(d.gather(rows, 8), rows, 16)


# --- matrix products -------------------------------------------------------------------------------------


@case("fhfi", cuda_only=True, A=32, K=5)
def dots(x, h, y, n, A: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    c = tl.zeros([A, A], tl.float32)
    for k in tl.range(0, K, num_stages=3, loop_unroll_factor=2):
        a, b = tl.load(x + i + k), tl.load(h + i + k)
        c = tl.dot(a, a, c, input_precision="ieee") + tl.dot(b, b)
        c += tl.dot(a, a, input_precision="tf32x3") + tl.dot(a, a, allow_tf32=False)
    b = tl.load(h + i)
    tl.store(y + i, c + tl.dot(b, b, out_dtype=tl.float16))
    e = tl.load(n + i).to(tl.int8)
    tl.store(n + i, tl.dot(e, e))


@case("qqqqf")
def dots_scaled(x, xs, y, ys, z):
    i, j, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 2)
    a, b = tl.load(x + i[:, None] * 64 + j), tl.load(y + i[:, None] * 64 + j)
    s, t = tl.load(xs + i[:, None] * 2 + k), tl.load(ys + i[:, None] * 2 + k)
    c = tl.dot_scaled(a, s, "e4m3", b, t, "e5m2") + tl.dot_scaled(a, s, "e4m3", b, None, "e4m3")
    tl.store(z + i[:, None] * 64 + j, c)


# --- control ---------------------------------------------------------------------------------------------


@case("fi", aligned=True, B=N)
def loops(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a, count = tl.load(x + i), tl.load(n)
    for k in range(count):
        for j in tl.static_range(2):
            a += k * j
        if k > 3:
            a = a * 2
        elif k == 2:
            a = a - 1
    while count > 0:
        a = a + 1
        count -= 2
        if tl.sum(a) > 5:
            count -= 1
    for k in range(10, 0, -3):
        a += k
    for k in tl.range(0, count, 2, flatten=True, disallow_acc_multi_buffer=True):
        a += k
    tl.store(x + i, a if count > 1 else a)
    tl.store(n, count + 1 if count > 1 else count)


@case("fi")
def loops_in_both_branches(x, n):
    count = tl.load(n)
    if count > 3:
        for row in range(count):
            tl.store(x + row, 1.0)
    else:
        for row in range(3):  # the same name: the branches hand it on
            tl.store(x + row, 2.0)


@case("fi", B=N)
def returns(x, n, B: tl.constexpr):
    k = tl.load(n)
    if k == 0:
        return
    if k == 1:
        tl.store(x, 1.0)
        return
    else:
        k += 1
    tl.store(x + k, 2.0)


@case("fi", B=N)
def calls(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = double(tl.load(x + i))
    tl.store(x + i, a + apart(tl.load(n), 3) + early(tl.load(n)) + double(early(2)))


@case("f (f;i32) (i;constexpr;f)", B=N)
def tuples(x, pair, three, B: tl.constexpr):
    i = tl.arange(0, B)
    t = (tl.load(x + i), pair[1])
    a, b = t
    for k in range(3):
        t = (t[0] + k, b)
    tl.store(pair.left + i, t[0] + b)
    tl.store(three[0], pair.right + three[1])
    tl.store(three[2] + i, a)


@case("f", options={"debug": True}, B=N)
def says(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    tl.static_assert(B == 64, "B")
    tl.static_print("B is", B)
    tl.device_assert(a > 0, "a must be positive")
    tl.device_print("a", a, i, hex=True)
    assert B > 3
    tl.assume(B > 3)
    tl.store(x + i, a)


@case("fi", B=N)
def promises(x, n, B: tl.constexpr):
    k = tl.load(n)
    tl.assume(k > 0)
    k = tl.multiple_of(k, 16)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, B), 8), B)
    tl.store(x + k + i, tl.load(x + tl.max_constancy(i // 4, 4)))


if VERSION >= (3, 5):

    @triton.jit
    def step(a, b):
        if a > b:
            return a - b
        return a + b

    @triton.jit
    def steps(a0, a1, b0, b1):
        return a0 + b1, a1 - b0, a0, a1

    @case("f", since=(3, 5), B=N)
    def maps(x, B: tl.constexpr):
        i = tl.arange(0, B)
        a = tl.load(x + i)
        b = tl.map_elementwise(step, a, a + 1)
        c, d = tl.map_elementwise(steps, a, b, pack=2)
        tl.store(x + i, c + d)


if VERSION >= (3, 6):

    @triton.constexpr_function
    def power(n):
        return 2 ** (n - 1).bit_length()

    @case("f", since=(3, 6), B=N)
    def constants(x, B: tl.constexpr):
        i = tl.arange(0, power(B - 3))
        tl.store(x + i, 1.0)


if VERSION >= (3, 9):

    @case("fi", since=(3, 9), B=N)
    def atomics_new(x, n, B: tl.constexpr):
        k = tl.atomic_load(n + tl.arange(0, B))
        tl.atomic_store(n + tl.arange(0, B), k + 1)
        tl.store(x, tl.atomic_poll(n, 3).to(tl.float32))


# --- what only hardware can do ---------------------------------------------------------------------------


@triton.jit
def assembly(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)
    a = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [a], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x + i, a)


@triton.jit
def custom_float8(x, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, tl.load(x + i).to(tl.float8e4b15).to(tl.float32))


@triton.jit
def inner_mistake(x, n):
    y = tl.arange(0, 8)
    return x + tl.arange(0, n) + y


@triton.jit
def mistakes(x, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(x + i)

    a = inner_mistake(a, 7)
    tl.store(x + i, a)


@triton.jit
def undefined(x, B: tl.constexpr):
    tl.store(x, nothing)  # noqa: F821
