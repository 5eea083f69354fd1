"""Write another check.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("check-vector_add")["source"] = "5"
