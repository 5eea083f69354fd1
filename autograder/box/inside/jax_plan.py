"""The job "jax-plan": traces a learner's function of JAX arrays, and reports each program as data.

Runs in a child of the zygote, beside the learner's Python. No kernel runs, and no array has a value here. A plain call
is traced as well as a call under jit: in a plain call the seed is a Python number, and under jit it is traced.
"""

from __future__ import annotations

import operator
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

from workshop import jax_cpu
from workshop.executor import launch as executor

from ...tensors import DTYPES
from ..wire import Report
from ..wire.programs import MAX_NUMBERS, MAX_STEPS, OPERATIONS, SMALL
from ..wire.requests import Decoy, JaxProgram, Scalar, Traced
from .job import Job
from .launches import check_options
from .learner import describe, learner_function
from .programs import Programs
from .trace import NotReplayable

OPTIONS = ("num_warps", "num_stages", "num_ctas")  # of jt.triton_call
MAX_CONFIGURATIONS = 32  # of an autotuner
# Their functions run once, in the place of the operation.
CALLS = {"closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit", "remat2", "checkpoint"}
SAME = {"copy", "copy_p", "device_put", "optimization_barrier", "stop_gradient"}  # what comes out is what went in


def run(job: Job) -> None:
    sys.modules["jax_triton"] = jax_cpu  # on a GPU too: its launches can be traced, and nothing is compiled here
    jax.config.update("jax_traceback_filtering", "off")
    _watch_options(job.backend)
    jax_cpu.at_once = jax_cpu.later  # a launch on numbers that are known now is a step, too
    function = learner_function(job.request.source, job.request.entry)
    programs = Programs(job.backend)
    for index, case in enumerate(job.request.cases):
        try:
            trace = {"program": _traced(function, case, job.request.entry, programs)}
            report = Report(index, trace=trace, programs=programs.unsent(trace["program"]))
        except BaseException as error:
            report = Report(index, error=describe(error))
        job.report(report)


def _watch_options(backend: str) -> None:
    """Lets triton_call refuse launch options that no GPU can use."""

    def with_options(*args, **kwargs):
        for options in (kwargs, *_tuned_options(kwargs.get("kernel"))):
            check_options({name: options[name] for name in OPTIONS if name in options}, backend)
        return call(*args, **kwargs)

    call, jax_cpu.triton_call = jax_cpu.triton_call, with_options


def _tuned_options(kernel) -> list[dict]:
    """The launch options of an autotuner's configurations."""
    tuned = kernel.fn if isinstance(kernel, Heuristics) else kernel
    return [vars(config) for config in tuned.configs] if isinstance(tuned, Autotuner) else []


# -- tracing ---------------------------------------------------------------------------------------------


def _traced(function, case: JaxProgram, entry: str, programs: Programs) -> dict:
    """Calls the function on arrays without values. Returns the program."""
    given = [each for each in case.arguments if not isinstance(each, Scalar)]

    def plain(*inputs):
        waiting = iter(inputs)
        arguments = (each.scalar if isinstance(each, Scalar) else next(waiting) for each in case.arguments)
        return _checked(function(*arguments), entry)

    def gradient(first, *others):
        output, backward = jax.vjp(lambda x: plain(x, *others[:-1]), first)
        return backward(others[-1].astype(output.dtype))[0]

    if case.grad:
        given.append(case.cotangent)
    # a function of its own for each case: JAX keeps what it traced before
    program = jax.jit(gradient if case.grad else plain).trace(*map(_stand_in, given)).jaxpr
    return _Encoder(programs).program(program.jaxpr, program.consts)


def _stand_in(given: Decoy | Traced):
    """What jit traces in the place of an argument. A number is one of Python's, whose dtype is weak."""
    if isinstance(given, Decoy):
        return jax.ShapeDtypeStruct(given.shape, jnp.dtype(given.dtype))
    return {"int": 0, "float": 0.0, "bool": False}[given.traced]


def _checked(result, entry: str) -> jax.Array:
    if result is None:
        raise NotImplementedError
    if not isinstance(result, jax.Array):
        raise TypeError(f"{entry} returned {type(result).__name__[:80]}, not a JAX array")
    return result


# -- the program as data ---------------------------------------------------------------------------------


class _Encoder:
    """Makes the JSON of one program. The functions of calls become steps of the program that calls them."""

    def __init__(self, programs: Programs):
        self.programs = programs
        self.forms: list[dict] = []
        self.steps: list[dict] = []
        self.room = MAX_NUMBERS  # numbers of arrays that may still be sent

    def program(self, jaxpr, consts) -> dict:
        values = {var: self.new(var.aval) for var in jaxpr.invars}
        inputs = list(self.forms)
        outputs = self.run(jaxpr, consts, values, [True] * len(jaxpr.outvars))
        return {"inputs": inputs, "steps": self.steps, "outputs": outputs}

    def new(self, aval) -> dict:
        self.forms.append(_form(aval))
        return {"v": len(self.forms) - 1}

    def run(self, jaxpr, consts, values: dict, wanted: list[bool]) -> list:
        """Adds the steps that the wanted outputs need. Returns all outputs, None for those that nobody wants."""
        needed = _needed(jaxpr, wanted)
        constants = zip(jaxpr.constvars, consts, strict=True)
        values |= {var: self.constant(const, var.aval) for var, const in constants if var in needed}

        def value(atom):
            return self.constant(atom.val, atom.aval) if _literal(atom) else values[atom]

        for equation in jaxpr.eqns:
            if needed.intersection(equation.outvars):
                made = self.equation(equation, [value(atom) for atom in equation.invars], needed)
                values |= {var: each for var, each in zip(equation.outvars, made, strict=True) if each}
        return [value(atom) if want else None for atom, want in zip(jaxpr.outvars, wanted, strict=True)]

    def constant(self, value, aval) -> dict:
        constant = _constant(value, aval)
        count = len(constant.get("values", ()))
        self.room -= count if count > 1 else 0
        return constant if self.room >= 0 else {"c": constant["c"], "table": True}

    def equation(self, equation, inputs: list, needed: set) -> list:
        name, params = equation.primitive.name, equation.params
        if name in SAME:
            return inputs
        if name in CALLS and (body := _body(params, len(inputs))):
            jaxpr, consts = body
            values = dict(zip(jaxpr.invars, inputs, strict=True))
            return self.run(jaxpr, consts, values, [var in needed for var in equation.outvars])
        step = {"op": name[:60], "in": inputs, "out": [_form(var.aval) for var in equation.outvars]}
        if launch := _launch(equation, self.programs):
            step |= {"op": "launch", "launch": launch}
        elif inner := _inner(name, params, self.programs):
            step |= inner
        elif name in OPERATIONS:
            step["params"] = {key: _parameter(each) for key, each in params.items()}
        if len(self.steps) >= MAX_STEPS:
            raise NotReplayable(f"the function does more than {MAX_STEPS} operations of JAX")
        self.steps.append(step)
        return [self.new(var.aval) for var in equation.outvars]


def _literal(atom) -> bool:
    return hasattr(atom, "val")


def _needed(jaxpr, wanted: list[bool]) -> set:
    """The variables that the wanted outputs depend on."""
    needed = {atom for atom, want in zip(jaxpr.outvars, wanted, strict=True) if want and not _literal(atom)}
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            needed.update(atom for atom in equation.invars if not _literal(atom))
    return needed


def _body(params: dict, inputs: int):
    """The function that a call runs, with its constants."""
    for each in params.values():
        jaxpr = getattr(each, "jaxpr", each)
        if hasattr(jaxpr, "eqns") and len(jaxpr.invars) == inputs:
            return jaxpr, getattr(each, "consts", ())
    return None


def _inner(name: str, params: dict, programs: Programs) -> dict | None:
    """The programs of control flow, with those of its parameters that say how often they run and on what."""
    keys, numbers = {
        "cond": (["branches"], []),
        "scan": (["jaxpr"], ["length", "num_carry", "num_consts", "reverse"]),
        "while": (["cond_jaxpr", "body_jaxpr"], ["cond_nconsts", "body_nconsts"]),
    }.get(name, ([], []))
    if not keys:
        return None
    if name == "scan" and "ft_in" in params:  # JAX 0.11 and newer
        constants, carried, _ = params["ft_in"].unpack()
        params = params | {"num_consts": len(constants), "num_carry": len(carried)}
    if unknown := {*keys, *numbers} - set(params):
        raise NotReplayable(f"this version of JAX describes {name} without {min(unknown)}")
    bodies = params["branches"] if name == "cond" else [params[key] for key in keys]
    inner = [_Encoder(programs).program(body.jaxpr, body.consts) for body in bodies]
    return {"inner": inner, "params": {key: int(params[key]) for key in numbers}}


def _form(aval) -> dict:
    return {"shape": [int(n) for n in aval.shape], "dtype": str(aval.dtype)}


def _constant(value, aval) -> dict:
    """A constant with its values, or as numbers in a row. The numbers of a table stay here."""
    constant = {"c": _form(aval)}
    if jnp.issubdtype(aval.dtype, jax.dtypes.extended):
        return constant | {"table": True}
    flat = np.asarray(value, aval.dtype).ravel()
    flat = flat.astype(flat.dtype if flat.dtype.kind in "biu" else np.float64)
    if flat.size <= SMALL:
        return constant | {"values": flat.tolist()}
    exact = flat.astype(np.float64 if flat.dtype.kind == "f" else np.int64)
    steps = np.diff(exact)
    if not (steps == steps[0]).all():
        return constant | {"table": True}
    return constant | {"first": exact[0].item(), "step": steps[0].item()}


def _parameter(value):
    """A parameter of an operation. What is no plain value belongs to the machine, such as a sharding: None."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, tuple | list):
        return [_parameter(each) for each in value]
    if isinstance(value, np.dtype) or isinstance(value, type) and issubclass(value, np.generic):
        return {"dtype": np.dtype(value).name}
    return None


# -- launches --------------------------------------------------------------------------------------------


def _launch(equation, programs: Programs) -> dict | None:
    """The kernel launch that an operation is, in an autotuner's first configuration."""
    if equation.primitive.name != "pure_callback":
        return None
    launch = getattr(equation.params["callback"], "callback_func", None)
    if type(launch) is not jax_cpu.Launch:
        return None
    arrays = [_decoy(atom.aval) for atom in equation.invars]
    waiting = iter(arrays)
    arguments = [each.value if each else next(waiting) for each in launch.scalars]
    positions = {id(each): ["in", i] for i, each in enumerate(arrays)}
    outputs = [_decoy(form) for form in launch.outputs]
    positions |= {id(each): ["out", i] for i, each in enumerate(outputs)}
    arguments += outputs
    given = launch.kernel, arguments, launch.metaparams
    first, *_ = configured = [_configured(*given, choice) for choice in range(_count(launch.kernel))]
    found = []
    for kernel, constants, tuned in configured:
        bound, _ = executor.bind(kernel, tuple(arguments), constants)
        found.append((bound, programs.of(kernel, bound, _options(launch.options | tuned))))
    (kernel, constants, tuned), (bound, digests) = first, found[0]
    leaves = executor.leaves(bound, executor.specialise(kernel, bound), kernel.arg_names)
    return {
        "kernel": kernel.fn.__name__[:100],
        "program": digests["program"],
        "grid": list(executor.grid_of(_grid(launch), bound)),
        "given": [[label, positions.get(id(value), value), kind] for label, value, kind in leaves],
        "options": _options(launch.options | tuned),
        "zeroed": [int(n) for n in launch.zeroed_outputs()],
        "aliases": [[_array(launch, int(a)), int(b)] for a, b in launch.aliases.items()],
    }


def _decoy(form) -> torch.Tensor:
    return torch.zeros(form.shape, dtype=DTYPES.get(str(form.dtype), torch.float32))


def _array(launch: jax_cpu.Launch, argument: int) -> int:
    """The number of an array among the arrays, by its place among the arguments."""
    return sum(each is None for each in launch.scalars[:argument])


def _grid(launch: jax_cpu.Launch):
    grid = launch.launch_grid()
    return grid if callable(grid) else tuple(operator.index(n) for n in grid)


def _options(given: dict) -> dict[str, int]:
    return {name: operator.index(given[name]) for name in OPTIONS if given.get(name) is not None}


def _count(kernel) -> int:
    """The number of an autotuner's configurations, up to a limit; 1 without an autotuner."""
    if isinstance(kernel, Autotuner):
        return max(min(len(kernel.configs), MAX_CONFIGURATIONS), 1)
    return _count(kernel.fn) if isinstance(kernel, Heuristics) else 1


def _configured(kernel, arguments: list, given: dict, choice: int) -> tuple[JITFunction, dict, dict]:
    """The function under @triton.jit, with the constants and options of one configuration and of heuristics.

    arguments: numbers, and tensors of the right shapes, whose values mean nothing.
    """
    options: dict = {}
    while not isinstance(kernel, JITFunction):
        if isinstance(kernel, Autotuner):
            given = {**given, **kernel.configs[choice].kwargs}
            options = vars(kernel.configs[choice])
        elif isinstance(kernel, Heuristics):
            seen = {**dict(zip(kernel.arg_names, arguments)), **given}
            given = {**given, **{name: rule(seen) for name, rule in kernel.values.items()}}
        else:
            raise TypeError(f"{str(kernel)[:80]} is no kernel: put @triton.jit above it")
        kernel = kernel.fn
    return kernel, given, options
