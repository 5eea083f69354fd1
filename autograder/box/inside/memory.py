"""Tensors of a job: decoys without the real values, buffers with guards, and what their elements hold.

A guarded tensor is placed inside a larger buffer, with a guard zone before it and one after it. A row-strided view
also has gaps between the rows. Guards and gaps hold a poison pattern. After the launches they must still hold it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import torch

from ...tensors import DTYPES, UNWRITTEN, bits, each_place, poison, span
from ..wire.answers import MAX_RUNS
from ..wire.requests import Decoy, Number
from .recorder import tensors_in

FEW = 1 << 12
GUARD = 512  # elements before and after a tensor; a multiple of 16 keeps the alignment that Triton specialises on
NOTHING = -1
OUTSIDE = "out-of-bounds-store"
_numbers, _starts = torch.randn(2 * FEW), itertools.count(0, 257)  # drawn once; a decoy begins at another of them


def decoys(arguments: Iterable[Decoy | Number], device) -> list:
    """The arguments of a call: numbers, and random tensors with the right shapes, strides and dtypes.

    The learner's Python gets nothing else.
    """
    made = []
    for argument in arguments:
        if not isinstance(argument, Decoy):
            made.append(argument)
            continue
        size = span(argument.shape, argument.stride) + argument.shift
        if argument.same is not None:
            first = made[argument.same]
            alike = (tuple(first.shape), first.stride()) == (tuple(argument.shape), tuple(argument.stride))
            made.append(first if alike else torch.as_strided(first, argument.shape, argument.stride))
            continue
        base = torch.empty(size, dtype=DTYPES[argument.dtype], device=device)  # a large one stays untouched
        few = min(size, FEW)  # the rest holds anything: to fill millions takes long, and nothing looks at them
        start = next(_starts) % FEW
        base[:few] = _numbers[start : start + few]
        made.append(torch.as_strided(base, argument.shape, argument.stride, argument.shift))
    return made


class Guarded:
    """`values` (contiguous) laid out with `stride`, between guards of GUARD elements. shift: as of a Decoy."""

    def __init__(self, values: torch.Tensor, stride: tuple[int, ...], device, pattern=UNWRITTEN, shift: int = 0):
        size, first = span(values.shape, stride) + shift + 2 * GUARD, GUARD + shift
        self.buffer = poison(torch.empty(size, dtype=values.dtype, device=device), pattern)
        self.tensor = torch.as_strided(self.buffer, tuple(values.shape), tuple(stride), first)
        each_place(self.tensor).copy_(each_place(values, stride))
        self.before = bits(self.buffer).clone()
        self.inside = torch.zeros(size, dtype=torch.bool, device=device)
        each_place(torch.as_strided(self.inside, tuple(values.shape), tuple(stride), first)).fill_(True)

    def damage(self) -> str | None:
        """'input-modified' if the tensor changed, OUTSIDE if a guard or gap changed, else None."""
        changed = bits(self.buffer) != self.before
        if bool((changed & ~self.inside).any()):
            return OUTSIDE
        return "input-modified" if bool(changed.any()) else None


class Copies:
    """Follows what each element of memory holds during a replay: an element of an input, another number, or nothing.

    So it can be said how often the kernels read each element of an input, in the input or in copies of it, and what
    nothing has written yet. `moved` follows what torch writes for the host.
    """

    def __init__(self, inputs: list[torch.Tensor]):
        self._inputs, self._sizes = inputs, [tensor.numel() for tensor in inputs]
        self._read: dict[int, torch.Tensor] = {}  # by storage: the elements that a kernel has read
        self._copied: set[int] = set()  # storages that torch has read, too
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
        """`made` is what one of answers.FILL, MOVE or ARITHMETIC made of these arguments."""
        self._copied |= {tensor.untyped_storage().data_ptr() for tensor in tensors_in(args)}
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
            read = self._read.setdefault(storage.start, torch.zeros(len(owners), dtype=torch.bool)).numpy()
            for loads in storage.passes.values():
                loads = loads.numpy() if units == 1 else loads.reshape(-1, units).amax(1).numpy()
                loaded = loads.nonzero()[0]
                read[loaded] = True
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

    @property
    def unread(self) -> tuple[tuple[int, ...], ...]:
        """For each input that was not copied, the first runs of elements that no kernel read, in row-major order."""
        return tuple(map(self._unread, self._inputs))

    def _unread(self, tensor: torch.Tensor) -> tuple[int, ...]:
        start = tensor.untyped_storage().data_ptr()
        read = self._read.get(start)
        if read is None or start in self._copied or read.all():
            return ()
        left = ~torch.as_strided(read, tensor.shape, tensor.stride(), tensor.storage_offset()).flatten()
        edges = torch.nn.functional.pad(left.to(torch.int8), (1, 1)).diff().nonzero().flatten()
        return tuple(edges[: 2 * MAX_RUNS].tolist())
