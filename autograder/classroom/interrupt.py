"""Ctrl-C during a batch: it waits for the database, and is remembered where others drop it."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

AGAIN = 0.02  # seconds

_pressed = threading.Event()


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside, and is remembered for `check`. Only the main thread hears it.

    SQLAlchemy prints a traceback, or drops the exception, where it is raised in its code. There it comes later.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    later = []

    def heard(_, frame: FrameType | None) -> None:
        _pressed.set()
        if not _in_database(frame):
            raise KeyboardInterrupt
        timer = threading.Timer(AGAIN, _thread.interrupt_main)
        timer.daemon = True
        later.append(timer)
        timer.start()

    _pressed.clear()
    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        for timer in later:
            timer.cancel()
        signal.signal(signal.SIGINT, before)
        _pressed.clear()


def _in_database(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_globals.get("__name__", "").startswith("sqlalchemy."):
            return True
        frame = frame.f_back
    return False


def check() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed and nobody has heard it."""
    if _pressed.is_set():
        raise KeyboardInterrupt
