# %% [markdown]
# # 4 · Fused softmax: one pass, and the size of its launch
#
# Three passes, two passes, and now one: load the row once, keep it on the chip, write the result. This lesson has **three
# sittings** with one exercise each, and you may stop after each:
#
# 1. **The kernel**, and its measurement.
# 2. **The size of its launch**: how many programs to start.
# 3. **Rows that fit no program.** Lesson 7 needs its idea.
#
# ![The operations of a language model from the embedding to the loss, with softmax lit, and their share of all bytes in decoding and in training.](../assets/layer_softmax.svg)

# %%
import functools

import workshop
from workshop import DEVICE, KNOWN_DEVICES, compare, device, explore, here, matches, progress, recorded, xray
from workshop.backend import interpreting
from workshop.results import RECORDED

import torch
import triton
import triton.language as tl

from autograder import check

here("04_fused_softmax")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `row_max_and_sum(x)` takes a contiguous matrix with rows of any length. It returns two vectors
# in float32: the maximum of each row, and the sum of exp(x − maximum). It is the first pass of lesson 3.

# %% answer="row_max_and_sum"
### BEGIN SOLUTION
@triton.jit
def max_and_sum_kernel(x_ptr, max_ptr, sum_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * n_cols + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    tl.store(max_ptr + row, m)
    tl.store(sum_ptr + row, s)


def row_max_and_sum(x):
    n_rows, n_cols = x.shape
    maxima, sums = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
    if n_rows:
        max_and_sum_kernel[(n_rows,)](x, maxima, sums, n_cols, BLOCK_SIZE=1024)
    return maxima, sums
### STARTER
# def row_max_and_sum(x):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="row_max_and_sum"

# %% check="row_max_and_sum"
check("row_max_and_sum")

# %% [markdown]
# # Sitting 1 · The kernel
#
# ## Picture
#
# ![Fused softmax: one arrow from memory to the program, which keeps the whole row in registers, and one arrow back: 8 bytes for each float32 element.](../assets/dataflow_fused.svg)

# %% [markdown]
# ## Idea
#
# If `BLOCK_SIZE` is at least the number of columns, a program holds its whole row in *registers*, the fastest
# memory there is. Maximum, exponentials, sum and division all work on numbers that are already there. No loop over
# blocks, no recurrence.
#
# `tl.arange` wants a power of two, so the block is the next power of two: 1024 lanes for 781 columns, and the mask
# switches 243 of them off.
#
# The threads of a program share the block: with 4 warps, 1024 numbers are 8 for each thread on NVIDIA (128 threads) and 4 on
# AMD Instinct (256). More numbers take more registers. When a thread has too few, the compiler *spills* some of its values to
# memory, which is the traffic that we wanted to save.
#
# ## Predict

# %%
explore.predict("padding")

# %% [markdown]
# ## Write: fused softmax
#
# Write the body of the loop: one row, one load, one store. `in_row` and `output_row` point to the row in the two matrices.
# Take the loop and `fused_launch` as given: a program works on several rows, one after another, and `fused_launch` says how
# many programs start. Sitting 2 is about these two. When the kernel is right, the cell below shows sums of 1 and a
# difference below 10⁻⁶.


# %% answer="fused_softmax"
@triton.jit
def fused_softmax_kernel(
    in_ptr,
    output_ptr,
    row_stride,
    output_row_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_cols
    first, step = tl.program_id(0), tl.num_programs(0)
    for row in tl.range(first, n_rows, step, num_stages=num_stages):
        in_row = in_ptr + tl.cast(row, tl.int64) * row_stride
        output_row = output_ptr + tl.cast(row, tl.int64) * output_row_stride
        ### BEGIN SOLUTION
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(in_data - tl.max(in_data, axis=0))
        softmax = numerator / tl.sum(numerator, axis=0)
        tl.store(output_row + offsets, softmax, mask=mask)
        ### STARTER
        # # Your code here: softmax of the row, about 4 lines. This copies it.
        # in_data = tl.load(in_row + offsets, mask=mask)
        # tl.store(output_row + offsets, in_data, mask=mask)
        ### END SOLUTION


@functools.cache
def fused_launch(dtype, row_stride, n_cols):
    """The kernel's constants for such rows, and how many programs the device runs at once."""
    block_size = triton.next_power_of_2(n_cols)
    if interpreting():  # no device to fill; eight programs are enough to deal out the rows
        return {"BLOCK_SIZE": block_size, "num_stages": 1}, 8
    facts = device()
    constants = {
        "BLOCK_SIZE": block_size,
        "num_warps": max(1, min(block_size // 256, 1024 // facts.warp_size)),
        "num_stages": 2 if 4 * block_size * dtype.itemsize <= facts.shared_memory else 1,
    }
    compiled = fused_softmax_kernel.warmup(
        dtype, dtype, row_stride, n_cols, 1024, n_cols, **constants, grid=(1,)
    )
    compiled._init_handles()  # loads the program, which tells its registers
    programs = workshop.num_programs(
        compiled.n_regs, compiled.metadata.shared, constants["num_warps"], facts
    )
    return constants, max(programs, facts.multiprocessors)


def fused_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows:
        constants, programs = fused_launch(x.dtype, x.stride(0), n_cols)
        fused_softmax_kernel[(min(programs, n_rows),)](
            x, output, x.stride(0), output.stride(0), n_rows, n_cols, **constants
        )
    return output


# %%
x = torch.randn(1823, 781, device=DEVICE)
y = fused_softmax(x)
print("launch:", fused_launch(x.dtype, x.stride(0), 781))
print("sums of the first rows:", [round(total, 4) for total in y[:4].sum(dim=1).tolist()])
print("largest difference from torch:", (y - torch.softmax(x, dim=1)).abs().max().item())

# %%
explore.predict_bytes(fused_softmax, x)

# %% [markdown] hints="fused_softmax"

# %% [markdown]
# ## Check

# %% check="fused_softmax"
check("fused_softmax")

# %% [markdown]
# ## Measure: the kernel
#
# A published benchmark launched this kernel with the grid and the output of *another* matrix. It timed a function that
# returned memory nobody had written. So here every timed call is also a checked call.

# %%
SIZES = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)


def measure(providers, dtype, sizes=SIZES):
    """Rows of n_cols numbers: at least 1 GiB to read and write. To be counted, less is enough."""
    name = str(dtype).removeprefix("torch.")

    def make_input(n_cols):
        n_rows = triton.cdiv(2**22 if interpreting() else 2**29, n_cols * dtype.itemsize)
        return (torch.randn(n_rows, n_cols, device=DEVICE, dtype=dtype),)

    return compare(
        providers,
        make_input,
        sizes=sizes,
        bytes_moved=lambda x: 2 * x.numel() * x.element_size(),
        check=matches(lambda x: torch.softmax(x, dim=1), relative=2e-2),
        title=f"Softmax, {name}",
        recorded=f"h200_softmax_{name}",
    )


speed = measure({"torch": lambda x: torch.softmax(x, dim=1), "fused": fused_softmax}, torch.float32)
speed

# %%
lines = ("torch", "naive, block 256", "online, block 256", "fused, persistent")
curves = speed.only(*lines) if interpreting() else speed
curves.plot()

# %% [markdown]
# Three lessons in one picture. In the recorded curves at N = 8192: {{h200_softmax_float32; 8192; naive, block 256; of copy}},
# {{h200_softmax_float32; 8192; online, block 256; of copy}} and
# {{h200_softmax_float32; 8192; fused, persistent; of copy}} of the copy. One read and one write, so the ceiling is the
# copy itself, until the row no longer fits: from 65,536 columns on `fused` falls. Sitting 3 says why.
#
# **End of the first sitting.** Your kernel moves no byte too many. When you come back, choose
# *Run All Above Selected Cell* here: the next sitting launches this kernel.

# %% [markdown]
# # Sitting 2 · The size of the launch
#
# ## Picture
#
# `fused_launch` does not start one program per row. It starts as many programs as the device can run at once, and each takes
# row after row. Such programs are called *persistent*. `tl.num_programs(0)` says how many were started:
#
# ![Four persistent programs share ten rows: program p takes rows p, p + 4, p + 8 and so on until the rows run out.](../assets/persistent_programs.svg)
#
# ## Idea
#
# Three decisions of `fused_launch`, each with its reason:
#
# - **256 numbers per warp.** On AMD that is 4 float32 per thread, one 128-bit load; on NVIDIA 8, two such loads. No
#   program may have more than 1,024 threads.
# - **Two stages** where four rows fit into shared memory, otherwise one. `tl.range(..., num_stages=2)` asks the compiler
#   to start loading the next row while this one is computed. That row waits in shared memory on NVIDIA, in more registers on
#   an MI300X. (On an MI355X Triton 3.9 loads it into LDS, AMD's shared memory.)
# - **The size of the launch** from `warmup`, which compiles the kernel without running it and so knows its
#   registers. It is cached: only the first call for a width pays for it.
#
# ### How many run at once?
#
# A multiprocessor (NVIDIA) or compute unit (AMD) has a fixed amount of three things, and every program that
# runs on it takes its share: **registers**, **shared memory** and **thread slots**, places for threads. The scarcest of the
# three decides.
#
# Choose a GPU, and move the sliders until shared memory is the limit instead of registers.

# %%
explore.programs()

# %% [markdown]
# ## Predict
#
# A multiprocessor of an H200 has 65,536 registers, 232,448 bytes of shared memory and 2,048
# thread slots. A program has 4 warps of 32 threads, 40 registers per thread and 4,112 bytes of shared memory.

# %%
explore.predict("programs at once")

# %% [markdown]
# By hand, for this program on an H200, as your function will do it:
#
# | | of a multiprocessor | of a program | fit |
# |---|---:|---:|---:|
# | registers | 65,536 | 40 × 4 × 32 = 5,120 | 12 |
# | shared memory | 232,448 | 4,112 | 56 |
# | thread slots | 2,048 | 4 × 32 = 128 | 16 |
#
# The smallest is 12, and the card has 132 multiprocessors: 132 × 12 = 1,584 programs. That is the first row of the table that
# is printed below your function.
#
# ## Write: the size of the launch
#
# Now the line you were given, `workshop.num_programs`. Write it yourself:
#
# $$\text{programs} = \text{multiprocessors} \times \text{the smallest of}$$
# $$\text{by registers},\quad \text{by shared memory},\quad \text{by threads}$$
#
# `num_regs` counts the registers of one thread, `shared_bytes` the shared memory of one program. A script without `workshop`
# asks `triton.runtime.driver.active`, whose `get_active_torch_device()` also says where to put tensors:
#
# | `device` has | there it is |
# |---|---|
# | `backend` ("cuda" or "hip"), `arch` ("sm_90", "gfx942"), `warp_size` | in `get_current_target()` |
# | `multiprocessors` | `multiprocessor_count` in `utils.get_device_properties(0)` |
# | of each multiprocessor: `registers`, `shared_memory` (bytes) | beside it: `max_num_regs`, `max_shared_mem` (and `warpSize`) |
# | of each multiprocessor: `max_threads` | only torch has it |
#
# Round down, and start at least one program per multiprocessor: a launch of zero programs computes nothing. Two traps, each of
# which caught published code:
#
# - A program with one warp needs no shared memory: `shared_bytes` is 0. That is no limit, and no divisor either.
# - On AMD's **CDNA** GPUs from the MI200 on, those in the list `CDNA` below, a warp may use two kinds of registers from one
#   file, *accumulation registers* for matrix instructions among them. The driver reports half of that file, so count twice
#   what it reports. Other GPUs whose `backend` is "hip" have nothing to double. (On the MI100, gfx908, the two kinds are
#   separate files.)
#
# The formula leaves three things out: registers are handed out in steps (lesson 6); an H100 or H200 holds at most 32 programs
# per multiprocessor, so 4,224 where your table will say 8,448; and it keeps 1,024 bytes of shared memory for each. A launch
# that is too large does no harm: some programs wait for a place.


# %% answer="occupancy_launch"
CDNA = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")


def num_programs(num_regs, shared_bytes, num_warps, device):
    ### BEGIN SOLUTION
    registers = device.registers * (2 if device.backend == "hip" and device.arch in CDNA else 1)
    threads = num_warps * device.warp_size
    by_registers = registers // (num_regs * threads)
    by_threads = device.max_threads // threads
    by_shared_memory = device.shared_memory // shared_bytes if shared_bytes else by_threads
    return device.multiprocessors * max(1, min(by_registers, by_shared_memory, by_threads))
    ### STARTER
    # return device.multiprocessors  # your code here: one program each is a start
    ### END SOLUTION


# %%
print("GPU                  registers  bytes  warps  programs")
for name in ("NVIDIA H200", "AMD Instinct MI300X"):
    for num_regs, shared_bytes, num_warps in ((40, 4112, 4), (32, 0, 1), (62, 32, 8), (114, 16, 4)):
        programs = num_programs(num_regs, shared_bytes, num_warps, KNOWN_DEVICES[name])
        print(f"{name:20} {num_regs:9} {shared_bytes:6} {num_warps:6} {programs:9}")

# %% [markdown] hints="occupancy_launch"

# %% [markdown]
# ## Check

# %% check="occupancy_launch"
check("occupancy_launch")

# %% [markdown]
# ## Measure: are persistent programs worth it?
#
# Here is the other launch: a program for each row, and the hardware starts the next program wherever one ends. The kernel has
# no loop. Short rows share a program, which works on a tile of ROWS × BLOCK_SIZE (lesson 1b has `[:, None]`: a column of row
# numbers and a row of column numbers make a tile). `rows_launch` says how many rows a program takes, and how many warps:

# %%
@triton.jit
def rows_kernel(
    x_ptr, y_ptr, x_stride, y_stride, n_rows, n_cols, ROWS: tl.constexpr, BLOCK_SIZE: tl.constexpr
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK_SIZE)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    tl.store(y_ptr + rows * y_stride + cols, y, mask=mask)


def rows_launch(n_cols, element_size):
    """rows_kernel's constants: at least 2 KiB for each program, about 16 numbers for each thread."""
    rows = max(1, 2048 // triton.next_power_of_2(n_cols * element_size))
    warps = 1 << (max(1, rows * n_cols // 512).bit_length() - 1)  # the power of two below
    most = 32 if element_size == 4 else 16  # in half precision 32 numbers are as many bytes as 16 in float32
    return {"ROWS": rows, "BLOCK_SIZE": triton.next_power_of_2(n_cols), "num_warps": min(most, warps)}


def rows_softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    launch = rows_launch(x.shape[1], x.element_size())
    if device().warp_size == 64:
        launch["num_warps"] = min(16, launch["num_warps"])  # 16 wavefronts of 64 are 1,024 threads
    grid = (triton.cdiv(x.shape[0], launch["ROWS"]),)
    rows_kernel[grid](x, y, x.stride(0), y.stride(0), *x.shape, **launch)
    return y


x = torch.randn(1823, 781, device=DEVICE)
print("largest difference from fused:", (rows_softmax(x) - fused_softmax(x)).abs().max().item())

# %% [markdown]
# **Predict**: will `fused`, with its persistent programs, be faster than `rows`? There are nine sizes from 256 to 32,768
# columns.

# %%
explore.predict("persistent")

# %%
providers = {"torch": lambda x: torch.softmax(x, dim=1), "fused": fused_softmax, "rows": rows_softmax}
if not interpreting():
    torch._dynamo.config.recompile_limit = 64  # one compilation per width; it gives up after eight
    providers["torch.compile"] = torch.compile(lambda x: torch.softmax(x, dim=1), dynamic=False)

speed = measure(providers, torch.float32)
speed

# %%
lines = ("torch", "torch.compile", "fused, persistent", "fused, rows")
curves = speed.only(*lines) if interpreting() else speed
curves.plot()

# %% [markdown]
# The persistent launch **loses at all nine sizes**. The recorded curves, as parts of the copy's speed:

# %%
recorded("h200_softmax_float32").only("fused, persistent", "fused, rows").shares().loc[:32768]

# %% [markdown]
# The hardware starts programs quickly, and overlaps them: while one computes, others on the same multiprocessor
# wait for memory. Persistent programs pay where something is loaded once and used for many rows, such as a tile of weights in
# a matrix product.
#
# The two kernels also choose their warps differently. So change one thing at a time, measured on an H200 in turns (torch
# 2.11, Triton 3.6, half a GiB in and out):
#
# | 8,192 columns in bfloat16 | of the copy |
# |---|---|
# | one program for each row | 1.00 |
# | the same tile and warps in a persistent loop | .90 |
# | the loop with this lesson's warps: fewer bytes are under way | .68 |
#
# With equal warps the loop alone costs .04 to .10 in rows of 1,024 and more. One stage and two differ by at most .04 at nearly
# all widths. Four times as many programs as `num_programs` says are at worst .01 slower there, and up to .2 faster in rows
# of 781. Try 1×, 2× and 4× on your card.
#
# ### Half the bytes
#
# bfloat16 numbers take 2 bytes, so the same memory brings twice as many of them in a second.

# %%
explore.predict("half the bytes")

# %%
half = measure(providers, torch.bfloat16)
half

# %%
curves = half.only(*lines) if interpreting() else half
curves.plot()

# %% [markdown]
# In the recorded curves `fused` falls most:

# %%
recorded("h200_softmax_bfloat16").only("fused, persistent", "fused, rows").shares().loc[:32768]

# %% [markdown]
# The programs are the same and the bytes are half as many, so half as many bytes are under way. Memory is kept busy by
# **bytes in flight**: up to 8,192 columns `fused` gives each thread 8 numbers, which are 32 bytes in float32 and 16 in
# bfloat16. `rows` gives each thread about 16 numbers, and 32 in half precision from 16,384 columns on.
#
# `rows` still dips at 781 and 12,672 columns, where a quarter of the padded block is idle, and at 32,768, where only one row
# is on a multiprocessor at a time. The appendix shows what it takes to remove the dips.
#
# **End of the second sitting.** You can say how many programs run at once, and what limits them. More is not always faster.

# %% [markdown]
# # Sitting 3 · Rows that fit no program
#
# ## Idea
#
# Where does a row stop fitting? The compiler can tell without a GPU: the registers of one thread, and what
# it had to spill, for 16 warps and one stage.

# %%
for columns in (16384, 32768, 65536, 131072):
    report = xray(
        fused_softmax_kernel, "*fp32", "*fp32", columns, columns, 8192, columns,
        BLOCK_SIZE=columns, num_stages=1, num_warps=16, targets=("gfx942", "sm_90"),
    )
    for target in ("gfx942", "sm_90"):
        found = report[target]
        registers = found.vgprs or found.registers
        print(f"N = {columns:6} {target:6} {registers:3} registers, spilled: {found.spills}")

# %% [markdown]
# Spills are those of one thread, in bytes on `sm_90` and in registers on `gfx942`. On `sm_90` 16 warps are
# 512 threads, which share 65,536 registers: at most 128 for each. A row of 65,536 numbers would need all of
# them, with nothing left to compute in. A compute unit of the MI300X has twice the register file, so its row may be twice as
# long before it spills. (Once a kernel spills, its number of registers says little: the row waits in memory.)
#
# ### A maximum and a sum for each lane
#
# Beyond that you are back at two passes. But you can do them better than lesson 3:
#
# - **big blocks**, 8192 columns, so that many loads are under way at once;
# - **a maximum and a sum for each lane.** Lesson 3 combined all lanes after every block, and the warps
#   of a program waited for each other. Here each lane of the block runs the recurrence on its own numbers, and the lanes
#   are combined once, after the last block, with the same rescale as always:
#
# $$m = \max_l m_l \qquad d = \sum_l d_l \cdot e^{m_l - m}$$
#
# Here $m_l$ and $d_l$ are the maximum and the sum of lane $l$. In code they are two blocks of BLOCK_SIZE numbers, and
# `tl.maximum` works on two blocks lane by lane. Mind the lanes that have seen nothing but $-\infty$ (lesson 3 had the cure).
#
# ## Write: rows that fit no program
#
# This is the hardest exercise of the lesson. Attention over long texts merges partial maxima and sums in the same way.


# %% answer="wide_softmax"
@triton.jit
def wide_softmax_kernel(
    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    in_row = in_ptr + row * row_stride
    output_row = output_ptr + row * output_row_stride

    ### BEGIN SOLUTION
    lane_max = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(lane_max, in_data)
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - shift)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    row_sum = tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0)
    ### STARTER
    # # Your code here: a maximum and a sum per lane, then one of each per row, about 10 lines.
    # row_max = 0.0
    # row_sum = 1.0
    ### END SOLUTION

    for start in range(0, n_cols, BLOCK_SIZE):
        offsets = start + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n_cols
        in_data = tl.load(in_row + offsets, mask=mask).to(tl.float32)
        tl.store(output_row + offsets, tl.exp(in_data - row_max) / row_sum, mask=mask)


def wide_softmax(x):
    if x.dim() != 2:
        raise ValueError(f"x must have two dimensions, not {x.dim()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if x.stride(1) != 1:
        raise ValueError(f"the columns of x must lie side by side: stride 1, not {x.stride(1)}")
    n_rows, n_cols = x.shape
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block_size = min(8192, triton.next_power_of_2(n_cols))
    if n_rows:
        wide_softmax_kernel[(n_rows,)](
            x, output, x.stride(0), output.stride(0), n_cols,
            BLOCK_SIZE=block_size, num_warps=max(1, min(16, block_size // 256)),
        )
    return output


# %%
x = torch.randn(2, 100_000, device=DEVICE)
y = wide_softmax(x)
print("sums:", [round(total, 4) for total in y.sum(dim=1).tolist()])
print("largest error, relative:", (y / torch.softmax(x, dim=1) - 1).abs().max().item())

# %%
explore.predict_bytes(wide_softmax, x)

# %% [markdown] hints="wide_softmax"

# %% [markdown]
# ## Check

# %% check="wide_softmax"
check("wide_softmax")

# %% [markdown]
# ## Measure: long rows

# %%
wide_lines = ("torch", "fused, persistent", "fused, rows", "two passes")
speed = measure(
    {"torch": lambda x: torch.softmax(x, dim=1), "fused": fused_softmax, "wide": wide_softmax},
    torch.float32,
    sizes=(8192, 16384, 32768, 65536, 131072),
)
curves = speed.only(*wide_lines) if interpreting() else speed
curves.plot()

# %% [markdown]
# `wide`, in the recorded curves "two passes", ends where two passes must: at two thirds of the copy,
# {{h200_softmax_float32; 131072; two passes; of copy}} at 131,072 columns, where `fused` is left with
# {{h200_softmax_float32; 131072; fused, persistent; of copy}}. At 8192 columns one pass is the better choice:
# {{h200_softmax_float32; 8192; fused, persistent; of copy}} against {{h200_softmax_float32; 8192; two passes; of copy}}.
#
# ### What torch.compile writes
#
# `torch.compile` makes Triton kernels, too: *Inductor*, a part of it, writes them. On your own GPU `TORCH_LOGS=output_code`
# in the environment shows them, and `TORCH_COMPILE_DEBUG=1` keeps all steps in a folder. Here is its softmax for rows of
# 8192 float32, recorded on an H200. How often does it read a row? Which kernel of this course is it?

# %%
print((RECORDED / "h200_inductor_softmax.txt").read_text())

# %% [markdown]
# <details><summary>Answer</summary>
#
# It reads each row twice and writes it once, and keeps a maximum and a sum for each lane, `_tmp2_max` and `_tmp2_sum`,
# which `online_softmax_reduce` combines after the loop: it is your `wide_softmax`, on tiles of XBLOCK rows and R0_BLOCK
# columns. In this default mode two thirds of the copy are its limit, as far as no cache helps:
# {{h200_softmax_float32; 8192; torch.compile; of copy}} at 8192 columns in the recorded curves. With
# `mode="max-autotune"` Inductor times more configurations, and reaches
# {{h200_softmax_float32; 8192; torch.compile, max-autotune; of copy}}: more than two reads from memory allow.
#
# </details>
#
# ## Look inside: the price of padding
#
# A block should be no larger than it must. One published version asked for `next_power_of_2(2 * n_cols)`: the
# result is right. What does it cost?

# %%
for block_size in (1024, 2048):
    report = xray(
        fused_softmax_kernel, "*fp32", "*fp32", 781, 781, 1823, 781,
        BLOCK_SIZE=block_size, num_stages=1, num_warps=4, targets=("gfx942", "sm_90"),
    )
    for target in ("gfx942", "sm_90"):
        found = report[target]
        loads = sum(found.loads.values())
        registers = found.vgprs or found.registers
        print(f"BLOCK_SIZE = {block_size} {target:6} {registers:3} registers, {loads:2} loads")

# %% [markdown]
# Twice the load instructions, half of which never fetch anything, and more registers in every thread.
#
# ## Go further
#
# - **Warps.** Try 128 or 512 numbers per warp in `fused_launch` instead of 256. Which sizes move?
# - **Stages.** One published guide says 1 stage for kernels without matrix products, one published kernel
#   uses 4. Measure 1, 2 and 4, and look at what `warmup` says about shared memory.
#
# **End of the third sitting**, and of the softmax kernels: you have one for every width.
#
# ### Read next
#
# - [07_attention_decode.ipynb](07_attention_decode.ipynb): sitting 3's idea, where it decides how fast a model answers.
# - [05_jax_dropout.ipynb](05_jax_dropout.ipynb) and [06_amd_optimization.ipynb](06_amd_optimization.ipynb): dropout from JAX,
#   and occupancy counted to the register.
# - Triton's [fused softmax
#   tutorial](https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html) and AMD's
#   [workload optimization guide](https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html)
#   for the MI300X.

# %%
progress()

# %% [markdown]
# # Appendix · To the limit
#
# No exercise, and no later lesson needs it. Here are 70 widths in bfloat16, 60 of them drawn at random and ten that people use,
# such as 50,257 (GPT-2's vocabulary): torch, Liger, a published library of Triton kernels, and "fused, stripes", the fastest
# kernel of this course.

# %%
widths = recorded("h200_softmax_drawn_1_bfloat16")
widths.rows.sort(key=lambda row: row.size)
figure = widths.only("torch", "Liger", "fused, stripes").plot()
axes = figure.axes[0]
grey = axes.title.get_color()  # it becomes the page's text colour
for columns, height, side, name in (
    (4_136, 450, "right", "a power of two,\njust missed"),
    (5_418, 150, "left", "not a multiple of 16 bytes"),
    (32_974, 550, "left", "a row that no longer fits"),
):
    axes.axvline(columns, color=grey, linewidth=0.9, linestyle=":")
    gap = (4 if side == "left" else -4, 0)
    axes.annotate(name, (columns, height), gap, textcoords="offset points", ha=side, fontsize=10, color=grey)
figure

# %% [markdown]
# Liger's kernel is `rows` of this lesson: one padded block for each row.

# %%
widths.only("Liger", "fused, stripes").shares().loc[[4096, 4136, 5120, 5418, 32000, 32974]]

# %% [markdown]
# Think of an explanation for each of the three cliffs before you read on.
#
# Where are yours? With a GPU, the next cell measures both of your kernels at pairs of neighbours.

# %%
NEIGHBOURS = (1000, 1001, 1024, 1025, 4096, 4104, 4105, 8192, 8200, 16384, 16400)
if interpreting():
    print("This needs a GPU.")
else:
    measure({"fused": fused_softmax, "rows": rows_softmax}, torch.bfloat16, sizes=NEIGHBOURS).plot()

# %% [markdown]
# <details><summary>Answer</summary>
#
# - **A power of two just missed.** 4,136 columns in a block of 8,192: half of the lanes are idle, and have registers
#   all the same. So fewer bytes are under way.
# - **Not a multiple of 16 bytes.** One instruction fetches up to 16 bytes for a thread, but only from an address that is a
#   multiple of 16. With 5,418 bfloat16 to a row the compiler takes 2 bytes at a time. (It does so wherever a row's length is
#   not a multiple of 16 *elements*, as at 4,136.)
# - **A row that no longer fits.** 32,974 columns in a block of 65,536, with 32 warps: 64 numbers and 64 registers for each
#   thread. The row spills. Beyond 65,536 columns Liger refuses.
#
# </details>
#
# "fused, stripes" has one rule for all widths. Up to 32,768 columns its lowest point is
# {{h200_softmax_drawn_2_bfloat16; 244; fused, stripes; of copy}} of the copy, at 244. In the course's repository
# its code is `benchmarks/kernels/softmax.py`, and `benchmarks/README.md` says how it was found. (A workshop's room has neither:
# the code holds answers.) Its ideas, to try on your own kernel:
#
# | idea | what it does |
# |---|---|
# | **stripes** | 16 bytes for each thread, side by side, are a stripe. 4,136 columns are nine stripes of 512; only the last has a mask. A loop over `tl.static_range(STRIPES)` loads all into a tuple, and combines them lane by lane: one reduction, not nine. |
# | **whole words** | The first stripe begins at a multiple of 16 bytes; 14 threads load the columns before it and after the last stripe. At 50,257 columns: {{h200_softmax_drawn_1_bfloat16; 50257; Liger; of copy}} for Liger, {{h200_softmax_drawn_1_bfloat16; 50257; fused, stripes; of copy}} here. |
# | **packing** | Two bfloat16 fit into one register. Each exponential is computed twice instead of kept, so two rows of 32,768 fit a multiprocessor. |
# | **clusters** | On Hopper, programs of a *cluster* write into each other's shared memory. With `num_ctas=8` a tile of 8 × 16,384 is one row. In Triton 3.6 and 3.7 the exchange is 30 lines of NVIDIA's assembly; from 3.8 on a plain `tl.max(x, axis=0)` compiles (3.9 was compiled for Hopper here, not timed). A row of 128,256 reaches {{h200_softmax_drawn_1_float32; 128256; fused, stripes; of copy}} in float32 and {{h200_softmax_drawn_1_bfloat16; 128256; fused, stripes; of copy}} in bfloat16. |
# | **a launch from what fits** | A thread takes six words of 16 bytes while there are threads, then more. Where fewer than two programs fit, a cluster takes the row. |
#
# QuACK, written in NVIDIA's CuTe DSL, reaches {{h200_softmax_float32; 131072; QuACK; of copy}} in
# float32 and {{h200_softmax_bfloat16; 131072; QuACK; of copy}} in bfloat16 at 131,072 columns
# ([its authors' account](https://github.com/Dao-AILab/quack/blob/main/media/2025-07-10-membound-sol.md)).
