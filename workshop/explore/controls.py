"""A picture with the sliders, switches and buttons that change it; all its frames are in the page.

A widget would be dead as soon as its kernel has ended: JupyterLab then shows "model not found" in its place, although
the saved output has a picture too. So the output is HTML with a short script, and needs neither kernel nor package.
A front end that does not run the script (another person's notebook that is not trusted) shows the first frame as an
image, with its words.
"""

import base64
import gzip
import itertools
import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from workshop.notebook import page
from workshop.picture import Picture

WALKS = tomllib.loads(Path(__file__).parents[1].joinpath("walks.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Control:
    """One of a few values, in order: a slider, or a box to tick for False and True.

    `steps` adds buttons: play, one back, one on, and start again.
    """

    label: str
    value: Any
    options: tuple
    steps: bool = False


def slider(label: str, value, options, steps: bool = False) -> Control:
    """A slider over these values; one that is not among them is added at its place."""
    options = tuple(options)
    return Control(label, value, options if value in options else tuple(sorted({*options, value})), steps)


def choice(label: str, value, options) -> Control:
    """A slider over these values alone. Raises ValueError for another one."""
    options = tuple(options)
    if value not in options:
        raise ValueError(f"{label} is {value!r}, but this picture knows {', '.join(map(str, options))}")
    return Control(label, value, options)


class Explorer:
    """A picture and the controls that change it.

    draw: called with one value per control, by name. It returns None if these values do not go together, such as a
    program that a launch does not have; the control with `steps` then stays at the last value that does.
    """

    def __init__(self, draw: Callable[..., Picture | None], **controls: Control):
        self._draw, self.controls = draw, controls

    def at(self, **values) -> Picture | None:
        """The picture for these values of the controls; a control that is not named has its first value."""
        return self._draw(**{name: control.value for name, control in self.controls.items()} | values)

    @property
    def picture(self) -> Picture:
        return self.at()

    @cached_property
    def frames(self) -> dict[str, list]:
        """Every frame as a list of places in `parts`: frames share nearly all of what they draw."""
        parts: dict[str, int] = {}
        frames = []
        for values in itertools.product(*(control.options for control in self.controls.values())):
            picture = self._draw(*values)
            found = re.findall(r"<[^<]*", picture.html) if picture else []
            frames.append([parts.setdefault(part, len(parts)) for part in found])
        return {"parts": list(parts), "frames": frames}

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        packed = gzip.compress(json.dumps(self.frames, separators=(",", ":")).encode(), mtime=0)
        frames, controls = base64.b64encode(packed).decode(), list(self.controls.values())
        html = page("explorer.html", frames=frames, controls=controls, still=self.picture.still())
        return {"text/plain": self.picture.text, "text/html": html}

    def __repr__(self) -> str:
        return self.picture.text
