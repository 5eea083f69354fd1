"""Whether this process is a notebook's kernel. IPython is not imported for the question."""

import sys


def interactive_shell():
    """IPython's shell, in a notebook or in a terminal; None in a script."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def in_notebook() -> bool:
    """Whether a notebook's front end shows what is displayed."""
    return bool(getattr(interactive_shell(), "kernel", None))


def live(content: dict[str, str]):
    """Show this in a notebook, and return what can `update` it there; None elsewhere."""
    return sys.modules["IPython"].display.display(content, raw=True, display_id=True) if in_notebook() else None
