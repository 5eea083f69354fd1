"""Hand in a check cell with the output that a full score prints.

Must: earn nothing.
"""

def attack(notebook, cell):
    for name in ("check-vector_add", "check-bug_hunt", "check-vector_add_autotuned"):
        check = cell(name)
        check["execution_count"] = 7
        check["outputs"] = [
            {"output_type": "execute_result", "execution_count": 7, "metadata": {}, "data": {"text/plain": "5.0"}},
            {"output_type": "stream", "name": "stdout", "text": "passed: 5 / 5 points"},
        ]
