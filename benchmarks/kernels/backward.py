"""Gradients with as few reads and writes as the hardware allows: softmax, cross-entropy, the weight of an RMS norm.

Lesson 8 has a simple kernel for each of them, with which these are compared. All matrices are contiguous. The first two
keep a row in registers as `stripes` in softmax.py does, so each matrix is read once. They compute in float32.
"""

import functools
import math
from dataclasses import replace

import torch
import triton
import triton.language as tl

from workshop import device

from .softmax import (
    WORD,
    Launch,
    _target,
    choose,
    combine,
    from_all_lanes,
    in_all_lanes,
    in_clusters,
    kept,
    open_mailbox,
    places,
    places_of_ends,
    stripes,
    stripes_launch,
    widen_again,
    words,
)


@triton.jit
def stripe(row_ptr, place, in_words, WHOLE: tl.constexpr):
    """The columns at `place` of a row; what is not below in_words is 0. WHOLE: all columns are."""
    return tl.load(row_ptr + place, mask=None if WHOLE else place < in_words, other=None if WHOLE else 0.0)


@triton.jit(do_not_specialize=["n_rows", "n_cols"])
def softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, n_rows, n_cols,
    ROWS: tl.constexpr, PROGRAMS: tl.constexpr, STRIPE: tl.constexpr, STRIPES: tl.constexpr, FULL: tl.constexpr,
    VECTOR: tl.constexpr, RAGGED: tl.constexpr, PACKED: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """dx = y * (dy - sum of y * dy) for ROWS rows per program, or one row per cluster; all (n_rows, n_cols).

    The constants are those of `stripes_kernel`. KEPT: stripes of dy that stay in registers, all or AT_ONCE. Where a
    row of both matrices is too long for the chip, dy is loaded again, AT_ONCE stripes at a time; the cache has it.
    """
    lines = tl.arange(0, ROWS * PROGRAMS)[:, None]
    cols = tl.arange(0, STRIPE)[None, :]
    row = tl.program_id(0).to(tl.int64)
    if ROWS > 1:
        row = tl.minimum(tl.program_id(0) * ROWS + lines, n_rows - 1).to(tl.int64)
    if PROGRAMS > 1:
        cols = lines * STRIPE + cols
        mailbox = open_mailbox(PROGRAMS)
    first, head, in_words = places(row, n_cols, n_cols, VECTOR)
    if RAGGED:
        end, in_ends = places_of_ends(lines, head, in_words, n_cols, ROWS, STRIPE, VECTOR)
        y_ends = tl.load(y_ptr + row * n_cols + end, mask=in_ends, other=0.0).to(tl.float32)
        dy_ends = tl.load(dy_ptr + row * n_cols + end, mask=in_ends, other=0.0).to(tl.float32)
        y_ends, dy_ends = in_all_lanes(y_ends, VECTOR), in_all_lanes(dy_ends, VECTOR)
    y_words, dy_words, dx_words = y_ptr + first, dy_ptr + first, dx_ptr + first
    lane_sum = tl.zeros((ROWS * PROGRAMS, STRIPE), tl.float32)
    ys = ()
    for start in tl.static_range(0, STRIPES, KEPT):
        dys = ()
        for k in tl.static_range(start, start + KEPT):
            if k < STRIPES:
                ys = ys + (stripe(y_words, k * PROGRAMS * STRIPE + cols, in_words, k < FULL),)
                dys = dys + (stripe(dy_words, k * PROGRAMS * STRIPE + cols, in_words, k < FULL),)
        for k in tl.static_range(start, start + KEPT):
            if k < STRIPES:
                lane_sum += ys[k].to(tl.float32) * dys[k - start].to(tl.float32)
    if RAGGED:
        lane_sum += y_ends * dy_ends * (1 / VECTOR)
    total = tl.sum(lane_sum, axis=1)
    if PROGRAMS > 1:
        _, total = combine(mailbox, tl.zeros_like(total), total, PROGRAMS)
    total = total[:, None]
    zero = (total != total).to(tl.int32)  # 0 wherever there is a result

    for start in tl.static_range(0, STRIPES, KEPT):
        if KEPT < STRIPES:
            dys = ()
            for k in tl.static_range(start, start + KEPT):
                if k < STRIPES:
                    dys = dys + (stripe(dy_words, k * PROGRAMS * STRIPE + cols, in_words, k < FULL),)
        for k in tl.static_range(start, start + KEPT):
            if k < STRIPES:
                place = k * PROGRAMS * STRIPE + cols
                dx = widen_again(ys[k], zero, PACKED) * (widen_again(dys[k - start], zero, PACKED) - total)
                tl.store(dx_words + place, dx, mask=None if k < FULL else place < in_words)
    if RAGGED:
        dx = from_all_lanes(y_ends * (dy_ends - total), VECTOR)
        tl.store(dx_ptr + row * n_cols + end, dx, mask=in_ends)


def softmax_backward(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    """The gradient dx of softmax over rows, from its output and the gradient of that, both (m, n) and contiguous.

    float32, float16 or bfloat16. Raises ValueError for other strides, and for rows that no cluster can keep.
    """
    if not (y.is_contiguous() and dy.is_contiguous() and y.shape == dy.shape):
        raise ValueError("expected two contiguous matrices of one shape")
    dx = torch.empty_like(y)
    if dx.numel():
        launch = backward_launch(y.dtype, y.shape[1], (y.data_ptr() | dy.data_ptr()) & 15, *_target(y.device))
        grid = (triton.cdiv(y.shape[0], launch.rows),)
        launch.kernel[grid](y, dy, dx, *y.shape, **launch.constants, **launch.options)
    return dx


AT_ONCE = 8  # stripes of dy that are loaded again together


@functools.cache
def backward_launch(dtype: torch.dtype, n_cols: int, address: int, backend: str, capability: int) -> Launch:
    """The launch of `softmax_backward_kernel` for rows of n_cols elements at `address`, modulo 16."""
    given = (dtype, n_cols, *words(dtype, n_cols, n_cols, address), backend)
    chosen = kept(*given, capability, arrays=2)
    again = chosen is None
    if again:
        _, _, vector, ragged, _ = given
        programs = 8 if n_cols // vector <= 8 * 512 * 16 else 16
        if not in_clusters(ragged, backend, capability) or n_cols // vector > 16 * 512 * 16:
            raise ValueError(f"rows of {n_cols} columns are too long for this GPU")
        chosen = {"lanes": 512, "programs": programs, "registers": 128}
    launch = stripes_launch(*given, **chosen)
    constants = {name: value for name, value in launch.constants.items() if name not in ("AGAIN", "FAST")}
    constants["KEPT"] = AT_ONCE if again else constants["STRIPES"]
    return replace(launch, kernel=softmax_backward_kernel, constants=constants)


@triton.jit(do_not_specialize=["n_rows", "n_cols"])
def loss_kernel(
    x_ptr, target_ptr, count_ptr, lse_ptr, dx_ptr, n_rows, n_cols, ignored,
    ROWS: tl.constexpr, PROGRAMS: tl.constexpr, STRIPE: tl.constexpr, STRIPES: tl.constexpr, FULL: tl.constexpr,
    VECTOR: tl.constexpr, RAGGED: tl.constexpr, AGAIN: tl.constexpr, PACKED: tl.constexpr, FAST: tl.constexpr,
):  # fmt: skip
    """dx = softmax(x) / count, and lse = log(sum(exp(x))) of each row; rows with the target `ignored` have dx = 0."""
    lines = tl.arange(0, ROWS * PROGRAMS)[:, None]
    row = tl.program_id(0).to(tl.int64)
    if ROWS > 1:
        row = tl.minimum(tl.program_id(0) * ROWS + lines, n_rows - 1).to(tl.int64)
    factor = tl.where(tl.load(target_ptr + row) == ignored, 0.0, 1.0 / tl.load(count_ptr).to(tl.float32))
    row_max, row_sum = stripes(
        x_ptr, dx_ptr, n_cols, n_cols, row, lines, factor, n_cols,
        ROWS, PROGRAMS, STRIPE, STRIPES, FULL, VECTOR, RAGGED, AGAIN, PACKED, FAST,
    )  # fmt: skip
    tl.store(lse_ptr + row + lines * 0, row_max + tl.log(row_sum))


@triton.jit
def target_kernel(x_ptr, target_ptr, count_ptr, lse_ptr, loss_ptr, dx_ptr, n_rows, n_cols, ignored, ROWS: tl.constexpr):
    """What only the target of a row changes: the loss, and one number of the gradient."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask = row < n_rows
    target = tl.load(target_ptr + row, mask=mask, other=ignored)
    counts = target != ignored
    place = row * n_cols + target
    lse = tl.load(lse_ptr + row, mask=mask, other=0.0)
    x = tl.load(x_ptr + place, mask=counts, other=0.0).to(tl.float32)
    tl.store(loss_ptr + row, tl.where(counts, lse - x, 0.0), mask=mask)
    dx = (tl.exp(x - lse) - 1.0) / tl.load(count_ptr).to(tl.float32)
    tl.store(dx_ptr + place, dx, mask=counts)


@triton.jit
def scale_kernel(dx_ptr, dloss_ptr, n, BLOCK: tl.constexpr):
    """dx *= dloss in place; nothing moves where dloss is 1, which is so unless something follows the loss."""
    dloss = tl.load(dloss_ptr)
    if dloss != 1.0:
        offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        dx = tl.load(dx_ptr + offsets, mask=offsets < n).to(tl.float32)
        tl.store(dx_ptr + offsets, dx * dloss, mask=offsets < n)


class CrossEntropy(torch.autograd.Function):
    """The gradient is computed in the forward pass, while the row is on the chip, and may be asked for once."""

    @staticmethod
    def forward(ctx, logits, targets, ignored):
        m, n = logits.shape
        losses, lse = torch.empty((2, m), dtype=torch.float32, device=logits.device)
        dx = torch.empty_like(logits)
        count = (targets != ignored).sum()
        launch = loss_launch(logits.dtype, n, logits.data_ptr() & 15, *_target(logits.device))
        launch.kernel[(triton.cdiv(m, launch.rows),)](
            logits, targets, count, lse, dx, m, n, ignored, **launch.constants, **launch.options
        )
        target_kernel[(triton.cdiv(m, 128),)](logits, targets, count, lse, losses, dx, m, n, ignored, ROWS=128)
        ctx.save_for_backward(dx)
        return losses.sum() / count

    @staticmethod
    def backward(ctx, dloss):
        (dx,) = ctx.saved_tensors
        scale_kernel[(triton.cdiv(dx.numel(), 16384),)](dx, dloss, dx.numel(), BLOCK=16384, num_warps=8)
        return dx, None, None


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean loss of contiguous logits (m, n) and targets (m,) in int64; targets of -100 do not count."""
    return CrossEntropy.apply(logits, targets, -100)


@functools.cache
def loss_launch(dtype: torch.dtype, n_cols: int, address: int, backend: str, capability: int) -> Launch:
    """The launch of `loss_kernel` for rows of n_cols elements at `address`, modulo 16: that of softmax."""
    launch = choose(dtype, n_cols, *words(dtype, n_cols, n_cols, address), backend, capability)
    return replace(launch, kernel=loss_kernel)


@triton.jit
def weight_grad_kernel(
    x_ptr, dy_ptr, rstd_ptr, parts_ptr, m, n, across, part_rows,
    PERIOD: tl.constexpr, VECTOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A line of parts_ptr for each program in a block of columns: its sum over some of the rows.

    Where a row is no multiple of a word, only every PERIOD-th row begins at the same place within one. A program
    takes just such rows, so a lane has the same column in all of them, and every load is a whole word. What a word
    has of the neighbouring rows is added, too, in lanes that nobody stores. Only the last columns of the last row may
    lie in no whole word: `add_parts_kernel` adds them.
    """
    part = (tl.program_id(0) // across).to(tl.int64)
    first = part // PERIOD * part_rows + part % PERIOD
    end = tl.minimum(part // PERIOD * part_rows + part_rows, m)
    shift = (first * n % VECTOR).to(tl.int32)
    lanes = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    in_row = lanes < (shift + n + VECTOR - 1) // VECTOR * VECTOR
    in_words = tl.cast(m, tl.int64) * n // VECTOR * VECTOR
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in tl.range(first, end, ROWS * PERIOD, num_stages=STAGES):
        rows = start + tl.arange(0, ROWS) * PERIOD
        place = (rows * n // VECTOR * VECTOR)[:, None] + lanes[None, :]
        mask = (rows < end)[:, None] & in_row[None, :] & (place < in_words)
        x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + place, mask=mask, other=0.0).to(tl.float32)
        sums += x * dy * tl.load(rstd_ptr + rows, mask=rows < end, other=0.0)[:, None]
    columns = lanes - shift
    tl.store(parts_ptr + part * n + columns, tl.sum(sums, axis=0), mask=(columns >= 0) & (columns < n))


@triton.jit
def add_parts_kernel(
    x_ptr, dy_ptr, rstd_ptr, parts_ptr, output_ptr, parts, m, n,
    VECTOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sum of each column of (parts, n), always in the same order, and of what lies in no whole word."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, parts, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows < parts)[:, None] & (columns < n)[None, :]
        sums += tl.load(parts_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    place = (tl.cast(m, tl.int64) - 1) * n + columns
    rest = (columns < n) & (place >= tl.cast(m, tl.int64) * n // VECTOR * VECTOR)
    x = tl.load(x_ptr + place, mask=rest, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + place, mask=rest, other=0.0).to(tl.float32)
    tl.store(output_ptr + columns, tl.sum(sums, axis=0) + x * dy * tl.load(rstd_ptr + m - 1), mask=columns < n)


def rms_norm_weight_grad(x: torch.Tensor, dy: torch.Tensor, rstd: torch.Tensor) -> torch.Tensor:
    """The sums over rows of x * dy * rstd in float32, (n,), the same bits on each call.

    x, dy: (m, n), contiguous. rstd: (m,), float32.
    """
    m, n = x.shape
    output = torch.zeros(n, dtype=torch.float32, device=x.device)
    if m == 0 or n == 0:
        return output
    vector = WORD // x.element_size()
    if n < vector or (x.data_ptr() | dy.data_ptr()) % WORD:
        vector = 1
    period = vector // math.gcd(n, vector)
    lanes = n + (vector - 1 if period > 1 else 0)
    columns = min(1024, triton.next_power_of_2(lanes))
    across = triton.cdiv(lanes, columns)
    # Loading ahead pays where rows begin with a word, or a program has little of a row.
    ahead = period == 1 or x.element_size() == 2 and across <= 2
    chunks = triton.cdiv((4 if ahead else 8) * device().multiprocessors, across * period)
    part_rows = triton.cdiv(triton.cdiv(m, chunks), period) * period
    parts = triton.cdiv(m, part_rows) * period
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    weight_grad_kernel[(parts * across,)](
        x, dy, rstd, sums, m, n, across, part_rows, PERIOD=period, VECTOR=vector,
        ROWS=2048 // columns, COLUMNS=columns, STAGES=(3 if period == 1 else 4) if ahead else 1,
    )  # fmt: skip
    add_parts_kernel[(triton.cdiv(n, 16),)](x, dy, rstd, sums, output, parts, m, n, VECTOR=vector, ROWS=128, COLUMNS=16)
    return output
