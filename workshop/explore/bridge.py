"""The way from the page to the kernel: a choice that a learner makes in an HTML output reaches this process.

An HTML output cannot speak to the kernel, and a widget that is shown dies with it. So one widget without a view is
made: it listens to the page, and no output holds it. Without anywidget, or without a notebook, choices are not kept.
"""

from __future__ import annotations

from collections.abc import Callable

from workshop.notebook import in_notebook

_LISTEN = """
export default {
  initialize({model}) {
    const heard = event => model.send(event.detail);
    document.addEventListener('workshop-choice', heard);
    return () => document.removeEventListener('workshop-choice', heard);
  },
};
"""
_open: dict = {}


def listen(name: str, heard: Callable[[str], None]) -> None:
    """Call heard(choice) when the learner makes a choice in the output of this name."""
    if not in_notebook():
        return
    try:
        import anywidget
    except ImportError:
        return
    if "widget" not in _open:
        _open["widget"] = type("Bridge", (anywidget.AnyWidget,), {"_esm": _LISTEN})()
        _open["widget"].on_msg(_hear)
    _open.setdefault("heard", {})[name] = heard


def _hear(widget, message, buffers) -> None:
    """A page can send anything, so only what an output of this kernel asked for is passed on."""
    if isinstance(message, dict) and (heard := _open["heard"].get(str(message.get("name")))):
        heard(str(message.get("choice")))
