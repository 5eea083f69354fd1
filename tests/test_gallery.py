"""The galleries: every right answer passes, every wrong one fails and is told which mistake it is.

`make gallery` judges a part of them, the same one in every run, or all: see `known.judged`.
"""

import linecache
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from known import called, judged
from known import some as some_names
from said import SAID

from autograder import cli
from autograder.answer import whole_numbers
from autograder.box.wire import Evidence, Launch, Result, Trace, Tuned
from autograder.diagnosis import Observation, diagnose, overall
from autograder.diagnosis.observation import Comparison
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Strided
from autograder.gallery import SOLUTION, Edit, answers_in
from autograder.judge import autotuning, trials
from autograder.verdict import Slug
from workshop import launching, sanitize, xray
from workshop.backend import interpreting
from workshop.compiling import CompileFailed
from workshop.executor import without_native
from workshop.executor.records import Race

JUDGED = judged()
TESTS = Path(__file__).parent
SOFTMAX = EXERCISES["naive_softmax"]
RAGGED, WHOLE = {"rows": 4, "columns": 300}, {"rows": 2, "columns": 1024}
MANY = {"rows": 71, "columns": 33}


def test_no_answer_is_misjudged(answers):
    assert [a.known.label for a in answers if a.misjudged] == []


def test_the_solution_earns_everything(answers):
    verdicts = {a.known.exercise: a.verdict for a in answers if a.known.name == SOLUTION}
    assert verdicts.keys() == EXERCISES.keys()
    for name, verdict in verdicts.items():
        assert verdict.passed and all(verdict.blanks.values()), verdict.to_text()
        assert verdict.score == verdict.points == EXERCISES[name].points


def test_wrong_answers_are_told_which_mistake_it_is(answers):
    wrong = [a for a in answers if not a.is_right]
    misnamed = [f"{a.known.name}: {a.got}" for a in wrong if not a.named]
    assert len(misnamed) <= max(1, 0.05 * len(wrong)), misnamed


@pytest.mark.parametrize("name", [name for name in SAID if name in JUDGED])
def test_the_message_says_enough(answers, name):
    """Messages that once did not suffice."""
    [answer] = [answer for answer in answers if called(answer.known) == name]
    said = answer.verdict.to_text()
    for words in SAID[name]:
        assert (words[1:] not in said) if words.startswith("!") else (words in said), said


def some(answers):
    return [answer for answer in answers if answer.verdict and called(answer.known) in some_names()]


# What is said of these comes from what the code is, and not from what a case computed.
OF_THE_CODE = {"syntax-error", "not-attempted", "not-allowed", "compile-error", "not-in-this-triton"}
OF_THE_CODE |= {slug for slug in Slug if slug.rank >= Slug.NOT_REGISTERED.rank}  # operators, spaces of configurations
# The line of an error of Python or of the compiler, and of an access that was stopped, is known.
WITH_A_LINE = {"syntax-error", "compile-error", "out-of-bounds-load", "out-of-bounds-store", "race"}


def test_a_message_says_what_happened_where_and_what_to_try(answers):
    """Claims, and no words: a better sentence breaks nothing."""
    for answer in some(answers):
        for verdict in () if answer.is_right or answer.misjudged else (answer.verdict,):
            found, said = verdict.finding, verdict.to_text()
            assert found.happened and (found.means or found.advice), said
            assert found.slug in OF_THE_CODE or found.case or any(not case.passed for case in verdict.cases), said
            lined = found.slug in WITH_A_LINE and "atomic" not in found.happened  # sums of atomics have no one line
            assert not lined or found.line and found.code in answer.known.source, said
            failed = [case for case in verdict.cases if not case.passed]
            ran = [case for case in verdict.cases if case.ran]
            assert ran or "✗" not in verdict.to_html(), said  # nothing ran: no blank and no case is blamed
            assert not (found.slug == "wrong-value" and verdict.blanks) or failed, said


def test_one_of_a_thing_is_not_several(answers):
    """Among some verdicts: no "1 elements", no "1 bytes"."""
    words = "elements|bytes|programs|rows|columns|lanes|warps|points|cases|registers|waves|loads|stores|blocks"
    said = "\n".join(answer.verdict.to_text() for answer in some(answers))
    assert re.findall(rf"(?<![\w.,×-])1 (?:{words})\b", said) == []


def loaded(known):
    """The host function of an answer, as a cell defines it."""
    name = f"<{known.exercise} {known.name}>"  # of a notebook's cell
    linecache.cache[name] = (len(known.source), None, known.source.splitlines(True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(known.source, name, "exec"), namespace)
    return namespace[EXERCISES[known.exercise].entry]


def arguments_of(known, name: str) -> list:
    """Those of the case with this name. Skips the test if it is one at a large size: its tensors hold no numbers."""
    exercise = EXERCISES[known.exercise]
    if name in [each.case.name for each in trials.large_calls(exercise, 1, whole_numbers(known.source)[0])]:
        pytest.skip("a case at a large size")
    case = next(each for each in exercise.cases_of(torch.Generator().manual_seed(1)) if each.name == name)
    given = case.make(torch.Generator().manual_seed(1))
    return [each.values if isinstance(each, Strided) else each for each in given]


LATER = "last_configuration_is_no_power_of_two"  # a plain launch tries the first


@pytest.mark.skipif(not interpreting(), reason="on a GPU the driver speaks")
@pytest.mark.parametrize("name", sorted(name for name in JUDGED if "/compile-error__" in name and LATER not in name))
def test_a_check_a_launch_sanitize_and_xray_say_the_same_of_what_triton_refuses(answers, monkeypatch, name):
    [(known, verdict)] = [(each.known, each.verdict) for each in answers if called(each.known) == name]
    checked, launched = verdict.finding, []
    is_kernel = EXERCISES[known.exercise].kind == "kernel"
    if known.needs or not is_kernel or "compiler refuses the kernel" not in checked.happened:
        pytest.skip("a launch option, a later stage of the compiler, or JAX")
    bind = launching.executor.bind
    monkeypatch.setattr(launching.executor, "bind", lambda *given: launched.append(given) or bind(*given))
    function, arguments = loaded(known), arguments_of(known, checked.case)
    with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it is, it carries its short text
        function(*arguments)
    plain = caught.value.told
    assert plain.happened in checked.happened
    if "all cases are right" not in checked.means:  # only a check has cases, and can try a change of the source
        assert (plain.means, plain.attempt, plain.line) == (checked.means, checked.advice, checked.line)
        assert plain.code == checked.code
    [problem] = sanitize(function, *arguments).problems
    assert (problem.line, problem.code, problem.attempt) == (plain.line, plain.code, plain.attempt)
    assert plain.means == problem.means
    if launched and without_native.native():
        kernel, args, kwargs = launched[-1]
        with pytest.raises(CompileFailed) as caught:
            xray(kernel, *args, **kwargs, targets="sm_90")
        compiled = caught.value.told
        assert (compiled.means, compiled.attempt) == (plain.means, plain.attempt)
        assert (compiled.line, compiled.code) == (plain.line, plain.code)


def test_every_gallery_is_large_enough():
    """As README asks for it, in "Add an exercise"."""
    everything = answers_in(TESTS)
    for name in {known.exercise for known in everything}:
        group = [known for known in everything if known.exercise == name]
        wrong = sum(known.slug is not None for known in group)
        assert len(group) - wrong >= 5, name
        assert wrong >= 8, name


def test_an_answer_has_one_name():
    """A file and an edit of one name would hide each other in reports and in the tests that ask for an answer."""
    names = [(known.exercise, known.slug is None, known.name) for known in answers_in(TESTS)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("old", ["no such text", "x"])
def test_an_edit_that_does_not_apply_is_named(tmp_path, old):
    """Each old text must occur once in the solution. Loading the gallery fails, and says which edit it is."""
    assert Edit("nan", "it", {"+": "-"}).applied_to("x + x") == "x - x"
    (tmp_path / "wrong").mkdir()
    edit = f"Edit('nan', 'some_name', {{{old!r}: 'y'}})"
    (tmp_path / "wrong/vector_add.py").write_text(f"from autograder.gallery import Edit\n\nEDITS = ({edit},)\n")
    with pytest.raises(ValueError, match=r"vector_add\.py: nan__some_name: .* occurs \d+ times in the solution"):
        answers_in(tmp_path)


# -- rules, on made-up observations ----------------------------------------------------------------------


def observed(about: dict, got=None, **seen) -> Observation:
    case = SOFTMAX.inputs.case(**about)
    arguments = case.make(torch.Generator().manual_seed(1))
    expected = SOFTMAX.reference(arguments[0].values)
    if got is not None:
        output = got(arguments[0].values).to(arguments[0].values.dtype)
        dtype = str(output.dtype).removeprefix("torch.")
        seen["result"] = Result(tuple(output.shape), dtype, True, False)
        seen["comparison"] = Comparison(output, expected, SOFTMAX.bounds[output.dtype])
        seen.setdefault("evidence", Evidence(launched=("kernel",)))
    return Observation(SOFTMAX, case, arguments, "interpreter", constants=(256,), **seen)


def said(*observations) -> str | None:
    finding = overall(list(observations), [diagnose(o) for o in observations])
    return finding.slug if finding else None


def test_a_right_output_has_no_diagnosis():
    assert said(observed(RAGGED, lambda x: torch.softmax(x, 1))) is None


def test_one_factor_for_all_is_a_constant_factor():
    assert said(observed(RAGGED, lambda x: 2 * torch.softmax(x, 1))) == "constant-factor"


def test_rows_with_factors_of_their_own_are_not_normalised():
    def rows(x):
        return torch.softmax(x, 1) * torch.arange(2.0, 2.0 + len(x))[:, None]

    assert said(observed(RAGGED, rows)) == "not-normalised"


def test_a_mistake_that_fits_one_case_by_chance_does_not_count():
    """A single row is a multiple of the right one; the others show that the factor is not constant."""

    def first_column_wrong(x):
        y = torch.softmax(x, 1)
        y[:, 0] += 0.1
        return y

    names = (RAGGED, WHOLE)
    single = observed({"rows": 3, "columns": 1}, lambda x: 0.5 * torch.softmax(x, 1))
    assert said(single, *(observed(name, first_column_wrong) for name in names)) == "wrong-value"


def test_nan_everywhere_is_not_overflow():
    huge = {"rows": 2, "columns": 520, "values": "huge values"}
    nothing = [observed(about, lambda x: x * torch.nan) for about in (RAGGED, huge)]
    assert said(*nothing) == "nan"


RACE = Race("write-write", "y_ptr", (0,), (0, 0, 0), (1, 0, 0), True, 3, "tl.store(…)")


def test_overlapping_last_blocks_are_no_race_but_other_values_are():
    race = replace(RACE, elements=212, share=0.7, writers=2)
    right = lambda x: torch.softmax(x, 1)  # noqa: E731
    for same_value, slug in ((True, None), (False, "race")):
        evidence = Evidence(launched=("kernel",), races=(replace(race, same_value=same_value),))
        assert said(observed(RAGGED, right, evidence=evidence)) == slug


def test_a_race_explains_the_time_that_the_largest_case_takes():
    race = replace(RACE, elements=300, share=1.0, writers=4)
    seen = Evidence(launched=("kernel",), races=(race,))
    racing = observed(RAGGED, lambda x: torch.softmax(x, 1), evidence=seen)
    assert said(racing, observed(MANY, exceeded="time")) == "race"
    assert said(observed(MANY, exceeded="time")) == "timeout"


def test_a_wrong_size_without_a_tail_is_no_tail_wrong():
    def second_block_wrong(x):
        return torch.cat([torch.softmax(x, 1)[:, :256], 0.5 + torch.rand(len(x), x.shape[1] - 256)], 1)

    names = (RAGGED, WHOLE)
    assert said(observed(names[0], second_block_wrong)) == "tail-wrong"
    assert said(*(observed(name, second_block_wrong) for name in (*names, WHOLE))) == "wrong-value"  # 2 : 1


def test_log_sum_exp_is_right_to_within_its_exponents():
    """exp(x - log(sum)) rounds an exponent as large as x; with small x that is not allowed for."""
    bound = SOFTMAX.bounds[torch.float32]
    assert bound.of_exponents(300.0).row_sum > 5 * bound.row_sum
    assert bound.of_exponents(4.0).row_sum < 1.5 * bound.row_sum


def test_a_space_of_tiny_blocks_is_poor():
    def trace(*sizes):
        space = tuple({"BLOCK": size, "num_warps": 4} for size in sizes)
        return Trace((Launch("k", (1, 1, 1), "", (), {}, {}, tuned=Tuned(space, 0, ("n",))),), 0)

    assert autotuning.about_the_space([trace(2, 4)]).slug == "poor-configurations"
    assert autotuning.about_the_space([trace(1024)]).slug == "not-autotuned"
    assert autotuning.about_the_space([Trace()]).slug == "not-autotuned"
    assert autotuning.about_the_space([trace(4, 1024)]) is None


def test_a_key_without_n_keeps_the_choice_of_the_small_size():
    small, large = [1.0, 2.0], [5.0, 4.0]
    assert autotuning.about_the_choice(True, "n = 1", "n = 2", small, large).slug == "poor-configurations"
    assert autotuning.about_the_choice(False, "n = 1", "n = 2", small, large) is None
    assert autotuning.about_the_choice(True, "n = 1", "n = 2", small, [4.1, 4.0]) is None


def test_an_exercise_without_answers_is_no_success(capsys):
    assert cli.main(["selftest", "--exercise", "vector_ad"]) == 2
    assert "has no answers to 'vector_ad'" in capsys.readouterr().err
