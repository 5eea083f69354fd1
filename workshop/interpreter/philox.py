"""Triton's generator of random numbers by NumPy: the interpreter takes a hundred operations for each call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

FEWEST_ROUNDS = 4  # after so many, each number depends on each argument
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def generator() -> dict[str, Callable]:
    """What replaces `tl.random.philox_impl`, if this Triton has it."""
    own = vars(tl.random).get("philox_impl")
    return {"philox_impl": _or_step_by_step(own)} if own else {}


def _or_step_by_step(step_by_step: Callable) -> Callable:
    def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds=10):
        rounds = getattr(n_rounds, "value", n_rounds)
        if c0.dtype != tl.uint32 or rounds < FEWEST_ROUNDS:
            return step_by_step(c0, c1, c2, c3, k0, k1, n_rounds)
        arguments = [each.handle.data.astype(np.uint64) for each in (c0, c1, c2, c3, k0, k1)]
        is_block = any(each.type.is_block() for each in (c0, c1, c2, c3, k0, k1))
        return tuple(_tensor(numbers, is_block) for numbers in _philox(arguments, rounds))

    return philox_impl


def _philox(arguments: list[np.ndarray], rounds: int) -> tuple[np.ndarray, ...]:
    """Philox 4x32, in 64 bits: `a` times a number of 32 bits has its high half and its low half."""
    c0, c1, c2, c3, k0, k1 = arguments
    for _ in range(rounds):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ k0, b & LOW, (a >> HALF) ^ c3 ^ k1, a & LOW
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & LOW, (k1 + np.uint64(0xBB67AE85)) & LOW
    return c0, c1, c2, c3


def _tensor(numbers: np.ndarray, is_block: bool) -> tl.tensor:
    data = numbers.astype(np.uint32)
    kind = tl.block_type(tl.uint32, [int(n) for n in data.shape]) if is_block else tl.uint32
    return tl.tensor(interpreter.TensorHandle(data, tl.uint32), kind)
