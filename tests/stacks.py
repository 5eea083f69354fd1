"""The judge on every version of Triton that learners may bring: `make test-stacks`, or `python tests/stacks.py`.

Each version is installed into a folder of its own, .stacks/triton-VERSION/site-packages, which is put before the
packages of .venv: torch and everything else is shared. Run by another Python, the same works with its torch:
`other/bin/python tests/stacks.py --triton own`. Where the course is not installed (a machine with a GPU), `--gallery
FOLDER` writes the answers, `autograder selftest --answers FOLDER --json FILE` judges them there, and `--read FILE`
takes what it found into the table.

Prints a table, versions by exercises. Exit status 1 where an answer is misjudged or a wrong one has another name.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STACKS = ROOT / ".stacks"
TRITONS = ("3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0")
REDUCED = ("3.4.0", "3.9.0")  # the oldest and the newest; the whole gallery is judged with the one that is pinned
COLUMNS = 6  # of a table
OWN = "own"  # the Triton that this Python has


def install(version: str) -> Path:
    """The folder of a Triton, for PYTHONPATH; filled on the first call."""
    folder = STACKS / f"triton-{version}" / "site-packages"
    if not folder.is_dir():
        unfinished = folder.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(unfinished)]
        subprocess.run([*pip, f"triton=={version}"], check=True)
        unfinished.rename(folder)
    return folder


def answers(folder: Path, reduced: bool) -> Path:
    """A gallery: each solution as a right answer, each starter as a wrong one, and the course's gallery.

    reduced: the solutions, and of the course's gallery `known.some`, if every Triton can compile it.
    """
    from known import called, solutions, some, starters

    from autograder.gallery import answers_in

    def write(exercise: str, kind: str, name: str, source: str) -> None:
        target = folder / kind / exercise
        target.mkdir(parents=True, exist_ok=True)
        (target / f"{name}.py").write_text(source)

    for exercise, source in solutions().items():
        write(exercise, "right", "the_solution", source)
        if not reduced:
            write(exercise, "wrong", "any__the_starter", starters()[exercise])
    for known in answers_in(ROOT / "tests"):
        if not reduced or called(known) in some() and not known.needs:
            needs = f"# needs {known.needs}\n" if known.needs and not known.source.startswith("# needs") else ""
            write(known.exercise, "wrong" if known.slug else "right", known.name, needs + known.source)
    return folder


def judge(version: str, gallery: Path) -> dict:
    """What `autograder selftest` found with this Triton, as its JSON, with the seconds it took."""
    environment = dict(os.environ)
    if version != OWN:
        environment["PYTHONPATH"] = os.pathsep.join([str(install(version)), str(ROOT)])
    results = gallery / "results.json"
    results.unlink(missing_ok=True)
    command = [sys.executable, "-m", "autograder.cli", "selftest", "--seed", "1"]
    command += ["--answers", str(gallery), "--json", str(results)]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if not results.exists():
        return {"results": [], "versions": {"triton": version}, "failed": (done.stderr or done.stdout)[-2000:]}
    return json.loads(results.read_text()) | {"seconds": time.monotonic() - begin}


def faults(found: dict) -> list[str]:
    """One line for each answer that was misjudged, or failed under another name than its file's."""
    lines = [found["failed"]] if "failed" in found else []
    for result in found["results"]:
        starter = "any__" in result["file"]
        wrong = result["misjudged"] or not (result["named"] or starter)
        if wrong or starter and result["verdict"]["score"]:
            name = "/".join(Path(result["file"]).parts[-3:])
            triton = found["versions"]["triton"]
            lines.append(f"Triton {triton}: {name}: expected {result['expected']}, got {result['got']}")
    return lines


def broken(found: dict) -> bool:
    """Whether an answer was misjudged, or more than one in twenty wrong ones, and more than one, have other names."""
    misjudged = [each for each in found["results"] if each["misjudged"]]
    lines = faults(found | {"results": [each for each in found["results"] if not each["misjudged"]]})
    return "failed" in found or bool(misjudged) or len(lines) > max(1, 0.05 * len(found["results"]))


def table(stacks: list[dict]) -> str:
    """Markdown: a row per exercise, a column per stack; in each, right answers that pass and wrong ones named."""
    columns = [f"{number}: Triton {found['versions']['triton']}" for number, found in enumerate(stacks, 1)]
    lines = [f"| exercise | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name in dict.fromkeys(result["exercise"] for found in stacks for result in found["results"]):
        lines.append(f"| {name} | {' | '.join(_cell(found, name) for found in stacks)} |")
    lines.append(f"| **all** | {' | '.join(_cell(found, None) for found in stacks)} |")
    return "\n".join(lines)


def _cell(found: dict, exercise: str | None) -> str:
    counts = Counter()
    for result in found["results"]:
        if exercise in (None, result["exercise"]):
            expected = result["expected"] if result["expected"] in ("passed", "not-in-this-triton") else "wrong"
            counts[expected] += 1
            counts[expected, "as expected"] += not faults(found | {"results": [result]})
    if not counts:
        return "–"
    cell = " · ".join(f"{counts[kind, 'as expected']}/{counts[kind]}" for kind in ("passed", "wrong"))
    lacking = counts["not-in-this-triton"]
    return cell + (f" (+{lacking})" if lacking else "")


def versions(found: dict) -> str:
    return ", ".join(f"{name} {version}" for name, version in found["versions"].items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reduced", action="store_true", help="two versions, solutions and a few wrong answers")
    parser.add_argument("--triton", action="append", help="this version, `own` or `none` (may be repeated)")
    parser.add_argument("--gallery", type=Path, help="write the answers into this new folder, and keep them")
    parser.add_argument("--read", type=Path, action="append", default=[], help="results of an earlier selftest")
    parser.add_argument("--results", type=Path, help="write each version's results into this folder")
    parser.add_argument("--page", type=Path, help="write the table to this page")
    options = parser.parse_args()
    stacks = []
    with tempfile.TemporaryDirectory() as folder:
        gallery = answers(options.gallery or Path(folder, "gallery"), options.reduced)
        for version in options.triton or (REDUCED if options.reduced else TRITONS):
            if version == "none":
                continue
            stacks.append(judge(version, gallery))
            print(f"{versions(stacks[-1])}: {stacks[-1].get('seconds', 0):.0f} s", flush=True)
            if options.results:
                options.results.mkdir(exist_ok=True)
                (options.results / f"{version}.json").write_text(json.dumps(stacks[-1]))
    stacks += [json.loads(file.read_text()) for file in options.read]
    print(table(stacks))
    wrong = [line for found in stacks for line in faults(found)]
    print("\n".join(wrong))
    if options.page:
        options.page.write_text(page(stacks))
    return int(any(map(broken, stacks)))


def page(stacks: list[dict]) -> str:
    lines = [
        "# The judge on each version of Triton",
        "",
        f"Written by `make test-stacks` on {date.today()}. A cell: right answers that pass · wrong answers that fail",
        "under their name. Solutions count as right answers, starters as wrong ones. (+1): answers that use what this",
        "Triton does not have; the judge says so by name. Results of other machines and Pythons are read from files",
        "(`--read`).",
    ]
    backends = {"interpreter": "The executor, without a GPU", "cuda": "An NVIDIA GPU", "hip": "An AMD GPU"}
    for backend, words in backends.items():
        here = [found for found in stacks if found["backend"] == backend]
        for begin in range(0, len(here), COLUMNS):
            part = here[begin : begin + COLUMNS]
            about = [f"{number}. {versions(found)}{found.get('note', '')}" for number, found in enumerate(part, 1)]
            lines += ["", f"## {words}", "", table(part), "", *about]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    sys.exit(main())
