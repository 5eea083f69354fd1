"""What a child of the zygote can be asked to do, after it has given up its rights.

plan    run the learner's module, call the host function on decoys, report the trace of each case
replay  run only the learner's kernels, from the allow-listed syntax tree, along a trace, on real inputs
tune    time the launches of several traces against each other, on a GPU
value   call a function of plain numbers
jax     call a function of JAX arrays

A child reports JSON lines on its status descriptor and writes results into its output descriptor.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import math
import mmap
import os
import sys
import tempfile
import traceback
from dataclasses import replace
from types import ModuleType

ANSWER = "<answer>"
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEEDED = {"box", "kernel_language", "answer", "text"}  # of the package, by what runs beside learners' code
MAX_REPORT = 20_000
unchecked = ""  # why the memory checker does not work here, if it does not
MAX_TRACE = 400_000
THREAD_BYTES = 512 << 20  # of addresses that XLA's threads reserve for stacks and heaps, per core
ROUNDS, WARM_ROUNDS = 25, 4  # of timing; the first ones compile and wake the card
WARM_UP = """
import triton
import triton.language as tl


@triton.jit
def warm_up(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    for _ in range(2):
        x = x + tl.exp(x) / tl.sum(x, axis=0) + tl.max(x, axis=0) + tl.rand(1, i)
    tl.store(x_ptr + i, tl.where(x > 0, x, tl.maximum(x, 1.0)), mask=i < n)
"""


def prepare(settings: dict):
    """Imports everything once, and touches what is loaded lazily: a confined child can open no file."""
    os.environ["TRITON_INTERPRET"] = "1" if settings["backend"] == "interpreter" else "0"
    sys.setrecursionlimit(2000)
    import numpy  # noqa: F401
    import torch
    import triton
    import triton.language  # noqa: F401

    torch.set_num_threads(1)
    import workshop
    from workshop import explore, stand_in  # noqa: F401
    from workshop.interpreter import faithful, memory_checker

    from ... import answer, kernel_language  # noqa: F401
    from .. import lockdown  # noqa: F401
    from . import launches, memory, trace  # noqa: F401

    if settings["backend"] == "interpreter":
        stand_in.install()
        namespace = load(WARM_UP, "<warm-up>")
        global unchecked
        unchecked = memory_checker.self_test() or ""
        with watched("nan"):
            namespace["warm_up"][(1,)](torch.ones(16), 16, BLOCK=16)
        if not unchecked:
            faithful.warm_up()
        workshop.device()
    else:
        _build_driver(settings)
    with trace.Recorder([torch.ones(1)]):
        torch.randn(4, 4).softmax(-1).double().sum().item()
    try:
        raise ValueError
    except ValueError:
        traceback.format_exc()


def watched(poison: str, backwards: bool = False):
    """The memory checker; where it does not fit this Triton, nothing: guards around the tensors remain."""
    from workshop.interpreter import memory_checker

    return contextlib.nullcontext() if unchecked else memory_checker.watch(poison, backwards)


def _build_driver(settings: dict):
    """Compiles and loads what Triton needs to talk to the GPU's driver; a child that had to could not.

    The GPU itself is not started: that would not survive the fork. Asking torch whether there is one would start it.
    """
    from unittest import mock

    from triton.runtime import driver

    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(dir=settings["scratch"])
    with mock.patch("torch.cuda.is_available", return_value=True):
        _ = driver.active.utils


def prepare_for(kind: str):
    """Imports JAX for the first job that needs it. No thread runs before its backend starts, in the child."""
    if kind == "jax":
        from . import jax  # noqa: F401


def run(settings: dict, job: int, output: int, status: int):
    request, base = _read_request(job)
    out = mmap.mmap(output, os.fstat(output).st_size)
    os.close(output)
    compiles = settings["backend"] != "interpreter"
    scratch = tempfile.mkdtemp(dir=settings["scratch"]) if compiles else None
    if settings["confine"]:
        _confine(settings, request, scratch, keep=(job, status))
    else:
        _silence()
    if scratch:  # a cache of its own: a shared one would hand one learner's kernel to the next
        os.environ.update(TRITON_CACHE_DIR=scratch, HOME=scratch, TMPDIR=scratch)
        tempfile.tempdir = None
    job_input = memoryview(mmap.mmap(job, 0, access=mmap.ACCESS_READ))[base:]
    report = Reporter(status)
    {"plan": plan, "replay": replay, "tune": tune, "value": value, "jax": jax_call}[request["kind"]](
        settings, request, job_input, out, report
    )
    report({"done": True})


class Reporter:
    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __call__(self, message: dict):
        line = json.dumps(message).encode()
        if len(line) > (MAX_TRACE if "trace" in message else MAX_REPORT):
            line = json.dumps({"case": message.get("case"), "error": {"kind": "report-too-large"}}).encode()
        view = memoryview(line + b"\n")
        while view:
            view = view[os.write(self.descriptor, view) :]


def report_failure(status: int, error: BaseException):
    Reporter(status)({"error": describe(error)})


def _read_request(descriptor: int) -> tuple[dict, int]:
    """The job's memory: an 8-byte length, JSON of that length, and, 64-byte aligned, the tensors."""
    size = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    return json.loads(os.pread(descriptor, size, 8)), 8 + size + (-(8 + size) % 64)


def _confine(settings: dict, request: dict, scratch: str | None, keep: tuple[int, ...]):
    """The strict stage where nothing has to be compiled; on a GPU, after its driver has started."""
    from .. import lockdown

    reserved = settings["memory"]
    if request["kind"] == "jax":
        reserved += THREAD_BYTES * (os.cpu_count() or 1)
    limits = lockdown.Limits(cpu_seconds=math.ceil(settings["seconds"]) + 5, address_space=reserved)
    readable = settings["read"] if lockdown.landlock_abi() else []
    if request["kind"] == "jax":
        readable = [*readable, "/dev/urandom"]  # XLA does not start without it
    else:
        readable = _without_references(readable, request["kind"])
    if settings["backend"] == "interpreter":
        lockdown.confine("strict", read=readable, limits=limits, keep=keep)
        return
    limits = replace(limits, address_space=None)  # a driver reserves far more than it uses
    write = [scratch, *settings["devices"], "/proc/self"]  # the driver names its threads there
    lockdown.confine("base", read=readable, write=write, limits=limits, keep=keep, local_sockets=True)
    import torch

    torch.zeros(1, device="cuda")
    if request["kind"] in ("plan", "value"):  # the learner's Python; a replay has the compiler to run
        lockdown.confine("strict", read=readable, limits=limits, keep=None)


def _without_references(readable: list[str], kind: str) -> list[str]:
    """References and solutions are none of the learner's business: neither to read nor to import.

    The formulas of workshop.occupancy are an answer too, where numbers are asked for; elsewhere a host function
    may size its launch with them.
    """
    import workshop

    hidden = [f"autograder.{name}" for name in _modules_of(PACKAGE) - NEEDED]
    if kind == "value":
        hidden.append("workshop.occupancy")
        # not only their names: whoever imported them keeps them, and a search of the heap finds them
        for formula in (workshop.occupancy, workshop.num_programs):
            formula.__code__ = _hidden.__code__
        workshop.occupancy = workshop.num_programs = None
    sys.modules.update(dict.fromkeys(hidden))
    return [path for path in readable if path not in (PACKAGE, os.path.dirname(workshop.__file__))]


def _modules_of(package: str) -> set[str]:
    return {entry.removesuffix(".py") for entry in os.listdir(package) if not entry.startswith("_")}


def _hidden(*_, **__):
    raise ImportError("this is what the exercise asks for")


def _silence():
    """Without confinement the learner's prints still must not reach anybody's terminal or pipe."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


# -- loading ---------------------------------------------------------------------------------------------


def load(source: str, filename: str = ANSWER, name: str = "answer") -> dict:
    """Executes `source` so that Triton finds its text: inspect.getsource reads linecache."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look a class's module up
    exec(compile(source, filename, "exec"), module.__dict__)
    return module.__dict__


def learner_namespace(source: str, entry: str) -> dict:
    """The definitions that `entry` needs, executed. Left-over prints and benchmarks are not run."""
    from ...answer import from_history

    return load(from_history([source], [entry]) or source)


def learner_function(source: str, entry: str):
    function = learner_namespace(source, entry).get(entry)
    if not callable(function):
        raise MissingEntry(entry)
    return function


class MissingEntry(Exception):
    pass


def describe(error: BaseException) -> dict:
    """An exception as data: its class, its message, and the learner's line that it came from."""
    from workshop.interpreter.memory_checker import OutOfBounds

    from ...kernel_language import NotAllowed, Restructured
    from .trace import HostArithmetic, NotReplayable, WrongDevice

    root = _root(error, (NotAllowed, OutOfBounds))
    kind = {
        NotAllowed: "not-allowed",
        Restructured: "restructured",
        OutOfBounds: "fault",
        HostArithmetic: "host-arithmetic",
        NotReplayable: "not-replayable",
        WrongDevice: "wrong-device",
        MissingEntry: "missing-entry",
        SyntaxError: "syntax",
        IndentationError: "syntax",
        TabError: "syntax",
        MemoryError: "memory",
    }.get(type(root), "exception")
    line = getattr(root, "lineno", None) if kind == "syntax" else getattr(root, "line", None)
    line = line if isinstance(line, int) else _learner_line(error) or _learner_line(root)
    described = {
        "kind": kind,
        "type": type(root).__name__[:80],
        "message": _message(root)[:2000],
        "line": line,
        "code": linecache.getline(ANSWER, line).strip()[:200] if line else "",
    }
    if kind == "not-allowed":
        described |= {"construct": root.construct, "instead": root.instead}
    if kind == "exception" and (lacking := _lacking_in_triton(root)):
        described |= {"kind": "not-in-triton", "construct": lacking[:80]}
    if kind == "fault":
        described["fault"] = _fault(root.fault)
    return described


def _root(error: BaseException, last: tuple[type, ...]) -> BaseException:
    """What an exception was raised from, and that in turn; a learner's chain may be a ring."""
    seen = set()
    while error.__cause__ is not None and not isinstance(error, last) and id(error) not in seen:
        if type(error.__cause__).__name__ == "JaxStackTraceBeforeTransformation":  # a place, not a cause
            break
        seen.add(id(error))
        error = error.__cause__
    return error


def _lacking_in_triton(error: BaseException) -> str:
    """What this version of Triton lacks and another one has, where the exception says so."""
    from ...kernel_language.versions import FUNCTIONS
    from .launches import UnknownOption

    if isinstance(error, UnknownOption):
        return error.option if error.elsewhere else ""
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        function = f"tl.{error.name}"
        return function if error.obj.__name__.startswith("triton.language") and function in FUNCTIONS else ""
    frames = traceback.extract_tb(error.__traceback__)
    inside = isinstance(error, NotImplementedError) and frames and f"{os.sep}triton{os.sep}" in frames[-1].filename
    return f"tl.{frames[-1].name}" if inside else ""


def _fault(fault) -> dict:
    """memcheck's Fault as the judge reads it: the lane by its number in the block, the place in words."""
    lane = 0
    for index, size in zip(fault.lane, fault.block, strict=True):
        lane = lane * size + index
    if fault.place == "nowhere":
        where = "an address that belongs to no tensor"
    elif fault.place == "gap":
        where = f"row {fault.index[0]}, column {fault.index[-1]}, in the gap between the rows"
    else:
        where = f"element {fault.element}, {fault.distance} {fault.place}"
    return {
        "kind": fault.kind,
        "kernel": fault.kernel[:100],
        "program": list(fault.program),
        "argument": (fault.argument or "its tensors")[:100],
        "shape": list(fault.shape),
        "stride": list(fault.stride),
        "lane": lane,
        "lanes": fault.lanes,
        "where": where,
        "line": fault.line or 0,
        "code": fault.code[:400],
    }


def _races(launch) -> list[dict]:
    """What a launch's races come to: one entry per argument and kind. See messages.Race."""
    width, height, _ = launch.grid
    found: dict[tuple[str, str], dict] = {}
    for race in launch.races:
        entry = found.get((race.argument, race.kind))
        if entry is None:
            writes = launch.arguments[race.argument].writes
            programs = [
                -1 if at is None else at[0] + width * (at[1] + height * at[2])
                for at in (race.first, race.second)
            ]
            found[race.argument, race.kind] = {
                "kind": race.kind,
                "argument": race.argument[:100],
                "line": race.line or 0,
                "code": race.code[:400],
                "programs": programs,
                "elements": int((writes > 1).sum()),
                "share": float((writes > 1).sum() / max(writes.size, 1)),
                "writers": int(writes.max(initial=0)),
                "same_value": race.same_value is not False and race.kind == "write-write",
                "atomics": bool(launch.atomics) and race.kind != "write-write",
            }
        elif race.same_value is False:
            entry["same_value"] = False
    return list(found.values())


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # the learner's exception may do anything in __str__
        return ""


def _learner_line(error: BaseException) -> int | None:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == ANSWER]
    return lines[-1] if lines else None


# -- jobs ------------------------------------------------------------------------------------------------


def plan(settings, request, job_input, out, report):
    import torch

    from .launches import Launches
    from .trace import Recorder

    launches = Launches()
    launches.install()
    device = _device(settings)
    function = learner_function(request["source"], request["entry"])
    for index, case in enumerate(request["cases"]):
        torch.manual_seed(index)
        arguments, tensors = _decoys(case["arguments"], device)
        launches.configuration = index
        try:
            with Recorder(tensors, device) as recorder:
                launches.recorder = recorder
                result = function(*arguments)
                launches.recorder = None
            report({"case": index, "trace": _finish(recorder, result)})
        except BaseException as error:
            launches.recorder = None
            report({"case": index, "error": describe(error)})


def _finish(recorder, result) -> dict:
    import torch

    if result is None or isinstance(result, type(NotImplemented)) or result is ...:
        return {"returned": type(result).__name__, "launches": recorder.launches}
    if not isinstance(result, torch.Tensor):
        return {"returned": type(result).__name__[:80], "launches": recorder.launches}
    return recorder.finish(result)


def _decoys(arguments: list, device):
    """Random stand-ins of the right shapes, strides and dtypes. The learner's Python never sees more."""
    import torch

    made, tensors = [], []
    for argument in arguments:
        if "scalar" in argument:
            made.append(argument["scalar"])
            continue
        shape, stride = argument["shape"], argument["stride"]
        span = 1 + sum((n - 1) * s for n, s in zip(shape, stride)) if math.prod(shape) else 0
        dtype = getattr(torch, argument["dtype"])
        base = torch.randn(span, device=device).to(dtype)
        tensor = torch.as_strided(base, shape, stride)
        made.append(tensor)
        tensors.append(tensor)
    return made, tensors


def _device(settings):
    import torch

    return torch.device("cpu" if settings["backend"] == "interpreter" else "cuda")


def replay(settings, request, job_input, out, report):
    answers = Answers(request)
    for index, case in enumerate(request["cases"]):
        try:
            message = _replay_case(settings, request, answers[case.get("blank")], case, job_input, out)
        except BaseException as error:
            message = {"error": describe(error)}
        report({"case": index, **message})


def tune(settings, request, job_input, out, report):
    """Milliseconds of each case's launches: the median of interleaved rounds, so that all meet the same card."""
    import torch

    from .trace import KernelName, Replay

    kernels = Answers(request)[None]
    device = _device(settings)
    runs = []
    for case in request["cases"]:
        launches: list = []
        tensors = _decoys(case["arguments"], device)[1]

        def launch(name, grid, arguments, options, launches=launches):
            arguments = {k: kernels[v] if isinstance(v, KernelName) else v for k, v in arguments.items()}
            launches.append((kernels[name][grid], arguments, options))

        Replay(tensors, device, lambda tensor: tensor, launch).run(case["trace"])
        runs.append(launches)
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for launches, seen in zip(runs, times, strict=True):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for kernel, arguments, options in launches:
                kernel(**arguments, **options)
            end.record()
            torch.cuda.synchronize()
            seen.append(begin.elapsed_time(end))
    report({"case": 0, "value": [sorted(seen[WARM_ROUNDS:])[(ROUNDS - WARM_ROUNDS) // 2] for seen in times]})


class Answers(dict):
    """The learner's kernels, clean and loaded; by blank, the template's kernel with that one expression."""

    def __init__(self, request: dict):
        super().__init__()
        self.request = request

    def __missing__(self, blank: str | None):
        from ... import kernel_language

        source, template = self.request["source"], self.request.get("template")
        if blank:
            kernel, text = template["kernel"], template["source"]
            expressions = kernel_language.blank_expressions(source, kernel, template["names"], text)
            if isinstance(expressions[blank], kernel_language.NotAllowed):
                raise expressions[blank]
            source = kernel_language.splice(text, kernel, {blank: expressions[blank]})
        kernels = kernel_language.kernels_of(source, _launched(self.request["cases"]))
        namespace = load(kernels.source)
        self[blank] = {name: namespace[name] for name in kernels.kernels}
        return self[blank]


def _launched(cases: list[dict]) -> list[str]:
    """The kernels that the traces launch: an unused experiment beside them is not looked at."""
    steps = (step for case in cases for step in case["trace"]["steps"])
    return sorted({str(step["kernel"]) for step in steps if step.get("op") == "launch"})


def _replay_case(settings, request, kernels, case, job_input, out) -> dict:
    import torch

    from .launches import OPTIONS
    from .memory import GUARD, LARGE, UNWRITTEN, Guarded, GuardedAllocations
    from .trace import KernelName, NotReplayable, Replay

    device = _device(settings)
    interpreter = settings["backend"] == "interpreter"
    around = {"guard": request.get("guard", GUARD), "pattern": LARGE if case["poison"] == "large" else UNWRITTEN}
    inputs = [Guarded(_tensor(spec, job_input), tuple(spec["stride"]), device, **around) for spec in case["inputs"]]
    allocations = GuardedAllocations(**around)
    evidence: dict = {"races": [], "unchecked": unchecked[:300]}

    def kernel(name):
        if name not in kernels:
            raise NotReplayable(f"{name[:60]} is not one of the kernels that the answer defines at top level")
        return kernels[name]

    def launch(name, grid, arguments, options):
        if unknown := [*set(arguments) - set(kernel(name).arg_names), *set(options) - set(OPTIONS)]:
            raise NotReplayable(f"{name[:60]} has no parameter {unknown[0][:60]}")
        arguments = {k: kernel(str(v)) if isinstance(v, KernelName) else v for k, v in arguments.items()}
        if not interpreter:
            kernel(name)[grid](**arguments, **options)
            torch.cuda.synchronize()
            return
        with watched(case["poison"], case["backwards"]) as memory:
            kernel(name)[grid](**arguments)
        if memory:
            evidence["races"] += [race for seen in memory.launches for race in _races(seen)][:4]

    steps = Replay([g.tensor for g in inputs], device, allocations.place, launch)
    result = steps.run(case["trace"])
    if not interpreter:
        torch.cuda.synchronize()
    evidence["launched"] = steps.launched[:16]
    # a kernel that names nothing can do nothing: its body is `pass`, `...` or a docstring
    evidence["empty_kernels"] = [n for n in kernels if n in steps.launched and not kernels[n].fn.__code__.co_names]
    damage = [d for d in (g.damage() for g in inputs) if d]
    if allocations.damaged():
        damage.append("out-of-bounds-store")
    evidence["damage"] = damage[:4]
    meta = {
        "shape": list(result.shape),
        "dtype": str(result.dtype).removeprefix("torch."),
        "device": result.device.type,
        "contiguous": result.is_contiguous(),
        "aliases_input": any(
            result.numel() and result.untyped_storage()._cdata == g.buffer.untyped_storage()._cdata for g in inputs
        ),
    }
    _put(out, case["slot"], result)
    return {"result": meta, "evidence": evidence}


def _tensor(spec: dict, job_input: memoryview):
    import torch

    dtype = getattr(torch, spec["dtype"])
    if not spec["bytes"]:
        return torch.empty(spec["shape"], dtype=dtype)
    raw = bytearray(job_input[spec["offset"] : spec["offset"] + spec["bytes"]])
    return torch.frombuffer(raw, dtype=dtype).reshape(spec["shape"])


def _put(out: mmap.mmap, slot: list[int], result):
    """The result's bytes, in row-major order, if they fit the slot: another shape is judged by its shape."""
    import torch

    offset, capacity = slot
    flat = result.detach().to("cpu").contiguous().reshape(-1)
    raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    if len(raw) <= capacity:
        out[offset : offset + len(raw)] = raw


def value(settings, request, job_input, out, report):
    function = learner_function(request["source"], request["entry"])
    for index, case in enumerate(request["cases"]):
        try:
            arguments = [_plain_argument(a) for a in case["arguments"]]
            report({"case": index, "value": _plain_result(function(*arguments))})
        except BaseException as error:
            report({"case": index, "error": describe(error)})


def _plain_argument(argument):
    if isinstance(argument, dict) and "device" in argument:
        from workshop.device import DeviceFacts

        return DeviceFacts(**argument["device"])
    return argument


def _plain_result(result, depth: int = 0):
    """Numbers, strings, lists and dicts of them; anything else is named, not sent."""
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


def jax_call(settings, request, job_input, out, report):
    from . import jax

    jax.run(settings, request, job_input, out, report)
