"""Launchers of kernels, built before the job that needs them.

Triton 3.6 and older compile a C function for each list of parameter types, in 0.2 s. It follows from the types alone,
not from a learner's code. The zygote builds it while the answer's host function runs in a child, and later children
copy it. Newer versions of Triton build none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest import mock

from triton.runtime import driver

# Of a compiled kernel. A launcher reads these when it runs, not when it is built.
_METADATA = dict.fromkeys(("launch_cooperative_grid", "launch_pdl", "global_scratch_size", "global_scratch_align",
                           "profile_scratch_size", "profile_scratch_align"), 0)  # fmt: skip
_UNNAMED = SimpleNamespace(arg_names=[])

_tried: set[tuple[str, ...]] = set()


def build(kinds: Iterable[tuple[str, ...]], folder: str) -> None:
    """Builds the launchers for these lists of types, such as ("*fp32", "i32", "constexpr"), each of them once."""
    new = set(kinds) - _tried
    if not new:
        return
    _tried.update(new)
    with mock.patch.dict(os.environ, TRITON_CACHE_DIR=folder), ThreadPoolExecutor(len(new)) as pool:
        list(pool.map(_build, new))


def _build(types: tuple[str, ...]) -> None:
    constants = {(i,): None for i, each in enumerate(types) if each == "constexpr"}
    source = SimpleNamespace(fn=_UNNAMED, constants=constants, signature=dict(enumerate(types)))
    with contextlib.suppress(Exception):  # then the job builds its own
        driver.active.launcher_cls(source, SimpleNamespace(**_METADATA, num_ctas=1, warp_size=64))


def copy(folder: str, scratch: str) -> None:
    """Puts the launchers that were built so far into the cache of a job."""
    with contextlib.suppress(OSError):  # none was built, or one is being written
        shutil.copytree(folder, scratch, dirs_exist_ok=True)
