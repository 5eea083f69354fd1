"""The figures are what `assets/draw.py` draws, and each says in words what it shows."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

ASSETS = Path(__file__).parents[1] / "assets"
FIGURES = sorted(ASSETS.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


def texts(name: str) -> str:
    root = ElementTree.parse(ASSETS / f"{name}.svg").getroot()
    return "\n".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))


def numbers(words: str) -> list[float]:
    return [float(word) for word in re.findall(r"\d+\.?\d*", words)]


def test_drawing_again_gives_the_same_bytes(tmp_path):
    for script in ASSETS.glob("*.py"):
        shutil.copy(script, tmp_path)
    subprocess.run([sys.executable, tmp_path / "draw.py"], check=True, capture_output=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name: path.read_bytes() for path in FIGURES}


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figure_is_named_described_and_legible(path):
    root = ElementTree.parse(path).getroot()
    assert root.get("role") == "img"
    named = {element.get("id") for element in root}
    assert set(root.get("aria-labelledby").split()) <= named
    assert root.find(f"{SVG}title").text
    assert len(root.find(f"{SVG}desc").text) > 60
    sizes = [float(text.get("font-size")) for text in root.iter(f"{SVG}text")]
    assert min(sizes) >= 13


def test_worked_softmax_examples_are_right():
    row = np.array([1.0, 3.0, 2.0, 5.0])
    parts = np.exp(row - row.max())
    for name in ("safe_softmax", "online_softmax"):
        shown = numbers(texts(name))
        for expected in [parts.sum(), *(parts / parts.sum())]:
            assert round(expected, 4) in shown, (name, expected)


@pytest.mark.parametrize(("name", "count"), [("naive", 16), ("online", 12), ("fused", 8)])
def test_dataflow_counts_its_own_arrows(name, count):
    words = texts(f"dataflow_{name}")
    crossings = len(re.findall("^(?:read|write):", words, re.MULTILINE))
    assert f"= {count} bytes" in words
    assert crossings * 4 == count


def test_five_operations_add_up():
    assert "5MN + 2M" in texts("five_ops_traffic")
    assert "3MN + 2M" in texts("five_ops_traffic")
