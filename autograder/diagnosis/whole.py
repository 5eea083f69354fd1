"""One diagnosis for the whole exercise, made from the findings of its cases."""

from __future__ import annotations

from dataclasses import replace

from ..exercises.spec import UNUSUAL, Tag
from ..verdict import Finding, Slug
from .observation import Observation, fits, would_be_wrong
from .patterns import as_mistake, unwritten, wrong_value
from .rules import CONDUCT_RULES, diagnose, pattern_rules


def overall(observations: list[Observation], findings: list[Finding | None]) -> Finding | None:
    """The finding that explains the answer as a whole."""
    failed = [(o, f) for o, f in zip(observations, findings, strict=True) if f]
    passed = [o for o, f in zip(observations, findings, strict=True) if not f]
    if not failed:
        return _idle(passed)
    failed = [(o, f) for o, f in failed if f.slug != Slug.READS_TOO_OFTEN] or failed  # said of right numbers only
    if stride := _only_strided(observations, findings):
        return stride
    o, finding = min(_consistent(_with_one_mistake(failed, passed)), key=lambda pair: _rank(*pair))
    if finding != diagnose(o, pattern_rules(o.exercise)) or o.case.about & UNUSUAL:
        return finding
    cases = list(zip(observations, findings, strict=True))
    summed_up = (summary(cases, o, finding) for summary in o.exercise.summaries)
    return next(filter(None, summed_up), finding)


def _idle(passed: list[Observation]) -> Finding | None:
    """Right results that are the same without the kernels, in every case that has elements."""
    full = [o for o in passed if o.comparison and o.comparison.expected.numel()]
    if not full or not all(o.evidence.idle for o in full):
        return None
    return Finding(
        "no-triton-kernel",
        f"The kernels change nothing: without them the result is the same ({full[0].case.name}).",
        "torch put the result together by copies. A Triton kernel must compute the numbers of the output.",
        "allocate the output with torch.empty, and store to it in the kernel.",
    )


def _with_one_mistake(failed: list[tuple[Observation, Finding]], passed: list[Observation]) -> list:
    """A known mistake counts only if it explains at least half of the wrong outputs: it can fit one by chance.

    An output that is NaN where the mistake computes NaN counts too, once the mistake explains numbers.
    """
    wrong = [o for o, _ in failed if o.comparison and not diagnose(o, (*CONDUCT_RULES, unwritten))]
    counts = [(sum(m in o.mistakes for o in wrong), m) for m in failed[0][0].exercise.mistakes]
    explained, mistake = max(counts, key=lambda pair: pair[0], default=(0, None))
    if 2 * explained < len(wrong):
        counts = [(sum(m in o.mistakes or fits(m, o) for o in wrong), m) for count, m in counts if count]
        explained, mistake = max(counts, key=lambda pair: pair[0], default=(0, None))
    if mistake and mistake.known_by_nan and any(would_be_wrong(mistake, o) for o in passed):
        explained = 0
    if explained and 2 * explained >= len(wrong):
        told = [(o, f) for o, f in failed if o not in wrong]
        return told + [(o, as_mistake(o, mistake)) for o in wrong if mistake in o.mistakes]
    return [(o, diagnose(o, pattern_rules(o.exercise)) or f) if o in wrong else (o, f) for o, f in failed]


def _consistent(failed: list[tuple[Observation, Finding]]) -> list[tuple[Observation, Finding]]:
    """Without the findings that other cases contradict."""
    ratios = [o.comparison.ratio for o, f in failed if f.slug == "constant-factor" and _tells_much(o)]
    differ = bool(ratios) and max(ratios) - min(ratios) > 0.01 * max(map(abs, ratios))
    if differ:  # between cases: not constant
        failed = [
            (o, f if f.slug != "constant-factor" else diagnose(o, (*o.exercise.last_rules, wrong_value)) or f)
            for o, f in failed
        ]
    telling = [(o, f) for o, f in failed if o.comparison and _tells_much(o)]
    usual = {f.slug for o, f in telling if not o.case.about & UNUSUAL}
    blocks = [max(o.constants, default=0) for o, f in failed if f.slug == "tail-wrong"]
    full = [o for o, _ in telling for block in blocks if block and o.comparison.columns % block == 0]
    races = any(f.slug == "race" for _, f in failed)
    low = {Tag.FAR, Tag.NEGATIVE}
    others = {f.slug for o, f in telling if not o.case.about & (low | {Tag.MASKED, Tag.ALL_MASKED})}
    found = [f.slug for _, f in telling]
    common = next((slug for slug in set(found) if 2 * found.count(slug) > len(found)), None)
    misplaced_rows = any(f.slug == "stride-ignored" for _, f in failed)
    attempted = any(f.slug != "not-attempted" and o.comparison for o, f in failed)

    def contradicted(o: Observation, f: Finding) -> bool:
        if f.slug in ("overflow", "nan"):  # errors with ordinary numbers rank first
            return bool(o.case.about & UNUSUAL and usual - {f.slug})
        if f.slug == "wrong-value":  # a name that ordinary numbers have says more
            return bool(o.case.about & UNUSUAL) and any(
                not other.case.about & UNUSUAL and said.slug != f.slug for other, said in failed
            )
        if f.slug == "not-normalised":  # rounded exponents: the error grows with the values
            return common == "low-precision" or bool(o.case.about & UNUSUAL) and usual == {"low-precision"}
        if f.slug == "low-precision":  # a wrong factor can be near the right one by chance
            by_a_factor = o.comparison is not None and o.comparison.ratio is not None
            return common == "constant-factor" or differ and by_a_factor
        if f.slug == "constant-factor":  # a single row always gives one factor
            return not set(found) <= {"constant-factor", "low-precision"} or common != "constant-factor"
        if f.slug == "tail-wrong":  # a case without a ragged block is wrong too
            return bool(full)
        if f.slug == "wrong-other-value":  # low rows alone are its sign
            return bool(o.case.about & low and others and f.slug not in others)
        if f.slug == "out-of-bounds-load":  # a row that begins in the wrong place is read from the gap before it
            return Tag.STRIDED in o.case.about and misplaced_rows
        if f.slug == "not-attempted":  # a grid that is empty in a small case writes nothing there
            return attempted
        if f.slug == "timeout":  # work that every program repeats takes long in a large grid
            return races
        if f.slug == "unwritten-output":  # a row that is shorter than a block has no full block
            return bool(blocks) and o.comparison.columns < max(blocks)
        return False

    return [(o, f) for o, f in failed if not contradicted(o, f)] or failed


def _tells_much(o: Observation) -> bool:
    """False where patterns look alike: with one column, few elements or equal elements."""
    return Tag.SHORT not in o.case.about and o.comparison.varies


def _rank(o: Observation, finding: Finding) -> tuple[bool, int]:
    coincidence = o.comparison is not None and not _tells_much(o)
    return coincidence, finding.slug.rank


def _only_strided(observations, findings) -> Finding | None:
    """All contiguous inputs pass, and all row-strided inputs fail."""
    cases = list(zip(observations, findings, strict=True))
    strided = [f for o, f in cases if Tag.STRIDED in o.case.about and Tag.WIDE not in o.case.about]
    contiguous = [f for o, f in cases if Tag.STRIDED not in o.case.about]
    if not strided or not all(strided) or any(contiguous):
        return None
    first = strided[0]
    if first.slug == Slug.NOT_CONTIGUOUS:
        return replace(first, slug="stride-ignored", second="not-contiguous")
    if first.slug.about_conduct or first.slug == Slug.READS_TOO_OFTEN:
        return None
    where = "in the wrong place: rows of the input or of the output"
    advice = "pass x.stride(0) to the kernel, and begin row r at r * row_stride. The output has its own stride."
    fault = next(o.trouble and o.trouble.fault for o, f in cases if f is first)
    if fault and fault.kind == "load" and "gap" in fault.where and not any(fault.program):
        where = "behind the end of a row: the mask is true there, or a row begins in the wrong place"
        advice = "compare each column with the number of columns, and begin row r at r * x.stride(0)."
    elif fault and fault.kind == "store":
        where = "in the wrong place: rows of the output"
        advice = "the output has its own stride: its row r begins at r * output.stride(0)."
    return Finding(
        "stride-ignored",
        first.happened,
        f"The results are right for contiguous inputs and wrong for row-strided inputs. The kernel looks {where}.",
        advice,
        first.line,
        first.code,
    )
