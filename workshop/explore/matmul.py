"""Matrix products: a tile's walk along k, tiles that are computed together, and speeds: by data sheets and measured."""

from workshop.device import CARDS
from workshop.explore.controls import WALKS, Explorer, slider
from workshop.notebook import page
from workshop.occupancy import swizzle
from workshop.picture import CYCLE, READ, WIDTH, Drawing, Picture, count, paragraph, tabled
from workshop.results import recorded_lines

# -- the walk of a tile ------------------------------------------------------------------------------------

M, N, K = 4, 6, 11  # rows of a, columns of b, and the side that they share
LANES = 12  # of a step's block along k, at most: one more than K


def tile_walk(block: int = 4) -> Explorer:
    """A tile of 4 × 6 sums over k = 11, in steps of `block`: what is multiplied, and where the mask is False."""
    return Explorer(
        _draw_walk,
        block=slider("K, numbers in a step", block, (2, 4, 8)),
        step=slider("step", 0, range(-(-K // 2) + 1), steps=True),
    )


def _draw_walk(block: int, step: int) -> Picture | None:
    steps = -(-K // block)
    if step > steps:
        return None
    start = (step - 1) * block
    now = range(start, start + block) if step else range(0)
    beyond = max(0, start + block - K) if step else 0
    done = min(step * block, K)
    said = "Before the first step: acc is 0."
    if step:
        said = f"Step {step} of {steps}: columns {start} to {start + block - 1} of a meet the same rows of b."
    if beyond:
        said += f" {count(beyond, 'lane')} along k {'is' if beyond == 1 else 'are'} behind the end: masked, and 0."
    said += f" Each element of acc has {done} of {K} products."
    side, left, top = 22, 30, 30
    right, middle = left + LANES * side + 70, top + LANES * side + 16
    drawing = Drawing(WIDTH, middle + M * side + 12, said)
    drawing.text(0, middle + 15, "a", weight=600)
    drawing.text(right, top - 10, "b", weight=600)
    drawing.text(right + N * side + 12, middle + 15, "acc", weight=600)
    for p in range(LANES):
        if p >= K and p not in now:
            continue
        color = READ if p in now else CYCLE[0] if p < done else None
        look = {"color": color, "crossed": p >= K, "opacity": 0.55 if p in now else 0.12}
        drawing.cells(left + p * side, middle, side, side, [look] * M, columns=1)
        drawing.cells(right, top + p * side, side, side, [look] * N)
    sums = {"words": str(done), "color": CYCLE[0], "opacity": 0.1 + 0.5 * done / K}
    drawing.cells(right, middle, side, side, [sums] * (M * N), columns=N)
    walk = page("walk.html", lines=WALKS["tile"]["lines"], lit={1, 2, 3} if step else {0})
    return Picture(drawing.html() + paragraph(said) + walk, said)


# -- tiles that run together -------------------------------------------------------------------------------

DOWN = ACROSS = 16  # tiles of c
AT_ONCE = 32  # programs that run together


def l2_tiles(group: int = 1) -> Explorer:
    """16 × 16 tiles, of which 32 are computed at once, in groups of `group` rows of tiles."""
    return Explorer(
        _draw_tiles,
        group=slider("group, rows of tiles", group, (1, 2, 4, 8)),
        wave=slider("wave", 0, range(DOWN * ACROSS // AT_ONCE), steps=True),
    )


def strips(first: int, programs: int, group: int) -> tuple[int, int]:
    """How many different strips of a, and of b, the programs from `first` on need."""
    tiles = [swizzle(pid, DOWN, ACROSS, group) for pid in range(first, min(first + programs, DOWN * ACROSS))]
    return len({row for row, _ in tiles}), len({column for _, column in tiles})


def _draw_tiles(group: int, wave: int) -> Picture:
    first = wave * AT_ONCE
    of_a, of_b = strips(first, AT_ONCE, group)
    summary = (
        f"Programs {first} to {first + AT_ONCE - 1} need {count(of_a, 'strip')} of a and {count(of_b, 'strip')} of b: "
        f"{of_a + of_b} are loaded for {2 * AT_ONCE} uses, and L2 answers the others."
    )
    side, left, top = 17, 150, 40
    drawing = Drawing(WIDTH, top + DOWN * side + 8, summary)
    drawing.text(left - 112, top + 14, "a", "end", 600)
    drawing.text(left, top - 28, "b", weight=600)
    tiles = {swizzle(pid, DOWN, ACROSS, group): pid for pid in range(DOWN * ACROSS)}
    now = {tile for tile, pid in tiles.items() if first <= pid < first + AT_ONCE}
    rows, columns = ({tile[axis] for tile in now} for axis in (0, 1))
    lit, plain = (READ, 0.45), ("currentColor", 0.04)
    for row in range(DOWN):
        drawing.box(left - 100, top + row * side + 1, 80, side - 2, *(lit if row in rows else plain))
    for column in range(ACROSS):
        drawing.box(left + column * side + 1, top - 22, side - 2, 16, *(lit if column in columns else plain))
    for (row, column), pid in tiles.items():
        opacity = 0.6 if (row, column) in now else 0.12 if pid < first else 0.0
        x, y = left + column * side, top + row * side
        drawing.box(x + 1, y + 1, side - 2, side - 2, CYCLE[0] if opacity else "currentColor", opacity)
    drawing.text(left + ACROSS * side + 16, top + 14, "c: lit tiles are computed now,")
    drawing.text(left + ACROSS * side + 16, top + 34, "pale ones are done.")
    return Picture(drawing.html() + paragraph(summary), f"group {group}: {summary}")


# -- speeds ------------------------------------------------------------------------------------------------

SHOWN = "NVIDIA H200"


def roofline(*sizes: int) -> Picture:
    """The ridge of each card; or, for square matrices of these sizes in bfloat16, the least time on an H200."""
    if not sizes:
        header = ["card", "TB/s", "TFLOP/s in bfloat16", "ridge: operations per byte"]
        ridges = {each: 1000 * each.tflops / each.gbps for each in CARDS}  # from there on arithmetic is the limit
        rows = [[c.name, f"{c.gbps / 1000:.1f}", f"{c.tflops:.0f}", f"{ridge:.0f}"] for c, ridge in ridges.items()]
        words = "Peaks by the data sheets. A tile of 128 × 128 does 64 operations for each byte that it loads."
        return tabled(header, rows, words)
    card = next(each for each in CARDS if each.name == SHOWN)
    rows = []
    for n in sizes:
        operations = 2 * n**3
        memory, arithmetic = 3 * n**2 * 2 / card.gbps / 1e3, operations / card.tflops / 1e6  # microseconds
        limit = "memory" if memory > arithmetic else "arithmetic"
        most = operations / max(memory, arithmetic) / 1e6
        rows.append([f"{n:,}", f"{memory:,.1f} µs", f"{arithmetic:,.1f} µs", limit, f"{most:.0f}"])
    words = f"A model from the data sheet of the {SHOWN}, not a measurement: each matrix is read or written once."
    return tabled(["m = n = k", "memory", "arithmetic", "limit", "TFLOP/s at most"], rows, words)


def recorded_products(name: str, only: tuple[str, ...] = ()) -> Picture:
    """TFLOP/s in benchmarks/recorded/h200_matmul_<name>.csv: a row for each shape; `only` these columns."""
    lines = recorded_lines(f"h200_matmul_{name}")
    shapes: dict[str, dict[str, str]] = {}
    for line in lines:
        sides = [f"{int(line[side]):,}" for side in "mnk"]
        shape = sides[0] if len(set(sides)) == 1 else " × ".join(sides)
        shapes.setdefault(shape, {})[line["provider"]] = f"{float(line['tflops']):.0f}"
    about = lines[0]
    providers = only or tuple(next(iter(shapes.values())))
    header = ["m × n × k" if any("×" in shape for shape in shapes) else "m = n = k", *providers]
    rows = [[shape, *map(speeds.get, providers)] for shape, speeds in shapes.items()]
    versions = "torch {torch}, triton {triton}, {date}".format(**about)
    return tabled(header, rows, f"TFLOP/s, median. {about['gpu']}, {versions}")
