"""00_setup: the smallest kernel, one program per element."""

import torch

from workshop.syllabus import find

from ..verdict import Finding
from .spec import Bound, Case, Exercise, Mistake, large_sizes


def _reference(n: int) -> torch.Tensor:
    return torch.arange(n, dtype=torch.float64)


def _left_at_the_fill(o) -> Finding | None:
    """Every wrong element is -1, with which the lesson fills the tensor."""
    c = o.wrong
    if c is None or not bool((c.value[c.bad] == -1).all()):
        return None
    return Finding(
        "unwritten-output",
        f"{int(c.bad.sum())} of {c.bad.numel()} elements are still -1: no program wrote them ({o.case.name}).",
        advice="let each program store its number, tl.store(output_ptr + pid, pid), and launch n programs: "
        "first_kernel_programs[(n,)](…).",
    )


def _fewer_programs_than_elements(o) -> Finding | None:
    """The numbers are right, but a program wrote more than its own one."""
    c = o.comparison
    if c is None or not c.right or o.programs >= c.expected.numel():
        return None
    return Finding(
        "wrong-program-id",
        f"The numbers are right, but {o.programs} program{'s' * (o.programs != 1)} wrote {c.expected.numel()} elements "
        f"({o.case.name}).",
        "The exercise asks for one program per element: program number p writes p to element p. A block or a loop "
        "writes numbers that belong to no program.",
        "launch n programs, first_kernel_programs[(n,)](…), and let each store tl.program_id(axis=0) once.",
    )


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
        large=lambda g: (Case("n between 10,000 and 1,000,000", lambda g: (large_sizes(g)[0],)),),
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
        ),
        rules=(_left_at_the_fill, _fewer_programs_than_elements),
    ),
)
