"""Advice names what Triton has, and translates what torch and CUDA have."""

import itertools
import re
from dataclasses import replace

import pytest
import triton.language as tl

from workshop import advice
from workshop.executor.records import Fault, Race


def test_advice_names_functions_that_triton_has():
    """Also in the table of what torch has: a name that is wrong there would send a learner from error to error."""
    texts = [attempt for *_, attempt in advice.ADVICE] + list(advice.ELSEWHERE.values())
    names = {name for text in texts for name in re.findall(r"\btl\.(\w+)\(", text)}
    assert names and {name for name in names if not hasattr(tl, name)} == set()


@pytest.mark.parametrize("shape, stride, index, said", [
    ((3, 4), (6, 1), (1, 5), "at row 1, column 5, in the gap between the rows"),
    ((2, 3, 4), (18, 6, 1), (1, 2, 5), "at index (1, 2, 5), in the gap between the rows"),
    ((2, 3, 4), (16, 4, 1), (1, 3, 2), "at index (1, 3, 2), in the gap between the parts along axis 0"),
    ((2, 2, 3, 4), (40, 16, 4, 1), (0, 1, 3, 0), "at index (0, 1, 3, 0), in the gap between the parts along axis 1"),
])  # fmt: skip
def test_a_gap_is_between_rows_or_parts(shape, stride, index, said):
    place = {"shape": shape, "stride": stride, "index": index, "place": "gap", "argument": "x_ptr"}
    happened, means, _ = advice.outside(Fault("load", "k", (0,), (64,), (7,), 1, **place))
    assert said in happened, happened
    assert ("Along axis" in means) == ("along axis" in said), means


@pytest.mark.parametrize("name", ["tanh", "isinf", "unsqueeze", "blockIdx"])
def test_what_torch_or_cuda_has_is_translated(name):
    for message, construct in (
        (f"module 'triton.language' has no attribute '{name}'", ""),
        (f"'tensor' object has no attribute '{name}'", ""),
        ("Unsupported function referenced: <built-in method>", f"torch.{name}"),
    ):
        assert advice.refused(message, construct)[2] == f"write {advice.ELSEWHERE[name]}."


@pytest.mark.parametrize("shape", [(), (7,), (7, 5), (2, 7, 5)])
def test_an_access_outside_of_a_tensor_of_any_rank_is_explained(shape):
    """With rows that are apart, one behind the other, or transposed; wherever the access goes."""
    contiguous = tuple(5 if i == len(shape) - 2 else 1 if i == len(shape) - 1 else 35 for i in range(len(shape)))
    strides = {contiguous, tuple(2 * each for each in contiguous), contiguous[::-1]}
    places = itertools.product(strides, [(), (16,), (4, 4)], ["past the end", "before the start", "gap"], [True, False])
    for stride, block, place, strided in places:
        if place == "gap" and len(shape) < 2:
            continue
        index = () if place == "before the start" else (7,) * len(shape)
        lane = (0,) * len(block)
        fault = Fault("load", "kernel", (7, 0, 0), block, lane, 1, 3, "…", "x_ptr", shape, stride, 7, index, place, 1)
        happened, means, attempt = advice.outside(fault, strided=strided)
        assert "x_ptr" in happened and means and attempt


def test_the_programs_of_a_race_are_told_by_as_many_axes():
    race = Race("write-write", "x", (0,), (0, 0, 0), (7, 1, 0), False, 3, "…", 2, 0.5, 2)
    assert advice.raced(race)[0] == "Programs (0, 0) and (7, 1) both write to x, 2 elements in all."
    assert advice.raced(replace(race, second=(7, 0, 0)))[0].startswith("Programs 0 and 7 both")
    assert advice.raced(replace(race, first=()))[0].startswith("Program (7, 1) and several others both")
