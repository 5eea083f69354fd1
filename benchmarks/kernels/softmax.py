"""Softmax of each row, with one read and one write of memory wherever the hardware allows it.

- `rows_kernel`: one or several whole rows per program, in one padded block. Lesson 4 compares its exercise with it.
- `stripes_kernel`: the fastest one, for every width. README.md says what a stripe is and how a launch is chosen.
- `persistent_kernel` is here to be compared with.

`softmax` and `rows_softmax` are the functions to call; `choose` says which launch a shape gets, and why.

All kernels take a matrix whose columns lie side by side, in float32, float16 or bfloat16. They compute in float32 and
store in the dtype of the output. A row of nothing but -inf gives NaN, as in torch.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

from .prepared import prepare

WORD = 16  # bytes: the most that one load instruction of a thread fetches


@triton.jit
def rows_kernel(x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """Softmax of ROWS rows per program: (n_rows, n_cols) to (n_rows, n_cols). BLOCK_SIZE >= n_cols."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK_SIZE)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    tl.store(y_ptr + rows * y_stride + cols, y, mask=mask)


@triton.jit
def exp(x, FAST: tl.constexpr):
    """e to the power of x. FAST, on NVIDIA only: results below 2**-126 become 0, which saves half the instructions.

    `tl.exp` becomes a comparison, a scaling before and a scaling after the hardware's power of two, all of it for
    results so small that float32 can hardly hold them.
    """
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=r,r", [x * 1.4426950408889634], tl.float32, is_pure=True, pack=1
        )
    else:
        return tl.exp(x)


@triton.jit
def larger(a, b, PACKED: tl.constexpr):
    """The larger of a and b. PACKED, half precision on NVIDIA: two at a time, without widening them."""
    if PACKED:
        if a.dtype == tl.bfloat16:
            both: tl.constexpr = "max.bf16x2 $0, $1, $2;"
        else:
            both: tl.constexpr = "max.f16x2 $0, $1, $2;"
        return tl.inline_asm_elementwise(both, "=r,r,r", [a, b], dtype=a.dtype, is_pure=True, pack=2)
    else:
        return tl.maximum(a, b)


@triton.jit
def widen_again(x, zero, PACKED: tl.constexpr):
    """x in float32, a second time. PACKED, half precision on NVIDIA: so that the first copy need not be kept.

    Two half-precision numbers fit into one register, and a float32 takes one of its own. A compiler that sees x
    widened twice does it once and keeps the wide copy: twice the registers, so fewer rows are on the chip. Here the
    second copy depends on `zero`, int32, which is 0, as only we know, and which is computed late.
    """
    if PACKED:
        if x.dtype == tl.bfloat16:
            low_high: tl.constexpr = "prmt.b32 $0, $2, $3, 0x1044; prmt.b32 $1, $2, $3, 0x3244;"
        else:
            low_high: tl.constexpr = """{
                .reg .b32 pair;
                .reg .b16 low, high;
                xor.b32 pair, $2, $3;
                mov.b32 {low, high}, pair;
                cvt.f32.f16 $0, low;
                cvt.f32.f16 $1, high;
                }"""
        return tl.inline_asm_elementwise(low_high, "=r,=r,r,r,r", [x, zero], dtype=tl.float32, is_pure=True, pack=2)
    else:
        return x.to(tl.float32)


@triton.jit
def open_mailbox(PROGRAMS: tl.constexpr):
    """Make room in shared memory for a message from each program of the cluster. Returns its address.

    The mailbox is a barrier of 8 bytes, which waits for 8 bytes from each program, and the messages. The cluster's
    programs say that they are here, and go on: `combine` waits for all of them.
    """
    return tl.inline_asm_elementwise(
        """{
        .shared .align 8 .b8 mailbox[136];
        .reg .pred is_first;
        .reg .b32 thread, size;
        mov.u32 thread, %tid.x;
        setp.eq.u32 is_first, thread, 0;
        shl.b32 size, $1, 3;
        @is_first mbarrier.init.shared::cta.b64 [mailbox], 1;
        @is_first fence.mbarrier_init.release.cluster;
        @is_first mbarrier.arrive.expect_tx.shared::cta.b64 _, [mailbox], size;
        barrier.cluster.arrive.aligned;
        mov.u32 $0, mailbox;
        }""",
        "=r,r",
        [PROGRAMS],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def combine(mailbox, part_max, part_sum, PROGRAMS: tl.constexpr):
    """The row's maximum and sum from those of the cluster's programs.

    Thread t sends this program's numbers to program t, into the place of this program. Then every thread waits for
    the messages of all programs and reads them. Nobody reads remote memory, so a program that has its messages may
    end. The sum is that of sum * exp(max - row maximum) over the programs.
    """
    return tl.inline_asm_elementwise(
        """{
        .reg .pred is_sender, all_here, more;
        .reg .b32 thread, rank, place, remote_place, remote_barrier, first, end;
        .reg .f32 a_max, a_sum;
        barrier.cluster.wait.aligned;
        mov.u32 thread, %tid.x;
        setp.lt.u32 is_sender, thread, $5;
        mov.u32 rank, %cluster_ctarank;
        add.u32 first, $2, 8;
        mad.lo.u32 place, rank, 8, first;
        mapa.shared::cluster.u32 remote_place, place, thread;
        mapa.shared::cluster.u32 remote_barrier, $2, thread;
        @is_sender st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32
            [remote_place], {$3, $4}, [remote_barrier];
        mad.lo.u32 end, $5, 8, first;
        wait_for_messages:
        mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 all_here, [$2], 0;
        @!all_here bra wait_for_messages;

        mov.b32 $0, 0fFF800000;
        mov.u32 place, first;
        next_max:
        ld.shared.f32 a_max, [place];
        max.f32 $0, $0, a_max;
        add.u32 place, place, 8;
        setp.lt.u32 more, place, end;
        @more bra next_max;

        mov.b32 $1, 0f00000000;
        mov.u32 place, first;
        next_sum:
        ld.shared.v2.f32 {a_max, a_sum}, [place];
        sub.f32 a_max, a_max, $0;
        mul.f32 a_max, a_max, 0f3FB8AA3B;
        ex2.approx.ftz.f32 a_max, a_max;
        fma.rn.f32 $1, a_max, a_sum, $1;
        add.u32 place, place, 8;
        setp.lt.u32 more, place, end;
        @more bra next_sum;
        }""",
        "=&r,=&r,r,r,r,r",
        [mailbox, part_max, part_sum, PROGRAMS],
        dtype=(tl.float32, tl.float32),
        is_pure=False,
        pack=1,
    )


@triton.jit
def in_all_lanes(one, VECTOR: tl.constexpr):
    """(lines, words) to (lines, words * VECTOR): the number of a word in each lane of it. It costs no registers."""
    wide = tl.broadcast_to(one[:, :, None], (one.shape[0], one.shape[1], VECTOR))
    return wide.reshape(one.shape[0], one.shape[1] * VECTOR)


@triton.jit
def from_all_lanes(wide, VECTOR: tl.constexpr):
    """The opposite of `in_all_lanes`."""
    return tl.max(wide.reshape(wide.shape[0], wide.shape[1] // VECTOR, VECTOR), axis=2)


@triton.jit
def places(row, stride, n_cols, VECTOR: tl.constexpr):
    """(first whole word of a row, as an offset; columns before it; columns in whole words) for rows `stride` apart.

    Division and multiplication tell the compiler that every word begins at a multiple of VECTOR.
    """
    words = (row * stride + VECTOR - 1) // VECTOR * VECTOR
    head = (words - row * stride).to(tl.int32)  # 0 unless rows begin within a word
    return words, head, (n_cols - head) // VECTOR * VECTOR


@triton.jit
def places_of_ends(lines, head, in_words, n_cols, ROWS: tl.constexpr, STRIPE: tl.constexpr, VECTOR: tl.constexpr):
    """(columns, whether they are there) of what lies outside of whole words; a thread takes at most one of them."""
    end = lines * 0 + tl.arange(0, STRIPE // VECTOR)[None, :]
    in_ends = (end < 2 * VECTOR) & (lines < ROWS)
    is_head = end < VECTOR
    end = tl.where(is_head, end, in_words + head - VECTOR + end)
    return end, in_ends & (end < tl.where(is_head, head, n_cols))


@triton.jit
def stripes(
    x_ptr, y_ptr, x_stride, y_stride, row, lines, factor, n_cols,
    ROWS: tl.constexpr, PROGRAMS: tl.constexpr, STRIPE: tl.constexpr, STRIPES: tl.constexpr, FULL: tl.constexpr,
    VECTOR: tl.constexpr, RAGGED: tl.constexpr, AGAIN: tl.constexpr, PACKED: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """Stores softmax(x) * factor of `row`, and returns the row's maximum and its sum of exp(x - maximum).

    row, factor: numbers, or (ROWS, 1). lines: (ROWS * PROGRAMS, 1). The constants are those of `stripes_kernel`.
    """
    cols = tl.arange(0, STRIPE)[None, :]
    if PROGRAMS > 1:
        cols = lines * STRIPE + cols
        mailbox = open_mailbox(PROGRAMS)
    x_words, head, in_words = places(row, x_stride, n_cols, VECTOR)
    y_words, _, _ = places(row, y_stride, n_cols, VECTOR)
    x_words, y_words = x_ptr + x_words, y_ptr + y_words

    # All loads come before the first reduction, because a reduction waits for all threads of the program.
    if RAGGED:
        end, in_ends = places_of_ends(lines, head, in_words, n_cols, ROWS, STRIPE, VECTOR)
        x_ends = tl.load(x_ptr + row * x_stride + end, mask=in_ends, other=-float("inf")).to(tl.float32)
        x_ends = in_all_lanes(x_ends, VECTOR)  # like a stripe, so that they meet the other columns in their thread
    kept = ()
    for k in tl.static_range(STRIPES):
        place = k * PROGRAMS * STRIPE + cols
        if k < FULL:
            kept = kept + (tl.load(x_words + place),)
        else:
            kept = kept + (tl.load(x_words + place, mask=place < in_words, other=-float("inf")),)
    lane_max = kept[0]
    for k in tl.static_range(1, STRIPES):
        lane_max = larger(lane_max, kept[k], PACKED)
    lane_max = lane_max.to(tl.float32)

    if AGAIN:  # a running maximum and sum for each lane (Milakov and Gimelshein, arXiv:1805.02867)
        beyond_max = tl.full(lane_max.shape, -float("inf"), tl.float32)
        beyond_sum = tl.zeros_like(lane_max)
        for start in range(STRIPES * PROGRAMS * STRIPE, in_words, AGAIN * PROGRAMS * STRIPE):
            some = ()
            for k in tl.static_range(AGAIN):
                place = start + k * PROGRAMS * STRIPE + cols
                x = tl.load(x_words + place, mask=place < in_words, other=-float("inf"))
                some = some + (x.to(tl.float32),)
            new_max = beyond_max
            for k in tl.static_range(AGAIN):
                new_max = tl.maximum(new_max, some[k])
            shift = tl.where(new_max == -float("inf"), 0.0, new_max)
            beyond_sum *= exp(beyond_max - shift, FAST)
            for k in tl.static_range(AGAIN):
                beyond_sum += exp(some[k] - shift, FAST)
            beyond_max = new_max
        lane_max = tl.maximum(lane_max, beyond_max)

    if RAGGED:
        lane_max = tl.maximum(lane_max, x_ends)
    part_max = tl.max(lane_max, axis=1)
    shift = part_max[:, None]
    if PROGRAMS > 1:  # a part of nothing but -inf has the sum 0
        shift = tl.where(shift == -float("inf"), 0.0, shift)

    lane_sum = tl.zeros_like(lane_max)
    numerators = ()
    for k in tl.static_range(STRIPES):
        numerator = exp(kept[k].to(tl.float32) - shift, FAST)
        lane_sum += numerator
        if not PACKED:
            numerators = numerators + (numerator,)
    if AGAIN:
        lane_sum += beyond_sum * exp(beyond_max - shift, FAST)
    if RAGGED:
        lane_sum += exp(x_ends - shift, FAST) * (1 / VECTOR)
    row_sum = tl.sum(lane_sum, axis=1)
    row_max = shift
    if PROGRAMS > 1:
        row_max, row_sum = combine(mailbox, part_max, row_sum, PROGRAMS)
        row_max = row_max[:, None]
    row_sum = row_sum[:, None]
    scale = factor / row_sum
    zero = row_sum.to(tl.int32, bitcast=True) >> 31  # a sum is not negative

    if AGAIN:  # backwards: what was read last is still in the cache
        step = AGAIN * PROGRAMS * STRIPE
        rounds = tl.cdiv(in_words - STRIPES * PROGRAMS * STRIPE, step)
        for number in range(rounds):
            for k in tl.static_range(AGAIN):
                place = (rounds - number) * step + ((STRIPES - 1 - k) * PROGRAMS * STRIPE + cols)
                x = tl.load(x_words + place, mask=place < in_words, other=-float("inf")).to(tl.float32)
                tl.store(y_words + place, exp(x - row_max, FAST) * scale, mask=place < in_words)
    if PROGRAMS > 1 and not PACKED:
        scale *= exp(shift - row_max, FAST)
    for k in tl.static_range(STRIPES):
        place = k * PROGRAMS * STRIPE + cols
        y = exp(widen_again(kept[k], zero, PACKED) - row_max, FAST) * scale if PACKED else numerators[k] * scale
        if k < FULL:
            tl.store(y_words + place, y)
        else:
            tl.store(y_words + place, y, mask=place < in_words)
    if RAGGED:
        y = from_all_lanes(exp(x_ends - row_max, FAST) * (factor / row_sum), VECTOR)
        tl.store(y_ptr + row * y_stride + end, y, mask=in_ends)
    return row_max, row_sum


@triton.jit(do_not_specialize=["x_stride", "y_stride", "n_rows", "n_cols"])
def stripes_kernel(
    x_ptr,
    y_ptr,
    x_stride,
    y_stride,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    STRIPE: tl.constexpr,
    STRIPES: tl.constexpr,
    FULL: tl.constexpr,
    VECTOR: tl.constexpr,
    RAGGED: tl.constexpr,
    AGAIN: tl.constexpr,
    PACKED: tl.constexpr,
    FAST: tl.constexpr,
):
    """Softmax of ROWS rows per program, or of one row per cluster of PROGRAMS: (n_rows, n_cols) to (n_rows, n_cols).

    A row is cut into stripes. In each of them a program has STRIPE columns, and a thread one word of VECTOR columns,
    which it loads at once. STRIPES stripes stay in registers. The first FULL of them need no mask. AGAIN > 0: the
    columns beyond them are read twice, AGAIN stripes at a time, and nothing limits the length of a row.

    RAGGED: rows begin anywhere, but x and y at the same place within a word. Then the stripes begin at the row's
    first whole word, and the columns before it and after the last whole word, up to 2 * VECTOR - 2, go by themselves.

    A cluster: launch with num_ctas=PROGRAMS. Triton gives line p of a (PROGRAMS, STRIPE) tile to program p, so that
    all loads, reductions and stores stay inside one program. Only `combine` reaches the others.
    """
    lines = tl.arange(0, ROWS * PROGRAMS)[:, None]
    row = tl.program_id(0).to(tl.int64)
    if ROWS > 1:  # the last program computes the last row several times, which needs no mask
        row = tl.minimum(tl.program_id(0) * ROWS + lines, n_rows - 1).to(tl.int64)
    stripes(
        x_ptr, y_ptr, x_stride, y_stride, row, lines, 1.0, n_cols,
        ROWS, PROGRAMS, STRIPE, STRIPES, FULL, VECTOR, RAGGED, AGAIN, PACKED, FAST,
    )  # fmt: skip


@triton.jit
def persistent_kernel(
    x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr
):
    """Softmax as published tutorials do it: a fixed number of programs, and each takes row after row."""
    cols = tl.arange(0, BLOCK_SIZE)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
        row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_ptr + row * y_stride + cols, numerator / tl.sum(numerator, axis=0), mask=cols < n_cols)


def rows_launch(n_cols: int, element_size: int) -> dict:
    """The constants of `rows_kernel` for rows of n_cols elements of element_size bytes.

    - At least 2 KiB per program: 2 rows of 256 float32, 4 rows of 256 bfloat16. A program that reads less than that
      costs more to start than to run.
    - About 16 numbers per thread, so that its 16-byte loads are two to four, all under way at once. A program
      has at most 32 warps; in half precision 16, since a thread must read as many *bytes*.
    """
    rows = max(1, 2048 // triton.next_power_of_2(n_cols * element_size))
    warps = _power_below(max(1, rows * n_cols // 512))
    most = 32 if element_size == 4 else 16
    return {"ROWS": rows, "BLOCK_SIZE": triton.next_power_of_2(n_cols), "num_warps": min(most, warps)}


def rows_softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a matrix with up to 32768 columns (131072 where they fit the registers)."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch = rows_launch(x.shape[1], x.element_size())
    grid = (triton.cdiv(x.shape[0], launch["ROWS"]),)
    rows_kernel[grid](x, y, x.stride(0), y.stride(0), *x.shape, **launch)
    return y


@dataclass(frozen=True)
class Launch:
    """A kernel with its constants and the compiler's options. `rows` are the rows of one program or cluster."""

    kernel: object
    constants: dict
    options: dict = field(default_factory=dict)
    rows: int = 1


def stripes_launch(
    dtype: torch.dtype, n_cols: int, vector: int, ragged: bool, backend: str,
    lanes: int, rows: int = 1, programs: int = 1, stripes: int = 0, again: int = 0, registers: int | None = None,
) -> Launch:  # fmt: skip
    """A launch of `stripes_kernel` in which `lanes` threads of a program share a row.

    stripes: how many to keep in registers; 0 means all. registers: the most that a thread may use.
    """
    nvidia = backend == "cuda"
    width = lanes * vector * programs
    needed = -(-(n_cols // vector * vector) // width)
    least = (n_cols - vector + 1 if ragged else n_cols) // vector * vector
    stripes = min(stripes, needed) or needed
    constants = {
        "ROWS": rows,
        "PROGRAMS": programs,
        "STRIPE": lanes * vector,
        "STRIPES": stripes,
        "FULL": min(stripes, least // width),
        "VECTOR": vector,
        "RAGGED": ragged,
        "AGAIN": again if stripes < needed else 0,
        "PACKED": nvidia and dtype.itemsize == 2 and vector > 1,
        "FAST": nvidia,
    }
    options = {"num_warps": max(1, lanes * rows // (64 if backend == "hip" else 32))}
    if programs > 1:
        options["num_ctas"] = programs
    if registers and nvidia:
        options["maxnreg"] = registers
    return Launch(stripes_kernel, constants, options, rows)


# What `choose` knows of the hardware, and of the compiler.
REGISTERS, THREADS, PROGRAMS = 65536, 2048, 32  # of a multiprocessor, from Ampere to Blackwell
OVERHEAD, RAGGED_OVERHEAD = 16, 4  # registers of a thread beside those that hold its words
RAGGED_CLUSTERS = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 6)  # older versions fail to compile them
# What was measured: sweep.py on one H200. README.md has the reasons and the measurements.
SHORT_ROW = 2048  # bytes that a program should read at least
NARROW_ROW = 512  # bytes below which a ragged row gets words of half the width
WORDS = 6  # of 16 bytes of a row in a thread: more take registers, fewer leave too little under way
MOST_WORDS = 22  # in a thread, where there are no more threads
MOST_IN_CLUSTER = {4: 33, 2: 25}  # the same in clusters, by the size of a number
LANES = (128, 256, 512)  # threads of a program: below, too many programs share a row; above, too few fit
ROWS_AT_ONCE = {4: 1, 2: 2}  # on a multiprocessor; half precision computes longer for as many bytes


@functools.cache
def choose(dtype: torch.dtype, n_cols: int, vector: int, ragged: bool, backend: str, capability: int) -> Launch:
    """The launch for rows of n_cols elements. No GPU is asked, so that it can be read and tested anywhere.

    vector, ragged: as `words` says. backend: "cuda", "hip" or "interpreter". capability: of an NVIDIA GPU, such as
    90; 0 elsewhere.
    """
    chosen = kept(dtype, n_cols, vector, ragged, backend, capability)
    if chosen is None:
        chosen = {"lanes": LANES[-1], "stripes": 8, "again": 2}
        if in_clusters(ragged, backend, capability):
            chosen |= {"programs": 16, "registers": limit(LANES[-1], 8, False)}
    return stripes_launch(dtype, n_cols, vector, ragged, backend, **chosen)


def in_clusters(ragged: bool, backend: str, capability: int) -> bool:
    """Whether a cluster can share such a row here."""
    return backend == "cuda" and capability >= 90 and (RAGGED_CLUSTERS or not ragged)


def kept(
    dtype: torch.dtype, n_cols: int, vector: int, ragged: bool, backend: str, capability: int, arrays: int = 1
) -> dict | None:
    """What `stripes_launch` needs to keep a whole row on the chip, of each of `arrays` matrices; None if none can."""
    size, need = dtype.itemsize, n_cols // vector  # whole words
    lanes = max(-(-arrays * n_cols * size // (WORDS * WORD)), -(-arrays * need // MOST_WORDS))
    lanes = min(LANES[-1], triton.next_power_of_2(max(lanes, 2 * vector if ragged else 1)))
    held, never_spill = arrays * -(-need // lanes), size == 2 and arrays > 1
    if held <= MOST_WORDS and at_once(lanes, held, ragged, never_spill) >= ROWS_AT_ONCE[size]:
        rows = triton.next_power_of_2(-(-SHORT_ROW // (arrays * n_cols * size)))
        rows = max(min(rows, 1024 // lanes), 64 // lanes if backend == "hip" else 32 // lanes, 1)
        return {"lanes": lanes, "rows": rows, "registers": limit(lanes * rows, held, ragged, never_spill)}
    if not in_clusters(ragged, backend, capability):
        return None
    found = []
    for programs in (2, 4, 8, 16):
        for lanes in LANES:
            held = arrays * -(-need // (lanes * programs))
            fit = at_once(lanes, held, ragged, size == 2)
            if 2 <= held <= MOST_IN_CLUSTER[size] and fit >= 2:
                # Most words on the chip, where two of a thread's words pay for the meeting. Of equals, no cluster of
                # 16, which finds room on few multiprocessors, and then the smallest programs.
                found.append((fit * lanes * (held - 2), programs < 16, -lanes, -programs, held))
    if not found:
        return None
    _, _, lanes, programs, held = max(found)
    return {"lanes": -lanes, "programs": -programs, "registers": limit(-lanes, held, ragged, size == 2)}


def at_once(threads: int, held: int, ragged: bool, never_spill: bool = False) -> int:
    """How many programs of so many threads fit a multiprocessor when a thread holds so many words; 0 if none.

    A ragged row would like a few registers more. It gets them where they cost at most an eighth of the programs, or
    always.
    """
    fits = []
    for overhead in (OVERHEAD, OVERHEAD + RAGGED_OVERHEAD * ragged):
        registers = -(-(held * WORD // 4 + overhead) // 8) * 8  # they are dealt out by eights
        fits.append(min(PROGRAMS, THREADS // threads, REGISTERS // (threads * registers)))
    return fits[1] if never_spill or 8 * fits[1] >= 7 * fits[0] else fits[0]


def limit(threads: int, held: int, ragged: bool, never_spill: bool = False) -> int:
    """The most registers of a thread with which `at_once` programs fit; a thread can have 255."""
    fit = max(1, at_once(threads, held, ragged, never_spill))
    return min(255, REGISTERS // (threads * fit) // 8 * 8)


def words(dtype: torch.dtype, n_cols: int, x_stride: int, address: int) -> tuple[int, bool]:
    """(elements in a word, whether rows begin within a word) for a matrix at `address` and a contiguous result.

    A word has 16 bytes where rows of both begin at the same place within 16 bytes, and 8 in short rows that begin
    within a word. Otherwise it is as many bytes as divide the address and the length of a row of both.
    """
    size = dtype.itemsize
    vector = WORD // size
    if address % WORD == 0 and (x_stride - n_cols) % vector == 0:
        if n_cols % vector and n_cols * size < NARROW_ROW:
            vector //= 2
        if n_cols % vector and n_cols >= 4 * vector:
            return vector, True
    shared = address // size | x_stride | n_cols | vector
    return shared & -shared, False


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a matrix, by the fastest launch that we know for its shape.

    x: (n_rows, n_cols), float32, float16 or bfloat16, columns side by side, any row stride. Returns a contiguous
    tensor of the same shape and dtype. Raises ValueError or TypeError for what it cannot take.
    """
    key = (x.shape, x.stride(), x.dtype, x.get_device(), x.data_ptr() & 15)
    found = _prepared.get(key)
    if found is None:
        found = _prepared[key] = _prepare(x)
    like, launch = found
    return launch(x, like(x))


_prepared: dict = {}  # what `_prepare` returned, for each key of `softmax`


def _prepare(x: torch.Tensor) -> tuple[Callable, Callable]:
    """What shape and kind decide: a function of x that allocates y, and a function of x and y that returns y."""
    if x.dim() != 2 or x.stride(1) != 1:
        raise ValueError(f"expected a matrix whose columns lie side by side, got {tuple(x.shape)} {x.stride()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"expected float32, float16 or bfloat16, got {x.dtype}")
    # empty_like keeps strides, and asks for less of the host's time.
    like = torch.empty_like if x.is_contiguous() else lambda x: torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return like, lambda x, y: y
    n_rows, n_cols = x.shape
    vector, ragged = words(x.dtype, n_cols, x.stride(0), x.data_ptr())
    launch = choose(x.dtype, n_cols, vector, ragged, *_target(x.device))
    return like, prepared(launch, x, (x.stride(0), n_cols, n_rows, n_cols))


def prepared(launch: Launch, x: torch.Tensor, sizes: tuple) -> Callable:
    """A function of x and y that launches `launch` on matrices like x, of these strides and sizes, and returns y."""
    grid = (triton.cdiv(x.shape[0], launch.rows), 1, 1)
    if x.device.type == "cpu":

        def on_cpu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            launch.kernel[grid](x, y, *sizes, **launch.constants, **launch.options)
            return y

        return on_cpu
    with torch.cuda.device(x.device):
        compiled = launch.kernel.warmup(x.dtype, x.dtype, *sizes, grid=grid, **launch.constants, **launch.options)
        return prepare(compiled, grid, x.device.index, sizes, tuple(launch.constants.values()))


def persistent_launch(n_cols: int, shared_memory: int, element_size: int) -> dict:
    """The constants that Triton's fused-softmax tutorial gives its persistent kernel: always 8 warps."""
    block_size = triton.next_power_of_2(n_cols)
    stages = 4 if shared_memory > 200_000 else 2
    while stages > 1 and stages * block_size * element_size > shared_memory:
        stages -= 1  # the tutorial stops at 12672 columns, where four stages still fit
    return {"BLOCK_SIZE": block_size, "num_stages": stages, "num_warps": 8}


def persistent_softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax by `persistent_kernel`, with as many programs as the device holds at once."""
    y = torch.empty_like(x)
    constants, programs = _persistent_programs(x.dtype, x.stride(0), x.shape[1])
    grid = (min(programs, x.shape[0]),)
    persistent_kernel[grid](x, y, x.stride(0), y.stride(0), *x.shape, **constants)
    return y


@functools.cache
def _persistent_programs(dtype: torch.dtype, row_stride: int, n_cols: int) -> tuple[dict, int]:
    from workshop import device, num_programs

    facts = device()
    constants = persistent_launch(n_cols, facts.shared_memory, dtype.itemsize)
    compiled = persistent_kernel.warmup(dtype, dtype, row_stride, n_cols, 1024, n_cols, **constants, grid=(1,))
    compiled._init_handles()
    return constants, num_programs(compiled.n_regs, compiled.metadata.shared, constants["num_warps"], facts)


@functools.cache
def _target(device: torch.device) -> tuple[str, int]:
    if device.type == "cpu":
        return "interpreter", 0
    if torch.version.hip:
        return "hip", 0
    major, minor = torch.cuda.get_device_capability(device)
    return "cuda", 10 * major + minor


def _power_below(n: int) -> int:
    """The largest power of two that is not above n >= 1."""
    return 1 << (n.bit_length() - 1)
