"""Strip all metadata.

Must: earn nothing.
"""

def attack(notebook, cell):
    notebook["metadata"] = {}
    for other in notebook["cells"]:
        other["metadata"] = {}
