"""Source that overflows a parser: deep nesting.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("vector_add")["source"] = "def add(x, y):\n    return " + "(" * 5000 + "x" + ")" * 5000
