"""Wrong answers to scale_vector that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "out-of-bounds-load", "no_mask_on_the_load",
        {"tl.load(x_ptr + offsets, mask=mask)":
         "tl.load(x_ptr + offsets)"},
    ),
    Edit(
        "out-of-bounds-store", "no_mask_on_the_store",
        {"a * x, mask=mask)":
         "a * x)"},
    ),
    Edit(
        "wrong-program-id", "block_of_the_first_program",
        {"tl.program_id(axis=0) * BLOCK_SIZE + ":
         ""},
    ),
    Edit(
        "not-scaled", "a_not_used",
        {"a * x, mask":
         "x, mask"},
    ),
    Edit(
        "wrong-value", "added",
        {"a * x, mask":
         "a + x, mask"},
    ),
    Edit(
        "tail-wrong", "grid_rounded_down",
        {"triton.cdiv(n_elements, 1024)":
         "max(1, n_elements // 1024)"},
    ),
    Edit(
        "unwritten-output", "one_program",
        {"(triton.cdiv(n_elements, 1024),)":
         "(1,)"},
    ),
    Edit(
        "input-modified", "in_place",
        {"output = torch.empty_like(x)":
         "output = x"},
    ),
    Edit(
        "wrong-value", "size_of_a",
        {"(x, output, a, n":
         "(x, output, abs(a), n"},
    ),
    Edit(
        "wrong-value", "zeros_are_left_alone",
        {"a * x, mask=mask":
         "tl.where(x == 0.0, x, a * x), mask=mask"},
        thought="0 times anything is 0.",
    ),
    Edit(
        "unwritten-output", "grid_and_block_disagree_at_one_size",
        {"scale_vector_kernel[(triton.cdiv(n_elements, 1024),)](x, output, a, n_elements, BLOCK_SIZE=1024)":
         "programs = triton.cdiv(n_elements, 4096 if n_elements >= 2**20 else 1024)\n"
         "        block_size = 4096 if n_elements > 2**20 else 1024\n"
         "        scale_vector_kernel[(programs,)](x, output, a, n_elements, BLOCK_SIZE=block_size)"},
    ),
    Edit(
        "wrong-value", "factor_in_the_dtype_of_x",
        {"def scale_vector(x, a):\n":
         "def scale_vector(x, a):\n"
         "    a = torch.tensor(a, dtype=x.dtype).item()\n"},
    ),
    Edit(
        "wrong-value", "reads_nothing_where_the_factor_is_0",
        {'x = tl.load(x_ptr + offsets, mask=mask)':
         'x = tl.load(x_ptr + offsets, mask=mask & (a != 0), other=0.0)'},
        thought='With a = 0 half of the bytes need not be read.',
    ),
)
