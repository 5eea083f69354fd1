"""Python's garbage collector, kept away from what large imports leave behind."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """For imports of large packages: collects nothing now, and never looks at the objects that exist in the end.

    torch and Triton make a quarter of a million objects that live as long as the process. The collector would look
    at all of them several times, and once more when Python ends. A fork would copy each page that it looks at.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
