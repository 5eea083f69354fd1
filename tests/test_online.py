"""A lesson alone on a machine that is not ours: it gets the course, installs what is missing, and goes on."""

import re
import shutil
from pathlib import Path

import pytest

from autograder import lessons
from workshop import install

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "https://github.com/someone/triton-workshop"
NAMES = [script.stem for script in lessons.scripts()]


@pytest.fixture(scope="module")
def alone():
    released = {script.stem: lessons.release(lessons.source_notebook(script)) for script in lessons.scripts()}
    return {name: lessons.standing_alone(notebook, name, ADDRESS) for name, notebook in released.items()}


@pytest.mark.parametrize("name", NAMES)
def test_it_names_no_file_beside_it(alone, name):
    text = "\n".join(cell.source for cell in alone[name].cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)#]+\.\w+)", re.sub(r"`[^`]*`", "", text))
    assert links and not [link for link in links if not link.startswith("https://")]


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_and_link_is_a_file_of_the_repository(alone, name):
    raw, colab = "https://raw.githubusercontent.com/someone/triton-workshop/main/", f"{ADDRESS[19:]}/blob/main/"
    text = "\n".join(cell.source for cell in alone[name].cells)
    for file in re.findall(re.escape(raw) + r"([\w./-]+)", text):
        assert (ROOT / file).is_file(), file
    for file in re.findall(re.escape(f"/github/{colab}") + r"online/([\w.-]+)", text):
        assert file.removesuffix(".ipynb") in NAMES, file


@pytest.mark.parametrize("name", NAMES)
def test_its_first_code_cell_installs_and_the_rest_is_the_lesson(alone, name):
    cells = alone[name].cells
    assert cells[0].id == "badges" and all(service in cells[0].source for service in ("colab", "codespaces", "binder"))
    first = next(cell for cell in cells if cell.cell_type == "code")
    assert first.id == "install" and ADDRESS in first.source
    compile(first.source, "first cell", "exec")
    released = lessons.release(lessons.source_notebook(ROOT / "solutions" / f"{name}.py"))
    ids = [cell.id for cell in cells if cell.id not in ("badges", "install")]
    assert ids == [cell.id for cell in released.cells]


def test_the_address_is_in_one_place(tmp_path):
    assert lessons.public_address(tmp_path) == ""
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n[project.urls]\nRepository = "{ADDRESS}.git"\n')
    assert lessons.public_address(tmp_path) == ADDRESS
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert lessons.public_address(tmp_path) == ""


def test_what_is_there_stays(monkeypatch):
    """As Colab's list of packages says: torch, numpy and the others keep their versions, only jax-triton is new."""
    has = {"torch": "2.11.0", "triton": True, "installed": dict(COLAB)}
    asked = []

    def pip(what, python, *arguments):
        kept = [Path(a).read_text() for a in map(str, arguments) if a.endswith("constraints.txt")]
        asked.append((arguments, kept))

    monkeypatch.setattr(install, "look", lambda python: has)
    monkeypatch.setattr(install, "pip", pip)
    install.install_here("online", ["numpy==2.4.6", "ipywidgets==8.1.9"])
    assert not asked
    install.install_here("online-jax", ["numpy==2.4.6", "absl-py==2.5.1"])
    [(arguments, [kept]), (jax, _)] = asked
    assert arguments[-1] == "absl-py" and "--no-deps" in jax
    for name, version in COLAB.items():
        assert f"{install.normal(name)}=={version}" in kept.splitlines()


# Of googlecolab/backend-info, pip-freeze.txt of 19 August 2026.
COLAB = {
    "torch": "2.11.0+cpu",
    "triton": "3.6.0",
    "numpy": "2.1.3",
    "pandas": "2.2.3",
    "matplotlib": "3.10.0",
    "ipywidgets": "7.7.1",
    "jax": "0.7.2",
    "jaxlib": "0.7.2",
}


def test_the_build_writes_them_when_the_address_is_known(tmp_path):
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "workshop" / "hints", tmp_path / "workshop" / "hints")
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n[project.urls]\nRepository = "{ADDRESS}"\n')
    assert lessons.build(root=tmp_path) == 0
    assert sorted(path.stem for path in (tmp_path / "online").glob("*.ipynb")) == NAMES
    assert lessons.build(check=True, root=tmp_path) == 0
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert lessons.build(check=True, root=tmp_path) == 1, "online/ is left behind when there is no address any more"
