"""An exercise of a new kind is data in a folder: neither the judge nor the diagnosis knows it.

Added to the course as README says, it breaks no test that counts exercises or adds up points.
"""

import re
import runpy
import shutil
from pathlib import Path
from textwrap import dedent, indent

import pytest

from autograder import exercises

ROOT = Path(__file__).resolve().parents[1]
HEADER = """
import torch
from autograder.exercises.design import Inputs, TensorArgument, columns, rows, unfilled
from autograder.exercises.spec import Case, Cotangent, Strided
from autograder.exercises.spec import Bound, Call, Exercise, Mistake
from workshop.syllabus import Lesson

BOUNDS = {torch.float32: Bound(1e-5, 1e-6)}
"""

SPECIFICATIONS = {
    "two_kernels": """
        EXERCISES = (
            Exercise(
                lesson=Lesson("column_sum_toy", "", 3),
                entry="column_sum",
                signature="column_sum(x) -> the sum of each column",
                inputs=Inputs(
                    (TensorArgument(("rows", "columns"), row_stride=True),),
                    (rows("rows"), columns("columns")),
                    first=({"rows": 20, "columns": 50}, {"rows": 16, "columns": 32}),
                ),
                reference=lambda x: x.double().sum(0),
                bounds=BOUNDS,
                mistakes=(Mistake("wrong-value", lambda x: x[:8].sum(0), "Not all rows.", "Merge each part."),),
            ),
        )
    """,
    "autotuned_tiles": """
        def sides(n):
            return Case(f"{n} × {n}", lambda generator: (unfilled(n), unfilled(n)))


        EXERCISES = (
            Exercise(
                lesson=Lesson("outer_add_toy", "", 2),
                entry="outer_add",
                signature="outer_add(x, y) -> x[:, None] + y[None, :]",
                inputs=Inputs(
                    (TensorArgument(("rows",)), TensorArgument(("columns",))),
                    (rows("rows", least=1), columns("columns")),
                    first=({"rows": 33, "columns": 70}, {"rows": 32, "columns": 64}),
                ),
                reference=lambda x, y: x.double()[:, None] + y.double()[None, :],
                bounds=BOUNDS,
                mistakes=(Mistake("wrong-value", lambda x, y: x[:, None] - y[None, :], "That is x - y.", "Add."),),
                timing_cases=(sides(256), sides(8192)),
            ),
        )
    """,
    "jax_of_two": """
        def calls(case):
            return tuple(Call(jit=jit, grad=grad) for jit in (False, True) for grad in (False, True))


        def drawn(n):
            def make(generator):
                x, y, weights = (torch.randn(n, generator=generator) for _ in range(3))
                return Strided(x), Strided(y), 0.5, Cotangent(weights)

            return make


        EXERCISES = (
            Exercise(
                lesson=Lesson("blend_toy", "", 2),
                kind="jax",
                entry="blend",
                signature="blend(x, y, share) -> share * x + (1 - share) * y, differentiable in x",
                cases=(Case("n = 1000", drawn(1000), "ragged"), Case("n = 256", drawn(256))),
                reference=lambda x, y, share: share * x.double() + (1 - share) * y.double(),
                bounds=BOUNDS,
                calls=calls,
                mistakes=(Mistake("wrong-value", lambda x, y, s: (1 - s) * x + s * y, "Swapped.", "Swap."),),
            ),
        )
    """,
}

COLUMN_SUM = """
import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, parts_ptr, row_stride, n_rows, n_cols, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part = tl.program_id(0)
    rows = part * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * row_stride + columns[None, :], mask=mask, other=0.0)
    tl.store(parts_ptr + part * n_cols + columns, tl.sum(x, axis=0), mask=columns < n_cols)


@triton.jit
def merge_kernel(parts_ptr, out_ptr, n_parts, n_cols, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    mask = columns < n_cols
    total = tl.zeros((COLUMNS,), tl.float32)
    for part in range(0, n_parts):
        total += tl.load(parts_ptr + part * n_cols + columns, mask=mask, other=0.0)
    tl.store(out_ptr + columns, total, mask=mask)


def column_sum(x):
    m, n = x.shape
    n_parts = triton.cdiv(m, 8)
    parts = torch.empty((n_parts, n), device=x.device)
    out = torch.empty(n, device=x.device)
    if m:
        partial_kernel[(n_parts, triton.cdiv(n, 16))](x, parts, x.stride(0), m, n, ROWS=8, COLUMNS=16)
    merge_kernel[(triton.cdiv(n, 16),)](parts, out, n_parts, n, COLUMNS=16)
    return out
"""

OUTER_ADD = """
import torch
import triton
import triton.language as tl

SPACE = [triton.Config({"ROWS": 16, "COLUMNS": size}, num_warps=4) for size in (32, 64)]


@triton.autotune(configs=SPACE, key=["m", "n"])
@triton.jit
def outer_kernel(x_ptr, y_ptr, out_ptr, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows, mask=rows < m)
    y = tl.load(y_ptr + columns, mask=columns < n)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], x[:, None] + y[None, :], mask=mask)


def outer_add(x, y):
    m, n = x.numel(), y.numel()
    out = torch.empty((m, n), device=x.device)
    outer_kernel[lambda meta: (triton.cdiv(m, meta["ROWS"]), triton.cdiv(n, meta["COLUMNS"]))](x, y, out, m, n)
    return out
"""

BLEND = """
import jax
import jax_triton as jt
import triton
import triton.language as tl
from functools import partial


@triton.jit
def blend_kernel(x_ptr, y_ptr, n, out_ptr, share: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, share * x + (1 - share) * y, mask=mask)


def launch(x, y, share):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (triton.cdiv(x.size, 128),)
    return jt.triton_call(x, y, x.size, kernel=blend_kernel, out_shape=out, grid=grid, share=share, BLOCK=128)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def blend(x, y, share):
    return launch(x, y, share)


def forward(x, y, share):
    return launch(x, y, share), None


def backward(share, _, g):
    zeros = jax.numpy.zeros_like(g)
    return launch(g, zeros, share), launch(zeros, g, share)


blend.defvjp(forward, backward)
"""

RIGHT = {"column_sum_toy": COLUMN_SUM, "outer_add_toy": OUTER_ADD, "blend_toy": BLEND}
STARTERS = {
    "column_sum_toy": "import torch\n\n\ndef column_sum(x):\n    return torch.zeros(x.shape[1], device=x.device)\n",
    "outer_add_toy": "def outer_add(x, y):\n    ...\n",
    "blend_toy": "def blend(x, y, share):\n    return x\n",
}
# exercise -> what is changed in the right answer, and the name of that mistake
WRONG = {
    "column_sum_toy": [
        (("rows[:, None] * row_stride", "rows[:, None] * n_cols"), "stride-ignored"),
        (("parts, out, n_parts,", "parts, out, min(n_parts, 1),"), "wrong-value"),
        (("total, mask=mask", "total"), "out-of-bounds-store"),
        (("return out", "return parts.sum(0)"), "no-triton-kernel"),
    ],
    "outer_add_toy": [
        (("x[:, None] + y[None, :]", "x[:, None] - y[None, :]"), "wrong-value"),
        (("for size in (32, 64)", "for size in (1, 2)"), "poor-configurations"),
        (('@triton.autotune(configs=SPACE, key=["m", "n"])\n', ""), "runtime-error"),
        (("& (columns[None, :] < n)", ""), "out-of-bounds-store"),
    ],
    "blend_toy": [
        (("share * x + (1 - share) * y", "share * x + y"), "wrong-value"),
        (("return launch(g, zeros, share)", "return g"), "constant-factor"),
        (("mask=mask)\n\n\ndef", ")\n\n\ndef"), "out-of-bounds-store"),
        (("return launch(x, y, share)\n\n\ndef forward", "return share * x + (1 - share) * y\n\n\ndef forward"),
         "no-triton-kernel"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def toys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exercises")
    for name, text in SPECIFICATIONS.items():
        (folder / f"{name}.py").write_text(HEADER + dedent(text))
    before = dict(exercises.EXERCISES)
    try:
        added = [each for file in sorted(folder.glob("*.py")) for each in runpy.run_path(str(file))["EXERCISES"]]
        exercises.EXERCISES.update({each.name: each for each in added})
        yield [each.name for each in added]
    finally:
        exercises.EXERCISES.clear()
        exercises.EXERCISES.update(before)


def test_they_are_exercises_like_the_others(toys):
    assert set(toys) == set(RIGHT) == set(STARTERS) == set(WRONG)
    assert exercises.EXERCISES["blend_toy"].points == 2


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_answer_earns_everything(judge, name):
    verdict = judge.judge(name, RIGHT[name])
    assert verdict.passed, verdict.to_text()
    assert verdict.score == verdict.points


@pytest.mark.parametrize("name", STARTERS)
def test_the_starter_earns_nothing(judge, name):
    verdict = judge.judge(name, STARTERS[name])
    assert not verdict.passed and verdict.score == 0
    assert verdict.diagnosis and verdict.message


@pytest.mark.parametrize(
    "name, change, slug", [(name, *wrong) for name, mistakes in WRONG.items() for wrong in mistakes]
)
def test_a_wrong_answer_is_told_which_mistake_it_is(judge, name, change, slug):
    assert RIGHT[name].count(change[0]) >= 1
    verdict = judge.judge(name, RIGHT[name].replace(*change))
    assert not verdict.passed
    assert verdict.diagnosis == slug, verdict.to_text()


@pytest.mark.parametrize("written", ["vector_ad", "Vector_Add", "vectoradd"])
def test_a_misspelt_name_is_answered_with_the_nearest_ones(written):
    with pytest.raises(exercises.UnknownExercise, match="Did you mean vector_add"):
        exercises.EXERCISES[written]
    with pytest.raises(exercises.UnknownExercise, match="there is no exercise 'quicksort'. There are: first_kernel, "):
        exercises.EXERCISES["quicksort"]


# -- in the course, by the steps of README --------------------------------------------------------------------------

OF_LESSON = {"column_sum_toy": "01_vector_add", "outer_add_toy": "04_fused_softmax", "blend_toy": "05_jax_dropout"}
CELLS = """

# %% [markdown] hints="{name}"

# %% answer="{name}"
### BEGIN SOLUTION
{solution}
### STARTER
{starter}
### END SOLUTION

# %% check="{name}"
check("{name}")
"""
HINTS = "\n".join(f"## {title}\nThink.\n" for title in ("Concept", "Documentation", "Pseudo-formula", "Code"))
# The tests that count exercises or points; of those with a parameter, the new exercises' own.
COUNTING = {
    "test_progress.py": "",
    "test_build.py": "",
    "test_promises.py": "syllabus",
    "test_gallery.py": "large_enough",
    "test_mutants.py": "each_mutant and toy",
    "test_cases.py": "toy",
}


def add_to_the_course(root: Path) -> None:
    """Adds the three exercises to a copy of the repository."""
    syllabus = root / "workshop" / "syllabus.toml"
    for module, text in SPECIFICATIONS.items():
        for name, lesson in OF_LESSON.items():
            text = text.replace(f'Lesson("{name}", ""', f'Lesson("{name}", "{lesson}"')
        (root / "autograder" / "exercises" / f"{module}.py").write_text(HEADER + dedent(text))
        name, lesson, points, stretch = re.search(r'Lesson\("(\w+)", "(\w+)", (\d+)(, stretch=True)?\)', text).groups()
        line = f'{name} = {{points = {points}, {"stretch = true, " * bool(stretch)}shows = "It adds."}}\n'
        own = re.search(rf"\[{lesson}\]\n(\w.*\n)+", syllabus.read_text())[0]
        syllabus.write_text(syllabus.read_text().replace(own, own + line))
    for name, lesson in OF_LESSON.items():
        script = root / "solutions" / f"{lesson}.py"
        cells = CELLS.format(name=name, solution=RIGHT[name], starter=indent(STARTERS[name], "# ", lambda _: True))
        script.write_text(script.read_text() + cells)
        (root / "workshop" / "hints" / f"{name}.md").write_text(HINTS)
        (root / "tests" / "right" / name).mkdir()
        for i in range(5):
            (root / "tests" / "right" / name / f"way_{i}.py").write_text(RIGHT[name])
        mistakes = enumerate(2 * WRONG[name])
        edits = [f"Edit({slug!r}, 'way_{i}', {{{old!r}: {new!r}}})," for i, ((old, new), slug) in mistakes]
        text = "\n    ".join(["from autograder.gallery import Edit\n\nEDITS = (", *edits]) + "\n)\n"
        (root / "tests" / "wrong" / f"{name}.py").write_text(text)


def test_they_break_no_test_that_counts(forks, tmp_path):
    unneeded = shutil.ignore_patterns(".*", "recorded", "docker", "docs", "course")
    root = tmp_path / "course"
    shutil.copytree(ROOT, root, ignore=unneeded)
    (root / "benchmarks" / "recorded").symlink_to(ROOT / "benchmarks" / "recorded")
    add_to_the_course(root)

    chosen = " or ".join(f"({file} and ({words}))" if words else file for file, words in COUNTING.items())
    tests = "-q", "-p", "no:cacheprovider", "-k", chosen, *(f"tests/{file}" for file in COUNTING)
    program = f"""
import sys
sys.path.insert(0, {str(root)!r})
import pytest
from autograder import cli
assert cli.main(["build"]) == 0
sys.exit(pytest.main({list(tests)}))
"""
    done = forks.run(program, folder=root, PYTHONPATH=str(root))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
