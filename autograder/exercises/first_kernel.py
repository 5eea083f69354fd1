"""00_setup: the smallest kernel, one program per element."""

import torch

from .design import Dimension, Inputs, Level, Number, between, fixed
from .spec import Bound, Exercise, Mistake

# More elements than the constants that a host function may contain; and n may be one, or a power of two.
# One is more than 16 bits can count.
SIZES = Dimension(
    "n",
    (
        Level("some", between(300, 400)),
        Level("one", fixed(1)),
        Level("whole", fixed(64, 128, 256)),
        Level("many", between(66_000, 70_000), once=True),
    ),
)


def _reference(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float64)


EXERCISES = (
    Exercise(
        signature="first_kernel(n) -> int32 tensor of n program ids",
        inputs=Inputs((Number("n"),), (SIZES,), first=({"n": 7}, {"n": 100}), large="n", named=lambda n: f"n = {n}"),
        reference=_reference,
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
)  # fmt: skip
