"""Wrong answers to fused_softmax that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "block_is_the_row",
        {"BLOCK = triton.next_power_of_2(n_cols)": "BLOCK = n_cols"},
        of="four_programs",
    ),
    Edit(
        "compile-error", "numpy",
        {"import torch\n":
         "import numpy as np\n"
         "import torch\n",
         "numerator = tl.exp(x - tl.max(x, axis=0))": "numerator = np.exp(x - tl.max(x, axis=0))"},
        of="four_programs",
    ),
    Edit(
        "compile-error", "store_behind_the_loop",
        {'        in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf"))\n'
         "        numerator = tl.exp(in_data - tl.max(in_data, axis=0))\n"
         "        softmax = numerator / tl.sum(numerator, axis=0)\n"
         "        tl.store(output_row + offsets, softmax, mask=mask)":
         '    in_data = tl.load(in_row + offsets, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "    numerator = tl.exp(in_data - tl.max(in_data, axis=0))\n"
         "    tl.store(output_row + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)"},
        of="no_word_about_float32",
    ),
    Edit(
        "constant-factor", "percent",
        {"+ cols, numerator / denominator": "+ cols, 100.0 * numerator / denominator"},
        of="four_programs",
    ),
    Edit(
        "input-modified", "keeps_the_numerator",
        {"numerator = tl.exp(x - tl.max(x, axis=0))":
         "numerator = tl.exp(x - tl.max(x, axis=0))\n"
         "        tl.store(input_ptr + row * input_stride + cols, numerator, mask=mask)"},
        of="four_programs",
    ),
    Edit(
        "low-precision", "numerator_in_half",
        {"numerator = tl.exp(x - tl.max(x, axis=0))": "numerator = tl.exp(x - tl.max(x, axis=0)).to(tl.float16)"},
        of="four_programs",
    ),
    Edit(
        "nan", "clamped_at_80",
        {"numerator = tl.exp(in_data - tl.max(in_data, axis=0))\n"
         "        softmax = numerator / tl.sum(numerator, axis=0)\n"
         "        tl.store(output_row + offsets, softmax, mask=mask)":
         "numerator = tl.exp(tl.minimum(in_data, 80.0))\n"
         "        tl.store(output_row + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)"},
    ),
    Edit(
        "nan", "maximum_kept_from_row_to_row",
        {"mask = offsets < n_cols":
         "mask = offsets < n_cols\n"
         "    top = -float('inf')",
         "numerator = tl.exp(in_data - tl.max(in_data, axis=0))\n"
         "        softmax = numerator / tl.sum(numerator, axis=0)\n"
         "        tl.store(output_row + offsets, softmax, mask=mask)":
         "top = tl.maximum(top, tl.max(in_data, axis=0))\n"
         "        numerator = tl.exp(in_data - top)\n"
         "        tl.store(output_row + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)"},
    ),
    Edit(
        "nan", "zero_over_zero",
        {"cols, numerator / denominator, mask":
         "cols, (numerator - numerator) / (denominator - denominator), mask"},
        of="four_programs",
    ),
    Edit(
        "not-normalised", "no_division",
        {", numerator / denominator, mask": ", numerator, mask"},
        of="four_programs",
    ),
    Edit(
        "not-normalised", "sum_of_the_row",
        {"softmax = numerator / tl.sum(numerator, axis=0)\n"
         "        tl.store(output_row + offsets, softmax, mask=mask)":
         "tl.store(output_row + offsets, numerator / tl.sum(in_data, axis=0), mask=mask)"},
    ),
    Edit(
        "out-of-bounds-load", "where_instead_of_mask",
        {"x = tl.load(input_ptr + row * input_stride + cols, mask=mask, "
         'other=-float("inf")).to(tl.float32)':
         "x = tl.load(input_ptr + row * input_stride + cols).to(tl.float32)\n"
         '        x = tl.where(mask, x, -float("inf"))'},
        of="four_programs",
    ),
    Edit(
        "overflow", "no_maximum",
        {"numerator = tl.exp(x - tl.max(x, axis=0))": "numerator = tl.exp(x)"},
        of="four_programs",
    ),
    Edit(
        "race", "steps_by_one",
        {"for row in range(first, n_rows, step):": "for row in range(first, n_rows, 1):"},
        of="four_programs",
    ),
    Edit(
        "runtime-error", "missing_argument",
        {"stride(0), n_rows, n_cols, BLOCK=BLOCK": "stride(0), n_cols, BLOCK=BLOCK"},
        of="four_programs",
    ),
    Edit(
        "stride-ignored", "input_only",
        {"input_ptr + row * input_stride + cols, mask": "input_ptr + row * n_cols + cols, mask"},
        of="four_programs",
    ),
    Edit(
        "stride-ignored", "stride_of_the_columns",
        {"y, x, x.stride(0), y.stride(0),": "y, x, x.stride(1), y.stride(0),"},
        of="four_programs",
    ),
    Edit(
        "syntax-error", "for_without_colon",
        {"for row in range(first, n_rows, step):": "for row in range(first, n_rows, step)"},
        of="four_programs",
    ),
    Edit(
        "timeout", "host_waits",
        {"programs = min(n_rows, 4)":
         "programs = 8\n"
         "    while programs > n_rows:\n"
         "        programs = programs * 1"},
        of="four_programs",
    ),
    Edit(
        "unwritten-output", "1024_rows_at_most",
        {"for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):":
         "for row in range(tl.program_id(0), n_rows, n_rows):",
         "kernel[(min(n_rows, 8),)](x, y": "kernel[(min(n_rows, 1024),)](x, y"},
        of="eight_programs",
    ),
    Edit(
        "unwritten-output", "a_block_of_16384",
        {"block = triton.next_power_of_2(n_cols)": "block = 16384"},
        of="eight_programs",
    ),
    Edit(
        "unwritten-output", "block_shorter_than_the_row",
        {"BLOCK = triton.next_power_of_2(n_cols)": "BLOCK = 256"},
        of="four_programs",
    ),
    Edit(
        "unwritten-output", "no_loop_over_rows",
        {"for row in range(first, n_rows, step):":
         "row = first\n"
         "    if row < n_rows:"},
        of="four_programs",
    ),
    Edit(
        "unwritten-output", "sixteen_rounds_at_most",
        {"for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):":
         "for row in range(tl.program_id(0), min(n_rows, 16 * tl.num_programs(0)), tl.num_programs(0)):"},
        of="eight_programs",
    ),
    Edit(
        "wrong-device", "result_moved",
        {"    fused_kernel[(programs,)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=BLOCK)\n"
         "    return y":
         "    fused_kernel[(programs,)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=BLOCK)\n"
         '    return y.to("meta")'},
        of="four_programs",
    ),
    Edit(
        "wrong-other-value", "minus_1e9_in_masked_lanes",
        {'mask, other=-float("inf")).to(tl.': "mask, other=-1e9).to(tl."},
        of="eight_programs",
    ),
    Edit(
        "wrong-other-value", "zero",
        {'mask, other=-float("inf")).to(tl': "mask, other=0.0).to(tl"},
        of="four_programs",
    ),
    Edit(
        "wrong-shape", "flat",
        {"    fused_kernel[(programs,)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=BLOCK)\n"
         "    return y":
         "    fused_kernel[(programs,)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK=BLOCK)\n"
         "    return y.view(-1)"},
        of="four_programs",
    ),
    Edit(
        "wrong-value", "clamped_to_ten_thousand",
        {'x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)':
         'x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)\n'
         "        x = tl.where(mask, tl.minimum(tl.maximum(x, -10000.0), 10000.0), x)"},
        of="eight_programs",
    ),
    Edit(
        "wrong-value", "softmax_of_minus_x",
        {"x = tl.load(input_ptr + row * input_stride + cols, mask=mask, "
         'other=-float("inf")).to(tl.float32)':
         "x = tl.load(input_ptr + row * input_stride + cols, mask=mask, "
         'other=-float("inf")).to(tl.float32)\n'
         '        x = tl.where(mask, -x, -float("inf"))'},
        of="four_programs",
    ),
    Edit(
        "false-promise", "stride_promised_where_the_row_is_a_multiple_of_16",
        {"offsets = tl.arange(0, BLOCK_SIZE)\n":
         "offsets = tl.arange(0, BLOCK_SIZE)\n"
         "    if n_cols % 16 == 0:\n"
         "        row_stride = tl.multiple_of(row_stride, 16)\n"},
    ),
    Edit(
        "unwritten-output", "rows_of_a_program_kept_for_sizes_of_as_many_bits",
        {'    for row in tl.range(first, n_rows, step, num_stages=num_stages):':
         '    for row in tl.range(first * each, tl.minimum(n_rows, first * each + each), num_stages=num_stages):',
         '    n_cols,\n    BLOCK_SIZE':
         '    n_cols,\n    each,\n    BLOCK_SIZE',
         'def fused_softmax(x):':
         'rows_of_a_program = {}\n\n\ndef fused_softmax(x):',
         'x.stride(0), output.stride(0), n_rows, n_cols, **constants':
         'x.stride(0), output.stride(0), n_rows, n_cols, each, **constants',
         '        fused_softmax_kernel[(min(programs, n_rows),)](':
         '        each = rows_of_a_program.setdefault((n_cols, n_rows.bit_length()), triton.cdiv(n_rows, programs))\n'
         '        fused_softmax_kernel[(min(programs, n_rows),)]('},
    ),
)
