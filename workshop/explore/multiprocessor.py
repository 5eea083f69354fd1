"""How many programs one multiprocessor runs at once, on an NVIDIA or an AMD GPU, and which resource decides."""

from __future__ import annotations

import math

from workshop.device import KNOWN_DEVICES
from workshop.explore.controls import Explorer, choice, slider
from workshop.occupancy import programs_by_resource
from workshop.picture import CYCLE, WIDTH, WRONG, Drawing, Picture, paragraph
from workshop.words import count

GPUS = {"H200": "NVIDIA H200", "MI300X": "AMD Instinct MI300X"}
MOST_DRAWN = 64  # programs in a bar; more are drawn as one


def programs(gpu: str = "H200", registers: int = 40, shared_bytes: int = 4112, num_warps: int = 4) -> Explorer:
    """How many programs one multiprocessor (a compute unit of the MI300X) runs at once.

    registers: of one thread. shared_bytes: of one program. Raises ValueError for another GPU than H200 and MI300X.
    """
    return Explorer(
        _draw,
        gpu=choice("GPU", gpu, GPUS),
        registers=slider("registers, thread", registers, (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 255)),
        shared_bytes=slider("shared bytes", shared_bytes, (0, 1024, 4112, 8192, 16384, 32768, 65536)),
        num_warps=slider("num_warps", num_warps, (1, 2, 4, 8, 16)),
    )


def _draw(gpu: str, registers: int, shared_bytes: int, num_warps: int) -> Picture:
    facts = KNOWN_DEVICES[GPUS[gpu]]
    resources = programs_by_resource(registers, shared_bytes, num_warps, facts)
    scarcest = min(resources, key=lambda name: resources[name][2])
    fit = int(resources[scarcest][2])
    unit = "compute unit" if facts.backend == "hip" else "multiprocessor"
    summary = f"{GPUS[gpu]}: {count(fit, 'program')} on a {unit}, limited by {scarcest}."
    whole = f"{fit} × {facts.multiprocessors} = {fit * facts.multiprocessors:,}"
    summary += f" A persistent launch has {whole} programs." if fit else " Not one program fits."
    left, wide = 140, 520
    drawing, lines = Drawing(WIDTH, 3 * 58 + 8, summary), [summary]
    for index, (name, (need, has, fits)) in enumerate(resources.items()):
        y = index * 58
        drawing.text(0, y + 20, name, weight=600 if name == scarcest else 400)
        drawing.box(left, y + 2, wide, 28, "currentColor", 0.0, 2 if name == scarcest else 1)
        width = wide * need / has
        if fit > MOST_DRAWN:
            drawing.box(left, y + 2, width * fit, 28, CYCLE[0], 0.5)
        elif need:
            for program in range(fit):
                note = f"program {program}"
                drawing.box(left + program * width, y + 2, width, 28, CYCLE[program % len(CYCLE)], 0.5, note=note)
        if not fit and need > has:
            drawing.box(left, y + 2, wide, 28, WRONG, 0.3, 2, dashed=True, note="one program needs more")
        words = f"{need:,} each, {has:,} in all, {'no limit' if fits == math.inf else f'room for {fits}'}"
        drawing.text(left, y + 46, words)
        lines.append(f"{name}: {words}")
    return Picture(drawing.html() + paragraph(summary), "\n".join(lines))
