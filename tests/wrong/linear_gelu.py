"""Wrong answers to linear_gelu that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "without_gelu",
        {
            "y = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))":
            "y = z",
        },
    ),
    Edit(
        "wrong-value", "without_bias",
        {
            "z = acc + tl.load(b_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]":
            "z = acc",
        },
    ),
    Edit(
        "compile-error", "bias_for_rows",
        {
            ".to(tl.float32)[None, :]":
            ".to(tl.float32)[:, None]",
            "BLOCK_N=64, BLOCK_K":
            "BLOCK_N=32, BLOCK_K",
            "triton.cdiv(n, 64)":
            "triton.cdiv(n, 32)",
        },
    ),
    Edit(
        "wrong-value", "approximation_with_tanh",
        {
            "y = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))":
            "y = z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))",
        },
        "torch has approximate='tanh'.",
    ),
    Edit(
        "wrong-value", "relu",
        {
            "y = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))":
            "y = tl.maximum(z, 0.0)",
        },
    ),
    Edit(
        "wrong-value", "erf_of_z",
        {
            "tl.erf(z * 0.7071067811865476)":
            "tl.erf(z)",
        },
    ),
    Edit(
        "constant-factor", "without_half",
        {
            "0.5 * z *":
            "z *",
        },
    ),
    Edit(
        "low-precision", "tf32",
        {
            ", input_precision=\"ieee\"":
            "",
        },
    ),
    Edit(
        "low-precision", "epilogue_on_a_rounded_sum",
        {
            "z = acc +":
            "z = acc.to(tl.bfloat16).to(tl.float32) +",
        },
    ),
    Edit(
        "wrong-value", "w_not_transposed",
        {
            "along[:, None] + columns[None, :] * k":
            "along[:, None] * n + columns[None, :]",
            "w_ptrs += BLOCK_K":
            "w_ptrs += BLOCK_K * n",
        },
    ),
    Edit(
        "wrong-program-id", "group_from_row_0",
        {
            "(first_m + within % height) * BLOCK_M":
            "(within % height) * BLOCK_M",
        },
    ),
    Edit(
        "wrong-value", "persistent_sum_that_is_not_begun_again",
        {"    for tile in": "    acc = tl.zeros((M, N), tl.float32)\n    for tile in",
         "        acc = tl.zeros((M, N), tl.float32)\n        for start": "        for start"},
        of="persistent_with_libdevice",
    ),
)
