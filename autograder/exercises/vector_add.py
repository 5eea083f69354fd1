"""01_vector_add: masks and offsets, autotuning, and two bugs to find."""


import math

import torch

from workshop.syllabus import find

from ..text import many
from ..verdict import Finding
from .spec import (
    Blanks,
    Bound,
    Case,
    Exercise,
    Large,
    Mistake,
    Strided,
    choice,
    integer,
    large_rows,
    large_sizes,
    rows_one_apart,
    spread,
    unfilled,
)

# One rounding of the exact sum or product; float16 and bfloat16 differ by the rounding of the store.
EXACT = {
    torch.float32: Bound(2e-7, 1e-44),
    torch.float16: Bound(5e-4, 6e-8),
    torch.bfloat16: Bound(8e-3, 1e-40),
}


def _pair(n: int, dtype: torch.dtype = torch.float32):
    def make(generator):
        return tuple(Strided(torch.randn(n, generator=generator).to(dtype)) for _ in range(2))

    return make


def _wide_pair(n: int, dtype: torch.dtype = torch.float32):
    """Numbers of all sizes that the dtype has; the sums are finite."""
    low, high = (-100, 126) if dtype == torch.float32 else (-10, 14)

    def make(generator):
        return tuple(Strided(spread(generator, low, high, n).to(dtype)) for _ in range(2))

    return make


def _any_length(low: int, high: int):
    return lambda generator: _wide_pair(integer(generator, low, high))(generator)


ADD_CASES = (
    Case("n = 1000", _pair(1000), "ragged"),
    Case("n = 2048", _pair(2048)),
    Case("n = 1", _pair(1), "short"),
    Case("n = 2049", _pair(2049), "ragged"),
    Case("n = 0", _pair(0), "empty"),
    Case("n = 777, float16", _wide_pair(777, torch.float16), "ragged half"),
    Case("n between 1100 and 2000", _any_length(1100, 2000), "ragged drawn"),
    Case("n = 98432", _pair(98432), "ragged", gpu_only=True),
)


ADD_TEMPLATE = '''
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)


def add(x, y):
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements:
        add_kernel[(triton.cdiv(n_elements, 256),)](x, y, output, n_elements, BLOCK_SIZE=256)
    return output
'''

_ADD_MISTAKES = (
    Mistake(
        "wrong-value",
        lambda x, y: x - y,
        "The output is x - y.",
        "The exercise asks for the sum.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: x * y,
        "The output is x * y.",
        "The exercise asks for the sum.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: x.clone(),
        "The output is x: y was not added.",
        "Load y with its own pointer, y_ptr + offsets, and add it.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: 2 * x,
        "The output is x + x.",
        "The second load must read from y_ptr, and the launch must pass y for it.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: 2 * y,
        "The output is y + y.",
        "The first load must read from x_ptr, and the launch must pass x for it.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: y.clone(),
        "The output is y: x was not added.",
        "Load x with its own pointer, x_ptr + offsets, and add it.",
    ),
    *(
        Mistake(
            "low-precision",
            compute,
            "The numbers were rounded to half precision before or after the addition.",
            "Add in the dtype of the inputs, or in float32. The store converts to the output's dtype.",
        )
        for dtype in (torch.float16, torch.bfloat16)
        for compute in (
            lambda x, y, dtype=dtype: x.to(dtype).double() + y.to(dtype).double(),
            lambda x, y, dtype=dtype: (x.to(dtype) + y.to(dtype)).double(),
            lambda x, y, dtype=dtype: (x + y).to(dtype).double(),
        )
    ),
    Mistake(
        "wrong-program-id",
        lambda x, y, block: (x + y)[torch.arange(len(x)) % block],
        "Every block holds the sums of the first block.",
        "Offsets start at pid * BLOCK_SIZE, for the loads and for the store.",
    ),
)


def _matrix(rows: int, columns: int, row_stride: int | None, dtype: torch.dtype = torch.float32):
    def make(generator):
        x = torch.randn(rows, columns, generator=generator).to(dtype)
        return Strided(x, row_stride), float(torch.empty(()).uniform_(1.5, 3.5, generator=generator))

    return make


def _any_matrix(rows: tuple[int, int], columns: tuple[int, int]):
    """A matrix of numbers of all sizes, and a factor of any size. The products are finite."""

    def make(generator):
        m, n = integer(generator, *rows), integer(generator, *columns)
        a = float(spread(generator, -12, 12))
        stride = n + 7 if m > 1 else None
        return Strided(spread(generator, -80, 127 - math.ceil(max(math.log2(abs(a)), 0)), m, n), stride), a

    return make


SCALE_CASES = (
    Case("5 × 256, contiguous", _matrix(5, 256, None)),
    Case("4 × 300, contiguous", _matrix(4, 300, None), "ragged"),
    Case("5 × 256, row stride 320", _matrix(5, 256, 320), "strided"),
    Case("7 × 781, row stride 800", _matrix(7, 781, 800), "ragged strided"),
    Case("3 × 1, row stride 4", _matrix(3, 1, 4), "short strided"),
    Case("1 × 1", _matrix(1, 1, None), "short"),
    Case("0 × 16", _matrix(0, 16, None), "empty"),
    Case("3 × 257 to 780", _any_matrix((3, 3), (257, 780)), "ragged strided drawn"),
    Case("66 to 80 × 5 to 20", _any_matrix((66, 80), (5, 20)), "ragged strided many drawn"),
    Case("2 × 1024, whole blocks", _matrix(2, 1024, None)),
    Case("1 × 5000 to 6000", _any_matrix((1, 1), (5000, 6000)), "ragged drawn"),
    Case("6 × 33, float16, row stride 40", _matrix(6, 33, 40, torch.float16), "ragged strided"),
)


def _another_factor(o) -> Finding | None:
    """The output is a multiple of x, and the factor follows from something else than a."""
    c = o.wrong
    if c is None or (ratio := c.ratio_where_finite) is None or abs(ratio - 1) < 1e-6:
        return None
    a = o.values[1]
    return Finding(
        "wrong-value",
        f"Every element is {ratio * a:.6g} times x, expected {a:g} times x ({o.case.name}).",
        "The factor is wrong, and by another amount in other cases.",
        "pass a to the kernel as it is, and multiply by it once.",
    )


def _rounded_factor(o) -> Finding | None:
    """The factor is a, rounded to three digits after the point."""
    c = o.wrong
    if c is None or (ratio := c.ratio_where_finite) is None:
        return None
    a = o.values[1]
    if round(a, 3) == a or abs(ratio * a - round(a, 3)) > 1e-5 * abs(a):
        return None
    return Finding(
        "low-precision",
        f"Every element is {ratio * a:.7g} times x, expected {a:.7g} times x ({o.case.name}).",
        "The factor a was rounded before the multiplication.",
        "pass a to the kernel as it is.",
    )


def _far_factor(o) -> Finding | None:
    """Another factor, so large that some elements are infinite."""
    return _another_factor(o) if o.wrong and o.wrong.made_infinite else None


def _copied(source: str, traces: list[dict]) -> str:
    """A remark about a host function that copies a strided input before it launches."""
    if not any(step.get("op") in ("clone", "contiguous", "copy_") for trace in traces for step in trace["steps"]):
        return ""
    return (
        "A copy on the host hides the stride bug: it reads and writes the matrix once more. With x.stride(0) the "
        "kernel needs no copy."
    )


def _lost_key(source: str, traces: list[dict]) -> str:
    """A remark about a key of autotune that names no argument."""
    launches = [step for trace in traces for step in trace["steps"] if step.get("tuned")]
    lost = {str(name)[:40] for step in launches for name in step["tuned"]["key"] if name not in step["args"]}
    if not lost:
        return ""
    return (
        f"The key names `{min(lost)}`, which is no parameter of the kernel: autotune ignores it, and keeps the first "
        "choice for every size."
    )


LARGEST_HALF = 65504.0


def _near(number: torch.Tensor) -> torch.Tensor:
    """Where a number is so near to the largest of float16 that its rounding decides."""
    return (number / LARGEST_HALF - 1).abs() < 3e-3


def in_half_precision(o) -> Finding | None:
    """What is too large for float16 is infinite, and the rest has the errors of float16, although x is no float16."""
    c = o.wrong
    if c is None or c.expected.ndim != 2 or c.got.dtype == torch.float16:
        return None
    x, infinite = o.values[0].double().abs(), torch.isinf(c.value)
    largest, smallest = torch.maximum(x, c.expected.abs()), torch.minimum(x, c.expected.abs())
    # only x was rounded, or the product too
    if not infinite.any() or not any(bool((_near(n) | (infinite == (n > LARGEST_HALF))).all()) for n in (x, largest)):
        return None
    telling = (smallest > 1e-3) & ~infinite
    error = (c.value / c.expected - 1).abs()[telling]
    if not telling.any() or float(error.max()) > 4e-3:
        return None
    return Finding(
        "low-precision",
        f"{o.worst_in_words} {many(int(infinite.sum()), 'element is', 'elements are')} infinite: x or a * x is above "
        "65504 there.",
        "The kernel computes in float16, whose largest number is 65504.",
        "compute in float32: x.to(tl.float32) after the load. The store converts to the output's dtype.",
        second="overflow",
    )


def overflowed(o) -> Finding | None:
    """Infinities are all that is wrong, although x and a * x are finite in the dtype of x."""
    c = o.wrong
    if c is None or not c.made_infinite:
        return None
    if bool((c.bad & ~c.made_not_finite).any()):
        return None
    return Finding(
        "overflow",
        f"{o.worst_in_words} {many(int(c.made_not_finite.sum()), 'element is', 'elements are')} infinite or NaN.",
        "x and a * x have room in this dtype, but a number in between is too large for it.",
        "multiply once: x * a.",
    )


def _large_pairs(generator: torch.Generator) -> tuple[Case, ...]:
    sizes = [(n, choice(generator, list(EXACT))) for n in large_sizes(generator)]
    return tuple(
        Case(f"n = {n:,}", lambda _, n=n, dtype=dtype: (Large((n,), dtype), Large((n,), dtype))) for n, dtype in sizes
    )


def _large_matrices(generator: torch.Generator) -> tuple[Case, ...]:
    shapes = [(shape, integer(generator, 0, 9)) for shape in large_rows(generator)]
    return tuple(
        Case(f"{m:,} × {n:,}", lambda _, m=m, n=n, gap=gap: (Large((m, n), row_stride=n + gap), 2.5), "strided")
        for (m, n), gap in shapes
    )


EXERCISES = (
    Exercise(
        lesson=find("vector_add"),
        entry="add",
        signature="add(x, y) -> x + y, for two contiguous tensors of one shape and dtype",
        cases=ADD_CASES,
        large=_large_pairs,
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
        mistakes=_ADD_MISTAKES,
        blanks=Blanks(
            template=ADD_TEMPLATE,
            kernel="add_kernel",
            names=("offsets", "mask", "x", "y", "store"),
            advice={
                "offsets": "Program pid works on BLOCK_SIZE elements. The first one is at block_start.",
                "mask": "A lane may touch memory only where its offset is below n_elements.",
                "x": "Load from x_ptr + offsets, with the mask.",
                "y": "Load from y_ptr + offsets, with the mask.",
                "store": "Store output at output_ptr + offsets, with the mask.",
            },
        ),
    ),
    Exercise(
        lesson=find("vector_add_autotuned"),
        entry="add_autotuned",
        signature="add_autotuned(x, y) -> x + y, with @triton.autotune over a sensible space",
        cases=ADD_CASES,
        large=_large_pairs,
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
        mistakes=_ADD_MISTAKES,
        remark=_lost_key,
        timing_cases=tuple(Case(f"n = {n:,}", lambda _, n=n: (unfilled(n), unfilled(n))) for n in (98_432, 1 << 25)),
    ),
    Exercise(
        lesson=find("bug_hunt"),
        entry="scale",
        signature="scale(x, a) -> a * x, for a 2-D tensor with any row stride",
        cases=SCALE_CASES,
        large=_large_matrices,
        reference=lambda x, a: x.double() * a,
        remark=_copied,
        rules=(in_half_precision, overflowed, _rounded_factor, _far_factor),
        # a is rounded to the dtype that the kernel multiplies in, and the product once more
        bounds={
            torch.float32: Bound(4e-7, 1e-44),
            torch.float16: Bound(1.2e-3, 6e-8),
            torch.bfloat16: Bound(1.2e-2, 1e-40),
        },
        last_rules=(_another_factor,),
        mistakes=(
            Mistake("wrong-value", lambda x, a: x.clone(), "The output is x: nothing was scaled.", "Multiply by a."),
            Mistake("wrong-value", lambda x, a: x + a, "The output is x + a.", "The exercise asks for a * x."),
            Mistake(
                "stride-ignored",
                lambda x, a: rows_one_apart(x.double()) * a,
                "Row r begins at element r of x: the rows overlap. The stride of a row was taken as 1, which is that "
                "of a column.",
                "Pass x.stride(0) to the kernel, and begin row r at r * row_stride.",
            ),
            *(
                Mistake(
                    "low-precision",
                    lambda x, a, dtype=dtype: x.double() * float(torch.tensor(a, dtype=dtype)),
                    "The factor a was rounded to half precision before the multiplication.",
                    "Multiply in float32. The store converts to the output's dtype.",
                )
                for dtype in (torch.float16, torch.bfloat16)
            ),
        ),
    ),
)
