"""The words of the lessons carry their definitions, where a lesson uses them first."""

import json
import re
from pathlib import Path

import pytest

from workshop import glossary
from workshop.syllabus import explain

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))
WORDS = {"lane": 'one "place"', "launch grid": "how many", "tl.max": "one number"}


def test_the_first_use_in_running_text_is_explained_once():
    left = dict(WORDS)
    text = explain("# Lanes, a lane\n\nTwo lanes, one lane. See [a lane](lane.md), `lane` and $lane$.\n", left)
    assert text.count("<abbr") == 1 and 'Two <abbr title="one &quot;place&quot;">lanes</abbr>, one lane.' in text
    assert "lane" not in left and explain("A lane.", left) == "A lane."


def test_code_is_explained_as_code():
    assert explain("`x` and `tl.max(x, axis=0)`", dict(WORDS)) == (
        '`x` and <abbr title="one number">`tl.max(x, axis=0)`</abbr>'
    )


def test_the_rest_of_a_page_stays_as_it_is():
    text = "```python\nlane = 1\n```\n| lane | launch grid |\n<b title='lane'>x</b> ![lane](lane.svg) planes\n"
    assert explain(text, dict(WORDS)) == text


def test_a_definition_says_itself():
    words = glossary()
    assert all(len(definition) > 20 and definition[-1] in ".?" for definition in words.values())
    assert "lane: One place" in str(words) and "<dt><b>lane</b></dt>" in words._repr_html_()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_explains_its_words_and_each_one_once(path):
    cells = json.loads(path.read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    titles = re.findall(r'<abbr title="([^"]*)"', text)
    assert len(titles) >= 4 and len(titles) == len(set(titles))


def test_the_words_that_learners_asked_for_are_there():
    asked = {"element", "lane", "warp", "block", "stride", "program", "tl.max", "tl.maximum"}
    assert asked <= glossary().keys()
