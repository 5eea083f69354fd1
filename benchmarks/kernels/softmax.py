"""Softmax of each row, with one read and one write of memory wherever the hardware allows it.

The kernels, from the one to learn from to the fastest:

- `rows_kernel`: one or several whole rows per program, in one padded block. Lesson 4 compares its exercise with it.
- `tile_kernel`: the same, with a row cut into full powers of two and a short rest.
- `cluster_kernel`: a row is shared by a cluster of programs. They exchange maxima and sums through distributed
  shared memory. It needs an NVIDIA GPU of compute capability 9.0 or newer.
- `two_pass_kernel`: any row, on any GPU. It reads the row twice, the second time backwards.

`persistent_kernel` and `group_kernel` are here to be compared with. `softmax` and `rows_softmax` are the functions to
call; `choose` says which kernel a shape gets and with which launch, and README.md says why.

All kernels take a matrix whose columns lie side by side, in float32, float16 or bfloat16. They compute in float32 and
store in the dtype of the output. A row of nothing but -inf gives NaN, as in torch.
"""

import functools
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

VECTOR_BYTES = 16  # the most that one load instruction of a thread fetches
SHORT_ROW = 2048  # bytes that a program should read at least
WIDE = 32768  # columns up to which one program can hold a row


@triton.jit
def rows_kernel(
    x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    """Softmax of ROWS rows per program: (n_rows, n_cols) to (n_rows, n_cols). BLOCK_SIZE >= n_cols."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK_SIZE)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    tl.store(y_ptr + rows * y_stride + cols, y, mask=mask)


@triton.jit
def widen(x, use: tl.constexpr, PACKED: tl.constexpr):
    """x in float32. PACKED, for bfloat16 only: the compiler is kept from sharing this copy between the three uses.

    Two bfloat16 fit into one register, and a float32 takes one of its own. The compiler sees that x is widened three
    times, does it once, and keeps the wide copy: twice the registers, so fewer rows are in flight. The three uses
    below compute the same bits with different instructions, so that it finds nothing to share.
    """
    if PACKED and use == 0:
        low_high: tl.constexpr = "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;"
    elif PACKED and use == 1:
        low_high: tl.constexpr = "prmt.b32 $0, $2, 0, 0x1044; prmt.b32 $1, $2, 0, 0x3244;"
    else:
        low_high: tl.constexpr = "shf.l.clamp.b32 $0, 0, $2, 16; prmt.b32 $1, $2, 0, 0x3266;"
    if PACKED:
        return tl.inline_asm_elementwise(low_high, "=r,=r,r", [x], dtype=tl.float32, is_pure=True, pack=2)
    return x.to(tl.float32)


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
    return tl.exp(x)


@triton.jit
def tile_kernel(
    x_ptr,
    y_ptr,
    x_stride,
    y_stride,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    REST: tl.constexpr,
    VECTOR: tl.constexpr,
    PACKED: tl.constexpr,
):
    """Softmax of ROWS rows per program: (n_rows, n_cols) to (n_rows, n_cols).

    A row is A columns, then B columns, then at most REST columns. All three are powers of two or 0, and only the
    rest is masked: 781 columns as 512 + 256 + 16 waste 3 lanes, as one block of 1024 they waste 243.

    VECTOR is 1 where every row begins at an address that is a multiple of 16 bytes. Otherwise it is the number of
    elements in 16 bytes. Then A begins at the row's first aligned element, so that its loads stay 16 bytes wide,
    and the rest holds the few columns before A as well as those after B. A + B + VECTOR - 1 columns must exist,
    and x_stride and y_stride must be equal.
    """
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    in_rows = rows < n_rows if ROWS > 1 else None
    x_row, y_row = rows * x_stride, rows * y_stride
    c_cols = A + B + tl.arange(0, REST if REST else 1)[None, :]
    in_rest = c_cols < n_cols if ROWS == 1 else (c_cols < n_cols) & (rows < n_rows)
    if VECTOR > 1:
        aligned = (x_row + VECTOR - 1) // VECTOR * VECTOR
        lead = (aligned - x_row).to(tl.int32)
        c_cols = tl.where(c_cols < A + B + lead, c_cols - A - B - lead, c_cols - lead)
        x_row, y_row = aligned, aligned
    a_cols = tl.arange(0, A)[None, :]
    b_cols = A + tl.arange(0, B if B else 1)[None, :]

    # All loads come before the first reduction, because a reduction waits for all threads of the program.
    a = tl.load(x_ptr + x_row + a_cols, mask=in_rows)
    if B:
        b = tl.load(x_ptr + x_row + b_cols, mask=in_rows)
    if REST:
        c = tl.load(x_ptr + x_row + c_cols, mask=in_rest, other=-float("inf")).to(tl.float32)

    row_max = tl.max(widen(a, 0, PACKED), axis=1)[:, None]
    if B:
        row_max = tl.maximum(row_max, tl.max(widen(b, 0, PACKED), axis=1)[:, None])
    if REST:
        row_max = tl.maximum(row_max, tl.max(c, axis=1)[:, None])

    row_sum = tl.sum(exp(widen(a, 1, PACKED) - row_max, PACKED), axis=1)[:, None]
    if B:
        row_sum += tl.sum(exp(widen(b, 1, PACKED) - row_max, PACKED), axis=1)[:, None]
    if REST:
        row_sum += tl.sum(exp(c - row_max, PACKED), axis=1)[:, None]

    scale = 1.0 / row_sum
    tl.store(y_ptr + y_row + a_cols, exp(widen(a, 2, PACKED) - row_max, PACKED) * scale, mask=in_rows)
    if B:
        tl.store(y_ptr + y_row + b_cols, exp(widen(b, 2, PACKED) - row_max, PACKED) * scale, mask=in_rows)
    if REST:
        tl.store(y_ptr + y_row + c_cols, exp(c - row_max, PACKED) * scale, mask=in_rest)


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
def cluster_kernel(
    x_ptr,
    y_ptr,
    x_stride,
    y_stride,
    n_cols,
    PROGRAMS: tl.constexpr,
    PART: tl.constexpr,
    MASKED: tl.constexpr,
    PACKED: tl.constexpr,
):
    """Softmax of one row per cluster of PROGRAMS programs: (rows, n_cols) to (rows, n_cols).

    Launch with num_ctas=PROGRAMS. Triton gives line p of the (PROGRAMS, PART) tile to program p of the cluster, so
    all loads, reductions and stores below stay inside one program. Only `combine` reaches the others.
    MASKED is false where n_cols is PROGRAMS * PART.
    """
    row = tl.program_id(0).to(tl.int64)
    ranks = tl.arange(0, PROGRAMS)
    starts, lanes = ranks[:, None] * PART, tl.arange(0, PART)[None, :]
    mask = starts + lanes < n_cols if MASKED else None
    other = -float("inf") if MASKED else None
    mailbox = open_mailbox(PROGRAMS)
    x = tl.load((x_ptr + row * x_stride + starts) + lanes, mask=mask, other=other)
    part_max = tl.max(widen(x, 0, PACKED), axis=1)
    shift = tl.where(part_max == -float("inf"), 0.0, part_max)  # a part of nothing but -inf has the sum 0
    numerator = exp(widen(x, 1, PACKED) - shift[:, None], FAST=True)
    part_sum = tl.sum(numerator, axis=1)

    row_max, row_sum = combine(mailbox, part_max, part_sum, PROGRAMS)
    scale = 1.0 / row_sum
    if PACKED:  # computing the exponentials again takes no registers meanwhile
        y = exp(widen(x, 2, PACKED) - row_max[:, None], FAST=True) * scale[:, None]
    else:
        y = numerator * (exp(shift - row_max, FAST=True) * scale)[:, None]
    tl.store((y_ptr + row * y_stride + starts) + lanes, y, mask=mask)


@triton.jit
def two_pass_kernel(x_ptr, y_ptr, x_stride, y_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    """Softmax of one row per program, for rows of any length: (rows, n_cols) to (rows, n_cols).

    The first pass keeps a running maximum and sum for each lane (the online recurrence of Milakov and Gimelshein,
    arXiv:1805.02867). The second pass goes backwards, so that it begins with what the cache still holds.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row, y_row = x_ptr + row * x_stride, y_ptr + row * y_stride
    lanes = tl.arange(0, BLOCK_SIZE)
    lane_max = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        x = tl.load(x_row + start + lanes, mask=start + lanes < n_cols, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(lane_max, x)
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(x - shift)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    scale = 1.0 / tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0)
    blocks = tl.cdiv(n_cols, BLOCK_SIZE)
    for block in range(0, blocks):
        cols = (blocks - 1 - block) * BLOCK_SIZE + lanes
        x = tl.load(x_row + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(y_row + cols, tl.exp(x - row_max) * scale, mask=cols < n_cols)


@triton.jit
def group_kernel(
    x_ptr, y_ptr, max_ptr, sum_ptr, arrived_ptr, x_stride, y_stride, n_rows, n_cols,
    PROGRAMS: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """Softmax with each row shared by a group of PROGRAMS programs that meet in global memory.

    Launch with launch_cooperative_grid=True, so that all programs run at once; otherwise the loop that waits may
    never end. max_ptr and sum_ptr: (n_rows, PROGRAMS) float32. arrived_ptr: (n_rows,) int32, all 0 at the start.
    PROGRAMS and PART are powers of two. It needs no clusters, and it is slower than `cluster_kernel`.
    """
    member, group = tl.program_id(0) % PROGRAMS, tl.program_id(0) // PROGRAMS
    groups = tl.num_programs(0) // PROGRAMS
    cols, members = member * PART + tl.arange(0, PART), tl.arange(0, PROGRAMS)
    for row in range(group, n_rows, groups):
        row = tl.cast(row, tl.int64)
        x = tl.load(x_ptr + row * x_stride + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        part_max = tl.max(x, axis=0)
        safe_max = tl.where(part_max == -float("inf"), 0.0, part_max)
        numerator = tl.exp(x - safe_max)
        tl.store(max_ptr + row * PROGRAMS + member, part_max)
        tl.store(sum_ptr + row * PROGRAMS + member, tl.sum(numerator, axis=0))
        tl.debug_barrier()
        tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel")
        while tl.atomic_add(arrived_ptr + row, 0, sem="acquire") < PROGRAMS:
            pass
        maxima = tl.load(max_ptr + row * PROGRAMS + members, volatile=True)
        sums = tl.load(sum_ptr + row * PROGRAMS + members, volatile=True)
        row_max = tl.max(maxima, axis=0)
        row_sum = tl.sum(sums * tl.exp(maxima - row_max), axis=0)
        tl.store(y_ptr + row * y_stride + cols, numerator * (tl.exp(safe_max - row_max) / row_sum), mask=cols < n_cols)


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
    rows = max(1, SHORT_ROW // triton.next_power_of_2(n_cols * element_size))
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


# Launches of tile_kernel on NVIDIA: rows are taken by the first line whose columns they do not exceed.
# (columns, rows per program, warps, most registers per thread or None, packed, cut the row into pieces)
# Measured by sweep.py on one H200 at 256, 781, 1024, 2048, 4096, 8192, 12672, 16384 and 32768 columns; what lies
# between takes the launch of the next larger one.
TILES = {
    4: (  # float32: 8 to 32 numbers per thread, which is two to eight 16-byte loads
        (256, 2, 1, None, False, True),
        (1000, 1, 1, None, False, True),  # 781 = 512 + 256 + 13: one warp needs no barrier
        (1024, 1, 2, None, False, True),
        (2048, 2, 16, None, False, True),
        (8192, 1, 16, None, False, True),
        (WIDE, 1, 32, None, False, False),  # two pieces would be two reductions over 32 warps: padding is cheaper
    ),
    2: (  # bfloat16: as many bytes per thread as float32, so twice the numbers
        (256, 4, 2, None, False, True),
        (1000, 1, 1, None, False, True),
        (1024, 2, 4, None, False, True),
        (2048, 1, 4, None, False, True),
        (4096, 1, 8, None, False, True),
        (8192, 1, 16, None, False, True),
        (13000, 1, 8, 64, False, True),  # 12672 = 8192 + 4096 + 384; 64 registers: four programs fit, not three
        (16384, 1, 16, 40, True, True),  # packed: 32 registers hold 64 numbers, so three programs fit
        (WIDE, 1, 16, 64, True, True),  # packed: two rows of 64 KiB are on the chip at once, not one
    ),
}
# Launches of cluster_kernel: (columns, programs per row, warps, most registers or None, masked, packed).
CLUSTERS = {
    4: ((65536, 4, 8, None, False, False), (131072, 8, 8, None, False, False)),
    # The mask is not needed; with it the compiler's schedule needs 48 registers instead of 64, without spilling.
    2: ((65536, 2, 16, 48, True, True), (131072, 8, 8, 48, True, True)),
}


@functools.cache
def choose(dtype: torch.dtype, n_cols: int, ragged: bool, backend: str, capability: int) -> Launch:
    """The launch for rows of n_cols elements. No GPU is asked, so that it can be read and tested anywhere.

    ragged: input and output are contiguous, and not every row begins at a multiple of 16 bytes. backend: "cuda",
    "hip" or "interpreter". capability: of an NVIDIA GPU, such as 90; 0 elsewhere. Limits on registers, packing and
    clusters are NVIDIA's, so other GPUs get the same tiles without them.
    """
    size = dtype.itemsize
    nvidia = backend == "cuda"
    bfloat16 = dtype == torch.bfloat16
    if n_cols > WIDE:
        lines = CLUSTERS[size] if nvidia and capability >= 90 else ()
        for most, programs, warps, registers, masked, packed in lines:
            if n_cols <= most:
                part = triton.next_power_of_2(triton.cdiv(n_cols, programs))
                constants = {"PROGRAMS": programs, "PART": part, "MASKED": masked or n_cols != programs * part}
                constants["PACKED"] = packed and bfloat16
                options = {"num_warps": warps, "num_ctas": programs}
                if registers and bfloat16:  # float16 cannot be packed and would spill
                    options["maxnreg"] = registers
                return Launch(cluster_kernel, constants, options)
        return Launch(two_pass_kernel, {"BLOCK_SIZE": 8192}, {"num_warps": 16})
    lines = TILES[size]
    _, rows, warps, registers, packed, cut = next(line for line in lines if n_cols <= line[0])
    a, b, rest = pieces(n_cols) if cut else (_power_below(n_cols), 0, n_cols - _power_below(n_cols))
    vector = VECTOR_BYTES // size
    if not ragged or size == 4 or n_cols - a - b < vector:  # float32 gains nothing from wider loads here
        vector = 1
    constants = {"ROWS": rows, "A": a, "B": b, "REST": triton.next_power_of_2(rest) if rest else 0}
    constants |= {"VECTOR": vector, "PACKED": packed and bfloat16 and nvidia}
    options = {"num_warps": warps if nvidia else min(warps, 16)}  # 16 wavefronts are 1024 threads
    if nvidia and registers and bfloat16:
        options["maxnreg"] = registers
    return Launch(tile_kernel, constants, options, rows)


def pieces(n_cols: int) -> tuple[int, int, int]:
    """n_cols as a power of two, a smaller one or 0, and what is left: 781 = 512 + 256 + 13."""
    a = _power_below(n_cols)
    b = _power_below(n_cols - a) if n_cols - a >= max(1, a // 4) else 0
    return a, b, n_cols - a - b


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax over the last dimension of a matrix, by the fastest kernel that we know for its shape.

    x: (n_rows, n_cols), float32, float16 or bfloat16, columns side by side, any row stride. Returns a contiguous
    tensor of the same shape and dtype. Raises ValueError or TypeError for what it cannot take.
    """
    if x.dim() != 2 or x.stride(1) != 1:
        raise ValueError(f"expected a matrix whose columns lie side by side, got {tuple(x.shape)} {x.stride()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"expected float32, float16 or bfloat16, got {x.dtype}")
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y
    n_rows, n_cols = x.shape
    in_one_piece = x.stride(0) == n_cols and x.data_ptr() % VECTOR_BYTES == 0
    ragged = in_one_piece and n_cols * x.element_size() % VECTOR_BYTES != 0
    launch = choose(x.dtype, n_cols, ragged, *_target(x.device))
    sizes = (n_rows, n_cols) if launch.kernel is tile_kernel else (n_cols,)
    grid = (triton.cdiv(n_rows, launch.rows),)
    launch.kernel[grid](x, y, x.stride(0), y.stride(0), *sizes, **launch.constants, **launch.options)
    return y


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
