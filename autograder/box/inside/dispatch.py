"""The only module that knows every kind of job. It prepares the process, confines it, and runs the job.

plan      run the learner's module, call the host function on decoys, report the trace of each case
jax-plan  trace a function of JAX arrays
value     call a function of plain values
replay    run only the programs of launched kernels, as a trace says, on real inputs
large     run some programs of large launches, and check the addresses of all
compile   compile those programs for GPUs that are not here
tune      compare the times of the launches of several traces, on a GPU

The learner's Python runs in the first three, and these get no real inputs. In the others it does not run.
`prepare` and `load_further` run in the zygote, where no learner's code ever runs. `run` runs in a child of it.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType, SimpleNamespace
from unittest import mock

import numpy as np
import torch
import triton
from triton.compiler import ASTSource
from triton.runtime import driver
from triton.runtime.jit import JITFunction

import workshop
from workshop import explore  # noqa: F401  for host functions that use it
from workshop.backend import uncollected  # noqa: F401  for the zygote
from workshop.device import install_stand_in
from workshop.executor import front_end, launch
from workshop.executor.machine import Machine
from workshop.executor.memory import Watch
from workshop.executor.program import from_data, to_data
from workshop.executor.records import NeverEnds

from ... import tensors, text, versions
from .. import lockdown
from ..wire import ProgramRequest, Report, Settings, decode_job
from . import large, plan, replay
from .job import Job, describe, find_installed, load, send, show_source, silence  # noqa: F401  for the zygote, too
from .recorder import Recorder
from .replay import WARM_UP

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Modules that run beside learners' code, by name in the package. The rest of the package is hidden.
NEEDED = {module.__name__.split(".")[1] for module in (lockdown, tensors, text, versions)}
HIDDEN = {entry.removesuffix(".py") for entry in os.listdir(PACKAGE) if not entry.startswith("_")} - NEEDED
CPU_SECONDS = 65  # of a job, beside its own budget, which the zygote watches
BESIDE_DRIVER = {"cpu_seconds": CPU_SECONDS, "address_space": None}  # a GPU's driver reserves more than there is
THREAD_BYTES = 512 << 20  # bytes of address space that XLA's threads reserve for stacks and heaps, per core
FORMULAS = "workshop.occupancy"  # it computes what exercises ask for

# The learner's Python runs in these, and all that it needs is loaded: the strict stage holds on a GPU too, after the
# driver has started. Other jobs compile there first, and a compiler starts processes and writes files.
STRICT = {"plan", "value"}
OF_PROGRAMS = {"replay": replay.run, "large": large.run, "compile": replay.compiled}  # jobs of one case at a time
JAX = "jax-plan"  # XLA starts threads, and needs the system's random numbers to start

# -- the zygote ------------------------------------------------------------------------------------------


def prepare(settings: Settings) -> None:
    """Loads everything that is loaded lazily, because a confined child cannot open files."""
    sys.setrecursionlimit(2000)
    torch.set_num_threads(1)
    find_installed()
    if settings.backend == "interpreter":
        install_stand_in()
        workshop.device()
    else:
        _build_driver(settings)
    # Triton parses the text of a function, and of its library, for each program, and does not change the tree.
    parse, trees = JITFunction.parse, {}
    JITFunction.parse = lambda kernel: trees.get(kernel.src) or trees.setdefault(kernel.src, parse(kernel))
    _warm_up_executor()
    with Recorder([torch.ones(1)]):
        with torch.utils._python_dispatch._disable_current_modes():  # imports something
            pass
        torch.randn(4, 4).softmax(-1).double().sum().item()
    np.unique(np.zeros(1))  # imports numpy.ma
    try:
        raise ValueError
    except ValueError:
        traceback.format_exc()


def _warm_up_executor() -> None:
    """Triton's front end reads the functions of its library when a kernel uses them first."""
    kernels, x = load(WARM_UP, "<warm-up>"), torch.ones(16)
    for target in front_end.TARGETS:
        _execute(kernels["of_a_vendor"], (x,), {}, target)
    any(_execute(kernels["warm_up"], (x, 16), {"BLOCK": 16}, target) for target in front_end.TARGETS)


def _execute(kernel, args: tuple, constants: dict, target: str) -> bool:
    """Runs one program as every job does. False if this Triton has no compiler for the vendor."""
    bound, options = launch.bind(kernel, args, constants)
    special = launch.specialise(kernel, bound)
    try:
        program = from_data(to_data(launch.lowered(kernel, special, options, target)))
    except RuntimeError:
        return False
    launch.execute(program, special.arguments, (1, 1, 1), Watch(True, True))
    return True


def _build_driver(settings: Settings) -> None:
    """Compiles and loads the modules that Triton needs for the GPU's driver. A confined child cannot do this.

    The driver must not be initialised before the fork, because a child cannot use it then. So this does not ask torch
    whether there is a GPU.
    """
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(dir=settings.scratch)
    os.mkdir(launchers_of(settings))
    with mock.patch("torch.cuda.is_available", return_value=True):
        _ = driver.active.utils


def warm_compiler(settings: Settings) -> None:
    """The first compilation in a process takes a second. Children that are forked later need not wait for it."""
    target = front_end.TARGETS.get(settings.backend)
    if target:
        signature = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
        kernel = load(WARM_UP, "<warm-up>")["warm_up"]
        with contextlib.suppress(Exception):
            triton.compile(ASTSource(kernel, signature, {(2,): 16}), target=target)


# -- launchers of kernels --------------------------------------------------------------------------------
#
# Triton 3.6 and older compile a C function for each list of parameter types, in 0.2 s. It follows from the types alone,
# not from a learner's code. The zygote builds it while the answer's host function runs in a child, and later children
# copy it. Newer versions of Triton build none.

# Of a compiled kernel. A launcher reads these when it runs, not when it is built.
_METADATA = dict.fromkeys(("launch_cooperative_grid", "launch_pdl", "global_scratch_size", "global_scratch_align",
                           "profile_scratch_size", "profile_scratch_align"), 0)  # fmt: skip
_UNNAMED = SimpleNamespace(arg_names=[])


def build_launchers(kinds: Iterable[tuple[str, ...]], folder: str) -> None:
    """Builds the launchers for these lists of types, such as ("*fp32", "i32", "constexpr"), each of them once."""
    with mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder), ThreadPoolExecutor() as pool:
        list(pool.map(_build, kinds))


@functools.cache
def _build(types: tuple[str, ...]) -> None:
    constants = {(i,): None for i, each in enumerate(types) if each == "constexpr"}
    source = SimpleNamespace(fn=_UNNAMED, constants=constants, signature=dict(enumerate(types)))
    with contextlib.suppress(Exception):  # then the job builds its own
        driver.active.launcher_cls(source, SimpleNamespace(**_METADATA, num_ctas=1, warp_size=64))


def copy_launchers(folder: str, scratch: str) -> None:
    """Puts the launchers that were built so far into the cache of a job."""
    with contextlib.suppress(OSError):  # none was built, or one is being written
        shutil.copytree(folder, scratch, dirs_exist_ok=True)


def launchers_of(settings: Settings) -> str:
    """The folder of the launchers that the zygote has built. A child can read it."""
    return os.path.join(settings.scratch, "launchers")


def load_further(modules: str, settings: Settings) -> None:
    """Loads what only some jobs need, in a zygote for them. JAX starts threads only with its backend."""
    if modules == "operators":
        from .operators import warm_up

        if settings.backend == "interpreter":  # on a GPU, the executor's box has asked
            warm_up()
    else:
        from . import jax_plan  # noqa: F401


# -- the child -------------------------------------------------------------------------------------------


def name_endless_loops(seconds: float) -> None:
    """Stops a kernel just before its job's time is used up. The report then names the line that was running."""
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, 0.95 * seconds)


def _stop(_, frame) -> None:
    while frame:
        machine = frame.f_locals.get("self")
        if isinstance(machine, Machine):
            words, memory = "A kernel does not end: this line was running when the time was used up", machine.memory
            raise NeverEnds(words, memory.launch.kernel, (), *memory.text(machine.where))
        frame = frame.f_back


def prepare_spare(settings: Settings, scratch: str, keep: int) -> None:
    """Confines a spare and starts the GPU's driver in it. `keep`: the descriptor from which its job will come."""
    if settings.confine:
        _confine_beside_driver(settings, scratch, keep=(keep,))
    else:
        silence()
    guarded = replay.Guarded(torch.ones(16), (1,), "cuda")
    guarded.damage()  # loads the first operations on tensors, too


def run(settings: Settings, job: int, output: int, status: int, early: str | None = None) -> None:
    """Runs the job in the descriptor `job`. Results go to `output`, reports to `status`.

    early: the scratch folder of a spare, which went through `prepare_spare`.
    """
    request, tensors = decode_job(mmap.mmap(job, 0, access=mmap.ACCESS_READ))
    out = mmap.mmap(output, os.fstat(output).st_size)
    os.close(output)
    if request.kind == "value" and any("meta" in source for source in request.sources):
        _ = torch.empty(1, device="meta") - 1  # torch imports much for it: 1.5 s, and later it cannot open files
    compiles = settings.backend != "interpreter"
    scratch = early or (tempfile.mkdtemp(dir=settings.scratch) if compiles else None)
    if settings.confine:
        _confine(settings, request.kind, scratch, keep=None if early else (job, status))
    elif not early:
        silence()
    if scratch:
        # Each job has its own cache of compiled kernels: a shared one would pass a learner's kernel to the next one.
        os.environ.update(TRITON_CACHE_DIR=scratch, HOME=scratch, TMPDIR=scratch)
        tempfile.tempdir = None
        # Triton asks for memory where a kernel makes tensor descriptors, and the host function may not be here.
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
        copy_launchers(launchers_of(settings), scratch)
    work, kind = Job(settings.backend, request, tensors, out, status), request.kind
    if isinstance(request, ProgramRequest):
        show_source(request.source)
        programs = replay.Known(request.programs)
        if kind == "tune":
            replay.tune(work, programs)
        else:
            work.each(lambda case: OF_PROGRAMS[kind](work, case, programs))
    elif kind == JAX:  # `load_further` has imported it
        sys.modules[f"{__package__}.jax_plan"].run(work)
    else:
        {"plan": plan.run, "value": plan.call}[kind](work)
    send(status, Report(None, done=True))


# -- confinement -----------------------------------------------------------------------------------------


def _confine(settings: Settings, kind: str, scratch: str | None, keep: tuple[int, ...] | None) -> None:
    """Confines the process: the strict stage if nothing has to be compiled; on a GPU, after its driver has started.

    `keep` is None for a spare, which is confined beside its driver already.
    """
    if kind == "value":  # an exercise may ask for their results; a host function may size its launch with them
        _hide_formulas()
    read = ("/dev/urandom",) if kind == JAX else ()
    if settings.backend == "interpreter":
        # What is mapped already does not count. A torch for GPUs maps some gigabytes, also where no job uses the GPU.
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        space = mapped + settings.memory + (THREAD_BYTES * (os.cpu_count() or 1) if kind == JAX else 0)
        limits = {"cpu_seconds": CPU_SECONDS, "address_space": space}
        lockdown.confine("strict", read=_readable(settings, read), keep=keep, **limits)
        return
    if keep is not None:
        _confine_beside_driver(settings, scratch, keep, read)
    if kind in STRICT:
        lockdown.confine("strict", read=_readable(settings), keep=None, **BESIDE_DRIVER)


def _confine_beside_driver(settings: Settings, scratch: str, keep: tuple[int, ...], read: tuple[str, ...] = ()) -> None:
    """The base stage, which allows what the GPU's driver needs, and the start of the driver."""
    read = (*read, launchers_of(settings))
    write = [scratch, *settings.devices, "/proc/self"]  # the driver names its threads there
    readable = _readable(settings, read)
    lockdown.confine("base", read=readable, write=write, keep=keep, local_sockets=True, **BESIDE_DRIVER)
    torch.zeros(1, device="cuda")


def _readable(settings: Settings, more: tuple[str, ...] = ()) -> list[str]:
    """The files that the process may read. Hides the modules that hold references and solutions, and their files."""
    sys.modules.update(dict.fromkeys(f"autograder.{name}" for name in HIDDEN))
    hidden = (PACKAGE, os.path.dirname(workshop.__file__))
    paths = settings.read if lockdown.landlock_abi() else ()
    return [*(path for path in paths if path not in hidden), *more]


def _hide_formulas() -> None:
    """Empties the functions of FORMULAS, and takes the module away.

    It is not enough to hide their names: a module that imported them keeps them, and a search of the heap finds them.
    """
    for formula in vars(sys.modules[FORMULAS]).values():
        if isinstance(formula, FunctionType) and formula.__module__ == FORMULAS:
            formula.__code__ = _hidden.__code__
    sys.modules[FORMULAS] = None
    workshop.occupancy = workshop.num_programs = _hidden  # whoever calls them is told why


def _hidden(*_, **__):
    raise ImportError("this is what the exercise asks for")
