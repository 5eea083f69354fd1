"""`make update`: a repaired course comes in, and a learner's notebooks stay as they are."""

import subprocess

import pytest

from workshop.update import Problem, update


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def course(tmp_path):
    """(the course as it is published, a learner's clone of it)"""
    published, clone = tmp_path / "published", tmp_path / "clone"
    (published / "notebooks").mkdir(parents=True)
    for name in ("01_add", "02_softmax", "03_more"):
        (published / "notebooks" / f"{name}.ipynb").write_text("old")
    (published / "judge.py").write_text("old")
    git(published, "init", "--quiet")
    commit(published)
    subprocess.run(["git", "clone", "--quiet", str(published), str(clone)], check=True)
    return published, clone


def commit(folder):
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "lesson")


def texts(clone):
    return {path.name: path.read_text() for path in (clone / "notebooks").iterdir()}


def test_the_new_version_lies_beside_the_learners(course):
    published, clone = course
    (clone / "notebooks" / "01_add.ipynb").write_text("my answer")
    (clone / "notebooks" / "02_softmax.ipynb").write_text("my other answer")
    for name in ("notebooks/01_add.ipynb", "notebooks/03_more.ipynb", "judge.py"):
        (published / name).write_text("new")
    commit(published)
    assert update(clone) == ["01_add.ipynb"]
    assert (clone / "judge.py").read_text() == "new"
    assert texts(clone) == {
        "01_add.ipynb": "my answer",
        "new_01_add.ipynb": "new",
        "02_softmax.ipynb": "my other answer",
        "03_more.ipynb": "new",
    }
    assert update(clone) == []
    assert texts(clone)["01_add.ipynb"] == "my answer"


def test_what_fails_leaves_everything_as_it_was(course):
    published, clone = course
    (clone / "notebooks" / "01_add.ipynb").write_text("my answer")
    published.rename(published.with_name("elsewhere"))
    with pytest.raises(Problem, match="git pull"):
        update(clone)
    assert texts(clone)["01_add.ipynb"] == "my answer"


def test_a_notebook_that_a_cut_off_update_left_is_named(course):
    _, clone = course
    (clone / "notebooks" / "01_add.ipynb.mine").write_text("my answer")
    with pytest.raises(Problem, match="01_add.ipynb.mine"):
        update(clone)


def test_changes_outside_of_the_notebooks_are_not_touched(course):
    _, clone = course
    (clone / "judge.py").write_text("mine")
    with pytest.raises(Problem, match=r"judge\.py"):
        update(clone)
    assert (clone / "judge.py").read_text() == "mine"
