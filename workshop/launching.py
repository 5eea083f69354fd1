"""Plain launches without a GPU: `kernel[grid](...)` runs on `workshop.executor`, in this process.

Kernels are Triton's own JITFunction, so autotune, heuristics and the compiler work as on a GPU. `install` replaces what
one launch does. What goes wrong in a learner's kernel is told in a few lines (`workshop.short`), and harms nothing.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, fields

import torch
from triton.compiler import make_backend
from triton.runtime.jit import JITFunction

from workshop import short, stand_in
from workshop.executor import front_end
from workshop.executor import launch as executor
from workshop.executor.front_end import Unsupported
from workshop.executor.memory import Watch
from workshop.executor.records import DeviceAssert, FalsePromise, Fault, Launch, NeverEnds

MISTAKES = (Fault, FalsePromise, NeverEnds, DeviceAssert, Unsupported, KeyboardInterrupt)
_recordings: list[Recording] = []


@dataclass(eq=False)
class Recording:
    """The launches inside of one `recorded`. elements: whether reads and writes are counted for each element."""

    elements: bool
    launches: list[Launch]


@contextlib.contextmanager
def recorded(elements: bool = True) -> Iterator[list[Launch]]:
    """Every launch of the block, as the executor saw it."""
    recording = Recording(elements, [])
    _recordings.append(recording)
    try:
        yield recording.launches
    finally:
        _recordings.remove(recording)


def install() -> None:
    """From now on each launch of this process runs on the executor. Installing twice changes nothing."""
    stand_in.install()
    JITFunction.run = Run(run)


class Run:
    """The method `run` of a kernel. Triton 3.5 and older give each kernel one of its own, which this hides."""

    def __init__(self, run):
        self.run = run

    def __get__(self, kernel, kind=None):
        return self if kernel is None else functools.partial(self.run, kernel)

    def __set__(self, kernel, value):
        pass


def run(kernel: JITFunction, *args, grid, warmup: bool, **kwargs):
    """What JITFunction.run does on a card. Errors of the learner's carry a short text, see `short`."""
    if warmup:
        return Compiled(kernel, args, kwargs)
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    try:
        bound, options = executor.bind(kernel, args, kwargs)
        check_options(kernel, options)
        special, size = executor.specialise(kernel, bound), executor.grid_of(grid, bound)
    except Exception as error:
        short.of_a_launch(error, kernel.fn.__name__)
        raise
    try:
        program = executor.lowered(kernel, special, options)
    except (Exception, KeyboardInterrupt) as error:
        short.of_a_kernel(error, kernel)
        raise
    arguments = list(executor.leaves(bound, special, kernel.arg_names))
    watch = Watch(counts=any(each.elements for each in _recordings), tell=print)
    try:
        with _one_thread():
            launch = executor.execute(program, arguments, size, watch, name=kernel.fn.__name__)
    except MISTAKES as error:
        short.of_a_kernel(error, kernel)
        raise
    for recording in _recordings:
        recording.launches.append(launch)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """torch in one thread: an execution is thousands of short operations, and each would wait for the slowest thread.

    On a machine where others compute, too, such as a room's, two threads are ten times slower than one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@functools.cache
def compiler_options() -> set[str]:
    """All options of this Triton's compilers. A build for one vendor may have only one compiler."""
    options = set()
    for target in front_end.TARGETS.values():
        with contextlib.suppress(RuntimeError):
            options |= {option.name for option in fields(make_backend(target).parse_options({}))}
    return options


def check_options(kernel: JITFunction, options: dict) -> None:
    """A compiler ignores options that it does not know, so a misspelt parameter would go unnoticed."""
    for name in sorted(set(options) - compiler_options()):
        parameters = ", ".join(kernel.arg_names)
        raise TypeError(
            f"{kernel.fn.__name__} has no parameter {name!r}, and the compiler no such option. "
            f"Its parameters are: {parameters}"
        )


class Compiled:
    """What `kernel.warmup(...)` gives: the kernel, compiled for the stand-in driver's device when a fact is asked for.

    Facts are those of Triton's CompiledKernel: n_regs, n_spills, metadata, asm, name. `compiled[grid](...)` launches.
    """

    def __init__(self, kernel: JITFunction, args: tuple, kwargs: dict):
        self._kernel, self._args, self._kwargs = kernel, args, kwargs

    @functools.cached_property
    def _compiled(self):
        from workshop import compiling

        return compiling.compiled(self._kernel, self._args, self._kwargs, stand_in.TARGET)

    @functools.cached_property
    def _facts(self) -> dict:
        from workshop import compiling

        return compiling.facts(self._compiled, stand_in.TARGET)

    def _init_handles(self) -> None:
        """On a GPU this loads the kernel there, which tells its registers."""

    @property
    def n_regs(self) -> int:
        return self._facts["vgprs"]

    @property
    def n_spills(self) -> int:
        return self._facts["spills"]

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._compiled, name)

    def __getitem__(self, grid):
        names = set(self._kernel.arg_names)
        options = {name: value for name, value in self._kwargs.items() if name not in names}
        return lambda *args, **kwargs: run(self._kernel, *args, grid=grid, warmup=False, **options, **kwargs)
