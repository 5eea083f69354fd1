"""Wrong answers to online_softmax_masked that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "if_on_a_block",
        {'safe = tl.where(m_new == -float("inf"), 0.0, m_new)':
         'if x == -float("inf"):\n'
         "            safe = 0.0\n"
         "        else:\n"
         "            safe = m_new"},
        of="lanes_made_once",
    ),
    Edit(
        "compile-error", "lowest_number_of_float64",
        {'in_max = -float("inf")': "in_max = -3.4028235e38",
         'shift = tl.where(in_max_new == -float("inf"), 0.0, in_max_new)\n'
         "        in_exp_sum = in_exp_sum * tl.exp(in_max - shift) + tl.sum(tl.exp(in_data - shift), "
         "axis=0)":
         "in_exp_sum = in_exp_sum * tl.exp(in_max - in_max_new) + tl.sum(tl.exp(in_data - in_max_new), "
         "axis=0)"},
    ),
    Edit(
        "low-precision", "rounded_output",
        {"+ cols, tl.exp(x - m) / d, mask=": "+ cols, (tl.exp(x - m) / d).to(tl.bfloat16).to(tl.float32), mask="},
        of="lanes_made_once",
    ),
    Edit(
        "missing-rescale", "plain_sum",
        {"d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)": "d = d + tl.sum(tl.exp(x - safe), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "nan", "no_guard_for_masked_blocks",
        {'safe = tl.where(m_new == -float("inf"), 0.0, m_new)\n'
         "        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)":
         "d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)"},
        of="lanes_made_once",
    ),
    Edit("nan", "shift_kept_as_the_maximum", {"in_max = in_max_new": "in_max = shift"}),
    Edit(
        "no-triton-kernel", "kernel_result_dropped",
        {"    online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=512)\n"
         "    return output":
         "    online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=512)\n"
         "    return torch.nn.functional.softmax(x, dim=1)"},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "every_second_block_in_the_sum",
        {"    in_exp_sum = 0.0\n"
         "\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE):":
         "    in_exp_sum = 0.0\n"
         "\n"
         "    for col_idx in range(0, n_cols, 2 * BLOCK_SIZE):"},
    ),
    Edit(
        "not-normalised", "masked_as_zero",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)\n'
         '        x = tl.where((x == -float("inf")) & (cols < n_cols), 0.0, x)'},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "statistics_of_the_first_block",
        {"    in_exp_sum = 0.0\n"
         "\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE):":
         "    in_exp_sum = 0.0\n"
         "\n"
         "    for col_idx in range(0, BLOCK_SIZE, BLOCK_SIZE):"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols).to(tl.float32)"},
        of="lanes_made_once",
    ),
    Edit(
        "out-of-bounds-store", "block_end",
        {"x - m) / d, mask=cols < n_cols)": "x - m) / d, mask=cols < n_cols + 1)"},
        of="lanes_made_once",
    ),
    Edit(
        "overflow", "no_maximum",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0 * tl.max(tl.where(cols < n_cols, 0.0, 0.0), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "runtime-error", "one_dimension",
        {"n_rows, n_cols = x.shape": "n_rows, n_cols, _ = x.shape"},
        of="lanes_made_once",
    ),
    Edit(
        "unwritten-output", "64_rounds_at_most",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK):":
         "    d = 0.0\n"
         "    for start in range(0, min(n_cols, 64 * BLOCK), BLOCK):",
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK):":
         "        m = m_new\n"
         "    for start in range(0, min(n_cols, 64 * BLOCK), BLOCK):"},
        of="shift_of_the_maximum",
    ),
    Edit(
        "unwritten-output", "64_rows_at_most",
        {"kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)":
         "kernel[(min(n_rows, 64),)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)"},
        of="shift_of_the_maximum",
    ),
    Edit(
        "unwritten-output", "store_only_finite",
        {"x - m) / d, mask=cols < n_cols)": 'x - m) / d, mask=(cols < n_cols) & (x > -float("inf")))'},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-dtype", "default",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, n_cols), device=x.device)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-other-value", "minus_1e30_for_minus_infinity",
        {'m = -float("inf")': "m = -1e30"},
        of="shift_of_the_maximum",
    ),
    Edit(
        "wrong-other-value", "minus_ten_thousand_for_minus_infinity",
        {'m = -float("inf")': "m = -10000.0"},
        of="shift_of_the_maximum",
    ),
    Edit(
        "wrong-other-value", "zero_in_the_first_loop",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         "other=0.0).to(tl.float32)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-program-id", "left_out_of_the_pointers",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         '        x = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)',
         "x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)\n'
         "        tl.store(output_ptr + pid * out_stride + cols, tl.exp(x - m) / d, mask=cols < n_cols)":
         'x = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)\n'
         "        tl.store(output_ptr + cols, tl.exp(x - m) / d, mask=cols < n_cols)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-shape", "padded",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, triton.cdiv(n_cols, 512) * 512), dtype=x.dtype, device=x.device)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-value", "zeros_for_a_row_of_infinities",
        {"tl.store(output_row + offsets, tl.exp(in_data - in_max) / in_exp_sum, mask=mask)":
         "tl.store(output_row + offsets, tl.where(in_max == -float('inf'), 0.0, tl.exp(in_data - in_max) "
         "/ in_exp_sum), mask=mask)"},
    ),
)
