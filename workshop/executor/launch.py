"""A launch: its arguments as Triton's launcher sees them, the Program of its kernel, and its execution."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
import triton.language as tl

from . import front_end
from .arithmetic import UNSIGNED, constant
from .facts import about
from .machine import Machine
from .memory import Memory, Watch
from .program import FORMATS, Program
from .records import Launch, NeverEnds, Pages
from .values import View, uniform

LANES = 1 << 18  # of a batch of programs that run at once: its values stay in the processor's caches
MOST_AT_ONCE = 1 << 18  # programs, where only their addresses are wanted
MOST_PROGRAMS = (1 << 31) - 1, 65_535, 65_535  # of a grid's axes, on every card
# How a signature writes the type of a tensor.
TYPES = {each.dtype: each.name for each in FORMATS} | {each: f"u{8 * each.itemsize}" for each in UNSIGNED.values()}
NOTHING, FINISHED = Watch(), object()


@dataclass(frozen=True)
class Specialisation:
    """What a launch tells the compiler. signature, constants and attributes are those of `front_end.lower`.

    leaves: by path, the label, value and type of each argument that is not a constant, in the kernel's order.
    """

    signature: dict = field(default_factory=dict)
    constants: dict = field(default_factory=dict)
    attributes: dict = field(default_factory=dict)
    leaves: dict = field(default_factory=dict)

    @property
    def arguments(self) -> list[tuple[str, object, str]]:
        return list(self.leaves.values())

    @functools.cached_property
    def key(self) -> tuple:
        return repr(self.signature), repr(sorted(self.constants.items(), key=repr)), repr(self.attributes)


def bind(kernel, args: tuple, kwargs: dict) -> tuple[dict, dict]:
    """The arguments by parameter, with defaults, and the options of the launch. Raises TypeError as a call does."""
    names = set(kernel.arg_names)
    options = {name: value for name, value in kwargs.items() if name not in names}
    given = {name: value for name, value in kwargs.items() if name in names}
    try:
        bound = kernel.signature.bind(*args, **given)
    except TypeError as error:
        near = next((name for name in options if name.lower() in map(str.lower, names)), "")
        got = f". It gets '{near}'" * bool(near)
        raise TypeError(f"{kernel.fn.__name__} takes {', '.join(kernel.arg_names)}: {error}{got}") from None
    bound.apply_defaults()
    return {name: _number(value) for name, value in bound.arguments.items()}, options


def _number(value):
    """Converts scalars of NumPy to Python numbers. Returns everything else unchanged."""
    if not isinstance(value, torch.Tensor) and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def specialise(kernel, bound: dict) -> Specialisation:
    """As Triton's launcher does: types, numbers that are 1 as constants, and what is divisible by 16."""
    special = Specialisation()
    for position, parameter in enumerate(kernel.params):
        value, forced = bound[parameter.name], parameter.annotation_type or None
        if parameter.is_constexpr:
            value = tl.constexpr(value)
        plainly = parameter.do_not_specialize or isinstance(forced, str) and forced[:2] in ("fp", "bf", "u1")
        special.signature[parameter.name] = _noted(special, value, (position,), not plainly, parameter.name, forced)
    return special


def _noted(special: Specialisation, value, path: tuple, specialised: bool, label: str, forced=None):
    """The type of one argument, as Triton's compiler writes it; notes what else is to be known of it."""
    if isinstance(value, (tuple, list)):
        kinds = [_noted(special, each, (*path, i), specialised, f"{label}[{i}]") for i, each in enumerate(value)]
        return type(value)(*kinds) if hasattr(value, "_fields") else tuple(kinds)
    forced = forced if isinstance(forced, str) else None
    seen = type(value) is int and specialised and not forced  # Triton looks at the number
    is_aligned, kind = seen and value % 16 == 0, "constexpr"
    if isinstance(value, tl.constexpr):
        value = value.value
    elif value is None or seen and value == 1 or hasattr(value, "fn") or isinstance(value, (str, tl.dtype)):
        pass
    elif hasattr(value, "block_shape") and hasattr(value, "base"):  # a tensor descriptor that the host made
        kind = f"tensordesc<{TYPES[value.base.dtype]}{list(value.block_shape)}>"
    elif isinstance(value, torch.Tensor) or hasattr(value, "data_ptr"):
        if value.dtype not in TYPES:
            raise TypeError(f"{label}: Triton has no type for a tensor of {value.dtype}")
        kind, is_aligned = "*" + TYPES[value.dtype], value.data_ptr() % 16 == 0
    elif isinstance(value, (bool, int, float)):
        kind = forced or _number_type(value)
    elif not callable(value):
        raise TypeError(f"{label}: a kernel takes tensors and numbers, not {type(value).__name__}")
    if is_aligned:
        special.attributes[path] = [["tt.divisibility", 16]]
    if kind == "constexpr":
        special.constants[path] = value
    else:
        special.leaves[path] = label, value, kind
    return kind


def misfit(kernel, compiled: Specialisation, given: Specialisation) -> str:
    """What a program was compiled for that another call does not have, in words; "" if the call fits."""
    for path, (label, _, kind) in compiled.leaves.items():
        if path in given.leaves and given.leaves[path][2] != kind:
            return f"{label} had the type {kind}"
        if path in compiled.attributes and path not in given.attributes:
            return label + (" began at a multiple of 16 bytes" if kind.startswith("*") else " was divisible by 16")
    missing = object()
    for path, value in compiled.constants.items():
        if value is not given.constants.get(path, missing) and value != given.constants.get(path, missing):
            return f"{kernel.arg_names[path[0]]} was {value!r}"
    return ""


def _number_type(value: bool | int | float) -> str:
    if isinstance(value, (bool, float)):
        return "i1" if isinstance(value, bool) else "fp32"
    return "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if -(1 << 63) <= value < 1 << 63 else "u64"


def grid_of(grid, bound: dict) -> tuple[int, int, int]:
    """The grid of a launch. Raises TypeError and ValueError where no card can launch it."""
    grid = grid(dict(bound)) if callable(grid) else grid
    if not isinstance(grid, (tuple, list, torch.Size)):
        raise TypeError(f"a launch grid is a tuple, such as ({grid!r},), not {type(grid).__name__}")
    if not 1 <= len(grid) <= 3:
        raise TypeError(f"a launch grid has one to three dimensions, not {len(grid)}")
    for axis, (size, most) in enumerate(zip(grid, MOST_PROGRAMS)):
        if not hasattr(size, "__index__"):
            raise TypeError(f"a launch grid holds integers, not {size!r}")
        if not 0 <= size <= most:
            told = f"{size:,}: a card takes at most {most:,}" if size > 0 else size
            raise ValueError(f"dimension {axis} of the launch grid is {told}")
    return (*map(operator.index, grid), 1, 1)[:3]


def method(run: Callable) -> property:
    """`run` as that of all kernels. Triton 3.5 and older give each kernel one of its own, which this hides."""
    return property(lambda kernel: functools.partial(run, kernel), lambda kernel, value: None)


# --- execution ---------------------------------------------------------------------------------------------


@contextmanager
def one_thread() -> Iterator[None]:
    """torch in one thread: thousands of short operations would each wait for the slowest thread.

    On a machine where others compute, too, such as a room's, two threads are ten times slower than one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def execute(program: Program, arguments: list[tuple[str, object, str]], grid: tuple[int, int, int],
            watch: Watch = NOTHING, programs: torch.Tensor | None = None, defined: dict | None = None,
            name: str = "", only_addresses: bool = False, pages: Iterable[Pages] = ()) -> Launch:  # fmt: skip
    """Run a Program.

    arguments: label, value and type of each that is not a constant, in the kernel's order. programs: the numbers of
    those that run, in ascending order; None for all. defined: by a storage's address, which of its elements are defined
    (bool, one for each unit of its tensors). only_addresses: every access is checked and counted, and nothing is
    computed; raises memory.TooLarge where that takes more. pages: in the place of the memory of tensors.
    Raises records.Fault, FalsePromise, NeverEnds and DeviceAssert.
    """
    launch = Launch(name or program.kernel.name, grid)
    numbers = torch.arange(math.prod(grid)) if programs is None else programs
    facts = about(program)
    memory = Memory(launch, watch, numbers, pages)
    memory.only_addresses = only_addresses
    values = _entry_values(program, arguments, memory)
    for start, storage in memory.storages.items():
        storage.narrow(facts.narrowest)
        storage.defined = (defined or {}).get(start, storage.defined)
        if storage.defined is not None and len(storage.defined) < storage.units:
            storage.defined = storage.defined.repeat_interleave(storage.units // len(storage.defined))
    if not numbers.numel():
        return launch
    memory.written = {label for number, (label, _) in enumerate(values) if number in facts.written}
    given, in_turns = [value for _, value in values], bool(facts.waits) and not only_addresses
    size = 1 if in_turns else MOST_AT_ONCE if only_addresses else max(1, LANES // facts.largest)
    batches = torch.arange(numbers.numel(), dtype=torch.int32).split(size)
    machines = (Machine(program, memory, grid, batch) for batch in batches)
    for together in [[*machines]] if in_turns else ([machine] for machine in machines):
        _in_turns(memory, together, given)
    return launch


def _entry_values(program: Program, arguments, memory: Memory) -> list[tuple[str, object]]:
    """The values of the kernel's parameters; a tensor descriptor is one value and, behind it, its sizes and strides."""
    found = []
    for label, value, kind in arguments:
        if kind.startswith("tensordesc"):
            address = memory.register(label, value.base)
            sizes, strides = list(value.shape), list(value.strides)
            padding = math.nan if getattr(value, "padding", "zero") == "nan" else 0.0
            found.append((label, View(address, sizes, strides, [], tuple(value.block_shape), padding)))
            found += [(label, n) for n in (*value.shape, *value.strides)]
        else:
            found.append((label, memory.register(label, value) if kind.startswith("*") else value))
    entry = program.kernel.entry.arguments
    if len(entry) != len(found):
        raise TypeError(f"the kernel has {len(entry)} parameters that are not constants; {len(found)} were given")
    for i, ((label, value), type) in enumerate(zip(found, [each.type for each in entry])):
        if isinstance(value, (bool, int, float)):  # sizes and strides of a descriptor have the types of this Triton
            found[i] = label, uniform(type, constant("", (value if type.kind == "float" else int(value),), type))
    return found


def _in_turns(memory: Memory, machines: list[Machine], given: list) -> None:
    """Run programs that may wait for one another: one at a time, the next one wherever one has to wait."""
    waiting = [(machine, machine.function(machine.program.kernel, given, None)) for machine in machines]
    while waiting:
        before, still = memory.changes, []
        for machine, steps in waiting:
            memory.batch = machine.batch
            if next(steps, FINISHED) is not FINISHED:
                still.append((machine, steps))
        if len(still) == len(waiting) and memory.changes == before:
            machine, memory.batch = still[0][0], still[0][0].batch
            why = "This wait never ends: no program that still runs can change what it waits for"
            raise NeverEnds(why, memory.launch.kernel, memory.program_at(0), *memory.text(machine.where))
        waiting = still


_lowered: dict[tuple, Program] = {}


def lowered(kernel, special: Specialisation, options: dict, target: str = "cuda") -> Program:
    """The Program of a kernel for a launch; the same one again while neither it nor its globals have changed.

    The front end reads a kernel once for all that a launch promises of its arguments: they are no part of its text.
    """
    key = (*key_of(kernel, special, options), target)
    if key not in _lowered:
        while len(_lowered) >= 512:
            del _lowered[next(iter(_lowered))]
        places = {path: [[_PLACE, path]] for path in special.leaves}
        if special.attributes != places:
            # The same operations, whose arguments say their places; in place of these the promises of this launch.
            shared = lowered(kernel, replace(special, attributes=places), options, target)
            told = {i: special.attributes.get(each[_PLACE]) for i, each in shared.kernel.promises.items()}
            _lowered[key] = shared.promising({i: dict(each) for i, each in told.items() if each})
        else:
            more = {"debug": True, **options}  # without it, Triton leaves tl.device_assert out
            _lowered[key] = front_end.lower(kernel, special.signature, special.constants, places, more, target)
    check_globals(kernel)
    return _lowered[key]


def key_of(kernel, special: Specialisation, options: dict) -> tuple[str, ...]:
    """What the program of a launch follows from, but for the target."""
    file = kernel.fn.__code__.co_filename
    return kernel.cache_key, file, *special.key, repr(sorted(options.items(), key=repr))


_PLACE = "place"  # the promise that says which argument this is


def check_globals(kernel) -> None:
    """Raises RuntimeError, as a launch on a GPU does, where a global that the kernel uses has another value now."""
    for (name, _), (value, own) in getattr(kernel, "used_global_vals", {}).items():
        if (now := own.get(name, value)) != value:
            raise RuntimeError(
                f"Global variable {name} has changed since we compiled this kernel, from {value} to {now}"
            )
