"""Terminal codes and invisible characters where the instructor reads.

Must: earn nothing; no control character reaches a terminal or a page.
"""

SOURCE = """
def add(x, y):
    raise ValueError("\\x1b]0;owned\\x07\\x1b[2J\\x1b[31m passed 5/5 \\u202e \\u200b \\r passed")
"""


def attack(notebook, cell):
    cell("vector_add")["source"] = SOURCE
    text = "\x1b]0;owned\x07\x1b[2Jpassed \u202e5/5"
    cell("vector_add")["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}]
