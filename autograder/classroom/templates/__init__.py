"""HTML from the templates in this folder. Pages of one file each extend base.html.

Nothing is loaded from elsewhere and no script runs on these: a policy in each page forbids both.
"""

from __future__ import annotations

import functools
from pathlib import Path

from markupsafe import Markup

from ...text import templates_in

template = templates_in(Path(__file__).parent)


def document(name: str, title: str, **about: object) -> str:
    """A page. Templates escape what is in `about`."""
    return template(name).render(title=title, colours=_colours(), highlighted=highlighted, **about)


@functools.cache
def _colours() -> str:
    """The styles of highlighted code."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="monokai").get_style_defs(".code")
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


def highlighted(source: str) -> Markup:
    """Python in colours. Any text gives harmless HTML."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    coloured = highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
    return Markup(f'<pre class="code">{coloured}</pre>')
