"""Wrong answers to matmul that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "low-precision", "tf32",
        {
            "acc = tl.dot(a, b, acc, input_precision=\"ieee\")":
            "acc = tl.dot(a, b, acc)",
        },
        "The default of tl.dot.",
    ),
    Edit(
        "low-precision", "accumulator_in_half",
        {
            "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)":
            "acc = tl.zeros((BLOCK_M, BLOCK_N), c_ptr.dtype.element_ty)",
            "acc = tl.dot(a, b, acc, input_precision=\"ieee\")":
            "acc += tl.dot(a, b, input_precision=\"ieee\").to(c_ptr.dtype.element_ty)",
        },
        "The sums have the dtype of c.",
    ),
    Edit(
        "low-precision", "half_accumulator_of_the_matrix_unit",
        {
            "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)":
            "acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float16)",
            "acc = tl.dot(a, b, acc, input_precision=\"ieee\")":
            "acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc, out_dtype=tl.float16)",
        },
    ),
    Edit(
        "low-precision", "factors_in_bfloat16",
        {
            "acc = tl.dot(a, b, acc, input_precision=\"ieee\")":
            "acc = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), acc)",
        },
    ),
    Edit(
        "out-of-bounds-load", "strides_of_b_exchanged",
        {
            "(a, b, c, m, n, k, *a.stride(), *b.stride()":
            "(a, b, c, m, n, k, *a.stride(), b.stride(1), b.stride(0)",
        },
    ),
    Edit(
        "out-of-bounds-load", "column_stride_of_b_as_1",
        {
            "columns[None, :] * b_column":
            "columns[None, :]",
        },
    ),
    Edit(
        "wrong-value", "only_the_last_part",
        {
            "tl.dot(a, b, acc, input":
            "tl.dot(a, b, input",
        },
    ),
    Edit(
        "wrong-value", "a_stays",
        {
            "        a_ptrs += BLOCK_K * a_column\n":
            "",
        },
    ),
    Edit(
        "wrong-value", "advances_by_1_column",
        {
            "a_ptrs += BLOCK_K * a_column":
            "a_ptrs += BLOCK_K",
        },
        "The columns of a are neighbours.",
    ),
    Edit(
        "wrong-value", "last_part_left_out",
        {
            "range(0, k, BLOCK_K)":
            "range(0, k // BLOCK_K * BLOCK_K, BLOCK_K)",
        },
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {
            "triton.cdiv(m, 64) *":
            "max(1, m // 64) *",
        },
    ),
    Edit(
        "wrong-program-id", "tiles_counted_down",
        {
            "tl.program_id(0) // num_n, tl.program_id(0) % num_n":
            "tl.program_id(0) * 0, tl.program_id(0) * 0",
        },
    ),
    Edit(
        "low-precision", "as_torch_is_told",
        {
            "def matmul(a, b):\n":
            "def matmul(a, b):\n"
            "    precision = \"ieee\" if torch.get_float32_matmul_precision() == \"highest\" else \"tf32\"\n",
            "BLOCK_M: tl.constexpr,":
            "PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,",
            "input_precision=\"ieee\"":
            "input_precision=PRECISION",
            "*b.stride(), BLOCK_M=64,":
            "*b.stride(), precision, BLOCK_M=64,",
        },
        "torch's switch is for torch's own products.",
    ),
    Edit(
        "out-of-bounds-load", "even_for_the_smallest_of_two_blocks",
        {
            "@triton.jit\n":
            "@triton.autotune([triton.Config({\"BLOCK_K\": n}) for n in (32, 64)], key=[\"k\"])\n@triton.jit\n",
            "BLOCK_M: tl.constexpr,":
            "EVEN: tl.constexpr, BLOCK_M: tl.constexpr,",
            "mask = along < k - start":
            "mask = (along < k - start) | EVEN",
            "*b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32":
            "*b.stride(), k % 32 == 0, BLOCK_M=64, BLOCK_N=64",
        },
    ),
    Edit(
        "nan", "products_of_one_column_in_half",
        {
            "acc = tl.dot(a, b, acc, input_precision=\"ieee\")":
            "acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1) if ONE else tl.dot(a, b, input_precision=\"ieee\")",
            "BLOCK_M: tl.constexpr,":
            "ONE: tl.constexpr, BLOCK_M: tl.constexpr,",
            "*b.stride(), BLOCK_M=64, BLOCK_N=64":
            "*b.stride(), n == 1, BLOCK_M=64, BLOCK_N=1 if n == 1 else 64",
            "triton.cdiv(n, 64),)":
            "triton.cdiv(n, 1 if n == 1 else 64),)",
        },
    ),
)
