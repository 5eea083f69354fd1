"""Triton without its library: what of it is Python works where `libtriton` has no binary, such as on macOS.

Then kernels can be read and run by this executor, but not compiled: `native()` says so.
"""

from __future__ import annotations

import enum
import importlib
import os
import sys
import types

# The enumerations of Triton 3.4 to 3.9.
ENUMERATIONS = {
    "ATOMIC_OP": ["ADD", "FADD", "AND", "OR", "XOR", "XCHG", "MAX", "MIN", "UMIN", "UMAX"],
    "CACHE_MODIFIER": ["NONE", "CA", "CG", "WB", "CS", "WT", "CV"],
    "DESCRIPTOR_REDUCE_KIND": ["ADD", "AND", "OR", "XOR", "MAX", "MIN", "INC", "DEC"],
    "EVICTION_POLICY": ["NORMAL", "EVICT_FIRST", "EVICT_LAST"],
    "INPUT_PRECISION": ["TF32", "TF32x3", "IEEE", "BF16x3", "BF16x6"],
    "MEM_SEMANTIC": ["ACQUIRE_RELEASE", "ACQUIRE", "RELEASE", "RELAXED"],
    "MEM_SYNC_SCOPE": ["GPU", "CTA", "SYSTEM"],
    "PADDING_OPTION": ["PAD_ZERO", "PAD_NAN"],
    "PROPAGATE_NAN": ["NONE", "ALL"],
    "ROUNDING_MODE": ["RTZ", "RTNE"],
    "ScaleDotElemTypeTY": ["E4M3", "E5M2", "E2M3", "E3M2", "E2M1", "BF16", "FP16"],
}
NAME = "triton._C.libtriton"
_PARTS = ["amd", "gluon_ir", "gsan_testing", "interpreter", "ir", "linear_layout", "llvm", "nvidia", "passes", "proton"]


def install() -> bool:
    """Import triton, with stand-ins for its library if that cannot be loaded. Returns whether they are needed.

    Raises ImportError where there is no Triton at all.
    """
    if native():
        return False
    if isinstance(sys.modules.get(NAME), _StandIn):
        return True
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:  # half of it was imported
        del sys.modules[name]
    package = types.ModuleType("triton._C")
    package.__path__ = []
    library = package.libtriton = _StandIn(NAME)
    sys.modules |= {"triton._C": package, NAME: library}
    for part in _PARTS:
        sys.modules[f"{NAME}.{part}"] = _StandIn(f"{NAME}.{part}")
        setattr(library, part, sys.modules[f"{NAME}.{part}"])
    vars(library.ir).update({kind: enum.Enum(kind, names) for kind, names in ENUMERATIONS.items()})
    library.ir.deduce_scale_factor = _scale_factor
    library.getenv = os.environ.get
    library.getenv_bool = lambda name, default=False: os.environ.get(name, str(default)).lower() in ("1", "true", "on")
    library.get_cache_invalidating_env_vars = dict
    importlib.import_module("triton")._C = package
    return True


def native() -> bool:
    """Whether Triton's library is here, so that kernels can be compiled."""
    try:
        return not isinstance(importlib.import_module(NAME), _StandIn)
    except ImportError:
        return False


class _Anything(type):
    """A class with any attribute: Triton's modules name many when they are loaded, and call none of them."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Anything(name, (), {}))
        return vars(self)[name]


class _StandIn(types.ModuleType):
    __path__: list[str] = []
    __getattr__ = _Anything.__getattr__


def _scale_factor(left, left_scale, left_format, left_packed, right, right_scale, right_format, right_packed) -> int:
    """How many numbers of a scaled matrix product share a scale (Triton 3.9). The arguments are shapes and formats."""
    sides = (left[-1], left_scale, left_format, left_packed), (right[-2], right_scale, right_format, right_packed)
    for length, scale, format, packed in sides:
        if scale:
            return length * (2 if format.name == "E2M1" and packed else 1) // scale[-1]
    return 32
