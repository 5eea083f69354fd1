"""A JAX answer is traced in one process, and replayed on the real inputs in another one that never runs its Python."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from workshop.backend import interpreting

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
if not interpreting():
    pytest.skip("what the real jax-triton traces is tested on a GPU", allow_module_level=True)

from autograder.box import (
    Box,  # noqa: E402
    wire,
)
from autograder.judge.jax import MAX_COMPUTED  # noqa: E402

TESTS = Path(__file__).parent
HEADER = """
import jax
import jax.numpy as jnp
import jax_triton as jt
import numpy as np
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, factor_ptr, n, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * tl.load(factor_ptr), mask=i < n)


def scale(x, factor, dtype=jnp.float32, **options):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    factor = jnp.asarray(factor, dtype)
    options = {"BLOCK": 16} | options
    return jt.triton_call(x, factor, x.size, kernel=scale_kernel, out_shape=out, grid=-(-x.size // 16), **options)
"""


@pytest.fixture(scope="module")
def box():
    with Box("interpreter", confine=False) as started:
        yield started


def decoy(*shape: int, dtype="float32") -> wire.Decoy:
    return wire.Decoy(shape, tuple(torch.empty(shape, device="meta").stride()), dtype)


CASE = wire.PlanCase((decoy(3, 4), wire.TRACED))


def traced(box, source: str, *cases: wire.PlanCase) -> list[wire.Report]:
    return box.run(wire.JaxPlanRequest((HEADER + source,), "f", cases)).reports[:-1]


def traced_each(box, bodies, x: wire.Decoy) -> list[wire.Report]:
    """The reports on several bodies of f(x, n), in one job."""
    functions = [f"\ndef f_{number}(x, n):\n    {body}\n" for number, body in enumerate(bodies)]
    names = ", ".join(f"f_{number}" for number in range(len(functions)))
    choice = f"\ndef f(x, n, number):\n    return ({names})[number](x, n)\n"
    cases = [wire.PlanCase((x, wire.TRACED, number)) for number in range(len(functions))]
    return traced(box, "".join(functions) + choice, *cases)


def replayed(
    box, planned: wire.Report, like: torch.Tensor, *inputs, source=""
) -> tuple[torch.Tensor | None, wire.Report]:
    packer = wire.Packer()
    tensors = [i if isinstance(i, torch.Tensor) else torch.tensor(i, dtype=torch.int32) for i in inputs]
    given = tuple(map(packer.tensor, tensors))
    case = wire.ReplayCase(planned.trace, given, packer.slot(like.nbytes), computes=MAX_COMPUTED)
    request = wire.ProgramRequest("replay", source, (case,), planned.programs)
    outcome = box.run(request, packer.tensors, packer.output_size)
    report = outcome.reports[0]
    got = None if report.error else wire.read_result(case.slot, outcome.output, like.dtype, like.shape)
    return got, report


# -- both jobs together --------------------------------------------------------------------------------------------

X = torch.arange(1.0, 13.0).reshape(3, 4)
SAME = {
    "a launch": ("return scale(x, 3)", lambda x, n: 3 * x),
    "a number that is traced": ("return scale(x, n)", lambda x, n: n * x),
    "arithmetic on it": ("return scale(x, (7 * n - 3) // 2 % 10 ^ 1)", lambda x, n: 7 * x),
    "as an unsigned number": ("return scale(x, jnp.uint32(n) * jnp.uint32(858993460), jnp.uint32)", lambda x, n: 4 * x),
    "a launch on known numbers": ("return scale(x, scale(jnp.full(1, 2.0), 3)[0])", lambda x, n: 6 * x),
    "moves": ("return jnp.pad(scale(x, 2).T.reshape(-1)[2:], (0, 2)).reshape(4, 3).T",
              lambda x, n: torch.nn.functional.pad(2 * x.T.reshape(-1)[2:], (0, 2)).reshape(4, 3).T),
    "halves": ("return jnp.concatenate([scale(x[:1], 2), scale(x[1:], 3)])",
               lambda x, n: torch.cat([2 * x[:1], 3 * x[1:]])),
    "parts": ("return jnp.concatenate([scale(each, 2) for each in jnp.split(x, 3)])", lambda x, n: 2 * x),
    "a condition that is known": ("return jax.lax.cond(x.size > 3, lambda: scale(x, 2), lambda: x)",
                                  lambda x, n: 2 * x),
    "rounded": ("return scale(x, jnp.round(5 / 3.0, 1))", lambda x, n: 1.7 * x),
    "a few numbers": ("return scale(x, jnp.stack([n, 7])[1])", lambda x, n: 7 * x),
    "an aliased output": ("return scale(x, 2, input_output_aliases={0: 0})", lambda x, n: 2 * x),
    "a nested jit": ("return jax.jit(lambda a: scale(a, n))(x)", lambda x, n: n * x),
    "the input itself": ("return x", lambda x, n: x),
    "what nobody needs": ("jnp.sin(x).sum()\n    return scale(x, 2)", lambda x, n: 2 * x),
}  # fmt: skip


@pytest.fixture(scope="module")
def same(box):
    """The reports on SAME. A program is sent once, so each has the programs of all."""
    reports = traced_each(box, [body for body, _ in SAME.values()], CASE.arguments[0])
    programs = {name: text for report in reports for name, text in report.programs.items()}
    return dict(zip(SAME, [replace(report, programs=programs) for report in reports], strict=True))


@pytest.mark.parametrize("name", SAME)
def test_what_is_replayed_is_what_was_traced(box, same, name):
    _, expected = SAME[name]
    report = same[name]
    assert report.error is None, report.error
    got, said = replayed(box, report, X, X, 5)
    assert said.error is None, said.error
    torch.testing.assert_close(got, expected(X, 5).contiguous())


REFUSED = {  # and what is named; what is a limit of ours is "not-allowed"
    "arithmetic": ("return scale(x, 2) + x", "host-arithmetic", "add"),
    "a reduction": ("return jnp.broadcast_to(scale(x, 2).sum(), x.shape)", "host-arithmetic", "reduce_sum"),
    "random numbers": ("return scale(jax.random.uniform(jax.random.key(n), x.shape), 1)", "host-arithmetic", ""),
    "a table": ("return scale(jnp.asarray(np.random.rand(30, 40)), 1)", "host-arithmetic", "made outside"),
    "a loop around a launch": ("return jax.lax.fori_loop(0, 3, lambda i, y: scale(y, 2), x)", "not-allowed", "scan"),
    "an open loop": ("return jax.lax.while_loop(lambda y: y[0, 0] < n, lambda y: scale(y, 2), x)", "not-allowed",
                     "while around a launch"),
    "a condition on a seed": ("return jax.lax.cond(n > 3, lambda: scale(x, 2), lambda: scale(x, 3))", "not-allowed",
                              "cond around a launch"),
    "vmap": ("return jax.vmap(scale)(x, jnp.arange(30))", "not-allowed", "around a launch"),
    "a function of a few numbers": ("return scale(x, jnp.sin(n * 1.0))", "not-allowed", "jax.lax.sin"),
    "a negative grid": ("return jt.triton_call(x, x, 1, kernel=scale_kernel, out_shape=x, grid=(-1,), BLOCK=16)",
                        "exception", "launch grid is -1"),
}  # fmt: skip


@pytest.fixture(scope="module")
def refused(box):
    return dict(zip(REFUSED, traced_each(box, [body for body, *_ in REFUSED.values()], decoy(30, 40)), strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_computed_beside_the_launches_is_refused(refused, name):
    _, kind, named = REFUSED[name]
    report = refused[name]
    assert report.error and report.error.kind == kind, report
    assert named in report.error.message, report.error


def test_many_numbers_are_a_table_also_in_small_pieces(box):
    table = "jnp.concatenate([jnp.asarray(np.random.rand(4)) for _ in range(30)])"
    source = f"\ndef f(x, n):\n    return scale({table}, 1)\n"
    (report,) = traced(box, source, CASE)
    _, said = replayed(box, report, torch.empty(120), X, 5)
    assert said.error.kind == "not-replayable" and "64 constants" in said.error.message


def test_much_arithmetic_in_small_pieces_is_not_replayed(box):
    source = "\ndef f(x, n):\n    for _ in range(70):\n        n = n * 3\n    return scale(x, n)\n"
    (report,) = traced(box, source, CASE)
    _, said = replayed(box, report, X, X, 5)
    assert said.error.kind == "not-replayable"


def test_a_value_and_its_gradient_are_traces_too(box):
    source = """
@jax.custom_vjp
def f(x, n):
    return scale(x, n)

f.defvjp(lambda x, n: (scale(x, 7), n), lambda n, dy: (scale(dy, n), None))
"""
    cases = (replace(CASE, part="value"), replace(CASE, part="gradient", arguments=(*CASE.arguments, decoy(3, 4))))
    value, gradient = traced(box, source, *cases)
    assert len(gradient.trace.launches) == 1  # the forward pass is not needed
    programs = value.programs | gradient.programs
    got, _ = replayed(box, replace(value, programs=programs), X, X, 5)
    torch.testing.assert_close(got, 7 * X)  # the value beside a gradient comes from the forward rule
    got, _ = replayed(box, replace(gradient, programs=programs), X, X, 5, X + 1)
    torch.testing.assert_close(got, 5 * (X + 1))


def test_each_configuration_of_an_autotuner_can_be_traced(box):
    source = """
configs = [triton.Config({"BLOCK": b}, num_warps=b // 8) for b in (16, 32)]
tuned = triton.autotune(configs, key=[])(scale_kernel)

def f(x, n):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)
    return jt.triton_call(x, jnp.float32(n), x.size, kernel=tuned, out_shape=out, grid=grid)
"""
    case = wire.PlanCase((decoy(3, 4), 2))
    reports = traced(box, source, case, replace(case, configuration=1))
    warps = [launch.options["num_warps"] for r in reports for launch in r.trace.launches]
    assert warps == [2, 4]
    got, _ = replayed(box, reports[0], X, X)
    assert got.tolist() == (2 * X).tolist()


def test_a_configuration_that_no_compiler_takes_is_refused(box):
    source = """
tuned = triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 33)], key=[])(scale_kernel)

def f(x, n):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jt.triton_call(x, jnp.float32(n), x.size, kernel=tuned, out_shape=out, grid=(1,))
"""
    case = wire.PlanCase((decoy(3, 4), 2))
    first, second = traced(box, source, case, replace(case, configuration=1))
    assert first.error is None
    assert second.error.kind == "compile" and "power of 2" in second.error.message


def test_a_plain_call_is_traced_each_time(box):
    source = "\ncalls = []\ndef f(x, n):\n    calls.append(n)\n    return scale(x, len(calls))\n"
    case = wire.PlanCase((decoy(3, 4), 7))
    reports = traced(box, source, case, case)
    programs = {name: text for report in reports for name, text in report.programs.items()}  # each is sent once
    for times, report in enumerate(reports, 1):
        assert replayed(box, replace(report, programs=programs), X, X)[0].tolist() == (times * X).tolist()


# -- what the learner's process gets -------------------------------------------------------------------------------


def test_the_process_with_the_learners_python_gets_no_inputs_and_no_traced_seeds(judge, monkeypatch):
    requests = []

    def run(exercise, request, tensors=b"", output_size=0, share=1.0):
        requests.append((request, tensors, output_size))
        return original(exercise, request, tensors, output_size, share)

    original = judge.run
    monkeypatch.setattr(judge, "run", run)
    source = (TESTS / "right" / "leaky_dropout_grad" / "as_in_the_lesson.py").read_text()
    judge.judge("leaky_dropout_grad", source, seed=3)
    plans = [each for each in requests if each[0].kind == "jax-plan"]
    assert plans and {each[1:] for each in plans} == {(b"", 0)}
    cases = plans[-1][0].cases
    assert any(argument == wire.TRACED for case in cases for argument in case.arguments)
    shown = {a for case in cases for a in case.arguments if type(a) is int}
    assert len(shown) == 2, "the seeds of the two plain calls"
    assert b"_traced" not in wire.to_json(plans[-1][0]) and len(requests) > len(plans)


def test_the_process_with_the_inputs_never_runs_the_learners_python(box):
    (report,) = traced(box, "\ndef f(x, n):\n    return scale(x, 2)\n", CASE)
    got, said = replayed(box, report, X, X, 5, source="raise SystemExit('the module ran')\nx = 1 / 0\n")
    assert said.error is None and got.tolist() == (2 * X).tolist()


# -- traces that no honest process sends -----------------------------------------------------------------------------


def step(op: str, *args, overload="Tensor", out=(1,)) -> wire.Operation:
    return wire.Operation(op, overload, list(args), {}, out)


GIVEN = wire.Input(0, (0,))
FORGED = {
    "arithmetic on an array": [GIVEN, step("add", {"t": 0}, {"t": 0})],
    "an operation that is no move": [GIVEN, step("sin", {"t": 0}, overload="default")],
    "a program that was not sent": [
        GIVEN,
        wire.Launch("k", (1, 1, 1), "0" * 64, (wire.Argument("x", {"t": 0}, "*fp32"),), {}, {}),
    ],
    "an input of nobody": [wire.Input(3, (1,))],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_trace_is_not_replayed(box, name):
    x = torch.ones(30, 40)
    got, report = replayed(box, wire.Report(0, trace=wire.Trace(tuple(FORGED[name]), 1)), x, x)
    assert got is None and report.error.kind == "not-replayable", report
