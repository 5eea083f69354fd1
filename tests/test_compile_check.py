"""What runs without a GPU must also compile: Triton's front end reads each launch, later stages what passes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from known import source_of

from autograder.box import Outcome, wire
from autograder.box.inside import compiled, recorder
from autograder.diagnosis.conduct import refused
from autograder.exercises import EXERCISES
from autograder.judge import compiling
from autograder.judge.trials import Trials
from workshop.executor.records import Undefined

TESTS = Path(__file__).parent
RIGHT = (TESTS / "right" / "vector_add" / "plain.py").read_text()
RESULT = wire.Result((3,), "float32", True, False)

pytestmark = [
    pytest.mark.skipif(compiling.TARGETS != ["cuda", "hip"], reason="this Triton has one compiler"),
    pytest.mark.usefixtures("briefly"),
]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    monkeypatch.setattr(compiling, "_remembered", {})


def without_a_gpu(judge):
    if judge.backend != "interpreter":
        pytest.skip("on a GPU, its own compiler decides")
    return judge


# -- the front end, where the host function launches --------------------------------------------------------


def planned(judge, source: str) -> wire.Report:
    trials = Trials(without_a_gpu(judge), EXERCISES["vector_add"], source, seed=1)
    return trials.plan([source], trials.cases[:1])[0]


LINES = ("x + tl.sum(y, axis=0)", "x + y.max()", "x * tl.rand(3, offsets)", "max(x, y)", "libdevice.tanh(x)",
         "tl.erf(x)", "tl.cdiv(n_elements, 3) + tl.cumsum(x)", "tl.sort(x)", "tl.softmax(x)")  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_confined_process_compiles_for_both_vendors_to_the_last_stage(judge, line):
    """Otherwise every target would be "not here", and nothing would be refused."""
    libdevice = "\nfrom triton.language.extra import libdevice\n\n\n"
    source = RIGHT.replace("x + y", line).replace("\n\n\n", libdevice, 1)
    report = planned(judge, source)
    launch = report.trace.launches[0]
    assert bool(launch.hip) == ("libdevice" in line)  # there the vendors' libraries have other names
    cases = tuple(wire.CompileCase(launch.on(target), {}, target) for target in ("cuda", "hip"))
    said = judge.box.run(wire.ProgramRequest("compile", source, cases, report.programs)).reports[:-1]
    assert [(each.error, type(each.value)) for each in said] == [(None, int)] * 2


def test_a_refusal_has_the_learners_line(judge):
    source = RIGHT.replace("mask = offsets < n_elements", "mask = offsets < int(n_elements)")
    error = planned(judge, source).error
    number = 1 + source.splitlines().index("    mask = offsets < int(n_elements)")
    assert (error.kind, error.line, error.kernel) == ("compile", number, "add_kernel")
    assert error.message == "int() argument must be a string, a bytes-like object or a real number, not 'tensor'"


def test_a_refusal_in_a_helper_has_the_line_in_the_helper(judge):
    helper = "@triton.jit\ndef helper(x):\n    for i in range(3):\n        x = tl.sum(x, axis=0)\n    return x\n\n\n"
    source = RIGHT.replace("x + y", "x + helper(y)").replace("@triton.jit", helper + "@triton.jit")
    assert planned(judge, source).error.line == 1 + source.splitlines().index("        x = tl.sum(x, axis=0)")


def test_constants_of_all_kinds_arrive(judge):
    source = RIGHT.replace("BLOCK_SIZE: tl.constexpr", "BLOCK_SIZE: tl.constexpr, T: tl.constexpr, F: tl.constexpr, "
                           "S: tl.constexpr, N: tl.constexpr, L: tl.constexpr")  # fmt: skip
    source = source.replace("x + y", "F(x.to(T) + L[0], y) if (N is None) & (S == 'a') else x")
    source = source.replace("@triton.jit", "@triton.jit\ndef plus(a, b):\n    return a + b\n\n\n@triton.jit")
    source = source.replace("BLOCK_SIZE=1024", "BLOCK_SIZE=1024, T=tl.float32, F=plus, S='a', N=None, L=(0.0, 2.0)")
    verdict = judge.judge("vector_add", source)
    assert verdict.passed, verdict.to_text()


UNUSUAL = {
    "a factory": ("def made():\n    @triton.jit\n    def add_kernel", "    return add_kernel\n\nadd_kernel = made()\n"),
    "a class": (
        "class Kernels:\n    @staticmethod\n    @triton.jit\n    def add_kernel",
        "\n\nadd_kernel = Kernels.add_kernel\n",
    ),
    "a branch": ("if True:\n    @triton.jit\n    def add_kernel", "\n\n"),
}


@pytest.mark.parametrize("where", UNUSUAL)
def test_a_kernel_may_be_defined_anywhere(judge, where):
    begin, end = UNUSUAL[where]
    head, kernel = RIGHT.split("@triton.jit\ndef add_kernel")
    body, host = kernel.split("\n\n\n", 1)
    inner = body.replace("\n", "\n    ")
    source = f"{head}{begin}{inner}\n{end}\n\n{host}"
    verdict = judge.judge("vector_add", source)
    assert verdict.passed, verdict.to_text() + source


def test_two_kernels_of_one_name_are_two(judge):
    second = RIGHT[RIGHT.index("@triton.jit") : RIGHT.index("def add(")].replace("x + y", "x - y")
    source = RIGHT.replace("def add(", f"first = add_kernel\n\n\n{second}def add(").replace("add_kernel[", "first[")
    assert judge.judge("vector_add", source).passed
    assert not judge.judge("vector_add", source.replace("first[", "add_kernel[")).passed


def test_what_only_hardware_can_do_is_refused_by_its_name(judge):
    asm = 'tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.float32, True, 1)'
    verdict = without_a_gpu(judge).judge("vector_add", RIGHT.replace("x + y", asm))
    assert verdict.diagnosis == "not-allowed" and "inline assembly" in verdict.message


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
        recorder.check_options(options, backend)
        return
    with pytest.raises(recorder.BadOption) as error:
        recorder.check_options(options, backend)
    assert said in str(error.value)


def test_a_constant_of_the_kernel_is_no_launch_option(judge):
    source = RIGHT.replace("BLOCK_SIZE: tl.constexpr", "BLOCK_SIZE: tl.constexpr, num_warps: tl.constexpr")
    assert judge.judge("vector_add", source.replace("BLOCK_SIZE=1024", "BLOCK_SIZE=1024, num_warps=3")).passed


# -- what is compiled to the last stage --------------------------------------------------------------------

PROGRAMS = {f"{n}": "{}" for n in range(100)}


def launch(block: int, kernel: str = "k", program: str = "1", **options: int) -> wire.Launch:
    args = {"x": {"t": 0}, "n": 4096, "BLOCK": block}
    given = wire.Argument("x", {"t": 0}, "*fp32"), wire.Argument("n", 4096, "i32")
    return wire.Launch(kernel, (1, 1, 1), program, given, args, options)


def chosen(*launches: wire.Launch) -> list[tuple]:
    return [(each.kernel, each.args["BLOCK"]) for each in compiling._chosen(list(launches), PROGRAMS)]


def test_the_largest_blocks_that_compile_soon_are_compiled():
    assert chosen(launch(16), launch(1024), launch(64)) == [("k", 1024)]
    assert chosen(launch(1 << 17), launch(1 << 16)) == [("k", 1 << 16)]
    assert chosen(launch(16, num_warps=4), launch(16, num_warps=8)) == [("k", 16)] * 2
    assert chosen(launch(16), launch(16, kernel="other")) == [("k", 16), ("other", 16)]


def test_a_hostile_answer_cannot_ask_for_many_compilations():
    assert len(chosen(*(launch(16, kernel=f"k{n}") for n in range(60)))) == compiling.MAX_COMPILED


@pytest.mark.parametrize("change", [{"program": "x"}, {"hip": "x"}])
def test_a_launch_from_the_box_is_not_trusted(change):
    assert compiling._chosen([replace(launch(16), **change)], PROGRAMS) == []


@pytest.mark.parametrize("change", [{"program": None}, {"options": {"n": "4"}}, {"options": 3}])
def test_a_launch_of_another_form_is_refused(change):
    with pytest.raises(wire.ProtocolError):
        wire.parse(wire.to_json(wire.Report(0, trace=wire.Trace((replace(launch(16), **change),), 0))))


class Straw:
    """A judge whose box answers each case with what `say` returns: a Report without its number, or how it ends."""

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


def finding_of(judge, program: str = "1"):
    trace = wire.Trace((launch(16, program=program),), 0)
    runs = Trials(judge, EXERCISES["vector_add"], RIGHT, 1)
    runs.programs = PROGRAMS
    return compiling.refusal(runs, [trace])


FINE = wire.Report(0, has_value=True, value=1024)
WRONG = wire.Report(0, error=wire.Trouble("compile", "RuntimeError", "PassManager::run failed", construct="hip"))
TOO_MUCH = wire.Report(0, has_value=True, value=300_000)
NOT_HERE = wire.Report(0, has_value=True)


@pytest.mark.parametrize(
    "say, slug",
    [
        (lambda case: FINE, None),
        (lambda case: WRONG, "compile-error"),
        (lambda case: WRONG if case.target == "cuda" else FINE, None),
        (lambda case: "dies" if case.target == "cuda" else FINE, None),
        (lambda case: "dies", "compile-error"),
        (lambda case: "time", None),
        (lambda case: NOT_HERE, None),
        (lambda case: WRONG if case.target == "cuda" else NOT_HERE, None),
        (lambda case: TOO_MUCH if case.target == "cuda" else FINE, "out-of-memory"),
        (lambda case: TOO_MUCH if case.target == "hip" else FINE, None),
    ],
)
def test_an_error_counts_for_all_targets_and_shared_memory_on_hopper(say, slug):
    finding = finding_of(Straw(say))
    assert (finding and finding.slug) == slug


def test_a_failure_of_the_job_itself_is_not_the_answers():
    judge = Straw(lambda case: wire.Report(0, error=wire.Trouble("exception", "Unconfined", "no Landlock")))
    with pytest.raises(RuntimeError, match="no Landlock"):
        finding_of(judge)


def test_the_same_program_is_compiled_once_and_another_one_again():
    judge = Straw(lambda case: FINE)
    for program in ("1", "1", "2", "1"):
        finding_of(judge, program)
    assert len(judge.jobs) == 2


def test_what_may_depend_on_the_machine_is_not_remembered():
    judge = Straw(lambda case: "dies")
    assert finding_of(judge).slug == "compile-error"
    judge.say = lambda case: FINE
    assert finding_of(judge) is None


def test_a_machine_that_cannot_compile_for_a_target_blames_nobody(monkeypatch):
    monkeypatch.setattr(compiled.rebuild, "compile_program", lambda *given, **named: 1 / 0)
    report = compiled.run(None, wire.CompileCase("digest", {}, "hip"), {"digest": None})
    assert (report.value, report.error) == (None, None)


# -- verdicts --------------------------------------------------------------------------------------------


def test_a_kernel_that_never_ends_compiling_fails(judge):
    """The branch is never taken, and the compiler writes out a million steps."""
    loop = "output = x + y\n    if n_elements < 0:\n        for i in tl.static_range(1000000):\n            output += i"
    exercise = replace(EXERCISES["vector_add"], limit_seconds=1.0)
    verdict = without_a_gpu(judge).verdict_on(exercise, RIGHT.replace("output = x + y", loop))
    assert (verdict.passed, verdict.diagnosis) == (False, "timeout")
    assert "compiler" in verdict.message
    assert judge.judge("vector_add", RIGHT).passed


def test_the_learner_reads_what_it_means(judge):
    loop = "0\n    for i in range(pid):\n        block_start += BLOCK_SIZE * 1.0\n"
    source = RIGHT.replace("pid * BLOCK_SIZE\n", loop)
    source = source.replace("offsets = block_start", "offsets = (block_start * 1.0).to(tl.int32)")
    verdict = without_a_gpu(judge).judge("vector_add", source)
    assert verdict.diagnosis == "compile-error"
    assert "Triton's compiler refuses the kernel" in verdict.message
    assert "A variable keeps one type and one shape in a loop" in verdict.message
    assert verdict.finding.code == "block_start += BLOCK_SIZE * 1.0"  # not the line of the loop


def test_a_blank_that_only_the_compiler_refuses_is_not_right(judge):
    source = source_of("online_softmax", "compile-error__mask_with_pythons_int")
    verdict = without_a_gpu(judge).judge("online_softmax", source)
    assert (verdict.score, [name for name, right in verdict.blanks.items() if not right]) == (4, ["mask"])


@pytest.mark.parametrize(
    "message",
    [
        "Loop-carried variable acc has initial type <['128'], fp32> but is re-assigned",
        "x is not defined",
        "abs is not defined",
        "maximum recursion depth exceeded",
        "unsupported AST node type: Break",
        "{0.__class__}",
    ],
)
def test_a_message_of_the_compiler_is_explained(message):
    finding = refused(wire.Trouble("compile", "CompilationError", message, 3, "x = y", "cuda"))
    assert finding.slug == "compile-error" and finding.line == 3 and finding.advice
    assert "<['128'], fp32>" not in finding.happened


# -- the wire --------------------------------------------------------------------------------------------


def test_a_program_has_the_name_of_its_text():
    report = wire.Report(0, trace=wire.Trace(), programs={wire.digest_of("[1]"): "[1]"})
    assert wire.parse(wire.to_json(report)) == [report]
    for forged in ({wire.digest_of("[1]"): "[2]"}, {"x": "[1]"}, {wire.digest_of("[1]"): 1}, [1]):
        line = json.dumps({"case": 0, "trace": {"steps": []}, "programs": forged}).encode()
        with pytest.raises(wire.ProtocolError):
            wire.parse(line)


@pytest.mark.parametrize(
    "change", [{"kind": 3}, {"kernel": "k" * 101}, {"program": ["0"]}, {"line": -1}, {"code": None}, {"argument": []}]
)
def test_a_forged_finding_is_not_read(change):
    undefined = Undefined("read", "k", "x", (0, 0, 0), 3, "code")
    report = json.loads(wire.to_json(wire.Report(0, result=RESULT, evidence=wire.Evidence(undefined=(undefined,)))))
    assert wire.parse(json.dumps(report).encode())
    report["evidence"]["undefined"][0] |= change
    with pytest.raises(wire.ProtocolError):
        wire.parse(json.dumps(report).encode())


@pytest.mark.parametrize("change", [{"kind": "jump"}, {"program": []}, {"lane": []}, {"stride": []}, {"place": "gap"}])
def test_a_fault_that_cannot_be_is_not_read(change):
    fault = {"kind": "load", "kernel": "k", "program": [0], "block": [4], "lane": [3], "lanes": 1, "argument": "x"}
    report = {"case": 0, "error": {"kind": "fault", "fault": fault | {"shape": [3], "stride": [1], "element": 3}}}
    assert wire.parse(json.dumps(report).encode())
    report["error"]["fault"] |= change
    with pytest.raises(wire.ProtocolError):
        wire.parse(json.dumps(report).encode())


def test_a_text_that_is_too_long_is_cut_before_it_is_sent():
    sent = Undefined("read", "k" * 101, "x", (0, 0, 0), 3, "c" * 401)
    (report,) = wire.parse(wire.to_json(wire.Report(0, result=RESULT, evidence=wire.Evidence(undefined=(sent,)))))
    assert report.evidence.undefined == (replace(sent, kernel="k" * 100, code="c" * 400),)


def test_a_tensor_of_nothing_is_seen(judge):
    source = RIGHT.replace("output = torch.empty_like(x)", "output = torch.empty_like(x)\n    y = torch.empty_like(y)")
    assert judge.judge("vector_add", source).diagnosis == "uninitialised-read"


# -- unusual answers that are right, or that are refused for a limit of ours --------------------------------

KERNEL = "@triton.jit\ndef add_kernel"
TUPLE = (("add_kernel(x_ptr, y_ptr,", "add_kernel(ptrs,"), ("(x, y, output,", "((x, y), output,"))
PASSES = {
    "map_elementwise": (("x + y", "tl.map_elementwise(plus, x, y)"),
                        (KERNEL, "@triton.jit\ndef plus(a, b):\n    return a + b\n\n\n" + KERNEL)),
    "jit called": ((KERNEL, "def _add"), ("def add(x", "add_kernel = triton.jit(_add)\n\n\ndef add(x")),
    "list comprehension": (("output = x + y", "sums = [each for each in [x, y]]\n    output = sums[0] + sums[1]"),),
    "tuple": (*TUPLE, ("x_ptr + offsets", "ptrs[0] + offsets"), ("y_ptr + offsets", "ptrs[1] + offsets")),
    "NamedTuple": (TUPLE[0], ("x_ptr + offsets", "ptrs.x + offsets"), ("y_ptr + offsets", "ptrs.y + offsets"),
                   ("(x, y, output,", "(Pair(x, y), output,"),
                   (KERNEL, "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    x: object\n    y: object"
                            "\n\n\n" + KERNEL)),
    "custom_op": (("def add(x: torch.Tensor, y: torch.Tensor):",
                   '@torch.library.custom_op("mine::add", mutates_args=())\n'
                   "def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:"),),
}  # fmt: skip
LIMITS = {
    "gluon": ((KERNEL, "from triton.experimental import gluon\n\n\n@gluon.jit\ndef add_kernel"),),
    "a module": (("import torch\n", "import torch\nimport cProfile\n"),
                 ("    output = torch", "    cProfile.Profile()\n    output = torch")),
}  # fmt: skip


def edited(edits) -> str:
    source = RIGHT
    for old, new in edits:
        assert old in source
        source = source.replace(old, new, 1)
    return source


@pytest.mark.parametrize("what", PASSES)
def test_what_the_compiler_takes_passes(judge, what):
    verdict = without_a_gpu(judge).judge("vector_add", edited(PASSES[what]))
    assert verdict.passed, verdict.to_text()


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_of_ours_is_told_as_ours(judge, what):
    verdict = without_a_gpu(judge).judge("vector_add", edited(LIMITS[what]), 1)
    assert verdict.diagnosis == "not-allowed", verdict.to_text()


def test_modules_for_another_answer_change_no_verdict(judge, few):
    """torch's compiler, which an operator needs, loads cProfile."""
    judge = without_a_gpu(judge)
    for seed in (1, 2):
        with few():
            assert judge.judge("vector_add", edited(PASSES["custom_op"]), seed).passed
            assert judge.judge("vector_add", edited(LIMITS["a module"]), seed).diagnosis == "not-allowed"
            assert judge.judge("vector_add", RIGHT, seed).passed


def test_each_configuration_is_compiled():
    steps = [replace(launch(2**n), tuned=wire.Tuned(({},), 0, ())) for n in range(4, 14)]
    assert len(compiling._chosen(steps, PROGRAMS)) == 10


def test_the_second_compiler_is_asked_only_if_the_first_one_refuses():
    judge = Straw(lambda case: FINE)
    assert finding_of(judge, "2") is None and [case.target for job in judge.jobs for case in job.cases] == ["cuda"]
    judge = Straw(lambda case: WRONG)
    assert finding_of(judge, "3").slug == "compile-error"
    assert [case.target for job in judge.jobs for case in job.cases] == ["cuda", "hip"]
