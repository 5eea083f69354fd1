"""Wrong answers to rms_norm that are edits of a right one."""

from autograder.gallery import Edit

ATOMICS = "one_block_and_atomics"
TILES = "tiles_of_rows_and_a_walk_down_the_columns"
EDITS = (
    Edit(
        "wrong-value", "eps_added_to_the_root",
        {"rstd = 1 / tl.sqrt(tl.sum(a * a, axis=0) / n + eps)":
         "rstd = 1 / (tl.sqrt(tl.sum(a * a, axis=0) / n) + eps)"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "sum_of_squares",
        {"rstd = 1 / tl.sqrt(tl.sum(a * a, axis=0) / n + eps)":
         "rstd = 1 / tl.sqrt(tl.sum(a * a, axis=0) + eps)"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "mean_without_a_root",
        {"rstd = 1 / tl.sqrt(tl.sum(a * a, axis=0) / n + eps)":
         "rstd = 1 / (tl.sum(a * a, axis=0) / n + eps)"},
        of=ATOMICS,
    ),
    Edit(
        "not-scaled", "no_weight",
        {"a * rstd * b":
         "a * rstd + 0 * b"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "subtracts_the_mean",
        {"    rstd = 1 / tl.sqrt(tl":
         "    a = tl.where(cols < n, a - tl.sum(a, axis=0) / n, 0.0)\n    rstd = 1 / tl.sqrt(tl"},
        of=ATOMICS,
        thought="a norm is LayerNorm",
    ),
    Edit(
        "wrong-value", "rstd_taken_for_a_constant",
        {"rstd * (gb - normal * mean)":
         "rstd * gb + 0 * mean"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "the_sum_of_the_row_lacks_the_weight",
        {"mean = tl.sum(gb * normal, axis=0) / n":
         "mean = tl.sum(g * normal, axis=0) / n"},
        of=ATOMICS,
    ),
    Edit(
        "not-scaled", "the_sum_of_the_row_is_not_divided",
        {"mean = tl.sum(gb * normal, axis=0) / n":
         "mean = tl.sum(gb * normal, axis=0)"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "rstd_once_in_the_second_term",
        {"normal * mean":
         "a * mean"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "sign_of_the_second_term",
        {"gb - normal * mean":
         "gb + normal * mean"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "weight_gradient_without_rstd",
        {"tl.atomic_add(dw + cols, g * normal":
         "tl.atomic_add(dw + cols, g * a"},
        of=ATOMICS,
    ),
    Edit(
        "wrong-value", "weight_gradient_of_dy_times_y",
        {"tl.atomic_add(dw + cols, g * normal":
         "tl.atomic_add(dw + cols, gb * normal"},
        of=ATOMICS,
    ),
    Edit(
        "race", "weight_gradient_stored_by_all_programs",
        {"tl.atomic_add(dw + cols, g * normal":
         "tl.store(dw + cols, g * normal"},
        of=ATOMICS,
    ),
    Edit(
        "uninitialised-read", "sums_begin_with_what_is_there",
        {"dw = torch.zeros(n, dtype":
         "dw = torch.empty(n, dtype"},
        of=ATOMICS,
    ),
    Edit(
        "out-of-bounds-load", "dy_taken_for_contiguous",
        {"dy.contiguous()":
         "dy"},
        of=ATOMICS,
        thought="y.sum().backward() hands on a full matrix",
    ),
    Edit(
        "out-of-bounds-load", "rows_of_n_in_the_backward_pass",
        {"a = tl.load(x + rows[:, None] * stride + cols[None, :]":
         "a = tl.load(x + rows[:, None] * n + cols[None, :]"},
        of="parts_in_a_matrix",
    ),
    Edit(
        "no-triton-kernel", "weight_gradient_by_torch",
        {"total_kernel[(triton.cdiv(n, 128),)](parts, dw, high, n, COLS=128)":
         "dw = parts.sum(0).to(weight.dtype)"},
        of="parts_in_a_matrix",
        thought="a merge is not worth a kernel",
    ),
    Edit(
        "runtime-error", "saved_under_one_name_of_the_module",
        {"ctx.save_for_backward(x, weight, rstds)":
         "Norm.kept = x, weight, rstds",
         "x, weight, rstds = ctx.saved_tensors":
         "x, weight, rstds = Norm.saved"},
        of=ATOMICS,
    ),
    Edit(
        "unwritten-output", "whole_blocks_only",
        {"    tl.store(rs + row, r)\n    for k in range(tl.cdiv(n, BLOCK)):":
         "    tl.store(rs + row, r)\n    for k in range(n // BLOCK):"},
        of="parts_in_a_matrix",
    ),
    Edit(
        "reads-too-often", "three_passes",
        {"    r = tl.rsqrt(tl.sum(total, axis=1, keep_dims=True) / n + eps)\n":
         "    largest = tl.zeros((ROWS, COLS), tl.float32)\n    for start in range(0, n, COLS):\n"
         "        cols = start + tl.arange(0, COLS)[None, :]\n"
         "        x = tl.load(x_ptr + rows * stride + cols, mask=(rows < m) & (cols < n), other=0.0).to(tl.float32)\n"
         "        largest = tl.maximum(largest, tl.abs(x))\n"
         "    total = tl.where(largest > 1e30, largest, total)\n"
         "    r = tl.rsqrt(tl.sum(total, axis=1, keep_dims=True) / n + eps)\n"},
        of=TILES,
    ),
    Edit(
        "wrong-value", "an_eps_of_0_is_taken_for_none",
        {'RMSNorm.apply(x, weight, eps)':
         'RMSNorm.apply(x, weight, eps or torch.finfo(torch.float32).eps)'},
    ),
)  # fmt: skip
