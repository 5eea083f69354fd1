"""Memory checking for kernels that run in Triton's interpreter.

    with watch(poison="nan") as memory:
        kernel[grid](...)

Every active lane of every load, store and atomic is checked against the exact view of the tensor that its
pointer came from, before memory is touched; the gaps between the rows of a strided view are not part of it.
The first lane outside raises OutOfBounds, whose `fault` says what, where and by whom.

Kernels do not see real addresses: each tensor argument gets an address range of its own, far from the others,
so a pointer always names its tensor, and a wrong address reaches no memory.
"""

from __future__ import annotations

import contextlib
import copy
import linecache
import sys
from collections.abc import Iterator

import numpy as np
import torch
import triton
import triton.language as tl
import triton.runtime.interpreter as interpreter

from .memory_record import NOWHERE, WINDOW, Argument, Fault, Launch, OutOfBounds, Race, Storage
from .races import Races

try:  # private names of Triton, which another version may not have; every access passes `_native`
    from triton.runtime.interpreter import _interpreter as _native

    from .faithful import faithful, replaced
except (AttributeError, ImportError) as error:
    _missing: str | None = str(error)
else:
    _missing = None

GRANULE = 16  # bytes; a Hopper GPU stores the blocks of tensor descriptors in such units

class Memory:
    """Record of the launches inside one `watch`; the totals are over all of them."""

    def __init__(self, poison: str):
        self.poison = poison
        self.poisoned = False  # whether a lane that no load filled was given garbage
        self.launches: list[Launch] = []
        self.fault: Fault | None = None
        self._races: Races | None = None  # of the last launch
        self._windows: list[Argument] = []
        self._addresses: dict[int, Argument] = {}
        self._kept: list[object] = []  # keeps the ids in _addresses from being used again

    @property
    def races(self) -> list[Race]:
        return [race for launch in self.launches for race in launch.races]

    @property
    def bytes_loaded(self) -> int:
        return sum(launch.bytes_loaded for launch in self.launches)

    @property
    def bytes_stored(self) -> int:
        return sum(launch.bytes_stored for launch in self.launches)

    # -- a launch begins

    def begin(self, executor, names: list[str], values: list[object]) -> None:
        function = executor.fn
        launch = Launch(function.__name__, function.__code__.co_filename)
        self.launches.append(launch)
        self._races = Races(launch, self._where, _same_bits, _program_at)
        self._windows, self._addresses, self._kept = [], {}, []
        storages: dict[int, Storage] = {}
        for name, value in zip(names, values, strict=False):
            for label, tensor in _tensors(name, value):
                self._register(launch, label, tensor, storages)

    def _register(self, launch: Launch, name: str, wrapped: object, storages: dict[int, Storage]) -> None:
        tensor = interpreter._unwrap_tensor(wrapped)
        memory = tensor.untyped_storage()
        start = memory.data_ptr()
        if start not in storages:
            storages[start] = Storage(start, memory.nbytes())
        argument = Argument(name, tensor, storages[start], len(self._windows))
        launch.arguments[name] = argument
        self._windows.append(argument)
        self._addresses[id(wrapped)] = argument
        self._kept.append(wrapped)

    def virtual_address(self, value: object) -> int | None:
        argument = self._addresses.get(id(value))
        return argument.virtual if argument else None

    # -- an access

    def access(self, kind: str, pointers, mask, itemsize: int, values=None) -> np.ndarray:
        """Check and count one access; returns the real addresses, those of masked-off lanes being 0.

        values: what a store writes, or the name of the memory semantics of an atomic.
        """
        launch = self.launches[-1]
        addresses, active = np.asarray(pointers), np.asarray(mask).astype(bool, copy=False)
        if active.shape != addresses.shape:
            active = np.broadcast_to(active, addresses.shape)
        active, virtual = active.ravel(), addresses.ravel().view(np.int64)
        lanes = np.flatnonzero(active)
        real = np.zeros(virtual.shape, np.int64)
        launch.masked_lanes += active.size - lanes.size
        launch.loads += kind == "load"
        launch.stores += kind == "store"
        launch.atomics += kind == "atomic"
        launch.grid = interpreter.interpreter_builder.grid_dim
        if not lanes.size:
            return real.view(np.uint64).reshape(addresses.shape)
        wanted = virtual if lanes.size == active.size else virtual[lanes]
        for number, group in self._by_window(wanted):
            argument = self._windows[number] if 0 <= number < len(self._windows) else None
            offsets = wanted[group] - (argument.virtual if argument else 0)
            self._check(kind, argument, offsets, lanes[group], addresses.shape, itemsize)
            new = np.broadcast_to(values, addresses.shape).ravel()[lanes[group]] if kind == "store" else values
            self._count(kind, argument, offsets, itemsize, (addresses.shape, lanes[group]), new)
            place = _program_number(), number, int(offsets[0]), len(offsets), active.size
            launch.accesses = hash((launch.accesses, *place))
            real[lanes[group]] = offsets + argument.real
        return real.view(np.uint64).reshape(addresses.shape)

    @staticmethod
    def _by_window(wanted: np.ndarray) -> list[tuple[int, slice | np.ndarray]]:
        """The numbers of the windows that these addresses are in, with the addresses that are there."""
        first, last = ((int(end) + (1 << WINDOW - 1) >> WINDOW) - 1 for end in _ends(wanted))
        if first == last:
            return [(first, slice(None))]
        windows = (wanted + (1 << WINDOW - 1) >> WINDOW) - 1
        return [(int(number), windows == number) for number in np.unique(windows)]

    def _check(self, kind, argument, offsets, lanes, block, itemsize) -> None:
        if argument is None:
            self._fail(kind, None, 0, lanes, block)
        low, high = _ends(offsets)
        if argument.solid and low >= 0 and high <= argument.bytes - itemsize:
            return
        inside = (offsets >= 0) & (offsets <= argument.bytes - itemsize)
        at = offsets if inside.all() else offsets[inside]
        inside[inside] = argument.within[at] & argument.within[at + itemsize - 1]
        if inside.all():
            return
        bad = np.flatnonzero(~inside)
        self._fail(kind, argument, int(offsets[bad[0]]), lanes[bad], block)

    def _fail(self, kind, argument, offset, lanes, block) -> None:
        line, code = self._where()
        about = {
            "kind": kind,
            "kernel": self.launches[-1].kernel,
            "program": tuple(interpreter.interpreter_builder.grid_idx),
            "block": tuple(block),
            "lane": tuple(int(i) for i in np.unravel_index(lanes[0], block)) if block else (),
            "lanes": len(lanes),
            "line": line,
            "code": code,
        }
        self.fault = Fault(**about, **(argument.locate(offset) if argument else NOWHERE))
        raise OutOfBounds(self.fault)

    def _where(self) -> tuple[int | None, str]:
        line = self._line()
        return line, linecache.getline(self.launches[-1].filename, line).strip() if line else ""

    def _line(self) -> int | None:
        """Line of the kernel's own file that is running: the innermost, so a helper's before its caller's."""
        filename = self.launches[-1].filename
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != filename:
            frame = frame.f_back
        return frame and frame.f_lineno

    # -- counting and races

    def synchronise(self) -> None:
        """The running program passes a barrier."""
        if self._races:
            self._races.order.synchronise()

    def _count(self, kind: str, argument: Argument, offsets: np.ndarray, itemsize: int, block: tuple, new) -> None:
        launch, storage = self.launches[-1], argument.storage
        at = _in_a_row(offsets, argument.real - storage.start, itemsize)
        size = offsets.size * itemsize
        if kind != "store":
            _add_one(storage.reads, at)
            argument.bytes_loaded += size
            launch.bytes_loaded += size
        if kind != "load":
            _add_one(storage.writes, at)
            argument.bytes_stored += size
            launch.bytes_stored += size
        program = _program_number()
        if kind == "load":
            storage.count_pass(self._line(), self._races.load(argument, at, program, *block))
        elif kind == "store":
            self._races.store(argument, at, program, *block, new)
        else:
            self._races.atomic(argument, at, program, *block, new)


def _tensors(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Tensors of an argument, labelled: itself, the elements of a tuple, a tensor descriptor's base."""
    if hasattr(value, "data_ptr"):
        yield name, value
    elif isinstance(value, tuple):
        for position, element in enumerate(value):
            yield from _tensors(f"{name}[{position}]", element)
    elif isinstance(value, interpreter.TensorDescriptor):
        yield from _tensors(name, value.base)


def _ends(numbers: np.ndarray) -> tuple[np.int64, np.int64]:
    return np.minimum.reduce(numbers), np.maximum.reduce(numbers)


def _in_a_row(offsets: np.ndarray, start: int, itemsize: int) -> np.ndarray | slice:
    """The offsets from `start`; a slice where the elements lie one after the other, which is much faster."""
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first != (offsets.size - 1) * itemsize or not (offsets[1:] - offsets[:-1] == itemsize).all():
        return offsets + start
    return slice(start + first, start + last + 1, itemsize)


def _add_one(counts: np.ndarray, at: np.ndarray | slice) -> None:
    if isinstance(at, slice):
        counts[at] += 1
    else:
        np.add.at(counts, at, 1)


def _program_number() -> int:
    x, y, z = interpreter.interpreter_builder.grid_idx
    nx, ny, _ = interpreter.interpreter_builder.grid_dim
    return x + nx * (y + ny * z)


def _program_at(number: int | None) -> tuple[int, int, int] | None:
    """The place in the grid of a program; None: of the running one. A negative number means several programs."""
    if number is None:
        return tuple(interpreter.interpreter_builder.grid_idx)
    if number < 0:
        return None
    nx, ny, _ = interpreter.interpreter_builder.grid_dim
    return number % nx, number // nx % ny, number // (nx * ny)


def _same_bits(addresses: np.ndarray, new: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Which of the chosen elements in memory hold the bits that are about to be stored."""
    bits = np.dtype(f"u{new.itemsize}")
    old = _native.load(addresses.astype(np.uint64), chosen, np.zeros(addresses.shape, bits), bits)
    return old == np.ascontiguousarray(new).view(bits)


# --- between the interpreter and memory --------------------------------------------------------------------


class _Gate:
    """Stands for the interpreter's native module: checks each access and gives it its real addresses."""

    def __init__(self, memory: Memory):
        self._memory = memory

    def __getattr__(self, name: str):
        return getattr(_native, name)

    def load(self, pointers, mask, other, dtype):
        real = self._memory.access("load", pointers, mask, np.dtype(dtype).itemsize)
        return _native.load(real, mask, other, dtype)

    def store(self, pointers, values, mask):
        real = self._memory.access("store", pointers, mask, np.asarray(values).itemsize, np.asarray(values))
        return _native.store(real, values, mask)

    def atomic_rmw(self, operation, pointers, values, mask, semantics):
        real = self._memory.access("atomic", pointers, mask, np.asarray(values).itemsize, semantics.name)
        return _native.atomic_rmw(operation, real, values, mask, semantics)

    def atomic_cas(self, pointers, expected, values, semantics):
        real = self._memory.access("atomic", pointers, True, np.asarray(values).itemsize, semantics.name)
        return _native.atomic_cas(real, expected, values, semantics)


def _poisoned(load, memory: Memory):
    """The builder's masked load; masked-off lanes, undefined on a GPU, get garbage here."""

    def create_masked_load(self, pointers, mask, other, *rest, **options):
        if other is None and memory.poison == "nan" and not np.all(mask.data):
            memory.poisoned = True
            scalar = pointers.get_element_ty()
            dtype = interpreter._get_np_dtype(scalar)
            data = np.full(pointers.data.shape, _garbage(scalar, dtype), dtype)
            if data.ndim and (dtype.kind == "f" or scalar == tl.bfloat16):  # tl.max passes over NaN, not over inf
                data.reshape(-1)[::2] = 0x7F80 if scalar == tl.bfloat16 else np.inf
            other = interpreter.TensorHandle(data, scalar)
        return load(self, pointers, mask, other, *rest, **options)

    return create_masked_load


def _in_granules(store):
    """The builder's store of a descriptor's block, as a Hopper GPU does it: in units of GRANULE bytes.

    A row of the tensor that ends inside of a unit is followed by zeros. Measured on an H200: a tensor of 5 float32 was
    followed by 3 zeros in the memory of others, one of 8 by none.
    """

    def create_descriptor_store(self, desc, value, indices):
        elements = GRANULE // (desc.base.dtype.element_ty.primitive_bitwidth // 8)
        (length,) = desc.shape[-1].data.ravel()[:1]
        whole = copy.copy(desc)
        whole.shape = [*desc.shape[:-1], copy.copy(desc.shape[-1])]
        whole.shape[-1].data = np.array([-(-length // elements) * elements], desc.shape[-1].data.dtype)
        _, inside = desc.materialize_pointers(indices)
        inside = inside if isinstance(inside, np.ndarray) else inside.data
        filled = np.where(inside, value.data, np.zeros_like(value.data))
        return store(self, whole, interpreter.TensorHandle(filled, value.dtype), indices)

    return create_descriptor_store


def _garbage(scalar: tl.dtype, dtype: np.dtype):
    if dtype.kind == "f":
        return np.nan
    if scalar == tl.bfloat16:
        return 0x7FC0  # NaN
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max // 3  # far from every tensor, and easy to recognise


def _from_the_end(set_grid_idx):
    def mirrored(self, *program):
        set_grid_idx(self, *(n - 1 - i for n, i in zip(self.grid_dim, program, strict=True)))

    return mirrored


@contextlib.contextmanager
def watch(poison: str = "nan", backwards: bool = False) -> Iterator[Memory]:
    """Check and record the kernels that are launched inside, in the interpreter.

    `poison` is what masked-off lanes of loads without `other` hold: "nan" (in integers: a huge number) or
    "zero". `backwards` begins with the last program of a launch: on a GPU they run in any order. Raises
    OutOfBounds from the launch that reaches outside a tensor.
    """
    if poison not in ("nan", "zero"):
        raise ValueError(f'poison must be "nan" or "zero", not {poison!r}')
    memory = Memory(poison)
    executor, builder = interpreter.GridExecutor, interpreter.InterpreterBuilder
    take_arguments, convert = executor._init_args_hst, interpreter._implicit_cvt

    def _init_args_hst(self, args, kwargs):
        host_args, host_kwargs = take_arguments(self, args, kwargs)
        names = [*self.arg_names[: len(host_args)], *host_kwargs]
        memory.begin(self, names, [*host_args, *host_kwargs.values()])
        return host_args, host_kwargs

    def _implicit_cvt(value):
        converted = convert(value)
        address = memory.virtual_address(value)
        if address is not None:
            converted.handle.data = np.array([address], np.uint64)
        return converted

    with (
        faithful(),
        replaced(interpreter, _interpreter=_Gate(memory), _implicit_cvt=_implicit_cvt),
        replaced(executor, _init_args_hst=_init_args_hst),
        replaced(builder, create_descriptor_store=_in_granules(builder.create_descriptor_store)),
        replaced(builder, create_masked_load=_poisoned(builder.create_masked_load, memory)),
        replaced(builder, create_barrier=lambda self: memory.synchronise()),
        replaced(builder, set_grid_idx=_from_the_end(builder.set_grid_idx) if backwards else builder.set_grid_idx),
    ):
        yield memory


# --- does it fit this Triton? ------------------------------------------------------------------------------

_PROBE = """import triton; import triton.language as tl

@triton.jit
def probe(x, y, n, past, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    w = tl.where(i < n, v, 0.0)
    tl.store(y + i, w + tl.max(w, axis=0), mask=i < n)
    tl.store(y + 4, tl.sum(tl.where(v != v, 1.0, 0.0), axis=0))
    tl.store(y + past, 1.0)
"""


def self_test() -> str | None:
    """None when this Triton's interpreter has the internals that `watch` needs, else what is missing."""
    if not triton.knobs.runtime.interpret:
        return (
            "Triton was imported to compile kernels: TRITON_INTERPRET=1 was not set before `import triton`."
        )
    try:
        problem = _missing or _probe()
    except Exception as error:  # another Triton may raise anything
        problem = f"{type(error).__name__}: {error}"
    return problem and (
        f"Memory cannot be checked in the interpreter of this Triton, {triton.__version__} ({problem})."
    )


def _load(source: str, filename: str) -> dict:
    """Executes `source` so that Triton finds its text: inspect.getsource reads linecache."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict = {"__name__": filename}
    exec(compile(source, filename, "exec"), namespace)
    return namespace


def _probe() -> str | None:
    kernel = _load(_PROBE, "<self-test>")["probe"]
    for dtype in (torch.float32, torch.bfloat16):
        x, y = torch.arange(8, dtype=dtype)[:6], torch.zeros(8, dtype=dtype)
        with watch() as memory:
            try:
                kernel[(2,)](x, y, 3, 9, B=4)
            except OutOfBounds as caught:
                fault = caught.fault
            else:
                return "a store past the end of a tensor was not seen"
        if (fault.kind, fault.argument, fault.element, fault.line) != ("store", "y", 9, 10):
            return "an access was seen in the wrong place"
        if y[:3].tolist() != [2.0, 3.0, 4.0]:
            return "values were computed or stored wrongly"
        if y[4].item() != 1.0:
            return "masked-off lanes were not poisoned"
        if memory.launches[0].arguments["y"].writes.tolist() != [1, 1, 1, 0, 1, 0, 0, 0]:
            return "stores were miscounted"
    return None
