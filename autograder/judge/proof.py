"""Tests the judge before its first verdict: a known right answer must pass, and known wrong ones must get their slugs.

The known answers are judged in the same way as a learner's answer. A success is stored for this machine and these
versions, so the test runs only once. If it fails, the installation is at fault, and no learner gets a verdict.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path

import torch

from workshop.syllabus import Lesson

from ..box import BoxError
from ..exercises.spec import Bound, Case, Exercise, Mistake, Strided
from ..versions import stack
from . import compiling


class CannotJudge(BoxError):
    """This installation gives a wrong verdict on a known answer."""


# An exercise, and answers with the verdict of a working judge on each: a slug, or None if the answer passes.
Known = tuple[Exercise, dict[str, str | None]]


def prove(judge, kind: str) -> None:
    """Raises CannotJudge unless `judge` gives the known verdicts on the known answers of this kind.

    judge: a Judge. kind: one of KINDS. Runs nothing if this machine passed before with these versions.
    """
    remembered = _remembered(judge.backend, judge.box.confine, kind)
    if remembered.exists():
        return
    exercise, answers = KINDS[kind]()
    for source, slug in answers.items():
        verdict = judge.verdict_on(exercise, source)
        if verdict.diagnosis != slug or verdict.passed == bool(slug):
            versions = ", ".join(f"{name} {version}" for name, version in stack().items())
            expected = f"a wrong answer ({slug})" if slug else "a right answer"
            got = "passed" if verdict.passed else f"{verdict.diagnosis}: {' '.join(verdict.message.split())[:300]}"
            raise CannotJudge(
                f"this installation cannot judge {kind} exercises ({versions}; {judge.backend}). No points are lost. "
                f"The judge tested {expected} that it knows, and got: {got} What to do: run `workshop doctor`, and "
                "install versions of torch and Triton that README lists as tested."
            )
    with contextlib.suppress(OSError):  # without a home folder, each process runs the test again
        remembered.parent.mkdir(parents=True, exist_ok=True)
        remembered.touch()


def _remembered(backend: str, confined: bool, kind: str) -> Path:
    """The file that records a success. Its name depends on all versions and on the judge's own code."""
    seen = [platform.node(), backend, str(confined), kind, str(stack()), _code()]
    name = hashlib.sha256("\0".join(seen).encode()).hexdigest()[:32]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "triton-workshop", "proofs", name)


@functools.cache
def _code() -> str:
    package = Path(__file__).parents[1]
    files = (each for room in (package, package.parent / "workshop") for each in room.rglob("*.*"))
    ours = sorted(each for each in files if each.suffix in (".py", ".toml"))
    return hashlib.sha256(b"".join(each.read_bytes() for each in ours)).hexdigest()


_ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def largest(row_ptr, n_cols, BLOCK: tl.constexpr):
    found = -float("inf")
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        found = tl.maximum(found, tl.max(tl.load(row_ptr + columns, columns < n_cols, -float("inf")), axis=0))
    return found


@triton.jit
def row_kernel(x_ptr, out_ptr, x_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = largest(x_ptr + row * x_stride, n_cols, BLOCK)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n_cols, other=-float("inf"))
        total += tl.sum(tl.exp(x - top), axis=0)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n_cols)
        tl.store(out_ptr + row * n_cols + columns, tl.exp(x - top) / total, mask=columns < n_cols)


def rows(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    row_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=16)
    return out
"""


def _drawn(columns: int, row_stride: int | None = None):
    return lambda generator: (Strided(torch.randn(3, columns, generator=generator), row_stride),)


_ROWS_EXERCISE = Exercise(
    lesson=Lesson("rows", "", 1),
    entry="rows",
    signature="rows(x)",
    cases=(
        Case("3 × 21, ragged", _drawn(21), "ragged"),
        Case("3 × 16, row stride 19", _drawn(16, 19), "strided"),
    ),
    reference=lambda x: torch.softmax(x.double(), dim=1),
    bounds={torch.float32: Bound(1e-5)},
    mistakes=(Mistake("constant-factor", lambda x: 2 * torch.softmax(x.double(), dim=1), "Twice.", "Halve it."),),
)


def _kernels() -> Known:
    unmasked = _ROWS.replace("total, mask=columns < n_cols)", "total)")
    doubled = _ROWS.replace("tl.exp(x - top) / total", "2 * tl.exp(x - top) / total")
    retyped = _ROWS.replace("total = 0.0", "total = 0")  # Triton's front end refuses it
    answers = {_ROWS: None, unmasked: "out-of-bounds-store", doubled: "constant-factor"}
    return _ROWS_EXERCISE, answers | ({retyped: "compile-error"} if compiling.TARGETS else {})


_VALUE_EXERCISE = Exercise(
    lesson=Lesson("double", "", 1),
    kind="value",
    entry="double",
    signature="double(n)",
    cases=tuple(Case(f"n = {n}", lambda _, n=n: (n,)) for n in (3, 7)),
    reference=lambda n: 2 * n,
)


def _values() -> Known:
    right, wrong = (f"def double(n):\n    return {factor} * n\n" for factor in (2, 3))
    return _VALUE_EXERCISE, {right: None, wrong: "wrong-value"}


def _compiled() -> Known:
    """A copy of 16-bit numbers. For an MI300X, its loads and stores have the maximum width of 128 bits."""
    from ..exercises.amd import TARGET, widths_of_a_copy

    exercise = Exercise(
        lesson=Lesson("widths", "", 1),
        kind="value",
        entry="widths",
        signature="widths()",
        cases=(Case(TARGET, lambda _: ()),),
        reference=widths_of_a_copy,
    )
    right, wrong = (f"def widths():\n    return {{'load': {bits}, 'store': 128}}\n" for bits in (128, 16))
    return exercise, {right: None, wrong: "wrong-value"}


_JAX = """
import jax
import jax_triton as jt
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, n, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, 2 * x, mask=offsets < n)


def twice(x):
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (triton.cdiv(x.size, 16),)
    return jt.triton_call(x, x.size, kernel=double_kernel, out_shape=out, grid=grid, BLOCK=16)
"""


def _jax() -> Known:
    exercise = Exercise(
        lesson=Lesson("twice", "", 1),
        kind="jax",
        limit_seconds=15.0,
        entry="twice",
        signature="twice(x)",
        cases=(Case("3 × 21, ragged", _drawn(21), "ragged"),),
        reference=lambda x: 2 * x.double(),
        bounds={torch.float32: Bound(1e-6)},
    )
    return exercise, {_JAX: None, _JAX.replace("2 * x", "3 * x"): "constant-factor"}


KINDS: dict[str, Callable[[], Known]] = {"kernel": _kernels, "value": _values, "jax": _jax, "compiler": _compiled}
