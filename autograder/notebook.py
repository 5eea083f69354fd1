"""`check("vector_add")`: the learner calls the judge from a notebook or a script.

The answer's source goes to the same judge and box that the instructor uses. The box is another process, so a
segmentation fault, an endless loop or os._exit in the answer does not end the notebook. The box stays open between
checks.
"""

from __future__ import annotations

import atexit
import contextlib
import linecache
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from html import escape

from . import answer, panel, session
from .box import BoxError, lockdown
from .exercises import UnknownExercise, find
from .judge import Judge
from .judge.jax import JaxMissing
from .verdict import Finding, Verdict

PROVEN_EARLY = "first_kernel"  # its proof holds for all exercises whose answers are kernels
EDITED = (
    "The answer cell was edited after it ran. This verdict is about the text that ran: run the cell, then check again."
)
_judge: Judge | None = None
_session: session.Session | None = None
_one_at_a_time = threading.Lock()
lockdown.missing()  # called now, and cached: it forks, which is not safe after JAX has started


def check(name: str) -> Verdict | None:
    """Judges the current answer to the exercise `name` in this notebook or script, and shows the verdict.

    In a notebook the verdict is shown as a panel, and nothing is returned. In a script it is printed and returned. A
    wrong answer raises no exception: the verdict explains it.
    """
    try:
        exercise = find(name)
    except UnknownExercise as error:
        print(error)
        return None
    shell = _notebook()
    shown = Shown(name) if shell else None
    try:
        verdict = _judged_in(shell, exercise, shown) if shell else _judged(name, _script_source(exercise.entry))
    except (BoxError, JaxMissing) as error:
        if shown:
            shown.close()
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

        self.exercise, self.latest = exercise, 0.0
        self.handle = display({"text/html": panel.running(exercise, "")}, raw=True, display_id=True)

    def step(self, words: str) -> None:
        """Says what is being done, at most a few times a second."""
        now = time.monotonic()
        if now - self.latest > 0.15:
            self.latest = now
            self._put(panel.running(self.exercise, words))

    def show(self, verdict: Verdict) -> None:
        self._put(verdict.to_html(_after(verdict)), verdict.to_text())

    def close(self) -> None:
        self._put("")

    def _put(self, html: str, text: str = "") -> None:
        self.handle.update({"text/html": html} | ({"text/plain": text} if text else {}), raw=True)


def _after(verdict: Verdict) -> str:
    """What passing this exercise has shown, and a link to the next one, as HTML."""
    from workshop.insights import INSIGHTS
    from workshop.progress import progress

    insight = INSIGHTS.get(verdict.exercise, "")
    following = progress().next(verdict.exercise)
    here = find(verdict.exercise).notebook
    if following is None:
        then = "Every exercise of the course is passed."
    elif following.notebook == here:
        then = f"Next: {escape(following.name)}, in this notebook."
    else:
        then = f"Next: <a href='{following.notebook}.ipynb'>{escape(following.name)} in {following.notebook}</a>"
    return f"<p>{escape(insight)}</p><p class='next'>{then}</p>"


def _judged_in(shell, exercise, shown: Shown) -> Verdict:
    """The verdict on what ran in this notebook. Where nothing ran that can be judged, it says what to run."""
    ran = _watched(shell)
    cells, latest = ran.answer_runs(exercise.name)
    source = answer.from_history(cells, [exercise.entry])
    if not source and latest and not answer.is_python(latest.code):
        source = latest.code
    if not source.strip():
        finding = _nothing_to_judge(exercise, ran=latest is not None)
        return Verdict(exercise.name, False, 0, exercise.points, "", finding)
    edited = ran.edited_since(exercise.name, latest)
    verdict = _judged(exercise.name, source, shown.step)
    return replace(verdict, warning=EDITED) if edited else verdict


def _nothing_to_judge(exercise, ran: bool) -> Finding:
    if ran:
        return Finding(
            "not-attempted",
            f"The answer cell ran, but it does not define {exercise.entry}.",
            "The latest run of the answer cell counts. A function of an earlier run is not judged.",
            f"define {exercise.signature}.",
        )
    return Finding(
        "not-attempted",
        f"The answer cell of {exercise.name} has not run since this notebook's kernel was started.",
        "A check judges what ran, not what is written in a cell.",
        "run the answer cell first (Shift+Enter), then check again.",
    )


def _judged(name: str, source: str, say: Callable[[str], None] = lambda words: None) -> Verdict:
    say("starting")
    with _one_at_a_time:
        judge().say = say
        verdict = judge().judge(name, source)
    _remember(verdict)
    return verdict


def warm_up() -> None:
    """Starts the box and tests it with known answers while the learner reads, so that the first check is fast."""
    _watched(_notebook())
    judge().start()
    threading.Thread(target=_prove, daemon=True).start()


def _prove() -> None:
    with _one_at_a_time, contextlib.suppress(Exception):  # the first check reports the error
        judge().prove(PROVEN_EARLY)


def judge() -> Judge:
    """The judge of this process. On a machine that cannot confine, the learner's own code runs unconfined."""
    global _judge
    if _judge is None:
        confine = not lockdown.missing()
        if not confine:
            warnings.warn("checks run without a sandbox on this machine: check your own code only", stacklevel=2)
        _judge = Judge(confine=confine)
        atexit.register(_judge.close)
    return _judge


def _watched(shell) -> session.Session:
    global _session
    if _session is None or _session.shell is not shell:
        _session = session.Session(shell)
        _session.watch()
    return _session


def _script_source(entry: str) -> str:
    """The definitions that `entry` needs, from the running script."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    text = "".join(linecache.getlines(script)) if script else ""
    return answer.from_history([text], [entry])


def in_notebook() -> bool:
    return _notebook() is not None


def _notebook():
    """The interactive shell, if this is one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _remember(verdict: Verdict):
    from workshop import record

    with contextlib.suppress(OSError):  # if the folder is read-only, progress is not saved; the check still works
        record(verdict.exercise, verdict.score, verdict.points, verdict.passed)
