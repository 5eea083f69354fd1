"""One diagnosis for the exercise, out of those of its cases."""

from __future__ import annotations

from dataclasses import replace

from ..verdict import Finding
from .observation import Observation, worst_in_words, would_be_wrong
from .patterns import as_mistake, not_normalised, unwritten
from .rules import CONDUCT_RULES, PATTERN_RULES, diagnose

# What says most comes first, when the cases of one answer tell different stories.
PRIORITY = (
    "syntax-error", "not-attempted", "not-allowed", "no-triton-kernel", "compile-error", "out-of-memory",
    "wrong-device", "wrong-shape", "wrong-dtype", "input-modified", "not-contiguous", "timeout", "crash",
    "runtime-error", "wrong-program-id", "out-of-bounds-store", "out-of-bounds-load", "race",
    "unwritten-output", "relies-on-masked-lanes", "missing-rescale", "wrong-other-value", "overflow",
    "constant-factor", "not-normalised", "nan", "tail-wrong", "stride-ignored", "low-precision",
    "wrong-value",
)  # fmt: skip


# What no address in memory explains.
CONDUCT = {*PRIORITY[: PRIORITY.index("wrong-program-id")]} - {"crash"}


# Values that make NaN out of a kernel that is nearly right.
UNUSUAL = {"huge", "descending", "ascending", "masked", "all-masked", "negative"}


def overall(observations: list[Observation], findings: list[Finding | None]) -> Finding | None:
    """The finding that explains the answer as a whole."""
    failed = [(o, f) for o, f in zip(observations, findings, strict=True) if f]
    passed = [o for o, f in zip(observations, findings, strict=True) if not f]
    if not failed:
        return None
    if stride := _only_strided(observations, findings):
        return stride
    o, finding = min(_consistent(_with_one_mistake(failed, passed)), key=lambda pair: _rank(*pair))
    if finding != diagnose(o, PATTERN_RULES) or o.case.about & UNUSUAL:
        return finding
    return _only_ragged(observations, findings, o, finding) or _only_long(observations, findings, o, finding) or finding


def _with_one_mistake(failed: list[tuple[Observation, Finding]], passed: list[Observation]) -> list:
    """A known mistake counts if it explains half of the wrong outputs; one that fits by chance does not."""
    wrong = [o for o, _ in failed if o.comparison and not diagnose(o, (*CONDUCT_RULES, unwritten))]
    counts = [(sum(m in o.mistakes for o in wrong), m) for m in failed[0][0].exercise.mistakes]
    explained, mistake = max(counts, key=lambda pair: pair[0], default=(0, None))
    if mistake and mistake.known_by_nan and any(would_be_wrong(mistake, o) for o in passed):
        explained = 0
    if explained and 2 * explained >= len(wrong):
        told = [(o, f) for o, f in failed if o not in wrong]
        return told + [(o, as_mistake(o, mistake)) for o in wrong if mistake in o.mistakes]
    return [(o, diagnose(o, PATTERN_RULES) or f) if o in wrong else (o, f) for o, f in failed]


def _consistent(failed: list[tuple[Observation, Finding]]) -> list[tuple[Observation, Finding]]:
    """Without the findings that other cases contradict."""
    ratios = [o.comparison.ratio for o, f in failed if f.slug == "constant-factor" and _tells_much(o)]
    if ratios and max(ratios) > 1.01 * min(ratios):  # another factor for another shape: no constant
        failed = [(o, f if f.slug != "constant-factor" else not_normalised(o) or f) for o, f in failed]
    telling = [(o, f) for o, f in failed if o.comparison and _tells_much(o)]
    usual = {f.slug for o, f in telling if not o.case.about & UNUSUAL}
    blocks = [max(o.constants, default=0) for o, f in failed if f.slug == "tail-wrong"]
    full = [o for o, _ in telling for block in blocks if block and o.comparison.columns % block == 0]
    races = any(f.slug == "race" for _, f in failed)

    def contradicted(o: Observation, f: Finding) -> bool:
        if f.slug in ("overflow", "nan"):  # what is wrong with ordinary numbers comes first
            return bool(o.case.about & UNUSUAL and usual - {f.slug})
        if f.slug == "constant-factor":  # a single row is always a multiple of the right one
            return any(other.slug != "constant-factor" for _, other in telling)
        if f.slug == "tail-wrong":  # a size without a tail is wrong too
            return bool(full)
        if f.slug == "timeout":  # work that every program does takes long where there are many
            return races
        if f.slug == "unwritten-output":  # no block is full where a row is shorter than one
            return bool(blocks) and o.comparison.columns < max(blocks)
        return False

    return [(o, f) for o, f in failed if not contradicted(o, f)] or failed


def _tells_much(o: Observation) -> bool:
    """With one column, few elements or equal ones, patterns look alike."""
    return "short" not in o.case.about and o.comparison.varies


def _rank(o: Observation, finding: Finding) -> tuple[bool, int]:
    coincidence = o.comparison is not None and not _tells_much(o)
    return coincidence, PRIORITY.index(finding.slug) if finding.slug in PRIORITY else len(PRIORITY)


def _only_ragged(observations, findings, o: Observation, finding: Finding) -> Finding | None:
    """Rows that fill their blocks are right, ragged ones are not, and nothing else explains it."""
    if not any(m.slug == "wrong-other-value" for m in o.exercise.mistakes):
        return None
    judged = [(o, f) for o, f in zip(observations, findings) if o.comparison and o.constants]
    full = [f for o, f in judged if o.comparison.columns % max(o.constants) == 0]
    if not full or any(full):
        return None
    if finding.slug not in ("nan", "not-normalised", "constant-factor", "low-precision"):
        return None
    if all("half" in o.case.about for o, f in judged if f):  # the lanes are right, in float32
        return None
    return Finding(
        "wrong-other-value",
        worst_in_words(o),
        "Rows that fill their blocks are right, ragged ones are not: masked-off lanes take part in the maximum or in "
        "the sum.",
        "load with other=-float('inf'): it never wins the maximum, and exp(-inf) adds 0 to the sum.",
    )


def _only_long(observations, findings, o: Observation, finding: Finding) -> Finding | None:
    """Rows of one block are right, longer ones are not, where a sum is carried from block to block."""
    if not o.exercise.name.startswith("online") or finding.slug not in ("not-normalised", "constant-factor"):
        return None
    judged = [(o, f) for o, f in zip(observations, findings) if o.comparison and o.constants]
    block = max(set.intersection(*(set(o.constants) for o, _ in judged)), default=0)
    short = [f for o, f in judged if o.comparison.columns <= block]
    if not short or any(short):
        return None
    return Finding(
        "missing-rescale",
        finding.happened,
        "Rows of one block are right, longer ones are not: the sum is wrong from the second block on.",
        "when the maximum grows from m to m_new, multiply the sum so far by exp(m - m_new) before you add the block.",
        second="not-normalised",
    )


def _only_strided(observations, findings) -> Finding | None:
    """All contiguous inputs pass, all row-strided ones fail."""
    strided = [f for o, f in zip(observations, findings) if "strided" in o.case.about and "wide" not in o.case.about]
    contiguous = [f for o, f in zip(observations, findings) if "strided" not in o.case.about]
    if not strided or not all(strided) or any(contiguous):
        return None
    first = strided[0]
    if first.slug == "not-contiguous":
        return replace(first, slug="stride-ignored", second="not-contiguous")
    if first.slug in CONDUCT:
        return None
    return Finding(
        "stride-ignored",
        first.happened,
        "Contiguous inputs are right, row-strided ones are not: rows of the input or of the output are taken to lie "
        "where they do not.",
        "pass x.stride(0) to the kernel, and begin row r at r * row_stride; the output has its own stride.",
        first.line,
        first.code,
    )
