"""Launches: which program touches which element of a grid, and how often each element is read and written."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from workshop.backend import interpreting
from workshop.explore.controls import Explorer, choice, slider
from workshop.picture import CYCLE, READ, WIDTH, WRITE, WRONG, Drawing, Picture, count, paragraph, times
from workshop.traffic import count_bytes

MOST_ELEMENTS = 32
BLOCK_SIZES = (2, 4, 8, 16)


def launch_grid(n: int = 20, block_size: int = 8) -> Explorer:
    """Which program touches which of `n` elements (at most 32), and which lanes the mask hides."""
    if not 1 <= n <= MOST_ELEMENTS:
        raise ValueError(f"n is {n}, but this picture has room for 1 to {MOST_ELEMENTS} elements")
    return Explorer(
        _draw_launch_grid,
        n=slider("N, elements", n, range(1, MOST_ELEMENTS + 1)),
        block_size=choice("BLOCK_SIZE", block_size, BLOCK_SIZES),
        program=slider("look at program", 0, range(MOST_ELEMENTS // BLOCK_SIZES[0]), steps=True),
    )


def _draw_launch_grid(n: int, block_size: int, program: int) -> Picture | None:
    programs = math.ceil(n / block_size)
    if program >= programs:
        return None
    lanes = programs * block_size
    offsets = range(program * block_size, (program + 1) * block_size)
    hidden = sum(offset >= n for offset in offsets)
    summary = (
        f"{count(programs, 'program')} of {count(block_size, 'lane')}: {count(lanes, 'lane')} for "
        f"{count(n, 'element')}, {lanes - n} masked off ({(lanes - n) / lanes:.0%})."
    )
    chosen = f"Program {program} has {count(block_size - hidden, 'element')} and {count(hidden, 'masked lane')}."

    left, side, per_line, line_height = 72, 38, 16, 36
    below = 14 + math.ceil(lanes / per_line) * line_height
    drawing = Drawing(WIDTH, below + 142, f"{summary} {chosen}")
    drawing.text(0, 32, "x", weight=600)
    elements = []
    for element in range(lanes):  # whose it is, and whether there is an element for it
        pid, here = element // block_size, element < n
        elements.append({
            "words": str(element) if here else "",
            "color": CYCLE[pid % len(CYCLE)],
            "crossed": not here,
            "strong": pid == program,
            "opacity": 0.6 if pid == program else 0.18,
            "note": f"program {pid}" if here else f"program {pid}: no element, masked",
        })  # fmt: skip
    for line in range(0, lanes, per_line):
        drawing.cells(left, 10 + line // per_line * line_height, side, 32, elements[line : line + per_line])
    drawing.text(0, below + 22, f"program {program}", weight=600)
    rows = {"lane": range(block_size), "offsets": offsets, "mask": [offset < n for offset in offsets]}
    for y, (name, values) in zip(range(below + 34, below + 136, 34), rows.items()):
        drawing.text(0, y + 20, name)
        colors = [CYCLE[program % len(CYCLE)] if offset < n else None for offset in offsets]
        drawing.cells(left, y, side, 30, [{"words": str(v), "color": c} for v, c in zip(values, colors)])
    code = f"offsets = {program} * {block_size} + tl.arange(0, {block_size});  mask = offsets < {n}"
    html = drawing.html() + paragraph(code, "code") + paragraph(summary) + paragraph(chosen)
    return Picture(html, "\n".join([code, summary, chosen]))


GRID_COLUMNS, GRID_ROWS = 32, 16


def memory_traffic(traffic: Callable[[], Any] | Mapping[str, tuple] | Any) -> Picture:
    """How often a kernel read and wrote each element of its tensors.

    traffic: a function that launches the kernel (`lambda: add(x, y)`), what `workshop.traffic.count_bytes`
    returned, or {name: (reads, writes)} with one integer count per element.
    """
    if callable(traffic):
        if not interpreting():
            words = "Reads and writes are counted only where kernels run without a GPU: set TRITON_INTERPRET=1."
            return Picture(paragraph(words), words)
        traffic = count_bytes(traffic)
    if not isinstance(traffic, Mapping):
        traffic = {tensor.name: (tensor.reads, tensor.writes) for tensor in traffic.tensors}
    pictures = [_draw_tensor_traffic(name, *map(np.asarray, counts)) for name, counts in traffic.items()]
    return Picture("".join(picture.html for picture in pictures), "\n".join(picture.text for picture in pictures))


def _draw_tensor_traffic(name: str, reads: np.ndarray, writes: np.ndarray) -> Picture:
    if reads.shape != writes.shape:
        raise ValueError(f"{name}: reads have shape {reads.shape}, writes {writes.shape}")
    heading = f"{name}, {' × '.join(map(str, reads.shape)) or '1'}: each element"
    html, said = "", []
    if reads.any() or not writes.any():
        said.append(f"{heading} read {times(reads)}")
        html += paragraph(said[-1]) + _heat(said[-1], reads, READ, False)
    if writes.any():
        unwritten, twice = int((writes == 0).sum()), int((writes > 1).sum())
        faults = f"; {unwritten} never (crossed)" if unwritten else ""
        faults += f"{',' if faults else ';'} {twice} more than once (framed)" if twice else ""
        said.append(f"{heading} written {times(writes)}{faults}")
        html += paragraph(said[-1], "wrong" if faults else "") + _heat(said[-1], writes, WRITE, True)
    return Picture(html, "\n".join(said))


def _heat(label: str, counts: np.ndarray, color: str, must_be_one: bool) -> str:
    """A grid of counts; a tensor larger than the grid is shown in tiles, each with its largest count."""
    if not counts.size:
        return ""
    if counts.ndim < 2:
        counts, most = counts.reshape(-1), (GRID_ROWS * GRID_COLUMNS,)
    else:
        counts, most = counts.reshape(-1, counts.shape[-1]), (GRID_ROWS, GRID_COLUMNS)
    highest, lowest = _tiles(counts, most, np.maximum), _tiles(counts, most, np.minimum)
    columns = min(highest.shape[-1], GRID_COLUMNS)
    side = min(30, WIDTH / columns)
    drawing = Drawing(WIDTH, math.ceil(highest.size / columns) * side + 2, label)
    looks = []
    for low, high in zip(lowest.flat, highest.flat, strict=True):
        unwritten, twice = must_be_one and low == 0, must_be_one and high > 1
        note = f"{high} times" if low == high else f"{low} to {high} times"
        paint = WRONG if unwritten or twice else color
        opacity = 0.08 + 0.6 * high / max(1, highest.max())
        looks.append(dict(words=str(high), color=paint, crossed=unwritten, strong=twice, opacity=opacity, note=note))
    drawing.cells(0, 0, side, side, looks, columns)
    if highest.size == counts.size:
        return drawing.html()
    tile = " × ".join(str(-(-size // shown)) for size, shown in zip(counts.shape, highest.shape, strict=True))
    return drawing.html() + paragraph(f"One cell shows up to {tile} elements: the largest of their counts.")


def _tiles(counts: np.ndarray, most: tuple[int, ...], combine: np.ufunc) -> np.ndarray:
    """`counts` with at most `most` tiles along each axis; a tile's elements are combined into one."""
    for axis, tiles in enumerate(most):
        if counts.shape[axis] > tiles:
            starts = np.arange(tiles) * counts.shape[axis] // tiles
            counts = combine.reduceat(counts, starts, axis=axis)
    return counts
