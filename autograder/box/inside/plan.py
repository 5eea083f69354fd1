"""The jobs that run the learner's Python: "plan" and "value".

A plan runs the learner's module, calls the host function on decoys, and reports the trace of each case. No kernel runs,
and the process has no real inputs. "value" calls a function of plain values.

A plan may show the host function other machines than this one, one after the other: worlds, see `wire.Shown`. Inside of
a `World` torch, Triton and workshop answer questions about the device as that machine would. Tensors stay in this
process's memory: torch is asked about a tensor's device through a TorchFunctionMode, which answers. It is used where
kernels run without a GPU only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import torch
import triton
from torch._library.triton import set_wrap_triton_enabled
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.runtime import driver, interpreter
from triton.runtime.jit import JITFunction

import workshop
from workshop import backend
from workshop.device import KNOWN_DEVICES, STAND_IN, Device, DeviceFacts, StandInDriver

from ...tensors import storage_of
from ..wire import Decoy, PlanCase, Report, Shown, Trace, ValueCase, to_json
from .job import Job, Refused, describe, learner_function, load
from .recorder import Earlier, Launches, Recorder, tensors_in
from .replay import decoys

CARDS = {
    "cuda": ("NVIDIA H100", "NVIDIA A100"),
    "hip": ("AMD Instinct MI300X", "AMD Instinct MI355X", "AMD Instinct MI250X"),
}
MEMORY = 64 << 30  # bytes of a shown card
MOST_CALLS = 3000  # of one form, where an answer keeps its results: it may give them again


def run(job: Job) -> None:
    # Of several sources somebody asks only which one computes what it should; no compiler gets their programs.
    launches = Launches(job.backend, job.request.known, one_vendor=len(job.request.sources) > 1)
    launches.install()
    sent: dict[bytes, int] = {}  # by a trace as JSON: the first case that has it
    for number, shown in enumerate(job.request.worlds or (None,)):
        with World(shown, job.device) as world:
            launches.vendor = shown.device if shown and shown.device != "cpu" else job.backend
            functions = [_Function(source, job.request.entry, world) for source in job.request.sources]
            for index, case in enumerate(job.request.cases):
                if case.world == number:
                    report = _report(index, case, functions[case.source], launches, job.interpreted)
                    if report.trace is not None and (first := sent.setdefault(to_json(report.trace), index)) != index:
                        report = Report(index, same=first)
                    job.report(report)
    job.report(Report(None, found=launches.programs.news()))


def _report(index: int, case: PlanCase, function: _Function, launches: Launches, interpreted: bool) -> Report:
    seed = torch.default_generator.manual_seed if interpreted else torch.manual_seed  # slow: it asks for GPUs
    seed(index)
    launches.configuration, launches.variants = case.configuration, case.variants
    try:
        if case.alone:
            function = _Function(function.source, function.entry, function.world)
        if case.operator:
            return function.as_an_operator(index, case, launches)
        trace = usual = function.trace(case, launches)
        chance, calls, differing = random.Random(index), 1, 0
        while calls < case.times or not differing and function.earlier.results > case.times > 1 and calls < MOST_CALLS:
            again, calls = function.trace(case, launches), calls + 1
            if again != usual:  # any of these is reported: a harmless difference hides no other one for long
                differing += 1
                trace = trace if chance.randrange(differing) else again
        return Report(index, trace=trace, programs=launches.programs.unsent(trace))
    except BaseException as error:
        return Report(index, error=describe(error))


class _Function:
    """The function of one module. It is loaded when it is called first."""

    def __init__(self, source: str, entry: str, world):
        self.source, self.entry, self.world = source, entry, world
        self.function = self.failure = None
        self.earlier = Earlier()
        self.given: dict[tuple, list] = {}  # the arguments of earlier calls with tensors of this form

    def trace(self, case: PlanCase, launches: Launches) -> Trace:
        """The trace of a call. Every other call of a form gets the tensors of the one before, with other numbers.

        So what is kept for an object or an address shows.
        """
        self._load()
        form = tuple(each for each in case.arguments if isinstance(each, Decoy))
        known = self.given.pop(form, None)
        arguments = _again(case.arguments, known) if known else self._decoys(case)
        if not known and sum(a.numel() for a in arguments if isinstance(a, torch.Tensor)) <= 1 << 16:
            self.given[form] = arguments
        return self._call(case, arguments, launches)

    def as_an_operator(self, index: int, case: PlanCase, launches: Launches) -> Report:
        """The report of a case that asks whether torch accepts the function as an operator."""
        from .operators import check

        launches.executes = True
        try:
            self._load()
            check(self.function, self._decoys(case))
        finally:
            launches.executes = False
        return Report(index, has_value=True)

    def _decoys(self, case: PlanCase) -> list:
        made = decoys(case.arguments, self.world.memory)
        return [self.world.placed(each) if isinstance(each, torch.Tensor) else each for each in made]

    def _load(self) -> None:
        if self.failure:
            raise self.failure
        try:
            self.function = self.function or learner_function(self.source, self.entry)
        except BaseException as error:
            self.failure = error
            raise

    def _call(self, case: PlanCase, arguments: list, launches: Launches) -> Trace:
        inputs = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        recorder = Recorder(inputs, self.world.device, self.earlier, case.computes, self.world.inside)
        result = None
        try:
            with recorder, self.world.calls(), set_wrap_triton_enabled(False):
                launches.recorder = recorder
                result = _asked_for(case, self.function, arguments)
            if isinstance(result, torch.Tensor):
                return recorder.finish(result)
            kind = "Function" if isinstance(result, torch.autograd.Function) else type(result).__name__[:80]
            return Trace(recorded=recorder.launches, returned=kind)
        finally:
            launches.recorder = None
            self.earlier.remember(recorder.made, result)


def _asked_for(case: PlanCase, function, arguments: list):
    """The result of a call; or one of several results; or the gradient of the result in one argument."""
    if case.gradient is not None:
        *arguments, incoming = arguments
        arguments[case.gradient].requires_grad_()
    result = function(*arguments)
    if case.gradient is not None:  # as in a model that has two such layers: what is saved belongs to one call
        function(*(
            torch.zeros_like(each).requires_grad_(each.requires_grad) if isinstance(each, torch.Tensor) else 2 * each
            for each in arguments
        ))  # fmt: skip
    if case.pick is not None:
        if isinstance(result, torch.Tensor):  # one in the place of several
            raise Refused(kind="returned", words=type(result).__name__)
        several = isinstance(result, (tuple, list)) and case.pick < len(result)
        result = result[case.pick] if several else result
    if case.gradient is None or not isinstance(result, torch.Tensor):
        return result.detach() if isinstance(result, torch.Tensor) and result.requires_grad else result
    if not result.requires_grad:
        raise NotImplementedError("the result has no gradient: it does not come from a torch.autograd.Function")
    # torch.autograd.grad imports sympy, and a confined process cannot open its files
    run = torch.autograd.Variable._execution_engine.run_backward
    (gradient,) = run((result,), (incoming.reshape(result.shape).to(result.dtype),), False, False,
                      (arguments[case.gradient],), allow_unreachable=True, accumulate_grad=False)  # fmt: skip
    return gradient


def _again(arguments: tuple, known: list) -> list:
    """The arguments of a call, with the tensors of an earlier one."""
    with torch.no_grad():
        for each in known:
            if isinstance(each, torch.Tensor) and each.numel():
                each.detach()[(0,) * each.ndim] = 1
    return [tensor if isinstance(a, Decoy) else a for a, tensor in zip(arguments, known, strict=True)]


# -- the job "value" -------------------------------------------------------------------------------------


def call(job: Job) -> None:
    sources, entry = job.request.sources, job.request.entry
    function = functools.cache(lambda n: load(sources[n])[entry] if n else learner_function(sources[0], entry))

    def called(case: ValueCase) -> Report:
        arguments = (DeviceFacts(**a) if n in case.devices else a for n, a in enumerate(case.arguments))
        return Report(has_value=True, value=_plain_result(function(case.source)(*arguments)))

    job.each(called)


def _plain_result(result, depth: int = 0):
    """Numbers, strings, and lists and dicts of them. For anything else, only the name of its type is sent."""
    if result is None or type(result) in (bool, int, float):
        return result
    if type(result) is str:
        return result[:200]
    if hasattr(result, "item") and getattr(result, "ndim", 1) == 0:
        return _plain_result(result.item(), depth)
    if type(result) in (list, tuple) and depth < 3:
        return [_plain_result(r, depth + 1) for r in result[:64]]
    if isinstance(result, dict) and depth < 3:
        return {str(k)[:80]: _plain_result(v, depth + 1) for k, v in list(result.items())[:64]}
    return {"not a plain value": type(result).__name__[:80]}


# -- worlds ----------------------------------------------------------------------------------------------


class NotShown(Refused, RuntimeError):
    """The host function asks for something of a card that a world does not have. It is not the answer's fault."""

    kind = "not-shown"


class World(contextlib.ExitStack):
    """A context in which the host function runs as on the machine that `shown` describes; None: as on this one.

    device: the one of its tensors, as they are shown. memory: where they are.
    """

    def __init__(self, shown: Shown | None, here: torch.device | None = None):
        super().__init__()
        self.shown, self.memory = shown, here or torch.device("cpu")
        self.is_card = shown is not None and shown.device != "cpu"
        self.device = _CARD if self.is_card else self.memory
        self._mode = _OnCard() if self.is_card else None

    def __enter__(self) -> World:
        if self.shown is None:
            return self
        if self.is_card:
            self.enter_context(mock.patch.dict(os.environ))
            os.environ.pop(backend.SWITCH, None)
        if self.shown.card:  # somebody has allowed torch's own products to round their factors
            self.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
            torch.set_float32_matmul_precision("high")
        self.callback(_SHOWN.clear)
        self.callback(driver.set_active, driver.active)
        driver.set_active(_Driver(self.shown, self.device))
        for patch in _patches(self.shown, self.device):
            self.enter_context(patch)
        if self._mode:
            self.enter_context(self._mode)
        return self

    @contextlib.contextmanager
    def calls(self) -> Iterator[None]:
        """Around calls. TRITON_INTERPRET is not set while a module is loaded: Triton itself would read it there. A call
        that makes a kernel of its own gets none of Triton's interpreter, either."""
        if not (self.shown and self.shown.interpret):
            yield
            return
        compiled = mock.patch.object(interpreter, "InterpretedFunction", JITFunction)
        with compiled, mock.patch.dict(os.environ, {backend.SWITCH: "1"}):
            yield

    def inside(self) -> contextlib.AbstractContextManager:
        """Around the function of a registered operator, which torch calls outside of all modes."""
        return self._mode or contextlib.nullcontext()

    def placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """An argument of the host function: the tensor, on this world's device."""
        return _marked(tensor, self.is_card)


_CARD = torch.device("cuda", 0)
_SHOWN: dict[int, StorageWeakRef] = {}  # the memory of tensors that are on the card: autograd may give another object
_ANSWERS = {
    torch.Tensor.device.__get__: lambda card: _CARD if card else torch.device("cpu"),
    torch.Tensor.is_cuda.__get__: lambda card: card,
    torch.Tensor.is_cpu.__get__: lambda card: not card,
    torch.Tensor.get_device: lambda card: 0 if card else -1,
}
_MOVES = {torch.Tensor.cuda: True, torch.Tensor.cpu: False}  # whether to the card


class _OnCard(TorchFunctionMode):
    """Shows tensors as those of a card, if they were made there or come from one that was."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in _ANSWERS:
            return _ANSWERS[function](_is_on_card(args[0]))
        if function in _MOVES:
            return _moved(args[0], _MOVES[function], {})
        if function is torch.Tensor.to:
            return _to(args, dict(kwargs))
        wanted = _wanted(kwargs.get("device"))
        if wanted is not None:
            kwargs = {**kwargs, "device": "cpu"}
        result = function(*args, **kwargs)
        if made := tensors_in(result):
            given = tensors_in((args, kwargs))
            card, known = any(map(_is_on_card, given)) if wanted is None else wanted, set(map(id, given))
            for tensor in made:
                if id(tensor) not in known or wanted is not None:
                    _marked(tensor, card)
        return result


def _to(args: tuple, kwargs: dict):
    """Tensor.to, with the device taken out of its arguments."""
    tensor, *rest = args
    wanted = _wanted(kwargs.pop("device", None))
    if rest and wanted is None:
        if isinstance(rest[0], torch.Tensor):
            wanted, rest[0] = _is_on_card(rest[0]), rest[0].dtype
        elif not isinstance(rest[0], torch.dtype):
            wanted = _wanted(rest.pop(0))
    more = dict(zip(("dtype", "non_blocking", "copy"), rest)) | kwargs
    return _moved(tensor, _is_on_card(tensor) if wanted is None else wanted, more)


def _moved(tensor: torch.Tensor, card: bool, more: dict) -> torch.Tensor:
    other = card != _is_on_card(tensor)
    moved = tensor.to(**({"dtype": tensor.dtype} | more | ({"copy": True} if other else {})))
    return moved if moved is tensor else _marked(moved, card)


def _wanted(device) -> bool | None:
    """Whether a device in an argument is the card; None if no device is named."""
    if device is None:
        return None
    kind = "cuda" if type(device) is int else torch.device(device).type
    return kind != "cpu"


def _marked(tensor: torch.Tensor, card: bool) -> torch.Tensor:
    if card:
        reference = StorageWeakRef(tensor.untyped_storage())  # keeps an identity from being given again
        _SHOWN[reference.cdata] = reference
    return tensor


def _is_on_card(tensor: torch.Tensor) -> bool:
    return storage_of(tensor) in _SHOWN


def _patches(shown: Shown, where: torch.device) -> list:
    """What stands in place of the functions that are asked about a device."""
    if shown.device == "cpu":
        return []
    facts, hip = _facts(shown), shown.device == "hip"
    major, minor = map(int, re.search(r"(\d)(\d)", facts.arch).groups())
    properties = SimpleNamespace(  # what torch.cuda.get_device_properties gives
        name=facts.name,
        multi_processor_count=shown.multiprocessors,
        major=major,
        minor=minor,
        total_memory=MEMORY,
        warp_size=facts.warp_size,
        regs_per_multiprocessor=facts.registers,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=facts.shared_memory,
        shared_memory_per_multiprocessor=facts.shared_memory,
        max_threads_per_multi_processor=facts.max_threads,
        L2_cache_size=50 << 20,
        gcnArchName=facts.arch,
    )
    stream = SimpleNamespace(cuda_stream=0, device=where, synchronize=_nothing, wait_stream=_nothing)
    of_torch = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 2 if shown.card else 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: facts.name,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_properties": lambda device=None: properties,
        "mem_get_info": lambda device=None: (MEMORY, MEMORY),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "device": lambda device=None: contextlib.nullcontext(),
        "_lazy_init": mock.Mock(side_effect=NotShown("no card is here")),
    }
    of_torch |= dict.fromkeys(("init", "synchronize", "set_device", "empty_cache"), _nothing)
    described = Device(**vars(facts) | {"multiprocessors": shown.multiprocessors}, memory=MEMORY, driver="shown",
                       torch=torch.__version__, triton=triton.__version__, interpreting=False)  # fmt: skip
    return [
        *(mock.patch.object(torch.cuda, name, value) for name, value in of_torch.items()),
        mock.patch.object(torch.version, "hip", "7.0" if hip else None),
        mock.patch.object(torch.version, "cuda", None if hip else "13.0"),
        mock.patch.object(torch.accelerator, "is_available", lambda: True),
        mock.patch.object(torch.accelerator, "current_accelerator", lambda *_: torch.device("cuda")),
        mock.patch.object(backend, "interpreting", lambda: False),
        mock.patch.object(backend, "torch_device", lambda: where),
        mock.patch.object(workshop, "device", lambda: described),
        mock.patch.object(sys.modules[Device.__module__], "device", lambda: described),
    ]


def _facts(shown: Shown) -> DeviceFacts:
    return KNOWN_DEVICES[CARDS[shown.device][shown.card]]


class _Driver(StandInDriver):
    """Triton's active driver in a world."""

    def __init__(self, shown: Shown, where: torch.device):
        properties = STAND_IN | {"multiprocessor_count": shown.multiprocessors}
        self.where = where
        if shown.device != "cpu":
            facts = _facts(shown)
            properties |= {"warpSize": facts.warp_size, "max_shared_mem": facts.shared_memory}
            arch = int(facts.arch.removeprefix("sm_")) if shown.device == "cuda" else facts.arch
            self.target = GPUTarget(shown.device, arch, facts.warp_size)
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(properties))

    def get_active_torch_device(self):
        return self.where

    def get_device_interface(self):
        return torch.cuda if self.where.type == "cuda" else torch.cpu


def _nothing(*_, **__):
    return None
