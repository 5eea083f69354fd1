"""Sign-in from a learning-management system by LTI 1.3: a room that ROOM_LTI opens from there. docs/LTI.md says how.

ltiauthenticator checks the launch: its signature, issuer, audience, state and nonce. Here is who somebody is, and that
the launch comes from the course to which the room belongs.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import room
from ltiauthenticator.lti13.auth import LTI13Authenticator
from tornado.web import HTTPError
from traitlets import Dict, Unicode

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
INSTRUCTOR_ROLE = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"  # in the course, not anywhere
AGS = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
NRPS = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"


class LaunchAuthenticator(LTI13Authenticator):
    """Learners come in under a name of their own, instructors of the course as the instructor."""

    folder = Unicode(help="ROOM").tag(config=True)
    platform = Dict(help="What ROOM_LTI says.").tag(config=True)

    def validate_username(self, username: str) -> bool:
        return bool(room.NAME.fullmatch(username)) and username not in room.RESERVED

    async def authenticate(self, handler, data: dict | None = None) -> dict:
        """Who a launch is for. HTTPError 403 for one of another course, or before an instructor opened the room."""
        data = data or {}
        instructs = INSTRUCTOR_ROLE in data.get(f"{CLAIM}roles", [])
        if data.get(f"{CLAIM}deployment_id") != self.platform["deployment_id"]:
            raise HTTPError(403, "This room belongs to another deployment of the tool.")
        course = data.get(f"{CLAIM}context", {}).get("id")
        kept = Path(self.folder, "hub", "lti.json")
        bound = json.loads(kept.read_text())["context"] if kept.exists() else self.platform.get("context")
        if not course or bound and course != bound:
            raise HTTPError(403, "This room belongs to another course.")
        if instructs:
            self._keep(kept, course, data)
            return {"name": room.INSTRUCTOR, "admin": True}
        if not bound:
            raise HTTPError(403, "This room is not open yet. Its instructor opens it first.")
        return {"name": room.name_of(self.issuer, data), "admin": False}

    def _keep(self, kept: Path, course: str, data: dict) -> None:
        """Bind the room to a course, and tell the course directory where the system's services are."""
        said = {
            "issuer": self.issuer,
            "client_id": self.platform["client_id"],
            "token_url": self.platform["token_url"],
            "context": course,
            "lineitems": data.get(AGS, {}).get("lineitems"),
            "memberships": data.get(NRPS, {}).get("context_memberships_url"),
        }
        exchange = Path(self.folder, "exchange", room.COURSE).stat()  # it is the instructor's
        directory = Path(self.folder, "course")
        directory.mkdir(mode=0o700, exist_ok=True)
        for path, owner in ((kept, os.geteuid()), (directory / kept.name, exchange.st_uid)):
            handle, temporary = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "w") as file:
                json.dump(said, file, indent=1)
            os.chown(temporary, owner, -1)
            os.replace(temporary, path)
