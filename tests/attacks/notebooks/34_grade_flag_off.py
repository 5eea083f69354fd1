"""Say that the check is not graded, and that a text cell is.

Must: earn nothing.
"""

def attack(notebook, cell):
    check, answer = cell("check-vector_add"), cell("vector_add")
    check["metadata"]["nbgrader"] |= {"grade": False, "solution": True, "locked": False}
    answer["metadata"]["nbgrader"] |= {"grade": True, "points": 5, "grade_id": "check-vector_add"}
