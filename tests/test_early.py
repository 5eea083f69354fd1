"""The command line starts the box before it imports torch itself: both take seconds, so they must overlap."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
from autograder import box
from autograder.box import lockdown
early = box.started_early(confine=not lockdown.missing())
try:
    print("torch" in sys.modules, early.backend, early.process.poll())
    from autograder.judge import Judge
    with Judge(confine=not lockdown.missing(), backend="interpreter", early=early) as judge:
        print(judge.box is early)
    with Judge(confine=not lockdown.missing(), backend="cuda", early=early) as judge:
        print(judge.box is early, early.process)
finally:
    early.close()
"""


def test_the_box_starts_before_torch_is_imported():
    root = Path(__file__).resolve().parents[1]
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.split() == ["False", "interpreter", "None", "True", "False", "None"], done.stderr


IN_A_CLASS = """
import sys
from types import SimpleNamespace
from autograder import cli
from autograder.box import lockdown
options = SimpleNamespace(command="grade", cluster=None, workers=None, trust_submissions=bool(lockdown.missing()))
for command, workers in (("grade", None), ("run", 1), ("feedback", 1)):
    options.command, options.workers = command, workers
    with cli._started_early(options) as boxes:
        print(len(boxes), all(box.process.poll() is None for box in boxes), "torch" in sys.modules)
    print(all(box.process is None for box in boxes))
"""


def test_a_grading_starts_boxes_for_its_judges():
    root = Path(__file__).resolve().parents[1]
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", IN_A_CLASS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    two = min(2, os.cpu_count())
    assert done.stdout.splitlines() == [
        f"{two} True False", "True", "1 True False", "True", "0 True False", "True",
    ], done.stderr  # fmt: skip
