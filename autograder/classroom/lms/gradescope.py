"""Gradescope's autograder for one assignment: the zip that an instructor uploads, and what runs in it.

gradescope-autograders.readthedocs.io/en/latest/specs: `setup.sh` makes the image once, `run_autograder` writes
/autograder/results/results.json about what is in /autograder/submission.
"""

import argparse
import contextlib
import functools
import json
import os
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from ...judge import Judge
from ...judge.pool import SturdyJudge
from ...text import visible
from ..course import TEMPLATES, Course, CourseError, Outcome, write_atomically
from ..grading.judging import judge_submission, points_in
from ..intake.collect import collect
from ..submission import checks_in

STUDENT = "submission"
ROOT = Path(__file__).resolve().parents[3]


def build_zip(course: Course, assignment: str, path: Path | None = None, confine: bool = True) -> Outcome:
    """Write the autograder of an assignment of the course. It holds no solution. Raises CourseError."""
    course.create()
    if assignment not in course.released:
        raise CourseError(f"there is no assignment {assignment!r}; there are: {', '.join(course.released)}")
    if not (ROOT / "pyproject.toml").is_file():
        raise CourseError(f"{ROOT}: is not the course's own folder; run this in a checkout of it")
    index, options = os.environ.get("TORCH_INDEX_URL"), "" if confine else " --trust-submissions"
    environment = f"export TORCH_INDEX_URL={shlex.quote(index)}\n" if index else ""
    path = path or course.root / f"gradescope_{assignment}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            script = (TEMPLATES / name).read_text()
            _add(archive, name, script.format(environment=environment, options=options).encode(), 0o755)
        there = [file for package in ("autograder", "workshop") for file in sorted((ROOT / package).rglob("*"))]
        there += [ROOT / name for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE")]
        for file in (file for file in there if file.is_file() and file.parent.name != "__pycache__"):
            _add(archive, f"course/{file.relative_to(ROOT).as_posix()}", file.read_bytes())
        notebook = course.root / "release" / assignment / f"{assignment}.ipynb"
        _add(archive, f"course/release/{assignment}/{notebook.name}", notebook.read_bytes())
    what = f"the autograder of a programming assignment with {course.points(assignment):g} points"
    return Outcome([f"{path}: upload it as {what}"], files={"zip": path})


def _add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = zipfile.ZipInfo(name)  # of 1980: the same course gives the same bytes
    entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def grade_folder(release: Path, submission: Path, new_judge: Callable[[], AbstractContextManager] = Judge) -> dict:
    """The content of results.json for what is in the folder `submission`; `release` has one assignment.

    A notebook that cannot be read gets no points and the reason. Raises RuntimeError for a fault of the grader: then
    there must be no results.json, and Gradescope calls a person.
    """
    with tempfile.TemporaryDirectory() as folder:
        course = Course.open(Path(folder) / "course", db="sqlite://")
        course.root.mkdir()
        (course.root / "release").symlink_to(release.resolve())
        (course.root / "nbgrader_config.py").write_text("")
        [assignment] = course.released
        taken = collect(submission, course, STUDENT)
        if not taken.collected:
            why = "; ".join(taken.problems) or f"expected {assignment}.ipynb"
            return _results([], f"No notebook was found: {why}", course.points(assignment))
        with contextlib.closing(SturdyJudge(new_judge)) as judge:
            row = judge_submission(course, STUDENT, assignment, judge)
    if row.failed:
        raise RuntimeError("; ".join(row.notes))
    tests = [
        {
            "number": str(number),
            "name": check.exercise,
            "score": points_in(check.cell),
            "max_score": check.points,
            "status": "passed" if check.cell["metadata"]["verdict"]["passed"] else "failed",
            "output": check.cell["outputs"][0]["data"]["text/plain"],
            "output_format": "text",
            "visibility": "visible",
        }
        for number, check in enumerate(checks_in(row.notebook), 1)
    ]
    return _results(tests, "; ".join([*taken.notes, *row.notes]), row.points, row.seconds)


def _results(tests: list[dict], output: str, points: float, seconds: float = 0.0) -> dict:
    return {
        "score": sum(test["score"] for test in tests),
        "output": visible(output, 2000),
        "output_format": "text",
        "execution_time": round(seconds),
        "stdout_visibility": "hidden",
        "extra_data": {"points": points},
        "tests": tests,
    }


def main(arguments: list[str] | None = None) -> int:
    """What run_autograder calls."""
    parser = argparse.ArgumentParser(prog="run_autograder", description=__doc__.splitlines()[0])
    parser.add_argument("submission", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--trust-submissions", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        new_judge = functools.partial(Judge, not chosen.trust_submissions)
        found = grade_folder(ROOT / "release", chosen.submission, new_judge)
    except (RuntimeError, CourseError, OSError) as error:
        print(f"not graded: {visible(error, 2000)}", file=sys.stderr)
        return 1
    write_atomically(chosen.results, json.dumps(found, indent=1).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
