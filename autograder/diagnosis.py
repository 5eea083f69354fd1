"""From what was observed to the misconception that explains it.

RULES is read top to bottom; the first rule that recognises the observation answers. A rule looks at evidence,
never at the learner's text: which elements are wrong, which lanes left their tensor, what the output agrees
with, what the box reported.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import triton.language

from .box.messages import Evidence, Fault, Race, Result, Trouble
from .box.sanitizer import Access
from .compare import Comparison, agrees, close
from .exercises.spec import Case, Exercise, Mistake, Strided
from .verdict import Finding


@dataclass(frozen=True, eq=False)
class Observation:
    """One case: what was asked, and what came back."""

    exercise: Exercise
    case: Case
    arguments: tuple
    backend: str
    trouble: Trouble | None = None
    exceeded: str | None = None
    death: int = 0
    stage: str = "replay"
    result: Result | None = None
    evidence: Evidence = Evidence()
    comparison: Comparison | None = None
    constants: tuple[int, ...] = ()
    right_without_poison: bool = False
    access: Access | None = None
    code: str = ""

    @property
    def values(self) -> tuple:
        return tuple(a.values if isinstance(a, Strided) else a for a in self.arguments)

    @property
    def blocks(self) -> tuple[int, ...]:
        """Block sizes to look for in patterns: the constants of the launches, then the usual ones."""
        usual = (256, 128, 512, 1024, 64, 2048, 4096, 32, 16)
        return tuple(dict.fromkeys([c for c in self.constants if 2 <= c <= 1 << 20] + list(usual)))

    @property
    def harmed_the_card(self) -> bool:
        """Whether a kernel on a GPU left its tensors, or was ended by the driver."""
        if self.backend == "interpreter" or self.stage == "plan":
            return False
        faulted = self.trouble and _GPU_FAULT.search(f"{self.trouble.type}: {self.trouble.message}")
        return bool(faulted or self.death or "out-of-bounds-store" in self.evidence.damage)

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The known mistakes that compute this output."""
        c = self.comparison
        if c is None or c.right or not c.expected.numel():
            return ()
        return tuple(mistake for mistake in self.exercise.mistakes if _matches(mistake, self))


Rule = Callable[[Observation], Finding | None]
EARLY = 512  # stands for the exit status of a process that ended itself, as if all were well

# -- what the box reported ---------------------------------------------------------------------------------------


def invalid_access(o: Observation) -> Finding | None:
    """What compute-sanitizer saw."""
    if (a := o.access) is None:
        return None
    return Finding(
        f"out-of-bounds-{a.kind}",
        f"Program {_grid(a.program)} of {a.kernel} {'reads' if a.kind == 'load' else 'writes'} {a.size} bytes that "
        f"belong to no tensor ({o.case.name}, found by compute-sanitizer).",
        "Such lanes touch memory of somebody else.",
        "check the pointer arithmetic and the mask of this access.",
        a.line,
        o.code,
    )


def died(o: Observation) -> Finding | None:
    if o.exceeded == "space":
        return _out_of_memory(o, Trouble("memory"))
    if o.exceeded:
        where = "The host function" if o.stage == "plan" else "A kernel"
        return Finding(
            "timeout",
            f"{where} did not end in time ({o.case.name}).",
            "A loop whose bound does not come closer runs for ever; so does a grid of very many tiny programs.",
            "check that every loop advances towards its end, and that BLOCK_SIZE is at least 128.",
        )
    if o.death:
        name = {9: "was killed (out of memory, or too long)", 11: "ended with a segmentation fault",
                6: "aborted", 7: "ended with a bus error", 4: "ended with an illegal instruction",
                -EARLY: "ended before it was done",
                31: "made a system call that a kernel has no use for"}  # fmt: skip
        name = name.get(-o.death, "ended before it was done")
        return Finding(
            "crash",
            f"The process that ran your code {name} ({o.case.name}).",
            "Usually a pointer that left its tensor by far, or code that ends its own process.",
            "check every pointer: base + row * stride + column, with a mask.",
        )
    return None


def troubled(o: Observation) -> Finding | None:
    """Exceptions, refusals, and steps that are not replayed."""
    t = o.trouble
    if t is None:
        return None
    return {
        "syntax": _syntax,
        "not-allowed": _not_allowed,
        "missing-entry": _missing_entry,
        "host-arithmetic": _host_arithmetic,
        "not-replayable": _not_replayable,
        "memory": _out_of_memory,
        "wrong-device": _wrong_device,
        "fault": _fault,
    }.get(t.kind, _exception)(o, t)


def _syntax(o, t):
    message = re.sub(r" \(<answer>(, line \d+)?\)$", "", t.message)
    return Finding("syntax-error", f"Python cannot read the code: {message}", line=t.line, code=t.code)


_TRITON_TAKES_IT = re.compile(r"\ba kernel (defined|before)\b|\blong kernel\b")


def _not_allowed(o, t):
    name = re.match(r"`?(?:tl|triton\.language)\.([\w.]+)", t.construct)
    if name and hasattr(triton.language, name[1].partition(".")[0]) or _TRITON_TAKES_IT.search(t.construct):
        slug, why = "not-allowed", "Triton has more than this course judges: kernels are checked against a list."
    elif t.construct.startswith("the unknown name"):
        slug, why = "compile-error", ""
    else:
        slug, why = "compile-error", "A kernel is not Python: Triton compiles a small part of the language."
    return Finding(
        slug,
        f"{t.construct[:1].upper()}{t.construct[1:]} cannot be used in a kernel{' here' * (slug == 'not-allowed')}.",
        why,
        f"{t.instead.rstrip('.')}.",
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
        "The numbers of the output must come out of a Triton kernel. The host function may allocate, copy, cast, "
        "view and launch.",
        f"move {t.message or 'the operation'} into the kernel.",
        t.line,
        t.code,
    )


def _not_replayable(o, t):
    return Finding(
        "no-triton-kernel",
        f"The host function does something that is not replayed: {t.message}.",
        "It may allocate, copy, cast, view and launch; the kernels compute.",
        "keep the host function to torch.empty, .contiguous(), .to(dtype), views and kernel launches.",
        t.line,
        t.code,
    )


def _wrong_device(o, t):
    return Finding(
        "wrong-device",
        f"{t.message} ({o.case.name}).",
        "A kernel works where its tensors are, and the caller expects the result there too.",
        "make tensors where the input is: torch.empty_like(x), or device=x.device.",
        t.line,
        t.code,
    )


def _out_of_memory(o, t):
    return Finding(
        "out-of-memory",
        f"The code asked for more memory than there is ({o.case.name}).",
        "Scratch tensors grow with the input; a block as large as a row grows with the row.",
        "allocate one output of the input's shape, and walk long rows block by block.",
        t.line,
        t.code,
    )


LARGE = 300_000  # elements; a mistake that shows only in larger outputs is told by its pattern
_NO_DEVICE = re.compile(
    r"not compiled with CUDA|No CUDA GPUs|no NVIDIA driver|HIP|0 active drivers|device type|cuda", re.I
)
_MEMORY = re.compile(
    r"out of memory|OutOfResources|out of resource|(can't|cannot) allocate memory|not enough memory|"
    r"storage size calculation overflowed|unable to allocate",
    re.I,
)


_GPU_FAULT = re.compile(
    r"illegal memory access|misaligned address|unspecified launch failure|illegal instruction|"
    r"memory access fault|HSA_STATUS_ERROR|AcceleratorError|(CUDA|HIP) error",
    re.I,
)


# What beginners write, by the message it raises: the message is about Triton, the advice about the line.
_ADVICE = (
    (r"must be of type tl\.constexpr",
     "tl.arange takes constants only: declare the parameter as BLOCK_SIZE: tl.constexpr, and add the start."),
    (r"range must be a power of 2", "make the block a power of two, and mask the lanes that have no element."),
    (r"add pointers together", "a pointer is an address: tl.load(pointer + offsets, mask=mask) reads the values."),
    (r"cannot be block type if pointer", "add the offsets to the pointer: x_ptr + offsets."),
    (r"not iterable.*_(ptr|row)\[|not subscriptable", "a pointer is no tensor: x_ptr + offsets, not x_ptr[offsets]."),
    (r"no len\(\)|IndexError.*\.shape\[",
     "a kernel sees a pointer, which has no shape: pass lengths from the host as numbers, such as n_cols."),
    (r"Loop-carried", "what is a number before the loop must stay one: tl.sum(block, axis=0) or tl.max(block, axis=0); "
     "or begin with a block, such as tl.zeros((BLOCK_SIZE,), tl.float32)."),
    (r"argument: 'axis'", "name the dimension of the launch grid: tl.program_id(axis=0)."),
    (r"axis \[", "tl.max(block, axis=0) is the largest of one block; tl.maximum(a, b) is the larger of two."),
    (r"attribute 'scalar'|outside of the scope of a kernel", "say how many programs to start: kernel[grid](…)."),
    (r"returned .*, not a tensor|returned None", "end the function with `return` and the output tensor."),
    (r"multiple values for keyword", "autotune passes this one: leave it out of the launch."),
    (r"^ZeroDivisionError", "the divisor is 0 in this case: treat it by itself."),
    (r"returned None", "end the function with `return`, and what it made."),
)  # fmt: skip


def _advice(text: str, code: str, otherwise: str) -> str:
    return next((advice for pattern, advice in _ADVICE if re.search(pattern, f"{text} {code}")), otherwise)


def _readable(text: str) -> str:
    """Without the numbers of a whole array, and without the name of the function that stands in for a launch."""
    text = re.sub(r"\[[-+.\de\s]{80,}\]?", "[…]", text)
    return re.sub(r"\bautograder\.[\w.<>]+\.run\(\)", "the launch", text)


def _exception(o, t):
    text = _readable(f"{t.type}: {t.message}".strip(": "))
    short = text if len(text) < 600 else text[:600] + " …"
    if t.type == "NotImplementedError":
        happened = t.message or f"{o.exercise.entry} raises NotImplementedError."
        return Finding("not-attempted", happened, advice="write its body.")
    if "CUDACachingAllocator" in text:  # confined, torch cannot ask the driver how much is left, and asserts
        return _out_of_memory(o, t)
    if _MEMORY.search(text):
        return replace(_out_of_memory(o, t), happened=f"{short} ({o.case.name})")
    if _GPU_FAULT.search(text):
        return Finding(
            "crash",
            f"The GPU stopped the kernel: {short} ({o.case.name})",
            "A lane followed a pointer that leads nowhere.",
            "check every pointer: base + row * stride + column, with a mask.",
        )
    without_gpu = o.stage == "plan" and o.backend == "interpreter"
    if without_gpu and re.search(r"cuda|hip\b", text, re.I) and _NO_DEVICE.search(text):
        return Finding(
            "wrong-device",
            f"{short}",
            "This machine has no GPU, and the input is on the CPU.",
            "make tensors where the input is: torch.empty_like(x), or device=x.device.",
            t.line,
            t.code,
        )
    if o.stage == "replay":
        return Finding(
            "compile-error",
            f"Triton does not accept the kernel: {short}",
            advice=_advice(text, t.code, "read the message next to the line: which value is not what you took it for?"),
            line=t.line,
            code=t.code,
        )
    refused = o.stage == "plan" and re.match(r"\s*(raise|assert)\b", t.code)
    return Finding(
        "runtime-error",
        f"{short} ({o.case.name})",
        f"The function refused an input that it has to take: {o.case.name}." if refused else "",
        "" if refused else _advice(text, t.code, "read the message: the line above raised it." if t.line else ""),
        t.line,
        t.code,
    )


def _fault(o, t):
    f = t.fault
    if f is None:
        return _exception(o, t)
    slug = f"out-of-bounds-{'load' if f.kind == 'load' else 'store'}"
    lanes = f"{f.lanes} lane{'s' if f.lanes != 1 else ''}"
    happened = (
        f"Program {_grid(f.program)} {'reads' if f.kind == 'load' else 'writes'} outside of {f.argument}: {lanes}, the "
        f"first is lane {f.lane}, at {f.where}. {f.argument} has shape {_shape(f.shape)} and strides "
        f"{_shape(f.stride)} ({o.case.name})."
    )
    return Finding(slug, happened, *_why_outside(o, f), line=f.line, code=f.code)


def _why_outside(o, f: Fault):
    if "ragged" in o.case.about and "gap" not in f.where and f.lane:
        return (
            "The last block reaches past the end. On a GPU such lanes touch memory of somebody else.",
            "give every load and store a mask that is true only for elements of the tensor.",
        )
    if "strided" in o.case.about:
        return (
            "Rows lie further apart than they are long; between them is memory that is not yours.",
            "step from row to row by the stride of that tensor, x.stride(0), and mask the columns.",
        )
    return (
        "Such lanes touch memory of somebody else.",
        "check the pointer arithmetic and the mask of this access.",
    )


def _grid(program: tuple[int, ...]) -> str:
    """A program's place in its launch grid, without trailing zeros."""
    while len(program) > 1 and program[-1] == 0:
        program = program[:-1]
    return str(program[0]) if len(program) == 1 else str(tuple(program))


def _shape(shape) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


# -- what came back ----------------------------------------------------------------------------------------------


def not_attempted(o: Observation) -> Finding | None:
    if not o.evidence.empty_kernels:
        return None
    return Finding(
        "not-attempted",
        f"The kernel does nothing: {', '.join(o.evidence.empty_kernels)} has no statement.",
        advice="write its body.",
    )


def no_kernel(o: Observation) -> Finding | None:
    if o.result is None or o.evidence.launched or not math.prod(o.result.shape or (0,)):
        return None
    return Finding(
        "no-triton-kernel",
        f"No Triton kernel had a part in the output ({o.case.name}).",
        "The numbers of the output must come out of a Triton kernel.",
        "launch your kernel, kernel[grid](…), and return the tensor that it stores to.",
    )


def wrong_device(o: Observation) -> Finding | None:
    wanted = "cpu" if o.backend == "interpreter" else "cuda"
    if o.result is None or o.result.device == wanted:
        return None
    return Finding(
        "wrong-device",
        f"The output is on {o.result.device}, the input on {wanted}.",
        advice="allocate the output where the input is: torch.empty_like(x), or device=x.device.",
    )


def wrong_shape(o: Observation) -> Finding | None:
    expected = tuple(o.comparison.expected.shape) if o.comparison else None
    if o.result is None or expected is None or o.result.shape == expected:
        return None
    return Finding(
        "wrong-shape",
        f"The output has shape {_shape(o.result.shape)}, expected {_shape(expected)} ({o.case.name}).",
        advice="allocate the output with the input's shape."
        if _has_tensors(o)
        else f"allocate it with the shape {_shape(expected)}.",
    )


def wrong_dtype(o: Observation) -> Finding | None:
    wanted = o.comparison and str(o.comparison.got.dtype).removeprefix("torch.")
    if o.result is None or not wanted or o.result.dtype == wanted:
        return None
    return Finding(
        "wrong-dtype",
        f"The output is {o.result.dtype}, expected {wanted} ({o.case.name}).",
        "tl.store converts to the dtype of the tensor that it stores to.",
        f"allocate the output with dtype={'x.dtype' if _has_tensors(o) else f'torch.{wanted}'}.",
    )


def _has_tensors(o: Observation) -> bool:
    return any(isinstance(argument, Strided) for argument in o.arguments)


def not_contiguous(o: Observation) -> Finding | None:
    if o.result is None or o.result.contiguous or o.comparison is None or not _is_softmax(o.exercise):
        return None
    return Finding(
        "not-contiguous",
        f"The output is not contiguous ({o.case.name}).",
        "It is a view of something else; the contract asks for a new contiguous tensor.",
        "allocate exactly the output, torch.empty(x.shape, dtype=x.dtype, device=x.device), and store there.",
    )


def aliased(o: Observation) -> Finding | None:
    if o.result is None or not o.result.aliases_input:
        return None
    return Finding(
        "input-modified",
        f"The returned tensor shares memory with the input ({o.case.name}).",
        "The contract asks for a new tensor; the caller still needs the old one.",
        "allocate the output with torch.empty_like(x) and store there.",
    )


def damaged(o: Observation) -> Finding | None:
    if "out-of-bounds-store" in o.evidence.damage:
        return Finding(
            "out-of-bounds-store",
            f"Memory around a tensor was overwritten ({o.case.name}).",
            "A store without a mask, or a mask that is true too often, writes behind the end or into the gaps "
            "between rows.",
            "give the store a mask that is true only for elements of the tensor.",
        )
    if "input-modified" in o.evidence.damage:
        return Finding(
            "input-modified",
            f"The input changed ({o.case.name}).",
            "A kernel stored through the input's pointer, or the host function worked in place.",
            "store to the output's pointer only.",
        )
    return None


def wrong_program(o: Observation) -> Finding | None:
    """Every program worked on the same part, the rest was left alone: unwritten, or as it was filled."""
    c = o.comparison
    if c is None or c.right or not o.evidence.races:
        return None
    race = o.evidence.races[0]
    left = c.bad & c.unwritten
    if race.same_value and int(c.bad.sum()) > 1 and len(c.value[c.bad].unique()) == 1:
        left = c.bad
    if not left.any():
        return None
    return Finding(
        "wrong-program-id",
        f"Several programs wrote the same elements of {race.argument}, and {int(left.sum())} of "
        f"{c.bad.numel()} elements were never written ({o.case.name}).",
        "Programs that should share the work do the same part of it.",
        "let the offsets depend on tl.program_id(0): pid * BLOCK_SIZE, or pid * row_stride.",
        race.line or None,
        race.code,
    )


def raced(o: Observation) -> Finding | None:
    """Two programs wrote the same element with other values, or read what another one writes; or most of the
    work is done several times over. Two blocks that overlap where the last one was moved back are neither."""
    race = next((r for r in o.evidence.races if _is_serious(r, o)), None)
    if race is None:
        return None
    if race.kind != "write-write":
        return Finding(
            "race",
            f"{_programs(race)} share elements of {race.argument}: one reads what the other writes ({o.case.name}).",
            "Programs of one launch run in any order and at once: the reader may come before the writer.",
            "let a program read only what it wrote itself; or launch a second kernel, which begins when the first "
            "has ended; or use tl.atomic_add.",
            race.line or None,
            race.code,
        )
    return Finding(
        "race",
        f"{_programs(race)} both write to {race.argument}, {race.elements} element{'s' * (race.elements != 1)} in all "
        f"({o.case.name}).",
        "Programs run in any order and at once: who comes last wins, and it differs from run to run."
        if not race.same_value
        else "They write the same values there: the work is done several times over.",
        "give each element to one program: let the offsets depend on tl.program_id; a loop over rows starts there, "
        "and steps by tl.num_programs.",
        race.line or None,
        race.code,
    )


def _is_serious(race: Race, o: Observation) -> bool:
    if race.atomics:
        return o.comparison is not None and not o.comparison.right
    if race.kind != "write-write" or not race.same_value or race.writers > 2:
        return True
    return race.share >= 0.5 and "ragged" not in o.case.about


def _programs(race: Race) -> str:
    first, second = race.programs
    return f"Programs {first} and {second}" if first >= 0 else f"Program {second} and several others"


def misplaced(o: Observation) -> Finding | None:
    """Each wrong row is the right one of another row."""
    c = o.comparison
    if c is None or c.right or c.expected.ndim != 2 or not c.varies:
        return None
    wrong = (c.bad_rows & ~c.unwritten.any(1)).nonzero().flatten().tolist()[:16]
    finite = torch.isfinite(c.expected)
    same = [(close(c.value[i].expand_as(finite), c.expected, c.bound.relative, 0.0) & finite).all(1) for i in wrong]
    if not wrong or not all(bool(rows.any()) for rows in same):
        return None
    row, origin = wrong[0], int(same[0].nonzero()[0])
    return Finding(
        "wrong-program-id",
        f"Row {row} of the output holds what belongs into row {origin} ({o.case.name}).",
        "A row was read at one place and written to another.",
        "use the same row for both, in_ptr + row * in_stride and output_ptr + row * output_stride: "
        "tl.program_id(0), or the variable of the loop over rows.",
    )


def masked_lanes(o: Observation) -> Finding | None:
    if not o.right_without_poison:
        return None
    return Finding(
        "relies-on-masked-lanes",
        f"The result depends on what a masked-off lane holds ({o.case.name}).",
        "Without other=…, a masked-off lane of tl.load holds anything. It happened to be 0 here; on a GPU it may "
        "not be.",
        "say what such lanes read as: other=0.0 for a sum, other=-float('inf') for a maximum.",
    )


def known_mistake(o: Observation) -> Finding | None:
    return _as_mistake(o, o.mistakes[0]) if o.mistakes else None


def _as_mistake(o: Observation, mistake: Mistake) -> Finding:
    advice = mistake.advice[0].lower() + mistake.advice[1:]
    return Finding(mistake.slug, _worst(o), mistake.explanation, advice)


def _matches(mistake: Mistake, o: Observation) -> bool:
    """Whether the output is what this mistake computes, for one of the likely block sizes."""
    c = o.comparison
    for computed in _computed(mistake, o):
        if not agrees(c.value, computed, c.near) or agrees(computed, c.expected, c.near):
            continue
        if mistake.known_by_nan or bool((c.bad & torch.isfinite(computed)).any()):
            return True
    return False


def _would_be_wrong(mistake: Mistake, o: Observation) -> bool:
    """Whether this mistake would have spoilt a case that is right."""
    c = o.comparison
    if c is None or not c.right or not c.expected.numel():
        return False
    return not any(agrees(computed, c.expected, c.near) for computed in _computed(mistake, o))


def _computed(mistake: Mistake, o: Observation) -> Iterator[torch.Tensor]:
    """What the mistake computes, for each of the likely block sizes."""
    blockwise = "block" in inspect.signature(mistake.compute).parameters
    for block in o.constants or o.blocks if blockwise else (None,):
        try:
            computed = mistake.compute(*o.values, block=block) if blockwise else mistake.compute(*o.values)
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError):  # it has no meaning here
            continue
        yield computed.double()


def unwritten(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not bool((c.bad & c.unwritten).any()):
        return None
    count = f"{int(c.unwritten.sum())} of {c.bad.numel()} elements were never written ({o.case.name})."
    if c.unwritten.all():
        return Finding(
            "unwritten-output",
            count,
            "The store is missing, goes elsewhere, or its mask is true for too few lanes.",
            "store the result at output_ptr + offsets, with the mask of the loads.",
        )
    if block := c.only_tail(o.blocks):
        return Finding(
            "tail-wrong",
            f"{count} All of them lie in the last, ragged block (block size {block}).",
            "The grid or the loop ends before the remainder.",
            "round up: triton.cdiv(n, BLOCK_SIZE) programs, or range(0, n, BLOCK_SIZE).",
            second="unwritten-output",
        )
    return Finding(
        "unwritten-output",
        f"{count} One wrong element: {_index(c)}.",
        "No program reached them: the grid is too small, a loop ends early, or the store's mask is too narrow.",
        "count: programs × elements per program must cover the output.",
    )


def not_finite(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right:
        return None
    odd = ~torch.isfinite(c.value) & torch.isfinite(c.expected)
    if not odd.any():
        return None
    where = f"{_worst(o)} {int(odd.sum())} elements are NaN or infinite."
    if o.case.about & {"huge", "ascending", "descending"}:
        return Finding(
            "overflow",
            where,
            "exp overflows (exp(89) is inf in float32), or a row is divided by a sum without its largest term.",
            "subtract the maximum of the whole row before exp, and let the sum take in every block: tl.sum, and +=.",
        )
    if "masked" in o.case.about:
        return Finding(
            "nan",
            where,
            "A block of nothing but -inf keeps the running maximum at -inf, and -inf - (-inf) is NaN, in the rescale "
            "and in the block's exponentials.",
            "subtract tl.where(maximum == -float('inf'), 0.0, maximum) in both.",
        )
    if "half" in o.case.about and bool(torch.isinf(c.value).any()):
        return Finding(
            "low-precision", where, "float16 ends at 65504: a sum or an exponential kept in it overflows.",
            "convert to float32 right after the load: x.to(tl.float32).", second="overflow",
        )  # fmt: skip
    return Finding(
        "nan",
        where,
        "NaN comes from inf - inf, 0 * inf, 0 / 0 or inf / inf, or from a lane that was never loaded."
        if c.value.isnan().any()
        else "Infinity is a division by 0, such as a sum that is still empty, or exp(x - m) where m is still -inf.",
        "look at what masked-off lanes hold, and at the first value of every running maximum and sum.",
    )


def tail(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not c.bad.any() or "masked" in o.case.about:
        return None
    block = c.only_tail(o.blocks)
    if block is None:
        return None
    return Finding(
        "tail-wrong",
        f"{_worst(o)} All wrong elements lie in the last, ragged block (block size {block}).",
        "The last block is shorter than the others, and its mask or its offsets do not say so.",
        "compare the offsets with the length: mask = offsets < n.",
    )


def low_precision(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or c.relative_error > 0.06:
        return None
    if c.ratio is not None and abs(c.ratio - 1) > (1e-2 if "half" in o.case.about else 2e-3):
        return None
    if "half" not in o.case.about and c.relative_error > 0.012:
        return None
    if c.bound.row_sum:
        off, what = f"row sums are off by {c.row_sum_error:.1e}", "a sum or an exponential"
    else:
        off, what = f"errors reach {c.relative_error:.1e}", "a number on the way"
    return Finding(
        "low-precision",
        f"The result is close, but {off} ({o.case.name}).",
        f"Most often, {what} was kept in half precision: 8 or 11 bits hold about three digits.",
        "convert to float32 right after the load, x.to(tl.float32), and accumulate in float32; the store converts "
        "back.",
    )


def constant_factor(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or c.ratio is None or abs(c.ratio - 1) < 1e-6 or not c.varies:
        return None
    return Finding(
        "constant-factor",
        f"Every element is {c.ratio:.6g} times the right one ({o.case.name}).",
        "The kernel is right up to one factor.",
        "look for a factor that should not be there, or a division that is missing.",
    )


def _is_softmax(exercise: Exercise) -> bool:
    return exercise.name.endswith(("softmax", "softmax_masked"))


def not_normalised(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right or not _is_softmax(o.exercise) or c.row_ratios is None:
        return None
    factors = c.row_ratios
    return Finding(
        "not-normalised",
        f"Each row is a multiple of the right one, by factors from {float(factors.min()):.4g} to "
        f"{float(factors.max()):.4g}: the rows do not sum to 1 ({o.case.name}).",
        "The exponentials are right and the sum is not: it misses elements, or counts some that are none.",
        "check where the sum begins, what each block adds, and what masked-off lanes add.",
    )


def wrong_value(o: Observation) -> Finding | None:
    c = o.comparison
    if c is None or c.right:
        return None
    rows = c.bad_rows
    pattern = f"{int(c.bad.sum())} of {c.bad.numel()} elements are wrong"
    if len(rows) > 1 and not bool(rows[0]) and int(rows.sum()) == len(rows) - 1:
        pattern += ": all rows but the first"
    elif len(rows) > 1 and not rows.all():
        pattern += f", in {int(rows.sum())} of {len(rows)} rows"
    return Finding(
        "wrong-value",
        f"{_worst(o)} {pattern}.",
        "Every element is 0: zeros were stored, or something was divided by infinity." if not c.value.any() else "",
        advice="work one program out by hand: its offsets, its mask, what it loads, what it stores.",
    )


def _worst(o: Observation) -> str:
    """Where it breaks, expected and got."""
    c = o.comparison
    if not c.bad.any():
        return f"Row sums are off by {c.row_sum_error:.1e} ({o.case.name})."
    i = c.worst
    return (
        f"{_index(c)} is {float(c.value[i]):.6g}, expected {float(c.expected[i]):.6g} ({o.case.name})."
    )


def _index(c: Comparison) -> str:
    i = c.worst
    return f"row {i[0]}, column {i[1]}" if len(i) == 2 else f"element {', '.join(map(str, i))}"


# What was done, whatever the numbers are.
CONDUCT_RULES: tuple[Rule, ...] = (
    invalid_access,
    died,
    troubled,
    not_attempted,
    wrong_device,
    wrong_shape,
    wrong_dtype,
    no_kernel,
    aliased,
    damaged,
    not_contiguous,
    wrong_program,
    raced,
    masked_lanes,
    misplaced,
)
# What the numbers look like, when nothing that was done explains them.
PATTERN_RULES: tuple[Rule, ...] = (
    not_finite,
    tail,
    low_precision,
    constant_factor,
    not_normalised,
    wrong_value,
)
RULES = (*CONDUCT_RULES, unwritten, known_mistake, *PATTERN_RULES)


def diagnose(o: Observation, rules: tuple[Rule, ...] = RULES) -> Finding | None:
    """Why this case failed; None where it passed."""
    for rule in rules:
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip())
    return None


# -- one diagnosis for the exercise --------------------------------------------------------------------------------

# What says most comes first, when the cases of one answer tell different stories.
PRIORITY = (
    "syntax-error", "not-attempted", "not-allowed", "no-triton-kernel", "compile-error", "out-of-memory",
    "wrong-device", "wrong-shape", "wrong-dtype", "input-modified", "not-contiguous", "timeout", "crash",
    "runtime-error", "wrong-program-id", "out-of-bounds-store", "out-of-bounds-load", "race",
    "unwritten-output", "relies-on-masked-lanes", "missing-rescale", "wrong-other-value", "overflow",
    "constant-factor", "not-normalised", "nan", "tail-wrong", "stride-ignored", "low-precision",
    "wrong-value",
)  # fmt: skip


# What no address in memory explains.
CONDUCT = {*PRIORITY[: PRIORITY.index("wrong-program-id")]} - {"crash"}


# Values that make NaN out of a kernel that is nearly right.
UNUSUAL = {"huge", "descending", "ascending", "masked", "all-masked", "negative"}


def overall(observations: list[Observation], findings: list[Finding | None]) -> Finding | None:
    """The finding that explains the answer as a whole."""
    failed = [(o, f) for o, f in zip(observations, findings, strict=True) if f]
    passed = [o for o, f in zip(observations, findings, strict=True) if not f]
    if not failed:
        return None
    if stride := _only_strided(observations, findings):
        return stride
    o, finding = min(_consistent(_with_one_mistake(failed, passed)), key=lambda pair: _rank(*pair))
    if finding != diagnose(o, PATTERN_RULES) or o.case.about & UNUSUAL:
        return finding
    return _only_ragged(observations, findings, o, finding) or _only_long(observations, findings, o, finding) or finding


def _with_one_mistake(failed: list[tuple[Observation, Finding]], passed: list[Observation]) -> list:
    """A known mistake counts if it explains half of the wrong outputs; one that fits by chance does not."""
    wrong = [o for o, _ in failed if o.comparison and not diagnose(o, (*CONDUCT_RULES, unwritten))]
    counts = [(sum(m in o.mistakes for o in wrong), m) for m in failed[0][0].exercise.mistakes]
    explained, mistake = max(counts, key=lambda pair: pair[0], default=(0, None))
    if mistake and mistake.known_by_nan and any(_would_be_wrong(mistake, o) for o in passed):
        explained = 0
    if explained and 2 * explained >= len(wrong):
        told = [(o, f) for o, f in failed if o not in wrong]
        return told + [(o, _as_mistake(o, mistake)) for o in wrong if mistake in o.mistakes]
    return [(o, diagnose(o, PATTERN_RULES) or f) if o in wrong else (o, f) for o, f in failed]


def _consistent(failed: list[tuple[Observation, Finding]]) -> list[tuple[Observation, Finding]]:
    """Without the findings that other cases contradict."""
    ratios = [o.comparison.ratio for o, f in failed if f.slug == "constant-factor" and _tells_much(o)]
    if ratios and max(ratios) > 1.01 * min(ratios):  # another factor for another shape: no constant
        failed = [(o, f if f.slug != "constant-factor" else not_normalised(o) or f) for o, f in failed]
    telling = [(o, f) for o, f in failed if o.comparison and _tells_much(o)]
    usual = {f.slug for o, f in telling if not o.case.about & UNUSUAL}
    blocks = [max(o.constants, default=0) for o, f in failed if f.slug == "tail-wrong"]
    full = [o for o, _ in telling for block in blocks if block and o.comparison.columns % block == 0]
    races = any(f.slug == "race" for _, f in failed)

    def contradicted(o: Observation, f: Finding) -> bool:
        if f.slug in ("overflow", "nan"):  # what is wrong with ordinary numbers comes first
            return bool(o.case.about & UNUSUAL and usual - {f.slug})
        if f.slug == "constant-factor":  # a single row is always a multiple of the right one
            return any(other.slug != "constant-factor" for _, other in telling)
        if f.slug == "tail-wrong":  # a size without a tail is wrong too
            return bool(full)
        if f.slug == "timeout":  # work that every program does takes long where there are many
            return races
        if f.slug == "unwritten-output":  # no block is full where a row is shorter than one
            return bool(blocks) and o.comparison.columns < max(blocks)
        return False

    return [(o, f) for o, f in failed if not contradicted(o, f)] or failed


def _tells_much(o: Observation) -> bool:
    """With one column, few elements or equal ones, patterns look alike."""
    return "short" not in o.case.about and o.comparison.varies


def _rank(o: Observation, finding: Finding) -> tuple[bool, int]:
    coincidence = o.comparison is not None and not _tells_much(o)
    return coincidence, PRIORITY.index(finding.slug) if finding.slug in PRIORITY else len(PRIORITY)


def _only_ragged(observations, findings, o: Observation, finding: Finding) -> Finding | None:
    """Rows that fill their blocks are right, ragged ones are not, and nothing else explains it."""
    if not any(m.slug == "wrong-other-value" for m in o.exercise.mistakes):
        return None
    judged = [(o, f) for o, f in zip(observations, findings) if o.comparison and o.constants]
    full = [f for o, f in judged if o.comparison.columns % max(o.constants) == 0]
    if not full or any(full):
        return None
    if finding.slug not in ("nan", "not-normalised", "constant-factor", "low-precision"):
        return None
    if all("half" in o.case.about for o, f in judged if f):  # the lanes are right, in float32
        return None
    return Finding(
        "wrong-other-value",
        _worst(o),
        "Rows that fill their blocks are right, ragged ones are not: masked-off lanes take part in the maximum or in "
        "the sum.",
        "load with other=-float('inf'): it never wins the maximum, and exp(-inf) adds 0 to the sum.",
    )


def _only_long(observations, findings, o: Observation, finding: Finding) -> Finding | None:
    """Rows of one block are right, longer ones are not, where a sum is carried from block to block."""
    if not o.exercise.name.startswith("online") or finding.slug not in ("not-normalised", "constant-factor"):
        return None
    judged = [(o, f) for o, f in zip(observations, findings) if o.comparison and o.constants]
    block = max(set.intersection(*(set(o.constants) for o, _ in judged)), default=0)
    short = [f for o, f in judged if o.comparison.columns <= block]
    if not short or any(short):
        return None
    return Finding(
        "missing-rescale",
        finding.happened,
        "Rows of one block are right, longer ones are not: the sum is wrong from the second block on.",
        "when the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
        second="not-normalised",
    )


def _only_strided(observations, findings) -> Finding | None:
    """All contiguous inputs pass, all row-strided ones fail."""
    strided = [f for o, f in zip(observations, findings) if "strided" in o.case.about and "wide" not in o.case.about]
    contiguous = [f for o, f in zip(observations, findings) if "strided" not in o.case.about]
    if not strided or not all(strided) or any(contiguous):
        return None
    first = strided[0]
    if first.slug == "not-contiguous":
        return replace(first, slug="stride-ignored", second="not-contiguous")
    if first.slug in CONDUCT:
        return None
    return Finding(
        "stride-ignored",
        first.happened,
        "Contiguous inputs are right, row-strided ones are not: rows of the input or of the output are taken to lie "
        "where they do not.",
        "pass x.stride(0) to the kernel, and begin row r at r * row_stride; the output has its own stride.",
        first.line,
        first.code,
    )
