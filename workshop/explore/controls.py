"""A picture with the sliders, switches and buttons that change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workshop.picture import Picture

PLAY_MILLISECONDS = 1400  # from one step to the next


@dataclass(frozen=True)
class Slider:
    """A whole number the learner can move. `steps` adds buttons: play, one back, one on, and start again."""

    label: str
    value: int
    low: int
    high: int
    step: int = 1
    steps: bool = False


@dataclass(frozen=True)
class Choice:
    """One of a few values, in order."""

    label: str
    value: Any
    options: tuple


@dataclass(frozen=True)
class Switch:
    """On or off."""

    label: str
    value: bool = False


class Explorer:
    """A picture and the controls that change it.

    draw: called with one value per control, by name. limits: from those values to the highest value of the
    sliders whose range depends on them.
    """

    def __init__(
        self,
        draw: Callable[..., Picture],
        controls: dict[str, Slider | Choice | Switch],
        limits: Callable[..., dict[str, int]] = lambda **values: {},
    ):
        self._draw, self._controls, self._limits = draw, controls, limits
        self._values = {name: control.value for name, control in controls.items()}

    @property
    def picture(self) -> Picture:
        """The picture for the controls' present values."""
        return self._draw(**self._values)

    @cached_property
    def widget(self):
        """The controls above the picture, as an ipywidgets box."""
        import ipywidgets

        rows = [
            _with_buttons(control) if getattr(self._controls[name], "steps", False) else control
            for name, control in self.controls.items()
        ]
        return ipywidgets.VBox([*rows, self.shown])

    @cached_property
    def controls(self) -> dict[str, Any]:
        """The ipywidgets controls by name; setting one's `value` is moving it."""
        made = {name: _control(control) for name, control in self._controls.items()}
        for name, control in made.items():
            control.observe(lambda change, name=name: self._set(name, change["new"]), "value")
        return made

    @cached_property
    def shown(self):
        """The ipywidgets.HTML that holds the picture."""
        import ipywidgets

        return ipywidgets.HTML(self.picture._repr_html_())

    def _set(self, name: str, value) -> None:
        self._values[name] = value
        for limited, high in self._limits(**self._values).items():
            self._values[limited] = min(self._values[limited], high)
            self.controls[limited].max = high
        self.shown.value = self.picture._repr_html_()

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        picture = self.picture
        still = {"text/plain": picture.text, "text/html": picture._repr_html_()}
        return view_of(self.widget, **kwargs) | still if has_front_end() else still

    def __repr__(self) -> str:
        return self.picture.text


def view_of(widget, **kwargs) -> dict[str, Any]:
    """The MIME bundle of a widget. ipywidgets 7, which Colab has, makes none by itself."""
    if hasattr(widget, "_repr_mimebundle_"):
        return widget._repr_mimebundle_(**kwargs)
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view}


def has_front_end() -> bool:
    """Whether widgets can be shown: ipywidgets is installed and this is a notebook's kernel."""
    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython
    except ImportError:
        return False
    return hasattr(get_ipython(), "kernel")


def _control(control: Slider | Choice | Switch):
    import ipywidgets

    look = {
        "description": control.label,
        "style": {"description_width": "130px"},
        "layout": ipywidgets.Layout(width="min(100%, 520px)"),
    }
    match control:
        case Slider():
            return ipywidgets.IntSlider(control.value, control.low, control.high, control.step, **look)
        case Choice():
            return ipywidgets.SelectionSlider(options=control.options, value=control.value, **look)
        case Switch():
            return ipywidgets.Checkbox(control.value, **look)


def _with_buttons(slider):
    import ipywidgets

    first = slider.value

    def button(words: str, tooltip: str, move: Callable[[int], int]):
        made = ipywidgets.Button(description=words, tooltip=tooltip, layout=ipywidgets.Layout(width="90px"))
        made.on_click(
            lambda _: setattr(slider, "value", min(max(move(slider.value), slider.min), slider.max))
        )
        return made

    play = ipywidgets.Play(
        value=slider.value,
        min=slider.min,
        max=slider.max,
        interval=PLAY_MILLISECONDS,
        show_repeat=False,
        tooltip=f"{slider.description}: play",
    )
    ipywidgets.link((play, "value"), (slider, "value"))
    ipywidgets.link((slider, "max"), (play, "max"))
    buttons = [
        play,
        button("◀ back", f"{slider.description}: one back", lambda value: value - 1),
        button("next ▶", f"{slider.description}: one on", lambda value: value + 1),
        button("reset", f"{slider.description}: start again", lambda value: first),
    ]
    return ipywidgets.VBox([slider, ipywidgets.HBox(buttons, layout=ipywidgets.Layout(margin="0 0 0 134px"))])
