"""Give every cell the name of the check cell.

Must: earn nothing.
"""

def attack(notebook, cell):
    metadata = cell("check-vector_add")["metadata"]
    for other in notebook["cells"]:
        other["metadata"], other["id"] = metadata, "same"
