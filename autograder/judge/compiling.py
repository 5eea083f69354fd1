"""What compilers and torch say of a passing answer. Triton's front end has read it; a compiler has more to say.

Programs are compiled in the box, for an NVIDIA and an AMD GPU that need not be here: of each kernel and its options,
the one with the largest constants, because it needs the most shared memory. A target that this machine cannot compile
for is left out.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from dataclasses import replace

from triton.backends import backends

from ..box import Outcome
from ..box.wire import CompileCase, Launch, PlanRequest, ProgramRequest, Report, Trace, Trouble, to_json
from ..diagnosis import diagnose
from ..diagnosis.conduct import refused, too_much_shared_memory
from ..exercises.spec import Tag
from ..verdict import Finding
from .trials import MAX_CONFIGURATIONS, Drawn, Trials

TARGETS = [target for target, backend in (("cuda", "nvidia"), ("hip", "amd")) if backend in backends]
SHARED_MEMORY = 227 << 10  # bytes that a program may have on Hopper, the most of the course's cards
MAX_COMPILED = 6  # programs of an answer, and more if it has a space of configurations: all of them must compile
MUCH = SHARED_MEMORY >> 4  # bytes: what needs more is compiled with other promises, too
LARGE = 1 << 15  # elements of a block: what is larger compiles for long
MAX_REMEMBERED = 1024
ATTEMPTS = 4  # jobs of an answer; a case that ends its process costs one

# Results by the digest of a case. A result follows from its key alone, whoever asked first.
_remembered: dict[str, Trouble | int | None] = {}
_remembering = threading.Lock()  # a pool has several judges


def refusal(trials: Trials, traces: list[Trace]) -> Finding | None:
    """Why a compiler does not accept the kernels that an answer launched; None if it does."""
    if not TARGETS or not trials.judge.compiles:
        return None
    launches = [launch for trace in traces for launch in trace.launches]
    chosen = _chosen(launches, trials.programs)
    groups = [[CompileCase(launch.on(target), launch.options, target) for target in TARGETS] for launch in chosen]
    said = _said(trials, [group[0] for group in groups])
    refusing = [group for group in groups if type(said.get(_key(group[0]))) is not int]
    said |= _said(trials, [case for group in refusing for case in group[1:]])  # one that accepts a program is enough
    heavy = [each for each in zip(groups, chosen) if _bytes(said.get(_key(each[0][0]))) > MUCH]
    others = {_key(group[0]): _with_other_promises(group[0], launch, launches) for group, launch in heavy}
    said |= _said(trials, [case for cases in others.values() for case in cases])
    for group, launch in zip(groups, chosen):
        if found := _finding([said.get(_key(case)) for case in group]):
            return found
        alike = [group[0], *others.get(_key(group[0]), ())]
        needed = max(_bytes(said.get(_key(case))) for case in alike)
        if needed > SHARED_MEMORY:
            constants = ", ".join(f"{name} = {value}" for name, value in launch.constants.items())
            which = launch.kernel + f" with {constants}" * bool(constants)
            cases = (trials.cases[i].case.name for i, trace in trials.traces.items() if launch in trace.launches)
            return replace(too_much_shared_memory(which, needed, SHARED_MEMORY), case=next(cases, ""))
    return None


def _said(trials: Trials, cases: list[CompileCase]) -> dict[str, Trouble | int | None]:
    """What the compiler says of each case, by its key: a Trouble, bytes of shared memory, or None if it is not here.

    Asks the box for the cases that are not remembered. A case may stay without a result.
    """
    keys = {_key(case): case for case in cases}
    said = {key: _remembered[key] for key in keys if key in _remembered}
    waiting = [key for key in keys if key not in said]
    for _ in range(ATTEMPTS if waiting else 0):
        asked = tuple(keys[key] for key in waiting)
        named = {case.program: trials.programs[case.program] for case in asked}
        outcome = trials.run(ProgramRequest("compile", trials.source, asked, named))
        reports = outcome.by_case(len(waiting))
        said |= {waiting[position]: _result(waiting[position], report) for position, report in reports.items()}
        waiting = [key for key in waiting if key not in said]
        if outcome.exceeded or not waiting:
            break
    return said


def _result(key: str, report: Report | Outcome) -> Trouble | int | None:
    """What a report says, which is remembered; how its process ended is not: it may depend on the machine."""
    if isinstance(report, Outcome):
        return Trouble("compile-time" if report.exceeded else "compile-crash")
    if report.error and report.error.kind != "compile":
        raise RuntimeError(f"the compiler's job failed: {report.error.kind} {report.error.message[:200]}")
    with _remembering:
        _remembered[key] = report.error or report.value
        while len(_remembered) > MAX_REMEMBERED:
            del _remembered[next(iter(_remembered))]
    return report.error or report.value


def _finding(said: list[Trouble | int | None]) -> Finding | None:
    """About one program for each target. All must fail: one alone may be Triton's own fault.

    What took too long is not said to fail: large blocks take long, and are right.
    """
    if all(isinstance(each, Trouble) and each.kind != "compile-time" for each in said):
        return refused(said[0])
    return None


def _bytes(said: Trouble | int | None) -> int:
    """Of shared memory, on an NVIDIA GPU; 0 where they are not known."""
    return said if TARGETS[0] == "cuda" and type(said) is int else 0


def _with_other_promises(case: CompileCase, launch: Launch, launches: list[Launch]) -> list[CompileCase]:
    """The program with all promises that any launch of its kernel makes of a number, and with those that all make.

    What lies in shared memory follows from them, too: elements are loaded ahead if they are aligned, and a tile is
    turned as a whole if they are not. A block that is chosen by the size was met with the promises of one size only.
    """
    seen: dict[str, set[bool]] = {}
    for argument in (each for one in launches if one.kernel == launch.kernel for each in one.given):
        if type(argument.value) is int:
            seen.setdefault(argument.label, set()).add(argument.value % 16 == 0)
    some = tuple(i for i, each in enumerate(launch.given) if len(seen.get(each.label, ())) > 1)
    return [replace(case, divisible=some), replace(case, odd=some)] if some else []


def _key(case: CompileCase) -> str:
    return hashlib.sha256(to_json(case)).hexdigest()


def _chosen(launches: list[Launch], programs: dict[str, str]) -> list[Launch]:
    """One launch of each kernel and its options: that with the largest blocks that still compile soon.

    Of an autotuned kernel, one launch of each configuration.
    """
    found: dict[str, Launch] = {}
    for launch in launches:
        if launch.digests <= programs.keys():
            own = launch.constants if launch.tuned else {}
            key = json.dumps([launch.kernel, sorted(launch.options.items()), own], sort_keys=True)
            found[key] = max(found.get(key, launch), launch, key=_rank)
    tuned = [launch for launch in found.values() if launch.tuned][:MAX_CONFIGURATIONS]
    return tuned + [launch for launch in found.values() if not launch.tuned][:MAX_COMPILED]


def _rank(launch: Launch) -> tuple[float, bool]:
    """The product of a launch's constants; where blocks may be large, the smaller the better. A block has two axes.

    And whether its tensors have float32.
    """
    lengths = sorted(value for value in launch.constants.values() if type(value) is int and value > 0)
    size = math.prod(lengths)
    return size if math.prod(lengths[-2:]) <= LARGE else 1 / size, any(each.kind == "*fp32" for each in launch.given)


# -- whether torch accepts a right answer as one of its operators: the box asks it, see box/inside/operators.py -------

# By the test that an answer fails: the slug, what happened, what it means, and what to try.
REFUSED = {
    "registered": (
        "not-registered",
        "{entry} calls no operator that is registered with torch.",
        "The numbers are right. But torch.compile cannot see a plain function that launches a kernel as one operation.",
        'put @triton_op("my_library::rms_norm", mutates_args=()) above the function, and annotate its types.',
    ),
    "called": (
        "wrong-schema",
        "torch refuses what the operator does.",
        "A result of an operator is fresh memory: it is no argument, and shares no memory with one or another result.",
        "return only tensors that the operator has made.",
    ),
    "gradient": (
        "not-registered",
        "The operator has no gradient for each of its tensors.",
        "The backward pass of an operator is registered, too.",
        "operator.register_autograd(backward, setup_context=setup_context).",
    ),
    "test_schema": (
        "wrong-schema",
        "torch.library.opcheck: the operator does something else than its schema says.",
        "mutates_args names each tensor that is written to, and a result never shares memory with an argument. "
        "torch.compile moves and removes operations by what the schema says.",
        "write to fresh tensors only, and return them.",
    ),
    "test_faketensor": (
        "wrong-schema",
        "torch.library.opcheck: the operator promises another result than it gives.",
        "torch.compile asks for shapes, strides and dtypes before anything runs. For a triton_op the function itself "
        "answers, for a custom_op the one given to register_fake.",
        "return a tensor of the same shape, strides and dtype in the operator and in its fake function. In a "
        "triton_op, launch wrap_triton(kernel)[grid](…).",
    ),
    "no fake": (
        "wrong-schema",
        "torch.library.opcheck: an operator has no fake function.",
        "torch.compile asks for shapes, strides and dtypes before anything runs. For a triton_op the function itself "
        "answers, for a custom_op the one given to register_fake.",
        "write a function for register_fake that returns empty tensors of the right shapes, or use triton_op.",
    ),
    "test_autograd_registration": (
        "not-registered",
        "torch.library.opcheck: the gradient is not registered with the operator.",
        "An autograd.Function around an operator, or inside of it, is not seen by torch.compile.",
        "operator.register_autograd(backward, setup_context=setup_context).",
    ),
    "test_aot_dispatch_dynamic": (
        "graph-break",
        "torch.library.opcheck: the operator, or its backward pass, cannot be traced.",
        "torch.compile runs both on tensors without numbers. A launch there goes through wrap_triton, or is inside of "
        "an operator of its own.",
        "write wrap_triton(kernel)[grid](…) in a triton_op, and call an operator in the backward pass.",
    ),
    "compile": (
        "graph-break",
        "torch.compile(fullgraph=True) cannot make one graph of the function.",
        "In one graph, Python must not ask for the numbers of a tensor, and a launch is inside of an operator.",
        "leave out .item(), and `if` on numbers of a tensor. In a triton_op, launch wrap_triton(kernel)[grid](…).",
    ),
    "other numbers": (
        "wrong-schema",
        "Under torch.compile the function gives other numbers.",
        "torch.compile moves and removes operations by what the schema says.",
        "name each tensor that is written to in mutates_args, and keep nothing between calls.",
    ),
}


def operator_finding(trials: Trials) -> Finding | None:
    """What torch says of the function in a few cases: an ordinary one, one in half precision, an empty one."""
    kinds: dict[object, Drawn] = {}
    for d in trials.cases:
        if d.case.gradient is None and Tag.SHORT not in d.case.about:
            kinds.setdefault(Tag.EMPTY if Tag.EMPTY in d.case.about else Tag.HALF in d.case.about, d)
    asked = [*kinds.values()]
    request = PlanRequest((trials.source,), trials.exercise.entry, tuple(d.planned(operator=True) for d in asked))
    reports = trials.ask(request)
    for drawn, report in zip(asked, map(reports.get, range(len(asked)))):
        if isinstance(report, Report) and report.error and report.error.kind == "operator":
            trouble = report.error
            fakeless = "no fake impl" in trouble.message  # these words are torch's
            slug, happened, means, advice = REFUSED["no fake" if fakeless else trouble.construct]
            said = re.sub(r" \(with implementation in .*?>\)", "", trouble.message.strip().split("\n\n")[0])  # a path
            happened = happened.format(entry=trials.exercise.entry) + f" {said[:400]}" * bool(said)
            return Finding(slug, happened, means, advice, trouble.line, trouble.code)
        if isinstance(report, Outcome) or report and report.error:
            return diagnose(trials.unplanned(drawn, report, True))
    return None
