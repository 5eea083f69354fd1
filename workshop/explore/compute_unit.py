"""Occupancy: how many waves of a kernel one AMD compute unit runs at once, and what limits them."""

from __future__ import annotations

from workshop.explore.controls import Explorer, choice, slider
from workshop.occupancy import COMPUTE_UNITS, EXECUTION_UNITS
from workshop.occupancy import occupancy as waves_per_unit
from workshop.picture import CYCLE, WIDTH, Drawing, Picture, paragraph
from workshop.words import count

VGPRS = (24, 64, 65, 72, 80, 96, 128, 129, 168, 170, 176, 256, 512)  # 8 waves fit up to 64, 7 up to 72, and so on
LDS = (0, 8192, 16384, 32768, 65536, 163840)


def occupancy(arch: str = "gfx942", vgprs: int = 114, lds_bytes: int = 16, num_warps: int = 4) -> Explorer:
    """How many waves of a kernel one compute unit runs at once, and what limits them."""
    return Explorer(
        _draw_occupancy,
        arch=choice("architecture", arch, COMPUTE_UNITS),
        vgprs=slider("VGPRs", vgprs, VGPRS),
        num_warps=slider("num_warps", num_warps, (1, 2, 4, 8, 16)),
        lds_bytes=slider("LDS bytes", lds_bytes, LDS),
    )


def _draw_occupancy(arch: str, vgprs: int, num_warps: int, lds_bytes: int) -> Picture:
    unit = COMPUTE_UNITS[arch]
    result = waves_per_unit(vgprs, lds_bytes, num_warps, arch)
    summary = f"{count(int(result), 'wave')} per execution unit, limited by {result.limiter}."
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
    registers = len(waves[::EXECUTION_UNITS]) * result.vgprs_allocated
    resources = {
        "registers": (registers, unit.vgprs, "per lane of SIMD 0"),
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
