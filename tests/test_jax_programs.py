"""A JAX answer is traced in one process, and evaluated on the real inputs in another one that never runs its Python."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from workshop.backend import interpreting

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
if not interpreting():
    pytest.skip("what the real jax-triton traces is tested on a GPU", allow_module_level=True)

from autograder.box import Box  # noqa: E402
from autograder.box.wire import ProtocolError, Report  # noqa: E402
from autograder.box.wire.codec import to_json  # noqa: E402
from autograder.box.wire.layout import Packer, read_result  # noqa: E402
from autograder.box.wire.programs import Constant, read  # noqa: E402
from autograder.box.wire.requests import (  # noqa: E402
    Decoy,
    JaxCall,
    JaxPlanRequest,
    JaxProgram,
    JaxReplayRequest,
    Scalar,
    Traced,
)
from autograder.judge.jax_programs import look  # noqa: E402

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


def scale(x, factor, **options):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    factor = jnp.asarray(factor, jnp.float32)
    options = {"BLOCK": 16} | options
    return jt.triton_call(x, factor, x.size, kernel=scale_kernel, out_shape=out, grid=-(-x.size // 16), **options)
"""


@pytest.fixture(scope="module")
def box():
    with Box("interpreter", confine=False) as started:
        yield started


def decoy(*shape: int, dtype="float32") -> Decoy:
    return Decoy(shape, tuple(torch.empty(shape, device="meta").stride()), dtype)


def traced(box, source: str, *programs: JaxProgram) -> list[Report]:
    return box.run(JaxPlanRequest(HEADER + source, "f", programs)).reports[:-1]


def evaluated(box, source: str, planned: Report, like: torch.Tensor, *inputs) -> tuple[torch.Tensor | None, Report]:
    packer = Packer()
    given = tuple(packer.tensor(each) if isinstance(each, torch.Tensor) else Scalar(each) for each in inputs)
    call = JaxCall(0, given, packer.slot(like.nbytes))
    request = JaxReplayRequest(HEADER + source, (planned.trace,), (call,), planned.programs)
    outcome = box.run(request, packer.tensors, packer.output_size)
    report = outcome.reports[0]
    got = None if report.error else read_result(call.slot, outcome.output, like.dtype, like.shape)
    return got, report


# -- both jobs together --------------------------------------------------------------------------------------------

X = torch.arange(1.0, 13.0).reshape(3, 4)
SAME = {
    "a launch": ("return scale(x, 3)", lambda x, n: 3 * x),
    "a number that is traced": ("return scale(x, n)", lambda x, n: n * x),
    "a launch on known numbers": ("return scale(x, scale(jnp.full(1, 2.0), 3)[0])", lambda x, n: 6 * x),
    "moves": ("return jnp.pad(scale(x, 2).T.reshape(-1)[2:], (0, 2)).reshape(4, 3).T",
              lambda x, n: torch.nn.functional.pad(2 * x.T.reshape(-1)[2:], (0, 2)).reshape(4, 3).T),
    "halves": ("return jnp.concatenate([scale(x[:1], 2), scale(x[1:], 3)])",
               lambda x, n: torch.cat([2 * x[:1], 3 * x[1:]])),
    "vmap": ("return jax.vmap(scale)(x, jnp.arange(3))", lambda x, n: torch.arange(3.0)[:, None] * x),
    "a condition": ("return jax.lax.cond(n > 3, lambda: scale(x, 2), lambda: scale(x, 3))", lambda x, n: 2 * x),
    "a loop": ("return jax.lax.fori_loop(0, 3, lambda i, y: scale(y, 2), x)", lambda x, n: 8 * x),
    "an open loop": ("return jax.lax.while_loop(lambda y: y[0, 0] < n, lambda y: scale(y, 2), x)",
                     lambda x, n: 8 * x),
    "arithmetic": ("return jax.nn.leaky_relu(x - 6) ** 2 / n + jnp.sum(x, axis=0)",
                   lambda x, n: torch.nn.functional.leaky_relu(x - 6) ** 2 / n + x.sum(0)),
    "rounded": ("return scale(x, jnp.round(n / 3.0, 1))", lambda x, n: 1.7 * x),
    "stacked and tiled": ("return scale(x, jnp.tile(jnp.stack([n, 7]), 2)[2])", lambda x, n: n * x),
    "numbers in a row": ("return scale(x, 1) + jnp.asarray(np.arange(5, 105).reshape(25, 4)[:3])",
                         lambda x, n: x + torch.arange(5, 17).reshape(3, 4)),
    "an aliased output": ("return scale(x, 2, input_output_aliases={0: 0})", lambda x, n: 2 * x),
    "a nested jit": ("return jax.jit(lambda a: scale(a, n))(x) + jax.jit(jnp.zeros_like)(x)", lambda x, n: n * x),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_what_is_evaluated_is_what_was_traced(box, name):
    body, expected = SAME[name]
    source = f"\ndef f(x, n):\n    {body}\n"
    (report,) = traced(box, source, JaxProgram((decoy(3, 4), Traced("int"))))
    assert report.error is None, report.error
    assert read(report.trace["program"]).known
    got, said = evaluated(box, source, report, X, X, 5)
    assert said.error is None, said.error
    torch.testing.assert_close(got, expected(X, 5).contiguous())


def test_a_loop_is_read_as_newer_versions_of_jax_describe_it():
    """JAX 0.11 says how many arrays a loop takes, and carries, by trees without values."""
    jax = pytest.importorskip("jax")
    from autograder.box.inside import jax_plan

    class Trees:
        def unpack(self):
            return [None], [None, None], [None, None, None]

    params = {"ft_in": Trees(), "jaxpr": jax.make_jaxpr(lambda x: x)(1.0), "length": 4, "reverse": False}
    expected = {"length": 4, "num_carry": 2, "num_consts": 1, "reverse": 0}
    assert jax_plan._inner("scan", params, None)["params"] == expected


def test_a_loop_that_nobody_can_read_is_no_crash_of_the_answer():
    from autograder.box.inside import jax_plan
    from autograder.box.inside.trace import NotReplayable

    with pytest.raises(NotReplayable, match="this version of JAX describes scan without"):
        jax_plan._inner("scan", {"jaxpr": None, "length": 4}, None)


def test_a_negative_grid_is_an_error_of_the_answer(box):
    launch = "jt.triton_call(x, x, 1, kernel=scale_kernel, out_shape=x, grid=(-1,), BLOCK=16)"
    (report,) = traced(box, f"\ndef f(x):\n    return {launch}\n", JaxProgram((decoy(3, 4),)))
    assert report.error.type == "ValueError" and "launch grid is -1" in report.error.message


def test_random_numbers_of_jax_are_the_same_numbers(box):
    source = "\ndef f(x, n):\n    return jax.random.uniform(jax.random.fold_in(jax.random.key(n), 3), x.shape)\n"
    jax = pytest.importorskip("jax")
    (report,) = traced(box, source, JaxProgram((decoy(3, 4), Traced("int"))))
    got, said = evaluated(box, source, report, X, X, 5)
    assert said.error is None, said.error
    expected = jax.random.uniform(jax.random.fold_in(jax.random.key(5), 3), (3, 4))
    assert got.tolist() == expected.tolist()


def test_a_gradient_is_a_program_too(box):
    source = """
@jax.custom_vjp
def f(x, n):
    return scale(x, n)

f.defvjp(lambda x, n: (f(x, n), n), lambda n, dy: (scale(dy, n), None))
"""
    (report,) = traced(box, source, JaxProgram((decoy(3, 4), Traced("int")), decoy(3, 4)))
    program = read(report.trace["program"])
    assert [launch.kernel for launch in program.launches()] == ["scale_kernel"]  # the forward pass is not needed
    got, _ = evaluated(box, source, report, X, X, 5, X + 1)
    torch.testing.assert_close(got, 5 * (X + 1))


def test_an_autotuned_launch_is_that_of_the_first_configuration(box):
    source = """
configs = [triton.Config({"BLOCK": b}, num_warps=b // 8) for b in (16, 32)]
tuned = triton.autotune(configs, key=[])(scale_kernel)

def f(x, n):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = lambda meta: (triton.cdiv(x.size, meta["BLOCK"]),)
    return jt.triton_call(x, jnp.float32(n), x.size, kernel=tuned, out_shape=out, grid=grid)
"""
    (report,) = traced(box, source, JaxProgram((decoy(3, 4), Scalar(2))))
    (launch,) = read(report.trace["program"]).launches()
    assert launch.grid == (1, 1, 1) and launch.options["num_warps"] == 2
    got, _ = evaluated(box, source, report, X, X)
    assert got.tolist() == (2 * X).tolist()


def test_every_configuration_of_an_autotuner_is_read(box):
    source = """
tuned = triton.autotune([triton.Config({"BLOCK": b}) for b in (16, 33)], key=[])(scale_kernel)

def f(x, n):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jt.triton_call(x, jnp.float32(n), x.size, kernel=tuned, out_shape=out, grid=(1,))
"""
    (report,) = traced(box, source, JaxProgram((decoy(3, 4), Scalar(2))))
    assert report.error.kind == "compile" and "power of 2" in report.error.message


def test_a_plain_call_is_traced_each_time(box):
    source = "\ncalls = []\ndef f(x, n):\n    calls.append(n)\n    return scale(x, len(calls))\n"
    program = JaxProgram((decoy(3, 4), Scalar(7)))
    reports = traced(box, source, program, program)
    programs = {name: text for report in reports for name, text in report.programs.items()}  # each is sent once
    for times, report in enumerate(reports, 1):
        report = replace(report, programs=programs)
        assert evaluated(box, source, report, X, X)[0].tolist() == (times * X).tolist()


# -- what the learner's process gets -------------------------------------------------------------------------------


def test_the_process_with_the_learners_python_gets_no_inputs_and_no_traced_seeds(judge, monkeypatch):
    requests = []

    def run(exercise, request, tensors=b"", output_size=0, share=1.0):
        requests.append((request, tensors, output_size))
        return original(exercise, request, tensors, output_size, share)

    original = judge.run
    monkeypatch.setattr(judge, "run", run)
    source = (TESTS / "right" / "leaky_dropout_grad" / "as_in_the_lesson.py").read_text()
    for name in ("leaky_dropout", "leaky_dropout_grad"):
        requests.clear()
        judge.judge(name, source)
        plans = [each for each in requests if each[0].kind == "jax-plan"]
        replays = [each[0] for each in requests if each[0].kind == "jax-replay"]
        assert plans and {each[1:] for each in plans} == {(b"", 0)}
        text = to_json(plans[-1][0])
        seeds = {each.scalar for call in replays[-1].cases for each in call.inputs if isinstance(each, Scalar)}
        arguments = (each for case in plans[-1][0].cases for each in case.arguments)
        shown = {each.scalar for each in arguments if isinstance(each, Scalar)}
        assert len(seeds - shown) >= 5 - 3 * name.endswith("grad")
        assert not any(str(seed) in text for seed in seeds - shown if seed > 1000)


def test_the_process_with_the_inputs_never_runs_the_learners_python(box):
    source = "\ndef f(x):\n    return scale(x, 2)\n"
    (report,) = traced(box, source, JaxProgram((decoy(3, 4),)))
    spoilt = source + "\nraise SystemExit('the module ran')\n" + "x = 1 / 0\n"
    got, said = evaluated(box, spoilt, report, X, X)
    assert said.error is None and got.tolist() == (2 * X).tolist()


# -- programs that no honest process sends ---------------------------------------------------------------------------

FORM = {"shape": [3, 4], "dtype": "float32"}
SCALAR = {"shape": [], "dtype": "float32"}


def program(*steps: dict, outputs=({"v": 1},), inputs=(FORM,)) -> dict:
    return {"inputs": list(inputs), "steps": list(steps), "outputs": list(outputs)}


def step(op="neg", given=({"v": 0},), out=(FORM,), **more) -> dict:
    return {"op": op, "in": list(given), "out": list(out), "params": {}} | more


GIVEN = [["x_ptr", ["in", 0], "*fp32"], ["n", 12, "i32"], ["y_ptr", ["out", 0], "*fp32"]]
LAUNCH = {"kernel": "scale_kernel", "program": "0" * 64, "grid": [1, 1, 1], "given": GIVEN, "options": {}, "zeroed": [],
          "aliases": []}  # fmt: skip
MALFORMED = {
    "nothing": {},
    "no object": 7,
    "a variable of nobody": program(step(given=[{"v": 1}])),
    "a variable below zero": program(step(given=[{"v": -1}])),
    "a flag for a number": program(step(given=[{"v": True}])),
    "an endless array": program(step(out=[{"shape": [1 << 20, 1 << 20], "dtype": "float32"}])),
    "an unknown dtype": program(step(out=[{"shape": [], "dtype": "object"}])),
    "too many steps": program(*[step() for _ in range(3000)]),
    "too many constants": program(step("concatenate", [{"c": {"shape": [64], "dtype": "float32"},
                                                       "values": [0.5] * 64}] * 9)),
    "an endless number": program(step(given=[{"c": SCALAR, "values": [1 << 70]}])),
    "a constant of another size": program(step(given=[{"c": FORM, "values": [1.0]}])),
    "an object for a parameter": program(step(params={"a": {"module": "os"}})),
    "an endless parameter": program(step(params={"a": [[[[[1]]]]]})),
    "a launch on an array that is not there": program(
        step("launch", launch=LAUNCH | {"given": [["x_ptr", ["in", 1], "*fp32"]]})
    ),
    "a launch on arrays of nobody": program(step("launch", launch=LAUNCH | {"given": [["x", ["at", 0], "*fp32"]]})),
    "a launch with a half grid": program(step("launch", launch=LAUNCH | {"grid": [1]})),
    "a number for a pointer": program(step("launch", launch=LAUNCH | {"given": [["x_ptr", 7, "*fp32"]]})),
    "a launch of an object": program(step("launch", launch=LAUNCH | {"given": [["a", {"call": "os"}, "i32"]]})),
    "deep programs": program(step("cond", inner=[program(step("cond", inner=[program(step(
        "cond", inner=[program(step())]))]))])),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_program_that_nobody_would_send_is_refused(name):
    with pytest.raises(ProtocolError):
        read(MALFORMED[name])


def test_an_honest_program_is_read():
    made = read(program(step(), step("exp", [{"v": 0}]), outputs=[{"v": 1}]))
    assert [each.op for each in made.steps] == ["neg"]  # what is not needed is left out
    assert made.known and not read(program(step("pure_callback"))).known


FORGED = {
    "arithmetic on a whole array, told as that on a number": program(step(out=[SCALAR])),
    "another dtype": program(step(out=[FORM | {"dtype": "float16"}])),
    "another input": program(step(given=[{"v": 0}]), inputs=[SCALAR]),
    "a program that is not there": program(step("launch", launch=LAUNCH)),
    "an unknown operation": program(step("pure_callback")),
    "a table": program(step("add", [{"v": 0}, {"c": FORM, "table": True}])),
    "a parameter of another kind": program(step("convert_element_type", params={"new_dtype": 3})),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_program_is_not_evaluated(box, name):
    got, report = evaluated(box, "\ndef f(x):\n    return x\n", Report(0, trace={"program": FORGED[name]}), X, X)
    assert got is None and report.error is not None


def test_the_judge_tells_a_program_that_it_cannot_read(judge):
    source = """
def leaky_dropout(x, p, seed):
    import sys
    encoder = next(v for m in list(sys.modules.values()) for k, v in list(vars(m).items()) if k == "_Encoder")
    encoder.program = lambda *rest: {"inputs": [], "steps": "none", "outputs": []}
    return x
"""
    verdict = judge.judge("leaky_dropout", source)
    assert verdict.diagnosis == "crash" and "not a report" in verdict.message


# -- what the judge sees in a program --------------------------------------------------------------------------------


def constants(*sizes: int) -> dict:
    given = [{"c": {"shape": [n], "dtype": "float32"}, "values": [i / 7 for i in range(n)]} for n in sizes]
    return step("concatenate", given, params={"dimension": 0})


def test_a_few_numbers_are_no_arithmetic():
    assert not look(read(program(step(out=[SCALAR]))), False, False).arithmetic
    assert look(read(program(step())), False, False).arithmetic == {}  # 12 elements
    large = {"shape": [65], "dtype": "float32"}
    assert look(read(program(step(out=[large]))), False, False).arithmetic == {"neg": 65}


def test_a_table_in_small_pieces_is_a_table():
    assert look(read(program(constants(30, 31, 32))), False, False).arithmetic == {"table": 93}
    assert look(read(program(constants(30, 30, 30))), False, False).arithmetic == {}  # one table, used three times


def test_an_operation_in_a_loop_counts_any_number_of_times():
    inner = program(step(out=[SCALAR]))
    loop = read(program(step("scan", inner=[inner], params={"length": 1})))
    assert look(loop, False, False).arithmetic["neg"] == float("inf")
    once = read(program(step("cond", inner=[inner, inner])))
    assert not look(once, False, False).arithmetic


def test_a_gradient_needs_a_kernel_that_takes_the_incoming_one():
    launch = step("launch", launch=LAUNCH)
    beside = program(launch, step("mul", [{"v": 1}, {"v": 2}]), inputs=[FORM, FORM], outputs=[{"v": 3}])
    assert look(read(beside), True, True).bare_gradient
    behind = program(step("launch", [{"v": 1}], launch=LAUNCH), inputs=[FORM, FORM], outputs=[{"v": 2}])
    assert not look(read(behind), True, True).bare_gradient


def test_numbers_in_a_row_are_no_table():
    row = Constant(read(program(step())).forms[0], None, 5, 1)
    made = read(program(step("add", [{"v": 0}, {"c": FORM, "first": 5, "step": 1}])))
    assert replace(row) in set(made.constants()) and not look(made, False, False).arithmetic.get("table")


# -- under jit ----------- ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a launch", "vmap", "a condition", "a loop", "an open loop", "arithmetic"])
def test_a_program_can_be_evaluated_under_jit(box, name):
    """The body of a loop or of a condition is evaluated under jit, and the launches in it with it."""
    jax = pytest.importorskip("jax")
    from autograder.box.inside import jax_replay

    body, expected = SAME[name]
    (report,) = traced(box, f"\ndef f(x, n):\n    {body}\n", JaxProgram((decoy(3, 4), Traced("int"))))

    def scale(launch, arrays, forms):
        def kernel(x, factor):
            return (x * factor,)

        assert launch.grid and launch.program
        shapes = tuple(jax.ShapeDtypeStruct(form.shape, form.dtype) for form in forms)
        return jax.pure_callback(kernel, shapes, *arrays)

    function = jax.jit(lambda *inputs: jax_replay._evaluate(read(report.trace["program"]), scale, *inputs))
    got = function(X.numpy(), 5)[0]
    torch.testing.assert_close(torch.from_numpy(got.__array__().copy()), expected(X, 5).contiguous())
