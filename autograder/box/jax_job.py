"""Inside the box: calls a learner's function of JAX arrays, on the real inputs, and hands back bytes.

JAX cannot be planned on decoys and replayed, as kernels on torch tensors are. So the learner's Python runs
here beside its own results, and three things are reported about them: every access of an interpreted kernel
that leaves its array, what JAX traced between the input and the output, and, in a job of its own, what comes
out when every kernel is emptied.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import textwrap
from types import FunctionType

import jax
import jax.numpy as jnp
import jax_triton  # noqa: F401  loaded before the confinement, for the answer
import numpy as np
import torch
import triton

from .. import kernel_language
from . import jobs
from .memory import poison

SMALL = 16  # elements: numbers made of p and the seed, such as 1 / (1 - p), may be computed anywhere
MOVES = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "device_put", "dynamic_slice",
    "expand_dims", "iota", "pad", "reshape", "slice", "squeeze", "transpose",
}  # fmt: skip


def run(settings, request, job_input, out, report):
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    jax.config.update("jax_traceback_filtering", "off")
    if request["empty_kernels"]:
        triton.jit = _emptying(triton.jit)
    launches = _watch_launches() if settings["backend"] == "interpreter" else _Launches()
    function = jobs.learner_function(request["source"], request["entry"])
    calls = _Calls(function, job_input)
    for index, call in enumerate(request["calls"]):
        launches.begin()
        try:
            result = _array(calls(call), request["entry"])
            jobs._put(out, call["slot"], torch.from_numpy(result.reshape(-1).view(np.uint8)))
            evidence = {"launched": launches.names, "races": launches.races, "damage": []}
            report({"case": index, "result": _describe(result), "evidence": evidence})
        except BaseException as error:
            report({"case": index, "error": launches.describe(error)})
    if request["calls"] and not request["empty_kernels"]:
        index = len(request["calls"])
        try:
            report({"case": index, "value": calls.trace(request["calls"][0], request["source"])})
        except BaseException as error:
            report({"case": index, "error": jobs.describe(error)})


class _Calls:
    """The learner's function, plain, under jit, and differentiated. p is a Python number, the seed is traced."""

    def __init__(self, function, job_input):
        def gradient(x, p, seed, w):
            return jax.grad(lambda x: (function(x, p, seed).astype(w.dtype) * w).sum())(x)

        self.plain = {False: function, True: gradient}
        self.jitted = {key: jax.jit(f, static_argnums=1) for key, f in self.plain.items()}
        self.job_input = job_input

    def __call__(self, call):
        functions = self.jitted if call["jit"] else self.plain
        return functions[call["grad"]](*self._arguments(call))

    def _arguments(self, call) -> list:
        x, *w = (jnp.asarray(jobs._tensor(spec, self.job_input).numpy()) for spec in call["arrays"])
        return [x, call["p"], call["seed"], *(w if call["grad"] else [])]

    def trace(self, call, source: str) -> dict:
        """The kernels and the arithmetic between x and the output of a plain call, as JAX traced them."""
        traced = jax.make_jaxpr(self.plain[False], static_argnums=1)(*self._arguments({**call, "grad": False}))
        kernels, arithmetic = [], []
        _walk(traced.jaxpr, kernels, arithmetic)
        names = sorted({name for name in kernels if name})
        kernel_language.kernels_of(source, names)
        return {"kernels": names[:16], "arithmetic": list(dict.fromkeys(arithmetic))[:16]}


def _walk(jaxpr, kernels: list, arithmetic: list):
    """Kernels and arithmetic on arrays that the outputs need; inner functions are entered."""
    needed = {id(v) for v in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        if not any(id(v) in needed for v in equation.outvars):
            continue
        needed |= {id(v) for v in equation.invars}
        name = equation.primitive.name
        if kernel := _kernel(equation):
            kernels.append(kernel)
        elif inner := [getattr(p, "jaxpr", p) for p in equation.params.values() if hasattr(p, "eqns")]:
            _walk(inner[0], kernels, arithmetic)
        elif name not in MOVES and any(v.aval.size > SMALL for v in equation.outvars):
            arithmetic.append(name[:40])


def _kernel(equation) -> str | None:
    """The name of the kernel that an equation launches."""
    if equation.primitive.name == "triton_kernel_call":
        return _name(equation.params["fn"])
    if equation.primitive.name == "pure_callback":
        from workshop.jax_cpu import Launch

        function = equation.params["callback"].callback_func
        return _name(function.kernel) if isinstance(function, Launch) else None
    return None


def _name(kernel) -> str:
    while not isinstance(kernel.fn, FunctionType):  # autotune and heuristics wrap a kernel
        kernel = kernel.fn
    return kernel.fn.__name__[:100]


class _Launches:
    """What the interpreter launched during one call. On a GPU nothing is seen from here."""

    def __init__(self):
        self.begin()

    def begin(self):
        self.names, self.races, self.failure = [], [], None

    def describe(self, error: BaseException) -> dict:
        """An error of a kernel under jit reaches us as one of XLA's; what was raised says more."""
        if self.failure is None:
            return jobs.describe(error)
        described = jobs.describe(self.failure)
        return described if described["kind"] == "fault" else {**described, "construct": "kernel"}


def _watch_launches() -> _Launches:
    """Runs the interpreter's launches under memcheck, on outputs that show where nobody wrote."""
    from workshop import jax_cpu

    launches, interpret, fresh = _Launches(), jax_cpu.run, jax_cpu.unwritten

    def watched(kernel, grid, arguments, metaparams):
        launches.names = [*launches.names, _name(kernel)][:16]
        try:
            with jobs.watched("nan") as memory:
                interpret(kernel, grid, arguments, metaparams)
        except BaseException as error:
            launches.failure = error
            raise
        if memory:
            launches.races += [race for launch in memory.launches for race in jobs._races(launch)][:4]

    jax_cpu.run = watched
    jax_cpu.unwritten = lambda shape: poison(fresh(shape))
    return launches


def _emptying(jit):
    """triton.jit that drops the body of whatever it decorates."""

    def emptied(function=None, **options):
        if function is None:
            return functools.partial(emptied, **options)
        return jit(_without_body(function), **options)

    return emptied


def _without_body(function: FunctionType) -> FunctionType:
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    node.body, node.decorator_list = [ast.Pass()], []
    source, filename = ast.unparse(node), f"<emptied {node.name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = dict(function.__globals__)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[node.name]


def _array(result, entry: str) -> np.ndarray:
    if result is None:
        raise NotImplementedError
    if not isinstance(result, jax.Array):
        raise TypeError(f"{entry} returned {type(result).__name__[:80]}, not a JAX array")
    return np.ascontiguousarray(result)


def _describe(result: np.ndarray) -> dict:
    return {
        "shape": list(result.shape),
        "dtype": result.dtype.name[:40],
        "device": "cpu",
        "contiguous": True,
        "aliases_input": False,
    }
