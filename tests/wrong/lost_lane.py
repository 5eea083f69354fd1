"""Wrong answers to lost_lane that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "out-of-bounds-load", "mask_not_repaired",
        {"mask = offsets < n_elements":
         "mask = offsets <= n_elements"},
    ),
    Edit(
        "unwritten-output", "offset_not_repaired",
        {"tl.arange(0, BLOCK_SIZE)":
         "tl.arange(1, BLOCK_SIZE + 1)"},
    ),
    Edit(
        "unwritten-output", "mask_too_narrow",
        {"mask = offsets < n_elements":
         "mask = offsets < n_elements - 1"},
    ),
    Edit(
        "wrong-value", "limits_exchanged",
        {"tl.minimum(tl.maximum(x, low), high)":
         "tl.minimum(tl.maximum(x, high), low)"},
    ),
    Edit(
        "wrong-value", "only_low",
        {"tl.minimum(tl.maximum(x, low), high)":
         "tl.maximum(x, low)"},
    ),
    Edit(
        "wrong-value", "only_high",
        {"tl.minimum(tl.maximum(x, low), high)":
         "tl.minimum(x, high)"},
    ),
    Edit(
        "wrong-value", "nothing",
        {"tl.minimum(tl.maximum(x, low), high)":
         "x"},
    ),
    Edit(
        "wrong-program-id", "block_of_the_first_program",
        {"tl.program_id(axis=0) * BLOCK_SIZE + ":
         ""},
    ),
    Edit(
        "tail-wrong", "grid_rounded_down",
        {"triton.cdiv(n_elements, 256)":
         "max(1, n_elements // 256)"},
    ),
    Edit(
        "input-modified", "in_place",
        {"output = torch.empty_like(x)":
         "output = x"},
    ),
    Edit(
        "low-precision", "in_half",
        {"x = tl.load(x_ptr + offsets, mask=mask)":
         "x = tl.load(x_ptr + offsets, mask=mask).to(tl.float16)",
         ".to(x.dtype), mask=mask)":
         ", mask=mask)"},
    ),
    Edit(
        "wrong-value", "low_below_0_and_high_above",
        {"tl.minimum(tl.maximum(x, low), high)":
         "tl.where(x < 0, tl.maximum(x, low), tl.minimum(x, high))"},
        "Negative numbers meet low, and positive ones high.",
    ),
    Edit(
        "wrong-value", "bounds_that_float16_holds",
        {"def clamp(x, low, high):\n":
         "def clamp(x, low, high):\n"
         "    low, high = max(low, -65504.0), min(high, 65504.0)\n"},
    ),
    Edit(
        "wrong-value", "a_bound_of_0_counts_as_none",
        {"def clamp(x, low, high):\n":
         "def clamp(x, low, high):\n"
         "    high = high or 1e30\n"},
    ),
    Edit(
        "compile-error", "bounds_in_the_dtype_of_x",
        {'tl.maximum(x, low), high)':
         'tl.maximum(x, low.to(x.dtype)), high.to(x.dtype))'},
        thought='An integer 1 becomes a constexpr, which has no `to`.',
    ),
    Edit(
        "nan", "a_range_around_0_keeps_the_sign",
        {'tl.minimum(tl.maximum(x, low), high).to(x.dtype)':
         '(x / tl.abs(x) * tl.minimum(tl.abs(x), high) if SAME else tl.minimum(tl.maximum(x, low), high)).to(x.dtype)',
         'n_elements, BLOCK_SIZE: tl.constexpr)':
         'n_elements, SAME: tl.constexpr, BLOCK_SIZE: tl.constexpr)',
         'low, high, n_elements, BLOCK_SIZE=256)':
         'low, high, n_elements, SAME=low == -high, BLOCK_SIZE=256)'},
        thought='One comparison is enough there.',
    ),
    Edit(
        "wrong-value", "finite_limits",
        {"    if n_elements:":
         "    most = torch.finfo(x.dtype)\n"
         "    low, high = max(float(low), most.min), min(float(high), most.max)\n"
         "    if n_elements:"},
        "What is infinite stays infinite where a limit is.",
    ),
)
