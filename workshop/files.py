"""Files that are replaced in one step: a reader finds the old one or the new one whole."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path


def replace_json(path: Path, content: dict, mode: int = 0o600) -> None:
    """Write a JSON object in place of what was there. Raises OSError."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.fchmod(handle, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
