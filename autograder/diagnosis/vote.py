"""One diagnosis for the whole answer, from the findings of its cases."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..exercises.cases import UNUSUAL, Tag
from ..verdict import Finding, Slug
from .observation import Observation
from .shared import only_where

Failed = list[tuple[Observation, Finding]]


def overall(observations: list[Observation], findings: list[Finding | None]) -> Finding | None:
    """What explains the answer as a whole: the misconception that most of the failing cases name.

    Returns None if no case failed and the kernels did the work.
    """
    cases = list(zip(observations, findings, strict=True))
    failed = [(o, f) for o, f in cases if f]
    if not failed:
        return _idle(observations)
    if strided := _only_strided(cases):
        return strided
    spoken, finding = _elected(failed)
    if finding.slug.about_conduct or finding.slug == Slug.READS_TOO_OFTEN or spoken.mistake:
        return finding
    where = only_where([o for o, _ in failed], [o for o, f in cases if f is None])
    return replace(finding, means=f"{finding.means} {where}".strip())


def _elected(failed: Failed) -> tuple[Observation, Finding]:
    """The most frequent name among the cases that tell most. Of its cases, the first that is sure speaks, or
    the first with a known line.

    Those with ordinary values tell most, and those with values of all sizes least: there everything becomes NaN. A tie
    is decided by all failing cases, and then by rank.
    """
    failed = [(o, f) for o, f in failed if not f.slug.of_right_numbers] or failed
    telling = [(o, f) for o, f in failed if _is_ordinary(o)]
    telling = telling or [(o, f) for o, f in failed if Tag.FAR not in o.case.about] or failed
    if any(o.comparison and _has_a_full_block(o) for o, _ in telling):
        telling = [(o, f) for o, f in telling if _has_a_full_block(o)]
    votes, of_all = (Counter(f.slug for _, f in voters) for voters in (telling, failed))
    elected = min(votes, key=lambda slug: (-votes[slug], -of_all[slug], slug.rank))
    return min(
        ((o, f) for o, f in telling if f.slug == elected), key=lambda each: (not each[1].sure, each[1].line is None)
    )


def _is_ordinary(o: Observation) -> bool:
    """Whether patterns can be told apart: not in few or equal elements, nor in values where much becomes NaN."""
    return not o.case.about & (UNUSUAL | {Tag.SHORT}) and (o.comparison is None or o.comparison.varies)


def _has_a_full_block(o: Observation) -> bool:
    """Whether what a last, ragged block does differs from what all blocks do."""
    return o.comparison is None or o.comparison.columns >= o.block


def _idle(passed: list[Observation]) -> Finding | None:
    """Right results that are the same without the kernels, in every case that has elements."""
    full = [o for o in passed if o.comparison and o.comparison.expected.numel()]
    if not full or not all(o.evidence.idle for o in full):
        return None
    return Finding(
        "no-triton-kernel",
        "The kernels change nothing: without them the result is the same.",
        "torch put the result together by copies. A Triton kernel must compute the numbers of the output.",
        "allocate the output with torch.empty, and store to it in the kernel.",
        case=full[0].case.name,
    )


def _only_strided(cases: list[tuple[Observation, Finding | None]]) -> Finding | None:
    """All contiguous inputs pass, and all row-strided inputs fail."""
    strided = [f for o, f in cases if Tag.STRIDED in o.case.about and Tag.WIDE not in o.case.about]
    contiguous = [f for o, f in cases if Tag.STRIDED not in o.case.about]
    if not strided or not all(strided) or any(contiguous):
        return None
    first = strided[0]
    if first.slug == Slug.NOT_CONTIGUOUS:
        return replace(first, slug=Slug.STRIDE_IGNORED, second=Slug.NOT_CONTIGUOUS)
    if first.slug.about_conduct or first.slug.of_right_numbers:
        return None
    what = f"rows of {first.tensor}" if first.tensor else "rows of the input or of the output"
    return replace(
        first,
        slug=Slug.STRIDE_IGNORED,
        means=f"The results are right for contiguous inputs and wrong for row-strided inputs. Either {what} begin in "
        "the wrong place, or a mask is true behind the end of a row.",
        advice="begin row r at r * stride, with the stride of that tensor: x.stride(0) and output.stride(0) differ. "
        "Compare each column with the number of columns.",
        second=None,
    )
