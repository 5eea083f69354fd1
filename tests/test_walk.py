"""How much code one check walks through: the modules of this repository in which a function runs.

    python tests/test_walk.py       lists them, for the judge's process and for the box's

Whoever follows a check has to open these files. So their number has a limit.
"""

import os
import sys
from pathlib import Path

import workshop  # noqa: F401  comes first: it has kernels run on the executor where there is no GPU
from autograder.gallery import solution
from autograder.judge import Judge

ROOT = Path(__file__).resolve().parents[1]
MOST = 30

# Runs in the box's process and in its children. A child starts with an empty list, and ends without a chance to write.
NOTING = """
import os, sys
seen, log = set(), os.open({log!r}, os.O_WRONLY | os.O_APPEND)


def note(frame, event, argument):
    code = frame.f_code
    if code.co_filename.startswith({root!r}) and code.co_name != "<module>" and code.co_filename not in seen:
        seen.add(code.co_filename)
        os.write(log, code.co_filename.encode() + b"\\n")


os.register_at_fork(before=seen.clear)
sys.settrace(note)
"""


def walked(name: str, source: str, folder: Path) -> dict[str, set[str]]:
    """By process, "judge" and "box": the modules in which a check of a right answer runs functions, once it is warm."""
    log, here = folder / "box", set()
    log.touch()
    (folder / "sitecustomize.py").write_text(NOTING.format(log=str(log), root=f"{ROOT}{os.sep}"))
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), before]))

    def note(frame, event, argument):
        if frame.f_code.co_name != "<module>":
            here.add(frame.f_code.co_filename)

    try:
        with Judge(confine=False) as judge:
            assert judge.judge(name, source, seed=1).passed
            log.write_text("")
            sys.settrace(note)
            try:
                judge.judge(name, source, seed=1)
            finally:
                sys.settrace(None)
    finally:
        os.environ["PYTHONPATH"] = before
    return {"judge": _modules(here), "box": _modules(log.read_text().split())}


def _modules(files) -> set[str]:
    inside = (Path(file).relative_to(ROOT) for file in files if Path(file).is_relative_to(ROOT))
    return {str(file) for file in inside if file.parts[0] in ("autograder", "workshop")}


def test_one_check_walks_through_few_modules(tmp_path):
    found = walked("vector_add", solution("vector_add"), tmp_path)
    assert len(found["judge"] | found["box"]) <= MOST, found


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = walked("vector_add", solution("vector_add"), Path(folder))
    for process, modules in found.items():
        print(f"{process}: {len(modules)}", *sorted(modules), sep="\n    ")
    print(f"in all: {len(found['judge'] | found['box'])}")
