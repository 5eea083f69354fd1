"""HTML from the templates in this folder. Pages of one file each extend base.html.

Nothing is loaded from elsewhere and no script runs on these: a policy in each page forbids both.
"""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from ...text import templates_in
from ..course import TEMPLATES, file_hash, hash_of, write_atomically

template = templates_in(TEMPLATES)


def write_page(path: Path, made_of: object, make: Callable[[], str]) -> None:
    """Write the page that make() returns, unless one is there that was made of the same: it says so in a comment."""
    mark = hash_of([_program(), made_of])
    with contextlib.suppress(OSError), path.open(errors="replace") as file:
        if mark in file.read(400):
            return
    write_atomically(path, make().replace("<head>", f"<head><!-- {mark} -->", 1).encode())


@functools.cache
def _program() -> list[str]:
    """Changes with what makes a page."""
    return [file_hash(path) for room in (TEMPLATES, TEMPLATES.parent / "reports") for path in sorted(room.glob("*.*"))]


def document(name: str, title: str, **about: object) -> str:
    """A page. Templates escape what is in `about`."""
    return template(name).render(title=title, colours=_colours(), highlighted=highlighted, **about)


@functools.cache
def _colours() -> str:
    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="monokai").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


def highlighted(source: str) -> Markup:
    """Python in colours. Any text gives harmless HTML."""
    html = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(f'<pre class="code">{html}</pre>')
