"""Opens a room on this machine without Docker: `make room`, as root. What would go wrong later is said before.

    make room                      attendees choose their names
    make room USERS=class.csv      for the people of this list, in the CSV of your LMS; it becomes the course's roster
    make room CHECK=1              prepares and checks, and starts nothing

Settings of README.md here are environment variables. A code that is not set is made once and kept in ROOM/hub.
"""

from __future__ import annotations

import argparse
import csv
import grp
import json
import os
import secrets
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What attendees' servers read. All else of the repository is the instructor's: lessons with their solutions, answers,
# the history that holds them, the course.
OPEN = {"assets", "autograder", "constraints.txt", "docker", "LICENSE", "notebooks", "pyproject.toml", "README.md"}
OPEN |= {"workshop", ".venv", ".hub"}
RECORDED = Path("benchmarks", "recorded")  # lessons draw these measurements
NOBODY = {"user": 65534, "group": 65534, "extra_groups": ()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make room", description=__doc__)
    parser.add_argument("--users", type=Path, help="the class, in the CSV of your LMS")
    parser.add_argument("--check", action="store_true", help="start nothing")
    options = parser.parse_args()
    import room

    from autograder.judge import differences

    folder = Path(os.environ.setdefault("ROOM", "/srv/workshop"))
    if os.geteuid():
        sys.exit("room: found an ordinary user; expected root, because each attendee becomes a user of this machine")
    if problem := next(problems(sys.executable), None):
        sys.exit(f"room: {problem}")
    room.lay_out(folder)
    instructor = room.number_on_this_machine(folder, room.INSTRUCTOR)
    group = grp.getgrnam(room.INSTRUCTOR).gr_gid
    close(ROOT, group)
    if seen := next(readable(ROOT), None):
        sys.exit(f"room: everybody on this machine can read {seen}, which holds answers; close it")
    print(f"closed to attendees: all of {ROOT} but what their servers read")
    differences.pack_right_answers()
    differences.PACKED.chmod(0o644)
    room.lay_out_exchange(folder, instructor, group)
    room.home_of(folder, room.INSTRUCTOR, instructor)
    if options.users:
        names = expect(folder, options.users)
        os.chown(folder / "course/roster.csv", instructor, group)
        more = " …" if len(names) > 5 else ""
        print(f"{len(names)} people may come in, with their user names: {', '.join(names[:5])}{more}")
        subprocess.run([Path(sys.executable).with_name("workshop"), "doctor", "--room", str(len(names))], check=False)
    codes = kept_codes(folder)
    print(f"code for attendees: {codes['ROOM_CODE']}\ncode for {room.INSTRUCTOR}: {codes['ROOM_INSTRUCTOR_CODE']}")
    url = os.environ.get("ROOM_URL", "http://127.0.0.1:8000")
    if url.startswith("http://") and "//127.0.0.1" not in url:
        print("passwords cross the network in the clear: set ROOM_CERTIFICATE and ROOM_KEY, or use a proxy with HTTPS")
    print(f"the link: {os.environ.get('ROOM_DOMAIN') or url}", flush=True)
    if not options.check:
        hub = str(Path(sys.executable).with_name("jupyterhub"))
        os.execve(
            hub,
            [hub, "-f", str(ROOT / "docker/hub/jupyterhub_config.py")],
            os.environ | codes | {"ROOM_SPAWNER": "process"},
        )


def problems(python: str) -> Iterator[str]:
    """Why people could not work in the room, each with what to do."""
    if closed := next((at for at in [ROOT, *ROOT.parents] if not at.stat().st_mode & stat.S_IXOTH), None):
        yield f"{closed} is closed to other users, and {ROOT} is in it; move the course to a folder like /opt"
    if not others_can(python, "-c", "import torch, workshop.shared"):
        real = Path(python).resolve()
        yield (
            f"other users cannot run {python}, which is {real}; take a Python that they can: "
            "make clean && make room PYTHON=/usr/bin/python3"
        )
    if not shutil.which("configurable-http-proxy"):
        yield "found no configurable-http-proxy; make room installs it where Node.js with npm is"


def others_can(*command: object) -> bool:
    """Whether a user without rights can run this.

    Not through `setpriv`: it keeps root's capabilities until the command runs, and so opens folders that are closed.
    """
    try:
        return subprocess.run([*map(str, command)], cwd="/", capture_output=True, **NOBODY).returncode == 0
    except PermissionError:
        return False


def close(root: Path, group: int) -> None:
    """Give what attendees need not read to the instructor's group, and to nobody else."""
    for entry in sorted(root.iterdir()):
        if entry.name not in OPEN:
            for path in [entry, *(entry.rglob("*") if entry.is_dir() and not entry.is_symlink() else ())]:
                _change(path, group, root / RECORDED)


def _change(path: Path, group: int, recorded: Path) -> None:
    if path.is_symlink():
        return
    os.chown(path, -1, group)
    mode = path.stat().st_mode & 0o7770
    if path in recorded.parents:
        mode |= 0o001
    elif path.is_relative_to(recorded):
        mode |= 0o005 if path.is_dir() else 0o004
    path.chmod(mode | ((mode & 0o700) >> 3) & 0o050)  # the group reads what the owner reads


def readable(root: Path) -> Iterator[str]:
    """What a user without rights can read of what is closed."""
    for entry in sorted(root.iterdir()):
        if entry.name not in OPEN | {RECORDED.parts[0]} and others_can("ls" if entry.is_dir() else "cat", entry):
            yield str(entry)


def expect(folder: Path, users: Path) -> list[str]:
    """Let the people of a list come in, and nobody else. Returns the names with which they sign in.

    The course's roster names them by these, so that each has a row from the first day.
    """
    import room

    from autograder.classroom.course import CourseError
    from autograder.classroom.intake.people import read_roster

    try:
        people = read_roster(users).people
    except CourseError as error:
        sys.exit(f"room: {error}")
    plain = room.WorkshopAuthenticator()
    names = [plain.normalize_username(person.id) for person in people]
    for name, person in zip(names, people):
        if not plain.validate_username(name) or names.count(name) > 1:
            sys.exit(f"room: {users}: {person.id!r} would sign in as {name!r}, which is taken or no name; give an id")
    (folder / "hub/names.json").write_text(json.dumps(names))
    with (folder / "course/roster.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "name", "email", "section"])
        lines.writerows([name, person.name, person.email, person.section] for name, person in zip(names, people))
    return names


def kept_codes(folder: Path) -> dict[str, str]:
    """The two codes: those that are set, or those of the last time, or new ones."""
    file = folder / "hub/codes.json"
    codes = {"ROOM_CODE": secrets.token_hex(4), "ROOM_INSTRUCTOR_CODE": secrets.token_urlsafe(12)}
    codes |= json.loads(file.read_text()) if file.exists() else {}
    codes |= {name: os.environ[name] for name in codes if os.environ.get(name)}
    file.touch(0o600)
    file.write_text(json.dumps(codes))
    return codes


if __name__ == "__main__":
    main()
