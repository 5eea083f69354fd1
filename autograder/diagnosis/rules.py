"""The rules in their order. An exercise's own rules stand among the patterns: they know more about its subject."""

from __future__ import annotations

from dataclasses import replace

from ..exercises.spec import Exercise
from ..verdict import Finding
from . import conduct, patterns, troubles
from .observation import Observation, Rule

# About what the answer did. The numbers do not matter.
CONDUCT_RULES: tuple[Rule, ...] = (
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
    conduct.reads_too_often,
)
# About patterns in the numbers, if no conduct rule explains the failure.
_PATTERNS = (patterns.not_finite, patterns.tail, patterns.low_precision, patterns.constant_factor)


def pattern_rules(exercise: Exercise) -> tuple[Rule, ...]:
    return (*exercise.rules, *_PATTERNS, *exercise.last_rules, patterns.wrong_value)


def diagnose(o: Observation, rules: tuple[Rule, ...] | None = None) -> Finding | None:
    """Why this case failed; None if it passed. `rules` are tried in their order; by default, all rules."""
    if rules is None:
        rules = (*CONDUCT_RULES, patterns.unwritten, patterns.known_mistake, *pattern_rules(o.exercise))
    for rule in rules:
        if finding := rule(o):
            return replace(finding, happened=finding.happened.strip())
    return None
