"""Rules about what the box reported: exceptions, refusals, faults, and processes that died."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import triton

from workshop import advice
from workshop.advice import COMPARE

from ..box.wire.answers import Trouble
from ..exercises.cases import Strided, Tag
from ..verdict import Finding
from ..versions import when
from .observation import GPU_FAULT, Observation, shape_in_words

MANY_PROGRAMS = 256  # of a launch; with fewer, a loop is what takes long
_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}


def died(o: Observation) -> Finding | None:
    if o.exceeded == "space":
        return _out_of_memory(o, Trouble("memory"))
    if o.exceeded:
        return _too_slow(o)
    if o.death:
        name = {9: "was killed (out of memory, or too long)", 11: "ended with a segmentation fault",
                6: "aborted", 7: "ended with a bus error", 4: "ended with an illegal instruction",
                31: "made a system call that is not allowed"}  # fmt: skip
        name = name.get(-o.death, "ended before it finished")
        return Finding(
            "crash",
            f"The process that ran your code {name}.",
            "Usually a pointer is far outside of its tensor, or the code ends its own process.",
            "check every number that is added to a pointer.",
        )
    return None


def _too_slow(o: Observation) -> Finding:
    if o.stage == "plan":
        return Finding(
            "timeout",
            "The host function, or the compiler's reading of a kernel, did not end in time.",
            "A loop that never reaches its end runs forever. tl.static_range writes its body once for each step.",
            "check that every loop of the host function ends, and write range instead of tl.static_range.",
        )
    if sum(o.programs) >= MANY_PROGRAMS:
        return Finding(
            "timeout",
            f"{sum(o.programs):,} programs did not end in time.",
            "Each of them does little, or repeats what the others do.",
            "give each program a block of elements, at least 128, and count blocks in the grid: triton.cdiv(n, "
            "BLOCK_SIZE).",
        )
    return Finding(
        "timeout",
        "A kernel did not end in time.",
        "A loop that never reaches its end runs forever.",
        "check that every loop advances towards its end.",
    )


def troubled(o: Observation) -> Finding | None:
    """Exceptions, refusals, and steps that cannot be replayed."""
    t = o.trouble
    if t is None:
        return None
    return {
        **dict.fromkeys(advice.STOPPED, _stopped),
        "syntax": _syntax,
        "compile": lambda o, t: refused(t),
        "not-loaded": _not_loaded,
        "not-in-triton": _not_in_triton,
        "missing-entry": _missing_entry,
        "host-arithmetic": _host_arithmetic,
        "not-replayable": _not_replayable,
        "memory": _out_of_memory,
        "wrong-device": _wrong_device,
        "fault": _fault,
        "launch-option": lambda o, t: bad_option(t),
        "garbled": _garbled,
        "returned": _returned,
    }.get(t.kind, _exception)(o, t)


def _syntax(o, t):
    message = re.sub(r" \(<answer>(, line \d+)?\)$", "", t.message)
    told = f"Python cannot read the code: {message}", *advice.meaning(message)
    return Finding("syntax-error", *told, line=t.line, code=t.code)


_STOPS = {"false-promise": "false-promise", "never-ends": "timeout", "not-allowed": "not-allowed"}  # others: errors


def _stopped(o, t):
    return Finding(_STOPS.get(t.kind, "runtime-error"), *advice.stopped(t.kind, t.construct), t.line, t.code)


def _not_loaded(o, t):
    return Finding(
        "not-allowed",
        f"The code needs the module {t.construct}, which cannot be loaded where it is judged.",
        "The judge runs the code without files. The module is installed, and the answer may be right.",
        "write the function without this module, or without the part of torch that loads it.",
        t.line,
        t.code,
    )


def _not_in_triton(o, t):
    return Finding(
        "not-in-this-triton",
        f"Triton {triton.__version__}, which runs here, does not have {t.construct}. {when(t.construct)}",
        "The answer may be right with another version of Triton, but it cannot be judged here.",
        "use pointers with a mask, and the functions from the lessons: they work in every version.",
        t.line,
        t.code,
    )


def _missing_entry(o, t):
    return Finding(
        "not-attempted",
        f"There is no function {o.exercise.entry}.",
        advice=f"define {o.exercise.signature}.",
    )


def _host_arithmetic(o, t):
    return Finding(
        "no-triton-kernel",
        f"torch computed part of the result on the host: {t.message or 'an operation'}.",
        "A Triton kernel must compute the numbers of the output. The host function may allocate, copy, cast, "
        "view and launch.",
        f"move {t.message or 'the operation'} into the kernel.",
        t.line,
        t.code,
    )


def _not_replayable(o, t):
    return Finding(
        "no-triton-kernel",
        f"The host function does something that the judge cannot replay: {t.message}.",
        "The host function may allocate, copy, cast, view and launch. The kernels must do the computing.",
        "use only torch.empty, .contiguous(), .to(dtype), views and kernel launches in the host function.",
        t.line,
        t.code,
    )


def _wrong_device(o, t):
    return Finding(
        "wrong-device",
        f"{t.message}.",
        "A kernel runs on the device of its tensors, and the caller expects the result on the same device.",
        "make tensors on the input's device: torch.empty_like(x), or device=x.device.",
        t.line,
        t.code,
    )


def _out_of_memory(o, t):
    return Finding(
        "out-of-memory",
        "The code asked for more memory than is available.",
        "Temporary tensors grow with the input. A block that holds a whole row grows with the row.",
        "allocate one output of the input's shape, and go through long rows block by block.",
        t.line,
        t.code,
    )


def _garbled(o, t):
    return Finding(
        "crash",
        f"The process that ran your code sent something that is not a report: {t.message}.",
        "The process writes its reports to a file descriptor of its own. Your code must not write to it.",
        "write only to file descriptors that your code opened.",
    )


# What torch says where there is no GPU; a build for CUDA or ROCm names the driver, a build for the CPU itself.
_NO_GPU = "This machine has no GPU, and the input is on the CPU."
_NO_DEVICE = re.compile(r"cuda|\bhip\b|NVIDIA driver", re.I)
_MEMORY = re.compile(
    r"out of memory|OutOfResources|out of resource|(can't|cannot) allocate memory|not enough memory|"
    r"storage size calculation overflowed|unable to allocate",
    re.I,
)

def _readable(text: str) -> str:
    """Shortens printed arrays, and hides the name of the function that replaces a launch."""
    text = re.sub(r"\[[-+.\de\s]{80,}\]?", "[…]", advice.readable(text))
    text = re.sub(r"The error occurred while tracing the function \S+ at \S+ for \w+\. ", "", text)  # the judge's file
    text = re.sub(r"functools\.partial\(<function Launches\.install.*>\)", "the launch", text)
    return re.sub(r"\bautograder\.[\w.<>]+\.run\(\)", "the launch", text)


def _not_permitted(o, t):
    compiler = "a compiler, " if o.exercise.kind == "value" else ""
    return Finding(
        "runtime-error",
        f"{t.type}: the code asked the system for something that is not allowed where it is judged.",
        f"The judge runs your function without {compiler}files, a network and other programs.",
        "run xray in a cell of your own, read its table, and return the numbers that you read."
        if compiler
        else "compute the result from the arguments alone.",
        t.line,
        t.code,
    )


def _exception(o, t):
    text = _readable(f"{t.type}: {t.message}".strip(": "))
    if t.type == "NotImplementedError":
        happened = t.message or f"{o.exercise.entry} raises NotImplementedError."
        return Finding("not-attempted", happened, advice="write the body of the function.")
    if "CUDACachingAllocator" in text:  # an assertion of torch: the box hides the driver's count of free memory
        return _out_of_memory(o, t)
    if t.type == "PermissionError":
        return _not_permitted(o, t)
    if _MEMORY.search(text):
        return replace(_out_of_memory(o, t), happened=text)
    if GPU_FAULT.search(text):
        return Finding(
            "crash",
            f"The GPU stopped the kernel: {text}",
            "A lane used an invalid pointer.",
            "check every number that is added to a pointer.",
        )
    if o.stage == "replay":
        slug = "compile-error" if o.backend != "interpreter" else "runtime-error"
        means, attempt = advice.meaning(text)
        return Finding(slug, f"The kernel cannot be launched: {text}", means, attempt or COMPARE, t.line, t.code)
    if o.backend == "interpreter" and _NO_DEVICE.search(text):
        attempt = "leave .cuda() out, and make tensors on the input's device: torch.empty_like(x), or device=x.device."
        return Finding("wrong-device", text, _NO_GPU, attempt, t.line, t.code)
    return _raised(o, t, text)


def _raised(o, t, text: str):
    """An exception of the host function."""
    means, attempt = advice.meaning(text)
    if not attempt:
        means = f"{o.exercise.entry} must accept this input."
        if o.backend == "interpreter" and t.type == "AssertionError":
            means, attempt = f"{means} {_NO_GPU}", "if the line asks for a GPU, leave it out."
    return Finding("runtime-error", text, means, attempt, t.line, t.code)


def _returned(o, t):
    """The host function returned what is no tensor, or one tensor in the place of several. construct: its type."""
    if t.construct == "None":
        happened = f"{o.exercise.entry} returned None, not a tensor"
        return Finding(
            "runtime-error",
            happened,
            "A function that ends without `return` returns None, as behind an `if`. A launch returns None, too.",
            "end the function with `return` and the output tensor.",
        )
    if t.construct == "Function":
        return Finding(
            "wrong-dtype",
            f"{o.exercise.entry} returned an object of the torch.autograd.Function, and not what its forward computes.",
            "To call the class makes an object. Its function `apply` runs forward, and remembers backward.",
            "write .apply between the name of the class and its arguments: Name.apply(x, …).",
        )
    if t.construct == "Tensor":
        names = o.exercise.inputs.outputs
        return Finding(
            "wrong-shape",
            f"{o.exercise.entry} returned one tensor, expected {len(names)}: {' and '.join(names)}.",
            advice="return them in this order: return a, b.",
        )
    several = t.construct in ("list", "tuple", "dict", "set", "Size")
    expected = "JAX array" if o.exercise.kind == "jax" else "tensor"
    return Finding(
        "wrong-shape" if several else "wrong-dtype",
        f"{o.exercise.entry} returned {t.construct}, expected one {expected}.",
        advice=f"return the {expected} that your kernel stores to{', alone' * several}.",
    )


def _fault(o, t):
    f = t.fault
    if f is None:
        return _exception(o, t)
    shapes = [tuple(a.values.shape) for a in o.arguments if isinstance(a, Strided)]
    confused = f.shape and f.shape not in shapes and set(f.shape) <= {length for shape in shapes for length in shape}
    confused = confused and 0 < math.prod(f.shape) < math.prod(o.expected)
    if f.kind == "store" and len(o.programs) == 1 and confused:  # it has a length of the inputs, and not the right one
        return Finding(
            "wrong-shape",
            f"{f.argument} has shape {shape_in_words(f.shape)}, and the output has shape {shape_in_words(o.expected)}.",
            "The kernel writes past its end.",
            f"allocate it with the shape {shape_in_words(o.expected)}.",
            f.line,
            f.code,
            tensor=f.argument,
        )
    about = o.case.about
    told = advice.outside(f, ragged=Tag.RAGGED in about, strided=Tag.STRIDED in about)
    slug = f"out-of-bounds-{'load' if f.kind == 'load' else 'store'}"
    return Finding(slug, *told, line=f.line, code=f.code, tensor=f.argument)


# -- what Triton's compiler refuses: what its message means, and what to write instead -------------------


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
