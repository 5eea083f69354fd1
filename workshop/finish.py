"""A page to show: what has been passed in the course, and projects to go on with. One HTML file that needs no other."""

from __future__ import annotations

from pathlib import Path

from workshop import pages
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


def page(current: Progress | None = None) -> str:
    """The page as HTML. It lists what is passed, so it can be written at any time."""
    current = current or progress()
    passed = [lesson for lesson in SYLLABUS.values() if current.entry(lesson.name).passed]
    last = max((current.entry(lesson.name).last[:10] for lesson in passed), default="")
    about = {"passed": passed, "exercises": len(SYLLABUS), "last": last, "projects": NEXT}
    return pages.page("finish.html", headline=current.headline(), **about)


def write(path: str | Path) -> Path:
    """Writes the page, and returns its whole path. Raises OSError."""
    file = Path(path).absolute()
    file.write_text(page(), encoding="utf-8")
    return file
