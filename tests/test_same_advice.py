"""A check, a plain launch, `sanitize` and `xray` say the same about a kernel that Triton refuses."""

import linecache
import re
from pathlib import Path

import pytest
import torch
import triton.language as tl

from autograder.exercises import find
from autograder.exercises.cases import Strided
from autograder.gallery import answers_in
from workshop import advice, launching, sanitize, xray
from workshop.backend import interpreting
from workshop.compiling import CompileFailed
from workshop.executor import without_native

LATER = "vector_add_autotuned compile-error__last_configuration_is_no_power_of_two"  # a plain launch tries the first
REFUSED = {
    f"{each.exercise} {each.name}": each
    for each in answers_in(Path(__file__).parent)
    if each.slug == "compile-error" and not each.needs and find(each.exercise).kind == "kernel"
}


def loaded(answer):
    """The host function of an answer, as a cell defines it."""
    name = f"<{answer.exercise} {answer.name}>"  # of a notebook's cell
    linecache.cache[name] = (len(answer.source), None, answer.source.splitlines(True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(answer.source, name, "exec"), namespace)
    return namespace[find(answer.exercise).entry]


def arguments_of(answer, name: str) -> list:
    """Those of the case with this name."""
    cases = find(answer.exercise).cases_of(torch.Generator().manual_seed(1))
    given = next(each for each in cases if each.name == name).make(torch.Generator().manual_seed(1))
    return [each.values if isinstance(each, Strided) else each for each in given]


@pytest.mark.skipif(not interpreting(), reason="on a GPU the driver speaks")
@pytest.mark.parametrize("answer", [name for name in REFUSED if name != LATER])
def test_all_say_the_same(judge, monkeypatch, answer):
    answer, launched = REFUSED[answer], []
    checked = judge.judge(answer.exercise, answer.source, seed=1).finding
    if "compiler refuses the kernel" not in checked.happened:
        pytest.skip("a launch option, or a later stage of the compiler")
    bind = launching.executor.bind
    monkeypatch.setattr(launching.executor, "bind", lambda *given: launched.append(given) or bind(*given))
    function, arguments = loaded(answer), arguments_of(answer, checked.case)
    with pytest.raises(Exception) as caught:  # noqa: PT011  whatever it is, it carries its short text
        function(*arguments)
    plain = caught.value.told
    assert plain.happened in checked.happened
    if "all cases are right" not in checked.means:  # only a check has cases, and can try a change of the source
        assert (plain.means, plain.attempt, plain.line) == (checked.means, checked.advice, checked.line)
        assert plain.code == checked.code
    [problem] = sanitize(function, *arguments).problems
    assert (problem.line, problem.code, problem.attempt) == (plain.line, plain.code, plain.attempt)
    assert plain.means in problem.what
    if launched and without_native.native():
        kernel, args, kwargs = launched[-1]
        with pytest.raises(CompileFailed) as caught:
            xray(kernel, *args, **kwargs, targets="sm_90")
        compiled = caught.value.told
        assert (compiled.means, compiled.attempt) == (plain.means, plain.attempt)
        assert (compiled.line, compiled.code) == (plain.line, plain.code)


def test_advice_names_functions_that_triton_has():
    """Also in the table of what torch has: a name that is wrong there would send a learner from error to error."""
    texts = [attempt for *_, attempt in advice.ADVICE] + list(advice.ELSEWHERE.values())
    names = {name for text in texts for name in re.findall(r"\btl\.(\w+)\(", text)}
    assert names and {name for name in names if not hasattr(tl, name)} == set()


@pytest.mark.parametrize("name", ["tanh", "isinf", "unsqueeze", "blockIdx"])
def test_what_torch_or_cuda_has_is_translated(name):
    for message, construct in (
        (f"module 'triton.language' has no attribute '{name}'", ""),
        (f"'tensor' object has no attribute '{name}'", ""),
        ("Unsupported function referenced: <built-in method>", f"torch.{name}"),
    ):
        assert advice.refused(message, construct)[2] == f"write {advice.ELSEWHERE[name]}."
