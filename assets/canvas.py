"""A small SVG canvas: boxes, cells, arrows and text in the course's one visual language.

Every figure is an opaque card: light with dark ink, and the other way round where the page asks for a dark colour
scheme. Colours are Okabe and Ito's, told apart with the common kinds of colour blindness. None carries a meaning
alone: hatching, dashes or words always say it too. Coordinates are pixels, x to the right and y downwards.
"""

from __future__ import annotations

import re
from html import escape

WIDTH = 760
MARGIN = 24

PANEL, EDGE, INK, MUTED = "#fcfcfa", "#c8d0d9", "#1f2933", "#52606d"
SKY, ORANGE, GREEN, PURPLE = "#56b4e9", "#e69f00", "#009e73", "#cc79a7"
BLUE, VERMILLION, YELLOW = "#0072b2", "#d55e00", "#f0e442"

READ, WRITE, WRONG = BLUE, ORANGE, VERMILLION
WRONG_INK = "#b34700"  # vermillion, dark enough for words
PROGRAMS = (SKY, ORANGE, GREEN, PURPLE)

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"

# What each colour of the card becomes in a dark colour scheme; `tint` adds its own.
DARK = {
    PANEL: "#1b2027",
    EDGE: "#55606d",
    INK: "#e8ecf0",
    MUTED: "#aab5c1",
    WRONG_INK: "#ff8f4d",
    "#ffffff": "#262d36",
    "#f3f4f5": "#222830",
}

HATCH = (
    '<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="7" height="7" fill="#f3f4f5"/>'
    f'<path d="M0 0V7" stroke="{EDGE}" stroke-width="3"/></pattern>'
)
ARROWHEAD = (
    '<marker id="head-{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 1 L10 5 L0 9 Z" fill="{color}"/></marker>'
)


def tint(color: str, strength: float = 0.3) -> str:
    """`color` mixed into the card: 0 gives the card, 1 the colour itself."""
    light = _mixed(PANEL, color, strength)
    DARK[light] = _mixed(DARK[PANEL], color, min(1, 1.2 * strength))
    return light


def _mixed(card: str, color: str, strength: float) -> str:
    mixed = (
        round(int(card[i : i + 2], 16) * (1 - strength) + int(color[i : i + 2], 16) * strength) for i in (1, 3, 5)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)


def dark_style(marks: str) -> str:
    """CSS that exchanges the colours used in `marks` where the page asks for a dark colour scheme."""
    rules = [
        f'[{attribute}="{light}"]{{{attribute}:{dark}}}'
        for light, dark in sorted(DARK.items())
        for attribute in ("fill", "stroke")
        if f'{attribute}="{light}"' in marks
    ]
    return f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"


def number(value: float) -> str:
    """The shortest decimal form, so that the file's bytes do not depend on float noise."""
    return f"{round(value, 2):g}"


class Canvas:
    """One figure, `WIDTH` wide and `height` high, with a title and a description for screen readers."""

    def __init__(self, height: int, title: str, description: str):
        self.height = height
        self.title, self.description = title, description
        self._marks: list[str] = []
        self._arrowheads: set[str] = set()
        self.text(MARGIN, 36, title, size=18, weight=600)

    def _add(self, tag: str, content: str | None = None, **attributes) -> None:
        parts = [tag]
        for name, value in attributes.items():
            if value is not None:
                shown = number(value) if isinstance(value, int | float) else escape(value, quote=True)
                parts.append(f'{name.replace("__", ":").replace("_", "-")}="{shown}"')
        opening = " ".join(parts)
        self._marks.append(f"<{opening}/>" if content is None else f"<{opening}>{content}</{tag}>")

    def text(self, x, y, words, size=14, anchor="start", weight=None, fill=INK, mono=False):
        """Write `words` with their baseline at `y`; `_{…}` makes a subscript."""
        pieces = re.split(r"_\{(.*?)\}", words)
        content = escape(pieces[0], quote=False)
        for subscript, following in zip(pieces[1::2], pieces[2::2], strict=True):
            content += (
                f'<tspan dy="3" font-size="{number(size * 0.75)}">{escape(subscript, quote=False)}</tspan>'
            )
            if following:
                content += f'<tspan dy="-3">{escape(following, quote=False)}</tspan>'
        self._add(
            "text",
            content,
            x=x,
            y=y,
            font_size=size,
            font_weight=weight,
            fill=fill,
            text_anchor=None if anchor == "start" else anchor,
            font_family=MONO if mono else None,
            xml__space="preserve" if "  " in words else None,
        )

    def lines(self, x, y, lines, size=14, leading=20, **style):
        """Write several lines, one `leading` apart."""
        for index, words in enumerate(lines):
            self.text(x, y + index * leading, words, size=size, **style)

    def box(self, x, y, width, height, fill="none", stroke=EDGE, radius=6, dash=None, line=1.2):
        self._add(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            rx=radius,
            fill=fill,
            stroke=stroke,
            stroke_width=line,
            stroke_dasharray=dash,
        )

    def labelled(self, x, y, width, height, words, fill="none", stroke=EDGE, size=14, dash=None, **style):
        """A box with lines of centred words in it."""
        self.box(x, y, width, height, fill, stroke, dash=dash)
        lines = [words] if isinstance(words, str) else words
        leading = size + 5
        top = y + height / 2 + size * 0.35 - (len(lines) - 1) * leading / 2
        self.lines(x + width / 2, top, lines, size=size, leading=leading, anchor="middle", **style)

    def cell(self, x, y, width, height, words="", color=None, hatched=False, size=13, strong=False):
        """One element or lane: tinted when it is live, hatched and dashed when it must not be touched."""
        edge = color or EDGE
        fill = "url(#hatch)" if hatched else tint(color, 0.35) if color else "#ffffff"
        self.box(
            x,
            y,
            width,
            height,
            fill,
            edge,
            radius=3,
            dash="4 3" if hatched else None,
            line=2.2 if strong else 1.2,
        )
        if words:
            self.text(
                x + width / 2,
                y + height / 2 + size * 0.35,
                words,
                size=size,
                anchor="middle",
                fill=MUTED if hatched else INK,
                mono=True,
            )

    def line(self, x1, y1, x2, y2, color=MUTED, width=1.6, dash=None):
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_width=width, stroke_dasharray=dash)

    def arrow(self, x1, y1, x2, y2, color=MUTED, width=1.8, dash=None):
        """A straight arrow that ends at (x2, y2)."""
        self.path(f"M{number(x1)} {number(y1)} L{number(x2)} {number(y2)}", color, width, dash)

    def path(self, d, color=MUTED, width=1.8, dash=None):
        """An arrow along an SVG path."""
        self._arrowheads.add(color)
        self._add(
            "path",
            d=d,
            fill="none",
            stroke=color,
            stroke_width=width,
            stroke_dasharray=dash,
            marker_end=f"url(#head-{color[1:]})",
        )

    def svg(self) -> str:
        """The finished file."""
        definitions = [
            HATCH,
            *(ARROWHEAD.format(name=color[1:], color=color) for color in sorted(self._arrowheads)),
        ]
        card = (
            f'<rect x="1" y="1" width="{WIDTH - 2}" height="{self.height - 2}" rx="12" fill="{PANEL}" '
            f'stroke="{EDGE}" stroke-width="1.2"/>'
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
                f'viewBox="0 0 {WIDTH} {self.height}" role="img" aria-labelledby="title description" '
                f'font-family="{SANS}">',
                f'<title id="title">{escape(self.title, quote=False)}</title>',
                f'<desc id="description">{escape(self.description, quote=False)}</desc>',
                dark_style("".join([*definitions, card, *self._marks])),
                "<defs>",
                *definitions,
                "</defs>",
                card,
                *self._marks,
                "</svg>\n",
            ]
        )
