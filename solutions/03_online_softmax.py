# %% [markdown]
# # 3 · Online softmax: two passes, and a quiz
#
# The naive kernel reads every row three times. One of the three is not needed: maximum and sum can be found
# together, in one walk over the row. It takes one line of algebra. *Flash attention*, a fast attention kernel, rests
# on the same line.
#
# Two exercises: the quiz with five blanks, and a row that begins with $-\infty$.
#
# ![The operations of a language model from the embedding to the loss, with softmax lit, and their share of all bytes in decoding and in training.](../assets/layer_softmax.svg)

# %%
from workshop import DEVICE, compare, device, explore, here, matches, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("03_online_softmax")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `row_sum(x)` returns the sum of each row in float32, for a matrix with any row stride and rows
# of any length: the second pass of lesson 2, without the exponentials.

# %% answer="row_sum"
### BEGIN SOLUTION
@triton.jit
def row_sum_kernel(x_ptr, output_ptr, row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * row_stride + offsets, mask=offsets < n_cols, other=0.0)
        lane_sum += x.to(tl.float32)
    tl.store(output_ptr + row, tl.sum(lane_sum, axis=0))


def row_sum(x):
    n_rows, n_cols = x.shape
    output = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows:
        row_sum_kernel[(n_rows,)](x, output, x.stride(0), n_cols, BLOCK_SIZE=1024)
    return output
### STARTER
# def row_sum(x):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="row_sum"

# %% check="row_sum"
check("row_sum")

# %% [markdown]
# ## Picture
#
# ![Online softmax in two passes over a row: maximum and sum together, with the old sum multiplied by exp(old maximum minus new maximum) whenever the maximum grows; then the division.](../assets/online_softmax.svg)

# %% [markdown]
# ## Idea
#
# Pass 2 of the naive kernel waits for pass 1, because every term $e^{x_j - m}$ needs the final maximum.
# Milakov and Gimelshein ("Online normalizer calculation for softmax", 2018,
# [arXiv:1805.02867](https://arxiv.org/abs/1805.02867)) start adding at once, with the largest number *so
# far*, and repair the sum when a larger one turns up.
#
# Call the maximum of the first $k$ numbers $m_k$, and the sum with that maximum $d_k$:
#
# $$m_k = \max(x_1, \dots, x_k) \qquad d_k = \sum_{j \le k} e^{x_j - m_k}$$
#
# We have $m_{k-1}$ and $d_{k-1}$, and $x_k$ arrives. The maximum is easy:
#
# $$m_k = \max(m_{k-1},\, x_k)$$
#
# For the sum, split off the new term:
#
# $$d_k = \sum_{j \le k-1} e^{x_j - m_k} \;+\; e^{x_k - m_k}$$
#
# The first part still has the *new* maximum in it. Write $x_j - m_k$ as $(x_j - m_{k-1}) + (m_{k-1} - m_k)$.
# The second bracket is the same for every $j$, so it moves in front of the sum:
#
# $$\sum_{j \le k-1} e^{x_j - m_k} = \underbrace{e^{m_{k-1} - m_k}}_{\text{rescale}} \; \underbrace{\sum_{j \le k-1} e^{x_j - m_{k-1}}}_{d_{k-1}}$$
#
# Together:
#
# $$\boxed{\;d_k = d_{k-1} \cdot e^{m_{k-1} - m_k} + e^{x_k - m_k}\;}$$
#
# The *rescale* is 1 while the maximum stays, and less than 1 when it grows. Start with $m_0 = -\infty$ and
# $d_0 = 0$. None of this needs $x_k$ to be a single number: with a block of numbers, take the block's maximum
# and the block's sum.
#
# Walk through a row, block by block. Find a step where the rescale is not 1.

# %%
explore.online_softmax()

# %% [markdown]
# ## Predict
#
# Somebody forgot the rescale. Here it is in torch, for a row cut into blocks:


# %%
def sum_without_rescale(row, block_size):
    m, d = -torch.inf, 0.0
    for block in row.split(block_size):
        m = max(m, block.max().item())
        d = d + torch.exp(block - m).sum().item()
    return d


# %% [markdown]
# Take a row of 781 numbers, and sort it upwards or downwards.

# %%
explore.predict("no rescale")

# %% [markdown]
# Here are both, and the same numbers as they came:

# %%
torch.manual_seed(0)
numbers = 3 * torch.randn(781)
rows = {
    "downwards": numbers.sort(descending=True).values,
    "upwards": numbers.sort().values,
    "as it came": numbers,
}
for name, row in rows.items():
    d = torch.exp(row - row.max()).sum().item()
    wrong = sum_without_rescale(row, 256)
    print(f"{name:12}  right {d:8.2f}   without rescale {wrong:8.2f}")

# %% [markdown]
# <details><summary>Why</summary>
#
# Terms added early were divided by $e^{m}$ for a *smaller* $m$, so they are too large, and stay too large
# unless they are rescaled. Sorted downwards, the first block already holds the row's maximum: the rescale is
# always 1, and forgetting it does no harm. That is what makes this bug dangerous: on many rows it cannot be
# seen. Sorted upwards, every block brings a new maximum.
#
# </details>

# %% [markdown]
# The error also has a shape you can recognise. The sum is one number per row, so every output of a row is wrong by the
# same *factor* (output / right output), and the row adds up to less than 1:

# %%
for name, row in rows.items():
    wrong = torch.exp(row - row.max()) / sum_without_rescale(row, 256)
    ratio = wrong / torch.softmax(row, dim=0)
    print(f"{name:12} adds up to {wrong.sum():.4f}   factor {ratio.min():.4f} to {ratio.max():.4f}")

# %% [markdown]
# ## Write: the quiz
#
# The kernel below runs, and is wrong in five places, marked ① to ⑤. It sees one block of the row: the loop of pass 1 is
# yours, too. Let it run over `col_idx`, as the second loop does. Each blank is one expression:
#
# | | name | what it must be |
# |---|---|---|
# | ① | `pid` | the number of this program; it works on the row of that number |
# | ② | `mask` | true for the lanes whose column exists |
# | ③ | `in_data` | this block of the row, in float32; what should a switched-off lane hold? |
# | ④ | `in_max_new` | $m_k$ from `in_max` ($m_{k-1}$) and the block |
# | ⑤ | `in_exp_sum` | $d_k$ from `in_exp_sum` ($d_{k-1}$), both maxima and the block |
#
# Keep the names: as long as the kernel runs, each blank is judged on its own, so three right blanks earn three
# points, and the check says which three. (Five right blanks without the loop earn four.) The second loop is given. (This
# kernel leaves out one thing that lesson 2 had:
# `.to(tl.int64)` on the row's number. With more than 2³¹ elements `pid * row_stride` would overflow.)


# %% answer="online_softmax"
@triton.jit
def online_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    pid = tl.program_id(0)  # ① starter: 0
    in_max = -float("inf")
    in_exp_sum = 0.0

    # Pass 1: maximum and sum together.
    ### BEGIN SOLUTION
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols  # ②
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)  # ③
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))  # ④
        in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), axis=0)  # ⑤
        in_max = in_max_new
    ### STARTER
    # # Your code here: a loop over the blocks around these lines, and what it hands on to the next block.
    # offsets = tl.arange(0, BLOCK_SIZE)
    # mask = offsets < 1  # ② your code here
    # in_data = tl.zeros((BLOCK_SIZE,), tl.float32)  # ③ your code here
    # in_max_new = in_max  # ④ your code here
    # in_exp_sum = 1.0  # ⑤ your code here
    ### END SOLUTION

    # Pass 2: divide.
    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_ptr + pid * row_stride + offsets, mask=mask).to(tl.float32)
        softmax = tl.exp(in_data - in_max) / in_exp_sum
        tl.store(output_ptr + pid * output_row_stride + offsets, softmax, mask=mask)


def online_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        online_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output


# %% [markdown]
# Try it. `inf`, `nan`, one row written and the rest left as memory happened to be: all of it means that a
# blank is still open.

# %%
x = torch.stack(list(rows.values())).to(DEVICE)
y = online_softmax(x)
for name, got, expected in zip(rows, y, torch.softmax(x, dim=1), strict=True):
    difference = (got - expected).abs().max()
    print(f"{name:12} adds up to {got.sum():.4g}, largest difference {difference:.1e}")

# %%
explore.predict_bytes(online_softmax, x)

# %% [markdown] hints="online_softmax"

# %% [markdown]
# ## Check
#
# The rows that are drawn are those of lesson 2, but none has a whole block of $-\infty$: they come next.

# %% check="online_softmax"
check("online_softmax")

# %% [markdown]
# ### A row that begins with $-\infty$
#
# Attention switches positions off by setting their logits to $-\infty$: $e^{-\infty} = 0$, so they get no
# probability. With padding on the left, a row can *begin* with hundreds of them. Here row 0 has none, row 1
# begins with 100 of them, row 2 with 256 (a whole block), and row 3 has nothing else.
#
# In which rows will your kernel's result have a `nan`, once the quiz is solved?

# %%
explore.predict("nan rows")

# %%
x = torch.randn(4, 781, device=DEVICE)
for row, count in enumerate((0, 100, 256, 781)):
    x[row, :count] = -torch.inf
for name, y in (("online_softmax", online_softmax(x)), ("torch.softmax", torch.softmax(x, dim=1))):
    print(f"{name:15} finds nan in rows {y.isnan().any(dim=1).nonzero().flatten().tolist()}")

# %% [markdown]
# Row 3 is no mistake: every term is 0, so softmax would be 0 / 0. There torch returns `nan`, and so should you. Row 2
# is a mistake. Its first block leaves $m_1 = -\infty$, and then
#
# $$m_0 - m_1 = -\infty - (-\infty) = \mathtt{nan}$$
#
# and one `nan` in a sum stays there. The naive kernel had no such trouble: it subtracted only the final
# maximum.
#
# ## Write: online softmax for masked rows
#
# Write the recurrence so that no $-\infty$ is ever subtracted from $-\infty$ while the sum is built.
# `tl.where(condition, a, b)`, which chooses between two values, or a better start value will do: one that is finite, and that
# no number of a row can be below.


# %% answer="online_softmax_masked"
@triton.jit
def online_softmax_masked_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride
    in_max = -float("inf")
    in_exp_sum = 0.0

    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        ### BEGIN SOLUTION
        in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))
        # Until a finite number is seen, subtract 0: exp(-inf - 0) is 0, where exp(-inf + inf) is nan.
        shift = tl.where(in_max_new == -float("inf"), 0.0, in_max_new)
        in_exp_sum = in_exp_sum * tl.exp(in_max - shift) + tl.sum(tl.exp(in_data - shift), axis=0)
        in_max = in_max_new
        ### STARTER
        # in_max = 0.0  # your code here: the recurrence, safe for blocks of -inf, about 4 lines
        # in_exp_sum = 1.0
        ### END SOLUTION

    for col_idx in range(0, n_cols, BLOCK_SIZE):
        offsets = col_idx + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        tl.store(output_row + offsets, tl.exp(in_data - in_max) / in_exp_sum, mask=mask)


def online_softmax_masked(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        online_softmax_masked_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=256
        )
    return output


# %%
y = online_softmax_masked(x)
print("nan in rows", y.isnan().any(dim=1).nonzero().flatten().tolist(), " (should be: 3)")
print("sums       ", [round(total, 4) for total in y.sum(dim=1).tolist()])

# %% [markdown] hints="online_softmax_masked"

# %% [markdown]
# ## Check

# %% check="online_softmax_masked"
check("online_softmax_masked")

# %% [markdown]
# ## Measure
#
# A copy reads once and writes once. Your kernel reads twice and writes once, so it has at most two thirds of a copy's speed
# where no cache helps.
#
# ![Online softmax: two arrows from memory to the program, one back, 12 bytes for each float32 element.](../assets/dataflow_online.svg)
#
# Now over $N$, with torch beside it. The dashed line is the copy: the ceiling for a kernel that reads `x` and writes
# `y`. Without a GPU, the dotted line is your kernel, once its result is right: 2/3 of the copy, because of the bytes you
# counted.


# %%
def make_input(n_cols):
    """Rows of n_cols numbers: 1 GiB to read and write, too much for any cache. To be counted, less is enough."""
    elements = 2**20 if device().interpreting else 2**27
    return (torch.randn(triton.cdiv(elements, n_cols), n_cols, device=DEVICE),)


speed = compare(
    {"torch": lambda x: torch.softmax(x, dim=1), "online": online_softmax},
    make_input,
    sizes=(256, 512, 781, 1024, 2048, 4096, 8192, 16384, 32768),
    bytes_moved=lambda x: 2 * x.numel() * x.element_size(),
    check=matches(lambda x: torch.softmax(x, dim=1)),
    title="Online softmax, float32",
    recorded="h200_softmax_float32",
)
speed

# %%
lines = ("torch", "naive, block 256", "online, block 256")
curves = speed.only(*lines) if device().interpreting else speed
curves.plot()

# %% [markdown]
# Find a size where online softmax beats torch, and one where it is above 2/3 of the copy. On the recorded H200 it
# reaches {{h200_softmax_float32; 1024; online, block 256; of copy}} at N = 1024: short rows are still in the cache
# when pass 2 comes for them. Long rows are not, and there 2/3 is the ceiling; the kernel stays below it, at
# {{h200_softmax_float32; 8192; online, block 256; of copy}} for N = 8192, because it asks for one small block at a
# time. To rise above 2/3, a kernel must not read twice. That is lesson 4.
#
# ## Look inside
#
# A block of 256 columns can be shared by 1, 2, 4 or 8 warps. More warps means fewer numbers per thread, so
# narrower loads; and the warps must combine their maxima and sums through *shared memory*, a small memory on the chip
# that belongs to one program, with barriers.

# %%
explore.predict("barriers")

# %%
print("GPU    warps  loads        barriers  shared  registers")
for num_warps in (1, 4):
    report = xray(
        online_softmax_kernel, "*fp32", "*fp32", 1024, 1024, 1024,
        BLOCK_SIZE=256, num_warps=num_warps, targets=("gfx942", "sm_90"),
    )
    for target in ("gfx942", "sm_90"):
        found = report[target]
        widths = ", ".join(f"{count} × {bits} bit" for bits, count in found.loads.items())
        registers = found.vgprs or found.registers
        print(f"{target:6} {num_warps:5}  {widths:12} {found.barriers:8} {found.shared:7} {registers:10}")

# %% [markdown]
# (*shared* is the shared memory of a program, in bytes.) A single warp needs no barrier and no shared memory: its threads
# exchange numbers directly. It also has the widest loads. Whether that makes it faster depends on how many programs run
# beside it. Only a measurement can tell.
#
# The assembly itself, where the loads and stores are:

# %%
report = xray(online_softmax_kernel, "*fp32", "*fp32", 1024, 1024, 1024, BLOCK_SIZE=1024)
report.isa().grep("_load_", "_store_", "s_barrier")

# %% [markdown]
# ## Go further
#
# - Set `BLOCK_SIZE=1024` in the host function. Which line of the plot does it move, and at which $N$?
# - Start `in_max` at the lowest finite float32, about $-3.4 \cdot 10^{38}$, instead of $-\infty$. (Write `-3.4e38`.
#   Triton reads a number that float32 cannot hold, such as `-1e39`, as float64, and what it meets becomes float64, too:
#   try it, and read the compiler's message.) Does the quiz kernel now survive masked rows? What does it return for a row of nothing but $-\infty$?
# - Flash attention keeps a third running value next to $m$ and $d$: the output so far. What must it be
#   multiplied by when the maximum grows?
#
# ### Read next
#
# - [04_fused_softmax.ipynb](04_fused_softmax.ipynb): one read and one write.
# - Milakov and Gimelshein, [Online normalizer calculation for softmax](https://arxiv.org/abs/1805.02867).
# - Dao et al., [FlashAttention](https://arxiv.org/abs/2205.14135), section 3.1: the same rescale, with
#   outputs.

# %%
progress()
