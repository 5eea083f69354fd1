"""What an answer launches, read off its traces and specialisations. Neither is trusted: they come from a box."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ..box.wire import Specialisation
from ..exercises.spec import Planned

MAX_ENTRIES = 64  # in one configuration
MAX_TYPES = 4  # lists of parameter types of an answer; they travel in one small message
TYPES = {"constexpr", "i1", "fp16", "bf16", "fp32", "fp64"} | {f"{s}{n}" for s in "iu" for n in (8, 16, 32, 64)}
MAX_CONFIGURATIONS = 32  # of a space: what is more is not tried
# Entries of a configuration that are launch options, not arguments of the kernel.
OPTIONS = {"num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack"}


def planned(trace: dict | None) -> Planned | None:
    """What a trace says about its launches; None without a launch."""
    if not (counts := programs(trace)):
        return None
    most, known = max(counts), constants(trace)
    block = max([c for c in known if c != most] or known, default=1)  # a constant may be the number of programs
    for step in tuned_launches(trace):
        names = {name for configuration in step["tuned"]["space"] for name in configuration} - OPTIONS
        chosen = {k: v for k, v in step["args"].items() if k in names and type(v) is int and abs(v) < 1 << 31}
        return Planned(most, block, chosen, len(step["tuned"]["space"]))
    return Planned(most, block)


def _launches(trace: dict | None) -> list[dict]:
    return [s for s in (trace or {}).get("steps", ()) if isinstance(s, dict) and s.get("op") == "launch"]


def programs(trace: dict | None) -> list[int]:
    """The number of programs of each launch."""
    return [math.prod(s["grid"]) for s in _launches(trace) if _is_grid(s.get("grid"))]


def types(specialisations: Iterable[Specialisation]) -> tuple[tuple[str, ...], ...]:
    """The different lists of parameter types. A GPU's launcher depends on nothing else of a kernel."""
    lists = (tuple(map(_type, each.parameters.values())) for each in specialisations)
    return tuple(dict.fromkeys(each for each in lists if None not in each and len(each) <= MAX_ENTRIES))[:MAX_TYPES]


def _type(parameter: dict) -> str | None:
    """A type of TYPES, or of any pointer; None for what the launcher's source must not contain."""
    name = str(parameter.get("type", "constexpr"))
    return "*i8" if name.startswith("*") else name if name in TYPES else None


def _is_grid(grid: object) -> bool:
    return isinstance(grid, list) and all(type(n) is int and n >= 0 for n in grid)


def constants(trace: dict) -> tuple[int, ...]:
    """Integers among the launch arguments: block sizes are among them."""
    arguments = [s["args"].values() for s in _launches(trace) if isinstance(s.get("args"), dict)]
    found = [v for values in arguments for v in values if type(v) is int and v >= 2 and v & (v - 1) == 0]
    return tuple(dict.fromkeys(found))[:8]


def block(trace: dict) -> int:
    """Elements of a program's block: the largest argument of the last launch that is called BLOCK…; 0 if none is."""
    steps = [s for s in trace.get("steps", ()) if isinstance(s, dict) and isinstance(s.get("args"), dict)]
    args = steps[-1]["args"] if steps else {}
    return max((v for k, v in args.items() if "BLOCK" in k.upper() and type(v) is int and 1 < v <= 1 << 20), default=0)


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
