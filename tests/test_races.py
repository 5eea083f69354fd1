"""Races: between programs and between the lanes of one program; what orders accesses, and what does not."""

import pytest
import torch
from executing import kernel, watch

from workshop.executor.records import NeverEnds

HEADER = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, y, B: tl.constexpr):\n"
START = ["p = tl.program_id(0)", "i = tl.arange(0, B)"]


def races(*lines, programs=1, size=64):
    """The kinds of the races between programs, and of those within one program, for B = 8."""
    source = HEADER + "".join(f"    {line}\n" for line in [*START, *lines])
    with watch() as memory:
        kernel(source)[(programs,)](
            torch.arange(float(size)), torch.zeros(size, dtype=torch.int32), B=8
        )
    between = {race.kind for race in memory.races if race.first != race.second}
    return between, {race.kind for race in memory.races if race.first == race.second}


# --- lanes of one program ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "store",
    [
        "tl.store(x + i // 2, i)",
        "tl.store(x + i * 0, i)",
        "tl.store(x + tl.arange(0, 2)[:, None] * 0 + i[None, :], tl.arange(0, 2)[:, None] + i[None, :])",
        "tl.store(x + i % 4, i, mask=i < 5)",
    ],
)
def test_lanes_that_store_different_values_to_one_element_race(store):
    assert races(store) == (set(), {"write-write"})


@pytest.mark.parametrize(
    "store",
    [
        "tl.store(x + i // 2, i // 2)",
        "tl.store(x + tl.minimum(i, 3), 7.0)",
        "tl.store(x + i % 4, i, mask=i < 4)",
        "tl.store(x + 7 - i, i)",
    ],
)
def test_the_same_value_or_another_element_is_no_race(store):
    assert races(store) == (set(), set())


@pytest.mark.parametrize(
    "load",
    [
        "v = tl.load(x + 7 - i)",
        "v = tl.load(x + tl.maximum(i - 1, 0))",
        "v = tl.load(x + 3)",
        "v = tl.load(x + tl.arange(0, 16))",
        "v = tl.load(x + i[:, None])",
        "tl.atomic_add(x + 7 - i, 1.0)",
    ],
)
def test_reading_what_another_lane_wrote_is_a_race(load):
    assert races("tl.store(x + i, i)", load) == (set(), {"write-read"})
    assert races("tl.store(x + i, i)", "tl.debug_barrier()", load) == (set(), set())


def test_a_barrier_orders_only_what_was_stored_before_it():
    assert races("tl.debug_barrier()", "tl.store(x + i, i)", "v = tl.load(x + 7 - i)")[1] == {"write-read"}
    assert races("tl.debug_barrier()", "tl.store(x + 8 * p + i, i)", "v = tl.load(x + 8 * p + 7 - i)", programs=2) == (
        set(),
        {"write-read"},
    )


def test_a_lane_reads_back_what_it_wrote_itself():
    assert races("tl.store(x + i, i)", "v = tl.load(x + i)", "tl.store(x + i, v + 1)") == (set(), set())
    assert races("tl.store(x + i, i, mask=i > 2)", "v = tl.load(x + i, mask=i < 6)") == (set(), set())
    loop = ["for c in range(0, 64, B): tl.store(x + c + i, i)", "for c in range(0, 64, B): v = tl.load(x + c + i)"]
    assert races(*loop) == (set(), set())


def test_one_thread_stores_a_number_and_all_load_it():
    assert races("tl.store(x + p, 1.0)", "v = tl.load(x + p)", programs=2) == (set(), {"write-read"})
    assert races("tl.store(x + p, 1.0)", "tl.debug_barrier()", "v = tl.load(x + p)", programs=2) == (set(), set())
    assert races("tl.store(x + p, 1.0)", "tl.store(x + p, 2.0)", programs=2) == (set(), set())


def test_another_lane_overwrites():
    assert races("tl.store(x + i, i)", "tl.store(x + 7 - i, i)") == (set(), {"write-write"})
    assert races("tl.store(x + i, i)", "tl.store(x + 7 - i, 7 - i)") == (set(), set())
    assert races("tl.store(x + i, i)", "tl.debug_barrier()", "tl.store(x + 7 - i, i)") == (set(), set())


def test_atomics_of_several_lanes_are_no_race_but_reading_their_result_is():
    assert races("tl.atomic_add(x + i // 2, 1.0)") == (set(), set())
    assert races("tl.atomic_add(x + i // 2, 1.0)", "v = tl.load(x + i // 2)") == (set(), {"write-read"})
    assert races("tl.atomic_add(x + i, 1.0)", "v = tl.load(x + i)") == (set(), set())


# --- programs ---------------------------------------------------------------------------------------------

PUBLISH = ["tl.store(x + p, 1.0)", "tl.atomic_add(y, 1, sem={!r})", "v = tl.load(x + i, mask=i < p)"]


@pytest.mark.parametrize("semantics", ["relaxed", "acquire", "release"])
def test_atomics_that_do_not_both_release_and_acquire_order_nothing(semantics):
    assert races(*(line.format(semantics) for line in PUBLISH), programs=4) == ({"write-read"}, set())


def test_a_releasing_and_acquiring_atomic_orders_what_is_before_it():
    store, atomic, load = (line.format("acq_rel") for line in PUBLISH)
    assert races(store, atomic, load, programs=4) == (set(), set())
    assert races(atomic, store, load, programs=4) == ({"write-read"}, set())
    release, acquire = ("tl.atomic_add(y, 1, sem='release')", "tl.atomic_add(y, 1, sem='acquire')")
    assert races(acquire, load, store, release, programs=4) == ({"read-write"}, set())  # nobody waits for a release
    wait = "while tl.atomic_add(y, 0, sem='acquire') < p: pass"
    assert races(wait, load, store, release, programs=4) == (set(), set())


def test_what_an_atomic_wrote_is_read_after_an_order_only():
    write, read = "if p == 0: tl.atomic_add(x, 1.0, sem='relaxed')", "if p == 1: v = tl.load(x)"
    assert races(write, read, programs=2) == ({"write-read"}, set())
    assert races(write, "tl.atomic_add(y, 1, sem='relaxed')", read, programs=2) == ({"write-read"}, set())
    assert races(write, "tl.atomic_add(y, 1)", read, programs=2) == (set(), set())


def test_a_plain_store_that_an_atomic_meets():
    assert races("if p == 0: tl.store(x, 0.0)", "tl.atomic_add(x, 1.0)", programs=2) == ({"write-read"}, set())


def test_a_lock_orders_stores_of_different_values():
    lock, store, unlock = "while tl.atomic_cas(y, 0, 1) == 1: pass", "tl.store(x, p)", "tl.atomic_xchg(y, 0)"
    assert races(lock, store, unlock, programs=3) == (set(), set())
    assert races(store, programs=3) == ({"write-write"}, set())
    assert races("tl.atomic_add(y, 1)", store, "tl.atomic_add(y, 1)", programs=3) == ({"write-write"}, set())


def test_a_wait_that_can_never_end_is_said_to_be_one():
    with pytest.raises(NeverEnds, match="never ends"):
        races("while tl.atomic_add(y, 0) < 9: pass", "tl.atomic_add(y, 1)", programs=3)


GROWS = "tl.store(y, tl.load(y) + 1)"
ENDLESS = {  # the line of the loop, its body, what is said of it
    "nothing changes": ("while p < 9:", "tl.store(x + i, 1.0)", "no round changes p"),
    "the step is forgotten": ("while c < 9:", "v += tl.load(y + c)", "no round changes c"),
    "the step is 0": ("while c < 9:", "c += p * 0", "no round changes c"),
    "it doubles 0": ("while c < 9:", "c = c * 2", "no round changes c"),
    "another value grows": ("while c + d < 9:", "d = c; v += 1", "no round changes c or d"),
    "memory grows, and is not asked": ("while c < 9:", GROWS, "no round changes c"),
    "it goes in circles": ("while c < 9:", "c = (c + 1) % 3", "brings back earlier values of c"),
    "one program alone": ("while c < 9:", "c += p % 2", "no round changes c"),
    "memory stays": ("while tl.load(y) < 9:", "tl.store(y, 0)", "no round changes y or the memory"),
    "a line that is no sentence": ("while (c <", "  9): v += 1", "no round changes what its condition asks for"),
}
ENDS = {
    "by a step": ("while c < 150:", "c += 1"),
    "by a pause": ("while c < 20:", "v += 1; c += v % 40 == 0"),
    "by memory": ("while tl.load(y) < 150:", GROWS),
    "by memory that is stored in between": ("while c < 150:", "tl.store(y, c + 1); c = tl.load(y)"),
    "by a block": ("while tl.max(w, 0) < 150:", "w += tl.where(i == 3, 1, 0)"),
    "by nothing": ("while p < 0:", "v += 1"),
}


@pytest.mark.parametrize("loop", ENDLESS)
def test_a_loop_that_does_not_progress_ends_at_once(loop):
    head, body, said = ENDLESS[loop]
    with pytest.raises(NeverEnds, match=f"never ends: .*{said}") as caught:
        races("c, d, v = 0, 0, 0", f"{head} {body}" if head.endswith(":") else f"{head}\n{body}", programs=3)
    assert caught.value.code.startswith("while"), caught.value


@pytest.mark.parametrize("loop", ENDS)
def test_a_loop_that_progresses_is_run_to_its_end(loop):
    head, body = ENDS[loop]
    races("c, v, w = 0, 0, i * 0", f"{head} {body}", programs=1)
