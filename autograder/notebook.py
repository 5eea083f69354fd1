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
import warnings

from . import answer
from .box import BoxError, lockdown
from .exercises import UnknownExercise, find
from .judge import Judge
from .judge.jax import JaxMissing
from .verdict import Verdict

PROVEN_EARLY = "first_kernel"  # its proof holds for all exercises whose answers are kernels
_judge: Judge | None = None
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
    try:
        with _one_at_a_time:
            verdict = judge().judge(name, _source_of(exercise.entry))
    except (BoxError, JaxMissing) as error:
        print(error)
        return None
    _remember(verdict)
    shell = _notebook()
    if shell is None:
        print(verdict.to_text())
        return verdict
    from IPython.display import HTML, display

    display(HTML(verdict.to_html()))
    return None


def warm_up() -> None:
    """Starts the box and tests it with known answers while the learner reads, so that the first check is fast."""
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


def _source_of(entry: str) -> str:
    """The definitions that `entry` needs, from the notebook's history or the running script."""
    shell = _notebook()
    if shell is not None:
        cells = [cell for cell in shell.user_ns.get("In", []) if isinstance(cell, str)]
        return answer.from_history(cells, [entry])
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
