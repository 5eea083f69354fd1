"""What a submission costs to grade, confined and not, in one run.

    python benchmarks/grading.py --students 20 --rounds 3

A class hands in the course's own solutions of 01_vector_add (three exercises). Seconds of wall time for the
whole of `autograder grade`: starting the judges, judging, gradebook and autograded/; the rounds alternate.
"""

import argparse
import copy
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import workshop  # before the judge imports triton
from autograder import lessons as build
from autograder.classroom.course import Course
from autograder.classroom.feedback import feedback
from autograder.classroom.grade import grade
from autograder.classroom.submission import grade_id

LESSON = "01_vector_add"


def class_of(students: int, root: Path) -> Course:
    """A course in which `students` students handed in right answers, and whose gradebook exists."""
    course = Course.open(root)
    course.create()
    answers = build.answers(build.ROOT / "solutions" / f"{LESSON}.py")
    notebook = copy.deepcopy(course.released[LESSON])
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell), cell["source"])
    for number in range(students):
        path = course.notebook("submitted", f"student-{number:03}", LESSON)
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    grade(course, students=["student-000"], workers=1)
    return course


def seconds_to_grade(course: Course, workers: int, confine: bool) -> float:
    """Wall time per submission. Exits where a solution did not get all its points: its time says nothing."""
    start = time.perf_counter()
    report = grade(course, workers=workers, confine=confine, again=True)
    elapsed = time.perf_counter() - start
    for row in report.rows:
        if row.score != row.points:
            sys.exit(f"a right answer was not: {row}")
    return elapsed / len(report.rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = parser.parse_args()
    here = workshop.device()
    print(f"{here.name}, {os.cpu_count()} cores, torch {here.torch}, triton {here.triton}")
    with tempfile.TemporaryDirectory() as folder:
        course = class_of(chosen.students, Path(folder) / "course")
        times = {True: [], False: []}
        for _ in range(chosen.rounds):
            for confine, found in times.items():
                found.append(seconds_to_grade(course, chosen.workers, confine))
        for confine, found in times.items():
            name, spread = "confined" if confine else "not confined", f"{min(found):.2f} to {max(found):.2f}"
            print(f"{name:<13} {statistics.median(found):.2f} s a submission ({spread})")
        start = time.perf_counter()
        pages = feedback(course).pages
        print(f"feedback      {(time.perf_counter() - start) / len(pages):.2f} s a page")
    print(f"{chosen.students} submissions, {chosen.workers} workers, {chosen.rounds} rounds")


if __name__ == "__main__":
    main()
