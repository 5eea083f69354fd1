"""Where folders are students, name a file in one's own as a learning-management system names another's.

Must: stay with its own student or be refused; the honest student keeps the notebook that was handed in.
"""

import zipfile

NAMES = (
    "zoe/01_vector_add.ipynb",
    "mallory/aa-honest_123_assignsubmission_file_01_vector_add.ipynb",
    "mallory/hw_aa-honest_attempt_2099-01-01-00-00-00_01_vector_add.ipynb",
    "mallory/zz-honest_5_assignsubmission_file_/01_vector_add.ipynb",
)


def attack(path, notebook):
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            archive.writestr(zipfile.ZipInfo(name, (2099, 1, 1, 0, 0, 0)), notebook)
