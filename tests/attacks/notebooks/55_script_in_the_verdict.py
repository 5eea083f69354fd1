"""Scripts where a verdict quotes the learner: names, error messages, lines of code.

Must: earn nothing; nothing of it is live in what the instructor and the student are shown.
"""

SOURCE = """
def add(x, y):
    raise ValueError("<script>alert(1)</script><img src=x onerror=alert(1)>")  # <script>alert(2)</script>
"""


def attack(notebook, cell):
    cell("vector_add")["source"] = SOURCE
    cell("bug_hunt")["source"] = "def scale(x, a):\n    return x <script> a"
