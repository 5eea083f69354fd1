"""One look for every plot: colours that survive colour-blindness, on a light panel that both themes show."""

import base64
import contextlib
import html
import io

# Okabe and Ito, "Color Universal Design": told apart with every common colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
CEILING = "#6B6B6B"
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

SETTINGS = {
    "figure.figsize": (8, 4.2),
    "figure.dpi": 110,
    "figure.facecolor": "#FFFFFF",
    "axes.facecolor": "#FFFFFF",
    "axes.edgecolor": "#8A8A8A",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.labelsize": 10.5,
    "grid.color": "#E4E4E4",
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.fontsize": 10,
    "savefig.facecolor": "#FFFFFF",
}


@contextlib.contextmanager
def figure(title: str, x_label: str, y_label: str, alt: str):
    """Yields (figure, axes) in the course's style. A notebook shows the figure with `alt` as its text."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        drawn = Figure(layout="constrained")  # not pyplot's: nothing global to close
        drawn._repr_html_ = lambda: _image(drawn, alt)
        axes = drawn.subplots()
        axes.set(title=title, xlabel=x_label, ylabel=y_label)
        yield drawn, axes


def look(number: int) -> dict:
    """Colour, marker and dash of the n-th line."""
    index, again = number % len(PALETTE), number >= len(PALETTE)
    return {"color": PALETTE[index], "marker": MARKERS[index], "linestyle": ":" if again else "-"}


def _image(drawn, alt: str) -> str:
    """A figure as an HTML image that needs no file."""
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alt)}" style="max-width:100%" src="data:image/png;base64,{data}">'
