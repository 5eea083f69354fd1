"""Searches a file tree for answers to the exercises: `python tests/search_image.py FOLDER`.

    docker export $(docker create triton-workshop) | tar -x -C FOLDER

Exit status 1 where a file holds an answer, or cannot be looked into. An answer is a solution, or a right answer of
the gallery. It is found by its words: rows of 12 tokens, without those that every attendee gets in the notebooks and
the hints. A file that has most of an answer's rows holds the answer, in whatever kind of text.
"""

import json
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from autograder.lessons import answers, scripts  # noqa: E402

TOKENS = 12  # in a row
FEWEST = 3  # rows that an answer must have of its own; shorter ones cannot be told from other code
MOST = 0.6  # of its rows: then the answer is there
BIGGEST = 4 << 20  # bytes of a file that is searched; code is smaller
NOT_FILES = ("proc", "sys", "dev")
ARCHIVES = (".zip", ".whl", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst")

# What the judge needs for check(), and so is in every attendee's image: file -> exercise -> what it is there.
NEEDED = {
    "autograder/exercises/vector_add.py": {"vector_add": "the kernel into which each of the five blanks is put"},
    "autograder/exercises/softmax.py": {
        "online_softmax": "the same for the quiz",
        "online_softmax_masked": "its answer is the quiz's kernel with two lines changed",
    },
    "autograder/exercises/matmul.py": {"tile_dot": "the same for one tile of a product"},
    "autograder/exercises/amd.py": {"tune_for_mi300x": "the reference: a configuration that passes"},
}


def rows(text: str) -> set[tuple[str, ...]]:
    """Every row of TOKENS tokens in a text, without comments."""
    tokens = re.findall(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]", re.sub(r"#[^\n]*", "", text))
    return {tuple(tokens[at : at + TOKENS]) for at in range(len(tokens) - TOKENS + 1)}


def text_of(path: Path) -> str:
    """A file as text; a notebook as its cells. Empty for what is not text."""
    try:
        text = path.read_bytes().decode()
    except (UnicodeDecodeError, OSError):
        return ""
    if path.suffix != ".ipynb":
        return text
    try:
        return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    except (ValueError, LookupError, TypeError):
        return text


@cache
def wanted() -> dict[str, set]:
    """An answer, as "where it is written: exercise" -> the rows that only answers have."""
    given = set()
    for folder, pattern in (("notebooks", "*.ipynb"), ("workshop/hints", "*.md")):
        for path in (ROOT / folder).glob(pattern):
            given |= rows(text_of(path))
    texts = {f"{script.name}: {name}": source for script in scripts() for name, source in answers(script).items()}
    texts |= {f"{path.stem}: {path.parent.name}": path.read_text() for path in sorted(ROOT.glob("tests/right/*/*.py"))}
    found = {where: rows(text) - given for where, text in texts.items()}
    return {where: own for where, own in found.items() if len(own) >= FEWEST}


@cache
def answers_of() -> dict[tuple[str, ...], list[str]]:
    """The answers that have a row."""
    found = {}
    for where, own in wanted().items():
        for row in own:
            found.setdefault(row, []).append(where)
    return found


def held_by(text: str) -> list[str]:
    """The answers that a text holds."""
    here = rows(text) if "triton" in text or "def " in text or "return" in text else set()
    shared = Counter(where for row in here for where in answers_of().get(row, ()))
    return [where for where, own in wanted().items() if shared[where] >= MOST * len(own)]


def search(tree: Path) -> list[str]:
    """One line for each file of the tree that holds an answer, or hides what it holds."""
    found = []
    for path in sorted(files(tree)):
        name = str(path.relative_to(tree))
        ours = "course/" in f"/{name}" and ".venv" not in name
        if ours and path.suffix in ARCHIVES:
            found.append(f"{name}: an archive, which is not looked into")
        elif ours and path.suffix == ".pyc" and not source_of(path).exists():
            found.append(f"{name}: compiled from a file that is not there")
        elif path.stat().st_size <= BIGGEST:
            found += [f"{name}: holds {answer}" for answer in held_by(text_of(path)) if not needed(name, answer)]
    return found


def needed(name: str, answer: str) -> bool:
    exercise = answer.rpartition(": ")[2]
    return any(name.endswith(file) and exercise in exercises for file, exercises in NEEDED.items())


def files(tree: Path):
    for top in tree.iterdir():
        if top.name not in NOT_FILES and not top.is_symlink():
            inside = top.rglob("*") if top.is_dir() else [top]
            yield from (path for path in inside if path.is_file() and not path.is_symlink())


def source_of(compiled: Path) -> Path:
    return compiled.parent.parent / f"{compiled.name.partition('.')[0]}.py"


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    found = search(Path(sys.argv[1]))
    print("\n".join(found) or f"found none of the {len(wanted())} answers")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
