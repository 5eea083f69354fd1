"""Wrong answers to skinny_matmul that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-program-id", "never_split",
        {
            "parts = min(triton.cdiv(k, 512), wanted)":
            "parts = 1",
        },
        "One program for a tile.",
    ),
    Edit(
        "wrong-value", "parts_overlap",
        {
            "first = part * part_length":
            "first = part * (part_length // 2)",
        },
    ),
    Edit(
        "wrong-value", "every_part_the_first",
        {
            "first = part * part_length":
            "first = part * 0",
        },
    ),
    Edit(
        "out-of-bounds-load", "end_of_a_part_only",
        {
            "end = tl.minimum(first + part_length, k)":
            "end = first + part_length",
        },
    ),
    Edit(
        "wrong-value", "only_the_last_part",
        {
            "total += tl.load(parts_ptr":
            "total = tl.load(parts_ptr",
        },
    ),
    Edit(
        "low-precision", "sums_in_the_dtype_of_x",
        {
            "sums = torch.empty((parts, m, n), dtype=torch.float32":
            "sums = torch.empty((parts, m, n), dtype=x.dtype",
        },
        "Partial sums are rounded before they are added.",
    ),
    Edit(
        "low-precision", "tf32",
        {
            ", input_precision=\"ieee\"":
            "",
        },
    ),
    Edit(
        "wrong-value", "last_part_lost",
        {
            "part_kernel[(parts * across,)]":
            "part_kernel[(max(1, parts - 1) * across,)]",
            "torch.empty((parts, m, n)":
            "torch.zeros((parts, m, n)",
        },
    ),
    Edit(
        "race", "atomic_addition",
        {
            "    tl.store(parts_ptr + (part * m + rows) * n + columns, acc, mask":
            "    tl.atomic_add(parts_ptr + rows * n + columns, acc, mask",
            "sums = torch.empty((parts, m, n)":
            "sums = torch.zeros((1, m, n)",
            "(sums, y, parts, m * n":
            "(sums, y, 1, m * n",
        },
        "No second kernel has to add many parts.",
    ),
    Edit(
        "uninitialised-read", "more_parts_than_programs",
        {
            "(sums, y, parts, m * n":
            "(sums, y, parts + 1, m * n",
            "torch.empty((parts, m, n)":
            "torch.empty((parts + 1, m, n)",
        },
    ),
    Edit(
        "wrong-program-id", "split_behind_4096",
        {"parts = min(triton.cdiv(k, 512), wanted)":
         "parts = min(triton.cdiv(k, 512), wanted) if k > 4096 else 1"},
    ),
)
