"""JupyterLab for the tests in this folder, which are skipped where Chromium is missing."""

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from chromium import free_port

from workshop.install import LABCONFIG

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
NOTEBOOKS = "@jupyterlab/notebook-extension:tracker"
LEARNERS = json.loads((LABCONFIG / "default_setting_overrides.json").read_text())
# As a learner has it, but all cells stay in the page.
SETTINGS = LEARNERS | {NOTEBOOKS: LEARNERS[NOTEBOOKS] | {"windowingMode": "none"}}
# JupyterLab shows a traceback as a coloured text of stderr.
ERROR = '[data-mime-type="application/vnd.jupyter.stderr"]:has(.ansi-red-fg)'
IDLE = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
# Every code cell that is not empty has a number, or one has raised and the kernel is idle again.
ALL_CELLS_RAN = f"""() => {{
    const cells = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')]
        .filter(cell => cell.querySelector('.cm-content').textContent.trim());
    const numbered = cells.every(cell => /\\d/.test(cell.querySelector('.jp-InputPrompt').textContent));
    return numbered || document.querySelector('{IDLE}') && document.querySelector('.jp-Notebook {ERROR}');
}}"""

ELSEWHERE = re.compile(r"^(?!(?:https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:).+")


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass(frozen=True)
class Server:
    """A running JupyterLab; `folder` is an attendee's copy of the course: notebooks/ and assets/."""

    url: str
    token: str
    folder: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """JupyterLab on a free port of localhost, with a token."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("notebooks", "assets"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True)
    home = jupyter_home(tmp_path_factory.mktemp("jupyter"))
    port, token = free_port(), secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    command += ["--allow-root"] if os.geteuid() == 0 else []
    log = home / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **jupyter_environment(home), "JUPYTER_TOKEN": token},
        )
        try:
            running = Server(f"http://127.0.0.1:{port}", token, folder)
            wait_until_ready(running, process, log)
            yield running
        finally:
            process.terminate()
            process.wait(timeout=30)


def jupyter_home(home: Path) -> Path:
    """A JupyterLab configuration for these tests alone."""
    settings = home / "config" / "labconfig"
    settings.mkdir(parents=True)
    (settings / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    shutil.copy(LABCONFIG / "page_config.json", settings)
    return home


def jupyter_environment(home: Path) -> dict[str, str]:
    return {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }


def wait_until_ready(running: Server, process: subprocess.Popen, log: Path, seconds: float = 90):
    """Return when the server answers; fail with its log when it ends or stays silent."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{running.url}/api/status?token={running.token}", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


class Notebook:
    """A notebook open in JupyterLab, used as a person uses it: click, type, run, look.

    Cells are addressed by their index in the file or by the exercise's grade id. `elsewhere`: what the page asked of
    other machines.
    """

    def __init__(self, page, server: Server, path: str):
        self.page = page
        self.server = server
        self.path = server.folder / path
        self.released = self.path.read_bytes()
        cells = self.on_disk()["cells"]
        self.index = {
            cell["metadata"]["nbgrader"]["grade_id"]: number
            for number, cell in enumerate(cells)
            if "nbgrader" in cell["metadata"]
        }
        self.elsewhere: list[str] = []
        page.on("request", lambda request: self.elsewhere.extend(ELSEWHERE.findall(request.url)))
        page.goto(f"{server.url}/lab/tree/{path}?reset&token={server.token}")
        page.locator(".jp-Notebook .jp-Cell").nth(len(cells) - 1).wait_for(state="attached", timeout=60_000)
        # The status bar speaks of a kernel only when there is one; the toolbar's circle begins as idle.
        page.get_by_text("| Idle").first.wait_for(timeout=60_000)

    def on_disk(self) -> dict:
        return json.loads(self.path.read_text())

    def cell(self, which: int | str):
        number = which if isinstance(which, int) else self.index[which]
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def fill(self, which: int | str, source: str):
        """Replace the source of a cell by typing over it."""
        editor = self.cell(which).locator(".cm-content")
        editor.scroll_into_view_if_needed()
        editor.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def run_all(self, timeout: float = 180):
        """Run every cell and wait until the last one is done, or one has raised; timeout in seconds."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        end = time.monotonic() + timeout
        while not self.page.evaluate(ALL_CELLS_RAN):
            if time.monotonic() > end:
                prompts = self.page.locator(".jp-Notebook .jp-InputPrompt").all_inner_texts()
                pytest.fail(f"{self.path.name} did not run within {timeout:g} s; prompts: {' '.join(prompts)}")
            self.page.wait_for_timeout(200)

    def errors(self) -> list[str]:
        """The tracebacks that are shown."""
        return self.page.locator(f".jp-Notebook {ERROR}").all_inner_texts()

    def output(self, which: int | str) -> str:
        """The text that a cell shows below itself."""
        return self.cell(which).locator(".jp-OutputArea-output").first.inner_text()

    def use_theme(self, theme: str):
        """Choose JupyterLab's theme from its menu: "Light" or "Dark"."""
        name = f"JupyterLab {theme}"
        self.page.get_by_role("menuitem", name="Settings", exact=True).click()
        self.page.locator('.lm-Menu-item[data-type="submenu"]', has_text="Theme").first.click()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{name}$")).click()
        self.page.locator(f'body[data-jp-theme-name="{name}"]').wait_for(state="attached")

    def close(self):
        """End the kernel and put the notebook back as it was."""
        api, token = self.page.request, {"headers": {"Authorization": f"token {self.server.token}"}}
        for session in api.get(f"{self.server.url}/api/sessions", **token).json():
            api.delete(f"{self.server.url}/api/sessions/{session['id']}", **token)
        self.page.close()
        self.path.write_bytes(self.released)

    def save(self) -> dict:
        """Save, and return the notebook as it then is on disk."""
        before = self.path.stat().st_mtime_ns
        self.page.keyboard.press("Control+s")
        end = time.monotonic() + 30
        while True:
            if self.path.stat().st_mtime_ns != before:
                with contextlib.suppress(ValueError):  # a part of it is written
                    return self.on_disk()
            assert time.monotonic() < end, "JupyterLab did not save within 30 s"
            self.page.wait_for_timeout(100)


@contextlib.contextmanager
def opening(browser, server) -> Iterator:
    """open_one("notebooks/x.ipynb") -> Notebook in a page of its own. The browser's way out is closed."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    context.route(ELSEWHERE, lambda route: route.abort())
    opened = []

    def open_one(path: str) -> Notebook:
        opened.append(Notebook(context.new_page(), server, path))
        return opened[-1]

    yield open_one
    for notebook in opened:
        notebook.close()
    context.close()


@pytest.fixture
def open_notebook(browser, server):
    with opening(browser, server) as open_one:
        yield open_one


@pytest.fixture(scope="module")
def open_for_all(browser, server):
    """As open_notebook, for what all tests of a file share."""
    with opening(browser, server) as open_one:
        yield open_one
