"""Every operation of Triton on a card, beside what the executor computes without one: equal bits, or a bound.

    python -m benchmarks.operations --record    # on a card: writes recorded/h200_operations.npz, .csv and .md
    python -m benchmarks.operations             # without one: compares the executor with what was recorded

Each case is a small kernel whose text is written here. Its inputs are drawn from the raw words of a counter-based
generator, so they are the same everywhere: special values crossed with each other, ties of rounding, powers of two,
random bits. Where all bits agree, the record keeps a checksum of each 128th part of the result; elsewhere it keeps the
first results. NaN is NaN, whichever it is.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import importlib.util
import json
import multiprocessing
import os
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import torch

os.environ["TRITON_INTERPRET"] = "0"  # kernels are read by Triton's front end, not by its interpreter
import triton  # noqa: E402

RECORDED = Path(__file__).parent / "recorded"
NAME = "h200_operations"
PARTS = 32  # checksums of a case
KEPT = 384  # results of a case that is not equal in all bits


# --- number formats ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """A dtype: Triton's name of it, torch's, its bits, and for floating point those of exponent and fraction."""

    name: str
    torch: torch.dtype
    bits: int
    exponent: int = 0
    fraction: int = 0
    signed: bool = True

    @property
    def numpy(self):
        return {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[self.bits]


FORMATS = {
    each.name: each
    for each in (
        Format("int1", torch.int8, 8),
        *(Format(f"int{n}", getattr(torch, f"int{n}"), n) for n in (8, 16, 32, 64)),
        *(Format(f"uint{n}", getattr(torch, f"uint{n}"), n, signed=False) for n in (8, 16, 32, 64)),
        Format("float16", torch.float16, 16, 5, 10),
        Format("bfloat16", torch.bfloat16, 16, 8, 7),
        Format("float32", torch.float32, 32, 8, 23),
        Format("float64", torch.float64, 64, 11, 52),
        Format("float8e4nv", torch.float8_e4m3fn, 8, 4, 3),
        Format("float8e5", torch.float8_e5m2, 8, 5, 2),
    )
}
FLOATS = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8e4nv", "float8e5")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED


def words(seed: str, count: int) -> np.ndarray:
    """`count` random words of 64 bits. The raw words of a bit generator are the same in every version of NumPy."""
    return np.random.Philox(key=zlib.crc32(seed.encode())).random_raw(count)


def specials(format: Format, few: bool = False) -> np.ndarray:
    """Bits of special values: zeros, denormals, the largest, infinities, NaN, powers of two and their neighbours."""
    width, m = format.bits, format.fraction
    mask = (1 << width) - 1
    if not m:
        chosen = {0, 1, 2, 3, 5, 7, 10, 127, 128, 255, 256, 65535, 65536, mask, mask - 1, mask - 6, mask >> 1}
        chosen |= {(mask >> 1) + 1, (mask >> 1) - 1, (mask >> 1) + 2}
        if not few:
            chosen |= {(1 << i) + d for i in range(width) for d in (-1, 0, 1)}
            chosen |= {-(1 << i) + d for i in range(0, width, 3) for d in (-1, 0, 1)}
        return np.array(sorted({each & mask for each in chosen}), dtype=np.uint64)
    bias, top = (1 << format.exponent - 1) - 1, (1 << format.exponent) - 1
    one, infinity = bias << m, top << m
    sizes = [0, 1, (1 << m) - 1, 1 << m, one, one + 1, one - 1, one | 1 << m - 1, one + (1 << m), infinity - 1]
    sizes += [infinity, infinity | 1 << m - 1, one - (1 << m), one + (1 << m) | 1 << m - 1]
    if not few:
        sizes += [2, (1 << m) + 1, (1 << m) - 2, infinity - 2]
        powers = (-1074, -150, -149, -134, -133, -127, -126, -30, -25, -24, -17, -16, -15, -14, -10, -9, -8, -7, -6)
        powers += (-3, -2, 2, 3, 4, 6, 7, 8, 9, 10, 11, 15, 16, 23, 24, 30, 31, 32, 52, 53, 62, 63, 64, 96, 127, 1023)
        for power in powers:
            if 0 < power + bias < top:
                sizes += [(power + bias << m) + d for d in (-1, 0, 1, 1 << m - 1, (1 << m - 1) + 1, (1 << m - 1) - 1)]
    return np.array(sorted({s | sign for s in sizes for sign in (0, 1 << width - 1)}), dtype=np.uint64)


def drawn(format: Format, seed: str, count: int, style: str = "any") -> np.ndarray:
    """Random bits of a format, as uint64.

    style "any": by turns all bits random, numbers of everyday size, and ties (the low bits are 100…0). "plain":
    finite numbers of everyday size only. "few": zeros, -1, a negative denormal, -infinity, and rarely NaN.
    """
    raw, more = words(seed, count), words(seed + " more", count)
    width, m = np.uint64(format.bits), format.fraction
    if format.name == "int1":
        return raw & np.uint64(1)
    mask = np.uint64((1 << format.bits) - 1)
    any_bits = raw & mask
    if not m:
        if style == "plain":
            return any_bits >> np.uint64(format.bits - 5)
        small = any_bits >> (more % width)
        turn = more >> np.uint64(60) & np.uint64(3)
        return np.where(
            turn % np.uint64(2) == 1, small, np.where(turn == 2, any_bits, mask - small + np.uint64(1) & mask)
        )
    bias, top = (1 << format.exponent - 1) - 1, (1 << format.exponent) - 1
    if style == "few":
        sign = 1 << format.bits - 1
        chosen = np.array([sign, sign | bias << m, sign | 1, sign | top << m, sign], dtype=np.uint64)
        picked = np.where(more % np.uint64(99) == 0, np.uint64(0), chosen[raw % np.uint64(5)])
        return np.where(more % np.uint64(128) == 1, np.uint64(top << m | 1), picked)
    spread = min(4, bias)
    exponent = np.uint64(bias - spread) + more % np.uint64(2 * spread + 1)
    sign = raw >> np.uint64(63) << np.uint64(format.bits - 1)
    everyday = sign | exponent << np.uint64(m) | raw & np.uint64((1 << m) - 1)
    if style == "plain":
        return everyday
    low = more >> np.uint64(8) & np.uint64(0xFFFF)
    place = np.uint64(1) << low % np.uint64(m)
    tie = any_bits & ~(place * np.uint64(2) - np.uint64(1)) | place
    kind = more >> np.uint64(60) & np.uint64(3)
    return np.where(kind == 0, any_bits, np.where(kind == 1, tie & mask, everyday))


def elementwise_inputs(formats: list[Format], seed: str, count: int) -> list[np.ndarray]:
    """Special values crossed with each other, then random ones. All pairs or numbers, where `count` allows it."""
    total = sum(each.bits for each in formats)
    if total <= 16 and 1 << total == count:
        everything = np.arange(count, dtype=np.uint64)
        width = np.uint64(formats[0].bits)
        return [everything & (np.uint64(1) << width) - np.uint64(1), everything >> width][: len(formats)]
    sets = [specials(each, few=len(formats) > 1) for each in formats]
    if len(formats) == 3:
        sets = [each[:: max(1, len(each) // 11)] for each in sets]
    crossed = [each.ravel() for each in np.meshgrid(*sets, indexing="ij")]
    parts = []
    for i, (values, format) in enumerate(zip(crossed, formats)):
        parts.append(np.concatenate([values, drawn(format, f"{seed} {i}", count)])[:count])
    if formats[0].name == "int1":
        parts[0] &= np.uint64(1)
    if len(parts) > 1 and formats[-1] == formats[-2]:  # some operands alike, and some opposite
        parts[-1][-64:] = parts[-2][-64:]
        parts[-1][-64:-32] ^= np.uint64(1 << formats[-1].bits - 1)
    return parts


# --- cases -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A kernel with parameters named by inputs, and `out`.

    inputs: (name, format, count, style), where the style "crossed" draws all of them together. bound: how far a
    result may be from the executor's, in units in its last place, or for measure "sum" in units of 2**-24 of the sum
    of the sizes of what was added. least: differences up to this are none. reason: why bits may differ.
    """

    operation: str
    dtype: str
    lines: tuple[str, ...]
    inputs: tuple[tuple[str, str, int, str], ...]
    output: tuple[str, int]
    grid: int = 1
    bound: float = 0
    measure: str = "ulp"
    least: float = 0
    reason: str = ""
    flushes: bool = False  # the card takes denormals for 0, and gives 0 for them
    normal: bool = False  # the card's function is not made for denormals: those are left out

    @property
    def key(self) -> str:
        return f"{self.operation} | {self.dtype}"

    @property
    def source(self) -> str:
        names = ", ".join([name for name, *_ in self.inputs] + ["out"])
        head = ["import triton", "import triton.language as tl", "from triton.language.extra import libdevice", "", ""]
        combine = ["@triton.jit", "def times(a, b):", "    return a * b", "", ""]
        kernel = ["@triton.jit", f"def kernel({names}):", *(f"    {line}" for line in self.lines), ""]
        return "\n".join([*head, *combine, *kernel])

    def draw(self) -> list[np.ndarray]:
        """The bits of the inputs, each in its own width."""
        formats = [FORMATS[format] for _, format, *_ in self.inputs]
        if self.inputs[0][3] == "crossed":
            parts = elementwise_inputs(formats, self.key, self.inputs[0][2])
        else:
            parts = [drawn(f, f"{self.key} {i}", n, s) for i, (f, (_, _, n, s)) in enumerate(zip(formats, self.inputs))]
        return [part.astype(format.numpy) for part, format in zip(parts, formats)]


BLOCK = 256


def elementwise(operation: str, formats, output: str, body: str | None = None, **more) -> Case:
    """A case of an expression of x, y and z. Operands of 16 bits together have all values."""
    formats = [formats] if isinstance(formats, str) else list(formats)
    names = "xyz"[: len(formats)]
    width = sum(FORMATS[f].bits for f in formats)
    count = 65536 if width == 16 else 256 if width == 8 else 4096
    lines = [f"at = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})"]
    for name, format in zip(names, formats):
        lines.append(f"{name} = tl.load({name} + at)" + (" != 0" if format == "int1" else ""))
    lines.append(f"tl.store(out + at, {body or operation})")
    label = formats[0] if len(set(formats)) == 1 else " ".join(formats)
    label = label if output in (formats[0], "int1") or "->" in operation else f"{label} -> {output}"
    inputs = tuple((name, format, count, "crossed") for name, format in zip(names, formats))
    return Case(operation, label, tuple(lines), inputs, (output, count), count // BLOCK, **more)


APPROXIMATE = "approximated by the special function unit"
LIBRARY = "CUDA's library rounds otherwise than the processor's"
# operation, ulp in float32 and float64, reason, denormals flushed
TRANSCENDENTAL = (
    ("tl.exp(x)", 64, 2, "ex2.approx(x * log2(e)): the product is rounded, so the error grows with x", False),
    ("tl.exp2(x)", 3, 2, APPROXIMATE, True),
    ("tl.log(x)", 3, 2, LIBRARY, False),
    ("tl.log2(x)", 3, 2, LIBRARY, False),
    ("tl.sin(x)", 3, 3, LIBRARY, True),
    ("tl.cos(x)", 3, 3, LIBRARY, True),
    ("tl.sqrt(x)", 2, 0, "sqrt.approx", True),
    ("tl.rsqrt(x)", 3, 2, "rsqrt.approx", True),
    ("tl.erf(x)", 4, 3, LIBRARY, True),
)
LIBDEVICE_1 = {
    "acos": 3, "acosh": 4, "asin": 4, "asinh": 4, "atan": 3, "atanh": 4, "cbrt": 2, "ceil": 0, "cos": 3, "cosh": 3,
    "cospi": 3, "cyl_bessel_i0": 12, "cyl_bessel_i1": 12, "erf": 4, "erfc": 6, "erfcinv": 12, "erfcx": 1024,
    "erfinv": 8, "exp": 3, "exp10": 3, "exp2": 3, "expm1": 2, "floor": 0, "lgamma": 512, "log": 3, "log10": 4,
    "log1p": 3, "log2": 3, "logb": 0, "nearbyint": 0, "normcdf": 2048, "normcdfinv": 12, "rcbrt": 3, "rint": 0,
    "round": 0, "rsqrt": 3, "sin": 3, "sinh": 4, "sinpi": 3, "sqrt": 3, "tan": 5, "tanh": 3, "tgamma": 12, "trunc": 0,
}  # fmt: skip
LIBDEVICE_2 = {"atan2": 4, "copysign": 0, "div_rn": 0, "div_rd": 0, "add_rz": 0, "fdim": 0, "fmod": 0, "hypot": 3,
               "mul_ru": 0, "nextafter": 0, "pow": 10, "remainder": 0, "rhypot": 3, "sub_rd": 0}  # fmt: skip
# name: (ulp, or differences up to this are none; what x is)
ONLY_FLOAT32 = {
    "fast_cosf": (2, 2.0**-20, "tl.where(tl.abs(x) < 3.0, x, 1.0)"),
    "fast_sinf": (2, 2.0**-20, "tl.where(tl.abs(x) < 3.0, x, 1.0)"),
    "fast_tanf": (4, 2.0**-18, "tl.where(tl.abs(x) < 1.0, x, 1.0)"),
    "fast_expf": (64, 0, "x"), "fast_logf": (3, 2.0**-20, "x"), "saturatef": (0, 0, "x"), "rsqrt_rn": (0, 0, "x"),
    "rcp_rd": (0, 0, "x"), "rcp_ru": (0, 0, "x"), "sqrt_rz": (0, 0, "x"),
}  # fmt: skip
GROWING = {
    "erfcx": "2 exp(x * x) for negative x: the error grows with x",
    "normcdf": "exp(-x * x / 2): the error grows with x",
    "lgamma": "the error grows near its zeros",
}
NOT_OF_DENORMALS = ("cbrt", "rcbrt", "pow", "nextafter", "logb", "erfcinv")
TO_INTEGER = {"ilogb": FLOATS[2:], "isinf": FLOATS[2:], "isnan": FLOATS[2:], "signbit": FLOATS[2:],
              "float2int_rd": FLOATS[2:3], "float2uint_rn": FLOATS[2:3], "clz": ("int32", "int64"),
              "popc": ("int32", "int64"), "ffs": ("int32", "int64")}  # fmt: skip


def cases() -> list[Case]:
    return [*_arithmetic(), *_integers(), *_conversions(), *_library(), *_blocks(), *_products()]


def _arithmetic() -> Iterator[Case]:
    for dtype in FLOATS:
        for operation in ("x + y", "x - y", "x * y", "tl.minimum(x, y)", "tl.maximum(x, y)"):
            yield elementwise(operation, [dtype] * 2, dtype)
        for name in ("minimum", "maximum"):
            yield elementwise(f"tl.{name}(x, y, propagate_nan=tl.PropagateNan.ALL)", [dtype] * 2, dtype)
        for operation in ("<", "<=", ">", ">=", "==", "!="):
            yield elementwise(f"x {operation} y", [dtype] * 2, "int1")
        for operation in ("-x", "tl.abs(x)"):
            yield elementwise(operation, dtype, dtype)
        yield elementwise("tl.fma(x, y, z)", [dtype] * 3, dtype)
        yield elementwise("tl.where(x < y, x, z)", [dtype] * 3, dtype)
        bound = 0 if dtype == "float64" else 2 if dtype == "float32" else 1
        reason = "" if dtype == "float64" else "div.full has 2 units in the last place"
        yield elementwise("x / y", [dtype] * 2, dtype, bound=bound, reason=reason)
        yield elementwise("x % y", [dtype] * 2, dtype)
    for dtype in FLOATS[1:]:
        yield elementwise("tl.clamp(x, y, z)", [dtype] * 3, dtype, "tl.clamp(x, tl.minimum(y, z), tl.maximum(y, z))")
    for dtype in FLOATS[2:]:
        single = dtype == "float32"
        for operation, in32, in64, reason, flushes in TRANSCENDENTAL:
            bound, reason = (in32, reason) if single else (in64, LIBRARY if in64 else "")
            yield elementwise(operation, dtype, dtype, bound=bound, flushes=flushes and single, reason=reason)
        reason = "denormals count as 0" if single else ""
        for name in ("floor", "ceil"):
            yield elementwise(f"tl.{name}(x)", dtype, dtype, flushes=single, reason=reason)
    why = "the compiler may fuse both into one fma; here each is rounded"
    yield elementwise("x * y + z", ["float32"] * 3, "float32", bound=2, measure="sum", reason=why)
    yield elementwise("tl.sqrt_rn(x)", "float32", "float32")
    yield elementwise("tl.div_rn(x, y)", ["float32"] * 2, "float32")


def _integers() -> Iterator[Case]:
    for dtype in INTEGERS:
        for operation in ("x + y", "x - y", "x * y", "x // y", "x % y", "x & y", "x | y", "x ^ y", "x << y", "x >> y"):
            yield elementwise(operation, [dtype] * 2, dtype)
        for operation in ("<", "<=", ">", ">=", "==", "!="):
            yield elementwise(f"x {operation} y", [dtype] * 2, "int1")
        for operation in ("tl.minimum(x, y)", "tl.maximum(x, y)"):
            yield elementwise(operation, [dtype] * 2, dtype)
        for operation in ("~x", "-x", "tl.abs(x)")[: 3 if dtype in SIGNED else 1]:
            yield elementwise(operation, dtype, dtype)
        if dtype[-2:] in ("32", "64"):
            yield elementwise("tl.umulhi(x, y)", [dtype] * 2, dtype)
    for operation in ("x & y", "x | y", "x ^ y", "x == y"):
        yield elementwise(operation, ["int1"] * 2, "int1")


def _to(target: str, source: str) -> str:
    """A conversion. Of floating point to uint8 only what fits: a card's other results spoil the byte beside them."""
    if target == "uint8" and source in FLOATS:
        return "tl.where((x > -1) & (x < 256), x, 0.0).to(tl.uint8)"
    return f"x.to(tl.{target})"


def _conversions() -> Iterator[Case]:
    standard = ("int1", *INTEGERS, *FLOATS)
    for source in standard:
        for target in standard:
            if source != target:
                yield elementwise(f"-> {target}", source, target, _to(target, source))
    why = "finite numbers only: of infinity and NaN a card makes 65536 and more, which this does not"
    for small in FLOAT8:
        for other in FLOATS[:3]:
            yield elementwise(f"-> {small}", other, small, f"x.to(tl.{small})")
            more = {"body": f"x.to(tl.{other})"}
            if (small, other) == ("float8e5", "bfloat16"):
                more["reason"] = why
                more["body"] = "tl.where(x.to(tl.uint8, bitcast=True) % 128 < 124, x.to(tl.bfloat16), 0.0)"
            yield elementwise(f"-> {other}", small, other, **more)
    toward_zero = [("float32", "float16"), ("float32", "bfloat16"), ("float32", "float8e5")]
    for source, target in toward_zero:
        body = f'x.to(tl.{target}, fp_downcast_rounding="rtz")'
        yield elementwise(f"-> {target}, toward zero", source, target, body)
    pairs = [("float16", "int16"), ("bfloat16", "uint16"), ("float32", "int32"), ("float64", "int64")]
    pairs += [("int32", "float32"), ("float8e4nv", "uint8"), ("uint8", "float8e5")]
    for source, target in pairs:
        yield elementwise(f"-> bits {target}", source, target, f"x.to(tl.{target}, bitcast=True)")


def _library() -> Iterator[Case]:
    """libdevice, and random numbers."""
    for arity, table in ((1, LIBDEVICE_1), (2, LIBDEVICE_2)):
        for name, bound in table.items():
            for dtype in FLOATS[2:]:
                single = dtype == "float32"
                if not single and name.endswith(("_rd", "_ru", "_rz")):
                    continue
                operation = f"libdevice.{name}({', '.join('xy'[:arity])})"
                more = {"bound": bound, "reason": GROWING.get(name, LIBRARY) if bound else "", "flushes": single}
                if name == "erfcinv" or single and name in NOT_OF_DENORMALS:
                    more |= {"normal": True, "reason": more["reason"] or "not made for denormals"}
                if single and name == "nextafter":
                    more["least"] = 2.0**-125
                yield elementwise(operation, [dtype] * arity, dtype, **more)
    for name, (bound, least, x) in ONLY_FLOAT32.items():
        more = {"bound": bound, "least": least, "reason": APPROXIMATE if bound else "", "flushes": True}
        yield elementwise(f"libdevice.{name}({x})", "float32", "float32", **more)
    for name, dtypes in TO_INTEGER.items():
        for dtype in dtypes:
            body = f"libdevice.{name}(x).to(tl.int32)"
            yield elementwise(f"libdevice.{name}(x)", dtype, "int32", body, flushes=dtype == "float32")
    for name in ("brev(x)", "mulhi(x, y)", "hadd(x, y)", "rhadd(x, y)", "mul24(x, y)", "byte_perm(x, y, z)"):
        yield elementwise(f"libdevice.{name}", ["int32"] * (1 + name.count(",")), "int32")
    yield elementwise("libdevice.sad(x, y, z.to(tl.uint32)).to(tl.int32)", ["int32"] * 3, "int32")
    yield elementwise("libdevice.ldexp(x, y)", ["float32", "int32"], "float32", flushes=True, normal=True)
    count = 4096
    inputs = (("x", "int32", 1, "any"), ("y", "int32", count, "any"))
    for name, dtype in (("randint", "int32"), ("rand", "float32")):
        at = f"at = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})"
        lines = (at, f"tl.store(out + at, tl.{name}(tl.load(x), tl.load(y + at)))")
        yield Case(f"tl.{name}", dtype, lines, inputs, (dtype, count), count // BLOCK)


ROWS, COLUMNS = 64, 128
IN_ORDER = "the order of the additions"


def _blocks() -> Iterator[Case]:
    place = f"at = tl.arange(0, {ROWS})[:, None] * {COLUMNS} + tl.arange(0, {COLUMNS})[None, :]"

    def rows(operation, dtype, output, body, style="any", **more):
        lines = (place, "x = tl.load(x + at)", f"tl.store(out + tl.arange(0, {ROWS}), {body})")
        return Case(operation, dtype, lines, (("x", dtype, ROWS * COLUMNS, style),), (output, ROWS), **more)

    for dtype in FLOATS:
        wide = "float32" if dtype == "bfloat16" else dtype
        bound = {"float16": 2.0**16, "bfloat16": 2.0**18, "float64": 2.0**-26}.get(dtype, 8)
        more = {"bound": bound, "measure": "sum", "reason": IN_ORDER}
        yield rows("tl.sum", dtype, wide, "tl.sum(x, 1)", "plain", **more)
        yield rows("tl.sum of few", dtype, wide, "tl.sum(x, 1)", "few", **more)
        for name in ("max", "min"):
            yield rows(f"tl.{name}", dtype, dtype, f"tl.{name}(x, 1)")
            yield rows(f"tl.{name} of few", dtype, dtype, f"tl.{name}(x, 1)", "few")
            yield rows(f"tl.arg{name}", dtype, "int32", f"tl.arg{name}(x, 1)", "plain")
    for dtype in INTEGERS:
        wide = dtype if "64" in dtype else "int32" if dtype in SIGNED else "uint32"
        yield rows("tl.sum", dtype, wide, "tl.sum(x, 1)")
        yield rows("tl.max", dtype, dtype, "tl.max(x, 1)")
        yield rows("tl.min", dtype, dtype, "tl.min(x, 1)")
    yield rows("tl.xor_sum", "int32", "int32", "tl.xor_sum(x, 1)")
    yield rows("tl.reduce of a * b", "int32", "int32", "tl.reduce(x, 1, times)")
    more = {"bound": 128, "reason": "the order of the products"}
    yield rows("tl.reduce of a * b", "float32", "float32", "tl.reduce(x, 1, times)", "plain", **more)
    ranks = (place, "x = tl.load(x + at)", "tl.store(out + at, tl.cumsum(x, 1))")
    yield Case("tl.cumsum", "int32", ranks, (("x", "int32", ROWS * COLUMNS, "any"),), ("int32", ROWS * COLUMNS))
    ranks = (place, "x = tl.load(x + at)", "tl.store(out + at, tl.sort(x, 1))")
    yield Case("tl.sort", "float32", ranks, (("x", "float32", ROWS * COLUMNS, "plain"),), ("float32", ROWS * COLUMNS))
    count = ("x = tl.load(x + tl.arange(0, 1024))", "tl.store(out + tl.arange(0, 32), tl.histogram(x, 32))")
    yield Case("tl.histogram", "int32", count, (("x", "int32", 1024, "plain"),), ("int32", 32))
    yield Case("tl.histogram of any", "int32", count, (("x", "int32", 1024, "any"),), ("int32", 32))
    few = f"tl.arange(0, 16)[:, None] * {COLUMNS} + tl.arange(0, {COLUMNS})[None, :]"
    taken = (
        place,
        "x = tl.load(x + at)",
        f"y = tl.load(y + {few}) % {ROWS}",
        f"tl.store(out + {few}, tl.gather(x, y, 0))",
    )
    inputs = (("x", "float32", ROWS * COLUMNS, "plain"), ("y", "uint32", 16 * COLUMNS, "any"))
    yield Case("tl.gather", "float32", taken, inputs, ("float32", 16 * COLUMNS))


M, N, K = 64, 16, 64
TENSOR_CORE = "tensor cores add in another order and cut off low bits"


def _products() -> Iterator[Case]:
    def product(operation, dtype, output, options="", bound=0.0, style="plain", more=(), reason=TENSOR_CORE):
        lines = (
            f"m, n, k = tl.arange(0, {M}), tl.arange(0, {N}), tl.arange(0, {K})",
            f"a = tl.load(a + m[:, None] * {K} + k[None, :])",
            f"b = tl.load(b + k[:, None] * {N} + n[None, :])",
            *more,
            f"tl.store(out + m[:, None] * {N} + n[None, :], tl.dot(a, b{options}))",
        )
        inputs = (("a", dtype, M * K, style), ("b", dtype, K * N, style))
        more = {"bound": bound, "measure": "sum", "reason": reason} if bound else {}
        return Case(operation, dtype, lines, inputs, (output, M * N), **more)

    for dtype in ("float16", "bfloat16"):
        yield product("tl.dot", dtype, "float32", bound=16)
    yield product("tl.dot, out_dtype=float16", "float16", "float16", ", out_dtype=tl.float16", 2.0**16)
    for precision, bound in (("tf32", 16), ("ieee", 16), ("tf32x3", 32), ("bf16x3", 1024), ("bf16x6", 64)):
        yield product(f"tl.dot, {precision}", "float32", "float32", f', input_precision="{precision}"', bound)
    yield product("tl.dot", "float64", "float64", bound=2.0**-24, reason=IN_ORDER)
    yield product("tl.dot", "int8", "int32", style="any")
    for dtype in FLOAT8:
        yield product("tl.dot", dtype, "float32", bound=2.0**13, reason=f"{TENSOR_CORE}; sums of float8 have 13 bits")
    # How float32 becomes TF32: b is the identity, so each result is one operand as the product took it.
    identity = ("b = (k[:, None] == n[None, :]).to(tl.float32) + b * 0.0",)
    options = ', input_precision="tf32"'
    yield product("tl.dot by the identity, tf32", "float32", "float32", options, more=identity)
    for kind, dtype, packed in (("e2m1", "uint8", 2), ("e4m3", "float8e4nv", 1), ("e5m2", "float8e5", 1)):
        lines = (
            f"m, n, k, p = tl.arange(0, {M}), tl.arange(0, {N}), tl.arange(0, {K}), tl.arange(0, {K // packed})",
            f"a = tl.load(a + m[:, None] * {K // packed} + p[None, :])",
            f"b = tl.load(b + k[:, None] * {N} + n[None, :])",
            f"s = tl.load(s + m[:, None] * {K // 32} + tl.arange(0, {K // 32})[None, :]) + 120",
            f'tl.store(out + m[:, None] * {N} + n[None, :], tl.dot_scaled(a, s, "{kind}", b, None, "bf16"))',
        )
        a = ("a", dtype, M * K // packed, "any" if packed == 2 else "plain")
        inputs = (a, ("b", "bfloat16", K * N, "plain"), ("s", "uint8", M * K // 32, "plain"))
        more = {"bound": 16, "measure": "sum", "reason": TENSOR_CORE}
        yield Case("tl.dot_scaled by bf16", kind, lines, inputs, ("float32", M * N), **more)


# --- running them ------------------------------------------------------------------------------------------


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="operations-"))


def kernel_of(case: Case):
    """The jit function of a case, from a module file: Triton reads a kernel's source."""
    file = _folder() / f"case_{zlib.crc32(case.key.encode()):08x}.py"
    file.write_text(case.source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def tensors(case: Case, device: str) -> list[torch.Tensor]:
    """The inputs, and a place for the output."""
    found = []
    for (_, format, *_), bits in zip(case.inputs, case.draw()):
        signed = torch.from_numpy(bits.view(f"i{bits.itemsize}").copy())
        found.append(signed.view(FORMATS[format].torch).to(device))
    format, count = case.output
    found.append(torch.zeros(count, dtype=FORMATS[format].torch, device=device))
    return found


def bits_of(x: torch.Tensor) -> np.ndarray:
    """The bits of a tensor, with one NaN for all."""
    format = next(each for each in FORMATS.values() if each.torch == x.dtype)
    bits = x.cpu().view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]).numpy()
    bits = bits.view(format.numpy).copy()
    if format.fraction:
        bits[x.cpu().double().isnan().numpy()] = np.array((1 << format.bits - 1) - 1, dtype=format.numpy)
    return bits


def on_card(case: Case) -> np.ndarray:
    given = tensors(case, "cuda")
    kernel_of(case)[(case.grid,)](*given)
    return bits_of(given[-1])


@np.errstate(all="ignore")
def on_executor(case: Case, flushed: bool = False) -> np.ndarray:
    """`flushed`: with denormal inputs as zeros, and zeros for denormal results."""
    from workshop import launching

    given = tensors(case, "cpu")
    if flushed:
        given = [_flushed(each) for each in given]
    with launching.installed():
        kernel_of(case)[(case.grid,)](*given)
    return bits_of(_flushed(given[-1]) if flushed else given[-1])


def _flushed(x: torch.Tensor) -> torch.Tensor:
    if x.dtype != torch.float32:
        return x
    return torch.where(x.abs() < 2.0**-126, torch.copysign(torch.zeros_like(x), x), x)


# --- comparing them ----------------------------------------------------------------------------------------


def ordered(bits: np.ndarray, format: Format) -> np.ndarray:
    """Numbers that grow with the floating point numbers, one for each; both zeros are 0."""
    signed = bits.view(f"i{bits.itemsize}").astype(object if format.bits == 64 else np.int64)
    top = 1 << format.bits - 1
    return np.where(signed < 0, -(signed + top), signed)


@np.errstate(all="ignore")
def differences(case: Case, card: np.ndarray, own: np.ndarray) -> np.ndarray:
    """How far results are apart, in the case's measure; infinite where only one is NaN."""
    format = FORMATS[case.output[0]]
    if not format.fraction:
        return np.where(card == own, 0.0, np.inf)
    theirs, ours = _values(card, format), _values(own, format)
    if case.measure == "sum":
        scale = sizes(case) * 2.0**-24
        with np.errstate(all="ignore"):
            apart = np.abs(theirs - ours) / scale[: len(theirs)]
        apart = np.where((np.isnan(theirs) & np.isnan(ours)) | (theirs == ours), 0.0, apart)
        return np.where(np.isnan(apart), np.inf, apart)
    apart = np.abs(ordered(card, format) - ordered(own, format)).astype(float)
    apart[np.isnan(theirs) != np.isnan(ours)] = np.inf
    if case.bound == 0:
        apart = np.where((card != own) & (apart == 0), 0.5, apart)  # zeros of unlike sign
    if case.least:
        apart[np.abs(theirs - ours) <= case.least] = 0
    return apart


def _values(bits: np.ndarray, format: Format) -> np.ndarray:
    return torch.from_numpy(bits.view(f"i{bits.itemsize}").copy()).view(format.torch).double().numpy()


@np.errstate(all="ignore")
def sizes(case: Case) -> np.ndarray:
    """For each result, the sum of the sizes of what was added up."""
    formats = [FORMATS[format] for _, format, *_ in case.inputs]
    given = [_values(bits, format) if format.fraction else bits for bits, format in zip(case.draw(), formats)]
    if len(given) == 1:
        return np.abs(given[0]).reshape(ROWS, COLUMNS).sum(1)
    if case.inputs[0][3] == "crossed":
        x, y, z = np.abs(given)
        return x * y + z
    from workshop.executor.arithmetic import E2M1, _scale

    a, b = given[:2]
    if len(given) == 3:
        if case.dtype == "e2m1":
            a = E2M1[torch.from_numpy(np.stack([a & 15, a >> 4], -1).astype(np.int64))].double().numpy()
        scale = _scale(torch.from_numpy((given[2] + 120).astype(np.uint8)).reshape(M, 2), 64)
        a = np.abs(a).reshape(M, 64) * scale.double().numpy()
    return (np.abs(a).reshape(M, -1) @ np.abs(b).reshape(-1, N)).ravel()


@dataclass
class Outcome:
    """What was found in a case: how many results differ, and how far the furthest is."""

    case: Case
    count: int
    different: int
    furthest: float
    equal: bool = False  # in all bits
    where: int = -1

    @property
    def fine(self) -> bool:
        return self.furthest <= self.case.bound


def compare(case: Case, card: np.ndarray, own=None) -> Outcome:
    """The results of a card, all or the first ones, beside the executor's."""
    own = on_executor(case) if own is None else own
    own = own[: len(card)]
    apart = differences(case, card, own)
    if case.flushes and (apart > case.bound).any():
        apart = np.minimum(apart, differences(case, card, on_executor(case, True)[: len(card)]))
        format = FORMATS[case.output[0]]
        if format.fraction:
            apart[(_values(card, format) == 0) & (np.abs(_values(own, format)) <= 2.0**-126)] = 0
    if case.normal:
        for bits, (_, format, *_) in zip(case.draw(), case.inputs):
            if FORMATS[format].fraction:
                size = np.abs(_values(bits[: len(card)], FORMATS[format]))
                apart[(size > 0) & (size < torch.finfo(FORMATS[format].torch).tiny)] = 0
    furthest = float(apart.max())
    return Outcome(case, len(card), int((apart > 0).sum()), furthest, np.array_equal(card, own), int(apart.argmax()))


def checksums(bits: np.ndarray) -> np.ndarray:
    return np.array([zlib.crc32(part.tobytes()) for part in np.array_split(bits, PARTS)], dtype=np.uint32)


# --- the record --------------------------------------------------------------------------------------------


def record(found: dict[str, np.ndarray], facts: dict, folder: Path = RECORDED) -> list[Outcome]:
    """Write what a card gave: checksums where the executor's bits are equal, else the first results."""
    outcomes, sums, kept, index = [], [], [], {}
    for case in cases():
        if case.key not in found:
            continue
        card = found[case.key]
        outcome = compare(case, card)
        outcomes.append(outcome)
        if outcome.equal and case.bound == 0:
            index[case.key] = ["equal", len(sums)]
            sums.append(checksums(card))
        else:
            part = np.ascontiguousarray(card[:KEPT]).view(np.uint8)
            index[case.key] = ["bits", sum(map(len, kept)), len(part)]
            kept.append(part)
    arrays = {"sums": np.array(sums), "bits": np.concatenate(kept)}
    text = json.dumps({"facts": facts, "index": index}).encode()
    np.savez_compressed(folder / f"{NAME}.npz", index=np.frombuffer(text, dtype=np.uint8), **arrays)
    write_tables(outcomes, facts, folder)
    return outcomes


def read_record() -> tuple[dict, dict[str, tuple[str, np.ndarray]]]:
    """(facts, by case: "equal" and checksums, or "bits" and the first results)."""
    with np.load(RECORDED / f"{NAME}.npz") as file:
        about = json.loads(file["index"].tobytes())
        sums, kept = file["sums"], file["bits"]
    formats = {case.key: FORMATS[case.output[0]].numpy for case in cases()}
    found = {}
    for key, (kind, start, *length) in about["index"].items():
        part = sums[start] if kind == "equal" else kept[start : start + length[0]]
        found[key] = kind, part if kind == "equal" else part.view(formats.get(key, np.uint8))
    return about["facts"], found


def compare_with_record(case: Case, kind: str, recorded: np.ndarray) -> Outcome:
    """The executor beside the record of a case. Furthest is infinite where a checksum differs."""
    if kind == "bits":
        return compare(case, recorded)
    wrong = np.flatnonzero(checksums(on_executor(case)) != recorded)
    where = int(wrong[0]) * case.output[1] // PARTS if wrong.size else -1
    return Outcome(case, case.output[1], int(wrong.size), np.inf if wrong.size else 0.0, not wrong.size, where)


def write_tables(outcomes: list[Outcome], facts: dict, folder: Path) -> None:
    """The CSV has a line for each case; the Markdown says which are equal and lists those that are not."""
    heads = ["operation", "dtype", "results", "different", "furthest", "bound", "measure", "reason"]
    rows = []
    for each in outcomes:
        case = each.case
        measure = "equal bits" if each.equal else case.measure
        reason = "" if each.equal else case.reason or ("denormals count as 0" if case.flushes else "")
        values = [each.count, each.different, f"{each.furthest:.3g}", f"{case.bound:g}", measure, reason]
        rows.append([case.operation, case.dtype, *values])
    with (folder / f"{NAME}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([heads, *rows])
    equal = defaultdict(list)
    for each in outcomes:
        if each.equal:
            equal[each.case.operation].append(each.case.dtype)
    count, total = len(outcomes), sum(each.count for each in outcomes)
    where = f"{facts['device']}, torch {facts['torch']}, Triton {facts['triton']}, {facts['date']}"
    units = "ulp: units in the last place; sum: units of 2⁻²⁴ of the sum of the sizes of what was added"
    text = ["# Operations on a card, and without one", ""]
    text += [f"{where}. {count} cases, {total:,} results. `python -m benchmarks.operations --record` wrote this.", ""]
    text += ["## Not equal in all bits", "", f"How far the furthest result is, and how far it may be ({units}).", ""]
    text += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    text += [
        f"| `{_cell(row[0])}` | {' | '.join(map(str, row[1:]))} |" for row, o in zip(rows, outcomes) if not o.equal
    ]
    text += ["", "## Equal in all bits", "", "| operation | dtypes |", "|---|---|"]
    text += [f"| `{_cell(operation)}` | {', '.join(dtypes)} |" for operation, dtypes in equal.items()]
    (folder / f"{NAME}.md").write_text("\n".join(text) + "\n")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _try(name: str, case: Case) -> tuple[str, np.ndarray | None, str]:
    """(the case, its results, why there are none)"""
    try:
        return case.key, {"card": on_card, "executor": on_executor}[name](case), ""
    except Exception as error:
        return case.key, None, f"{type(error).__name__}: {' '.join(str(error).split())[-200:]}"


def run_all(name: str, chosen: list[Case], processes: int) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """(results by case, errors by case), on the card or the executor, in several processes: compiling takes longest."""
    if processes == 1:
        done = {case.key: _try(name, case) for case in chosen}
    else:
        done = {}
        for _ in range(3):  # a compiler that aborts takes its process and the pool with it
            left = [case for case in chosen if case.key not in done]
            context = multiprocessing.get_context("spawn")
            with futures.ProcessPoolExecutor(processes, context) as pool, contextlib.suppress(BrokenProcessPool):
                for found in futures.as_completed([pool.submit(_try, name, case) for case in left]):
                    done[found.result()[0]] = found.result()
    errors = {case.key: done[case.key][2] if case.key in done else "the process died" for case in chosen}
    results = {key: bits for key, bits, _ in done.values() if bits is not None}
    return results, {key: error for key, error in errors.items() if key not in results}


def _say(outcome: Outcome) -> None:
    case, where = outcome.case, f"the furthest at {outcome.where}"
    print(
        f"{case.key}: {outcome.different} of {outcome.count} by up to {outcome.furthest:g}, not {case.bound:g}; {where}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--card", action="store_true", help="compare with this machine's card, not with the record")
    parser.add_argument("--record", action="store_true", help="the same, and write the record")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--raw", type=Path, help="keep all results of the card in this folder; or take them from it")
    chosen = parser.parse_args()
    selected = [case for case in cases() if chosen.only in case.key]
    if chosen.card or chosen.record:
        facts, results = _from_card(selected, chosen.raw)
        if chosen.record:
            outcomes = record(results, facts)
        else:
            outcomes = [compare(case, results[case.key]) for case in selected if case.key in results]
        missing = facts["errors"]
    else:
        recorded = read_record()[1]
        outcomes = [compare_with_record(case, *recorded[case.key]) for case in selected if case.key in recorded]
        missing = {case.key: "not in the record" for case in selected if case.key not in recorded}
    bad = [outcome for outcome in outcomes if not outcome.fine]
    for outcome in bad:
        _say(outcome)
    for key, error in missing.items():
        print(f"{key}: {error}")
    print(f"{len(outcomes)} operations compared, {sum(each.equal for each in outcomes)} equal in all bits")
    sys.exit(1 if bad or missing else 0)


def _from_card(selected: list[Case], raw: Path | None) -> tuple[dict, dict[str, np.ndarray]]:
    """(where, when and what failed; results by case), run now, or of an earlier run that kept them in `raw`."""
    if raw and (raw / "facts.json").exists():
        facts, results = json.loads((raw / "facts.json").read_text()), {}
        for part in raw.glob("*.npz"):
            with np.load(part) as file:
                results |= {key: file[key] for key in file.files}
        return facts, results
    facts = {"device": torch.cuda.get_device_name(), "torch": torch.__version__.split("+")[0]}
    facts |= {"triton": triton.__version__, "date": date.today().isoformat()}
    results, facts["errors"] = run_all("card", selected, min(12, os.cpu_count() or 1))
    if raw:
        raw.mkdir(exist_ok=True)
        (raw / "facts.json").write_text(json.dumps(facts))
        for part in range(4):
            np.savez_compressed(raw / f"{part}.npz", **dict(list(results.items())[part::4]))
    return facts, results


if __name__ == "__main__":
    main()
