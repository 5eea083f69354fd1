"""Whether this process is a notebook's kernel, which is asked without IPython; its outputs, as HTML from pages/."""

import functools
import sys
from pathlib import Path

PAGES = Path(__file__).with_name("pages")


def interactive_shell():
    """IPython's shell, in a notebook or in a terminal; None in a script."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def in_notebook() -> bool:
    """Whether a notebook's front end shows what is displayed."""
    return bool(getattr(interactive_shell(), "kernel", None))


class Live:
    """Shows itself as HTML, and anew in the same place after a change. Elsewhere it is text."""

    _handle = None

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._handle = display(self._bundle(), raw=True, display_id=True)

    def refresh(self) -> None:
        """Show what is true now, in the place where this was shown."""
        if self._handle:
            self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def live(content: dict[str, str]):
    """Show this in a notebook, and return what can `update` it there; None elsewhere."""
    return sys.modules["IPython"].display.display(content, raw=True, display_id=True) if in_notebook() else None


def page(template: str, /, **values) -> str:
    """A template of pages/, filled in: everything that lessons show and that is no drawing."""
    return _environment().get_template(template).render(values)


@functools.cache
def _environment():
    """Text is escaped, unless a template says `safe` of our own HTML."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = lambda value: f"{value:g}"
    return made
