"""The command line: check, watch, selftest, prove, build; for a class run and its steps, and exchange."""

from __future__ import annotations

import argparse
import ast
import atexit
import contextlib
import gc
import io
import json
import os
import signal
import sys
from pathlib import Path

from .classroom import interrupt
from .classroom.commands import COMMANDS, TRUST
from .text import visible, visible_json

PASSED, NOT_PASSED, CALL_WRONG = 0, 1, 2
UNREAD = 141  # as a shell says that SIGPIPE ended a command
# Errors whose message is one line for the caller.
ONE_LINE = {"CallError", "BoxError", "CourseError", "UnknownExercise", "JaxMissing", "BadEdit", "BuildError"}


class CallError(Exception):
    """The call itself was wrong: one line that says what was found, what was expected, what to do."""


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    atexit.register(gc.freeze)  # Python's end would look for garbage among all that was imported, for 0.7 s
    # nbformat imports jsonschema, which takes this package, where it is installed, for formats that no notebook has:
    # two seconds for a grammar. There is no option against it; only a process that is all ours may do without.
    sys.modules.setdefault("rfc3987_syntax", None)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without Unicode ends no batch
    try:
        with interrupt.remembered():
            status = options.run(options)
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
        print(f"autograder: stopped{kept if options.command in COMMANDS else ''}", file=sys.stderr)
        return interrupt.STOPPED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="autograder", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="judge one answer file or notebook")
    check.add_argument("exercise")
    check.add_argument("file", type=Path)
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument("--seed", type=int, help="draw the inputs of an earlier run again")
    check.set_defaults(run=_check)

    watch = commands.add_parser("watch", help="check a Python file each time it is saved, exercise after exercise")
    watch.add_argument("file", type=Path)
    watch.add_argument("exercise", nargs="?", default="", help="where to begin (default: the first that is not passed)")
    watch.set_defaults(run=_watch)

    selftest = commands.add_parser("selftest", help="judge the galleries of right and wrong answers")
    selftest.add_argument("--answers", type=Path, help="a folder with right/<exercise>/ and wrong/, as in tests/")
    selftest.add_argument("--exercise", action="append", help="only this exercise (may be repeated)")
    selftest.add_argument("--repeat", type=int, default=1, help="judge each answer so many times, with other seeds")
    selftest.add_argument("--seed", type=int, help="draw the same inputs in each run (--page: 1)")
    selftest.add_argument("--json", type=Path, help="write the results to this file")
    selftest.add_argument("--page", type=Path, help="write the verdicts, as the learner sees them, to this page")
    selftest.add_argument(
        "--workers", "--jobs", type=int, help="judges side by side (default: one per core, at most 8)"
    )
    selftest.set_defaults(run=_selftest)

    prove = commands.add_parser("prove", help="judge known answers: can this installation judge?")
    prove.set_defaults(run=_prove)

    build = commands.add_parser("build", help="write notebooks/ from solutions/")
    build.add_argument("--check", action="store_true", help="write nothing; fail if notebooks/ differs")
    build.set_defaults(run=_build)

    for command in (check, selftest, prove):
        command.add_argument(TRUST[0], **TRUST[1])
    for name, of_a_class in COMMANDS.items():
        command = commands.add_parser(name, help=of_a_class.help)
        of_a_class.add_to(command)
        command.set_defaults(run=_course_command)
    return parser


def _told(error: Exception, options) -> str:
    """The line for an error that the call, or this machine, is the cause of; "" for any other one."""
    kinds = {kind.__name__ for kind in type(error).__mro__}  # by their names: nothing is imported for an error
    if isinstance(error, OSError) and options.command in COMMANDS:  # a full disk does not say where it is
        return f"{error.filename or options.course}: {error.strerror or error}"
    if "Unconfined" in kinds:
        return f"cannot confine answers here: {error}. If they are all your own: --trust-submissions"
    return str(error) if kinds & ONE_LINE else ""


# -- check -------------------------------------------------------------------------------------------------------


def _check(options) -> int:
    from .box import started_early

    early = started_early(options.confine)
    with contextlib.closing(early) if early else contextlib.nullcontext():
        verdict = _verdict(options, early)
    said = visible_json(verdict.to_json())
    print(json.dumps(said, ensure_ascii=False, indent=1) if options.json else visible(verdict.to_text()))
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


def _verdict(options, early):
    """The judge's verdict on the file of a call. The modules that import torch are imported here."""
    from .exercises import find
    from .judge import Judge

    exercise = find(options.exercise)
    source = _read_answer(options.file, exercise)
    with Judge(options.confine, early=early) as judge:
        return judge.judge(exercise.name, source, options.seed)


def _read_answer(path: Path, exercise) -> str:
    """The answer's source: a Python file, or the notebook's cells for this exercise."""
    from .classroom.submission import read_bounded

    if path.suffix not in (".ipynb", ".py"):
        raise CallError(f"{path.name} is neither .py nor .ipynb; give a Python file or a notebook")
    try:
        content = read_bounded(path)
        source = content.decode("utf-8-sig") if path.suffix == ".py" else _from_notebook(path, content, exercise)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise CallError(f"cannot read {path}: {reason}; expected a Python file or a notebook") from None
    _require_entry(path, source, exercise)
    return source


def _from_notebook(path: Path, content: bytes, exercise) -> str:
    from . import answer
    from .classroom.submission import cells_of

    source = answer.from_notebook({"cells": cells_of(content)}, exercise)
    if not source:
        raise CallError(f"{path.name} has no answer to {exercise.name}; it should define {exercise.signature}")
    return source


def _require_entry(path: Path, source: str, exercise):
    """CallError where the function is missing or cannot take the arguments. Syntax errors are a verdict."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    function = _defined(tree, exercise.entry)
    if function is None:
        found = ", ".join(sorted(_names(tree)))
        what = f"defines {found}, but not {exercise.entry}" if found else "defines no function"
        raise CallError(f"{path.name} {what}; expected {exercise.signature}")
    wanted = _count(exercise.signature)
    if isinstance(function, ast.FunctionDef) and not _takes(function.args, wanted):
        raise CallError(
            f"{path.name}: {exercise.entry}({_shown(function.args)}) cannot be called with {wanted} "
            f"argument{'s' if wanted != 1 else ''}; expected {exercise.signature}"
        )


def _defined(tree: ast.Module, name: str) -> ast.AST | None:
    """The last definition of `name` anywhere at module level: a function, a class, an assignment, an import."""
    found = None
    for node in tree.body:
        for inner in ast.walk(node) if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) else [node]:
            names = getattr(inner, "name", None), getattr(inner, "asname", None)
            stored = isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id == name
            if name in names or stored:
                found = inner
    return found


def _shown(arguments: ast.arguments) -> str:
    try:
        return ast.unparse(arguments)[:80]
    except RecursionError:
        return "…"


def _names(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def _count(signature: str) -> int:
    inside = signature[signature.index("(") + 1 : signature.index(")")]
    return len([a for a in inside.split(",") if a.strip()])


def _takes(arguments: ast.arguments, count: int) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    keywords = sum(default is None for default in arguments.kw_defaults)
    return required <= count and (count <= positional or arguments.vararg is not None) and not keywords


# -- selftest ----------------------------------------------------------------------------------------------------


def _selftest(options) -> int:
    from . import gallery, selftest

    folder = options.answers or Path(__file__).resolve().parents[1] / "tests"
    if not any((folder / kind).is_dir() for kind in ("right", "wrong")):
        raise CallError(f"{folder} has neither right/ nor wrong/; expected right/EXERCISE/*.py, wrong/EXERCISE/*.py")
    answered = {known.exercise for known in gallery.answers_in(folder, options.exercise)}
    for name in set(options.exercise or ()) - answered:
        raise CallError(f"{folder} has no answers to {name!r}")
    results = selftest.run(
        folder,
        exercises=options.exercise,
        repeat=options.repeat,
        workers=options.workers,
        confine=options.confine,
        seed=1 if options.page and options.seed is None else options.seed,
    )
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
    from .judge.proof import stack

    with Judge(options.confine) as judge:
        for name in EXERCISES:
            try:
                judge.prove(name)
            except JaxMissing as missing:
                print(f"not tried: {missing}")
        versions = ", ".join(f"{name} {version}" for name, version in stack().items())
        print(f"This installation can judge ({versions}; {judge.backend}).")
    return PASSED


# -- build and the course ----------------------------------------------------------------------------------------


def _build(options) -> int:
    from . import lessons

    return lessons.build(check=options.check)


def _course_command(options) -> int:
    from .classroom.course import Course

    report = COMMANDS[options.command].run(Course.open(options.course, options.db), options)
    report.print()
    return report.status


if __name__ == "__main__":
    sys.exit(main())
