"""The job "jax": calls a learner's function of JAX arrays on the real inputs, and returns bytes.

Runs in a child of the zygote, beside the learner's Python. JAX cannot be planned on decoys and replayed, as kernels
on torch tensors are. So the learner's Python runs in the process that makes the results. The job reports what JAX
traced between the input and the output of the programs that run. On the interpreter the job launches clean copies of
the learner's kernels, and reports two more things: every access outside of an array, and, in a separate job, the
results with every kernel emptied.
"""

from __future__ import annotations

import ast
import linecache
import math
import os
from collections import Counter
from dataclasses import replace
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import jax_triton  # noqa: F401  loaded before the confinement, for the answer
import numpy as np
import torch
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.interpreter import InterpretedFunction

from ... import kernel_language
from ...tensors import poison
from ..wire import Evidence, Report, Result, Trouble
from ..wire.layout import read_bytes, write_result
from ..wire.requests import Array, JaxCall, Static, TensorSpec, Traced
from .job import Job
from .learner import ANSWER, describe, learner_function, load
from .reports import race_records

SMALL = 64  # elements in total: values of scalar arguments, such as 1 / (1 - p), may be computed outside of kernels
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "device_put", "dynamic_slice",
    "expand_dims", "iota", "pad", "reshape", "slice", "squeeze", "transpose",
}  # fmt: skip
# Their functions run once. The functions of other operations, such as loops, may run any number of times.
CALLS = {"closed_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit", "remat2", "checkpoint"}


def run(job: Job) -> None:
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    jax.config.update("jax_traceback_filtering", "off")
    request = job.request
    launches = _watch_launches(job) if job.interpreted else _Launches()
    function = learner_function(request.source, request.entry)
    calls = _Calls(function, request.source, job.tensors)
    for index, call in enumerate(request.calls):
        launches.begin()
        try:
            result = _checked(calls(call), request.entry)
            write_result(call.slot, job.output, result.tobytes())
            evidence = Evidence(tuple(launches.names), tuple(launches.races))
            job.report(Report(index, result=_describe(result), evidence=evidence))
        except BaseException as error:
            job.report(Report(index, error=launches.describe(error)))
    if not request.empty_kernels:
        job.report(Report(len(request.calls), has_value=True, value=calls.traced()))


class _Calls:
    """The learner's function: plain, under jit, and its gradient with respect to the first argument."""

    def __init__(self, function, source: str, tensors: memoryview):
        def gradient(*arguments):
            first, *others, cotangent = arguments
            return jax.grad(lambda x: (function(x, *others).astype(cotangent.dtype) * cotangent).sum())(first)

        self.plain = {False: function, True: gradient}
        self.compiled: dict[tuple, Any] = {}
        self.source, self.tensors = source, tensors
        self.kernels: set[str] = set()
        self.arithmetic: set[str] = set()
        self.bare = False  # a program that needs a kernel has none

    def __call__(self, call: JaxCall):
        arguments = [self._argument(each) for each in call.arguments]
        static = [i for i, each in enumerate(call.arguments) if isinstance(each, Static)]
        if call.grad:
            arguments.append(self._array(call.cotangent))
        if not call.jit:
            return self.plain[call.grad](*arguments)
        signature = tuple(map(_signature, call.arguments))
        key = (call.grad, call.needs_kernel, signature)
        if key not in self.compiled:
            traced = jax.jit(self.plain[call.grad], static_argnums=static).trace(*arguments)
            if not call.grad and all(each.size for each in arguments if isinstance(each, jax.Array)):
                self._look(traced.jaxpr.jaxpr, call.needs_kernel)
            self.compiled[key] = traced.lower().compile()
        return self.compiled[key](*(each for i, each in enumerate(arguments) if i not in static))

    def _argument(self, argument: Array | Static | Traced):
        if isinstance(argument, Array):
            return self._array(argument.array)
        return argument.static if isinstance(argument, Static) else argument.traced

    def _array(self, spec: TensorSpec) -> jax.Array:
        raw = read_bytes(spec, self.tensors)
        return jnp.asarray(np.ndarray(spec.shape, jnp.dtype(spec.dtype), buffer=raw))

    def _look(self, jaxpr, needs_kernel: bool) -> None:
        """Records the operations between the input and the output of a program, before it runs."""
        kernels, arithmetic = set(), Counter()
        _walk(jaxpr, kernels, arithmetic)
        kernel_language.kernels_of(self.source, sorted(kernels))
        self.kernels |= kernels
        self.bare |= needs_kernel and not kernels
        if sum(arithmetic.values()) > SMALL:
            self.arithmetic |= set(arithmetic)

    def traced(self) -> dict:
        """The kernels that the programs launch, and the arithmetic outside of them. See JaxRequest."""
        return {"kernels": [] if self.bare else sorted(self.kernels)[:16], "arithmetic": sorted(self.arithmetic)[:16]}


def _signature(argument: Array | Static | Traced) -> tuple:
    """The properties of an argument that a compiled program depends on."""
    if isinstance(argument, Array):
        return "array", argument.array.shape, argument.array.dtype
    value = argument.static if isinstance(argument, Static) else None
    return type(argument).__name__, type(value).__name__, value


def _walk(jaxpr, kernels: set, arithmetic: Counter, times: float = 1):
    """Collects the kernels that the outputs need, and the number of elements of arithmetic. Enters inner functions."""
    needed = {id(v) for v in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        if not any(id(v) in needed for v in equation.outvars):
            continue
        needed |= {id(v) for v in equation.invars}
        name = equation.primitive.name
        if kernel := _kernel(equation):
            kernels.add(kernel)
        elif inner := list(_functions(equation)):
            for function in inner:
                _walk(function, kernels, arithmetic, times if name in CALLS else math.inf)
        elif name not in MOVES:
            arithmetic[name[:40]] += times * sum(max(v.aval.size, 1) for v in equation.outvars)


def _functions(equation):
    """The functions that an equation calls: the body and the condition of a loop, every branch of a condition."""
    for parameter in equation.params.values():
        for each in parameter if isinstance(parameter, tuple | list) else [parameter]:
            if hasattr(each, "eqns"):
                yield getattr(each, "jaxpr", each)


def _kernel(equation) -> str | None:
    """The name of the kernel that an equation launches."""
    if equation.primitive.name == "triton_kernel_call":
        return _name(equation.params["fn"])
    if equation.primitive.name == "pure_callback":
        from workshop.jax_cpu import Launch

        function = equation.params["callback"].callback_func
        return _name(function.kernel) if type(function) is Launch else None
    return None


def _name(kernel) -> str:
    while not isinstance(kernel.fn, FunctionType):  # autotune and heuristics wrap a kernel
        kernel = kernel.fn
    return kernel.fn.__name__[:100]


class _Launches:
    """The interpreter's launches during one call. On a GPU, launches cannot be observed here."""

    def __init__(self):
        self.begin()

    def begin(self):
        self.names, self.races, self.failure = [], [], None

    def describe(self, error: BaseException) -> Trouble:
        """Describes an error. XLA wraps an error of a kernel under jit, and the original error says more."""
        if self.failure is None:
            return describe(error)
        described = describe(self.failure)
        return described if described.kind in ("fault", "not-allowed") else replace(described, construct="kernel")


def _watch_launches(job: Job) -> _Launches:
    """Runs the interpreter's launches under the memory checker. Outputs hold poison where no program wrote."""
    from workshop import jax_cpu

    kernels = _Kernels(job.request.source, job.request.empty_kernels)
    launches, interpret, fresh = _Launches(), jax_cpu.run, jax_cpu.unwritten

    def watched(kernel, grid, arguments, metaparams):
        launches.names = [*launches.names, _name(kernel)][:16]
        try:
            with job.watched("nan") as memory:
                interpret(kernels[_name(kernel)], grid, arguments, _constants(kernel, arguments, metaparams))
        except BaseException as error:
            launches.failure = error
            raise
        if memory:
            launches.races += race_records(memory.launches)

    jax_cpu.run = watched
    jax_cpu.unwritten = lambda shape: poison(fresh(shape))
    return launches


def _constants(kernel, arguments: list, given: dict) -> dict:
    """The launch's constants, with those of an autotuner's first configuration and of heuristics.

    Heuristics are the learner's Python. They get tensors of the right shapes, which are not used for anything else.
    """
    if isinstance(kernel, Autotuner):
        chosen = kernel.configs[0].kwargs
    elif isinstance(kernel, Heuristics):
        decoys = [torch.zeros_like(a) if isinstance(a, torch.Tensor) else a for a in arguments]
        seen = {**dict(zip(kernel.arg_names, decoys)), **given}
        chosen = {name: rule(seen) for name, rule in kernel.values.items()}
    else:
        return given
    return _constants(kernel.fn, arguments, {**given, **chosen})


class _Kernels(dict):
    """The clean copies of the learner's kernels, by name. With `empty`, their bodies are empty."""

    def __init__(self, source: str, empty: bool):
        super().__init__()
        self.source, self.empty = source, empty

    def __missing__(self, name: str):
        source = kernel_language.kernels_of(self.source, [name]).source
        learners = linecache.cache[ANSWER]
        namespace = load(_emptied(source) if self.empty else source, name="kernels")
        for function in list(namespace.values()):
            if isinstance(function, InterpretedFunction):
                function.rewrite()  # while linecache holds the clean text; errors quote the learner's text
        linecache.cache[ANSWER] = learners
        self[name] = namespace[name]
        return self[name]


def _emptied(source: str) -> str:
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.body = [ast.Pass()]
    return ast.unparse(tree)


def _checked(result, entry: str) -> np.ndarray:
    if result is None:
        raise NotImplementedError
    if not isinstance(result, jax.Array):
        raise TypeError(f"{entry} returned {type(result).__name__[:80]}, not a JAX array")
    return np.ascontiguousarray(result)


def _describe(result: np.ndarray) -> Result:
    return Result(tuple(result.shape), result.dtype.name[:40], "cpu", contiguous=True, aliases_input=False)
