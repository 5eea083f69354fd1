"""Wrong answers to softmax_backward that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "no_sum",
        {"total = tl.sum(y * dy, axis=0)\n"
         "        dx = y * (dy - total)":
         "dx = y * dy"},
    ),
    Edit(
        "wrong-value", "sum_of_dy",
        {"total = tl.sum(y * dy, axis=0)":
         "total = tl.sum(dy, axis=0)"},
    ),
    Edit(
        "wrong-value", "mean",
        {"total = tl.sum(y * dy, axis=0)":
         "total = tl.sum(y * dy, axis=0) / n"},
    ),
    Edit(
        "constant-factor", "sign",
        {"total = tl.sum(y * dy, axis=0)\n"
         "        dx = y * (dy - total)":
         "total = tl.sum(y * dy, axis=0)\n"
         "        dx = y * (total - dy)"},
    ),
    Edit(
        "out-of-bounds-load", "one_stride_for_both",
        {"dy_ptr + row * dy_stride":
         "dy_ptr + row * y_stride"},
    ),
    Edit(
        "stride-ignored", "rows_of_n",
        {"y_ptr + row * y_stride, dy_ptr":
         "y_ptr + row * n, dy_ptr"},
    ),
    Edit(
        "stride-ignored", "output_with_the_stride_of_y",
        {"dx_ptr + row * n":
         "dx_ptr + row * y_stride"},
    ),
    Edit(
        "low-precision", "product_in_half",
        {"total = tl.sum(y * dy, axis=0)":
         "total = tl.sum((y * dy).to(tl.float16), axis=0)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"y = tl.load(y_row + columns, mask=columns < n, other=0.0)":
         "y = tl.load(y_row + columns)"},
    ),
    Edit(
        "unwritten-output", "half_of_the_rows",
        {"softmax_backward_kernel[(m,)]":
         "softmax_backward_kernel[((m + 1) // 2,)]"},
    ),
    Edit(
        "wrong-program-id", "first_row_only",
        {"row = tl.program_id(0).to(tl.int64)":
         "row = tl.program_id(0).to(tl.int64) * 0"},
    ),
    Edit(
        "out-of-bounds-load", "row_in_16_bits",
        {"row = tl.program_id(0).to(tl.int64)":
         "row = tl.program_id(0).to(tl.int16)"},
    ),
    Edit(
        "wrong-value", "the_sum_so_far",
        {"    for start in range(0, n_cols, BLOCK):\n"
         "        cols = start + tl.arange(0, BLOCK)\n"
         "        mask = cols < n_cols\n"
         "        y = tl.load(y_row + cols, mask=mask, other=0.0).to(tl.float32)\n"
         "        dy = tl.load(dy_row + cols, mask=mask, other=0.0).to(tl.float32)\n"
         "        tl.store":
         "        tl.store"},
        of="two_loops_reduced_in_each_round",
    ),
)
