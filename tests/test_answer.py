"""Which part of a notebook or of a session's history is the answer."""

import ast
import hashlib
import json
import time
from types import SimpleNamespace

import pytest

from autograder.answer import MAX_CELL, from_history, from_notebook, is_starter, line_with_dots
from autograder.classroom.submission import cells_of

ADD = SimpleNamespace(name="vector_add", entry="add")
STARTER = "def add(x, y):\n    return x"
ANSWER = "# my work\ndef add(x, y):\n    return total(x, y)  # done\n"


def cell(source, grade_id=None, cell_type="code", released=None):
    nbgrader = {"grade_id": grade_id, "solution": True} if grade_id else {}
    if released is not None:
        text = released + "code" + "FalseTrueFalse" + grade_id
        nbgrader["checksum"] = hashlib.md5(text.encode()).hexdigest()
    return {"cell_type": cell_type, "source": source, "metadata": {"nbgrader": nbgrader} if nbgrader else {}}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def names(source):
    return [getattr(node, "name", None) or ast.unparse(node) for node in ast.parse(source).body]


# -- histories --------------------------------------------------------------------------------------------


def test_keeps_what_the_function_needs_and_nothing_else():
    history = [
        "import torch, triton\nimport triton.language as tl\nimport matplotlib.pyplot as plt",
        "SIZE = 256\nUNUSED = torch.rand(10**9)\nprint(SIZE)",
        "%matplotlib inline\n!nvidia-smi\nplt.plot([1, 2])",
        "@triton.jit\ndef add_kernel(x_ptr, N: tl.constexpr):\n    tl.store(x_ptr, N)",
        "def add(x, y):\n    add_kernel[(1,)](x, N=SIZE)\n    return x",
        "x = torch.rand(8); y = x\noutput = add(x, y)\nassert torch.equal(output, x)",
        'check("vector_add")',
    ]
    assert names(from_history(history, "add")) == [
        "import torch, triton",
        "import triton.language as tl",
        "SIZE = 256",
        "add_kernel",
        "add",
    ]


def test_last_definition_wins_and_lines_stay_in_the_order_of_execution():
    history = ["N = 1", "def add(): return N", "N = 2", "def add(): return N + 1", "N = 3"]
    source = from_history(history, "add")
    assert "N + 1" in source and "N = 3" in source
    assert "N = 1" not in source and "N = 2" not in source


def test_what_ran_at_definition_time_keeps_the_value_of_then():
    history = ["N = 1", "def add(n=N): return n", "N = 2"]
    assert names(from_history(history, "add")) == ["N = 1", "add"]


def test_a_function_called_while_defining_brings_what_it_needed_then():
    history = ["SIZES = [1]\ndef space(): return SIZES", "S = space()", "SIZES = [2]", "def add(): return S"]
    assert names(from_history(history, "add")) == ["SIZES = [1]", "space", "S = space()", "add"]


@pytest.mark.parametrize(
    "change",
    ["C.append(2)", "for i in range(3):\n    C.append(i)", "C += [2]", "C[0] = 2", "if True:\n    C = [2]"],
)
def test_changes_to_a_needed_object_are_kept(change):
    source = from_history(["C = [1]", change, "def add(): return C", "print(C)"], "add")
    assert change in source and "print" not in source


def test_method_calls_on_modules_and_kernels_are_not_definitions():
    history = ["import torch", "def add(x): return torch.empty_like(x)", "torch.manual_seed(0)", "add.x()"]
    assert names(from_history(history, "add")) == ["import torch", "add"]


def test_local_names_do_not_bring_globals_of_the_same_name():
    assert names(
        from_history(["x = launch()", "def add(a):\n    x = a\n    return [x for y in a]"], "add")
    ) == ["add"]


def test_a_decorator_comes_with_its_function():
    source = from_history(["import triton\n@triton.jit\ndef add(): pass\nprint()"], "add")
    assert source == "import triton\n@triton.jit\ndef add(): pass\n"


def test_a_star_import_is_kept_for_names_nobody_defines():
    history = ["from math import *", "def add(x): return sqrt(x)"]
    assert names(from_history(history, "add")) == ["from math import *", "add"]


def test_nothing_is_returned_when_the_function_is_missing():
    assert from_history(["def sub(): pass", 3, None], "add") == ""
    assert from_history([], "add") == ""


def test_a_syntax_error_in_the_last_definition_comes_back_raw():
    broken = "# first line\ndef add(x, y:\n    return x"
    assert from_history(["def add(x): return x", broken], "add") == broken
    assert "return x" in from_history([broken, "def add(x): return x"], "add")


def test_a_script_keeps_its_line_numbers():
    script = "import os\n\nprint(os)\n\n\ndef add(x):\n    return x\n\n\nprint(add(1))\n"
    source = from_history([script], "add")
    assert source.split("\n")[5:7] == ["def add(x):", "    return x"]
    assert "print" not in source


def test_statements_that_share_a_line_with_others():
    history = ["a = 1; b = crash(); c = 2", "def add(): return a + c"]
    assert names(from_history(history, "add")) == ["a = 1", "c = 2", "add"]


def test_python_cell_magics_are_looked_through_and_others_are_not():
    assert "def add" in from_history(["%%time\ndef add(): pass"], "add")
    assert from_history(["%%writefile a.py\ndef add(): pass"], "add") == ""
    assert from_history(["%%capture\n%timeit 1\ndef add(): return 1 \\\n  % 2"], "add").count("\n") == 4


# -- notebooks --------------------------------------------------------------------------------------------


def test_the_marked_cell_wins_over_later_cells_and_keeps_its_line_numbers():
    nb = notebook(
        cell("import torch as t\nfrom os import path"),
        cell(ANSWER, "vector_add"),
        cell("def add(x, y):\n    return 'scratch'"),
        cell("def total(x, y):\n    return t.add(x, y)"),
    )
    source = from_notebook(nb, ADD)
    assert "scratch" not in source and "def total" in source and "import torch as t" in source
    assert "path" not in source


def test_imports_fit_above_the_answer_without_moving_it():
    nb = notebook(cell("import torch\nimport triton\nimport triton.language as tl"))
    nb["cells"].append(cell("# my work\ndef add(x, y):\n    return torch, triton, tl\n", "vector_add"))
    lines = from_notebook(nb, ADD).split("\n")
    assert lines[0] == "import torch; import triton; import triton.language as tl"
    assert lines[1] == "def add(x, y):"


def test_dropped_statements_leave_their_lines_empty():
    nb = notebook(cell("# a\nprint(\n  1)\n%time 3\n\ndef add(x, y):\n    # why\n    return x", "vector_add"))
    assert from_notebook(nb, ADD) == "# a\n\n\n\n\ndef add(x, y):\n    # why\n    return x\n"


def test_split_cells_count_together():
    halves = [cell("K = 2\n", "vector_add"), cell("def add(x, y): return K", "vector_add")]
    assert names(from_notebook(notebook(*halves), ADD)) == ["K = 2", "add"]


def test_a_split_in_the_middle_of_a_function_is_put_together():
    halves = [cell("def add(x, y):\n    z = x", "vector_add"), cell("    return z", "vector_add")]
    assert from_notebook(notebook(*halves), ADD) == "def add(x, y):\n    z = x\n    return z\n"


@pytest.mark.parametrize("order", [0, 1])
def test_a_copy_that_is_still_the_starter_is_ignored(order):
    copies = [cell(STARTER, "vector_add", released=STARTER), cell(ANSWER, "vector_add", released=STARTER)]
    source = from_notebook(notebook(*(copies[::-1] if order else copies)), ADD)
    assert "done" in source and "return x\n" not in source


def test_an_untouched_starter_is_the_answer_if_there_is_no_other():
    nb = notebook(cell(STARTER, "vector_add", released=STARTER), cell("print(1)"))
    assert from_notebook(nb, ADD) == STARTER + "\n"


def test_an_answer_in_another_cell_is_found():
    stripped = notebook(cell("import os"), cell("def add(x, y): return os"))
    assert names(from_notebook(stripped, ADD)) == ["import os", "add"]
    beside = notebook(cell(STARTER, "vector_add", released=STARTER), cell("def add(x, y): return 'mine'"))
    assert "mine" in from_notebook(beside, ADD)


@pytest.mark.parametrize("own", [cell(STARTER, "vector_add", released=STARTER), cell("x = 1", "vector_add")])
def test_the_answer_of_another_exercise_is_not_taken_for_this_one(own):
    other = cell("def add(x, y):\n    return my_kernel(x, y)", "vector_add_autotuned")
    assert "my_kernel" not in from_notebook(notebook(own, other), ADD)


def test_the_answer_of_another_exercise_is_known_after_the_notebook_was_read():
    """The reader keeps no more than the id: by that, it was taken for an answer to each exercise of its name."""
    nb = notebook(cell("x = 1", "vector_add"), cell(ANSWER, "vector_add_autotuned"))
    assert "done" not in from_notebook({"cells": cells_of(json.dumps(nb).encode())}, ADD)


def test_an_answer_in_another_cell_wins_over_another_exercise():
    own, free = cell(STARTER, "vector_add", released=STARTER), cell(ANSWER)
    other = cell("def total(x, y):\n    return x + y\ndef add(x, y):\n    return 0", "vector_add_autotuned")
    source = from_notebook(notebook(own, free, other), ADD)
    assert names(source) == ["total", "add"] and "# my work" in source


def test_a_cell_that_became_markdown_still_counts():
    assert "def add" in from_notebook(notebook(cell(STARTER, "vector_add", "markdown")), ADD)


@pytest.mark.parametrize("made", ["[f(n) for n in (1, 2)]", "{f(n) for n in (1, 2)}", "{n: f(n) for n in (1, 2)}"])
def test_the_variable_of_a_comprehension_needs_no_loop_of_that_name(made):
    """Python 3.12 and newer take it for a global; a loop that prints was kept, and a compiler was called."""
    source = f"for n in (1, 2):\n    print(n)\nspace = {made}\ndef answer():\n    return space\n"
    found = from_history(["def f(n):\n    return n", source], "answer")
    assert "print" not in found and "def f" in found


def test_an_answer_that_is_not_python_comes_back_as_it_is():
    broken = "def add(x, y):\n    return (x\n"
    assert from_notebook(notebook(cell("import torch"), cell(broken, "vector_add")), ADD) == broken


def test_a_readable_copy_beats_a_broken_one():
    nb = notebook(cell("def add(x:", "vector_add"), cell(STARTER, "vector_add"))
    assert from_notebook(nb, ADD) == STARTER + "\n"


def test_an_answer_without_the_function_comes_back_as_it_is():
    assert from_notebook(notebook(cell("def sub(): pass", "vector_add")), ADD) == "def sub(): pass"


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * MAX_CELL,
        "-" * (MAX_CELL - 1) + "1",
        "x" + ".a" * (MAX_CELL // 2 - 1),
        "1" + "+1" * (MAX_CELL // 2 - 1),
        "\n".join(" " * i + "if x:" for i in range(300)),
        "lambda: " * (MAX_CELL // 8),
        "x = 0\n" + "x += 1\n" * (MAX_CELL // 8),
        "def f(): " + ";".join(f"a{i}" for i in range(5000)) + "\n" + "b = f()\n" * 2500,
        "x = '\ud800'",
        "\0",
        "[" * 90 + "]" * 90 + "\n" + "9" * 5000,
        "y" * (10 * MAX_CELL),
    ],
)
def test_hostile_cells_cost_little_and_hurt_nobody(hostile):
    start = time.process_time()
    nb = notebook(*[cell(hostile + f"\n#{i}") for i in range(5)], cell(STARTER, "vector_add"))
    assert from_notebook(nb, ADD) == STARTER + "\n"
    assert isinstance(
        from_notebook(notebook(cell(hostile + "\ndef add(): return x, f", "vector_add")), ADD), str
    )
    assert time.process_time() - start < 20


@pytest.mark.timeout(100)
@pytest.mark.parametrize("filler", [" ", "\t ", "a? ", "a=", "? ", "!", ", "])
def test_no_line_is_slow_to_read(filler):
    lines = [cell(f"{filler * (59_000 // len(filler))}${n}") for n in range(8)]
    assert "def add" in from_notebook(notebook(cell(ANSWER, "vector_add"), *lines), ADD)


def test_a_starter_is_known_by_its_statements():
    starter = "@jit\ndef kernel(n):\n    return 0  # your code here\n\ndef add(x):\n    return kernel(x)\n"
    assert is_starter(f"import torch\n\n{starter}\n\nprint(add(1))", starter, "add")
    assert not is_starter(starter.replace("0", "1"), starter, "add")
    assert not is_starter(f"{starter}\ndef add(x):\n    return x\n", starter, "add")  # the last definition counts
    assert not is_starter("def add(x: return", starter, "add")
    assert not is_starter("x = 1", "y = 2", "add")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("y = x\n    mask = ...", 3),
        ("return ...", 2),
        ("return x.load(x, mask=...)", 2),
        ("...", 2),
        ("return x[..., 0]", None),
        ("if x: ...\n    return x", None),
        ("y: tuple[int, ...] = x\n    return y", None),
    ],
)
def test_dots_in_the_place_of_code(body, line):
    assert line_with_dots(f"def add(x):\n    {body}\n", "add") == line


def test_dots_elsewhere_are_nobodys_gap():
    assert line_with_dots("def later(): ...\ndef add(x): return x\n", "add") is None
