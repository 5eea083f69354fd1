"""Wrong answers to row_max_and_sum that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "missing-rescale", "no_rescale",
        {"s = s * tl.exp(m - m_new)":
         "s = s"},
    ),
    Edit(
        "wrong-value", "sum_of_x",
        {"tl.sum(tl.exp(x - m_new), axis=0)":
         "tl.sum(tl.where(offsets < n_cols, x, 0.0), axis=0)",
         "s * tl.exp(m - m_new)":
         "s"},
    ),
    Edit(
        "wrong-value", "changed_places",
        {"return maxima, sums":
         "return sums, maxima"},
    ),
    Edit(
        "wrong-value", "logarithm",
        {"tl.store(sum_ptr + row, s)":
         "tl.store(sum_ptr + row, tl.log(s))"},
    ),
    Edit(
        "wrong-value", "masked_as_0",
        {'other=-float("inf")':
         "other=0.0"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {'mask=offsets < n_cols, other=-float("inf")':
         ""},
    ),
    Edit(
        "unwritten-output", "sum_forgotten",
        {"    tl.store(sum_ptr + row, s)\n":
         ""},
    ),
    Edit(
        "overflow", "no_maximum",
        {"s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)":
         "s += tl.sum(tl.exp(x), axis=0)"},
    ),
    Edit(
        "nan", "old_maximum",
        {"tl.exp(x - m_new)":
         "tl.exp(x - m)",
         "    m = -float":
         "    m = -0.5 * float"},
    ),
    Edit(
        "wrong-shape", "one_output",
        {"return maxima, sums":
         "return maxima"},
    ),
    Edit(
        "wrong-program-id", "first_row_only",
        {"tl.program_id(0).to(tl.int64)":
         "tl.program_id(0).to(tl.int64) * 0"},
    ),
    Edit(
        "no-triton-kernel", "sum_in_torch",
        {"return maxima, sums":
         "return maxima, torch.exp(x.float() - maxima[:, None]).sum(1)"},
    ),
    Edit(
        "runtime-error", "rows_on_axis_y",
        {"row = tl.program_id(0)":
         "row = tl.program_id(1)",
         "[(n_rows,)]":
         "[(1, n_rows)]"},
        "The second axis of a grid ends at 65,535.",
    ),
    Edit(
        "compile-error", "many_warps_for_long_rows",
        {"BLOCK_SIZE=1024)":
         "BLOCK_SIZE=1024, num_warps=32 if n_cols > 20_000 else 4)"},
        "32 warps are as many as a program may have.",
    ),
)
