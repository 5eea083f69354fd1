"""`workshop new-kernel` makes a package that needs no course and no network, and that passes its own tests."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

from workshop import cli, hints, new_kernel
from workshop.progress import record

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKSHOP_PROGRESS", str(tmp_path / "progress.json"))


def lesson(path) -> None:
    """A notebook with the solutions in its answer cells."""
    cells = [
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name}}, "source": [hints.answer_cell(name)[0]]}
        for name in new_kernel.ANSWERS
    ]
    path.write_text(json.dumps({"cells": cells}))


def run(*command, **more) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRITON"))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env=environment, **more)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_a_package_of_ones_own_operator_passes(tmp_path):
    record("rms_norm_op", 3, 3)
    lesson(tmp_path / new_kernel.LESSON)
    assert cli.main(["new-kernel", "my_kernel"]) == 0
    package = tmp_path / "my_kernel"
    assert "rms_norm_kernel" in (package / "src/my_kernel/__init__.py").read_text()
    said = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=src", cwd=package)
    assert " passed" in said


def test_a_package_installs_in_a_fresh_environment_and_passes(tmp_path):
    assert cli.main(["new-kernel", "my_kernel"]) == 0
    package = tmp_path / "my_kernel"
    assert "rms_norm_kernel" not in (package / "src/my_kernel/__init__.py").read_text()
    run(sys.executable, "-m", "venv", "--without-pip", "fresh")
    (site,) = (tmp_path / "fresh" / "lib").glob("python*/site-packages")
    # torch and Triton are too large to be installed once more
    (site / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(tmp_path / "fresh" / "bin" / "python")
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--no-index", "--no-deps", "--no-build-isolation", str(package))
    shutil.rmtree(package / "src")
    options = ["-q", "-p", "no:cacheprovider"]
    tests = f"import sys, pytest\nstatus = pytest.main({options})\nprint(*sys.modules)\nsys.exit(status)"
    said, names = run(python, "-c", tests, cwd=package).rsplit("\n", 2)[:2]
    assert " passed" in said and "failed" not in said
    assert "my_kernel" in names.split() and not {"workshop", "autograder"} & {*names.split()}


@pytest.mark.parametrize("name", ("my-kernel", "1st", "class", "torch", "../up"))
def test_a_name_that_cannot_be_imported(name, capsys):
    assert cli.main(["new-kernel", name]) == 2
    assert "cannot be the name" in capsys.readouterr().err


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    assert cli.main(["new-kernel", "mine"]) == 2
    assert not list((tmp_path / "mine").iterdir()) and "there already" in capsys.readouterr().err
