"""The rules in their order."""

from __future__ import annotations

from dataclasses import replace

from ..verdict import Finding
from . import conduct, patterns, troubles
from .observation import Observation, Rule

# What was done, whatever the numbers are.
CONDUCT_RULES: tuple[Rule, ...] = (
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
    conduct.wrong_program,
    conduct.raced,
    conduct.masked_lanes,
    conduct.misplaced,
)
# What the numbers look like, when nothing that was done explains them.
PATTERN_RULES: tuple[Rule, ...] = (
    patterns.not_finite,
    patterns.tail,
    patterns.low_precision,
    patterns.constant_factor,
    patterns.not_normalised,
    patterns.wrong_value,
)
RULES = (*CONDUCT_RULES, patterns.unwritten, patterns.known_mistake, *PATTERN_RULES)


def diagnose(o: Observation, rules: tuple[Rule, ...] = RULES) -> Finding | None:
    """Why this case failed; None where it passed."""
    for rule in rules:
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip())
    return None
