"""Every released notebook, opened in JupyterLab and run from top to bottom: what a learner sees must be in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
# What is wrong on the page: [cell, what, where or how much]. Folded hints are opened, so that they are seen too.
FAULTS = """() => {
    const faults = [];
    document.querySelectorAll('.jp-Notebook details').forEach(details => details.open = true);
    document.querySelectorAll('.jp-Notebook .jp-Cell').forEach((cell, number) => {
        const note = (what, detail) => faults.push([number, what, detail]);
        for (const image of cell.querySelectorAll('img'))
            if (!image.complete || !image.naturalWidth) note('broken image', image.src.slice(-80));
        for (const output of cell.querySelectorAll('[data-mime-type]')) {
            const kind = output.dataset.mimeType;
            if (/stderr|vnd.jupyter.error/.test(kind)) note(kind, output.innerText.slice(-500));
        }
        for (const box of cell.querySelectorAll('.jp-OutputArea-output, .jp-MarkdownOutput, .cm-scroller'))
            if (box.clientWidth && box.scrollWidth > box.clientWidth + 1)
                note('scrolls sideways', `${box.className}: ${box.scrollWidth} > ${box.clientWidth}`);
        if (cell.querySelector('.jp-RenderedMarkdown, .jp-RenderedLatex')?.innerText.includes('$'))
            note('formula not set', cell.innerText.slice(0, 200));
    });
    return faults;
}"""

# Boxes that are light in the dark theme, and what leaves a narrow page: [cell, what, its beginning]. Tables and
# formulas may scroll.
BOXES = """() => {
    const faults = [];
    const light = color => {
        const [red, green, blue, alpha = 1] = (color.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
        return alpha > 0.5 && red + green + blue > 600;
    };
    document.querySelectorAll('.jp-Notebook .jp-Cell').forEach((cell, number) => {
        const all = '.jp-OutputArea-output, .jp-OutputArea-output *, .jp-MarkdownOutput *';
        for (const box of cell.querySelectorAll(all)) {
            const {width, height} = box.getBoundingClientRect();
            if (width * height < 3000 || box.closest('button, .jupyter-widgets')) continue;
            if (light(getComputedStyle(box).backgroundColor))
                faults.push([number, 'light box', box.outerHTML.slice(0, 120)]);
        }
        for (const box of cell.querySelectorAll('.jp-OutputArea-output, .jp-MarkdownOutput'))
            if (box.clientWidth && box.scrollWidth > box.clientWidth + 1 && !box.querySelector('table, mjx-container'))
                faults.push([number, 'scrolls sideways', box.innerText.slice(0, 120)]);
        for (const code of cell.querySelectorAll('.cm-scroller'))
            if (code.scrollWidth > code.clientWidth + 1)
                faults.push([number, 'code is cut', code.innerText.slice(0, 120)]);
    });
    return faults;
}"""


# Words that are too small, and figures that are cut off: [cell, what, pixels]. The figures in assets/ are 760 pixels
# wide, and their smallest words 13 high.
SMALL = """() => {
    const faults = [];
    document.querySelectorAll('.jp-Notebook .jp-Cell').forEach((cell, number) => {
        for (const image of cell.querySelectorAll('img[src*="assets/"]')) {
            const {left, right, width} = image.getBoundingClientRect();
            const room = image.closest('.jp-InputArea').getBoundingClientRect();
            if (width && width / 760 * 13 < 8.5) faults.push([number, 'small figure', width]);
            if (width && (left < room.left || right > room.right)) faults.push([number, 'figure is cut', left]);
        }
        for (const text of cell.querySelectorAll('.jp-OutputArea svg text')) {
            if (text.closest('.verdict')) continue;
            const {a, b} = text.getScreenCTM();  // b is 0, except for text that is turned
            const size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b);
            if (size < 8.5) faults.push([number, `small words: ${text.textContent}`, size]);
        }
    });
    return faults;
}"""
# Links on code that look like code.
HIDDEN_LINKS = """() => [...document.querySelectorAll('.jp-RenderedMarkdown a code')].filter(
    code => getComputedStyle(code).color !== getComputedStyle(code.parentElement).color).map(code => code.innerText)"""


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_released_notebook_runs_and_looks_right(open_notebook, lesson):
    notebook = open_notebook(f"notebooks/{lesson}.ipynb")
    notebook.run_all()
    notebook.page.wait_for_timeout(300)  # the last picture is laid out
    panels = notebook.page.locator(".jp-Notebook .verdict").all_inner_texts()
    assert panels or "jax" in lesson  # without JAX its checks only say so
    assert [panel for panel in panels if "Not yet" not in panel or not re.search(r"\b0 of \d+ points?", panel)] == []
    assert notebook.page.evaluate(FAULTS) == []
    assert notebook.page.evaluate(HIDDEN_LINKS) == []
    notebook.use_theme("Dark")
    notebook.page.set_viewport_size({"width": 900, "height": 900})
    notebook.page.wait_for_timeout(500)
    assert notebook.page.evaluate(BOXES) == []
    assert notebook.page.evaluate(SMALL) == []
    assert notebook.elsewhere == []  # a room may have no internet
