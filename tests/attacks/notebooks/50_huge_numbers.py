"""Numbers of five thousand digits, and NaN.

Must: earn nothing.
"""

import json


def attack(notebook, cell):
    cell("check-vector_add")["metadata"]["nbgrader"]["points"] = float("nan")
    text = json.dumps(notebook).replace('"nbformat": 4', '"nbformat": ' + "4" * 5000)
    return text.encode()
