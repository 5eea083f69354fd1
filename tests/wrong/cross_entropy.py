"""Wrong answers to cross_entropy that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "no_target",
        {" - tl.where(columns == target, 1.0, 0.0)":
         ""},
    ),
    Edit(
        "wrong-value", "ignored_rows_have_a_gradient",
        {"dx = tl.where(target == ignored, 0.0, dx * scale)":
         "dx = dx * scale"},
    ),
    Edit(
        "not-scaled", "gradient_of_the_sum",
        {"scale = (dloss / count).to(torch.float32)":
         "scale = dloss.to(torch.float32)"},
    ),
    Edit(
        "not-scaled", "dloss_not_used",
        {"scale = (dloss / count).to(torch.float32)":
         "scale = (1 / count).to(torch.float32)"},
    ),
    Edit(
        "not-scaled", "divided_by_all_rows",
        {"scale = (dloss / count).to(torch.float32)":
         "scale = (dloss / m).to(torch.float32)"},
    ),
    Edit(
        "constant-factor", "sign",
        {"tl.exp(x - lse) - tl.where(columns == target, 1.0, 0.0)":
         "tl.where(columns == target, 1.0, 0.0) - tl.exp(x - lse)"},
    ),
    Edit(
        "wrong-value", "sum_of_the_losses",
        {"return losses.sum() / count":
         "return losses.sum()"},
    ),
    Edit(
        "wrong-value", "mean_of_all_rows",
        {"return losses.sum() / count":
         "return losses.mean()"},
    ),
    Edit(
        "overflow", "no_maximum",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0"},
    ),
    Edit(
        "out-of-bounds-load", "rows_of_n_in_the_gradient",
        {"x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=0.0)":
         "x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0)"},
    ),
    Edit(
        "unwritten-output", "first_block_of_the_gradient",
        {"loss_gradient_kernel[(m, triton.cdiv(n, block))]":
         "loss_gradient_kernel[(m, 1)]"},
    ),
    Edit(
        "wrong-value", "target_of_the_program",
        {"columns == target, 1.0":
         "tl.arange(0, BLOCK) == target, 1.0"},
        "Right in the first block only.",
    ),
    Edit(
        "wrong-value", "sum_not_rescaled",
        {"s = s * tl.exp(m - m_new) + ":
         "s = s + "},
    ),
    Edit(
        "no-triton-kernel", "gradient_by_torch",
        {"        return dx, None, None":
         "        one_hot = torch.nn.functional.one_hot(targets.clamp(min=0), n)\n"
         "        dx = (torch.softmax(logits.float(), 1) - one_hot) * scale\n"
         "        return dx.to(logits.dtype), None, None"},
    ),
    Edit(
        "wrong-value", "target_in_16_bits",
        {"    scale = tl.load(scale_ptr)":
         "    target = target.to(tl.int16)\n"
         "    scale = tl.load(scale_ptr)"},
    ),
    Edit(
        "wrong-value", "class_0_does_not_count",
        {"dx = tl.where(target == ignored, 0.0":
         "dx = tl.where(target <= 0, 0.0"},
    ),
    Edit(
        "wrong-value", "at_least_one_row_counts",
        {"count = (targets != ignored).sum()":
         "count = (targets != ignored).sum().clamp(min=1)"},
        "torch gives NaN where no row counts.",
    ),
    Edit(
        "wrong-value", "saved_for_all_calls",
        {"ctx.save_for_backward(logits, targets, lse, count)":
         "CrossEntropy.saved = logits, targets, lse, count",
         "= ctx.saved_tensors":
         "= CrossEntropy.saved"},
        "The class keeps what the last call saved.",
    ),
    Edit(
        "low-precision", "counts_rows_in_the_dtype_of_the_logits",
        {'count = (targets != ignored).sum()':
         'count = (targets != ignored).to(logits.dtype).sum()'},
    ),
)
