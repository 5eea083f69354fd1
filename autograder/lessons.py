"""Builds the notebooks from solutions/*.py, the only source of the lessons.

    solutions/NN_name.py ──source_notebook──▶ source notebook ──release──▶ student notebook

A source notebook has the form that nbgrader expects: it holds the solutions, and the graded cells have metadata. It
is released with nbgrader's own list of preprocessors. Only the one that clears solutions is ours, because it knows
the starters. Both steps are pure: the same script gives the same bytes on every machine.

Cell markers of the scripts (jupytext percent format):

    # %% answer="NAME"              the learner's cell: kernel and host function of one exercise
    # %% check="NAME"               the graded cell: its source is check("NAME")
    # %% [markdown] hints="NAME"    filled in from workshop/hints/NAME.md

The first time that a lesson's text uses a word of workshop/glossary.toml, the word carries its definition.

Numbers in prose that were measured come from the recorded files, benchmarks/recorded/*.csv:

    {{h200_vector_add_float32; 98432; add; GB/s}}      file, size, provider; or `of copy`, a percentage of the copy
    {{h200_vector_add_float32; 98432; add; × copy}}    how many times another provider's speed
    {{h200_vector_add_float32; about}}                 the GPU, the versions and the date

The starter of an answer is written beside it in the script; workshop/hints.py describes the grammar.
"""

import copy
import re
import shutil
import tomllib
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells

from autograder.exercises import EXERCISES
from workshop.hints import RUNGS, MalformedAnswer, ladder, split_answer
from workshop.results import recorded
from workshop.syllabus import explain, glossary

ROOT = Path(__file__).resolve().parents[1]

_NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# marker -> the name of the cell, and its nbgrader metadata
_MARKERS = {
    "answer": ("{}", {"grade": False, "solution": True, "locked": False}),
    "check": ("check-{}", {"grade": True, "solution": False, "locked": True}),
    "hints": ("hints-{}", None),
}
_RECORDED = re.compile(r"\{\{(\w+;[^{}]*)\}\}")
_FIGURE = re.compile(r"\.\./assets/([\w./-]+)")


class BuildError(ValueError):
    """A script that cannot be built. The message is one line that names the place."""


def source_notebook(script: Path) -> NotebookNode:
    """The nbgrader source notebook of a lesson script, with solutions. No cell is run.

    Raises BuildError for an unknown exercise or marker, an answer without its check, or missing hints.
    """
    try:
        nb = jupytext.reads(script.read_text(encoding="utf-8"), fmt="py:percent")
    except OSError as error:
        raise BuildError(f"{script}: cannot be read ({error.strerror})") from None
    left = dict(glossary())
    for number, cell in enumerate(nb.cells, 1):
        markers = {key: value for key, value in cell.metadata.items() if key != "lines_to_next_cell"}
        cell.metadata = NotebookNode()
        cell.id = f"cell-{number:02}"
        if markers:
            _mark(cell, markers, script)
        if cell.cell_type == "markdown" and not cell.id.startswith("hints-"):
            cell.source = explain(with_recorded_numbers(cell.source, script.name), left)
    ids = [cell.id for cell in nb.cells]
    if twice := next((cell_id for cell_id in ids if ids.count(cell_id) > 1), None):
        raise BuildError(f"{script.name}: {twice} is there twice")
    answered = {cell.id for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("solution")}
    checked = {cell_id.removeprefix("check-") for cell_id in ids if cell_id.startswith("check-")}
    for exercise in sorted(answered ^ checked):
        missing = "check" if exercise in answered else "answer"
        raise BuildError(f'{script.name}: {exercise} has no cell marked {missing}="{exercise}"')
    nb.metadata = nbformat.from_dict(_NOTEBOOK_METADATA)
    nb.nbformat, nb.nbformat_minor = 4, 5
    nbformat.validate(nb)
    return nb


def with_recorded_numbers(text: str, script: str) -> str:
    """The text with each `{{…}}` replaced by its measured number. Raises BuildError when there is no such number."""

    def number(match: re.Match) -> str:
        file, size, *which = (part.strip() for part in match[1].split(";"))
        try:
            results = recorded(file)
            if size == "about" and not which:
                return results.caption()
            provider, unit = which
            speeds = {row.provider: row for row in results.rows if row.size == int(size) and row.gbps}
            row = speeds[provider]
            if unit.startswith("× "):
                factor = row.gbps.median / speeds[unit[2:]].gbps.median
                return f"{factor:.0f}" if factor >= 10 else f"{factor:.2f}"
            if unit == "of copy":
                return f"{row.of_copy:.0%}"
            if unit == "GB/s":
                return f"{row.gbps.median:,.0f}"
            raise ValueError(unit)
        except (FileNotFoundError, StopIteration, TypeError, ValueError, KeyError):
            raise BuildError(f"{script}: {match[0]} names no recorded number") from None

    return _RECORDED.sub(number, text)


def _mark(cell: NotebookNode, markers: dict, script: Path) -> None:
    [marker, exercise], *others = markers.items()
    if others or marker not in _MARKERS:
        expected = ", ".join(_MARKERS)
        raise BuildError(f"{script.name}: a cell is marked {markers}; one of {expected} was expected")
    if exercise not in EXERCISES:
        raise BuildError(f'{script.name}: {marker}="{exercise}": there is no such exercise')
    if EXERCISES[exercise].notebook != script.stem:
        raise BuildError(f'{script.name}: {marker}="{exercise}" belongs in {EXERCISES[exercise].notebook}.py')
    name, kind = _MARKERS[marker]
    cell.id = name.format(exercise)
    if marker == "hints":  # folded HTML details, which every notebook viewer can show
        rungs = ladder(exercise, script.parents[1] / "workshop" / "hints")
        if not rungs:
            raise BuildError(f'hints="{exercise}": there is no workshop/hints/{exercise}.md')
        if tuple(title for title, _ in rungs) != RUNGS:
            raise BuildError(f"workshop/hints/{exercise}.md: its sections are not {', '.join(RUNGS)}")
        folded = [
            f"<details><summary>Hint {step} of {len(rungs)}: {title}</summary>\n\n{body}\n\n</details>"
            for step, (title, body) in enumerate(rungs, 1)
        ]
        cell.source = "\n\n".join(["**Stuck?** Open one hint at a time.", *folded])
    if marker == "check" and cell.source.strip() != f'check("{exercise}")':
        raise BuildError(f'{script.name}: the cell check="{exercise}" must hold check("{exercise}") alone')
    if marker == "check":  # in a new kernel this cell works by itself
        cell.source = f"from autograder import check\n\n{cell.source.strip()}"
    if kind:
        points = {"points": EXERCISES[exercise].points} if kind["grade"] else {}
        cell.metadata.nbgrader = NotebookNode(grade_id=cell.id, schema_version=3, task=False, **kind, **points)


class ClearToStarters(ClearSolutions):
    """nbgrader's ClearSolutions, but an answer cell becomes its own starter, not the same stub for all cells."""

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            return super()._replace_solution_region(cell, language)
        _, cell.source = _split(cell)
        return True


RELEASE = (LockCells, ClearToStarters, ClearOutput, CheckCellMetadata, ComputeChecksums, CheckCellMetadata)


def release(source: NotebookNode) -> NotebookNode:
    """The student notebook of a source notebook: no solutions, no outputs, graded cells locked."""
    nb, resources = nbformat.from_dict(source), {}
    for preprocessor in RELEASE:
        nb, resources = preprocessor().preprocess(nb, resources)
    return nb


def to_text(nb: NotebookNode) -> str:
    return nbformat.writes(nb).rstrip("\n") + "\n"


def answers(script: Path) -> dict[str, str]:
    """The source of each exercise's solution, without markers."""
    cells = source_notebook(script).cells
    return {cell.id: _split(cell)[0] for cell in cells if cell.metadata.get("nbgrader", {}).get("solution")}


def _split(cell: NotebookNode) -> tuple[str, str]:
    try:
        return split_answer(cell.source)
    except MalformedAnswer as error:
        raise BuildError(f'answer="{cell.id}": {error}') from None


# -- copies that stand alone, for Colab, Codespaces and Binder ----------------------------------------------

# They are written to online/ where pyproject.toml knows the repository's public address. They differ from notebooks/ in
# three things: badges, a first cell that installs what is missing, and figures and links that are addresses.
# notebooks/ has none of these, so that a room without internet asks nothing of another machine.
_RELATIVE = re.compile(r"(?<=\]\()(\.\./)?([\w./-]+\.(?:svg|png|ipynb|md|py|txt))(?=[)#])")
_ALONE = '''\
# Elsewhere than at home, this cell gets the course and installs what is missing; then the lesson goes on.
# What is here already stays as it is, torch first of all.
import importlib.util, pathlib, subprocess, sys

if importlib.util.find_spec("autograder") is None:
    course = pathlib.Path.home() / "triton-workshop"
    if not course.exists():
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "{address}", course], check=True)
    subprocess.run([sys.executable, course / "workshop" / "install.py", "{group}"], check=True)
    sys.path.insert(0, str(course))
    importlib.invalidate_caches()'''
_JAX = ("05_jax_dropout",)  # lessons that need JAX, too


def public_address(root: Path) -> str:
    """The public address of the repository, https://github.com/OWNER/NAME, or "" where it has none yet."""
    file = root / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}) if file.exists() else {}
    return project.get("urls", {}).get("Repository", "").removesuffix(".git").rstrip("/")


def standing_alone(notebook: NotebookNode, name: str, address: str) -> NotebookNode:
    """A copy of a released notebook for online/, without any file beside it.

    Each file of the repository is an address in it: figures as they are, pages as GitHub shows them. It begins with
    badges that open it in Colab, Codespaces and Binder.
    """
    place, file = address.removeprefix("https://github.com/"), f"online/{name}.ipynb"
    colab, binder = "https://colab.research.google.com", "https://mybinder.org"

    def whole(match: re.Match) -> str:
        path = match[2] if match[1] else f"notebooks/{match[2]}"
        if path.endswith((".svg", ".png")):
            return f"https://raw.githubusercontent.com/{place}/main/{path}"
        if path.endswith(".ipynb"):
            return f"{colab}/github/{place}/blob/main/online/{Path(path).name}"
        return f"{address}/blob/main/{path}"

    alone = copy.deepcopy(notebook)
    for cell in (cell for cell in alone.cells if cell.cell_type == "markdown"):
        cell.source = _RELATIVE.sub(whole, cell.source)
    group = "online-jax" if name in _JAX else "online"
    first = next(number for number, cell in enumerate(alone.cells) if cell.cell_type == "code")
    alone.cells.insert(first, new_code_cell(_ALONE.format(address=address, group=group), id="install"))
    services = (
        ("Colab", f"{colab}/assets/colab-badge.svg", f"{colab}/github/{place}/blob/main/{file}"),
        ("Codespaces", "https://github.com/codespaces/badge.svg", f"https://codespaces.new/{place}"),
        ("Binder", f"{binder}/badge_logo.svg", f"{binder}/v2/gh/{place}/main?urlpath=lab/tree/{file}"),
    )
    badges = " ".join(f"[![Open in {service}]({image})]({target})" for service, image, target in services)
    alone.cells.insert(0, new_markdown_cell(badges, id="badges"))
    return alone


def scripts(root: Path = ROOT) -> list[Path]:
    """The lesson scripts in the order of the course."""
    found = sorted((root / "solutions").glob("[0-9][0-9]*_*.py"))
    if not found:
        raise BuildError(f"no lesson scripts (solutions/NN_name.py) under {root}")
    return found


def build(check: bool = False, root: Path = ROOT) -> int:
    """Writes notebooks/, all or none; with `check`, only compares. Returns the exit status. Raises BuildError."""
    folder = root / "notebooks"
    released = {script.stem: release(source_notebook(script)) for script in scripts(root)}
    wanted = {folder / f"{name}.ipynb": to_text(notebook).encode() for name, notebook in released.items()}
    if public := public_address(root):
        alone = {name: standing_alone(notebook, name, public) for name, notebook in released.items()}
        wanted |= {root / "online" / f"{name}.ipynb": to_text(notebook).encode() for name, notebook in alone.items()}
    differing = [path for path, made in wanted.items() if not path.is_file() or path.read_bytes() != made]
    if check:
        there = {*folder.glob("[0-9][0-9]*_*.ipynb"), *root.glob("online/*.ipynb")}
        differing += sorted(there - set(wanted))
        for path in differing:
            print(f"differs from its script in solutions/: {path.relative_to(root)}")
        return 1 if differing else 0
    for path in differing:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(wanted[path])
    print(f"{len(wanted)} notebooks, {len(differing)} written")
    return 0


def write_course(course: Path, root: Path = ROOT) -> list[str]:
    """Writes source/ and release/ of an nbgrader course, with the figures; returns the names of the assignments."""
    made = {script.stem: source_notebook(script) for script in scripts(root)}
    for assignment, source in made.items():
        for step, notebook in (("source", source), ("release", release(source))):
            folder, text = course / step / assignment, to_text(notebook)
            folder.mkdir(parents=True, exist_ok=True)
            for figure in sorted(set(_FIGURE.findall(text))):
                original, target = root / "assets" / figure, folder / "assets" / figure
                if not original.is_file():
                    raise BuildError(f"{assignment}: there is no assets/{figure}")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(original, target)
            (folder / f"{assignment}.ipynb").write_bytes(text.replace("../assets/", "assets/").encode())
    return list(made)
