"""Wrong answers to transpose that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "not-attempted", "stored_as_it_is",
        {"offsets = columns[None, :] * n + rows[:, None]":
         "offsets = rows[:, None] * m + columns[None, :]"},
        "A copy.",
    ),
    Edit(
        "out-of-bounds-store", "stride_of_m",
        {"offsets = columns[None, :] * n + rows[:, None]":
         "offsets = columns[None, :] * m + rows[:, None]"},
        "Rows of the output have n elements.",
    ),
    Edit(
        "stride-ignored", "rows_of_m",
        {"rows[:, None] * row_stride + columns":
         "rows[:, None] * m + columns"},
    ),
    Edit(
        "compile-error", "offsets_turned_round",
        {"offsets = columns[None, :] * n + rows[:, None]":
         "offsets = columns[:, None] * n + rows[None, :]",
         "ROWS=32, COLUMNS=32":
         "ROWS=32, COLUMNS=64",
         "triton.cdiv(m, 32),)":
         "triton.cdiv(m, 64),)"},
        "Offsets of another shape than the tile.",
    ),
    Edit(
        "relies-on-masked-lanes", "square_tiles_hide_it",
        {"offsets = columns[None, :] * n + rows[:, None]":
         "offsets = columns[:, None] * n + rows[None, :]",
         "tl.store(output_ptr + offsets, tile, mask=mask)":
         "tl.store(output_ptr + offsets, tile, mask=(columns[:, None] < m) & (rows[None, :] < n))"},
        "Each tile lands in its place, and is not turned round.",
    ),
    Edit(
        "no-triton-kernel", "view",
        {"    transpose_kernel[grid](x, output, x.stride(0), n, m, ROWS=32, COLUMNS=32)\n"
         "    return output":
         "    return x.t().contiguous()"},
    ),
    Edit(
        "wrong-shape", "shape_of_x",
        {"torch.empty((m, n), dtype":
         "torch.empty((n, m), dtype"},
    ),
    Edit(
        "tail-wrong", "grid_rounded_down",
        {"triton.cdiv(n, 32) * triton.cdiv(m, 32)":
         "triton.cdiv(n, 32) * (m // 32)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"rows[:, None] * row_stride + columns[None, :], mask=mask)":
         "rows[:, None] * row_stride + columns[None, :])"},
    ),
    Edit(
        "unwritten-output", "first_column_of_tiles",
        {"grid = (triton.cdiv(n, 32) * triton.cdiv(m, 32),)":
         "grid = (triton.cdiv(n, 32),)"},
    ),
    Edit(
        "not-contiguous", "not_contiguous_on_purpose",
        {"torch.empty((m, n), dtype=x.dtype, device=x.device)":
         "torch.empty((n, m), dtype=x.dtype, device=x.device).t()"},
        "The output has the strides of x.",
    ),
    Edit(
        "unwritten-output", "at_most_64_tiles_down",
        {"(triton.cdiv(n, 32) * triton.cdiv(m, 32),)":
         "(min(triton.cdiv(n, 32), 64) * triton.cdiv(m, 32),)"},
        "The grid ends before the rows do.",
    ),
    Edit(
        "runtime-error", "rows_on_axis_y",
        {"pid // tiles_across * ROWS":
         "tl.program_id(1) * ROWS",
         "pid % tiles_across * COLUMNS":
         "pid * COLUMNS",
         "grid = (triton.cdiv(n, 32) * triton.cdiv(m, 32),)":
         "grid = (triton.cdiv(m, 32), n)",
         "ROWS=32, COLUMNS=32":
         "ROWS=1, COLUMNS=32"},
        "The second axis of a grid ends at 65,535.",
    ),
    Edit(
        "no-triton-kernel", "one_column_is_given_back",
        {'    n, m = x.shape\n':
         '    n, m = x.shape\n    if m == 1 and n > 1 and x.is_contiguous():\n        return x.view(1, n)\n'},
        thought='The same numbers in the same order.',
    ),
    Edit(
        "out-of-memory", "large_tiles_for_large_matrices",
        {'    grid = (triton.cdiv(n, 32) * triton.cdiv(m, 32),)\n':
         '    side, warps = (32, 4) if min(n, m) < 2048 else (256, 8)\n'
         '    grid = (triton.cdiv(n, side) * triton.cdiv(m, side),)\n',
         'tl.store(output_ptr + offsets, tile, mask=mask)':
         'tl.store(output_ptr + tl.trans(offsets), tl.trans(tile), mask=tl.trans(mask))',
         'ROWS=32, COLUMNS=32':
         'ROWS=side, COLUMNS=side, num_warps=warps'},
        "Tiles that are turned lie in shared memory.",
    ),
)
