# %% [markdown]
# # 0 · Setup: this machine, and your first kernel
#
# In ten minutes you know what your kernels run on, you have written one, and you have seen how it is checked.
# Run a cell with **Shift+Enter**. The first one looks at this machine:

# %%
from workshop import DEVICE, count_bytes, device, doctor, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

device()

# %% [markdown]
# No GPU? Then everything here still works: Triton's *interpreter* runs your kernels on the CPU and computes the
# same numbers, only slowly. Speed is then shown from recorded measurements that name their GPU.
#
# Is something missing? The doctor says what, and what to do about it. (In a terminal: `workshop doctor`.)

# %%
doctor()

# %% [markdown]
# ## Picture
#
# ![Where a number can live, from fastest and smallest to slowest and biggest: registers, shared memory, L2 cache, Infinity Cache, HBM](../assets/memory_hierarchy.svg)
#
# Your tensors live at the bottom, in the GPU's main memory, *HBM*. Arithmetic happens at the top, in registers.
# Most of this course is about one question: **how often must a number make that trip?**

# %% [markdown]
# ## Idea
#
# Three words, and you can read any Triton code:
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
# What will the tensor hold, and in which order will the programs have written it? Decide, then open.
#
# <details><summary>Answer</summary>
#
# It holds `[0, 1, 2, 3, 4, 5, 6]`. The order of the writes is not defined: on a GPU programs run at the same time,
# in any order. So no program may depend on what another one has written. (The interpreter happens to run them
# one after another, from 0 up. Do not rely on it.)
#
# </details>

# %% [markdown]
# ## Write
#
# One program per element, and program number *p* writes *p* to element *p*. One line is missing: in the starter
# every program believes that it is number 0. Run the cell as it is, look at the output, then mend the line.
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
# right answer. If a kernel crashes, hangs or writes where it should not, that process ends and this notebook lives
# on. You can check as often as you like. Once yours has passed, or after three honest tries,
# `from workshop import solution; solution("first_kernel")` shows the course's own answer.

# %% check="first_kernel"
check("first_kernel")

# %% [markdown]
# ## Measure
#
# What does your kernel cost? On a GPU, even an empty launch takes a few microseconds, which is why one program per
# element only makes sense in a first lesson. What can be known on every machine is how many bytes it moves:
# one `int32` written per program, and nothing read.

# %%
if device().interpreting:
    print(count_bytes(first_kernel, 1000))
else:
    milliseconds = triton.testing.do_bench(lambda: first_kernel(1000), return_mode="median")
    print(f"{milliseconds * 1000:.1f} µs to write 4000 bytes")
    print(f"{device().copy_gbps().median:.0f} GB/s when this card copies a gigabyte")

# %% [markdown]
# ## Look inside
#
# Triton compiles your Python function to machine code. The compiler needs no GPU, so you can always see what your
# kernel becomes on an AMD Instinct MI300X, whose architecture is called `gfx942`:

# %%
xray(first_kernel_programs, "*i32")

# %% [markdown]
# One store of 32 bits, a handful of registers, nothing else. AMD's processors work on 64 **lanes** at once: *VGPRs* are
# registers with one value per lane, *SGPRs* hold one value for all of them. Later lessons read this table to explain
# speed.

# %% [markdown]
# ## Go further
#
# - Change the kernel so that program *p* writes `p * p`, and run it. (Then change it back, and check again.)
# - What does `first_kernel(0)` do? A launch of zero programs is allowed: nothing runs.
# - Read next: [01_vector_add.ipynb](01_vector_add.ipynb), where one program works on a thousand elements.
#
# Your points so far are kept in a file beside this notebook and are sent nowhere:

# %%
progress()
