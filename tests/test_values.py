"""What is said about an answer that is a number: the explanation fits the whole answer, and names no kernel."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder import tensors
from autograder.box.wire import Report
from autograder.exercises import EXERCISES
from autograder.gallery import answers_in
from autograder.judge.values import ValueJudgement

ROOT = Path(__file__).parent.parent


class Told:
    """A judge whose box calls `function` right here."""

    backend = "interpreter"

    def __init__(self, function):
        self.function = function

    def run(self, exercise, request, **how):
        def reports(count):
            return {i: self.function(*judgement.arguments[i]) for i in range(count)}

        judgement = self.judgement
        return SimpleNamespace(by_case=reports)


def verdict(name: str, function):
    judge = Told(function)
    judge.judgement = ValueJudgement(judge, EXERCISES[name], "", seed=1)
    return judge.judgement.verdict()


def returning(function):
    return lambda *arguments: Report(0, has_value=True, value=function(*arguments))


def test_a_mistake_that_fits_one_case_by_chance_is_not_named():
    reference = EXERCISES["occupancy_launch"].reference

    def at_least_one_in_all(regs, shared, warps, device):
        fits = reference(regs, shared, warps, device) > device.multiprocessors or regs * warps < 255 * 16
        return reference(regs, shared, warps, device) if fits else 1

    found = verdict("occupancy_launch", returning(at_least_one_in_all))
    assert found.diagnosis == "wrong-value"
    assert "That is the number for one multiprocessor" not in found.message


def test_each_case_names_the_mistake_that_explains_most():
    mistake = next(each for each in EXERCISES["occupancy"].mistakes if "single waves" in each.explanation)
    found = verdict("occupancy", returning(mistake.compute))
    assert {case.finding.means for case in found.cases if case.finding} == {mistake.explanation}


@pytest.mark.parametrize(
    ("name", "changed", "unfair"),
    [
        # as many wrong cases as it explains would be wrong with the mistake, and are right
        ("occupancy_launch", lambda regs, shared, warps, device: (
            (regs, shared, warps, replace(device, registers=2 * device.registers)) if device.is_cdna
            else (regs, shared, warps, device)
        ), "limit by registers is missing"),
        # one of several wrong cases; in the cases that are right, the mistake makes no difference
        ("occupancy", lambda vgprs, lds, warps, arch: (vgprs, lds * 1024 if arch == "gfx90a" else lds, warps, arch),
         "num_warps is not used"),
    ],
)  # fmt: skip
def test_a_mistake_must_explain_more_than_it_leaves(name, changed, unfair):
    reference = EXERCISES[name].reference
    found = verdict(name, returning(lambda *arguments: reference(*changed(*arguments))))
    assert found.diagnosis == "wrong-value"
    assert unfair not in found.message


@pytest.mark.parametrize(
    ("name", "changed", "fair"),
    [
        ("occupancy", lambda vgprs, *kernel: (max(8, vgprs // 8 * 8), *kernel), "rounded down"),
        ("bytes_moved", lambda m, n, size: (m, n, 4), "4 bytes, as in float32"),
    ],
)
def test_a_mistake_that_explains_everything_is_named(name, changed, fair):
    reference = EXERCISES[name].reference
    assert fair in verdict(name, returning(lambda *arguments: reference(*changed(*arguments)))).message


def test_a_mistake_beside_another_one_is_still_named():
    exercise = EXERCISES["bytes_moved"]

    def in_elements_without_the_output(m, n, size):
        return {k: v // size for k, v in exercise.reference(m, n, size).items()} | {"fused_written": 0}

    found = verdict("bytes_moved", returning(in_elements_without_the_output))
    assert "numbers of elements, not of bytes" in found.message


@pytest.mark.parametrize("key, word", [("fused_read", "also reads x"), ("fused_written", "also writes its output")])
def test_half_of_the_fused_kernel_is_told(key, word):
    reference = EXERCISES["bytes_moved"].reference
    found = verdict("bytes_moved", returning(lambda *case: reference(*case) | {key: 0}))
    assert word in found.message


@pytest.mark.parametrize("exceeded, death", [("time", None), (None, -31)])
def test_an_exercise_without_a_kernel_speaks_of_none(exceeded, death):
    died = SimpleNamespace(exceeded=exceeded, death=death)
    message = verdict("bytes_moved", lambda *_: died).message
    assert message and not any(word in message for word in ("BLOCK_SIZE", "grid", "pointer"))


@pytest.mark.parametrize("inside", [lambda dots: dots, lambda dots: {"vgprs": 64, "spills": dots}, lambda dots: [dots]])
def test_dots_in_a_result_are_no_attempt(inside):
    dots = {"not a plain value": "ellipsis"}
    found = verdict("read_the_isa", returning(lambda: inside(dots)))
    assert found.diagnosis == "not-attempted" and "not a plain value" not in found.message


def test_a_foreign_thing_in_a_result_is_named():
    found = verdict("read_the_isa", returning(lambda: {"vgprs": {"not a plain value": "Tensor"}}))
    assert found.diagnosis == "wrong-dtype" and "Tensor" in found.message and "not a plain value" not in found.message


@pytest.mark.parametrize("name", ["bytes_moved", "occupancy_launch", "occupancy"])
def test_wrong_numbers_show_in_every_judgement(name):
    """What is drawn differs from judgement to judgement. A verdict must not."""
    exercise = EXERCISES[name]
    generators = [torch.Generator().manual_seed(seed) for seed in range(20)]
    drawn = [[case.make(None) for case in exercise.cases_of(generator)] for generator in generators]
    right = [[(case, exercise.reference(*case)) for case in cases] for cases in drawn]
    for known in answers_in(ROOT / "tests", [name]):
        if known.slug != "wrong-value" or known.name.endswith("table_of_the_public_cases"):
            continue
        exec(known.source, defined := {})
        function = defined[exercise.entry]
        for seed, cases in enumerate(right):
            assert any(function(*case) != expected for case, expected in cases), (known.name, seed)


@pytest.mark.parametrize(
    "name, formula",
    [
        ("swizzle", "workshop.occupancy import swizzle"),
        ("occupancy", "workshop.occupancy import occupancy"),
        ("occupancy_launch", "workshop.occupancy import num_programs"),
    ],
)
def test_the_course_does_not_answer_its_own_exercise(judge, name, formula):
    found = judge.judge(name, f"from {formula} as formula\ndef {EXERCISES[name].entry}(*given): return formula(*given)")
    assert not found.passed and found.diagnosis != "grader-error"


def test_bytes_of_one_element_with_a_stride():
    assert tensors.to_bytes(torch.tensor([[1.0, 2.0]])[:, ::2]) == b"\x00\x00\x80?"
