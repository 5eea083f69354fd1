"""Twenty megabytes of output in one line.

Must: earn nothing; what is kept of it is small.
"""

def attack(notebook, cell):
    cell("vector_add")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * (20 << 20)}]
