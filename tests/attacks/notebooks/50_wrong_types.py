"""Every field of another type than expected.

Must: earn nothing.
"""

def attack(notebook, cell):
    cell("vector_add")["source"] = {"a": [1, 2, {"b": None}]}
    cell("check-vector_add")["metadata"] = ["nbgrader"]
    notebook["cells"] += [None, 7, "cell", [], {"cell_type": 3}, {"cell_type": "code", "source": [1, None]}]
    notebook["nbformat"] = "4"
