"""Make the exercise worth a thousand points, and the others nothing.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("check-vector_add")["metadata"]["nbgrader"]["points"] = 1000
    cell("check-bug_hunt")["metadata"]["nbgrader"]["points"] = -1000
    cell("check-vector_add")["metadata"]["nbgrader"]["extra_credit"] = 1000
