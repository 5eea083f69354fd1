"""The jobs that run the learner's Python: "plan" and "value".

A plan runs the learner's module, calls the host function on decoys, and reports the trace of each case. No kernel runs,
and the process has no real inputs. "value" calls a function of plain values.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch._library.triton import set_wrap_triton_enabled

from workshop.device import DeviceFacts

from ..wire.answers import Report, Trace
from ..wire.codec import to_json
from ..wire.requests import Decoy, Device, Plain, PlanCase
from .job import Job, describe, learner_function, load
from .recorder import Earlier, Launches, Recorder
from .replay import decoys
from .worlds import World

MOST_CALLS = 3000  # of one form, where an answer keeps its results: it may give them again


def run(job: Job) -> None:
    # Of several sources somebody asks only which one computes what it should; no compiler gets their programs.
    launches = Launches(job.backend, job.request.known, one_vendor=len(job.request.sources) > 1)
    launches.install()
    sent: dict[str, int] = {}
    for number, shown in enumerate(job.request.worlds or (None,)):
        with World(shown, job.device) as world:
            launches.vendor = shown.device if shown and shown.device != "cpu" else job.backend
            functions = [_Function(source, job.request.entry, world) for source in job.request.sources]
            for index, case in enumerate(job.request.cases):
                if case.world == number:
                    report = _report(index, case, functions[case.source], launches, job.interpreted)
                    job.report(_shortened(report, sent))
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
        trace, calls = function.trace(case, launches), 1
        while calls < case.times or function.earlier.results > case.times > 1 and calls < MOST_CALLS:
            before, trace = trace, function.trace(case, launches)
            calls += 1
            if trace != before:
                break
        return Report(index, trace=trace, programs=launches.programs.unsent(trace))
    except BaseException as error:
        return Report(index, error=describe(error))


def _shortened(report: Report, sent: dict[str, int]) -> Report:
    """The report, or where an earlier one had the same trace. sent: by the trace as text."""
    if report.trace is None:
        return report
    first = sent.setdefault(to_json(report.trace), report.case)
    return report if first == report.case else Report(report.case, same=first)


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
            returned = result.result if isinstance(result, _TooFew) else result
            kind = "Function" if isinstance(returned, torch.autograd.Function) else type(returned).__name__[:80]
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
        several = isinstance(result, (tuple, list)) and case.pick < len(result)
        result = result[case.pick] if several else _TooFew(result)
    if case.gradient is None or not isinstance(result, torch.Tensor):
        return result.detach() if isinstance(result, torch.Tensor) and result.requires_grad else result
    if not result.requires_grad:
        raise NotImplementedError("the result has no gradient: it does not come from a torch.autograd.Function")
    # torch.autograd.grad imports sympy, and a confined process cannot open its files
    run = torch.autograd.Variable._execution_engine.run_backward
    (gradient,) = run((result,), (incoming.reshape(result.shape).to(result.dtype),), False, False,
                      (arguments[case.gradient],), allow_unreachable=True, accumulate_grad=False)  # fmt: skip
    return gradient


@dataclass(frozen=True)
class _TooFew:
    """What a function returned that is asked for several results."""

    result: object


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
    job.each(lambda case: Report(
        has_value=True, value=_plain_result(function(case.source)(*map(_argument, case.arguments)))
    ))  # fmt: skip


def _argument(argument: Plain | Device):
    return DeviceFacts(**argument.device) if isinstance(argument, Device) else argument.plain


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
