"""Reports of a job to the judge on the status descriptor, with the executor's findings as records.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import linecache
import os
from dataclasses import fields, replace

import torch

from workshop import advice

from ...tensors import dtype_name, storage_of
from ..wire import Race, Report, Result, Steps, Trouble, Undefined, encode

MAX_REPORT = 20_000  # bytes
MAX_TRACE = 4_000_000  # with its programs
MAX_RACES = 4  # races of a launch; more do not help the learner


class Reporter:
    """Writes reports, one line each. A report that is too long is replaced by an error."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __call__(self, report: Report) -> None:
        line = encode(report)
        if len(line) > (MAX_REPORT if report.trace is None and report.found is None else MAX_TRACE):
            line = encode(Report(report.case, error=Trouble("report-too-large")))
        view = memoryview(line + b"\n")
        while view:
            view = view[os.write(self.descriptor, view) :]


def result_record(result: torch.Tensor, inputs: list[torch.Tensor]) -> Result:
    """The properties of a replay's result. `inputs` are the tensors that it must not share memory with."""
    storage = storage_of(result)
    return Result(
        shape=tuple(result.shape),
        dtype=dtype_name(result.dtype),
        device=result.device.type,
        contiguous=result.is_contiguous(),
        aliases_input=any(result.numel() and storage == storage_of(each) for each in inputs),
    )


def of_executor(kind: type, found, **more):
    """A record of the wire of what the executor found: what is not known is left out, and long texts are cut."""
    known = {field.name: getattr(found, field.name) for field in fields(kind) if field.name not in more}
    cut = {name: value[: 400 if name == "code" else 100] for name, value in known.items() if isinstance(value, str)}
    return kind(**{name: value for name, value in (known | cut | more).items() if value is not None})


def race_records(launches) -> list[Race]:
    """The races of launches, up to a limit."""
    return [race for launch in launches for race in _races(launch)][:MAX_RACES]


def _races(launch) -> list[Race]:
    """Summarises a launch's races: one record for each argument and kind, between programs and within one."""
    found: dict[tuple, Race] = {}
    for race in launch.races:
        key = race.argument, race.kind, race.first == race.second
        if key not in found:
            found[key] = _race(launch, race)
        elif race.same_value is False:
            found[key] = replace(found[key], same_value=False)
    return list(found.values())


def _race(launch, race) -> Race:
    width, height, _ = launch.grid
    writes = launch.arguments[race.argument].writes
    first, second = (-1 if at is None else at[0] + width * (at[1] + height * at[2]) for at in (race.first, race.second))
    return of_executor(
        Race,
        race,
        line=race.line or 0,
        programs=(first, second),
        elements=int((writes > 1).sum()),
        share=float((writes > 1).sum() / max(writes.size, 1)),
        same_value=race.same_value is not False and race.kind == "write-write",
        writers=int(writes.max(initial=0)),
    )


def steps_records(launch) -> list[Steps]:
    """The accesses of a launch whose steps are no strides of the tensor."""
    found = []
    for (where, name), (block, steps) in launch.steps.items():
        argument = launch.arguments[name]
        shape, stride = tuple(argument.shape), tuple(argument.stride)
        if where and advice.odd_step(shape, stride, block, steps) is not None:
            line, code = where.line, linecache.getline(where.file, where.line).strip()[:400]
            found.append(Steps(name[:100], line, code, shape, stride, block, steps))
    return found


def undefined_records(launch) -> list[Undefined]:
    """What a launch used although nothing had defined it."""
    return [of_executor(Undefined, each) for each in launch.undefined]
