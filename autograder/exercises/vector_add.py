"""01_vector_add: masks and offsets, autotuning, and two bugs to find."""

import torch

from workshop.syllabus import find

from .spec import Blanks, Bound, Case, Exercise, Mistake, Strided

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


def _unfilled(n: int):
    return lambda generator: (Strided(torch.empty(n, device="meta")), Strided(torch.empty(n, device="meta")))


def _pair_of_any_length(generator):
    return _pair(int(torch.randint(1100, 2000, (), generator=generator)))(generator)


ADD_CASES = (
    Case("n = 1000", _pair(1000), "ragged"),
    Case("n = 2048", _pair(2048)),
    Case("n = 1", _pair(1), "short"),
    Case("n = 2049", _pair(2049), "ragged"),
    Case("n = 0", _pair(0), "empty"),
    Case("n = 777, float16", _pair(777, torch.float16), "ragged"),
    Case("n between 1100 and 2000", _pair_of_any_length, "ragged drawn"),
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
        "The second load reads from x_ptr again; it must read from y_ptr.",
    ),
    Mistake(
        "wrong-value",
        lambda x, y: 2 * y,
        "The output is y + y.",
        "The first load reads from y_ptr; it must read from x_ptr.",
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
        a = round(float(torch.empty(()).uniform_(1.5, 3.5, generator=generator)), 3)
        return Strided(x, row_stride), a

    return make


def _matrix_of_any_width(generator):
    columns = int(torch.randint(257, 780, (), generator=generator))
    return _matrix(3, columns, columns + 7)(generator)


SCALE_CASES = (
    Case("5 × 256, contiguous", _matrix(5, 256, None)),
    Case("4 × 300, contiguous", _matrix(4, 300, None), "ragged"),
    Case("5 × 256, row stride 320", _matrix(5, 256, 320), "strided"),
    Case("7 × 781, row stride 800", _matrix(7, 781, 800), "ragged strided"),
    Case("3 × 1, row stride 4", _matrix(3, 1, 4), "short strided"),
    Case("0 × 16", _matrix(0, 16, None), "empty"),
    Case("3 × 257 to 780", _matrix_of_any_width, "ragged strided drawn"),
    Case("6 × 33, float16, row stride 40", _matrix(6, 33, 40, torch.float16), "ragged strided"),
)

EXERCISES = (
    Exercise(
        lesson=find("vector_add"),
        entry="add",
        signature="add(x, y) -> x + y, for two contiguous tensors of one shape and dtype",
        cases=ADD_CASES,
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
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
        mistakes=_ADD_MISTAKES,
        timing_cases=tuple(Case(f"n = {n:,}", _unfilled(n)) for n in (98_432, 1 << 25)),
    ),
    Exercise(
        lesson=find("bug_hunt"),
        entry="scale",
        signature="scale(x, a) -> a * x, for a 2-D tensor with any row stride",
        cases=SCALE_CASES,
        reference=lambda x, a: x.double() * a,
        # a is rounded to the dtype that the kernel multiplies in, and the product once more
        bounds={
            torch.float32: Bound(4e-7, 1e-44),
            torch.float16: Bound(1.2e-3, 6e-8),
            torch.bfloat16: Bound(1.2e-2, 1e-40),
        },
        mistakes=(
            Mistake("wrong-value", lambda x, a: x.clone(), "The output is x: nothing was scaled.", "Multiply by a."),
            Mistake("wrong-value", lambda x, a: x + a, "The output is x + a.", "The exercise asks for a * x."),
        ),
    ),
)
