"""Scripts in forks of one process that has imported the large packages, which take longest to import.

Nothing of the course is imported there, and no Triton: a script's own imports are those of a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SERVER = """
import gc, json, os, sys
gc.disable()
sys.modules["rfc3987_syntax"] = None  # as in conftest.py
import matplotlib.pyplot, numpy, pandas, torch
gc.freeze()
gc.set_threshold(20_000, 20, 50)  # as in conftest.py, too
gc.enable()

for line in sys.stdin:
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
asked = json.loads(line)
os.chdir(asked["folder"])
os.environ.pop("TRITON_INTERPRET", None)
os.environ.update(asked["environment"])
sys.argv[:] = asked["arguments"]
sys.path[:1] = [os.path.dirname(sys.argv[0]), asked["root"], os.path.join(asked["root"], "tests")]
sys.stdin = open(os.devnull)
for descriptor, file in enumerate((asked["out"], asked["err"]), 1):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Forks:
    """The process, as long as the `with` block."""

    def __enter__(self) -> Forks:
        command = [sys.executable, "-c", SERVER]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *error) -> None:
        self._server.stdin.close()
        self._server.wait()

    def run(self, script: str | Path, *arguments: str, folder: Path = ROOT, **environment: str) -> Done:
        """Runs a script, or the text of one, in a folder."""
        with tempfile.TemporaryDirectory() as own:
            file, out, err = (Path(own, name) for name in ("script.py", "out", "err"))
            if isinstance(script, str):
                file.write_text(script)
                script = file
            asked = {"arguments": [str(script), *arguments], "folder": str(folder), "root": str(ROOT)}
            asked |= {"environment": environment, "out": str(out), "err": str(err)}
            print(json.dumps(asked), file=self._server.stdin, flush=True)
            status = int(self._server.stdout.readline())
            return Done(status, out.read_text(), err.read_text())
