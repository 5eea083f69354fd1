"""What a launch tells the compiler: the types of its arguments, its constants and its options.

Runs in a child of the zygote, beside the learner's code.
"""

from __future__ import annotations

import operator

from triton.runtime import KernelInterface

from workshop.xray_request import bind

from ..wire import Specialisation
from ..wire.answers import MAX_SPECIALISATIONS
from ..wire.codec import to_json

MAX_CHARACTERS = 8000  # of all specialisations of a case as JSON: they must fit into its report
MAX_THREADS = 1024  # of one program, on NVIDIA's and on AMD's GPUs
WARP_SIZES = {"cuda": {"NVIDIA": 32}, "hip": {"AMD": 64}, "interpreter": {"NVIDIA": 32, "AMD": 64}}


class BadOption(ValueError):
    """A launch option that no GPU can use. The message is for the learner."""


def check_options(options: dict, backend: str) -> None:
    """Raises BadOption for options that the interpreter ignores and a GPU of this backend refuses."""
    for name in ("num_warps", "num_ctas", "num_stages", "maxnreg"):
        value = options.get(name)
        if value is None:
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise BadOption(f"{name} is {str(value)[:40]!r}, and must be an integer") from None
        if number < (name != "num_stages"):
            raise BadOption(f"{name} is {number}, and must be at least {int(name != 'num_stages')}")
        if name in ("num_warps", "num_ctas") and number & (number - 1):
            raise BadOption(f"{name} is {number}, and must be a power of two")
    for vendor, lanes in WARP_SIZES[backend].items():
        threads = lanes * operator.index(options.get("num_warps") or 1)
        if threads > MAX_THREADS:
            raise BadOption(
                f"num_warps is {threads // lanes}: with {lanes} lanes in a warp, as on {vendor}'s GPUs, these are "
                f"{threads} threads, and a program has at most {MAX_THREADS}"
            )


class Specialisations:
    """The different specialisations that were launched, in their order, up to a limit."""

    def __init__(self):
        self._seen: dict[str, Specialisation] = {}
        self._room = MAX_CHARACTERS

    def add(self, kernel, arguments: dict, options: dict) -> None:
        """kernel: a jit function. arguments: by name, as its launch gets them; a jit function is allowed too."""
        special = specialisation(kernel.fn, arguments, options)
        if special is None:
            return
        text = to_json(special)
        if text not in self._seen and len(text) <= self._room and len(self._seen) < MAX_SPECIALISATIONS:
            self._seen[text] = special
            self._room -= len(text)

    def __iter__(self):
        return iter(self._seen.values())


def specialisation(function, arguments: dict, options: dict) -> Specialisation | None:
    """None if an argument is of a kind that we cannot describe to the compiler."""
    forced = {f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    own = {name: {"constant": each} for name, value in arguments.items() if (each := _constant(value)) is not None}
    annotated = {name: str(kind).removeprefix("tl.") for name, kind in function.__annotations__.items()}
    own |= {name: {"type": forced[kind]} for name, kind in annotated.items() if kind in forced}
    try:
        parameters, _ = bind(function, (), arguments | dict.fromkeys(own))
    except TypeError:
        return None
    described = {
        name: {kind: parameter[kind] for kind in ("type", "constant") if kind in parameter}
        for name, parameter in parameters.items()
    }
    return Specialisation(function.__name__[:100], described | own, dict(options))


def _constant(value) -> dict | list | None:
    """A jit function, or a list of numbers, as Specialisation describes it; None for other arguments."""
    if isinstance(value, KernelInterface):
        return {"kernel": value.fn.__name__}
    if isinstance(value, (list, tuple)) and all(v is None or type(v) in (bool, int, float) for v in value):
        return list(value)
    return None
