"""00_setup: the smallest kernel, one program per element."""

import torch

from workshop.syllabus import find

from .spec import Bound, Case, Exercise, Mistake


def _reference(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float64)


def _written(n: int, programs: int) -> torch.Tensor:
    """A tensor that is filled with -1, as in the lesson, and then written by so many programs."""
    return torch.where(torch.arange(n) < programs, _reference(n), -1.0)


EXERCISES = (
    Exercise(
        lesson=find("first_kernel"),
        entry="first_kernel",
        signature="first_kernel(n) -> int32 tensor of n program ids",
        cases=(
            *(
                Case(f"n = {n}", lambda _, n=n: (n,), frozenset({"short"} if n == 1 else ()))
                for n in (1, 7, 100)
            ),
            # more elements than the constants that a host function may contain
            Case("n between 300 and 400", lambda g: (int(torch.randint(300, 400, (), generator=g)),)),
        ),
        reference=_reference,
        bounds={torch.int32: Bound(0.0)},
        output_dtype=torch.int32,
        mistakes=(
            Mistake(
                "wrong-program-id",
                lambda n: torch.zeros(n, dtype=torch.float64),
                "Every element is 0: all programs stored the same number.",
                "Ask Triton which program this is: tl.program_id(axis=0).",
            ),
            Mistake(
                "wrong-program-id",
                lambda n: torch.full((n,), float(n), dtype=torch.float64),
                "Every element is n: that is the number of programs, not the number of this program.",
                "tl.num_programs(0) is the number of programs; tl.program_id(0) is the number of the running program.",
            ),
            *(
                Mistake("unwritten-output", compute, "An element that is -1 was never written.", advice)
                for compute, advice in (
                    (lambda n: _written(n, 0), "Let each program store its number: tl.store(output_ptr + pid, pid)."),
                    (lambda n: _written(n, 1), "Launch n programs: first_kernel_programs[(n,)](…)."),
                    (lambda n: _written(n, n - 1), "Launch n programs: first_kernel_programs[(n,)](…)."),
                )
            ),
        ),
    ),
)
