"""Finds the misconception that explains an observation.

`rules` lists the rules. They are tried in order, and the first rule that recognises an observation gives the finding.
A rule looks at evidence, never at the learner's text: which elements are wrong, which lanes accessed memory outside
of their tensor, what the output agrees with, what the box reported. `overall` makes one diagnosis from the findings
of all cases.
"""

from .conduct import refused, too_much_shared_memory, wrong_program
from .maps import error_map
from .observation import Observation
from .rules import diagnose, overall, with_wrong_steps

__all__ = [
    "Observation",
    "diagnose",
    "error_map",
    "overall",
    "refused",
    "too_much_shared_memory",
    "with_wrong_steps",
    "wrong_program",
]
