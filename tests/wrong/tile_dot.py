"""Wrong answers to tile_dot that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "nan", "float32_as_float16",
        {
            "acc = tl.dot(a, b, acc)":
            "acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc) if a.dtype == tl.float32 else tl.dot(a, b, acc)",
        },
        "As many bits as TF32, and another range.",
    ),
    Edit(
        "wrong-value", "only_the_last_part",
        {
            "acc = tl.dot(a, b, acc)":
            "acc = tl.dot(a, b)",
        },
    ),
    Edit(
        "wrong-value", "b_stays",
        {
            "b_ptrs += step  # K rows down\n":
            "\n",
        },
    ),
    Edit(
        "out-of-bounds-load", "b_advances_like_a",
        {
            "step = K * n":
            "step = K * k",
        },
    ),
    Edit(
        "wrong-value", "b_advances_by_columns",
        {
            "step = K * n":
            "step = K",
        },
    ),
    Edit(
        "out-of-bounds-load", "no_mask_along_k",
        {
            "mask = start + along < k":
            "mask = along < k",
        },
        "Forgot that the tile moves.",
    ),
    Edit(
        "wrong-value", "last_part_left_out",
        {
            "range(0, k, K)":
            "range(0, k // K * K, K)",
        },
    ),
    Edit(
        "low-precision", "accumulator_in_half",
        {
            "acc = tl.zeros((M, N), tl.float32)":
            "acc = tl.zeros((M, N), tl.float16)",
            "acc = tl.dot(a, b, acc)":
            "acc += tl.dot(a, b).to(tl.float16)",
        },
        "Half the registers.",
    ),
    Edit(
        "relies-on-masked-lanes", "no_other",
        {
            "mask[None, :], other=0.0)":
            "mask[None, :])",
            "(columns[None, :] < n), other=0.0)":
            "(columns[None, :] < n))",
        },
    ),
    Edit(
        "compile-error", "tile_of_one_row",
        {
            "high, wide = max(16, triton.next_power_of_2(m))":
            "high, wide = triton.next_power_of_2(m)",
            "K=32":
            "K=8",
        },
        "tl.dot needs 16.",
    ),
    Edit(
        "wrong-dtype", "in_the_dtype_of_a",
        {
            "torch.empty((m, n), dtype=torch.float32":
            "torch.empty((m, n), dtype=a.dtype",
        },
    ),
    Edit(
        "nan", "bfloat16_multiplied_as_float16",
        {"acc = tl.dot(a, b, acc)":
         "if a_ptr.dtype.element_ty == tl.bfloat16:\n"
         "            a, b = a.to(tl.float16), b.to(tl.float16)\n"
         "        acc = tl.dot(a, b, acc)"},
        thought="It has more digits.",
    ),
    Edit(
        "wrong-program-id", "a_long_walk_is_shared",
        {'c_ptr, m, n, k, M: tl.constexpr':
         'c_ptr, m, n, k, part, M: tl.constexpr',
         '    step = K * n':
         '    first = tl.program_id(0) * part\n    a_ptrs += first\n    b_ptrs += first * n\n    step = K * n',
         'for start in range(0, k, K):':
         'for start in range(first, tl.minimum(first + part, k), K):',
         'tl.store(c_ptr':
         'tl.atomic_add(c_ptr',
         'torch.empty((m, n)':
         'torch.zeros((m, n)',
         'tile_kernel[(1,)](a, b, c, m, n, k, M':
         'tile_kernel[(triton.cdiv(k, 4096),)](a, b, c, m, n, k, 4096, M'},
        thought='More programs, more speed.',
    ),
    Edit(
        "out-of-memory", "most_of_k_in_one_step",
        {'M=high, N=wide, K=32':
         'M=high, N=wide, K=max(32, min(1024, triton.next_power_of_2(k)))'},
    ),
)
