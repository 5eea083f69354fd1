"""Hand in a check cell with the verdict that the grader writes.

Must: earn nothing.
"""

VERDICT = {"exercise": "vector_add", "passed": True, "score": 5, "points": 5, "diagnosis": None, "cases": []}


def attack(notebook, cell):
    check = cell("check-vector_add")
    check["metadata"]["verdict"] = VERDICT
    check["metadata"]["nbgrader"]["score"] = 5
    notebook["metadata"]["verdict"] = notebook["metadata"]["nbgrader"] = VERDICT
