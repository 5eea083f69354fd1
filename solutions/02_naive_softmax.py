# %% [markdown]
# # 2 · Naive softmax: three passes over a row
#
# Your first kernel with loops: softmax over rows of any length, block of columns by block of columns. On the
# way you learn to count bytes, because for softmax bytes decide the speed.
#
# Two exercises: count what softmax moves, then write the kernel.
#
# ![The operations of a language model from the embedding to the loss, with softmax lit, and their share of all bytes in decoding and in training.](../assets/layer_softmax.svg)

# %%
from workshop import DEVICE, compare, device, explore, here, matches, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("02_naive_softmax")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `scale_vector(x, a)` returns `a * x` for a contiguous vector of any length. These are the five
# lines of lesson 1, with one pointer less and one number more. Look back only when you are stuck.

# %% answer="scale_vector"
### BEGIN SOLUTION
@triton.jit
def scale_vector_kernel(x_ptr, output_ptr, a, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, a * x, mask=mask)


def scale_vector(x, a):
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements:
        scale_vector_kernel[(triton.cdiv(n_elements, 1024),)](x, output, a, n_elements, BLOCK_SIZE=1024)
    return output
### STARTER
# def scale_vector(x, a):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="scale_vector"

# %% check="scale_vector"
check("scale_vector")

# %% [markdown]
# ## Picture
#
# ![Safe softmax in three passes over a row: the running maximum, then the running sum of exponentials, then the division, worked through for the row 1, 3, 2, 5.](../assets/safe_softmax.svg)

# %% [markdown]
# ## Idea
#
# Softmax turns a row of numbers, often called *logits*, into probabilities: all positive, adding up to 1.
#
# $$y_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# Written like this it breaks on quite ordinary numbers:

# %%
row = torch.tensor([10.0, 50.0, 100.0])
print("exp(x) ", torch.exp(row))
print("softmax", torch.exp(row) / torch.exp(row).sum())

# %% [markdown]
# $e^{100}$ is larger than the largest float32 (about $3.4 \cdot 10^{38}$, reached at $x \approx 88.7$), so it
# becomes `inf`, and `inf / inf` is `nan`.
#
# The cure: subtract the row's maximum $m$ first. The factor $e^{-m}$ cancels, so the quotient is the same:
#
# $$\frac{e^{x_i - m}}{\sum_j e^{x_j - m}} = \frac{e^{-m}\, e^{x_i}}{e^{-m} \sum_j e^{x_j}}$$
#
# Now every exponent is at most 0. Every term lies between 0 and 1, and the largest is exactly 1, so the sum
# is at least 1: nothing overflows, and nothing is divided by zero.

# %%
shifted = torch.exp(row - row.max())
print("exp(x - m)", shifted)
print("softmax   ", shifted / shifted.sum())
print("torch     ", torch.softmax(row, dim=0))

# %% [markdown]
# ### Why count bytes?
#
# A tensor lives in the GPU's main memory (*HBM*, high-bandwidth memory), at the bottom of lesson 0's picture. How much
# could a GPU compute while a number is on its way from there? An H200 does up to 67 · 10¹² float32 operations in a
# second, and its memory brings up to 4.8 · 10¹² bytes ([NVIDIA's data](https://www.nvidia.com/en-us/data-center/h200/)):
# 14 operations for each byte. The best softmax kernel moves 8 bytes for each float32. In that time the card could do 112
# operations, and softmax does about five. (They count for more, because an exponential or a division is several
# instructions: 10 to 40 % of what the machine could do in that time.) So memory is the limit.
#
# Such a kernel is *memory-bound*: its run time is the bytes it moves, divided by the memory's speed. Operations for each byte
# are called *arithmetic intensity*. A large matrix product has hundreds, and is *compute-bound*.
#
# This matters in practice. A study of the training of BERT found that matrix products do 99.8 % of the operations, but
# take only 61 % of the time. The other 39 % went into softmax, normalization, dropout and the like
# ([Data Movement Is All You Need](https://arxiv.org/abs/2007.00072), 2020).
#
# Here is softmax in five torch operations. Each one is a kernel of its own, so each reads its inputs from
# memory and writes its result back:


# %%
def five_step_softmax(x):
    row_max = x.amax(dim=1, keepdim=True)  # 1. max
    z = x - row_max  # 2. subtract
    numerator = torch.exp(z)  # 3. exp
    row_sum = numerator.sum(dim=1, keepdim=True)  # 4. sum
    return numerator / row_sum  # 5. divide


x = torch.randn(64, 781, device=DEVICE)
torch.testing.assert_close(five_step_softmax(x), torch.softmax(x, dim=1))

# %% [markdown]
# A *fused* kernel does all five steps on numbers that stay on the chip. It reads `x` once and writes `y`
# once.
#
# ## Predict
#
# For a large matrix: how many times as many bytes do the five operations move as one fused kernel? Your guess is not
# graded, but you will remember the answer better.

# %%
explore.predict("five steps")

# %% [markdown]
# ## Write: count the bytes
#
# Let `x` have $M$ rows and $N$ columns. Fill in the table for yourself, then write the function. The first
# line is done: `max` reads every element of `x` and writes one number per row.
#
# | step | elements read | elements written |
# |---|---|---|
# | 1. max | $MN$ | $M$ |
# | 2. subtract | | |
# | 3. exp | | |
# | 4. sum | | |
# | 5. divide | | |
#
# `bytes_moved(m, n, element_size)` returns four numbers of **bytes**: read and written by the five torch
# operations, read and written by one fused kernel.


# %% answer="bytes_moved"
def bytes_moved(m, n, element_size):
    ### BEGIN SOLUTION
    elements = {
        "torch_read": 5 * m * n + 2 * m,
        "torch_written": 3 * m * n + 2 * m,
        "fused_read": m * n,
        "fused_written": m * n,
    }
    ### STARTER
    # elements = {
    #     "torch_read": m * n,  # step 1 alone
    #     "torch_written": m,  # step 1 alone
    #     "fused_read": 0,
    #     "fused_written": 0,
    # }
    ### END SOLUTION
    return {name: count * element_size for name, count in elements.items()}


# %% [markdown] hints="bytes_moved"

# %% [markdown]
# ## Check

# %% check="bytes_moved"
check("bytes_moved")

# %% [markdown]
# The same with your own count, for 4096 rows of 8192 float32:

# %%
moved = bytes_moved(4096, 8192, 4)
in_five_steps = moved["torch_read"] + moved["torch_written"]
fused = moved["fused_read"] + moved["fused_written"]
print(f"five steps {in_five_steps / 1e6:7.1f} MB")
print(f"fused      {fused / 1e6:7.1f} MB")
ratio = in_five_steps / fused if fused else float("nan")
print(f"ratio      {ratio:7.2f}")

# %% [markdown]
# <details><summary>The picture behind the numbers</summary>
#
# ![Five torch operations read 5MN + 2M elements and write 3MN + 2M; one fused kernel reads MN and writes MN.](../assets/five_ops_traffic.svg)
#
# The short terms, $2M$, belong to `row_max` and `row_sum`: one number per row.
#
# </details>

# %% [markdown]
# ### From torch to one kernel, a row at a time
#
# One program takes one row. A row may be longer than a program can hold, so the program walks over it in
# blocks of `BLOCK_SIZE` columns, and it walks three times:
#
# 1. **the maximum** of the row,
# 2. **the sum** of $e^{x - m}$,
# 3. **the output**, $e^{x - m}$ divided by that sum.
#
# Three details decide whether the result is right.
#
# **Where a row begins.** In memory, row $r$ begins `r * row_stride` elements after row 0. The stride is the
# number of columns only when nothing lies between the rows. Input and output each have their own stride. (The picture is
# in lesson 1, at the bug hunt.)
#
# **The last block.** 781 columns are three blocks of 256 and 13 columns more. A mask switches the other lanes
# off, and `other` says what a switched-off lane holds instead. Pick the value that changes nothing:
# $-\infty$ is never the maximum, and $e^{-\infty} = 0$ adds nothing to the sum.
#
# **The type.** float16 and bfloat16 are fine for storing, but too coarse for adding up: convert each block to
# float32 right after the load. `tl.store` converts back to the output's type.
#
# ## Predict
#
# A copy reads every element once and writes it once, as a perfect softmax would. So a copy is the ceiling here.
# What fraction of a copy's speed can your kernel reach, at most?

# %%
explore.predict("three passes")

# %% [markdown]
# ## Write: naive softmax
#
# All three passes are yours. The starter has the loop of one pass, and copies the row: load a block, store a block.
#
# Pass 1 makes one number of every block, and keeps the largest. Write pass 2 in another way. Let **each lane keep a sum
# of its own**, in a block that begins as `tl.zeros((BLOCK_SIZE,), tl.float32)`, and combine the lanes once, after the
# loop: 256 lanes meet once instead of once for each block. (A sum that is one number, as in pass 1, is right too.)
#
# The host function is complete: it refuses what the kernel cannot read, allocates the output, and launches one program
# per row.
#
# The numbers of `x` may be as far from 0 as $\pm 2.3 \cdot 10^{38}$. So `x * log2(e)` is finite, if you want `tl.exp2`.
#
# `tl.max(block, axis=0)` makes one number of a block, and so does `tl.sum`. `tl.maximum(a, b)` is the larger of two,
# and `tl.exp` works on each number by itself.


# %% answer="naive_softmax"
@triton.jit
def naive_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)  # 64 bits: row * row_stride may exceed 2^31
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride

    ### BEGIN SOLUTION
    # Pass 1: the maximum.
    row_max = -float("inf")
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        block = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        row_max = tl.maximum(row_max, tl.max(block, axis=0))

    # Pass 2: the sum of exp(x - row_max), first in each lane, then over the lanes.
    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        block = tl.load(in_row + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)
        lane_sum += tl.exp(block - row_max)
    row_sum = tl.sum(lane_sum, axis=0)

    # Pass 3: the output.
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        block = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        softmax = tl.exp(block - row_max) / row_sum
        tl.store(output_row + offsets, softmax, mask=mask)
    ### STARTER
    # # Your code here, three passes: about 16 lines.
    # # Pass 1: row_max, the largest number of the row.
    # # Pass 2: row_sum, the sum of exp(x - row_max).
    # # Pass 3: exp(x - row_max) / row_sum. Until then this copies the row.
    # for start in range(0, n_cols, BLOCK_SIZE):
    #     offsets = start + tl.arange(0, BLOCK_SIZE)
    #     mask = offsets < n_cols
    #     block = tl.load(in_row + offsets, mask=mask).to(tl.float32)
    #     tl.store(output_row + offsets, block, mask=mask)
    ### END SOLUTION


def naive_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        naive_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output


# %% [markdown]
# Try it before you check it, on the irregular shape 1823 × 781. When it is right, each row adds up to 1 (or 0.9999…), and
# the difference from torch is below 10⁻⁶.

# %%
x = torch.randn(1823, 781, device=DEVICE)
y = naive_softmax(x)
print("sums of the first rows:", [round(total, 4) for total in y[:4].sum(dim=1).tolist()])
print("largest difference from torch:", (y - torch.softmax(x, dim=1)).abs().max().item())

# %%
explore.predict_bytes(naive_softmax, x)

# %% [markdown] hints="naive_softmax"

# %% [markdown]
# ## Check
#
# The check draws its own rows, in three dtypes, of any length and with any row stride, 0 too: with low and huge numbers, with
# $-\infty$ in them, and no rows at all. It does not ask about rows with `nan` or $+\infty$, nor about columns that do not lie
# side by side.

# %% check="naive_softmax"
check("naive_softmax")

# %% [markdown]
# ### Why the check is strict
#
# In a row of 8192 numbers the outputs are around 1/8192. A tolerance that looks careful can be larger than
# all of them. Is an output of nothing but zeros close to softmax?

# %%
torch.manual_seed(0)
expected = torch.softmax(torch.randn(64, 8192), dim=1)
zeros = torch.zeros_like(expected)
for tolerance in (1e-2, 1e-3, 1e-5):
    accepted = torch.isclose(zeros, expected, atol=tolerance, rtol=tolerance).float().mean().item()
    print(f"tolerance {tolerance:5g}: zeros pass in {accepted:7.2%} of the elements")

# %% [markdown]
# So the check compares *relative* to the right value of each element, computed in float64.
#
# ## Measure
#
# First what is certain: how often does your kernel read and write each element? A copy moves 8 bytes for each.

# %%
explore.memory_traffic(lambda: naive_softmax(torch.randn(6, 30, device=DEVICE)))

# %% [markdown]
# Step through it, or press ▶. What do two passes and one move? (Lessons 3 and 4 build them.)

# %%
explore.passes()

# %% [markdown]
# ![Naive softmax: three arrows from memory to the program, one back, 16 bytes for each float32 element.](../assets/dataflow_naive.svg)

# %% [markdown]
# Now the time. On a GPU the next cell runs the three functions in turn, with a copy of the same size in between as
# the ceiling, and checks the output of every timed call. Without a GPU nothing is timed: you see the bytes
# per element, and curves that were recorded on the GPU they name.


# %%
def make_input(n_cols):
    """Rows of n_cols numbers: 1 GiB to read and write, too much for any cache. To be counted, less is enough."""
    elements = 2**20 if device().interpreting else 2**27
    return (torch.randn(triton.cdiv(elements, n_cols), n_cols, device=DEVICE),)


speed = compare(
    {
        "torch": lambda x: torch.softmax(x, dim=1),
        "five steps": five_step_softmax,
        "naive": naive_softmax,
    },
    make_input,
    sizes=(256, 512, 781, 1024, 2048, 4096, 8192, 16384, 32768),
    bytes_moved=lambda x: 2 * x.numel() * x.element_size(),
    check=matches(lambda x: torch.softmax(x, dim=1)),
    title="Naive softmax, float32",
    recorded="h200_softmax_float32",
)
speed

# %%
curves = speed.only("torch", "naive, block 256") if device().interpreting else speed
curves.plot()

# %% [markdown]
# GB/s here means useful bytes, $2MN$ times the element's size, per second: a kernel that reads everything
# three times gets no credit for it. Without a GPU, "naive, block 256" is a kernel of three passes like yours, recorded on
# the GPU that is named below the plot. The dotted line is *your* kernel, once its result is right: half of the copy,
# because of the bytes you counted.
#
# At which $N$ is the naive kernel above half of the copy, and how can that be?
#
# <details><summary>An answer</summary>
#
# Short rows: {{h200_softmax_float32; 1024; naive, block 256; of copy}} of the copy at N = 1024, but
# {{h200_softmax_float32; 8192; naive, block 256; of copy}} at 8192. An H200 has 132 *multiprocessors*, the parts of a GPU
# that run programs, and each runs up to 16 of these at once: 2,112 in all. With rows of 1024 numbers they work on 8.7 MB, which stays in the cache
# for the second and third pass, and the memory sees fewer than three reads. With rows of 8192 numbers it is 69 MB,
# more than the cache holds. There the line even falls below one half: in its first pass a program asks for one
# small block, combines its numbers, and only then asks for the next. Lesson 3 removes a pass, lesson 4 removes the loop.
#
# </details>
#
# ## Look inside
#
# `xray` compiles your kernel for GPUs that need not be here: `gfx942` is an MI300X, `sm_90` an H100 or H200.

# %%
xray(
    naive_softmax_kernel, "*fp32", "*fp32", 1024, 1024, 1024,
    BLOCK_SIZE=256, targets=("gfx942", "sm_90"),
)

# %% [markdown]
# Read the line *loads*. The program runs on 4 warps: of 64 threads each on the MI300X, of 32 on the H100. So
# 256 columns are one number for each thread of the MI300X, and each load instruction fetches 32 bits per thread.
# The hardware could fetch 128. The *barriers* are where the warps of a program wait for each other, to
# combine their maxima and sums.
#
# The next cell compiles the kernel with blocks of 1024, for rows of 1024 numbers and for rows of 781. Which of the two will
# have 128-bit loads? Decide, then run.

# %%
for columns, block_size in ((1024, 1024), (781, 1024)):
    report = xray(
        naive_softmax_kernel, "*fp32", "*fp32", columns, columns, columns,
        BLOCK_SIZE=block_size, targets=("gfx942", "sm_90"),
    )
    for target in ("gfx942", "sm_90"):
        widths = ", ".join(f"{count} × {bits} bit" for bits, count in report[target].loads.items())
        print(f"N = {columns:4}, BLOCK_SIZE = {block_size}, {target:6}: {widths}")

# %% [markdown]
# <details><summary>Why</summary>
#
# With 1024 columns to a block there are four or more numbers for each thread, side by side: one 128-bit load.
# But a wide load needs an address that is a multiple of 16 bytes. With rows of 781 numbers, every row but
# each fourth begins elsewhere, and the compiler, which must be right for all of them, falls back to 32 bits.
#
# </details>
#
# ### What exp becomes
#
# No GPU has an instruction for $e^x$. Both vendors have one for $2^x$. So `tl.exp(x)` is $2^{x \log_2 e}$: a multiplication
# by 1.4427 (`0x3fb8aa3b`), then that instruction. (The starter has no exp, so solve `naive_softmax` first.)

# %%
report = xray(naive_softmax_kernel, "*fp32", "*fp32", 1024, 1024, 1024, BLOCK_SIZE=256, targets=("gfx942", "sm_90"))
for target, words in (("gfx942", ("3fb8aa3b", "v_exp_f32")), ("sm_90", ("3FB8AA3B", "ex2"))):
    print(f"{target}\n{report.isa(target).grep(*words)}")

# %% [markdown]
# The product is rounded, so the further x is from 0, the less exact the result. Among 4,096 numbers of all sizes, on an H200,
# the furthest result of `tl.exp` is 42 units in the last place away from the CPU's, and that of `tl.exp2` 2
# (`h200_operations.csv`, among the recorded files; such a unit is the step from one float32 to the next).
# Softmax can bear it: what is far from the maximum is next to nothing.
# `libdevice.exp` takes more instructions, and is 2 units away. You will see it in lesson 4, in what `torch.compile` writes.
#
# ## Go further
#
# - Set `BLOCK_SIZE` to 1024 in your host function and measure again. What does it do for 8192 columns, what
#   for 781?
# - Feed it float16. How many bytes per element does the counter show now? Did the accuracy suffer?
# - Replace `other=-float("inf")` by `other=0.0` in pass 2 only. Which shapes are wrong now, and which are
#   right by luck?
#
# ### Read next
#
# - [03_online_softmax.ipynb](03_online_softmax.ipynb): two of the three passes become one.
# - [`tl.load`](https://triton-lang.org/main/python-api/generated/triton.language.load.html) and
#   [`tl.max`](https://triton-lang.org/main/python-api/generated/triton.language.max.html) in Triton's
#   documentation.

# %%
progress()
