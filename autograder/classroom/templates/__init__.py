"""HTML from the templates in this folder. Text is escaped, unless a template says `safe` of HTML that we made."""

from __future__ import annotations

import functools
from pathlib import Path

import jinja2


@functools.cache
def template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
