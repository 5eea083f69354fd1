"""An attendee's image as compose runs it, but without a way out: lesson 1 solved in a browser, and no answers inside.

    docker compose -f docker/compose.yml --profile cpu build
    LAB_IMAGE=triton-workshop:cpu make test-image

DOCKER names another docker command than the one in PATH.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
import search_image
import yaml

from autograder.lessons import answers

ROOT = Path(__file__).resolve().parents[2]
IMAGE = os.environ.get("LAB_IMAGE")
DOCKER = os.environ.get("DOCKER") or shutil.which("docker")
LESSON = "01_vector_add"
SLOW = 180_000  # ms that a step may take on a busy machine
pytestmark = pytest.mark.skipif(not (IMAGE and DOCKER), reason="LAB_IMAGE names no image, or there is no Docker")


def docker(*command: object) -> str:
    done = subprocess.run([DOCKER, *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"docker {' '.join(map(str, command))}: {done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Lab:
    url: str
    token: str
    container: str


@pytest.fixture(scope="module")
def lab():
    """A running lab. Its network is an internal one: this machine reaches the lab, and the lab reaches nothing."""
    name, token = f"lab-{secrets.token_hex(4)}", secrets.token_hex(16)
    service = yaml.safe_load((ROOT / "docker/compose.yml").read_text())["services"]["lab-cpu"]
    lists = {"tmpfs": "tmpfs", "cap_drop": "cap-drop", "security_opt": "security-opt"}
    options = [f"--{option}={entry}" for key, option in lists.items() for entry in service[key]]
    options += ["--init", "--read-only", f"--pids-limit={service['pids_limit']}", f"--shm-size={service['shm_size']}"]
    options += [f"--volume={name}:/course/notebooks", f"--network={name}", f"--name={name}"]
    options += [f"--env=JUPYTER_TOKEN={token}"]
    docker("network", "create", "--internal", name)
    try:
        docker("run", "--detach", *options, IMAGE)
        address = docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)
        running = Lab(f"http://{address}:8888", token, name)
        wait_for(running)
        yield running
    finally:
        for command in (["rm", "--force", name], ["volume", "rm", name], ["network", "rm", name]):
            subprocess.run([DOCKER, *command], capture_output=True)


def wait_for(lab: Lab, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{lab.url}/api", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the lab did not start:\n{docker('logs', lab.container)[-3000:]}")


def inside(lab: Lab, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([DOCKER, "exec", lab.container, *command], capture_output=True, text=True)


def test_the_lab_runs_as_a_user_without_a_way_out(lab):
    assert inside(lab, "id", "--user").stdout.strip() == "10001"
    assert inside(lab, "touch", "/course/x").returncode
    reach = "import socket; socket.create_connection(('1.1.1.1', 443), timeout=5)"
    assert inside(lab, "python", "-c", reach).returncode, "the lab reaches the internet: this test would prove nothing"


def test_nobody_comes_in_without_the_token(lab):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{lab.url}/api/contents", timeout=30)
    assert refused.value.code == 403


def test_lesson_1_is_solved_in_a_browser(lab, browser, screenshots):
    cells = json.loads((ROOT / "notebooks" / f"{LESSON}.ipynb").read_text())["cells"]
    ids = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in cells]
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    page, others = context.new_page(), []
    ours = re.compile(rf"(?:http|ws)://{re.escape(lab.url.removeprefix('http://'))}/|data:|blob:|about:")
    page.on("request", lambda request: None if ours.match(request.url) else others.append(request.url))
    page.goto(f"{lab.url}/lab/tree/notebooks/{LESSON}.ipynb?reset&token={lab.token}")
    page.get_by_text("| Idle").first.wait_for(timeout=SLOW)
    answer = page.locator(".jp-Notebook .jp-Cell").nth(ids.index("vector_add"))
    answer.scroll_into_view_if_needed()
    answer.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(answers(ROOT / "solutions" / f"{LESSON}.py")["vector_add"])
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    verdict = page.locator(".verdict:not(.running)").first
    verdict.wait_for(state="attached", timeout=SLOW)
    verdict.scroll_into_view_if_needed()
    page.screenshot(path=screenshots / "lab-image.png")
    said = verdict.inner_text()
    assert "Passed" in said, said
    assert not others, "a page asked another machine"
    context.close()


@pytest.mark.timeout(3600)  # two minutes of processor time, and 60,000 files
def test_no_answer_is_in_the_image(tmp_path):
    container = docker("create", IMAGE)
    try:
        export = subprocess.Popen([DOCKER, "export", container], stdout=subprocess.PIPE)
        unpack = ["tar", "-x", "-C", tmp_path, "--exclude=*.so", "--exclude=*.so.*"]
        assert subprocess.run(unpack, stdin=export.stdout).returncode == 0 and export.wait() == 0
        assert (tmp_path / "course/workshop").is_dir()
        assert search_image.search(tmp_path) == []
    finally:
        docker("rm", container)
        shutil.rmtree(tmp_path)
