"""A room on one host: a server for each attendee, a sign-in with a workshop code, nbgrader's exchange.

Everything that differs between rooms is an environment variable; README.md here lists them.
"""

import grp
import json
import os
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import room  # noqa: E402

c = get_config()  # noqa: F821
setting = os.environ.get

ROOM = Path(setting("ROOM", "/srv/workshop"))
KIND = setting("ROOM_SPAWNER", "docker")
GPU = setting("ROOM_GPU", "none")
LAB = setting("ROOM_LAB_IMAGE", "triton-workshop:cpu")
GRADER = setting("ROOM_GRADER_IMAGE", "triton-grader:cpu")
CARDS = room.Cards(setting("ROOM_CARDS", "").split(), int(setting("ROOM_PER_CARD", "0")))
room.lay_out(ROOM)

if not setting("ROOM_LTI") and not (setting("ROOM_CODE") and setting("ROOM_INSTRUCTOR_CODE")):
    sys.exit("room: expected ROOM_CODE (told to attendees) and ROOM_INSTRUCTOR_CODE (not told to them)")

# -- sign in

c.JupyterHub.authenticator_class = room.WorkshopAuthenticator
c.WorkshopAuthenticator.folder = str(ROOM)
c.WorkshopAuthenticator.code = setting("ROOM_CODE")
c.WorkshopAuthenticator.instructor_code = setting("ROOM_INSTRUCTOR_CODE")
c.Authenticator.allow_all = True  # the code decides, and the list of open_room.py where there is one
if (ROOM / "hub/names.json").exists():
    c.WorkshopAuthenticator.names = json.loads((ROOM / "hub/names.json").read_text())
if setting("ROOM_LTI"):
    import lms

    c.JupyterHub.authenticator_class = lms.LaunchAuthenticator
    platform = tomllib.loads(Path(setting("ROOM_LTI")).read_text())
    c.LaunchAuthenticator.folder, c.LaunchAuthenticator.platform = str(ROOM), platform
    c.LaunchAuthenticator.issuer, c.LaunchAuthenticator.client_id = platform["issuer"], {platform["client_id"]}
    c.LaunchAuthenticator.authorize_url = platform["authorize_url"]
    c.LaunchAuthenticator.jwks_endpoint = platform["jwks_url"]
    c.LaunchAuthenticator.uri_scheme = platform["room_url"].partition(":")[0]
c.JupyterHub.template_vars = {
    "announcement_login": "The first time, choose a name and a password of your own (6 characters or more). "
    "Later, the same name and password bring your files back."
}

# -- the hub

c.JupyterHub.bind_url = setting("ROOM_URL", "http://127.0.0.1:8000")
# With an address for each person, no page of one can touch a page of another: docs/HOSTING.md, "One web address".
c.JupyterHub.subdomain_host = setting("ROOM_DOMAIN") or ""
c.JupyterHub.tornado_settings = {"headers": {"Cross-Origin-Opener-Policy": "noopener-allow-popups"}}
if setting("ROOM_LTI") and platform["room_url"].startswith("https:"):  # a launch is a form that another site sends
    c.JupyterHub.tornado_settings["cookie_options"] = {"samesite": "None", "secure": True}
c.JupyterHub.db_url = setting("ROOM_DATABASE") or f"sqlite:///{ROOM / 'hub/hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(ROOM / "hub/cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(ROOM / "hub/proxy.pid")
if setting("ROOM_CERTIFICATE"):
    c.JupyterHub.ssl_cert, c.JupyterHub.ssl_key = setting("ROOM_CERTIFICATE"), setting("ROOM_KEY")
c.JupyterHub.concurrent_spawn_limit = 20

# A server that nobody used for ROOM_IDLE seconds stops; its files stay.
c.JupyterHub.services = [
    {
        "name": "idle-culler",
        "command": [sys.executable, "-m", "jupyterhub_idle_culler", f"--timeout={setting('ROOM_IDLE', '3600')}"],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
        "services": ["idle-culler"],
    }
]

# -- a server for each person


def attends(spawner) -> bool:
    return spawner.user.name != room.INSTRUCTOR


def role(spawner) -> str:
    return "attendee" if attends(spawner) else "instructor"


c.Spawner.mem_limit = setting("ROOM_MEMORY", "4G")
c.Spawner.cpu_limit = float(setting("ROOM_CORES", "2"))
c.Spawner.start_timeout = 120
c.Spawner.post_stop_hook = lambda spawner: CARDS.give_back(spawner.user.name)


def environment(config: Path, home: str) -> dict:
    """Where a server finds its role, its exchange, its progress and the turns at the card."""
    return {
        "ROOM": str(ROOM),
        "JUPYTER_CONFIG_PATH": lambda spawner: str(config / role(spawner)),
        "WORKSHOP_PROGRESS": lambda spawner: f"{home.format(name=spawner.user.name)}/.progress.json",
        "WORKSHOP_SHARE": lambda spawner: str(ROOM / "progress" / spawner.user.name) if attends(spawner) else "",
        "WORKSHOP_TURNS": str(ROOM / "turns"),
    }


def begin(spawner, home: str) -> None:
    """Attendees begin in their home. The instructor begins on the page of the room.

    The instructor's files are the course's: formgrader refuses a course that is elsewhere.
    """
    spawner.default_url = "/lab" if attends(spawner) else "/room"
    spawner.notebook_dir = home if attends(spawner) else str(ROOM / "course")


def in_a_process(spawner) -> None:
    number = room.number_on_this_machine(ROOM, spawner.user.name)
    room.home_of(ROOM, spawner.user.name, number)
    begin(spawner, "~")
    if attends(spawner):
        room.share_of(ROOM, spawner.user.name, number, grp.getgrnam(room.INSTRUCTOR).gr_gid)
    card = CARDS.take(spawner.user.name)
    if card:
        spawner.environment |= {"CUDA_VISIBLE_DEVICES": card, "HIP_VISIBLE_DEVICES": card}


def in_a_container(spawner) -> None:
    name = spawner.user.name
    number = room.number_in_containers(ROOM, name)
    home = room.home_of(ROOM, name, number)
    spawner.image = LAB if attends(spawner) else GRADER
    there = room.mounts(ROOM, name, number)
    spawner.volumes = {str(home): "/home/attendee"} | {f"{ROOM}/{place}": at for place, at, fixed in there if not fixed}
    spawner.read_only_volumes = {f"{ROOM}/{place}": at for place, at, fixed in there if fixed}
    begin(spawner, "/home/attendee")
    spawner.extra_create_kwargs = {"user": f"{number}:{number}", "working_dir": "/home/attendee"}
    spawner.extra_host_config = confined | devices(CARDS.take(name))


# What compose.yml says of one lab holds here for each.
confined = {
    "init": True,
    "read_only": True,
    "tmpfs": {"/tmp": "rw,nosuid,nodev,exec,mode=1777,size=4g"},
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
    "pids_limit": 512,
    "shm_size": "1g",
}


def devices(card: str | None) -> dict:
    """The host configuration that gives a container one card: renderD128 of AMD, or NVIDIA's number or UUID."""
    if card is None or GPU == "none":
        return {}
    if GPU == "amd":
        nodes = ["/dev/kfd:/dev/kfd:rw", f"/dev/dri/{card}:/dev/dri/{card}:rw"]
        return {"devices": nodes, "group_add": [setting("RENDER_GROUP", "109")]}
    from docker.types import DeviceRequest

    return {"device_requests": [DeviceRequest(device_ids=[card], capabilities=[["gpu"]])]}


if KIND == "docker":
    c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
    c.JupyterHub.hub_ip = "0.0.0.0"
    c.JupyterHub.hub_connect_ip = setting("ROOM_HUB_NAME", "hub")
    c.DockerSpawner.image = LAB
    c.DockerSpawner.network_name = setting("ROOM_NETWORK", "room_attendees")
    c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
    c.DockerSpawner.remove = True
    number = room.number_in_containers(ROOM, room.INSTRUCTOR)
    room.lay_out_exchange(ROOM, number, number)
    c.DockerSpawner.environment = environment(Path("/course/docker/hub"), "/home/attendee") | {"HOME": "/home/attendee"}
    c.DockerSpawner.pre_spawn_hook = in_a_container
elif KIND == "process":
    if os.geteuid() != 0:
        sys.exit("room: expected root, because each attendee is a user of this machine; or ROOM_SPAWNER=docker")
    tools = Path(sys.executable).parent
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
    c.Spawner.cmd = [str(tools / "jupyterhub-singleuser")]
    number = room.number_on_this_machine(ROOM, room.INSTRUCTOR)  # the user whose group reads what is shared
    room.lay_out_exchange(ROOM, number, grp.getgrnam(room.INSTRUCTOR).gr_gid)
    c.Spawner.environment = environment(HERE, f"{ROOM}/home/{{name}}") | {
        "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"
    }
    c.Spawner.pre_spawn_hook = in_a_process
else:
    sys.exit(f"room: found ROOM_SPAWNER={KIND}; expected docker or process")
