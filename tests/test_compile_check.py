"""What the interpreter runs must also compile: every launched kernel, for an NVIDIA and an AMD GPU, in the box."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from autograder.box import Outcome
from autograder.box.inside import compiler, specialise
from autograder.box.wire import Evidence, ProtocolError, Report, Result, Specialisation, Trouble, encode, parse
from autograder.box.wire.requests import CompileCase, CompileRequest, TemplateRequest, decode_job, encode_job
from autograder.diagnosis import refused
from autograder.exercises import find
from autograder.judge import compiling

TESTS = Path(__file__).parent
RIGHT = (TESTS / "right" / "vector_add" / "plain.py").read_text()
RESULT = Result((3,), "float32", "cpu", True, False)
TYPES = {"x_ptr": {"type": "*fp32"}, "y_ptr": {"type": "*fp32"}, "output_ptr": {"type": "*fp32"}}
ADD = Specialisation("add_kernel", {**TYPES, "n_elements": {"type": "i32"}, "BLOCK_SIZE": {"constant": 256}}, {})

pytestmark = pytest.mark.skipif(compiling.TARGETS != ["cuda", "hip"], reason="this Triton has one compiler")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(compiling, "_remembered", {})


def on_the_interpreter(judge):
    if judge.backend != "interpreter":
        pytest.skip("on a GPU, its own compiler decides")
    return judge


# -- in the box ------------------------------------------------------------------------------------------


def compiled(judge, source: str, *specials: Specialisation, thorough: bool = True) -> list[Report]:
    cases = [CompileCase(s, target, deep) for deep in (False, True) for s in specials for target in ("cuda", "hip")]
    request = CompileRequest(source, tuple(case for case in cases if thorough or not case.thorough))
    return on_the_interpreter(judge).box.run(request).reports[:-1]


def test_a_confined_process_compiles_for_both_vendors_to_the_last_stage(judge):
    """Otherwise every target would be "not here", and nothing would be refused."""
    assert [report.value for report in compiled(judge, RIGHT, ADD)] == ["compiled"] * 4


LINES = ("x + tl.sum(y, axis=0)", "x + y.max()", "x * tl.rand(3, offsets)", "max(x, y)", "libdevice.tanh(x)",
         "tl.erf(x)", "tl.cdiv(n_elements, 3) + tl.cumsum(x)")  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_functions_of_triton_are_the_compilers(judge, line):
    libdevice = "\nfrom triton.language.extra import libdevice\n\n\n"
    source = RIGHT.replace("x + y", line).replace("\n\n\n", libdevice, 1)
    assert [report.value for report in compiled(judge, source, ADD)] == ["compiled"] * 4


def test_a_refusal_has_the_learners_line(judge):
    source = RIGHT.replace("mask = offsets < n_elements", "mask = offsets < int(n_elements)")
    first = compiled(judge, source, ADD, thorough=False)[0].error
    number = 1 + source.splitlines().index("    mask = offsets < int(n_elements)")
    assert (first.kind, first.line, first.construct) == ("compile", number, "cuda")
    assert first.message == "int() argument must be a string, a bytes-like object or a real number, not 'tensor'"


def test_a_refusal_in_a_helper_has_the_line_in_the_helper(judge):
    helper = "@triton.jit\ndef helper(x):\n    for i in range(3):\n        x = tl.sum(x, axis=0)\n    return x\n\n\n"
    source = RIGHT.replace("x + y", "x + helper(y)").replace("@triton.jit", helper + "@triton.jit")
    first = compiled(judge, source, ADD, thorough=False)[0].error
    assert first.line == 1 + source.splitlines().index("    for i in range(3):")


def test_constants_of_all_kinds_arrive(judge):
    source = RIGHT.replace("BLOCK_SIZE: tl.constexpr", "BLOCK_SIZE: tl.constexpr, T: tl.constexpr, F: tl.constexpr, "
                           "S: tl.constexpr, N: tl.constexpr, L: tl.constexpr")  # fmt: skip
    source = source.replace("x + y", "F(x.to(T) + L[0], y) if (N is None) & (S == 'a') else x")
    source = source.replace("@triton.jit", "@triton.jit\ndef plus(a, b):\n    return a + b\n\n\n@triton.jit")
    more = {"T": {"dtype": "float32"}, "F": {"kernel": "plus"}, "S": "a", "N": None, "L": [1.0, 2.0]}
    special = replace(ADD, parameters=ADD.parameters | {name: {"constant": value} for name, value in more.items()})
    reports = compiled(judge, source.replace("F(x", "plus(x"), special, thorough=False)
    assert [report.value for report in reports] == ["compiled"] * 2, reports


def test_a_machine_that_cannot_compile_for_a_target_blames_nobody(monkeypatch):
    monkeypatch.setattr(compiler, "make_backend", lambda target: 1 / 0)
    report = compiler._Compiler({None: {}}).report(0, CompileCase(ADD, "hip"))
    assert (report.value, report.error) == ("not here", None)


# -- launch options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, backend, said",
    [
        ({"num_warps": 3}, "cuda", "num_warps is 3, and must be a power of two"),
        ({"num_warps": 0}, "hip", "num_warps is 0, and must be at least 1"),
        ({"num_warps": -4}, "cuda", "num_warps is -4, and must be at least 1"),
        ({"num_warps": 64}, "cuda", "these are 2048 threads"),
        ({"num_warps": 32}, "interpreter", "as on AMD's GPUs, these are 2048 threads"),
        ({"num_warps": 4.0}, "cuda", "num_warps is '4.0', and must be an integer"),
        ({"num_stages": -1}, "cuda", "num_stages is -1"),
        ({"num_ctas": 3}, "cuda", "num_ctas is 3, and must be a power of two"),
        ({"num_warps": 32}, "cuda", None),
        ({"num_warps": 16, "num_stages": 1, "num_ctas": 1, "maxnreg": None}, "interpreter", None),
        ({"num_warps": None}, "interpreter", None),
        ({}, "interpreter", None),
    ],
)
def test_launch_options_are_those_that_a_gpu_takes(options, backend, said):
    if said is None:
        specialise.check_options(options, backend)
        return
    with pytest.raises(specialise.BadOption) as error:
        specialise.check_options(options, backend)
    assert said in str(error.value)


def test_a_constant_of_the_kernel_is_no_launch_option(judge):
    source = RIGHT.replace("BLOCK_SIZE: tl.constexpr", "BLOCK_SIZE: tl.constexpr, num_warps: tl.constexpr")
    assert judge.judge("vector_add", source.replace("BLOCK_SIZE=1024", "BLOCK_SIZE=1024, num_warps=3")).passed


# -- what is compiled ------------------------------------------------------------------------------------


def special(types: str = "*fp32", **constants: int) -> Specialisation:
    return Specialisation("k", {"x": {"type": types}} | {n: {"constant": v} for n, v in constants.items()}, {})


def block_of(one: Specialisation) -> tuple[str, int]:
    return one.parameters["x"]["type"], one.parameters["BLOCK"]["constant"]


def test_every_type_is_compiled_and_blocks_are_not_all():
    launched = [special(types, BLOCK=2**n) for types in ("*fp32", "*fp16", "*bf16") for n in range(4, 8)]
    cases = compiling._cases(launched, [])
    expected = {("*fp32", 16), ("*fp16", 16), ("*bf16", 16), ("*fp32", 128)}
    assert {block_of(case.specialisation) for case in cases} == expected
    assert [(c.target, c.specialisation) for c in cases if c.thorough] == [("cuda", launched[0])]
    assert [c.thorough for c in cases] == [False] * 5 + [True]  # the first stage of everything comes first


def test_every_kernel_is_compiled():
    types = ("*fp64", "*i8", "*i16", "*i32", "*i64", "*fp32", "*fp16", "*bf16")
    launched = [special(each, BLOCK=16) for each in types]
    launched += [replace(special(BLOCK=16), kernel=f"k{n}") for n in range(12)]
    cases = compiling._cases(launched, [])
    assert {case.specialisation.kernel for case in cases} == {"k", *(f"k{n}" for n in range(12))}


def test_every_configuration_is_compiled_once():
    space = [{"BLOCK": 2**n, "num_warps": w} for n in range(4, 8) for w in (4, 8)]
    step = {"op": "launch", "kernel": "k", "args": {}, "tuned": {"space": space, "choice": 0, "key": []}}
    launched = [replace(special(BLOCK=16), options={"num_warps": 4}), replace(special("*fp16", BLOCK=16), options={})]
    cases = compiling._cases(launched, [{"steps": [step]}, {"steps": [step]}])
    first = [case.specialisation for case in cases if case.target == "cuda" and not case.thorough]
    seen = sorted((*block_of(each), each.options["num_warps"]) for each in first if each.options)
    assert seen == sorted(("*fp32", configuration["BLOCK"], configuration["num_warps"]) for configuration in space)


def test_a_hostile_answer_cannot_ask_for_many_compilations():
    launched = [replace(special(BLOCK=2**n), kernel=f"k{n}") for n in range(60)]
    space = [{"BLOCK": n} for n in range(5000)]
    step = {"op": "launch", "kernel": "k1", "args": {}, "tuned": {"space": space, "choice": 0, "key": []}}
    assert len(compiling._cases(launched, [{"steps": [step]}])) <= 80


def test_specialisations_say_what_a_launch_would():
    @triton.jit
    def kernel(x_ptr, n, m, p, BLOCK: tl.constexpr):
        pass

    @triton.jit
    def forced(n: tl.int64):
        pass

    seen = specialise.Specialisations()
    for n in (7, 1, 2**40, 9):
        seen.add(kernel, {"x_ptr": torch.zeros(3).half(), "n": n, "m": None, "p": 0.5, "BLOCK": 16}, {"num_warps": 8})
    assert [each.parameters["n"] for each in seen] == [{"type": "i32"}, {"constant": 1}, {"type": "i64"}]
    seen.add(forced, {"n": 1}, {})
    assert list(seen)[-1].parameters == {"n": {"type": "i64"}}
    first = next(iter(seen))
    assert first.parameters["x_ptr"] == {"type": "*fp16"} and first.parameters["m"] == {"constant": None}
    assert (first.kernel, first.options) == ("kernel", {"num_warps": 8})
    for n in range(10_000):
        seen.add(kernel, {"x_ptr": torch.zeros(3), "n": 3, "m": 3, "p": 0.5, "BLOCK": n}, {})
    report = Report(0, result=RESULT, evidence=Evidence(specialisations=tuple(seen)))
    assert len(encode(report)) < 10_000 and parse(encode(report)) == [report]


# -- verdicts --------------------------------------------------------------------------------------------


class Straw:
    """A judge whose box answers each case with what `say` returns: a Report without its number, or None for a death."""

    compiles, backend = True, "interpreter"

    def __init__(self, say):
        self.say, self.jobs = say, []

    def run(self, exercise, request):
        self.jobs.append(request)
        reports = []
        for index, case in enumerate(request.cases):
            said = self.say(case)
            if isinstance(said, str):
                return Outcome(reports, b"", exceeded=said if said == "time" else None, exit=-6)
            reports.append(replace(said, case=index))
        return Outcome(reports, b"")


FINE = Report(0, has_value=True, value="compiled")
WRONG = Report(0, error=Trouble("compile", "RuntimeError", "PassManager::run failed", construct="hip"))


@pytest.mark.parametrize(
    "say, slug",
    [
        (lambda case: FINE, None),
        (lambda case: WRONG if case.target == "hip" and not case.thorough else FINE, "compile-error"),
        (lambda case: WRONG if case.thorough else FINE, "compile-error"),
        (lambda case: WRONG if case.thorough and case.target == "cuda" else FINE, None),
        (lambda case: "dies" if case.thorough and case.target == "cuda" else FINE, None),
        (lambda case: "dies" if case.thorough else FINE, "compile-error"),
        (lambda case: "dies", "compile-error"),
        (lambda case: "time", "timeout"),
        (lambda case: "time" if case.thorough else FINE, None),
        (lambda case: Report(0, has_value=True, value="not here"), None),
    ],
)
def test_an_error_of_the_first_stage_counts_and_later_ones_count_for_all_targets(say, slug):
    finding = compiling.refusal(Straw(say), find("vector_add"), RIGHT, [ADD], [])
    assert (finding and finding.slug) == slug


def test_a_failure_of_the_job_itself_is_not_the_answers():
    judge = Straw(lambda case: Report(0, error=Trouble("exception", "Unconfined", "no Landlock")))
    with pytest.raises(RuntimeError, match="no Landlock"):
        compiling.refusal(judge, find("vector_add"), RIGHT, [ADD], [])


def test_the_same_answer_is_compiled_once_and_another_one_again():
    judge = Straw(lambda case: FINE)
    for source in (RIGHT, RIGHT, RIGHT + "\n", RIGHT):
        compiling.refusal(judge, find("vector_add"), source, [ADD], [])
    assert len(judge.jobs) == 2


def test_what_may_depend_on_the_machine_is_not_remembered():
    judge = Straw(lambda case: "time")
    assert compiling.refusal(judge, find("vector_add"), RIGHT, [ADD], []).slug == "timeout"
    judge.say = lambda case: FINE
    assert compiling.refusal(judge, find("vector_add"), RIGHT, [ADD], []) is None


def test_a_kernel_that_never_ends_compiling_fails(judge):
    """The branch is never taken on the interpreter, and the compiler writes out a million steps."""
    loop = "output = x + y\n    if n_elements < 0:\n        for i in tl.static_range(1000000):\n            output += i"
    exercise = replace(find("vector_add"), limit_seconds=3.0)
    verdict = on_the_interpreter(judge).verdict_on(exercise, RIGHT.replace("output = x + y", loop))
    assert (verdict.passed, verdict.diagnosis) == (False, "timeout")
    assert "compiler" in verdict.message
    assert judge.judge("vector_add", RIGHT).passed


def test_the_learner_reads_what_it_means(judge):
    loop = "0\n    for i in range(pid):\n        block_start += BLOCK_SIZE * 1.0\n"
    source = RIGHT.replace("pid * BLOCK_SIZE\n", loop)
    source = source.replace("offsets = block_start", "offsets = (block_start * 1.0).to(tl.int32)")
    verdict = on_the_interpreter(judge).judge("vector_add", source)
    assert verdict.diagnosis == "compile-error"
    assert "runs on the interpreter, but the compiler for NVIDIA GPUs refuses it" in verdict.message
    assert "A variable keeps one type and one shape in a loop" in verdict.message
    assert verdict.finding.code == "for i in range(pid):"


def test_a_blank_that_only_the_compiler_refuses_is_not_right(judge):
    path = TESTS / "wrong" / "online_softmax" / "compile-error__mask_with_pythons_int.py"
    verdict = on_the_interpreter(judge).judge("online_softmax", path.read_text())
    assert (verdict.score, [name for name, right in verdict.blanks.items() if not right]) == (4, ["mask"])


@pytest.mark.parametrize(
    "message",
    [
        "Loop-carried variable acc has initial type <['128'], fp32> but is re-assigned",
        "x is not defined",
        "abs is not defined",
        "maximum recursion depth exceeded",
        "{0.__class__}",
    ],
)
def test_a_message_of_the_compiler_is_explained(message):
    finding = refused(Trouble("compile", "CompilationError", message, 3, "x = y", "cuda"), {"BLOCK": 16})
    assert finding.slug == "compile-error" and finding.line == 3 and finding.advice
    assert "<['128'], fp32>" not in finding.happened


# -- the wire --------------------------------------------------------------------------------------------


def test_a_request_arrives_as_it_was_sent():
    cases = (CompileCase(ADD, "cuda", True), CompileCase(ADD, "hip", blank="x"))
    request = CompileRequest("source", cases, TemplateRequest("s", "k", ("x",)))
    assert decode_job(encode_job(request))[0] == request


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "k", "parameters": {"x": {"type": "*fp32" * 9}}, "options": {}},
        {"kernel": "k", "parameters": {"x": {"type": "i32", "constant": 1}}, "options": {}},
        {"kernel": "k", "parameters": {"x": {"code": "1"}}, "options": {}},
        {"kernel": "k", "parameters": {"x": {"constant": {"dtype": ["float32"]}}}, "options": {}},
        {"kernel": "k", "parameters": {"x": {"constant": 1 << 70}}, "options": {}},
        {"kernel": "k", "parameters": {"x": {"constant": [[1]]}}, "options": {}},
        {"kernel": "k", "parameters": {str(n): {"type": "i32"} for n in range(65)}, "options": {}},
        {"kernel": "k", "parameters": {}, "options": {"num_warps": "4"}},
        {"kernel": "k" * 101, "parameters": {}, "options": {}},
        {"kernel": "k", "parameters": []},
    ],
)
def test_a_forged_specialisation_is_not_read(given):
    evidence = Evidence(specialisations=(Specialisation(**({"options": {}} | given)),))
    with pytest.raises(ProtocolError):
        parse(encode(Report(0, result=RESULT, evidence=evidence)))
