"""Tag the check cell so that nbclient does not run it: no output is full marks for stock nbgrader.

Must: earn nothing.
"""

def attack(notebook, cell):
    for name in ("check-vector_add", "check-bug_hunt", "check-vector_add_autotuned"):
        cell(name)["metadata"]["tags"] = ["skip-execution", "raises-exception", "remove-cell"]
