"""Counts, on Triton's interpreter, how often a kernel reads and writes each element of its tensors.

The count is exact and the same on every machine: it is what the kernel asks memory for, whatever caches do.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workshop.backend import interpreting


@dataclass(eq=False)
class TensorTraffic:
    """One tensor that was given to a kernel, and how often each of its elements was read and written.

    `reads` and `writes` are integer arrays of the tensor's shape.
    """

    name: str
    shape: tuple[int, ...]
    element_size: int
    reads: np.ndarray
    writes: np.ndarray
    index: np.ndarray  # elements from the start in memory -> position in the counts, -1 in a gap between rows
    start: int = 0

    @classmethod
    def of(cls, name: str, tensor) -> "TensorTraffic":
        positions = np.zeros(1, np.int64)
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
            positions = (positions[:, None] + np.arange(size, dtype=np.int64) * stride).ravel()
        index = np.full(int(positions.max()) + 1 if positions.size else 0, -1, np.int64)
        index[positions] = np.arange(positions.size)
        shape = tuple(tensor.shape)
        counts = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        return cls(name, shape, tensor.element_size(), *counts, index)

    def place(self, address: int) -> None:
        """Say where in memory the tensor begins in the launch that follows."""
        self.start = address

    @property
    def bytes_read(self) -> int:
        return int(self.reads.sum()) * self.element_size

    @property
    def bytes_written(self) -> int:
        return int(self.writes.sum()) * self.element_size

    def count(self, addresses: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Add the accesses that fall on this tensor's elements; returns which of `addresses` they are."""
        stop = self.start + self.index.size * self.element_size
        inside = (addresses >= self.start) & (addresses < stop)
        elements = self.index[(addresses[inside] - self.start) // self.element_size]
        np.add.at(counts.reshape(-1), elements[elements >= 0], 1)
        inside[inside] = elements >= 0
        return inside


@dataclass
class Traffic:
    """What every kernel launched inside `recording()` asked of memory.

    `tensors` are in the order in which kernels were given them; `result` is the counted function's.
    """

    tensors: list[TensorTraffic] = field(default_factory=list)
    launches: int = 0
    result: Any = None

    @property
    def bytes_read(self) -> int:
        return sum(tensor.bytes_read for tensor in self.tensors)

    @property
    def bytes_written(self) -> int:
        return sum(tensor.bytes_written for tensor in self.tensors)

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    def per_element(self, elements: int) -> float:
        """Bytes moved for each of that many elements."""
        return self.bytes_moved / elements if elements else 0.0

    def __getitem__(self, name: str) -> TensorTraffic:
        """The tensor that a kernel received as its parameter `name`."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(
            f"no kernel was given a tensor as {name!r}; there are: {[t.name for t in self.tensors]}"
        )

    def __str__(self) -> str:
        launches = "1 launch" if self.launches == 1 else f"{self.launches} launches"
        lines = [f"{launches}, {self.bytes_read:,} bytes read, {self.bytes_written:,} bytes written"]
        for tensor in self.tensors:
            lines.append(
                f"  {tensor.name} {list(tensor.shape)}: each element read {_range(tensor.reads)}, "
                f"written {_range(tensor.writes)}"
            )
        return "\n".join(lines)


class OutOfBounds(IndexError):
    """A kernel reached outside the tensors it was given; raised before memory is touched."""


def count_bytes(function: Callable, *args, **kwargs) -> Traffic:
    """Call `function` and count what the kernels it launches read and write.

    Raises RuntimeError when kernels run on a GPU, where nothing can be counted, and OutOfBounds, before
    memory is touched, when a kernel reaches outside its tensors.
    """
    with recording() as traffic:
        traffic.result = function(*args, **kwargs)
    return traffic


@contextlib.contextmanager
def recording() -> Iterator[Traffic]:
    """Count the traffic of every kernel launched inside the block; errors as in count_bytes."""
    if not interpreting():
        raise RuntimeError(
            "loads and stores can only be counted on Triton's interpreter: set TRITON_INTERPRET=1"
        )
    from triton.runtime.errors import InterpreterError

    recorder = _Recorder()
    try:
        with recorder.installed():
            yield recorder.traffic
    except InterpreterError as error:
        raise (error.__cause__ if isinstance(error.__cause__, OutOfBounds) else error) from None


class _Recorder:
    """Stands between the interpreter and memory. Rests on two of the interpreter's own methods."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.known: dict[tuple, TensorTraffic] = {}
        self.current: list[TensorTraffic] = []
        self.kernel = ""

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        from triton.runtime.interpreter import GridExecutor, interpreter_builder

        prepare = GridExecutor._init_args_hst
        load, store = interpreter_builder.create_masked_load, interpreter_builder.create_masked_store

        def prepare_and_note(executor, args, kwargs):
            host_args, host_kwargs = prepare(executor, args, kwargs)
            self.launch(executor.fn.__name__, executor.arg_names, (args, kwargs), (host_args, host_kwargs))
            return host_args, host_kwargs

        # The modifiers that follow changed between Triton's versions.
        def counted_load(pointers, mask, *rest, **named):
            self.access("load", pointers, mask, interpreter_builder.grid_idx)
            return load(pointers, mask, *rest, **named)

        def counted_store(pointers, value, mask, *rest, **named):
            self.access("store", pointers, mask, interpreter_builder.grid_idx)
            return store(pointers, value, mask, *rest, **named)

        GridExecutor._init_args_hst = prepare_and_note
        interpreter_builder.create_masked_load = counted_load
        interpreter_builder.create_masked_store = counted_store
        try:
            yield
        finally:
            GridExecutor._init_args_hst = prepare
            _put_back(interpreter_builder, "create_masked_load", load)
            _put_back(interpreter_builder, "create_masked_store", store)

    def launch(self, kernel: str, names: list[str], given: tuple, copied: tuple) -> None:
        """Note the tensors of one launch: `given` by the caller, `copied` to where the interpreter works."""
        self.kernel = kernel
        self.traffic.launches += 1
        self.current = []
        originals, copies = (
            dict(zip(names, args, strict=False)) | kwargs for args, kwargs in (given, copied)
        )
        for name, original in originals.items():
            if not hasattr(original, "data_ptr"):
                continue
            key = (original.data_ptr(), tuple(original.shape), tuple(original.stride()))
            if key not in self.known:
                self.known[key] = TensorTraffic.of(name, original)
                self.traffic.tensors.append(self.known[key])
            tensor = self.known[key]
            tensor.place(copies[name].data_ptr())
            if tensor not in self.current:
                self.current.append(tensor)

    def access(self, kind: str, pointers, mask, program) -> None:
        """Count the active lanes of one load or store."""
        data = np.asarray(pointers.data)
        active = np.broadcast_to(np.asarray(mask.data, bool), data.shape)
        addresses = data[active].astype(np.int64).ravel()
        for tensor in self.current:
            found = tensor.count(addresses, tensor.reads if kind == "load" else tensor.writes)
            addresses = addresses[~found]
        if addresses.size:
            raise OutOfBounds(
                f"{self.kernel}: a {kind} reaches {addresses.size} elements outside the kernel's tensors in "
                f"program {tuple(program)}. The exercise's check says where."
            )


def _put_back(owner, name: str, original) -> None:
    """Undo an override on an instance: back to its class, or to what had overridden it before."""
    delattr(owner, name)
    if getattr(owner, name) != original:
        setattr(owner, name, original)


def _range(counts: np.ndarray) -> str:
    if not counts.size:
        return "0 times"
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return "once" if low == 1 else f"{low} times"
    return f"{low} to {high} times"
