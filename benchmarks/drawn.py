"""Sizes that are drawn, and how their results are shown: the worst first."""

import random
import statistics

from workshop import style
from workshop.results import Results, Row

# Hidden sizes and vocabularies: BERT and GPT-2, Llama 3 8B, Llama 2 13B, Llama 3 70B, its MLP, Llama 2, GPT-2, Phi-4,
# Llama 3, Qwen 2.5.
BEST_KNOWN = (768, 4096, 5120, 8192, 14336, 32000, 50257, 100352, 128256, 151936)


def drawn_columns(count: int, seed: int, least: int = 200, most: int = 262_144) -> list[int]:
    """`count` widths, log-uniform from `least` to `most`, and the best-known ones between them, without repetition.

    A quarter of them is made odd, and a quarter multiples of 8 that are none of 16.
    """
    generator = random.Random(seed)
    found = {columns for columns in BEST_KNOWN if least <= columns <= most}
    named = len(found)
    while len(found) < count + named:
        columns = round(least * (most / least) ** generator.random())
        kind = len(found) % 4
        found.add(columns | 1 if kind == 0 else columns // 16 * 16 + 8 if kind == 1 else columns)
    return sorted(found)


def worst_first(found: Results, ours: str) -> Results:
    """The same numbers, and the widths in the order of our kernel's share of the copy."""
    share = {row.size: row.of_copy or 0 for row in found.rows if row.provider == ours}
    found.rows.sort(key=lambda row: share.get(row.size, 0))
    return found


def summary(found: Results, ours: str, parts: tuple[int, ...] = ()) -> str:
    """The worst size and the median of our kernel, up to each of `parts` and beyond; where a peer is 3 % ahead."""
    shares = {row.size: row.of_copy for row in found.rows if row.provider == ours and row.of_copy}
    lines, least = [], 0
    for most in (*parts, max(shares, default=0)):
        sizes = [n for n in shares if least < n <= most]
        if sizes:
            worst = min(sizes, key=shares.get)
            median = statistics.median(shares[n] for n in sizes)
            where = f"{least + 1:,} to {most:,}: {len(sizes)} sizes"
            lines.append(f"{where}, worst {shares[worst]:.3f} at {worst:,}, median {median:.3f}")
        least = most
    for row in found.rows:
        if row.provider not in ("copy", ours) and row.of_copy and row.of_copy > 1.03 * shares.get(row.size, 0):
            lines.append(f"{row.provider} is ahead at {row.size:,}: {row.of_copy:.3f}, ours {shares.get(row.size)}")
    return "\n".join(lines)


def scatter(found: Results, ours: str, x_label: str = "columns", named: int = 6):
    """Share of the copy over the size: a dot for each size and function; our worst sizes are ringed and listed."""
    with style.figure(found.title, x_label, "share of the copy's speed", found.alt()) as (figure, axes):
        names = [name for name in found.providers if name not in ("copy", ours)]
        highest = 1.0
        for number, name in enumerate((ours, *names)):
            rows = [row for row in found.rows if row.provider == name and row.of_copy]
            points = [row.size for row in rows], [row.of_copy for row in rows]
            highest = max(highest, *points[1], 0)
            axes.scatter(*points, color=f"C{number}", s=26 if name == ours else 12, label=name, zorder=3 - number / 9)
        worst = worst_rows(found, ours, named)
        ringed = [row.size for row in worst], [row.of_copy for row in worst]
        axes.scatter(*ringed, s=70, facecolors="none", edgecolors=style.INK, zorder=4)
        listed = "\n".join(f"{row.size:,}: {row.of_copy:.2f}" for row in worst)
        axes.text(0.02, 0.04, f"worst sizes of ours\n{listed}", transform=axes.transAxes, fontsize=9, color=style.INK)
        style.size_ticks(axes)
        axes.set_ylim(0, 1.1 * highest)
        figure.legend(loc="outside upper right", ncols=5)
        figure.supxlabel(found.caption(), fontsize=10, color=style.INK)
        return figure


def worst_rows(found: Results, ours: str, count: int) -> list[Row]:
    rows = [row for row in found.rows if row.provider == ours and row.of_copy]
    return sorted(rows, key=lambda row: row.of_copy)[:count]
