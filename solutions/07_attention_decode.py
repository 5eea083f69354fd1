# %% [markdown]
# # 7 · Attention for one token: one long read
#
# A language model writes its answer token by token. (A token is a word or a part of one.) In each layer every token leaves two
# vectors behind, a *key* and a *value*. They are kept in a **cache**. For a new token the layer compares one vector more, the
# *query*, with all keys, and mixes the values by the result. This is **decoding**. It computes little and reads much, so you
# know already what decides its speed.
#
# You build it in four steps: the scores, attention in one pass with a third running value, the cache split over the whole
# card, and the caches of real inference engines.
#
# ![The operations of a language model from the embedding to the loss, with attention lit, and their share of all bytes in decoding and in training.](../assets/layer_attention.svg)

# %%
from workshop import DEVICE, compare, count_bytes, device, explore, here, progress, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("07_attention_decode")

# %% [markdown]
# ## From memory
#
# Three minutes, an empty cell. `weighted_sum(p, v)` takes a vector of t weights and a matrix of t rows and d columns, both
# contiguous, and returns the d sums of `p[i] * v[i, column]` in float32. It is the column sum of lesson 1b with one factor
# more. (d may be any number, t may be long. Look back only when you are stuck.)

# %% answer="weighted_sum"
### BEGIN SOLUTION
@triton.jit
def weighted_sum_kernel(p_ptr, v_ptr, output_ptr, t, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, t, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < t) & (columns[None, :] < d)
        p = tl.load(p_ptr + rows, mask=rows < t, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + rows[:, None] * d + columns[None, :], mask=mask, other=0.0).to(tl.float32)
        sums += p[:, None] * v
    tl.store(output_ptr + columns, tl.sum(sums, axis=0), mask=columns < d)


def weighted_sum(p, v):
    t, d = v.shape
    output = torch.empty(d, dtype=torch.float32, device=v.device)
    if d:
        weighted_sum_kernel[(triton.cdiv(d, 64),)](p, v, output, t, d, ROWS=32, COLUMNS=64)
    return output
### STARTER
# def weighted_sum(p, v):
#     ...  # your code here: a kernel, and this function that launches it
### END SOLUTION

# %% [markdown] hints="weighted_sum"

# %% check="weighted_sum"
check("weighted_sum")

# %% [markdown]
# ## Picture
#
# ![One query of d numbers meets t keys; the t weights mix t values into one output of d numbers](../assets/decode.svg)
#
# ## Idea
#
# A layer does this several times side by side, in *heads*. Each head h has a query `q[h]` of d numbers, and a cache of t keys
# `k[h]` and t values `v[h]`, one row for each token so far. Its output is
#
# $$\text{out} = \sum_i \frac{e^{s_i}}{\sum_j e^{s_j}}\, v_i \qquad\text{with}\qquad s_i = \frac{q \cdot k_i}{\sqrt d}$$
#
# So it is a softmax over the cache, and a weighted sum of its rows. Count per token in the cache: d products for the
# score and d for the sum, with as many additions: 4 d operations. It reads 2 d numbers, which are 4 d bytes in half
# precision. **One operation for each byte**: an H200 could do two hundred and more. Decoding is bound by memory, and its
# limit is the time of *reading* the cache once. (A prompt, the text that the model is given, has many tokens at once. There many
# queries share each key, and attention becomes a matrix product.)
#
# ## Predict

# %%
explore.predict("bytes of a cache")

# %% [markdown]
# ## Write: the scores
#
# `decode_scores(q, k)` returns `q · k / sqrt(d)` for each head and each token in float32. q is (h, d), k is (h, t, d). In
# both only the last dimension is contiguous, so pass the other strides. d is a power of two, so a row of a key fills its
# tile exactly.

# %% answer="decode_scores"
@triton.jit
def scores_kernel(
    q_ptr, k_ptr, scores_ptr, q_stride, k_head, k_row, t, scale, D: tl.constexpr, ROWS: tl.constexpr
):
    blocks = tl.cdiv(t, ROWS)
    head = (tl.program_id(0) // blocks).to(tl.int64)
    rows = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS).to(tl.int64)
    columns = tl.arange(0, D)
    mask = rows < t
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32)
    ### BEGIN SOLUTION
    k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask=mask[:, None], other=0.0)
    scores = tl.sum(q[None, :] * k.to(tl.float32), axis=1) * scale
    ### STARTER
    # scores = tl.zeros((ROWS,), tl.float32)  # your code here: load the tile of keys, multiply, add along the rows
    ### END SOLUTION
    tl.store(scores_ptr + head * t + rows, scores, mask=mask)


def decode_scores(q, k):
    heads, t, d = k.shape
    scores = torch.empty((heads, t), dtype=torch.float32, device=q.device)
    if heads:
        scores_kernel[(heads * triton.cdiv(t, 64),)](
            q, k, scores, q.stride(0), k.stride(0), k.stride(1), t, d**-0.5, D=d, ROWS=64
        )
    return scores

# %%
q = torch.randn(8, 64, device=DEVICE)
k, v = torch.randn(2, 8, 1000, 64, device=DEVICE)
expected = torch.einsum("hd,htd->ht", q, k) / 8
print("largest difference:", (decode_scores(q, k) - expected).abs().max().item())

# %%
explore.predict_bytes(decode_scores, q, k)

# %% [markdown] hints="decode_scores"

# %% [markdown]
# ## Check

# %% check="decode_scores"
check("decode_scores")

# %% [markdown]
# ### The third running value
#
# The online softmax of lesson 3 keeps a maximum m and a sum s while it walks over a row. Here the exponentials are not
# stored: each is the weight of a row of v, and that row is needed only once. So keep a third value, the vector
# `acc` of d weighted sums. All three are relative to the maximum so far. When it grows from m to m_new, the sum **and
# the vector** are multiplied by $e^{m - m_{new}}$:
#
# | | at first | with a block of scores x and rows v |
# |---|---|---|
# | m | −∞ | m_new = max(m, max x) |
# | s | 0 | s · e^(m − m_new) + Σ e^(x − m_new) |
# | acc | 0 | acc · e^(m − m_new) + Σ e^(x − m_new) · v |
#
# At the end acc / s is the output. No score was written to memory.
#
# ## Write: attention in one pass

# %% answer="decode_attention"
@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, output_ptr, q_stride, k_head, k_row, v_head, v_row, t, scale,
    D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = rows < t
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask[:, None], other=0.0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :], mask[:, None], other=0.0)
        x = tl.where(mask, tl.sum(q[None, :] * k.to(tl.float32), axis=1), -float("inf"))
        ### BEGIN SOLUTION
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)
        m = m_new
        ### STARTER
        # # your code here: m, s and acc, about 6 lines. This adds the values without weights.
        # s += tl.sum(mask.to(tl.float32), axis=0)
        # acc += tl.sum(v.to(tl.float32), axis=0)
        ### END SOLUTION
    tl.store(output_ptr + head * D + columns, acc / s)


def decode_attention(q, k, v):
    heads, t, d = k.shape
    output = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads:
        decode_kernel[(heads,)](
            q, k, v, output, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t,
            d**-0.5, D=d, ROWS=64,
        )
    return output

# %%
def attention(q, k, v):
    """torch's own: one query for each head."""
    return torch.nn.functional.scaled_dot_product_attention(q[None, :, None], k[None], v[None])[0, :, 0]


print("largest difference:", (decode_attention(q, k, v) - attention(q, k, v)).abs().max().item())

# %%
explore.predict_bytes(decode_attention, q, k, v)

# %% [markdown] hints="decode_attention"

# %% check="decode_attention"
check("decode_attention")

# %% [markdown]
# ## Predict
#
# The kernel reads each number of the cache once, so it moves no byte too many.

# %%
explore.predict("eight heads")

# %% [markdown]
# ## Write: split the cache
#
# The cure: cut each cache into parts, and give every part a program of its own. A program walks over its part as before,
# and writes its three running values to memory: m, s and acc, of d + 2 numbers. A second kernel merges the parts of
# each head. It is the same rule again, from part to part instead of from block to block:
#
# ![Three parts of a cache, each with its own m, s and acc; the merge rescales each part to the common maximum](../assets/split_decode.svg)
#
# $$m = \max_p m_p \qquad s = \sum_p s_p\, e^{m_p - m} \qquad \text{acc} = \sum_p \text{acc}_p\, e^{m_p - m}$$
#
# How many parts? Enough for every multiprocessor, and two programs for each, so that one computes while another
# waits. More parts than that only make more work for the merge. The host function asks the device. Without a GPU, `device()` is a
# small stand-in.
#
# The first kernel is there. It differs from yours in two ways. **Each row of its tile has running values of its own**: m and s
# are ROWS numbers, acc is a tile. So nothing in the loop goes from row to row, and the rows are merged once, after it. And
# `num_stages=3` (lesson 4) loads the next two tiles while this one is used. The merge and the number of parts are yours.

# %% answer="split_decode_attention"
@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, m_ptr, s_ptr, acc_ptr, q_stride, k_head, k_row, v_head, v_row, t, scale,
    part_length, parts, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    head, part = pid // parts, pid % parts
    first = part * part_length
    end = tl.minimum(first + part_length, t)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32) * scale
    m = tl.full((ROWS,), -1e30, tl.float32)  # lower than any score, and exp(m - m) is still a number
    s = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for start in tl.range(first, end, ROWS, num_stages=3):
        rows = start + tl.arange(0, ROWS)
        mask = rows < end
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask[:, None], other=0.0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :], mask[:, None], other=0.0)
        x = tl.where(mask, tl.sum(q[None, :] * k.to(tl.float32), axis=1), -float("inf"))
        m_new = tl.maximum(m, x)
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + weights
        acc = acc * rescale[:, None] + weights[:, None] * v.to(tl.float32)
        m = m_new
    m_part = tl.max(m, axis=0)
    rescale = tl.exp(m - m_part)
    tl.store(m_ptr + pid, m_part)
    tl.store(s_ptr + pid, tl.sum(s * rescale, axis=0))
    tl.store(acc_ptr + pid * D + columns, tl.sum(acc * rescale[:, None], axis=0))


@triton.jit
def merge_kernel(
    m_ptr, s_ptr, acc_ptr, output_ptr, parts, D: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr
):
    head = (tl.program_id(0) // (D // COLUMNS)).to(tl.int64)
    columns = tl.program_id(0) % (D // COLUMNS) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.arange(0, PARTS)
    mask = part < parts
    m_of_parts = tl.load(m_ptr + head * parts + part, mask=mask, other=-float("inf"))
    s_of_parts = tl.load(s_ptr + head * parts + part, mask=mask, other=0.0)
    places = (head * parts + part)[:, None] * D + columns[None, :]
    acc_of_parts = tl.load(acc_ptr + places, mask=mask[:, None], other=0.0)
    ### BEGIN SOLUTION
    m = tl.max(m_of_parts, axis=0)
    rescale = tl.exp(m_of_parts - m)
    s = tl.sum(s_of_parts * rescale, axis=0)
    acc = tl.sum(acc_of_parts * rescale[:, None], axis=0)
    ### STARTER
    # s = tl.sum(s_of_parts, axis=0)  # your code here: every part has a maximum of its own
    # acc = tl.sum(acc_of_parts, axis=0)
    ### END SOLUTION
    tl.store(output_ptr + head * D + columns, acc / s)


def split_decode_attention(q, k, v):
    heads, t, d = k.shape
    output = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads == 0:
        return output
    ### BEGIN SOLUTION
    wanted = max(1, round(2 * device().multiprocessors / heads))
    part_length = max(16, triton.cdiv(t, wanted))
    ### STARTER
    # part_length = t  # your code here: how long is a part, if the device should be full?
    ### END SOLUTION
    parts = triton.cdiv(t, part_length)
    m, s = torch.empty((2, heads, parts), dtype=torch.float32, device=q.device)
    acc = torch.empty((heads, parts, d), dtype=torch.float32, device=q.device)
    part_kernel[(heads * parts,)](
        q, k, v, m, s, acc, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t, d**-0.5,
        part_length, parts, D=d, ROWS=max(1, min(64, 8192 // (d * k.element_size()))),
    )  # fmt: skip
    columns = min(d, 32)
    merge_kernel[(heads * (d // columns),)](
        m, s, acc, output, parts, D=d, COLUMNS=columns, PARTS=triton.next_power_of_2(parts)
    )
    return output

# %%
long = torch.randn(2, 8, 5000, 64, device=DEVICE)
print("largest difference:", (split_decode_attention(q, *long) - attention(q, *long)).abs().max().item())

# %%
explore.predict_bytes(split_decode_attention, q, *long)

# %% [markdown] hints="split_decode_attention"

# %% check="split_decode_attention"
check("split_decode_attention")

# %% [markdown]
# ## Measure
#
# First the bytes: how much is read for each number of the cache, and what do the parts add?

# %%
if device().interpreting:
    for function in (decode_attention, split_decode_attention):
        traffic = count_bytes(function, q, *long)
        cache = long.numel() * long.element_size()
        print(f"{function.__name__:24} {traffic.bytes_read / cache:.3f} × the cache read", end="")
        print(f", {traffic.bytes_written:,} bytes written")

# %% [markdown]
# Then the time, on a card: eight heads, and longer and longer caches, beside torch's `scaled_dot_product_attention`. Each
# reads the cache once, so GB/s of the cache is the measure.

# %%
def cache_of(t):
    heads, d = 8, 128
    return (
        torch.randn(heads, d, device=DEVICE, dtype=torch.float16),
        *torch.randn(2, heads, t, d, device=DEVICE, dtype=torch.float16),
    )


def close(output, q, k, v):
    return torch.allclose(output.float(), attention(q.float(), k.float(), v.float()), atol=5e-3)


speed = compare(
    {"torch": attention, "one program a head": decode_attention, "split": split_decode_attention},
    make_inputs=cache_of,
    sizes=[1024] if device().interpreting else [1024, 4096, 16384, 65536, 131072],
    bytes_moved=lambda q, k, v: 2 * k.numel() * k.element_size(),
    check=close,
    title="Decoding, 8 heads of 128, float16",
    x_label="tokens in the cache",
    recorded="h200_decode_8_heads_float16",
)
speed

# %%
lines = ("SDPA, as torch chooses", "SDPA, flash", "lesson 7, one program a head", "lesson 7, split")
curves = speed.only(*lines) if device().interpreting else speed
curves.plot()

# %% [markdown]
# `torch.nn.attention.sdpa_kernel` chooses one of torch's backends by name. The recorded curves at 131,072 tokens:
#
# | | of the copy |
# |---|---:|
# | one program a head | {{h200_decode_8_heads_float16; 131072; lesson 7, one program a head; of copy}} |
# | the split cache | {{h200_decode_8_heads_float16; 131072; lesson 7, split; of copy}} |
# | torch, as it chooses | {{h200_decode_8_heads_float16; 131072; SDPA, as torch chooses; of copy}} |
# | torch, *cuDNN* | {{h200_decode_8_heads_float16; 131072; SDPA, cuDNN; of copy}} |
# | torch, *flash*, which splits the cache too | {{h200_decode_8_heads_float16; 131072; SDPA, flash; of copy}} |
# | torch, *math*: several kernels | {{h200_decode_8_heads_float16; 131072; SDPA, math; of copy}} |
# | torch, *efficient*, which does not split | {{h200_decode_8_heads_float16; 131072; SDPA, efficient; of copy}} |
#
# With 64 heads and 8,192 tokens the split cache reaches {{h200_decode_64_heads_float16; 8192; lesson 7, split; of copy}}, and torch
# {{h200_decode_64_heads_float16; 8192; SDPA, as torch chooses; of copy}}. Find the length where splitting begins to pay.
#
# The time of a call of a few microseconds is mostly its launch, so inference engines put all calls of a token into one CUDA graph. In
# such a graph, with 8 heads and 4,096 tokens for each request, the split cache reaches
# {{h200_decode_everyday_float16; 1; lesson 7, split; of copy}} of the copy for one request and
# {{h200_decode_everyday_float16; 32; lesson 7, split; of copy}} for 32, and torch
# {{h200_decode_everyday_float16; 1; SDPA, as torch chooses; of copy}} and
# {{h200_decode_everyday_float16; 32; SDPA, as torch chooses; of copy}}. (More than the copy is possible: a cache is only read, and
# memory reads faster than it writes.)
#
# ## Look inside
#
# The loads of a cache should be as wide as the hardware has them. Compile the kernel for an MI300X and for an H100, with
# float16:

# %%
report = xray(
    decode_kernel, "*fp16", "*fp16", "*fp16", "*fp16", 128, 2**20, 128, 2**20, 128, 8192, 0.088,
    D=128, ROWS=64, targets=("gfx942", "sm_90"),
)  # fmt: skip
report

# %% [markdown]
# ## Go further
#
# ### Pages
#
# An inference engine serves many requests, and nobody knows how long each will become. So it cuts the memory for caches into
# **pages** of, say, 16 tokens, and gives a request another page when its last one is full. A *block table* says which pages
# belong to a request, in their order. This is what vLLM calls paged attention. For the kernel it is lesson 1b's look-up:
# the row of a token is
# `block_table[request, token // page] * page + token % page`.
#
# `paged_decode_attention(q, k_pages, v_pages, block_table, lengths)` takes q (b, h, d), pages (p, page, h, d), the table
# (b, most) in int32 and the lengths (b,) in int32, and returns (b, h, d). Entries of the table behind a request's length
# belong to another request, or are no page at all. Rows of a page behind the length may hold anything, `nan` and
# infinity, too.

# %% answer="paged_decode_attention"
@triton.jit
def paged_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, output_ptr, q_request, q_head, most, heads, scale,
    PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0).to(tl.int64)
    request, head = pid // heads, pid % heads
    length = tl.load(lengths_ptr + request)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + request * q_request + head * q_head + columns).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, length, PAGE):
        mask = start + tl.arange(0, PAGE) < length
        ### BEGIN SOLUTION
        page = tl.load(table_ptr + request * most + start // PAGE).to(tl.int64)
        ### STARTER
        # page = (start // PAGE).to(tl.int64)  # your code here: which page is it?
        ### END SOLUTION
        rows = (page * PAGE + tl.arange(0, PAGE)) * heads + head
        places = rows[:, None] * D + columns[None, :]
        k = tl.load(k_ptr + places, mask=mask[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0).to(tl.float32)
        x = tl.where(mask, tl.sum(q[None, :] * k, axis=1), -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum(weights[:, None] * v, axis=0)
        m = m_new
    tl.store(output_ptr + (request * heads + head) * D + columns, acc / s)


def paged_decode_attention(q, k_pages, v_pages, block_table, lengths):
    requests, heads, d = q.shape
    output = torch.empty((requests, heads, d), dtype=q.dtype, device=q.device)
    if output.numel():
        paged_kernel[(requests * heads,)](
            q, k_pages, v_pages, block_table, lengths, output,
            q.stride(0), q.stride(1), block_table.shape[1], heads,
            d**-0.5, PAGE=k_pages.shape[1], D=d,
        )  # fmt: skip
    return output

# %% [markdown] hints="paged_decode_attention"

# %% check="paged_decode_attention"
check("paged_decode_attention")

# %% [markdown]
# ### Eight bits
#
# The cache decides the time, so a smaller cache is a faster one. `int8_decode_attention(q, k, k_scale, v, v_scale)` reads
# keys and values of one byte each. The scale of each row, a float32 of shape (h, t), makes numbers of them: value = int8 ×
# scale. Where is the cheapest place to multiply: the d numbers of a row, or the one number that comes out of them?

# %% answer="int8_decode_attention"
@triton.jit
def int8_kernel(
    q_ptr, k_ptr, k_scale_ptr, v_ptr, v_scale_ptr, output_ptr, q_stride, k_head, k_row, v_head, v_row,
    t, scale, D: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + head * q_stride + columns).to(tl.float32) * scale
    m = -float("inf")
    s = 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(0, t, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = rows < t
        k = tl.load(k_ptr + head * k_head + rows[:, None] * k_row + columns[None, :], mask[:, None], other=0)
        v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row + columns[None, :], mask[:, None], other=0)
        ### BEGIN SOLUTION
        k_scale = tl.load(k_scale_ptr + head * t + rows, mask=mask, other=0.0)
        v_scale = tl.load(v_scale_ptr + head * t + rows, mask=mask, other=0.0)
        ### STARTER
        # k_scale = tl.full((ROWS,), 1.0, tl.float32)  # your code here: load the scales of these rows
        # v_scale = tl.full((ROWS,), 1.0, tl.float32)
        ### END SOLUTION
        x = tl.where(mask, tl.sum(q[None, :] * k.to(tl.float32), axis=1) * k_scale, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        weights = tl.exp(x - m_new)
        rescale = tl.exp(m - m_new)
        s = s * rescale + tl.sum(weights, axis=0)
        acc = acc * rescale + tl.sum((weights * v_scale)[:, None] * v.to(tl.float32), axis=0)
        m = m_new
    tl.store(output_ptr + head * D + columns, acc / s)


def int8_decode_attention(q, k, k_scale, v, v_scale):
    heads, t, d = k.shape
    output = torch.empty((heads, d), dtype=q.dtype, device=q.device)
    if heads:
        int8_kernel[(heads,)](
            q, k, k_scale, v, v_scale, output,
            q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t,
            d**-0.5, D=d, ROWS=64,
        )  # fmt: skip
    return output

# %% [markdown] hints="int8_decode_attention"

# %% check="int8_decode_attention"
check("int8_decode_attention")

# %% [markdown]
# ### And more heads than caches
#
# Most models of today let several query heads share one cache (*grouped queries*): 32 query heads and 8 caches are usual.
# Each key that is read then serves four queries, so four times as many operations are done for each byte. Give the kernel a
# tile of queries, (4, d), and one program for each cache. What is the limit now?
#
# ### Read next
#
# - [FlashAttention-2](https://arxiv.org/abs/2307.08691), section 3, and
#   [Flash-Decoding](https://pytorch.org/blog/flash-decoding/): the split over the cache.
# - [Efficient Memory Management for Large Language Model Serving with PagedAttention](https://arxiv.org/abs/2309.06180).

# %%
progress()
