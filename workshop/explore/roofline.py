"""Matrix products: the ridge of each card, the least time by its data sheet, and what was measured."""

from __future__ import annotations

import csv

from workshop.picture import Picture, paragraph, plain_table, table
from workshop.results import RECORDED
from workshop.roofline import CARDS

SHOWN = "NVIDIA H200"
MODEL = "A model from the data sheet of the {name}, not a measurement: each matrix is read or written once."


def roofline(*sizes: int) -> Picture:
    """The ridge of each card; or, for square matrices of these sizes in bfloat16, the least time on an H200."""
    if not sizes:
        header = ["card", "TB/s", "TFLOP/s in bfloat16", "ridge: operations per byte"]
        rows = [[each.name, f"{each.gbps / 1000:.1f}", f"{each.tflops:.0f}", f"{each.ridge:.0f}"] for each in CARDS]
        words = "Peaks by the data sheets. A tile of 128 × 128 does 64 operations for each byte that it loads."
    else:
        card = next(each for each in CARDS if each.name == SHOWN)
        header = ["m = n = k", "memory", "arithmetic", "limit", "TFLOP/s at most"]
        rows, words = [], MODEL.format(name=card.name)
        for n in sizes:
            memory, arithmetic = card.milliseconds(n, n, n)
            limit = "memory" if memory > arithmetic else "arithmetic"
            most = 2 * n**3 / max(memory, arithmetic) / 1e9
            rows.append([f"{n:,}", f"{1000 * memory:,.1f} µs", f"{1000 * arithmetic:,.1f} µs", limit, f"{most:.0f}"])
    html = table(header, rows) + paragraph(words)
    return Picture(html, f"{plain_table(header, rows)}\n{words}")


def recorded_products(name: str, only: tuple[str, ...] = ()) -> Picture:
    """TFLOP/s in benchmarks/recorded/h200_matmul_<name>.csv: a row for each shape; `only` these columns."""
    with (RECORDED / f"h200_matmul_{name}.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    shapes: dict[str, dict[str, str]] = {}
    for line in lines:
        sides = [f"{int(line[side]):,}" for side in "mnk"]
        shape = sides[0] if len(set(sides)) == 1 else " × ".join(sides)
        shapes.setdefault(shape, {})[line["provider"]] = f"{float(line['tflops']):.0f}"
    about = lines[0]
    providers = only or tuple(next(iter(shapes.values())))
    header = ["m × n × k" if any("×" in shape for shape in shapes) else "m = n = k", *providers]
    rows = [[shape, *map(speeds.get, providers)] for shape, speeds in shapes.items()]
    words = "TFLOP/s, median. " + ", ".join([about["gpu"], *(f"{each} {about[each]}" for each in ("torch", "triton"))])
    words += f", {about['date']}"
    return Picture(table(header, rows) + paragraph(words), f"{plain_table(header, rows)}\n{words}")
