"""The job "compile": compiles learners' kernels for GPUs that are not here. Nothing runs.

Triton's interpreter accepts much that a compiler refuses. The compiler is a part of every Triton and needs no GPU, but
this process was started for the interpreter: Triton's own functions, such as `tl.max`, are the interpreter's.
`compiling` puts the compiler's versions in their place. No stage writes a file or starts a program.

Runs in a child of the zygote. The learner's Python does not run there, only the compiler on kernels in the kernel
language.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import (
    ASTSource,
    code_generator,  # noqa: F401  it copies functions of `tl` when it is loaded: before the interpreter changes them
    make_backend,
)
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from workshop.interpreter.faithful import replaced
from workshop.xray_child import message_of

from ..wire import Report, Trouble
from ..wire.codec import to_json
from ..wire.requests import CompileCase
from .job import Job
from .kernels import Kernels
from .learner import ANSWER, load
from .trace import triton_dtype

TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "hip": GPUTarget("hip", "gfx942", 64)}
PTX_VERSION = 84  # of the target's assembler, which would be asked for it; the kernel's errors do not depend on it
LAST_STAGE = "llir"  # later stages need other programs, or only translate
CONTROL = """
import triton
import triton.language as tl


@triton.jit
def control(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, tl.erf(x / tl.sum(x, axis=0)))
"""


def run(job: Job) -> None:
    request = job.request
    launched = sorted({case.specialisation.kernel for case in request.cases})
    with compiling():
        compiler = _Compiler(Kernels(request.source, launched, request.template))
        for index, case in enumerate(request.cases):
            job.report(compiler.report(index, case))


class _Compiler:
    """Compiles the cases of one job. A thorough case goes on from the first stage of an earlier case."""

    def __init__(self, kernels: Kernels):
        self.kernels = kernels
        self.started: dict[str, Lowering] = {}

    def report(self, index: int, case: CompileCase) -> Report:
        try:
            self._compile(case)
        except Exception as error:
            if not _works(case.target, case.thorough):
                return Report(index, has_value=True, value="not here")
            return Report(index, error=_refusal(error, case.target))
        return Report(index, has_value=True, value="compiled")

    def _compile(self, case: CompileCase) -> None:
        key = to_json(replace(case, thorough=False))
        lowering = self.started.pop(key, None) or self._start(case)
        if case.thorough:
            lowering.finish()
        else:
            self.started[key] = lowering

    def _start(self, case: CompileCase) -> Lowering:
        special, kernels = case.specialisation, self.kernels[case.blank]
        kernel = kernels[special.kernel]
        signature, constants = {}, {}
        for position, name in enumerate(kernel.arg_names):
            parameter = special.parameters[name]
            signature[name] = parameter.get("type", "constexpr")
            if "constant" in parameter:
                constants[(position,)] = _constant(parameter["constant"], kernels)
        return Lowering(kernel, signature, constants, special.options, case.target)


def _constant(value, kernels: dict):
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    (kind, name), = value.items()
    return kernels[name] if kind == "kernel" else triton_dtype(name)


def _works(target: str, thorough: bool) -> bool:
    """Whether this machine compiles a kernel that is right, with a function of the GPU's own library."""
    try:
        kernel = load(CONTROL, "<control>", "control")["control"]
        lowering = Lowering(kernel, {"x_ptr": "*fp32", "BLOCK": "constexpr"}, {(1,): 128}, {}, target)
        if thorough:
            lowering.finish()
    except Exception:
        return False
    return True


# -- the compiler ----------------------------------------------------------------------------------------


class Lowering:
    """A kernel on its way through the stages of triton.compile, without that function's files.

    signature: the type of each parameter by name, "constexpr" for constants. constants: values by (position,).
    The first stage, Triton's own representation, is made at once.
    """

    def __init__(self, kernel, signature: dict, constants: dict, options: dict, target: str):
        self.target = TARGETS[target]
        self.backend = make_backend(self.target)
        source = ASTSource(kernel, signature, constants)
        self.options = self.backend.parse_options({**options, "ptx_version": PTX_VERSION, **source.parse_options()})
        self.language = source.language
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.backend.load_dialects(self.context)
        given = [self.target, self.options, self.backend.get_codegen_implementation(self.options)]
        given += [self.backend.get_module_map(), self.context]
        if "target" not in inspect.signature(source.make_ir).parameters:  # Triton 3.4
            del given[0]
        self.module = source.make_ir(*given)

    def finish(self) -> None:
        """The other stages, up to LAST_STAGE."""
        stages: dict = {}
        self.backend.add_stages(stages, self.options, self.language)
        metadata = {"target": self.target, **vars(self.options)}
        for name, stage in stages.items():
            self.module = stage(self.module, metadata)
            if name == LAST_STAGE:
                return


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """The compiler's versions of Triton's own functions, and of those that `triton.jit` makes inside."""
    with contextlib.ExitStack() as stack:
        for owner, functions in _language():
            stack.enter_context(replaced(owner, **functions))
        stack.enter_context(mock.patch.dict(os.environ, TRITON_INTERPRET="0"))
        yield


@functools.cache
def _language() -> list[tuple[object, dict[str, JITFunction]]]:
    """The functions of `tl` that the compiler must see as its own, by the module or class that holds them.

    The zygote calls this, because a confined child cannot read Triton's source.
    """
    twin = functools.cache(lambda interpreted: JITFunction(interpreted.fn))
    modules = [module for name, module in sys.modules.items() if name.split(".")[:2] == ["triton", "language"]]
    found = []
    for owner in [*modules, tl.tensor]:
        held = {name: _interpreted(value) for name, value in vars(owner).items()}
        found.append((owner, {name: twin(function) for name, function in held.items() if function}))
    return found


prepare = _language


def _interpreted(value) -> InterpretedFunction | None:
    """The interpreted function that `value` is, or that it calls: a method of tl.tensor wraps it."""
    if isinstance(value, InterpretedFunction):
        return value
    cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return next((held for held in cells if isinstance(held, InterpretedFunction)), None)


# -- what it refuses -------------------------------------------------------------------------------------


def _refusal(error: Exception, target: str) -> Trouble:
    message = message_of(error)
    if not message or message.endswith("Error()"):  # a bare assertion: the name of the function says most
        root = error
        while root.__cause__ is not None:
            root = root.__cause__
        frames = traceback.extract_tb(root.__traceback__)
        message = f"{type(root).__name__} in {frames[-1].name if frames else 'the compiler'}"
    line = _line(error)
    return Trouble(
        kind="compile",
        type=type(error).__name__[:80],
        message=message[:2000],
        line=line,
        code=linecache.getline(ANSWER, line).strip()[:200] if line else "",
        construct=target,
    )


def _line(error: BaseException | None) -> int | None:
    """The innermost line of the learner's that the compiler visited, in a kernel or in a function that it calls."""
    line = None
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            generator, node = frame.f_locals.get("self"), frame.f_locals.get("node")
            if getattr(generator, "file_name", None) == ANSWER and hasattr(node, "lineno"):
                line = generator.begin_line + node.lineno
        error = error.__cause__
    return line
