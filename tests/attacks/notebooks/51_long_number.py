"""A literal of six thousand digits, and an exponent that never ends.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("vector_add")["source"] = f"N = {'9' * 6000}\nM = 9 ** 9 ** 9\ndef add(x, y):\n    return x * N * M"
