"""The rules in their order. An exercise's own stand among the patterns, where its subject says more than they do."""

from __future__ import annotations

from dataclasses import replace

from ..exercises.spec import Exercise
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
_PATTERNS = (patterns.not_finite, patterns.tail, patterns.low_precision, patterns.constant_factor)


def pattern_rules(exercise: Exercise) -> tuple[Rule, ...]:
    return (*exercise.rules, *_PATTERNS, *exercise.last_rules, patterns.wrong_value)


def diagnose(o: Observation, rules: tuple[Rule, ...] | None = None) -> Finding | None:
    """Why this case failed; None where it passed. `rules` are tried in their order, by default all there are."""
    if rules is None:
        rules = (*CONDUCT_RULES, patterns.unwritten, patterns.known_mistake, *pattern_rules(o.exercise))
    for rule in rules:
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip())
    return None
