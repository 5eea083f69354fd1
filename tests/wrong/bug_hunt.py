"""Wrong answers to bug_hunt that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "absolute_value_by_python",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, tl.where(x < 0, -a, a) * abs(x), mask=mask)"},
        of="two_strides",
    ),
    Edit(
        "compile-error", "float_of_a_number",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, float(a) * x, mask=mask)"},
        of="two_strides",
    ),
    Edit(
        "compile-error", "length_of_a_block",
        {"columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)":
         "columns = tl.arange(0, BLOCK)\n"
         "    columns += tl.program_id(axis=1) * len(columns)"},
        of="two_strides",
    ),
    Edit(
        "compile-error", "name_of_one_branch",
        {"mask = columns < n_cols":
         "if n_cols > 0:\n"
         "        mask = columns < n_cols"},
        of="two_strides",
    ),
    Edit(
        "compile-error", "other_order_of_arguments",
        {"def scale_kernel(x_ptr, output_ptr, a, xs, os, n_cols, BLOCK: tl.constexpr):":
         "def scale_kernel(x_ptr, output_ptr, a, n_cols, xs, os, BLOCK: tl.constexpr):",
         "output = torch.empty_strided(x.shape, (max(x.stride(0), n_cols), 1), dtype=x.dtype, device=x.device)":
         "output = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)",
         "scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[grid](x, output, x.stride(0), output.stride(0), a, n_cols, BLOCK=256)"},
        of="output_strided_like_x",
    ),
    Edit(
        "compile-error", "truth_of_a_number",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "if bool(a):\n"
         "        x = a * x\n"
         "    else:\n"
         "        x = 0.0 * x\n"
         "    tl.store(output_ptr + row * output_stride + columns, x, mask=mask)"},
        of="two_strides",
    ),
    Edit(
        "constant-factor", "negative",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, -a * x, mask=mask)"},
    ),
    Edit(
        "constant-factor", "one_per_mille",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, a * x * 1.001, mask=mask)"},
    ),
    Edit(
        "constant-factor", "factor_in_thousandths",
        {"scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[grid](x, output, round(a * 1000) / 1000, x.stride(0), output.stride(0), n_cols, "
         "BLOCK=256)"},
        of="axes_by_position",
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"x = tl.load(x_ptr + row * x_stride + columns, mask=mask)":
         "x = tl.load(x_ptr + row * x_stride + columns).to(tl.float32)",
         "128))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=128":
         "256))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256"},
        of="two_strides",
    ),
    Edit(
        "out-of-bounds-store", "no_mask",
        {"mask = columns < n_cols\n"
         "    x = tl.load(x_ptr + row * x_stride + columns, mask=mask)\n"
         "    tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n_cols).to(tl.float32)\n"
         "    tl.store(output_ptr + row * output_stride + columns, a * x)",
         "128))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=128":
         "256))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256"},
        of="two_strides",
    ),
    Edit(
        "overflow", "scaled_up_first",
        {"tl.store(output_ptr + row * output_stride + columns, x * a, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, (x.to(tl.float32) * 1000.0) * (a / "
         "1000.0), mask=mask)"},
        of="axes_by_position",
    ),
    Edit(
        "stride-ignored", "n_cols",
        {", x_stride, output_stride, n_cols": ", n_cols",
         "x = tl.load(x_ptr + row * x_stride + columns, mask=mask)\n"
         "    tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "x = tl.load(x_ptr + row * n_cols + columns, mask=mask).to(tl.float32)\n"
         "    tl.store(output_ptr + row * n_cols + columns, a * x, mask=mask)",
         "128))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=128":
         "256))](x, output, a, n_cols, BLOCK=256"},
        of="two_strides",
    ),
    Edit(
        "stride-ignored", "one_stride_for_both",
        {"x_stride, output_stride, n_cols": "n_cols, xs, os",
         "x = tl.load(x_ptr + row * x_stride + columns, mask=mask).to(tl.float32)\n"
         "    tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "x = tl.load(x_ptr + row * xs + columns, mask=mask).to(tl.float32)\n"
         "    tl.store(output_ptr + row * xs + columns, a * x, mask=mask)",
         "scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[grid](x, output, a, n_cols, x.stride(0), output.stride(0), BLOCK=256)"},
    ),
    Edit(
        "stride-ignored", "same_stride_for_the_output",
        {"a, x_stride, output_stride, n_cols": "a, stride, n_cols",
         "x = tl.load(x_ptr + row * x_stride + columns, mask=mask)\n"
         "    tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "x = tl.load(x_ptr + row * stride + columns, mask=mask).to(tl.float32)\n"
         "    tl.store(output_ptr + row * stride + columns, a * x, mask=mask)",
         "128))](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=128":
         "256))](x, output, a, x.stride(0), n_cols, BLOCK=256"},
        of="two_strides",
    ),
    Edit(
        "stride-ignored", "stride_of_the_columns",
        {"a, x.stride(0), output.stride(": "a, x.stride(1), output.stride("},
        of="two_strides",
    ),
    Edit(
        "tail-wrong", "rounded_down",
        {"grid = (n_rows, triton.cdiv(n_cols, 256))\n"
         "    scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[(n_rows, n_cols // 256)](x, output, a, x.stride(0), output.stride(0), n_cols, "
         "BLOCK=256)"},
    ),
    Edit(
        "unwritten-output", "1024_rows_at_most",
        {"grid = (n_rows, triton.cdiv(n_cols, 256))": "grid = (min(n_rows, 1024), triton.cdiv(n_cols, 256))"},
        of="axes_by_position",
    ),
    Edit(
        "unwritten-output", "64_blocks_at_most",
        {"grid = (n_rows, triton.cdiv(n_cols, 256))": "grid = (n_rows, min(triton.cdiv(n_cols, 256), 64))"},
        of="axes_by_position",
    ),
    Edit(
        "unwritten-output", "blocks_overlap",
        {"columns = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)":
         "columns = tl.program_id(axis=1) * (BLOCK - 1) + tl.arange(0, BLOCK)"},
    ),
    Edit(
        "unwritten-output", "eight_rows_at_most",
        {"grid = (n_rows, triton.cdiv(n_cols, 256))": "grid = (min(n_rows, 8), triton.cdiv(n_cols, 256))"},
        of="axes_by_position",
    ),
    Edit(
        "unwritten-output", "sixteen_blocks_at_most",
        {"grid = (n_rows, triton.cdiv(n_cols, 256))": "grid = (n_rows, min(triton.cdiv(n_cols, 256), 16))"},
        of="axes_by_position",
    ),
    Edit(
        "wrong-program-id", "row_from_the_wrong_axis",
        {"row = tl.program_id(axis=0)": "row = tl.program_id(axis=2)",
         "grid = (n_rows, triton.cdiv(n_cols, 256))\n"
         "    scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[(n_rows, triton.cdiv(n_cols, 256))](x, output, a, x.stride(0), output.stride(0), "
         "n_cols, BLOCK=256)"},
    ),
    Edit(
        "constant-factor", "a_as_an_integer",
        {"scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[grid](x, output, int(a), x.stride(0), output.stride(0), n_cols, BLOCK=256)"},
    ),
    Edit(
        "constant-factor", "a_squared",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, a * a * x, mask=mask)"},
    ),
    Edit(
        "wrong-value", "clamped",
        {"x = tl.load(x_ptr + row * x_stride + columns, mask=mask)":
         "x = tl.load(x_ptr + row * x_stride + columns, mask=mask)\n"
         "    x = tl.clamp(x.to(tl.float32), -10000.0, 10000.0)"},
        of="axes_by_position",
    ),
    Edit(
        "constant-factor", "constant_for_a",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, 2.5 * x, mask=mask)"},
    ),
    Edit(
        "wrong-value", "plus",
        {"tl.store(output_ptr + row * output_stride + columns, a * x, mask=mask)":
         "tl.store(output_ptr + row * output_stride + columns, a + x, mask=mask)",
         "grid = (n_rows, triton.cdiv(n_cols, 256))\n"
         "    scale_kernel[grid](x, output, a, x.stride(0), output.stride(0), n_cols, BLOCK=256)":
         "scale_kernel[(n_rows, triton.cdiv(n_cols, 256))](x, output, a, x.stride(0), output.stride(0), "
         "n_cols, BLOCK=256)"},
    ),
    Edit(
        "out-of-bounds-load", "row_stride_0_means_none",
        {"x.stride(0), output.stride(0)": "x.stride(0) or n_cols, output.stride(0)"},
        of="two_strides",
    ),
    Edit(
        "wrong-value", "infinities_are_clamped",
        {"columns, a * x, mask=mask)": "columns, a * tl.minimum(tl.maximum(x, -3e38), 3e38), mask=mask)"},
        of="two_strides",
    ),
    Edit(
        "out-of-bounds-load", "rows_that_overlap_are_thought_apart",
        {"a, x.stride(0), output": "a, max(x.stride(0), n_cols) if x.stride(0) else 0, output"},
    ),
)
