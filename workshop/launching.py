"""Plain launches without a GPU: `kernel[grid](...)` runs on `workshop.executor`, in this process.

Kernels are Triton's own JITFunction, so autotune, heuristics and the compiler work as on a GPU. `install` replaces what
one launch does. What goes wrong in a learner's kernel is told in a few lines (`workshop.short`), and harms nothing.
"""

import contextlib
import functools
from collections.abc import Iterator

import triton
from triton.runtime.jit import JITFunction, MockTensor

from workshop import compiling, short
from workshop.device import StandInDriver, install_stand_in
from workshop.executor import launch as executor
from workshop.executor.memory import Watch
from workshop.executor.program import Unsupported
from workshop.executor.records import Fault, Stopped
from workshop.traffic import active

MISTAKES = (Fault, Stopped, Unsupported, KeyboardInterrupt)


def install() -> None:
    """From now on each launch of this process runs on the executor. Installing twice changes nothing."""
    install_stand_in()
    JITFunction.run = executor.method(run)


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """The same for the launches of a block, also on a machine with a GPU."""
    before = vars(JITFunction)["run"]
    if isinstance(before, property):
        yield
        return
    install()
    try:
        yield
    finally:
        JITFunction.run = before
        triton.runtime.driver.reset_active()


def run(kernel: JITFunction, *args, grid, warmup: bool, **kwargs):
    """What JITFunction.run does on a card. Errors of the learner's carry a short text, see `short`."""
    if warmup:
        return Compiled(kernel, args, kwargs)
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    try:
        bound, options = executor.bind(kernel, args, kwargs)
        compiling.check_options(kernel, options)
        special, size = executor.specialise(kernel, bound), executor.grid_of(grid, bound)
    except Exception as error:
        short.of_a_launch(error, kernel.fn.__name__)
        raise
    try:
        program = executor.lowered(kernel, special, options)
    except (Exception, KeyboardInterrupt) as error:
        known = compiling.as_read_here(error, kernel, special.signature, special.constants, options, "cuda")
        short.fold(error, short.of_a_kernel(known, kernel))
        raise
    counts, races = any(each.elements for each in active), any(each.races for each in active)
    defined = {start: known for each in active for start, known in each.defined().items()}
    try:
        with executor.one_thread():
            watch = Watch(counts, races, tell=print)
            launch = executor.execute(program, special.arguments, size, watch, defined=defined, name=kernel.fn.__name__)
    except MISTAKES as error:
        short.of_a_kernel(error, kernel)
        raise
    finally:
        for recording in active:
            recording.ended()
    for recording in active:
        recording.add(launch)


class Compiled:
    """What `kernel.warmup(...)` gives: the kernel, compiled for the stand-in driver's device when a fact is asked for.

    Facts are those of Triton's CompiledKernel: n_regs, n_spills, metadata, asm, name. `compiled[grid](...)` launches.
    """

    def __init__(self, kernel: JITFunction, args: tuple, kwargs: dict):
        self._kernel, self._args, self._kwargs = kernel, args, kwargs

    @functools.cached_property
    def _compiled(self):
        return compiling.compiled(self._kernel, self._args, self._kwargs, StandInDriver.target.arch)

    def _init_handles(self) -> None:
        """On a GPU this loads the kernel there, which tells its registers."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("n_regs", "n_spills"):  # on a GPU its driver tells them
            facts = compiling.facts(self._compiled, StandInDriver.target.arch)
            return facts.vgprs if name == "n_regs" else facts.spills
        return getattr(self._compiled, name)

    def __getitem__(self, grid):
        return functools.partial(self._launched, grid)

    def _launched(self, grid, *args, **kwargs):
        """Raises ValueError where the program was compiled for other arguments: a card runs it, and it is wrong."""
        bound, options = executor.bind(self._kernel, tuple(map(MockTensor.wrap_dtype, self._args)), self._kwargs)
        compiled = executor.specialise(self._kernel, bound)
        given = executor.specialise(self._kernel, executor.bind(self._kernel, args, kwargs)[0])
        if was := executor.misfit(self._kernel, compiled, given):
            raise ValueError(
                f"this program of {self._kernel.fn.__name__} was compiled for a call in which {was}, and keeps that. "
                "Compile one for each kind of call, or launch kernel[grid](...), which does so."
            )
        return self._kernel.run(*args, grid=grid, warmup=False, **{**options, **kwargs})
