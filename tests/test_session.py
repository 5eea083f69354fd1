"""What a check in a notebook takes as the answer: what ran, of the answer cell only its latest run, and what it says
when nothing ran or when the cell was edited since."""

import json
import os
import time
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from autograder.lessons import answers

ROOT = Path(__file__).resolve().parents[1]
ADD = answers(ROOT / "solutions" / "01_vector_add.py")["vector_add"]
PREPARE = "from workshop import DEVICE\nimport torch\nimport triton\nimport triton.language as tl\n"
PREPARE += "from autograder import check"


def saved(path, source, seconds=0.0):
    """Writes the notebook file with `source` in the answer cell, as if that were `seconds` from now."""
    cell = {"cell_type": "code", "id": "vector_add", "source": source, "outputs": [], "execution_count": None}
    cell["metadata"] = {"nbgrader": {"grade_id": "vector_add"}}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    os.utime(path, (time.time() + seconds,) * 2)


class Kernel:
    """A kernel that runs cells with ids, as JupyterLab sends them."""

    def __init__(self, client):
        self.client = client

    def run(self, code: str, cell: str) -> str:
        """The text of what the cell displays, the latest update of each display only."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        content |= {"user_expressions": {}, "stop_on_error": True}
        message = self.client.session.msg("execute_request", content)
        message["metadata"]["cellId"] = cell
        self.client.shell_channel.send(message)
        shown, done = {}, False
        while not done:
            reply = self.client.get_iopub_msg(timeout=240)
            if reply["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = reply["content"]
            done = content.get("execution_state") == "idle"
            if "data" in content:
                shown[content.get("transient", {}).get("display_id")] = content["data"].get("text/plain", "")
            elif reply["msg_type"] == "error":
                shown["error"] = "\n".join(content["traceback"])
        return "\n".join(shown.values())


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    environment = {"JPY_SESSION_NAME": str(folder / "lesson.ipynb"), "PYTHONPATH": str(ROOT)}
    environment["WORKSHOP_PROGRESS"] = str(folder / "progress.json")
    manager, client = start_new_kernel(startup_timeout=240, cwd=str(folder), env={**os.environ, **environment})
    started = Kernel(client)
    started.file = folder / "lesson.ipynb"
    assert started.run(PREPARE, "first") == ""
    yield started
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_a_notebook_is_told_what_its_state_is(kernel):
    saved(kernel.file, "")
    said = kernel.run('check("vector_add")', "check-vector_add")
    assert "has not run since this notebook's kernel was started" in said
    assert "run the answer cell first" in said
    saved(kernel.file, "def add(x, y):\n    return 3 +")
    said = kernel.run('check("vector_add")', "check-vector_add")
    assert "The kernel of this notebook is new" in said and "syntax-error" in said

    kernel.run(ADD, "vector_add")
    assert "PASS  vector_add  5 of 5 points" in kernel.run('check("vector_add")', "check-vector_add")

    saved(kernel.file, ADD.replace("x + y", "x - y"), seconds=5)
    said = kernel.run('check("vector_add")', "check-vector_add")
    assert "The answer cell was edited after it ran" in said and "PASS" in said

    saved(kernel.file, "# an old text", seconds=-3600)
    said = kernel.run('check("vector_add")', "check-vector_add")
    assert "edited" not in said and "PASS" in said

    kernel.run(ADD.replace("def add(", "def my_add("), "vector_add")
    said = kernel.run('check("vector_add")', "check-vector_add")
    assert "it does not define add." in said and "NOT YET" in said

    kernel.run(ADD.replace("def add(x, y)", "def add(x, y"), "vector_add")
    assert "Python cannot read the code" in kernel.run('check("vector_add")', "check-vector_add")

    kernel.run(ADD, "a cell of my own")
    assert "PASS" in kernel.run('check("vector_add")', "check-vector_add")
