"""What Triton's compiler refuses: what its message means, and what to write instead."""

from __future__ import annotations

from workshop import advice

from ..box.wire import Trouble
from ..verdict import Finding

_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}

def refused(t: Trouble) -> Finding:
    """The finding about a kernel that a compiler does not accept."""
    target = f" for {_VENDORS[t.construct]} GPUs" if t.construct in _VENDORS else ""
    if t.kind == "compile-crash":
        return Finding(
            "compile-error",
            f"Triton's compiler{target} crashes on the kernel.",
            "",
            "simplify the kernel until it compiles: workshop.xray shows what the compiler makes of it.",
        )
    message, means, attempt = advice.refused(t.message, t.construct, t.instead)
    happened = f"Triton's compiler{target} refuses the kernel: {message}"
    return Finding("compile-error", happened, means, attempt, t.line, t.code)


def too_much_shared_memory(needed: int, most: int) -> Finding:
    return Finding(
        "out-of-memory",
        f"One program needs {needed:,} bytes of shared memory. No GPU of the course has more than {most:,}.",
        "The tiles that a program keeps, and the copies that the compiler makes to load ahead, lie in shared memory.",
        "make the tiles smaller, or use fewer stages (num_stages).",
    )


def bad_option(t: Trouble) -> Finding:
    """The finding about a launch option that no GPU can use."""
    return Finding(
        "compile-error",
        f"The launch options do not fit a GPU: {t.message}.",
        "A GPU refuses such a launch.",
        "use 1, 2, 4, 8 or 16 warps, and leave out options that you do not need.",
        t.line,
        t.code,
    )
