"""Damage the compressed bytes, so that unpacking one file fails in the middle of all others.

Must: be refused; the honest students are collected and graded.
"""

import zipfile


def attack(path, notebook):
    name = "mallory/01_vector_add.ipynb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, notebook)
    content = bytearray(path.read_bytes())
    start = content.find(name.encode()) + len(name)
    content[start : start + 12] = b"\xff" * 12
    path.write_bytes(content)
