"""The job "compile": compiles programs for GPUs that are not here. Nothing runs.

Triton's front end has accepted them. The later stages of a compiler refuse some of them, and say how much shared memory
a program needs. The compiler is a part of every Triton and needs no GPU. No stage writes a file or starts a program.
"""

from __future__ import annotations

import re

from workshop.executor import front_end, rebuild

from ..wire import Report, Trouble
from ..wire.requests import CompileCase
from .job import ANSWER, Job, load, trouble
from .replay import Known

LAST_STAGE = "llir"  # later stages need other programs, or only translate
# What a job of the zygote goes through once; the second kernel asks a GPU's own library.
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


def run(job: Job) -> None:
    job.show_source()
    programs = Known(job.request.programs)
    job.each(lambda case: _report(case, programs))


def _report(case: CompileCase, programs: Known) -> Report:
    target = front_end.TARGETS[case.target]
    try:
        _, metadata = rebuild.compile_program(programs[case.program], target, case.options, LAST_STAGE)
    except Exception as error:
        if not _works(case.target):
            return Report(has_value=True)
        return Report(error=_refusal(error, case.target))
    return Report(has_value=True, value=int(metadata.get("shared") or 0))


def _works(target: str) -> bool:
    """Whether this machine compiles a kernel that is right, with a function of the GPU's own library."""
    try:
        kernel = load(WARM_UP, "<warm-up>", "warm_up")["of_a_vendor"]
        program = front_end.lower(kernel, {"x_ptr": "*fp32"}, {}, target=target)
        rebuild.compile_program(program, front_end.TARGETS[target], stop=LAST_STAGE)
    except Exception:
        return False
    return True


def _refusal(error: Exception, target: str) -> Trouble:
    message = str(error).strip() or type(error).__name__
    found = re.search(re.escape(ANSWER) + r'"?:(\d+)', message)
    return trouble(error, "compile", message, int(found[1]) if found else None, target)
