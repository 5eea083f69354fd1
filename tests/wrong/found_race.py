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
    Edit(
        "false-promise", "rows_of_whole_vectors_are_aligned",
        {'output_ptr, row_stride, n, BLOCK: tl.constexpr):':
         'output_ptr, row_stride, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):',
         '    largest = tl.full(':
         '    row_ptr = x_ptr + row * row_stride\n    if WIDE:\n'
         '        row_ptr = tl.multiple_of(row_ptr, 16)\n    largest = tl.full(',
         'x_ptr + row * row_stride + columns, mask':
         'row_ptr + columns, mask',
         'x.stride(0), n, BLOCK=256)':
         'x.stride(0), n, WIDE=x.is_contiguous() and n * x.element_size() % 16 == 0, BLOCK=256)'},
        thought='A matrix may begin anywhere.',
    ),
    Edit(
        "race", "first_program_of_a_long_row_sets_the_start",
        {'    tl.store(output_ptr + row, tl.max(largest, axis=0))\n':
         '    tl.store(output_ptr + row, tl.max(largest, axis=0))\n\n\n@triton.jit\n'
         'def long_row_max_kernel(x_ptr, output_ptr, row_stride, n, PART: tl.constexpr, BLOCK: tl.constexpr):\n'
         '    row = tl.program_id(0).to(tl.int64)\n    first = tl.program_id(1) * PART\n'
         '    if first == 0:\n        tl.store(output_ptr + row, -float("inf"))\n'
         '    largest = tl.full((BLOCK,), -float("inf"), tl.float32)\n'
         '    for start in range(first, first + PART, BLOCK):\n'
         '        columns = start + tl.arange(0, BLOCK)\n'
         '        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n, other=-float("inf"))\n'
         '        largest = tl.maximum(largest, x.to(tl.float32))\n'
         '    tl.atomic_max(output_ptr + row, tl.max(largest, axis=0))\n',
         '        row_max_kernel[(m,)](x, output, x.stride(0), n, BLOCK=256)\n':
         '        if n <= 65536 or x.dtype != torch.float32:\n'
         '            row_max_kernel[(m,)](x, output, x.stride(0), n, BLOCK=256)\n        else:\n'
         '            grid = (m, triton.cdiv(n, 65536))\n'
         '            long_row_max_kernel[grid](x, output, x.stride(0), n, PART=65536, BLOCK=1024)\n'},
    ),
)
