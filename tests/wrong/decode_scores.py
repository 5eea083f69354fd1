"""Wrong answers to decode_scores that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "not-scaled", "no_scale",
        {"axis=1) * scale":
         "axis=1)"},
    ),
    Edit(
        "not-scaled", "divided_by_d",
        {"t, d**-0.5, D=d":
         "t, 1 / d, D=d"},
    ),
    Edit(
        "wrong-value", "query_as_a_column",
        {"q[None, :] * k.to(tl.float32), axis=1)":
         "q[:, None] * k.to(tl.float32), axis=1)"},
    ),
    Edit(
        "wrong-value", "sum_over_tokens",
        {"k.to(tl.float32), axis=1)":
         "k.to(tl.float32), axis=0)"},
    ),
    Edit(
        "out-of-bounds-load", "heads_begin_after_all_rows",
        {"head * k_head":
         "head * t * k_row"},
    ),
    Edit(
        "stride-ignored", "heads_side_by_side",
        {"head * k_head":
         "head * t * D"},
    ),
    Edit(
        "wrong-program-id", "first_head_only",
        {"head = (tl.program_id(0) // blocks)":
         "head = (tl.program_id(0) // blocks * 0)"},
    ),
    Edit(
        "unwritten-output", "first_block_only",
        {"(heads * triton.cdiv(t, 64),)":
         "(heads,)"},
    ),
    Edit(
        "unwritten-output", "grid_rounded_down",
        {"(heads * triton.cdiv(t, 64),)":
         "(heads * max(1, t // 64),)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {", mask=mask[:, None], other=0.0)":
         ")"},
    ),
    Edit(
        "wrong-value", "product_in_half",
        {"q[None, :] * k.to(tl.float32), axis=1)":
         "(q[None, :] * k.to(tl.float32)).to(tl.float16), axis=1)"},
    ),
    Edit(
        "wrong-dtype", "dtype_of_q",
        {"torch.empty((heads, t), dtype=torch.float32":
         "torch.empty((heads, t), dtype=q.dtype"},
    ),
    Edit(
        "out-of-bounds-load", "queries_of_one_token_lie_side_by_side",
        {'q, k, scores, q.stride(0), k':
         'q, k, scores, q.stride(0) if t > 1 else d, k'},
    ),
)
