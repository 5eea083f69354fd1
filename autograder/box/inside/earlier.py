"""The memory that earlier calls of a host function made. No later call may use it: each call gives a fresh result.

Runs in children of the zygote, beside the learner's Python.
"""

from __future__ import annotations

import torch
from torch.multiprocessing.reductions import StorageWeakRef


class KeptTensor(Exception):
    """The host function used memory of an earlier call, or leaves its own to a later one. The message says which."""


class Earlier:
    """Storages of earlier calls, by identity. A weak reference keeps an identity from being given again."""

    def __init__(self):
        self._kept: dict[int, tuple[StorageWeakRef, str]] = {}

    def remember(self, tensors: list[torch.Tensor], result: object) -> None:
        """A call has ended: it was given or made these tensors, and it returned `result`."""
        for tensor in tensors:
            self._add(tensor, "a tensor")
        if isinstance(result, torch.Tensor):
            self._add(result, "the result")

    def _add(self, tensor: torch.Tensor, what: str) -> None:
        reference = StorageWeakRef(tensor.untyped_storage())
        self._kept[reference.cdata] = (reference, what)

    def what(self, storage: int) -> str | None:
        """ "a tensor" or "the result" for the memory of an earlier call; None for other memory."""
        return self._kept[storage][1] if storage in self._kept else None
