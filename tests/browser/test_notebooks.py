"""Every released notebook, opened in JupyterLab and run from top to bottom: what a learner sees must be in order."""

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


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_released_notebook_runs_and_looks_right(open_notebook, lesson):
    notebook = open_notebook(f"notebooks/{lesson}.ipynb")
    notebook.run_all()
    notebook.page.wait_for_timeout(300)  # the last picture is laid out
    assert notebook.page.evaluate(FAULTS) == []
