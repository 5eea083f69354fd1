"""Wrong answers to row_bias that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "stride-ignored", "rows_of_m",
        {"rows[:, None] * row_stride + columns[None, :], mask=mask)\n"
         "    b":
         "rows[:, None] * m + columns[None, :], mask=mask)\n"
         "    b"},
        "The rows of x were taken as contiguous.",
    ),
    Edit(
        "stride-ignored", "output_with_the_stride_of_x",
        {"tl.store(output_ptr + rows[:, None] * m":
         "tl.store(output_ptr + rows[:, None] * row_stride"},
        "One stride for both tensors.",
    ),
    Edit(
        "compile-error", "bias_for_rows",
        {"x + b[None, :]":
         "x + b[:, None]"},
        "b belongs to the columns: a column of 128 does not meet 16 rows.",
    ),
    Edit(
        "wrong-value", "bias_by_row",
        {"b = tl.load(b_ptr + columns, mask=columns < m)":
         "b = tl.load(b_ptr + rows % m, mask=rows < n)",
         "x + b[None, :]":
         "x + b[:, None]"},
        "b has a number for each row, the learner thought.",
    ),
    Edit(
        "wrong-value", "no_bias",
        {"x + b[None, :]":
         "x"},
        "b was loaded and not used.",
    ),
    Edit(
        "wrong-value", "minus",
        {"x + b[None, :]":
         "x - b[None, :]"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_b",
        {"tl.load(b_ptr + columns, mask=columns < m)":
         "tl.load(b_ptr + columns)"},
    ),
    Edit(
        "out-of-bounds-load", "mask_of_rows_only",
        {"mask = (rows[:, None] < n) & (columns[None, :] < m)":
         "mask = (rows[:, None] < n) & (columns[None, :] >= 0)"},
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {"triton.cdiv(n, 16) * triton.cdiv(m, 128)":
         "(n // 16) * triton.cdiv(m, 128)"},
    ),
    Edit(
        "unwritten-output", "pid_not_split",
        {"rows = pid // tiles_across * ROWS":
         "rows = pid * ROWS"},
        "Every program takes rows of its own.",
    ),
    Edit(
        "wrong-value", "first_part_of_b",
        {"tl.load(b_ptr + columns, mask=columns < m)":
         "tl.load(b_ptr + tl.arange(0, COLUMNS), mask=tl.arange(0, COLUMNS) < m)"},
        "Each tile takes the first part of b.",
    ),
    Edit(
        "no-triton-kernel", "torch",
        {"row_bias_kernel[grid](x, b, output, x.stride(0), n, m, ROWS=16, COLUMNS=128)\n"
         "    return output":
         "return x + b"},
    ),
    Edit(
        "unwritten-output", "tile_by_a_product_with_the_reciprocal",
        {"rows = pid // tiles_across * ROWS":
         "rows = (pid * (1.0 / tiles_across)).to(tl.int32) * ROWS"},
    ),
)
