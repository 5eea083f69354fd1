"""Comments and credits in the metadata, as formgrader would write them.

Must: earn nothing.
"""

def attack(notebook, cell):
    for other in notebook["cells"]:
        grader = other["metadata"].setdefault("nbgrader", {})
        grader.update(score=5, manual_score=5, extra_credit=100, max_score=5, comment="full marks", needs_manual_grade=False)
