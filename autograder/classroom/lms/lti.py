"""The class list from a learning-management system, and grades back to it, by LTI 1.3: `autograder lti`.

A launch says where the system's services are: docker/hub/lms.py writes lti.json into the course when an instructor
opens the room. Names and Roles gives the roster, Assignment and Grade Services take the scores. Each request has a
token that the system gives for a statement signed with the course's key.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import unicodedata
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from ...text import visible
from ..course import Course, CourseError, Outcome, read_json, word, write_atomically
from ..grading.gradebook import marks_in, open_gradebook
from ..intake.identity import Lessons
from ..intake.people import keep_roster
from ..standing import standing

SETTINGS, KEY, SENT = "lti.json", "lti-key.pem", "lti-sent.json"  # in the course directory
AGS = "https://purl.imsglobal.org/spec/lti-ags/scope/"
NRPS = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
LEARNER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
MEDIA = "application/vnd.ims."
PAGES, SECONDS = 1000, 30  # that a list may have; that an answer may take


def name_of(issuer: str, person: dict) -> str:
    """The name in a room of somebody in an LMS: readable, and nobody else's, whatever they call themselves.

    person: claims of a launch, or a member. docker/hub/room.py has the same, because a hub lacks this package.
    """
    called = str(person.get("email") or person.get("given_name") or person.get("name") or "").partition("@")[0]
    plain = unicodedata.normalize("NFKD", called).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:20].lstrip("0123456789-")
    mark = hashlib.sha256(f"{issuer} {person.get('sub') or person.get('user_id')}".encode()).hexdigest()[:8]
    return f"{plain or 'person'}-{mark}"


def public_key(course: Course) -> Outcome:
    """Make the course's key where there is none, and show its public half, for the form of the LMS."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    path = course.root / KEY
    if not path.exists():
        private = rsa.generate_private_key(public_exponent=65537, key_size=3072)
        kind = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(private.private_bytes(serialization.Encoding.PEM, *kind))
    public = serialization.load_pem_private_key(path.read_bytes(), None).public_key()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = public.public_bytes(serialization.Encoding.PEM, spki).decode()
    return Outcome([pem.strip(), json.dumps(_jwk(public) | {"alg": "RS256", "use": "sig", "kid": _kid(pem)})])


def _jwk(public) -> dict:
    import jwt

    return jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True)


def _kid(pem: str) -> str:
    return hashlib.sha256(pem.strip().encode()).hexdigest()[:16]


def roster(course: Course) -> Outcome:
    """Make the learners of the LMS's course the course's roster. Raises CourseError."""
    platform = _Platform(course)
    people = platform.people()
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(["id", "name", "email"])
    lines.writerows([name, one.get("name") or name, one.get("email") or ""] for name, one in sorted(people.items()))
    path = course.root / ".roster.csv"
    write_atomically(path, text.getvalue().encode())
    try:
        keep_roster(course, path)
    finally:
        path.unlink()
    return Outcome([f"{len(people)} learners of {platform.issuer} are the roster"])


def grades(course: Course) -> Outcome:
    """Send the scores that are new since the last time. One that waits for a person is not sent but said."""
    platform, report = _Platform(course), Outcome(blame="not sent: ")
    people, items = platform.people(), None
    sent = read_json(course.root / SENT)
    count = 0
    with open_gradebook(course) as gradebook:
        now, marks = standing(course, gradebook), marks_in(gradebook)
    try:
        for names in ((p.id, a) for a in now.assigned for p in now.people if (p.id, a) in marks):
            person, assignment = names
            score, points = marks[names].score, course.points(assignment)
            if reason := now.not_sure(names) or ("is no learner of the course in the LMS" * (person not in people)):
                report.problems.append(f"{word(person)} {assignment}: {reason}")
            elif sent.get(f"{person} {assignment}") != [score, points]:
                items = platform.items() if items is None else items
                item = _item(platform, items, course, assignment)
                user = people[person]["user_id"]
                platform.send(_below(item["id"], "scores"), "score", "lis.v1.score", _score(user, score, points))
                sent[f"{person} {assignment}"] = [score, points]
                count += 1
    finally:  # what was sent is known, also where the system went away
        write_atomically(course.root / SENT, json.dumps(sent, indent=1, sort_keys=True).encode())
    report.said.append(f"{count} scores sent to {platform.issuer}; {len(sent) - count} are there already")
    return report


def _score(user: str, score: float, points: float) -> dict:
    return {
        "userId": user,
        "scoreGiven": score,
        "scoreMaximum": points,
        "activityProgress": "Completed",
        "gradingProgress": "FullyGraded",
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def _item(platform: _Platform, items: list[dict], course: Course, assignment: str) -> dict:
    """The column of an assignment in the LMS: its own, or one with its name; a new one if there is none."""
    own = [item for item in items if item.get("resourceId") == assignment]
    lessons = Lessons(course)
    own = own or [item for item in items if lessons.named(str(item.get("label", "")))[0] == assignment]
    if len(own) > 1:
        raise CourseError(f"{platform.issuer} has {len(own)} columns for {assignment}; rename the others")
    if not own:
        about = {"label": assignment, "resourceId": assignment, "scoreMaximum": course.points(assignment)}
        own = [platform.send(platform.settings["lineitems"], "lineitem", "lis.v2.lineitem", about)]
        items += own
    return own[0]


def _below(url: str, name: str) -> str:
    """A path below an address, which may have a query."""
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{name}").geturl()


class _Platform:
    """The services of the LMS in which the course is."""

    def __init__(self, course: Course) -> None:
        try:
            import jwt
            import requests
        except ImportError:
            needed = 'install it: .venv/bin/pip install -c constraints.txt "PyJWT[crypto]" requests'
            raise CourseError(f"`autograder lti` needs PyJWT and requests; {needed}") from None
        self._jwt, self._requests = jwt, requests
        self.settings = read_json(course.root / SETTINGS)
        needed = ("issuer", "client_id", "token_url", "lineitems", "memberships")
        if missing := [name for name in needed if not isinstance(self.settings.get(name), str)]:
            where = f"{course.root / SETTINGS} does not say {', '.join(missing)}"
            raise CourseError(f"{where}; open the room from the LMS as an instructor first (docs/LTI.md)")
        if not (course.root / KEY).exists():
            raise CourseError(f"{course.root / KEY}: there is no key; run `autograder lti key`, and give it to the LMS")
        self.issuer = self.settings["issuer"]
        self._key = (course.root / KEY).read_text()
        self._kid = json.loads(public_key(course).said[1])["kid"]
        self._session, self._tokens = requests.Session(), {}

    def people(self) -> dict[str, dict]:
        """name -> the member: the learners who are there now."""
        found = {}
        for page in self._pages(self.settings["memberships"], NRPS, "lti-nrps.v2.membershipcontainer"):
            for member in page.get("members", []):
                here = member.get("status", "Active") == "Active"
                if here and {LEARNER, "Learner"} & set(member.get("roles", [])):
                    found[name_of(self.issuer, member)] = member
        return found

    def items(self) -> list[dict]:
        pages = self._pages(self.settings["lineitems"], f"{AGS}lineitem", "lis.v2.lineitemcontainer")
        return [item for page in pages for item in page]

    def send(self, url: str, scope: str, media: str, content: dict) -> dict:
        """Post an object; what comes back, {} for nothing."""
        kind = {"Content-Type": f"{MEDIA}{media}+json"}
        answer = self._asked("post", url, f"{AGS}{scope}", headers=kind, data=json.dumps(content))
        return answer.json() if answer.content else {}

    def _pages(self, url: str, scope: str, media: str) -> Iterator:
        for _ in range(PAGES):
            answer = self._asked("get", url, scope, headers={"Accept": f"{MEDIA}{media}+json"})
            yield answer.json()
            url = answer.links.get("next", {}).get("url", "")
            if not url:
                return

    def _asked(self, how: str, url: str, scope: str, headers: dict, **options):
        token = self._tokens.get(scope) or self._tokens.setdefault(scope, self._token(scope))
        return self._request(how, url, headers=headers | {"Authorization": f"Bearer {token}"}, **options)

    def _token(self, scope: str) -> str:
        now, client = datetime.now(UTC), self.settings["client_id"]
        url = self.settings["token_url"]
        claims = {"iss": client, "sub": client, "aud": url, "iat": now, "exp": now + timedelta(minutes=1)}
        statement = self._jwt.encode(claims | {"jti": uuid.uuid4().hex}, self._key, "RS256", {"kid": self._kid})
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": statement,
            "scope": scope,
        }
        return self._request("post", url, data=form).json()["access_token"]

    def _request(self, how: str, url: str, **options):
        """An answer. CourseError if there is none, or one that says no; a token goes over HTTPS only."""
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost"):
            raise CourseError(f"{visible(url, 200)}: expected https")
        try:
            answer = self._session.request(how, url, timeout=SECONDS, allow_redirects=False, **options)
        except self._requests.RequestException as error:
            raise CourseError(f"{visible(url, 200)}: {visible(type(error).__name__, 100)}") from None
        if not 200 <= answer.status_code < 300:
            raise CourseError(f"{visible(url, 200)}: says {answer.status_code}: {visible(answer.text, 200)}")
        return answer


def lti(course: Course, step: str) -> Outcome:
    """One step: "key", "roster" or "grades"."""
    return {"key": public_key, "roster": roster, "grades": grades}[step](course)
