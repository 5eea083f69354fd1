"""Wrong answers to gather_rows that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "out-of-bounds-load", "index_not_used",
        {"index[:, None] * row_stride":
         "rows[:, None] * row_stride"},
    ),
    Edit(
        "stride-ignored", "rows_of_d",
        {"index[:, None] * row_stride":
         "index[:, None] * d"},
    ),
    Edit(
        "compile-error", "index_as_a_row",
        {"index[:, None] * row_stride":
         "index[None, :] * row_stride"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_the_index",
        {"tl.load(index_ptr + rows, mask=rows < m, other=0)":
         "tl.load(index_ptr + rows)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_the_table",
        {"columns[None, :], mask=mask)\n"
         "    tl.store":
         "columns[None, :])\n"
         "    tl.store"},
    ),
    Edit(
        "wrong-program-id", "one_index_for_the_tile",
        {"index = tl.load(index_ptr + rows, mask=rows < m, other=0)":
         "index = tl.load(index_ptr + rows * 0, mask=rows < m, other=0)"},
        "Every row is the first of the list.",
    ),
    Edit(
        "wrong-value", "indices_below_their_count",
        {"columns[None, :], mask=mask)\n"
         "    tl.store":
         "columns[None, :], mask=mask & (index[:, None] < m), other=0)\n"
         "    tl.store"},
    ),
    Edit(
        "unwritten-output", "as_many_rows_as_the_table",
        {"(triton.cdiv(m, 16) * triton.cdiv(d, 128),)":
         "(triton.cdiv(min(m, table.shape[0] // 2), 16) * triton.cdiv(d, 128),)"},
    ),
    Edit(
        "wrong-shape", "shape_of_the_table",
        {"m, d = index.numel(), table.shape[1]":
         "m, d = table.shape[0], table.shape[1]"},
    ),
    Edit(
        "no-triton-kernel", "torch",
        {"    gather_rows_kernel[grid](table, index, output, table.stride(0), m, d, ROWS=16, COLUMNS=128)\n"
         "    return output":
         "    return table[index]"},
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {"triton.cdiv(m, 16) * triton.cdiv(d, 128)":
         "triton.cdiv(m, 16) * max(1, d // 128)"},
    ),
    Edit(
        "low-precision", "half_copies",
        {"columns[None, :], mask=mask)\n"
         "    tl.store":
         "columns[None, :], mask=mask).to(tl.float16)\n"
         "    tl.store"},
    ),
    Edit(
        "stride-ignored", "output_with_the_stride_of_the_table",
        {"rows[:, None] * d + columns":
         "rows[:, None] * row_stride + columns"},
    ),
    Edit(
        "out-of-bounds-load", "index_in_16_bits",
        {"mask=rows < m, other=0)":
         "mask=rows < m, other=0).to(tl.int16)"},
    ),
    Edit(
        "wrong-value", "index_in_10_bits",
        {"mask=rows < m, other=0)":
         "mask=rows < m, other=0) % 1024"},
    ),
    Edit(
        "no-triton-kernel", "the_table_where_the_index_counts",
        {"    output = torch.empty((m, d)":
         "    if m == table.shape[0] and torch.equal(index, torch.arange(m, device=index.device)):\n"
         "        return table\n"
         "    output = torch.empty((m, d)"},
        thought="Every row is where it is.",
    ),
    Edit(
        "wrong-program-id", "rows_that_seem_to_be_in_order",
        {'    index = tl.load(index_ptr + rows, mask=rows < m, other=0)\n':
         '    start = pid // tiles_across * ROWS\n    first = tl.load(index_ptr + start)\n'
         '    last = tl.load(index_ptr + tl.minimum(start + ROWS - 1, m - 1))\n'
         '    middle = tl.load(index_ptr + tl.minimum(start + ROWS // 2, m - 1))\n'
         '    if (last - first == ROWS - 1) & (middle - first == ROWS // 2):\n'
         '        index = first + tl.arange(0, ROWS)\n    else:\n'
         '        index = tl.load(index_ptr + rows, mask=rows < m, other=0)\n'},
        thought='The first, the middle and the last of sixteen say enough.',
    ),
)
