"""Hints open one at a time; the solution opens for those who passed or tried."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib

import pytest
import triton.language as tl

from workshop import hint, ladder, progress, record, solution
from workshop.hints import split_answer

hints = sys.modules["workshop.hints"]
FILES = hints.FOLDER  # of the course; the tests below have folders of their own
SCRIPTS = hints.SOLUTIONS
FILE = """## Concept
Think.

## Documentation
[tl.load](https://example.org)

## Pseudo-formula
offsets = start + lanes

## Code
```python
# ## not a heading
offsets = start + tl.arange(0, 4)
```
"""
SCRIPT = """# %% [markdown]
# # Lesson

# %% answer="vector_add"
def add(x, y):
    offsets = start + lanes  # ① starter: lanes
    ### BEGIN SOLUTION
    return x + y
    ### STARTER
    # return x  # your code here
    ### END SOLUTION


# %% check="vector_add"
check("vector_add")
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "progress.json"))
    for name, folder in (("FOLDER", "hints"), ("SOLUTIONS", "solutions")):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(hints, name, tmp_path / folder)
    (tmp_path / "hints" / "vector_add.md").write_text(FILE, encoding="utf-8")
    return tmp_path


def test_the_ladder_has_four_rungs():
    rungs = ladder("vector_add")
    assert tuple(title for title, _ in rungs) == hints.RUNGS
    assert rungs[0][1] == "Think."
    assert "# ## not a heading" in rungs[3][1]


def test_hints_open_one_at_a_time_and_are_counted(capsys):
    seen = []
    for _ in range(5):
        hint("vector_add")
        seen.append(capsys.readouterr().out.splitlines()[0])
    assert [line.split(":")[0] for line in seen] == [
        "**Hint 1 of 4",
        "**Hint 2 of 4",
        "**Hint 3 of 4",
        "**Hint 4 of 4",
        "**Hint 4 of 4",
    ]
    assert progress().entry("vector_add").hints == 4


def test_an_exercise_without_hints_says_so(capsys):
    hint("bug_hunt")
    assert "no hint" in capsys.readouterr().out
    assert progress().entry("bug_hunt").hints == 0


def test_an_unknown_exercise_has_no_ladder():
    with pytest.raises(ValueError, match="'vektor_add'.*vector_add"):
        ladder("vektor_add")


@pytest.mark.parametrize("call", [hint, solution])
def test_an_unknown_exercise_is_answered_in_one_line(call, capsys):
    call("vektor_add")
    assert capsys.readouterr().out.startswith("there is no exercise 'vektor_add'. Did you mean vector_add")


def test_a_function_stands_for_its_name(capsys):
    def vector_add(x, y): ...

    hint(vector_add)
    assert "Hint 1" in capsys.readouterr().out


def test_a_notebook_shows_the_opened_hints_and_how_to_open_the_next(monkeypatch):
    shown = []
    monkeypatch.setattr(hints, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda page: shown.append(page.data))
    for _ in range(4):
        hint("vector_add")
    assert "Hint 1 of 4: Concept" in shown[0] and "the next hint: Documentation" in shown[0]
    assert shown[-1].count("<details") == 4 and shown[-1].count("<details open>") == 1
    assert 'href="https://example.org"' in shown[-1] and "next hint" not in shown[-1]
    assert progress().entry("vector_add").hints == 4


def test_the_solution_waits_for_honest_tries(own_folders, capsys):
    (own_folders / "solutions" / "01_lesson.py").write_text(SCRIPT, encoding="utf-8")
    solution("vector_add")
    assert "after 3 more failed checks" in capsys.readouterr().out
    for _ in range(3):
        record("vector_add", 0, 5)
    solution("vector_add")
    shown = capsys.readouterr().out
    assert "offsets = start + lanes  # ①\n" in shown
    assert "return x + y" in shown
    assert "starter" not in shown and "your code here" not in shown and "###" not in shown
    assert "check(" not in shown


def test_the_solution_opens_after_passing(own_folders, capsys):
    (own_folders / "solutions" / "01_lesson.py").write_text(SCRIPT, encoding="utf-8")
    record("vector_add", 5, 5)
    solution("vector_add")
    assert "return x + y" in capsys.readouterr().out


def test_without_solutions_the_instructor_is_named(capsys):
    record("vector_add", 5, 5)
    solution("vector_add")
    assert "ask your instructor" in capsys.readouterr().out


TABLE = tomllib.loads((hints.SOLUTIONS / "other_answers.toml").read_text())


@pytest.mark.parametrize("name", TABLE)
def test_other_right_answers_are_of_the_gallery_and_have_a_reason(name):
    for style, why in TABLE[name].items():
        assert (hints.GALLERY / name / f"{style}.py").is_file() and why.endswith(".") and len(why) > 40


def test_other_right_answers_are_shown_after_a_pass_only(own_folders, monkeypatch, capsys):
    (own_folders / "solutions" / "01_lesson.py").write_text(SCRIPT, encoding="utf-8")
    (own_folders / "solutions" / "other_answers.toml").write_text('[vector_add]\nwith_a_loop = "It loops."\n')
    (own_folders / "gallery" / "vector_add").mkdir(parents=True)
    (own_folders / "gallery" / "vector_add" / "with_a_loop.py").write_text("for ever\n")
    monkeypatch.setattr(hints, "GALLERY", own_folders / "gallery")
    for _ in range(3):
        record("vector_add", 0, 5)
    solution("vector_add")
    assert hints.others("vector_add") == [] and "It loops" not in capsys.readouterr().out
    record("vector_add", 5, 5)
    solution("vector_add")
    assert hints.others("vector_add") == [("with a loop", "It loops.", "for ever")]
    assert "**with a loop.** It loops." in capsys.readouterr().out


def source_of(name: str) -> str:
    """The answer cell as the script has it, with markers."""
    cells = [cell for script in SCRIPTS.glob("*.py") for cell in script.read_text().split("\n# %%")]
    return next(c.partition("\n")[2] for c in cells if f'answer="{name}"' in c.partition("\n")[0])


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.md")))
def test_the_last_hint_is_not_the_answer(name):
    """Hint 4 shows a kernel of the same shape with another job. It holds no line of the answer that is not given."""
    answer, starter = split_answer(source_of(name))
    given = {line.strip() for line in starter.splitlines()}
    own = {line.split("  #")[0].strip() for line in answer.splitlines()} - given
    own = {line for line in own if len(line) > 30 and not line.startswith(("def ", "@"))}
    code = (FILES / f"{name}.md").read_text().split("## Code")[1]
    shown = {line.split("  #")[0].strip() for line in code.splitlines()}
    assert not own & shown


def codes(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (FILES / f"{name}.md").read_text(), re.S)


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.md")))
def test_the_code_of_a_hint_calls_triton_as_it_is(name):
    """The last hint of column_sum gave tl.load an argument that it does not have."""
    for call in (node for code in codes(name) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        function = ast.unparse(call.func)
        if re.fullmatch(r"tl\.\w+", function):
            called = getattr(tl, function[3:])
            takes = inspect.signature(getattr(called, "fn", called)).parameters
            assert {keyword.arg for keyword in call.keywords} <= set(takes), ast.unparse(call)


def test_the_last_hint_of_read_the_isa_prints_four_numbers_of_another_kernel(tmp_path):
    head = "import triton\nimport triton.language as tl\nfrom workshop import xray\n"
    (tmp_path / "hint.py").write_text(head + codes("read_the_isa")[-1])
    said = subprocess.run([sys.executable, tmp_path / "hint.py"], capture_output=True, text=True, check=True).stdout
    assert len(said.split()) == 4 and all(number.isdecimal() for number in said.split())
