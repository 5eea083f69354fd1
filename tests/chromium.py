"""The browser of all tests: Chromium, driven by Playwright.

One process can hold one Playwright: whatever needs a page asks for the same `browser`.
SCREENSHOTS=folder keeps the pictures that the tests take.
"""

import os
import shutil
import socket
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory):
    """The folder for pictures."""
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by Playwright."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (.ci/run installs it)")
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright (make test installs it)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()
