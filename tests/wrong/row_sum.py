"""Wrong answers to row_sum that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "stride-ignored", "rows_of_n",
        {"row * row_stride":
         "row * n_cols"},
    ),
    Edit(
        "not-scaled", "mean",
        {"tl.sum(lane_sum, axis=0))":
         "tl.sum(lane_sum, axis=0) / n_cols)"},
    ),
    Edit(
        "wrong-value", "maximum",
        {"tl.sum(lane_sum, axis=0))":
         "tl.max(lane_sum, axis=0))"},
    ),
    Edit(
        "wrong-value", "sums_in_half",
        {"tl.zeros((BLOCK_SIZE,), tl.float32)":
         "tl.zeros((BLOCK_SIZE,), tl.float16)",
         "x.to(tl.float32)":
         "x.to(tl.float16)"},
    ),
    Edit(
        "relies-on-masked-lanes", "no_other",
        {", other=0.0":
         ""},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"mask=offsets < n_cols, other=0.0":
         ""},
    ),
    Edit(
        "unwritten-output", "half_of_the_rows",
        {"row_sum_kernel[(n_rows,)]":
         "row_sum_kernel[((n_rows + 1) // 2,)]"},
    ),
    Edit(
        "wrong-dtype", "dtype_of_x",
        {"dtype=torch.float32":
         "dtype=x.dtype"},
    ),
    Edit(
        "wrong-value", "first_block_only",
        {"range(0, n_cols, BLOCK_SIZE)":
         "range(0, min(n_cols, BLOCK_SIZE), BLOCK_SIZE)"},
        "Right up to 1024 columns.",
    ),
    Edit(
        "nan", "kahan_of_infinities",
        {'    for start':
         '    lost = tl.zeros((BLOCK_SIZE,), tl.float32)\n    for start',
         '        lane_sum += x.to(tl.float32)\n':
         '        term = x.to(tl.float32) - lost\n        new_sum = lane_sum + term\n'
         '        lost = (new_sum - lane_sum) - term\n        lane_sum = new_sum\n'},
        "inf - inf is NaN.",
    ),
)
