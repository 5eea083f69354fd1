"""Draws the course's figures: `python assets/draw.py` rewrites every SVG here, with the same bytes each time.

Each function below is one figure. Numbers in a worked example are computed here, never typed.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from pathlib import Path

from canvas import (
    BLUE,
    EDGE,
    GREEN,
    MARGIN,
    MUTED,
    ORANGE,
    PROGRAMS,
    PURPLE,
    READ,
    SKY,
    WIDTH,
    WRITE,
    WRONG,
    WRONG_INK,
    Canvas,
    tint,
)

FIGURES: dict[str, Callable[[], Canvas]] = {}
RIGHT = WIDTH - MARGIN


def figure(draw: Callable[[], Canvas]) -> Callable[[], Canvas]:
    """Registers a figure under its function's name."""
    FIGURES[draw.__name__] = draw
    return draw


# A language model, and the part of a lesson

LAYERS, SIZE, HEADS, KEY_HEADS, HEAD, INNER, WORDS = 32, 4096, 32, 8, 128, 14336, 128256  # of Llama 3 8B
MODEL = (
    ("embed", "norm", "q, k, v", "scores", "softmax", "values", "output", "add"),
    ("norm", "gate, up", "activation", "down", "add", "norm", "logits", "loss"),
)
DECODING = {"texts": 32, "context": 8192, "tokens": 32, "training": False}  # one new token for each text
TRAINING = {"texts": 4, "context": 4096, "tokens": 4 * 4096, "training": True}


def numbers_moved(texts: int, context: int, tokens: int, training: bool) -> dict[str, int]:
    """How many numbers each operation of the model reads and writes, if each is a kernel of its own.

    Training is forward and backward. A product of matrices has two more of its size in the backward pass.
    """

    def product(left: int, right: int, result: int) -> int:
        return (left + right + result) * (3 if training else 1)

    def linear(inputs: int, outputs: int) -> int:
        return product(tokens * inputs, inputs * outputs, tokens * outputs)

    def elementwise(count: int, forward: int, backward: int) -> int:
        return count * (forward + backward if training else forward)

    scores, keys, row = tokens * HEADS * context, texts * context * KEY_HEADS * HEAD, tokens * SIZE
    layer = {
        "norm": 2 * elementwise(row, 2, 3),
        "q, k, v": linear(SIZE, (HEADS + 2 * KEY_HEADS) * HEAD),
        "scores": product(tokens * HEADS * HEAD, keys, scores),
        "softmax": elementwise(scores, 2, 3),
        "values": product(scores, keys, tokens * HEADS * HEAD),
        "output": linear(HEADS * HEAD, SIZE),
        "add": 2 * elementwise(row, 3, 3),
        "gate, up": linear(SIZE, 2 * INNER),
        "activation": elementwise(tokens * INNER, 3, 5),
        "down": linear(INNER, SIZE),
    }
    moved = {name: LAYERS * count for name, count in layer.items()}
    moved["norm"] += elementwise(row, 2, 3)
    moved["embed"] = elementwise(row, 2, 2)
    moved["logits"] = linear(SIZE, WORDS)
    moved["loss"] = tokens * WORDS * (3 if training else 2)
    return moved


def layer(*lit: str) -> Canvas:
    """The operations of a language model, with a lesson's part lit, and its share of all bytes."""
    shares = {}
    for name, work in (("decoding", DECODING), ("training", TRAINING)):
        moved = numbers_moved(**work)
        share = sum(moved[each] for each in lit) / sum(moved.values())
        shares[name] = share, f"{share:.0%}" if share >= 0.095 else f"{share:.1%}" if share >= 0.001 else "below 0.1%"
    part = ", ".join(lit)
    canvas = Canvas(
        338,
        f"In a language model: {part}",
        f"The operations of a language model in their order, from the embedding to the loss. Lit: {part}. Their share "
        f"of all bytes that the model moves: {shares['decoding'][1]} in decoding, {shares['training'][1]} in training.",
    )
    width, height, step, left = 80, 38, 91, 22
    for row, first, last in ((0, 1, 7), (1, 0, 4)):
        canvas.box(left + first * step - 7, 68 + row * 82, (last - first) * step + width + 14, 62, dash="5 4")
    canvas.text(RIGHT - 4, 62, f"one layer, {LAYERS} times", 13, "end", fill=MUTED)
    for row, names in enumerate(MODEL):
        y = 80 + row * 82
        for index, name in enumerate(names):
            x, shines = left + index * step, name in lit
            fill, edge = (tint(ORANGE, 0.45), ORANGE) if shines else ("#ffffff", EDGE)
            canvas.box(x, y, width, height, fill, edge, line=2.6 if shines else 1.2)
            canvas.text(x + width / 2, y + 24, name, 13, "middle", weight=600 if shines else None)
            if index:
                canvas.arrow(x - step + width, y + height / 2, x - 1, y + height / 2, width=1.4)
    middle, end = left + width / 2, left + 7 * step + width / 2
    canvas.path(f"M{end} 118 L{end} 140 L{middle} 140 L{middle} 161")
    canvas.text(MARGIN, 240, "of all bytes:", 14, weight=600)
    for index, (name, (share, words)) in enumerate(shares.items()):
        y = 228 + index * 26
        canvas.text(128, y + 13, name, 14)
        canvas.box(200, y, 430, 16, "#ffffff", radius=3)
        canvas.box(200, y, max(2, 430 * share), 16, tint(ORANGE, 0.45), ORANGE, radius=3)
        canvas.text(642, y + 13, words, 14, weight=600)
    decoding, training = (f"{work['texts']} texts of {work['context']:,} tokens" for work in (DECODING, TRAINING))
    notes = (
        f"Llama 3 8B, each operation a kernel of its own. Decoding: {decoding}, and one more for each.",
        f"Training: {training}, forward and backward, without the optimizer.",
    )
    canvas.lines(MARGIN, 302, notes, 13, 18, fill=MUTED)
    return canvas


LIT = {
    "layer_add": ("add",),
    "layer_embedding": ("embed",),
    "layer_softmax": ("softmax",),
    "layer_activation": ("activation",),
    "layer_attention": ("scores", "softmax", "values"),
    "layer_loss": ("norm", "loss"),
    "layer_matmul": ("q, k, v", "output", "gate, up", "down", "logits"),
}
FIGURES.update({name: functools.partial(layer, *lit) for name, lit in LIT.items()})

# The launch grid and its memory


@figure
def launch_grid() -> Canvas:
    n, block = 14, 4
    programs = math.ceil(n / block)
    canvas = Canvas(
        300,
        "One launch, many programs",
        f"{n} elements and BLOCK_SIZE {block} make {programs} programs. Program k works on elements "
        f"{block}k to {block}k+{block - 1}. The last program has {programs * block - n} lanes without an "
        "element.",
    )
    side, left, top = 43, 36, 196
    for pid in range(programs):
        x, width = left + pid * block * side, block * side
        color = PROGRAMS[pid]
        canvas.labelled(x + 6, 62, width - 12, 40, f"program {pid}", tint(color), color, weight=600)
        canvas.text(x + width / 2, 128, f"{pid} * {block} + [0 1 2 3]", 13, "middle", mono=True)
        canvas.arrow(x + width / 2, 138, x + width / 2, top - 8)
        for offset in range(pid * block, (pid + 1) * block):
            canvas.cell(left + offset * side, top, side, 38, str(offset), color, hatched=offset >= n)
    canvas.text(left, top + 60, f"x in memory: N = {n} elements", 14, fill=MUTED)
    canvas.text(RIGHT - 12, top + 60, "no element: masked", 14, "end", fill=MUTED)
    canvas.text(left, top + 86, f"grid = (triton.cdiv({n}, {block}),) = ({programs},)", 14, mono=True)
    canvas.text(RIGHT - 12, top + 86, "same code in each program, only pid differs", 14, "end", fill=MUTED)
    return canvas


@figure
def masked_tail() -> Canvas:
    n, block = 21, 8
    pid = n // block
    offsets = range(pid * block, (pid + 1) * block)
    canvas = Canvas(
        392,
        "The last program: some lanes have no element",
        f"N is {n} and BLOCK_SIZE is {block}. In program {pid} the offsets {n} to {offsets[-1]} are past "
        "the end, so the mask is False in those lanes: they read nothing, hold other, and write nothing.",
    )
    left, width, height = 176, 69, 34
    top = {"lane": 60, "offsets": 106, "mask": 152, "memory": 218, "value": 304}
    notes = {"lane": f"tl.arange(0, {block})", "offsets": f"{pid} * {block} + lane", "mask": f"offsets < {n}"}
    for name, note in notes.items():
        canvas.text(MARGIN, top[name] + 15, name, 14, weight=600)
        canvas.text(MARGIN, top[name] + 33, note, 13, fill=MUTED, mono=True)
    canvas.text(MARGIN, top["memory"] + 22, "x in memory", 14, weight=600)
    canvas.text(MARGIN, top["value"] + 22, "value", 14, weight=600)
    for lane, offset in enumerate(offsets):
        x, live = left + lane * width, offset < n
        element, read = (f"x[{offset}]", READ) if live else ("", WRONG)
        canvas.cell(x, top["lane"], width, height, str(lane))
        canvas.cell(x, top["offsets"], width, height, str(offset))
        canvas.cell(x, top["mask"], width, height, str(live), GREEN if live else None)
        canvas.cell(x, top["memory"], width, height, element, read, hatched=not live)
        canvas.cell(x, top["value"], width, height, element or "0.0", READ if live else None)
        middle = x + width / 2
        if live:
            canvas.arrow(middle, 254, middle, 300, READ)
        else:
            canvas.line(middle - 6, 271, middle + 6, 283, WRONG, 2.2)
            canvas.line(middle - 6, 283, middle + 6, 271, WRONG, 2.2)
    dead = left + (n - offsets[0]) * width
    canvas.text((dead + left + block * width) / 2, 206, "not yours: out of bounds", 13, "middle", fill=WRONG_INK)
    canvas.text(MARGIN, 372, "value = tl.load(x_ptr + offsets, mask=mask, other=0.0)", 14, mono=True)
    canvas.text(RIGHT, 372, "a store uses the same mask", 14, "end", fill=MUTED)
    return canvas


@figure
def row_strides() -> Canvas:
    rows, columns, stride = 3, 5, 7
    canvas = Canvas(
        372,
        "A row does not have to end where the next one starts",
        f"A view of {rows} rows and {columns} columns in storage whose rows are {stride} elements apart. "
        f"Row r, column c lies at r times the row stride plus c. The {stride - columns} elements between "
        "rows belong to someone else.",
    )
    side, left, top = 52, 88, 72
    for row in range(rows):
        y = top + row * 44
        canvas.text(left - 14, y + 25, f"row {row}", 14, "end")
        for column in range(stride):
            color = PROGRAMS[row] if column < columns else None
            canvas.cell(
                left + column * side, y, side, 38, str(row * stride + column), color, column >= columns
            )
    canvas.text(left + columns * side / 2, top - 10, f"n_cols = {columns}", 13, "middle", fill=MUTED)
    canvas.text(left + (columns + stride) * side / 2, top - 10, "gap", 13, "middle", fill=MUTED)
    note = left + stride * side + 26
    canvas.lines(
        note,
        top + 14,
        ["The numbers count", "elements from x_ptr.", f"x.stride(0) = {stride}", "x.stride(1) = 1"],
        14,
        22,
    )
    strip, y = 36, 238
    canvas.text(MARGIN, y, "The same 19 elements, as memory sees them", 14, weight=600)
    for index in range((rows - 1) * stride + columns):
        row, column = divmod(index, stride)
        live = column < columns
        canvas.cell(
            MARGIN + 8 + index * strip,
            y + 12,
            strip,
            32,
            str(index),
            PROGRAMS[row] if live else None,
            not live,
        )
    canvas.text(MARGIN, y + 76, f"right:  x_ptr + row * {stride} + column", 14, mono=True)
    canvas.text(MARGIN + 330, y + 76, f"row 1, column 0 is element {stride}", 14, fill=MUTED)
    canvas.text(MARGIN, y + 102, f"wrong:  x_ptr + row * {columns} + column", 14, mono=True, fill=WRONG_INK)
    canvas.text(
        MARGIN + 330, y + 102, f"row 1, column 0 would be element {columns}: in the gap", 14, fill=MUTED
    )
    return canvas


# Tiles


def matrix(canvas: Canvas, x: float, y: float, rows: int, columns: int, side: float, text=None, color=None) -> None:
    """A matrix as cells. text(row, column) is written in a cell; color(row, column) is its colour, or None."""
    for row in range(rows):
        for column in range(columns):
            words = text(row, column) if text else ""
            shade = color(row, column) if color else None
            canvas.cell(x + column * side, y + row * side, side, side, words, shade)


@figure
def tile_offsets() -> Canvas:
    rows, columns, stride = (1, 2), (2, 3, 4, 5), 7
    canvas = Canvas(
        316,
        "A tile: a column of row numbers meets a row of column numbers",
        f"In a matrix with row stride {stride} a tile has the rows {rows[0]} and {rows[1]} and the columns "
        f"{columns[0]} to {columns[-1]}. The offset of an element is its row times {stride} plus its column, from "
        f"{rows[0] * stride + columns[0]} to {rows[-1] * stride + columns[-1]}.",
    )
    side, left, top = 40, 36, 84
    canvas.text(left, top - 14, "the matrix, with offsets", 14, fill=MUTED)
    matrix(
        canvas, left, top, 4, stride, side,
        lambda r, c: str(r * stride + c), lambda r, c: GREEN if r in rows and c in columns else None,
    )  # fmt: skip
    x = left + stride * side + 70
    canvas.text(x, top - 14, "rows[:, None] * 7", 13, mono=True)
    canvas.text(x + 130 + 4 * side, top - 14, "columns[None, :]", 13, "end", mono=True)
    for index, row in enumerate(rows):
        canvas.cell(x + 30, top + 52 + index * side, side + 8, side, str(row * stride), SKY)
    canvas.text(x + 98, top + 52 + side + 5, "+", 18, "middle")
    for index, column in enumerate(columns):
        canvas.cell(x + 130 + index * side, top, side, side, str(column), ORANGE)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            canvas.cell(
                x + 130 + j * side, top + 52 + i * side, side, side, str(row * stride + column), GREEN
            )
    canvas.text(left, 290, "offsets = rows[:, None] * row_stride + columns[None, :]", 14, mono=True)
    return canvas


@figure
def tile_transpose() -> Canvas:
    n, m, tile = 4, 6, 2
    canvas = Canvas(
        352,
        "A tile and its place in the transpose",
        f"A tile is read from rows 0 and 1 and columns 2 and 3 of a matrix of {n} rows and {m} columns. It is written "
        f"to rows 2 and 3 and columns 0 and 1 of the transpose, which has {m} rows and {n} columns.",
    )
    side, left, top = 38, 60, 84
    canvas.text(left, top - 14, "x", 14, weight=600)
    matrix(
        canvas, left, top, n, m, side,
        lambda r, c: str(r * m + c), lambda r, c: READ if r < tile and tile <= c < 2 * tile else None,
    )  # fmt: skip
    right = left + m * side + 200
    canvas.text(right, top - 14, "output", 14, weight=600)
    matrix(
        canvas, right, top, m, n, side,
        lambda r, c: str(c * m + r), lambda r, c: WRITE if c < tile and tile <= r < 2 * tile else None,
    )  # fmt: skip
    canvas.arrow(left + m * side + 8, top + side, right - 8, top + 3 * side)
    canvas.text(left, top + n * side + 34, "offset  row * 6 + column", 13, mono=True)
    canvas.text(left, top + n * side + 58, "becomes column * 4 + row", 13, mono=True)
    return canvas


@figure
def tile_column_sum() -> Canvas:
    n, m, tile = 6, 8, 2
    canvas = Canvas(
        372,
        "A tile walks down and adds",
        f"A matrix of {n} rows. One program has columns 0 to 3. It reads {tile} rows in each of {n // tile} rounds and "
        "adds them to a tile of sums. After the last round the rows of this tile are added: one sum for each column.",
    )
    side, left, top = 36, 60, 74
    matrix(canvas, left, top, n, m, side, color=lambda r, c: PROGRAMS[r // tile] if c < 4 else None)
    for index in range(n // tile):
        canvas.text(left - 10, top + (index * tile + 1) * side + 4, f"{index + 1}", 13, "end", fill=MUTED)
    x = left + m * side + 110
    canvas.text(x, top + 20, "sums, a tile in float32", 14, weight=600)
    matrix(canvas, x, top + 34, tile, 4, side, color=lambda r, c: PURPLE)
    canvas.arrow(left + m * side + 14, top + 34 + side, x - 12, top + 34 + side)
    canvas.text(left + m * side + 20, top + 22 + side, "+= each", 13, fill=MUTED)
    canvas.arrow(x + 2 * side, top + 34 + tile * side + 8, x + 2 * side, top + 34 + tile * side + 52)
    canvas.text(x + 2 * side + 14, top + 34 + tile * side + 36, "tl.sum(sums, axis=0)", 13, mono=True)
    matrix(canvas, x, top + 34 + tile * side + 60, 1, 4, side, color=lambda r, c: WRITE)
    canvas.text(left, top + n * side + 34, "columns 0 to 3: this program", 13, fill=MUTED)
    canvas.text(RIGHT, top + n * side + 34, "output: one number for each column", 13, "end", fill=MUTED)
    return canvas


@figure
def decode() -> Canvas:
    t, d = 6, 4
    canvas = Canvas(
        350,
        "Decoding: one query reads the whole cache",
        f"One query of {d} numbers meets {t} keys and gives {t} scores. Softmax makes weights of them. The weights mix "
        f"the {t} values into one output of {d} numbers. Each key and each value is read once.",
    )
    side, top = 32, 104
    canvas.text(36, top - 16, "q", 14, weight=600)
    matrix(canvas, 36, top, 1, d, side, color=lambda r, c: GREEN)
    canvas.text(200, top - 16, "k, the keys", 14, weight=600)
    matrix(canvas, 200, top, t, d, side, color=lambda r, c: READ)
    canvas.text(378, top - 16, "weights", 14, weight=600)
    matrix(canvas, 388, top, t, 1, side, color=lambda r, c: PURPLE)
    canvas.text(460, top - 16, "v, the values", 14, weight=600)
    matrix(canvas, 460, top, t, d, side, color=lambda r, c: READ)
    canvas.text(622, top - 16, "output", 14, weight=600)
    matrix(canvas, 616, top, 1, d, side - 4, color=lambda r, c: WRITE)
    canvas.arrow(36 + d * side + 6, top + side / 2, 194, top + side / 2)
    canvas.arrow(200 + d * side + 6, top + t * side / 2, 382, top + t * side / 2)
    canvas.text(344, top + t * side + 26, "softmax of q·k / √d", 13, "middle", fill=MUTED)
    canvas.arrow(460 + d * side + 4, top + side / 2, 612, top + side / 2)
    canvas.text(524, top + t * side + 26, "weight × row, added", 13, "middle", fill=MUTED)
    return canvas


@figure
def split_decode() -> Canvas:
    parts, rows = 3, 3
    canvas = Canvas(
        350,
        "Split the cache, then merge",
        f"The cache of one head is cut into {parts} parts. A program walks over each part. It writes its maximum m, "
        "its sum s and its vector acc. A second kernel rescales each part to the common maximum and adds them.",
    )
    side, left, top = 24, 40, 80
    for part in range(parts):
        y = top + part * (rows * side + 12)
        matrix(canvas, left, y, rows, 6, side, color=lambda r, c, p=part: PROGRAMS[p])
        canvas.text(left + 6 * side + 16, y + 1.5 * side + 5, f"program {part}", 13)
        x = left + 6 * side + 110
        canvas.arrow(x - 20, y + 1.5 * side, x + 14, y + 1.5 * side)
        for index, (name, width) in enumerate((("m", 36), ("s", 36), ("acc", 84))):
            start = x + 22 + (0, 42, 84)[index]
            canvas.cell(start, y + 0.7 * side, width, 38, f"{name}{part}", PROGRAMS[part])
        canvas.arrow(x + 198, y + 1.5 * side, x + 244, top + 1.5 * (rows * side + 12) - 6)
    x = left + 6 * side + 362
    rule = ["merge", "m = max of m_{p}", "× exp(m_{p} − m), add"]
    canvas.labelled(x, top + 76, 180, 76, rule, tint(PURPLE), PURPLE, 13)
    canvas.text(x + 90, top + 182, "acc / s is the output", 13, "middle", fill=MUTED)
    return canvas


def two_kernels(forward: str, backward: str, kept: str) -> Canvas:
    """What the two kernels of an operation compute, and which tensor of the first one the second one reads."""
    canvas = Canvas(
        266,
        "Forward and backward, two kernels",
        "Forward: a kernel reads x and writes y, from left to right, and the loss L stands at the end. Backward: dy, "
        f"the gradient of y, comes from the right. A second kernel reads {kept} and dy and writes dx, the gradient of "
        "x.",
    )
    rows = {"forward": (92, "x", "y", READ, forward), "backward": (196, "dx", "dy", WRITE, backward)}
    for name, (y, left, right, color, words) in rows.items():
        canvas.text(MARGIN, y + 5, name, 14, weight=600)
        canvas.labelled(130, y - 22, 70, 44, left, tint(color), color, 15, mono=True)
        canvas.labelled(280, y - 26, 200, 52, [f"{name} kernel", words], size=13)
        canvas.labelled(560, y - 22, 70, 44, right, tint(color), color, 15, mono=True)
    canvas.arrow(204, 92, 276, 92)
    canvas.arrow(484, 92, 556, 92)
    canvas.arrow(634, 92, 690, 92)
    canvas.text(698, 98, "L", 18, weight=600)
    canvas.arrow(276, 196, 204, 196)
    canvas.arrow(556, 196, 484, 196)
    canvas.arrow(704, 112, 636, 186)
    side = -1 if kept == "x" else 1  # of the middle, at 380
    canvas.arrow(380 + side * 186, 118, 380 + side * 90, 166, dash="5 4")
    canvas.text(380 + side * 60, 146, f"{kept} is kept", 13, "start" if kept == "x" else "end", fill=MUTED)
    return canvas


@figure
def backward() -> Canvas:
    return two_kernels("softmax", "y · (dy − Σ y · dy)", "y")


@figure
def norm_backward() -> Canvas:
    return two_kernels("x · r · w", "r · (dy · w − x · r² · mean)", "x")


@figure
def matmul() -> Canvas:
    canvas = Canvas(
        372,
        "A tile of c, and its walk along k",
        "c = a b. A tile of c needs a strip of rows of a, BLOCK_M high, and a strip of columns of b, BLOCK_N wide. A "
        "program walks along k: in each step it multiplies a tile of a, BLOCK_K wide, by a tile of b, BLOCK_K high, "
        "and adds the product to acc.",
    )
    wide, side, left, right, top, below = 230, 130, 110, 400, 60, 204
    canvas.box(right, top, side, side, "#ffffff")
    canvas.box(left, below, wide, side, "#ffffff")
    canvas.box(right, below, side, side, "#ffffff")
    canvas.box(left, below + 44, wide, 42, tint(BLUE, 0.12), READ)
    canvas.box(right + 46, top, 42, side, tint(BLUE, 0.12), READ)
    canvas.box(left + 92, below + 44, 46, 42, tint(BLUE, 0.5), READ, line=2.6)
    canvas.box(right + 46, top + 48, 42, 34, tint(BLUE, 0.5), READ, line=2.6)
    canvas.labelled(right + 46, below + 44, 42, 42, "acc", tint(ORANGE, 0.3), WRITE, 13)
    canvas.arrow(left + 142, below + 65, left + 200, below + 65)
    canvas.arrow(right + 67, top + 86, right + 67, top + 120)
    canvas.text(left - 14, below + 70, "BLOCK_M", 13, "end", mono=True)
    canvas.text(right + 67, top - 9, "BLOCK_N", 13, "middle", mono=True)
    canvas.text(left + 115, below + 104, "BLOCK_K", 13, "middle", mono=True)
    canvas.text(left + 6, below + 22, "a (m × k)", 14, weight=600)
    canvas.text(right + side + 12, top + 22, "b (k × n)", 14, weight=600)
    canvas.text(right + side + 12, below + 22, "c (m × n)", 14, weight=600)
    canvas.text(right + side + 12, below + 70, "acc = tl.dot(a, b, acc)", 13, mono=True)
    words = "bold frame: one step. The next step goes along k, to the right in a and down in b."
    canvas.text(MARGIN, 360, words, 13, fill=MUTED)
    return canvas


@figure
def memory_hierarchy() -> Canvas:
    levels = [
        (
            "registers",
            "one thread's own",
            ["256 KiB per SM", "132 SMs"],
            ["512 KiB per CU", "304 CUs"],
            GREEN,
        ),
        ("shared memory, LDS", "one program's own", ["228 KiB per SM"], ["64 KiB per CU"], SKY),
        ("L2 cache", "many programs", ["60 MB"], ["4 MB per XCD", "8 XCDs"], PURPLE),
        ("Infinity Cache", "all programs", ["none"], ["256 MB"], ORANGE),
        (
            "HBM",
            "all programs: your tensors",
            ["141 GB, 4.8 TB/s (datasheet)", "copy: 4.3 TB/s (measured)"],
            ["192 GB", "5.3 TB/s (datasheet)"],
            BLUE,
        ),
    ]
    canvas = Canvas(
        438,
        "Where a number can live",
        "From fastest and smallest to slowest and largest: registers, shared memory (AMD: LDS), L2 cache, "
        "Infinity Cache (AMD MI300X only), HBM; with the sizes on NVIDIA H200 and AMD MI300X.",
    )
    middle, columns = 158, (288, 518)
    for x, name in zip(columns, ("NVIDIA H200", "AMD MI300X"), strict=True):
        canvas.text(x + 109, 66, name, 15, "middle", weight=600)
    for index, (name, scope, *cards, color) in enumerate(levels):
        y, width = 78 + index * 64, 160 + index * 20
        canvas.box(middle - width / 2, y, width, 54, tint(color), color)
        canvas.text(middle, y + 23, name, 14, "middle", weight=600)
        canvas.text(middle, y + 42, scope, 13, "middle", fill=MUTED)
        for x, words in zip(columns, cards, strict=True):
            canvas.labelled(x, y, 218, 54, words, "#ffffff", size=14)
    canvas.text(
        MARGIN,
        418,
        "Top is fastest and smallest. Sizes: ROCm's GPU table, NVIDIA's datasheet, the driver.",
        13,
        fill=MUTED,
    )
    return canvas


# Softmax, as an algorithm

ROW = (1.0, 3.0, 2.0, 5.0)


def safe_steps(row: tuple[float, ...]) -> dict[str, list[float]]:
    """Running maximum, then running sum, then outputs: the three passes of safe softmax."""
    maxima = [max(row[: k + 1]) for k in range(len(row))]
    parts = [math.exp(value - maxima[-1]) for value in row]
    sums = [sum(parts[: k + 1]) for k in range(len(row))]
    return {"m": maxima, "part": parts, "d": sums, "y": [part / sums[-1] for part in parts]}


def online_steps(row: tuple[float, ...]) -> dict[str, list[float]]:
    """Maximum and sum together: when the maximum grows, the old sum is rescaled."""
    m, d = -math.inf, 0.0
    steps: dict[str, list[float]] = {"m": [], "rescale": [], "d": []}
    for value in row:
        m_new = max(m, value)
        rescale = math.exp(m - m_new)
        d = d * rescale + math.exp(value - m_new)
        m = m_new
        for name, result in (("m", m), ("rescale", rescale), ("d", d)):
            steps[name].append(result)
    return steps | {"y": [math.exp(value - m) / d for value in row]}


def pass_card(canvas: Canvas, x: float, width: float, heading: str, formulas: list[str], color: str) -> None:
    canvas.box(x, 58, width, 96, tint(color, 0.18), color)
    canvas.text(x + 14, 82, heading, 14, weight=600)
    canvas.lines(x + 14, 110, formulas, 14, 26)


def worked_example(
    canvas: Canvas, top: float, rows: list[tuple[str, list[float], str | None]], grew: list[bool]
) -> None:
    """A table with one column per element; a column is framed where the maximum grew."""
    left, width, height = 276, 112, 30
    for row, (label, values, color) in enumerate(rows):
        y = top + row * (height + 4)
        canvas.text(left - 18, y + 20, label, 14, "end")
        for column, value in enumerate(values):
            words = f"{value:g}" if value == int(value) else f"{value:.4f}"
            canvas.cell(left + column * width, y, width - 6, height, words, color)
    for column, up in enumerate(grew):
        if up:
            frame = len(rows) * (height + 4) + 4
            canvas.box(
                left + column * width - 4, top - 4, width + 2, frame, "none", ORANGE, dash="6 4", line=2
            )


@figure
def safe_softmax() -> Canvas:
    steps = safe_steps(ROW)
    canvas = Canvas(
        386,
        "Safe softmax: three passes over the row",
        "Pass 1 finds the maximum m. Pass 2 adds up exp(x minus m) into d. Pass 3 divides each exp(x minus "
        f"m) by d. Worked through for the row {', '.join(f'{value:g}' for value in ROW)}.",
    )
    pass_card(canvas, 24, 216, "pass 1: the maximum", ["m_{k} = max(m_{k-1}, x_{k})"], SKY)
    pass_card(canvas, 252, 248, "pass 2: the sum", ["d_{k} = d_{k-1} + exp(x_{k} − m_{N})"], GREEN)
    pass_card(canvas, 512, 224, "pass 3: divide", ["y_{k} = exp(x_{k} − m_{N}) / d_{N}"], PURPLE)
    canvas.text(38, 138, "first, so nothing overflows", 13, fill=MUTED)
    canvas.text(266, 138, "each term is at most 1", 13, fill=MUTED)
    canvas.text(526, 138, "the row adds up to 1", 13, fill=MUTED)
    rows = [
        ("x_{k}", list(ROW), None),
        ("m_{k}", steps["m"], SKY),
        ("exp(x_{k} − m_{N})", steps["part"], None),
        ("d_{k}", steps["d"], GREEN),
        ("y_{k}", steps["y"], PURPLE),
    ]
    worked_example(canvas, 176, rows, [False] * len(ROW))
    canvas.text(MARGIN, 368, "x is read three times, y is written once.", 14, fill=MUTED)
    return canvas


@figure
def online_softmax() -> Canvas:
    steps = online_steps(ROW)
    assert math.isclose(steps["d"][-1], safe_steps(ROW)["d"][-1])
    canvas = Canvas(
        406,
        "Online softmax: maximum and sum in one pass",
        "Pass 1 keeps the maximum m and the sum d together; when the maximum grows, the old sum is "
        "multiplied by exp(old m minus new m). Pass 2 divides. Worked through for the row "
        f"{', '.join(f'{value:g}' for value in ROW)}.",
    )
    pass_card(
        canvas,
        24,
        464,
        "pass 1: both together, from m_{0} = −∞, d_{0} = 0",
        ["m_{k} = max(m_{k-1}, x_{k})", "d_{k} = d_{k-1} · exp(m_{k-1} − m_{k}) + exp(x_{k} − m_{k})"],
        GREEN,
    )
    pass_card(canvas, 500, 236, "pass 2: divide", ["y_{k} = exp(x_{k} − m_{N}) / d_{N}"], PURPLE)
    canvas.text(514, 138, "the row adds up to 1", 13, fill=MUTED)
    rows = [
        ("x_{k}", list(ROW), None),
        ("m_{k}", steps["m"], SKY),
        ("rescale: exp(m_{k-1} − m_{k})", steps["rescale"], ORANGE),
        ("d_{k}", steps["d"], GREEN),
        ("y_{k}", steps["y"], PURPLE),
    ]
    grew = [k > 0 and steps["rescale"][k] < 1 for k in range(len(ROW))]
    worked_example(canvas, 176, rows, grew)
    note = f"The last d is {steps['d'][-1]:.4f}, as in three passes. x is read twice, y is written once."
    canvas.text(MARGIN, 370, "Dashed: the maximum grew, so the old sum is rescaled.", 14, fill=MUTED)
    canvas.text(MARGIN, 391, note, 14, fill=MUTED)
    return canvas


# How often a row crosses the memory bus


def dataflow(title: str, description: str, passes: list[tuple[str, str]]) -> Canvas:
    """HBM on the left, one program on the right; `passes`, top to bottom, are ("read" | "write", purpose)."""
    float32 = 4
    crossings = len(passes)
    gap = 46
    canvas = Canvas(186 + crossings * gap, title, description)
    top, height = 62, crossings * gap + 26
    canvas.labelled(MARGIN, top, 150, height, ["HBM", "x and y"], tint(BLUE, 0.12), BLUE, weight=600)
    canvas.box(546, top, 190, height, tint(GREEN, 0.12), GREEN)
    canvas.text(641, top + height / 2 - 4, "one program", 14, "middle", weight=600)
    canvas.text(641, top + height / 2 + 18, "registers", 14, "middle", fill=MUTED)
    for index, (way, purpose) in enumerate(passes):
        y = top + 38 + index * gap
        start, end = (178, 540) if way == "read" else (542, 180)
        canvas.arrow(
            start, y, end, y, READ if way == "read" else WRITE, 3, dash=None if way == "read" else "9 4"
        )
        canvas.text(360, y - 9, f"{way}: {purpose}", 14, "middle")
    y = top + height + 24
    canvas.text(MARGIN, y + 22, "one float32 element:", 14)
    for index, (way, _) in enumerate(passes):
        canvas.cell(178 + index * 58, y, 54, 32, f"{float32} B", READ if way == "read" else WRITE)
    canvas.text(178 + crossings * 58 + 8, y + 22, f"= {float32 * crossings} bytes", 14, weight=600)
    limit = f"uncached, at most 2/{crossings} = {2 / crossings:.0%} of a copy's speed"
    canvas.text(
        MARGIN,
        y + 56,
        f"A copy moves 8 bytes: {'no kernel can do with fewer' if crossings == 2 else limit}.",
        14,
        fill=MUTED,
    )
    return canvas


@figure
def dataflow_naive() -> Canvas:
    return dataflow(
        "Naive softmax: each row is read three times",
        "Three arrows from HBM to the program, for the maximum, the sum and the division, and one arrow back "
        "with the result: 16 bytes for each float32 element.",
        [("read", "the maximum"), ("read", "the sum"), ("read", "again, to divide"), ("write", "the result")],
    )


@figure
def dataflow_online() -> Canvas:
    return dataflow(
        "Online softmax: each row is read twice",
        "Two arrows from HBM to the program, for maximum and sum together and for the division, and one "
        "arrow back with the result: 12 bytes for each float32 element.",
        [("read", "maximum and sum together"), ("read", "again, to divide"), ("write", "the result")],
    )


@figure
def dataflow_fused() -> Canvas:
    return dataflow(
        "Fused softmax: each row is read once and stays",
        "One arrow from HBM to the program, which keeps the whole row in registers, and one arrow back "
        "with the result: 8 bytes for each float32 element.",
        [("read", "the whole row, into registers"), ("write", "the result")],
    )


@figure
def hero() -> Canvas:
    """Softmax in four ways, each as the bytes that cross the memory's wall for one float32 element."""
    ways = [
        ("five torch operations", "lesson 2, the start", 5, 3),
        ("naive: three passes", "lesson 2", 3, 1),
        ("online: two passes", "lesson 3", 2, 1),
        ("fused: one pass", "lesson 4", 1, 1),
    ]
    canvas = Canvas(
        96 + 58 * len(ways),
        "What you will build: the same softmax with a quarter of the bytes",
        "Bytes that are read and written for each float32 element of a large matrix: 32 in five torch operations, 16 "
        "in a naive kernel, 12 with online softmax, 8 in a fused kernel, as many as a plain copy.",
    )
    for index, (name, lesson, reads, writes) in enumerate(ways):
        y = 62 + 58 * index
        canvas.text(MARGIN, y + 15, name, 14, weight=600)
        canvas.text(MARGIN, y + 34, lesson, 13, fill=MUTED)
        for place in range(reads + writes):
            canvas.cell(204 + place * 54, y, 50, 34, "4 B", READ if place < reads else WRITE)
        total = 4 * (reads + writes)
        words = f"= {total} bytes" + (", a copy's" if total == 8 else "")
        canvas.text(204 + (reads + writes) * 54 + 8, y + 22, words, 14, weight=600)
    y = 62 + 58 * len(ways)
    canvas.cell(204, y - 2, 22, 18, "", READ)
    canvas.text(234, y + 12, "read from memory", 13)
    canvas.cell(374, y - 2, 22, 18, "", WRITE)
    canvas.text(404, y + 12, "written to memory", 13)
    return canvas


@figure
def five_ops_traffic() -> Canvas:
    # Each operation: elements read and written, as (multiples of M·N, multiples of M).
    steps = [
        ("m = x.amax(dim=1)", (1, 0), (0, 1)),
        ("z = x − m", (1, 1), (1, 0)),
        ("e = exp(z)", (1, 0), (1, 0)),
        ("d = e.sum(dim=1)", (1, 0), (0, 1)),
        ("y = e / d", (1, 1), (1, 0)),
    ]

    def amount(whole: int, rows: int) -> str:
        terms = ((whole, "MN"), (rows, "M"))
        return " + ".join(f"{count if count > 1 else ''}{unit}" for count, unit in terms if count)

    totals = [
        tuple(sum(column) for column in zip(*(step[way] for step in steps), strict=True)) for way in (1, 2)
    ]
    read, written = (amount(*total) for total in totals)
    canvas = Canvas(
        390,
        "Five torch operations against one fused kernel",
        f"Softmax of an M by N tensor in five operations reads {read} elements and writes {written}; one "
        "fused kernel reads MN and writes MN.",
    )
    left, scale = 212, 40

    def bar(x: float, y: float, whole: int, rows: int, color: str) -> None:
        width = whole * scale + rows * 8
        canvas.box(
            x, y, width, 22, tint(color, 0.45), color, radius=3, dash="5 3" if color == WRITE else None
        )

    def entry(y: float, name: str, reads: tuple[int, int], writes: tuple[int, int], mono: bool) -> None:
        canvas.text(MARGIN, y + 16, name, 14, mono=mono, weight=None if mono else 600)
        bar(left, y, *reads, READ)
        canvas.text(left + reads[0] * scale + reads[1] * 8 + 8, y + 16, amount(*reads), 13)
        bar(left + 312, y, *writes, WRITE)
        canvas.text(left + 312 + writes[0] * scale + writes[1] * 8 + 8, y + 16, amount(*writes), 13)

    canvas.text(left, 70, "elements read", 14, weight=600)
    canvas.text(left + 312, 70, "elements written", 14, weight=600)
    for index, step in enumerate(steps):
        entry(84 + index * 34, *step, mono=True)
    canvas.line(MARGIN, 262, RIGHT, 262, EDGE)
    entry(276, "five operations", *totals, mono=False)
    entry(310, "one fused kernel", (1, 0), (1, 0), mono=False)
    note = "M rows of N columns. For large N: 8MN against 2MN elements, four times the traffic."
    canvas.text(MARGIN, 364, note, 14, fill=MUTED)
    return canvas


# Programs, units and waves


@figure
def persistent_programs() -> Canvas:
    programs, rows = 4, 10
    canvas = Canvas(
        372,
        "Persistent programs: start once, take row after row",
        f"{programs} programs share {rows} rows. Program p takes rows p, p + {programs}, p + "
        f"{2 * programs}, and so on, until the rows run out.",
    )
    top, height = 66, 25
    for row in range(rows):
        pid = row % programs
        y = top + row * height
        canvas.text(MARGIN + 52, y + 17, f"row {row}", 13, "end", fill=MUTED)
        canvas.box(MARGIN + 64, y + 1, 300, height - 3, tint(PROGRAMS[pid], 0.4), PROGRAMS[pid], radius=3)
        canvas.text(MARGIN + 214, y + 17, f"program {pid}", 13, "middle")
    x = 430
    canvas.text(x, top + 14, "each program runs", 14, weight=600)
    code = [
        "pid = tl.program_id(0)",
        "step = tl.num_programs(0)",
        "for row in tl.range(",
        "        pid, n_rows, step):",
        "    ...",
    ]
    canvas.lines(x, top + 42, code, 14, 22, mono=True)
    for pid in range(programs):
        taken = ", ".join(str(row) for row in range(pid, rows, programs))
        y = top + 152 + pid * 27
        canvas.box(x, y, 18, 18, tint(PROGRAMS[pid], 0.4), PROGRAMS[pid], radius=3)
        canvas.text(x + 28, y + 14, f"program {pid}: rows {taken}", 14)
    note = "As many programs as the GPU runs at once: no start-up per row, loads overlap the previous row."
    canvas.text(MARGIN, 352, note, 14, fill=MUTED)
    return canvas


@figure
def occupancy_cu() -> Canvas:
    simds, registers, most_waves, granule = 4, 512, 8, 8
    used, num_warps, lds, lds_total = 114, 4, 16, 64 * 1024
    allocated = math.ceil(used / granule) * granule
    per_simd = min(most_waves, registers // allocated)
    by_registers = per_simd * simds // num_warps
    by_lds = lds_total // lds
    groups = min(by_registers, by_lds)
    canvas = Canvas(
        414,
        "Occupancy: how many waves fit a compute unit (CDNA3)",
        f"One compute unit has {simds} SIMDs with {registers} vector registers per lane each. A wave that "
        f"uses {used} of them is given {allocated}, so {per_simd} waves fit each SIMD, of at most "
        f"{most_waves}. The 64 KiB of LDS allow {by_lds} programs of {lds} bytes. The registers are the "
        "limit.",
    )
    left, width = 112, 624
    for simd in range(simds):
        y = 66 + simd * 46
        canvas.text(MARGIN, y + 23, f"SIMD {simd}", 14, weight=600)
        canvas.box(left, y, width, 36, "#ffffff", radius=3)
        for wave in range(per_simd):
            share, color = width * allocated / registers, PROGRAMS[wave]
            words = f"program {wave}: {allocated}"
            canvas.labelled(left + wave * share, y, share, 36, words, tint(color, 0.35), color, 13)
    unused = registers - per_simd * allocated
    note = f"{registers} vector registers per lane, {unused} unused. Each program has one wave on each SIMD."
    canvas.text(left, 266, note, 13, fill=MUTED)
    canvas.text(MARGIN, 301, "LDS", 14, weight=600)
    canvas.box(left, 280, width, 32, "#ffffff", radius=3)
    canvas.box(left, 280, 6, 32, tint(SKY, 0.6), SKY, radius=2)
    canvas.text(left + 20, 301, f"{groups} programs × {lds} bytes of {lds_total} bytes", 13)
    limits = [
        f"registers: {used} used, {allocated} given (steps of {granule}): ⌊{registers} / {allocated}⌋ = "
        f"{per_simd} waves per SIMD: the limit",
        f"slots: {most_waves} waves per SIMD      LDS: ⌊{lds_total} / {lds}⌋ = {by_lds} programs per CU",
    ]
    canvas.text(MARGIN, 344, limits[0], 14, weight=600)
    canvas.text(MARGIN, 368, limits[1], 14)
    note = f"Example: fused softmax, N = 8192, num_warps = {num_warps}, compiled for gfx942 by Triton 3.7.1."
    canvas.text(MARGIN, 394, note, 13, fill=MUTED)
    return canvas


@figure
def amd_wave_load() -> Canvas:
    lanes, width_bytes, element = 64, 16, 4
    canvas = Canvas(
        336,
        "One wide load moves a kilobyte (CDNA: 64 lanes to a wave)",
        f"buffer_load_dwordx4: each of {lanes} lanes loads {width_bytes} bytes that lie side by side, "
        f"{lanes * width_bytes} bytes in one instruction. buffer_load_dword: each lane loads {element} "
        f"bytes, {lanes * element} bytes, so the same kilobyte takes four instructions.",
    )
    side = 34

    def lane_group(x: float, y: float, name: str, first: int, count: int, color: str) -> None:
        canvas.box(x - 3, y - 3, count * side + 6, 40, "none", color, radius=5, line=2)
        for index in range(count):
            canvas.cell(x + index * side, y, side, 34, str(first + index), color)
        canvas.text(x + count * side / 2, y + 56, name, 13, "middle")

    canvas.text(MARGIN, 72, "buffer_load_dwordx4", 14, weight=600, mono=True)
    canvas.text(
        RIGHT,
        72,
        f"{lanes} lanes × {width_bytes} bytes = {lanes * width_bytes} bytes, one instruction",
        14,
        "end",
    )
    for index, lane in enumerate((0, 1, 2)):
        lane_group(32 + index * 150, 92, f"lane {lane}", lane * 4, 4, PROGRAMS[lane])
    canvas.text(522, 115, "…", 18, "middle")
    lane_group(590, 92, f"lane {lanes - 1}", (lanes - 1) * 4, 4, PROGRAMS[3])
    canvas.line(MARGIN, 172, RIGHT, 172, EDGE)
    canvas.text(MARGIN, 202, "buffer_load_dword", 14, weight=600, mono=True)
    canvas.text(
        RIGHT,
        202,
        f"{lanes} lanes × {element} bytes = {lanes * element} bytes, four instructions for as much",
        14,
        "end",
    )
    for lane in range(7):
        lane_group(32 + lane * 64, 222, f"lane {lane}", lane, 1, PROGRAMS[lane % 4])
    canvas.text(522, 245, "…", 18, "middle")
    lane_group(590, 222, f"lane {lanes - 1}", lanes - 1, 1, PROGRAMS[3])
    note = "A numbered cell is one float32 element. A lane's wide load needs aligned neighbours."
    canvas.text(MARGIN, 314, note, 14, fill=MUTED)
    return canvas


# Dropout and grading


@figure
def dropout_fused() -> Canvas:
    canvas = Canvas(
        416,
        "Leaky ReLU and dropout: op by op, and fused",
        "Op by op, each step reads its input from HBM and writes its result back. Fused, one kernel reads x "
        "once, makes the mask in registers from the seed and the offsets with Philox, and writes y once.",
    )
    steps = ["leaky_relu", "random u", "u ≥ p", "where", "÷ (1 − p)"]
    canvas.text(MARGIN, 70, "op by op: every step goes through HBM", 14, weight=600)
    canvas.labelled(MARGIN, 148, 712, 34, "HBM: x, activation, u, mask, kept, y", tint(BLUE, 0.12), BLUE)
    # (reads, writes) of each step: the random numbers need no input, where takes two.
    for index, (step, (reads, writes)) in enumerate(
        zip(steps, [(1, 1), (0, 1), (1, 1), (2, 1), (1, 1)], strict=True)
    ):
        x = 34 + index * 142
        canvas.labelled(x, 84, 124, 32, step, "#ffffff", mono=True, size=13)
        for slot in range(reads):
            canvas.arrow(x + 22 + slot * 22, 146, x + 22 + slot * 22, 119, READ)
        for slot in range(writes):
            canvas.arrow(x + 100 - slot * 22, 118, x + 100 - slot * 22, 145, WRITE, dash="5 3")
    canvas.text(MARGIN, 226, "fused: one kernel, one read and one write", 14, weight=600)
    canvas.box(150, 240, 462, 124, tint(GREEN, 0.1), GREEN)
    canvas.labelled(MARGIN, 256, 88, 36, "x", tint(BLUE, 0.12), BLUE, mono=True)
    canvas.labelled(MARGIN, 312, 88, 36, "seed", "#ffffff", mono=True)
    canvas.labelled(648, 256, 88, 36, "y", tint(BLUE, 0.12), BLUE, mono=True)
    canvas.labelled(166, 256, 120, 36, "leaky_relu", "#ffffff", mono=True, size=13)
    canvas.labelled(166, 312, 200, 36, "Philox(seed, offsets)", "#ffffff", mono=True, size=13)
    canvas.labelled(396, 312, 70, 36, "u ≥ p", "#ffffff", mono=True, size=13)
    canvas.labelled(440, 256, 156, 36, "where, ÷ (1 − p)", "#ffffff", mono=True, size=13)
    canvas.arrow(114, 274, 163, 274, READ, 2.6)
    canvas.arrow(114, 330, 163, 330)
    canvas.arrow(288, 274, 437, 274)
    canvas.arrow(368, 330, 393, 330)
    canvas.path("M468 330 L518 330 L518 295")
    canvas.text(528, 336, "mask", 13, fill=MUTED)
    canvas.arrow(598, 274, 645, 274, WRITE, 2.6, dash="5 3")
    canvas.text(
        MARGIN,
        394,
        "solid blue: read from HBM     dashed orange: written to HBM     grey: registers",
        13,
        fill=MUTED,
    )
    return canvas


def main() -> None:
    folder = Path(__file__).parent
    for name, draw in FIGURES.items():
        (folder / f"{name}.svg").write_text(draw().svg(), encoding="utf-8", newline="\n")
    print(f"{len(FIGURES)} figures drawn")


if __name__ == "__main__":
    sys.exit(main())
