"""Cases that lie just beyond what an answer's launches cover.

An answer can be right for every size up to the product of its block, its programs and the rounds of its loops, and
wrong for all larger sizes. So the sizes of these cases follow from what the answer launched for two large probes, which
are planned and not run. An interpreter needs about a millisecond for one round of one program, so the work is bounded.
"""

from __future__ import annotations

from .spec import Planned

ROUNDS = 65  # of one program: a loop of at most 64 rounds does not reach the end
MOST_WORK = 300  # rounds of all programs together, unless the answer launches more programs than that
MOST_PROGRAMS = 2100
MOST_ELEMENTS = 1 << 20


def fixed_programs(small: Planned | None, large: Planned | None) -> int | None:
    """The number of programs, if it is the same for a small and a large probe; None if it grows or is not known."""
    if small is None or large is None or large.programs > 1.2 * small.programs:
        return None
    return large.programs if large.programs <= MOST_PROGRAMS else None


def covered(programs: int, block: int = 1) -> int:
    """How many elements, or rows, so many programs cover in ROUNDS rounds, or in fewer if that is much work."""
    rounds = min(ROUNDS, MOST_WORK // programs, MOST_ELEMENTS // (programs * block))
    return programs * max(1, rounds) * block


def more_than(size: int, block: int = 1) -> tuple[int, int]:
    """A range of larger sizes. What an answer leaves out of them is not the ragged end of any power of two."""
    step = max(block, size & -size)
    return size + step + 1, size + 2 * step + 9
