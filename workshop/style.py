"""One look for every plot: colours told apart with every colour vision, on the page's own background.

A plot is shown as SVG inside the page. Its text and axes take the page's text colour, so that it can be read in
a light theme and in a dark one. Saved to a file, the same parts are grey.
"""

import contextlib
import html
import io
import math
import re
from pathlib import Path

INK = "#808081"  # text, axes and the copy: becomes the page's text colour
LABEL_GAP = 0.06  # of the axes' height, between two labels at the ends of lines

SETTINGS = Path(__file__).with_name("course.mplstyle")


@contextlib.contextmanager
def figure(title: str, x_label: str, y_label: str, alt: str):
    """Yields (figure, axes) in the course's style. A notebook shows the figure with `alt` as its text."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    def shown() -> str:
        """The figure as SVG inside the page, in the page's text colour."""
        buffer = io.StringIO()
        with rc_context(fname=SETTINGS):  # the SVG's texts stay texts
            drawn.savefig(buffer, format="svg", metadata={"Date": None})
        svg = buffer.getvalue()
        svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
        svg = svg.replace("<svg ", '<svg style="width:100%;height:auto" ', 1)
        color = "color:var(--jp-content-font-color1, inherit)"
        return f'<div role="img" aria-label="{html.escape(alt)}" style="max-width:760px;{color}">{svg}</div>'

    with rc_context(fname=SETTINGS):
        drawn = Figure(layout="constrained")  # not pyplot's: nothing global to close
        drawn._repr_html_ = shown
        axes = drawn.subplots()
        axes.set(title=title, xlabel=x_label, ylabel=y_label)
        yield drawn, axes


def label_ends(axes) -> None:
    """Write each line's label to the right of the axes, at the height of its last point.

    Labels that would overlap move apart; a thin line leads from the last point to its label.
    """
    bottom, top = axes.get_ylim()
    lines = sorted(axes.lines, key=lambda line: line.get_ydata()[-1])
    heights = _apart([(line.get_ydata()[-1] - bottom) / (top - bottom) for line in lines])
    for line, height in zip(lines, heights, strict=True):
        color = line.get_color()
        axes.annotate(
            line.get_label(),
            xy=line.get_xydata()[-1],
            xytext=(1.04, height),
            textcoords="axes fraction",
            color=color,
            va="center",
            fontsize=11,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkB": 3, "relpos": (0, 0.5)},
            annotation_clip=False,
        )


def size_ticks(axes) -> None:
    """A logarithmic axis of sizes with powers of two as ticks, about seven of them: 1,024, and from 2¹⁷ on a power."""
    axes.set_xscale("log", base=2, subs=[])
    axes.xaxis.get_major_locator().set_params(numticks=7)
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size < 2**17 else f"$2^{{{math.log2(size):g}}}$")


def _apart(heights: list[float]) -> list[float]:
    """Sorted heights, moved as little as a pass up and a pass down need to leave LABEL_GAP between neighbours."""
    moved = list(heights)
    for index in range(1, len(moved)):
        moved[index] = max(moved[index], moved[index - 1] + LABEL_GAP)
    if moved and moved[-1] > 1:
        moved[-1] = 1.0
        for index in range(len(moved) - 2, -1, -1):
            moved[index] = min(moved[index], moved[index + 1] - LABEL_GAP)
    return moved
