"""The rules in their order. The first one that recognises an observation gives the finding."""

from __future__ import annotations

from dataclasses import replace

from ..verdict import Finding
from . import conduct, parts, patterns, troubles
from .observation import Observation, Rule

# About what the answer did. The numbers do not matter.
CONDUCT: tuple[Rule, ...] = (
    conduct.kept_from_earlier,
    troubles.invalid_access,
    troubles.died,
    troubles.troubled,
    conduct.not_attempted,
    conduct.wrong_device,
    conduct.wrong_shape,
    conduct.wrong_dtype,
    conduct.no_kernel,
    conduct.aliased,
    conduct.damaged,
    conduct.not_contiguous,
    conduct.accumulated,
    conduct.wrong_program,
    conduct.raced,
    conduct.read_what_nothing_wrote,
    conduct.masked_lanes,
    conduct.misplaced,
    conduct.too_few_programs,
    conduct.changing_bits,
    conduct.reads_too_often,
    conduct.writes_too_often,
)
# About patterns in the numbers, if no rule about conduct explains the failure.
PATTERNS: tuple[Rule, ...] = (
    patterns.unwritten,
    patterns.known_mistake,
    parts.part_of_the_input,
    patterns.not_finite,
    patterns.tail,
    patterns.low_precision,
    patterns.constant_factor,
    patterns.factor_of_each_row,
    patterns.wrong_value,
)
RULES = CONDUCT + PATTERNS


def diagnose(o: Observation) -> Finding | None:
    """Why this case failed; None if it passed."""
    for rule in RULES:
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip(), case=o.case.name)
    return None
