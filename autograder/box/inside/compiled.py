"""The job "compile": Triton's compilers read programs of launches, for GPUs that need not be here."""

from __future__ import annotations

import re

from workshop.executor import front_end, rebuild
from workshop.executor.program import Program

from .. import wire
from .job import ANSWER, Job, load, trouble

LAST_STAGE = "llir"  # later stages need other programs, or only translate
# What the zygote goes through once. The second kernel asks a GPU's own library.
WARM_UP = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def warm_up(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    for _ in range(2):
        x = x + tl.exp(x) / tl.sum(x, axis=0) + tl.max(x, axis=0) + tl.rand(n, i) + tl.argmax(x, axis=0)
    x += tl.sum(tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32))) + tl.sigmoid(x) + tl.cumsum(x)
    x = tl.fma(libdevice.exp(x), tl.sort(x), tl.flip(x, 0)) + tl.softmax(x) + tl.cdiv(n, 3) + tl.randn(n, i)
    tl.store(x_ptr + i, tl.where(x > 0, x, tl.maximum(x, 1.0)), mask=i < n)


@triton.jit
def of_a_vendor(x_ptr):
    tl.store(x_ptr, libdevice.exp(tl.load(x_ptr)))
"""


def run(job: Job, case: wire.CompileCase, programs: dict[str, Program]) -> wire.Report:
    """Compiles a program for a GPU that is not here. Nothing runs.

    Triton's front end has accepted it. The later stages of a compiler refuse some, and say how much shared memory a
    program needs. The compiler is a part of every Triton and needs no GPU. No stage writes a file or starts a program.
    """
    target = front_end.TARGETS[case.target]
    try:
        program = _promising(programs[case.program], case) if case.divisible or case.odd else programs[case.program]
        _, metadata = rebuild.compile_program(program, target, case.options, LAST_STAGE)
    except Exception as error:
        if not _works(case.target):
            return wire.Report(has_value=True)
        message = str(error).strip() or type(error).__name__
        found = re.search(re.escape(ANSWER) + r'"?:(\d+)', message)
        return wire.Report(error=trouble(error, "compile", message, int(found[1]) if found else None, case.target))
    return wire.Report(has_value=True, value=int(metadata.get("shared") or 0))


def _promising(program: Program, case: wire.CompileCase) -> Program:
    """The program with other promises of its arguments, as other calls of its kernel make them."""
    promises = {i: each for i, each in program.kernel.promises.items() if i not in case.odd}
    return program.promising(promises | {i: {"tt.divisibility": 16} for i in case.divisible})


def _works(target: str) -> bool:
    """Whether this machine compiles a kernel that is right, with a function of the GPU's own library."""
    try:
        kernel = load(WARM_UP, "<warm-up>")["of_a_vendor"]
        program = front_end.lower(kernel, {"x_ptr": "*fp32"}, {}, target=target)
        rebuild.compile_program(program, front_end.TARGETS[target], stop=LAST_STAGE)
    except Exception:
        return False
    return True
