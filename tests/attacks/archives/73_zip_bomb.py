"""A notebook that unpacks to a gigabyte.

Must: be refused, quickly and with little memory.
"""

import zipfile


def attack(path, notebook):
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("eve/01_vector_add.ipynb", "w", force_zip64=True) as entry,
    ):
        for _ in range(1024):
            entry.write(bytes(1 << 20))
