"""The job "value": calls a function of plain values.

Runs in a child of the zygote, beside the learner's Python.
"""

from __future__ import annotations

from workshop.device import DeviceFacts

from ..wire import Report
from ..wire.requests import Device, Plain
from .job import Job
from .learner import describe, learner_function


def run(job: Job) -> None:
    function = learner_function(job.request.source, job.request.entry)
    for index, case in enumerate(job.request.cases):
        try:
            arguments = [_argument(each) for each in case.arguments]
            job.report(Report(index, has_value=True, value=_plain_result(function(*arguments))))
        except BaseException as error:
            job.report(Report(index, error=describe(error)))


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
