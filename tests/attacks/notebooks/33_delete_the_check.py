"""Delete the check cell.

Must: earn nothing.
"""

def attack(notebook, cell):
    notebook["cells"].remove(cell("check-vector_add"))
