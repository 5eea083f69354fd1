"""A zip whose names lead out of the folder: upwards, absolute, by drive letter, by a link inside.

Must: be refused file by file, and leave the folder of canaries as it is.
"""

import stat
import zipfile


def attack(path, notebook):
    names = ("../../@CANARY@/a.ipynb", "@CANARY@/01_vector_add.ipynb", "C:\\b\\01_vector_add.ipynb", "eve/../../c.ipynb")
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, notebook)
        link = zipfile.ZipInfo("link/01_vector_add.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
