"""What an attendee needs, and how long a room waits: memory and processor time, measured.

    python benchmarks/room.py                    one attendee: idle, then checking -> recorded/room.json
    python benchmarks/room.py --at-once 20       so many press check at once -> a line of the table
    python benchmarks/room.py --card 8           timed cells and checks on one card

An attendee here is a server's kernel: a Python process that has imported what a lesson imports, with its box. The
memory is proportional set size: what processes share is divided among them. A JupyterLab server comes on top of it,
and is measured too.
"""

import argparse
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
import urllib.request
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from autograder.versions import stack  # noqa: E402
from workshop.hints import solution_source  # noqa: E402

EXERCISE = "vector_add"
CHECKS = 10
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n\n"
# A kernel of a notebook, without the notebook: it waits for a line, checks, and says how long that took.
ATTENDEE = """
import sys, time
import importlib.util, workshop, torch, triton
for name in ("matplotlib.pyplot", "pandas"):
    importlib.util.find_spec(name.partition(".")[0]) and importlib.import_module(name)
from autograder.notebook import judge
source = open(sys.argv[1]).read()
judge().start()
if sys.argv[2] == "warm":
    judge().judge("first_kernel", "")
print("ready", flush=True)
for line in sys.stdin:
    began = time.monotonic()
    verdict = judge().judge("vector_add", source)
    print(verdict.passed, verdict.diagnosis, round(time.monotonic() - began, 2), flush=True)
"""


def memory(process) -> int:
    """Bytes of a psutil.Process and its children, shared pages divided among those who share them."""
    import psutil

    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def process(number: int):
    import psutil

    return psutil.Process(number)


class Attendee:
    def __init__(self, source: Path, warm: bool = True):
        command = [sys.executable, "-c", ATTENDEE, str(source), "warm" if warm else ""]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ready(self) -> None:
        assert self.child.stdout.readline().strip() == "ready"

    def press(self) -> None:
        self.child.stdin.write("check\n")
        self.child.stdin.flush()

    def verdict(self) -> tuple[bool, float]:
        passed, _, seconds = self.child.stdout.readline().split()
        return passed == "True", float(seconds)

    def leave(self) -> None:
        self.child.stdin.close()
        self.child.wait(timeout=60)


def lab_memory() -> int:
    """Bytes of an idle JupyterLab server without a kernel."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ServerApp.ip=127.0.0.1", "--allow-root"]
    child = subprocess.Popen(
        [*command, f"--ServerApp.port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/tmp"
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api").close()
                break
            time.sleep(0.2)
        time.sleep(3)
        return memory(process(child.pid))
    finally:
        child.terminate()
        child.wait(timeout=30)


def about(gpu: str = "no GPU") -> str:
    here = stack()
    versions = ", ".join(f"{name} {here[name]}" for name in ("python", "torch", "triton"))
    return f"{os.cpu_count()} cores, {gpu}, {versions}, {date.today().isoformat()}"


def one(source: Path) -> dict:
    lab = lab_memory()
    attendee = Attendee(source)
    attendee.ready()
    time.sleep(2)
    most = idle = memory(process(attendee.child.pid))
    seconds = []
    for _ in range(CHECKS):
        attendee.press()
        while not select.select([attendee.child.stdout], [], [], 0.02)[0]:
            most = max(most, memory(process(attendee.child.pid)))
        passed, taken = attendee.verdict()
        assert passed
        seconds.append(taken)
    attendee.leave()
    return {
        "idle_bytes": lab + idle,
        "checking_bytes": lab + most,
        "lab_bytes": lab,
        "check_seconds": min(seconds),
        "about": about(),
    }


def at_once(source: Path, number: int) -> dict:
    attendees = [Attendee(source) for _ in range(number)]
    for attendee in attendees:
        attendee.ready()
    began = time.monotonic()
    for attendee in attendees:
        attendee.press()
    said = [attendee.verdict() for attendee in attendees]
    wall = time.monotonic() - began
    for attendee in attendees:
        attendee.leave()
    seconds = sorted(taken for _, taken in said)
    return {
        "attendees": number,
        "passed": sum(passed for passed, _ in said),
        "first_seconds": seconds[0],
        "median_seconds": seconds[number // 2],
        "last_seconds": seconds[-1],
        "wall_seconds": round(wall, 1),
        "load_before": os.getloadavg()[0],
        "about": about(),
    }


# Two timed cells of one card, side by side: a copy of 64 Mi numbers, measured by the course's own `compare`.
TIMED = """
import torch
from workshop import DEVICE, bench, compare
found = compare({"clone": lambda x: x.clone()}, lambda n: (torch.ones(n, device=DEVICE),), [1 << 26],
                lambda x: 2 * x.nbytes, repeats=100)
row = next(row for row in found.rows if row.provider == "clone")
print("speed", row.gbps.median, row.of_copy, flush=True)
"""


def timed(number: int) -> list[dict]:
    """Run so many timed cells at once. GB/s and the share of the copy of each, and what was said of waiting."""
    command = [sys.executable, "-c", TIMED]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
        for _ in range(number)
    ]
    found = []
    for child in children:
        lines = child.communicate(timeout=300)[0].splitlines()
        speed, share = next(line.split()[1:] for line in lines if line.startswith("speed"))
        waited = [line for line in lines if "wait" in line]
        found.append({"gbps": round(float(speed)), "of_copy": round(float(share), 3), "said": waited})
    return found


def on_a_card(source: Path, number: int) -> dict:
    """A timed cell alone, two at once, and two beside so many attendees who check."""
    import torch

    alone, two = timed(1), timed(2)
    attendees = [Attendee(source) for _ in range(number)]
    for attendee in attendees:
        attendee.ready()
    for attendee in attendees:
        attendee.press()
    beside = timed(2)
    said = [attendee.verdict() for attendee in attendees]
    for attendee in attendees:
        attendee.leave()
    return {
        "attendees": number,
        "passed": sum(passed for passed, _ in said),
        "last_seconds": max(seconds for _, seconds in said),
        "timed_alone": alone,
        "two_timed": two,
        "two_timed_beside_checks": beside,
        "about": about(torch.cuda.get_device_name()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, metavar="N")
    parser.add_argument("--card", type=int, metavar="N", help="two timed cells, and N who check, on one card")
    parser.add_argument("--json", type=Path, help="keep what was measured")
    options = parser.parse_args()
    source = Path(f"/tmp/room-{os.getpid()}.py")
    source.write_text(IMPORTS + solution_source(EXERCISE))
    try:
        if options.card:
            found = on_a_card(source, options.card)
        else:
            found = at_once(source, options.at_once) if options.at_once else one(source)
    finally:
        source.unlink()
    print(json.dumps(found, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
