"""In a real browser: the explorers move under keyboard and mouse, and are readable narrow, light and dark."""

import re
from pathlib import Path

import nbformat
import pytest

from workshop import explore

FIGURES = sorted((Path(__file__).parents[2] / "assets").glob("*.svg"))

CELLS = [
    "from workshop import explore\nexplore.launch_grid(n=20, block_size=8)",
    "explore.online_softmax([1, 2, 3, 4, 5, 6], block=2)",
    "explore.occupancy(vgprs=114, lds_bytes=16, num_warps=4)",
    "import numpy as np\n"
    "once, writes = np.ones((4, 300), int), np.ones((4, 300), int)\n"
    "writes[3, 290:] = 0\n"
    "explore.memory_traffic({'x_ptr': (3 * once, 0 * once), 'y_ptr': (0 * once, writes)})",
    "explore.predict('barriers')",
]

# Texts of a figure that leave its card or lie on one another, by more than the slack of a font's line box.
MISPLACED_TEXT = """svg => {
    const texts = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBBox()]);
    const [right, bottom] = [svg.viewBox.baseVal.width - 8, svg.viewBox.baseVal.height - 4];
    const inside = box => box.x >= 8 && box.x + box.width <= right && box.y + box.height <= bottom;
    const wrong = texts.filter(([, box]) => !inside(box)).map(([words]) => `outside: ${words}`);
    texts.forEach(([words, a], index) => texts.slice(index + 1).forEach(([others, b]) => {
        const width = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
        const height = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
        if (width > 1 && height > 3) wrong.push(`${words} / ${others}`);
    }));
    return wrong;
}"""


@pytest.fixture(scope="module")
def notebook(open_for_all, server):
    """One for all: each test looks at another picture, and the last one closes it."""
    source = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    source.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(source, server.folder / "widgets.ipynb")
    opened = open_for_all("widgets.ipynb")
    opened.run_all()
    opened.page.locator(".workshop-picture svg").nth(4).wait_for()  # the fourth cell shows two
    return opened


def says(notebook, cell: int, words: str) -> None:
    """Wait until the picture below a cell says `words` to a screen reader."""
    picture = notebook.cell(cell).locator(f'.workshop-picture svg[aria-label*="{words}"]')
    picture.first.wait_for(timeout=15_000)


MOVE = """(slider, move) => {
    const steps = {Home: -slider.max, End: +slider.max}[move] ?? move;
    slider.value = Math.min(Math.max(+slider.value + steps, 0), slider.max);
    slider.dispatchEvent(new Event('input'));
}"""


def move(notebook, cell: int, slider: int, by: int | str) -> None:
    """Move a slider by so many steps, or to its "Home" or "End", as a drag does."""
    notebook.cell(cell).locator(".workshop-explorer input").nth(slider).evaluate(MOVE, by)


def luminance(color: str) -> float:
    """Relative luminance of a CSS rgb() colour, as the Web Content Accessibility Guidelines define it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_launch_grid_follows_the_keys_and_its_sliders(notebook, screenshots):
    slider = notebook.cell(0).locator(".workshop-explorer input").first
    slider.focus()
    says(notebook, 0, "3 programs of 8 lanes")
    notebook.page.keyboard.press("ArrowRight")
    says(notebook, 0, "21 elements")
    notebook.page.keyboard.press("ArrowLeft")
    notebook.page.keyboard.press("ArrowLeft")
    says(notebook, 0, "19 elements")
    assert slider.evaluate("slider => slider === document.activeElement")
    notebook.page.keyboard.press("Tab")
    assert slider.evaluate("slider => document.activeElement.matches('.workshop-explorer input, .workshop-explorer *')")
    move(notebook, 0, slider=0, by=6)
    says(notebook, 0, "4 programs of 8 lanes: 32 lanes for 25 elements")
    move(notebook, 0, slider=1, by=-1)
    says(notebook, 0, "7 programs of 4 lanes")
    notebook.cell(0).get_by_role("button", name="one on").click()
    says(notebook, 0, "Program 1 has 4 elements")
    notebook.page.screenshot(path=screenshots / "launch_grid.png")


def test_the_stepper_walks_and_shows_what_a_missing_rescale_does(notebook, screenshots):
    forward = notebook.cell(1).get_by_role("button", name="one on")
    says(notebook, 1, "Before the first block")
    forward.click()
    forward.click()
    says(notebook, 1, "the old sum is multiplied by exp(2 − 4)")
    for _ in range(2):
        forward.click()
    says(notebook, 1, "adds up to 1, as it must")
    notebook.cell(1).locator("input[type=checkbox]").click()
    says(notebook, 1, "not 1: terms in different units were added")
    notebook.cell(1).scroll_into_view_if_needed()
    notebook.page.screenshot(path=screenshots / "online_softmax.png")
    notebook.cell(1).get_by_role("button", name="start again").click()
    says(notebook, 1, "Before the first block")


def test_the_occupancy_slider_names_the_limit(notebook, screenshots):
    says(notebook, 2, "4 waves per execution unit, limited by VGPRs")
    move(notebook, 2, slider=1, by="Home")
    says(notebook, 2, "8 waves per execution unit, limited by wave slots")
    move(notebook, 2, slider=3, by="End")
    move(notebook, 2, slider=3, by=-1)
    says(notebook, 2, "limited by LDS")
    notebook.cell(2).scroll_into_view_if_needed()
    notebook.page.screenshot(path=screenshots / "occupancy.png")


def test_the_traffic_picture_marks_what_was_never_written(notebook):
    says(notebook, 3, "x_ptr, 4 × 300: each element read 3 times")
    says(notebook, 3, "10 never")
    crossed = notebook.cell(3).locator("rect[stroke-dasharray]").count()
    assert 0 < crossed < 32


def test_a_finger_moves_sliders_and_presses_buttons(browser, screenshots):
    """A page of its own, on a screen that is touched: no kernel is needed."""
    context = browser.new_context(viewport={"width": 900, "height": 600}, has_touch=True)
    page = context.new_page()
    page.set_content(explore.launch_grid(n=20, block_size=8)._repr_mimebundle_()["text/html"])
    page.locator("svg[aria-label*='24 lanes for 20 elements']").wait_for()
    slider = page.locator(".workshop-explorer input").first
    box = slider.bounding_box()
    page.touchscreen.tap(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2)
    assert int(slider.input_value()) > 25
    page.get_by_role("button", name="one on").tap()
    page.locator("svg[aria-label*='Program 1 has']").wait_for()
    rows = {round(button.bounding_box()["y"]) for button in page.get_by_role("button").all()}
    assert len(rows) == 1  # the buttons stand in the slider's line
    page.screenshot(path=screenshots / "touched.png")
    context.close()


@pytest.fixture(scope="module")
def page(browser):
    """For what needs no JupyterLab."""
    page = browser.new_page(viewport={"width": 900, "height": 900})
    yield page
    page.close()


MOVING = [explore.launch_grid, explore.occupancy, explore.programs, explore.passes, explore.l2_tiles, explore.tile_walk]


@pytest.mark.parametrize("make", MOVING, ids=lambda make: make.__name__)
def test_no_words_of_a_control_are_broken_on_a_narrow_page(page, make):
    """An output of a notebook is 448 pixels wide where the window has 900."""
    page.set_content(f"<div style='width: 448px'>{make()._repr_mimebundle_()['text/html']}</div>")
    page.locator(".workshop-explorer input").first.wait_for()
    lines = "each => [each.textContent, Math.round(each.offsetHeight / parseFloat(getComputedStyle(each).lineHeight))]"
    words = page.evaluate(f"() => [...document.querySelectorAll('.row span, .row output, .code')].map({lines})")
    assert words and [each for each, height in words if height > 1] == []
    assert len({round(button.bounding_box()["y"]) for button in page.get_by_role("button").all()}) <= 1


def test_a_narrow_window_and_both_themes_are_readable(notebook, screenshots):
    notebook.page.set_viewport_size({"width": 1000, "height": 900})
    too_wide = notebook.page.evaluate(
        "() => [...document.querySelectorAll('.jp-OutputArea-output, .workshop-picture')]"
        ".filter(box => box.scrollWidth > box.clientWidth).length"
    )
    assert too_wide == 0
    for theme in ("Dark", "Light"):
        notebook.use_theme(theme)
        background, *colors = notebook.page.evaluate(
            """() => {
                const color = (element, name) => getComputedStyle(element)[name];
                const words = document.querySelectorAll('.workshop-picture text, .workshop-picture p');
                const sheet = document.querySelector('.jp-Notebook');
                return [color(sheet, 'backgroundColor'), ...[...words].map(
                    element => color(element, element.tagName === 'P' ? 'color' : 'fill'))];
            }"""
        )
        for color in set(colors):
            light, shade = sorted([luminance(background), luminance(color)], reverse=True)
            assert (light + 0.05) / (shade + 0.05) >= 4.5, (theme, color, background)
        notebook.page.screenshot(path=screenshots / f"{theme.lower()}.png")


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_no_words_of_a_figure_overlap(page, path):
    page.set_content(path.read_text())
    assert page.locator("svg").evaluate(MISPLACED_TEXT) == []


def test_a_day_later_pictures_move_and_the_prediction_is_there(notebook, server, screenshots):
    """The choice reached the kernel; then the browser is closed and the kernel is gone."""
    question = notebook.cell(4).locator(".workshop-question")
    question.locator("summary").first.click()
    notebook.cell(4).get_by_text("You said it: 0.").wait_for()
    notebook.cell(0).locator(".jp-InputPrompt").first.click()  # a picture keeps the keys for itself
    notebook.save()
    page = notebook.page
    for each in page.request.get(f"{server.url}/api/sessions?token={server.token}").json():
        headers = {"Authorization": f"token {server.token}"}
        page.request.delete(f"{server.url}/api/sessions/{each['id']}", headers=headers)
    page.goto("about:blank")
    page.goto(f"{server.url}/lab/tree/widgets.ipynb?reset&token={server.token}")
    page.locator(".workshop-explorer").first.wait_for(timeout=60_000)
    assert page.get_by_text("model not found").count() == 0
    notebook.cell(1).get_by_role("button", name="one on").click()
    says(notebook, 1, "Block 0: the first maximum is 2")
    assert notebook.cell(4).get_by_text("You said it: 0.").count() == 1
    page.screenshot(path=screenshots / "a_day_later.png")
    unnamed = page.evaluate(
        "() => [...document.querySelectorAll('.workshop-picture input, .workshop-picture button')].filter("
        "e => !(e.labels?.[0]?.textContent || e.getAttribute('aria-label') || e.textContent).trim()).length"
    )
    assert unnamed == 0
    page.get_by_text("| Idle").first.wait_for(timeout=60_000)  # the server ends slowly while a kernel starts
