"""Compiled kernels: how many programs run at once, which resource limits them, and what changed between two kernels.

`occupancy` shows the waves on one compute unit of AMD, `programs` a multiprocessor of NVIDIA beside one.
"""

import math

from workshop.device import KNOWN_DEVICES
from workshop.explore.controls import Explorer, choice, slider
from workshop.notebook import page
from workshop.occupancy import COMPUTE_UNITS, EXECUTION_UNITS, programs_by_resource
from workshop.occupancy import occupancy as waves_per_unit
from workshop.picture import CYCLE, GREEN, WIDTH, WRONG, Drawing, Picture, count, paragraph

WARPS = (1, 2, 4, 8, 16)
VGPRS = (24, 64, 65, 72, 80, 96, 128, 129, 168, 170, 176, 256, 512)  # 8 waves fit up to 64, 7 up to 72, and so on
LDS = (0, 8192, 16384, 32768, 65536, 163840)
GPUS = {"H200": "NVIDIA H200", "MI300X": "AMD Instinct MI300X"}
MOST_DRAWN = 64  # programs in a bar; more are drawn as one


def occupancy(arch: str = "gfx942", vgprs: int = 114, lds_bytes: int = 16, num_warps: int = 4) -> Explorer:
    """How many waves of a kernel one compute unit runs at once, and what limits them."""
    return Explorer(
        _draw_waves,
        arch=choice("architecture", arch, COMPUTE_UNITS),
        vgprs=slider("VGPRs", vgprs, VGPRS),
        num_warps=slider("num_warps", num_warps, WARPS),
        lds_bytes=slider("LDS bytes", lds_bytes, LDS),
    )


def programs(gpu: str = "H200", registers: int = 40, shared_bytes: int = 4112, num_warps: int = 4) -> Explorer:
    """How many programs one multiprocessor (a compute unit of the MI300X) runs at once.

    registers: of one thread. shared_bytes: of one program. Raises ValueError for another GPU than H200 and MI300X.
    """
    return Explorer(
        _draw_programs,
        gpu=choice("GPU", gpu, GPUS),
        registers=slider("registers, thread", registers, (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 255)),
        shared_bytes=slider("shared bytes", shared_bytes, (0, 1024, 4112, 8192, 16384, 32768, 65536)),
        num_warps=slider("num_warps", num_warps, WARPS),
    )


def _draw_waves(arch: str, vgprs: int, num_warps: int, lds_bytes: int) -> Picture:
    unit = COMPUTE_UNITS[arch]
    result = waves_per_unit(vgprs, lds_bytes, num_warps, arch)
    summary = f"{count(int(result), 'wave')} per execution unit, limited by {result.limiter}."
    if not result.workgroups:
        summary = f"Not one program fits a compute unit; what runs out: {result.limiter}."
    left, slot, below = 112, 66, EXECUTION_UNITS * 40
    drawing = Drawing(WIDTH, below + 96, summary)
    waves = [wave // num_warps for wave in range(result.workgroups * num_warps)]
    for simd in range(EXECUTION_UNITS):
        drawing.text(0, simd * 40 + 26, f"SIMD {simd}", weight=600)
        mine = [{"words": f"prog. {program}", "color": CYCLE[program % len(CYCLE)], "opacity": 0.5}
                for program in waves[simd::EXECUTION_UNITS]]  # fmt: skip
        drawing.cells(left, simd * 40 + 4, slot, 34, mine + [{}] * (unit.max_waves - len(mine)))
    registers = len(waves[::EXECUTION_UNITS]) * result.vgprs_allocated
    resources = (
        ("registers", registers, unit.vgprs, "per lane of SIMD 0"),
        ("LDS", result.workgroups * lds_bytes, unit.lds, "bytes"),
    )
    for y, (name, used, whole, of_what) in zip((below + 14, below + 52), resources):
        drawing.text(0, y + 19, name, weight=600)
        drawing.box(left, y, 8 * slot, 28, "currentColor", 0.0)
        if used:
            drawing.box(left, y, 8 * slot * used / whole, 28, CYCLE[0], 0.35)
        drawing.text(left + 12, y + 19, f"{used} of {whole} {of_what}")
    html = drawing.html() + paragraph(summary) + paragraph(result.explain())
    return Picture(html, f"{arch}: {summary}\n{result.explain()}")


def _draw_programs(gpu: str, registers: int, shared_bytes: int, num_warps: int) -> Picture:
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


MOST_SHOWN = 8  # lines that are shown unfolded


def difference(changes, *words: str) -> Picture:
    """A coloured difference of two reports: `first.diff(second)`.

    words: what to look for in added and removed lines. The first lines that hold one are shown, all others are folded.
    Added lines are green with a +, removed ones orange with a −.
    """
    numbers, _, rest = str(changes).partition("\n\n")
    lines = [line for line in rest.splitlines() if not line.startswith(("+++", "---", "@@"))]
    changed = [line for line in lines if line[:1] in "+-" and line.strip("+- ")]
    found = [line for line in changed if any(word in line for word in words)]
    added, removed = (sum(line.startswith(sign) for line in changed) for sign in "+-")
    summary = f"{count(added, 'instruction')} more, {count(removed, 'instruction')} fewer."
    if words:
        summary += f" {count(len(found), 'changed line')} with {' or '.join(words)}."
    words = {"numbers": numbers.splitlines(), "summary": summary, "found": found, "most": MOST_SHOWN, "lines": lines}
    html = page("difference.html", added=GREEN, removed=WRONG, **words)
    return Picture(html, "\n".join([numbers, summary, *found[:MOST_SHOWN]]))
