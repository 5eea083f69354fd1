"""A question before an answer: buttons or a slider in a notebook, a folded answer elsewhere."""

from __future__ import annotations

from functools import cached_property
from html import escape
from typing import Any

from workshop.explore.controls import has_front_end, view_of
from workshop.explore.questions import QUESTIONS, Estimate, Question
from workshop.picture import Picture, paragraph


def predict(name: str) -> Prediction:
    """Ask one of the course's questions. The answer appears as soon as the learner has chosen.

    Raises ValueError for an unknown name.
    """
    if name not in QUESTIONS:
        raise ValueError(f"there is no question {name!r}; there are: {', '.join(QUESTIONS)}")
    return Prediction(QUESTIONS[name])


class Prediction:
    """One question. `answer(choice)` says what the notebook shows after a choice."""

    def __init__(self, question: Question | Estimate):
        self.question = question

    def answer(self, choice) -> str:
        """What is said after a choice, in plain text."""
        question = self.question
        if isinstance(question, Estimate):
            return f"You said {choice:g}, it is {question.right:g}. {question.why}"
        if choice == question.right:
            return f"✓ Yes: {choice}. {question.options[choice]}"
        return f"✗ Not {choice}. {question.options[choice]}"

    @cached_property
    def widget(self):
        """The question, its buttons or its slider, and room for the answer, as an ipywidgets box."""
        import ipywidgets

        self.shown = ipywidgets.HTML()
        ask = ipywidgets.HTML(_page(self.question.ask))
        return ipywidgets.VBox([ask, self.control, self.shown])

    @cached_property
    def control(self):
        """A slider for an estimate, else a box of buttons, one for each option."""
        import ipywidgets

        if isinstance(self.question, Estimate):
            q = self.question
            slider = ipywidgets.FloatSlider(
                q.low, min=q.low, max=q.high, step=q.step, continuous_update=False, description="your guess"
            )
            slider.observe(lambda change: self.choose(change["new"]), "value")
            return slider
        buttons = [self._button(option) for option in self.question.options]
        return ipywidgets.VBox(buttons)

    def _button(self, option: str):
        import ipywidgets

        button = ipywidgets.Button(description=option, layout=ipywidgets.Layout(width="min(100%, 420px)"))
        button.on_click(lambda _: self.choose(option))
        return button

    def choose(self, choice) -> None:
        """Show the answer to this choice."""
        self.shown.value = _page(self.answer(choice))

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        still = {"text/plain": repr(self), "text/html": self._folded()}
        return view_of(self.widget, **kwargs) | still if has_front_end() else still

    def _folded(self) -> str:
        if isinstance(self.question, Estimate):
            options, right = "", f"{self.question.right:g}. {self.question.why}"
        else:
            options = "".join(f"<li>{escape(option)}</li>" for option in self.question.options)
            right = f"{self.question.right}. {self.question.options[self.question.right]}"
        folded = f"<details><summary>Answer</summary><p>{escape(right)}</p></details>"
        return f"<p>{escape(self.question.ask)}</p><ul>{options}</ul>{folded}"

    def __repr__(self) -> str:
        options = "" if isinstance(self.question, Estimate) else "".join(f"\n  - {o}" for o in self.question.options)
        return f"{self.question.ask}{options}"


def _page(words: str) -> str:
    return Picture(paragraph(words), words)._repr_html_()
