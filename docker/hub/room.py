"""Who may come into a room, and what is theirs: a name, a number, a home folder, a card.

Everything is under one folder, ROOM:

    hub/             names, hashed passwords, the hub's database and keys: nobody else can look inside
    passwd           the users as containers see them
    home/<name>/     what a person has; nobody else can look inside
    progress/<name>/ what a person shares of their progress: they write it, the instructor reads it, nobody else
    exchange/        nbgrader's exchange: lessons out, answers in, feedback out
    course/          the instructor's course directory
    turns/           a file per card: who measures has it locked
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import pwd
import re
import secrets
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from jupyterhub.auth import Authenticator
from tornado.web import HTTPError
from traitlets import List, Unicode

INSTRUCTOR = "instructor"  # one account, which those who teach share
FIRST_NUMBER = 20000  # of the users in containers; the host's own users have smaller ones
SLOW = 1.0  # seconds that a refusal takes
MOST, WITHIN = 30, 60.0  # wrong guesses from one address that are judged in so many seconds: a room shares an address
COURSE = "triton-workshop"  # the course's name in the exchange
SHORTEST = 6  # characters of a password
NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")
RESERVED = {"root", "learner", "nobody", "daemon", "bin", "sys", "hub"}


class WorkshopAuthenticator(Authenticator):
    """A workshop code for the room, and a password of one's own, which the first sign-in with a name sets.

    The name `instructor` asks for the instructor's code in place of the workshop's.
    """

    code = Unicode(help="What attendees are told; one for the whole room.").tag(config=True)
    instructor_code = Unicode(help="What those who teach know.").tag(config=True)
    folder = Unicode(help="ROOM").tag(config=True)
    names = List(Unicode(), help="Who may come in beside the instructor; empty: everybody.").tag(config=True)

    request_otp = True
    otp_prompt = "Workshop code (told in the room)"

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self._guesses = Guesses()

    def normalize_username(self, username: str) -> str:
        plain = unicodedata.normalize("NFKD", username).encode("ascii", "ignore").decode().lower()
        return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")

    def validate_username(self, username: str) -> bool:
        expected = not self.names or username in (INSTRUCTOR, *self.names)
        return bool(NAME.fullmatch(username)) and username not in RESERVED and expected

    async def authenticate(self, handler, data: dict) -> dict | None:
        name = self.normalize_username(data["username"])
        # The instructor's sign-in is counted by itself, so that attendees who mistype do not close it.
        with self._guesses.one((handler.request.remote_ip, name == INSTRUCTOR)) as right:
            code = self.instructor_code if name == INSTRUCTOR else self.code
            may_enter = self.validate_username(name) and code and same(code, data.get("otp", "").strip())
            if may_enter and known(Path(self.folder), name, data["password"]):
                right()
                return {"name": name, "admin": name == INSTRUCTOR}
            await asyncio.sleep(SLOW)
        return None


class Guesses:
    """Counts wrong guesses. One that is not judged yet counts as wrong, so that a thousand at once are no way in."""

    def __init__(self) -> None:
        self._times: dict[object, list[float]] = {}

    @contextlib.contextmanager
    def one(self, whose: object) -> Iterator[Callable[[], None]]:
        """A guess; what is yielded says that it was right. HTTPError 429 if there were too many."""
        now = time.monotonic()
        young = {key: [t for t in times if now - t < WITHIN] for key, times in self._times.items()}
        self._times = {key: times for key, times in young.items() if times}
        if len(self._times.get(whose, ())) >= MOST:
            raise HTTPError(429, f"Too many wrong sign-ins came from here. Wait for {WITHIN:.0f} seconds.")
        self._times.setdefault(whose, []).append(now)
        yield lambda: now in self._times.get(whose, ()) and self._times[whose].remove(now)


def name_of(issuer: str, person: dict) -> str:
    """The name of somebody whom an LMS sends: readable, and nobody else's, whatever they call themselves.

    autograder/classroom/lms/lti.py has the same, to know whose a grade is.
    """
    called = str(person.get("email") or person.get("given_name") or person.get("name") or "").partition("@")[0]
    plain = unicodedata.normalize("NFKD", called).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:20].lstrip("0123456789-")
    mark = hashlib.sha256(f"{issuer} {person.get('sub') or person.get('user_id')}".encode()).hexdigest()[:8]
    return f"{plain or 'person'}-{mark}"


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def known(folder: Path, name: str, password: str) -> bool:
    """Whether this is the password of that name. The first one that is long enough becomes it."""
    file = folder / "hub" / "people.json"
    people = json.loads(file.read_text()) if file.exists() else {}
    if name in people:
        salt, expected = (bytes.fromhex(part) for part in people[name])
        return hmac.compare_digest(digest(password, salt), expected)
    if len(password) < SHORTEST:
        return False
    salt = secrets.token_bytes(16)
    people[name] = [salt.hex(), digest(password, salt).hex()]
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w") as out:
        json.dump(people, out, indent=1)
    os.replace(temporary, file)
    return True


def digest(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


# -- what is theirs ----------------------------------------------------------------------------------------


def lay_out(folder: Path) -> None:
    """Make what a room has, whatever the umask is.

    Folders that everybody writes to keep each entry for its owner (sticky).
    """
    for name, mode in (
        ("", 0o755),
        ("hub", 0o700),
        ("home", 0o755),
        ("progress", 0o751),
        ("exchange", 0o1777),
        ("turns", 0o1777),
    ):
        path = folder / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    passwd = folder / "passwd"
    if not passwd.exists():
        passwd.write_text("root:x:0:0::/root:/bin/sh\nlearner:x:10001:10001::/tmp:/bin/sh\n")
    passwd.chmod(0o644)


def lay_out_exchange(folder: Path, instructor: int, group: int) -> None:
    """Make what nbgrader's first release would make, the instructor's, before anybody else can make it.

    Attendees write into inbound/ and cannot list it; in feedback/ a page has a name that only its owner can know.
    """
    course = folder / "exchange" / COURSE
    for path, mode in (
        (course, 0o755),
        (course / "outbound", 0o755),
        (course / "inbound", 0o2733),
        (course / "feedback", 0o711),
    ):
        if path.is_symlink() or path.exists() and not path.is_dir():
            sys.exit(f"room: {path} is not a folder of this room; look who made it, and remove it")
        path.mkdir(exist_ok=True)
        os.chown(path, instructor, group, follow_symlinks=False)
        path.chmod(mode)


def number_in_containers(folder: Path, name: str) -> int:
    """The user number of a name in containers. A new one is appended to `passwd`, which containers have mounted.

    Appended, not replaced: a container goes on seeing the file that was there when it was mounted.
    """
    passwd = folder / "passwd"
    users = [line.split(":") for line in passwd.read_text().splitlines()]
    numbers = {user[0]: int(user[2]) for user in users}
    if name not in numbers:
        numbers[name] = max([FIRST_NUMBER - 1, *numbers.values()]) + 1
        with passwd.open("a") as out:
            out.write(f"{name}:x:{numbers[name]}:{numbers[name]}::/home/attendee:/bin/sh\n")
    return numbers[name]


def number_on_this_machine(folder: Path, name: str) -> int:
    """The user number of a name on this machine, where a new user is made for a new name.

    A user whom the room has not made is somebody else's: nobody may come in as them by choosing their name.
    """
    home = folder / "home" / name
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(
            ["useradd", "--user-group", "--no-create-home", "--home-dir", home, "--shell", "/bin/bash", name],
            check=True,
        )
        user = pwd.getpwnam(name)
    if user.pw_dir != str(home):
        raise HTTPError(403, f"The name {name} belongs to a user of this machine. Sign in with another name.")
    return user.pw_uid


def home_of(folder: Path, name: str, number: int) -> Path:
    """A person's folder, which they alone can enter. The instructor's also has the course."""
    home = folder / "home" / name
    owned = [home] + ([folder / "course"] if name == INSTRUCTOR else [])
    for path in owned:
        path.mkdir(exist_ok=True)
        os.chown(path, number, -1)
        path.chmod(0o700)
    return home


def share_of(folder: Path, name: str, number: int, instructors: int) -> Path:
    """Where a person's progress is shared once they want that. instructors: the number of the instructor's group.

    Files in it get the folder's group (the first digit of the mode), so that the instructor can read them.
    """
    os.chown(folder / "progress", -1, instructors)
    share = folder / "progress" / name
    share.mkdir(exist_ok=True)
    os.chown(share, number, instructors)
    share.chmod(0o2750)
    return share


def mounts(folder: Path, name: str, number: int) -> list[tuple[str, str, bool]]:
    """What a person's container has of the room: (place in it, path in the container, whether it is read-only)."""
    shared = [(place, f"{folder}/{place}", False) for place in ("exchange", "turns")]
    shared.append(("passwd", "/etc/passwd", True))
    if name == INSTRUCTOR:
        return [*shared, ("course", f"{folder}/course", False), ("progress", f"{folder}/progress", True)]
    share = share_of(folder, name, number, number_in_containers(folder, INSTRUCTOR))
    return [*shared, (f"progress/{name}", str(share), False)]


# -- cards -------------------------------------------------------------------------------------------------


class Cards:
    """Which card each running server has: the one with the fewest, while it has less than `most`."""

    def __init__(self, cards: list[str], most: int = 0) -> None:
        self.cards, self.most, self.taken = cards, most, {}

    def take(self, name: str) -> str | None:
        """A card for a person; None in a room without cards. Refuses with a page when all are full."""
        if not self.cards:
            return None
        self.give_back(name)
        shared = Counter(self.taken.values())
        card = min(self.cards, key=lambda card: shared[card])
        if self.most and shared[card] >= self.most:
            everybody = f"{len(self.cards)} card{'s' if len(self.cards) > 1 else ''} with {self.most} people each"
            raise HTTPError(503, f"The room is full: {everybody}. A place is free when a server stops.")
        self.taken[name] = card
        return card

    def give_back(self, name: str) -> None:
        self.taken.pop(name, None)
