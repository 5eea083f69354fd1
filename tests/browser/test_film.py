"""README's film: a mistake, its message, the repair, the curve. It is made from the course itself, without a cut.

FILM=docs/first_minute.gif .venv/bin/python -m pytest tests/browser/test_film.py
"""

import io
import os
from pathlib import Path

import nbformat
import pytest
from PIL import Image

from autograder.lessons import answers

ROOT = Path(__file__).resolve().parents[2]
SIZE = {"width": 900, "height": 620}
COLORS = 96
SCENES = (  # seconds, the cell that is shown, what is said
    (3, "vector_add", "1  A mistake: the last line of the kernel stores without a mask."),
    (6, "check-vector_add", "2  The check says what happened, where, and why. It draws it."),
    (3, "vector_add", "3  The repair."),
    (5, "check-vector_add", "4  Passed: your programs, your bytes, and what comes next."),
    (5, "curves", "5  No GPU? Your kernel's bound, among curves that were recorded on one."),
)
CAPTION = """words => {
    const bar = document.getElementById('caption') || document.body.appendChild(document.createElement('div'));
    bar.id = 'caption';
    bar.style = 'position:fixed;left:0;right:0;bottom:0;z-index:9999;padding:11px 18px;background:#0b3d5c;color:#fff;' +
        'font:600 17px system-ui,sans-serif';
    bar.textContent = words;
}"""


@pytest.fixture
def notebook(open_notebook, server):
    """The cells of lesson 1 that the film shows."""
    lesson = nbformat.read(server.folder / "notebooks" / "01_vector_add.ipynb", 4)
    code = [cell for cell in lesson.cells if cell.cell_type == "code"]
    first = code[0]
    first.source = "\n".join(line for line in first.source.splitlines() if not line.startswith("here("))
    exercise = [next(cell for cell in code if cell.id == name) for name in ("vector_add", "check-vector_add")]
    measure = next(number for number, cell in enumerate(code) if "results = compare(" in cell.source)
    lesson.cells = [first, *exercise, *code[measure : measure + 2]]
    nbformat.write(lesson, server.folder / "notebooks" / "film.ipynb")
    return open_notebook("notebooks/film.ipynb")


def test_the_film_shows_a_mistake_its_message_the_repair_and_the_curve(notebook, tmp_path):
    notebook.index["curves"] = 4
    solution = answers(ROOT / "solutions" / "01_vector_add.py")["vector_add"]
    mistake = solution.replace(
        "tl.store(output_ptr + offsets, output, mask=mask)", "tl.store(output_ptr + offsets, output)"
    )
    assert mistake != solution
    page, frames = notebook.page, []
    page.set_viewport_size(SIZE)
    page.keyboard.press("Control+b")  # the list of files
    for source, verdict, scenes in ((mistake, "Not yet", SCENES[:2]), (solution, "Passed", SCENES[2:])):
        notebook.fill("vector_add", source)
        notebook.run_all()
        panel = notebook.cell("check-vector_add").locator(".verdict")
        panel.locator(".head b", has_text=verdict).wait_for()
        page.get_by_text("| Idle").first.wait_for()
        for seconds, cell, words in scenes:
            shown = notebook.cell(cell)
            shown = shown.locator(".jp-OutputArea").first if cell != "vector_add" else shown
            shown.evaluate("element => element.scrollIntoView({block: 'start'})")
            page.evaluate(CAPTION, words)
            page.wait_for_timeout(500)
            frames.append((seconds, Image.open(io.BytesIO(page.screenshot())).convert("RGB")))
    film = Path(os.environ.get("FILM") or tmp_path / "film.gif")
    palette = [frame.quantize(COLORS, dither=Image.Dither.NONE) for _, frame in frames]
    durations = [seconds * 1000 for seconds, _ in frames]
    palette[0].save(film, save_all=True, append_images=palette[1:], duration=durations, loop=0, optimize=True)
    assert film.stat().st_size < 1 << 20
    with Image.open(film) as made:
        assert made.n_frames == len(SCENES) and made.size == tuple(SIZE.values())
