"""Wrong answers to found_nan that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "nan", "product_not_repaired",
        {"total += tl.where(keep, x, 0.0)":
         "total += x * keep.to(tl.float32)"},
    ),
    Edit(
        "nan", "division_not_repaired",
        {"sums / tl.maximum(counts, 1.0)":
         "sums / counts"},
    ),
    Edit(
        "wrong-value", "divided_by_the_length",
        {"sums / tl.maximum(counts, 1.0)":
         "sums / n"},
    ),
    Edit(
        "low-precision", "a_small_number_added",
        {"sums / tl.maximum(counts, 1.0)":
         "sums / (counts + 1e-3)"},
    ),
    Edit(
        "low-precision", "one_too_many",
        {"sums / tl.maximum(counts, 1.0)":
         "sums / (counts + 1)"},
    ),
    Edit(
        "wrong-value", "sum",
        {"sums / tl.maximum(counts, 1.0)":
         "sums"},
    ),
    Edit(
        "wrong-value", "what_is_not_kept",
        {"tl.where(keep, x, 0.0)":
         "tl.where(keep, 0.0, x)"},
    ),
    Edit(
        "stride-ignored", "rows_of_n",
        {"row * row_stride + columns":
         "row * n + columns"},
    ),
    Edit(
        "stride-ignored", "keep_with_the_stride_of_x",
        {"keep_ptr + row * n":
         "keep_ptr + row * row_stride"},
    ),
    Edit(
        "wrong-value", "last_block_left_out",
        {"for start in range(0, n, BLOCK):":
         "for start in range(0, n - BLOCK + 1, BLOCK):"},
    ),
    Edit(
        "wrong-value", "sums_in_half",
        {"total = tl.zeros((BLOCK,), tl.float32)":
         "total = tl.zeros((BLOCK,), tl.float16)",
         "total += tl.where(keep, x, 0.0)":
         "total += tl.where(keep, x, 0.0).to(tl.float16)"},
    ),
    Edit(
        "wrong-value", "every_nan_becomes_0",
        {'sums / tl.maximum(counts, 1.0))':
         'tl.where(sums / counts == sums / counts, sums / counts, 0.0))'},
    ),
    Edit(
        "wrong-value", "counts_in_8_bits",
        {"count = tl.zeros((BLOCK,), tl.float32)":
         "count = tl.zeros((BLOCK,), tl.int8)",
         "count += keep.to(tl.float32)":
         "count += keep.to(tl.int8)",
         "tl.sum(count, axis=0)":
         "tl.sum(count.to(tl.float32), axis=0)"},
    ),
)
