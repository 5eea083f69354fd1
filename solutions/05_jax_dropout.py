# %% [markdown]
# # 5 · Dropout in JAX: random numbers inside the kernel
#
# JAX has a compiler of its own, XLA, that fuses element-by-element work without being asked. So why write a
# kernel? To learn what it takes: Triton kernels called from JAX, random numbers that are never stored, a seed
# that is a value and not a constant, a gradient that JAX cannot find by itself, and a benchmark that does not
# fool you.
#
# **This lesson is a side branch**, for those who use JAX. No other lesson builds on it: lesson 7 follows lesson 4.
#
# Two exercises: leaky ReLU with dropout in one kernel, and, as a stretch, its gradient.
#
# ![The operations of a language model from the embedding to the loss, with the activation lit, and their share of all bytes in decoding and in training.](../assets/layer_activation.svg)

# %%
import os
import time

from workshop import count_bytes, device, explore, here, progress, recorded, xray
from workshop.bench import Gbps, Results, Row, about_here

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # leave memory to torch and Triton

import jax
import jax.numpy as jnp
import jax_triton as jt
import numpy as np
import torch
import triton
import triton.language as tl

from autograder import check

here("05_jax_dropout")

# %% [markdown]
# `jax_triton` calls Triton kernels with JAX arrays. It needs a GPU; on a machine without one, this course
# provides a stand-in with the same functions, which runs the kernel on the CPU. (JAX has a kernel language
# of its own, *Pallas*. On GPUs it could compile through Triton, but that backend is
# [deprecated since JAX 0.11](https://docs.jax.dev/en/latest/pallas/CHANGELOG.html), of July 2026. `jax_triton` takes the
# kernels that you have.)
#
# ## Picture
#
# ![Op by op, leaky ReLU, random numbers, comparison and choice each read from memory and write back to it. Fused, one kernel reads x once, makes the mask in registers from the seed and the offsets, and writes y once.](../assets/dropout_fused.svg)

# %% [markdown]
# ## Idea
#
# **Leaky ReLU** keeps positive numbers and multiplies negative ones by 0.01. **Dropout** sets each number to
# zero with probability $p$, during training, so that no neuron can rely on another. What is kept is divided
# by $1 - p$, so that the expected value stays:
#
# $$y = \begin{cases} \mathrm{leaky}(x) / (1 - p) & \text{if } u \ge p \\ 0 & \text{else} \end{cases}
# \qquad u \text{ uniform in } [0, 1)$$
#
# In training it needs a gradient, too. Here are both in torch, on the CPU. `torch.autograd.Function` takes what goes forward
# and what comes back; `ctx` carries what backward needs from one to the other. Look at what it does *not* carry:


# %%
def keeps(x, p, seed):
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) >= p


class LeakyDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, seed):
        ctx.save_for_backward(x)
        ctx.p, ctx.seed = p, seed
        return torch.where(keeps(x, p, seed), torch.where(x >= 0, x, 0.01 * x) / (1 - p), 0.0)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        slope = torch.where(x >= 0, 1.0, 0.01)
        return torch.where(keeps(x, ctx.p, ctx.seed), dy * slope / (1 - ctx.p), 0.0), None, None


a_row = torch.randn(1000, requires_grad=True)
LeakyDropout.apply(a_row, 0.5, 1).sum().backward()
print("gradients:", a_row.grad.unique().tolist())

# %% [markdown]
# The mask is never kept: backward draws it again from the seed. This lesson does the same in a kernel, and tells it to JAX.
#
# In `jax.numpy` the forward pass is three lines. A *key* is JAX's word for the state of a random generator: the same key
# gives the same numbers, always.


# %%
def leaky_dropout_jnp(x, p, key):
    x = jnp.where(x >= 0, x, 0.01 * x)
    keep = jax.random.uniform(key, x.shape) >= p
    return jnp.where(keep, x / (1 - p), 0.0)


x = jax.random.normal(jax.random.key(0), (257, 781))
key = jax.random.key(1)
y = leaky_dropout_jnp(x, 0.5, key)
print(f"{(y == 0).mean():.2%} of {y.size:,} elements are zero")

# %% [markdown]
# Called like this, each operation runs by itself and its result goes to memory. Under `jax.jit`, JAX first
# *traces* the function: it calls it once with stand-ins for the arrays, to see which operations it does. Then
# XLA compiles them together. Two calls with arrays of the same shape trace it once:

# %%
traced = []


@jax.jit
def jitted(x, p, key):
    traced.append(x.shape)
    return leaky_dropout_jnp(x, p, key)


for number in range(3):
    y = jitted(x, 0.5, jax.random.key(number))
    print(f"key {number}: {(y == 0).mean():.2%} zeros, traced {len(traced)} time(s)")

# %% [markdown]
# ### Numbers that need no memory
#
# A generator that steps from one number to the next is of no use to a million programs at once. Philox is
# *counter-based*: random number $i$ of a seed is a function of $i$ and the seed alone. Any lane can compute
# its own, in registers, and compute it *again* later. So the mask is never stored.
#
# One call of Philox takes a *counter* and the seed, and makes **four** numbers. `tl.rand(seed, counters)` hands
# out the first and throws three away. `tl.rand4x(seed, counters)` hands out all four.
#
# The function is ten rounds of multiplications, the same on every machine. Here it is in numpy; we will need
# it to check a GPU to the last bit.


# %%
def philox_rand4x(seed, counters):
    """tl.rand4x in numpy: four float32 in [0, 1) for each counter (Philox 4x32, 10 rounds)."""
    counter = [np.asarray(counters, np.uint64), *(np.zeros(len(counters), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = counter[0] * np.uint64(0xD2511F53), counter[2] * np.uint64(0xCD9E8D57)
        high_a, high_b = a >> np.uint64(32), b >> np.uint64(32)
        counter = [high_b ^ counter[1] ^ key[0], b & low, high_a ^ counter[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    bits = np.stack(counter).astype(np.uint32).view(np.int32)
    return np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)


def philox_rand(seed, offsets):
    """tl.rand in numpy: the first of the four numbers."""
    return philox_rand4x(seed, offsets)[0]


print(philox_rand4x(42, np.arange(6)))

# %% [markdown]
# ### A kernel that draws, called from JAX
#
# `jt.triton_call(*inputs, kernel=..., out_shape=..., grid=..., BLOCK_SIZE=...)` launches a kernel. Inputs that
# are arrays arrive as pointers, Python numbers as values; one more pointer follows for each output. The
# keywords that are left are the kernel's `constexpr` parameters.
#
# A `constexpr` is part of the compiled code. If the seed were one, each new seed would compile a new kernel;
# and under `jax.jit` the seed *is* no number, it is a traced array. So the seed comes as an array of one
# element, and the kernel loads it. Forget the load, and the *address* of the seed becomes the seed, [a bug
# that has happened](https://github.com/facebookresearch/xformers/issues/173).

# %%
@triton.jit
def rand_kernel(seed_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offsets, tl.rand(tl.load(seed_ptr), offsets))


u = jt.triton_call(
    jnp.asarray(42, jnp.int32),
    kernel=rand_kernel,
    out_shape=jax.ShapeDtypeStruct((1024,), jnp.float32),
    grid=(4,),
    BLOCK_SIZE=256,
)
print(u[:6])
print("the same as in numpy, bit for bit:", np.array_equal(u, philox_rand(42, np.arange(1024))))

# %% [markdown]
# ## Predict
#
# An article of AMD's ROCm blogs, *Supercharging JAX with Triton Kernels on AMD GPUs*, compares a kernel with this function:
#
# ```python
# def dropout(x, rate):
#     keep_prob = 1.0 - rate
#     u = jax.random.uniform(jax.random.PRNGKey(0), x.shape)
#     keep_mask = jnp.where(u > rate, 1.0, 0.0)
#     return x * keep_mask / keep_prob
# ```

# %%
explore.predict("fixed key")

# %%
explore.predict("rate one")


# %%
def published(x, rate):
    keep_prob = 1.0 - rate
    u = jax.random.uniform(jax.random.PRNGKey(0), x.shape)
    keep_mask = jnp.where(u > rate, 1.0, 0.0)
    return x * keep_mask / keep_prob


first, second = published(x, 0.5), published(x, 0.5)
print(f"same fate: {((first == 0) == (second == 0)).mean():.0%}")
all_dropped = published(x, 1.0)
print(f"rate 1: {jnp.isnan(all_dropped).sum()} nan, {(all_dropped == 0).sum()} zeros")
print("smallest u of 10 million:", jax.random.uniform(jax.random.key(3), (10_000_000,)).min())

# %% [markdown]
# <details><summary>Why</summary>
#
# The key is made inside, so every call has the same mask: every layer and every step drops the same
# elements. A key, or a seed, has to come from outside.
#
# At rate 1 every element is multiplied by 0 and then divided by 0: 0 / 0 = `nan`. Write it as a choice,
# `jnp.where(u >= rate, x / (1 - rate), 0.0)`: what is not chosen may be infinite.
#
# And `u` can be exactly 0, about once in 8 million float32 numbers. With `u > rate` such an element is
# dropped even at rate 0. `u >= rate` keeps everything at 0 and, because `u` never reaches 1, nothing at 1.
#
# </details>
#
# ## Write: leaky ReLU and dropout in one kernel
#
# The matrix is treated as one long row. Each program has four blocks of `QUARTER` elements, because a counter
# gives four numbers: number $k$ goes to block $k$. So every block is loaded and stored in one piece, and each access
# can be 128 bits wide. `leaky_dropout_part` does one block; it is called four times.
#
# `p` and `seed` are arrays of one element here. Two things are yours, and the check judges them together, because a mask can
# only be judged by what comes out:
#
# - **`seed`**, the seed's value, in the kernel.
# - **`leaky_dropout_part`**, the whole body: load the block in float32, leaky ReLU, keep an element where its number `u` is at
#   least p, scale what is kept, write 0 elsewhere. (`1 / (1 - p)` is one division for all lanes, `x / (1 - p)` one for each.)


# %% answer="leaky_dropout"
@triton.jit
def leaky_dropout_part(x_ptr, y_ptr, offsets, n, u, p):
    ### BEGIN SOLUTION
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = u >= p
    y = tl.where(keep, x * (1 / (1 - p)), 0.0)
    tl.store(y_ptr + offsets, y, mask=mask)
    ### STARTER
    # # your code here, about 6 lines. This writes the random numbers themselves.
    # tl.store(y_ptr + offsets, u, mask=offsets < n)
    ### END SOLUTION


@triton.jit
def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, n: tl.constexpr, QUARTER: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    seed = tl.load(seed_ptr)  # starter: 0
    u0, u1, u2, u3 = tl.rand4x(seed, pid * QUARTER + lanes)
    offsets = pid * (4 * QUARTER) + lanes
    leaky_dropout_part(x_ptr, y_ptr, offsets, n, u0, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + QUARTER, n, u1, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + 2 * QUARTER, n, u2, p)
    leaky_dropout_part(x_ptr, y_ptr, offsets + 3 * QUARTER, n, u3, p)


def leaky_dropout(x, p, seed):
    """x: a JAX array. p: the probability of being dropped. seed: an integer, which jax.jit traces."""
    quarter = 256
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=leaky_dropout_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 4 * quarter),),
        n=x.size,
        QUARTER=quarter,
        num_warps=2,  # 64 threads on NVIDIA: 4 numbers, 128 bits, for each; an MI300X has 64 in one warp
    )


# %% [markdown]
# Try it, with 1823 rows of 781 elements and $p = 0.5$. How close to a half must the share of zeros be?
# The number of zeros is binomial: its standard deviation is $\sqrt{n p (1 - p)}$, and 6 of them are passed by
# chance once in 500 million tries. A check that accepts any mask with "about half" zeros would accept far
# worse.

# %%
x = jax.random.normal(jax.random.key(0), (1823, 781))
p = 0.5
y = leaky_dropout(x, p, 1)
zeros = int((y == 0).sum())
allowed = 6 * np.sqrt(x.size * p * (1 - p))
print(f"{zeros / x.size:.4%} zeros, allowed {p - allowed / x.size:.4%} to {p + allowed / x.size:.4%}")

# %% [markdown]
# The rate says nothing about *which* elements. They can be checked too, exactly, with a GPU or without,
# because Philox is a function that we have in numpy. Element $i$ is lane $i \bmod 256$ of one of
# the four blocks of its program:

# %%
x = x[:257]
seed = 42
y = leaky_dropout(x, p, seed)
programs = triton.cdiv(x.size, 4 * 256)
u = philox_rand4x(seed, np.arange(programs * 256)).reshape(4, programs, 256)  # block, program, lane
kept = u.transpose(1, 0, 2).reshape(-1)[: x.size].reshape(x.shape) >= p
expected = np.where(kept, np.where(x >= 0, x, 0.01 * x) / (1 - p), 0)
print("the mask is right, bit for bit:", np.array_equal(np.asarray(y) != 0, kept))
print(f"largest difference in the values: {np.abs(np.asarray(y) - expected).max():.1e}")

# %% [markdown]
# And the seed is a value: under `jit`, many seeds, one trace, one compilation.

# %%
traced = []


@jax.jit
def step(x, seed):
    traced.append(seed)
    return leaky_dropout(x, 0.5, seed)


masks = [step(x, seed) != 0 for seed in (1, 1, 2, 3)]
for number, mask in enumerate(masks[1:], 1):
    print(f"call {number} and call 0 agree in {(mask == masks[0]).mean():.1%} of the elements")
print(f"traced {len(traced)} time(s), with the seed {traced[0]}")

# %% [markdown]
# In JAX's program your kernel is one line, a *custom call*. XLA does not look into it and fuses nothing with it. On a GPU it
# is named `triton_kernel_call` and holds the compiled kernel; without one it is a call back to Python.

# %%
program = jax.jit(leaky_dropout).lower(x, p, seed).as_text()
print(*(line.strip()[:110] for line in program.splitlines() if "custom_call" in line), sep="\n")

# %%
explore.predict_bytes(leaky_dropout, x, p, seed) if device().interpreting else None

# %% [markdown] hints="leaky_dropout"

# %% [markdown]
# ## Check

# %% check="leaky_dropout"
check("leaky_dropout")

# %% [markdown]
# ## Write (stretch): the gradient
#
# JAX differentiates by looking at operations. A Triton kernel is a black box to it:

# %%
try:
    jax.grad(lambda x: leaky_dropout(x, 0.5, 1).sum())(x)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[0].split('. ')[0]}")

# %% [markdown]
# So you say what the gradient is. `jax.custom_vjp` attaches two functions to a third: *forward* returns the
# result and whatever *backward* will need (the *residuals*); *backward* takes the residuals and `dy`, the gradient of the
# loss with respect to the result, and returns one gradient for each argument, `None` for those that have none. Compare
# it with `LeakyDropout` above: what `ctx` carried are the residuals.
#
# $$dx = \begin{cases} dy \cdot \mathrm{slope}(x) / (1 - p) & \text{if } u \ge p \\ 0 & \text{else} \end{cases}$$
#
# $$\mathrm{slope}(x) = \begin{cases} 1 & x \ge 0 \\ 0.01 & \text{else} \end{cases}$$
#
# The mask is among the things that backward needs. It could be a residual: one more array written, kept until
# the backward pass, and read. But it is a function of the seed. **Predict** what drawing it again saves:

# %%
explore.predict("a mask again")

# %% [markdown]
# The forward pass is your kernel from above, so fill that one first. Here the backward kernel is missing.


# %% answer="leaky_dropout_grad"
@triton.jit
def leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets, n, u, p):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    ### BEGIN SOLUTION
    slope = tl.where(x >= 0, 1.0, 0.01)
    dx = tl.where(u >= p, dy * slope * (1 / (1 - p)), 0.0)
    ### STARTER
    # dx = dy  # your code here: the same mask, the slope and the scale, about 2 lines
    ### END SOLUTION
    tl.store(dx_ptr + offsets, dx, mask=mask)


@triton.jit
def leaky_dropout_backward_kernel(
    x_ptr, dy_ptr, p_ptr, seed_ptr, dx_ptr, n: tl.constexpr, QUARTER: tl.constexpr
):
    pid = tl.program_id(0)
    lanes = tl.arange(0, QUARTER)
    p = tl.load(p_ptr)
    ### BEGIN SOLUTION
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed_ptr), pid * QUARTER + lanes)
    ### STARTER
    # u0, u1, u2, u3 = tl.rand4x(0, lanes)  # your code here: the numbers of the forward pass, 1 line
    ### END SOLUTION
    offsets = pid * (4 * QUARTER) + lanes
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets, n, u0, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + QUARTER, n, u1, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + 2 * QUARTER, n, u2, p)
    leaky_dropout_backward_part(x_ptr, dy_ptr, dx_ptr, offsets + 3 * QUARTER, n, u3, p)


def launch(kernel, arrays, p, seed):
    x = arrays[0]
    quarter = 256  # forward and backward must cut the row in the same way: the mask depends on it
    return jt.triton_call(
        *arrays,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(triton.cdiv(x.size, 4 * quarter),),
        n=x.size,
        QUARTER=quarter,
        num_warps=2 * len(arrays),  # the backward pass has twice as much to read
    )


@jax.custom_vjp
def leaky_dropout(x, p, seed):
    return launch(leaky_dropout_kernel, [x], p, seed)  # the kernel of the first exercise


def forward(x, p, seed):
    return leaky_dropout(x, p, seed), (x, p, seed)


def backward(residuals, dy):
    x, p, seed = residuals
    return launch(leaky_dropout_backward_kernel, [x, dy], p, seed), None, None


leaky_dropout.defvjp(forward, backward)

# %% [markdown]
# Dropped elements must have a gradient of 0; kept ones 2 where x is positive and 0.02 where it is negative,
# at $p = 0.5$:

# %%
y = leaky_dropout(x, 0.5, 1)
dx = jax.jit(jax.grad(lambda x, seed: leaky_dropout(x, 0.5, seed).sum()))(x, 1)
for name, where in (("dropped", y == 0), ("kept, x > 0", y > 0), ("kept, x < 0", y < 0)):
    print(f"{name:12} gradients {np.unique(np.asarray(dx[where]))[:4]}")

# %% [markdown] hints="leaky_dropout_grad"

# %% [markdown]
# ## Check

# %% check="leaky_dropout_grad"
check("leaky_dropout_grad")

# %% [markdown]
# ## Measure
#
# The article with the fixed key reports that the kernel beats XLA "by as much as 400%". Three things were
# wrong with how that was measured:
#
# - JAX calls return before the work is done. Without `block_until_ready`, a clock sees how fast work is
#   *queued*.
# - Triton's `do_bench` records its events on torch's *stream*, which is a queue of work for the GPU, and JAX works on a
#   stream of its own.
# - The two sides did different work: JAX drew its numbers with *threefry*, its usual generator, and the kernel with Philox.
#   (Each used one fixed seed.)
#
# Below, all providers get a new seed or key in every call, JAX's own stream is timed by waiting for the last
# result, and a copy by JAX is the ceiling. The recorded curves show XLA with JAX's other generator too, "rbg". Without a
# GPU, the dotted line is *your* kernel: what the bytes that it moves allow.

# %%
explore.predict("kernel and XLA")


# %%
def measure(function, x, calls=50, repeats=7):
    """GB/s of function(x, number), counting one read and one write of x: median and quantiles."""
    function(x, 0).block_until_ready()  # compile
    speeds = []
    for repeat in range(repeats):
        begin = time.perf_counter()
        for number in range(calls):  # a queue of calls, so that the host's part is hidden
            y = function(x, repeat * calls + number)
        y.block_until_ready()  # JAX's stream works in order: when the last is done, all are
        speeds.append(2 * x.nbytes * calls / (time.perf_counter() - begin) / 1e9)
    return Gbps(*np.quantile(speeds, (0.5, 0.2, 0.8)).tolist())


providers = {
    "copy": jax.jit(lambda x, number: jnp.copy(x)),
    "JAX, op by op": lambda x, number: leaky_dropout_jnp(x, 0.5, jax.random.key(number)),
    "jax.jit (XLA)": jax.jit(lambda x, number: leaky_dropout_jnp(x, 0.5, jax.random.key(number))),
    "Triton": jax.jit(lambda x, number: leaky_dropout(x, 0.5, number)),
}

bounds = {}  # what a kernel cannot exceed, as a share of the copy
if device().interpreting:
    speed = recorded("h200_leaky_dropout_float32")
    moved = count_bytes(leaky_dropout, x, 0.5, 1)
    per_element = moved.per_element(x.size)
    print("No GPU here, so nothing is timed. These numbers were recorded.")
    print(f"Your kernel moves {per_element:.2f} bytes per element, a copy 8.")
    if 0.4 < (moved.result == 0).mean() < 0.6:  # it drops elements: its work is done
        bounds[f"yours: at most {8 / per_element:.0%}"] = 8 / per_element
else:
    rows = []
    for columns in (256, 1024, 4096, 8192, 12672, 32768):
        x = jax.random.normal(jax.random.key(0), (4096, columns))
        speeds = {name: measure(function, x) for name, function in providers.items()}
        for name, value in speeds.items():
            rows.append(Row(columns, name, value, value.median / speeds["copy"].median, 2 * x.nbytes))
    about = about_here() | {"jax": jax.__version__}
    speed = Results(rows, about, title="Leaky ReLU and dropout through JAX, float32")
speed

# %%
table = speed.table()
factor = table["Triton"].iloc[-1] / table["jax.jit (XLA)"].iloc[-1]
print(f"the kernel's speed is {factor:.2f} times XLA's")
speed.plot(bounds)

# %% [markdown]
# In the recorded run at 4096 × 32768 the kernel reaches {{h200_leaky_dropout_float32; 32768; Triton; of copy}} of the
# copy, and XLA {{h200_leaky_dropout_float32; 32768; jax.jit (XLA); of copy}}: a factor of
# {{h200_leaky_dropout_float32; 32768; Triton; × jax.jit (XLA)}}, not 4. With JAX's other generator (`impl="rbg"`) XLA
# reaches {{h200_leaky_dropout_float32; 32768; jax.jit (XLA), rbg; of copy}}. And with `tl.rand` in the place of
# `tl.rand4x` the kernel is at {{h200_leaky_dropout_float32; 32768; Triton, one number in four; of copy}}, hardly ahead of
# XLA. So nearly all of the factor is the cost of the random numbers. (On an H100, whose memory is slower, that cost
# matters less: XLA reaches {{h100_leaky_dropout_float32; 32768; jax.jit (XLA); of copy}} there.) Fusing alone is worth a factor of
# {{h200_leaky_dropout_float32; 32768; jax.jit (XLA); × JAX, op by op}}, from
# {{h200_leaky_dropout_float32; 32768; JAX, op by op; of copy}} op by op, and XLA fuses too.
#
# The gradient (recorded too, as `h200_leaky_dropout_backward_float32`):
# {{h200_leaky_dropout_backward_float32; 32768; Triton; of copy}} for the kernel and
# {{h200_leaky_dropout_backward_float32; 32768; jax.jit (XLA); of copy}} for XLA. It reads
# two arrays and writes one, and this card reads faster than it writes; a copy is not the ceiling there.
#
# At the small end all curves fall: at 4096 × 256 the copy itself reaches
# {{h200_leaky_dropout_float32; 256; copy; GB/s}} GB/s. Starting the work takes longer than doing it.
#
# ## Look inside
#
# What does it cost to throw three numbers of four away?

# %%
explore.predict("four numbers")


# %%
@triton.jit
def rand4x_kernel(seed_ptr, y_ptr, QUARTER: tl.constexpr):
    counters = tl.program_id(0) * QUARTER + tl.arange(0, QUARTER)
    block = y_ptr + tl.program_id(0) * 4 * QUARTER + tl.arange(0, QUARTER)
    u0, u1, u2, u3 = tl.rand4x(tl.load(seed_ptr), counters)
    tl.store(block, u0)
    tl.store(block + QUARTER, u1)
    tl.store(block + 2 * QUARTER, u2)
    tl.store(block + 3 * QUARTER, u3)


counts = []
for kernel, constants in ((rand_kernel, {"BLOCK_SIZE": 1024}), (rand4x_kernel, {"QUARTER": 256})):
    report = xray(kernel, "*i32", "*fp32", **constants)
    counts.append(len(report.isa().grep("v_mul_hi_u32", "v_mul_lo_u32", "v_mad_u64_u32").splitlines()))
    registers = report["gfx942"].vgprs
    print(f"{kernel.fn.__name__:14} {counts[-1]:4} multiplications   {registers:2} registers")
print(f"{counts[0] / counts[1]:.1f} times as many with tl.rand")

# %% [markdown]
# A second thing decides: how wide the loads are. A mask can only go with a load of 16 bytes if the compiler knows
# that all four elements are inside or all outside. For that `n` must be known to be a multiple of 4. Triton's own
# launcher says so to the compiler; `jax_triton` passes a plain number. So `n` is a `constexpr` here, which costs
# nothing, since JAX compiles once for each shape anyway:

# %%
for n in (4096 * 8192, 1823 * 781):
    found = xray(
        leaky_dropout_kernel, "*fp32", "*fp32", "*i32", "*fp32",
        n=n, QUARTER=256, num_warps=1, targets=("gfx942",),
    )["gfx942"]
    loads = ", ".join(f"{count} × {width} bits" for width, count in found.loads.items())
    print(f"n = {n:10,}   loads {loads}")

# %% [markdown]
# ## Go further
#
# - Write the forward kernel with `tl.rand`, one block and no quarters. The mask is another one, and just as good:
#   any mapping from element to random number will do, as long as no number is used twice. What does it cost?
# - Use blocks of 1024 instead of 256, in both passes, and measure both. Within a program each load waits for the store
#   before it: which of the two passes suffers more?
# - With more than $2^{31}$ elements `offsets` of 32 bits turn negative: they pass the mask and address memory before the
#   array. Where would you write `.to(tl.int64)`?
# - `jax.vmap(leaky_dropout, in_axes=(0, None, 0))` over several seeds: what has to be added on a GPU?
# - In a network, dropout follows a matrix product. Fused into *its* kernel, it would read and write nothing
#   at all: then the cost of Philox shows.
#
# ### Read next
#
# - [06_amd_optimization.ipynb](06_amd_optimization.ipynb): what the compiler made of your kernels.
# - Salmon et al., [Parallel random numbers: as easy as 1, 2,
#   3](https://www.thesalmons.org/john/random123/papers/random123sc11.pdf), on counter-based generators.
# - Triton's [low-memory dropout
#   tutorial](https://triton-lang.org/main/getting-started/tutorials/04-low-memory-dropout.html).
# - JAX: [custom derivative
#   rules](https://docs.jax.dev/en/latest/notebooks/Custom_derivative_rules_for_Python_code.html) and
#   [jax-triton](https://github.com/jax-ml/jax-triton).

# %%
progress()
