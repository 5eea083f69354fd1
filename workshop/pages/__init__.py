"""HTML from the templates of this folder: everything that lessons show and that is no drawing."""

from __future__ import annotations

import functools
from pathlib import Path

FOLDER = Path(__file__).parent


@functools.cache
def _environment():
    """Text is escaped, unless a template says `safe` of our own HTML."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = lambda value: f"{value:g}"
    return made


def page(template: str, /, **values) -> str:
    """This template, filled in."""
    return _environment().get_template(template).render(values)
