"""Small changes of the solutions: none that computes something else is accepted. `tests/mutants.py 300` tries more."""

import ast
import math

import pytest
from mutants import Mutant, differs, mutants, solution

from autograder.diagnosis import diagnose
from autograder.exercises import EXERCISES
from autograder.judge.trials import Trials

SEED = 1  # the same mutants and the same inputs in every run
GRID = ("(triton.cdiv(n_elements, 1024),)", "(triton.cdiv(n_elements, 1024) + 1,)")
SUM = ("output = x + y", "output = x - y")


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("exercise", list(EXERCISES)[::3])
def test_no_mutant_is_accepted_that_computes_something_else(judge, few, exercise):
    [mutant] = mutants(exercise, 1, SEED)
    with few():
        fails = not judge.judge(exercise, mutant.source).passed
    fails = fails or not judge.judge(exercise, mutant.source).passed
    assert fails or not differs(mutant, draws=1), mutant.change


@pytest.mark.parametrize("exercise", EXERCISES)
def test_each_mutant_is_python_and_differs_from_the_solution_and_from_the_others(exercise):
    found = mutants(exercise, 30, SEED)
    sources = {ast.unparse(ast.parse(mutant.source)) for mutant in found}
    assert len(sources) == len(found) == 30
    assert solution(exercise) not in sources
    assert all(mutant.change for mutant in found)


def test_a_seed_gives_the_same_mutants():
    assert mutants("vector_add", 9, seed=3) == mutants("vector_add", 9, seed=3)
    assert mutants("vector_add", 9, seed=3) != mutants("vector_add", 9, seed=4)


@pytest.mark.parametrize(("change", "said"), [(SUM, True), (GRID, False)])
def test_what_an_answer_computes_is_compared_with_the_solution(change, said):
    """A grid with one program more computes the same: its lanes are all masked."""
    assert change[0] in solution("vector_add")
    assert differs(Mutant("vector_add", solution("vector_add").replace(*change), "")) == said


def fails_with(judge, exercise: str, source: str, words: str) -> bool:
    """Whether an answer fails in the cases with these words in their names. Only they run."""
    judge.seconds_left = math.inf
    trials = Trials(judge, EXERCISES[exercise], source, SEED)
    trials.cases = [each for each in trials.cases if words in each.case.name]
    return any(map(diagnose, trials.observe()))


LOOPS = {"rms_norm": 4, "softmax_backward": 2}


@pytest.mark.parametrize(("exercise", "number"), [(name, i) for name, count in LOOPS.items() for i in range(count)])
def test_no_sum_of_a_long_row_may_leave_an_element_out(judge, exercise, number):
    """Within the rounding of 9,000 squares, one of them more or less does not show, unless it is large.

    Cases with large ends are there for this.
    """
    before, *loops = solution(exercise).split("range(0, n, BLOCK)")
    assert len(loops) == LOOPS[exercise]
    ends = [f"range({int(i == number)}, n, BLOCK){rest}" for i, rest in enumerate(loops)]
    assert fails_with(judge, exercise, "".join([before, *ends]), "ends")


CUT = """@triton.jit
def exp_or_nothing(x):
    return tl.where(x < -16.0, 0.0, tl.exp(x))


@triton.jit"""


@pytest.mark.parametrize("exercise", ["row_max_and_sum", "paged_decode_attention", "int8_decode_attention"])
def test_no_small_weight_may_count_for_nothing(judge, exercise):
    """Thousands of them count beside one large weight."""
    source = solution(exercise).replace("tl.exp(", "exp_or_nothing(").replace("@triton.jit", CUT, 1)
    assert fails_with(judge, exercise, source, "above")
