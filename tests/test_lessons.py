"""What the lessons promise the judge: answers come with the imports of their notebook's first cell."""

import ast
import json
import re
import runpy
from pathlib import Path

import pytest
import triton

from autograder.answer import from_notebook
from autograder.exercises import EXERCISES
from autograder.lessons import answers
from workshop import KNOWN_DEVICES, recorded, xray

ROOT = Path(__file__).resolve().parents[1]


def filled(lesson: str) -> dict:
    """The released notebook, with the course's answers in it."""
    notebook = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_text())
    solutions = answers(ROOT / "solutions" / f"{lesson}.py")
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = solutions.get(name, "".join(cell["source"]))
    return notebook


LESSONS = {"01_vector_add": "vector_add", "04_fused_softmax": "fused_softmax"}


@pytest.mark.parametrize(("lesson", "exercise"), LESSONS.items())
def test_an_answer_may_use_what_its_lesson_imports(judge, few, lesson, exercise):
    """fused_softmax needs workshop, and takes explore along: a confined process can import nothing new."""
    source = from_notebook(filled(lesson), EXERCISES[exercise])
    with few():
        verdict = judge.judge(exercise, source)
    assert verdict.passed, verdict.message


def of_copy(file: str, size: int, provider: str) -> float:
    """The recorded share of the copy's speed."""
    return next(row.of_copy for row in recorded(file).rows if (row.size, row.provider) == (size, provider))


def test_what_lesson_1_says_of_block_sizes_was_recorded():
    """A block of 4 is slow, 256 is enough, and addition may be faster than a copy."""
    shares = {block: of_copy("h200_vector_add_float32", 2**28, f"BLOCK_SIZE={block}") for block in (4, 256, 4096)}
    assert shares[4] < 0.1
    assert abs(shares[256] - shares[4096]) < 0.05 and shares[256] > 1
    assert of_copy("h200_vector_add_float32", 2**28, "add") > 1


@pytest.mark.parametrize(("provider", "bound"), [("naive, block 256", 1 / 2), ("online, block 256", 2 / 3)])
def test_what_lessons_2_and_3_say_of_short_and_long_rows_was_recorded(provider, bound):
    assert of_copy("h200_softmax_float32", 1024, provider) > bound > of_copy("h200_softmax_float32", 8192, provider)


@pytest.mark.parametrize(
    ("columns", "element_size", "numbers"), [(1024, 4, 16), (8192, 2, 16), (16384, 4, 16), (16384, 2, 32)]
)
def test_what_lesson_4_says_of_the_numbers_of_a_thread(columns, element_size, numbers):
    """`rows` gives each thread of an NVIDIA GPU 16 numbers, and twice as many to wide rows in half precision."""
    tree = ast.parse((ROOT / "solutions" / "04_fused_softmax.py").read_text())
    function = next(node for node in tree.body if getattr(node, "name", "") == "rows_launch")
    names = {"triton": triton}
    exec(compile(ast.Module([function], []), "rows_launch", "exec"), names)
    launch = names["rows_launch"](columns, element_size)
    assert launch["ROWS"] * columns / (32 * launch["num_warps"]) == numbers


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks" / "recorded").glob("*.txt")), ids=lambda file: file.stem)
def test_what_a_tool_said_on_a_card_is_shown_in_a_lesson(file):
    assert any(file.name in script.read_text() for script in (ROOT / "solutions").glob("*.py"))


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("ncu", ["83.26", "90.81", "38.58", "127.84"]),
        ("proton", ["2813.717", "1287.163"]),
        ("inductor_softmax", ["R0_BLOCK", "XBLOCK", "16384 × 8192 float32"]),
    ],
)
def test_what_a_lesson_says_of_a_recording_is_in_it(tool, words):
    """Rounded in the prose: each number of it stands here as the file has it."""
    recording = (ROOT / "benchmarks" / "recorded" / f"h200_{tool}.txt").read_text()
    assert [word for word in words if word not in recording] == []


@pytest.mark.usefixtures("briefly")
def test_the_quiz_without_its_loop_earns_four_points(judge):
    """Lesson 3 says so: each blank is judged in the solution's kernel, and the loop around them is the learner's."""
    blanks = {
        "pid = 0": "pid = tl.program_id(0)",
        "mask = offsets < 1": "mask = offsets < n_cols",
        "in_data = tl.zeros((BLOCK_SIZE,), tl.float32)": "in_data = tl.load(in_ptr + pid * row_stride + offsets, "
        "mask=mask, other=-float('inf')).to(tl.float32)",
        "in_max_new = in_max ": "in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0)) ",
        "in_exp_sum = 1.0": "in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) "
        "+ tl.sum(tl.exp(in_data - in_max_new), axis=0)",
    }
    source = EXERCISES["online_softmax"].starter
    for blank, right in blanks.items():
        assert source.count(blank) == 1
        source = source.replace(blank, right)
    imports = "import torch\nimport triton\nimport triton.language as tl\n"
    verdict = judge.judge("online_softmax", imports + source)
    assert (verdict.score, all(verdict.blanks.values())) == (4, True), verdict.to_text()


def test_what_lesson_2_says_of_exp_was_recorded():
    recording = (ROOT / "benchmarks" / "recorded" / "h200_operations.csv").read_text()
    for operation, results, units in (("tl.exp(x)", 4096, 42), ("tl.exp2(x)", 4096, 2), ("libdevice.exp(x)", 4096, 2)):
        row = next(line for line in recording.splitlines() if line.startswith(f"{operation},float32,")).split(",")
        assert (int(row[2]), int(row[4])) == (results, units)


def test_the_answer_of_lesson_6_makes_the_accesses_wide(tmp_path):
    """The kernel with three faults, and with the three lines of the answer that is folded away."""
    lesson = (ROOT / "solutions" / "06_amd_optimization.py").read_text()
    narrow = re.search(r"@triton.jit\ndef twice_kernel.*?\n\n", lesson, re.S)[0]
    answer = re.search(r"# columns = lanes\n(?:# \w.*\n)+", lesson)[0].replace("# ", "    ")
    wide = re.sub(r"    columns = .*\n    start = .*\n    mask = .*\n", answer, narrow)
    for kernel, width in ((narrow, 32), (wide, 128)):
        file = tmp_path / f"width_{width}.py"
        file.write_text(f"import triton\nimport triton.language as tl\n\n\n{kernel}")
        function = runpy.run_path(file)["twice_kernel"]
        found = xray(function, "*fp32", "*fp32", 4100, 4100, BLOCK=8192, num_warps=8, targets="gfx942")["gfx942"]
        assert {*found.loads, *found.stores} == {width} and found.spills == 0


def test_lesson_4_counts_the_first_row_of_its_table_by_hand():
    facts, threads = KNOWN_DEVICES["NVIDIA H200"], 4 * 32
    fits = [facts.registers // (40 * threads), facts.shared_memory // 4112, facts.max_threads // threads]
    lesson = (ROOT / "solutions" / "04_fused_softmax.py").read_text()
    assert [int(n) for n in re.findall(r"^# \| .* \| (\d+) \|$", lesson, re.M)] == fits
    assert f"{facts.multiprocessors} × {min(fits)} = {facts.multiprocessors * min(fits):,} programs" in lesson


def test_lesson_5_says_why_it_does_not_use_pallas():
    assert "Pallas" in (ROOT / "solutions" / "05_jax_dropout.py").read_text()
