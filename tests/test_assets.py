"""The figures are what `assets/draw.py` draws, and each says in words what it shows."""

import re
import runpy
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


def test_the_shares_of_a_lesson_are_those_of_llama_3_8b(monkeypatch):
    """Without a token only the weights are read: all of its 8,030,261,248 but the table of words and the norms."""
    monkeypatch.syspath_prepend(ASSETS)
    moved = runpy.run_path(ASSETS / "draw.py")["numbers_moved"]
    assert sum(moved(0, 0, 0, training=False).values()) == 8_030_261_248 - 128_256 * 4096 - 65 * 4096
    decoding = moved(texts=32, context=8192, tokens=32, training=False)
    assert f"{decoding['softmax'] / sum(decoding.values()):.1%}" in texts("layer_softmax")


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_text_can_be_read_in_both_colour_schemes(path):
    """Ink and card differ enough: a contrast of 4.5 to 1, as WCAG asks of small text."""

    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    root = ElementTree.parse(path).getroot()
    dark = dict(re.findall(r'\[fill="(#\w+)"\]\{fill:(#\w+)\}', root.find(f"{SVG}style").text))
    inks = {text.get("fill") for text in root.iter(f"{SVG}text")}
    cards = {root.find(f"{SVG}rect").get("fill"), "#ffffff"}
    assert inks <= set(dark)
    for ink in inks:
        for card in cards:
            for words, behind in ((ink, card), (dark[ink], dark.get(card, "#262d36"))):
                low, high = sorted((luminance(words), luminance(behind)))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (words, behind)
