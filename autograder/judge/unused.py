"""What a kernel got or computed and nothing used, and strides that it did not get: likely causes of a wrong answer.

See workshop.executor.facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..box.wire.answers import Input, Launch, Trace, Unused
from ..diagnosis import Observation
from ..exercises.cases import Strided
from ..text import listed
from ..verdict import Finding, Slug

# By kind: what happened and what to try. {0}: a name, {1}: the kernel, {2}: what is compared.
_TOLD: dict[str, tuple[str, str]] = {
    "parameter": (
        "No line of {1} uses {0}.",
        "use {0} where it belongs: in an address, in a mask, or in what is computed.",
    ),
    "loop": (
        "Nothing in this loop uses its variable, so each step does the same.",
        "add the loop's variable to the offsets: start + tl.arange(0, BLOCK_SIZE).",
    ),
    "step": (
        "This line gives its variable a new value in each step of the loop, and forgets the value of the step before: "
        "only the last step counts.",
        "use the value so far in this line, too: add to it, or take tl.maximum of it and the new value.",
    ),
    "line": (
        "Nothing uses what this line computes.",
        "use its value in the lines below. A mask counts only in a load or store that gets it: mask=mask.",
    ),
    "mask": (
        "The mask of this line is the same along axis {0} of the block: it compares only {2}.",
        "compare both: mask = (rows[:, None] < n_rows) & (columns[None, :] < n_cols).",
    ),
    "one mask": (
        "The mask of this line is one value for the whole block: what it compares is the same in all lanes.",
        "compare the offsets that are added to the pointer: mask = offsets < n.",
    ),
}
_ADVISED = {Slug.OVERFLOW, Slug.NAN, Slug.RELIES_ON_MASKED_LANES, Slug.NOT_NORMALISED}  # with what to compute
_OUTSIDE = {Slug.OUT_OF_BOUNDS_LOAD, Slug.OUT_OF_BOUNDS_STORE}
_COMPARED = {"0": "columns", "1": "rows"}


def with_what_is_unused(finding: Finding, traces: Iterable[Trace]) -> Finding:
    """The finding with the likely cause. One that is sure keeps its advice."""
    if not _is_of_kernels(finding):
        return finding
    kernels = list(_kernels(traces))
    kinds = ["mask", "parameter", "step", "loop", "line"] if finding.slug in _OUTSIDE else [*_TOLD][:4]
    has_parameter = any(each.kind == "parameter" for _, unused in kernels for each in unused)
    for wanted in sorted(kinds, key=lambda kind: kind == "mask" and has_parameter):
        for kernel, unused in kernels:
            for each in unused:
                if each.kind == wanted and (wanted != "mask" or each.line == finding.line):
                    return _told(finding, kernel, each.kind, each.line, each.name)
    return finding


def about_products(traces: Iterable[Trace]) -> str:
    """A remark about a right answer whose addresses overflow in tensors larger than those of the cases."""
    found = {u.line: u.name for t in traces for each in t.launches for u in each.unused if u.kind == "product"}
    if not found:
        return ""
    lines, names = sorted(found), listed(dict.fromkeys(found[line] for line in sorted(found)))
    where = f"line{'s' * (len(lines) > 1)} {listed(map(str, lines))}"
    return (
        f"The product with {names} in {where} has 32 bits: it overflows in a tensor of more than 2³¹ elements. There, "
        "convert the other factor with .to(tl.int64)."
    )


def _is_of_kernels(finding: Finding) -> bool:
    """Whether kernels ran, and did something wrong."""
    return finding.slug.rank > Slug.RUNTIME_ERROR.rank and not finding.slug.of_right_numbers


def _told(finding: Finding, kernel: str, kind: str, line: int, name: str) -> Finding:
    told = _TOLD["one mask" if (kind, name) == ("mask", "-1") else kind]
    means, advice = (text.format(name, kernel, _COMPARED.get(name, "the other axes")) for text in told)
    shown = {"line": line, "code": ""} if line else {}
    if finding.sure:
        return replace(finding, means=f"{finding.means} {means}", **shown)
    if kind == "line" and finding.slug in _ADVISED:
        return replace(finding, means=f"{means} {finding.means}", **shown)
    return replace(finding, means=f"{means} {finding.means}".strip(), advice=advice, second=None, **shown)


def _kernels(traces: Iterable[Trace]) -> Iterator[tuple[str, list[Unused]]]:
    """Each kernel, and what is unused in all of its launches, the lowest line first."""
    kernels: dict[str, list[Launch]] = {}
    for launch in (launch for trace in traces for launch in trace.launches):
        kernels.setdefault(launch.kernel, []).append(launch)
    for kernel, launches in kernels.items():
        found = dict.fromkeys(each for launch in launches for each in _of(launch))
        common = [each for each in found if all(_is_in(each, launch) for launch in launches)]
        names = " and ".join(each.name for each in common if each.kind == "parameter")
        rest = [each for each in common if each.kind != "parameter"]
        yield kernel, [Unused("parameter", 0, names)] * bool(names) + sorted(rest, key=lambda each: -each.line)


def _of(launch: Launch) -> list[Unused]:
    """What is unused in a launch. An autotuner chooses by the parameters of its key: its kernel need not use them."""
    key = launch.tuned.key if launch.tuned else ()
    return [each for each in launch.unused if each.kind in _TOLD and each.name not in key]


def _is_in(each: Unused, launch: Launch) -> bool:
    """Whether it is unused in a launch, too. A parameter may be a constant there, and a cast that does nothing is in no
    line, so the last line that makes a value of a step differs."""
    unused = _of(launch)
    if each.kind == "step":
        return any(other.kind == "step" for other in unused)
    given = {argument.label for argument in launch.given}
    return each in unused or each.kind == "parameter" and each.name not in given


def with_a_stride_left_out(finding: Finding, cases: Iterable[tuple[Observation, Finding | None, Trace]]) -> Finding:
    """The finding with the tensor whose strides no launch passes, if only cases fail where they would count.

    cases: what was observed, what was found and what was launched.
    """
    if finding.sure or not _is_of_kernels(finding):
        return finding
    axes: dict[str, set[int]] = {}  # by the tensor, in cases that fail
    right, own = set(), {}
    for o, found, trace in cases:
        for name, left in _left_out(o, trace):
            if found is None:
                right.add(name)
            else:
                axes.setdefault(name, set()).update(left)
                own |= {name: o} if o.case.name == finding.case else {}
    for name, o in own.items():
        if name not in right:
            stride = tuple(o.arguments[o.exercise.parameters.index(name)].stride)
            wanted = listed(f"{name}.stride({axis})" for axis in sorted(axes[name]))
            none = wanted.replace(" and ", " and no ")
            means = f"{name} has the strides {stride} here, and the launch passes no {none}."
            advice = f"pass {wanted} to the kernel, and use {'it' if len(axes[name]) == 1 else 'them'} to read {name}."
            return replace(finding, means=means, advice=advice, second=None)
    return finding


def _left_out(o: Observation, trace: Trace) -> Iterator[tuple[str, list[int]]]:
    """The tensors that a launch gets, and which of their strides nothing that it gets can be made of."""
    arguments = [value for launch in trace.launches for value in launch.args.values()]
    numbers = {value for value in arguments if type(value) is int}
    passed = [value["t"] for value in arguments if isinstance(value, dict) and "t" in value]
    given = [(name, a) for name, a in zip(o.exercise.parameters, o.arguments) if isinstance(a, Strided)]
    for step in trace.steps:
        if isinstance(step, Input) and step.index < len(given) and {*step.out} & {*passed}:
            name, a = given[step.index]
            each = enumerate(zip(a.values.shape, a.stride, Strided(a.values).stride))
            steps = {axis: stride for axis, (size, stride, usual) in each if size > 1 and stride not in (0, 1, usual)}
            if axes := [axis for axis, step in steps.items() if not any(n and n % step == 0 for n in numbers)]:
                yield name, axes
