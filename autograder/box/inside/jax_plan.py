"""The job "jax-plan": traces a learner's function of JAX arrays, and records it as host functions of torch are.

JAX traces the function on arrays without values. The equations of that program (a jaxpr) then run once on decoys, in
torch, under the Recorder: JAX's moves are torch's moves, a kernel launch is a launch, and what is known without the
inputs is computed by JAX. So a JAX answer gives the same trace as a host function, and the same replay runs it.

No kernel runs, and no array has a value here. A plain call is traced as well as a call under jit: in a plain call the
seed is a Python number, and under jit it is traced.
"""

from __future__ import annotations

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes
from triton.runtime.jit import JITFunction

from workshop import jax_cpu
from workshop.executor.front_end import Unsupported

from ...tensors import DTYPES, storage_of
from ..wire import MAX_CONSTANT, TRACED, Decoy, PlanCase, Report, Trace
from .job import Job, Refused, learner_function
from .recorder import HostArithmetic, Launches, Recorder
from .replay import decoys

# Their functions run once, in the place of the operation.
CALLS = {"closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "jit", "pjit", "remat2", "checkpoint"}
SAME = {"copy", "copy_p", "device_put", "optimization_barrier", "stop_gradient"}  # what comes out is what went in
OURS = "jax.lax."  # begins the name of an operation that only we cannot replay


def run(job: Job) -> None:
    sys.modules["jax_triton"] = jax_cpu  # on a GPU too: its launches can be traced, and nothing is compiled here
    jax.config.update("jax_traceback_filtering", "off")
    jax_cpu.at_once = jax_cpu.later  # a launch on numbers that are known now is a step, too
    launches = Launches(job.backend)
    launches.install()
    function = learner_function(job.request.sources[0], job.request.entry)

    def planned(case: PlanCase) -> Report:
        launches.configuration = case.configuration
        trace = _trace(function, case, launches)
        return Report(trace=trace, programs=launches.programs.unsent(trace))

    job.each(planned)


def _trace(function, case: PlanCase, launches: Launches) -> Trace:
    """Calls the function on arrays without values, then runs what JAX traced on decoys. Returns the trace."""
    given = [each for each in case.arguments if isinstance(each, Decoy)]
    # A number is one of Python's, whose dtype is weak.
    forms = [0 if g == TRACED else jax.ShapeDtypeStruct(g.shape, jnp.dtype(g.dtype)) for g in given]
    program = jax.jit(_traced(function, case)).trace(*forms).jaxpr
    tensors = decoys(given, "cpu")
    recorder = Recorder(tensors, computes=MAX_CONSTANT)
    try:
        with recorder:
            launches.recorder = recorder
            (made,) = _Run(recorder).program(program.jaxpr, program.consts, tensors)
            result = _Run(recorder).tensor(made, program.jaxpr.outvars[0].aval).contiguous()
            if storage_of(result) in map(storage_of, tensors):
                result = result.clone()
        return recorder.finish(result)
    except HostArithmetic as error:
        if str(error).startswith(OURS):
            raise Unsupported(str(error)) from None
        raise
    finally:
        launches.recorder = None


def _traced(function, case: PlanCase):
    """What JAX traces: the function itself, or one part of jax.value_and_grad of it, weighted by the cotangent."""
    arguments = case.arguments[: -1 if case.part == "gradient" else None]

    def given(inputs) -> list:
        waiting = iter(inputs)
        return [next(waiting) if isinstance(each, Decoy) else each for each in arguments]

    def plain(*inputs):
        result = function(*given(inputs))
        if result is None:
            raise NotImplementedError
        if not isinstance(result, jax.Array):
            name = type(result).__name__[:80]
            raise Refused(name, kind="returned", words=name)
        return result

    def value(first, *others):
        return jax.vjp(lambda x: plain(x, *others), first)[0]

    def gradient(first, *others):
        output, backward = jax.vjp(lambda x: plain(x, *others[:-1]), first)
        _, *numbers = given((first, *others[:-1]))  # as in a model that has two such layers
        jax.vjp(lambda x: function(x, *(each / 2 if isinstance(each, float) else each + 1 for each in numbers)), first)
        return backward(others[-1].astype(output.dtype))[0]

    return {"result": plain, "value": value, "gradient": gradient}[case.part]


# -- the equations in torch ------------------------------------------------------------------------------


def _slice(params, made, x):
    steps = params["strides"] or [1] * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], steps))]


def _dynamic_slice(params, made, x, *starts):
    """JAX moves a slice that reaches outside back inside."""
    for axis, (start, size) in enumerate(zip(starts, params["slice_sizes"], strict=True)):
        x = x.narrow(axis, min(max(int(start), 0), x.shape[axis] - size), size)
    return x


def _broadcast(params, made, x):
    placed = [1] * len(made.shape)
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        placed[axis] = size
    return x.reshape(placed).expand(made.shape)


def _pad(params, made, x, value):
    if any(interior for *_, interior in params["padding_config"]):
        raise NotImplementedError
    sides = [side for low, high, _ in reversed(params["padding_config"]) for side in (low, high)]
    return torch.nn.functional.pad(x, sides, value=np.asarray(value).item())


# JAX's operations that move numbers, as functions of its parameters, of what comes out, and of tensors.
MOVES = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda params, made, *parts: torch.cat(parts, params["dimension"]),
    "convert_element_type": lambda params, made, x: x.to(_dtype(made)),
    "dynamic_slice": _dynamic_slice,
    "pad": _pad,
    "slice": _slice,
    "split": lambda params, made, x: torch.split(x, list(params["sizes"]), params["axis"]),
    **dict.fromkeys(("expand_dims", "reshape", "squeeze"), lambda params, made, x: x.reshape(made.shape)),
    "stack": lambda params, made, *parts: torch.stack(parts, params["axis"]),
    "transpose": lambda params, made, x: x.permute(params["permutation"]),
}
KEEP_KNOWN = {"dynamic_slice", "pad"}  # whose later operands are numbers that torch must know
# Arithmetic, which only a few numbers may do, such as a seed: the Recorder and the Replay look at that.
ARITHMETIC = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "rem": torch.fmod, "neg": torch.neg,
    "abs": torch.abs, "sign": torch.sign, "max": torch.maximum, "min": torch.minimum, "and": torch.bitwise_and,
    "or": torch.bitwise_or, "xor": torch.bitwise_xor, "not": torch.bitwise_not, "shift_left": torch.bitwise_left_shift,
    "shift_right_arithmetic": torch.bitwise_right_shift, "eq": torch.eq, "ne": torch.ne, "lt": torch.lt,
    "le": torch.le, "gt": torch.gt, "ge": torch.ge, "select_n": lambda which, no, yes: torch.where(which, yes, no),
}  # fmt: skip


def _dtype(aval) -> torch.dtype:
    return DTYPES.get(str(aval.dtype), torch.int32)  # of a random key: nobody replays it


class _Run:
    """Runs equations of JAX on tensors. What is known without the inputs stays an array of JAX or NumPy."""

    def __init__(self, recorder: Recorder):
        self.recorder = recorder

    def program(self, jaxpr, consts, inputs: list) -> list:
        values = dict(zip(jaxpr.constvars, consts, strict=True)) | dict(zip(jaxpr.invars, inputs, strict=True))

        def value(atom):
            return atom.val if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            made = self.equation(equation, [value(atom) for atom in equation.invars])
            values |= dict(zip(equation.outvars, made, strict=True))
        return [value(atom) for atom in jaxpr.outvars]

    def equation(self, equation, inputs: list) -> list:
        name, params = equation.primitive.name, equation.params
        if name in SAME:
            return inputs
        if body := self._body(name, params, inputs):
            return self.program(*body)
        if launch := _launch(equation):
            arrays = [self.tensor(each, atom.aval).contiguous() for each, atom in zip(inputs, equation.invars)]
            return self._launched(launch, arrays)
        made = [atom.aval for atom in equation.outvars]
        unknown = any(isinstance(each, torch.Tensor) for each in inputs)
        if not unknown and sum(math.prod(each.shape) for each in made) <= MAX_CONSTANT:
            known = equation.primitive.bind(*inputs, **params)
            return list(known) if equation.primitive.multiple_results else [known]
        return self._in_torch(name, params, inputs, [atom.aval for atom in equation.invars], made)

    def _body(self, name: str, params: dict, inputs: list):
        """The function that an operation calls, with its constants and inputs: a call, or a branch that is known."""
        if name == "cond" and not isinstance(inputs[0], torch.Tensor):
            branches = params["branches"]
            branch = branches[min(max(int(inputs[0]), 0), len(branches) - 1)]
            return branch.jaxpr, branch.consts, inputs[1:]
        for each in params.values() if name in CALLS else ():
            jaxpr = getattr(each, "jaxpr", each)
            if hasattr(jaxpr, "eqns") and len(jaxpr.invars) == len(inputs):
                return jaxpr, getattr(each, "consts", ()), inputs
        return None

    def _launched(self, launch: jax_cpu.Launch, arrays: list[torch.Tensor]) -> list[torch.Tensor]:
        options = {key: value for key, value in launch.options.items() if value is not None}
        if options.get("num_ctas") == 1:  # as nobody gave it
            del options["num_ctas"]
        if not isinstance(launch.kernel, JITFunction):  # an autotuner's configurations have their own
            options = {}
        return launch.on(arrays, lambda form: torch.empty(form.shape, dtype=_dtype(form)), options)

    def _in_torch(self, name: str, params: dict, inputs: list, given: list, made: list) -> list[torch.Tensor]:
        """What torch makes of it. What it cannot make is a step that nobody replays."""
        try:
            if name in MOVES:
                known = len(inputs) if name not in KEEP_KNOWN else 1
                tensors = [self.tensor(each, aval) for each, aval in zip(inputs[:known], given)]
                moved = MOVES[name](params, made[0], *tensors, *inputs[known:])
                return [moved] if isinstance(moved, torch.Tensor) else list(moved)
            if name in ARITHMETIC:
                tensors = [self.tensor(each, aval) for each, aval in zip(inputs, given)]
                return [_arithmetic(ARITHMETIC[name], tensors, made[0])]
        except Exception:
            return self._opaque(OURS + name, made)
        launches = any(map(_launches, params.values()))
        few = all(math.prod(aval.shape) <= MAX_CONSTANT for aval in (*given, *made))
        return self._opaque(f"{OURS}{name} around a launch" if launches else OURS * few + name, made)

    def _opaque(self, name: str, made: list) -> list[torch.Tensor]:
        with _disable_current_modes():
            tensors = [torch.empty(aval.shape, dtype=_dtype(aval)) for aval in made]
        for tensor in tensors:
            self.recorder.opaque(tensor, name[:60])
        return tensors

    def tensor(self, value, aval) -> torch.Tensor:
        """A tensor of what is known. One number everywhere is filled in. Few numbers are a constant of the trace."""
        if isinstance(value, torch.Tensor):
            return value
        if jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            return self._opaque("random numbers", [aval])[0]
        flat = np.asarray(value).ravel()
        if flat.size > 1 and (flat == flat[0]).all():
            return torch.full(tuple(aval.shape), flat[0].item(), dtype=_dtype(aval))
        with _disable_current_modes():
            return jax_cpu.to_torch(np.asarray(value, aval.dtype)).reshape(aval.shape)


def _arithmetic(function, tensors: list[torch.Tensor], made) -> torch.Tensor:
    """Arithmetic as JAX does it. Integers become int64, because torch cannot add unsigned ones, and wrap at the end."""
    whole = all(not each.is_floating_point() and each.dtype != torch.bool for each in tensors)
    if whole and function is torch.div:
        return torch.div(*(each.to(torch.int64) for each in tensors), rounding_mode="trunc").to(_dtype(made))
    return function(*(each.to(torch.int64) if whole else each for each in tensors)).to(_dtype(made))


def _launch(equation) -> jax_cpu.Launch | None:
    """The kernel launch that an operation is."""
    launch = getattr(equation.params.get("callback"), "callback_func", None)
    return launch if type(launch) is jax_cpu.Launch else None


def _launches(parameter) -> bool:
    """Whether the functions in a parameter of control flow launch a kernel."""
    bodies = parameter if isinstance(parameter, (tuple, list)) else (parameter,)
    found = (getattr(getattr(each, "jaxpr", each), "eqns", ()) for each in bodies)
    return any(_launch(e) or any(map(_launches, e.params.values())) for equations in found for e in equations)
