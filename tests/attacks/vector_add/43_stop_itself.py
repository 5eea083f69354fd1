"""Stop the process, deaf to every signal that can be ignored.

Must: earn nothing.
"""

import os
import signal
import time

import torch
import triton
import triton.language as tl


def add(x, y):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(10**6)
