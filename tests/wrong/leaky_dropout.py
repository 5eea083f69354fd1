"""Wrong answers to leaky_dropout that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "configuration_is_no_power_of_two",
        {'Config({"BLOCK_SIZE": 1024})], key=[': 'Config({"BLOCK_SIZE": 1000})], key=['},
        of="autotuned",
    ),
    Edit("compile-error", "rate_is_a_pointer", {"p = tl.load(p_ptr)": "p = p_ptr"}),
    Edit(
        "compile-error", "scale_is_an_integer_first",
        {"x = tl.where(x >= 0, x, 0.01 * x)":
         "x = tl.where(x >= 0, x, 0.01 * x)\n"
         "    scale = 1\n"
         "    if p < 1:\n"
         "        scale = 1 / (1 - p)",
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "runtime-error", "seed_is_a_number",
        {"return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 4 * quarter),),\n"
         "        n=x.size,\n"
         "        QUARTER=quarter,\n"
         "        num_warps=2,  # 64 threads on NVIDIA: 4 numbers, 128 bits, for each; an MI300X has 64 "
         "in one warp\n"
         "    )":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        int(seed),\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 4 * quarter),),\n"
         "        n=x.size,\n"
         "        QUARTER=quarter,\n"
         "        num_warps=2,\n"
         "    )"},
    ),
    Edit("compile-error", "seed_is_a_pointer", {"seed = tl.load(seed_ptr)": "seed = seed_ptr"}),
    Edit(
        "compile-error", "slope_is_a_global",
        {"@triton.jit":
         "SLOPE = 0.01\n"
         "@triton.jit",
         "x = tl.where(x >= 0, x, 0.01 * x)": "x = tl.where(x >= 0, x, SLOPE * x)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "compile-error", "three_warps",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "        num_warps=3,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "constant-factor", "divided_by_p",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x / p, 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "constant-factor", "times_one_minus_p",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x * (1 - p), 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "nan", "dropped_infinity",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(p < 1, x * keep.to(tl.float32) / (1 - p), 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "nan", "product_with_the_mask",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, keep.to(tl.float32) * x / (1 - p), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "not-attempted", "not_implemented",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "raise NotImplementedError"},
        of="parameters_in_one_array",
    ),
    Edit(
        "not-attempted", "zeros",
        {'"""x: a JAX array. p: the probability of being dropped. seed: an integer, which '
         'jax.jit traces."""\n'
         "    quarter = 256\n"
         "    return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 4 * quarter),),\n"
         "        n=x.size,\n"
         "        QUARTER=quarter,\n"
         "        num_warps=2,  # 64 threads on NVIDIA: 4 numbers, 128 bits, for each; an MI300X has 64 "
         "in one warp\n"
         "    )":
         "return jnp.zeros_like(x)"},
    ),
    Edit(
        "not-scaled", "as_it_is",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x, 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)": "x = tl.load(x_ptr + offsets).to(tl.float32)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "out-of-bounds-store", "mask_of_rows",
        {"mask = offsets < n":
         "mask = offsets < n\n"
         "    inside = offsets < n + 1",
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=inside)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "out-of-bounds-store", "no_mask",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0))"},
        of="as_in_the_lesson",
    ),
    Edit(
        "runtime-error", "seed_must_be_an_int",
        {"def leaky_dropout(x, p, seed):":
         "def leaky_dropout(x, p, seed):\n"
         "    seed = int(seed)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "same-mask", "column_only",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, columns) >= p"},
        of="one_row_per_program",
    ),
    Edit(
        "same-mask", "row_only",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, row) >= p"},
        of="one_row_per_program",
    ),
    Edit(
        "same-mask", "row_plus_column",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, row + columns) >= p"},
        of="one_row_per_program",
    ),
    Edit(
        "seed-ignored", "256_seeds",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed % 256, offsets) >= p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "a_million_seeds",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed % 1000000, offsets) >= p"},
        of="as_in_the_lesson",
    ),
    Edit("seed-ignored", "constant", {"seed = tl.load(seed_ptr)": "seed = 0"}, of="as_in_the_lesson"),
    Edit(
        "seed-ignored", "host_generator",
        {"import jax\n":
         "import random\n"
         "import jax\n",
         "params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(random.randrange(1000000), jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "seed-ignored", "mask_of_the_first_call",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)\n"
         "FIRST = {}",
         "def leaky_dropout(x, p, seed):":
         "def leaky_dropout(x, p, seed):\n"
         "    if not isinstance(seed, jax.core.Tracer):\n"
         "        seed = FIRST.setdefault(x.shape, seed)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "one_stream_shifted",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(0, offsets + seed) >= p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "one_stream_shifted_by_blocks",
        {"keep = tl.rand(seed, offsets) >= p":
         "keep = tl.rand(seed + tl.program_id(0), tl.arange(0, BLOCK_SIZE)) >= p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "one_stream_xored",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(0, offsets ^ seed) >= p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "only_its_parity",
        {"seed = tl.load(seed_ptr)": "seed = tl.load(seed_ptr) // 1048576"},
        of="as_in_the_lesson",
    ),
    Edit(
        "syntax-error", "missing_colon",
        {"def leaky_dropout(x, p, seed):": "def leaky_dropout(x, p, seed)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "tail-wrong", "grid_rounded_down",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(x.size // 1024,),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "unwritten-output", "no_store",
        {"    tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)\n":
         ""},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-dtype", "always_float32",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "wrong-dtype", "always_half",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float16),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "wrong-rate", "always_a_half",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) >= 0.5"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "kept_below_p",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) < p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "nothing_dropped",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, x, mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "percent",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) >= tl.floor(p * 100 + 0.5) / 100"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "seven_bits",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) >= tl.floor(p * 128 + 0.5) / 128"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "seven_bits_rounded_up",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) >= tl.ceil(p * 128) / 128"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "signed_threshold",
        {"keep = tl.rand(seed, offsets) >= p":
         "keep = tl.randint(seed, offsets).to(tl.int32) >= (p * 4294967296.0).to(tl.int64)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "sixteenths",
        {"keep = tl.rand(seed, offsets) >= p": "keep = tl.rand(seed, offsets) >= tl.floor(p * 16 + 0.5) / 16"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "values_of_where_swapped",
        {"y = tl.where(keep, x * (1 / (1 - p)), 0.0)": "y = tl.where(keep, 0.0, x / (1 - p))"},
    ),
    Edit(
        "wrong-shape", "a_list",
        {"return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 4 * quarter),),\n"
         "        n=x.size,\n"
         "        QUARTER=quarter,\n"
         "        num_warps=2,  # 64 threads on NVIDIA: 4 numbers, 128 bits, for each; an MI300X has 64 "
         "in one warp\n"
         "    )":
         "result = jt.triton_call(x, jnp.asarray(p, jnp.float32), jnp.asarray(seed, jnp.int32), "
         "kernel=leaky_dropout_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), "
         "grid=(triton.cdiv(x.size, 4 * quarter),), n=x.size, QUARTER=quarter, num_warps=2)\n"
         "    return [result]"},
    ),
    Edit(
        "wrong-shape", "flat",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct((x.size,), x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "wrong-shape", "transposed",
        {"params = jnp.stack([jnp.float32(p), 1 - jnp.float32(p)])\n"
         "    return jt.triton_call(\n"
         "        x, params[0], jnp.asarray(seed, jnp.int32), x.size, kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(triton.cdiv(x.size, 1024),), "
         "BLOCK_SIZE=1024)":
         "return jt.triton_call(\n"
         "        x,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=leaky_dropout_kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape[::-1], x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="parameters_in_one_array",
    ),
    Edit(
        "wrong-value", "dropped_are_left",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), x), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "no_leaky_relu",
        {"    x = tl.where(x >= 0, x, 0.01 * x)\n":
         ""},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "relu",
        {"x = tl.where(x >= 0, x, 0.01 * x)": "x = tl.where(x >= 0, x, 0.0)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "sign_swapped",
        {"x = tl.where(x >= 0, x, 0.01 * x)": "x = tl.where(x < 0, x, 0.01 * x)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "slope_of_a_tenth",
        {"x = tl.where(x >= 0, x, 0.01 * x)": "x = tl.where(x >= 0, x, 0.1 * x)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "stored_elsewhere",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + (offsets + 1) % n, tl.where(keep, x / (1 - p), 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "same-mask", "repeats_after_2_to_the_20",
        {"tl.rand(seed, offsets)":
         "tl.rand(seed, offsets & 1048575)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "same-mask", "mirrored",
        {"tl.rand(seed, offsets)":
         "tl.rand(seed, tl.minimum(offsets, n - 1 - offsets))"},
        of="as_in_the_lesson",
    ),
    Edit(
        "same-mask", "far_elements_share",
        {"tl.rand(seed, offsets)":
         "tl.rand(seed, tl.where(offsets * 2 < n, offsets, "
         "(offsets.to(tl.int64) * 7919 % (n // 2)).to(tl.int32)))"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "16_bits",
        {"seed = tl.load(seed_ptr)":
         "seed = tl.load(seed_ptr) & 0xFFFF"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "modulo_a_prime",
        {"seed = tl.load(seed_ptr)":
         "seed = tl.load(seed_ptr) % 65521"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "folded",
        {"seed = tl.load(seed_ptr)":
         "seed = (tl.load(seed_ptr) ^ (tl.load(seed_ptr) >> 16)) & 0xFFFF"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "16_bits",
        {"keep = tl.rand(seed, offsets) >= p":
         "keep = (tl.randint(seed, offsets) & 0xFFFF) >= (p * 65536).to(tl.int32)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "float16",
        {"keep = tl.rand(seed, offsets) >= p":
         "keep = tl.rand(seed, offsets) >= p.to(tl.float16)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "above_p",
        {"keep = tl.rand(seed, offsets) >= p":
         "keep = tl.rand(seed, offsets) > p"},
        of="as_in_the_lesson",
    ),
    Edit(
        "unwritten-output", "fixed_grid",
        {"grid=(triton.cdiv(x.size, 1024),)":
         "grid=(min(triton.cdiv(x.size, 1024), 4096),)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "rate_in_the_dtype_of_x",
        {"jnp.asarray(p, jnp.float32)":
         "jnp.asarray(p, x.dtype)",
         "p = tl.load(p_ptr)":
         "p = tl.load(p_ptr).to(tl.float32)"},
    ),
    Edit(
        "seed-ignored", "high_bits_of_the_counter_in_the_seed",
        {'tl.rand4x(seed, pid * QUARTER + lanes)':
         'tl.rand4x(seed + (pid >> 8), (pid & 255) * QUARTER + lanes)'},
        "From element 262,144 on, it is the mask of the next seed.",
    ),
)
