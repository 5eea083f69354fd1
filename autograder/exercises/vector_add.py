"""00_setup: the smallest kernel. 01_vector_add: masks and offsets, autotuning, and two bugs to find."""

import math

import torch

from workshop.syllabus import find

from ..box.wire import Trace
from .design import (
    NORMAL,
    RAGGED,
    WHOLE,
    Dimension,
    Inputs,
    Level,
    Number,
    TensorArgument,
    between,
    columns,
    elements,
    fixed,
    of_all_sizes,
    rows,
    spread,
    unfilled,
    with_special_ones,
)
from .spec import Blanks, Bound, Case, Exercise, Mistake, bounds, choice

# One rounding of the exact sum or number; float16 and bfloat16 differ by that of the store. Numbers that are too small
# to be normal are added without one.
EXACT = bounds(Bound(2e-7), Bound(5e-4), Bound(4e-3))
# The factor is rounded to the dtype that the kernel multiplies in, and the product once more.
SCALED_EXACTLY = bounds(Bound(4e-7, 3e-45), Bound(1.2e-3, 1.2e-7), Bound(9e-3, 2e-40))

ANYTHING = with_special_ones(math.inf, -math.inf, math.nan)
ADDED = Inputs(
    (TensorArgument(("n",), any_rank=True), TensorArgument(("n",), any_rank=True)),
    (elements("n"),),
    tuple(EXACT),
    (NORMAL, of_all_sizes(spare=2), ANYTHING),
    first=({"n": 1000}, {"n": 5003}),
    large="n",
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

OF_ALL_SIZES = of_all_sizes()


MANY = RAGGED, WHOLE


LARGEST_FACTOR = 12  # as a power of two
FACTOR = Number(
    "a",
    (
        Level("usual", lambda g: float(torch.empty(()).uniform_(1.5, 3.5, generator=g))),
        Level("any", lambda g: float(spread(g, -LARGEST_FACTOR, LARGEST_FACTOR))),
        # float16 holds it as infinity, or as 0; the product with some numbers is in its range
        Level("beyond float16", lambda g: float(spread(g, *choice(g, ((17, 20), (-30, -27))))), once=True,
              only_with={"dtype": ("float16",), "values": (OF_ALL_SIZES.name,), "n": MANY, "columns": MANY}),
        Level("one", lambda g: choice(g, (1, 1.0)), once=True),  # Triton makes the integer a constant
        Level("zero", lambda g: 0.0, once=True, only_with={"values": (ANYTHING.name,)}),
        Level("infinite", lambda g: math.inf, once=True, only_with={"values": (ANYTHING.name,)}),
    ),
)
SCALED = Inputs(
    (TensorArgument(("rows", "columns"), row_stride=True), FACTOR),
    (rows("rows"), columns("columns")),
    tuple(EXACT),
    (NORMAL, OF_ALL_SIZES, ANYTHING),
    first=(
        {"rows": 4, "columns": 300, "a": 2.5},
        {"rows": 7, "columns": 781, "row_stride": 800, "a": 1.75},
        {"rows": 2, "columns": 5003, "a": 3.25},
    ),
    large="rows",
)


def _copied(traces: list[Trace]) -> str:
    if not any(getattr(step, "op", "") in ("clone", "copy_") for trace in traces for step in trace.steps):
        return ""
    return (
        "A copy on the host hides the stride bug: it reads and writes the matrix once more. With x.stride(0) the "
        "kernel needs no copy."
    )


def _lost_key(traces: list[Trace]) -> str:
    launches = [launch for trace in traces for launch in trace.tuned]
    lost = {name[:40] for launch in launches for name in launch.tuned.key if name not in launch.args}
    if not lost:
        return ""
    return (
        f"The key names `{min(lost)}`, which is no parameter of the kernel: autotune ignores it, and keeps the first "
        "choice for every size."
    )


# More elements than the constants that a host function may contain; and n may be one, or a power of two.
PROGRAMS = Dimension(
    "n",
    (
        Level("some", between(300, 400)),
        Level("one", fixed(1)),
        Level("none", fixed(0), once=True),
        Level("whole", fixed(64, 128, 256)),
        Level("many", between(66_000, 70_000), once=True),  # more than 16 bits can count
    ),
)

EXERCISES = (
    Exercise(
        signature="first_kernel(n) -> int32 tensor of n program ids",
        inputs=Inputs((Number("n"),), (PROGRAMS,), first=({"n": 7}, {"n": 100}), large="n", named=lambda n: f"n = {n}"),
        reference=lambda n: torch.arange(n, dtype=torch.float64),
        bounds={torch.int32: Bound(0.0)},
        output_dtype=torch.int32,
        mistakes=(
            Mistake("wrong-program-id", lambda n: torch.zeros(n, dtype=torch.float64),
                    "Every element is 0: all programs stored the same number.",
                    "Ask Triton which program this is: tl.program_id(axis=0).", known_by_constant=True),
            Mistake("wrong-program-id", lambda n: torch.full((n,), float(n), dtype=torch.float64),
                    "Every element is n: that is the number of programs, not the number of this program.",
                    "tl.num_programs(0) is the number of programs; tl.program_id(0) is the number of the running "
                    "program."),
        ),
        programs_at_least=lambda n, multiprocessors=0: n,
        fill=-1.0,
    ),
    Exercise(
        lesson=find("vector_add"),
        signature="add(x, y) -> x + y, for two contiguous tensors of one shape, any, and one dtype",
        inputs=ADDED,
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
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
        signature="add_autotuned(x, y) -> x + y, with @triton.autotune over a sensible space",
        inputs=ADDED,
        reference=lambda x, y: x.double() + y.double(),
        bounds=EXACT,
        remark=_lost_key,
        timing_cases=tuple(Case(f"n = {n:,}", lambda _, n=n: (unfilled(n), unfilled(n))) for n in (98_432, 1 << 25)),
    ),
    Exercise(
        lesson=find("bug_hunt"),
        signature="scale(x, a) -> a * x, for a 2-D tensor with any row stride",
        inputs=SCALED,
        reference=lambda x, a: x.double() * a,
        remark=_copied,
        bounds=SCALED_EXACTLY,
    ),
)  # fmt: skip
