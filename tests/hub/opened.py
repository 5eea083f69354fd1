"""A room on this machine: JupyterHub with a process for each person, each a Unix user, in folders of this test alone.

Needs root (it makes users, and removes them), configurable-http-proxy, Chromium and a Python that other users can run.
`make test-hub` installs what it can, and runs this file to say what is missing.
"""

import contextlib
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest
from chromium import CHROMIUM, free_port

ROOT = Path(__file__).resolve().parents[2]
PROXY = shutil.which("configurable-http-proxy", path=f"{os.environ['PATH']}:{ROOT}/.hub/node_modules/.bin")
CODE, INSTRUCTOR_CODE = "kernels-2026", secrets.token_hex(8)
PEOPLE = [f"{name}-{secrets.token_hex(3)}" for name in ("ada", "ben", "cleo")]
SECONDS_TO_START = 90


@dataclass(frozen=True)
class Room:
    url: str
    folder: Path
    log: Path

    def as_user(self, name: str, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a command as one of the people, as in a terminal of theirs."""
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.folder / "home" / name),
            "ROOM": str(self.folder),
            "WORKSHOP_PROGRESS": str(self.folder / "home" / name / ".progress.json"),
            "WORKSHOP_SHARE": "" if name == "instructor" else str(self.folder / "progress" / name),
            "JUPYTER_CONFIG_PATH": str(ROOT / "docker/hub" / ("instructor" if name == "instructor" else "attendee")),
        }
        user = pwd.getpwnam(name)
        return subprocess.run(
            [*map(str, command)],
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=os.getgrouplist(name, user.pw_gid),
            cwd=environment["HOME"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            **options,
        )


def why_not() -> str:
    """Why a room cannot be opened here."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return "one process tests the room, in order: make test-hub"
    if os.geteuid() != 0:
        return "not root: a room makes a Unix user for each person"
    if PROXY is None:
        return "no configurable-http-proxy (make test-hub installs it)"
    if importlib.util.find_spec("jupyterhub") is None:
        return "no jupyterhub (make test-hub installs it)"
    if CHROMIUM is None:
        return "no Chromium"
    sys.path.append(str(ROOT / "docker" / "hub"))
    from open_room import others_can

    if not others_can(sys.executable, "-c", "import torch"):
        system = "make clean && make test-hub PYTHON=/usr/bin/python3"
        return f"other users cannot run {sys.executable}; .venv needs a Python that they can: {system}"
    return ""


@pytest.fixture(scope="session")
def room():
    """A running room, without lessons in its exchange yet."""
    if reason := why_not():
        pytest.skip(reason)
    with opened_room({"ROOM_CODE": CODE, "ROOM_INSTRUCTOR_CODE": INSTRUCTOR_CODE}) as running:
        yield running


@contextlib.contextmanager
def opened_room(settings: dict):
    """A room with these settings, until the block ends."""
    # Not in pytest's folder, which nobody else may enter.
    folder = Path("/var/tmp") / f"room-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o755)
    running = Room(f"http://127.0.0.1:{free_port()}", folder, folder / "hub.log")
    command = [Path(sys.executable).parent / "jupyterhub", "-f", ROOT / "docker/hub/jupyterhub_config.py"]
    command += [f"--JupyterHub.hub_port={free_port()}", f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{free_port()}"]
    command += [f"--ConfigurableHTTPProxy.command={PROXY}"]
    settings = {"ROOM": str(folder), "ROOM_SPAWNER": "process", "ROOM_URL": running.url} | settings
    with running.log.open("wb") as log:
        hub = subprocess.Popen(command, cwd=folder, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(running, hub)
            yield running
        finally:
            hub.terminate()
            hub.wait(timeout=60)
            for name in made_users(folder):
                subprocess.run(["pkill", "-KILL", "-U", name], check=False)
                subprocess.run(["userdel", name], check=False, capture_output=True)
            shutil.rmtree(folder)


def made_users(folder: Path) -> list[str]:
    """The users whose home is in this room; the test made them all."""
    lines = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    return [line[0] for line in lines if line[5].startswith(f"{folder}/")]


def wait_for(room: Room, hub: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end and hub.poll() is None:
        try:
            urllib.request.urlopen(f"{room.url}/hub/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    pytest.fail(f"the hub did not start:\n{room.log.read_text()[-3000:]}")


if __name__ == "__main__":
    reason = why_not()
    sys.exit(f"test-hub: {reason}" if reason else 0)
