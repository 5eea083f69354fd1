"""`make update`: the newest version of the course, beside a learner's notebooks: `python3 workshop/update.py`.

A learner's notebook keeps its place and every byte. Where the lesson is another one now, the new version lies beside it
as new_01_vector_add.ipynb. Standard library only.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = "notebooks"


class Problem(Exception):
    """What git said, in one line."""


def git(*arguments, root=ROOT):
    """What a git command prints. Raises Problem where it fails."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
        raise Problem(f"git {arguments[0]}: {said[-1]}")
    return done.stdout


def update(root=ROOT):
    """Bring the course up to date. Returns the notebooks whose new version lies beside the learner's.

    Raises Problem, with everything as it was.
    """
    changed = git("diff", "--name-only", "HEAD", "--", root=root).splitlines()
    if others := [name for name in changed if not name.startswith(f"{NOTEBOOKS}/")]:
        raise Problem(f"found changes of yours in {', '.join(others[:3])}; commit them, or undo them with git restore")
    if left := sorted(root.glob(f"{NOTEBOOKS}/*.mine")):
        raise Problem(f"found {left[0].name}, your notebook of an update that was cut off; rename it to .ipynb")
    mine = {name: root / f"{name}.mine" for name in changed if (root / name).is_file()}
    before = {name: git("rev-parse", f"HEAD:{name}", root=root) for name in mine}
    try:
        for name, kept in mine.items():  # on the disk at every moment
            (root / name).replace(kept)
        if mine:
            git("checkout", "HEAD", "--", *mine, root=root)
        git("pull", "--ff-only", "--quiet", root=root)
        beside = []
        for name in mine:
            file = root / name
            if file.is_file() and git("rev-parse", f"HEAD:{name}", root=root) != before[name]:
                file.with_name(f"new_{file.name}").write_bytes(file.read_bytes())
                beside.append(file.name)
        return beside
    finally:
        for name, kept in mine.items():
            if kept.is_file():
                kept.replace(root / name)


def main():
    try:
        beside = update()
    except (Problem, OSError) as problem:
        print(f"update: {problem}", file=sys.stderr)
        return 2
    print("The course is up to date. Your notebooks are as they were.")
    for name in beside:
        print(f"  {name} has changed since: its new version is {NOTEBOOKS}/new_{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
