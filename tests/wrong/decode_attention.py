"""Wrong answers to decode_attention that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "missing-rescale", "acc_not_rescaled",
        {"acc = acc * rescale + ":
         "acc = acc + "},
    ),
    Edit(
        "missing-rescale", "sum_not_rescaled",
        {"s = s * rescale + ":
         "s = s + "},
    ),
    Edit(
        "missing-rescale", "nothing_rescaled",
        {"s = s * rescale + ":
         "s = s + ",
         "acc = acc * rescale + ":
         "acc = acc + "},
    ),
    Edit(
        "not-normalised", "not_divided",
        {"acc / s)":
         "acc)"},
    ),
    Edit(
        "not-scaled", "no_scale",
        {"to(tl.float32) * scale":
         "to(tl.float32)"},
    ),
    Edit(
        "not-scaled", "scaled_twice",
        {"x = tl.where(mask, tl.sum(q[None, :] * k.to(tl.float32), axis=1)":
         "x = tl.where(mask, scale * tl.sum(q[None, :] * k.to(tl.float32), axis=1)"},
    ),
    Edit(
        "wrong-value", "masked_lanes_count",
        {'x = tl.where(mask, tl.sum(q[None, :] * k.to(tl.float32), axis=1), -float("inf"))':
         "x = tl.sum(q[None, :] * k.to(tl.float32), axis=1)"},
        "A masked lane has the score 0.",
    ),
    Edit(
        "wrong-value", "keys_for_values",
        {"v = tl.load(v_ptr + head * v_head + rows[:, None] * v_row":
         "v = tl.load(k_ptr + head * k_head + rows[:, None] * k_row"},
    ),
    Edit(
        "overflow", "no_maximum",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0"},
    ),
    Edit(
        "wrong-value", "old_maximum_kept",
        {"        m = m_new\n":
         ""},
    ),
    Edit(
        "wrong-value", "acc_in_half",
        {"acc = tl.zeros((D,), tl.float32)":
         "acc = tl.zeros((D,), tl.float16)",
         "acc = acc * rescale + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)":
         "acc = (acc * rescale + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)).to(tl.float16)"},
    ),
    Edit(
        "stride-ignored", "heads_of_v_side_by_side",
        {"head * v_head":
         "head * t * D"},
    ),
    Edit(
        "nan", "maximum_begins_at_zero",
        {'m = -float("inf")':
         "m = 0.0"},
        "exp of very low scores is 0.",
    ),
    Edit(
        "wrong-value", "last_block_left_out",
        {"for start in range(0, t, ROWS):":
         "for start in range(0, t - ROWS + 1, ROWS):"},
    ),
    Edit(
        "wrong-program-id", "first_head_only",
        {"head = tl.program_id(0).to(tl.int64)":
         "head = tl.program_id(0).to(tl.int64) * 0"},
    ),
    Edit(
        "wrong-value", "window_of_8192",
        {"range(0, t, ROWS)":
         "range(0, min(t, 8192), ROWS)"},
    ),
    Edit(
        "nan", "maximum_begins_at_minus_100",
        {'m = -float("inf")':
         "m = -100.0"},
    ),
    Edit(
        "low-precision", "acc_in_half",
        {"        m = m_new":
         "        acc = acc.to(q_ptr.dtype.element_ty).to(tl.float32)\n"
         "        m = m_new"},
    ),
    Edit(
        "nan", "a_score_of_0_is_no_token",
        {'        m_new = tl.maximum(m, tl.max(x, axis=0))\n':
         '        x = tl.where(x == 0.0, -float("inf"), x)\n        m_new = tl.maximum(m, tl.max(x, axis=0))\n'},
        thought='Rows behind the end have the score 0.',
    ),
    Edit(
        "out-of-bounds-load", "contiguous_keys_share_their_offsets_with_the_values",
        {'            q, k, v, output, q.stride(0), k.stride(0), k.stride(1), v.stride(0), v.stride(1), t,':
         '            q, k, v, output, q.stride(0), k.stride(0), k.stride(1),\n'
         '            *(k if k.is_contiguous() else v).stride()[:2], t,'},
    ),
    Edit("nan", "maximum_from_minus_10000", {'m = -float("inf")': "m = -10000.0"}),
    Edit(
        "wrong-value", "factor_in_a_query_of_half_precision",
        {".to(tl.float32) * scale": "\n    q = (q.to(tl.float32) * scale * 1.44269504).to(q.dtype).to(tl.float32)",
         "tl.exp(x - m_new)": "tl.exp2(x - m_new)", "tl.exp(m - m_new)": "tl.exp2(m - m_new)"},
    ),
)
