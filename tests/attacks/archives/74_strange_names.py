"""Students' names that are paths, options, formulas, markup, SQL, or another student's.

Must: become harmless names, each its own student, and leave the honest students' grades as they are.
"""

import zipfile

NAMES = ("-rf", "=cmd()", "<script>alert(1)</script>", "a' OR 1=1;--", "..", "honest-first ", "honest\u200b-first", "\x1b[2J")


def attack(path, notebook):
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            archive.writestr(f"{name}/01_vector_add.ipynb", notebook)
