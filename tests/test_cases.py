"""The cases of the exercises: drawn anew in every judgement, and larger than an answer can know in advance."""

import runpy
from pathlib import Path

import pytest
import torch

from autograder.exercises import EXERCISES, find, masks
from autograder.exercises.spec import Bound, Strided, spread
from autograder.judge.launched import block, constants, digests, programs

RIGHT = Path(__file__).parent / "right"
NUMBERS = ("bytes_moved", "occupancy_launch", "occupancy")


def drawn(name: str, seed: int) -> list:
    generator = torch.Generator().manual_seed(seed)
    return [(case.name, case.make(generator)) for case in find(name).drawn(generator)]


@pytest.mark.parametrize("name", NUMBERS)
def test_right_formulas_agree_on_all_that_is_drawn(name):
    exercise = find(name)
    for path in sorted((RIGHT / name).glob("*.py")):
        function = runpy.run_path(str(path))[exercise.entry]
        for seed in range(60):
            for case, arguments in drawn(name, seed):
                assert function(*arguments) == exercise.reference(*arguments), (path.name, case)


@pytest.mark.parametrize("name", NUMBERS)
def test_other_numbers_are_drawn_in_every_judgement(name):
    assert drawn(name, 1) == drawn(name, 1)
    assert not {case for case, _ in drawn(name, 1)} & {case for case, _ in drawn(name, 2)}


@pytest.mark.parametrize("name", [e.name for e in EXERCISES.values() if e.kind == "kernel"])
def test_every_drawn_case_is_finite_in_its_reference(name):
    """A case may hold -inf, but no other number that is not finite."""
    exercise = find(name)
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        for case in exercise.cases:
            if case.gpu_only:
                continue
            arguments = [a.values if isinstance(a, Strided) else a for a in case.make(generator)]
            for x in (a for a in arguments if isinstance(a, torch.Tensor)):
                assert bool((torch.isfinite(x) | (x == -torch.inf)).all()), case.name
            expected = exercise.reference(*arguments)
            assert bool(torch.isfinite(expected).all()) or "-inf" in case.name, case.name


@pytest.mark.parametrize("grid", [None, [], ["a"], [-1], {"x": 1}])
def test_a_grid_from_the_box_is_not_trusted(grid):
    assert programs({"steps": [{"op": "launch", "grid": grid, "args": {}}]}) in ([], [1])


@pytest.mark.parametrize("args", [None, [], {"BLOCK": "x"}, {"BLOCK": [1]}, {"BLOCK": 1 << 40}])
def test_arguments_from_the_box_are_not_trusted(args):
    trace = {"steps": [{"op": "launch", "grid": [3], "args": args, "program": 7, "hip": None}]}
    assert block(trace) == 0 and set(constants(trace)) <= {1 << 40} and digests([trace]) == set()


def test_spread_reaches_both_ends():
    x = spread(torch.Generator().manual_seed(0), -100, 126, 5000).abs()
    assert bool(torch.isfinite(x).all()) and float(x.min()) < 2.0**-95 and float(x.max()) > 2.0**120


def test_the_bound_of_exponents_has_a_limit():
    bound = Bound(1e-4, row_sum=1e-6)
    assert bound.of_exponents(3e38).relative < 0.05


def test_independent_masks_do_not_count_as_shifted_ones():
    generator = torch.Generator().manual_seed(3)
    for p in (0.28, 0.5):
        stream = torch.rand(4096, generator=generator) >= p
        assert masks.shifted(stream[:2048], stream[100:2148], p) == -100
        for _ in range(50):
            one, other = (torch.rand(2048, generator=generator) >= p for _ in range(2))
            assert masks.shifted(one, other, p) is None
