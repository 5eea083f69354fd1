"""`check("vector_add")`: the learner calls the judge from a notebook or a script.

The answer's source goes to the same judge and box that the instructor uses. The box is another process, so a
segmentation fault, an endless loop or os._exit in the answer does not end the notebook. The box stays open between
checks.
"""

import ast
import atexit
import contextlib
import functools
import linecache
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

from markupsafe import Markup

from workshop import hints, record
from workshop.notebook import interactive_shell
from workshop.progress import path, progress, write_page

from . import answer, panel, session, yours
from .box import BoxError, lockdown
from .exercises import EXERCISES, UnknownExercise
from .judge import Judge
from .judge.jax import JaxMissing
from .verdict import Finding, Slug, Verdict

PROVEN_EARLY = "first_kernel"  # its proof holds for all exercises whose answers are kernels
EDITED = (
    "The answer cell was edited after it ran. This verdict is about the text that ran: run the cell, then check again."
)
FROM_FILE = (
    "The kernel of this notebook is new. The answer cell as the notebook was last saved was run for you, with the "
    "first code cell."
)
SAME = "This is the code of the last check. If you changed the cell since, run it, then check again."
PASSING = {Slug.GRADER_ERROR, Slug.TIMEOUT, Slug.CRASH, Slug.OUT_OF_MEMORY}  # another check may end in another way
_latest: dict[str, tuple[str, Verdict]] = {}  # for each exercise, the code of its last check, and the verdict
_one_at_a_time = threading.Lock()
lockdown.missing()  # called now, and cached: it forks, which is not safe after JAX has started


def check(name: str) -> Verdict | None:
    """Judges the current answer to the exercise `name` in this notebook or script, and shows the verdict.

    In a notebook the verdict is shown as a panel, and nothing is returned. In a script it is printed and returned. A
    wrong answer raises no exception: the verdict explains it.
    """
    if callable(name):  # the function itself
        of_it = [each.name for each in EXERCISES.values() if each.entry == getattr(name, "__name__", "")]
        print(f'check takes the name of an exercise: check("{(of_it or ["vector_add"])[0]}")')
        return None
    shell, shown = interactive_shell(), None
    try:
        exercise = EXERCISES[name]
        shown = Shown(name) if shell else None
        verdict = _judged_in(shell, exercise, shown) if shell else _judged_in_script(exercise)
    except (UnknownExercise, BoxError, JaxMissing) as error:
        if shown:
            shown.put("")
        print(error)
        return None
    if shown is None:
        print(verdict.to_text())
        return verdict
    shown.show(verdict)
    return None


class Shown:
    """The panel below the check: how far the check is, and then the verdict in the same place."""

    def __init__(self, exercise: str):
        from IPython.display import display

        self.running, self.latest = functools.partial(panel.part, "running", exercise=exercise), 0.0
        self.handle = display({"text/html": self.running(words="")}, raw=True, display_id=True)

    def step(self, words: str) -> None:
        """Says what is being done, at most a few times a second."""
        now = time.monotonic()
        if now - self.latest > 0.15:
            self.latest = now
            self.put(self.running(words=words))

    def show(self, verdict: Verdict) -> None:
        below = _after(verdict) if verdict.passed else panel.part("ask", question=question(verdict))
        self.put(verdict.to_html(below), verdict.to_text())

    def put(self, html: str, text: str = "") -> None:
        self.handle.update({"text/html": html} | ({"text/plain": text} if text else {}), raw=True)


def question(verdict: Verdict) -> str:
    """The exercise, the code that was judged and the verdict as text, for a colleague or a chat."""
    exercise = EXERCISES[verdict.exercise]
    source, _ = _latest.get(verdict.exercise, ("", None))
    code = f"My code:\n\n```python\n{source.strip()}\n```\n\n" if source.strip() else ""
    return (
        f"Exercise {exercise.name} of the Triton workshop, {exercise.notebook}: {exercise.signature}\n\n"
        f"{code}The check says:\n\n```\n{verdict.to_text()}\n```\n"
    )


def _after(verdict: Verdict) -> str:
    """What the right answer did, what passing this exercise has shown, and a link to the next one, as HTML."""
    following, exercise, page = progress().next(verdict.exercise), EXERCISES[verdict.exercise], None
    function = interactive_shell().user_ns.get(exercise.entry)
    drawn = yours.picture(exercise, function) if callable(function) else None
    if following is None:
        with contextlib.suppress(OSError):  # a folder that is read-only
            page = write_page(path().with_name("what_i_built.html"))
    html, others = Markup(drawn._repr_html_() if drawn else ""), hints.others(exercise.name)
    return panel.part("after", exercise=exercise, following=following, page=page, drawn=html, others=others)


def _judged_in(shell, exercise, shown: Shown) -> Verdict:
    """The verdict on what ran in this notebook. Where nothing ran that can be judged, it says what to run."""
    ran = _watched(shell)
    cells, latest = ran.answer_runs(exercise.name)
    source = answer.from_history(cells, exercise.entry)
    if not source and latest and not answer.is_python(latest.code):
        source = latest.code
    restored = ""
    if not source.strip() and latest is None:
        source, restored = _restored(shell, ran, exercise)
    if not source.strip():
        finding = _nothing_to_judge(exercise, ran=latest is not None)
        return Verdict(exercise.name, False, 0, exercise.points, "", finding)
    edited = ran.edited_since(exercise.name, latest)
    verdict = judged(exercise.name, source, shown.step)
    return replace(verdict, warning=" ".join(filter(None, (restored, EDITED if edited else verdict.warning))))


def _restored(shell, ran: session.Session, exercise) -> tuple[str, str]:
    """The saved answer cell in a kernel where no answer ran, and a greeting; the lesson's imports and it are defined.

    Only definitions, imports and assignments are executed. What raises is left out: the judge will say why.
    """
    saved, first = ran.saved_answer(exercise.name), next((cell.text for cell in ran.saved() if cell.is_code), "")
    source = saved.text if saved else ""
    if not source.strip():
        return "", ""
    for text in (first, source):
        for statement in _definitions(text):
            with contextlib.suppress(Exception):
                exec(compile(statement, "<restored>", "exec"), shell.user_ns)  # the learner's own cell, asked for
    return source, f"{progress().welcome(exercise.notebook)} {FROM_FILE}".strip()


def _definitions(text: str) -> list[ast.Module]:
    """The top-level imports and definitions of a cell, each as a module."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return []
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)
    return [ast.Module([statement], []) for statement in body if isinstance(statement, kinds)]


def _nothing_to_judge(exercise, ran: bool) -> Finding:
    if ran:
        return Finding("not-attempted", f"The answer cell ran, but it does not define {exercise.entry}.",
                       "The latest run of the answer cell counts. A function of an earlier run is not judged.",
                       f"define {exercise.signature}.")
    return Finding("not-attempted",
                   f"The answer cell of {exercise.name} has not run since this notebook's kernel was started.",
                   "A check judges what ran, not what is written in a cell.",
                   "run the answer cell first (Shift+Enter), then check again.")


def judged(name: str, source: str, say: Callable[[str], None] = lambda words: None) -> Verdict:
    """The verdict on this source; of a source that was just judged, the same one at once. It counts as progress.

    The first verdict on an exercise says where and why, the next one how to repair it.
    """
    before, kept = _latest.get(name, ("", None))
    advised = kept is not None and not kept.passed
    if kept and before == source and kept.diagnosis not in PASSING:
        return replace(kept, warning="" if kept.passed else SAME, better="", advised=advised)
    verdict = _judged_anew(name, source, say)
    _latest[name] = source, verdict
    return replace(verdict, better=better(kept, verdict) if kept else "", advised=advised)


def _judged_anew(name: str, source: str, say: Callable[[str], None]) -> Verdict:
    say("starting")
    with _one_at_a_time:
        judge().say = say
        verdict = judge().judge(name, source)
    with contextlib.suppress(OSError):  # if the folder is read-only, progress is not saved; the check still works
        record(verdict.exercise, verdict.score, verdict.points, verdict.passed)
    return verdict


def _judged_in_script(exercise) -> Verdict:
    """The verdict on the running script. No second check follows in this process, so this one says all."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    text = "".join(linecache.getlines(script)) if script else ""
    return replace(judged(exercise.name, answer.from_history([text], exercise.entry)), advised=True)


def better(before: Verdict, now: Verdict) -> str:
    """What got better from one check to the next, in a sentence; empty if nothing did."""
    right = [name for name, ok in now.blanks.items() if ok and not before.blanks.get(name)]
    old, new = (sum(verdict.blanks.values()) for verdict in (before, now))
    if right and new > old:
        are = "is" if len(right) == 1 else "are"
        return f"Better: {old} → {new} blanks; {', '.join(right)} {are} right now."
    old, new = (sum(case.passed for case in verdict.cases) for verdict in (before, now))
    if new > old and len(before.cases) == len(now.cases):
        return f"Better: {old} → {new} of {len(now.cases)} cases pass."
    if before.finding and now.finding and now.finding.slug.rank > before.finding.slug.rank:
        return f"Another mistake than before: {before.diagnosis} is gone."
    return ""


def warm_up() -> None:
    """Starts the box and tests it with known answers while the learner reads, so that the first check is fast."""
    if shell := interactive_shell():
        _watched(shell)
    judge().start()
    threading.Thread(target=_prove, daemon=True).start()


def _prove() -> None:
    with _one_at_a_time, contextlib.suppress(Exception):  # the first check reports the error
        judge().prove(PROVEN_EARLY)


@functools.cache
def judge() -> Judge:
    """The judge of this process. On a machine that cannot confine, the learner's own code runs unconfined."""
    confine = not lockdown.missing()
    if not confine:
        warnings.warn("checks run without a sandbox on this machine: check your own code only", stacklevel=2)
    made = Judge(confine=confine)
    atexit.register(made.close)
    return made


@functools.cache
def _watched(shell) -> session.Session:
    ran = session.Session(shell)
    shell.events.register("pre_run_cell", ran.note)
    return ran
