"""Ctrl-C during a command: it waits for imports and the database, and is remembered where others drop it."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from traceback import walk_stack
from types import FrameType

AGAIN = 0.05  # seconds
STOPPED = 130  # a command's exit status after Ctrl-C, as a shell says it

_pressed = threading.Event()


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt inside, and is remembered for `check`. Only the main thread hears it.

    SQLAlchemy and Python's import print a traceback, or drop the exception, where it is raised in their code. There
    it comes later, at the end of this context at the latest. A process that was started in `held` hears from here on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    later = []

    def heard(_, frame: FrameType | None) -> None:
        _pressed.set()
        running = ((each.f_globals.get("__name__", ""), each.f_code.co_filename) for each, _ in walk_stack(frame))
        if not any(name.startswith("sqlalchemy.") or file.startswith("<frozen importlib.") for name, file in running):
            raise KeyboardInterrupt
        # A signal, because interrupt_main would not end a wait that the main thread is in by then.
        timer = threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.daemon = True
        later.append(timer)
        timer.start()

    _pressed.clear()
    before, mask = signal.signal(signal.SIGINT, heard), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            yield
        except Exception:
            check()
            raise
        check()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for timer in later:
            timer.cancel()
        signal.signal(signal.SIGINT, before)
        _pressed.clear()


@contextlib.contextmanager
def held() -> Iterator[None]:
    """In a process that is started inside, Ctrl-C waits while Python starts, until `remembered`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def check() -> None:
    """Raises KeyboardInterrupt if Ctrl-C was pressed and nobody has heard it."""
    if _pressed.is_set():
        _pressed.clear()
        raise KeyboardInterrupt from None
