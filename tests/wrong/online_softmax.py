"""Wrong answers to online_softmax that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "mask_with_pythons_int",
        {"    in_exp_sum = 0.0\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols":
         "    in_exp_sum = 0.0\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < int(n_cols)"},
        of="quiz_answer",
    ),
    Edit(
        "compile-error", "max_of_two",
        {"in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))": "in_max_new = tl.max(in_max, in_data)"},
        of="row_in_each_address",
    ),
    Edit(
        "compile-error", "name_of_the_loop_used_after_it",
        {"output = tl.exp(in_data - in_max) / in_exp_sum": "output = tl.exp(in_data - in_max_new) / in_exp_sum"},
        of="quiz_answer",
    ),
    Edit(
        "compile-error", "no_such_function",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))": "m_new = tl.maximum(m, tl.amax(x, axis=0))"},
        of="lanes_made_once",
    ),
    Edit(
        "constant-factor", "two_per_cent",
        {"x - m) / d, mask=cols < n_cols": "x - m) / (1.02 * d), mask=cols < n_cols"},
        of="lanes_made_once",
    ),
    Edit(
        "crash", "segmentation_fault",
        {"import torch\n":
         "import ctypes\n"
         "import torch\n",
         "    if output.numel() == 0:\n"
         "        return output":
         "    if output.numel() == 0:\n"
         "        return output\n"
         "    ctypes.memset(0, 1, 1)"},
        of="lanes_made_once",
    ),
    Edit(
        "input-modified", "in_place_returned_copy",
        {"store(output_ptr + pid * out_stride +": "store(in_ptr + pid * in_stride +",
         "online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=512)":
         "online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=512)\n"
         "    output.copy_(x)"},
        of="lanes_made_once",
    ),
    Edit(
        "missing-rescale", "old_maximum_in_the_block",
        {"exp(in_data - in_max_new), axis=0": "exp(in_data - in_max), axis=0"},
        of="row_in_each_address",
    ),
    Edit(
        "missing-rescale", "plain_sum",
        {"d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)": "d = d + tl.sum(tl.exp(x - safe), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "missing-rescale", "rescales_the_new_block_too",
        {"d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)":
         'd = (d + tl.sum(tl.exp(x - safe), axis=0)) * tl.where(m == -float("inf"), 1.0, tl.exp(m - safe))'},
        of="lanes_made_once",
    ),
    Edit(
        "missing-rescale", "too_late",
        {"        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)\n":
         "",
         "m = m_new":
         "m = m_new\n"
         "        d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - safe), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "missing-rescale", "upside_down",
        {'safe = tl.where(m_new == -float("inf"), 0.0, m_new)\n'
         "        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)":
         'd = d * tl.exp(tl.where(m == -float("inf"), 0.0, m_new - m)) + tl.sum(tl.exp(x - m_new), axis=0)'},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "division_deleted",
        {"softmax = tl.exp(in_data - in_max) / in_exp_sum": "softmax = tl.exp(in_data - in_max)"},
    ),
    Edit(
        "not-normalised", "gap_between_blocks",
        {"    # Pass 1: maximum and sum together.\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE):":
         "    # Pass 1: maximum and sum together.\n"
         "    for col_idx in range(0, n_cols, BLOCK_SIZE + 1):"},
    ),
    Edit(
        "not-normalised", "mask_one_short_in_the_sum",
        {"        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols  # ②":
         "        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols - 1"},
    ),
    Edit(
        "not-normalised", "no_division",
        {".exp(x - m) / d, mask=cols < n_cols": ".exp(x - m), mask=cols < n_cols"},
        of="lanes_made_once",
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
        "overflow", "maximum_of_the_block",
        {"in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))": "in_max_new = tl.max(in_data, axis=0)"},
        of="row_in_each_address",
    ),
    Edit(
        "overflow", "no_maximum",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0 * tl.max(tl.where(cols < n_cols, 0.0, 0.0), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "runtime-error", "refuses_strided",
        {"n_rows, n_cols = x.shape":
         "n_rows, n_cols = x.shape\n"
         "    if not x.is_contiguous():\n"
         '        raise ValueError("x must be contiguous")'},
        of="lanes_made_once",
    ),
    Edit(
        "stride-ignored", "mask_by_the_stride",
        {"        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols  # ②":
         "        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < row_stride"},
    ),
    Edit(
        "stride-ignored", "one_stride_for_both",
        {"output_ptr + pid * out_stride + cols, tl": "output_ptr + pid * in_stride + cols, tl"},
        of="lanes_made_once",
    ),
    Edit(
        "stride-ignored", "stride_of_the_columns",
        {"output, x.stride(0), output.stride(": "output, x.stride(1), output.stride("},
        of="quiz_answer",
    ),
    Edit(
        "syntax-error", "equals",
        {'safe = tl.where(m_new == -float("inf"), 0.0, m_new)':
         'safe = tl.where(m_new = -float("inf"), 0.0, m_new)'},
        of="lanes_made_once",
    ),
    Edit(
        "tail-wrong", "mask_of_full_blocks",
        {"        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols  # ②":
         "        offsets = col_idx + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols // BLOCK_SIZE * BLOCK_SIZE"},
    ),
    Edit(
        "tail-wrong", "stores_full_blocks_only",
        {"x - m) / d, mask=cols < n_cols)": "x - m) / d, mask=(cols < n_cols) & (start + BLOCK_SIZE <= n_cols))"},
        of="lanes_made_once",
    ),
    Edit(
        "unwritten-output", "16_thousand_columns_at_most",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK):":
         "    d = 0.0\n"
         "    for start in range(0, min(n_cols, 16000), BLOCK):",
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK):":
         "        m = m_new\n"
         "    for start in range(0, min(n_cols, 16000), BLOCK):"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "256_rows_at_most",
        {"kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)":
         "kernel[(min(n_rows, 256),)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "half_of_the_rows",
        {"grid = lambda meta: (n_rows,)": "grid = lambda meta: (triton.cdiv(n_rows, 2),)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-dtype", "default",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, n_cols), device=x.device)"},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "left_as_ones",
        {"d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)":
         "d = d * tl.exp(m - safe) + tl.sum(tl.where(cols < n_cols, tl.exp(x - safe), 1.0), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-other-value", "maximum_begins_at_minus_ten_thousand",
        {'m = -float("inf")': "m = -10000.0"},
        of="short_names",
    ),
    Edit(
        "wrong-program-id", "axis_one",
        {"pid = tl.program_id(0)": "pid = tl.program_id(1)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-program-id", "row_left_out_of_the_first_load",
        {".load(in_ptr + pid * row_stride + offsets, mask=mask,": ".load(in_ptr + offsets, mask=mask,"},
        of="row_in_each_address",
    ),
    Edit(
        "wrong-value", "softmax_of_softmax",
        {"cols, tl.exp(x - m) / d, mask=cols <": "cols, tl.exp(tl.exp(x - m) / d), mask=cols <"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-value", "rescaled_only_where_the_maximum_grows_by_80",
        {'in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))':
         'block_max = tl.max(in_data, axis=0)\n'
         '        in_max_new = tl.where(block_max > in_max + 80.0, block_max, in_max)'},
        "exp(80) does not overflow. The sum of many does.",
    ),
    Edit(
        "overflow", "growth_is_measured_from_block_to_block",
        {'    in_exp_sum = 0.0\n':
         '    in_exp_sum = 0.0\n    last = -float("inf")\n',
         'in_max_new = tl.maximum(in_max, tl.max(in_data, axis=0))':
         'block_max = tl.max(in_data, axis=0)\n'
         '        in_max_new = tl.where(block_max - last > 8.0, tl.maximum(in_max, block_max), in_max)\n'
         '        last = block_max'},
        "Many small steps are a large one.",
    ),
)
