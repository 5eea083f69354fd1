"""One job in the child process that runs it: the request, its tensors, its output, and a way to report.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import linecache
import mmap
from dataclasses import dataclass
from typing import Any

import torch
import triton

from .reports import Reporter

ANSWER = "<answer>"  # the file name of the learner's source in tracebacks and programs


@dataclass(frozen=True)
class Job:
    """The data of every kind of job. `request` is one of the requests of wire.requests."""

    backend: str
    request: Any
    tensors: memoryview
    output: mmap.mmap
    report: Reporter

    @property
    def interpreted(self) -> bool:
        """Whether kernels run without a GPU."""
        return self.backend == "interpreter"

    @property
    def device(self) -> torch.device:
        return torch.device("cpu" if self.interpreted else "cuda")

    def give_memory(self) -> None:
        """Triton asks for memory where a kernel makes tensor descriptors on a GPU; the answer's host is not here."""
        if not self.interpreted:
            triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    def show_source(self) -> None:
        """Lets a line of the answer be quoted where the answer was not loaded."""
        source = self.request.source
        linecache.cache[ANSWER] = (len(source), None, source.splitlines(True), ANSWER)
