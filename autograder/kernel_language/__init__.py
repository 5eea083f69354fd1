"""The kernel language: the part of Python and Triton that learners' kernels may use, and a clean copy of kernels in it.

`kernels_of(source)` reads a learner's source without running it. It takes the top-level ``@triton.jit``
functions, refuses every construct that is not on the lists in `words`, and writes the rest again, with
canonical names and every statement on the line where the learner wrote it. The clean copy cannot run the
learner's Python: no decorator, default or annotation stays as an expression. Every name is a parameter, a local,
a numeric constant, another kernel or a listed function of Triton.

This is a policy, not a sandbox: `tl.load` and `tl.store` can reach any address of their process, so the clean
copy still runs confined. These are removed without an error, because they cannot change a result: docstrings,
`assert`, `print`, `tl.device_print`, `tl.static_print`, `tl.device_assert`, `tl.static_assert`.
"""

from .blanks import blank_expressions, splice
from .clean import define, kernels_of
from .records import Kernel, KernelSource, NotAllowed, Restructured

__all__ = [
    "Kernel",
    "KernelSource",
    "NotAllowed",
    "Restructured",
    "blank_expressions",
    "define",
    "kernels_of",
    "splice",
]
