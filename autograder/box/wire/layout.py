"""Where tensors lie in the memory of a job, and results in its output. Runs on both ends of the wire.

The judge packs inputs and unpacks results. The child of the zygote reads inputs and writes results.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...tensors import DTYPES, dtype_name, from_bytes, to_bytes
from .requests import Slot, TensorSpec, padding


class Packer:
    """Lays out the input tensors and the output slots of one job.

    The three arguments of `Box.run` are the request, `packer.tensors` and `packer.output_size`.
    """

    def __init__(self):
        self._memory = bytearray()
        self._packed: dict[int, tuple[torch.Tensor, int, int]] = {}  # keeps the tensor alive: its id stays unique
        self.output_size = 0

    @property
    def tensors(self) -> bytes:
        """The memory that the offsets of the specs point into."""
        return bytes(self._memory)

    def tensor(self, values: torch.Tensor, stride: Sequence[int] | None = None, shift: int = 0) -> TensorSpec:
        """Packs a tensor, once for each object. `stride` and `shift` are the layout that the learner's code gets."""
        if id(values) not in self._packed:
            raw = to_bytes(values)
            self._packed[id(values)] = (values, len(self._memory), len(raw))
            self._memory += raw + b"\0" * padding(len(raw))
        _, offset, size = self._packed[id(values)]
        stride = tuple(values.stride() if stride is None else stride)
        return TensorSpec(tuple(values.shape), stride, dtype_name(values.dtype), offset, size, shift)

    def slot(self, capacity: int) -> Slot:
        """Reserves `capacity` bytes for a result."""
        slot = Slot(self.output_size, capacity)
        self.output_size += capacity + padding(capacity)
        return slot


def read_tensor(spec: TensorSpec, tensors: memoryview) -> torch.Tensor:
    """A contiguous tensor from the job's memory."""
    return from_bytes(tensors[spec.offset : spec.offset + spec.bytes], DTYPES[spec.dtype], spec.shape)


def write_result(slot: Slot, output, raw: bytes) -> None:
    """Writes a result's bytes if they fit into the slot. If they do not, its shape is wrong, and the judge says so."""
    if len(raw) <= slot.capacity:
        output[slot.offset : slot.offset + len(raw)] = raw


def read_result(slot: Slot, output: bytes, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    """The tensor of this dtype and shape in a slot of the output."""
    return from_bytes(output[slot.offset : slot.offset + slot.capacity], dtype, shape)
