"""An installation that cannot judge says so. It blames nobody, and it grades nothing."""

import os
from pathlib import Path

import pytest
from classroom import RIGHT as RIGHT_WORDS
from classroom import filled, new_course, submit

from autograder import cli
from autograder.diagnosis.observation import Comparison
from autograder.judge import proof
from workshop.cli import main as workshop

ROOT = Path(__file__).resolve().parents[1]
RIGHT = ROOT / "tests" / "right" / "vector_add"
BREAKS = "from autograder.box import wire\n\nwire.REPLAYABLE = frozenset()\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of proofs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "triton-workshop" / "proofs"


@pytest.fixture
def broken(tmp_path, cache, monkeypatch):
    """A new box takes every operation of a host function for a computation."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BREAKS)
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{ROOT}")


def test_a_broken_judge_refuses_a_right_answer_without_blame(broken, capsys):
    answer = sorted(RIGHT.glob("*.py"))[0]
    assert cli.main(["check", "vector_add", str(answer), "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("autograder: this installation cannot judge kernel exercises (python 3.")
    assert "triton" in said.err and "torch" in said.err and "What to do" in said.err


def test_doctor_shows_the_same_line(broken, capsys):
    assert workshop(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "✗ the judge does not work here" in said
    assert "this installation cannot judge kernel exercises" in said


def test_grade_refuses_to_begin(broken, tmp_path, capsys):
    course = new_course(tmp_path / "course")
    submit(course, "ann", filled(**RIGHT_WORDS))
    assert cli.main(["grade", "--course", str(course.root), "--workers", "1"]) == 2
    assert "this installation cannot judge kernel exercises" in capsys.readouterr().err
    assert not (course.root / "autograded").exists() or not list((course.root / "autograded").iterdir())


@pytest.mark.parametrize("kind", ["kernel", "value", "compiler"])
def test_a_wrong_comparison_is_seen_by_every_kind(judge, cache, monkeypatch, kind):
    """A judge that takes wrong for right is as bad as one that takes right for wrong."""
    monkeypatch.setattr(Comparison, "right", property(lambda self: True))
    monkeypatch.setattr("autograder.judge.values.same", lambda got, expected: True)
    with pytest.raises(proof.CannotJudge, match=f"cannot judge {kind} exercises"):
        proof.prove(judge, kind)


def test_what_was_shown_once_is_not_run_again(judge, cache, monkeypatch):
    monkeypatch.setattr(judge, "proven", set())
    judge.prove("vector_add")
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(judge, "verdict_on", lambda *_: pytest.fail("judged again"))
    judge.proven.clear()  # as in a new judge
    judge.prove("vector_add")
    monkeypatch.setattr(proof, "stack", lambda: {"triton": "3.10.0"})
    judge.proven.clear()
    with pytest.raises(pytest.fail.Exception):
        judge.prove("vector_add")


def test_a_proof_does_not_outlive_a_change_of_any_room(tmp_path, monkeypatch):
    box = Path(proof.__file__).parents[1] / "box"
    files = [box / "wire.py", box / "syscalls.toml", ROOT / "workshop" / "hints.py"]
    read, seen = Path.read_bytes, []
    monkeypatch.setattr(Path, "read_bytes", lambda file: seen.append(file) or read(file))
    proof._code.__wrapped__()
    assert set(files) <= set(seen)
