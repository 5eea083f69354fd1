"""A small reference platform for LTI 1.3: it signs launches, and has Names and Roles and Assignment and Grade Services.

It refuses what a platform refuses: statements that are not signed with the tool's key, tokens of another scope,
content of another type, a score for nobody. Its lists come in pages, with addresses in which case matters.
"""

import base64
import functools
import json
import threading
import time
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
ROLE = "http://purl.imsglobal.org/vocab/lis/v2/membership#"
AGS, NRPS = "https://purl.imsglobal.org/spec/lti-ags/", "https://purl.imsglobal.org/spec/lti-nrps/"
PAGE = 2


@functools.cache
def platform_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Platform:
    """people: the members; items: the columns; scores: what the tool sent, in order."""

    def __init__(self) -> None:
        self.key = platform_key()
        self.tool_key, self.client_id, self.deployment = None, "tool-7", "deployment-1"
        self.people, self.items, self.scores, self.tokens = [], [], [], {}
        self.broken = ""  # an address that answers with an error

    def member(self, user: str, role: str = "Learner", **about) -> dict:
        self.people.append({"user_id": user, "roles": [ROLE + role], "status": "Active", **about})
        return self.people[-1]

    def settings(self) -> dict:
        """What the room, or lti.json of a course, is told about it."""
        services = {"token_url": "token", "lineitems": "items", "memberships": "members"}
        return {"issuer": self.url, "client_id": self.client_id} | {k: f"{self.url}/{v}" for k, v in services.items()}

    def id_token(self, member: dict, nonce: str, context: str = "course-1", **claims) -> str:
        """A launch of somebody."""
        now = int(time.time())
        said = {
            "iss": self.url, "aud": self.client_id, "sub": member["user_id"], "nonce": nonce,
            "iat": now, "exp": now + 300,
            f"{CLAIM}message_type": "LtiResourceLinkRequest", f"{CLAIM}version": "1.3.0",
            f"{CLAIM}deployment_id": self.deployment, f"{CLAIM}target_link_uri": "http://127.0.0.1/hub",
            f"{CLAIM}resource_link": {"id": "link-1"}, f"{CLAIM}roles": member["roles"],
            f"{CLAIM}context": {"id": context},
            f"{AGS}claim/endpoint": {"scope": [f"{AGS}scope/score"], "lineitems": f"{self.url}/items"},
            f"{NRPS}claim/namesroleservice": {"context_memberships_url": f"{self.url}/members"},
            **{name: member[name] for name in ("name", "email") if name in member}, **claims,
        }  # fmt: skip
        return jwt.encode(said, self.key, "RS256", {"kid": "platform"})

    # -- what it answers: (status, content, headers) ------------------------------------------------------------

    def get(self, path: str, query: dict, headers) -> tuple:
        if path == "/jwks":
            public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
            return 200, {"keys": [public | {"kid": "platform", "alg": "RS256", "use": "sig"}]}, {}
        membership = f"{NRPS}scope/contextmembership.readonly", "lti-nrps.v2.membershipcontainer"
        lists = {"/members": (*membership, self.people)}
        lists |= {"/items": (f"{AGS}scope/lineitem", "lis.v2.lineitemcontainer", self.items)}
        scope, media, all_of_them = lists[path]
        if self.tokens.get(headers.get("Authorization", "")) != scope:
            return 401, {"error": "no token for this"}, {}
        if headers["Accept"] != f"application/vnd.ims.{media}+json":
            return 406, {"error": "another type"}, {}
        mark = query.get("Bookmark", [base64.urlsafe_b64encode(b"at:0").decode()])[0]
        start = int(base64.urlsafe_b64decode(mark).decode().partition(":")[2])
        following = base64.urlsafe_b64encode(f"at:{start + PAGE}".encode()).decode()
        link = {"Link": f'<{self.url}{path}?Bookmark={following}>; rel="next"'}
        more = link if start + PAGE < len(all_of_them) else {}
        part = all_of_them[start : start + PAGE]
        return 200, {"id": self.url, "members": part} if path == "/members" else part, more

    def post(self, path: str, body: str, headers) -> tuple:
        if path == "/token":
            return self.token(parse_qs(body))
        kind, scope = headers["Content-Type"], self.tokens.get(headers.get("Authorization", ""))
        if path == "/items" and scope == f"{AGS}scope/lineitem" and kind == "application/vnd.ims.lis.v2.lineitem+json":
            self.items.append(json.loads(body) | {"id": f"{self.url}/items/{len(self.items)}?type=X"})
            return 201, self.items[-1], {}
        number = path.removeprefix("/items/").removesuffix("/scores")
        if scope != f"{AGS}scope/score" or kind != "application/vnd.ims.lis.v1.score+json" or not number.isdecimal():
            return 400, {"error": f"{path}, {kind}, {scope}"}, {}
        score = json.loads(body)
        if score["userId"] not in [one["user_id"] for one in self.people] or not score["timestamp"].endswith("Z"):
            return 422, {"error": "no such member, or no time"}, {}
        label = self.items[int(number)]["label"]
        self.scores.append((label, score["userId"], score["scoreGiven"], score["scoreMaximum"]))
        return 204, None, {}

    def token(self, form: dict) -> tuple:
        try:
            said = jwt.decode(form["client_assertion"][0], self.tool_key, ["RS256"], audience=f"{self.url}/token")
        except jwt.InvalidTokenError as error:
            return 400, {"error": str(error)}, {}
        if said["iss"] != self.client_id or form["grant_type"] != ["client_credentials"]:
            return 400, {"error": "not this tool"}, {}
        token = uuid.uuid4().hex
        self.tokens[f"Bearer {token}"] = form["scope"][0]
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600}, {}


@contextmanager
def running():
    """A platform that answers on this machine; its address is `url`."""
    platform = Platform()

    class Handler(BaseHTTPRequestHandler):
        def answer(self, work, *arguments):
            path = urlsplit(self.path).path
            broken = platform.broken and path.startswith(platform.broken)
            status, content, headers = (503, {"error": "down"}, {}) if broken else work(path, *arguments, self.headers)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            body = b"" if content is None else json.dumps(content).encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(platform.get, parse_qs(urlsplit(self.path).query))

        def do_POST(self):
            self.answer(platform.post, self.rfile.read(int(self.headers["Content-Length"])).decode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    platform.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield platform
    finally:
        server.shutdown()
        server.server_close()
