"""One call, one result: on stand-ins for other machines, and after many other calls."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from known import source_of
from triton.runtime import driver

import workshop
from autograder import gallery
from autograder.box import Box, Outcome
from autograder.box.inside.plan import NotShown, World
from autograder.box.inside.replay import decoys
from autograder.box.wire import Report, Shown, Trace
from autograder.diagnosis import diagnose
from autograder.exercises import EXERCISES, design
from autograder.judge import KernelJudgement, consistency, trials
from autograder.judge.trials import Trials, traces_of
from autograder.verdict import Finding

PLAIN = (Path(__file__).parent / "right" / "vector_add" / "plain.py").read_text()
HOST = "    output = torch.empty_like(x)\n"


def answer(first: str, before: str = "") -> str:
    """A right answer whose host function begins with other lines."""
    body = "".join(f"    {line}\n" for line in first.splitlines())
    return PLAIN.replace(HOST, body + HOST, 1).replace("def add(", f"{before}\n\n\ndef add(", 1)


# -- what a world answers --------------------------------------------------------------------------------


def test_a_tensor_is_on_the_card_of_its_world():
    with World(Shown("cuda", 132)) as world, world.calls():
        x = world.placed(torch.ones(2, 4))
        assert x.is_cuda and x.device == torch.device("cuda", 0) and x.get_device() == 0
        made = [x[1:], x.t(), x.half(), x + 1, x.to(x.device), torch.empty_like(x), torch.empty(3, device="cuda"),
                torch.zeros(2, device=0), torch.cat([x, x]), x.cpu().cuda(), x.cpu().to(x), x.split(1)[0]]  # fmt: skip
        assert all(each.is_cuda for each in made)
        hosts = [x.cpu(), x.to("cpu"), torch.empty(3), torch.empty(2, dtype=x.dtype), torch.ones_like(x, device="cpu")]
        assert not any(each.is_cuda for each in hosts)
        assert x.cpu().data_ptr() != x.data_ptr()
    assert not x.is_cuda


@pytest.mark.parametrize("kind, version, backend, warp", [("cuda", "cuda", "cuda", 32), ("hip", "hip", "hip", 64)])
def test_torch_triton_and_workshop_tell_one_machine(kind, version, backend, warp):
    before = driver.active
    with World(Shown(kind, 37)):
        active = driver.active
        assert torch.cuda.is_available() and torch.cuda.get_device_properties(0).multi_processor_count == 37
        assert active.utils.get_device_properties(0)["multiprocessor_count"] == 37 == workshop.device().multiprocessors
        assert active.utils.get_device_properties(0)["warpSize"] == warp
        assert active.get_current_target().backend == backend and getattr(torch.version, version)
        assert active.get_active_torch_device().type == "cuda" == workshop.DEVICE.type
    assert driver.active is before and not torch.version.hip or torch.cuda.is_available()


def test_the_switch_is_set_around_calls_only(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with World(Shown("cuda", 2, interpret=True)) as world:
        assert "TRITON_INTERPRET" not in os.environ
        with world.calls():
            assert os.environ["TRITON_INTERPRET"] == "1"
    assert os.environ["TRITON_INTERPRET"] == "0"


def test_what_a_world_lacks_is_said_to_be_ours():
    with World(Shown("cuda", 2)), pytest.raises(NotShown):
        torch.cuda._lazy_init()


# -- answers ---------------------------------------------------------------------------------------------

OTHER = "y = x"  # makes the output x + x
DEVICES = {
    "tensors of a card": f"if x.is_cuda:\n    {OTHER}",
    "its device": f"if x.device.type == 'cuda' and x.numel() < 100:\n    {OTHER}",
    "torch's question": f"if torch.cuda.is_available():\n    {OTHER}",
    "AMD": f"if torch.version.hip:\n    {OTHER}",
    "the switch is set": f"import os\nif os.environ.get('TRITON_INTERPRET') == '1':\n    {OTHER}",
    "the switch is not set": f"import os\nif not os.environ.get('TRITON_INTERPRET'):\n    {OTHER}",
    "an older card": f"if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 8:\n    {OTHER}",
    "a newer card": f"if triton.runtime.driver.active.get_current_target().arch == 'gfx950':\n    {OTHER}",
    "two cards": f"if torch.cuda.is_available() and torch.cuda.device_count() > 1:\n    {OTHER}",
    "many multiprocessors": "p = triton.runtime.driver.active.utils.get_device_properties(0)\n"
                            f"if p['multiprocessor_count'] > 100:\n    {OTHER}",
}  # fmt: skip


@pytest.fixture
def here(judge):
    if judge.backend != "interpreter":
        pytest.skip("the executor's judge does this")
    return judge


@pytest.mark.parametrize("what", DEVICES)
def test_a_branch_for_another_machine_is_tried(here, what):
    verdict = here.judge("vector_add", answer(DEVICES[what]), seed=1)
    assert verdict.diagnosis == "wrong-value" and "shown as" in verdict.message, verdict.to_text()
    assert "gets another tensor as y_ptr" in verdict.finding.means


def planned(judge, name: str, source: str, seed: int = 1) -> KernelJudgement:
    """A judgement whose cases are planned, and not replayed: other machines are compared with their plans."""
    judge.seconds_left = math.inf
    judgement = KernelJudgement(judge, EXERCISES[name], source, seed)
    judgement.trials.traces = traces_of(judgement.trials.plan([source], judgement.trials.cases))
    assert len(judgement.trials.traces) == len(judgement.trials.cases)
    return judgement


def test_a_long_cache_is_split_over_the_programs_of_every_card(here, few):
    source = gallery.solution("split_decode_attention")
    fixed = source.replace("max(1, round(2 * device().multiprocessors / heads))", "8")
    assert fixed != source
    with few(5):  # with a long cache
        finding = planned(here, "split_decode_attention", fixed).on_other_machines()
    assert finding and finding.slug == "wrong-program-id" and "shown as" in finding.case, finding


def test_the_numbers_of_a_call_belong_to_its_gradient(here):
    here.seconds_left = math.inf
    trials = Trials(here, EXERCISES["rms_norm"], gallery.solution("rms_norm").replace("ctx.eps", "RMSNorm.eps"), 1)
    trials.cases = [each for each in trials.cases if each.case.gradient is not None]
    trials.cases = sorted(trials.cases, key=lambda drawn: drawn.expected.numel())[:8]
    assert any(map(diagnose, trials.observe()))


def test_torch_does_not_compute_on_a_card(here):
    verdict = here.judge("vector_add", answer("if x.is_cuda:\n    return x + y"), seed=1)
    assert verdict.diagnosis == "no-triton-kernel", verdict.to_text()


STATE = {
    "a ring of results": ("r = R.setdefault((x.shape, x.dtype), [])\nr.append(r[-20] if len(r) >= 20 else x.clone())\n"
                          "if len(r) > 20:\n    return r[-1]", "R = {}"),
    "a count behind a harmless difference": (f"for _ in range(len(C)):\n    x.clone()\nC.append(1)\n"
                                             f"if len(C) > 100:\n    {OTHER}", "C = []"),
    "a count of calls": (f"C.append(1)\nif len(C) > 100:\n    {OTHER}", "C = []"),
}  # fmt: skip


@pytest.mark.parametrize("what", STATE)
def test_what_is_kept_over_many_calls_shows(here, what):
    verdict = here.judge("vector_add", answer(*STATE[what]), seed=1)
    assert verdict.diagnosis == "wrong-value" and "other calls" in verdict.message, verdict.to_text()


def test_a_key_that_lacks_the_size_is_no_fault_of_the_machine(here):
    """Two sizes have one key on a card only. There, the call alone is right."""
    source = answer("n = N.setdefault((x.dtype, x.is_cuda or x.numel()), x.numel())", "N = {}")
    trials = planned(here, "vector_add", source.replace("triton.cdiv(n_elements", "triton.cdiv(n")).trials
    drawn = [(i, each) for i, each in enumerate(trials.cases) if each.tensors[0].values.numel() in (1000, 2048)]
    calls = [consistency._Call(each, i, 1) for i, each in sorted(drawn, key=lambda each: each[1].expected.numel())]
    finding = consistency._found(trials, calls, consistency._planned(trials, calls))
    assert "after 1 other call" in finding.case and "keeps something of an earlier call" in finding.means, finding
    assert "The key must hold" in finding.advice and "shown as" not in finding.message


def test_a_nan_of_bfloat16_gets_its_line_from_float32(here):
    trials = planned(here, "vector_add", PLAIN.replace("x + y", "x + y + (x - x) / (x - x)")).trials
    number = next(i for i, drawn in enumerate(trials.cases) if drawn.case.name == "bfloat16, n = 2048")
    finding = diagnose(trials.replay({0: (trials.cases[number], trials.traces[number])})[0])
    assert finding.slug == "nan" and not finding.line
    found = consistency.with_the_line_of_nan(trials, finding)
    assert "(x - x) / (x - x)" in trials.source.splitlines()[found.line - 1] and "0 is divided by 0" in found.means


def test_a_case_of_which_nothing_is_seen_again_keeps_its_finding(here, monkeypatch):
    """The time of an exercise may be used up."""
    trials = planned(here, "vector_add", answer("n = N.setdefault(x.dtype, x.numel())", "N = {}")).trials
    monkeypatch.setattr(trials, "replay", lambda *_, **__: {})
    monkeypatch.setattr(consistency, "trace_of", lambda report: Trace())
    for look in (consistency.kept, consistency.with_the_line_of_nan):
        finding = Finding("nan", "Element 0 is nan.", case=trials.cases[0].case.name)
        assert look(trials, finding) is finding


def test_an_ordinary_case_that_is_right_alone_blames_what_is_kept(here):
    verdict = here.judge("vector_add", answer("n = N.setdefault(x.dtype, x.numel())", "N = {}").replace(
        "triton.cdiv(n_elements", "triton.cdiv(n"), seed=1)  # fmt: skip
    assert "The same call alone is right. There the launch of add_kernel has the grid" in verdict.message
    assert "keeps something of an earlier call" in verdict.message and "write `" not in verdict.message


def test_what_is_made_to_show_a_part_of_a_key_is_replayed_however_much_differs(here, monkeypatch):
    monkeypatch.setattr(consistency, "MOST_REPLAYED", 1)
    kept = source_of("fused_softmax", "unwritten-output__rows_of_a_program_kept_for_sizes_of_as_many_bits")
    finding = planned(here, "fused_softmax", kept, seed=8).on_other_machines()
    assert finding and "1900 × " in finding.case, finding
    assert "other calls" in finding.case, "another machine has other launches, too: there, it is no cause"


RIGHT = {
    "what a stand-in lacks": "if x.is_cuda:\n    torch.cuda.Stream()",
    "what a stand-in has": "if x.is_cuda:\n    torch.cuda.synchronize()\n    torch.cuda.current_stream().cuda_stream",
    "a kernel that each call makes": PLAIN[PLAIN.index("@triton.jit") : PLAIN.index("\n\n\ndef add(")],
    "a count": "C = globals().setdefault('C', [])\nC.append(len(C))",
}


@pytest.mark.parametrize("what", RIGHT)
def test_a_right_answer_stays_right(here, what):
    verdict = here.judge("vector_add", answer(RIGHT[what]), seed=1)
    assert verdict.passed and ("not known here" in verdict.note) == ("lacks" in what), verdict.to_text()


# How an answer may keep a call from being judged, and where: it is wrong there.
WAYS = {
    "ends": "import os\nos._exit(0)",
    "hangs": "while True:\n    pass",
    "takes memory": "kept = b'1' * (1 << 36)",
    "says that memory lacks": "raise MemoryError",
    "says that a driver lacks": "raise RuntimeError('Found no NVIDIA driver')",
    "asks for what a stand-in lacks": "torch.cuda.Stream()",
    "loops": "for _ in range(4100):\n    torch.empty(1, device=x.device)",
}
MAY_BE_OURS = {"takes memory", "says that memory lacks", "loops"}
PLACES = {
    "again": ("import builtins\nbuiltins.seen = getattr(builtins, 'seen', set()) | {id(C)}\n"
              f"C.append(1)\nif len(C) > 100:\n    {OTHER}\nif len(builtins.seen) > 1:\n", "C = []"),
    "large": (f"if x.numel() > 90_000:\n    {OTHER}\n", ""),
}  # fmt: skip


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_judged_is_blamed_or_said(here, way, place):
    where, before = PLACES[place]
    source = answer(where + "".join(f"    {line}\n" for line in WAYS[way].splitlines()), before)
    about = EXERCISES["vector_add"]  # its cases take 0.2 s
    about = replace(about, limit_seconds=0.8) if way == "hangs" or (way, place) == ("loops", "again") else about
    verdict = here.verdict_on(about, source, seed=1)
    if place == "large" and way in MAY_BE_OURS:  # we chose the size, so this may be no fault of the answer's
        assert verdict.passed and "could not be judged" in verdict.note, verdict.to_text()
    else:
        assert not verdict.passed and verdict.diagnosis != "grader-error", verdict.to_text()


def test_programs_are_not_counted_by_a_card_that_no_plan_was_made_for(here, few, monkeypatch):
    """A stand-in lacks streams. So large sizes are planned on this machine, whose multiprocessors are few."""
    source = gallery.solution("split_decode_attention")
    host = "    if heads == 0:"
    fixed = source.replace(host, f"    if q.is_cuda:\n        torch.cuda.Stream()\n{host}", 1)
    assert fixed != source
    with few(5):
        judgement = planned(here, "split_decode_attention", fixed)
    monkeypatch.setattr(trials, "_run_large", lambda *_: None)  # programs are counted before they run
    assert (judgement.on_other_machines(), judgement.at_large_sizes()) == (None, None)
    assert judgement.large_plans and "not known here" in judgement.trials.doubt


@pytest.mark.parametrize("line", ["assert x.is_cuda", "if not x.is_cuda:\n    raise ValueError('a GPU is needed')"])
def test_who_wants_a_card_is_told_that_none_is_here(here, line):
    verdict = here.judge("vector_add", answer(line), seed=1)
    assert verdict.diagnosis == "runtime-error" and "This machine has no GPU" in verdict.message, verdict.to_text()


def test_an_error_that_any_machine_gives_is_told_as_it_is(here):
    verdict = here.judge("vector_add", answer("raise ValueError('never')"), seed=1)
    assert verdict.diagnosis == "runtime-error" and "no GPU" not in verdict.message


# -- the calls -------------------------------------------------------------------------------------------


class Backend:
    backend = "interpreter"


@pytest.mark.parametrize("name", ["first_kernel", "vector_add", "bug_hunt", "fused_softmax"])
def test_each_case_is_called_on_each_kind_of_device_and_often_in_the_first_world(name):
    trials = Trials(Backend, EXERCISES[name], "", seed=1)
    trials.traces = dict.fromkeys(range(len(trials.cases)), Trace())
    calls = consistency._calls(trials)
    assert len(calls) < 256
    assert {call.world for call in calls} == set(range(len(consistency.WORLDS) - 1))  # the last is for large sizes
    for device in ("cpu", "cuda", "hip"):
        called = (call for call in calls if call.number is not None and call.world)
        there = [call.number for call in called if consistency.WORLDS[call.world].device == device]
        assert sorted(there) == list(trials.traces)
    small = {n for n, drawn in enumerate(trials.cases) if drawn.expected.numel() <= consistency.SMALL}
    often = [call.number for call in calls if call.world == 0]
    assert all(often.count(n) > 1 for n in small)


def test_forms_that_no_case_has_are_called_too():
    trials = Trials(Backend, EXERCISES["fused_softmax"], "", seed=1)
    made = [trials.drawn(case, i) for i, case in enumerate(consistency.other_forms(trials.exercise, trials.cases))]
    (first, *_) = (each.tensors[0] for each in made)
    assert len({each.tensors[0].values.shape for each in made}) == 1
    assert len({each.tensors[0].values.dtype for each in made}) > 1 and first.values.ndim == 2
    forms = [(x.values.shape, x.values.dtype, x.stride[0] > x.values.shape[1]) for x in (d.tensors[0] for d in made)]
    assert all(sum(a != b for a, b in zip(form, forms[0])) == 1 for form in forms[1:])


@pytest.mark.parametrize("name", ["fused_softmax", "outer_add", "decode_attention", "matmul"])
def test_two_sizes_change_places(name):
    inputs = EXERCISES[name].inputs
    one, other = (case.make(torch.Generator()) for case in inputs.alike_in_part(torch.Generator())[-2:])
    shapes = [[a.values.shape for a in made] for made in (one, other)]
    assert shapes[0] != shapes[1]
    sizes = [{n for shape in each for n in shape} for each in shapes]
    assert any(all(set(both) <= each for each in sizes) for both in (design.EXCHANGED, design.FEWER))


@pytest.mark.parametrize("name", ["outer_add", "add_2d", "matmul"])
def test_a_tensor_may_lie_in_the_memory_of_another(name):
    trials = Trials(Backend, EXERCISES[name], "", seed=1)
    (case,) = trials.exercise.inputs.overlapping(torch.Generator())
    call = consistency._Call(trials.drawn(case, 1), None, 3, overlapping=trials.exercise.inputs.alike)
    first, second = decoys(call.request().arguments, "cpu")
    assert first.data_ptr() == second.data_ptr() and (first.shape, first.stride()) != (second.shape, second.stride())


class Told(Backend):
    """A judge whose box has found something in each plan."""

    def __init__(self):
        self.known = []

    def run(self, exercise, request):
        self.known.append(sorted(request.known))
        return Outcome([Report(None, found={f"key {len(self.known)}": {}})], b"")


def test_what_a_plan_found_is_told_to_later_plans_of_the_same_sources_only():
    """A learner's code may have written it: it must not speak for a kernel of the solution with one blank filled."""
    judge = Told()
    trials = Trials(judge, EXERCISES["first_kernel"], "answer", seed=1)
    for source in ("answer", "solution with a blank", "answer", "answer"):
        trials.plan([source], trials.cases)
    assert judge.known == [[], [], ["key 1"], ["key 1", "key 3"]]


def test_a_later_plan_reads_no_kernel_again(here, monkeypatch):
    asked, run = [], Box.run
    monkeypatch.setattr(Box, "run", lambda box, request, *more: asked.append(request) or run(box, request, *more))
    assert here.judge("vector_add", PLAIN + "\n# not judged before", seed=1).passed
    *_, first, second = (request for request in asked if request.kind == "plan")
    assert not first.known and len(second.known) > 3
