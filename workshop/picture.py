"""Pictures for notebook cells: small SVG drawings in the notebook's own theme, and the same in words and numbers."""

import base64
import re
from dataclasses import dataclass
from html import escape

import numpy as np

from workshop.notebook import page

# Okabe and Ito's colours. Each program or block takes the next one.
SKY, ORANGE, GREEN, PURPLE = "#56b4e9", "#e69f00", "#009e73", "#cc79a7"
READ, WRITE, WRONG = "#0072b2", "#e69f00", "#d55e00"
WIDTH = 680
CYCLE = (SKY, ORANGE, GREEN, PURPLE)
_STILL = 'style="color:#808081;font-family:sans-serif;font-size:13px" fill="currentColor"'


@dataclass(frozen=True)
class Picture:
    """What a cell shows: HTML in a notebook, `text` everywhere else."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return page("picture.html", html=self.html)

    def still(self) -> str:
        """The same HTML with its drawing as an image, which a page shows that trusts nobody."""

        def image(match: re.Match) -> str:
            svg = match[0].replace("<svg ", f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" {_STILL} ', 1)
            words = re.search('aria-label="([^"]*)"', svg)
            packed = base64.b64encode(svg.encode()).decode()
            return f'<img src="data:image/svg+xml;base64,{packed}" alt="{words[1] if words else ""}">'

        return re.sub(r"<svg .*?</svg>", image, self.html, flags=re.S)

    def __repr__(self) -> str:
        return self.text


class Drawing:
    """An SVG drawing in pixels that shrinks with the page; `label` is what a screen reader says."""

    def __init__(self, width: float, height: float, label: str):
        self._size, self._label = (width, height), label
        self._marks: list[str] = []

    def text(self, x, y, words, anchor="start", weight=400):
        self._marks.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}">'
            f"{escape(words, quote=False)}</text>"
        )

    def box(self, x, y, width, height, color="currentColor", opacity=0.35, line=1.0, dashed=False, note=""):
        dashes = 'stroke-dasharray="4 3"' if dashed else ""
        hover = f"<title>{escape(note, quote=False)}</title>" if note else ""
        self._marks.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{color}" '
            f'fill-opacity="{opacity:g}" stroke="{color}" stroke-width="{line:g}" {dashes}>{hover}</rect>'
        )

    def line(self, x1, y1, x2, y2, color="currentColor"):
        self._marks.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}"/>')

    def cell(self, x, y, width, height, words="", color=None, crossed=False, strong=False, opacity=0.35, note=""):
        """One element or lane; a crossed one must not be touched."""
        opacity = opacity if color and not crossed else 0.0
        line = 3 if strong else 1
        color = color or "currentColor"
        self.box(x + 1, y + 1, width - 2, height - 2, color, opacity, line, crossed, note)
        if crossed:
            self.line(x + 3, y + height - 3, x + width - 3, y + 3, color)
        if words:
            self.text(x + width / 2, y + height / 2 + 4.5, words, "middle")

    def cells(self, x, y, width, height, looks, columns=None):
        """Cells side by side, in rows of `columns`. A look is what `cell` takes behind its place and size."""
        for number, look in enumerate(looks):
            row, column = divmod(number, columns or len(looks))
            self.cell(x + column * width, y + row * height, width, height, **look)

    def html(self) -> str:
        width, height = self._size
        return (
            f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(self._label)}">'
            f"{''.join(self._marks)}</svg>"
        )


def paragraph(words: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(words, quote=False)}</p>'


def plain_table(header: list[str], rows: list[list[str]], justify=str.rjust) -> str:
    """A table in plain text, as table.html in a page."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return "\n".join("  ".join(map(justify, row, widths)).rstrip() for row in [header, *rows])


def tabled(header: list[str], rows: list[list[str]], words: str) -> Picture:
    """A table with a sentence below it."""
    html = page("table.html", header=header, rows=rows) + paragraph(words)
    return Picture(html, f"{plain_table(header, rows)}\n{words}")


def count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def times(counts: np.ndarray) -> str:
    if not counts.size:
        return "0 times"
    low, high = int(counts.min()), int(counts.max())
    return ("once" if low == 1 else f"{low} times") if low == high else f"{low} to {high} times"


def short(value: float) -> str:
    """At most four digits; infinities and NaN as they are read."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")
