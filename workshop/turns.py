"""Turns at the card: people who share one measure one after the other, because two kernels at once slow each other.

A turn is a lock on a file for the card, in the folder that WORKSHOP_TURNS names (a room sets it). Without it, only
this user's own notebooks take turns. Who waits too long goes on, and is told that the numbers may be too low.
"""

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

VARIABLE = "WORKSHOP_TURNS"
LONGEST = 120.0  # seconds
PAUSE = 0.1  # seconds between two looks at the lock


@contextlib.contextmanager
def turn(card: str, say: Callable[[str], None] = print, longest: float = LONGEST) -> Iterator[bool]:
    """Wait for the card and keep it until the `with` block ends; False where it was not to be had.

    card: any name that is the same for everybody who shares the card. longest: seconds to wait.
    """
    with _open(card) as lock:  # whose end gives it back
        yield lock is not None and _wait(lock, say, longest)


def _wait(lock: IO, say: Callable[[str], None], longest: float) -> bool:
    began, waits = time.monotonic(), False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if waits:
                say(f"had to wait {time.monotonic() - began:.1f} s for the card")
            return True
        if not waits:
            say("waiting for the card: somebody else is measuring on it …")
        elif time.monotonic() - began >= longest:
            say(f"waited {longest:g} s for the card, and now measure beside others: the numbers may be too low")
            return False
        waits = True
        time.sleep(PAUSE)


def _open(card: str) -> AbstractContextManager[IO | None]:
    """The card's file, opened; None where there can be none, and nobody waits.

    Linux refuses to open another user's file in a folder like /tmp for writing, or with O_CREAT. A lock needs neither.
    """
    folder = Path(os.environ.get(VARIABLE) or Path(tempfile.gettempdir(), f"triton-workshop-{os.getuid()}"))
    path = folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '-', card)}.lock"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY, 0o644))
        return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
    return contextlib.nullcontext()


def this_card() -> str:
    """A name of the card in use that other processes and containers also know: its UUID, or its place on the bus."""
    import torch

    from workshop.backend import driver

    about = driver().get_device_interface().get_device_properties(torch.accelerator.current_device_index())
    return str(getattr(about, "uuid", None) or getattr(about, "pci_bus_id", None) or about.name)
