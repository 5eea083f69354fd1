"""What changed between two compiled kernels: the lines that a lesson points at, and the whole difference folded."""

from __future__ import annotations

from html import escape

from workshop.picture import GREEN, WRONG, Picture, count, paragraph

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
    more = len(found) - MOST_SHOWN
    html = "".join(paragraph(line, "code") for line in numbers.splitlines())
    html += paragraph(summary) + _block(found[:MOST_SHOWN])
    html += paragraph(f"and {more} more of these") if more > 0 else ""
    html += f"<details><summary>All {len(lines)} lines of the difference</summary>{_block(lines)}</details>"
    return Picture(html, "\n".join([numbers, summary, *found[:MOST_SHOWN]]))


def _block(lines: list[str]) -> str:
    look = "display:block;padding-left:8px;border-left:4px solid"
    marked = "".join(f"<span style='{look} {_color(line)}'>{escape(line) or ' '}</span>" for line in lines)
    style = "max-height:30em;overflow:auto;white-space:pre;line-height:1.35;font-size:12.5px;background:none"
    return f"<pre style='{style}'>{marked}</pre>"


def _color(line: str) -> str:
    return {"+": GREEN, "-": WRONG}.get(line[:1], "transparent")
