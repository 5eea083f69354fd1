"""Wrong answers to found_race that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "race", "not_repaired",
        {"row_max_kernel[(m,)]":
         "row_max_kernel[(m, 2)]"},
        "Two programs still share each row.",
    ),
    Edit(
        "wrong-value", "first_block_only",
        {"for start in range(0, n, BLOCK):":
         "for start in range(0, min(n, BLOCK), BLOCK):"},
    ),
    Edit(
        "wrong-value", "begins_with_zero",
        {'tl.full((BLOCK,), -float("inf"), tl.float32)':
         "tl.zeros((BLOCK,), tl.float32)"},
    ),
    Edit(
        "wrong-value", "other_is_zero",
        {'other=-float("inf")':
         "other=0.0"},
    ),
    Edit(
        "stride-ignored", "rows_of_n",
        {"row * row_stride + columns":
         "row * n + columns"},
    ),
    Edit(
        "wrong-value", "last_block_only",
        {"largest = tl.maximum(largest, x)":
         "largest = x"},
    ),
    Edit(
        "wrong-value", "minimum",
        {"tl.max(largest, axis=0)":
         "tl.min(largest, axis=0)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {'mask=columns < n, other=-float("inf")':
         ""},
    ),
    Edit(
        "relies-on-masked-lanes", "no_other",
        {', other=-float("inf")':
         ""},
    ),
    Edit(
        "wrong-dtype", "float32",
        {"torch.empty(m, dtype=x.dtype":
         "torch.empty(m, dtype=torch.float32"},
    ),
    Edit(
        "unwritten-output", "half_of_the_rows",
        {"row_max_kernel[(m,)]":
         "row_max_kernel[((m + 1) // 2,)]"},
    ),
    Edit(
        "wrong-value", "last_block_left_out",
        {"for start in range(0, n, BLOCK):":
         "for start in range(0, n - BLOCK + 1, BLOCK):"},
    ),
    Edit(
        "wrong-program-id", "first_row_only",
        {"row = tl.program_id(0).to(tl.int64)":
         "row = tl.program_id(0).to(tl.int64) * 0"},
    ),
    Edit(
        "wrong-value", "begins_at_minus_10000",
        {'tl.full((BLOCK,), -float("inf"), tl.float32)':
         "tl.full((BLOCK,), -1e4, tl.float32)"},
        "No number is lower, or so it seems.",
    ),
)
