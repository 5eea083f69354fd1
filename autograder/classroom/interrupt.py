"""Ctrl-C during a batch, remembered: Python drops one that arrives in a callback of the database."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_pressed = threading.Event()


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside, and is remembered for `check`. Only the main thread hears it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(*_):
        _pressed.set()
        raise KeyboardInterrupt

    _pressed.clear()
    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _pressed.clear()


def check() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed and nobody has heard it."""
    if _pressed.is_set():
        raise KeyboardInterrupt
