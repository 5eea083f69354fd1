"""Wrong answers to vector_add_autotuned that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "configuration_with_six_warps",
        {", 2048, 4096) for w in (4, 8)]": ", 2048, 4096) for w in (4, 6, 8)]"},
        of="list_of_configurations",
    ),
    Edit(
        "compile-error", "last_configuration_is_no_power_of_two",
        {"in (512, 1024, 2048, 4096) for": "in (256, 512, 1024, 2048, 4096, 6000) for"},
        of="list_of_configurations",
    ),
    Edit(
        "not-autotuned", "fixed_block",
        {'CONFIGS = [triton.Config({"BLOCK": b}, num_warps=w) for b in (512, 1024, 2048, 4096) for w in '
         "(4, 8)]\n"
         "\n"
         "\n"
         '@triton.autotune(configs=CONFIGS, key=["n"])\n':
         "",
         'tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)':
         "tuned_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)"},
        of="list_of_configurations",
    ),
    Edit(
        "not-autotuned", "one_configuration",
        {"b}, num_warps=w) for b in (512, 1024, 2048, 4096) for w in (4, 8": "1024}, num_warps=4"},
        of="list_of_configurations",
    ),
    Edit(
        "not-autotuned", "the_same_twice",
        {"b}, num_warps=w) for b in (512, 1024, 2048, 4096) for w in (4, 8":
         '1024}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=4'},
        of="list_of_configurations",
    ),
    Edit(
        "out-of-bounds-load", "mask_only_for_small_blocks",
        {"mask = offsets < n_elements": "mask = (offsets < n_elements) | (BLOCK_SIZE == 256)"},
        of="ten_configurations",
    ),
    Edit(
        "out-of-bounds-load", "no_mask",
        {"(y_ptr + i, mask=mask), mask=mask": "(y_ptr + i), mask=mask"},
        of="list_of_configurations",
    ),
    Edit(
        "out-of-bounds-store", "no_mask",
        {"y_ptr + i, mask=mask), mask=mask)": "y_ptr + i, mask=mask))"},
        of="list_of_configurations",
    ),
    Edit(
        "poor-configurations", "two_and_four",
        {"b}, num_warps=w) for b in (512, 1024, 2048, 4096) for w in (4, 8": '2}), triton.Config({"BLOCK": 4}'},
        of="list_of_configurations",
    ),
    Edit(
        "poor-configurations", "warp_sized",
        {"w) for b in (512, 1024, 2048, 4096) for w in (4, 8": "1) for b in (16, 32, 64"},
        of="list_of_configurations",
    ),
    Edit(
        "runtime-error", "attribute_of_the_dictionary",
        {'@triton.autotune(configs=SPACE, key=["n"])': '@triton.autotune(configs=SPACE, key=["n_elements"])',
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         "grid = lambda meta: (triton.cdiv(n_elements, meta.BLOCK_SIZE),)"},
        of="key_of_another_name",
    ),
    Edit(
        "runtime-error", "block_size_in_the_host",
        {"grid = (triton.cdiv(n_elements, 512),)": "grid = (triton.cdiv(n_elements, BLOCK_SIZE),)"},
        of="fixed_grid_of_the_smallest_block",
    ),
    Edit(
        "runtime-error", "block_twice",
        {'tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)':
         'tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=1024)'},
        of="list_of_configurations",
    ),
    Edit(
        "runtime-error", "grid_called",
        {"SPACE = [\n"
         '    triton.Config({"BLOCK_SIZE": block_size}, num_warps=num_warps)\n'
         "    for block_size in (512, 1024, 2048, 4096)\n"
         "    for num_warps in (4, 8)\n"
         "]":
         "SPACE = [\n"
         '    triton.Config({"BLOCK_SIZE": 256}),\n'
         '    triton.Config({"BLOCK_SIZE": 1024}),\n'
         "]",
         "tuned_kernel[grid](x, y, output, n_elements)": "tuned_kernel[grid()](x, y, output, n_elements)"},
    ),
    Edit(
        "runtime-error", "no_comma_in_the_grid",
        {"SPACE = [\n"
         '    triton.Config({"BLOCK_SIZE": block_size}, num_warps=num_warps)\n'
         "    for block_size in (512, 1024, 2048, 4096)\n"
         "    for num_warps in (4, 8)\n"
         "]":
         "SPACE = [\n"
         '    triton.Config({"BLOCK_SIZE": 256}),\n'
         '    triton.Config({"BLOCK_SIZE": 1024}),\n'
         "]",
         "grid = (triton.cdiv(n_elements, 512),)":
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]))'},
        of="fixed_grid_of_the_smallest_block",
    ),
    Edit(
        "runtime-error", "other_name_in_the_dictionary",
        {'@triton.autotune(configs=SPACE, key=["n"])': '@triton.autotune(configs=SPACE, key=["n_elements"])',
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK"]),)'},
        of="key_of_another_name",
    ),
    Edit(
        "runtime-error", "plain_dictionaries",
        {"SPACE = [\n"
         '    triton.Config({"BLOCK_SIZE": 256}),\n'
         '    triton.Config({"BLOCK_SIZE": 1024}),\n'
         "]\n"
         "\n"
         "\n"
         '@triton.autotune(configs=SPACE, key=["n"])':
         "SPACE = [\n"
         '    {"BLOCK_SIZE": 256},\n'
         '    {"BLOCK_SIZE": 1024},\n'
         "]\n"
         '@triton.autotune(configs=SPACE, key=["n_elements"])'},
        of="key_of_another_name",
    ),
    Edit(
        "tail-wrong", "rounded_down",
        {'@triton.autotune(configs=SPACE, key=["n"])': '@triton.autotune(configs=SPACE, key=["n_elements"])',
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         'grid = lambda meta: (n_elements // meta["BLOCK_SIZE"],)'},
        of="key_of_another_name",
    ),
    Edit(
        "unwritten-output", "200704_elements_at_most",
        {"grid = (triton.cdiv(n_elements, 512),)":
         'grid = lambda meta: (triton.cdiv(min(n_elements, 200_704), meta["BLOCK_SIZE"]),)'},
        of="fixed_grid_of_the_smallest_block",
    ),
    Edit(
        "unwritten-output", "as_many_programs_as_lanes",
        {'@triton.autotune(configs=SPACE, key=["n"])': '@triton.autotune(configs=SPACE, key=["n_elements"])',
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         'grid = lambda meta: (meta["BLOCK_SIZE"],)'},
        of="key_of_another_name",
    ),
    Edit(
        "unwritten-output", "fixed_grid",
        {"grid = (triton.cdiv(n_elements, 512),)": "grid = (1,)"},
        of="fixed_grid_of_the_smallest_block",
    ),
    Edit(
        "unwritten-output", "grid_for_another_block",
        {'tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)':
         "tuned_kernel[(triton.cdiv(n, 4096),)](x, y, out, n)"},
        of="list_of_configurations",
    ),
    Edit(
        "unwritten-output", "grid_of_the_first_configuration",
        {'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         'grid = (triton.cdiv(n_elements, SPACE[0].kwargs["BLOCK_SIZE"]),)'},
        of="ten_configurations",
    ),
    Edit(
        "unwritten-output", "grid_of_the_largest_block",
        {"grid = (triton.cdiv(n_elements, 512),)": "grid = (triton.cdiv(n_elements, 4096),)"},
        of="fixed_grid_of_the_smallest_block",
    ),
    Edit(
        "unwritten-output", "sixteen_blocks_at_most",
        {'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)':
         'grid = lambda meta: (min(triton.cdiv(n_elements, meta["BLOCK_SIZE"]), 16),)'},
        of="ten_configurations",
    ),
    Edit(
        "wrong-program-id", "forgotten",
        {"i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)": "i = tl.arange(0, BLOCK)"},
        of="list_of_configurations",
    ),
    Edit(
        "wrong-value", "adds_to_its_output",
        {"@triton.autotune(\n"
         '    configs=[triton.Config({"BLOCK_SIZE": 512}), triton.Config({"BLOCK_SIZE": 1024})],\n'
         '    key=["n_elements"],\n'
         '    restore_value=["output_ptr"],\n'
         ")":
         '@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 512}), triton.Config({"BLOCK_SIZE": '
         '1024})], key=["n_elements"])'},
        of="restores_what_it_adds_to",
    ),
    Edit(
        "wrong-value", "difference",
        {"i, mask=mask) + tl.load(y_ptr +": "i, mask=mask) - tl.load(y_ptr +"},
        of="list_of_configurations",
    ),
)
