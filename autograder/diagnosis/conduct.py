"""Rules that do not depend on an answer's numbers: what it did, and why it failed.

The box reports exceptions, refusals, faults, and processes that died.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import torch
import triton

from workshop import advice
from workshop.executor.records import Fault, Race, Undefined

from ..box.wire import Trouble
from ..exercises.spec import MAX_COUNTED_COLUMNS, Exercise, Strided, Tag
from ..text import many
from ..verdict import Finding
from ..versions import when
from .observation import GPU_FAULT, Observation, close


def _at(found: Trouble | Fault | Race | Undefined) -> dict:
    """The fields of a Finding that say where it is."""
    return {"line": found.line or None, "code": found.code, "tensor": getattr(found, "argument", "")}


def not_attempted(o: Observation) -> Finding | None:
    if not o.evidence.empty_kernels:
        return None
    return Finding(
        "not-attempted",
        f"The kernel does nothing: {', '.join(o.evidence.empty_kernels)} has no statement, or all of them stand below "
        "a `return`.",
        advice="write the body of the kernel, without a `return`.",
    )


def no_kernel(o: Observation) -> Finding | None:
    """Nothing was launched for an output with elements, from inputs with elements."""
    if o.result is None or o.evidence.launched or not math.prod(o.result.shape):
        return None
    given = [a.values.numel() for a in o.arguments if isinstance(a, Strided)]
    if given and not min(given):  # the sum of nothing is 0
        return None
    if o.comparison and not o.comparison.value.any():
        return Finding(
            "not-attempted",
            "The output is zero everywhere, and no Triton kernel wrote it.",
            advice="write the kernel, launch it with kernel[grid](…), and return the tensor that it stores to.",
        )
    return Finding(
        "no-triton-kernel",
        "No Triton kernel contributed to the output.",
        "A Triton kernel must compute the numbers of the output.",
        "launch your kernel with kernel[grid](…), and return the tensor that the kernel stores to.",
    )


def kept_from_earlier(o: Observation) -> Finding | None:
    """A later call used memory of an earlier one."""
    if o.trouble is None or o.trouble.kind != "kept":
        return None
    result = o.trouble.message == "the result"
    what = "memory of an earlier result" if result else "a tensor of an earlier call"
    return Finding(
        "wrong-value",
        f"{o.exercise.entry} uses {what} again.",
        "The caller still has that result: its numbers change now." if result else "It holds numbers of that call.",
        "make the output and every buffer anew in each call, with torch.empty_like or torch.empty; a counter begins as "
        "torch.zeros. Only plain numbers, such as a grid, may be kept.",
    )


def wrong_shape(o: Observation) -> Finding | None:
    expected = tuple(o.comparison.expected.shape) if o.comparison else None
    if o.result is None or expected is None or o.result.shape == expected:
        return None
    means, attempt = "", f"allocate it with the shape {expected}"
    if len(expected) > 1 and o.result.shape == expected[::-1]:
        means = "Rows and columns of the output are exchanged."
        attempt += ", and return this very tensor, without .T"
    elif expected in [tuple(each.values.shape) for each in o.arguments if isinstance(each, Strided)]:
        attempt = "allocate the output with the input's shape"
    happened = f"The output has shape {o.result.shape}, expected {expected}."
    return Finding("wrong-shape", happened, means, f"{attempt}.")


def wrong_dtype(o: Observation) -> Finding | None:
    wanted = o.comparison and str(o.comparison.got.dtype).removeprefix("torch.")
    if o.result is None or not wanted or o.result.dtype == wanted:
        return None
    return Finding(
        "wrong-dtype",
        f"The output is {o.result.dtype}, expected {wanted}.",
        "tl.store converts to the dtype of the tensor that it stores to.",
        f"allocate the output with dtype={f'torch.{wanted}' if o.exercise.output_dtype else 'x.dtype'}.",
    )


def not_contiguous(o: Observation) -> Finding | None:
    if o.result is None or o.result.contiguous or o.comparison is None or not o.exercise.contiguous:
        return None
    return Finding(
        "not-contiguous",
        "The output is not contiguous.",
        "The exercise asks for a new contiguous tensor. A view such as x.T is not contiguous, and empty_like keeps the "
        "order of its strides.",
        "allocate the output with torch.empty(shape, dtype=x.dtype, device=x.device), in the shape that it has in the "
        "end, and return it as it is.",
    )


def aliased(o: Observation) -> Finding | None:
    if o.result is None or not o.result.aliases_input:
        return None
    return Finding(
        "input-modified",
        "The returned tensor shares memory with the input.",
        "The exercise asks for a new tensor, because the caller still needs the input.",
        "allocate the output with torch.empty_like(x); the kernel reads x and stores to the output. x.contiguous(), "
        "x.view and x.t() are no copies: they give x's own memory where they can.",
    )


def damaged(o: Observation) -> Finding | None:
    if "out-of-bounds-store" in o.evidence.damage:
        return Finding(
            "out-of-bounds-store",
            "Memory around a tensor was overwritten.",
            "The store has no mask, or its mask is true for too many lanes. It writes past the end of the tensor or "
            "into the gaps between rows.",
            "give the store a mask that is true only for elements of the tensor.",
        )
    if "input-modified" in o.evidence.damage:
        names = [name for name, a in zip(o.exercise.parameters, o.arguments) if isinstance(a, Strided)]
        names = [*names, *["the incoming gradient"] * (o.case.gradient is not None)]
        changed = " and ".join(names[i] for i in o.evidence.changed if 0 <= i < len(names)) or "an input"
        return Finding(
            "input-modified",
            f"The kernels or the host function changed {changed}.",
            "The caller still needs it. x.detach(), x.data, x.contiguous(), x.view and x.t() are no copies: they give "
            "x's own memory where they can.",
            "store only to tensors that the function has made, with torch.empty or torch.empty_like.",
        )
    return None


def accumulated(o: Observation) -> Finding | None:
    """A kernel that adds to its output, under an autotuner that runs it many times."""
    if o.wrong is None or not o.evidence.accumulates:
        return None
    return Finding(
        "wrong-value",
        f"{o.worst_in_words} The kernel reads what it wrote in an earlier run.",
        "To measure a configuration, autotune runs the kernel many times on the same tensors. A kernel that adds to "
        "its output adds each time.",
        "store the result without reading the output. Or tell autotune to put back what was there before each run: "
        'restore_value=["output_ptr"], with the name that your kernel has for it.',
    )


def wrong_program(o: Observation) -> Finding | None:
    """All programs worked on the same part. The rest was not written, or still holds its fill value."""
    c = o.wrong
    race = next((race for race in o.evidence.races if not race.within), None)
    if c is None or race is None:
        return None
    left = c.bad & c.unwritten
    if race.same_value and int(c.bad.sum()) > 1 and len(c.value[c.bad].unique()) == 1:
        left = c.bad
    # Blocks that overlap are no repetition: there, elements at the ends have one writer.
    if not left.any() or race.elements < int((~left).sum()):
        return None
    return Finding(
        "wrong-program-id",
        f"Several programs wrote the same elements of {race.argument}, and {int(left.sum())} of "
        f"{c.bad.numel()} elements were never written.",
        "Programs should divide the work, but here they all do the same part.",
        o.place_of_a_program,
        **_at(race),
    )


def raced(o: Observation) -> Finding | None:
    """Two programs or two lanes wrote different values to one element, or one read what the other writes, or most of
    the work is done several times. A last block that was moved back and overlaps the block before it is no race."""
    race = next((r for r in o.evidence.races if _is_serious(r, o)), None)
    if race is None:
        return None
    happened, means, attempt = advice.raced(race)
    if race.kind == "write-write" and not race.within and o.comparison:
        place = f"compute the offsets from tl.program_id: {o.place_of_a_program}"
        attempt = f"give each element to one program, and {place}"
    return Finding("race", happened, means, attempt, **_at(race))


def _is_serious(race: Race, o: Observation) -> bool:
    if race.within and race.kind == "write-read" and Tag.SHORT in o.case.about:
        return False  # a block of one element looks like a number there
    if race.kind != "write-write" or not race.same_value or race.writers > 2:
        return True
    return race.share >= 0.9 and Tag.RAGGED not in o.case.about  # a last tile of rows may be moved back, too


def misplaced(o: Observation) -> Finding | None:
    """Each wrong row holds the right result of another row."""
    c = o.wrong
    if c is None or c.flat or c.expected.ndim != 2 or not c.varies:
        return None
    wrong = (c.bad_rows & ~c.unwritten.any(1)).nonzero().flatten().tolist()[:16]
    finite = torch.isfinite(c.expected)

    def alike(i: int) -> torch.Tensor:
        """The rows whose right result is in row i."""
        return (close(c.value[i].expand_as(finite), c.expected, c.bound.relative, 0.0) & finite).all(1)

    if not wrong or not all(bool(alike(i).any()) for i in wrong):
        return None
    row, origin = wrong[0], int(alike(wrong[0]).nonzero()[0])
    return Finding(
        "wrong-program-id",
        f"Row {row} of the output holds the result of row {origin}.",
        "The kernel read one row and wrote its result to another row.",
        "use the same row number in in_ptr + row * in_stride and in output_ptr + row * output_stride: "
        "tl.program_id(0), or the variable of the loop over rows.",
    )


def undefined(o: Observation) -> Finding | None:
    """A kernel read what nothing had written; or a value of lanes that a mask switched off was stored, or decided which
    way a program went."""
    kinds = {"read", "condition", "store"} if o.wrong else {"read", "condition"}
    used = sorted((each for each in o.evidence.undefined if each.kind in kinds), key=lambda each: each.kind != "read")
    if not used:
        return None
    slug = "uninitialised-read" if used[0].kind == "read" else "relies-on-masked-lanes"
    return Finding(slug, *advice.undefined(used[0]), **_at(used[0]))


def wrong_number_of_programs(o: Observation) -> Finding | None:
    """The numbers are right, but the exercise asks for more programs, or for one."""
    if o.comparison is None or not o.comparison.right:
        return None
    return other_programs(o.exercise, o.values, o.programs)


def other_programs(exercise: Exercise, values: tuple, programs: Sequence[int], **device) -> Finding | None:
    """programs: of each launch. device: its `multiprocessors`, if it is not the stand-in."""
    if exercise.in_one_program and max((1, *programs)) > 1:
        return Finding(
            "wrong-program-id",
            f"The numbers are right, but a launch has {max(programs)} programs. The exercise asks for one program.",
            "One program is to go through all of it, in a loop.",
            "launch the kernel with the grid (1,).",
        )
    started = (max if exercise.in_one_launch else sum)((0, *programs))
    if exercise.programs_at_least is None or started >= (least := exercise.programs_at_least(*values, **device)):
        return None
    return Finding(
        "wrong-program-id",
        f"The numbers are right, but the answer launched {many(started, 'program', 'programs')}. The exercise asks "
        f"for at least {least}.",
        "A block or a loop does the work that several programs should share.",
        f"launch at least {least} programs, and let each do its own part: tl.program_id(axis=0) says which one it is.",
    )


def changing_bits(o: Observation) -> Finding | None:
    """The numbers are right, but the order of their additions is open."""
    if not o.exercise.same_bits or not o.evidence.adds_atomically or o.comparison is None or not o.comparison.right:
        return None
    return Finding(
        "race",
        "The numbers are right, but programs add to them with tl.atomic_add.",
        "The order of the additions differs from call to call, and each addition rounds: the last bits differ, too.",
        "let each program store its part to a place of its own, and add the parts in a second kernel.",
    )


def reads_too_often(o: Observation) -> Finding | None:
    """The numbers are right, but the kernels read an input again and again."""
    limit, c = o.exercise.reads_per_element if o.case.gradient is None else None, o.comparison
    if limit is None or c is None or not c.right or Tag.SHORT in o.case.about:  # there one load more is a whole pass
        return None
    tensors = [(n, a) for n, a in zip(o.exercise.parameters, o.arguments, strict=False) if isinstance(a, Strided)]
    limit *= max(sum(a is other for _, other in tensors) for _, a in tensors)  # one tensor may be given twice
    largest = max((argument.values.numel() for _, argument in tensors), default=0)
    counted = [
        (reads, name)
        for reads, (name, argument) in zip(o.evidence.reads, tensors, strict=False)
        if 2 * argument.values.numel() >= largest > 0 and (argument.values.shape or (1,))[-1] <= MAX_COUNTED_COLUMNS
    ]
    reads, name = max(counted, default=(0.0, ""))
    if reads <= limit + 0.5:  # a row that two tiles share is read a little more often
        return None
    return Finding(
        "reads-too-often",
        f"Each element of {name} is read {_times(reads)}; the lesson's kernel reads it {_times(limit)}.",
        "The result is right. But memory limits the speed of this kernel, so each further pass over the rows costs "
        "time.",
        "load the whole row as one block, and keep it in a variable: one tl.load, then everything else."
        if limit == 1
        else "compute more in each pass: the maximum and the sum can be found in the same loop.",
    )


def writes_too_often(o: Observation) -> Finding | None:
    """The numbers are right, but the kernels write more than the output."""
    c = o.comparison
    if not o.exercise.writes_once or c is None or not c.right:
        return None
    written = o.evidence.stored / max(c.got.numel() * c.got.itemsize, 1)
    if written <= 1.5:  # tiles that overlap at a ragged end write a little more
        return None
    return Finding(
        "writes-too-often",
        f"The kernels write {_times(written)} as many bytes as the output has.",
        "The result is right. But a matrix in between is written to memory, and read again: that is what a fused "
        "kernel is there to avoid.",
        "compute everything on the tile that is still in registers, and store it once, at the end.",
    )


def _times(count: float) -> str:
    words = {1: "once", 2: "twice", 3: "three times", 4: "four times"}
    return words.get(round(count, 1)) or f"{count:.2g} times"


MANY_PROGRAMS = 256  # of a launch; with fewer, a loop is what takes long
_VENDORS = {"cuda": "NVIDIA", "hip": "AMD"}


def died(o: Observation) -> Finding | None:
    if o.exceeded == "space":
        return _told("memory", o, Trouble("memory"))
    if o.exceeded:
        return _too_slow(o)
    if o.death:
        name = {9: "was killed (out of memory, or too long)", 11: "ended with a segmentation fault",
                6: "aborted", 7: "ended with a bus error", 4: "ended with an illegal instruction",
                31: "made a system call that is not allowed"}  # fmt: skip
        name = name.get(-o.death, "ended before it finished")
        happened = f"The process that ran your code {name}."
        if o.stage == "plan":  # where Python runs, and no kernel
            return Finding("crash", happened, advice="return the result, and do not end the process yourself.")
        means = "Usually a pointer is far outside of its tensor, or the code ends its own process."
        return Finding("crash", happened, means, "check every number that is added to a pointer.")
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
        "A loop that never reaches its end runs forever. Or it ends, and has too many rounds that do little.",
        "check that every loop advances towards its end, and takes a block in each round.",
    )


def troubled(o: Observation) -> Finding | None:
    """Exceptions, refusals, and steps that cannot be replayed."""
    t = o.trouble
    if t is None:
        return None
    if t.kind in _TOLD:
        return _told(t.kind, o, t)
    if t.kind in advice.STOPPED:
        return Finding(_STOPS.get(t.kind, "runtime-error"), *advice.stopped(t.kind, t.construct), **_at(t))
    if t.kind == "syntax":
        message = re.sub(r" \(<answer>(, line \d+)?\)$", "", t.message)
        told = f"Python cannot read the code: {message}", *advice.meaning(message)
        return Finding("syntax-error", *told, **_at(t))
    if t.kind == "compile":
        return refused(t)
    return {"fault": _fault, "returned": _returned}.get(t.kind, _exception)(o, t)


_STOPS = {"false-promise": "false-promise", "never-ends": "timeout", "too-long": "timeout",
          "not-allowed": "not-allowed"}  # fmt: skip  # others: errors
# Of a kind of trouble: the slug, what happened, what it means and what to try.
_TOLD = {
    "not-loaded": (
        "not-allowed",
        "The code needs the module {t.construct}, which cannot be loaded where it is judged.",
        "The judge runs the code without files. The module is installed, and the answer may be right.",
        "write the function without this module, or without the part of torch that loads it.",
    ),
    "not-in-triton": (
        "not-in-this-triton",
        "Triton {triton}, which runs here, does not have {t.construct}. {when}",
        "The answer may be right with another version of Triton, but it cannot be judged here.",
        "use pointers with a mask, and the functions from the lessons: they work in every version.",
    ),
    "missing-entry": (
        "not-attempted", "There is no function {o.exercise.entry}.", "", "define {o.exercise.signature}.",
    ),
    "host-arithmetic": (
        "no-triton-kernel",
        "torch computed part of the result on the host: {t.message}.",
        "A Triton kernel must compute the numbers of the output. The host function may allocate, copy, cast, view and "
        "launch.",
        "move {t.message} into the kernel, or leave it out if the exercise does not ask for it.",
    ),
    "not-replayable": (
        "no-triton-kernel",
        "The host function does something that the judge cannot replay: {t.message}.",
        "The host function may allocate, copy, cast, view and launch. The kernels must do the computing.",
        "use only torch.empty, .contiguous(), .to(dtype), views and kernel launches in the host function.",
    ),
    "wrong-device": (
        "wrong-device",
        "{t.message}.",
        "A kernel runs on the device of its tensors, and the caller expects the result on the same device.",
        "make tensors on the input's device: torch.empty_like(x), or device=x.device.",
    ),
    "memory": (
        "out-of-memory",
        "The code asked for more memory than is available.",
        "Temporary tensors grow with the input. A block that holds a whole row grows with the row.",
        "allocate one output of the input's shape, and go through long rows block by block.",
    ),
    "launch-option": (
        "compile-error",
        "The launch options do not fit a GPU: {t.message}.",
        "A GPU refuses such a launch.",
        "use 1, 2, 4, 8 or 16 warps, and leave out options that you do not need.",
    ),
    "garbled": (
        "crash",
        "The process that ran your code sent something that is not a report: {t.message}.",
        "The process writes its reports to a file descriptor of its own. Your code must not write to it.",
        "write only to file descriptors that your code opened.",
    ),
}  # fmt: skip


def _told(kind: str, o: Observation, t: Trouble) -> Finding:
    slug, *texts = _TOLD[kind]
    told = (text.format(o=o, t=t, triton=triton.__version__, when=when(t.construct)) for text in texts)
    return Finding(slug, *told, **_at(t))


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


def _exception(o, t):
    text = _readable(f"{t.type}: {t.message}".strip(": "))
    if t.type == "NotImplementedError":
        happened = t.message or f"{o.exercise.entry} raises NotImplementedError."
        return Finding("not-attempted", happened, advice="write the body of the function.")
    if "CUDACachingAllocator" in text:  # an assertion of torch: the box hides the driver's count of free memory
        return _told("memory", o, t)
    if t.type == "PermissionError":
        compiler = "a compiler, " if o.exercise.kind == "value" else ""
        return Finding(
            "runtime-error",
            f"{t.type}: the code asked the system for something that is not allowed where it is judged.",
            f"The judge runs your function without {compiler}files, a network and other programs.",
            "run xray in a cell of your own, read its table, and return the numbers that you read."
            if compiler
            else "compute the result from the arguments alone.",
            **_at(t),
        )
    if _MEMORY.search(text):
        return replace(_told("memory", o, t), happened=text)
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
        return Finding(slug, f"The kernel cannot be launched: {text}", means, attempt or advice.COMPARE, **_at(t))
    if o.backend == "interpreter" and _NO_DEVICE.search(text):
        attempt = "leave .cuda() out, and make tensors on the input's device: torch.empty_like(x), or device=x.device."
        return Finding("wrong-device", text, _NO_GPU, attempt, **_at(t))
    return _raised(o, t, text)


def _raised(o, t, text: str):
    """An exception of the host function."""
    means, attempt = advice.meaning(text)
    if not attempt:
        means = f"{o.exercise.entry} must accept this input."
        if o.backend == "interpreter" and t.type == "AssertionError":
            means, attempt = f"{means} {_NO_GPU}", "if the line asks for a GPU, leave it out."
    return Finding("runtime-error", text, means, attempt, **_at(t))


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
            f"{f.argument} has shape {f.shape}, and the output has shape {o.expected}.",
            "The kernel writes past its end.",
            f"allocate it with the shape {o.expected}.",
            **_at(f),
        )
    about = o.case.about
    told = advice.outside(f, ragged=Tag.RAGGED in about, strided=Tag.STRIDED in about)
    slug = f"out-of-bounds-{'load' if f.kind == 'load' else 'store'}"
    return Finding(slug, *told, **_at(f), sure=advice.lies_between_parts(f))


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
    return Finding("compile-error", happened, means, attempt, **_at(t))


def too_much_shared_memory(kernel: str, needed: int, most: int) -> Finding:
    return Finding(
        "out-of-memory",
        f"A program of {kernel} needs {needed:,} bytes of shared memory. No GPU of the course has more than {most:,}.",
        "The tiles that a program keeps, and the copies that the compiler makes to load ahead, lie in shared memory.",
        "keep the tiles small, whatever the size of the tensors, and walk along the rest in a loop"
        + " or use fewer stages (num_stages)." * (needed <= 2 * most) + "." * (needed > 2 * most),
    )
