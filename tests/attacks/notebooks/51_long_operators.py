"""Source that overflows a compiler: five thousand signs before a number.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("vector_add")["source"] = "def add(x, y):\n    return x * " + "-" * 5000 + "1"
