"""What an answer launches, read off its traces. They are not trusted: they come from a box."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

MAX_ENTRIES = 64  # in one configuration
MAX_TYPES = 4  # lists of parameter types of an answer; they travel in one small message
TYPES = {"i1", "fp16", "bf16", "fp32", "fp64"} | {f"{s}{n}" for s in "iu" for n in (8, 16, 32, 64)}
MAX_CONFIGURATIONS = 32  # of a space: what is more is not tried
# Entries of a configuration that are launch options, not arguments of the kernel.
OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack"}


def launches(trace: dict | None) -> list[dict]:
    return [s for s in (trace or {}).get("steps", ()) if isinstance(s, dict) and s.get("op") == "launch"]


def programs(trace: dict | None) -> list[int]:
    """The number of programs of each launch."""
    return [math.prod(s["grid"]) for s in launches(trace) if _is_grid(s.get("grid"))]


def types(traces: Iterable[dict]) -> tuple[tuple[str, ...], ...]:
    """The different lists of parameter types. A GPU's launcher depends on nothing else of a kernel."""
    given = (step.get("given") for trace in traces for step in launches(trace))
    lists = (tuple(map(_type, each)) for each in given if isinstance(each, list))
    return tuple(dict.fromkeys(each for each in lists if None not in each and len(each) <= MAX_ENTRIES))[:MAX_TYPES]


def _type(argument: object) -> str | None:
    """A type of TYPES, or of any pointer; None for what the launcher's source must not contain."""
    name = str(argument[-1]) if isinstance(argument, list) and argument else ""
    return "*i8" if re.fullmatch(r"\*\w+", name) else name if name in TYPES else None


def constants_of(step: dict) -> dict:
    """The arguments of a launch that are constants of its program."""
    args, given = step.get("args"), step.get("given")
    given = {str(each[0]) for each in given if isinstance(each, list) and each} if isinstance(given, list) else set()
    return {name: value for name, value in args.items() if name not in given} if isinstance(args, dict) else {}


def digests(traces: Iterable[dict]) -> set[str]:
    """The programs that the launches of these traces name."""
    steps = (step for trace in traces for step in launches(trace))
    return {name for step in steps for name in (step.get("program"), step.get("hip")) if isinstance(name, str)}


def _is_grid(grid: object) -> bool:
    return isinstance(grid, list) and all(type(n) is int and n >= 0 for n in grid)


def constants(trace: dict) -> tuple[int, ...]:
    """Integers among the launch arguments: block sizes are among them."""
    arguments = [s["args"].values() for s in launches(trace) if isinstance(s.get("args"), dict)]
    found = [v for values in arguments for v in values if type(v) is int and v >= 2 and v & (v - 1) == 0]
    return tuple(dict.fromkeys(found))[:8]


def block(trace: dict) -> int:
    """Elements of a program's block: the largest argument of the last launch that is called BLOCK…; 0 if none is."""
    steps = [s for s in trace.get("steps", ()) if isinstance(s, dict) and isinstance(s.get("args"), dict)]
    args = steps[-1]["args"] if steps else {}
    return max((v for k, v in args.items() if "BLOCK" in k.upper() and type(v) is int and 1 < v <= 1 << 20), default=0)


def sides(trace: dict) -> int:
    """How many lengths of blocks the last launch has among its constants."""
    found = constants_of(steps[-1]) if (steps := launches(trace)) else {}
    return sum(type(value) is int and 1 < value <= 1 << 20 and value & (value - 1) == 0 for value in found.values())


def tuned_launches(trace: dict) -> Iterator[dict]:
    """The launches of a trace that went through @triton.autotune. The trace is not trusted."""
    for step in trace.get("steps", ()):
        tuned = step.get("tuned") if isinstance(step, dict) else None
        if not isinstance(tuned, dict) or not isinstance(step.get("args"), dict):
            continue
        space, key = tuned.get("space"), tuned.get("key")
        if isinstance(space, list) and isinstance(key, list) and all(map(_is_configuration, space)):
            yield step


def _is_configuration(value: object) -> bool:
    return isinstance(value, dict) and len(value) <= MAX_ENTRIES
