"""The lessons' own cells with a mask forgotten: a message of a few lines, and a process that lives on."""

import ast
import contextlib
import io
import json
import linecache
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted(file.stem for file in (ROOT / "notebooks").glob("*.ipynb"))
MOST_LINES = 12


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
    """What came of each forgotten mask: where it was, whether a kernel was launched, what was said."""
    import workshop  # noqa: F401
    from workshop import launching

    launched = []
    execute = launching.executor.execute
    launching.executor.execute = lambda *args, **named: launched.append(1) or execute(*args, **named)
    cells = cells_of(lesson)
    names: dict = {"__name__": "__main__"}
    for number, source in enumerate(cells):
        for access, broken in without_masks(source):
            launched.clear()
            said, tried = "", dict(names)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                try:
                    for later, each in enumerate([broken, *cells[number + 1 :]]):
                        with contextlib.suppress(NameError):  # what only a skipped cell defines
                            run(each, tried, f"<{lesson} {number} {access} {later}>")
                        if launched:
                            break
                except Exception as error:
                    render = getattr(error, "_render_traceback_", None)
                    said = "\n".join(render()) if render else f"no short text: {type(error).__name__}: {error}"
            yield {"access": access, "launched": bool(launched), "said": said, "printed": printed.getvalue()}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(NameError):
            run(source, names, f"<{lesson} {number}>")


def cells_of(lesson: str) -> list[str]:
    """The code of the filled notebook without what only judges, compiles or times."""
    from autograder.lessons import answers

    notebook = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_text())
    solutions = answers(ROOT / "solutions" / f"{lesson}.py")
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    texts = [solutions.get(c["metadata"].get("nbgrader", {}).get("grade_id"), "".join(c["source"])) for c in cells]
    skipped = ("check(", "xray(", "compare(", "measure(", "doctor()", "explore.", "curves", "speed", "half")
    return [text for text in texts if not text.startswith(skipped) and "xray(" not in text and "compare(" not in text]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_forgotten_mask_is_told_and_harms_nothing(lesson):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, lesson], capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for each in found:
        assert each["launched"], each
        if each["said"]:
            assert "outside of" in each["said"] and "Try:" in each["said"], each
            assert len(each["said"].splitlines()) <= MOST_LINES, each
    assert len(found) >= {"00_setup": 0, "06_amd_optimization": 0}.get(lesson, 2)
    silent = [each for each in found if not each["said"] and "out-of-bounds" not in each["printed"]]
    assert not silent, silent


def test_lesson_1_runs_where_tritons_library_does_not_load():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, __file__, "01_vector_add", "hidden"],
        capture_output=True, text=True, check=False, env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "choices made so far: 2" in done.stdout and "row stride 320  all right" in done.stdout
    assert "x_ptr [3000]: elements read once" in done.stdout


def run_without_library(lesson: str) -> None:
    sys.modules["triton._C.libtriton"] = None  # so that it cannot be imported
    import workshop
    from workshop.executor import without_native

    assert not without_native.native()
    names: dict = {"__name__": "__main__"}
    for number, source in enumerate(cells_of(lesson)):
        run(source, names, f"<{lesson} {number}>")
    print(workshop.count_bytes(names["add"], names["x"], names["y"]))


if __name__ == "__main__":
    if "hidden" in sys.argv:
        run_without_library(sys.argv[1])
        sys.exit()
    for each in walk(sys.argv[1]):
        print(json.dumps(each), flush=True)
