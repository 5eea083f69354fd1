"""How many threads torch computes in."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """torch in one thread: thousands of short operations would each wait for the slowest thread.

    On a machine where others compute, too, such as a room's, two threads are ten times slower than one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
