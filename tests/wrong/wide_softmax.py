"""Wrong answers to wide_softmax that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "break",
        {"m = m_new":
         "m = m_new\n"
         "        if start > n_cols:\n"
         "            break"},
        of="lanes_made_once",
    ),
    Edit(
        "compile-error", "empty_block",
        {'lane_max = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)':
         "lane_max = tl.empty((BLOCK_SIZE,), tl.float32)",
         'in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "        new_max = tl.maximum(lane_max, in_data)":
         'block = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "        new_max = tl.maximum(lane_max, block)",
         "lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - shift)":
         "lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(block - shift)"},
    ),
    Edit(
        "compile-error", "sum_is_a_number_or_a_block",
        {"total += tl.sum(tl.exp(x.to(tl.float32) - best), axis=0)\n"
         "    tl.store(sum_ptr + row, total)":
         "if start == 0:\n"
         "            total = tl.exp(x.to(tl.float32) - best)\n"
         "        else:\n"
         "            total += tl.exp(x.to(tl.float32) - best)\n"
         "    tl.store(sum_ptr + row, tl.sum(total, axis=0))"},
        of="three_kernels",
    ),
    Edit(
        "compile-error", "wrong_type_in_the_last_kernel",
        {"mask = cols < n_cols":
         "mask = cols < n_cols\n"
         "    shift = 0\n"
         "    if row > 0:\n"
         "        shift = 0.0",
         "y = tl.exp(x - tl.load(max_ptr + row)) / tl.load(sum_ptr + row)":
         "y = tl.exp(x - tl.load(max_ptr + row) + shift) / tl.load(sum_ptr + row)"},
        of="three_kernels",
    ),
    Edit(
        "constant-factor", "twice",
        {"tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, 2.0 * tl.exp(x - row_max) / row_sum, mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "crash", "kills_itself",
        {"import torch\n":
         "import os\n"
         "import signal\n"
         "import torch\n",
         "    if output.numel() == 0:\n"
         "        return output":
         "    if output.numel() == 0:\n"
         "        return output\n"
         "    os.kill(os.getpid(), signal.SIGSEGV)"},
        of="lanes_made_once",
    ),
    Edit(
        "input-modified", "in_place_returned_copy",
        {"store(output_ptr + pid * out_stride +": "store(in_ptr + pid * in_stride +",
         "online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=4096)":
         "online_kernel[grid](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=4096)\n"
         "    output.copy_(x)"},
        of="lanes_made_once",
    ),
    Edit(
        "low-precision", "bfloat16_lanes",
        {"row_sum = 0.0": "lanes = tl.zeros((BLOCK_SIZE,), dtype=tl.bfloat16)",
         "row_sum += tl.sum(tl.exp(x - row_max), axis=0)":
         "lanes += tl.exp(x - row_max).to(tl.bfloat16)\n"
         "    row_sum = tl.sum(lanes.to(tl.float32), axis=0)"},
        of="three_short_passes",
    ),
    Edit(
        "low-precision", "first_loop_in_half",
        {'in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)':
         "in_data = tl.load(in_row + offsets, mask=mask, other=-float('inf')).to(tl.float16)"},
    ),
    Edit(
        "low-precision", "half_sums_per_lane",
        {"lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - shift)":
         "lane_sum = (lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - "
         "shift)).to(tl.float16).to(tl.float32)"},
    ),
    Edit(
        "missing-rescale", "lanes_the_wrong_way_round",
        {"row_sum = tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0)":
         "row_sum = tl.sum(lane_sum * tl.exp(row_max - lane_max), axis=0)"},
    ),
    Edit(
        "missing-rescale", "plain_sum",
        {"d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)": "d = d + tl.sum(tl.exp(x - safe), axis=0)"},
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
        "nan", "a_chunk_of_minus_infinity",
        {'shift = tl.where(m == -float("inf"), 0.0, m)': "shift = m"},
        of="rows_split_over_programs",
    ),
    Edit(
        "nan", "lanes_that_saw_nothing",
        {'shift = tl.where(new_max == -float("inf"), 0.0, new_max)\n'
         "        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - shift)":
         "lane_sum = lane_sum * tl.exp(lane_max - new_max) + tl.exp(in_data - new_max)"},
    ),
    Edit(
        "nan", "maximum_never_assigned",
        {'in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "        new_max = tl.maximum(lane_max, in_data)":
         'block = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "        new_max = tl.maximum(lane_max, block)",
         "lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(in_data - shift)\n"
         "        lane_max = new_max":
         "lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.exp(block - shift)"},
    ),
    Edit(
        "nan", "no_guard_for_masked_blocks",
        {'safe = tl.where(m_new == -float("inf"), 0.0, m_new)\n'
         "        d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)":
         "d = d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "block_by_block",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))": "m_new = tl.max(x, axis=0)",
         "d = d * tl.exp(m - safe) + tl.sum(tl.exp(x - safe), axis=0)": "d = tl.sum(tl.exp(x - safe), axis=0)",
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)\n':
         "        m = m_new\n"},
        of="lanes_made_once",
    ),
    Edit(
        "not-normalised", "merges_eight_chunks",
        {"ds = tl.load(d_ptr + row * n_parts + parts, mask=parts < n_parts, other=0.0)":
         "ds = tl.load(d_ptr + row * n_parts + parts, mask=(parts < n_parts) & (parts < 8), other=0.0)"},
        of="rows_split_over_programs",
    ),
    Edit("not-normalised", "sum_begins_at_one", {"row_sum = 0.0": "row_sum = 1.0"}, of="three_short_passes"),
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
        "out-of-memory", "square_scratch",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((1 << 17, n_rows, 1 << 17), dtype=x.dtype, device=x.device)",
         "    if output.numel() == 0:\n"
         "        return output":
         "    if output.numel() == 0:\n"
         "        return output\n"
         "    output = output[0, :, :n_cols]"},
        of="lanes_made_once",
    ),
    Edit(
        "overflow", "no_maximum",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0 * tl.max(tl.where(cols < n_cols, 0.0, 0.0), axis=0)"},
        of="lanes_made_once",
    ),
    Edit(
        "race", "acquired_and_not_released",
        {'arrived = tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel")':
         'arrived = tl.atomic_add(arrived_ptr + row, 1, sem="acquire")'},
        of="last_program_merges",
    ),
    Edit(
        "race", "announced_before_stored",
        {'shift = tl.where(m == -float("inf"), 0.0, m)':
         'shift = tl.where(m == -float("inf"), 0.0, m)\n'
         "    arrived = tl.atomic_add(arrived_ptr + row, 1)",
         '    arrived = tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel")\n':
         ""},
        of="last_program_merges",
    ),
    Edit(
        "race", "relaxed_counter",
        {'arrived = tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel")':
         'arrived = tl.atomic_add(arrived_ptr + row, 1, sem="relaxed")'},
        of="last_program_merges",
    ),
    Edit(
        "relies-on-masked-lanes", "multiplied_by_the_mask",
        {'x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)\n'
         "        row_sum += tl.sum(tl.exp(x - row_max), axis=0)":
         "x = tl.load(in_row + cols, mask=cols < n_cols).to(tl.float32)\n"
         "        row_sum += tl.sum(tl.exp(x - row_max) * (cols < n_cols), axis=0)"},
        of="three_short_passes",
    ),
    Edit(
        "stride-ignored", "one_stride_for_both",
        {"output_ptr + pid * out_stride + cols, tl": "output_ptr + pid * in_stride + cols, tl"},
        of="lanes_made_once",
    ),
    Edit(
        "tail-wrong", "stores_full_blocks_only",
        {"x - m) / d, mask=cols < n_cols)": "x - m) / d, mask=(cols < n_cols) & (start + BLOCK_SIZE <= n_cols))"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-dtype", "default",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, n_cols), device=x.device)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-other-value", "chunks_merged_with_minus_ten_thousand",
        {'< n_parts, other=-float("inf"))': "< n_parts, other=-1e4)"},
        of="rows_split_over_programs",
    ),
    Edit(
        "wrong-other-value", "chunks_merged_with_zero",
        {'< n_parts, other=-float("inf"))': "< n_parts, other=0.0)"},
        of="rows_split_over_programs",
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
        "wrong-program-id", "reads_row_zero",
        {"    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         '        x = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)',
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         "        x = tl.load(in_ptr + pid * in_stride + cols, mask=cols < n_cols, "
         'other=-float("inf")).to(tl.float32)':
         "        m = m_new\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + lanes\n"
         '        x = tl.load(in_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)'},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-shape", "padded",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, triton.cdiv(n_cols, 512) * 512), dtype=x.dtype, device=x.device)"},
        of="lanes_made_once",
    ),
    Edit(
        "wrong-value", "base_two",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.sum(tl.exp2(x - row_max), axis=0)",
         "tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, tl.exp2(x - row_max) / row_sum, mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-value", "divides_the_wrong_way_round",
        {"def wide_softmax_kernel(\n"
         "    in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: tl.constexpr\n"
         "):":
         "def wide_kernel(in_ptr, output_ptr, row_stride, output_row_stride, n_cols, BLOCK_SIZE: "
         "tl.constexpr):",
         "mask = offsets < n_cols\n"
         '        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)':
         'in_data = tl.load(in_row + offsets, mask=offsets < n_cols, other=-float("inf")).to(tl.float32)',
         "tl.store(output_row + offsets, tl.exp(in_data - row_max) / row_sum, mask=mask)":
         "tl.store(output_row + offsets, row_sum / tl.exp(in_data - row_max), mask=mask)",
         "block_size = min(8192, triton.next_power_of_2(n_cols))":
         "block_size = min(4096, triton.next_power_of_2(n_cols))",
         "wide_softmax_kernel[(n_rows,)](\n"
         "            x, output, x.stride(0), output.stride(0), n_cols,\n"
         "            BLOCK_SIZE=block_size, num_warps=max(1, min(16, block_size // 256)),\n"
         "        )":
         "wide_kernel[(n_rows,)](x, output, x.stride(0), output.stride(0), n_cols, BLOCK_SIZE=block_size)"},
    ),
    Edit(
        "low-precision", "blocks_that_weigh_little",  # exp(-17) is less than 2^-24: many of them together are not
        {"+ tl.exp(in_data - shift)":
         "+ tl.where(tl.max(in_data, axis=0) > tl.max(new_max, axis=0) - 17.0, tl.exp(in_data - shift), 0.0)"},
    ),
)
