"""Intercepts kernel launches: what the learner's host function asked Triton to run.

Installed before the learner's module is executed. A launch inside a recorded call goes into its trace: Triton's front
end reads the very object that was launched, with the globals that it has now, and the trace names the program that
comes of it. So what the front end refuses ends the host function, as it does on a GPU. A launch outside of a recorded
call (such as a left-over benchmark at the end of the file) does nothing.
"""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import replace
from types import SimpleNamespace

from triton.compiler import CompilationError
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from workshop import launching
from workshop.compiling import compiler_options
from workshop.executor import codec, launch
from workshop.executor.facts import unused
from workshop.executor.program import Program
from workshop.launching import Run

from ...versions import LAUNCH_OPTIONS
from ..wire.answers import Again, Found, Other, Trace, Tuned, Unused, digest_of
from .job import Refused
from .recorder import Recorder

OPTIONS = ("num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "maxnreg")
MAX_THREADS = 1024  # of one program, on NVIDIA's and on AMD's GPUs
WARP_SIZES = {"cuda": {"NVIDIA": 32}, "hip": {"AMD": 64}, "interpreter": {"NVIDIA": 32, "AMD": 64}}
COMPILER_OPTIONS = compiler_options()  # most have no meaning for a verdict
MAX_VARIANTS = 4  # other values of one constant of a space
MAX_UNUSED = 8  # of a program


class BadOption(Refused, ValueError):
    """A launch option that no GPU can use."""

    kind = "launch-option"


class UnknownOption(Refused, TypeError):
    """A launch names an option that is neither a parameter of the kernel nor known to this Triton's compilers."""


def check_options(options: dict, backend: str) -> None:
    """Raises BadOption for options that a GPU of this backend refuses at the launch."""
    for name in ("num_warps", "num_ctas", "num_stages", "maxnreg"):
        value = options.get(name)
        if value is None:
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise BadOption(f"{name} is {str(value)[:40]!r}, and must be an integer") from None
        if number < (name != "num_stages"):
            raise BadOption(f"{name} is {number}, and must be at least {int(name != 'num_stages')}")
        if name in ("num_warps", "num_ctas") and number & (number - 1):
            raise BadOption(f"{name} is {number}, and must be a power of two")
    for vendor, lanes in WARP_SIZES[backend].items():
        threads = lanes * operator.index(options.get("num_warps") or 1)
        if threads > MAX_THREADS:
            raise BadOption(
                f"num_warps is {threads // lanes}: with {lanes} lanes in a warp, as on {vendor}'s GPUs, these are "
                f"{threads} threads, and a program has at most {MAX_THREADS}"
            )


class Launches:
    """Records launches. `configuration` chooses one of the configurations of an autotuned kernel.

    variants: the programs for other values of its constants are read, too. one_vendor: see Programs.
    """

    def __init__(self, backend: str, known: tuple[Found, ...] = (), one_vendor: bool = False):
        self.vendor = backend  # whose limits hold for launch options
        self.programs = Programs(backend, known, one_vendor)
        self.recorder: Recorder | None = None
        self.executes = False  # launches run, and are not recorded
        self.configuration, self.variants = 0, False
        self.tuned: Tuned | None = None  # of the launch that an autotuner is making
        self.space: list = []  # its configurations

    def install(self):
        def run(kernel, *args, grid, warmup, **kwargs):
            if self.executes:
                return launching.run(kernel, *args, grid=grid, warmup=warmup, **kwargs)
            if warmup:
                return Uncompiled(kernel, args, kwargs)
            self.record(kernel, grid, args, kwargs)
            return None

        def tuned_run(tuner, *args, **kwargs):
            nargs = dict(zip(tuner.arg_names, args))
            tuner.nargs = nargs  # pruning functions of the learner read it
            if twice := sorted({key for each in tuner.configs for key in each.all_kwargs()} & kwargs.keys()):
                name = tuner.base_fn.__name__
                raise TypeError(f"{name}() got multiple values for keyword argument {twice[0]!r}")
            candidates = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
            index = self.configuration % len(candidates)
            config = candidates[index]
            for each in candidates:
                options = {k: v for k, v in each.all_kwargs().items() if k not in tuner.arg_names}
                check_options(options, self.vendor)
            if config.pre_hook is not None:
                config.pre_hook({**nargs, **kwargs, **config.all_kwargs()})
            space, key = tuple(_plain(c.all_kwargs()) for c in candidates), tuple(map(str, tuner.keys))
            self.tuned = Tuned(space, index, key, _again(tuner, candidates))
            self.space = candidates
            try:
                return tuner.fn.run(*args, **kwargs, **config.all_kwargs())
            finally:
                self.tuned, self.space = None, []

        Autotuner.run = tuned_run
        JITFunction.run = Run(run)
        JITFunction.__getitem__ = lambda kernel, grid: functools.partial(kernel.run, grid=grid, warmup=False)
        JITFunction.warmup = lambda kernel, *args, grid, **kw: kernel.run(*args, grid=grid, warmup=True, **kw)

    def record(self, kernel, grid, args, kwargs):
        if self.recorder is None:
            return
        name = kernel.fn.__name__
        bound, options = launch.bind(kernel, args, kwargs)
        for option in sorted(set(options) - set(OPTIONS) - COMPILER_OPTIONS):
            of_another_version = {"kind": "not-in-triton", "words": option} if option in LAUNCH_OPTIONS else {}
            raise UnknownOption(f"{name}() got an unexpected keyword argument {option!r}", **of_another_version)
        check_options(options, self.vendor)
        shape = launch.grid_of(grid, bound)
        self.recorder.check_devices(name, bound)
        options = {k: int(v) for k, v in options.items() if k in OPTIONS and isinstance(v, int)}
        try:
            special = launch.specialise(kernel, bound)
            programs = self.programs.of(kernel, special, options)
            others = self._others(kernel, bound, options) if self.variants else ()
            tuned = self.tuned and replace(self.tuned, others=tuple(others))
        except Exception as error:
            error.kernel = name
            raise
        self.recorder.launch(name, shape, bound, special.arguments, options, programs, tuned)

    def _others(self, kernel, bound: dict, options: dict) -> list[Other]:
        """The programs with another value of one constant of the space."""
        values: dict[str, list] = {}
        for config in self.space:
            chosen = config.all_kwargs()
            for name in chosen.keys() & bound.keys():
                values.setdefault(name, []).append(chosen[name])
        found = []
        for name, given in values.items():
            if len(set(map(repr, given))) > 1:
                more = [1, *given] if type(given[0]) is int else given
                others = list({repr(v): v for v in more if repr(v) != repr(bound[name])}.values())[:MAX_VARIANTS]
                found += [Other(name, self._with(kernel, bound | {name: value}, options)) for value in others]
        return found

    def _with(self, kernel, bound: dict, options: dict) -> str | None:
        try:
            return self.programs.of(kernel, launch.specialise(kernel, bound), options).program
        except Exception:
            return None


def _again(tuner: Autotuner, candidates: list) -> Again | None:
    """What Triton puts back before it runs a kernel again; None where it runs it once, or where hooks do it."""
    hooks = [tuner, "user_defined_pre_hook"], [tuner, "user_defined_post_hook"], *([c, "pre_hook"] for c in candidates)
    if len(candidates) < 2 or any(getattr(owner, name, None) for owner, name in hooks):
        return None
    return Again(tuple(map(str, tuner.restore_value)), tuple(map(str, tuner.reset_to_zero)))


class Uncompiled(launching.Compiled):
    """The result of `kernel.warmup(...)`. Its resources are made up: enough for host code that computes a launch."""

    n_regs, n_spills = 32, 0

    @property
    def metadata(self):
        return SimpleNamespace(shared=64, num_warps=self._kwargs.get("num_warps", 4), name=self._kernel.fn.__name__)

    def __getattr__(self, name: str):  # nothing is compiled here
        raise AttributeError(name)


def _plain(constants: dict) -> dict:
    return {str(k): v for k, v in constants.items() if isinstance(v, (int, float, bool, str))}


# -- programs --------------------------------------------------------------------------------------------


class Programs:
    """Reads kernels with Triton's front end. `texts`: what came of it, by digest.

    A program is named by the digest of its text, so two that do the same are one.
    known: what an earlier process with the same modules found. one_vendor: only what a replay runs is read.
    """

    def __init__(self, backend: str, known: tuple[Found, ...] = (), one_vendor: bool = False):
        # Without a GPU, a kernel must be right for both vendors. Rarely their programs differ.
        both = ["cuda", "hip"][: 1 if one_vendor else 2]
        self.targets = {"cuda": ["cuda"], "hip": ["hip"], "interpreter": both}[backend]
        self.texts: dict[str, str] = {}
        self.sent: set[str] = set()
        self._found = {each.key: each for each in known}
        self._known = set(self._found)

    def of(self, kernel, special: launch.Specialisation, options: dict) -> Found:
        """The programs of a launch, and what is unused in them. Raises what Triton's front end raises."""
        key = digest_of(repr(launch.key_of(kernel, special, options)))
        if key not in self._found:
            self._found[key] = self._read(key, kernel, special, options)
        launch.check_globals(kernel)
        return self._found[key]

    def _read(self, key: str, kernel, special: launch.Specialisation, options: dict) -> Found:
        program = launch.lowered(kernel, special, options, self.targets[0])
        labels = [label for label, *_ in special.arguments]
        told = tuple(Unused(*each) for each in unused(program, labels)[:MAX_UNUSED])
        found = Found(key, self._digest(program), unused=told)
        alike = self._found.get(kernel.cache_key)
        if len(self.targets) == 1 or alike and alike.alike:
            return found
        try:
            other = self._digest(launch.lowered(kernel, special, options, "hip"))
        except CompilationError:  # such as input_precision="tf32x3": one compiler that accepts it is enough
            return found
        self._found.setdefault(kernel.cache_key, Found(kernel.cache_key, alike=other == found.program))
        return found if other == found.program else replace(found, hip=other)

    def _digest(self, program: Program) -> str:
        text = json.dumps(codec.to_data(program), separators=(",", ":"))
        digest = digest_of(text)
        self.texts[digest] = text
        return digest

    def unsent(self, trace: Trace) -> dict[str, str]:
        """Those that a trace names and no earlier one named, by digest."""
        others = {other.program for launch in trace.tuned for other in launch.tuned.others}
        names = {name for name in trace.digests | others if name in self.texts and name not in self.sent}
        self.sent |= names
        return {name: self.texts[name] for name in names}

    def news(self) -> tuple[Found, ...]:
        """What was found, for a later process. The judge has all its programs."""
        new = (each for key, each in self._found.items() if key not in self._known)
        return tuple(each for each in new if {each.program, each.hip} - {""} <= self.sent)
