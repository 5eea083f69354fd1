"""Wrong answers to add_2d that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "minus",
        {
            "x + y, mask=mask":
            "x - y, mask=mask",
        },
    ),
    Edit(
        "wrong-value", "x_twice",
        {
            "x + y, mask=mask":
            "x + x, mask=mask",
        },
    ),
    Edit(
        "out-of-bounds-load", "column_strides_of_1",
        {
            "rows * x_row + columns * x_column":
            "rows * x_row + columns",
        },
        "Columns are always neighbours.",
    ),
    Edit(
        "out-of-bounds-load", "strides_of_x_for_both",
        {
            "rows * y_row + columns * y_column":
            "rows * x_row + columns * x_column",
        },
    ),
    Edit(
        "out-of-bounds-load", "strides_exchanged",
        {
            "rows * x_row + columns * x_column":
            "rows * x_column + columns * x_row",
        },
    ),
    Edit(
        "out-of-bounds-load", "taken_as_contiguous",
        {
            "rows * x_row + columns * x_column":
            "rows * n + columns",
            "rows * y_row + columns * y_column":
            "rows * n + columns",
        },
    ),
    Edit(
        "not-contiguous", "strides_of_the_input",
        {
            "torch.empty((m, n), dtype=x.dtype, device=x.device)":
            "torch.empty_like(x)",
            "x_ptr, y_ptr, output_ptr,":
            "x_ptr, y_ptr, output_ptr, o_row, o_column,",
            "output_ptr + rows * n + columns":
            "output_ptr + rows * o_row + columns * o_column",
            "(x, y, output, *x.stride()":
            "(x, y, output, *output.stride(), *x.stride()",
        },
        "empty_like keeps the layout of a transposed matrix.",
    ),
    Edit(
        "out-of-bounds-load", "mask_of_rows_only",
        {
            "(rows < m) & (columns < n)":
            "rows < m",
        },
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {
            "triton.cdiv(m, 32) *":
            "(m // 32) *",
        },
    ),
    Edit(
        "wrong-value", "two_matrices_at_one_address_taken_for_one",
        {"def add_2d(x, y):\n":
         "def add_2d(x, y):\n"
         "    y = x if x.data_ptr() == y.data_ptr() else y\n"},
        thought="The second load finds everything in the cache.",
    ),
    Edit(
        "not-contiguous", "as_vectors_where_both_are_transposed",
        {"output = torch.empty((m, n), dtype=x.dtype, device=x.device)":
         "if x.stride() == y.stride() == (1, m):\n"
         "        return add_2d(x.t(), y.t()).t()\n"
         "    output = torch.empty((m, n), dtype=x.dtype, device=x.device)"},
    ),
)
