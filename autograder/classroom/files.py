"""Files of a course: written whole or not at all, read with care, told apart by hashes; what a wrong call raises."""

import hashlib
import json
import os
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path


class CourseError(Exception):
    """The call itself was wrong. The message is one line: what was found, what was expected, what to do."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, finds the old one or the new one whole.

    Not workshop/shared.py, which does the same: to import anything of `workshop` costs the import of torch.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say where it is
            error.filename = str(path)
        raise


def stamped_time(text: str) -> datetime:
    """The time in nbgrader's timestamp.txt. ValueError if it is none, or has no zone, or one that is a mere name."""
    time = datetime.fromisoformat(re.sub(r" UTC$", "+00:00", text.strip()))
    if time.tzinfo is None:
        raise ValueError("it has no time zone")
    return time.astimezone(UTC)


def read_timestamp(path: Path) -> datetime | None:
    """The time in a timestamp.txt or collected.txt, None if there is none."""
    try:
        return stamped_time(path.read_text())
    except (ValueError, OverflowError, OSError):
        return None


def read_json(path: Path) -> dict:
    """A JSON object that the course keeps; {} if there is none."""
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def file_hash(path: Path) -> str:
    """Says whether a submitted file is the same; "" if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def hash_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "replace")).hexdigest()
