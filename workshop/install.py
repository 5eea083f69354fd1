"""Make .venv, the course's virtual environment: `python3 workshop/install.py [lab] [dev] [jax] [hub]`.

Standard library only, because it runs before anything is installed. Three rules:

* A torch that this Python can already import (a ROCm or CUDA image, Colab) is used, with its Triton and
  its numpy; nothing is put in its place.
* TORCH_INDEX_URL names another index of PyTorch builds. torch and its own Triton come from there,
  every other package comes from pip's usual index.
* What goes wrong is one line (found, expected, what to do) and exit status 2; a half-made .venv is removed.

What pip says goes into install.log. uv does its work where uv is installed and pip has no settings of its own, such as
an index of a company: uv would not read them. INSTALL_WITH=pip keeps uv out.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CONSTRAINTS = ROOT / "constraints.txt"
LOG = ROOT / "install.log"
TAIL = 25  # lines of the log that are shown when something fails

# What pip is asked for; torch, Triton and JAX are added where this machine needs them.
GROUPS = {
    "lab": ["--editable", str(ROOT)],
    "dev": ["--editable", f"{ROOT}[dev]"],
    "jax": [],
    "hub": ["--editable", f"{ROOT}[hub]"],
    "class": ["--editable", f"{ROOT}[dask,postgresql]"],
}

# Where a notebook runs alone, in a Python that is not ours (Colab): what `check` and the lessons import.
ONLINE = {
    "online": ["numpy", "matplotlib", "pandas"],
    "online-jax": ["numpy", "matplotlib", "pandas", "jax", "absl-py"],
}

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
OLDEST_TORCH = "2.8"
MACHINES = ("x86_64", "aarch64")
GPU_NODES = ("/dev/kfd", "/dev/nvidiactl")
AMD_NODES = "/sys/class/kfd/kfd/topology/nodes"
# Distributions that belong to a torch build: the build decides their versions, not the course.
OF_TORCH = re.compile(r"torch|triton|triton-(rocm|xpu)|pytorch-triton.*|nvidia-.*")

# What JupyterLab does otherwise for learners: on a narrow page, long lines of code are broken and not cut. It hides the
# question whether it may fetch its news, and nbgrader's menu and buttons: its Validate calls an answer right when the
# visible cells ran. Where there is an exchange, or an instructor, a folder of docker/hub/ in JUPYTER_CONFIG_PATH shows
# what they need again.
LABCONFIG = ROOT / "workshop" / "labconfig"

# Runs in another interpreter and prints what that one has.
LOOK = """
import importlib.metadata as metadata, importlib.util, json, sys
has = {"torch": None, "own": False, "needs": [], "triton": importlib.util.find_spec("triton") is not None}
torch = importlib.util.find_spec("torch")
if torch:
    own = torch.origin.startswith(sys.prefix)
    has.update(torch=metadata.version("torch"), own=own, needs=metadata.requires("torch"))
has["installed"] = {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]}
has["folders"] = [folder for folder in sys.path if folder.endswith("-packages")]
print(json.dumps(has))
"""


# Settings that tell pip where packages come from.
OF_PIP = re.compile(r"\b(index-url|extra-index-url|find-links|no-index|constraint|proxy|trusted-host)=")


# Measured on two cores, with packages on the same disk: 77 to 177 s, 2.7 GB.
TAKES = """Installing the course into .venv. With a torch for the CPU this takes 1 to 3 minutes and 2.7 GB of the disk,
and the time of the download. A torch for a GPU needs several GB more. What pip says goes into install.log."""


class Problem(Exception):
    """Something the person at the keyboard has to change; the text is one line."""


def check_machine(system, machine, libc, python):
    """Raise Problem unless there are Triton wheels for this system, processor, C library and Python."""
    elsewhere = "inside WSL 2" if system == "Windows" else "in a Linux container (docker/README.md)"
    pythons = f"{dotted(OLDEST_PYTHON)} to {dotted(NEWEST_PYTHON)}"
    for fits, problem in (
        (system == "Linux", f"found {system}; expected Linux, whose processes the judge confines and for which Triton "
         f"is published: run the course on a Linux machine, {elsewhere} or in Colab"),
        (machine in MACHINES, f"found a {machine} processor; Triton is published for {' and '.join(MACHINES)}: "
         "run the course on such a machine or in Colab"),
        (libc == "glibc", "found a Linux without glibc; Triton is published for glibc: use Debian, Ubuntu, Fedora or "
         "a container of one (docker/README.md)"),
        (OLDEST_PYTHON <= python <= NEWEST_PYTHON, f"found Python {dotted(python)}; expected {pythons}: install one "
         "and name it, as in `make lab PYTHON=python3.12`"),
    ):  # fmt: skip
        if not fits:
            raise Problem(problem)


def check_venv_module(find_spec=importlib.util.find_spec):
    """Raise Problem when this Python cannot make virtual environments (Debian and Ubuntu split that off)."""
    if missing := [name for name in ("venv", "ensurepip") if find_spec(name) is None]:
        package = f"python{dotted(sys.version_info[:2])}-venv"
        raise Problem(
            f"found {sys.executable} without {' and '.join(missing)}; expected a Python that makes virtual "
            f"environments: `sudo apt install {package}` (Debian, Ubuntu), then run this again"
        )


def has_gpu():
    """Whether the driver of an AMD or NVIDIA GPU is here; asked before there is a torch to ask."""
    return any(os.path.exists(node) for node in GPU_NODES)


def dotted(version):
    return ".".join(str(part) for part in version)


def normal(name):
    """The spelling under which pip compares names of distributions."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_beside(has, pins):
    """The course's pins as they hold beside an installed torch, as lines for pip's --constraint.

    What belongs to the torch build keeps its installed version. numpy stays as it is too where the torch is
    the machine's own, because its other packages were built against that one.
    """
    if not has["torch"]:
        return pins
    kept = {normal(name): version for name, version in has["installed"].items() if OF_TORCH.fullmatch(normal(name))}
    dropped = set(kept) | {"torch", "triton"} | (set() if has["own"] else {"numpy"})
    course = [pin for pin in pins if normal(pin.partition("==")[0]) not in dropped]
    return course + [f"{name}=={version}" for name, version in sorted(kept.items())]


def wanted(group, has, jax):
    """What to ask pip for: the group, torch and Triton where they are missing, JAX."""
    torch = ["torch"] * (has["own"] or not has["torch"])
    return GROUPS[group] + torch + ["triton"] * (not has["triton"]) + ([jax, "absl-py"] if jax else [])


def run(what, command):
    """Run a command with its output in the log; raise Problem when it fails, after the end of what it said."""
    command = [str(part) for part in command]
    print(f"{what} …", flush=True)
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"\n== {what}\n$ {' '.join(command)}\n")
        log.flush()
        begun = LOG.stat().st_size
        started = time.monotonic()
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            while (status := child.poll()) is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1)
                if sys.stdout.isatty():  # time passes
                    print(f"  {time.monotonic() - started:.0f} s", end="\r", flush=True)
        except BaseException:
            child.wait()  # Ctrl-C reached it, too
            raise
    if status:
        said = LOG.read_bytes()[begun:].decode(errors="replace").splitlines()
        print("\n".join(said[-TAIL:]), file=sys.stderr)
        other = ", or let pip try: INSTALL_WITH=pip make lab" if Path(command[0]).name == "uv" else ""
        raise Problem(
            f"{what}: ended with status {status}. Its last lines are above, all of them in {LOG.name}; "
            f"repair what they name, then run this again{other}"
        )
    print(f"  {time.monotonic() - started:.0f} s", flush=True)


def pip(what, python, *arguments):
    tool = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv := find_uv(python):
        tool = [uv, "pip", "install", "--python", python]
    run(what, [*tool, *arguments])


@functools.cache
def find_uv(python):
    """The path of uv where it may do pip's work, otherwise None."""
    uv = shutil.which("uv")
    if uv is None or os.environ.get("INSTALL_WITH") == "pip":
        return None
    settings = subprocess.run([str(python), "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    return None if OF_PIP.search(settings) else uv


def look(python):
    """What the interpreter at this path has, as LOOK prints it."""
    child = subprocess.run([str(python), "-c", LOOK], stdout=subprocess.PIPE)
    if child.returncode:
        raise Problem(f"found {python}, which cannot list its packages (above); expected a working Python")
    return json.loads(child.stdout)


def make_venv(folder, host):
    """Make the virtual environment; host is what `look` says of the Python that has a torch, or None."""
    options = ["--system-site-packages"] if host else []
    run(f"virtual environment in {folder.name}", [sys.executable, "-m", "venv", *options, folder])
    if host and sys.prefix != sys.base_prefix:
        # That torch lives in a virtual environment itself, and --system-site-packages looks past it.
        paths = folder.glob("lib/python3*/site-packages")
        (next(paths) / "torch_of_this_machine.pth").write_text("\n".join(host["folders"]) + "\n")
    shutil.copytree(LABCONFIG, folder / "etc" / "jupyter" / "labconfig", dirs_exist_ok=True)


def host_torch():
    """What this Python has when it can import torch, otherwise None."""
    if importlib.util.find_spec("torch") is None:
        return None
    if subprocess.call([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL):
        print(f"The torch of {sys.executable} does not import: .venv gets another, that one stays as it is.")
        return None
    host = look(sys.executable)
    print(f"Using the torch of {sys.executable}, {host['torch']}.")
    return host


def install_torch_from(index, python, wished):
    """Install the newest torch of an index that is not newer than the course's, and its own Triton."""
    if (urlsplit(index).hostname or "").endswith("amd.com"):  # has all that its torch needs, and a part for each card
        pip("torch from AMD's index", python, "--index-url", index, wished.replace("torch", f"torch{card_extra()}", 1))
        return
    only = ["--no-deps", "--index-url", index]
    pip("torch from TORCH_INDEX_URL", python, *only, "--force-reinstall", wished)
    needs = [need.partition(";")[0].strip() for need in look(python)["needs"] if "extra ==" not in need]
    if triton := [need for need in needs if "triton" in need]:  # its name is another one for each kind of GPU
        pip("the Triton of that torch", python, *only, *triton)


def card_extra(nodes=AMD_NODES):
    """The extra of AMD's torch for the cards that the driver names: [device-gfx942] for an MI300X, "" for none."""
    texts = "\n".join(file.read_text() for file in Path(nodes).glob("*/properties"))
    versions = {int(found) for found in re.findall(r"^gfx_target_version (\d+)$", texts, re.M)} - {0}  # a processor's
    parts = sorted(f"device-gfx{each // 10000}{each // 100 % 100:x}{each % 100:x}" for each in versions)
    return f"[{','.join(parts)}]" if parts else ""


def install_group(group, python, pins, jax):
    has = look(python)
    constraints = python.parent.parent / "constraints.txt"
    constraints.write_text("\n".join(pins_beside(has, pins)) + "\n")
    pip(f"packages: {group}", python, "--constraint", constraints, *wanted(group, has, jax))
    if jax:
        # It asks for a distribution named triton; a ROCm build's has another name.
        pip("jax-triton", python, "--constraint", constraints, "--no-deps", "jax-triton")


def jax_for(group, environ):
    """The JAX to install with this group: without a GPU the plain one, otherwise only on `make jax`.

    JAX_PACKAGE names another, such as `jax[cuda13]`, or `none`.
    """
    package = environ.get("JAX_PACKAGE") or "jax"
    without = package == "none" or group in ("dev", "hub", "class") or (group == "lab" and has_gpu())
    return None if without else package


def install(groups, pins, environ):
    """Bring .venv to what the groups need; returns at once when it is there already."""
    index = environ.get("TORCH_INDEX_URL", "")
    files = b"\0".join(file.read_bytes() for file in (CONSTRAINTS, ROOT / "pyproject.toml", Path(__file__)))
    asked = {group: hashlib.sha256(files + str(jax_for(group, environ)).encode()).hexdigest() for group in groups}
    stamps = VENV / "installed"  # what was installed, from which files, so that a second run returns at once
    there = {stamp.name: stamp.read_text() for stamp in stamps.glob("*")}
    python = VENV / "bin" / "python"
    fresh = not python.exists()
    if not fresh and index and there.get("torch") != index:
        raise Problem(
            "found a .venv whose torch is not from this TORCH_INDEX_URL; "
            "expected one torch per .venv: `make clean`, then run this again"
        )
    if not (missing := [group for group in groups if there.get(group) != asked[group]]):
        return
    check_venv_module()
    started = time.monotonic()
    LOG.write_text("")
    print(TAKES if fresh else "Bringing .venv up to date.", flush=True)
    try:
        stamps.mkdir(parents=True, exist_ok=True)
        if fresh:
            newest = next(pin for pin in pins if pin.startswith("torch==")).partition("==")[2]
            torch = f"torch>={OLDEST_TORCH},<={newest}"
            host = None if index else host_torch()
            make_venv(VENV, host)
            if index:
                install_torch_from(index, python, torch)
                (stamps / "torch").write_text(index)
            elif not host and find_uv(python):
                backend = environ.get("UV_TORCH_BACKEND", "auto")  # auto: uv asks the driver of the card
                pip("torch for this machine", python, f"--torch-backend={backend}", torch)
        for group in missing:
            install_group(group, python, pins, jax_for(group, environ))
            (stamps / group).write_text(asked[group])
        print(f"Done, in {time.monotonic() - started:.0f} s: everything is installed in {VENV.name}.", flush=True)
    except BaseException:
        if fresh:
            shutil.rmtree(str(VENV), ignore_errors=True)
        raise


def install_here(group, pins):
    """Install into this Python itself what is missing for notebooks. Every package that is there keeps its version."""
    has = look(sys.executable)
    there = {normal(name): version for name, version in has["installed"].items()}
    missing = [name for name in ONLINE[group] if normal(name) not in there]
    missing += [name for name in ("torch", "triton") if not has[name]]
    fixed = [f"{name}=={version}" for name, version in there.items() if name != "pip"]
    fixed += [pin for pin in pins if normal(pin.partition("==")[0]) not in {*there, "numpy"} | set(missing)]
    with tempfile.TemporaryDirectory() as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("\n".join(fixed) + "\n")
        if missing:
            pip("what is missing", sys.executable, "--quiet", "--constraint", constraints, *missing)
        if group == "online-jax" and "jax-triton" not in there:
            pip("jax-triton", sys.executable, "--quiet", "--no-deps", "jax-triton")


def main(arguments, environ=os.environ):
    groups = arguments or ["lab"]
    try:
        pins = [line for line in CONSTRAINTS.read_text().splitlines() if "==" in line]
        if groups[0] in ONLINE:
            install_here(groups[0], pins)
            return 0
        if unknown := [group for group in groups if group not in GROUPS]:
            raise Problem(f"found the group {unknown[0]}; expected {', '.join(GROUPS)}")
        check_machine(platform.system(), platform.machine(), platform.libc_ver()[0], sys.version_info[:2])
        install(groups, pins, environ)
    except (Problem, OSError) as problem:
        print(f"install: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninstall: stopped; run it again to continue", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
