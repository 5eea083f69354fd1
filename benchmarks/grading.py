"""What it costs to grade a class: beside stock nbgrader, and a class of the galleries that is killed and goes on.

    python benchmarks/grading.py beside --notebooks 20 --stock 5
    python benchmarks/grading.py run --notebooks 100
    python benchmarks/grading.py profile --notebooks 20
    python benchmarks/grading.py class --students 1000 --kills 10
    python benchmarks/grading.py class --students 100 --cluster

`beside`: the same filled notebooks of 01_vector_add (three exercises), graded by `autograder run`, confined, with a new
database, feedback, report and CSV, and by `nbgrader autograde` as it comes, which executes their cells, `check()` among
them. Stock nbgrader takes the first few; both are given per notebook.

`run`: a mixed class, half of it 01_vector_add and half 03_online_softmax: right answers, wrong ones from tests/wrong,
untouched starters. `autograder run` on it, then once more with nothing new. No two answers are the same program, except
for starters; with --copies those from one file differ by a comment only, as copies do, and are judged once.

`profile`: where the processor time of our side goes, part by part: the same run once as a whole, and its steps one by
one in this process, with one judge.

`class`: every student hands in one answer to vector_add, by turns right, wrong or (every tenth) hostile, all from
tests/. Each row is compared with what the gallery says. With --kills the grader is killed so many times. --cluster
grades on Dask workers in processes of their own, and kills one of them in the middle.

--record writes recorded/grading_<what>.json.
"""

import argparse
import copy
import datetime
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import workshop  # before the judge imports triton
from autograder import lessons
from autograder.box import Box
from autograder.classroom.course import Course
from autograder.classroom.grading import judging
from autograder.classroom.grading.grade import grade
from autograder.classroom.grading.gradebook import open_gradebook, register
from autograder.classroom.intake.collect import collect
from autograder.classroom.reports.feedback import feedback
from autograder.classroom.reports.report import report
from autograder.classroom.standing import export
from autograder.classroom.submission import checks_in, grade_id
from autograder.exercises import EXERCISES
from autograder.gallery import answers_in
from autograder.judge import Judge

ROOT = Path(__file__).resolve().parents[1]
LESSON, EXERCISE = "01_vector_add", "vector_add"
PROGRAM = [sys.executable, "-c", "import sys; from autograder.cli import main; sys.exit(main())"]
STOCK = 'c = get_config()\nc.CourseDirectory.course_id = "triton-workshop"\nc.ExecutePreprocessor.timeout = 600\n'


def new_course(root: Path) -> Course:
    course = Course.open(root)
    course.create()
    return course


def hand_in(course: Course, student: str, answers: dict[str, str]) -> None:
    """Put the released notebook with some answers (exercise -> source) where `autograder collect` would."""
    notebook = copy.deepcopy(course.released[LESSON])
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell), cell["source"])
    path = course.notebook("submitted", student, LESSON)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook))


def timed(command: list, folder: Path | None = None, status: tuple[int, ...] = (0,)) -> tuple[float, float]:
    """Seconds by the clock, and of all processors, that a command takes. Exits where it fails."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode not in status:
        sys.exit(f"{' '.join(map(str, command[-6:]))}: status {done.returncode}\n{done.stderr[-3000:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return seconds, used


def rows_of(course: Course) -> dict[str, dict[str, dict]]:
    """student -> exercise -> verdict, of all that is graded."""
    found = {}
    for student, assignment in course.handed_in("autograded"):
        cells = json.loads(course.notebook("autograded", student, assignment).read_bytes())["cells"]
        verdicts = (c["metadata"]["verdict"] for c in cells if "verdict" in c["metadata"])
        found[student] = {verdict["exercise"]: verdict for verdict in verdicts}
    return found


# -- beside stock nbgrader --------------------------------------------------------------------------------


def beside(chosen: argparse.Namespace, folder: Path) -> dict:
    ours, stock = new_course(folder / "ours"), folder / "stock"
    answers = lessons.answers(ROOT / "solutions" / f"{LESSON}.py")
    for number in range(chosen.notebooks):
        hand_in(ours, f"student-{number:03}", answers)
    (stock / "submitted").mkdir(parents=True)
    (stock / "nbgrader_config.py").write_text(STOCK)
    for step in ("source", "release"):
        shutil.copytree(ours.root / step / LESSON, stock / step / LESSON)
    for number in range(chosen.stock):
        student = f"student-{number:03}"
        shutil.copytree(ours.root / "submitted" / student, stock / "submitted" / student)
    with open_gradebook(course := Course.open(stock)) as gradebook:
        register(course, gradebook, [LESSON])
    workers = ["--workers", chosen.workers] if chosen.workers else []
    handed_in = folder / "handed in"
    (ours.root / "submitted").rename(handed_in)
    timed([*PROGRAM, "prove"])  # once for each version of the judge; both sides profit
    seconds, used = timed([*PROGRAM, "run", handed_in, "--course", ours.root, *workers])
    for student, verdicts in rows_of(ours).items():
        if not all(verdict["passed"] for verdict in verdicts.values()) or len(verdicts) != 3:
            sys.exit(f"a right answer was not: {student}")
    theirs, their_use = timed([sys.executable, "-m", "nbgrader", "autograde", LESSON], stock)
    measured = {
        "autograder": {"notebooks": chosen.notebooks, "seconds": seconds, "processor_seconds": used},
        "nbgrader autograde": {"notebooks": chosen.stock, "seconds": theirs, "processor_seconds": their_use},
    }
    for name, found in list(measured.items()):
        for key in ("seconds", "processor_seconds"):
            found[f"{key}_each"] = round(found[key] / found["notebooks"], 3)
        each = f"{found['seconds_each']:7.2f} s a notebook, {found['processor_seconds_each']:7.2f} s of processors"
        print(f"{name:<20} {each}")
    for key in ("seconds_each", "processor_seconds_each"):
        measured[f"times_by_{key}"] = round(measured["nbgrader autograde"][key] / measured["autograder"][key], 1)
    print(f"{measured['times_by_seconds_each']} times the throughput")
    return measured


# -- a mixed class, and the same again -------------------------------------------------------------------

MIXED = {LESSON: ("vector_add", "vector_add_autotuned", "bug_hunt"),
         "03_online_softmax": ("online_softmax", "online_softmax_masked")}  # fmt: skip
SHARES = {"right": 134, "wrong": 82, "starter": 34}  # of 250 answers, as in an instructor's trial


def mixed(chosen: argparse.Namespace, folder: Path) -> dict:
    """A class is collected, graded and told, then once more."""
    course, handed_in, expected = new_course(folder / "course"), folder / "handed in", {}
    draw = random.Random(chosen.notebooks)
    for number in range(chosen.notebooks):
        lesson, student = list(MIXED)[number % 2], f"student-{number:03}"
        notebook = copy.deepcopy(course.released[lesson])
        for exercise in MIXED[lesson]:
            kind = draw.choices(list(SHARES), SHARES.values())[0]
            expected[student, exercise] = kind
            if kind == "starter":
                continue
            path = draw.choice(sorted((ROOT / "tests" / kind / exercise).glob("*.py")))
            cell = next(cell for cell in notebook["cells"] if grade_id(cell) == exercise)
            cell["source"] = f"{path.read_text()}\n# {student}\n" if chosen.copies else "\n" * number + path.read_text()
            expected[student, exercise] = "" if kind == "right" else path.stem.partition("__")[0]
        path = handed_in / student / f"{lesson}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    timed([*PROGRAM, "prove"])
    workers = ["--workers", chosen.workers] if chosen.workers else []
    command = [*PROGRAM, "run", handed_in, "--course", course.root, *workers]
    seconds, used = timed(command, status=(0, 1))
    again, used_again = timed(command, status=(0, 1))
    found = rows_of(course)
    said = [
        f"{student} {exercise}: {found[student][exercise]['diagnosis']}, expected {diagnosis or 'a pass'}"
        for (student, exercise), diagnosis in expected.items()
        if diagnosis != "starter" and (found[student][exercise]["diagnosis"] or "") != diagnosis
    ]
    kinds = Counter(kind if kind in ("", "starter") else "wrong" for kind in expected.values())
    each = f"{used / chosen.notebooks:.2f} s of processors a notebook ({seconds:.0f} s)"
    print(f"{each}; again {used_again:.1f} s in all")
    print(*said, sep="\n")
    return {
        "notebooks": chosen.notebooks, "answers": {"right": kinds[""], **{k: kinds[k] for k in ("wrong", "starter")}},
        "seconds": round(seconds, 1), "processor_seconds": round(used, 1),
        "processor_seconds_each": round(used / chosen.notebooks, 3), "seconds_again": round(again, 1),
        "processor_seconds_again": round(used_again, 2), "other_diagnoses": said,
    }  # fmt: skip


# -- where the time goes ----------------------------------------------------------------------------------


def processor_seconds(pid: int) -> float:
    """Processor time of a process, of its descendants, and of those that have ended."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, numbers[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, map(int, children)))


class Remembering:
    """A judge that gives verdicts which another one gave: what is left of a grading is the work of the classroom."""

    verdicts: dict = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def judge(self, exercise: str, source: str, seed: int | None = None):
        return self.verdicts[exercise]


def profile(chosen: argparse.Namespace, folder: Path) -> dict:
    course, handed_in = new_course(folder / "ours"), folder / "handed in"
    answers = lessons.answers(ROOT / "solutions" / f"{LESSON}.py")
    for number in range(chosen.notebooks):
        hand_in(course, f"student-{number:03}", answers)
    (course.root / "submitted").rename(handed_in)
    timed([*PROGRAM, "prove"])
    seconds, total = timed([*PROGRAM, "run", handed_in, "--course", new_course(folder / "whole").root])
    used: Counter[str] = Counter()

    def step(name: str, work, *arguments, **named):
        before = time.process_time()
        found = work(*arguments, **named)
        used[name] += time.process_time() - before
        return found

    step("collect", collect, handed_in, course)
    with Judge() as judge:
        _judge_all(course, judge, used)
    step("grade: reading, database, files", grade, course, new_judge=Remembering, workers=1)
    step("feedback", feedback, course)
    step("report and export", lambda: (report(course), export(course)))
    used["start, and what is not in a step"] = total - sum(used.values())
    each = {name: round(value / chosen.notebooks, 4) for name, value in used.items()}
    for name, value in each.items():
        print(f"{name:<36} {1000 * value:7.1f} ms a notebook")
    print(f"{'together':<36} {1000 * total / chosen.notebooks:7.1f} ms; {seconds:.1f} s by the clock")
    return {
        "notebooks": chosen.notebooks, "seconds": round(seconds, 2), "processor_seconds": round(total, 2),
        "processor_seconds_each": each,
    }  # fmt: skip


def _judge_all(course: Course, judge: Judge, used: Counter) -> None:
    """Judge every notebook, and add what the judge used for each exercise, and the box for each kind of job."""
    run, inside = Box.run, Counter()

    def counted(box: Box, request, *arguments):
        before = processor_seconds(box.process.pid)
        outcome = run(box, request, *arguments)
        inside[f"box: {request.kind}, {exercise}"] += processor_seconds(box.process.pid) - before
        return outcome

    for position, (student, _) in enumerate(course.handed_in()):
        submission = judging.read(course, student, LESSON)
        for exercise, points, _ in checks_in(submission.notebook):
            if position == 0:  # a warm judge: its box has started, what is the same for all answers is known
                judging.ask(judge, EXERCISES[exercise], points, submission.cells)
            Box.run, before = counted, time.process_time()
            verdict, _ = judging.ask(judge, EXERCISES[exercise], points, submission.cells)
            used[f"judge: {exercise}"] += time.process_time() - before
            Box.run = run
            if not verdict.passed:
                sys.exit(f"a right answer was not: {verdict.to_text()}")
            Remembering.verdicts[exercise] = verdict
    used.update(inside)


# -- a class of the galleries -----------------------------------------------------------------------------


def gallery() -> tuple[list, list, list]:
    """(source, diagnosis) of right answers, wrong ones and attacks."""
    known = answers_in(ROOT / "tests", [EXERCISE])
    attacks = sorted((ROOT / "tests" / "attacks" / EXERCISE).glob("*.py"))
    return (
        [(each.source, "") for each in known if each.slug is None],
        [(each.source, each.slug) for each in known if each.slug],
        [(path.read_text(), None) for path in attacks],
    )


def class_of(course: Course, students: int) -> dict[str, str | None]:
    """student -> the diagnosis that the gallery expects: "" for a right answer, None for a hostile one."""
    right, wrong, hostile = map(itertools.cycle, gallery())
    expected = {}
    for number in range(students):
        text, diagnosis = next(hostile if number % 10 == 9 else right if number % 2 else wrong)
        source = text.replace("@COURSE@", str(course.root)).replace("@PORT@", "9")
        student = f"student-{number:04}"
        hand_in(course, student, {EXERCISE: source.replace("@CANARY@", str(course.root.parent))})
        expected[student] = diagnosis
    return expected


def wrong_rows(course: Course, expected: dict[str, str | None]) -> list[str]:
    found, said = rows_of(course), []
    for student, diagnosis in expected.items():
        verdict = found.get(student, {}).get(EXERCISE)
        if verdict is None:
            said.append(f"{student}: no row")
        elif diagnosis is None:
            said += [f"{student}: an attack earned {verdict['score']}"] if verdict["score"] else []
        elif (verdict["diagnosis"] or "") != diagnosis:
            said.append(f"{student}: {verdict['diagnosis']!r}, expected {diagnosis!r}")
    return said


def memory(pid: int) -> float:
    """Megabytes that a process has in memory, without its boxes."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    match = re.search(r"VmRSS:\s+(\d+)", status)
    return int(match[1]) / 1024 if match else 0.0


def grade_once(command: list, course: Course, kill_after: float | None) -> tuple[int, float, list[float]]:
    """Run the grader: exit status, seconds, megabytes every second. It is killed after so many seconds."""
    start, megabytes = time.perf_counter(), []
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([*map(str, command)], stdout=said, stderr=said, start_new_session=True)
        while process.poll() is None:
            time.sleep(1)
            megabytes.append(memory(process.pid))
            if kill_after is not None and time.perf_counter() - start > kill_after:
                process.kill()
                process.wait()
                return -signal.SIGKILL, time.perf_counter() - start, megabytes
        if process.returncode not in (0, 1):
            said.seek(0)
            sys.exit(said.read().decode()[-3000:])
    return process.returncode, time.perf_counter() - start, megabytes


def whole_class(chosen: argparse.Namespace, folder: Path) -> dict:
    course = new_course(folder / "course")
    expected = class_of(course, chosen.students)
    command = [*PROGRAM, "grade", "--course", course.root]
    command += ["--workers", chosen.workers] if chosen.workers else []
    draw, seconds, peaks, done = random.Random(0), 0.0, [], []
    for kill in [True] * chosen.kills + [False]:
        after = draw.uniform(6, 6 + chosen.students / 40) if kill else None  # the start takes six seconds
        status, took, megabytes = grade_once(command, course, after)
        seconds += took
        peaks += megabytes
        done.append(len(course.handed_in("autograded")))
        print(f"{'killed' if status < 0 else 'finished'} after {took:.0f} s: {done[-1]} of {chosen.students} graded")
    said = wrong_rows(course, expected)
    print(f"{seconds / chosen.students:.2f} s a submission; {len(said)} rows are not as the gallery says")
    print(*said[:10], sep="\n")
    hand_in(course, "student-0000", {EXERCISE: gallery()[0][0][0]})
    _, again, _ = grade_once(command, course, None)
    print(f"after one resubmission: {again:.1f} s")
    tenth = max(len(peaks) // 10, 1)
    grown = [round(max(peaks[:tenth])), round(max(peaks[-tenth:]))]
    print(f"memory of the grader: at most {grown[0]} MB in the first tenth, {grown[1]} MB in the last")
    return {
        "students": chosen.students, "hostile": chosen.students // 10, "kills": chosen.kills, "graded_after_each": done,
        "seconds": round(seconds, 1), "seconds_each": round(seconds / chosen.students, 3), "wrong_rows": said,
        "seconds_after_one_resubmission": round(again, 1), "megabytes_first_and_last_tenth": grown,
    }  # fmt: skip


def on_a_cluster(chosen: argparse.Namespace, folder: Path) -> dict:
    """The same class on Dask workers in processes of their own, one of which is killed in the middle."""
    from distributed import Client, LocalCluster

    course = new_course(folder / "course")
    expected = class_of(course, chosen.students)
    killed = []
    with LocalCluster(
        n_workers=chosen.workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as made:

        def kill_one(line: str) -> None:
            if line.startswith(f"[{chosen.students // 2}/"):
                with Client(made.scheduler_address, set_as_default=False) as client:
                    killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        start = time.perf_counter()
        graded = grade(course, cluster=made.scheduler_address, progress=kill_one)
        seconds = time.perf_counter() - start
    said = wrong_rows(course, expected)
    rows = f"{len(graded.rows)} rows in {seconds:.0f} s, {len(said)} of them not as the gallery says"
    print(f"{rows}; {len(killed)} workers killed")
    print(*said[:10], sep="\n")
    return {
        "students": chosen.students, "workers": chosen.workers or os.cpu_count(), "killed": len(killed),
        "seconds": round(seconds, 1), "seconds_each": round(seconds / chosen.students, 3), "wrong_rows": said,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("beside", "run", "profile", "class"))
    parser.add_argument("--notebooks", type=int, default=20)
    parser.add_argument("--stock", type=int, default=5)
    parser.add_argument("--students", type=int, default=100)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    here = workshop.device()
    where = {
        "device": here.name, "processors": os.cpu_count(), "torch": here.torch, "triton": here.triton,
        "date": datetime.date.today().isoformat(), "load_at_the_start": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    with tempfile.TemporaryDirectory() as folder:
        of_a_class = on_a_cluster if chosen.cluster else whole_class
        measure = {"beside": beside, "run": mixed, "profile": profile, "class": of_a_class}
        found = measure[chosen.what](chosen, Path(folder))
    if chosen.record:
        name = f"grading_{chosen.what}{'_cluster' * chosen.cluster}.json"
        path = ROOT / "benchmarks" / "recorded" / name
        path.write_text(json.dumps({**where, **found}, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
