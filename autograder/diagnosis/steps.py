"""A block that goes through a tensor in wrong steps, as the likely cause of a wrong result."""

from __future__ import annotations

from dataclasses import replace

from workshop import advice

from ..verdict import Finding
from .observation import Observation


def with_wrong_steps(finding: Finding, observations: list[Observation]) -> Finding:
    """The finding with the line whose steps are wrong in its case, if it is not sure of another cause."""
    o = next((o for o in observations if o.case.name == finding.case), None)
    if finding.sure or o is None or o.wrong is None or not o.evidence.steps:
        return finding
    found = o.evidence.steps[0]
    means, attempt = advice.about_steps(found)
    return replace(finding, means=means, advice=attempt, line=found.line or None, code=found.code, second=None)
