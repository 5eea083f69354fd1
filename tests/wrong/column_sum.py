"""Wrong answers to column_sum that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "sums_in_half",
        {"sums = tl.zeros((ROWS, COLUMNS), tl.float32)":
         "sums = tl.zeros((ROWS, COLUMNS), tl.float16)",
         "sums += tile.to(tl.float32)":
         "sums += tile.to(tl.float16)"},
    ),
    Edit(
        "compile-error", "axis_1",
        {"tl.sum(sums, axis=0)":
         "tl.sum(sums, axis=1)"},
        "ROWS sums are stored to COLUMNS places.",
    ),
    Edit(
        "stride-ignored", "rows_of_m",
        {"rows[:, None] * row_stride":
         "rows[:, None] * m"},
    ),
    Edit(
        "relies-on-masked-lanes", "no_other",
        {"mask=mask, other=0.0)":
         "mask=mask)"},
        "What does a masked lane hold?",
    ),
    Edit(
        "wrong-value", "other_of_a_maximum",
        {"mask=mask, other=0.0)":
         "mask=mask, other=1.0)"},
    ),
    Edit(
        "wrong-value", "only_the_last_tile",
        {"sums += tile.to(tl.float32)":
         "sums = tile.to(tl.float32)"},
        "Forgot to add.",
    ),
    Edit(
        "wrong-value", "first_tile_only",
        {"for start in range(0, n, ROWS):":
         "for start in range(0, min(n, ROWS), ROWS):"},
    ),
    Edit(
        "wrong-value", "last_rows_left_out",
        {"for start in range(0, n, ROWS):":
         "for start in range(0, n - ROWS + 1, ROWS):"},
    ),
    Edit(
        "not-scaled", "mean",
        {"tl.sum(sums, axis=0), mask":
         "tl.sum(sums, axis=0) / n, mask"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_of_rows",
        {"mask = (rows[:, None] < n) & (columns[None, :] < m)":
         "mask = (rows[:, None] >= 0) & (columns[None, :] < m)"},
    ),
    Edit(
        "wrong-dtype", "dtype_of_x",
        {"torch.empty(m, dtype=torch.float32, device=x.device)":
         "torch.empty(m, dtype=x.dtype, device=x.device)"},
    ),
    Edit(
        "unwritten-output", "half_of_the_programs",
        {"(triton.cdiv(m, 64),)":
         "(triton.cdiv(m, 128),)"},
    ),
    Edit(
        "wrong-value", "at_most_2048_rows",
        {"range(0, n, ROWS)":
         "range(0, min(n, 2048), ROWS)"},
    ),
)
