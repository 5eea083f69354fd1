"""Wrong answers to paged_decode_attention that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-value", "pages_in_order",
        {"tl.load(table_ptr + request * most + start // PAGE).to(tl.int64)":
         "(start // PAGE).to(tl.int64) + request * 0"},
    ),
    Edit(
        "out-of-bounds-load", "table_of_the_first_request",
        {"table_ptr + request * most + start":
         "table_ptr + start"},
    ),
    Edit(
        "out-of-bounds-load", "token_for_page",
        {"start // PAGE).to":
         "start).to"},
        "The table has one entry for each page, not for each token.",
    ),
    Edit(
        "nan", "last_page_whole",
        {"mask = start + tl.arange(0, PAGE) < length":
         "mask = tl.arange(0, PAGE) < PAGE"},
    ),
    Edit(
        "nan", "infinity_behind_the_length_kept",
        {"v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0).to(tl.float32)":
         "v = tl.load(v_ptr + places).to(tl.float32)\n        v = tl.where(v == v, v, 0.0)"},
        "Rows behind the length may hold infinity, too, and 0 * inf is NaN.",
    ),
    Edit(
        "wrong-value", "heads_outermost",
        {"rows = (page * PAGE + tl.arange(0, PAGE)) * heads + head":
         "rows = (page * heads + head) * PAGE + tl.arange(0, PAGE)"},
    ),
    Edit(
        "wrong-value", "acc_not_rescaled",
        {"acc = acc * rescale + ":
         "acc = acc + "},
    ),
    Edit(
        "not-scaled", "no_root",
        {"to(tl.float32) * scale":
         "to(tl.float32)"},
    ),
    Edit(
        "wrong-value", "request_and_head_exchanged",
        {"output_ptr + (request * heads + head) * D":
         "output_ptr + (head * tl.num_programs(0) // heads + request) * D"},
    ),
    Edit(
        "wrong-value", "last_page_left_out",
        {"for start in range(0, length, PAGE):":
         "for start in range(0, length - PAGE + 1, PAGE):"},
    ),
    Edit(
        "out-of-bounds-load", "page_in_8_bits",
        {"start // PAGE).to(tl.int64)":
         "start // PAGE).to(tl.int8).to(tl.int64)"},
    ),
    Edit(
        "out-of-bounds-load", "one_page_more",
        {"range(0, length, PAGE)":
         "range(0, length + 1, PAGE)"},
        "A last page that is full has no next one.",
    ),
    Edit(
        "nan", "values_behind_the_length",
        {"v = tl.load(v_ptr + places, mask=mask[:, None], other=0.0)":
         "v = tl.load(v_ptr + places)"},
        thought="Their weights are 0.",
    ),
    Edit(
        "wrong-value", "blocks_of_large_pages_begin_at_their_page",
        {'PAGE: tl.constexpr, D: tl.constexpr,':
         'PAGE: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,',
         'for start in range(0, length, PAGE):':
         'for start in range(0, length, BLOCK):',
         'mask = start + tl.arange(0, PAGE) < length':
         'mask = start + tl.arange(0, BLOCK) < length',
         'rows = (page * PAGE + tl.arange(0, PAGE)) * heads + head':
         'rows = (page * PAGE + tl.arange(0, BLOCK)) * heads + head',
         'PAGE=k_pages.shape[1], D=d,':
         'PAGE=k_pages.shape[1], BLOCK=min(256, k_pages.shape[1]), D=d,'},
    ),
)
