"""Wrong answers to outer_add that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "minus",
        {"tile = x[:, None] + y[None, :]":
         "tile = x[:, None] - y[None, :]"},
        "Subtracts.",
    ),
    Edit(
        "wrong-value", "product",
        {"tile = x[:, None] + y[None, :]":
         "tile = x[:, None] * y[None, :]"},
        "The outer product is better known.",
    ),
    Edit(
        "compile-error", "without_none",
        {"tile = x[:, None] + y[None, :]":
         "tile = x + y"},
        "Vectors of 32 and 64 do not meet.",
    ),
    Edit(
        "compile-error", "none_in_the_wrong_place",
        {"tile = x[:, None] + y[None, :]":
         "tile = x[None, :] + y[:, None]"},
        "A tile of (COLUMNS, ROWS) is stored to (ROWS, COLUMNS).",
    ),
    Edit(
        "race", "rows_of_n",
        {"rows[:, None] * m + columns":
         "rows[:, None] * n + columns"},
        "Rows of the output have m elements, not n.",
    ),
    Edit(
        "out-of-bounds-store", "mask_of_rows_only",
        {"mask = (rows[:, None] < n) & (columns[None, :] < m)":
         "mask = rows[:, None] < n"},
        "Lanes behind the end of a row write into the next row.",
    ),
    Edit(
        "out-of-bounds-store", "mask_of_columns_only",
        {"mask = (rows[:, None] < n) & (columns[None, :] < m)":
         "mask = columns[None, :] < m"},
        "Rows behind the last one.",
    ),
    Edit(
        "unwritten-output", "one_row_of_tiles",
        {"grid = (triton.cdiv(n, 32) * triton.cdiv(m, 64),)":
         "grid = (triton.cdiv(m, 64),)"},
        "Tiles were counted across only.",
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {"grid = (triton.cdiv(n, 32) * triton.cdiv(m, 64),)":
         "grid = (triton.cdiv(n, 32) * (m // 64),)"},
        "The last columns have no program.",
    ),
    Edit(
        "wrong-program-id", "every_program_the_first_tile",
        {"pid = tl.program_id(0)":
         "pid = 0"},
        "Forgot the program id.",
    ),
    Edit(
        "unwritten-output", "tiles_counted_down",
        {"tiles_across = tl.cdiv(m, COLUMNS)":
         "tiles_across = tl.cdiv(n, ROWS)"},
        "Divides by the number of tiles in the other direction.",
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_y",
        {"y = tl.load(y_ptr + columns, mask=columns < m)":
         "y = tl.load(y_ptr + columns)"},
        "Only the store has a mask.",
    ),
    Edit(
        "wrong-dtype", "float32_output",
        {"torch.empty((n, m), dtype=x.dtype, device=x.device)":
         "torch.empty((n, m), dtype=torch.float32, device=x.device)"},
        "The output has the dtype of x.",
    ),
    Edit(
        "low-precision", "half_sums",
        {"tile = x[:, None] + y[None, :]":
         "tile = x.to(tl.float16)[:, None] + y.to(tl.float16)[None, :]"},
        "Half precision is faster.",
    ),
    Edit(
        "wrong-shape", "transposed_output",
        {"torch.empty((n, m), dtype":
         "torch.empty((m, n), dtype"},
        "Rows and columns of the output exchanged.",
    ),
    Edit(
        "unwritten-output", "grid_kept_for_each_number_of_elements",
        {"def outer_add(x, y):":
         "grids = {}\n\n\ndef outer_add(x, y):",
         "grid = (triton.cdiv(n, 32) * triton.cdiv(m, 64),)":
         "grid = grids.setdefault(output.numel(), (triton.cdiv(n, 32) * triton.cdiv(m, 64),))"},
    ),
    Edit(
        "wrong-shape", "two_vectors_at_one_address_taken_for_one",
        {"def outer_add(x, y):\n":
         "def outer_add(x, y):\n"
         "    y = x if x.data_ptr() == y.data_ptr() else y\n"},
    ),
    Edit(
        "compile-error", "eight_whole_rows",
        {"triton.cdiv(n, 32) * triton.cdiv(m, 64),":
         "triton.cdiv(n, 8),",
         "ROWS=32, COLUMNS=64":
         "ROWS=8, COLUMNS=triton.next_power_of_2(m)"},
        "A tile has at most 2²⁰ elements.",
    ),
)
