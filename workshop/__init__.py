"""What a lesson's notebook imports: facts about this device, measuring, looking inside a compiled kernel, hints.

On a machine without a GPU, kernels run on the CPU from then on: on `workshop.executor`.
"""

import sys
from pathlib import Path

from workshop import backend
from workshop.doctor import doctor
from workshop.progress import here, progress, record, share_progress

_program = Path(sys.argv[0]).name if sys.argv else ""
_missing: Exception | None = None
try:
    # `workshop --help` answers before torch and triton are imported: each subcommand imports what it needs.
    if _program == "workshop" or (_program == "-m" and "workshop.cli" in sys.orig_argv):
        raise ImportError("the `workshop` command does not load the whole package")
    with backend.uncollected():
        on_executor = backend.choose()
        import triton as _triton  # noqa: F401  the doctor must also work where it is missing

        from workshop import jax_import, launching

        if on_executor:
            launching.install()
        jax_import.install()
        from workshop.bench import compare, matches, recorded
        from workshop.compiling import xray
        from workshop.device import KNOWN_DEVICES, Device, DeviceFacts, device
        from workshop.hints import hint, ladder, solution
        from workshop.occupancy import num_programs, occupancy
        from workshop.sanitize import sanitize
        from workshop.syllabus import glossary
        from workshop.traffic import count_bytes
except (ImportError, OSError) as error:  # OSError: a library that a torch wheel needs
    _missing = error

__all__ = [
    "DEVICE", "KNOWN_DEVICES", "Device", "DeviceFacts", "compare", "count_bytes", "device", "doctor", "glossary",
    "here", "hint", "ladder", "matches", "num_programs", "occupancy", "progress", "record", "recorded", "sanitize",
    "share_progress", "solution", "xray",
]  # fmt: skip


def __getattr__(name: str):
    if name == "DEVICE" and _missing is None:
        return backend.torch_device()
    if name in __all__:
        raise ImportError(f"{_missing}. Run `workshop doctor`: it says what to install.")
    raise AttributeError(f"module 'workshop' has no attribute {name!r}")
