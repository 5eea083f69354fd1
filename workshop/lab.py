"""Open the course in JupyterLab: `python3 workshop/lab.py`. Its address is printed, and Ctrl-C ends it quietly.

Standard library only. What Jupyter says goes into lab.log: none of it is for learners.
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "lab.log"
JUPYTER = ROOT / ".venv" / "bin" / "jupyter"
OPTIONS = [
    "--ServerApp.ip=127.0.0.1",
    "--LabApp.default_url=/lab/tree/notebooks/00_setup.ipynb",
    "--ServerApp.answer_yes=True",  # Ctrl-C asks no question
]


def main(arguments):
    """Runs JupyterLab until Ctrl-C. Returns its exit status if it ends by itself."""
    as_root = ["--allow-root"] if os.getuid() == 0 else []  # in a container one often is
    print("Opening the course …", flush=True)
    with open(LOG, "w", encoding="utf-8") as log:
        command = [str(JUPYTER), "lab", *as_root, *OPTIONS, *arguments]
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    try:
        while child.poll() is None:
            # Its address has a token, and is said as soon as the server listens.
            if found := re.search(r"http://127\.0\.0\.1\S+", LOG.read_text(errors="replace")):
                print(f"The course is open at\n\n    {found[0]}\n\nCtrl-C here ends it.", flush=True)
                break
            time.sleep(0.1)
        status = child.wait()
    except KeyboardInterrupt:  # Jupyter has heard it, too, and ends its kernels
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once more: it is ending already
        print("\nEnding …", flush=True)
        child.wait()
        return 0
    if status:
        print("\n".join(LOG.read_text(errors="replace").splitlines()[-15:]), file=sys.stderr)
        print(f"lab: JupyterLab ended with status {status}; what it said is in {LOG.name}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
