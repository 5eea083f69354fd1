"""Intercepts kernel launches: what the learner's host function asked Triton to run, with which constants.

Installed before the learner's module is executed. A launch inside a recorded call goes into its trace. A launch
outside (such as a left-over benchmark at the end of the file) does nothing.

Runs in a child of the zygote, beside the learner's Python.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from dataclasses import fields
from types import SimpleNamespace

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

from ...kernel_language.versions import LAUNCH_OPTIONS
from .specialise import check_options
from .trace import TRITON_DTYPES, Recorder

OPTIONS = ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "maxnreg")


def _compiler_options() -> set[str]:
    """All options of this Triton's compilers. A build for one vendor may have only one compiler."""
    options = set()
    for target in (GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)):
        with contextlib.suppress(RuntimeError):
            options |= {option.name for option in fields(make_backend(target).parse_options({}))}
    return options


COMPILER_OPTIONS = _compiler_options()  # most have no meaning for a verdict
# Made-up resources of a kernel, because nothing is compiled: enough for host code that computes a launch.
UNCOMPILED = SimpleNamespace(n_regs=32, n_spills=0, shared=64)


class UnknownOption(TypeError):
    """A launch names an option that is neither a parameter of the kernel nor known to this Triton's compilers."""

    def __init__(self, kernel: str, option: str):
        super().__init__(f"{kernel}() got an unexpected keyword argument {option!r}")
        self.option = option
        self.elsewhere = option in LAUNCH_OPTIONS  # another version knows it


class Launches:
    """Records launches. `configuration` chooses one of the configurations of an autotuned kernel."""

    def __init__(self, backend: str):
        self.backend = backend
        self.recorder: Recorder | None = None
        self.configuration = 0
        self.tuned: dict | None = None  # of the launch that an autotuner is making

    def install(self):
        launches = self

        def run(kernel, *args, grid, warmup, **kwargs):
            if warmup:
                return Compiled(launches, kernel, kwargs)
            launches.record(kernel, grid, args, kwargs)
            return None

        def tuned_run(tuner, *args, **kwargs):
            nargs = dict(zip(tuner.arg_names, args))
            tuner.nargs = nargs  # pruning functions of the learner read it
            candidates = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
            index = launches.configuration % len(candidates)
            config = candidates[index]
            for each in candidates:
                options = {k: v for k, v in each.all_kwargs().items() if k not in tuner.arg_names}
                check_options(options, launches.backend)
            if config.pre_hook is not None:
                config.pre_hook({**nargs, **kwargs, **config.all_kwargs()})
            launches.tuned = {
                "space": [_plain(c.all_kwargs()) for c in candidates],
                "choice": index,
                "key": [str(k) for k in tuner.keys],
                "again": _again(tuner, candidates),
            }
            try:
                return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
            finally:
                launches.tuned = None

        Autotuner.run = tuned_run
        for kind in (InterpretedFunction, JITFunction):
            kind.run = _Run(run)
            kind.__getitem__ = lambda kernel, grid: functools.partial(kernel.run, grid=grid, warmup=False)
            kind.warmup = lambda kernel, *args, grid, **kw: kernel.run(*args, grid=grid, warmup=True, **kw)
            kind.encode_for_trace = lambda kernel: {"kernel": kernel.fn.__name__}
        triton.language.dtype.encode_for_trace = _encode_dtype
        triton.language.constexpr.encode_for_trace = lambda c: c.value

    def record(self, kernel, grid, args, kwargs):
        if self.recorder is None:
            return
        bound = _bind(kernel.fn, args, kwargs)
        check_options({k: v for k, v in kwargs.items() if k not in bound}, self.backend)
        shape = grid({**bound}) if callable(grid) else grid
        shape = tuple(shape) if isinstance(shape, (tuple, list, torch.Size)) else _not_a_grid(shape)
        options = {k: int(v) for k, v in kwargs.items() if k in OPTIONS and k not in bound and isinstance(v, int)}
        self.recorder.launch(
            kernel.fn.__name__,
            tuple(operator.index(n) for n in shape),
            {name: _scalar(value) for name, value in bound.items()},
            options,
            self.tuned,
        )


def _again(tuner: Autotuner, candidates: list) -> dict | None:
    """What Triton puts back before it runs a kernel again; None where it runs it once, or where hooks do it."""
    hooks = [tuner, "user_defined_pre_hook"], [tuner, "user_defined_post_hook"], *([c, "pre_hook"] for c in candidates)
    if len(candidates) < 2 or any(getattr(owner, name, None) for owner, name in hooks):
        return None
    return {"restored": [str(n) for n in tuner.restore_value], "zeroed": [str(n) for n in tuner.reset_to_zero]}


class _Run:
    """The method `run` of a kernel. Triton 3.5 and older give each kernel a `run` of its own, which this hides."""

    def __init__(self, run):
        self.run = run

    def __get__(self, kernel, kind=None):
        return self if kernel is None else functools.partial(self.run, kernel)

    def __set__(self, kernel, value):
        pass


class Compiled:
    """The result of `kernel.warmup(...)`: resources, and a way to launch."""

    def __init__(self, launches: Launches, kernel, kwargs):
        self._launches, self._kernel = launches, kernel
        parameters = inspect.signature(kernel.fn).parameters
        self._options = {k: v for k, v in kwargs.items() if k in OPTIONS and k not in parameters}
        self.n_regs, self.n_spills = UNCOMPILED.n_regs, UNCOMPILED.n_spills
        self.metadata = SimpleNamespace(
            shared=UNCOMPILED.shared, num_warps=kwargs.get("num_warps", 4), name=kernel.fn.__name__
        )

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        def launch(*args, **kwargs):
            self._launches.record(self._kernel, grid, args, {**self._options, **kwargs})

        return launch


def _bind(function, args, kwargs) -> dict:
    """Arguments by name. If a constant and a launch option have the same name, it belongs to the kernel."""
    signature = inspect.signature(function)
    named = {k: v for k, v in kwargs.items() if k in signature.parameters}
    unknown = sorted(set(kwargs) - set(named) - set(OPTIONS) - COMPILER_OPTIONS)
    if unknown:
        raise UnknownOption(function.__name__, unknown[0])
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def _not_a_grid(shape):
    raise TypeError(f"a launch grid is a tuple, such as ({shape!r},), not {type(shape).__name__}")


def _scalar(value):
    """Converts scalars of numpy and torch to Python numbers. Returns everything else unchanged."""
    if not isinstance(value, torch.Tensor) and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def _plain(constants: dict) -> dict:
    return {str(k): v for k, v in constants.items() if isinstance(v, (int, float, bool, str))}


def _encode_dtype(dtype):
    names = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}
    name = names.get(str(dtype), str(dtype))
    return {"triton_dtype": name if name in TRITON_DTYPES else "?"}
