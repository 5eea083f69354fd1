"""What a kernel got or computed and nothing used, as the likely cause of a wrong answer. See workshop.executor.facts.

The lines and names come from a box, in the traces of the answer, and are not trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..verdict import Finding, Slug
from .launched import launches

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


def with_what_is_unused(finding: Finding, traces: Iterable[dict]) -> Finding:
    """The finding with the likely cause. One that is sure keeps its advice."""
    if finding.slug.rank <= Slug.RUNTIME_ERROR.rank or finding.slug.of_right_numbers:
        return finding
    kernels = list(_kernels(traces))
    kinds = ["mask", "parameter", "step", "loop", "line"] if finding.slug in _OUTSIDE else [*_TOLD][:4]
    for wanted in sorted(kinds, key=lambda kind: kind == "mask" and _has(kernels, "parameter")):
        for kernel, unused in kernels:
            for kind, line, name in unused:
                if kind == wanted and (kind != "mask" or line == finding.line):
                    return _told(finding, kernel, kind, line, name)
    return finding


def _told(finding: Finding, kernel: str, kind: str, line: int, name: str) -> Finding:
    told = _TOLD["one mask" if (kind, name) == ("mask", "-1") else kind]
    means, advice = (text.format(name, kernel, _COMPARED.get(name, "the other axes")) for text in told)
    shown = {"line": line, "code": ""} if line else {}
    if finding.sure:
        return replace(finding, means=f"{finding.means} {means}", **shown)
    if kind == "line" and finding.slug in _ADVISED:
        return replace(finding, means=f"{means} {finding.means}", **shown)
    return replace(finding, means=f"{means} {finding.means}".strip(), advice=advice, second=None, **shown)


def _has(kernels: list, kind: str) -> bool:
    return any(each[0] == kind for _, unused in kernels for each in unused)


def _kernels(traces: Iterable[dict]) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
    """Each kernel, and what is unused in all of its launches, the lowest line first."""
    seen: dict[str, list] = {}
    for step in (step for trace in traces for step in launches(trace)):
        unused, given = step.get("unused"), step.get("given")
        if isinstance(unused, list) and isinstance(given, list):
            here = [tuple(each) for each in unused if _is_unused(each) and each[2] not in _keys(step)]
            seen.setdefault(str(step.get("kernel")), []).append((here, {str(each[:1]) for each in given}))
    for kernel, launched in seen.items():
        found = dict.fromkeys(each for here, _ in launched for each in here)
        common = [each for each in found if all(_is_in(each, *launch) for launch in launched)]
        names = " and ".join(name for kind, _, name in common if kind == "parameter")
        rest = [each for each in common if each[0] != "parameter"]
        yield kernel, [("parameter", 0, names)] * bool(names) + sorted(rest, key=lambda each: -each[1])


def _keys(step: dict) -> list:
    """The parameters that an autotuner chooses by. Its kernel need not use them."""
    keys = step["tuned"].get("key") if isinstance(step.get("tuned"), dict) else None
    return keys if isinstance(keys, list) else []


def _is_in(each: tuple[str, int, str], unused: list, given: set) -> bool:
    """Whether it is unused in a launch, too. A parameter may be a constant there, and a cast that does nothing is in no
    line, so the last line that makes a value of a step differs."""
    kind, _, name = each
    if kind == "step":
        return any(other[0] == kind for other in unused)
    return each in unused or kind == "parameter" and str([name]) not in given


def _is_unused(value: object) -> bool:
    kinds = [type(each) for each in value] if isinstance(value, list) else []
    return kinds == [str, int, str] and value[0] in _TOLD and re.fullmatch(r"-?[\w\[\]]{0,100}", value[2])
