"""Lessons for Colab, Codespaces and Binder: a notebook that stands alone, with nothing beside it.

`autograder build` writes them to online/ where pyproject.toml knows the repository's public address. They differ
from notebooks/ in three things: badges, a first cell that installs what is missing, and figures and links that
are addresses. notebooks/ has none of these, so that a room without internet asks nothing of another machine.
"""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path

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


def address(root: Path) -> str:
    """The public address of the repository, https://github.com/OWNER/NAME, or "" where it has none yet."""
    file = root / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {}) if file.exists() else {}
    return project.get("urls", {}).get("Repository", "").removesuffix(".git").rstrip("/")


def badges(address: str, file: str) -> str:
    """Markdown: open this file of the repository in Colab, Codespaces or Binder."""
    place = address.removeprefix("https://github.com/")
    colab, binder = "https://colab.research.google.com", "https://mybinder.org"
    return " ".join(
        f"[![Open in {name}]({image})]({target})"
        for name, image, target in (
            ("Colab", f"{colab}/assets/colab-badge.svg", f"{colab}/github/{place}/blob/main/{file}"),
            ("Codespaces", "https://github.com/codespaces/badge.svg", f"https://codespaces.new/{place}"),
            ("Binder", f"{binder}/badge_logo.svg", f"{binder}/v2/gh/{place}/main?urlpath=lab/tree/{file}"),
        )
    )


def standing_alone(notebook, name: str, address: str):
    """A copy of a released notebook for online/, without any file beside it."""
    alone = copy.deepcopy(notebook)
    for cell in alone.cells:
        if cell.cell_type == "markdown":
            cell.source = with_addresses(cell.source, address)
    group = "online-jax" if name in _JAX else "online"
    first = next(number for number, cell in enumerate(alone.cells) if cell.cell_type == "code")
    for place, (kind, cell_id, source) in {
        first: ("code", "install", _ALONE.format(address=address, group=group)),
        0: ("markdown", "badges", badges(address, f"online/{name}.ipynb")),
    }.items():
        cell = copy.deepcopy(next(cell for cell in alone.cells if cell.cell_type == kind))
        cell.id, cell.source, cell.metadata = cell_id, source, type(cell.metadata)()
        alone.cells.insert(place, cell)
    return alone


def with_addresses(markdown: str, address: str) -> str:
    """The text with each file of the repository as an address: figures as they are, pages as GitHub shows them."""

    def whole(match: re.Match) -> str:
        path = match[2] if match[1] else f"notebooks/{match[2]}"
        if path.endswith((".svg", ".png")):
            return f"{address.replace('https://github.com/', 'https://raw.githubusercontent.com/')}/main/{path}"
        if path.endswith(".ipynb"):
            place = address.removeprefix("https://github.com/")
            return f"https://colab.research.google.com/github/{place}/blob/main/online/{Path(path).name}"
        return f"{address}/blob/main/{path}"

    return _RELATIVE.sub(whole, markdown)
