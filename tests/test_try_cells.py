"""The lessons' own cells with a mask forgotten: a message of a few lines, and a process that lives on."""

import ast
import contextlib
import io
import json
import linecache
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITHOUT_MASKS = ("00_setup", "06_amd_optimization")
LESSONS = sorted({file.stem for file in (ROOT / "notebooks").glob("*.ipynb")} - set(WITHOUT_MASKS))
MOST_LINES = 12
EVERY = 2  # one access of so many in a cell: a cell has several that are alike


def without_masks(source: str):
    """The cell once for each tl.load and tl.store with a mask, without that mask: (the access, its line, the cell)."""
    accesses = [node for node in ast.walk(ast.parse(source)) if _masked(node)]
    for number in range(len(accesses)):
        tree = ast.parse(source)
        node = [node for node in ast.walk(tree) if _masked(node)][number]
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("mask", "other")]
        yield f"{node.func.attr}, line {node.lineno}", ast.unparse(tree)


def _masked(node) -> bool:
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("tl.load", "tl.store")
        and "mask" in [keyword.arg for keyword in node.keywords]
    )


def run(source: str, names: dict, cell: str) -> None:
    linecache.cache[cell] = (len(source), None, source.splitlines(True), cell)
    exec(compile(source, cell, "exec"), names)


def walk(lesson: str):
    """What came of each forgotten mask: where it was, whether a kernel was launched, what was said.

    The cells that follow run until one of them launches a kernel. What an exercise asks for is called with the
    arguments of its cases, too: those of the lesson may fill all blocks.
    """
    import workshop  # noqa: F401
    from workshop import launching

    launched = []
    execute = launching.executor.execute
    launching.executor.execute = lambda *args, **named: launched.append(1) or execute(*args, **named)
    cells = cells_of(lesson)
    names: dict = {"__name__": "__main__"}
    for number, (source, exercise) in enumerate(cells):
        accesses = list(without_masks(source))
        for access, broken in accesses[number % EVERY :: EVERY] or accesses:
            launched.clear()
            said, tried, needless = "", dict(names), False
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                try:
                    later_cells = [each for each, _ in cells[number + 1 :]]
                    for later, each in enumerate([broken, *later_cells]):
                        with contextlib.suppress(NameError):  # what only a skipped cell defines
                            run(each, tried, f"<{lesson} {number} {access} {later}>")
                        if launched:
                            break
                    needless = called(exercise, tried)
                except Exception as error:
                    render = getattr(error, "_render_traceback_", None)
                    said = "\n".join(render()) if render else f"no short text: {type(error).__name__}: {error}"
            seen = {"said": said, "printed": printed.getvalue(), "needless": needless}
            yield {"lesson": lesson, "access": access, "launched": bool(launched), **seen}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(NameError):
            run(source, names, f"<{lesson} {number}>")


def called(exercise: str, names: dict) -> bool:
    """Calls what an exercise with kernels asks for, on all its cases. Returns whether it is right without the mask.

    Or NaN, where the arguments hold NaN: it says itself that a kernel reads what nobody has filled, inside of a tensor.
    """
    import torch
    from known import tensor_of

    from autograder.exercises import EXERCISES
    from autograder.exercises.spec import Strided

    if exercise not in EXERCISES or EXERCISES[exercise].kind != "kernel":
        return False
    about, generator = EXERCISES[exercise], torch.Generator().manual_seed(1)
    for case in about.cases_of(generator):
        *arguments, last = [tensor_of(a) if isinstance(a, Strided) else a for a in case.make(generator)]
        if case.gradient is not None:
            arguments[case.gradient].requires_grad_()
            names[about.entry](*arguments).backward(last.values)
            continue
        result = names[about.entry](*arguments, last)
        if not torch.allclose(result.double(), about.reference(*arguments, last).double(), 0.02, 0.02, equal_nan=True):
            given = [each for each in (*arguments, last) if isinstance(each, torch.Tensor)]
            return bool(result.isnan().any()) and any(bool(each.isnan().any()) for each in given)
    return True


def cells_of(lesson: str) -> list[tuple[str, str]]:
    """The code of the filled notebook without what only judges, compiles or times; and the exercises it answers."""
    from workshop.hints import solution_source

    notebook = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    ids = [cell["metadata"].get("nbgrader", {}).get("grade_id", "") for cell in cells]
    texts = [(solution_source(name) or "".join(cell["source"]), name) for cell, name in zip(cells, ids)]
    skipped = ("check(", "xray(", "compare(", "measure(", "doctor()", "explore.", "curves", "speed", "half")
    anywhere = ("xray(", "compare(", "opcheck(")
    return [
        (text, name)
        for text, name in texts
        if not text.startswith(skipped) and not any(word in text for word in anywhere)
    ]


@pytest.fixture(scope="module")
def walked(forks):
    """What came of each forgotten mask. One process walks through all lessons: imports take longer than a lesson."""
    done = forks.run(Path(__file__), *LESSONS)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_forgotten_mask_is_told_and_harms_nothing(lesson, walked):
    found = [each for each in walked if each["lesson"] == lesson]
    for each in found:
        assert each["launched"], each
        if each["said"]:
            assert "outside of" in each["said"] and "Try:" in each["said"], each
            assert len(each["said"].splitlines()) <= MOST_LINES, each
    assert len(found) >= 2
    told = [each for each in found if each["said"] or "out-of-bounds" in each["printed"]]
    silent = [each for each in found if each not in told and not each["needless"]]
    assert not silent, silent


def test_lesson_1_runs_where_tritons_library_does_not_load(forks):
    done = forks.run(Path(__file__), "01_vector_add", "hidden")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "choices made so far: 2" in done.stdout and "row stride 320  all right" in done.stdout
    assert "x_ptr [3000]: elements read once" in done.stdout


def run_without_library(lesson: str) -> None:
    sys.modules["triton._C.libtriton"] = None  # so that it cannot be imported
    import workshop
    from workshop.executor import without_native

    assert not without_native.native()
    names: dict = {"__name__": "__main__"}
    for number, (source, _) in enumerate(cells_of(lesson)):
        run(source, names, f"<{lesson} {number}>")
    print(workshop.count_bytes(names["add"], names["x"], names["y"]))


if __name__ == "__main__":
    if "hidden" in sys.argv:
        run_without_library(sys.argv[1])
        sys.exit()
    for each in (each for lesson in sys.argv[1:] for each in walk(lesson)):
        print(json.dumps(each), flush=True)
