# %% [markdown]
# # 1 · Vector add: blocks, offsets and masks
#
# One kernel, three exercises: fill in five blanks, let Triton choose the block size, and find two bugs.
# You will meet these five lines again in nearly every kernel.

# %%
from workshop import DEVICE, compare, explore, matches, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

# %% [markdown]
# ## Picture
#
# ![A launch of four programs on 14 elements: program p works on elements 4p to 4p + 3, and the last two lanes of program 3 have no element](../assets/launch_grid.svg)
#
# In lesson 0 every program had one element. Here it has a **block** of them, and works on all of them at once.
# Each place in a block is a **lane**. Move the sliders: which program touches which element, and when has a lane none?

# %%
explore.launch_grid()

# %% [markdown]
# ## Idea
#
# - A program's numbers are vectors. `tl.arange(0, BLOCK_SIZE)` is `[0, 1, …, BLOCK_SIZE - 1]`, one number per
#   **lane**, and `+`, `*` and `<` work on all lanes at once.
# - **Offsets** say which elements are mine: where my block starts, plus `[0, 1, 2, …]`.
# - A **mask** says which lanes have an element at all. A block's size is a power of two, and N rarely is a multiple
#   of it, so in the last program some lanes point behind the end. They must not touch memory.
# - `BLOCK_SIZE` is a **constexpr**: a number that the compiler knows. Another value means another compiled kernel.
#
# ![The last program's eight lanes: offsets 16 to 23, mask true for the first five, so only x[16] to x[20] are read](../assets/masked_tail.svg)

# %% [markdown]
# ## Predict
#
# There are 98,432 elements, and a block has 1024. How many programs does the launch need? How many lanes of the last
# program are masked off? Write your numbers here, then run.

# %%
programs = None
masked_lanes = None

# %%
needed = triton.cdiv(98_432, 1024)
print(f"programs:     you said {programs}, it is {needed}")
print(f"masked lanes: you said {masked_lanes}, it is {needed * 1024 - 98_432}")

# %% [markdown]
# `triton.cdiv` is the quotient *rounded up*. Rounded down, the last 128 elements would have no program.

# %% [markdown]
# ## Write
#
# Five lines are yours. The starter runs: run it, look at what comes out, then mend it line by line. You can check
# after each line: as long as the kernel runs, every blank is judged on its own.

# %% answer="vector_add"
# Five lines are yours: ① to ⑤. Everything else is right as it is.
@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)  # ① starter: tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements  # ② starter: offsets < 1
    x = tl.load(x_ptr + offsets, mask=mask)  # ③ starter: tl.zeros((BLOCK_SIZE,), tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask)  # ④ starter: tl.zeros((BLOCK_SIZE,), tl.float32)
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)  # ⑤ starter: tl.store(output_ptr + offsets, offsets, mask=mask)


def add(x, y):
    output = torch.empty_like(x)  # room for the result; nobody has written there yet
    n_elements = output.numel()
    if n_elements == 0:
        return output
    grid = (triton.cdiv(n_elements, 1024),)
    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)
    return output

# %%
x = torch.rand(3000, device=DEVICE)
y = torch.rand(3000, device=DEVICE)
output = add(x, y)
print("yours: ", output[-4:])
print("x + y: ", (x + y)[-4:])

# %% [markdown]
# Does the starter print strange numbers? `torch.empty_like` hands out memory as the last user left it, and nobody
# has written these elements since.

# %% [markdown] hints="vector_add"

# %% [markdown]
# ## Check
#
# The check tries several sizes: one element, an exact multiple of the block, one element more than that. It also
# watches every single access. A load behind the end often gives the right answer by luck; here it is an error.

# %% check="vector_add"
check("vector_add")

# %% [markdown]
# ## Measure
#
# Adding is nearly free; moving is not. Each element costs 12 bytes in float32: two reads and one write of 4 bytes.
# So speed is counted in **GB/s**, and the ceiling is what a plain copy reaches on the same card.
#
# Predict first: at n = 98,432 the data is 1.2 MB, at n = 134,217,728 it is 1.6 GB. Which one gets more GB/s?

# %%
results = compare(
    {"torch": torch.add, "yours": add},
    make_inputs=lambda n: (torch.rand(n, device=DEVICE), torch.rand(n, device=DEVICE)),
    sizes=[98_432, 2**20, 2**22, 2**24, 2**26, 2**27],
    bytes_moved=lambda x, y: 12 * x.numel(),
    check=matches(torch.add),
    title="Vector add, float32",
    x_label="elements",
    recorded="h200_vector_add_float32",
)
results

# %%
results.plot()

# %% [markdown]
# What to see, in numbers measured on one H200 (torch 2.11, Triton 3.6.0, November 2026):
#
# | | GB/s |
# |---|---|
# | n = 98,432, torch and Triton alike, many calls in one CUDA graph | 573 |
# | n = 2²⁸, Triton, BLOCK_SIZE 1024 | 4382 |
# | n = 2²⁸, Triton, BLOCK_SIZE 4 | 80 |
#
# - At 98,432 elements, the size that the best-known Triton tutorials time, you measure the **launch**, not the
#   memory. A number about bandwidth needs a gigabyte of traffic.
# - One timing is no timing. `compare` runs your function and the others in turn, and shows the median with its spread.
# - `triton.testing.do_bench(rep=10)` repeats for 10 **milliseconds**, not 10 times.
# - `torch.cuda.empty_cache()` gives memory back to the driver. It does not empty the GPU's caches, although the published
#   workshop *Kernel Development & Optimizations with Triton* calls it for that. `do_bench` does that job: it overwrites a
#   big buffer before every run.

# %% [markdown]
# ### Let Triton choose
#
# Which block size is best? Nobody knows before measuring, so `@triton.autotune` measures. It gets a **space**, a list of
# configurations, tries each one the first time it sees a new `key`, and remembers the fastest.
#
# The same published workshop searches the sizes 2 and 4. Autotune then picks the better of two bad choices. On the H200
# above a block of 4 gives 80 GB/s, 55 times less than a block of 1024. **A search is only as good as its space.**
#
# Two things in the starter are wrong:
#
# 1. the space. Choose sensible block sizes, and if you like also `num_warps`, 4 unless you say otherwise. (A **warp** is a
#    group of lanes that run in step: 32 on NVIDIA, 64 on AMD Instinct, which calls it a *wavefront*.)
# 2. the grid. It starts a single program, whatever the size. How many are needed depends on a `BLOCK_SIZE` that is not
#    known until a configuration is chosen. So make the grid a *function*: Triton calls it with a dictionary of the chosen
#    values, `meta["BLOCK_SIZE"]` among them.
#
# The check judges the grid and the numbers. Whether the space is good, only a measurement on a GPU can tell.

# %% answer="vector_add_autotuned"
# Two things are yours: the space and the grid.
### BEGIN SOLUTION
SPACE = [
    triton.Config({"BLOCK_SIZE": block_size}, num_warps=num_warps)
    for block_size in (512, 1024, 2048, 4096)
    for num_warps in (4, 8)
]
### STARTER
# SPACE = [
#     triton.Config({"BLOCK_SIZE": 2}),  # your code here
#     triton.Config({"BLOCK_SIZE": 4}),
# ]
### END SOLUTION


@triton.autotune(configs=SPACE, key=["n_elements"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


def add_autotuned(x, y):
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements == 0:
        return output
    ### BEGIN SOLUTION
    def grid(meta):
        return (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    ### STARTER
    # grid = (1,)  # your code here
    ### END SOLUTION
    tuned_kernel[grid](x, y, output, n_elements)
    return output

# %%
# Without a GPU there is nothing to time: autotune takes the first configuration.
output = add_autotuned(x, y)
print("yours: ", output[-4:])
print("x + y: ", (x + y)[-4:])
print("chosen:", tuned_kernel.best_config)

# %% [markdown] hints="vector_add_autotuned"

# %% check="vector_add_autotuned"
check("vector_add_autotuned")

# %% [markdown]
# ## Look inside
#
# Why is a block of 4 so slow, and does the size matter beyond that? Compile your own kernel for an MI300X with four
# block sizes, and look at how wide its loads are:

# %%
n_elements = 2**28
pointers = ["*fp32"] * 3  # x_ptr, y_ptr, output_ptr: the types are enough to compile

for block_size in (4, 256, 1024, 4096):
    report = xray(add_kernel, *pointers, n_elements, BLOCK_SIZE=block_size)["gfx942"]
    loads = ", ".join(f"{count} × {width} bits" for width, count in report.loads.items())
    print(f"BLOCK_SIZE {block_size:4}   registers {report.vgprs:2}   loads {loads or 'none'}")

# %% [markdown]
# A program here has 4 wavefronts of 64 lanes: 256 in all. These are the hardware's lanes; the compiler shares a block's
# elements out among them.
#
# - With a block of 4, four lanes have an element of their own, and 252 do not.
# - With 256, each lane loads one float: 32 bits at a time.
# - With 1024, each lane owns four neighbours and loads them with **one instruction of 128 bits**, the widest there is.
# - With 4096, each lane has four such loads under way for each input: more registers, and less waiting.
#
# Now set `n_elements` to `98_431`, which is not a multiple of 16. What becomes of the loads, and why must it be so?
#
# <details><summary>Answer</summary>
#
# They are 32 bits wide again, four times as many. The mask may now end between two of the four neighbours, and one wide
# load cannot do half of its work.
#
# </details>

# %% [markdown]
# ## Go further
#
# ### Bug hunt
#
# ![Rows of five elements in a matrix of row stride 7: row 1 begins at element 7, not at element 5](../assets/row_strides.svg)
#
# `scale(x, a)` should return `a * x` for a matrix. Its launch grid has two dimensions: program `(row, block)` works on one
# block of one row. **Two bugs** are in it. (`.to(tl.float32)` is none: half-precision inputs are computed in float32, and
# the store converts back.) First the evidence, run it:

# %% answer="bug_hunt"
# Two bugs: what is wrong here?
@triton.jit
### BEGIN SOLUTION
def scale_kernel(x_ptr, output_ptr, a, x_stride, output_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask).to(tl.float32)
    tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)
### STARTER
# def scale_kernel(x_ptr, output_ptr, a, n_cols, BLOCK: tl.constexpr):
#     row = tl.program_id(axis=0)
#     columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
#     mask = columns < n_cols
#     x = tl.load(x_ptr + row * n_cols + columns, mask=mask).to(tl.float32)
#     tl.store(output_ptr + row * n_cols + columns, a * x, mask=mask)
### END SOLUTION


def scale(x, a):
    n_rows, n_cols = x.shape
    output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    ### BEGIN SOLUTION
    grid = (n_rows, triton.cdiv(n_cols, 256))
    scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)
    ### STARTER
    # grid = (n_rows, n_cols // 256)
    # scale_kernel[grid](x, output, a, n_cols, BLOCK=256)
    ### END SOLUTION
    return output

# %%
def evidence(name, x):
    """Where the output is wrong: which rows, and from which column to which."""
    wrong = scale(x, 2.0) != 2.0 * x
    rows = wrong.any(dim=1).nonzero().flatten().tolist()
    columns = wrong.any(dim=0).nonzero().flatten().tolist()
    where = f"wrong: rows {rows}, columns {columns[0]} to {columns[-1]}" if rows else "all right"
    print(f"{name:24} {where}")


wide = torch.rand(5, 320, device=DEVICE)
evidence("5 × 256, contiguous", torch.rand(5, 256, device=DEVICE))
evidence("5 × 300, contiguous", torch.rand(5, 300, device=DEVICE))
evidence("5 × 256, row stride 320", wide[:, :256])

# %% [markdown]
# The first line is all right. That is how both bugs survive: most tests use contiguous tensors of friendly sizes.
# Now mend the kernel and its host function.

# %% [markdown] hints="bug_hunt"

# %% check="bug_hunt"
check("bug_hunt")

# %% [markdown]
# ### Read next
#
# - [02_naive_softmax.ipynb](02_naive_softmax.ipynb): the same five lines, in a loop.
# - [Triton's own vector add tutorial](https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html), for the comments in its code.

# %%
progress()
