"""Wrong answers to logsumexp_rows that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "no_logarithm",
        {"m + tl.log(s)":
         "s"},
    ),
    Edit(
        "wrong-value", "no_maximum_added",
        {"m + tl.log(s)":
         "tl.log(s)"},
    ),
    Edit(
        "wrong-value", "only_the_maximum",
        {"m + tl.log(s)":
         "m"},
    ),
    Edit(
        "overflow", "maximum_not_subtracted",
        {"m_new = tl.maximum(m, tl.max(x, axis=0))":
         "m_new = 0.0"},
    ),
    Edit(
        "wrong-value", "sum_not_rescaled",
        {"s * tl.exp(m - m_new)":
         "s"},
    ),
    Edit(
        "low-precision", "in_half",
        {'other=-float("inf")).to(tl.float32)':
         'other=-float("inf")).to(tl.float16).to(tl.float32)'},
    ),
    Edit(
        "wrong-value", "masked_lanes_count",
        {'other=-float("inf")':
         "other=0.0"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {'mask=columns < n, other=-float("inf")':
         ""},
    ),
    Edit(
        "wrong-value", "base_two",
        {"tl.log(s)":
         "tl.log2(s)"},
    ),
)
