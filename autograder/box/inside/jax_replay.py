"""The job "jax-replay": evaluates programs of JAX on real inputs, with the programs of the kernels that they launch.

Runs in a child of the zygote. The learner's Python does not run there. JAX's operations run one by one, on the CPU, and
a kernel where kernels run: on a GPU, or without one with every access checked. Without a GPU each program is evaluated
once more without its kernels.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import torch
from jax.extend.core import primitives

from workshop import jax_cpu

from ...tensors import poison
from ..wire import Evidence, Report, Result, Trouble
from ..wire.layout import read_bytes, write_result
from ..wire.programs import OPERATIONS, Constant, Form, Program, Step, read
from ..wire.programs import Launch as LaunchStep
from ..wire.requests import JaxCall, Scalar, TensorSpec
from .job import Job
from .learner import describe
from .programs import Known
from .replay import launcher_of
from .trace import Launch, NotReplayable

PRIMITIVES = {
    each.name: each
    for module in (primitives, jax.lax)
    for each in vars(module).values()
    if isinstance(each, jax.extend.core.Primitive) and each.name in OPERATIONS
}

def run(job: Job) -> None:
    jax.config.update("jax_traceback_filtering", "off")
    job.give_memory()
    job.show_source()
    programs = [read(each["program"]) for each in job.request.traces]
    launches = _Launches(job)
    for index, call in enumerate(job.request.cases):
        launches.begin()
        try:
            program = programs[call.program]
            report = _replay(job, index, call, partial(_evaluate, program, launches), program, launches)
        except BaseException as error:
            report = Report(index, error=launches.describe(error))
        job.report(report)


def _replay(job: Job, index: int, call: JaxCall, function, program: Program, launches: _Launches) -> Report:
    if not program.known:
        raise NotReplayable("an operation or a constant of the program is not known")
    forms = program.forms[: program.inputs]
    inputs = [_input(each, form, job.tensors) for each, form in zip(call.inputs, forms, strict=True)]
    result = np.ascontiguousarray(function(*inputs)[0])
    output = result.tobytes()
    write_result(call.slot, job.output, output)
    evidence = Evidence(
        launched=tuple(launches.names),
        races=tuple(launches.launcher.races),
        undefined=tuple(launches.launcher.undefined[:8]),
        empty_kernels=tuple(launches.launcher.empty[:16]),
        idle=job.interpreted and bool(launches.names) and output == launches.without(function, inputs),
    )
    described = Result(tuple(result.shape), result.dtype.name[:40], "cpu", contiguous=True, aliases_input=False)
    return Report(index, result=described, evidence=evidence)


def _input(given: TensorSpec | Scalar, form: Form, tensors: memoryview) -> jax.Array:
    if isinstance(given, Scalar):
        return jnp.asarray(np.array(given.scalar, form.dtype))
    raw = read_bytes(given, tensors)
    return jnp.asarray(np.ndarray(given.shape, jnp.dtype(given.dtype), buffer=raw))


# -- evaluation ------------------------------------------------------------------------------------------


def _evaluate(program: Program, launches: _Launches, *inputs) -> list:
    """The outputs of a program. Raises NotReplayable if an array has another form than the program says."""
    values = dict(enumerate(inputs))

    def value(given: int | Constant):
        return _constant(given) if isinstance(given, Constant) else values[given]

    for number, each in values.items():
        _check(each, program.forms[number])
    for step in program.steps:
        made = _outputs(step, [value(each) for each in step.inputs], [program.forms[n] for n in step.outputs], launches)
        for number, each in zip(step.outputs, made, strict=True):
            _check(each, program.forms[number])
            values[number] = each
    return [value(each) for each in program.outputs]


def _check(value, form: Form) -> None:
    """What the judge concludes from the program depends on its forms."""
    if tuple(value.shape) != form.shape or str(value.dtype) != form.dtype:
        raise NotReplayable(f"an array has shape {tuple(value.shape)}, and the program says {form.shape}")


def _constant(constant: Constant):
    form = constant.form
    if constant.values is not None:
        return jnp.asarray(np.array(constant.values).astype(jnp.dtype(form.dtype)).reshape(form.shape))
    row = constant.first + constant.step * np.arange(form.size)
    return jnp.asarray(row.astype(jnp.dtype(form.dtype)).reshape(form.shape))


def _outputs(step: Step, inputs: list, forms: list[Form], launches: _Launches) -> list:
    if step.launch:
        return launches(step.launch, inputs, forms)
    if step.op in _CONTROL:
        return _CONTROL[step.op](step, inputs, launches)
    if step.op in _RANDOM:
        return [_RANDOM[step.op](*inputs, step.params)]
    primitive = PRIMITIVES[step.op]
    params = {name: _ENUMS.get(name, _parameter)(each) for name, each in step.params.items()}
    made = primitive.bind(*inputs, **params)
    return list(made) if primitive.multiple_results else [made]


def _parameter(given):
    if isinstance(given, dict):
        return jnp.dtype(given["dtype"])
    return tuple(map(_parameter, given)) if isinstance(given, tuple) else given


_ENUMS = {"rounding_method": jax.lax.RoundingMethod}

_RANDOM = {
    "random_seed": lambda seed, params: jax.random.key(seed, impl="threefry2x32"),
    "random_wrap": lambda data, params: jax.random.wrap_key_data(data, impl="threefry2x32"),
    "random_unwrap": lambda key, params: jax.random.key_data(key),
    "random_fold_in": lambda key, data, params: jax.random.fold_in(key, data),
    "random_split": lambda key, params: jax.random.split(key, params["shape"]),
    "random_bits": lambda key, params: jax.random.bits(key, params["shape"], f"uint{params['bit_width']}"),
}


def _cond(step: Step, inputs: list, launches: _Launches) -> list:
    index, *operands = inputs
    branches = [partial(_evaluate, each, launches) for each in step.inner]
    if isinstance(index, jax.core.Tracer):
        return jax.lax.switch(index.astype(jnp.int32), branches, *operands)
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def _scan(step: Step, inputs: list, launches: _Launches) -> list:
    (body,), params = step.inner, step.params
    ends = params["num_consts"], params["num_consts"] + params["num_carry"]
    constants, carry, rows = inputs[: ends[0]], inputs[ends[0] : ends[1]], inputs[ends[1] :]

    def once(carry, row):
        made = _evaluate(body, launches, *constants, *carry, *row)
        return made[: len(carry)], made[len(carry) :]

    carry, rows = jax.lax.scan(once, carry, rows, params["length"], bool(params["reverse"]))
    return [*carry, *rows]


def _while(step: Step, inputs: list, launches: _Launches) -> list:
    condition, body = step.inner
    ends = step.params["cond_nconsts"], step.params["cond_nconsts"] + step.params["body_nconsts"]
    first, second, begin = inputs[: ends[0]], inputs[ends[0] : ends[1]], inputs[ends[1] :]
    return jax.lax.while_loop(
        lambda state: _evaluate(condition, launches, *first, *state)[0],
        lambda state: _evaluate(body, launches, *second, *state),
        begin,
    )


_CONTROL = {"cond": _cond, "scan": _scan, "while": _while}

# -- launches --------------------------------------------------------------------------------------------


class _Launches:
    """Launches programs, and collects what is seen during one call."""

    def __init__(self, job: Job):
        self.job, self.programs = job, Known(job.request.programs)
        self.empty = False  # whether kernels do nothing
        self.begin()

    def begin(self) -> None:
        self.names, self.failure = [], None
        self.launcher = launcher_of(self.job)(self.programs, [])

    def describe(self, error: BaseException) -> Trouble:
        """Describes an error. XLA wraps an error of a kernel in a loop, and the original error says more."""
        if self.failure is None:
            return describe(error)
        described = describe(self.failure)
        return described if described.kind != "exception" else replace(described, construct="kernel")

    def without(self, function, inputs: list) -> bytes:
        """The result of a program if no kernel runs."""
        self.empty = True
        try:
            return np.ascontiguousarray(function(*inputs)[0]).tobytes()
        finally:
            self.empty = False

    def __call__(self, launch: LaunchStep, arrays: list, forms: list[Form]) -> list:
        shapes = [jax.ShapeDtypeStruct(form.shape, jnp.dtype(form.dtype)) for form in forms]
        run = partial(self._run, launch, shapes)
        if any(isinstance(each, jax.core.Tracer) for each in arrays):
            return jax.pure_callback(run, shapes, *arrays, vmap_method="sequential")
        return [jnp.asarray(each) for each in run(*arrays)]

    def _run(self, launch: LaunchStep, shapes: list, *arrays) -> list[np.ndarray]:
        """The outputs of a launch. They hold poison where no program wrote."""
        inputs = [jax_cpu.to_torch(each).to(self.job.device) for each in arrays]
        outputs = [poison(jax_cpu.unwritten(each)).to(self.job.device) for each in shapes]
        for each in outputs:
            self.launcher.copies.allocated(each)
        for number in launch.zeroed:
            self.launcher.copies.moved("zero_", [], outputs[number].zero_())
        for source, number in launch.aliases:
            self.launcher.copies.moved("copy_", [None, inputs[source]], outputs[number].copy_(inputs[source]))
        if not self.empty:
            self._launch(launch, {"in": inputs, "out": outputs})
        return [jax_cpu.to_numpy(each.cpu()) for each in outputs]

    def _launch(self, launch: LaunchStep, tensors: dict[str, list[torch.Tensor]]) -> None:
        self.names = [*self.names, launch.kernel[:100]][:16]
        given = [(k, tensors[v[0]][v[1]] if isinstance(v, tuple) else v, kind) for k, v, kind in launch.given]
        try:
            self.launcher(Launch(launch.kernel, launch.grid, launch.program, given, launch.options))
        except BaseException as error:
            self.failure = error
            raise
