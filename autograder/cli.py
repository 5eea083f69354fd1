"""The command line: check, watch, selftest, prove, build; for a class run and its steps, and exchange.

Nothing slow is imported before it is needed.
"""

import argparse
import ast
import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import symtable
import sys
import types
from dataclasses import dataclass
from pathlib import Path

from .classroom import interrupt
from .text import many, visible

PASSED, NOT_PASSED, CALL_WRONG = 0, 1, 2
UNREAD = 141  # as a shell says that SIGPIPE ended a command
# Errors whose message is one line for the caller.
ONE_LINE = {"CallError", "BoxError", "CourseError", "UnknownExercise", "JaxMissing", "BadEdit", "BuildError"}


class CallError(Exception):
    """The call itself was wrong: one line that says what was found, what was expected, what to do."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    of_a_class = COMMANDS[options.command].calls
    atexit.register(gc.freeze)  # Python's end would look for garbage among all that was imported, for 0.7 s
    gc.set_threshold(100_000, 20, 50)  # to look for garbage took a fifth of a judgement's own time
    # Seconds of imports against which there is no option; only a process that is all ours may keep them out.
    # jsonschema takes this one, where it is installed, for formats that no notebook has.
    sys.modules.setdefault("rfc3987_syntax", None)
    for name in ("assignment_list", "course_list", "formgrader", "validate_assignment"):  # nbgrader's, for a server
        extension = types.ModuleType(f"nbgrader.server_extensions.{name}")
        extension.__getattr__ = lambda name: None
        sys.modules.setdefault(extension.__name__, extension)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Unicode ends no batch
    try:
        with interrupt.remembered():
            status = _of_a_class(options) if of_a_class else globals()[f"_{options.command}"](options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever read the output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what Python writes at its end goes nowhere
        return UNREAD
    except Exception as error:
        if not (told := _told(error, options)):
            raise
        print(f"autograder: {visible(told)}", file=sys.stderr)
        return CALL_WRONG
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judges end in seconds; a second one would show a traceback
        kept = "; finished grades are kept, and the same command goes on from here"
        print(f"autograder: stopped{kept if of_a_class else ''}", file=sys.stderr)
        return interrupt.STOPPED


def _told(error: Exception, options: argparse.Namespace) -> str:
    """The line for an error that the call, or this machine, is the cause of; "" for any other one."""
    kinds = {kind.__name__ for kind in type(error).__mro__}  # by their names: nothing is imported for an error
    if isinstance(error, OSError) and "course" in options:  # a full disk does not say where it is
        return f"{error.filename or options.course}: {error.strerror or error}"
    if "Unconfined" in kinds:
        return f"cannot confine answers here: {error}. If they are all your own: --trust-submissions"
    return str(error) if kinds & ONE_LINE else ""


def _option(name: str, **how) -> tuple[str, dict]:
    if "dest" in how and ("type" in how or how.get("action") == "append"):
        how = {"metavar": name.lstrip("-").upper()} | how
    return name, how


TRUST = _option("--trust-submissions", action="store_false", dest="confine",
                help="run without confinement: only for code that is your own")  # fmt: skip
SHARED = (
    _option("--course", type=Path, default=Path(os.environ.get("ROOM", ""), "course"),  # a room's instructor has it
            help="nbgrader's course directory"),
    _option("--db", help="URL of the gradebook's database (default: gradebook.db in the course)"),
)  # fmt: skip
COLLECTING = (
    _option("path", metavar="source", type=Path, help="a folder, a zip or a notebook"),
    _option("--student", default="", help="whose it is, where no name says so"),
    _option("--roster", type=Path, help="the class, in the CSV of your LMS; the course keeps it"),
)
GRADING = (
    _option("--workers", type=int, help="judges side by side (default: one per card, or per core)"),
    _option("--cluster", metavar="ADDRESS", help="judge on a Dask cluster, such as tcp://host:8786"),
    _option("--all", action="store_true", dest="again", help="grade again what is unchanged, too"),
    _option("--write-changes", action="store_true", help="write other points for the same answers (see changes.csv)"),
    TRUST,
)
CHOOSING = (
    _option("--assignment", action="append", dest="assignments", help="only this assignment (may be repeated)"),
    _option("--student", action="append", dest="students", help="only this student (may be repeated)"),
)
TO = _option("--to", type=Path, help="folder for the CSV files (default: the course directory)")
FILLING = (
    _option("--for", dest="system", choices=("canvas", "moodle", "blackboard", "brightspace", "gradescope"),
            help="fill the CSV that your LMS exported"),
    _option("--into", type=Path, help="that CSV; it is copied and keeps its columns"),
    _option("--column", action="append", default=[], metavar="ASSIGNMENT=TITLE",
            help="which column is which (repeatable)"),
    _option("--scale", action="store_true", help="turn scores into the points that the LMS has"),
)  # fmt: skip


@dataclass(frozen=True)
class Command:
    """A command's help and options. Without `calls`, the function of its name in this module gets the options.

    calls: of a command for a class, module:function in classroom/. It gets the course and, by their names, the options.
    What it returns prints itself, and has an exit status.
    """

    help: str
    calls: str = ""
    options: tuple[tuple[str, dict], ...] = ()


def _of_a_class(options: argparse.Namespace) -> int:
    from .classroom.course import Course

    command = COMMANDS[options.command]
    module, function = command.calls.split(":")
    work = getattr(importlib.import_module(f".classroom.{module}", __package__), function)
    names = (how.get("dest") or name.lstrip("-").replace("-", "_") for name, how in command.options)
    given = {name: getattr(options, name) for name in names}
    if "workers" in given:  # it grades, which may take long
        given["progress"] = lambda line: print(line, file=sys.stderr)
    report = work(course=Course.open(options.course, options.db), **given)
    report.print()
    return report.status


COMMANDS = {
    "check": Command("judge one answer file or notebook", options=(
        _option("exercise"),
        _option("file", type=Path),
        _option("--json", action="store_true", help="print one JSON object"),
        _option("--seed", type=int, help="draw the inputs of an earlier run again"),
        TRUST,
    )),
    "watch": Command("check a Python file each time it is saved, exercise after exercise", options=(
        _option("file", type=Path),
        _option("exercise", nargs="?", default="", help="where to begin (default: the first that is not passed)"),
    )),
    "selftest": Command("judge the galleries of right and wrong answers", options=(
        _option("--answers", type=Path, default=Path(__file__).resolve().parents[1] / "tests",
                help="a folder with right/<exercise>/ and wrong/, as in tests/"),
        _option("--exercise", action="append", help="only this exercise (may be repeated)"),
        _option("--seed", type=int, help="draw the same inputs in each run (--page: 1)"),
        _option("--json", type=Path, help="write the results to this file"),
        _option("--page", type=Path, help="write the verdicts, as the learner sees them, to this page"),
        _option("--workers", type=int, help="judges side by side (default: one per core, at most 8)"),
        TRUST,
    )),
    "prove": Command("judge known answers: can this installation judge?", options=(TRUST,)),
    "build": Command("write notebooks/ from solutions/", options=(
        _option("--check", action="store_true", help="write nothing; fail if notebooks/ differs"),
    )),
    "run": Command("collect, grade, feedback, report and export in one go", "run:run", (*COLLECTING, TO, *GRADING)),
    "collect": Command("take filled notebooks from a folder or a zip", "intake.collect:collect", COLLECTING),
    "grade": Command("judge what was collected", "grading.grade:grade", (*CHOOSING, *GRADING)),
    "feedback": Command("write a page for each student", "reports.feedback:feedback"),
    "report": Command("write one page about the class", "reports.report:report"),
    "export": Command("write the grades as CSV", "lms.filled:export_grades", (TO, *FILLING)),
    "gradescope": Command("write the autograder of an assignment for Gradescope", "lms.gradescope:build_zip", (
        _option("assignment"),
        _option("--to", dest="path", type=Path, help="the zip (default: in the course directory)"),
        TRUST,
    )),
    "comment": Command("write one comment to all whose answer has one diagnosis", "reports.feedback:comment", (
        _option("exercise"),
        _option("diagnosis", help="as in misconceptions.csv"),
        _option("text", help='what to write; "" takes it away'),
        _option("--replace", action="store_true", help="also where somebody wrote another comment"),
    )),
    "forget": Command("remove what the course, and a room, keep of a person (docs/PRIVACY.md)", "forget:forget", (
        _option("name", help="the student's id, as in grades.csv"),
        _option("--room", type=Path, help="the folder of a room that is closed; needs root"),
    )),
    "update": Command("bring the lessons of today into a course that has older ones", "course:update"),
    "lti": Command("key, roster and grades by LTI 1.3 (docs/LTI.md)", "lms.lti:lti", (
        _option("step", choices=("key", "roster", "grades")),
    )),
    "exchange": Command("release lessons, collect answers, give pages back through nbgrader's exchange (docker/hub/)",
                        "room.exchange:exchange", (
        _option("step", choices=("release", "collect", "give-back")),
        _option("--exchange", dest="root", type=Path, help="its folder",
                default=Path(os.environ.get("ROOM", "/srv/workshop"), "exchange")),
        _option("--assignment", dest="only", action="append", default=[], help="only this lesson (may be repeated)"),
    )),
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        added = commands.add_parser(name, help=command.help)
        for option, how in (*(SHARED if command.calls else ()), *command.options):
            added.add_argument(option, **how)
    return parser


def _check(options) -> int:
    from .box import started_early

    early = started_early(options.confine)
    with contextlib.closing(early) if early else contextlib.nullcontext():
        from .exercises import EXERCISES  # this imports torch, while the box starts
        from .judge import Judge

        exercise = EXERCISES[options.exercise]
        source = _read_answer(options.file, exercise)
        with Judge(options.confine, early=early) as judge:
            verdict = judge.judge(exercise.name, source, options.seed)
    print(json.dumps(verdict.to_json(), ensure_ascii=False, indent=1) if options.json else verdict.to_text())
    return PASSED if verdict.passed else NOT_PASSED


def _watch(options) -> int:
    if options.file.suffix != ".py":
        raise CallError(f"{options.file.name} is no .py file; expected a Python file, which may be new")
    print("Starting …", flush=True)
    from .watch import watch

    try:
        watch(options.file, options.exercise)
    except KeyboardInterrupt:  # the usual end
        print()
    except OSError as error:
        raise CallError(f"cannot use {options.file}: {error.strerror}; expected a Python file") from None
    return PASSED


def _read_answer(path: Path, exercise) -> str:
    """The answer's source: a Python file, or the notebook's cells for this exercise."""
    from .answer import from_notebook
    from .classroom.submission import cells_of, read_bounded

    if path.suffix not in (".ipynb", ".py"):
        raise CallError(f"{path.name} is neither .py nor .ipynb; give a Python file or a notebook")
    try:
        content = read_bounded(path)
        is_script = path.suffix == ".py"
        source = content.decode("utf-8-sig") if is_script else from_notebook({"cells": cells_of(content)}, exercise)
    except (OSError, ValueError) as error:
        not_text = isinstance(error, UnicodeDecodeError)
        reason = "it is not UTF-8 text" if not_text else getattr(error, "strerror", None) or error
        raise CallError(f"cannot read {path}: {reason}; expected a Python file or a notebook") from None
    if not (is_script or source):
        raise CallError(f"{path.name} has no answer to {exercise.name}; it should define {exercise.signature}")
    _require_entry(path, source, exercise)
    return source


def _require_entry(path: Path, source: str, exercise):
    """CallError where the function is missing or cannot take the arguments. Syntax errors are a verdict."""
    try:
        tree, names = ast.parse(source), symtable.symtable(source, path.name, "exec").get_symbols()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if not any(name.get_name() == exercise.entry and (name.is_assigned() or name.is_imported()) for name in names):
        found = ", ".join(sorted({n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}))
        what = f"defines {found}, but not {exercise.entry}" if found else "defines no function"
        raise CallError(f"{path.name} {what}; expected {exercise.signature}")
    inside = exercise.signature.partition("(")[2].partition(")")[0]
    wanted = len([name for name in inside.split(",") if name.strip()])
    functions = [node.args for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == exercise.entry]
    for takes in functions[-1:]:
        most = len(takes.posonlyargs) + len(takes.args)
        if None in takes.kw_defaults or wanted < most - len(takes.defaults) or (wanted > most and not takes.vararg):
            shown = "…"
            with contextlib.suppress(RecursionError):
                shown = ast.unparse(takes)[:80]
            called = f"{exercise.entry}({shown}) cannot be called with {many(wanted, 'argument', 'arguments')}"
            raise CallError(f"{path.name}: {called}; expected {exercise.signature}")


def _selftest(options) -> int:
    from . import gallery, selftest

    folder = options.answers
    if not any((folder / kind).is_dir() for kind in ("right", "wrong")):
        raise CallError(f"{folder} has neither right/ nor wrong/; expected right/EXERCISE/*.py, wrong/EXERCISE/*.py")
    known = gallery.answers_in(folder, options.exercise)
    for name in set(options.exercise or ()) - {each.exercise for each in known}:
        raise CallError(f"{folder} has no answers to {name!r}")
    seed = 1 if options.page and options.seed is None else options.seed
    results = selftest.run(known, options.workers, options.confine, seed)
    print(selftest.table(results))
    if options.json:
        options.json.write_text(json.dumps(selftest.to_json(results), indent=1, ensure_ascii=False) + "\n")
    if options.page:
        options.page.write_text(selftest.page(results))
    return PASSED if selftest.faultless(results) else NOT_PASSED


def _prove(options) -> int:
    from .exercises import EXERCISES
    from .judge import Judge
    from .judge.jax import JaxMissing
    from .versions import stack

    with Judge(options.confine) as judge:
        for name in EXERCISES:
            try:
                judge.prove(name)
            except JaxMissing as missing:
                print(f"not tried: {missing}")
        versions = ", ".join(map(" ".join, stack().items()))
        print(f"This installation can judge ({versions}; {judge.backend}).")
    return PASSED


def _build(options) -> int:
    from . import lessons

    return lessons.build(check=options.check)


if __name__ == "__main__":
    sys.exit(main())
