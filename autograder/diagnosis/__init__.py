"""From what was observed to the misconception that explains it.

`rules` lists the rules; it is read top to bottom, and the first rule that recognises an observation answers. A rule
looks at evidence, never at the learner's text: which elements are wrong, which lanes left their tensor, what the
output agrees with, what the box reported. `whole` makes one diagnosis out of those of all cases.
"""

from .conduct import wrong_program
from .observation import Observation
from .rules import diagnose
from .whole import overall

__all__ = ["Observation", "diagnose", "overall", "wrong_program"]
