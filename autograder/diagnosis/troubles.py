"""Rules about what the box reported: exceptions, refusals, faults, and processes that died."""

from __future__ import annotations

import re
from dataclasses import replace

import triton

from ..box.wire import Fault, Trouble
from ..exercises.spec import Tag
from ..verdict import Finding
from ..versions import when
from . import refusals
from .observation import GPU_FAULT, Observation, program_in_words, shape_in_words

_DESCRIPTOR_STORE = re.compile(r"(?<!\btl)\.store\(|store_tensor_descriptor")  # a line that stores through a descriptor
_VERBS = {"load": "reads", "store": "writes"}


def invalid_access(o: Observation) -> Finding | None:
    """What compute-sanitizer found."""
    if (a := o.access) is None:
        return None
    return Finding(
        f"out-of-bounds-{a.kind}",
        f"Program {program_in_words(a.program)} of {a.kernel} {_VERBS[a.kind]} {a.size} bytes that are in no tensor "
        f"({o.case.name}, found by compute-sanitizer).",
        "These lanes access memory outside of their tensor.",
        "check the pointer arithmetic and the mask of this access.",
        a.line,
    )


def died(o: Observation) -> Finding | None:
    if o.exceeded == "space":
        return _out_of_memory(o, Trouble("memory"))
    if o.exceeded:
        where, why = "A kernel", ""
        if o.stage == "plan":
            where = "The host function, or the compiler's reading of a kernel,"
            why = " tl.static_range writes its body once for each step."
        return Finding(
            "timeout",
            f"{where} did not end in time ({o.case.name}).",
            f"A loop that never reaches its end runs forever.{why} A grid of very many programs takes too long: "
            "they are tiny, or there is one for each element where one for each block is enough.",
            "check that every loop advances towards its end, that BLOCK_SIZE is at least 128, and that the grid counts "
            "blocks: triton.cdiv(n, BLOCK_SIZE).",
        )
    if o.death:
        name = {9: "was killed (out of memory, or too long)", 11: "ended with a segmentation fault",
                6: "aborted", 7: "ended with a bus error", 4: "ended with an illegal instruction",
                31: "made a system call that is not allowed"}  # fmt: skip
        name = name.get(-o.death, "ended before it finished")
        return Finding(
            "crash",
            f"The process that ran your code {name} ({o.case.name}).",
            "Usually a pointer is far outside of its tensor, or the code ends its own process.",
            "check every number that is added to a pointer.",
        )
    return None


def troubled(o: Observation) -> Finding | None:
    """Exceptions, refusals, and steps that cannot be replayed."""
    t = o.trouble
    if t is None:
        return None
    return {
        "syntax": _syntax,
        "compile": _refused,
        "false-promise": _false_promise,
        "never-ends": _never_ends,
        "device-assert": _device_assert,
        "not-allowed": _not_allowed,
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


def _refused(o, t):
    finding = refusals.refused(t)
    if finding.advice != refusals.COMPARE:
        return finding
    return replace(finding, advice=_advice(t.message, t.code, refusals.COMPARE))


def _not_allowed(o, t):
    return Finding(
        "not-allowed",
        f"The kernel uses {t.construct}, which cannot be judged here.",
        "Triton has more features than this course can judge: some of them only a GPU can run.",
        "write it with the functions of `tl` from the lessons.",
        t.line,
        t.code,
    )


def _false_promise(o, t):
    return Finding(
        "false-promise",
        f"{t.construct} promises the compiler something that is not true ({o.case.name}).",
        "The compiler believes it, and may read and write several elements at once where that is not possible.",
        "leave the promise out, or promise only what holds for every size and every program.",
        t.line,
        t.code,
    )


def _never_ends(o, t):
    return Finding(
        "timeout",
        f"A kernel never ends: {t.construct} ({o.case.name}).",
        "A program waits or loops until something changes, and nothing changes it.",
        "check that every loop advances towards its end, and that what a program waits for is always written.",
        t.line,
        t.code,
    )


def _device_assert(o, t):
    return Finding(
        "runtime-error",
        f"tl.device_assert failed: {t.message.partition('. line ')[0]} ({o.case.name}).",
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
        f"{t.message} ({o.case.name}).",
        "A kernel runs on the device of its tensors, and the caller expects the result on the same device.",
        "make tensors on the input's device: torch.empty_like(x), or device=x.device.",
        t.line,
        t.code,
    )


def _out_of_memory(o, t):
    return Finding(
        "out-of-memory",
        f"The code asked for more memory than is available ({o.case.name}).",
        "Temporary tensors grow with the input. A block that holds a whole row grows with the row.",
        "allocate one output of the input's shape, and go through long rows block by block.",
        t.line,
        t.code,
    )


def _garbled(o, t):
    return Finding(
        "crash",
        f"The process that ran your code sent something that is not a report: {t.message} ({o.case.name}).",
        "The process writes its reports to a file descriptor of its own. Your code must not write to it.",
        "write only to file descriptors that your code opened.",
    )


# What torch says where there is no GPU; a build for CUDA or ROCm names the driver, a build for the CPU itself.
_NO_DEVICE = re.compile(r"cuda|\bhip\b|NVIDIA driver", re.I)
_MEMORY = re.compile(
    r"out of memory|OutOfResources|out of resource|(can't|cannot) allocate memory|not enough memory|"
    r"storage size calculation overflowed|unable to allocate",
    re.I,
)

# Common mistakes of beginners, by the message that Triton raises. The message is about Triton; the advice is about
# the learner's line.
_ADVICE = (
    (r"^NameError: name '(torch|triton|tl|jax|jnp|jt|np|math|functools|workshop|device|DEVICE)'",
     "run the notebook's first cell, then the answer cell, and check again. In a file of your own, write the import."),
    (r"^NameError.*Did you mean", "correct the spelling of this name."),
    (r"missing 1 required positional argument: 'meta'|\[grid\(\)\]",
     "pass the grid function itself, without calling it: kernel[grid](…). Triton calls it."),
    (r"launch grid is a tuple", "write the comma of a tuple with one number: (programs,)."),
    (r"attribute 'all_kwargs'", 'a space is a list of triton.Config objects: triton.Config({"BLOCK_SIZE": 1024}).'),
    (r"'dict' object has no attribute '\w*(BLOCK|QUARTER|ROWS)",
     'what the grid function gets is a dictionary: meta["BLOCK_SIZE"].'),
    (r"^KeyError.*\bmeta\[", "the dictionary has the names of the configurations: write the name as in triton.Config."),
    (r"can only convert an array|cannot convert float NaN|(float|int)\(\) argument must be|\b(float|int)\(tl\.",
     "Python's float and int take one number. For the values of a kernel, write .to(tl.float32) or .to(tl.int32)."),
    (r"block cannot be a condition", "write the line with tl.where."),
    (r"Shape element \d+ must have type",
     "the shape of a block must be known when the kernel is compiled: use a tl.constexpr parameter, such as "
     "BLOCK_SIZE."),
    (r"invalid operands of type pointer<\w+> and [\w.]*float.*\+",
     "what is added to a pointer must be a whole number, and this is a float. Does the launch pass its arguments in "
     "the order of the kernel's parameters?"),
    (r"^NameError: name '\w*(BLOCK|QUARTER|ROWS)\w*'",
     "a constant of the kernel has no value in the host function. If autotune chooses it, make the grid a function: "
     'Triton calls it with a dictionary of the chosen values, such as meta["BLOCK_SIZE"].'),
    (r"^(NameError|UnboundLocalError)",
     "check the spelling of this name. If it is right, give it a value above this line; if another cell does that, run "
     "that cell, then this one."),
    (r"AssertionError.*\btl\.rand",
     "the seed must be a number, and a pointer is an address: load the seed first, tl.load(seed_ptr)."),
    (r"axis \d+ out of bounds for shape", "a block of one dimension has only axis 0: tl.max(block, axis=0)."),
    (r"unexpected keyword argument 'axis'.*tl\.softmax",
     "tl.softmax knows one block only, and its argument is dim. Write the steps yourself: tl.max, tl.exp, tl.sum and "
     "a division."),
    (r"unexpected keyword argument 'dim'", "Triton says axis where torch says dim: axis=0."),
    (r"unexpected keyword argument 'keepdim'", "Triton's argument is keep_dims. Without it, a block gives a number."),
    (r"must be of type tl\.constexpr",
     "tl.arange takes only constants: declare the parameter as BLOCK_SIZE: tl.constexpr, and add the start."),
    (r"range must be a power of 2", "make the block size a power of two, and mask the lanes that have no element."),
    (r"operands of type pointer<",
     "a pointer is an address: load the number that lies there first, such as p = tl.load(p_ptr)."),
    (r"add pointers together", "a pointer is an address: tl.load(pointer + offsets, mask=mask) reads the values."),
    (r"Mask must have boolean", "a mask is a comparison, true or false for each lane: mask = offsets < n."),
    (r"Unsupported ptr type", "tl.load takes a pointer, and this is a number: use it without tl.load. A seed that JAX "
     "traces comes as an array: jnp.asarray(seed, jnp.int32)."),
    (r"cannot be block type if pointer", "add the offsets to the pointer: x_ptr + offsets."),
    (r"'DeviceFacts' object", "device is an object with the fields name, backend, arch, multiprocessors, registers, "
     "shared_memory, warp_size and max_threads: write device.warp_size."),
    (r"'InterpretedFunction' object has no attribute",
     "the judge compiles nothing for your function: compile in a cell of your own, read the numbers, and return them."),
    (r"not iterable.*_(ptr|row)\[|not subscriptable",
     "a pointer is not a tensor: write x_ptr + offsets, not x_ptr[offsets]."),
    (r"no len\(\)|IndexError.*\.shape\[",
     "a kernel gets a pointer, which has no shape: pass lengths from the host as numbers, such as n_cols."),
    (r"Loop-carried.* fp32\S* but is re-assigned to fp64",
     "a number that is too large for float32 makes everything that it meets float64: write -3.4e38, or convert with "
     ".to(tl.float32)."),
    (r"Loop-carried", "a variable that is a number before the loop must stay a number: use tl.sum(block, axis=0) or "
     "tl.max(block, axis=0). Or begin with a block, such as tl.zeros((BLOCK_SIZE,), tl.float32)."),
    (r"argument: 'axis'", "name the dimension of the launch grid: tl.program_id(axis=0)."),
    (r"axis \[", "tl.max(block, axis=0) is the largest value of one block; tl.maximum(a, b) is the larger of two."),
    (r"attribute 'scalar'|outside of the scope of a kernel", "say how many programs to start: kernel[grid](…)."),
    (r"returned .*, not a tensor|returned None", "end the function with `return` and the output tensor."),
    (r"multiple values for keyword", "autotune passes this argument: leave it out of the launch."),
    (r"^ZeroDivisionError", "the divisor is 0 in this case: handle this case separately."),
    (r"returned None", "end the function with `return` and its result."),
)  # fmt: skip


def _advice(text: str, code: str, otherwise: str) -> str:
    return next((advice for pattern, advice in _ADVICE if re.search(pattern, f"{text} {code}")), otherwise)


def _readable(text: str) -> str:
    """Shortens printed arrays, and hides the name of the function that replaces a launch."""
    text = re.sub(r"\[[-+.\de\s]{80,}\]?", "[…]", text)
    text = re.sub(r"'constexpr\[(\w+)\]'", r"\1", text)  # sizes in Triton's messages
    text = re.sub(r"The error occurred while tracing the function \S+ at \S+ for \w+\. ", "", text)  # the judge's file
    text = re.sub(r"functools\.partial\(<function Launches\.install.*>\)", "the launch", text)
    return re.sub(r"\bautograder\.[\w.<>]+\.run\(\)", "the launch", text)


def _not_permitted(o, t):
    compiler = "a compiler, " if o.exercise.kind == "value" else ""
    return Finding(
        "runtime-error",
        f"{t.type}: the code asked the system for something that is not allowed where it is judged ({o.case.name}).",
        f"The judge runs your function without {compiler}files, a network and other programs.",
        "run xray in a cell of your own, read its table, and return the numbers that you read."
        if compiler
        else "compute the result from the arguments alone.",
        t.line,
        t.code,
    )


def _exception(o, t):
    text = _readable(f"{t.type}: {t.message}".strip(": "))
    short = text if len(text) < 600 else text[:600] + " …"
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
        return replace(_out_of_memory(o, t), happened=f"{short} ({o.case.name})")
    if GPU_FAULT.search(text):
        return Finding(
            "crash",
            f"The GPU stopped the kernel: {short} ({o.case.name})",
            "A lane used an invalid pointer.",
            "check every number that is added to a pointer.",
        )
    without_gpu = o.stage == "plan" and o.backend == "interpreter"
    if without_gpu and _NO_DEVICE.search(text):
        return Finding(
            "wrong-device",
            f"{short}",
            "This machine has no GPU, and the input is on the CPU.",
            "make tensors on the input's device: torch.empty_like(x), or device=x.device.",
            t.line,
            t.code,
        )
    if o.stage == "replay":
        return Finding(
            "compile-error" if o.backend != "interpreter" else "runtime-error",
            f"The kernel cannot be launched: {short}",
            advice=_advice(text, t.code, "compare the message with the line: which value is not what you expected?"),
            line=t.line,
            code=t.code,
        )
    refused = o.stage == "plan" and re.match(r"\s*(raise|assert)\b", t.code)
    return Finding(
        "runtime-error",
        f"{short} ({o.case.name})",
        f"The function must accept this input: {o.case.name}." if refused else "",
        "" if refused else _advice(text, t.code, "read the message: the line above raised it." if t.line else ""),
        t.line,
        t.code,
    )


_OTHER_FORM = re.compile(r"\w+ returned (?!None|nothing)(\w+), not a (tensor|JAX array)")


def _other_form(o, kind: str, expected: str):
    several = kind in ("list", "tuple", "dict", "set", "Size")
    return Finding(
        "wrong-shape" if several else "wrong-dtype",
        f"{o.exercise.entry} returned {kind}, expected one {expected} ({o.case.name}).",
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
        f"{', ' if one else f': {lanes}'}at {f.where}. {form}({o.case.name})."
    )
    return Finding(slug, happened, *_why_outside(o, f), line=f.line, code=f.code)


def _is_one_number(o, f: Fault) -> bool:
    """Whether the kernel of this access has no blocks, so that lanes, masks and strides are not its words."""
    return f.lanes == 1 and f.lane == 0 and not o.constants


def _why_outside(o, f: Fault):
    if _is_one_number(o, f):
        return (
            "A pointer plus a number is a place in memory. This place belongs to no element of the tensor.",
            "check the number that is added to the pointer, for the first program and for the last one.",
        )
    if f.kind == "store" and _DESCRIPTOR_STORE.search(f.code):
        return (
            "A Hopper GPU stores the block of a tensor descriptor in units of 16 bytes. A row whose length is no "
            "multiple of 16 bytes is followed by zeros, which overwrite other data.",
            "use the descriptor for whole blocks, and tl.store with a mask for the rest.",
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
    return (
        "These lanes access memory outside of their tensor.",
        "check the pointer arithmetic and the mask of this access.",
    )
