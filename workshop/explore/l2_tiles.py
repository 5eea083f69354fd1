"""Which tiles of a product are computed at the same time, and how many strips of a and of b they need together."""

from __future__ import annotations

from workshop.explore.controls import Explorer, slider
from workshop.picture import CYCLE, READ, WIDTH, Drawing, Picture, paragraph
from workshop.words import count

DOWN = ACROSS = 16  # tiles of c
AT_ONCE = 32  # programs that run together
GROUPS = (1, 2, 4, 8)
LIT, PLAIN = (READ, 0.45), ("currentColor", 0.04)


def l2_tiles(group: int = 1) -> Explorer:
    """16 × 16 tiles, of which 32 are computed at once, in groups of `group` rows of tiles."""
    return Explorer(
        _draw,
        group=slider("group, rows of tiles", group, GROUPS),
        wave=slider("wave", 0, range(DOWN * ACROSS // AT_ONCE), steps=True),
    )


def tile_of(pid: int, down: int, across: int, group: int) -> tuple[int, int]:
    """The row and column of the tile that a program computes: column by column in groups of rows."""
    first = pid // (group * across) * group
    height = min(down - first, group)
    within = pid % (group * across)
    return first + within % height, within // height


def strips(first: int, programs: int, group: int, down: int = DOWN, across: int = ACROSS) -> tuple[int, int]:
    """How many different strips of a, and of b, the programs from `first` on need."""
    tiles = [tile_of(pid, down, across, group) for pid in range(first, min(first + programs, down * across))]
    return len({row for row, _ in tiles}), len({column for _, column in tiles})


def _draw(group: int, wave: int) -> Picture:
    first = wave * AT_ONCE
    tiles = {tile_of(pid, DOWN, ACROSS, group): pid for pid in range(DOWN * ACROSS)}
    of_a, of_b = strips(first, AT_ONCE, group)
    summary = (
        f"Programs {first} to {first + AT_ONCE - 1} need {count(of_a, 'strip')} of a and {count(of_b, 'strip')} of b: "
        f"{of_a + of_b} are loaded for {2 * AT_ONCE} uses, and L2 answers the others."
    )
    side, left, top = 17, 150, 40
    drawing = Drawing(WIDTH, top + DOWN * side + 8, summary)
    drawing.text(left - 112, top + 14, "a", "end", 600)
    drawing.text(left, top - 28, "b", weight=600)
    now = {tile for tile, pid in tiles.items() if first <= pid < first + AT_ONCE}
    for row in range(DOWN):
        lit = any((row, column) in now for column in range(ACROSS))
        drawing.box(left - 100, top + row * side + 1, 80, side - 2, *(LIT if lit else PLAIN))
    for column in range(ACROSS):
        lit = any((row, column) in now for row in range(DOWN))
        x = left + column * side
        drawing.box(x + 1, top - 22, side - 2, 16, *(LIT if lit else PLAIN))
    for (row, column), pid in tiles.items():
        before = pid < first
        opacity = 0.6 if (row, column) in now else 0.12 if before else 0.0
        color = CYCLE[0] if (row, column) in now or before else "currentColor"
        x, y = left + column * side, top + row * side
        drawing.box(x + 1, y + 1, side - 2, side - 2, color, opacity)
    drawing.text(left + ACROSS * side + 16, top + 14, "c: lit tiles are computed now,")
    drawing.text(left + ACROSS * side + 16, top + 34, "pale ones are done.")
    return Picture(drawing.html() + paragraph(summary), f"group {group}: {summary}")
