"""Whether torch accepts a right answer as one of its operators. The box asks torch, see box/inside/operators.py."""

from __future__ import annotations

import re

from ..box import Outcome
from ..box.wire.answers import Report, Trouble
from ..box.wire.requests import PlanRequest
from ..diagnosis import diagnose
from ..exercises.cases import Tag
from ..verdict import Finding
from .trials import Trials

# By the test that an answer fails: the slug, what happened, what it means, and what to try.
TOLD = {
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
        "return a tensor of the same shape, strides and dtype in both. In a triton_op, launch "
        "wrap_triton(kernel)[grid](…).",
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


def finding(trials: Trials) -> Finding | None:
    """What torch says of the function in a few ordinary cases; None if it accepts it."""
    ordinary = [d for d in trials.cases if d.case.gradient is None and not d.case.about & {Tag.EMPTY, Tag.SHORT}]
    in_half = [Tag.HALF in d.case.about for d in ordinary]
    asked = [ordinary[in_half.index(half)] for half in (False, True) if half in in_half]
    request = PlanRequest((trials.source,), trials.exercise.entry, tuple(d.planned(operator=True) for d in asked))
    reports = trials.ask(request)
    for drawn, report in zip(asked, map(reports.get, range(len(asked)))):
        if isinstance(report, Report) and report.error and report.error.kind == "operator":
            return _told(trials.exercise.entry, report.error)
        if isinstance(report, Outcome) or report and report.error:
            return diagnose(trials.unplanned(drawn, report, True))
    return None


def _told(entry: str, trouble: Trouble) -> Finding:
    fakeless = "no fake impl" in trouble.message  # these words are torch's
    slug, happened, means, advice = TOLD["no fake" if fakeless else trouble.construct]
    said = re.sub(r" \(with implementation in .*?>\)", "", trouble.message.strip().split("\n\n")[0])  # a path
    happened = happened.format(entry=entry) + f" {said[:400]}" * bool(said)
    return Finding(slug, happened, means, advice, trouble.line, trouble.code)
