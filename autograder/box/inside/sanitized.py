"""Replays one job on a CUDA GPU while compute-sanitizer watches.

compute-sanitizer starts this process. It is not confined, so use it only for your own code.

    python -m autograder.box.inside.sanitized JOB OUTPUT_SIZE      JOB: a file that holds the memory of a job
"""

from __future__ import annotations

import mmap
import os
import sys

from ..wire.requests import decode_job
from . import dispatch, replay
from .job import Job
from .reports import Reporter


def main(path: str, output_size: str) -> None:
    with open(path, "rb") as file:
        request, tensors = decode_job(file.read())
    dispatch.silence()
    output = mmap.mmap(-1, max(int(output_size), 1))
    replay.run(Job("cuda", request, tensors, output, Reporter(os.open(os.devnull, os.O_WRONLY))))


if __name__ == "__main__":
    main(*sys.argv[1:])
