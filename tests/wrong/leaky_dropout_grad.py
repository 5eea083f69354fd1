"""Wrong answers to leaky_dropout_grad that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "no_axis_in_the_forward_pass",
        {"def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):\n"
         "    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):\n"
         "    offsets = tl.program_id() * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "nan", "product_with_the_mask",
        {"tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)":
         "tl.store(dx_ptr + offsets, keep.to(tl.float32) * dy * slope / (1 - p), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "no-triton-kernel", "backward_in_jnp",
        {"return leaky_dropout(x, p, seed), (x, p, seed)":
         "y = leaky_dropout(x, p, seed)\n"
         "    return y, (x, y, p)",
         "x, p, seed = residuals\n"
         "    return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None, None":
         "x, y, p = residuals\n"
         "    scale = jnp.where(p < 1, 1 / jnp.maximum(1 - p, 1e-9), 0.0)\n"
         "    return jnp.where(y != 0, dy * jnp.where(x >= 0, 1.0, 0.01) * scale, 0.0), None, None"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-rate", "forward_gives_zeros",
        {"tl.store(y_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)":
         "tl.store(y_ptr + offsets, 0.0 * x, mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "not-attempted", "zeros",
        {"return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None, None":
         "return jnp.zeros_like(x), None, None"},
        of="as_in_the_lesson",
    ),
    Edit(
        "not-scaled", "backward",
        {"tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)":
         "tl.store(dx_ptr + offsets, tl.where(keep, dy * slope, 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "out-of-bounds-load", "mask_too_wide_in_the_forward_pass",
        {"def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):\n"
         "    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)\n"
         "    mask = offsets < n":
         "def leaky_dropout_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):\n"
         "    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)\n"
         "    mask = offsets <= n"},
        of="as_in_the_lesson",
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)":
         "dy = tl.load(dy_ptr + offsets).to(tl.float32)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "runtime-error", "seed_not_differentiable_under_jit",
        {"@partial(jax.custom_vjp, nondiff_argnums=(1,))": "@partial(jax.custom_vjp, nondiff_argnums=(1, 2))",
         "return leaky_dropout(x, p, seed), (x, seed)\n"
         "\n"
         "\n"
         "def backward(p, residuals, dy):\n"
         "    x, seed = residuals\n"
         "    return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None":
         "return leaky_dropout(x, p, seed), x\n"
         "def backward(p, seed, x, dy):\n"
         "    return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed),"},
        of="p_is_static",
    ),
    Edit(
        "seed-ignored", "constant_in_backward",
        {"return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None, None":
         "return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=0), None, None"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "next_seed",
        {"return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed), None, None":
         "return launch(leaky_dropout_grad_kernel, x, dy, p=p, seed=seed + 1), None, None"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "three_masks",
        {"return jt.triton_call(\n"
         "        *arrays,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )":
         "return jt.triton_call(\n"
         "        *arrays,\n"
         "        jnp.asarray(p, jnp.float32),\n"
         "        jnp.asarray(seed % 3, jnp.int32),\n"
         "        x.size,\n"
         "        kernel=kernel,\n"
         "        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),\n"
         "        grid=(triton.cdiv(x.size, 1024),),\n"
         "        BLOCK_SIZE=1024,\n"
         "    )"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "incoming_gradient_ignored",
        {"tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)":
         "tl.store(dx_ptr + offsets, tl.where(keep, slope / (1 - p), 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "no_leaky_relu_in_the_forward_pass",
        {"    x = tl.where(x >= 0, x, 0.01 * x)\n":
         ""},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "no_mask",
        {"keep = tl.rand(seed, offsets) >= p\n"
         "    tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)":
         "tl.store(dx_ptr + offsets, dy * slope / (1 - p), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "slope_forgotten",
        {"tl.store(dx_ptr + offsets, tl.where(keep, dy * slope / (1 - p), 0.0), mask=mask)":
         "tl.store(dx_ptr + offsets, tl.where(keep, dy / (1 - p), 0.0), mask=mask)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "seed-ignored", "seed_before_p_in_the_forward_rule",
        {"return leaky_dropout(x, p, seed), (x, p, seed)": "return leaky_dropout(x, seed, p), (x, p, seed)"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "slope_by_the_sign_of_dy",
        {"slope = tl.where(x >= 0": "slope = tl.where(dy >= 0"},
        of="as_in_the_lesson",
    ),
    Edit(
        "wrong-value", "slope_at_0_of_the_negative_numbers",
        {"slope = tl.where(x >= 0, 1.0, 0.01)":
         "slope = tl.where(x > 0, 1.0, 0.01)"},
    ),
    Edit(
        "wrong-value", "slope_by_the_sign_of_the_output",
        {"return leaky_dropout(x, p, seed), (x, p, seed)":
         "y = leaky_dropout(x, p, seed)\n    return y, (y, p, seed)"},
        thought="y has the sign of x.",
    ),
    Edit(
        "wrong-value", "dropped_where_the_output_is_0",
        {"return leaky_dropout(x, p, seed), (x, p, seed)":
         "y = leaky_dropout(x, p, seed)\n    return y, (y, p, seed)",
         "tl.where(u >= p, dy * slope":
         "tl.where(x != 0, dy * slope"},
        thought="What was dropped is 0 in the output: no random number is needed.",
    ),
)
