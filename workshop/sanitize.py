"""Looks for mistakes in memory: `sanitize(function, *arguments)` runs a function with every access checked.

It finds the first access outside of a tensor, read of what nothing has written, race between programs, and promise to
the compiler that is not true, and says which line, program and element it was. Kernels run on `workshop.executor`, on
every machine: it is slower than a GPU, and it knows more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only
from triton.runtime.jit import KernelInterface

from workshop import advice, launching
from workshop.executor.records import Fault, Launch
from workshop.picture import count
from workshop.short import Told, own_lines
from workshop.traffic import Recording


@dataclass(frozen=True)
class Sanitized:
    """What was found. result: what the function returned, or None if a mistake ended it.

    problems: their headlines are "out of bounds", "race", "undefined", "unwritten" or "error".
    """

    result: Any
    launches: int
    problems: tuple[Told, ...]

    @property
    def clean(self) -> bool:
        return not self.problems

    def __repr__(self) -> str:
        if self.problems:
            return "\n".join(map(str, self.problems))
        launches = count(self.launches, "launch", "launches")
        return f"{launches}: no access outside, no race, no read of what nothing wrote"


@own_lines()
def sanitize(function: Callable, *args, **kwargs) -> Sanitized:
    """Call `function` with every access of its kernels checked. Tensors of a GPU are copied to the CPU first.

    The first mistake of each kind is told. Errors that are not about a kernel are raised as they are.
    """
    if not callable(function) or isinstance(function, KernelInterface):
        what = f"{type(function).__name__!r} is no function" if not callable(function) else "this is the kernel itself"
        use = "write sanitize(add, x, y), with the name of the host function and its arguments, and without calling it"
        raise TypeError(f"{what}: {use}")
    args, kwargs = tree_map_only(torch.Tensor, lambda each: each.cpu(), (args, kwargs))
    watched, result, problems = _Watched(), None, []
    try:
        with launching.installed(), watched, watched.memory:
            result = function(*args, **kwargs)
    except Exception as error:
        if not hasattr(error, "told"):
            raise
        problems.append(replace(error.told, headline="out of bounds" if isinstance(error, Fault) else "error"))
    for each in [each for launch in watched.records for each in launch.undefined][:1]:
        problems.append(Told("undefined", *advice.undefined(each), line=each.line, code=each.code))
    for each in [race for launch in watched.records for race in launch.races_by_kind][:1]:
        happened, *told = advice.raced(each)
        happened += f" It begins at {each.argument}{list(each.index)}."
        problems.append(Told("race", happened, *told, line=each.line, code=each.code))
    if result is not None and not problems:
        problems += _unwritten(result, watched.memory)
    return Sanitized(result, watched.launches, tuple(problems))


class _Memory(TorchDispatchMode):
    """Follows which elements of the CPU's memory hold a value: torch.empty defines none, other operations all."""

    def __init__(self):
        super().__init__()
        self.known: dict[int, torch.Tensor] = {}  # by storage: which elements are defined
        self.kept: list[torch.Tensor] = []  # so that no address is used again
        self.launching = False  # what the executor does with torch is not the function's doing

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        if self.launching:
            return found
        name = operation._schema.name.removeprefix("aten::")
        if name.startswith(("empty", "new_empty")):
            self.kept.append(found)
            storage = found.untyped_storage()
            elements = storage.nbytes() // found.itemsize
            self.known[storage.data_ptr()] = torch.zeros(elements, dtype=torch.bool)
        elif operation._schema.is_mutable:
            for each in tree_flatten(found)[0]:
                if isinstance(each, torch.Tensor) and (known := self.of(each)) is not None:
                    known.fill_(True)
        return found

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Which elements of a tensor are defined, or None if all are."""
        storage = tensor.untyped_storage()
        known = self.known.get(storage.data_ptr())
        if known is None or known.numel() * tensor.itemsize != storage.nbytes():  # seen as another dtype
            return None
        return known.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


class _Watched(Recording):
    """The launches of a function, with their races and what they read although nothing had written it."""

    def __init__(self):
        super().__init__(elements=True, races=True)
        self.memory = _Memory()

    def defined(self) -> dict[int, torch.Tensor]:
        """Asked for when a launch begins."""
        self.memory.launching = True
        return {start: known for start, known in self.memory.known.items() if not known.all()}

    def add(self, launch: Launch) -> None:
        super().add(launch)
        for storage in {id(each.storage): each.storage for each in launch.arguments.values()}.values():
            known = self.memory.known.get(storage.start)
            if known is not None and known.numel():  # what the launch has written is defined
                known |= (storage.writes > 0).reshape(known.numel(), -1).any(dim=1)

    def ended(self) -> None:
        self.memory.launching = False


def _unwritten(result: Any, memory: _Memory) -> Iterator[Told]:
    for each in tree_flatten(result)[0]:
        known = memory.of(each) if isinstance(each, torch.Tensor) and each.numel() else None
        if known is None or known.all():
            continue
        missing = (~known).nonzero()
        what = f"{len(missing):,} of {each.numel():,} elements of the result, from {missing[0].tolist()} on, "
        yield Told("unwritten", what + "were never written.", attempt="count the programs of the launch grid.")
