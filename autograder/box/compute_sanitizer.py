"""Finds the invalid access of a kernel that failed on a GPU, with NVIDIA's compute-sanitizer if it is installed.

It names the kernel, the line and the program of an access outside of every tensor. It watches a process through
sockets, which the box refuses. So it is used only for your own code, without confinement. This module is the judge's
end. The watched process runs `inside.replay`.
"""

from __future__ import annotations

import contextlib
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
    """An access outside of every tensor. `kind` is "load" or "store"; `size` is in bytes."""

    kind: str
    size: int
    kernel: str
    line: int
    program: tuple[int, ...]


def available() -> bool:
    return shutil.which(TOOL) is not None


def invalid_access(job: bytes, output_size: int, environment: dict[str, str]) -> Access | None:
    """The first invalid access of a replay on a CUDA GPU; None if there is none or the tool does not work.

    job: the memory of a replay, see wire.requests.encode_job.
    """
    with tempfile.TemporaryDirectory() as folder:
        request, log = os.path.join(folder, "job"), os.path.join(folder, "log")
        with open(request, "wb") as file:
            file.write(job)
        command = [TOOL, "--log-file", log, "--print-limit", "1", "--show-backtrace", "no"]
        command += [sys.executable, "-m", f"{__package__}.inside.replay", request, str(output_size)]
        # Each tensor needs its own allocation: in a large one, an access outside of a tensor is not detected.
        own = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "HOME": folder, "TMPDIR": folder, "TRITON_CACHE_DIR": folder}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment | own, capture_output=True, timeout=SECONDS)
        try:
            with open(log) as file:
                return parse(file.read())
        except OSError:
            return None


def parse(log: str) -> Access | None:
    """The first access that a log of compute-sanitizer names."""
    found = _INVALID.search(log)
    return found and Access(
        kind="load" if found["kind"] == "read" else "store",
        size=int(found["size"]),
        kernel=found["kernel"],
        line=int(found["line"]),
        program=tuple(map(int, found["program"].split(","))),
    )
