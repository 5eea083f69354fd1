"""JSON that is nested a hundred thousand times.

Must: earn nothing.
"""

def attack(notebook, cell):
    return b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b', "nbformat": 4, "metadata": {}}'
