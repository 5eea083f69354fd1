"""A notebook of format 3, and of format 99.

Must: earn nothing.
"""

def attack(notebook, cell):
    notebook["nbformat"], notebook["nbformat_minor"] = 99, 3
    notebook["worksheets"] = [{"cells": notebook["cells"]}]
