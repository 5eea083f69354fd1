# %% [markdown]
# # 6 · AMD: read what the compiler made, and tune it
#
# The MI300X has wide waves, a large register file and a large cache, and its compiler says what it did. You can
# study all of that on any Linux machine: Triton compiles for `gfx942`, the MI300X, without one.
#
# Three exercises: read the assembly, compute the occupancy, choose a configuration. In between you change a kernel until
# its assembly is right.
#
# ![The operations of a language model from the embedding to the loss, with softmax lit, and their share of all bytes in decoding and in training.](../assets/layer_softmax.svg)

# %%
from workshop import DEVICE, compare, device, explore, here, matches, progress, xray
from workshop.results import RECORDED

import torch
import triton
import triton.language as tl

from autograder import check

here("06_amd_optimization")

# %% [markdown]
# ## Picture
#
# ![One compute unit with four SIMDs: waves side by side, limited by their vector registers, by eight slots, or by LDS.](../assets/occupancy_cu.svg)
#
# ## Idea
#
# ### The machine, from large to small
#
# - An MI300X has 8 compute dies (**XCD**) of 38 **compute units** (CU): 304. Each die has 4 MiB of L2 cache, and
#   all share 256 MiB of *Infinity Cache*. A benchmark whose tensors fit in there measures the cache.
# - 304 CUs want work. A launch of 100 programs leaves two thirds of them idle, and one of 305 takes as long as one of
#   608, if a CU runs one program at a time. [A guide of AMD's from
#   2024](https://rocm.docs.amd.com/en/docs-6.1.0/how-to/llm-fine-tuning-optimization/optimizing-triton-kernel.html) asks
#   for at least 1024 workgroups. Where rows are few and long, split a row over several programs and merge their results.
# - A CU has 64 KiB of **LDS**, which Triton calls shared memory, and four **execution units** (EU, also SIMD).
# - A warp is a **wave** of 64 threads, which this lesson calls lanes, as AMD does. It lives on one EU. An EU keeps up to 8 of
#   them: while one waits for memory, another computes.
# - For each lane an EU has 512 **vector registers** (VGPRs) of 32 bits for all its waves together, handed out in
#   steps of 8. The compiler divides each wave's share: ordinary registers, at most 256, and *accumulation registers*
#   (AGPRs), made for matrix instructions but good for other values too. `.vgpr_count` counts both. (This holds from
#   `gfx90a` on. The older MI100, `gfx908`, has two separate files of 256.)
#
# The sizes are [AMD's](https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html), the step and the 8
# waves are [LLVM's](https://llvm.org/docs/AMDGPUUsage.html). The MI355X (`gfx950`) has 160 KiB of LDS and 8 dies of 32
# CUs, 256 in all. The MI250X (`gfx90a`) has 2 dies of 110 CUs, which count as two devices, and no Infinity Cache.
#
# ### Wide loads
#
# ![One buffer_load_dwordx4 gives each of 64 lanes 16 bytes, 1024 in all; buffer_load_dword gives 4 bytes to each.](../assets/amd_wave_load.svg)
#
# One instruction can load up to 128 bits for each lane. A *dword* is 32 bits, so look for `dwordx4`. The same width comes under two names:
# `buffer_load_dwordx4`, which Triton uses for tensors below 2 GiB, and `global_load_dwordx4`, the only one that
# older guides mention.
#
# ### Occupancy
#
# $$\text{waves} = \min\left(8, \left\lfloor \frac{512}{\lceil \text{vgprs} / 8 \rceil \cdot 8} \right\rfloor\right)$$
#
# A program's waves, its *workgroup*, must fit the CU together, and so must its LDS. (LDS is handed out in steps, too: of 512
# bytes, on the MI355X of 1,280. The formula here leaves these steps out, and no check asks for a kernel where they decide.
# LLVM's [`llvm-calc-occupancy`](https://llvm.org/docs/CommandGuide/llvm-calc-occupancy.html) counts them.) Try it:

# %%
explore.occupancy()

# %% [markdown]
# ## Predict
#
# Use the formula, and mind the two roundings.

# %%
explore.predict("waves")

# %% [markdown]
# ## Write: read the assembly
#
# The kernel of lesson 4, for rows of 8192 float32, with 4 warps, 2 stages and `waves_per_eu=8`: a wish that the
# compiler should fit 8 waves on each EU, whatever it takes.


# %%
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
        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(in_data - tl.max(in_data, axis=0))
        softmax = numerator / tl.sum(numerator, axis=0)
        tl.store(output_row + offsets, softmax, mask=mask)


columns = 8192
report = xray(
    fused_softmax_kernel, "*fp32", "*fp32", columns, columns, 4096, columns,
    BLOCK_SIZE=columns, num_warps=4, num_stages=2, waves_per_eu=8, targets="gfx942",
)
report

# %% [markdown]
# At its end the assembly says what the compiler counted:

# %%
report.isa().grep(".vgpr_count", ".vgpr_spill", ".sgpr_spill", ".group_segment_fixed")

# %% [markdown]
# And these are its accesses to the tensors, loads and stores:

# %%
report.isa().grep("buffer_load", "buffer_store", "global_load", "global_store")

# %% [markdown]
# Write down four numbers: the vector registers of a wave, the bytes of LDS of a program, the bits that one lane
# gets from one load of the row, and the vector registers that were spilled. Two of the counted numbers are traps.
#
# Write the *numbers*: the judge gives your function no compiler. It compiles the kernel itself, with the Triton
# that it runs on (its verdict names the version), so read yours in the same environment that will judge it. The
# solution carries the spills of six versions, which have five different numbers.


# %% answer="read_the_isa"
def read_the_isa():
    ### BEGIN SOLUTION
    spills = {"3.4": 54, "3.5": 54, "3.6": 59, "3.7": 42, "3.8": 48, "3.9": 53}
    return {"vgprs": 64, "lds_bytes": 16, "load_bits": 128, "spills": spills[triton.__version__[:3]]}
    ### STARTER
    # return {"vgprs": 0, "lds_bytes": 0, "load_bits": 0, "spills": 0}  # your code here: four numbers
    ### END SOLUTION


# %%
print(read_the_isa())

# %% [markdown] hints="read_the_isa"

# %% [markdown]
# ## Check

# %% check="read_the_isa"
check("read_the_isa")

# %% [markdown]
# ## Write: change a kernel until its assembly is right (no points)
#
# This kernel doubles rows of 4,100 float32. Its result is right. Its assembly is not: a lane gets 32 bits from each load. Three
# lines are to blame, and one that is left is enough for narrow loads. Change them and run the cell, until all accesses have 128
# bits and nothing is spilled. A wide access needs three things: four columns of a lane side by side, one mask for the four, and
# an address that is a multiple of 16 bytes, as the compiler sees it.
#
# (4,100 float32 are 16,400 bytes, a multiple of 16. But Triton only looks whether an argument is a multiple of 16 itself.
# 4,100 is not, so the compiler knows nothing. How can you write a number so that everybody sees that it is a multiple of 4?)

# %%
@triton.jit
def twice_kernel(x_ptr, y_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    columns = lanes % 4 * (BLOCK // 4) + lanes // 4
    start = tl.program_id(0) * row_stride
    mask = columns < n_cols
    x = tl.load(x_ptr + start + columns, mask=mask)
    tl.store(y_ptr + start + columns, 2 * x, mask=mask)


found = xray(twice_kernel, "*fp32", "*fp32", 4100, 4100, BLOCK=8192, num_warps=8, targets="gfx942")["gfx942"]
print("loads: ", ", ".join(f"{count} × {bits} bit" for bits, count in found.loads.items()))
print("stores:", ", ".join(f"{count} × {bits} bit" for bits, count in found.stores.items()))
right = {*found.loads, *found.stores} == {128} and found.spills == 0
print("the assembly is right" if right else "not yet: 128 bits, and no spill")

# %% [markdown]
# <details><summary>Answer</summary>
#
# ```python
# columns = lanes
# start = tl.program_id(0) * (row_stride // 4 * 4)
# mask = columns < n_cols // 4 * 4
# ```
#
# `n // 4 * 4` is n for every multiple of 4, and the compiler sees the factor. For other sizes it rounds down: the result would be
# wrong without a word. So the host must choose the kernel by the size, or pass `n_cols // 4` and multiply in the kernel.
#
# </details>
#
# ## Write: occupancy
#
# Waves per execution unit, for `arch` in `gfx90a`, `gfx942` and `gfx950`:
#
# 1. Round `vgprs` up to a multiple of 8. How many waves fit into 512? At most 8.
# 2. Four execution units: how many whole workgroups of `num_warps` waves is that on a CU?
# 3. How many workgroups fit into the LDS? Zero bytes limit nothing.
# 4. Take the smaller, and go back to waves per execution unit. Round down.
#
# A much-read guide hands registers out in steps of 16. On these three it is 8: 72 registers are 72, not 80. LDS is
# handed out in steps, too: 512 bytes, 1,280 on gfx950. Leave them out: the check asks for no kernel where they count.


# %% answer="occupancy"
LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}


def occupancy(vgprs, lds_bytes, num_warps, arch):
    ### BEGIN SOLUTION
    allocated = (vgprs + 7) // 8 * 8
    workgroups = min(8, 512 // allocated) * 4 // num_warps
    if lds_bytes:
        workgroups = min(workgroups, LDS[arch] // lds_bytes)
    return workgroups * num_warps // 4
    ### STARTER
    # return 512 // vgprs  # your code here: this is not even half of it
    ### END SOLUTION


# %%
for kernel in ((114, 16, 4, "gfx942"), (72, 32, 8, "gfx942"), (20, 20000, 4, "gfx942"), (20, 20000, 4, "gfx950")):
    print(kernel, "->", occupancy(*kernel), "waves per execution unit")

# %% [markdown] hints="occupancy"

# %% [markdown]
# ## Check

# %% check="occupancy"
check("occupancy")

# %% [markdown]
# ## Write: tune for the MI300X
#
# Now rows of 4096 **float16**. Choose a configuration of the kernel that meets this specification for `gfx942`:
#
# - every access to global memory is 128 bits wide,
# - nothing is spilled,
# - 8 waves fit each execution unit.
#
# The choices are `BLOCK_SIZE` (a power of two up to 8192, at least the row), `num_warps` (1 to 16),
# `waves_per_eu` (0, no wish, to 8) and `num_stages` (1 to 4). There is more than one right answer. Try as many as
# you like; each takes the compiler some seconds. Meeting a specification is not the same as being fast: it removes
# three known brakes, and only a timing on the card can say which of the right answers is the fastest.


# %%
def show(**configuration):
    """What the compiler makes of one configuration for float16 rows of 4096."""
    found = xray(
        fused_softmax_kernel, "*fp16", "*fp16", 4096, 4096, 4096, 4096, targets="gfx942", **configuration
    )["gfx942"]
    widths = ", ".join(f"{count} × {bits} bit" for bits, count in found.loads.items())
    print(*(f"{name}={value}" for name, value in configuration.items()))
    print(f"    {found.vgprs} VGPRs, {found.spills} spilled, {found.occupancy} waves, loads: {widths}")


show(BLOCK_SIZE=4096, num_warps=1, waves_per_eu=0, num_stages=1)
show(BLOCK_SIZE=4096, num_warps=16, waves_per_eu=0, num_stages=1)


# %% answer="tune_for_mi300x"
def tune_for_mi300x():
    ### BEGIN SOLUTION
    return {"BLOCK_SIZE": 4096, "num_warps": 8, "waves_per_eu": 0, "num_stages": 1}
    ### STARTER
    # # Your code here: another configuration.
    # return {"BLOCK_SIZE": 4096, "num_warps": 1, "waves_per_eu": 0, "num_stages": 1}
    ### END SOLUTION


# %% [markdown] hints="tune_for_mi300x"

# %% [markdown]
# ## Check

# %% check="tune_for_mi300x"
check("tune_for_mi300x")

# %% [markdown]
# ## Measure
#
# No AMD GPU was at hand when this lesson was written, so it shows no AMD speed. What it can measure anywhere is
# what the compiler did; that says what *may* limit a kernel, not how fast it is. If your device is an AMD GPU, the
# next cell times your configuration against the first guess of one warp, and both against the copy.
#
# No MI300X at hand? They are rented by the hour: AMD Developer Cloud, Hot Aisle, TensorWave and Vultr had them in
# 2026. Run `workshop doctor` there first: it names the settings that change timings, such as `HIP_FORCE_DEV_KERNARG`,
# the clocks and NUMA balancing. `rocminfo | grep -E 'Name:|Compute Unit|SIMDs|Wavefront Size|Max Waves'` shows the
# numbers of this lesson, below the name `gfx942`: 304 CUs, 4 SIMDs in each, waves of 64, and at most 32 waves per CU,
# which are the 8 of each SIMD. `amd-smi monitor` shows power and clocks while your kernel runs.


# %%
def with_configuration(configuration):
    """Softmax of float16 rows of 4096 with this configuration, one program per row."""

    def softmax(x):
        output = torch.empty_like(x)
        fused_softmax_kernel[(x.shape[0],)](
            x, output, x.stride(0), output.stride(0), *x.shape, **configuration
        )
        return output

    return softmax


if device().backend == "hip":
    one_warp = {"BLOCK_SIZE": 4096, "num_warps": 1, "waves_per_eu": 0, "num_stages": 1}
    speed = compare(
        {"one warp": with_configuration(one_warp), "yours": with_configuration(tune_for_mi300x())},
        lambda rows: (torch.randn(rows, 4096, device=DEVICE, dtype=torch.float16),),
        sizes=(16384, 65536, 131072),
        bytes_moved=lambda x: 2 * x.numel() * x.element_size(),
        check=matches(lambda x: torch.softmax(x, dim=1)),
        title="Rows of 4096 float16",
    )
    speed.plot()
else:
    print("no AMD GPU here, so nothing is timed")

# %% [markdown]
# ## Look inside
#
# Before the assembly comes TTGIR, Triton's own view. `sizePerThread` says how many neighbours a lane takes at
# once. Names in older guides begin with `triton_gpu.`; today they begin with `ttg.`.

# %%
report.ttgir().grep("#ttg.blocked", "num-warps", "load", "store")

# %% [markdown]
# ### One load, from Python to the assembly
#
# A kernel with a single load, small enough to follow it through all four stages:

# %%
@triton.jit
def copy_kernel(in_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    data = tl.load(in_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, data, mask=offsets < n)


copied = xray(copy_kernel, "*fp32", "*fp32", 4096, BLOCK=1024, targets="gfx942")
for stage, text, words in (
    ("TTIR, 1024 pointers", copied.ttir(), ("tt.load",)),
    ("TTGIR, a layout", copied.ttgir(), ("#blocked =", "_load")),
    ("LLVM IR, one lane", copied.llir(), ("= tail call <4 x float>",)),
    ("assembly", copied.isa(), ("buffer_load", "global_load")),
):
    print(f"{stage}\n    " + text.grep(*words).replace("\n", "\n    "))

# %% [markdown]
# In TTIR one `tt.load` is about 1024 pointers. TTGIR gives them a **layout**: 4 neighbours to a lane, 64 lanes to a
# wave, 4 waves. For LLVM a lane loads 4 floats, and that is one `buffer_load_dwordx4`. Backwards it works too: lines
# with `.loc` in the assembly name the line and column of the kernel that the instructions below them come from.
# Find the one above the load with `copied.isa().grep(".loc", "buffer_load")`.
#
# ### What a change of layout costs
#
# A tile is read along its rows, and must be written along its rows. Transposed in between, the numbers are in the
# wrong lanes. Compare the two kernels. **What does the second one pay with?**

# %%
@triton.jit
def tile_kernel(in_ptr, out_ptr, n, TURN: tl.constexpr, TILE: tl.constexpr):
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    tile = tl.load(in_ptr + rows * n + columns)
    if TURN:
        tile = tl.trans(tile)
    tl.store(out_ptr + rows * n + columns, tile)


straight, turned = (
    xray(tile_kernel, "*fp32", "*fp32", 4096, TURN=turn, TILE=64, targets="gfx942") for turn in (False, True)
)
print(turned.ttgir().grep("convert_layout"))
for name, found in (("straight", straight["gfx942"]), ("turned", turned["gfx942"])):
    counts = f"barriers {found.barriers}   waits {found.waits:2}   {found.occupancy} waves"
    print(f"{name:9} LDS {found.shared:5} B   {counts}")

# %% [markdown]
# <details><summary>Answer</summary>
#
# With the whole tile in LDS (64 × 64 × 4 bytes), a barrier in between, more waiting, and, because of the LDS, fewer
# waves on each EU. Here `ttg.convert_layout` is where that happens: each lane writes what it has to LDS, and reads what it
# needs. Other layouts that you will meet: a *slice* is a layout with one axis removed (what a reduction leaves, and
# what `[:, None]` undoes), a *shared* layout describes data in LDS, and `#ttg.amd_mfma` is the order in which matrix
# instructions hand out their result.
#
# </details>
#
# ### The price of eight waves
#
# Back to the wish. The same kernel without it: what did eight waves cost?

# %%
unforced = xray(
    fused_softmax_kernel, "*fp32", "*fp32", columns, columns, 4096, columns,
    BLOCK_SIZE=columns, num_warps=4, num_stages=2, targets="gfx942",
)
explore.difference(unforced.diff(report), "scratch_")

# %% [markdown]
# The numbers that changed come first, then the instructions that spill; unfold the rest. Each `scratch_store` and
# `scratch_load` is a spill: traffic to memory that a softmax in one pass was meant to avoid. That traffic is the price of
# twice the waves.
#
# `s_waitcnt` is where a wave waits: `vmcnt(n)` until at most `n` of its memory accesses are still under way,
# `lgkmcnt(n)` the same for LDS and for scalar loads. With two stages the loads of the next row are under way while this
# row is computed.
#
# ## Go further
#
# ### The price of a wish
#
# A row of 16,384 float32 with 4 warps, and more and more waves asked for. **Predict** where it begins to spill.

# %%
explore.predict("a wish")

# %%
for waves_per_eu in (0, 2, 4, 6, 8):
    found = xray(
        fused_softmax_kernel, "*fp32", "*fp32", 16384, 16384, 4096, 16384,
        BLOCK_SIZE=16384, num_warps=4, num_stages=1, waves_per_eu=waves_per_eu, targets="gfx942",
    )["gfx942"]
    print(f"waves_per_eu={waves_per_eu}: {found.vgprs:3} VGPRs, {found.spills:3} spilled, {found.occupancy} waves")

# %% [markdown]
# - **Stages.** AMD's rules for `num_stages` have changed. For one matrix product, two in a row (attention), one with an
#   activation, and none, the guide of 2024 says 0, 1, 0, 1; [today's](https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html)
#   says 2, 1, 2, 1, and that the larger LDS of an MI350X may allow 3 or 4. Without `num_stages` Triton 3.7 takes 2 on AMD and 3 on NVIDIA.
#   Compile lesson 4's kernel with 1, 2 and 4 and watch the registers; on an AMD GPU, time them.
# - **`global_load` instead.** Restart with `AMDGCN_USE_BUFFER_OPS=0` in the environment and read the ISA again.
# - **More to see.** `AMDGCN_ENABLE_DUMP=1` prints the assembly of every kernel that is compiled, `MLIR_ENABLE_DUMP=1`
#   what each pass of the compiler did, and `TRITON_KERNEL_DUMP=1` writes all stages to `TRITON_DUMP_DIR`. A kernel
#   that comes from the cache is not compiled: add `TRITON_ALWAYS_COMPILE=1`.
# - **Profile.** A profiler says where the time went. Proton comes with Triton (its viewer needs `llnl-hatchet`);
#   NVIDIA's and AMD's profilers see more. With your functions in `script.py`:
#
#   ```
#   proton -n softmax script.py && proton-viewer -m time/ms,time/% softmax.hatchet
#   # NVIDIA: one launch, all sections
#   ncu --set full -k regex:softmax -c 1 python script.py
#   # AMD: the time of each kernel. Since ROCm 7.0 the result is a database unless you ask for CSV
#   rocprofv3 --kernel-trace --stats -f csv -d profile -- python script.py
#   ```
#   No MI300X was at hand for rocprofv3. The next cell shows what Proton and ncu said on an H200, of ten calls of torch's
#   softmax (`SoftMaxForward…`) and ten of lesson 4's `rows_kernel`. Which of the two is faster? Which lines say that
#   `rows_kernel` is limited by the memory, and not by computing?
# - **A newer compiler.** `pip install -U triton` gives the latest release. (Not in an AMD image: its torch needs its own.)
#   Passes that no release has yet are [built from
#   source](https://triton-lang.org/main/getting-started/installation.html): `git clone https://github.com/triton-lang/triton`,
#   then in that folder `pip install -r python/requirements.txt` and `pip install -e .`; it downloads the LLVM that it needs. Where a
#   kernel is compiled wrongly, report it in [Triton's issues](https://github.com/triton-lang/triton/issues), with the kernel, the
#   version, the target, and what `TRITON_KERNEL_DUMP=1` wrote.
# - **Matrix instructions** (MFMA) are where the accumulation registers come from. A softmax has none.

# %%
for file in ("h200_proton.txt", "h200_ncu.txt"):
    for line in (RECORDED / file).read_text().splitlines():
        print(line[:118])  # names of C++ kernels are long
    print()

# %% [markdown]
# <details><summary>Answer</summary>
#
# Proton: torch took 2,814 µs for ten calls and `rows_kernel` 1,287, so it is 2.2 times as fast. (The third kernel drew the
# random numbers.) ncu: `DRAM Throughput` (what this course calls HBM) is at 83 % of its peak and the L2 cache at 91 %, but
# `Compute (SM) Throughput` only at 39 %. Check it by hand: 8192 rows of 8192 float32, read and written once, are 537 MB. In
# 127.84 µs that is 4.2 TB/s, as fast as a copy. (ncu holds the clocks down, so that its numbers repeat: the percentages of
# computing and of the L2 cache belong to 1.40 GHz, and the card runs at up to 1.98.)
#
# </details>
#
# ### Read next
#
# - AMD's [workload optimization
#   guide](https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/workload.html) for the MI300X. An older
#   one, [optimizing Triton
#   kernels](https://rocm.docs.amd.com/en/docs-6.1.0/how-to/llm-fine-tuning-optimization/optimizing-triton-kernel.html), is of
#   2024: which of its sentences are no longer true?
# - The [CDNA3 instruction
#   set](https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/instruction-set-architectures/amd-instinct-mi300-cdna3-instruction-set-architecture.pdf),
#   for every instruction that you met.

# %%
progress()
