# %% [markdown]
# # 10 · Ship it: your kernel in other people's programs
#
# One kernel from an empty cell, with its gradients: nothing is given but the docstring. Then you register it with torch,
# so that `torch.compile` takes it as one operation of its graph. At the end it leaves the course with you: a package
# with tests, a benchmark and a wheel.
#
# The kernel is the RMS norm. Nearly every language model of today has two in each layer.
#
# ![The operations of a language model from the embedding to the loss, with the norms and the loss lit, and their share of all bytes in decoding and in training.](../assets/layer_loss.svg)

# %%
from workshop import DEVICE, compare, count_bytes, device, explore, here, matches, progress, recorded, xray

import torch
import triton
import triton.language as tl
from torch.library import custom_op, triton_op, wrap_triton  # noqa: F401  you choose

from autograder import check

here("10_ship_it")

# %% [markdown]
# ## Picture
#
# ![Forward: a kernel reads x and writes y. Backward: dy comes from the right, and a second kernel reads x and dy and writes dx](../assets/norm_backward.svg)

# %% [markdown]
# ## Idea
#
# An RMS norm divides each row by its length, and multiplies column j by a weight:
#
# $$y_j = x_j\, r\, w_j \qquad r = \frac{1}{\sqrt{\text{mean}(x^2) + \varepsilon}}$$
#
# The mean is over the row, and ε keeps a row of zeros from a division by 0. r follows from all x of the row. So the
# gradient in x has a second term, and that in the weight is a sum over all rows (lesson 8):
#
# $$dx_j = r \Big( dy_j\, w_j - x_j\, r^2\, \text{mean}(dy \cdot w \cdot x) \Big) \qquad dw_j = \sum_i dy_{ij}\, x_{ij}\, r_i$$
#
# ## Predict

# %%
explore.predict("bytes of a norm")

# %% [markdown]
# ## Write: from an empty cell
#
# What you need, you have written before. A list to go through when you are done:
#
# - a **grid** with a program for each row, or a loop over rows; any number of rows, zero included;
# - **masks** for rows of any length, and a loop for rows that are longer than a block;
# - the **row stride** of x, and that of dy: `y.sum().backward()` hands on a dy whose strides are 0;
# - sums in float32; the weight has the dtype of x, and so have the result and both gradients;
# - x is read twice at most in the forward pass;
# - **adding up dw is a kernel's work**, too;
# - an **autotuner** whose key does not change with every length. If `n` is the key, each new length is tuned again. Make
#   the next power of two an argument of its own, say `bucket`, and take that as the key. (It is not judged.)

# %% answer="rms_norm"
### BEGIN SOLUTION
CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((1024, 4), (4096, 8), (16384, 16))
]


@triton.autotune(CONFIGS, key=["bucket"])
@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, x_stride, n, eps, bucket, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row, y_row = x_ptr + row * x_stride, y_ptr + row * n
    columns = tl.arange(0, BLOCK)
    if n <= BLOCK:  # the row is one block: x is read once
        x = tl.load(x_row + columns, mask=columns < n, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
        tl.store(y_row + columns, x * rstd * weight, mask=columns < n)
    else:
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            at = start + columns
            x = tl.load(x_row + at, mask=at < n, other=0.0).to(tl.float32)
            squares += x * x
        rstd = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
        for start in range(0, n, BLOCK):
            at = start + columns
            x = tl.load(x_row + at, mask=at < n, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
            tl.store(y_row + at, x * rstd * weight, mask=at < n)


@triton.autotune(CONFIGS, key=["bucket"])
@triton.jit
def rms_norm_backward_kernel(
    x_ptr, weight_ptr, dy_ptr, dx_ptr, parts_ptr, x_stride, dy_stride, m, n, eps, part_rows, bucket, BLOCK: tl.constexpr
):
    part = tl.program_id(0).to(tl.int64)
    parts = parts_ptr + part * n
    columns = tl.arange(0, BLOCK)
    first = part * part_rows
    end = tl.minimum(first + part_rows, m)
    if n <= BLOCK:
        mask = columns < n
        weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for row in range(first, end):
            x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row * dy_stride + columns, mask=mask, other=0.0).to(tl.float32)
            rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
            slope = tl.sum(dy * weight * x, axis=0) / n * rstd * rstd
            tl.store(dx_ptr + row * n + columns, rstd * (dy * weight - x * slope), mask=mask)
            sums += dy * x * rstd
        tl.store(parts + columns, sums, mask=mask)
    else:
        for row in range(first, end):
            squares = tl.zeros((BLOCK,), tl.float32)
            slopes = tl.zeros((BLOCK,), tl.float32)
            for start in range(0, n, BLOCK):
                at = start + columns
                x = tl.load(x_ptr + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * dy_stride + at, mask=at < n, other=0.0).to(tl.float32)
                squares += x * x
                slopes += dy * x * tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
            rstd = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
            slope = tl.sum(slopes, axis=0) / n * rstd * rstd
            for start in range(0, n, BLOCK):
                at = start + columns
                x = tl.load(x_ptr + row * x_stride + at, mask=at < n, other=0.0).to(tl.float32)
                dy = tl.load(dy_ptr + row * dy_stride + at, mask=at < n, other=0.0).to(tl.float32)
                weight = tl.load(weight_ptr + at, mask=at < n, other=0.0).to(tl.float32)
                tl.store(dx_ptr + row * n + at, rstd * (dy * weight - x * slope), mask=at < n)
                before = tl.load(parts + at, mask=(at < n) & (row > first), other=0.0)  # of this program's rows
                tl.store(parts + at, before + dy * x * rstd, mask=at < n)
            tl.debug_barrier()


@triton.jit
def add_parts_kernel(parts_ptr, output_ptr, parts, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, parts, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < parts) & (columns[None, :] < n)
        sums += tl.load(parts_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(output_ptr + columns, tl.sum(sums, axis=0), mask=columns < n)


def normalized(x, weight, eps):
    m, n = x.shape
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        rms_norm_kernel[(m,)](x, weight, y, x.stride(0), n, eps, triton.next_power_of_2(n))
    return y


def gradients(x, weight, dy, eps):
    m, n = x.shape
    if m == 0:
        return torch.empty_like(x), torch.zeros_like(weight)
    dx, dw = torch.empty((m, n), dtype=x.dtype, device=x.device), torch.empty_like(weight)
    dy = dy if dy.stride(1) == 1 else dy.contiguous()  # of y.sum() it is one number, with strides of 0
    part_rows = triton.cdiv(m, 512)
    parts = triton.cdiv(m, part_rows)
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    rms_norm_backward_kernel[(parts,)](
        x, weight, dy, dx, sums, x.stride(0), dy.stride(0), m, n, eps, part_rows, triton.next_power_of_2(n)
    )
    add_parts_kernel[(triton.cdiv(n, 32),)](sums, dw, parts, n, ROWS=32, COLUMNS=32)
    return dx, dw


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return normalized(x, weight, eps)

    @staticmethod
    def backward(ctx, dy):
        return *gradients(*ctx.saved_tensors, dy, ctx.eps), None


def rms_norm(x, weight, eps):
    return RMSNorm.apply(x, weight, eps)
### STARTER
# def rms_norm(x, weight, eps):
#     """x: (m, n), any row stride. weight: (n,), of x's dtype. Returns x / sqrt(mean(x², of a row) + eps) * weight.
#
#     The result is (m, n), of x's dtype, contiguous, and differentiable in x and weight.
#     """
#     ...  # your code here: kernels, a torch.autograd.Function, and this function
### END SOLUTION

# %%
x = torch.randn(64, 781, device=DEVICE, requires_grad=True)
weight = torch.rand(781, device=DEVICE, requires_grad=True)


def with_gradients(norm):
    y = norm(x, weight, 1e-5)
    return y, *torch.autograd.grad(y, (x, weight), torch.ones_like(y))


def of_torch(x, weight, eps):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)


try:
    for what, mine, expected in zip(("y", "dx", "dw"), with_gradients(rms_norm), with_gradients(of_torch)):
        print(f"{what:3} largest difference {(mine - expected).abs().max().item():.1e}")
except (TypeError, RuntimeError) as error:  # as long as something is missing
    print("not yet:", error)

# %% [markdown] hints="rms_norm"

# %% [markdown]
# ## Check

# %% check="rms_norm"
check("rms_norm")

# %% [markdown]
# ### What torch.compile sees
#
# A model is compiled as a *graph* of operations. torch.compile runs your Python once on tensors without numbers, notes
# each operation, and then moves, joins and removes them. It does not know what your launch does. An **operator** tells it:
#
# - a **schema**: names, types, and which arguments are written to (`mutates_args`). torch reads it from the annotations;
# - a **fake function**, which gives tensors of the right shapes, strides and dtypes, and computes nothing;
# - a **backward pass**, which consists of operators, too.
#
# `custom_op` makes a box that torch.compile does not open. You write its fake function by hand. `triton_op` makes one that
# it opens: it runs your function as the fake one, and `wrap_triton(kernel)` stands for a launch which it can see. So it can
# join your kernel's graph with the operations around it.
#
# ```python
# @triton_op("my_library::double", mutates_args=())
# def double(x: torch.Tensor) -> torch.Tensor:
#     y = torch.empty_like(x)
#     wrap_triton(double_kernel)[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
#     return y
#
#
# double.register_autograd(lambda ctx, dy: double(dy))
# ```
#
# `setup_context(ctx, inputs, output)`, the second argument of `register_autograd`, saves what the backward pass needs.
#
# ## Predict

# %%
explore.predict("a fake tensor")

# %% [markdown]
# ## Write: the operator
#
# `rms_norm_op(x, weight, eps)` is your norm as a registered operator. Take your kernels from above. `check` asks what
# `rms_norm` was asked, and then `torch.library.opcheck`, and `torch.compile(fullgraph=True)` for both passes.

# %% answer="rms_norm_op"
@triton_op("ship_it::rms_norm", mutates_args=())
def rms_norm_op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    ### BEGIN SOLUTION
    m, n = x.shape
    y = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if m:
        wrap_triton(rms_norm_kernel)[(m,)](x, weight, y, x.stride(0), n, eps, triton.next_power_of_2(n))
    return y
    ### STARTER
    # return torch.empty_like(x)  # your code here: launch wrap_triton(your kernel)
    ### END SOLUTION


@triton_op("ship_it::rms_norm_backward", mutates_args=())
def rms_norm_backward(
    x: torch.Tensor, weight: torch.Tensor, dy: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    ### BEGIN SOLUTION
    m, n = x.shape
    if m == 0:
        return torch.empty_like(x), torch.zeros_like(weight)
    dx, dw = torch.empty((m, n), dtype=x.dtype, device=x.device), torch.empty_like(weight)
    dy = dy if dy.stride(1) == 1 else dy.contiguous()
    part_rows = triton.cdiv(m, 512)
    parts = triton.cdiv(m, part_rows)
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    wrap_triton(rms_norm_backward_kernel)[(parts,)](
        x, weight, dy, dx, sums, x.stride(0), dy.stride(0), m, n, eps, part_rows, triton.next_power_of_2(n)
    )
    wrap_triton(add_parts_kernel)[(triton.cdiv(n, 32),)](sums, dw, parts, n, ROWS=32, COLUMNS=32)
    return dx, dw
    ### STARTER
    # return torch.empty_like(x), torch.empty_like(weight)  # your code here
    ### END SOLUTION


### BEGIN SOLUTION
def setup_context(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def backward(ctx, dy):
    return *rms_norm_backward(*ctx.saved_tensors, dy, ctx.eps), None


rms_norm_op.register_autograd(backward, setup_context=setup_context)
### STARTER
# # your code here: a function that saves what the backward pass needs, the backward pass, and their registration
### END SOLUTION

# %%
given = x, weight, 1e-5
try:
    print(torch.library.opcheck(rms_norm_op, given))
    compiled = torch.compile(rms_norm_op, fullgraph=True, backend="aot_eager")
    print("torch.compile: largest difference", (compiled(*given) - of_torch(*given)).abs().max().item())
except Exception as error:  # as long as something is missing
    print("not yet:", type(error).__name__, str(error)[:500])

# %% [markdown]
# The backend `aot_eager` makes the graphs of both passes, and runs them without a compiler of its own: so this works without a GPU.
# On a card leave it out, and Inductor joins what it can.

# %% [markdown] hints="rms_norm_op"

# %% check="rms_norm_op"
check("rms_norm_op")

# %% [markdown]
# ## Measure
#
# First the bytes that the kernels ask for. The weight is asked for by every row, but only the first one waits for memory. With as
# few rows as here, the partial sums of dw are as large as x; with many rows they are a small part:

# %%
if device().interpreting and rms_norm(x, weight, 1e-5) is not None:
    moved = count_bytes(rms_norm, x.detach(), weight.detach(), 1e-5).per_element(x.numel())
    print(f"forward            {moved:.3g} bytes per element; x and y are 8, and the weight, out of a cache, is 4")
    moved = count_bytes(with_gradients, rms_norm).per_element(x.numel())
    print(f"forward, backward  {moved:.3g} bytes per element; x, y, x, dy and dx are 20")

# %% [markdown]
# Then the time. This plot is yours to make: `triton.testing.perf_report` is Triton's own way, which you will find in other
# people's repositories. Here is the frame; a card runs it.

# %%
benchmark = triton.testing.Benchmark(
    x_names=["n"],
    x_vals=[1024, 2048, 4096, 8192, 16384],
    line_arg="provider",
    line_vals=["yours", "torch"],
    line_names=["yours", "torch"],
    ylabel="GB/s",
    plot_name="RMS norm, float32",
    args={},
)


def gb_per_second(n, provider):
    x, weight = torch.randn(2**27 // n, n, device=DEVICE), torch.ones(n, device=DEVICE)
    norm = rms_norm if provider == "yours" else of_torch
    milliseconds = triton.testing.do_bench(lambda: norm(x, weight, 1e-5))
    return 2 * x.nbytes / milliseconds / 1e6


if not device().interpreting:
    triton.testing.perf_report(benchmark)(gb_per_second).run(print_data=True)

# %% [markdown]
# What may be wrong with this plot? It has no copy beside it, nobody looked at the results, and each call gets the same inputs.
# `compare`, from lesson 1, does all three:

# %%
def rows_of(n):
    elements = 2**14 if device().interpreting else 2**27
    return torch.randn(elements // n, n, device=DEVICE), torch.rand(n, device=DEVICE) + 0.5


speed = compare(
    {"torch": lambda x, w: of_torch(x, w, 1e-5), "yours": lambda x, w: rms_norm(x, w, 1e-5)},
    make_inputs=rows_of,
    sizes=[256] if device().interpreting else [1024, 4096, 16384],
    bytes_moved=lambda x, w: 2 * x.nbytes,
    check=matches(lambda x, w: of_torch(x, w, 1e-5)),
    title="RMS norm, float32",
)
speed

# %% [markdown]
# Forward and backward together, recorded on an H200, as shares of a kernel that moves as many bytes and computes nothing
# (`benchmarks/backward.py rms_norm`). *lesson 10* is the course's solution:

# %%
recorded("h200_rms_norm_backward_bfloat16").shares()

# %% [markdown]
# No column is the best in all rows. Measure at the lengths that you need.
#
# ## Look inside
#
# The backward pass of the course's norm reads x, dy and the weight in one loop. This is the part of it for rows of one block,
# compiled for both vendors:

# %%
@triton.jit
def one_block_backward(x_ptr, w_ptr, dy_ptr, dx_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + columns, mask=columns < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    slope = tl.sum(dy * w * x, axis=0) / n * r * r
    tl.store(dx_ptr + row * n + columns, r * (dy * w - x * slope), mask=columns < n)


report = xray(
    one_block_backward, "*bf16", "*bf16", "*bf16", "*bf16", 4096, 1e-5, BLOCK=4096, num_warps=8,
    targets=("gfx942", "sm_90"),
)  # fmt: skip
report

# %% [markdown]
# ## Go further
#
# ### Take it with you
#
# ```
# workshop new-kernel my_norm
# ```
#
# makes the folder `my_norm`: a package with your `rms_norm_op` (once it has passed), its tests, a benchmark and a
# `pyproject.toml`. It needs torch and Triton, and nothing of this course. `pip wheel --no-deps my_norm` makes one file of it that
# others can install. Without a GPU its tests run on Triton's interpreter.
#
# ### The same kernel in Gluon
#
# *To look at, not graded.* Triton decides which thread holds which element of a block. In **Gluon**, which comes with Triton, you
# decide: each block has a *layout*. The kernel is the same otherwise. `size_per_thread=[8]` of bfloat16 is a load of 128 bits.
#
# ```python
# from triton.experimental import gluon
# from triton.experimental.gluon import language as gl
#
#
# @gluon.jit
# def rms_norm_kernel(x_ptr, w_ptr, y_ptr, x_stride, n, eps, BLOCK: gl.constexpr, WARPS: gl.constexpr):
#     layout: gl.constexpr = gl.BlockedLayout(
#         size_per_thread=[8], threads_per_warp=[32], warps_per_cta=[WARPS], order=[0]
#     )
#     row = gl.program_id(0)
#     columns = gl.arange(0, BLOCK, layout=layout)
#     x = gl.load(x_ptr + row * x_stride + columns, mask=columns < n, other=0.0).to(gl.float32)
#     w = gl.load(w_ptr + columns, mask=columns < n, other=0.0).to(gl.float32)
#     r = gl.rsqrt(gl.sum(x * x, axis=0) / n + eps)
#     gl.store(y_ptr + row * n + columns, x * r * w, mask=columns < n)
# ```
#
# For a kernel that waits for memory, Triton's own choice is as good. Gluon is for kernels in which warps do different work, or
# where you place the data in shared memory yourself: matrix products and attention on the newest cards. A layout is for one
# vendor: an AMD warp (MI300X) has 64 threads.
#
# ### Two GPUs
#
# *To look at, not graded.* A model that is cut over two GPUs adds the halves of each layer's output: an *all-reduce*. With
# **symmetric memory** each GPU can read the other's buffer, over the link between them, with a plain load:
#
# ```python
# @triton.jit
# def add_peer_kernel(mine_ptr, peer_ptr, output_ptr, n, BLOCK: tl.constexpr):
#     offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
#     mine = tl.load(mine_ptr + offsets, mask=offsets < n).to(tl.float32)
#     peer = tl.load(peer_ptr + offsets, mask=offsets < n).to(tl.float32)
#     tl.store(output_ptr + offsets, mine + peer, mask=offsets < n)
#
#
# mine = symmetric.empty(n, dtype=torch.bfloat16, device=device)  # torch.distributed._symmetric_memory
# handle = symmetric.rendezvous(mine, group.group_name)
# peer = handle.get_buffer(1 - handle.rank, mine.shape, mine.dtype)
#
# handle.barrier(channel=0)  # the other GPU has written its numbers
# add_peer_kernel[(triton.cdiv(n, 2048),)](mine, peer, output, n, BLOCK=2048)
# handle.barrier(channel=1)  # and may write new ones
# ```
#
# And a norm may follow in the same kernel, before anything is stored. `benchmarks/symmetric.py` is the whole program. Two H200s,
# recorded, as shares of a plain copy of the other's buffer (*one shot* is this kernel). Small buffers wait for the launch and the
# barriers, and there NCCL is first. From 4 MB on this kernel is ahead, and near the speed of the link:

# %%
recorded("h200_all_reduce_two_gpus_bfloat16").shares()

# %% [markdown]
#
# ### In an inference engine
#
# *To look at, not graded.* An engine such as vLLM or SGLang runs a model's Python once for each shape, and replays it. It needs of
# your kernel what torch.compile needs: an operator with a fake function. So it takes three lines. Import the package, which registers the
# operator, and give it the place of the norm's `forward`:
#
# ```python
# import my_norm  # registers ship_it::rms_norm
#
# class RMSNorm(torch.nn.Module):
#     def forward(self, x):
#         return torch.ops.ship_it.rms_norm(x, self.weight, self.eps)
# ```
#
# Three things are different there. The batch changes with every step, so a kernel that is tuned or compiled for each number of rows
# stops the engine: tune for buckets, and ahead. Launches are recorded as a CUDA graph, so the host function must not ask for
# a number of a tensor. And the norm comes with an addition before it (the residual) and a cast after it: fuse them.
#
# ### Read next
#
# - [Custom operators](https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html) and
#   [user-defined Triton kernels](https://docs.pytorch.org/tutorials/recipes/torch_compile_user_defined_triton_kernel_tutorial.html),
#   in torch's tutorials.
# - [Root Mean Square Layer Normalization](https://arxiv.org/abs/1910.07467), Zhang and Sennrich, 2019.
# - [Gluon's tutorials](https://github.com/triton-lang/triton/tree/main/python/tutorials/gluon), in Triton's repository.

# %%
progress()
