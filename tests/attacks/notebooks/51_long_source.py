"""Thirty megabytes of source.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("vector_add")["source"] = "def add(x, y):\n    return x\n" + "z = 1\n" * 5_000_000
