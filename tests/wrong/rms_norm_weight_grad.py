"""Wrong answers to rms_norm_weight_grad that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "no_rstd",
        {"sums += dy * x * rstd[:, None]":
         "sums += dy * x"},
    ),
    Edit(
        "wrong-value", "no_x",
        {"sums += dy * x * rstd[:, None]":
         "sums += dy * rstd[:, None]"},
    ),
    Edit(
        "compile-error", "rstd_for_columns",
        {"rstd[:, None]":
         "rstd[None, :]"},
    ),
    Edit(
        "out-of-bounds-load", "one_stride_for_both",
        {"rows[:, None] * dy_stride":
         "rows[:, None] * x_stride"},
    ),
    Edit(
        "wrong-value", "last_tile_only",
        {"sums += dy * x":
         "sums = dy * x"},
    ),
    Edit(
        "wrong-value", "first_part_only",
        {"(rows[:, None] < parts)":
         "(rows[:, None] < 1)"},
    ),
    Edit(
        "out-of-bounds-load", "parts_overlap_the_end",
        {"end = tl.minimum(first + part_rows, m)":
         "end = first + part_rows"},
    ),
    Edit(
        "wrong-value", "sums_in_half",
        {"m)\n    sums = tl.zeros((ROWS, COLUMNS), tl.float32)":
         "m)\n    sums = tl.zeros((ROWS, COLUMNS), tl.float16)",
         "sums += dy * x * rstd[:, None]":
         "sums += (dy * x * rstd[:, None]).to(tl.float16)"},
    ),
    Edit(
        "race", "parts_share_a_place",
        {"parts_ptr + part * n + columns":
         "parts_ptr + columns"},
    ),
    Edit(
        "no-triton-kernel", "merged_by_torch",
        {"    add_parts_kernel[(triton.cdiv(n, 32),)](sums, output, parts, n, ROWS=32, COLUMNS=32)\n"
         "    return output":
         "    return sums.sum(0)"},
    ),
    Edit(
        "race", "atomics",
        {"tl.store(parts_ptr + part * n + columns, tl.sum(sums, axis=0), mask=columns < n)":
         "tl.atomic_add(parts_ptr + columns, tl.sum(sums, axis=0), mask=columns < n)",
         "sums = torch.empty((parts, n)":
         "sums = torch.zeros((parts, n)"},
        "The bits change from call to call.",
    ),
)
