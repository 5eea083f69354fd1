"""The class list from a learning-management system, and grades back to it, by LTI 1.3: `autograder lti`.

A launch says where the system's services are: docker/hub/lms.py writes lti.json into the course when an instructor
opens the room. Names and Roles gives the roster, Assignment and Grade Services take the scores. Each request has a
token that the system gives for a statement signed with the course's key.
"""

import functools
import hashlib
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
from ..intake.identity import Lessons
from ..intake.people import Table, roster_of
from ..standing import Standing

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
    import jwt
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
    pem = public.public_bytes(serialization.Encoding.PEM, spki).decode().strip()
    about = {"alg": "RS256", "use": "sig", "kid": hashlib.sha256(pem.encode()).hexdigest()[:16]}
    return Outcome([pem, json.dumps(jwt.algorithms.RSAAlgorithm.to_jwk(public, as_dict=True) | about)])


def roster(course: Course) -> Outcome:
    """Make the learners of the LMS's course the course's roster. Raises CourseError."""
    platform = _Platform(course)
    people = platform.people()
    if not people:
        raise CourseError(f"{platform.issuer}: its list names no learner")
    lines = [[name, one.get("name") or name, one.get("email") or ""] for name, one in sorted(people.items())]
    table = Table(roster_of(course), [["id", "name", "email"], *lines])
    write_atomically(table.path, table.content())
    return Outcome([f"{len(people)} learners of {platform.issuer} are the roster"])


def grades(course: Course) -> Outcome:
    """Send the scores that are new since the last time. One that waits for a person is not sent but said."""
    platform, report = _Platform(course), Outcome(blame="not sent: ")
    people, sent = platform.people(), read_json(course.root / SENT)
    count, now = 0, Standing(course)
    try:
        for person, assignment, marks in now.with_marks(now.assigned):
            name, key, score = person.id, f"{person.id} {assignment}", [marks.score, course.points(assignment)]
            no_learner = "is no learner of the course in the LMS" * (name not in people)
            if reason := now.not_sure((name, assignment)) or no_learner:
                report.problems.append(f"{word(name)} {assignment}: {reason}")
            elif sent.get(key) != score:
                platform.score(platform.column(course, assignment), people[name]["user_id"], *score)
                sent[key] = score
                count += 1
    finally:  # what was sent is known, also where the system went away
        write_atomically(course.root / SENT, json.dumps(sent, indent=1, sort_keys=True).encode())
    report.said.append(f"{count} scores sent to {platform.issuer}; {len(sent) - count} are there already")
    return report


class _Platform:
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
        pages = self._pages(self.settings["memberships"], NRPS, "lti-nrps.v2.membershipcontainer")
        for member in (member for page in pages for member in page.get("members", [])):
            here = member.get("status", "Active") == "Active"
            if here and {LEARNER, "Learner"} & set(member.get("roles", [])):
                found[name_of(self.issuer, member)] = member
        return found

    @functools.cached_property
    def _columns(self) -> list[dict]:
        pages = self._pages(self.settings["lineitems"], f"{AGS}lineitem", "lis.v2.lineitemcontainer")
        return [item for page in pages for item in page]

    def column(self, course: Course, assignment: str) -> str:
        """The address of an assignment's column: its own, or one with its name; a new one if there is none."""
        lessons, there = Lessons(course), self._columns
        own = [item for item in there if item.get("resourceId") == assignment]
        own = own or [item for item in there if lessons.named(str(item.get("label", "")))[0] == assignment]
        if len(own) > 1:
            raise CourseError(f"{self.issuer} has {len(own)} columns for {assignment}; rename the others")
        if not own:
            about = {"label": assignment, "resourceId": assignment, "scoreMaximum": course.points(assignment)}
            own = [self.send(self.settings["lineitems"], "lineitem", "lis.v2.lineitem", about)]
            there += own
        return own[0]["id"]

    def score(self, column: str, user: str, score: float, points: float) -> None:
        """Send a score to a column. Its address may have a query."""
        parts = urlsplit(column)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {"userId": user, "scoreGiven": score, "scoreMaximum": points, "timestamp": now}
        about |= {"activityProgress": "Completed", "gradingProgress": "FullyGraded"}
        scores = parts._replace(path=f"{parts.path.rstrip('/')}/scores").geturl()
        self.send(scores, "score", "lis.v1.score", about)

    def send(self, url: str, scope: str, media: str, content: dict) -> dict:
        """Post an object; what comes back, {} for nothing."""
        kind = {"Content-Type": f"{MEDIA}{media}+json"}
        answer = self._asked("post", url, f"{AGS}{scope}", headers=kind, data=json.dumps(content))
        return answer.json() if answer.content else {}

    def _pages(self, url: str, scope: str, media: str) -> Iterator:
        for _ in range(PAGES):
            answer = self._asked("get", url, scope, headers={"Accept": f"{MEDIA}{media}+json"})
            yield answer.json()
            if not (url := answer.links.get("next", {}).get("url", "")):
                return

    def _asked(self, how: str, url: str, scope: str, headers: dict, **options):
        if scope not in self._tokens:
            now, client, tokens = datetime.now(UTC), self.settings["client_id"], self.settings["token_url"]
            claims = {"iss": client, "sub": client, "aud": tokens, "iat": now, "exp": now + timedelta(minutes=1)}
            statement = self._jwt.encode(claims | {"jti": uuid.uuid4().hex}, self._key, "RS256", {"kid": self._kid})
            form = {
                "grant_type": "client_credentials",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": statement,
                "scope": scope,
            }
            self._tokens[scope] = self._request("post", tokens, data=form).json()["access_token"]
        bearer = {"Authorization": f"Bearer {self._tokens[scope]}"}
        return self._request(how, url, headers=headers | bearer, **options)

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
