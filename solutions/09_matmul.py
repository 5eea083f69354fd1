# %% [markdown]
# # 9 · Matrix products: from one tile to the tensor cores
#
# So far every kernel waited for memory. A product of matrices is the other kind: each number that is loaded can be used many
# times, and arithmetic becomes the limit. Nearly all the time of a language model that reads a prompt is spent here.
#
# You write one tile, the whole product, the order in which tiles are computed, a layer whose bias and activation cost no
# extra bytes, and at last a product that is so thin that memory is the limit again.
#
# ![The operations of a language model from the embedding to the loss, with the matrix products lit, and their share of all bytes in decoding and in training.](../assets/layer_matmul.svg)

# %%
from workshop import DEVICE, compare, count_bytes, device, explore, here, matches, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("09_matmul")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `add_2d(x, y)` takes two matrices of one shape, each with **any strides** (one may be transposed),
# and returns their sum, contiguous.

# %% answer="add_2d"
### BEGIN SOLUTION
@triton.jit
def add_2d_kernel(
    x_ptr, y_ptr, output_ptr, x_row, x_column, y_row, y_column, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    across = tl.cdiv(n, COLUMNS)
    rows = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    columns = (tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    mask = (rows < m) & (columns < n)
    x = tl.load(x_ptr + rows * x_row + columns * x_column, mask=mask)
    y = tl.load(y_ptr + rows * y_row + columns * y_column, mask=mask)
    tl.store(output_ptr + rows * n + columns, x + y, mask=mask)


def add_2d(x, y):
    m, n = x.shape
    output = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if output.numel():
        grid = (triton.cdiv(m, 32) * triton.cdiv(n, 64),)
        add_2d_kernel[grid](x, y, output, *x.stride(), *y.stride(), m, n, ROWS=32, COLUMNS=64)
    return output
### STARTER
# def add_2d(x, y):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="add_2d"

# %% check="add_2d"
check("add_2d")

# %% [markdown]
# ## Picture
#
# ![A tile of c is the product of a strip of rows of a and a strip of columns of b. A pair of smaller tiles walks along k.](../assets/matmul.svg)
#
# ## Idea
#
# Element (i, j) of the product of a (m, k) and b (k, n) is a sum of k products: row i of a meets column j of b. So c has m · n
# sums of k multiplications and k additions: **2 m n k operations**.
#
# A program computes a *tile* of c, BLOCK_M × BLOCK_N sums, and keeps it in registers (*acc*). It walks along k in steps of
# BLOCK_K. Each step loads a tile of a and a tile of b, and multiplies them: `acc = tl.dot(a, b, acc)`. That one line becomes
# instructions of the *tensor cores* (AMD: *matrix cores*), and blocks must have at least 16 rows and columns.
#
# ### How large must a tile be?
#
# A step loads (BLOCK_M + BLOCK_N) · BLOCK_K numbers and does 2 · BLOCK_M · BLOCK_N · BLOCK_K operations. BLOCK_K is in both. In
# half precision (2 bytes) that makes
#
# $$\text{intensity} = \frac{\text{BLOCK\_M} \cdot \text{BLOCK\_N}}{\text{BLOCK\_M} + \text{BLOCK\_N}} \ \text{operations per byte}$$
#
# A card has a number of the same kind: its peak of operations divided by its bandwidth, the *ridge*. Below the ridge memory
# is the limit, above it arithmetic is. The data sheets say:

# %%
explore.roofline()

# %% [markdown]
# A tile of 128 × 128 has an intensity of 64, far below each ridge. Larger tiles do not fit: acc alone takes 256 × 256 × 4 bytes
# = 256 KiB, all registers of a multiprocessor. **So the L2 cache must help.** Programs that run at the same time share rows of a
# and columns of b: one loads them from memory, the others find them in L2. How well that works depends on *which* tiles
# run at the same time. You decide that below.
#
# ## Predict

# %%
explore.predict("intensity of a tile")

# %% [markdown]
# ## Write: one tile
#
# `tile_dot(a, b)` multiplies two contiguous matrices whose product fits into one tile: m and n are at most 64, k is any length.
# One program, one walk along k. Look at the walk first:

# %%
explore.tile_walk()

# %% answer="tile_dot"
# Five lines are yours: ① to ⑤. Everything else is right as it is.
@triton.jit
def tile_kernel(a_ptr, b_ptr, c_ptr, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    along = tl.arange(0, K)
    a_ptrs = a_ptr + rows[:, None] * k + along[None, :]  # ① starter: a_ptr + tl.zeros((M, K), tl.int32)
    b_ptrs = b_ptr + along[:, None] * n + columns[None, :]  # ② starter: b_ptr + tl.zeros((K, N), tl.int32)
    step = K * n  # ③ starter: 0 * n
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        mask = start + along < k  # ④ starter: along < 0
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc)  # ⑤ starter: acc + 1
        a_ptrs += K  # K columns to the right
        b_ptrs += step  # K rows down
    places = rows[:, None] * n + columns[None, :]
    tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


def tile_dot(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=torch.float32, device=a.device)
    high, wide = max(16, triton.next_power_of_2(m)), max(16, triton.next_power_of_2(n))
    tile_kernel[(1,)](a, b, c, m, n, k, M=high, N=wide, K=32)
    return c

# %%
a, b = torch.randn(40, 100, device=DEVICE), torch.randn(100, 24, device=DEVICE)
print("largest difference:", (tile_dot(a, b) - a @ b).abs().max().item())

# %%
explore.predict_bytes(tile_dot, a, b)

# %% [markdown] hints="tile_dot"

# %% [markdown]
# ## Check

# %% check="tile_dot"
check("tile_dot")

# %% [markdown]
# ### Which digits?
#
# Your difference may have been near 0.01, although all numbers are float32. **Tensor cores do not multiply float32.** They take
# *TF32*: float32 whose last 13 bits are cut off, so that three decimal digits are left. `tl.dot` chooses it by itself where the
# card has it. What the compiler makes of your kernel, for three cards:

# %%
def instructions(text, *kinds):
    """The matrix instructions in an assembly, and how often each occurs."""
    words = [word for line in text.splitlines() for word in line.split()[:2] if word.startswith(kinds)]
    return ", ".join(f"{words.count(word)} × {word}" for word in sorted(set(words))) or "none"


MATRIX = ("v_mfma", "wgmma.mma_async", "mma.sync")
report = xray(tile_kernel, "*fp32", "*fp32", "*fp32", 64, 64, 4096, M=64, N=64, K=32, targets=("sm_90", "gfx942", "gfx950"))
for target in ("sm_90", "gfx942", "gfx950"):
    print(f"{target:7}", instructions(report[target].isa, *MATRIX))

# %% [markdown]
# The last letters say it: `tf32` on Hopper, `xf32` (AMD's name for the same) on the MI300X, and true `f32` on the MI350, which has
# no xf32 any more. The same source gives other digits on another card. Write `tl.dot(a, b, acc, input_precision="ieee")` where
# float32 must be float32: on Hopper that is plain arithmetic without tensor cores, and much slower.
#
# A product of matrices can hide: up to Triton 3.7, the compiler makes a `tl.dot` with TF32 of
# `tl.sum(a[:, :, None] * b[None, :, :], axis=1)`, if the result has 16 rows and 16 columns or more. Of fewer than 8 products, an
# H200 even adds each of them several times. So write `tl.dot` yourself, with the precision that you want.
#
# For float16 and bfloat16 there is no such choice: their products are exact in float32. There the *accumulator* matters.
#
# ## Predict

# %%
explore.predict("half accumulator")

# %%
def rounded_in_between(k, step=16):
    """The relative error of a sum of k products of numbers near 1, rounded to float16 after each `step`."""
    a, b = 0.5 + torch.rand(2, 1000, k)
    exact = (a.double() * b.double()).sum(1)
    acc = torch.zeros(1000, dtype=torch.float16)
    for first in range(0, k, step):
        acc = (acc.float() + (a * b)[:, first : first + step].sum(1)).half()
    return ((acc.double() - exact) / exact).abs().max().item()


torch.manual_seed(0)
for terms in (64, 1024, 4096):
    print(f"k = {terms:4}   accumulator in float16: {rounded_in_between(terms):.1e}   rounding of the output: {2**-11:.1e}")

# %% [markdown]
# At k = 64 the error is hardly more than one rounding; at 4,096 it is about ten times as large. A test with small
# matrices does not see it. So `check` has long sums, and its tolerance follows from k: additions in float32 may lose about
# √k · 2⁻²⁴ of the sum of all magnitudes, and nothing more.
#
# ## Write: the whole product
#
# `matmul(a, b)` takes matrices of any size and **any strides**, float32, float16 or bfloat16, and returns c in their dtype,
# contiguous. A transposed matrix is no special case: element (i, j) of a lies at `i * a_row + j * a_column`. Accumulate in
# float32, and multiply float32 in IEEE precision.

# %% answer="matmul"
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, a_row, a_column, b_row, b_column,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_n = tl.cdiv(n, BLOCK_N)
    pid_m, pid_n = tl.program_id(0) // num_n, tl.program_id(0) % num_n
    rows = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    ### BEGIN SOLUTION
    along = tl.arange(0, BLOCK_K).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * a_row + along[None, :] * a_column
    b_ptrs = b_ptr + along[:, None] * b_row + columns[None, :] * b_column
    for start in range(0, k, BLOCK_K):
        mask = along < k - start
        a = tl.load(a_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * a_column
        b_ptrs += BLOCK_K * b_row
    ### STARTER
    # # your code here: the walk along k, about 9 lines. Both matrices have two strides.
    ### END SOLUTION
    places = rows[:, None] * n + columns[None, :]
    tl.store(c_ptr + places, acc, mask=(rows[:, None] < m) & (columns[None, :] < n))


def matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return c

# %%
a, b = torch.randn(200, 130, device=DEVICE), torch.randn(150, 130, device=DEVICE).t()
print("largest difference:", (matmul(a, b) - a @ b).abs().max().item())

# %%
explore.predict_bytes(matmul, a, b)

# %% [markdown] hints="matmul"

# %% check="matmul"
check("matmul")

# %% [markdown]
# ### Which tiles run together?
#
# Row by row, 132 programs of an H200 compute 132 tiles side by side: with 64 tiles in a row these are two rows of tiles and a
# bit. They need 3 strips of a and **all 64** strips of b. Take the tiles in *groups* instead: 8 rows of tiles high, down each column first.
# Then 132 programs fill a block of 8 × 17 tiles, and need 25 strips in place of 67, for the same work.

# %%
explore.l2_tiles()

# %% [markdown]
# ## Write: the order of the tiles
#
# `swizzle(pid, num_m, num_n, group)` takes plain integers and returns `(pid_m, pid_n)`. The first `group` rows of tiles are the first
# group. Inside a group the programs go down a column of tiles, then the next column. The last group is as high as it is: num_m need not
# be a multiple of group.

# %% answer="swizzle"
def swizzle(pid, num_m, num_n, group):
    ### BEGIN SOLUTION
    first_m = pid // (group * num_n) * group
    height = min(num_m - first_m, group)
    within = pid % (group * num_n)
    pid_m = first_m + within % height
    pid_n = within // height
    ### STARTER
    # pid_m = pid // num_n  # your code here: this is row by row
    # pid_n = pid % num_n
    ### END SOLUTION
    return pid_m, pid_n

# %%
order = [swizzle(pid, 5, 4, 2) for pid in range(20)]
for row in range(5):
    print(*(f"{order.index((row, column)) if (row, column) in order else '?':>3}" for column in range(4)))

# %% [markdown] hints="swizzle"

# %% check="swizzle"
check("swizzle")

# %% [markdown]
# ### An epilogue costs no bytes
#
# A layer of a model is $\text{gelu}(x w^T + b)$. As three torch operations, x wᵀ is written, read, written with the bias, read, and
# written again. In your kernel the tile is still in registers when the walk along k ends. Whatever you do to it before the
# store, the *epilogue*, moves nothing but the bias.
#
# ## Write: a layer
#
# `linear_gelu(x, w, b)` takes x (m, k), w (n, k) as torch.nn.Linear keeps it, and b (n,). The walk and the grouped order are
# there, and w is read with its strides exchanged. $\text{gelu}(z) = \tfrac12 z\,(1 + \text{erf}(z/\sqrt2))$, and `tl.erf` is
# Triton's erf.

# %% answer="linear_gelu"
@triton.jit
def linear_gelu_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    num_m, num_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    first_m = tl.program_id(0) // (GROUP * num_n) * GROUP
    height = tl.minimum(num_m - first_m, GROUP)
    within = tl.program_id(0) % (GROUP * num_n)
    rows = ((first_m + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    columns = (within // height * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    along = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * k + along[None, :]
    w_ptrs = w_ptr + along[:, None] + columns[None, :] * k
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        mask = along < k - start
        x = tl.load(x_ptrs, mask=(rows[:, None] < m) & mask[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=mask[:, None] & (columns[None, :] < n), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    ### BEGIN SOLUTION
    z = acc + tl.load(b_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    y = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    ### STARTER
    # y = acc  # your code here: the bias and gelu, 2 lines
    ### END SOLUTION
    tl.store(y_ptr + rows[:, None] * n + columns[None, :], y, mask=(rows[:, None] < m) & (columns[None, :] < n))


def linear_gelu(x, w, b):
    m, k = x.shape
    n = len(w)
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    linear_gelu_kernel[grid](x, w, b, y, m, n, k, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=8)
    return y

# %%
x, w, bias = torch.randn(200, 96, device=DEVICE), torch.randn(300, 96, device=DEVICE), torch.randn(300, device=DEVICE)
expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias))
print("largest difference:", (linear_gelu(x, w, bias) - expected).abs().max().item())

# %% [markdown] hints="linear_gelu"

# %% check="linear_gelu"
check("linear_gelu")

# %% [markdown]
# ## Measure
#
# First the bytes. Each strip of tiles is read by every program that needs it; on a card, L2 answers most of these reads.

# %%
if device().interpreting:
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    once = 3 * 256 * 256 * 4
    print(f"matmul       {count_bytes(matmul, a, b).bytes_read / once:.1f} × the bytes of a, b and c are loaded")
    moved = count_bytes(linear_gelu, a, b, b[0].clone())
    print(f"linear_gelu  {moved.bytes_written / (256 * 256 * 4):.0f} × the output is written")

# %% [markdown]
# Then the time, on a card, beside cuBLAS or hipBLAS (`torch.matmul`), in bfloat16. The unit of speed is now the operation: 10¹² of
# them in a second are one TFLOP/s. Without a GPU the cell shows the least time by the data sheet, if every matrix is read once.

# %%
def products_of(n):
    return tuple(torch.randn(2, n, n, device=DEVICE, dtype=torch.bfloat16))


if device().interpreting:
    speed = explore.roofline(256, 1024, 4096, 16384)
else:
    speed = compare(
        {"torch": torch.matmul, "yours": matmul},
        make_inputs=products_of,
        sizes=[1024, 2048, 4096, 8192],
        bytes_moved=lambda a, b: 3 * a.numel() * a.element_size(),
        check=matches(torch.matmul),
        title="Product of square matrices, bfloat16",
    )
    for row in speed.rows:
        if row.gbps:  # 2 n³ operations for 6 n² bytes
            print(f"{row.size:6}  {row.provider:6} {row.gbps.median * row.size / 3 / 1000:8.0f} TFLOP/s")
speed

# %% [markdown]
# What a launch decides, recorded on an H200. *lesson 9* is your kernel with groups of 8 rows, tiles of 128 × 256 × 64, 8 warps and
# 4 stages. Each other column changes one thing:

# %%
explore.recorded_products(
    "squares_bfloat16",
    ("torch", "lesson 9", "group 1", "1 stage", "2 stages", "3 stages", "tiles of 128", "tiles of 64", "columns clamped"),
)

# %% [markdown]
# - **The tile decides most.** A tile of 64 loads twice as many bytes for each operation as a tile of 128. At 1,024 it still wins:
#   there are only 32 tiles of 128 × 256 for 132 multiprocessors.
# - **Stages** let the tensor cores compute while the next tiles arrive. With one stage they wait in each step.
# - **Groups** matter when a row of tiles no longer fits into L2, at 8,192 and above.
# - ***columns clamped*** has `tl.where(columns < n, columns, 0)` in its addresses instead of a mask. It is right, and the compiler no
#   longer knows that neighbours lie side by side: it loads 2 bytes at a time. Use a mask where you can.
#
# Measure with random numbers, not with zeros. A card that multiplies zeros switches fewer wires, needs less power, and may keep a
# higher clock. The same products of zeros:

# %%
explore.recorded_products("zeros_bfloat16", ("torch", "lesson 9", "descriptors, persistent"))

# %% [markdown]
# ## Look inside
#
# Which instructions, registers and shared memory does a tile of 128 × 128 need? Your kernel of the layer, for an H200 and an
# MI300X, first with 4 warps and then with 8:

# %%
def compiled(target, **options):
    return xray(
        linear_gelu_kernel, "*bf16", "*bf16", "*bf16", "*bf16", 4096, 4096, 4096,
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP=8, targets=target, **options,
    )[target]  # fmt: skip


def describe(target, **options):
    one = compiled(target, **options)
    print(f"{target:7}", ", ".join(f"{name} {value}" for name, value in options.items()))
    print(f"        {instructions(one.isa, *MATRIX)}; {one.vgprs or one.registers} registers, {one.spills} spills,", end="")
    print(f" {one.shared // 1024} KiB shared, {one.barriers} barriers")


for target in ("sm_90", "gfx942"):
    for warps in (4, 8):
        describe(target, num_warps=warps)

# %% [markdown]
# acc has 128 × 128 float32. With 4 warps of 32 threads each thread holds 128 of them, and on Hopper nothing is left for the
# rest: registers are *spilled* to memory. 8 warps share the same tile. On the MI300X a warp has 64 threads and each of them up to
# 512 registers.
#
# One `wgmma` of four warps multiplies 64 × n × 16, one `v_mfma` of one warp 32 × 32 × 8 or 16 × 16 × 16. The option
# `matrix_instr_nonkdim` chooses between them. And `num_stages` says how many steps of the walk along k are on their way at once:

# %%
for nonkdim in (16, 32):
    describe("gfx942", matrix_instr_nonkdim=nonkdim)
for stages in (1, 2, 3):
    describe("gfx942", num_stages=stages)
    describe("sm_90", num_stages=stages, num_warps=8)

# %% [markdown]
# Each further stage keeps one more pair of tiles in shared memory: 2 · 128 · 64 numbers of 2 bytes are 32 KiB. A multiprocessor
# of an H200 has 227 KiB of it, a compute unit of an MI300X 64 KiB. There one stage less is in LDS, because the newest tiles wait
# in registers. At three stages its LDS is full: a fourth does not fit. (The numbers are those of your Triton's compiler.)
#
# ## Go further
#
# ### Thin products
#
# When a model writes one token for each of a few texts, x has 1 to 16 rows, and w is as large as ever. Each number of w is used at
# most 16 times: memory is the limit again, and it needs many programs at once. A layer with n = 1,024 has 16 tiles of 64
# columns: 16 programs for 132 multiprocessors. So cut k as well. This is *split-K*, and it is lesson 7's split of the
# cache: each part writes sums of its own, and a second kernel adds them **in a fixed order**. (With `tl.atomic_add` there is no
# second kernel, and the bits change from call to call, as in lesson 8.)
#
# `skinny_matmul(x, w)` takes x (m, k) with m ≤ 16 and w (k, n), and splits k where it is 4,096 or more. (Where the
# columns alone make more programs than a device has multiprocessors, you need not.)

# %% answer="skinny_matmul"
@triton.jit
def part_kernel(
    x_ptr, w_ptr, parts_ptr, m, n, k, part_length, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    across = tl.cdiv(n, BLOCK_N)
    part = (tl.program_id(0) // across).to(tl.int64)
    rows = tl.arange(0, 16).to(tl.int64)[:, None]
    columns = (tl.program_id(0) % across * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    ### BEGIN SOLUTION
    first = part * part_length
    end = tl.minimum(first + part_length, k)
    ### STARTER
    # first, end = 0, k  # your code here: where does this part of k begin and end?
    ### END SOLUTION
    acc = tl.zeros((16, BLOCK_N), tl.float32)
    for start in range(first, end, BLOCK_K):
        along = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x = tl.load(x_ptr + rows * k + along[None, :], mask=(rows < m) & (along[None, :] < end), other=0.0)
        w = tl.load(w_ptr + along[:, None] * n + columns, mask=(along[:, None] < end) & (columns < n), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    tl.store(parts_ptr + (part * m + rows) * n + columns, acc, mask=(rows < m) & (columns < n))


@triton.jit
def add_kernel(parts_ptr, y_ptr, parts, elements, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        ### BEGIN SOLUTION
        total += tl.load(parts_ptr + part * elements + places, mask=places < elements, other=0.0)
        ### STARTER
        # total += 0.0  # your code here: add the sums of this part
        ### END SOLUTION
    tl.store(y_ptr + places, total, mask=places < elements)


def skinny_matmul(x, w):
    m, k = x.shape
    n = w.shape[1]
    across = triton.cdiv(n, 64)
    ### BEGIN SOLUTION
    wanted = max(2, triton.cdiv(2 * device().multiprocessors, across))
    parts = min(triton.cdiv(k, 512), wanted)
    ### STARTER
    # parts = 1  # your code here: enough parts for the device, each of 512 numbers along k or more
    ### END SOLUTION
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    sums = torch.empty((parts, m, n), dtype=torch.float32, device=x.device)
    part_kernel[(parts * across,)](x, w, sums, m, n, k, triton.cdiv(k, parts), BLOCK_N=64, BLOCK_K=32)
    add_kernel[(triton.cdiv(m * n, 256),)](sums, y, parts, m * n, BLOCK=256)
    return y

# %%
x, w = torch.randn(5, 4200, device=DEVICE), torch.randn(4200, 90, device=DEVICE)
print("largest difference:", (skinny_matmul(x, w) - x @ w).abs().max().item())

# %% [markdown] hints="skinny_matmul"

# %% check="skinny_matmul"
check("skinny_matmul")

# %% [markdown]
# ### Descriptors and persistent programs
#
# Two things are left between your kernel and cuBLAS. On Hopper a *tensor descriptor* gives the load of a whole tile to a unit of its
# own: one thread asks, no registers hold addresses or masks, and the edges of the matrix are cut there.
#
# ```python
# from triton.tools.tensor_descriptor import TensorDescriptor
# a_desc = TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])  # on the host
# a = a_desc.load([row, start])                                 # in the kernel: no pointers, no mask
# ```
#
# And in lesson 4 persistent programs lost. Here they may pay: a tile ends with an epilogue in which the tensor cores have
# nothing to do, and a program that goes on to its next tile can load it meanwhile. Start one program for each
# multiprocessor, and let each take every 132nd tile:
#
# ```python
# for tile in tl.range(tl.program_id(0), num_m * num_n, tl.num_programs(0), flatten=True):
#     ...  # the whole kernel, with tile in the place of pid
# ```
#
# `flatten=True` makes one loop of the two, over tiles and along k, so that the loads of the next tile begin before the store of the last one.
# `benchmarks/kernels/matmul.py` does both, and chooses the tile that needs the fewest full rounds of 132:

# %%
explore.recorded_products("squares_bfloat16", ("torch", "lesson 9", "descriptors", "descriptors, persistent"))

# %% [markdown]
# At sizes that nobody chose for their speed the picture is another one. These shapes are drawn; three of four have odd sides:

# %%
explore.recorded_products("drawn_1_bfloat16")

# %% [markdown]
# **Where n or k is odd, torch falls to a sixth.** A row of an odd number of bfloat16 begins at an address that is no multiple of 4, and
# neither `cp.async` nor a descriptor can load from there. A descriptor wants steps of 16 bytes. So the last column *copies* such a
# matrix once, with rows a little longer. The copy moves m · k numbers; the product does 2 n operations for each of them.
#
# Change `matmul_kernel` into a persistent one, and let `check` say whether it is still right.
#
# ### More
#
# - `tl.dot(a, b, acc, input_precision="tf32x3")` takes three TF32 products for one of float32. Which digits does it lose?
# - `num_stages` and the blocks are worth an `@triton.autotune` (lesson 1). What belongs to its key?
#
# ### Read next
#
# - [Triton's own tutorials](https://triton-lang.org/main/getting-started/tutorials/index.html) on matrix multiplication and on
#   persistent kernels.
# - [Roofline](https://doi.org/10.1145/1498765.1498785), Williams, Waterman and Patterson, 2009.
# - [Numerical behavior of NVIDIA tensor cores](https://doi.org/10.7717/peerj-cs.330), 2021: how they round.

# %%
progress()
