"""The cases of an answer vote on the name of its mistake. Observations are made up here: nothing runs."""

from dataclasses import replace

import pytest
import torch

from autograder import diagnosis, verdict
from autograder.box.wire import Evidence, Result, Trouble
from autograder.diagnosis import Observation, diagnose, error_map, overall
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Bound, Case, Mistake, Strided
from autograder.verdict import CaseResult, Finding, Slug, Verdict
from workshop.executor.records import Fault

EXERCISE = replace(
    EXERCISES["bug_hunt"],
    mistakes=(Mistake("wrong-value", lambda x, a: x - a, "The output is x - a.", "Multiply."),),
)
SHAPES = ((5, 256), (4, 300), (7, 781), (3, 517), (2, 1024))


def seen(shape, compute, name="", about="", dtype=torch.float32, one: float | None = None) -> Observation:
    """What the judge sees of an answer that computes `compute` in a case of this shape. one: the first number of x."""
    x, a = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype), 2.5
    if one is not None:
        x[0, 0] = one
    expected = x.double() * a
    got = compute(x, a).to(dtype)
    case = Case(name or "{} × {}".format(*shape), lambda _: (), about)
    result = Result(shape, str(dtype).removeprefix("torch."), True, False)
    comparison = Comparison(got, expected, EXERCISE.bounds[dtype])
    evidence = Evidence(launched=("kernel",))
    return Observation(EXERCISE, case, (Strided(x), a), "interpreter", result=result, comparison=comparison,
                       evidence=evidence, constants=(256,), block=256)  # fmt: skip


def named(observations: list[Observation]) -> Slug | None:
    found = overall(observations, [diagnose(o) for o in observations])
    return found and found.slug


def without_the_tail(x, a):
    return torch.where(torch.arange(x.shape[1]) < x.shape[1] // 256 * 256, a * x, a * x + 1)


ANSWERS = {
    "right": lambda x, a: a * x,
    "a factor": lambda x, a: 1.001 * a * x,
    "x - a": lambda x, a: x - a,
    "the tail": without_the_tail,
    "rolled": lambda x, a: (a * x).roll(3, 1),
    "infinite": lambda x, a: torch.where(x > 1, torch.inf, a * x),
    "zero": lambda x, a: 0 * x,
}


@pytest.fixture
def another_name(monkeypatch):
    """A new slug and its rule, at the first rank and as the first rule. It says yes to one case of each answer."""
    slug = str.__new__(Slug, "shifted")
    slug._name_, slug._value_ = "SHIFTED", "shifted"
    monkeypatch.setitem(Slug._value2member_map_, "shifted", slug)
    monkeypatch.setitem(verdict._RANKS, slug, -1)

    def shifted(o):
        stray = o.wrong and o.case.name == "3 × 517"
        return Finding("shifted", "Each element is one place further on.") if stray else None

    monkeypatch.setattr(diagnosis, "CONDUCT", (shifted, *diagnosis.CONDUCT))


def test_a_new_name_overturns_no_other(request):
    before = {name: named([seen(shape, compute) for shape in SHAPES]) for name, compute in ANSWERS.items()}
    assert before == {"right": None, "a factor": "constant-factor", "x - a": "wrong-value", "the tail": "tail-wrong",
                      "rolled": "wrong-value", "infinite": "overflow", "zero": "wrong-value"}  # fmt: skip
    request.getfixturevalue("another_name")
    stray = diagnose(seen((3, 517), ANSWERS["a factor"]))
    assert stray.slug == "shifted" and stray.slug.rank < min(slug.rank for slug in Slug)
    after = {name: named([seen(shape, compute) for shape in SHAPES]) for name, compute in ANSWERS.items()}
    assert after == before


def test_unusual_and_short_cases_have_no_vote_beside_ordinary_ones():
    stray = [seen((2, 3), ANSWERS["zero"], f"short {i}", "short") for i in range(4)]
    stray += [seen((4, 300), ANSWERS["infinite"], f"huge {i}", "huge") for i in range(4)]
    assert named([*stray, seen((5, 256), ANSWERS["a factor"])]) == "constant-factor"
    assert named(stray) == "overflow"  # a tie, and its rank is smaller


def test_the_first_case_that_has_the_name_speaks_and_lends_its_map():
    observations = [seen((4, 300), ANSWERS["infinite"]), *(seen(s, ANSWERS["a factor"]) for s in SHAPES[2:])]
    findings = [diagnose(o) for o in observations]
    found = overall(observations, findings)
    assert (found.slug, found.case) == ("constant-factor", "7 × 781") and found.message.count("(7 × 781)") == 1
    cases = tuple(CaseResult(o.case.name, f, error_map(o)) for o, f in zip(observations, findings))
    assert Verdict("bug_hunt", False, 0, 3, "interpreter", found, cases).drawn.case == "7 × 781"


def test_row_strided_inputs_alone_tell_a_stride():
    right = [seen(shape, ANSWERS["right"]) for shape in SHAPES]
    strided = [seen((6, 33), ANSWERS["rolled"], f"strided {i}", "strided") for i in range(2)]
    assert named([*right, *strided]) == "stride-ignored"


def test_a_fault_tells_its_line_and_its_tensor():
    about = {"kind": "load", "kernel": "k", "program": (3, 0, 0), "argument": "x_ptr", "shape": (1000,), "stride": (1,)}
    about |= {"block": (256,), "lane": (232,), "lanes": 24, "element": 1000, "place": "past the end", "distance": 1}
    about |= {"line": 3, "code": "x = …"}
    case = Case("n = 1000", lambda _: (), "ragged")
    trouble = Trouble("fault", fault=Fault(**about))
    found = diagnose(Observation(EXERCISE, case, (), "interpreter", trouble=trouble))
    assert (found.case, found.line, found.tensor) == ("n = 1000", 3, "x_ptr")


def test_numbers_of_a_row_are_normalised_only_where_rows_have_a_sum():
    o = seen((4, 300), lambda x, a: a * x * torch.tensor([[1.1], [1.2], [1.3], [1.4]]))
    assert diagnose(o).slug == "wrong-value"
    bound = Bound(1e-4, 1e-30, row_sum=5e-6)
    summed = replace(o, comparison=replace(o.comparison, bound=bound))
    assert diagnose(summed).slug == "not-normalised"


def test_the_first_verdict_says_where_and_the_second_what_to_try():
    finding = Finding("wrong-value", "Element 3 is 0.", "It is not x.", "add y", case="n = 7")
    blank = {"mask": Finding("wrong-value", "Element 3 is 0.", advice="compare with n")}
    second = Verdict("vector_add", False, 0, 5, "", finding, blanks={"mask": False}, blank_findings=blank)
    first = replace(second, advised=False)
    for text in (first.to_text(), first.to_html()):
        assert "Element 3 is 0 (n = 7)." in text and "It is not x." in text
        assert "add y" not in text and "compare with n" not in text and "next check" in text
    assert "add y" in second.to_text() and "compare with n" in second.to_html()
    assert first.to_json() == second.to_json()
    refused = replace(first, finding=Finding("compile-error", "f is not defined.", advice="use tl.exp"))
    assert "use tl.exp" in refused.to_text()  # what does not run is no riddle
