"""The command line starts the box before it imports torch itself: both take seconds, so they must overlap."""

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
