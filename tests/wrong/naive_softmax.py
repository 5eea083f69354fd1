"""Wrong answers to naive_softmax that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "axis_one",
        {"row_max = tl.maximum(row_max, tl.max(block, axis=0))":
         "row_max = tl.maximum(row_max, tl.max(block, axis=1))"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "compile-error", "helper_without_jit",
        {"@triton.jit":
         "def largest(x):\n"
         "    return tl.max(x, axis=0)\n"
         "@triton.jit",
         "row_max = tl.maximum(row_max, tl.max(x, axis=0))": "row_max = tl.maximum(row_max, largest(x))"},
        of="mask_with_a_name",
    ),
    Edit(
        "compile-error", "method_with_dim",
        {"row_max = tl.maximum(row_max, tl.max(block, axis=0))": "row_max = tl.maximum(row_max, block.max(dim=0))"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "compile-error", "python_float_of_the_sum",
        {"row_sum = 0.0": "lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)",
         "row_sum += tl.sum(tl.exp(block - row_max), axis=0)":
         "lane_sum += tl.exp(block - row_max)\n"
         "    row_sum = tl.sum(lane_sum, axis=0)",
         "softmax = tl.exp(block - row_max) / row_sum": "softmax = tl.exp(block - row_max) / float(row_sum)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "compile-error", "python_math",
        {"import torch\n":
         "import math\n"
         "import torch\n",
         "row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.sum(math.exp(x - row_max), axis=0)"},
        of="three_short_passes",
    ),
    Edit(
        "compile-error", "return_in_a_loop",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):":
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):\n"
         "        if start >= n_cols:\n"
         "            return"},
        of="mask_with_a_name",
    ),
    Edit(
        "compile-error", "shape_of_a_variable",
        {"row_sum = 0.0": "lane_sum = tl.zeros((n_cols,), tl.float32)",
         "row_sum += tl.sum(tl.exp(block - row_max), axis=0)":
         "lane_sum += tl.exp(block - row_max)\n"
         "    row_sum = tl.sum(lane_sum, axis=0)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "compile-error", "softmax_with_axis",
        {"softmax = tl.exp(block - row_max) / row_sum": "softmax = tl.softmax(block, axis=0)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "compile-error", "stride_in_the_kernel",
        {"x_row = x_ptr + row * x_stride": "x_row = x_ptr + row * x_ptr.stride(0)"},
        of="mask_with_a_name",
    ),
    Edit(
        "compile-error", "sum_becomes_a_block",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.exp(x - row_max)",
         "tl.store(y_row + cols, tl.exp(x - row_max) / row_sum, mask=mask)":
         "tl.store(y_row + cols, tl.exp(x - row_max) / tl.sum(row_sum, axis=0), mask=mask)"},
        of="mask_with_a_name",
    ),
    Edit(
        "compile-error", "sum_begins_as_an_integer",
        {"row_sum = 0.0": "row_sum = 0"},
        of="mask_with_a_name",
    ),
    Edit(
        "compile-error", "values_of_the_maximum",
        {"row_max = tl.maximum(row_max, tl.max(block, axis=0))":
         "row_max = tl.maximum(row_max, block.max(0).values)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "constant-factor", "twice",
        {"tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, 2.0 * tl.exp(x - row_max) / row_sum, mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "input-modified", "in_place",
        {"out_row = output_ptr + row * out_stride": "out_row = in_row",
         "return output": "return x"},
        of="three_short_passes",
    ),
    Edit(
        "low-precision", "exponents_of_the_sum",
        {"    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = start + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols\n"
         '        block = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)':
         "    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = start + tl.arange(0, BLOCK_SIZE)\n"
         "        mask = offsets < n_cols\n"
         "        block = tl.load(in_row + offsets, mask=mask, other=-float('inf')).to(tl.bfloat16)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "low-precision", "half_lanes",
        {"row_sum = 0.0": "lanes = tl.zeros((BLOCK_SIZE,), dtype=tl.float16)",
         "row_sum += tl.sum(tl.exp(x - row_max), axis=0)":
         "lanes += tl.exp(x - row_max).to(tl.float16)\n"
         "    row_sum = tl.sum(lanes, axis=0).to(tl.float32)"},
        of="three_short_passes",
    ),
    Edit(
        "nan", "maximum_begins_at_infinity",
        {'row_max = -float("inf")': 'row_max = float("inf")'},
        of="three_short_passes",
    ),
    Edit(
        "nan", "maximum_of_full_blocks",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):":
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols // BLOCK_SIZE * BLOCK_SIZE, BLOCK_SIZE):"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "not-normalised", "a_small_number_in_the_sum",
        {"softmax = tl.exp(block - row_max) / row_sum\n"
         "        tl.store(output_row + offsets, softmax, mask=mask)":
         "tl.store(output_row + offsets, tl.exp(block - row_max) / (row_sum + 1e-3), mask=mask)"},
    ),
    Edit(
        "not-normalised", "first_block_in_each_round",
        {"    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = start + tl.arange(0, BLOCK_SIZE)":
         "    lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        offsets = tl.arange(0, BLOCK_SIZE)"},
    ),
    Edit(
        "not-normalised", "no_division",
        {"tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, tl.exp(x - row_max), mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "not-normalised", "only_the_last_block",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum = tl.sum(tl.exp(x - row_max), axis=0)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-value", "sum_without_exp",
        {"row_sum = 0.0": "lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)",
         "row_sum += tl.sum(tl.exp(block - row_max), axis=0)":
         "lane_sum += block - row_max\n"
         "    row_sum = tl.sum(lane_sum, axis=0)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "not-normalised", "sum_without_the_maximum",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.sum(tl.exp(x), axis=0)"},
        of="three_short_passes",
    ),
    Edit(
        "out-of-bounds-load", "no_mask_in_the_first_pass",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         '        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)':
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         "        x = tl.load(in_row + cols).to(tl.float32)"},
        of="three_short_passes",
    ),
    Edit(
        "out-of-bounds-store", "no_mask",
        {"tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, tl.exp(x - row_max) / row_sum)"},
        of="three_short_passes",
    ),
    Edit(
        "out-of-memory", "outer_product",
        {"n_rows, n_cols = x.shape":
         "n_rows, n_cols = x.shape\n"
         "    table = torch.zeros((1 << 18, 1 << 18), device=x.device)"},
        of="three_short_passes",
    ),
    Edit(
        "overflow", "gap_in_the_maximum",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):":
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE + 1):"},
    ),
    Edit(
        "overflow", "no_maximum",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.sum(tl.exp(x), axis=0)",
         "tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, tl.exp(x) / row_sum, mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "race", "read_back_in_larger_blocks",
        {"    tl.debug_barrier()\n":
         ""},
        of="barrier_before_larger_blocks",
    ),
    Edit(
        "race", "read_back_in_reverse",
        {"cols = start + tl.arange(0, READ)": "cols = start + READ - 1 - tl.arange(0, READ)"},
        of="numerators_read_back",
    ),
    Edit(
        "race", "rows_begin_one_apart",
        {"output_row = output_ptr + row * output_row_stride": "output_row = output_ptr + row"},
        of="one_sum_for_the_row",
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
        "runtime-error", "half_refused",
        {"n_rows, n_cols = x.shape":
         "n_rows, n_cols = x.shape\n"
         "    if x.dtype != torch.float32:\n"
         '        raise TypeError("float32 only")'},
        of="three_short_passes",
    ),
    Edit(
        "runtime-error", "refuses_ragged",
        {"n_rows, n_cols = x.shape":
         "n_rows, n_cols = x.shape\n"
         '    assert n_cols % 256 == 0, "n_cols must be a multiple of the block size"'},
        of="three_short_passes",
    ),
    Edit("runtime-error", "returns_nothing", {"    return y\n": ""}, of="mask_with_a_name"),
    Edit(
        "stride-ignored", "n_cols_for_both",
        {"in_row = in_ptr + row * in_stride\n"
         "    out_row = output_ptr + row * out_stride":
         "in_row = in_ptr + row * n_cols\n"
         "    out_row = output_ptr + row * n_cols"},
        of="three_short_passes",
    ),
    Edit(
        "stride-ignored", "stride_of_the_columns",
        {"output, x.stride(0), output.stride(": "output, x.stride(1), output.stride("},
        of="three_short_passes",
    ),
    Edit(
        "tail-wrong", "last_pass_rounded_down",
        {"        row_sum += tl.sum(tl.exp(x - row_max), axis=0)\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):":
         "        row_sum += tl.sum(tl.exp(x - row_max), axis=0)\n"
         "    for start in range(0, n_cols // BLOCK_SIZE * BLOCK_SIZE, BLOCK_SIZE):"},
        of="three_short_passes",
    ),
    Edit(
        "not-normalised", "sum_of_full_blocks",
        {"    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):":
         "    row_sum = 0.0\n"
         "    for start in range(0, n_cols // BLOCK_SIZE * BLOCK_SIZE, BLOCK_SIZE):"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "timeout", "loop_stands_still",
        {"    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):":
         "    row_sum = 0.0\n"
         "    start = 0\n"
         "    while start < n_cols:"},
        of="three_short_passes",
    ),
    Edit(
        "unwritten-output", "1024_rows_at_most",
        {"kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)":
         "kernel[(min(n_rows, 1024),)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "1280_columns_at_most",
        {'    m = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):":
         '    m = -float("inf")\n'
         "    for start in range(0, min(n_cols, 1280), BLOCK):",
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK):":
         "    d = 0.0\n"
         "    for start in range(0, min(n_cols, 1280), BLOCK):",
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
         "    for start in range(0, n_cols, BLOCK):":
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
         "    for start in range(0, min(n_cols, 1280), BLOCK):"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "16_thousand_columns_at_most",
        {'    m = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):":
         '    m = -float("inf")\n'
         "    for start in range(0, min(n_cols, 16000), BLOCK):",
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK):":
         "    d = 0.0\n"
         "    for start in range(0, min(n_cols, 16000), BLOCK):",
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
         "    for start in range(0, n_cols, BLOCK):":
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
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
        "unwritten-output", "64_rounds_at_most",
        {'    m = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):":
         '    m = -float("inf")\n'
         "    for start in range(0, min(n_cols, 64 * BLOCK), BLOCK):",
         "    d = 0.0\n"
         "    for start in range(0, n_cols, BLOCK):":
         "    d = 0.0\n"
         "    for start in range(0, min(n_cols, 64 * BLOCK), BLOCK):",
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
         "    for start in range(0, n_cols, BLOCK):":
         "        d += tl.sum(tl.exp(x - m), axis=0)\n"
         "    for start in range(0, min(n_cols, 64 * BLOCK), BLOCK):"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "64_rows_at_most",
        {"kernel[(n_rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)":
         "kernel[(min(n_rows, 64),)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=512)"},
        of="short_names",
    ),
    Edit(
        "unwritten-output", "no_store",
        {"tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "y = tl.exp(x - row_max) / row_sum"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-device", "meta",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         'output = torch.empty((n_rows, n_cols), dtype=x.dtype, device="meta")'},
        of="three_short_passes",
    ),
    Edit(
        "wrong-dtype", "float32",
        {"output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, n_cols), dtype=torch.float32, device=x.device)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-value", "infinity_in_the_sum",
        {'n_cols, other=-float("inf")).to(': "n_cols, other=float('inf')).to("},
    ),
    Edit(
        "wrong-other-value", "maximum_begins_at_minus_a_milliard",
        {'m = -float("inf")': "m = -1e9"},
        of="short_names",
    ),
    Edit(
        "wrong-other-value", "maximum_begins_at_minus_ten_thousand",
        {'m = -float("inf")': "m = -1e4"},
        of="short_names",
    ),
    Edit(
        "nan", "plus_infinity",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):\n"
         "        cols = start + tl.arange(0, BLOCK)\n"
         "        mask = cols < n_cols\n"
         '        x = tl.load(x_row + cols, mask=mask, other=-float("inf")).to(tl.float32)':
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK):\n"
         "        cols = start + tl.arange(0, BLOCK)\n"
         "        mask = cols < n_cols\n"
         '        x = tl.load(x_row + cols, mask=mask, other=float("inf")).to(tl.float32)'},
        of="mask_with_a_name",
    ),
    Edit(
        "wrong-other-value", "zero_in_the_maximum",
        {'    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         '        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)':
         '    row_max = -float("inf")\n'
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         "        x = tl.load(in_row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-other-value", "zero_in_the_sum",
        {"    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         '        x = tl.load(in_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)':
         "    row_sum = 0.0\n"
         "    for start in range(0, n_cols, BLOCK_SIZE):\n"
         "        cols = start + tl.arange(0, BLOCK_SIZE)\n"
         "        x = tl.load(in_row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-program-id", "always_row_zero",
        {"row = tl.program_id(0)": "row = 0"},
        of="three_short_passes",
    ),
    Edit("wrong-shape", "transposed", {"return output": "return output.t()"}, of="three_short_passes"),
    Edit(
        "wrong-value", "base_two",
        {"row_sum += tl.sum(tl.exp(x - row_max), axis=0)": "row_sum += tl.sum(tl.exp2(x - row_max), axis=0)",
         "tl.store(out_row + cols, tl.exp(x - row_max) / row_sum, mask=cols < n_cols)":
         "tl.store(out_row + cols, tl.exp2(x - row_max) / row_sum, mask=cols < n_cols)"},
        of="three_short_passes",
    ),
    Edit(
        "wrong-value", "copy_of_x",
        {"softmax = tl.exp(block - row_max) / row_sum": "softmax = block"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "wrong-value", "maximum_divided_by_the_sum",
        {"row_sum = 0.0": "lane_sum = tl.zeros((BLOCK_SIZE,), tl.float32)",
         "row_sum += tl.sum(tl.exp(block - row_max), axis=0)":
         "lane_sum += tl.exp(block - row_max)\n"
         "    row_sum = tl.sum(lane_sum, axis=0)",
         "softmax = tl.exp(block - row_max) / row_sum": "softmax = tl.exp(block - row_max / row_sum)"},
        of="one_sum_for_the_row",
    ),
    Edit(
        "runtime-error", "refuses_rows_that_overlap",
        {"    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)":
         "    if x.stride(0) < n_cols:\n"
         "        raise ValueError(\"rows overlap\")\n"
         "    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)"},
    ),
    Edit(
        "wrong-value", "a_row_of_minus_infinity_is_0",
        {"softmax = tl.exp(block - row_max) / row_sum":
         "softmax = tl.where(row_sum == row_sum, tl.exp(block - row_max) / row_sum, 0.0)"},
    ),
    Edit(
        "low-precision", "float16_before_the_store",
        {"n_cols, BLOCK_SIZE: tl.constexpr\n":
         "n_cols, BLOCK_SIZE: tl.constexpr, HALF: tl.constexpr\n",
         "        softmax = tl.exp(block - row_max) / row_sum\n":
         "        softmax = tl.exp(block - row_max) / row_sum\n"
         "        if HALF:  # back to 16 bits\n"
         "            softmax = softmax.to(tl.float16)\n",
         "n_cols, BLOCK_SIZE=256":
         "n_cols, BLOCK_SIZE=256, HALF=x.element_size() == 2"},
    ),
)
