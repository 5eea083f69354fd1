"""HTML from the templates of this folder: everything that lessons show and that is no drawing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent


def templates_in(folder: Path, **filters: Callable) -> Callable:
    """What gives a template in this folder by its name. Text is escaped, unless a template says `safe` of our HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment.get_template


_templates = functools.cache(functools.partial(templates_in, FOLDER, number=lambda value: f"{value:g}"))


def page(template: str, /, **values) -> str:
    """This template, filled in."""
    return _templates()(template).render(values)
