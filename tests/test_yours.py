"""What a right answer did is drawn after a pass: from the executor's own records."""

import linecache

import pytest
import torch
import triton.language as tl  # noqa: F401  the solutions below use it

from autograder import yours
from autograder.exercises import EXERCISES
from workshop.hints import solution_source

HEAD = "import functools\nimport torch\nimport triton\nimport triton.language as tl\nfrom workshop import DEVICE\n"


def solved(name: str, change=lambda source: source):
    """The function of the course's solution."""
    source, file = HEAD + change(solution_source(name)), f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names = {"__name__": name}
    exec(compile(source, file, "exec"), names)
    return names[EXERCISES[name].entry]


def test_the_programs_and_the_bytes_of_a_vector_add_are_counted():
    picture = yours.picture(EXERCISES["vector_add"], solved("vector_add"))
    assert "on 5003 elements: 5 programs wrote them" in picture.text
    assert "yours 12, each element once 12" in picture.text
    assert picture.html.count("<title>program ") == 5 and "program 4: elements 4096 to 5002" in picture.html


@pytest.mark.parametrize(("name", "moved"), [("naive_softmax", 16), ("online_softmax", 12)])
def test_a_softmax_stands_beside_those_of_the_course(name, moved):
    picture = yours.picture(EXERCISES[name], solved(name))
    assert f"yours {moved}, naive softmax 16, online softmax 12, fused softmax 8" in picture.text


def test_a_program_that_writes_everything_is_seen():
    def loop(source):
        return source.replace("(triton.cdiv(n_elements, 1024),)", "(1,)").replace("BLOCK_SIZE=1024", "BLOCK_SIZE=8192")

    assert "1 program wrote them" in yours.picture(EXERCISES["vector_add"], solved("vector_add", loop)).text


def test_what_fails_or_prints_is_not_shown(capsys):
    def broken(x, y):
        print("noise")
        raise RuntimeError

    assert yours.picture(EXERCISES["vector_add"], broken) is None and capsys.readouterr().out == ""
    assert yours.picture(EXERCISES["bytes_moved"], broken) is None


@pytest.mark.parametrize("name", [name for name, e in EXERCISES.items() if e.kind == "kernel"])
def test_confetti_is_not_drawn(name):
    try:
        picture = yours.picture(EXERCISES[name], solved(name))
    except NameError:  # it rests on another exercise's kernel
        return
    assert picture is None or picture.html.count("<rect") <= yours.MOST_ROWS * yours.MOST_RUNS + 16


def test_a_result_that_no_launch_wrote_is_not_drawn():
    assert yours.picture(EXERCISES["vector_add"], torch.add) is None
