# %% [markdown]
# # 8 · Backward: kernels that train
#
# So far every kernel computed an output. Training also needs **gradients**, and torch cannot look into a Triton kernel. So you
# write the backward pass yourself: it is another kernel, and bytes decide its speed as well.
#
# You write the gradient of softmax, the loss of every language model with its gradient, and a sum over rows done in three
# ways. At the end a small network trains with your kernels.
#
# ![The operations of a language model from the embedding to the loss, with the norms and the loss lit, and their share of all bytes in decoding and in training.](../assets/layer_loss.svg)

# %%
from workshop import DEVICE, compare, count_bytes, device, explore, here, matches, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("08_backward")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `logsumexp_rows(x)` takes a contiguous matrix with rows of any length, and returns the
# logarithm of the sum of exp of each row, in float32: `m + log(sum(exp(x - m)))` with the maximum m of the row.

# %% answer="logsumexp_rows"
### BEGIN SOLUTION
@triton.jit
def logsumexp_kernel(x_ptr, output_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    tl.store(output_ptr + row, m + tl.log(s))


def logsumexp_rows(x):
    m, n = x.shape
    output = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        logsumexp_kernel[(m,)](x, output, n, BLOCK=1024)
    return output
### STARTER
# def logsumexp_rows(x):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="logsumexp_rows"

# %% check="logsumexp_rows"
check("logsumexp_rows")

# %% [markdown]
# ## Picture
#
# ![Forward: a kernel reads x and writes y. Backward: dy comes from the right, and a second kernel reads y and dy and writes dx](../assets/backward.svg)
#
# ## Idea
#
# A network is a chain of functions, and the loss L stands at its end. The backward pass walks through the chain in the other
# direction. Each function is given $dy = \partial L / \partial y$, the gradient of its output, and must return
# $dx = \partial L / \partial x$, the gradient of its input. In torch a function with its own backward pass is five lines:
#
# ```python
# class Double(torch.autograd.Function):
#     @staticmethod
#     def forward(ctx, x):
#         return 2 * x   # ← your kernel
#
#     @staticmethod
#     def backward(ctx, dy):
#         return 2 * dy  # ← another one
#
# y = Double.apply(x)
# ```
#
# `ctx` keeps for `backward` what `ctx.save_for_backward(x)` gives it. `backward` returns one gradient for each argument of
# `forward`, and None where there is none.
#
# **What you save decides how many bytes move.** A number that is saved is written in the forward pass and read in the
# backward pass. A number that can be computed again from what is there costs nothing but arithmetic, and arithmetic is
# cheap. (Lesson 5 draws its random mask again for this reason.)
#
# ### The gradient of softmax
#
# Let y be the softmax of a row x. Changing one $x_j$ changes every $y_i$, because all share one sum:
# $\partial y_i / \partial x_j = y_i (\delta_{ij} - y_j)$, where δ is 1 for i = j and 0 otherwise. Put into the chain rule:
#
# $$dx_j = y_j \Big( dy_j - \sum_i y_i\, dy_i \Big)$$
#
# One number for each row, the sum, and then the row again. x is not needed.
#
# ## Predict

# %%
explore.predict("bytes of a gradient")

# %% [markdown]
# ## Write: the gradient of softmax
#
# `softmax_backward(y, dy)` takes two matrices, each with a row stride of its own, and returns dx, contiguous. If a row fits
# into one block, load it once. The loop for longer rows is there.

# %% answer="softmax_backward"
@triton.jit
def softmax_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, y_stride, dy_stride, n, BLOCK: tl.constexpr, ONE_BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    y_row, dy_row, dx_row = y_ptr + row * y_stride, dy_ptr + row * dy_stride, dx_ptr + row * n
    columns = tl.arange(0, BLOCK)
    if ONE_BLOCK:
        y = tl.load(y_row + columns, mask=columns < n, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + columns, mask=columns < n, other=0.0).to(tl.float32)
        ### BEGIN SOLUTION
        total = tl.sum(y * dy, axis=0)
        dx = y * (dy - total)
        ### STARTER
        # dx = y * dy  # your code here: the sum is missing
        ### END SOLUTION
        tl.store(dx_row + columns, dx, mask=columns < n)
    else:
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            at = start + columns
            y = tl.load(y_row + at, mask=at < n, other=0.0).to(tl.float32)
            sums += y * tl.load(dy_row + at, mask=at < n, other=0.0).to(tl.float32)
        total = tl.sum(sums, axis=0)
        for start in range(0, n, BLOCK):
            at = start + columns
            y = tl.load(y_row + at, mask=at < n, other=0.0).to(tl.float32)
            dy = tl.load(dy_row + at, mask=at < n, other=0.0).to(tl.float32)
            ### BEGIN SOLUTION
            dx = y * (dy - total)
            ### STARTER
            # dx = y * dy  # your code here
            ### END SOLUTION
            tl.store(dx_row + at, dx, mask=at < n)


def softmax_backward(y, dy):
    m, n = y.shape
    dx = torch.empty((m, n), dtype=y.dtype, device=y.device)
    if m:
        block = min(triton.next_power_of_2(n), 16384)
        softmax_backward_kernel[(m,)](
            y, dy, dx, y.stride(0), dy.stride(0), n, BLOCK=block, ONE_BLOCK=block >= n,
            num_warps=max(1, min(block // 512, 16)),
        )  # fmt: skip
    return dx

# %%
x = torch.randn(64, 781, device=DEVICE, requires_grad=True)
y = torch.softmax(x, dim=1)
dy = torch.randn_like(y)
(expected,) = torch.autograd.grad(y, x, dy)
print("largest difference:", (softmax_backward(y.detach(), dy) - expected).abs().max().item())

# %%
explore.predict_bytes(softmax_backward, y.detach(), dy)

# %% [markdown] hints="softmax_backward"

# %% [markdown]
# ## Check

# %% check="softmax_backward"
check("softmax_backward")

# %% [markdown]
# ### The loss of a language model
#
# For each token the model gives a row of scores, one for each word of its vocabulary (the *logits*), and the text says which
# word came: the *target*. The loss of a row is minus the logarithm of the probability of its target:
#
# $$\text{loss}_i = \log \sum_j e^{x_{ij}} - x_{i,\text{target}_i} \qquad
# \frac{\partial\, \text{loss}_i}{\partial x_{ij}} = \text{softmax}(x_i)_j - [\,j = \text{target}_i\,]$$
#
# The whole loss is the mean over the rows. Rows whose target is −100 are padding: they do not count, neither in the sum nor in
# the number of rows, and their gradient is 0.
#
# Count the bytes for 8,192 tokens and a vocabulary of 128,256 words in bfloat16. The logits alone are 2.1 GB. Written as torch
# operations, log-softmax keeps a second matrix of that size for the backward pass, and the gradient is a third. Your kernels keep
# **one number for each row**, the logarithm of its sum, and compute each probability again from the logits: one exp. (Some
# libraries go further and write the gradient over the logits, so that there is only one such matrix. Then the logits are
# gone, and the function may be called only where nobody needs them any more.)
#
# ## Write: cross-entropy
#
# `cross_entropy(logits, targets)` returns the mean loss as a float32 number that torch can differentiate. The forward kernel is
# yours from memory. Complete the gradient.

# %% answer="cross_entropy"
@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, lse_ptr, x_stride, n, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    s = 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    lse = m + tl.log(s)
    target = tl.load(target_ptr + row)
    counts = target != ignored
    x_target = tl.load(x_ptr + row * x_stride + target, mask=counts, other=0.0).to(tl.float32)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, tl.where(counts, lse - x_target, 0.0))


@triton.jit
def loss_gradient_kernel(
    x_ptr, target_ptr, lse_ptr, scale_ptr, dx_ptr, x_stride, n, ignored, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0).to(tl.float32)
    lse = tl.load(lse_ptr + row)
    target = tl.load(target_ptr + row)
    scale = tl.load(scale_ptr)  # the gradient of the loss, divided by the number of rows that count
    ### BEGIN SOLUTION
    dx = tl.exp(x - lse) - tl.where(columns == target, 1.0, 0.0)
    dx = tl.where(target == ignored, 0.0, dx * scale)
    ### STARTER
    # dx = tl.exp(x - lse) * scale  # your code here: the target, and rows that do not count
    ### END SOLUTION
    tl.store(dx_ptr + row * n + columns, dx, mask=mask)


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, ignored):
        m, n = logits.shape
        losses, lse = torch.empty((2, m), dtype=torch.float32, device=logits.device)
        if m:
            block = min(triton.next_power_of_2(n), 8192)
            loss_kernel[(m,)](
                logits, targets, losses, lse, logits.stride(0), n, ignored, BLOCK=block,
                num_warps=max(1, block // 2048),
            )  # fmt: skip
        count = (targets != ignored).sum()
        ctx.save_for_backward(logits, targets, lse, count)
        ctx.ignored = ignored
        return losses.sum() / count

    @staticmethod
    def backward(ctx, dloss):
        logits, targets, lse, count = ctx.saved_tensors
        m, n = logits.shape
        dx = torch.empty((m, n), dtype=logits.dtype, device=logits.device)
        scale = (dloss / count).to(torch.float32)
        if m:
            block = min(triton.next_power_of_2(n), 2048)
            loss_gradient_kernel[(m, triton.cdiv(n, block))](
                logits, targets, lse, scale, dx, logits.stride(0), n, ctx.ignored, BLOCK=block,
                num_warps=max(1, block // 512),
            )  # fmt: skip
        return dx, None, None


def cross_entropy(logits, targets):
    return CrossEntropy.apply(logits, targets, -100)

# %%
logits = torch.randn(64, 1000, device=DEVICE, requires_grad=True)
targets = torch.randint(0, 1000, (64,), device=DEVICE)
targets[::7] = -100
(mine,) = torch.autograd.grad(cross_entropy(logits, targets), logits)
(expected,) = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, targets), logits)
print("largest difference of the gradients:", (mine - expected).abs().max().item())


# %%
def loss_and_gradient(logits, targets):
    return torch.autograd.grad(cross_entropy(logits, targets), logits)


explore.predict_bytes(loss_and_gradient, logits, targets)

# %% [markdown] hints="cross_entropy"

# %% check="cross_entropy"
check("cross_entropy")

# %% [markdown]
# ### A sum over rows, in three ways
#
# The weight of a norm layer (RMSNorm, in nearly every model of today) multiplies each column. So its gradient is a sum over all
# rows, and a matrix of activations has many rows and few columns:
#
# $$dw_j = \sum_i dy_{ij}\, x_{ij}\, r_i$$
#
# where $r_i$ is one number for each row that the forward pass has kept. Three ways:
#
# 1. **One program for a block of columns**, which walks down all rows (lesson 1b). With 4,096 columns and 64 in a block that
#    is 64 programs: half of an H200 is idle.
# 2. **Atomics**: many programs, each adds its part to the result with `tl.atomic_add`. The order of the additions changes from call
#    to call, and a sum in float32 depends on its order. So the **bits change from call to call**, and a training run cannot
#    be repeated.
# 3. **Partial sums**: many programs, each writes its part to a matrix of its own, and a second kernel adds the parts in a
#    fixed order. A few bytes more, the same bits on each call.
#
# ## Predict

# %%
explore.predict("order of a sum")

# %% [markdown]
# ## Write: the gradient of a weight
#
# `rms_norm_weight_grad(x, dy, rstd)` takes two matrices with row strides of their own and the vector r, and returns dw in
# float32: **the same bits on each call**. Take the third way. The second kernel is there, and so is the launch.

# %% answer="rms_norm_weight_grad"
@triton.jit
def weight_grad_kernel(
    x_ptr, dy_ptr, rstd_ptr, parts_ptr, x_stride, dy_stride, m, n, part_rows,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(n, COLUMNS)
    part = (tl.program_id(0) // across).to(tl.int64)
    columns = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    first = part * part_rows
    end = tl.minimum(first + part_rows, m)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in tl.range(first, end, ROWS, num_stages=3):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < end) & (columns[None, :] < n)
        ### BEGIN SOLUTION
        x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + rows[:, None] * dy_stride + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + rows, mask=rows < end, other=0.0)
        sums += dy * x * rstd[:, None]
        ### STARTER
        # # your code here: load x, dy and rstd, and add their product to the sums, about 4 lines
        # sums += mask.to(tl.float32)
        ### END SOLUTION
    tl.store(parts_ptr + part * n + columns, tl.sum(sums, axis=0), mask=columns < n)


@triton.jit
def add_parts_kernel(parts_ptr, output_ptr, parts, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, parts, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < parts) & (columns[None, :] < n)
        sums += tl.load(parts_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(output_ptr + columns, tl.sum(sums, axis=0), mask=columns < n)


def rms_norm_weight_grad(x, dy, rstd):
    m, n = x.shape
    output = torch.empty(n, dtype=torch.float32, device=x.device)
    across = triton.cdiv(n, 256)
    parts = max(1, min(triton.cdiv(m, 64), triton.cdiv(4 * device().multiprocessors, across)))
    sums = torch.empty((parts, n), dtype=torch.float32, device=x.device)
    weight_grad_kernel[(parts * across,)](
        x, dy, rstd, sums, x.stride(0), dy.stride(0), m, n, triton.cdiv(m, parts), ROWS=8, COLUMNS=256
    )
    add_parts_kernel[(triton.cdiv(n, 32),)](sums, output, parts, n, ROWS=32, COLUMNS=32)
    return output

# %%
x, dy = torch.randn(2, 1000, 300, device=DEVICE)
rstd = torch.rand(1000, device=DEVICE)
expected = (dy * x * rstd[:, None]).sum(0)
print("largest difference:", (rms_norm_weight_grad(x, dy, rstd) - expected).abs().max().item())

# %%
explore.predict_bytes(rms_norm_weight_grad, x, dy, rstd)

# %% [markdown] hints="rms_norm_weight_grad"

# %% check="rms_norm_weight_grad"
check("rms_norm_weight_grad")

# %% [markdown]
# ## Measure
#
# First the bytes, of each gradient and of what it cannot do without:

# %%
if device().interpreting:
    y = torch.softmax(torch.randn(64, 781), dim=1)
    moved = count_bytes(softmax_backward, y, torch.randn_like(y)).per_element(y.numel())
    print(f"softmax_backward      {moved:g} bytes per element; two reads and one write are 12")
    x, dy = torch.randn(2, 256, 256)
    moved = count_bytes(rms_norm_weight_grad, x, dy, torch.rand(256)).per_element(x.numel())
    print(f"rms_norm_weight_grad  {moved:.3g} bytes per element; two reads are 8")

# %% [markdown]
# Then the time, on a card. The limit of the gradient of softmax is a kernel with its own mix: two reads and one write.

# %%
def rows_of(n):
    elements = 2**14 if device().interpreting else 2**27
    y = torch.softmax(torch.randn(elements, device=DEVICE).reshape(-1, n), dim=1)
    return y, torch.randn_like(y)


speed = compare(
    {"torch": lambda y, dy: torch._softmax_backward_data(dy, y, 1, y.dtype), "yours": softmax_backward},
    make_inputs=rows_of,
    sizes=[256] if device().interpreting else [256, 1024, 4096, 16384, 65536],
    bytes_moved=lambda y, dy: 3 * y.numel() * y.element_size(),
    check=matches(lambda y, dy: torch._softmax_backward_data(dy, y, 1, y.dtype)),
    title="Gradient of softmax, float32",
    recorded="h200_softmax_backward_float32",
)
speed

# %%
lines = ("torch", "torch.compile", "lesson 8", "whole words")
curves = speed.only(*lines) if device().interpreting else speed
curves.plot()

# %% [markdown]
# In the recorded curves the "copy" is a kernel with that mix, and "lesson 8" is this lesson's solution. It reaches
# {{h200_softmax_backward_float32; 16384; lesson 8; of copy}} of it at 16,384 columns, and
# {{h200_softmax_backward_float32; 65536; lesson 8; of copy}} at 65,536: there both matrices are read twice. "Whole words" keeps
# such a row on the chip, in a cluster (lesson 4). The other two on the same H200, each beside a kernel with its own mix:
#
# | | lesson 8 | torch.compile |
# |---|---|---|
# | cross-entropy, 128,256 words, bfloat16 | {{h200_cross_entropy_backward_bfloat16; 128256; lesson 8; of copy}} | {{h200_cross_entropy_backward_bfloat16; 128256; torch.compile; of copy}} |
# | cross-entropy, 50,257 words, bfloat16 | {{h200_cross_entropy_backward_bfloat16; 50257; lesson 8; of copy}} | {{h200_cross_entropy_backward_bfloat16; 50257; torch.compile; of copy}} |
# | cross-entropy, 50,304 words, bfloat16 | {{h200_cross_entropy_backward_bfloat16; 50304; lesson 8; of copy}} | {{h200_cross_entropy_backward_bfloat16; 50304; torch.compile; of copy}} |
# | gradient of a weight, 4,096 columns, float16 | {{h200_weight_backward_float16; 4096; lesson 8; of copy}} | {{h200_weight_backward_float16; 4096; torch.compile; of copy}} |
#
# GPT-2 has 50,257 words. Its rows begin at odd addresses, so each load takes 2 bytes instead of 16. With 47 words that never
# come, the vocabulary has 50,304, and every row begins at a multiple of 128 bytes.
#
# ### Train with it
#
# A small network with your own loss. It learns which of eight blobs in the plane a point belongs to. Beside it, the same network
# with torch's loss, from the same start: the two curves should lie on each other.

# %%
def train(loss_of, steps=40):
    generator = torch.Generator().manual_seed(0)
    corners = torch.tensor([[i % 4, i // 4] for i in range(8)], dtype=torch.float32)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).to(DEVICE)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        classes = torch.randint(0, 8, (256,), generator=generator)
        points = corners[classes] + 0.2 * torch.randn(256, 2, generator=generator)
        loss = loss_of(network(points.to(DEVICE)), classes.to(DEVICE))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


mine, torchs = train(cross_entropy), train(torch.nn.functional.cross_entropy)
for step in (0, 10, 20, 39):
    print(f"step {step:2}   yours {mine[step]:.4f}   torch {torchs[step]:.4f}")

# %% [markdown]
# ## Look inside
#
# The kernel of atomics and the kernel of parts, compiled: an atomic is one instruction that memory itself carries out, and
# nobody waits for it.

# %%
@triton.jit
def added_in_memory_kernel(x_ptr, dy_ptr, rstd_ptr, output_ptr, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    across = tl.cdiv(n, COLUMNS)
    rows = (tl.program_id(0) // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + rows, mask=rows < m, other=0.0)
    tl.atomic_add(output_ptr + columns, tl.sum(dy * x * rstd[:, None], axis=0), mask=columns < n, sem="relaxed")


report = xray(
    added_in_memory_kernel, "*fp32", "*fp32", "*fp32", "*fp32", 4096, 4096, ROWS=16, COLUMNS=128,
    targets=("gfx942", "sm_90"),
)  # fmt: skip
for target in ("gfx942", "sm_90"):
    names = ("global_atomic", "buffer_atomic", "flat_atomic", "red.global", "atom.global")
    found = [line.strip() for line in report[target].isa.splitlines() if any(name in line for name in names)]
    print(target, *found[:2], sep="\n  ")

# %% [markdown]
# ## Go further
#
# - Change `cross_entropy` so that the gradient is written over the logits. When is that allowed? How much memory does it save
#   for 8,192 tokens and 128,256 words?
# - `torch.autograd.gradcheck` compares a gradient with differences of the function. In which dtype does it work, and why not in
#   float32?
# - Call the kernel of atomics twice on a card and compare the bits: `torch.equal(a, b)`.
#
# ### Read next
#
# - [Extending torch.autograd](https://docs.pytorch.org/docs/stable/notes/extending.html), in torch's documentation.
# - [Liger Kernel](https://arxiv.org/abs/2410.10989): Triton kernels for training, with the gradient in place of the logits.

# %%
progress()
