"""Name one's file, or oneself, so that the work counts as the honest student's, in the ways of three systems.

Must: stay with its own student; the honest student keeps the notebook that was handed in.
"""

import zipfile

NAMES = (
    "Mallory_77_assignsubmission_file/aa-honest_123_assignsubmission_file_01_vector_add.ipynb",
    "Mallory_77_assignsubmission_file/aa-honest_1_2_01_vector_add.ipynb",
    "hw_mallory_attempt_2099-01-01-00-00-00_aa-honest_attempt_2099-01-01-00-00-01_01_vector_add.ipynb",
)


def attack(path, notebook):
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            archive.writestr(zipfile.ZipInfo(name, (2099, 1, 1, 0, 0, 0)), notebook)
