"""The exercises about AMD: their kernel is the lessons' kernel, and verdicts name what the compiler found."""

import ast
from pathlib import Path

import pytest
import torch

from autograder.exercises import amd

ROOT = Path(__file__).parent.parent
RIGHT = {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1}


def kernel_in(path: str) -> str:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    named = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "fused_softmax_kernel"]
    return ast.unparse(named[0])


@pytest.mark.parametrize("lesson", ["04_fused_softmax", "06_amd_optimization"])
def test_the_judged_kernel_is_the_one_shown(lesson):
    assert kernel_in("autograder/exercises/amd.py") == kernel_in(f"solutions/{lesson}.py")


def test_what_there_is_to_read_is_worth_reading():
    numbers = amd.isa_numbers()
    assert numbers["vgprs"] <= 64 and numbers["load_bits"] == 128
    assert numbers["lds_bytes"] > 0 and numbers["spills"] > 0


def test_every_misconception_about_occupancy_shows_in_a_case():
    cases = [case.make(None) for case in amd.EXERCISES[1].cases_of(torch.Generator().manual_seed(1))]
    right = [amd.EXERCISES[1].reference(*case) for case in cases]
    answers = [[mistake.compute(*case) for case in cases] for mistake in amd.OCCUPANCY_MISTAKES]
    assert right not in answers
    assert len({tuple(answer) for answer in answers}) == len(answers)


@pytest.mark.parametrize(
    "changed, slug, words",
    [
        ({"num_warps": 16}, "narrow-access", "64 bits"),
        ({"num_warps": 2, "num_stages": 2, "waves_per_eu": 8}, "spills", "spilled"),
        ({"num_warps": 1}, "low-occupancy", "limited by VGPRs"),
    ],
)
def test_what_the_compiler_found_is_told(changed, slug, words):
    finding = amd.tuned(RIGHT | changed)
    assert finding.slug == slug and words in finding.message


def test_a_right_configuration_is_accepted():
    assert amd.tuned(RIGHT) is None


@pytest.mark.parametrize(
    "answer",
    [
        3,
        "4096",
        [],
        {},
        {1: 2},
        RIGHT | {"num_warps": 3},
        RIGHT | {"num_warps": True},
        RIGHT | {"num_warps": 8.5},
        RIGHT | {"num_warps": None},
        RIGHT | {"num_warps": [8]},
        RIGHT | {"num_warps": float("nan")},
        RIGHT | {"waves_per_eu": -1},
        RIGHT | {"num_stages": 0},
        RIGHT | {"BLOCK_SIZE": 4095},
        RIGHT | {"BLOCK_SIZE": 10**4000},
        RIGHT | {"BLOCK_SIZE": 2048},
        RIGHT | {"kpack": 2},
        RIGHT | {"BLOCK_SIZE": 8192, "num_warps": 1},
    ],
)
def test_no_configuration_is_told_without_a_compiler(monkeypatch, answer):
    monkeypatch.setattr(amd, "compiled", lambda *_: pytest.fail("compiled"))
    finding = amd.tuned(answer)
    assert finding.happened and finding.advice
