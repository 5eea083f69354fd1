"""Wrong answers to split_decode_attention that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "parts_added_as_they_are",
        {"s = tl.sum(s_of_parts * rescale, axis=0)":
         "s = tl.sum(s_of_parts, axis=0)",
         "acc = tl.sum(acc_of_parts * rescale[:, None], axis=0)":
         "acc = tl.sum(acc_of_parts, axis=0)"},
    ),
    Edit(
        "wrong-value", "sum_of_parts_not_rescaled",
        {"s = tl.sum(s_of_parts * rescale, axis=0)":
         "s = tl.sum(s_of_parts, axis=0)"},
    ),
    Edit(
        "wrong-value", "acc_of_parts_not_rescaled",
        {"acc = tl.sum(acc_of_parts * rescale[:, None], axis=0)":
         "acc = tl.sum(acc_of_parts, axis=0)"},
    ),
    Edit(
        "wrong-program-id", "not_split",
        {"part_length = max(16, triton.cdiv(t, wanted))":
         "part_length = t"},
    ),
    Edit(
        "nan", "masked_parts_count",
        {'part, mask=mask, other=-float("inf"))':
         "part, mask=mask, other=0.0)"},
    ),
    Edit(
        "wrong-value", "mean_of_the_parts",
        {"rescale = tl.exp(m_of_parts - m)":
         "rescale = tl.where(mask, 1.0 / s_of_parts, 0.0)"},
        "Each part was normalised by itself.",
    ),
    Edit(
        "out-of-bounds-load", "heads_and_parts_exchanged",
        {"head, part = pid // parts, pid % parts":
         "part, head = pid // parts, pid % parts"},
    ),
    Edit(
        "out-of-bounds-load", "parts_overlap_the_end",
        {"end = tl.minimum(first + part_length, t)":
         "end = first + part_length"},
    ),
    Edit(
        "race", "merged_by_every_program",
        {"tl.store(m_ptr + pid, m_part)":
         "tl.store(m_ptr + head * parts, m_part)"},
    ),
    Edit(
        "wrong-value", "acc_of_a_part_not_rescaled",
        {"acc = acc * rescale[:, None] + weights":
         "acc = acc + weights"},
    ),
    Edit(
        "wrong-program-id", "programs_rounded_down",
        {"max(1, round(2 * device().multiprocessors / heads))":
         "max(1, device().multiprocessors // heads)"},
    ),
    Edit(
        "wrong-program-id", "split_behind_4096_tokens",
        {"max(16, triton.cdiv(t, wanted))":
         "max(16, triton.cdiv(t, wanted)) if t > 4096 else t"},
    ),
    Edit(
        "wrong-value", "room_for_512_parts",
        {"PARTS=triton.next_power_of_2(parts)":
         "PARTS=512"},
        "With more than 256 multiprocessors there are more.",
    ),
    Edit(
        "overflow", "parts_in_the_dtype_of_the_query",
        {"(heads, parts, d), dtype=torch.float32": "(heads, parts, d), dtype=q.dtype"},
    ),
)
