"""How often an answer reads its input: counted in the input and its copies, and judged by each exercise's limit."""

from dataclasses import replace

import pytest
import torch
from executing import kernel, watch

from autograder.box.inside.replay import Copies
from autograder.box.wire import Evidence, Result
from autograder.diagnosis import Observation, diagnose, overall
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES

HEADER = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n"
START = ["p = tl.program_id(0)", "i = tl.arange(0, B)"]


def counted(*lines, copies=None, x=None, programs=1, launches=1):
    """How often the kernel reads each element of x, a tensor of 20 elements; B is 8."""
    x = torch.arange(20.0) if x is None else x
    copies = copies or Copies([x])
    source = HEADER + "".join(f"    {line}\n" for line in [*START, *lines])
    for _ in range(launches):
        with watch(passes=True) as memory:
            kernel(source)[(programs,)](x, torch.zeros(64), 20, B=8)
        copies.count(memory.launches[0])
    return copies.reads


PASS = "for c in range(0, n, B): v = tl.load(x + c + i, mask=c + i < n)"


def test_each_pass_counts():
    assert counted(PASS) == (1.0,)
    assert counted(PASS, PASS, PASS) == (3.0,)
    assert counted(f"for again in range(3):\n        {PASS}") == (3.0,)
    assert counted(PASS, launches=2) == (2.0,)
    assert counted(PASS, programs=4) == (4.0,)
    assert counted("v = tl.load(x + i)", "w = tl.load(x + i) + tl.load(x + 8 + i)") == (1.2,)


def test_blocks_that_overlap_are_one_pass():
    back = "for c in range(0, n, B): v = tl.load(x + tl.minimum(c, n - B) + i)"
    assert counted(back) == (1.0,)
    assert counted(back, back) == (2.0,)
    assert counted("v = tl.load(x + tl.minimum(p * B + i, n - 1))", programs=3) == (1.0,)
    assert counted("v = tl.load(x + 2 + 0 * i)") == (0.05,)


def test_copies_count_and_what_is_beside_them_does_not():
    x = torch.arange(20.0)
    for operation, arguments, made in (
        ("clone", [x], x.clone()),
        ("_to_copy", [x], x.double()),
        ("stack", [[x, x]], torch.stack([x, x])),
        ("constant_pad_nd", [x, [0, 12], 0.0], torch.nn.functional.pad(x, (0, 12))),
        ("copy_", [(base := torch.zeros(64))[:20], x], base[:20]),
    ):
        copies = Copies([x])
        copies.moved(operation, arguments, made)
        assert counted(PASS, copies=copies, x=made) == (1.0,), operation
    copies = Copies([x])
    copies.moved("cat", [[torch.zeros(12), x]], made := torch.cat([torch.zeros(12), x]))
    assert counted(PASS, copies=copies, x=made) == (0.4,)


def test_what_the_kernel_wrote_is_no_copy():
    x = torch.arange(20.0)
    copies = Copies([x])
    copies.moved("clone", [x], made := x.clone())
    square = "for c in range(0, n, B): tl.store(x + c + i, tl.load(x + c + i, mask=c + i < n), mask=c + i < n)"
    assert counted(square, PASS, PASS, copies=copies, x=made, launches=2) == (1.0,)


def test_several_inputs_are_counted_apart():
    x, other = torch.arange(20.0), torch.zeros(3)
    assert counted(PASS, PASS, copies=Copies([other, x]), x=x) == (0.0, 2.0)


RAGGED = {"rows": 4, "columns": 300}


def observed(exercise: str, about: dict, reads: float, factor: float = 1.0) -> Observation:
    exercise = EXERCISES[exercise]
    case = exercise.inputs.case(**about)
    arguments = case.make(torch.Generator().manual_seed(1))
    expected = exercise.reference(arguments[0].values)
    output = (factor * expected).to(arguments[0].values.dtype)
    result = Result(tuple(output.shape), str(output.dtype).removeprefix("torch."), True, False)
    comparison = Comparison(output, expected, exercise.bounds[output.dtype])
    evidence = Evidence(launched=("kernel",), reads=(reads,))
    return Observation(
        exercise, case, arguments, "interpreter", result=result, comparison=comparison, evidence=evidence
    )


LIMITS = {"fused_softmax": 1, "online_softmax": 2, "naive_softmax": 3}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_and_half_a_pass_more(name):
    limit = LIMITS[name]
    assert diagnose(observed(name, RAGGED, limit + 0.5)) is None
    finding = diagnose(observed(name, RAGGED, limit + 1))
    assert finding.slug == "reads-too-often"
    words = ["", "once", "twice", "three times", "four times"]
    assert f"of x is read {words[limit + 1]}; the lesson's kernel reads it {words[limit]}" in finding.message


def test_other_softmaxes_and_very_wide_rows_have_no_limit():
    assert diagnose(observed("wide_softmax", RAGGED, 5)) is None
    assert diagnose(observed("online_softmax_masked", RAGGED, 5)) is None
    assert diagnose(observed("fused_softmax", {"rows": 1, "columns": 9000}, 2)) is None


def test_a_backward_pass_may_read_as_often_as_it_wants_to():
    """The lessons limit the forward pass alone."""
    o = observed("fused_softmax", RAGGED, 7)
    assert diagnose(o).slug == "reads-too-often"
    assert diagnose(replace(o, case=replace(o.case, gradient=0))) is None


def test_wrong_numbers_come_first():
    wrong, right = (observed("fused_softmax", RAGGED, 3, factor) for factor in (2.0, 1.0))
    assert diagnose(wrong).slug == "constant-factor"
    findings = [diagnose(o) for o in (right, wrong)]
    assert overall([right, wrong], findings).slug == "constant-factor"


def test_a_copy_of_strided_rows_only_is_not_called_a_wrong_stride():
    cases = [observed("fused_softmax", RAGGED, 1), observed("fused_softmax", RAGGED | {"row_stride": 352}, 2)]
    assert overall(cases, [diagnose(o) for o in cases]).slug == "reads-too-often"
