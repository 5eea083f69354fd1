"""Rules about what the box reported: exceptions, refusals, faults, and processes that died."""

from __future__ import annotations

import re
from dataclasses import replace

import triton

from workshop.advice import COMPARE, meaning, readable

from ..box.wire import Fault, Trouble
from ..exercises.cases import Tag
from ..verdict import Finding
from ..versions import when
from . import refusals
from .observation import GPU_FAULT, Observation, program_in_words, shape_in_words

MANY_PROGRAMS = 256  # of a launch; with fewer, a loop is what takes long
_VERBS = {"load": "reads", "store": "writes"}


def invalid_access(o: Observation) -> Finding | None:
    """What compute-sanitizer found."""
    if (a := o.access) is None:
        return None
    return Finding(
        f"out-of-bounds-{a.kind}",
        f"Program {program_in_words(a.program)} of {a.kernel} {_VERBS[a.kind]} {a.size} bytes that are in no tensor, "
        "as compute-sanitizer found.",
        "These lanes access memory outside of their tensor.",
        "check the pointer arithmetic and the mask of this access.",
        a.line,
    )


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
        "syntax": _syntax,
        "compile": lambda o, t: refusals.refused(t),
        "false-promise": _false_promise,
        "never-ends": _never_ends,
        "device-assert": _device_assert,
        "not-allowed": _not_allowed,
        "not-loaded": _not_loaded,
        "not-in-triton": _not_in_triton,
        "missing-entry": _missing_entry,
        "host-arithmetic": _host_arithmetic,
        "not-replayable": _not_replayable,
        "memory": _out_of_memory,
        "wrong-device": _wrong_device,
        "fault": _fault,
        "launch-option": lambda o, t: refusals.bad_option(t),
        "garbled": _garbled,
    }.get(t.kind, _exception)(o, t)


def _syntax(o, t):
    message = re.sub(r" \(<answer>(, line \d+)?\)$", "", t.message)
    return Finding("syntax-error", f"Python cannot read the code: {message}", line=t.line, code=t.code)


def _not_allowed(o, t):
    return Finding(
        "not-allowed",
        f"The kernel uses {t.construct}, which cannot be judged here.",
        "Triton has more features than this course can judge: some of them only a GPU can run.",
        "write it with the functions of `tl` from the lessons.",
        t.line,
        t.code,
    )


def _not_loaded(o, t):
    return Finding(
        "not-allowed",
        f"The code needs the module {t.construct}, which cannot be loaded where it is judged.",
        "The judge runs the code without files. The module is installed, and the answer may be right.",
        "write the function without this module, or without the part of torch that loads it.",
        t.line,
        t.code,
    )


def _false_promise(o, t):
    return Finding(
        "false-promise",
        f"{t.construct} promises the compiler something that is not true.",
        "The compiler believes it, and may read and write several elements at once where that is not possible.",
        "leave the promise out, or promise only what holds for every size and every program.",
        t.line,
        t.code,
    )


def _never_ends(o, t):
    return Finding(
        "timeout",
        f"A kernel does not end: {t.construct}.",
        "A program waits or loops until something changes, and nothing changes it.",
        "check that every loop advances towards its end, and that what a program waits for is always written.",
        t.line,
        t.code,
    )


def _device_assert(o, t):
    return Finding(
        "runtime-error",
        f"tl.device_assert failed: {t.message.partition('. line ')[0]}.",
        "The kernel itself says that this must not happen.",
        "look at the values that the assertion compares, or at the assertion.",
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
    text = re.sub(r"\[[-+.\de\s]{80,}\]?", "[…]", readable(text))
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
    if returned := _OTHER_FORM.fullmatch(t.message):
        return _other_form(o, *returned.groups())
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
        means, advice = meaning(text)
        return Finding(slug, f"The kernel cannot be launched: {text}", means, advice or COMPARE, t.line, t.code)
    if o.backend == "interpreter" and _NO_DEVICE.search(text):
        advice = "make tensors on the input's device: torch.empty_like(x), or device=x.device."
        return Finding("wrong-device", text, _NO_GPU, advice, t.line, t.code)
    return _raised(o, t, text)


def _raised(o, t, text: str):
    """An exception of the host function."""
    means, advice = meaning(text)
    if not advice:
        means = f"{o.exercise.entry} must accept this input."
        if o.backend == "interpreter" and t.type == "AssertionError":
            means, advice = f"{means} {_NO_GPU}", "if the line asks for a GPU, leave it out."
    return Finding("runtime-error", text, means, advice, t.line, t.code)


_OTHER_FORM = re.compile(r"\w+ returned (?!None|nothing)(\w+), not a (tensor|JAX array)")


def _other_form(o, kind: str, expected: str):
    if kind == "Function":
        return Finding(
            "wrong-dtype",
            f"{o.exercise.entry} returned an object of the torch.autograd.Function, and not what its forward computes.",
            "To call the class makes an object. Its function `apply` runs forward, and remembers backward.",
            "write .apply between the name of the class and its arguments: Name.apply(x, …).",
        )
    if kind == "Tensor":
        names = o.exercise.inputs.outputs
        return Finding(
            "wrong-shape",
            f"{o.exercise.entry} returned one tensor, expected {len(names)}: {' and '.join(names)}.",
            advice="return them in this order: return a, b.",
        )
    several = kind in ("list", "tuple", "dict", "set", "Size")
    return Finding(
        "wrong-shape" if several else "wrong-dtype",
        f"{o.exercise.entry} returned {kind}, expected one {expected}.",
        advice=f"return the {expected} that your kernel stores to{', alone' * several}.",
    )


def _fault(o, t):
    f = t.fault
    if f is None:
        return _exception(o, t)
    slug = f"out-of-bounds-{'load' if f.kind == 'load' else 'store'}"
    one = _is_one_number(o, f)
    lanes = f"{f.lanes} lane{'s' if f.lanes != 1 else ''}, the first is lane {f.lane}, "
    form = ""
    if f.shape and one and f.stride == (1,):
        form = f"{f.argument} has {f.shape[0]} element{'s' * (f.shape[0] != 1)} "
    elif f.shape:
        form = f"{f.argument} has shape {shape_in_words(f.shape)} and strides {shape_in_words(f.stride)} "
    happened = (
        f"Program {program_in_words(f.program)} {_VERBS.get(f.kind, 'writes')} outside of {f.argument}"
        f"{', ' if one else f': {lanes}'}at {f.where}. {form}".rstrip()
    )
    return Finding(slug, happened, *_why_outside(o, f), line=f.line, code=f.code, tensor=f.argument)


def _is_one_number(o, f: Fault) -> bool:
    """Whether the kernel of this access has no blocks, so that lanes, masks and strides are not its words."""
    return f.lanes == 1 and f.lane == 0 and not o.constants


def _why_outside(o, f: Fault):
    if _is_one_number(o, f):
        return (
            "A pointer plus a number is a place in memory. This place belongs to no element of the tensor.",
            "check the number that is added to the pointer, for the first program and for the last one.",
        )
    if Tag.RAGGED in o.case.about and "gap" not in f.where and f.lane:
        return (
            "The last block reaches past the end of the tensor. On a GPU these lanes access other data.",
            "give every load and store a mask that is true only for elements of the tensor.",
        )
    if Tag.STRIDED in o.case.about:
        return (
            "The row stride is larger than the row length. The memory between two rows is not part of the tensor.",
            "step from row to row by the stride of that tensor, x.stride(0), and mask the columns.",
        )
    if any(f.program[1:]):
        return (
            "These lanes access memory outside of their tensor. The launch grid has several dimensions.",
            "check the order of the grid: tl.program_id(0) counts along its first number. Then check the numbers that "
            "are added to the pointer.",
        )
    return (
        "These lanes access memory outside of their tensor.",
        "check the numbers that are added to the pointer, and that the mask compares them with the right length.",
    )
