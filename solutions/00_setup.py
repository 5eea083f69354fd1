# %% [markdown]
# # 0 · Setup: this machine, and your first kernel
#
# You will write GPU kernels in Python, see what a compiler makes of them, and measure what they cost.
#
# ![Bytes that are read and written for each float32 element of a large matrix: 32 in five torch operations, 16 in a naive softmax kernel, 12 with online softmax, 8 in a fused kernel, as many as a copy](../assets/hero.svg)
#
# | lesson | minutes, about | what you will have built |
# |---|---|---|
# | **0 Setup** (this one) | 15 | a kernel that runs, and its first verdict |
# | [1 Vector add](01_vector_add.ipynb) | 70 | blocks, masks, a tuned launch, two repaired bugs |
# | [1b Tiles](01b_tiles.ipynb) | 90 | blocks with rows and columns, three repaired kernels |
# | [2 Naive softmax](02_naive_softmax.ipynb) | 60 | a kernel with loops, and a count of every byte it moves |
# | [3 Online softmax](03_online_softmax.ipynb) | 60 | one pass less: the running maximum behind flash attention |
# | [4 Fused softmax](04_fused_softmax.ipynb) | 90 | one read and one write, in programs that stay on the GPU |
# | [5 Dropout in JAX](05_jax_dropout.ipynb) | 60 | random numbers in a kernel, and its gradient |
# | [6 AMD](06_amd_optimization.ipynb) | 70 | assembly read, occupancy computed, a configuration for the MI300X |
# | [7 Attention](07_attention_decode.ipynb) | 80 | the kernel that reads a language model's cache, over a whole card |
# | [8 Backward](08_backward.ipynb) | 75 | gradients, a loss, and a network that trains with them |
# | [9 Matrix products](09_matmul.ipynb) | 90 | tiles for the tensor cores, their order, and a layer in one kernel |
# | [10 Ship it](10_ship_it.ipynb) | 65 | an RMS norm from an empty cell, as an operator, and a package to take along |
#
# Three hours: lessons 0, 1, 2, with time for questions. Six hours: 0 to 4, without 1b. Alone: all of them, one a day.
#
# Run a cell with **Shift+Enter**. (Is the page too narrow? **Ctrl+B** hides the list of files.) A word with dots below it
# has a definition: hover over it, or tap it. `from workshop import glossary; glossary()` shows all of them. The first cell
# shows where you are, the second one looks at this machine:

# %%
from workshop import DEVICE, count_bytes, device, doctor, explore, here, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("00_setup")

# %%
device()

# %% [markdown]
# No GPU? Then everything here still works: your kernels run on the CPU, as Triton itself reads them. They compute the
# same numbers, and every access to memory is checked. Speed is then shown from recorded measurements that name their GPU.
#
# Is something missing? The doctor says what, and what to do about it. On an AMD GPU it also names settings that
# change timings. (In a terminal: `workshop doctor`.)

# %%
doctor()

# %% [markdown]
# ## Picture
#
# ![Where a number can live, from fastest and smallest to slowest and biggest: registers, shared memory, L2 cache, Infinity Cache, HBM](../assets/memory_hierarchy.svg)
#
# A GPU has many equal parts that run programs. NVIDIA calls such a part a *streaming multiprocessor* (SM), AMD a *compute
# unit* (CU). An *XCD* is one of the eight compute chips of an MI300X, with its share of the CUs.
#
# Your tensors live at the bottom, in the GPU's main memory, *HBM*. Arithmetic happens at the top, in registers.
# Most of this course is about one question: **how often must a number make that trip?**

# %% [markdown]
# ## Idea
#
# Three words to begin with:
#
# - A **kernel** is a function that runs on the GPU. `@triton.jit` above a Python function makes it one.
# - A **launch** starts it many times at once: `kernel[(7,)](…)` starts 7 copies. The tuple is the **launch grid**.
# - Each copy is a **program**. All programs run the same code; `tl.program_id(axis=0)` tells each one its number.
#
# A kernel has no tensors, only **pointers**: `output_ptr` is where the tensor's first element is in memory, and
# `output_ptr + 3` is where its fourth one is. `tl.load` reads from a pointer, `tl.store` writes to one.

# %% [markdown]
# ## Predict
#
# `first_kernel(7)` will launch 7 programs, and each writes its own number at its own place.

# %%
explore.predict("order of programs")

# %% [markdown]
# ## Write
#
# One program per element, and program number *p* writes *p* to element *p*. One line is missing: in the starter
# every program takes itself for number 0. Run the cell unchanged, look at the output, then repair the line.
# The tensor is filled with -1 first, so that you see which elements no program has written.

# %% answer="first_kernel"
# One line is yours: ①.
@triton.jit
def first_kernel_programs(output_ptr):
    pid = tl.program_id(axis=0)  # ① starter: 0
    tl.store(output_ptr + pid, pid)


def first_kernel(n):
    output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)
    first_kernel_programs[(n,)](output)
    return output

# %%
first_kernel(7)

# %% [markdown] hints="first_kernel"

# %% [markdown]
# ## Check
#
# `check` takes your code to another process, runs it there on fresh inputs, and compares every element with the
# right answer. The inputs have from 0 to more than 100 million elements; `n` here is less than 10 million. If a kernel
# crashes, hangs or writes where it should not, that process ends and this notebook continues. You can check as often as
# you like. When yours has passed, or after three failed checks, `from workshop import solution; solution("first_kernel")`
# shows the course's own answer.

# %% check="first_kernel"
check("first_kernel")

# %% [markdown]
# ## Measure
#
# What does your kernel cost? On every machine you can know how many bytes it moves: one `int32` written per
# program, and nothing read.
#
# The time is harder. **A launch is asynchronous**: Python goes on before the kernel has run. A clock in Python
# that does not wait measures how long it takes to *ask* for the kernel. So wait, with `synchronize()`, or let the
# GPU note the time itself, with two *events* in its queue. `triton.testing.do_bench` uses events, many times over;
# it returns the mean, or the median if you ask for it. On a GPU the next cell shows all three. Which of them do not
# measure your kernel?

# %%
if device().interpreting:
    print(count_bytes(first_kernel, 1000))
else:
    import time

    output = torch.full((1000,), -1, dtype=torch.int32, device=DEVICE)

    def launch():
        first_kernel_programs[(1000,)](output)

    launch()  # the first launch compiles
    torch.accelerator.synchronize()
    start = time.perf_counter()
    launch()
    asked = time.perf_counter() - start
    torch.accelerator.synchronize()
    waited = time.perf_counter() - start
    print(f"{asked * 1e6:6.1f} µs until Python went on")
    print(f"{waited * 1e6:6.1f} µs until the GPU was done, as Python saw it")
    before, after = (torch.Event(device=DEVICE, enable_timing=True) for _ in range(2))
    before.record()
    launch()
    after.record()
    after.synchronize()
    print(f"{before.elapsed_time(after) * 1e3:6.1f} µs between two events on the GPU, once")
    median = triton.testing.do_bench(launch, return_mode="median")
    print(f"{median * 1e3:6.1f} µs between two events, the median of many")
    print(f"{device().copy_gbps().median:.0f} GB/s when this card copies a gigabyte")

# %% [markdown]
# The events come nearest. The first clock stops before the kernel has run. The second one also counts the way to the GPU
# and back, which takes longer than writing 4000 bytes. But a kernel of a few microseconds is short beside its own start
# on the GPU, and events count that too: below about 10 µs they measure mostly the launch. Lesson 1 shows a way out.

# %% [markdown]
# ## Look inside
#
# Triton compiles your Python function to machine code. The compiler needs no GPU, so you can always see what your
# kernel becomes on an AMD Instinct MI300X, whose architecture is called `gfx942`:

# %%
xray(first_kernel_programs, "*i32")

# %% [markdown]
# One store of 32 bits, a few registers, nothing else. The smallest worker of a GPU is a **thread**. AMD's Instinct GPUs run
# 64 threads in step: a *VGPR* is a register with one value for each of them, an *SGPR* has one value for all. Later lessons
# read this table, line by line, to explain speed.

# %% [markdown]
# ## Go further
#
# - Change the kernel so that program *p* writes `p * p`, and run it. (Then change it back, and check again.)
# - What does `first_kernel(0)` do? A launch of zero programs is allowed: nothing runs.
# - **Look inside while it runs.** Put `print("program", pid)` into the kernel: it prints from each program, with a GPU
#   or without. `tl.device_print("program ", pid)` is the long form. (Take it out again before you check.)
# - Read next: [01_vector_add.ipynb](01_vector_add.ipynb), where one program works on a thousand elements.
#
# Your points so far are kept in a file on this machine. Nobody else sees them, unless you choose in a workshop's room
# to share your progress with the instructor:

# %%
progress()
