"""One job in the child process that runs it: the request, its tensors, its output, and a way to report.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import dataclass
from typing import Any

import torch
import triton

from workshop.interpreter import faithful, memory_checker

from .reports import Reporter


@dataclass(frozen=True)
class Job:
    """The data of every kind of job. `request` is one of the requests of wire.requests.

    unchecked: why the memory checker does not work with this Triton; empty if it works.
    """

    backend: str
    request: Any
    tensors: memoryview
    output: mmap.mmap
    report: Reporter
    unchecked: str = ""

    @property
    def interpreted(self) -> bool:
        """True on Triton's interpreter, False on a GPU."""
        return self.backend == "interpreter"

    @property
    def device(self) -> torch.device:
        return torch.device("cpu" if self.interpreted else "cuda")

    def give_memory(self) -> None:
        """Triton asks for memory where a kernel makes tensor descriptors on a GPU; the answer's host is not here."""
        if not self.interpreted:
            triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    def interpreting(self):
        """The faithful interpreter as a context, for many launches: `watched` need not prepare it for each."""
        return faithful.faithful() if self.interpreted and not self.unchecked else contextlib.nullcontext()

    def watched(self, poison: str, backwards: bool = False):
        """The memory checker as a context. If it does not work, only the guards around the tensors remain."""
        return contextlib.nullcontext() if self.unchecked else memory_checker.watch(poison, backwards)
