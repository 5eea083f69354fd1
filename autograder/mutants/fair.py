"""Which names of a mistake are fair for which mutation.

They follow from what was changed. They do not come from verdicts: where the judge says something else, either the
judge or the reason in this table is wrong.
"""

from __future__ import annotations


def _slugs(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OUTSIDE = "out-of-bounds-load out-of-bounds-store"
_NUMBERS = "wrong-value nan overflow not-normalised constant-factor"

# kind of mutation -> names that say what is wrong. A sum that misses elements is not-normalised, and a maximum that
# misses the largest element overflows, so both are fair wherever a block or a lane can be left out.
FAIR: dict[str, frozenset[str]] = {
    # nothing was written
    "no body": _slugs("not-attempted"),
    "no kernel body": _slugs("not-attempted unwritten-output"),
    "fresh memory": _slugs("not-attempted no-triton-kernel unwritten-output"),
    "starter": _slugs("not-attempted"),
    "syntax": _slugs("syntax-error"),
    # names and forms that Python or Triton does not know
    "unknown name in a kernel": _slugs("compile-error"),
    "unknown name on the host": _slugs("runtime-error"),
    "statement of a kernel left out": _slugs("compile-error"),
    "statement of the host left out": _slugs("runtime-error"),
    "no decorator": _slugs("compile-error runtime-error"),
    "no constexpr": _slugs("compile-error"),
    "no axis": _slugs("compile-error"),
    # addresses
    "load without mask": _slugs("out-of-bounds-load"),
    "store without mask": _slugs("out-of-bounds-store"),
    "mask too wide": _slugs(_OUTSIDE),
    "mask too narrow": _slugs("tail-wrong unwritten-output relies-on-masked-lanes not-normalised overflow nan"),
    "mask inverted": _slugs(f"{_OUTSIDE} tail-wrong unwritten-output relies-on-masked-lanes not-normalised nan"),
    "address": _slugs(
        f"wrong-program-id {_OUTSIDE} unwritten-output race stride-ignored tail-wrong not-normalised overflow "
        "nan compile-error"
    ),
    "program id": _slugs("wrong-program-id unwritten-output race out-of-bounds-store out-of-bounds-load tail-wrong"),
    "store through the input": _slugs("input-modified unwritten-output race"),
    "launch without the output": _slugs("input-modified unwritten-output no-triton-kernel"),
    "load from another tensor": _slugs("wrong-value out-of-bounds-load unwritten-output nan race"),
    "no store": _slugs("unwritten-output no-triton-kernel"),
    "random address": _slugs("same-mask seed-ignored"),
    "seed": _slugs("seed-ignored same-mask wrong-rate"),
    # what masked-off lanes hold
    "no other": _slugs("relies-on-masked-lanes wrong-other-value nan"),
    "other value": _slugs("wrong-other-value nan"),
    # loops
    "loop bound": _slugs("unwritten-output tail-wrong not-normalised overflow timeout race wrong-program-id nan"),
    "loop step": _slugs(
        f"unwritten-output tail-wrong not-normalised overflow timeout race {_OUTSIDE} runtime-error compile-error nan"
    ),
    # numbers
    "number": _slugs(_NUMBERS),
    "stores zeros": _slugs("wrong-value wrong-program-id not-attempted wrong-rate"),
    "number of the first maximum": _slugs(f"{_NUMBERS} wrong-other-value missing-rescale compile-error"),
    "number of the recurrence": _slugs(f"{_NUMBERS} missing-rescale wrong-other-value compile-error"),
    "number, or a block for a number": _slugs(f"{_NUMBERS} compile-error"),
    "dropout number": _slugs("wrong-value constant-factor not-scaled nan wrong-rate"),
    "another variable": _slugs(f"{_NUMBERS} compile-error"),
    "narrow type": _slugs("low-precision overflow nan compile-error"),
    "integer type": _slugs("wrong-value low-precision not-normalised overflow nan compile-error constant-factor"),
    # the host
    "grid": _slugs(f"unwritten-output tail-wrong {_OUTSIDE} race wrong-program-id runtime-error timeout"),
    "grid is no tuple of integers": _slugs("runtime-error compile-error unwritten-output"),
    "argument left out": _slugs("runtime-error compile-error"),
    "shape for a tensor": _slugs("runtime-error compile-error no-triton-kernel out-of-bounds-load"),
    "argument twice": _slugs("runtime-error compile-error out-of-bounds-load"),
    "tensors swapped": _slugs(f"input-modified unwritten-output wrong-value {_OUTSIDE}"),
    "strides": _slugs(f"stride-ignored {_OUTSIDE} unwritten-output race wrong-program-id"),
    "length": _slugs(f"unwritten-output tail-wrong {_OUTSIDE} not-normalised overflow nan runtime-error compile-error"),
    "block is no power of two": _slugs("compile-error"),
    "block too small for the row": _slugs("unwritten-output tail-wrong not-normalised overflow"),
    "output dtype": _slugs("wrong-dtype runtime-error"),
    "output shape": _slugs(f"wrong-shape runtime-error {_OUTSIDE}"),
    "output device": _slugs("wrong-device runtime-error"),
    "guard inverted": _slugs("runtime-error unwritten-output no-triton-kernel"),
    "guard": _slugs("runtime-error unwritten-output"),
    "returns an input": _slugs("input-modified"),
    "returns nothing": _slugs("runtime-error not-attempted"),
    "returns another shape": _slugs("wrong-shape not-contiguous"),
    "returns another dtype": _slugs("wrong-dtype"),
    "returns no tensor": _slugs("runtime-error wrong-shape"),
    "host arithmetic": _slugs("no-triton-kernel"),
    "space": _slugs("compile-error poor-configurations not-autotuned runtime-error"),
    # exercises about numbers
    "plain number": _slugs("wrong-value"),
    "plain number or an exception": _slugs("wrong-value runtime-error"),
    "several values, or one, in another form": _slugs("wrong-shape"),
    "text or a truth value": _slugs("wrong-dtype"),
    "configuration": _slugs("wrong-value narrow-access spills low-occupancy compile-error"),
}  # fmt: skip
