"""A closer look at a kernel that harmed the card: NVIDIA's compute-sanitizer, where it is installed.

It names the kernel, the line and the program of an access outside of every tensor. It watches a process through
sockets that the box refuses, so it is asked about one's own code only, where nothing is confined.

    python -m autograder.box.sanitizer JOB      inside: replays the job that lies in a file
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

TOOL = "compute-sanitizer"
SECONDS = 60
_INVALID = re.compile(
    r"Invalid __\w+__ (?P<kind>read|write) of size (?P<size>\d+) bytes\s+=+\s+"
    r"at (?P<kernel>\w+)\+\S+ in [^\n]*:(?P<line>\d+)\s+=+\s+"
    r"by thread \([\d,]+\) in block \((?P<program>[\d,]+)\)"
)


@dataclass(frozen=True)
class Access:
    """An access outside of every tensor; `kind` is "load" or "store", `size` in bytes."""

    kind: str
    size: int
    kernel: str
    line: int
    program: tuple[int, ...]


def available() -> bool:
    return shutil.which(TOOL) is not None


def invalid_access(job: bytes, environment: dict[str, str]) -> Access | None:
    """The first one of a replay on a CUDA card; None where there is none, or the tool does not work."""
    with tempfile.TemporaryDirectory() as folder:
        request, log = os.path.join(folder, "job"), os.path.join(folder, "log")
        with open(request, "wb") as file:
            file.write(job)
        command = [TOOL, "--log-file", log, "--print-limit", "1", "--show-backtrace", "no"]
        command += [sys.executable, "-m", __spec__.name, request]
        # each tensor an allocation of its own: in torch's large ones a step outside is not seen
        own = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "HOME": folder, "TMPDIR": folder, "TRITON_CACHE_DIR": folder}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment | own, capture_output=True, timeout=SECONDS)
        try:
            with open(log) as file:
                return parse(file.read())
        except OSError:
            return None


def parse(log: str) -> Access | None:
    found = _INVALID.search(log)
    return found and Access(
        kind="load" if found["kind"] == "read" else "store",
        size=int(found["size"]),
        kernel=found["kernel"],
        line=int(found["line"]),
        program=tuple(map(int, found["program"].split(","))),
    )


def main(path: str):
    from .inside import jobs

    job = os.open(path, os.O_RDONLY)
    request, base = jobs._read_request(job)
    tensors = memoryview(mmap.mmap(job, 0, access=mmap.ACCESS_READ))[base:]
    jobs._silence()
    out = mmap.mmap(-1, max(request["output_size"], 1))
    jobs.replay({"backend": "cuda"}, request, tensors, out, jobs.Reporter(os.open(os.devnull, os.O_WRONLY)))


if __name__ == "__main__":
    main(sys.argv[1])
