"""NUL, lone surrogates, right-to-left marks and a coding line in the source.

Must: earn nothing.
"""

def attack(notebook, cell):
    source = "# -*- coding: rot13 -*-\ndef add(x, y):\n    return x  # \x00 \ud800 \u202e }}{% raw %}"
    cell("vector_add")["source"] = source
