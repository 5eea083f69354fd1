"""The command line starts the box before it imports torch itself: both take seconds, so they must overlap."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from classroom import RIGHT, StrawJudge, filled, new_course, submit

from autograder.classroom.grading.grade import grade as grade_now

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
from types import ModuleType, SimpleNamespace
from autograder.box import lockdown
from autograder.classroom import commands
from autograder.classroom.course import Course

def grade(*_, early, **__):
    print(len(early), all(box.process.poll() is None for box in early), "torch" in sys.modules)
    boxes.extend(early)

boxes = []
for name, function in (("grading.grade", "grade"), ("run", "finish")):
    module = sys.modules[f"autograder.classroom.{name}"] = ModuleType(name)
    setattr(module, function, grade)
options = SimpleNamespace(
    source=sys.argv[2], student="", roster=None, to=None, assignment=None, cluster=None, workers=None, all=False,
    write_changes=False, trust_submissions=bool(lockdown.missing()),
)
for arguments in sys.argv[3:]:
    command, options.workers, options.all = eval(arguments)
    commands.REPORTS[command](Course.open(sys.argv[1]), options)
    assert all(box.process is None for box in boxes)
"""


def boxes_of(course, source, *calls):
    """What a call of (command, workers, all) starts, a line each: boxes, all alive, torch imported."""
    root = Path(__file__).resolve().parents[1]
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", IN_A_CLASS, course.root, source, *map(repr, calls)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_grading_starts_boxes_for_its_judges_where_something_is_to_be_judged(tmp_path):
    course, two = new_course(tmp_path / "course"), f"{min(2, os.cpu_count())} True False"
    submit(course, "ann", filled(**RIGHT))
    shutil.copytree(course.root / "submitted", tmp_path / "handed in")
    grade, run = ("grade", None, False), ("run", 1, False)
    assert boxes_of(course, tmp_path / "handed in", grade, run) == [two, "1 True False"]
    grade_now(course, new_judge=StrawJudge)
    assert boxes_of(course, tmp_path / "handed in", grade, run, ("grade", 1, True)) == [
        "0 True False", "0 True False", "1 True False",
    ]  # fmt: skip
    submit(course, "ann", filled(vector_add="half"))
    assert boxes_of(course, tmp_path / "handed in", ("grade", 1, False)) == ["1 True False"]
