# %% [markdown]
# # 1b · Tiles: blocks with two dimensions
#
# Most tensors of a model are matrices. This lesson gives a program a **tile**, which is a block with rows and columns.
# You write five short kernels, then you repair three broken ones with a tool that sees every access to memory. Lessons
# 4 and 6 to 9 need `[:, None]`.
#
# ![The operations of a language model from the embedding to the loss, with the embedding lit, and their share of all bytes in decoding and in training.](../assets/layer_embedding.svg)

# %%
from workshop import DEVICE, compare, count_bytes, device, explore, here, matches, progress, sanitize, xray

import torch
import triton
import triton.language as tl

from autograder import check

here("01b_tiles")

# %% [markdown]
# ## Picture
#
# ![A tile of 2 rows and 4 columns in a matrix whose rows are 7 elements apart: the offset of an element is its row times 7 plus its column](../assets/tile_offsets.svg)
#
# ## Idea
#
# - `rows = tl.arange(0, ROWS)` is a vector. `rows[:, None]` is the same numbers as a **column**, of shape (ROWS, 1), and
#   `columns[None, :]` is a **row**, of shape (1, COLUMNS).
# - If a column meets a row, each is repeated until both have the shape (ROWS, COLUMNS). This is *broadcasting*, as in
#   torch: `rows[:, None] + columns[None, :]` adds every row number to every column number.
# - So the offsets of a tile are one line: `rows[:, None] * row_stride + columns[None, :]`. The mask is another one:
#   `(rows[:, None] < n_rows) & (columns[None, :] < n_cols)`.
# - A launch grid may have three dimensions. But a card takes at most 65,535 programs in the second and in the third, and
#   2³¹ − 1 in the first. So the kernels here count their tiles in *one* number, and each program finds its tile with `//`
#   and `%`: with 5 tiles across, program 13 has tile row 13 // 5 = 2 and tile column 13 % 5 = 3.
# - A block has $2^{20}$ elements at most. A row here has up to a million: one such row fits a block, and two do not.
#
# ## Predict

# %%
explore.predict("shape of a tile")

# %% [markdown]
# ## Write: an outer sum
#
# `outer_add(x, y)` returns the matrix whose element (i, j) is `x[i] + y[j]`. The program's row numbers and column numbers
# are there. The tile itself, its offsets and its mask are yours.

# %% answer="outer_add"
# Three lines are yours: the tile, its offsets and its mask.
@triton.jit
def outer_add_kernel(x_ptr, y_ptr, output_ptr, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    pid = tl.program_id(0)
    tiles_across = tl.cdiv(m, COLUMNS)
    rows = pid // tiles_across * ROWS + tl.arange(0, ROWS)
    columns = pid % tiles_across * COLUMNS + tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + rows, mask=rows < n)
    y = tl.load(y_ptr + columns, mask=columns < m)
    ### BEGIN SOLUTION
    tile = x[:, None] + y[None, :]
    offsets = rows[:, None] * m + columns[None, :]
    mask = (rows[:, None] < n) & (columns[None, :] < m)
    ### STARTER
    # tile = tl.zeros((ROWS, COLUMNS), tl.float32)  # your code here
    # offsets = tl.zeros((ROWS, COLUMNS), tl.int32)  # your code here
    # mask = offsets < 0  # your code here
    ### END SOLUTION
    tl.store(output_ptr + offsets, tile, mask=mask)


def outer_add(x, y):
    n, m = x.numel(), y.numel()
    output = torch.empty((n, m), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    grid = (triton.cdiv(n, 32) * triton.cdiv(m, 64),)
    outer_add_kernel[grid](x, y, output, n, m, ROWS=32, COLUMNS=64)
    return output

# %%
x = torch.arange(3.0, device=DEVICE)
y = torch.arange(0.0, 50.0, 10.0, device=DEVICE)
print(outer_add(x, y))

# %%
explore.predict_bytes(outer_add, torch.rand(320, device=DEVICE), torch.rand(640, device=DEVICE))

# %% [markdown] hints="outer_add"

# %% [markdown]
# ## Check

# %% check="outer_add"
check("outer_add")

# %% [markdown]
# ## Write: a bias for each column
#
# `row_bias(x, b)` adds the vector `b` to every row of `x`: the last step of each linear layer. `x` may have any row
# stride. The output is contiguous, so its row stride is its number of columns: **two tensors, two strides**.

# %% answer="row_bias"
@triton.jit
def row_bias_kernel(x_ptr, b_ptr, output_ptr, row_stride, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    pid = tl.program_id(0)
    tiles_across = tl.cdiv(m, COLUMNS)
    rows = pid // tiles_across * ROWS + tl.arange(0, ROWS).to(tl.int64)  # rows * row_stride may exceed 2^31
    columns = pid % tiles_across * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows[:, None] < n) & (columns[None, :] < m)
    ### BEGIN SOLUTION
    x = tl.load(x_ptr + rows[:, None] * row_stride + columns[None, :], mask=mask)
    b = tl.load(b_ptr + columns, mask=columns < m)
    tl.store(output_ptr + rows[:, None] * m + columns[None, :], x + b[None, :], mask=mask)
    ### STARTER
    # # your code here: load the tile of x and the part of b, and store their sum, about 3 lines
    # tl.store(output_ptr + rows[:, None] * m + columns[None, :], tl.zeros((ROWS, COLUMNS), tl.float32), mask=mask)
    ### END SOLUTION


def row_bias(x, b):
    n, m = x.shape
    output = torch.empty((n, m), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    grid = (triton.cdiv(n, 16) * triton.cdiv(m, 128),)
    row_bias_kernel[grid](x, b, output, x.stride(0), n, m, ROWS=16, COLUMNS=128)
    return output

# %%
wide = torch.zeros(3, 8, device=DEVICE)
print(row_bias(wide[:, :5], torch.arange(5.0, device=DEVICE)))

# %%
explore.predict_bytes(row_bias, torch.rand(320, 640, device=DEVICE), torch.rand(640, device=DEVICE))

# %% [markdown] hints="row_bias"

# %% check="row_bias"
check("row_bias")

# %% [markdown]
# ## Write: transpose
#
# ![A tile is read from rows 0 and 1 of the matrix and written to columns 0 and 1 of its transpose](../assets/tile_transpose.svg)
#
# Element (row, column) of `x` becomes element (column, row) of the output. The tile that is loaded can be stored as it is:
# only its *offsets* in the output are different. How long is a row of the output?

# %% answer="transpose"
@triton.jit
def transpose_kernel(x_ptr, output_ptr, row_stride, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    pid = tl.program_id(0)
    tiles_across = tl.cdiv(m, COLUMNS)
    rows = pid // tiles_across * ROWS + tl.arange(0, ROWS).to(tl.int64)
    columns = pid % tiles_across * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64)
    mask = (rows[:, None] < n) & (columns[None, :] < m)
    tile = tl.load(x_ptr + rows[:, None] * row_stride + columns[None, :], mask=mask)
    ### BEGIN SOLUTION
    offsets = columns[None, :] * n + rows[:, None]
    ### STARTER
    # offsets = rows[:, None] * m + columns[None, :]  # your code here: this writes x as it is
    ### END SOLUTION
    tl.store(output_ptr + offsets, tile, mask=mask)


def transpose(x):
    n, m = x.shape
    output = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if output.numel() == 0:
        return output
    grid = (triton.cdiv(n, 32) * triton.cdiv(m, 32),)
    transpose_kernel[grid](x, output, x.stride(0), n, m, ROWS=32, COLUMNS=32)
    return output

# %%
print(transpose(torch.arange(6.0, device=DEVICE).reshape(2, 3)))

# %%
explore.predict_bytes(transpose, torch.rand(320, 640, device=DEVICE))

# %% [markdown] hints="transpose"

# %% check="transpose"
check("transpose")

# %% [markdown]
# ## Write: the sum of each column
#
# ![A tile walks down the matrix: it adds its rows to an accumulator of the same shape, and the rows of the accumulator are added once at the end](../assets/tile_column_sum.svg)
#
# One program takes `COLUMNS` columns and walks down all rows, `ROWS` at a time. A kernel may have a loop, written as in Python:
# `for start in range(0, n, ROWS):`. The program keeps a tile of sums: each place of the tile adds what
# it sees, and `tl.sum(sums, axis=0)` adds the rows of the tile once, after the loop. (`axis=0` is the dimension that
# disappears.) Half precision is too coarse to add up, so the sums are float32, and so is the result.
#
# What does a lane that is masked off have to hold, so that it changes no sum?

# %% answer="column_sum"
@triton.jit
def column_sum_kernel(x_ptr, output_ptr, row_stride, n, m, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    ### BEGIN SOLUTION
    for start in range(0, n, ROWS):
        rows = start + tl.arange(0, ROWS).to(tl.int64)
        mask = (rows[:, None] < n) & (columns[None, :] < m)
        tile = tl.load(x_ptr + rows[:, None] * row_stride + columns[None, :], mask=mask, other=0.0)
        sums += tile.to(tl.float32)
    ### STARTER
    # # your code here: a loop over all rows, ROWS at a time, about 5 lines
    ### END SOLUTION
    tl.store(output_ptr + columns, tl.sum(sums, axis=0), mask=columns < m)


def column_sum(x):
    n, m = x.shape
    output = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        column_sum_kernel[(triton.cdiv(m, 64),)](x, output, x.stride(0), n, m, ROWS=32, COLUMNS=64)
    return output

# %%
print(column_sum(torch.ones(100, 5, device=DEVICE)))

# %%
explore.predict_bytes(column_sum, torch.rand(320, 640, device=DEVICE))

# %% [markdown] hints="column_sum"

# %% check="column_sum"
check("column_sum")

# %% [markdown]
# ## Write: look up rows of a table
#
# A language model begins with a look-up: each token is a number, and that row of a table holds its vector. So row i of the
# output is row `index[i]` of the table. Here the **address itself comes out of memory**: first load the numbers, then use them
# as row numbers. The cache of an attention kernel is read in the same way (lesson 7).

# %% answer="gather_rows"
@triton.jit
def gather_rows_kernel(
    table_ptr, index_ptr, output_ptr, row_stride, m, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    pid = tl.program_id(0)
    tiles_across = tl.cdiv(d, COLUMNS)
    rows = pid // tiles_across * ROWS + tl.arange(0, ROWS).to(tl.int64)  # rows of the output
    columns = pid % tiles_across * COLUMNS + tl.arange(0, COLUMNS)
    mask = (rows[:, None] < m) & (columns[None, :] < d)
    ### BEGIN SOLUTION
    index = tl.load(index_ptr + rows, mask=rows < m, other=0)
    tile = tl.load(table_ptr + index[:, None] * row_stride + columns[None, :], mask=mask)
    ### STARTER
    # tile = tl.zeros((ROWS, COLUMNS), tl.float32)  # your code here: load the index, then the rows, 2 lines
    ### END SOLUTION
    tl.store(output_ptr + rows[:, None] * d + columns[None, :], tile, mask=mask)


def gather_rows(table, index):
    m, d = index.numel(), table.shape[1]
    output = torch.empty((m, d), dtype=table.dtype, device=table.device)
    if output.numel() == 0:
        return output
    grid = (triton.cdiv(m, 16) * triton.cdiv(d, 128),)
    gather_rows_kernel[grid](table, index, output, table.stride(0), m, d, ROWS=16, COLUMNS=128)
    return output

# %%
table = torch.arange(12.0, device=DEVICE).reshape(4, 3)
print(gather_rows(table, torch.tensor([2, 0, 2], device=DEVICE)))

# %%
explore.predict_bytes(gather_rows, table, torch.randint(4, (500,), device=DEVICE))

# %% [markdown] hints="gather_rows"

# %% check="gather_rows"
check("gather_rows")

# %% [markdown]
# ## Measure
#
# A transpose computes nothing. It reads each element once and writes it once, so a copy is its limit. First the bytes:

# %%
x = torch.rand(1000, 700, device=DEVICE)
if device().interpreting:
    print(f"{count_bytes(transpose, x).per_element(x.numel()):g} bytes per element; a copy moves 8")

# %% [markdown]
# But bytes are not all. Memory hands out **lines** of 128 bytes, 32 float32. If the threads of a warp ask for neighbours,
# one line serves 32 of them: the access is *coalesced*. If each thread asks in a row of its own, 32 lines come, and one
# number of each is used.

# %%
def lines(offsets):
    """How many lines of 128 bytes an access of one warp touches, for float32 elements at these offsets."""
    return len(torch.unique(offsets * 4 // 128))


thread = torch.arange(32)
for name, offsets in {
    "neighbours": thread,
    "each second element": 2 * thread,
    "a column of a matrix with 1024 columns": 1024 * thread,
}.items():
    used = 32 * 4 / (128 * lines(offsets))
    print(f"{name:40} {lines(offsets):2} lines, {used:4.0%} of their bytes are used")

# %% [markdown]
# A transpose seems to need a column on one of its two sides. On a card the next cell shows what it costs, with three shapes
# of the tile. Which one will be the slowest?

# %%
def transposed_in(rows, columns):
    def run(x):
        n, m = x.shape
        output = torch.empty((m, n), dtype=x.dtype, device=x.device)
        grid = (triton.cdiv(n, rows) * triton.cdiv(m, columns),)
        transpose_kernel[grid](x, output, x.stride(0), n, m, ROWS=rows, COLUMNS=columns)
        return output

    return run


speed = compare(
    {
        "torch": lambda x: x.t().contiguous(),
        "tile 32 × 32": transposed_in(32, 32),
        "tile 1 × 1024": transposed_in(1, 1024),
        "tile 1024 × 1": transposed_in(1024, 1),
    },
    make_inputs=lambda n: (torch.rand(n, n, device=DEVICE),),
    sizes=[256] if device().interpreting else [1024, 4096, 16384],
    bytes_moved=lambda x: 2 * x.numel() * x.element_size(),
    check=matches(lambda x: x.t().contiguous()),
    title="Transpose, float32",
    x_label="rows and columns",
)
speed

# %% [markdown]
# ## Look inside
#
# What did the compiler do with the three tiles? It was compiled for an MI300X (gfx942) and for an H100 (sm_90):

# %%
for rows, columns in ((32, 32), (1, 1024), (1024, 1)):
    report = xray(
        transpose_kernel, "*fp32", "*fp32", 4096, 4096, 4096, ROWS=rows, COLUMNS=columns,
        targets=("gfx942", "sm_90"),
    )
    for target in ("gfx942", "sm_90"):
        seen = report[target]
        loads = ", ".join(f"{count} × {bits}" for bits, count in seen.loads.items())
        stores = ", ".join(f"{count} × {bits}" for bits, count in seen.stores.items())
        print(f"{rows:4} × {columns:4}  {target:6}  loads {loads:8} stores {stores:8} bits", end="")
        print(f"   shared memory {seen.shared} bytes")

# %% [markdown]
# With the square tile both sides have wide accesses of 128 bits. The compiler turned the tile round **on the chip**: the
# threads write it to shared memory (AMD calls it LDS) along the rows, wait until all have written, and read it along the
# columns. You wrote only offsets; which thread has which part of a tile is the compiler's business. A tile of one row has no
# neighbours in the other direction, so its stores are left with 32 bits, each in another line. For a tile of one column these
# are the loads.
#
# ## Go further: three broken kernels
#
# A wrong kernel often gives the right numbers by luck. `sanitize(function, *arguments)` runs a function with every access
# of its kernels checked, on any machine, and says the line, the program and the element of the first mistake. Here is a
# kernel that was not given a mask:

# %%
@triton.jit
def careless_kernel(x_ptr, output_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(output_ptr + offsets, tl.load(x_ptr + offsets))


def careless_copy(x):
    output = torch.empty_like(x)
    careless_kernel[(triton.cdiv(x.numel(), 128),)](x, output, BLOCK=128)
    return output


sanitize(careless_copy, torch.rand(1000, device=DEVICE))

# %% [markdown]
# Two more tools. `tl.device_print("name", value)` inside a kernel prints a value, on a card as well. And a kernel that does
# not compile says why, in its last line:

# %%
@triton.jit
def uncompilable_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.device_print("program", tl.program_id(0))
    tl.store(x_ptr + tl.arange(0, BLOCK + 1), 0.0)


try:
    uncompilable_kernel[(1,)](torch.zeros(16, device=DEVICE), BLOCK=16)
except Exception as error:
    print(type(error).__name__, str(error).strip().splitlines()[-1], sep=": ")

# %% [markdown]
# `BLOCK + 1` is 17, which is not a power of two.
#
# ### A lost lane
#
# `clamp(x, low, high)` should bring every element into the range from `low` to `high`. **One offset and one mask are
# wrong.** Collect evidence first: run the cell below the kernel, then repair it.

# %% answer="lost_lane"
# One wrong offset, one wrong mask.
@triton.jit
def clamp_kernel(x_ptr, output_ptr, low, high, n_elements, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    ### STARTER
    # offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(1, BLOCK_SIZE + 1)
    # mask = offsets <= n_elements
    ### END SOLUTION
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, tl.minimum(tl.maximum(x, low), high).to(x.dtype), mask=mask)


def clamp(x, low, high):
    output = torch.empty_like(x)
    n_elements = output.numel()
    if n_elements:
        clamp_kernel[(triton.cdiv(n_elements, 256),)](x, output, low, high, n_elements, BLOCK_SIZE=256)
    return output

# %%
sanitize(clamp, torch.randn(1000, device=DEVICE), -1.0, 1.0)

# %% [markdown] hints="lost_lane"

# %% check="lost_lane"
check("lost_lane")

# %% [markdown]
# ### A race
#
# `row_max(x)` should return the maximum of each row. Here every block of a row has its own program, and all of them store
# to the same element. Programs run in any order, so the last one wins, whichever it is. On rows of one block it is right.
#
# Repair it: let one program walk over the whole row, as the column sum did. `tl.full((BLOCK,), value, tl.float32)` makes a
# block of equal numbers, as `tl.zeros` does with 0.

# %% answer="found_race"
@triton.jit
def row_max_kernel(x_ptr, output_ptr, row_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    ### BEGIN SOLUTION
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    tl.store(output_ptr + row, tl.max(largest, axis=0))
    ### STARTER
    # columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    # x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
    # tl.store(output_ptr + row, tl.max(x, axis=0))
    ### END SOLUTION


def row_max(x):
    m, n = x.shape
    output = torch.empty(m, dtype=x.dtype, device=x.device)
    if m:
        ### BEGIN SOLUTION
        row_max_kernel[(m,)](x, output, x.stride(0), n, BLOCK=256)
        ### STARTER
        # row_max_kernel[(m, triton.cdiv(n, 256))](x, output, x.stride(0), n, BLOCK=256)
        ### END SOLUTION
    return output

# %%
sanitize(row_max, torch.randn(3, 1000, device=DEVICE))

# %% [markdown] hints="found_race"

# %% check="found_race"
check("found_race")

# %% [markdown]
# ### A NaN
#
# `masked_mean(x, keep)` should return the mean of the elements that `keep` marks, and 0 for a row that keeps nothing. In
# attention, what is not kept is often −∞. **Two lines make a NaN**, and are marked. From what? (`tl.where(condition, a, b)`
# chooses between two blocks, lane by lane.)

# %% answer="found_nan"
@triton.jit
def masked_mean_kernel(x_ptr, keep_ptr, output_ptr, row_stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n, other=0.0).to(tl.float32)
        keep = tl.load(keep_ptr + row * n + columns, mask=columns < n, other=0) != 0
        total += tl.where(keep, x, 0.0)  # starter: x * keep.to(tl.float32)
        count += keep.to(tl.float32)
    sums, counts = tl.sum(total, axis=0), tl.sum(count, axis=0)
    tl.store(output_ptr + row, sums / tl.maximum(counts, 1.0))  # starter: tl.store(output_ptr + row, sums / counts)


def masked_mean(x, keep):
    m, n = x.shape
    output = torch.empty(m, dtype=torch.float32, device=x.device)
    if m:
        masked_mean_kernel[(m,)](x, keep, output, x.stride(0), n, BLOCK=256)
    return output

# %%
x = torch.tensor([[1.0, 3.0, 5.0], [1.0, 3.0, -float("inf")], [1.0, 3.0, 5.0]], device=DEVICE)
keep = torch.tensor([[True, True, True], [True, True, False], [False, False, False]], device=DEVICE)
print("yours:   ", masked_mean(x, keep))
print("expected:", torch.tensor([3.0, 2.0, 0.0]))

# %% [markdown] hints="found_nan"

# %% check="found_nan"
check("found_nan")

# %% [markdown]
# ### Read next
#
# - [02_naive_softmax.ipynb](02_naive_softmax.ipynb): a block that walks over a row three times.
# - [Triton's tutorial on matrix products](https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html)
#   computes the offsets of its tiles in the same way.

# %%
progress()
