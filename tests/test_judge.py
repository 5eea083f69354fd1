"""The judge from outside: what it says of answers that end their process, lie, or go astray."""

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from known import source_of

from autograder.box import Box, Outcome, wire
from autograder.cli import main
from autograder.exercises import EXERCISES
from autograder.exercises.softmax import ONLINE_TEMPLATE
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge import Judge
from workshop.executor.records import Fault, Race, Undefined

GALLERY = Path(__file__).parent
CONTRACT = {"exercise", "passed", "score", "points", "backend", "diagnosis", "message", "cases", "blanks"}


SLEEPER = "import time\n\ndef add(x, y):\n    time.sleep(x)\n"


def add_with(old: str, new: str) -> str:
    assert old in ADD_TEMPLATE
    return ADD_TEMPLATE.replace(old, new)


def test_the_json_is_the_contract(judge):
    verdict = judge.judge("vector_add", ADD_TEMPLATE).to_json()
    assert set(verdict) == CONTRACT
    assert verdict["passed"] and verdict["score"] == 5 and verdict["diagnosis"] is None
    assert set(verdict["cases"][0]) == {"name", "passed", "diagnosis", "message"}
    assert list(verdict["blanks"]) == ["offsets", "mask", "x", "y", "store"]


@pytest.mark.parametrize(
    "body, diagnosis",
    [
        ("return x + y", "no-triton-kernel"),
        ("import os\n    os._exit(0)", "crash"),
        ("import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)", "crash"),
        ("import ctypes\n    ctypes.string_at(0)", "crash"),
        ("raise NotImplementedError", "not-attempted"),
        ("pass", "not-attempted"),
        ("return torch.empty(3) if len(x) != 3 else x", "wrong-shape"),
        ("return x.to(torch.float64)", "wrong-dtype"),
        ("return [x, y]", "wrong-shape"),
        ("1 / 0", "runtime-error"),
        ("return x.cuda()", "wrong-device"),
        ("return torch.tensor([1.0], dtype=x.dtype).expand(x.shape).contiguous()", "no-triton-kernel"),
        ("x.add_(y)\n    return x", "no-triton-kernel"),
        ("return torch.zeros_like(x)", "not-attempted"),
        ("return", "not-attempted"),
        ("return ...", "not-attempted"),
        ("return {'sum': x}", "wrong-shape"),
        ("return 3.0", "wrong-dtype"),
    ],
)
def test_host_functions_that_go_astray(judge, body, diagnosis):
    source = f"import torch, triton\ndef add(x, y):\n    {body}\n"
    verdict = judge.judge("vector_add", source, seed=1)
    assert (verdict.passed, verdict.score) == (False, 0)
    assert verdict.diagnosis == diagnosis, verdict.to_text()


def test_dots_keep_the_points_of_the_other_blanks(judge):
    verdict = judge.judge("vector_add", add_with("mask = offsets < n_elements", "mask = ..."))
    assert (verdict.diagnosis, verdict.score) == ("not-attempted", 4)
    assert "`...`" in verdict.message


def test_a_pointer_into_nothing_has_no_shape_in_the_message(judge, few):
    with few():
        verdict = judge.judge("vector_add", add_with("tl.load(x_ptr + offsets", "tl.load(x_ptr + 10 ** 15 + offsets"))
    assert verdict.diagnosis == "out-of-bounds-load"
    assert "shape ()" not in verdict.message


def test_the_learners_line_is_named(judge):
    verdict = judge.judge("vector_add", "import torch\n\ndef add(x, y):\n    z = x\n    return z.nothing\n")
    assert verdict.finding.line == 5 and verdict.finding.code == "return z.nothing"


def test_an_endless_loop_ends(judge, monkeypatch):
    with monkeypatch.context() as shorter:
        shorter.setitem(EXERCISES, "vector_add", replace(EXERCISES["vector_add"], limit_seconds=1.0))
        verdict = judge.judge("vector_add", "def add(x, y):\n    while True: pass\n")
        assert verdict.diagnosis == "timeout"
        assert judge.seconds_left > 0.5  # of 2: one job was ended by its limit
    assert judge.judge("vector_add", ADD_TEMPLATE).passed  # the next answer is not affected


def test_a_ring_of_causes_ends(judge):
    ring = "    first, second = ValueError('first'), ValueError('second')\n    first.__cause__ = second\n"
    source = f"def add(x, y):\n{ring}    raise second from first\n"
    assert judge.judge("vector_add", source).diagnosis == "runtime-error"


def test_a_failure_of_the_judge_is_not_the_answers(judge, monkeypatch):
    def fail(_):
        raise RuntimeError("no rule for this")

    with monkeypatch.context() as broken:
        broken.setattr("autograder.judge.kernels.diagnose", fail)
        verdict = judge.judge("vector_add", ADD_TEMPLATE)
    assert (verdict.diagnosis, verdict.score) == ("grader-error", 0) and "no rule for this" in verdict.to_text()


def test_an_answer_has_one_time_for_all_its_jobs(judge):
    exercise = EXERCISES["vector_add"]
    asleep = wire.PlanRequest((SLEEPER,), "add", (wire.PlanCase((1.0, 1.0)),))
    judge.seconds_left = 1.6
    assert judge.run(exercise, asleep).exceeded is None
    assert judge.run(exercise, asleep).exceeded == "time"
    assert judge.seconds_left == 0
    assert judge.judge("vector_add", ADD_TEMPLATE).passed  # the next answer has its own


def test_each_blank_is_judged_on_its_own(judge, few):
    source = ONLINE_TEMPLATE.replace("in_exp_sum * tl.exp(in_max - in_max_new)", "in_exp_sum", 1)
    source = source.replace("mask = offsets < n_cols", "mask = offsets < 1", 1)
    with few():
        verdict = judge.judge("online_softmax", source)
    assert verdict.blanks == {
        "pid": True,
        "mask": False,
        "in_data": True,
        "in_max_new": True,
        "in_exp_sum": False,
    }
    assert verdict.score == 3


def test_right_blanks_in_a_wrong_kernel_are_not_full_marks(judge, few):
    with few():
        verdict = judge.judge("vector_add", add_with("output = x + y", "output = x - y"))
    assert all(verdict.blanks.values()) and verdict.score == 4


@pytest.mark.usefixtures("briefly")
def test_other_names_are_judged_whole(judge, few):
    source = ONLINE_TEMPLATE.replace("in_max_new", "m").replace("in_exp_sum", "d")
    wrong = source.replace("d * tl.exp(in_max - m)", "d")
    with few():
        assert judge.judge("online_softmax", source).score == 5
        verdict = judge.judge("online_softmax", wrong)
    assert (verdict.score, verdict.diagnosis) == (0, "missing-rescale")


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("call", ["tl.max(in_max, in_data)", "maximum(in_max, in_data)", "in_max.max(in_data)"])
def test_a_blank_that_does_not_compile_is_wrong_alone(judge, few, call):
    source = ONLINE_TEMPLATE.replace("tl.maximum(in_max, tl.max(in_data, axis=0))", call)
    with few():
        verdict = judge.judge("online_softmax", source)
    assert verdict.diagnosis == "compile-error" and verdict.finding.code == f"in_max_new = {call}"
    assert [name for name, right in verdict.blanks.items() if not right] == ["in_max_new"] and verdict.score == 4


@pytest.mark.usefixtures("briefly")
def test_the_maximum_of_the_block_alone_is_a_wrong_blank(judge):
    source = ONLINE_TEMPLATE.replace("tl.maximum(in_max, tl.max(in_data, axis=0))", "tl.max(in_data, axis=0)")
    verdict = judge.judge("online_softmax", source)
    assert not verdict.blanks["in_max_new"] and sum(verdict.blanks.values()) == 4


@pytest.mark.usefixtures("briefly")
def test_the_one_wrong_blank_says_what_nan_does_not(judge, few):
    source = ONLINE_TEMPLATE.replace("tl.exp(in_data - in_max_new)", "tl.exp(in_data - in_max)", 1)
    with few():
        assert judge.judge("online_softmax", source).diagnosis == "missing-rescale"


def test_the_line_is_quoted_as_it_was_written(judge, few):
    line = "y = tl.load( y_ptr+offsets )"
    with few():
        verdict = judge.judge("vector_add", re.sub(r"\by = tl\.load\(.*\)", line, ADD_TEMPLATE))
        refused = judge.judge("vector_add", re.sub(r"\by = tl\.load\(.*\)", "y = y_ptr.size(0)", ADD_TEMPLATE))
    assert (verdict.diagnosis, verdict.finding.code) == ("out-of-bounds-load", line)
    assert refused.finding.code == "y = y_ptr.size(0)" and "x.size(1)" in refused.message


def test_the_wrong_mask_is_found_where_it_is(judge):
    verdict = judge.judge("vector_add", add_with("mask = offsets < n_elements", "mask = offsets < n_elements + 1"))
    assert verdict.diagnosis in ("out-of-bounds-load", "out-of-bounds-store")
    assert "x_ptr" in verdict.message and "write `mask = offsets < n_elements`" in verdict.message
    assert verdict.finding.repair == "write `mask = offsets < n_elements`."
    assert verdict.blanks["mask"] is False and sum(verdict.blanks.values()) == 4


@pytest.mark.usefixtures("briefly")
def test_inputs_are_fresh_for_every_judgement(judge, few):
    """An answer that remembers what it saw cannot be right twice; the seed repeats a judgement."""
    wrong = add_with("output = x + y", "output = x - y")
    with few():
        first, second = (judge.judge("vector_add", wrong, seed=None).message for _ in range(2))
        assert first != second
        assert judge.judge("vector_add", wrong, seed=7).message == judge.judge("vector_add", wrong, seed=7).message


def test_prints_and_benchmarks_around_the_answer_do_not_matter(judge):
    tail = "\nprint(add(torch.ones(5), torch.ones(5)))\nassert torch.allclose(add(torch.ones(5), torch.ones(5)), 2)\n"
    assert judge.judge("vector_add", ADD_TEMPLATE + tail).passed


@pytest.mark.usefixtures("briefly")
def test_host_arithmetic_that_feeds_the_kernel_is_seen(judge):
    source = add_with("add_kernel[(triton", "x = x + y\n        y = torch.zeros_like(y)\n        add_kernel[(triton")
    verdict = judge.judge("vector_add", source)
    assert verdict.diagnosis == "no-triton-kernel" and "add" in verdict.message


def test_a_broken_box_is_not_the_learners_fault(judge):
    judge.start()
    judge.box.kill()
    assert judge.judge("vector_add", ADD_TEMPLATE).passed


def test_a_function_of_plain_values_needs_no_card():
    """torch's meta tensors import much, which a process beside a driver cannot do once it is confined."""
    source = (GALLERY / "right/bytes_moved/meta_tensors.py").read_text()
    with contextlib.closing(Judge(backend="cuda")) as judge:
        verdict = judge.verdict_on(EXERCISES["bytes_moved"], source)
        assert verdict.passed and verdict.backend == "cuda" and judge.box.process is None


def test_every_configuration_must_compile_on_a_card_too(few):
    """A card's autotuner passes over a configuration that does not compile."""
    pytest.importorskip("jax")
    source = source_of("leaky_dropout", "compile-error__configuration_is_no_power_of_two")
    with contextlib.closing(Judge(backend="cuda")) as judge, few():
        verdict = judge.verdict_on(EXERCISES["leaky_dropout"], source)
        assert verdict.diagnosis == "compile-error" and judge.box.process is None


def test_what_an_error_says_can_be_printed(judge):
    source = add_with("output = torch.empty_like(x)", 'raise ValueError("\\ud800 \\x1b[31m \\u202e")')
    verdict = judge.judge("vector_add", source)
    for text in (verdict.to_text(), verdict.to_html(), json.dumps(verdict.to_json(), ensure_ascii=False)):
        assert text.encode() and "\x1b" not in text and "\u202e" not in text


# -- the command line --------------------------------------------------------------------------------------------


def test_a_byte_order_mark_is_no_mistake(judge, monkeypatch, tmp_path):
    monkeypatch.setattr("autograder.box.started_early", lambda confine: None)
    monkeypatch.setattr("autograder.judge.Judge", lambda *_, **named: contextlib.nullcontext(judge))
    path = tmp_path / "answer.py"
    path.write_text(ADD_TEMPLATE, encoding="utf-8-sig")
    assert main(["check", "vector_add", str(path)]) == 0


def test_a_deep_default_is_refused_in_words(tmp_path, capsys):
    path = tmp_path / "answer.py"
    path.write_text(f"def add(x, y, z, deep={'-' * 400}1):\n    return x\n")
    assert main(["check", "vector_add", str(path)]) == 2
    assert "cannot be called with 2 arguments" in capsys.readouterr().err


# -- messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    [
        b"{",
        b"[1]",
        b'{"case": -1, "has_value": true, "value": 1}',
        b'{"case": 1e400, "has_value": true, "value": 1}',
        b'{"case": 0}',
        b'{"case": true, "has_value": true, "value": 1}',
        b'{"case": 0, "result": {"shape": "x"}, "evidence": {}}',
        b'{"case": 0, "error": {"kind": "' + b"x" * 100 + b'"}}',
        b'{"case": 0, "has_value": true, "value": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"case": 0, "trace": {"steps": [], "more": ' + b"[" * 100 + b"]" * 100 + b"}}",
        b'{"case": 0, "trace": {"steps": [{"op": ' + b"9" * 4000 + b"}]}}",
        b'{"case": 0, "trace": {"steps": [{"op": "view", "overload": "", "kwargs": {}, "out": [], "args": '
        + b"[" * 100 + b"]" * 100 + b"}]}}",
        b'{"found": {}}',
        b'{"found": [1]}',
        b'{"found": [{"key": 1}]}',
        b'{"found": [{"key": "k", "program": ' + b"[" * 100 + b"]" * 100 + b"}]}",
        b"\xff\xfe",
        b"9" * 10_000,
        b'{"done": true}\n' * (wire.MAX_LINES + 1),
        b"x" * (wire.MAX_STATUS + 1),
    ],
)
def test_malformed_reports_are_refused(status):
    with pytest.raises(wire.ProtocolError):
        wire.parse(status)


def test_a_report_is_charged_to_its_case():
    one, two = (wire.Report(0, has_value=True, value=number) for number in (1, 2))
    outcome = Outcome([one, two, wire.Report(None, done=True)], b"")
    assert outcome.by_case(1)[0].value == 1  # the first word counts
    died = Outcome([one], b"", exit=-11)
    assert died.by_case(3) == {0: died.reports[0], 1: died}


def test_garbled_reports_are_no_crash():
    garbled = Outcome([], b"", garbled="the report is too long")
    assert garbled.by_case(2) == {0: wire.Report(0, error=wire.Trouble("garbled", message="the report is too long"))}
    for died in (replace(garbled, exit=-11), replace(garbled, exceeded="time")):
        assert died.by_case(2) == {0: died}


FORGER = """
import os
import stat


def add(x, y):
    for descriptor in range(3, 60):
        try:
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                os.write(descriptor, b"passed\\n")
        except OSError:
            pass
    return x
"""


def test_what_is_not_a_report_is_named(judge):
    verdict = judge.judge("vector_add", FORGER)
    assert (verdict.passed, verdict.diagnosis) == (False, "crash")
    assert "is not a report" in verdict.message and "malformed (JSONDecodeError)" in verdict.message


# -- requests ----------------------------------------------------------------------------------------------------

SPEC = wire.TensorSpec((3, 4), (7, 1), "float32", 64, 48)
DECOY = wire.Decoy((3, 4), (7, 1), "float32")
LARGE = wire.LargeTensor((3, 4), (7, 1), "float32", (-4, 4), True)
TRACE = wire.Trace((wire.Input(0, (0,)), wire.Operation("view", "default", [{"t": 0}, [3, 4]], {}, (1,))), 1, 1)


@pytest.mark.parametrize(
    "request_",
    [
        wire.PlanRequest(
            ("a", "b"), "add", (wire.PlanCase((wire.Decoy((3, 4), (7, 1), "float16"), 0.5)), wire.PlanCase((), 3, 1))
        ),
        wire.ProgramRequest(
            "replay", "source", (wire.ReplayCase(TRACE, (SPEC, SPEC), wire.Slot(0, 48), "large"),), {"digest": "{}"}
        ),
        wire.ProgramRequest(
            "large", "source", (wire.LargeCase(TRACE, (LARGE, LARGE), 7, wire.Slot(0, 8), wire.Slot(64, 8)),), {}
        ),
        wire.ProgramRequest("compile", "", (wire.CompileCase("digest", {"num_warps": 4}, "hip"),), {"digest": "{}"}),
        wire.ProgramRequest("tune", "source", (wire.TuneCase(TRACE, (3,)),), {"digest": "{}"}),
        wire.ValueRequest(
            ("source",), "f", (wire.ValueCase(([1, {"device": {}}], None, {"arch": "x"}), devices=(2,)),)
        ),
        wire.JaxPlanRequest(
            ("source",), "f", (wire.PlanCase((DECOY, 0.5, wire.TRACED, DECOY), 2, part="gradient"), wire.PlanCase((1,)))
        ),
    ],
    ids=lambda request: request.kind,
)
def test_a_request_arrives_as_it_was_sent(request_):
    job = wire.encode_job(request_, b"tensors")
    decoded, tensors = wire.decode_job(job)
    assert decoded == request_ and bytes(tensors) == b"tensors"
    assert (len(job) - len(b"tensors")) % wire.ALIGNMENT == 0


def test_tensors_and_results_arrive_as_they_were_packed():
    packer = wire.Packer()
    drawn = [torch.randn(3, 5), torch.arange(7, dtype=torch.int32), torch.randn(2, 2).bfloat16(), torch.empty(0, 3)]
    specs = [packer.tensor(values) for values in drawn]
    assert packer.tensor(drawn[0], (9, 1)) == replace(specs[0], stride=(9, 1))  # packed once
    slots = [packer.slot(values.nbytes) for values in drawn]
    assert all(place.offset % wire.ALIGNMENT == 0 for place in (*specs, *slots))
    output = bytearray(packer.output_size)
    for values, spec, slot in zip(drawn, specs, slots, strict=True):
        tensor = wire.read_tensor(spec, memoryview(packer.tensors))
        assert torch.equal(tensor, values)
        wire.write_result(slot, output, packer.tensors[spec.offset : spec.offset + spec.bytes])
        wire.write_result(slot, output, bytes(slot.capacity + 1))  # does not fit
        assert torch.equal(wire.read_result(slot, bytes(output), values.dtype, values.shape), values)


PLACE = 1000, (1000,), "past the end", 1
FAULT = Fault("load", "kernel", (3, 0, 0), (32,), (8,), 24, 12, "code", "x_ptr", (1000,), (1,), *PLACE)
RESULT = wire.Result((3,), "float32", True, False)
UNDEFINED = Undefined("read", "kernel", "x_ptr", (3, 0, 0), 12, "code")
RACE = Race("read-write", "output_ptr", (7,), (), (1, 0, 0), False, 14, "tl.store(...)", 256, 0.5, 3)
EVIDENCE = wire.Evidence(("k",), (RACE,), ("x",), (UNDEFINED,), ("k",), (1.5,), ((3, 9),), 12, True)


@pytest.mark.parametrize(
    "report",
    [
        wire.Report(None, done=True),
        wire.Report(2, trace=TRACE, programs={wire.digest_of("{}"): "{}"}),
        wire.Report(0, result=RESULT, evidence=EVIDENCE),
        wire.Report(0, has_value=True, value={"a": [1, None, 2.5]}),
        wire.Report(0, has_value=True, value=None),
        wire.Report(None, error=wire.Trouble("fault", "Fault", "m", 3, "code", fault=FAULT)),
        wire.Report(1, error=wire.Trouble("report-too-large")),
    ],
)
def test_a_report_arrives_as_it_was_sent(report):
    assert wire.parse(wire.to_json(report)) == [report]


FLOOD = FORGER.replace('os.write(descriptor, b"passed\\n")', 'while os.write(descriptor, b"x" * 65536): pass')


def test_a_flood_of_reports_ends_the_job(judge):
    verdict = judge.judge("vector_add", FLOOD)
    assert (verdict.passed, verdict.diagnosis) == (False, "crash") and "too long" in verdict.message, verdict.to_text()


def test_memory_handed_to_the_box_is_sealed():
    import os

    from autograder.box import _memory

    descriptor = _memory(b"abc")
    try:
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 1)
    finally:
        os.close(descriptor)


def test_the_box_has_none_of_our_environment(monkeypatch):
    monkeypatch.setenv("GRADEBOOK_TOKEN", "secret")
    box = Box("interpreter", confine=False)
    assert "GRADEBOOK_TOKEN" not in box._environment()
    box.close()


def test_the_executors_box_sees_no_card():
    """Where torch sees one, a gradient in the zygote starts threads, and no job could compute one any more."""
    box = Box("interpreter", confine=False)
    assert box._environment()["CUDA_VISIBLE_DEVICES"] == box._environment()["HIP_VISIBLE_DEVICES"] == "-1"
    box.close()


def test_what_is_mapped_before_a_job_is_not_its_memory(few):
    """A torch for GPUs maps some gigabytes: right autotuned answers had too little left for Triton's front end."""
    with Judge(early=Box("interpreter", memory=600 << 20)) as judge, few():
        assert judge.judge("naive_softmax", source_of("naive_softmax", "block_pointers"), 1).passed
