"""A question before an answer. Each choice unfolds what is said to it; the first one is kept, and shown again."""

import functools
from collections.abc import Callable
from math import prod

import torch
from torch.utils._pytree import tree_map_only

from workshop import launching
from workshop.notebook import PAGES, Live, in_notebook, page
from workshop.progress import progress, record_prediction
from workshop.syllabus import QUESTIONS, Estimate, Question
from workshop.traffic import Recording


def predict(name: str) -> "Prediction":
    """Ask one of the course's questions. The answer appears as soon as the learner has chosen.

    Raises ValueError for an unknown name.
    """
    if name not in QUESTIONS:
        raise ValueError(f"there is no question {name!r}; there are: {', '.join(QUESTIONS)}")
    return Prediction(name, QUESTIONS[name])


def predict_bytes(function: Callable, *args) -> "Prediction":
    """Ask how many bytes a function's kernels move for each element of their largest tensor.

    The answer is counted: the executor runs the function here and now, on copies of `args` where a GPU holds them.
    Whatever the function raises is raised.
    """
    args = tree_map_only(torch.Tensor, lambda each: each.cpu(), args)
    with launching.installed(), Recording(elements=False) as counted:
        function(*args)
    shapes = [each.shape for launch in counted.records for each in launch.arguments.values()]
    largest = max(shapes, key=prod, default=())
    moved = float(f"{counted.per_element(prod(largest)):.3g}")
    question = Estimate(
        f"How many bytes does your kernel move for each element of its largest tensor, {list(largest)}? "
        "Add what it reads and what it writes.",
        low=0,
        high=max(24, 2 * moved),
        step=1,
        right=moved,
        why=f"Counted as {function.__name__} is now: {counted.bytes_read:,} bytes read and "
        f"{counted.bytes_written:,} written.",
    )
    return Prediction(f"bytes of {function.__name__}", question)


class Prediction(Live):
    """One question, with what the learner said to it first, if anything."""

    def __init__(self, name: str, question: Question | Estimate):
        self.name, self.question = name, question

    @property
    def said(self) -> str:
        """The learner's first choice; empty if there is none."""
        return progress().predictions.get(self.name, "")

    def choose(self, choice: str) -> None:
        """Keep this choice, if it is the first one and one of the question's, and show the output with it."""
        if self.question.takes(choice):
            record_prediction(self.name, choice)
            self.refresh()

    def _ipython_display_(self) -> None:
        super()._ipython_display_()
        if in_notebook() and _listener():
            _asked[self.name] = self.choose

    def _repr_html_(self) -> str:
        return page("question.html", name=self.name, question=self.question, said=self.said)

    def __repr__(self) -> str:
        lines = [self.question.ask, *(f"  - {option}" for option in getattr(self.question, "options", ()))]
        return "\n".join([*lines, *([self.question.said(self.said)] if self.said else [])])


_asked: dict[str, Callable[[str], None]] = {}  # the questions that are shown


@functools.cache
def _listener():
    """A widget without a view, which listens to the page. None without anywidget: choices are not kept then.

    An HTML output cannot speak to the kernel, and a widget that is shown dies with it. No output holds this one.
    """
    try:
        import anywidget
    except ImportError:
        return None
    widget = type("Bridge", (anywidget.AnyWidget,), {"_esm": (PAGES / "bridge.js").read_text()})()
    widget.on_msg(_hear)
    return widget


def _hear(widget, message, buffers) -> None:
    """A page can send anything, so only what an output of this kernel asked for is passed on."""
    if isinstance(message, dict) and (heard := _asked.get(str(message.get("name")))):
        heard(str(message.get("choice")))
