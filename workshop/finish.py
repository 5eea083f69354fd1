"""A page to show: what has been passed in the course, and projects to go on with. One HTML file that needs no other."""

from __future__ import annotations

from html import escape
from pathlib import Path

from workshop.progress import Progress, progress
from workshop.syllabus import SYLLABUS

NEXT = (
    (
        "Attention for a whole prompt",
        "Lesson 7 reads the cache for one query. Take a tile of queries, keep three running values for each of them, "
        "and add the causal mask. Compare it with torch.nn.functional.scaled_dot_product_attention.",
    ),
    (
        "Quantise while you normalise",
        "One pass over each row: its norm, its largest value, and the row as int8 with one scale. Count the bytes "
        "first, then measure how near to a copy you come.",
    ),
    (
        "A kernel in a model that you use",
        "Record a step with torch.profiler. Find two neighbouring operations that read the same tensor, and fuse them. "
        "Keep the kernel if the whole step became faster, not only the kernel.",
    ),
)
_STYLE = """
:root {color-scheme: light dark}
body {font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em}
h1 {margin-bottom: 0} .points {font-size: 1.2em; border-left: 5px solid #009e73; padding-left: 12px}
table {border-collapse: collapse; width: 100%} td, th {text-align: left; padding: 5px 10px 5px 0; vertical-align: top}
tr {border-bottom: 1px solid rgba(127, 127, 127, .4)} code {white-space: nowrap} small {opacity: .8}
"""


def page(current: Progress | None = None) -> str:
    """The page as HTML. It lists what is passed, so it can be written at any time."""
    current = current or progress()
    passed = [name for name in SYLLABUS if current.entry(name).passed]
    days = sorted(current.entry(name).last[:10] for name in passed if current.entry(name).last)
    when = f"The last check was on {days[-1]}. " if days else ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(SYLLABUS[name].shows)}</td></tr>" for name in passed
    )
    projects = "".join(f"<li><b>{escape(title)}.</b> {escape(words)}</li>" for title, words in NEXT)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>Triton workshop</title><style>{_STYLE}</style><h1>Triton workshop</h1>"
        f"<p>Exercises passed: {len(passed)} of {len(SYLLABUS)}.</p>"
        f"<p class='points'>{escape(current.headline())}</p>"
        f"<table><tr><th>exercise</th><th>what it showed</th></tr>{rows}</table>"
        f"<h2>What next</h2><ul>{projects}</ul>"
        f"<p><small>{when}Written by the course from a progress file on a learner's machine. Nobody has signed it."
        "</small></p></html>\n"
    )


def write(path: str | Path) -> Path:
    """Writes the page, and returns its whole path. Raises OSError."""
    file = Path(path).absolute()
    file.write_text(page(), encoding="utf-8")
    return file
