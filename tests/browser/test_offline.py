"""No page asks another machine for anything: a room may have no internet."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
ELSEWHERE = re.compile(r"^(?!(?:https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:).+")


@pytest.fixture(scope="module")
def asked(browser, server):
    """What JupyterLab with each lesson in turn asked of other machines; the browser's way out is closed."""
    context, found = browser.new_context(), {}
    context.route(ELSEWHERE, lambda route: route.abort())
    page = context.new_page()
    for lesson in LESSONS:
        requests = found[lesson] = []
        page.on("request", lambda request, here=requests: here.extend(ELSEWHERE.findall(request.url)))
        page.goto(f"{server.url}/lab/tree/notebooks/{lesson}?reset&token={server.token}")
        cells = len(json.loads((ROOT / "notebooks" / lesson).read_text())["cells"])
        page.locator(".jp-Notebook .jp-Cell").nth(cells - 1).wait_for(state="attached", timeout=120_000)
        # Formulas are set, and figures loaded, when their cells are in view.
        page.locator(".jp-Notebook .jp-Cell").nth(cells - 1).scroll_into_view_if_needed()
        page.wait_for_load_state("networkidle")
    yield found
    context.close()


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_asks_nobody_else(asked, lesson):
    assert asked[lesson] == []
