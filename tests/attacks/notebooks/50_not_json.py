"""A file that is no notebook.

Must: earn nothing.
"""

def attack(notebook, cell):
    return b"\x00\xff{" * 1000
