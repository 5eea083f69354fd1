"""Turn the check cell into text.

Must: earn nothing.
"""

def attack(notebook, cell):
    check = cell("check-vector_add")
    check["cell_type"] = "markdown"
    del check["outputs"], check["execution_count"]
