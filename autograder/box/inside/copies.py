"""Follows what each element of memory holds during a replay: an element of an input, another number, or nothing.

So it can be said how often the kernels read each element of an input, in the input or in copies of it, and what
nothing has written yet. Runs in a child of the zygote, where the learner's Python does not run.
"""

from __future__ import annotations

import torch

from ...tensors import each_place

NOTHING = -1


class Copies:
    """Knows which elements of memory hold elements of an input. `moved` follows what torch writes for the host."""

    def __init__(self, inputs: list[torch.Tensor]):
        self._sizes = [tensor.numel() for tensor in inputs]
        self._reads = [0] * len(inputs)
        # By storage: for each element, 1 + the number of its input, 0 for another number, or NOTHING.
        self._owners: dict[int, torch.Tensor] = {}
        for number, tensor in enumerate(inputs):
            each_place(self._owner(tensor)).fill_(1 + number)

    def _owner(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._owners:
            self._owners[storage.data_ptr()] = torch.zeros(storage.nbytes() // tensor.itemsize, dtype=torch.int8)
        owners = self._owners[storage.data_ptr()]
        return torch.as_strided(owners, tensor.shape, tensor.stride(), tensor.storage_offset())

    def allocated(self, tensor: torch.Tensor) -> None:
        """Fresh memory: nothing has written it."""
        self._owner(tensor).fill_(NOTHING)

    def moved(self, operation: str, args: list, made: torch.Tensor) -> None:
        """`made` is what one of trace.FILL or trace.MOVE made of these arguments."""
        if operation in ("cat", "stack"):
            owners = getattr(torch, operation)([self._owner(tensor) for tensor in args[0]], *args[1:])
        elif operation == "constant_pad_nd":
            owners = torch.nn.functional.pad(self._owner(args[0]), args[1])
        elif operation in ("clone", "_to_copy", "copy", "copy_"):
            owners = self._owner(args[operation in ("copy_", "copy")])
        else:
            owners = torch.zeros((), dtype=torch.int8)
        self._owner(made).copy_(owners)

    def defined(self) -> dict[int, torch.Tensor]:
        """By the address of a storage: which of its elements have been written. Complete ones are left out."""
        known = {start: owners != NOTHING for start, owners in self._owners.items() if len(owners)}
        return {start: each for start, each in known.items() if not each.all()}

    def count(self, launch) -> None:
        """Adds what an execution saw. What a kernel has stored is its own result, no copy any more.

        A line of a kernel counts for each element that it loads as often as for the element that it loads least:
        blocks that overlap, to cover a ragged end, are not a second pass.
        """
        for storage in {id(a.storage): a.storage for a in launch.arguments.values()}.values():
            owners = self._owners.get(storage.start)
            if owners is None or not len(owners):
                continue
            units = storage.units // len(owners)  # of an element: another tensor of this launch may have smaller ones
            for loads in storage.passes.values():
                loads = loads.numpy() if units == 1 else loads.reshape(-1, units).amax(1).numpy()
                loaded = loads.nonzero()[0]
                loads, who = loads[loaded], owners.numpy()[loaded]
                for owner in range(1, 1 + int(who.max(initial=0))):
                    seen = loads[who == owner]
                    self._reads[owner - 1] += int(seen.min()) * len(seen) if len(seen) else 0
            if storage.written:
                owners[(storage.writes > 0).reshape(-1, units).any(1)] = 0

    @property
    def reads(self) -> tuple[float, ...]:
        """For each input: how often an element was read, on average."""
        return tuple(round(reads / max(size, 1), 3) for reads, size in zip(self._reads, self._sizes, strict=True))
