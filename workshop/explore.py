"""Pictures that move: change a number and see what a kernel does with it.

Each function here returns something that a notebook shows with sliders. Without ipywidgets or without a
notebook the same object is a still picture, and prints as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workshop.picture import CYCLE, READ, WRITE, WRONG, Drawing, Picture, paragraph, plain_table, table

WIDTH = 680


@dataclass(frozen=True)
class Slider:
    """A whole number the learner can move; `steps` adds buttons for one back, one on, and start again."""

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
        return self.widget._repr_mimebundle_(**kwargs) | still if _has_front_end() else still

    def __repr__(self) -> str:
        return self.picture.text


def _has_front_end() -> bool:
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

    buttons = [
        button("◀ back", f"{slider.description}: one back", lambda value: value - 1),
        button("next ▶", f"{slider.description}: one on", lambda value: value + 1),
        button("reset", f"{slider.description}: start again", lambda value: first),
    ]
    return ipywidgets.VBox([slider, ipywidgets.HBox(buttons, layout=ipywidgets.Layout(margin="0 0 0 134px"))])


# The launch grid

MOST_ELEMENTS = 64
BLOCK_SIZES = (1, 2, 4, 8, 16)


def launch_grid(n: int = 20, block_size: int = 8) -> Explorer:
    """Which program touches which of `n` elements (at most 64), and which lanes the mask hides."""
    if not 1 <= n <= MOST_ELEMENTS:
        raise ValueError(f"n is {n}, but this picture has room for 1 to {MOST_ELEMENTS} elements")
    if block_size not in BLOCK_SIZES:
        raise ValueError(
            f"block_size is {block_size}, but this picture knows {', '.join(map(str, BLOCK_SIZES))}"
        )
    return Explorer(
        _draw_launch_grid,
        {
            "n": Slider("N, elements", n, 1, MOST_ELEMENTS),
            "block_size": Choice("BLOCK_SIZE", block_size, BLOCK_SIZES),
            "program": Slider("look at program", 0, 0, math.ceil(n / block_size) - 1, steps=True),
        },
        lambda n, block_size, program: {"program": math.ceil(n / block_size) - 1},
    )


def _draw_launch_grid(n: int, block_size: int, program: int) -> Picture:
    programs = math.ceil(n / block_size)
    lanes = programs * block_size
    offsets = range(program * block_size, (program + 1) * block_size)
    hidden = sum(offset >= n for offset in offsets)
    summary = (
        f"{_count(programs, 'program')} of {_count(block_size, 'lane')}: {_count(lanes, 'lane')} for "
        f"{_count(n, 'element')}, {lanes - n} masked off ({(lanes - n) / lanes:.0%})."
    )
    chosen = (
        f"Program {program} has {_count(block_size - hidden, 'element')} and {_count(hidden, 'masked lane')}."
    )

    left, side, per_line, line_height = 72, 38, 16, 36
    lines = math.ceil(lanes / per_line)
    below = 14 + lines * line_height
    drawing = Drawing(WIDTH, below + 142, f"{summary} {chosen}")
    drawing.text(0, 32, "x", weight=600)
    for element in range(lanes):
        row, column = divmod(element, per_line)
        pid = element // block_size
        drawing.cell(
            left + column * side,
            10 + row * line_height,
            side,
            32,
            str(element) if element < n else "",
            CYCLE[pid % len(CYCLE)],
            crossed=element >= n,
            strong=pid == program,
            opacity=0.6 if pid == program else 0.18,
            note=f"program {pid}" if element < n else f"program {pid}: no element, masked",
        )
    drawing.text(0, below + 22, f"program {program}", weight=600)
    rows = {
        "lane": range(block_size),
        "offsets": offsets,
        "mask": ["True" if offset < n else "False" for offset in offsets],
    }
    for index, (name, values) in enumerate(rows.items()):
        y = below + 34 + index * 34
        drawing.text(0, y + 20, name)
        for lane, value in enumerate(values):
            live = offsets[lane] < n
            color = CYCLE[program % len(CYCLE)] if live else None
            drawing.cell(left + lane * side, y, side, 30, str(value), color)
    code = f"offsets = {program} * {block_size} + tl.arange(0, {block_size});  mask = offsets < {n}"
    html = drawing.html() + paragraph(code, "code") + paragraph(summary) + paragraph(chosen)
    return Picture(html, "\n".join([code, summary, chosen]))


# Online softmax

LONGEST_ROW = 16


def online_softmax(row: Sequence[float] | None = None, block: int = 4) -> Explorer:
    """Walks one row of at most 16 numbers block by block, with the running maximum m and the running sum d.

    The switch leaves the rescale out, so that its effect on the result can be seen.
    """
    values = np.asarray([1, 2, 0, 3, 4, 1, 6, 2, 5, 0, 7] if row is None else row, dtype=np.float64)
    if values.ndim != 1 or not 1 <= values.size <= LONGEST_ROW:
        raise ValueError(
            f"row has shape {list(values.shape)}, but must be one row of 1 to {LONGEST_ROW} numbers"
        )
    if block < 1:
        raise ValueError(f"block is {block}, but a block has at least one number")
    blocks = math.ceil(values.size / block)
    return Explorer(
        lambda step, without_rescale: _draw_online_softmax(values, block, step, not without_rescale),
        {
            "step": Slider("step", 0, 0, blocks + 1, steps=True),
            "without_rescale": Switch("without rescale"),
        },
    )


@dataclass(frozen=True)
class SoftmaxStep:
    """The state after one block; `parts` are the terms of `d` so far, in the unit each was added in."""

    m_old: float
    m: float
    rescale: float
    block_sum: float
    d: float
    parts: np.ndarray


def online_softmax_steps(row: np.ndarray, block: int, rescaling: bool = True) -> list[SoftmaxStep]:
    """Online softmax over `row`, one step per block; without `rescaling` the old sum keeps its old unit."""
    m, d, parts = -np.inf, np.float64(0.0), np.zeros(0)
    steps = []
    with np.errstate(invalid="ignore"):  # -inf - -inf is NaN here, as it is in a kernel
        for start in range(0, row.size, block):
            values = row[start : start + block]
            m_new = max(m, values.max())
            rescale = np.exp(np.float64(m) - m_new) if rescaling else np.float64(1.0)
            terms = np.exp(values - m_new)
            d = d * rescale + terms.sum()
            parts = np.concatenate([parts * rescale, terms])
            steps.append(SoftmaxStep(m, m_new, rescale, terms.sum(), d, parts))
            m = m_new
    return steps


def _draw_online_softmax(row: np.ndarray, block: int, step: int, rescaling: bool) -> Picture:
    steps = online_softmax_steps(row, block, rescaling)
    dividing = step > len(steps)
    done = steps[:step]
    now = done[-1] if done else None
    m, d = (now.m, now.d) if now else (-np.inf, 0.0)
    with np.errstate(invalid="ignore"):
        output = np.exp(row - m) / d if dividing else None
    header = ["block", "m before", "m", "rescale exp(m before − m)", "sum of exp(x − m)", "d"]
    rows = [
        [
            str(k),
            _short(s.m_old),
            _short(s.m),
            _short(s.rescale) if rescaling else "left out",
            _short(s.block_sum),
        ]
        + [_short(s.d)]
        for k, s in enumerate(done)
    ]
    what = _step_in_words(step, steps, block, rescaling)
    verdict = _softmax_verdict(output) if dividing else ""

    drawing = _softmax_bars(row, block, step, now, output, f"{what} {verdict}".strip())
    legend = "A bar is one term of the sum d." if not dividing else "A bar is one element of the result."
    wrong = dividing and not np.isclose(output.sum(), 1.0)
    html = drawing.html() + paragraph(f"{what} {legend}")
    html += table(header, rows) if rows else ""
    html += paragraph(verdict, "wrong" if wrong else "") if verdict else ""
    text = [
        f"row {', '.join(map(_short, row))} in blocks of {block}",
        what,
        plain_table(header, rows),
        verdict,
    ]
    return Picture(html, "\n".join(part for part in text if part))


def _step_in_words(step: int, steps: list[SoftmaxStep], block: int, rescaling: bool) -> str:
    if step == 0:
        return "Before the first block: m = −∞, d = 0."
    if step > len(steps):
        last = steps[-1]
        return (
            f"Second pass: each element is exp(x − m) / d, with m = {_short(last.m)}, d = {_short(last.d)}."
        )
    now = steps[step - 1]
    if now.m == now.m_old:
        return f"Block {step - 1}: the maximum stays {_short(now.m)}, so the old sum stays as it is."
    if step == 1:
        return f"Block 0: the first maximum is {_short(now.m)}."
    old, new = _short(now.m_old), _short(now.m)
    grew = f"Block {step - 1}: the maximum grows from {old} to {new}"
    if rescaling:
        return f"{grew}, so the old sum is multiplied by exp({old} − {new}) = {_short(now.rescale)}."
    return f"{grew}, but the old sum still counts in units of exp({old})."


def _softmax_verdict(output: np.ndarray) -> str:
    total = output.sum()
    if np.isnan(total):
        return "The row is NaN: −∞ − (−∞) has no value."
    if np.isclose(total, 1.0):
        return "The result adds up to 1, as it must."
    return f"The result adds up to {_short(total)}, not 1: terms in different units were added."


def _softmax_bars(row, block, step, now: SoftmaxStep | None, output, label: str) -> Drawing:
    """Bars over the row's numbers: the terms of the sum so far, or the result in the last step."""
    left, side, base, full = 12, 656 / max(row.size, 8), 116, 88
    heights = output if output is not None else now.parts if now is not None else np.zeros(0)
    drawing = Drawing(WIDTH, 196, label)
    top = max(1.0, np.nanmax(heights, initial=0.0))
    for index, value in enumerate(row):
        x, number = left + index * side, index // block
        color = CYCLE[number % len(CYCLE)]
        if index < heights.size and np.isfinite(heights[index]):
            height = full * heights[index] / top
            drawing.box(x + 5, base - height, side - 10, height, color, 0.6, note=_short(heights[index]))
            drawing.text(x + side / 2, base - height - 6, _bar_label(heights[index]), "middle")
        drawing.cell(x, base + 8, side, 32, _short(value), color, strong=number == step - 1, opacity=0.35)
    drawing.line(left, base, left + row.size * side, base)
    for number, first in enumerate(range(0, row.size, block)):
        middle = left + (first + min(first + block, row.size)) / 2 * side
        drawing.text(middle, base + 60, f"block {number}", "middle", 600 if number == step - 1 else 400)
    return drawing


def _bar_label(value: float) -> str:
    return f"{value:.2f}" if value >= 0.005 else "≈0"


# Memory traffic

GRID_COLUMNS, GRID_ROWS = 32, 16


def memory_traffic(traffic: Callable[[], Any] | Mapping[str, tuple] | Any) -> Picture:
    """How often a kernel read and wrote each element of its tensors.

    traffic: a function that launches the kernel (`lambda: add(x, y)`), what `workshop.traffic.count_bytes`
    returned, or {name: (reads, writes)} with one integer count per element.
    """
    if callable(traffic):
        from workshop.backend import interpreting
        from workshop.traffic import count_bytes

        if not interpreting():
            words = "Reads and writes can be counted on Triton's interpreter only: set TRITON_INTERPRET=1."
            return Picture(paragraph(words), words)
        traffic = count_bytes(traffic)
    if not isinstance(traffic, Mapping):
        traffic = {tensor.name: (tensor.reads, tensor.writes) for tensor in traffic.tensors}
    pictures = [_draw_tensor_traffic(name, *map(np.asarray, counts)) for name, counts in traffic.items()]
    return Picture(
        "".join(picture.html for picture in pictures), "\n".join(picture.text for picture in pictures)
    )


def _draw_tensor_traffic(name: str, reads: np.ndarray, writes: np.ndarray) -> Picture:
    if reads.shape != writes.shape:
        raise ValueError(f"{name}: reads have shape {reads.shape}, writes {writes.shape}")
    heading = f"{name}, {' × '.join(map(str, reads.shape)) or '1'}"
    parts = []
    if reads.any() or not writes.any():
        parts.append((f"{heading}: each element read {_times(reads)}", reads, READ, False))
    if writes.any():
        parts.append(
            (f"{heading}: each element written {_times(writes)}{_write_faults(writes)}", writes, WRITE, True)
        )
    html = "".join(
        paragraph(words, "wrong" if must_be_one and (counts != 1).any() else "")
        + (_heat(words, counts, color, must_be_one) if counts.size else "")
        for words, counts, color, must_be_one in parts
    )
    return Picture(html, "\n".join(words for words, *_ in parts))


def _write_faults(writes: np.ndarray) -> str:
    unwritten, twice = int((writes == 0).sum()), int((writes > 1).sum())
    faults = [f"{unwritten} never (crossed)"] * bool(unwritten) + [f"{twice} more than once (framed)"] * bool(
        twice
    )
    return f"; {', '.join(faults)}" if faults else ""


def _heat(label: str, counts: np.ndarray, color: str, must_be_one: bool) -> str:
    """A grid of counts; a tensor larger than the grid is shown in tiles, each with its largest count."""
    if counts.ndim < 2:
        counts, most = counts.reshape(-1), (GRID_ROWS * GRID_COLUMNS,)
    else:
        counts, most = counts.reshape(-1, counts.shape[-1]), (GRID_ROWS, GRID_COLUMNS)
    highest, lowest = _tiles(counts, most, np.maximum), _tiles(counts, most, np.minimum)
    columns = min(highest.shape[-1], GRID_COLUMNS)
    side = min(30, WIDTH / columns)
    drawing = Drawing(WIDTH, math.ceil(highest.size / columns) * side + 2, label)
    for index, (low, high) in enumerate(zip(lowest.flat, highest.flat, strict=True)):
        row, column = divmod(index, columns)
        unwritten, twice = must_be_one and low == 0, must_be_one and high > 1
        drawing.cell(
            column * side,
            row * side,
            side,
            side,
            str(high),
            WRONG if unwritten or twice else color,
            crossed=unwritten,
            strong=twice,
            opacity=0.08 + 0.6 * high / max(1, highest.max()),
            note=f"{high} times" if low == high else f"{low} to {high} times",
        )
    if highest.size == counts.size:
        return drawing.html()
    tile = " × ".join(str(-(-size // shown)) for size, shown in zip(counts.shape, highest.shape, strict=True))
    return drawing.html() + paragraph(
        f"A cell stands for up to {tile} elements and shows their largest count."
    )


def _tiles(counts: np.ndarray, most: tuple[int, ...], combine: np.ufunc) -> np.ndarray:
    """`counts` with at most `most` tiles along each axis; a tile's elements are combined into one."""
    for axis, tiles in enumerate(most):
        if counts.shape[axis] > tiles:
            starts = np.arange(tiles) * counts.shape[axis] // tiles
            counts = combine.reduceat(counts, starts, axis=axis)
    return counts


# Occupancy


def occupancy(arch: str = "gfx942", vgprs: int = 114, lds_bytes: int = 16, num_warps: int = 4) -> Explorer:
    """How many waves of a kernel one compute unit runs at once, and what limits them."""
    from workshop.occupancy import COMPUTE_UNITS

    if arch not in COMPUTE_UNITS:
        raise ValueError(f"unknown architecture {arch!r}; known: {', '.join(COMPUTE_UNITS)}")
    unit = COMPUTE_UNITS[arch]
    return Explorer(
        _draw_occupancy,
        {
            "arch": Choice("architecture", arch, tuple(COMPUTE_UNITS)),
            "vgprs": Slider("VGPRs", vgprs, 1, unit.vgprs),
            "lds_bytes": Slider("LDS bytes", lds_bytes, 0, unit.lds, 16),
            "num_warps": Choice("num_warps", num_warps, (1, 2, 4, 8, 16)),
        },
        lambda arch, **others: {"lds_bytes": COMPUTE_UNITS[arch].lds},
    )


def _draw_occupancy(arch: str, vgprs: int, lds_bytes: int, num_warps: int) -> Picture:
    from workshop.occupancy import COMPUTE_UNITS, EXECUTION_UNITS
    from workshop.occupancy import occupancy as waves_per_unit

    unit = COMPUTE_UNITS[arch]
    result = waves_per_unit(vgprs, lds_bytes, num_warps, arch)
    summary = f"{_count(int(result), 'wave')} per execution unit, limited by {result.limiter}."
    if not result.workgroups:
        summary = f"Not one program fits a compute unit; what runs out: {result.limiter}."
    left, slot, height = 112, 66, 34
    drawing = Drawing(WIDTH, EXECUTION_UNITS * 40 + 96, summary)
    waves = [wave // num_warps for wave in range(result.workgroups * num_warps)]
    for simd in range(EXECUTION_UNITS):
        y = simd * 40 + 4
        drawing.text(0, y + 22, f"SIMD {simd}", weight=600)
        mine = waves[simd::EXECUTION_UNITS]
        for index in range(unit.max_waves):
            program = mine[index] if index < len(mine) else None
            color = CYCLE[program % len(CYCLE)] if program is not None else None
            words = f"prog. {program}" if program is not None else ""
            drawing.cell(left + index * slot, y, slot, height, words, color, opacity=0.5)
    resources = {
        "registers": (
            len(waves[::EXECUTION_UNITS]) * result.vgprs_allocated,
            unit.vgprs,
            "per lane of SIMD 0",
        ),
        "LDS": (result.workgroups * lds_bytes, unit.lds, "bytes"),
    }
    for index, (name, (used, whole, of_what)) in enumerate(resources.items()):
        y = EXECUTION_UNITS * 40 + 14 + index * 38
        drawing.text(0, y + 19, name, weight=600)
        drawing.box(left, y, 8 * slot, 28, "currentColor", 0.0)
        if used:
            drawing.box(left, y, 8 * slot * used / whole, 28, CYCLE[0], 0.35)
        drawing.text(left + 12, y + 19, f"{used} of {whole} {of_what}")
    html = drawing.html() + paragraph(summary) + paragraph(result.explain())
    return Picture(html, f"{arch}: {summary}\n{result.explain()}")


# Words


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _times(counts: np.ndarray) -> str:
    if not counts.size:
        return "0 times"
    low, high = int(counts.min()), int(counts.max())
    return ("once" if low == 1 else f"{low} times") if low == high else f"{low} to {high} times"


def _short(value: float) -> str:
    """At most four digits; infinities and NaN as they are read."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("-", "−")
