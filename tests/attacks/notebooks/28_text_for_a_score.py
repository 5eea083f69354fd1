"""Outputs that stock nbgrader cannot turn into a number: they count as full marks.

Must: earn nothing.
"""

def attack(notebook, cell):
    for text in ("'thanks'", "nan", "-1e999", "5j"):
        output = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": text}}
        cell("check-vector_add")["outputs"].append(output)
