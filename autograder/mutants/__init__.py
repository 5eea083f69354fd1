"""Judges the judge: makes wrong answers whose names are known, and right answers that are written differently.

`wrong` changes one thing in a solution; the fair names follow from what was changed (`fair`). `right` rewrites a
solution without changing what it computes. `judged` judges both and counts.
"""

from .judged import Judged, described, faultless, run, table, to_json

__all__ = ["Judged", "described", "faultless", "run", "table", "to_json"]
