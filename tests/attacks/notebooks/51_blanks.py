"""Lines of sixty thousand blanks, which a careless pattern tries to split in every way: half a minute each.

Must: earn nothing, and take no longer than other notebooks.
"""


def attack(notebook, cell):
    for number in range(8):
        source = " " * 59_000 + f"x{number}"
        notebook["cells"].append({"cell_type": "code", "metadata": {}, "outputs": [], "source": source})
