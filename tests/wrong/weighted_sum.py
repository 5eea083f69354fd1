"""Wrong answers to weighted_sum that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "no_weights",
        {"sums += p[:, None] * v":
         "sums += v"},
    ),
    Edit(
        "compile-error", "weights_for_columns",
        {"sums += p[:, None] * v":
         "sums += p[None, :] * v"},
    ),
    Edit(
        "wrong-value", "sums_in_half",
        {"sums = tl.zeros((ROWS, COLUMNS), tl.float32)":
         "sums = tl.zeros((ROWS, COLUMNS), tl.float16)",
         "sums += p[:, None] * v":
         "sums += (p[:, None] * v).to(tl.float16)"},
    ),
    Edit(
        "wrong-value", "last_tile_only",
        {"sums += p[:, None] * v":
         "sums = p[:, None] * v"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_p",
        {"tl.load(p_ptr + rows, mask=rows < t, other=0.0)":
         "tl.load(p_ptr + rows)"},
    ),
    Edit(
        "relies-on-masked-lanes", "no_other",
        {"mask=mask, other=0.0)":
         "mask=mask)"},
    ),
    Edit(
        "wrong-value", "first_rows_only",
        {"for start in range(0, t, ROWS):":
         "for start in range(0, min(t, ROWS), ROWS):"},
    ),
    Edit(
        "wrong-dtype", "dtype_of_v",
        {"torch.empty(d, dtype=torch.float32":
         "torch.empty(d, dtype=v.dtype"},
    ),
    Edit(
        "unwritten-output", "half_of_the_programs",
        {"triton.cdiv(d, 64)":
         "triton.cdiv(d, 128)"},
    ),
    Edit(
        "not-scaled", "mean",
        {"tl.sum(sums, axis=0), mask":
         "tl.sum(sums, axis=0) / t, mask"},
    ),
    Edit(
        "wrong-value", "at_most_2048_rows",
        {"range(0, t, ROWS)":
         "range(0, min(t, 2048), ROWS)"},
    ),
    Edit(
        "wrong-value", "tiles_whose_weights_add_up_to_0_are_skipped",
        {'        sums += p[:, None] * v\n':
         '        if tl.sum(p, axis=0) != 0.0:\n            sums += p[:, None] * v\n'},
        thought='Where no weight is, nothing has to be read.',
    ),
)
