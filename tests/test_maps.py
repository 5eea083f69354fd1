"""The map of a failure shows which elements are wrong, in a small panel that a screen reader can read."""

import re
from dataclasses import replace

import pytest
import torch
from probes import ROOT

from autograder.box.wire import Evidence, Result, Trouble
from autograder.diagnosis import Observation, error_map
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES
from autograder.tensors import poison
from autograder.verdict import CaseResult, Finding, Verdict
from workshop.executor.records import Fault

SOFTMAX, SCALE = EXERCISES["naive_softmax"], EXERCISES["bug_hunt"]


def observed(got, expected, **seen) -> Observation:
    case = SOFTMAX.inputs.case(rows=4, columns=300)
    result = Result(tuple(got.shape), "float32", True, False)
    comparison = Comparison(got, expected.double(), SOFTMAX.bounds[torch.float32])
    evidence = Evidence(launched=("kernel",))
    return Observation(
        SOFTMAX, case, (), "interpreter", result=result, comparison=comparison, evidence=evidence, **seen
    )


def fault(**changed) -> Observation:
    about = {"kind": "load", "kernel": "k", "program": (3,), "argument": "x_ptr", "shape": (1000,), "stride": (1,)}
    about |= {"block": (256,), "lane": (232,), "lanes": 24, "element": 1000, "place": "past the end", "distance": 1}
    about |= {"line": 3, "code": "x = …"}
    trouble = Trouble("fault", fault=Fault(**about | changed))
    return Observation(SCALE, SCALE.inputs.case(rows=4, columns=300, a=2.0), (), "interpreter", trouble=trouble)


def runs(row) -> list[tuple[str, int]]:
    return [(run.state, run.length) for run in row.runs]


def shown(drawn) -> str:
    finding = Finding("wrong-value", "x is wrong.", case=drawn.case)
    cases = (CaseResult(drawn.case, finding, drawn),)
    return Verdict("naive_softmax", False, 0, 4, "interpreter", finding, cases).to_html()


def test_elements_that_were_never_written_are_told_from_wrong_ones():
    expected = torch.rand(4, 300)
    got = poison(torch.empty(4, 300))
    got[:, :256] = expected[:, :256]
    got[1, 10:14] += 1
    got[2, 0] = torch.nan
    drawn = error_map(observed(got, expected, block=256))
    assert [row.label for row in drawn.rows] == ["row 0", "row 1", "row 2", "row 3"]
    assert runs(drawn.rows[0]) == [("right", 256), ("unwritten", 44)]
    assert runs(drawn.rows[1]) == [("right", 10), ("wrong", 4), ("right", 242), ("unwritten", 44)]
    assert runs(drawn.rows[2])[0] == ("nan", 1)
    assert drawn.words == (
        "4 elements wrong and 1 element NaN or infinite and 176 elements never written (of 1200), columns 0 to 299 in "
        "4 of 4 rows."
    )
    panel = shown(drawn)
    assert "masked lane, no element" in panel and 'role="img"' in panel.replace("'", '"')
    assert drawn.words in panel


def test_one_right_row_is_shown_beside_the_wrong_ones():
    expected = torch.rand(40, 33)
    got = expected.clone()
    got[5:] = 0
    drawn = error_map(observed(got, expected))
    assert [row.label for row in drawn.rows] == ["row 0", *(f"row {i}" for i in range(5, 10))]
    assert "34 more rows not drawn" in shown(drawn)


def test_a_right_case_has_no_map():
    expected = torch.rand(4, 300)
    assert error_map(observed(expected.clone(), expected)) is None


def test_scattered_errors_do_not_make_a_large_panel():
    expected = torch.rand(2, 4096)
    got = expected.clone()
    got[:, ::2] += 1
    assert len(shown(error_map(observed(got, expected, block=16)))) < 40_000


@pytest.mark.parametrize("columns", [7, 1000])
def test_the_drawing_stays_inside_its_frame(columns):
    expected = torch.rand(3, columns)
    panel = shown(error_map(observed(torch.zeros(3, columns), expected, block=1024)))
    for x, width in re.findall(r"<rect x='([\d.]+)' y='[\d.]+' width='([\d.]+)'", panel):
        assert float(x) + float(width) <= 680.1


def test_a_fault_shows_the_lanes_past_the_end():
    drawn = error_map(fault())
    assert runs(drawn.rows[0]) == [("right", 232), ("outside", 24)]
    assert drawn.words == "24 of 256 lanes of program 3 read outside of x_ptr."
    assert error_map(fault(lane=(230,))) is None  # 254 lanes are no block: their places are not known
    drawn = error_map(replace(fault(lane=(1000,), lanes=1), block=1024))
    assert runs(drawn.rows[0]) == [("right", 1000), ("outside", 1)] and drawn.block == 1024
    assert drawn.words == "1 of 1024 lanes of program 3 read outside of x_ptr."
    assert shown(drawn).index("lane 1000: outside") > shown(drawn).index("masked lane, no element")  # and lies on it
    assert error_map(fault(lane=(1,), lanes=1)) is None  # two lanes are hardly a block


def test_a_fault_in_a_gap_shows_the_rows_in_memory():
    gap = {"place": "gap", "distance": 0}
    drawn = error_map(fault(shape=(5, 256), stride=(320, 1), lane=(0,), lanes=64, index=(0, 256), **gap))
    assert runs(drawn.rows[0]) == [("right", 256), ("outside", 64)]
    assert runs(drawn.rows[1]) == [("right", 256), ("gap", 64)]
    assert "the next one begins 320 later" in drawn.words
    assert ">256</text>" in shown(drawn) and ">320</text>" in shown(drawn)
    assert error_map(fault(shape=(3,), stride=(4,), lane=(1,), lanes=2, index=(0,), **gap)) is None


def test_the_map_is_about_the_case_that_the_finding_names():
    expected = torch.rand(4, 300)
    drawn = error_map(observed(torch.zeros(4, 300), expected))
    finding = Finding("wrong-value", "row 0 is wrong.", case="another case")
    cases = (CaseResult(drawn.case, finding, drawn), CaseResult("another case", finding))
    assert Verdict("naive_softmax", False, 0, 4, "interpreter", finding, cases).drawn is None


@pytest.mark.parametrize("named", ["n = 1000", "n = 1, float16"])
def test_a_case_whose_name_begins_as_the_named_one_lends_no_map(named):
    short = replace(error_map(fault()), case="n = 1")
    finding = Finding("wrong-value", "Something is wrong.", case=named)
    cases = (CaseResult("n = 1", finding, short), CaseResult(named, finding))
    assert Verdict("vector_add", False, 0, 5, "interpreter", finding, cases).drawn is None


# -- JAX -----------------------------------------------------------------------------------------------------------


def of_dropout(name: str, *changes: tuple[str, str]):
    """The name of an exercise and a changed right answer to it."""
    pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
    source = (ROOT / "tests" / "right" / name / "as_in_the_lesson.py").read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return name, source


@pytest.mark.usefixtures("briefly")
def test_a_wrong_slope_of_dropout_is_drawn_where_elements_are_kept_and_negative(judge):
    name, source = of_dropout("leaky_dropout", ("0.01 * x", "0.1 * x"))
    cases = [each for each in EXERCISES[name].cases if each.name in ("7 × 781, p = 0.5", "p = 1", "no elements")]
    verdict = judge.verdict_on(replace(EXERCISES[name], cases=tuple(cases)), source, seed=3)
    assert verdict.diagnosis == "wrong-value", verdict.to_text()
    drawn = {case.name: case.map for case in verdict.cases}
    assert re.fullmatch(r"1[34]\d\d elements wrong \(of 5467\), columns \d+ to \d+ in 7 of 7 rows\.",
                        drawn["7 × 781, p = 0.5"].words)  # fmt: skip
    assert drawn["p = 1"] is None and drawn["no elements"] is None
    assert verdict.drawn == drawn["7 × 781, p = 0.5"]


@pytest.mark.usefixtures("briefly")
def test_a_wrong_gradient_is_drawn(judge, few):
    with few():
        verdict = judge.judge(*of_dropout("leaky_dropout_grad", ("tl.where(x >= 0, 1.0, 0.01)", "1.0")), seed=3)
    assert verdict.diagnosis == "wrong-value", verdict.to_text()
    assert "elements wrong (of 1238753)" in verdict.drawn.words


@pytest.mark.usefixtures("briefly")
def test_elements_that_dropout_never_writes_are_drawn_as_unwritten(judge, few):
    changed = ("grid=(triton.cdiv(x.size, 1024),)", "grid=(x.size // 1024,)")
    with few():
        verdict = judge.judge(*of_dropout("leaky_dropout", changed), seed=3)
    assert verdict.diagnosis == "tail-wrong", verdict.to_text()
    assert verdict.drawn.words == "347 elements never written (of 5467), columns 434 to 780 in 1 of 7 rows."


@pytest.mark.usefixtures("briefly")
def test_lanes_that_reach_outside_an_array_of_jax_are_drawn(judge, few):
    changed = ("x_ptr + offsets, mask=mask)", "x_ptr + offsets)")
    with few():
        verdict = judge.judge(*of_dropout("leaky_dropout", changed), seed=3)
    assert verdict.drawn.lanes and "read outside of x_ptr" in verdict.drawn.words


@pytest.mark.usefixtures("briefly")
def test_a_mask_that_is_wrong_as_a_whole_has_no_wrong_elements(judge, few):
    with few():
        verdict = judge.judge(*of_dropout("leaky_dropout", ("tl.rand(seed, offsets)", "tl.rand(7, offsets)")), seed=3)
    assert verdict.diagnosis == "seed-ignored" and verdict.drawn is None
