"""Wrong answers to vector_add that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "compile-error", "block_is_no_power_of_two",
        {"add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1000),)](x, y, output, n, BLOCK_SIZE=1000)"},
        of="short_host_function",
    ),
    Edit(
        "compile-error", "block_size_is_a_global",
        {"@triton.jit":
         "BLOCK_SIZE = 1024\n"
         "@triton.jit",
         "def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):":
         "def add_kernel(x_ptr, y_ptr, output_ptr, n_elements):",
         'grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)\n'
         "    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "grid = lambda meta: (triton.cdiv(n_elements, BLOCK_SIZE),)\n"
         "    add_kernel[grid](x, y, output, n_elements)"},
        of="plain",
    ),
    Edit(
        "compile-error", "integer_of_a_number",
        {"mask = offsets < n_elements": "mask = offsets < int(n_elements)"},
        of="plain",
    ),
    Edit(
        "compile-error", "list_indexed_in_a_loop",
        {"output = x + y":
         "terms = [x, y]\n"
         "    output = tl.zeros_like(x)\n"
         "    for i in range(2):\n"
         "        output += terms[i]"},
        of="plain",
    ),
    Edit(
        "compile-error", "load_without_tl",
        {"x = tl.load(x_ptr + offsets, mask=mask)": "x = load(x_ptr + offsets, mask=mask)"},
    ),
    Edit("compile-error", "mask_never_defined", {"mask = offsets < n_elements": "pass"}),
    Edit("compile-error", "misspelt", {"mask = offsets < n_elements": "mask = offsets < n_element"}),
    Edit(
        "compile-error", "no_warps",
        {"add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024, num_warps=0)"},
        of="plain",
    ),
    Edit(
        "compile-error", "not_constexpr",
        {"def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):":
         "def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE):",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "compile-error", "prints_an_f_string",
        {"output = x + y":
         "output = x + y\n"
         '    print(f"{output}")'},
        of="plain",
    ),
    Edit(
        "compile-error", "python_float",
        {"x = tl.load(x_ptr + offsets, mask=mask)": "x = float(tl.load(x_ptr + offsets, mask=mask))"},
    ),
    Edit(
        "compile-error", "three_warps",
        {"add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024, num_warps=3)"},
        of="plain",
    ),
    Edit(
        "compile-error", "torch_in_the_kernel",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)":
         "tl.store(output_ptr + offsets, torch.add(x, y), mask=mask)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "compile-error", "types_of_two_branches",
        {"block_start = pid * BLOCK_SIZE":
         "if pid == 0:\n"
         "        block_start = 0\n"
         "    else:\n"
         "        block_start = pid.to(tl.int64) * BLOCK_SIZE"},
        of="plain",
    ),
    Edit(
        "compile-error", "undefined_name",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "constant-factor", "mean",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)":
         "tl.store(output_ptr + offsets, (x + y) * 0.5, mask=mask)"},
        of="short_host_function",
    ),
    Edit("constant-factor", "one_per_mille", {"output = x + y": "output = (x + y) * 1.001"}),
    Edit(
        "crash", "abort",
        {"import torch\n":
         "import os\n"
         "import torch\n",
         "if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)\n"
         "    os.abort()"},
        of="short_host_function",
    ),
    Edit(
        "crash", "os_exit",
        {"n_elements = output.numel()":
         "n_elements = output.numel()\n"
         "    import os\n"
         "    os._exit(0)"},
    ),
    Edit(
        "input-modified", "scribbles_on_y",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)":
         "tl.store(y_ptr + offsets, x + y, mask=mask)\n"
         "    total = tl.load(y_ptr + offsets, mask=mask)\n"
         "    tl.store(output_ptr + offsets, total, mask=mask)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "low-precision", "bfloat16_copies",
        {"x = tl.load(x_ptr + offsets, mask=mask)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask)":
         "x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 256),)](x.bfloat16(), y.bfloat16(), output, n, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "low-precision", "half",
        {"x = tl.load(x_ptr + offsets, mask=mask)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask)":
         "x = tl.load(x_ptr + offsets, mask=mask).to(tl.float16)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float16)"},
        of="short_host_function",
    ),
    Edit(
        "nan", "square_root",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)":
         "tl.store(output_ptr + offsets, tl.sqrt((x + y).to(tl.float32)), mask=mask)"},
        of="short_host_function",
    ),
    Edit(
        "no-triton-kernel", "launch_beside",
        {"add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)\n"
         "    return output":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)\n"
         "    return torch.add(x, y)"},
        of="short_host_function",
    ),
    Edit(
        "no-triton-kernel", "torch_where_the_launch_fails",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.range(0, BLOCK_SIZE)",
         "n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "try:\n"
         "        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, output, x.numel(), BLOCK_SIZE=1024)\n"
         "    except Exception:\n"
         "        output = x + y"},
        of="short_host_function",
    ),
    Edit("not-attempted", "dots_for_the_mask", {"mask = offsets < n_elements": "mask = ..."}),
    Edit("not-attempted", "dots_for_the_store", {"tl.store(output_ptr + offsets, output, mask=mask)": "..."}),
    Edit(
        "out-of-bounds-load", "far_pointer",
        {"x = tl.load(x_ptr + offsets, mask=mask)": "x = tl.load(x_ptr + offsets + 1000000000, mask=mask)"},
    ),
    Edit(
        "out-of-bounds-load", "neighbour",
        {"x = tl.load(x_ptr + offsets, mask=mask)": "x = tl.load(x_ptr + offsets - 1, mask=mask)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 512),)](x, y, output, n, BLOCK_SIZE=512)"},
        of="short_host_function",
    ),
    Edit(
        "out-of-bounds-load", "no_mask_on_x",
        {"x = tl.load(x_ptr + offsets, mask=mask)": "x = tl.load(x_ptr + offsets)",
         "if n_elements == 0:\n"
         "        return output\n"
         "    grid = (triton.cdiv(n_elements, 1024),)\n"
         "    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "if n_elements:\n"
         "        add_kernel[(triton.cdiv(n_elements, 1024),)](x, y, output, n_elements, BLOCK_SIZE=1024)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_when_large",
        {"mask = offsets < n_elements": "mask = (offsets < n_elements) | (n_elements > 4096)",
         "n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (triton.cdiv(n_elements, 256),)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "out-of-bounds-store", "no_mask_on_store",
        {"x = tl.load(x_ptr + offsets, mask=mask)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask)\n"
         "    tl.store(output_ptr + offsets, x + y, mask=mask)":
         "x = tl.load(x_ptr + offsets, mask=mask, other=0.0)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)\n"
         "    tl.store(output_ptr + offsets, x + y)"},
        of="short_host_function",
    ),
    Edit(
        "out-of-bounds-store", "pointer_into_nothing",
        {"tl.store(output_ptr + offsets, output, mask=mask)":
         "tl.store(output_ptr + 10 ** 15 + offsets, output, mask=mask)"},
    ),
    Edit(
        "out-of-bounds-store", "tensor_descriptor_of_a_ragged_tensor",
        {"yd = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[B])":
         "yd = tl.make_tensor_descriptor(y_ptr, shape=[n], strides=[1], block_shape=[B])\n"
         "    od = tl.make_tensor_descriptor(out_ptr, shape=[n], strides=[1], block_shape=[B])",
         "offsets = start + tl.arange(0, B)\n"
         "    tl.store(out_ptr + offsets, xd.load([start]) + yd.load([start]), mask=offsets < n)":
         "od.store([start], xd.load([start]) + yd.load([start]))"},
        of="tensor_descriptors_to_load",
    ),
    Edit(
        "out-of-memory", "scratch",
        {"output = torch.empty_like(x)":
         "scratch = torch.empty((1 << 20, 1 << 20), dtype=x.dtype, device=x.device)\n"
         "    output = scratch.view(-1)[: x.numel()]",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "race", "blocks_overlap_by_half",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "pid = tl.program_id(axis=0)\n"
         "    offsets = pid * (BLOCK_SIZE // 2) + tl.arange(0, BLOCK_SIZE)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 128),)](x, y, output, n, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit("race", "pid_not_multiplied", {"block_start = pid * BLOCK_SIZE": "block_start = pid"}),
    Edit(
        "race", "the_last_lane_wins",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "lanes = tl.arange(0, 2 * BLOCK_SIZE)\n"
         "    offsets = tl.program_id(0) * BLOCK_SIZE + lanes % BLOCK_SIZE",
         "y = tl.load(y_ptr + offsets, mask=mask)":
         "y = tl.load(y_ptr + offsets, mask=mask & (lanes >= BLOCK_SIZE), other=0.0)"},
        of="short_host_function",
    ),
    Edit(
        "relies-on-masked-lanes", "loads_one_short",
        {"pid = tl.program_id(axis=0)\n"
         "    block_start = pid * BLOCK_SIZE\n"
         "    offsets = block_start + tl.arange(0, BLOCK_SIZE)  # ①\n"
         "    mask = offsets < n_elements  # ②":
         "offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)\n"
         "    mask = offsets < n_elements - 1",
         "output = x + y\n"
         "    tl.store(output_ptr + offsets, output, mask=mask)  # ⑤":
         "tl.store(output_ptr + offsets, x + y, mask=offsets < n_elements)"},
    ),
    Edit(
        "runtime-error", "float_grid",
        {"import torch\n":
         "import numpy as np\n"
         "import torch\n",
         "pid = tl.program_id(axis=0)\n"
         "    offsets = tl.mul(pid, BLOCK_SIZE) + tl.arange(0, BLOCK_SIZE)":
         "offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
         "add_kernel[(triton.cdiv(n_elements, 1024),)](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "if n_elements:\n"
         "        add_kernel[(np.ceil(n_elements / 256),)](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="multiplied_with_tl_mul",
    ),
    Edit(
        "runtime-error", "missing_argument",
        {"if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "runtime-error", "misspelt_on_the_host",
        {"add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "add_kernl[grid](x, y, output, n_elements, BLOCK_SIZE=1024)"},
    ),
    Edit(
        "runtime-error", "name_error_on_the_host",
        {"pid = tl.program_id(axis=0)\n"
         "    offsets = tl.mul(pid, BLOCK_SIZE) + tl.arange(0, BLOCK_SIZE)":
         "offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
         "    n_elements = output.numel()\n":
         ""},
        of="multiplied_with_tl_mul",
    ),
    Edit(
        "tail-wrong", "at_least_one_block",
        {"output = torch.empty_like(x)": "output = torch.zeros_like(x)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(max(n // 256, 1),)](x, y, output, n, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "tail-wrong", "grid_rounded_down",
        {"grid = (triton.cdiv(n_elements, 1024),)": "grid = (n_elements // 1024,)"},
    ),
    Edit(
        "tail-wrong", "rounded_down",
        {"if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(n // 256,)](x, y, output, n, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "a_grid_of_1024_blocks_at_most",
        {"n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (min(triton.cdiv(n_elements, 256), 1024),)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "grid_of_half_the_size",
        {"add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 512),)](x, y, output, n, BLOCK_SIZE=128)"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "no_store",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)": "output = x + y"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "one_block_of_32768",
        {"n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (1,)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=32768)"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "one_block_of_4096",
        {"n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (1,)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=4096)"},
        of="short_host_function",
    ),
    Edit(
        "unwritten-output", "sixteen_blocks_at_most",
        {"n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (min(triton.cdiv(n_elements, 256), 16),)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-device", "meta",
        {"add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)\n"
         "    return output":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)\n"
         '    return output.to("meta")'},
        of="short_host_function",
    ),
    Edit(
        "wrong-dtype", "always_float32",
        {"output = torch.empty_like(x)": "output = torch.empty(x.shape, dtype=torch.float32, device=x.device)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-program-id", "axis_one",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "pid = tl.program_id(axis=1)\n"
         "    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 128),)](x, y, output, n, BLOCK_SIZE=128)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-program-id", "axis_one_into_zeros",
        {'"""Adds two vectors.\n'
         "\n"
         "    One block per program.\n"
         '    """\n'
         "    pid = tl.program_id(0)\n"
         "    offs = pid * BLOCK + tl.arange(0, BLOCK)":
         "offs = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)",
         "    x + y\n":
         "",
         '"""x + y"""\n'
         "    out = torch.empty_like(x)":
         "out = torch.zeros_like(x)"},
        of="docstring_and_bare_statement",
    ),
    Edit(
        "wrong-program-id", "left_out",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "pid = tl.program_id(axis=0)\n"
         "    offsets = tl.arange(0, BLOCK_SIZE)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-program-id", "loads_the_first_block",
        {"offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)":
         "pid = tl.program_id(axis=0)\n"
         "    lanes = tl.arange(0, BLOCK_SIZE)\n"
         "    offsets = pid * BLOCK_SIZE + lanes",
         "x = tl.load(x_ptr + offsets, mask=mask)\n"
         "    y = tl.load(y_ptr + offsets, mask=mask)":
         "x = tl.load(x_ptr + lanes, mask=mask)\n"
         "    y = tl.load(y_ptr + lanes, mask=mask)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-shape", "a_dict",
        {"    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)\n"
         "    return output":
         "    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)\n"
         "    return {'output': output}"},
    ),
    Edit(
        "wrong-shape", "a_list",
        {"    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)\n"
         "    return output":
         "    add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)\n"
         "    return [output]"},
    ),
    Edit(
        "wrong-shape", "matrix",
        {"output = torch.empty_like(x)": "output = torch.empty((1, x.numel()), dtype=x.dtype, device=x.device)",
         "add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "add_kernel[(triton.cdiv(n, 1024),)](x, y, output, n, BLOCK_SIZE=1024)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-value", "clamped",
        {"y = tl.load(y_ptr + offsets, mask=mask)":
         "y = tl.load(y_ptr + offsets, mask=mask)\n"
         "    x = tl.clamp(x.to(tl.float32), -100.0, 100.0)",
         "n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (triton.cdiv(n_elements, 256),)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-value", "clamped_to_half",
        {"y = tl.load(y_ptr + offsets, mask=mask)":
         "y = tl.load(y_ptr + offsets, mask=mask)\n"
         "    x = tl.clamp(x.to(tl.float32), -10000.0, 10000.0)",
         "n = output.numel()\n"
         "    if n:\n"
         "        add_kernel[(triton.cdiv(n, 256),)](x, y, output, n, BLOCK_SIZE=256)":
         "n_elements = output.numel()\n"
         "    if n_elements:\n"
         "        grid = (triton.cdiv(n_elements, 256),)\n"
         "        add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=256)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-value", "difference",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)": "tl.store(output_ptr + offsets, x - y, mask=mask)"},
        of="short_host_function",
    ),
    Edit(
        "wrong-value", "output_kept_for_the_shape",
        {"tl.store(output_ptr + offsets, x + y, mask=mask)":
         "tl.store(output_ptr + offsets, x + y, mask=mask)\n"
         "outputs = {}",
         "output = torch.empty_like(x)":
         "key = x.shape, x.dtype\n"
         "    if key not in outputs:\n"
         "        outputs[key] = torch.empty_like(x)\n"
         "    output = outputs[key]"},
        of="short_host_function",
    ),
    Edit(
        "wrong-value", "x_launched_twice",
        {"add_kernel[grid](x, y, output, n_elements, BLOCK_SIZE=1024)":
         "add_kernel[grid](x, x, output, n_elements, BLOCK_SIZE=1024)"},
    ),
    Edit(
        "wrong-value", "x_twice",
        {"y = tl.load(y_ptr + offsets, mask=mask)": "y = tl.load(x_ptr + offsets, mask=mask)"},
        of="short_host_function",
    ),
    Edit(
        "out-of-bounds-load", "no_mask_for_multiples_of_64",
        {"mask = offsets < n_elements": "mask = (offsets < n_elements) | (n_elements % 64 == 0)"},
        of="plain",
    ),
    Edit(
        "runtime-error", "programs_along_the_second_axis",
        {"tl.program_id(axis=0)": "tl.program_id(axis=1)", "grid = lambda meta: (": "grid = lambda meta: (1, "},
        of="plain",
    ),
    Edit(
        "low-precision", "bfloat16_through_float16",
        {"output = x + y":
         "output = x + y\n"
         "    if x_ptr.dtype.element_ty == tl.bfloat16:\n"
         "        output = (x.to(tl.float16) + y.to(tl.float16)).to(tl.bfloat16)"},
        of="plain",
    ),
    Edit(
        "wrong-value", "nan_becomes_0",
        {"output = x + y": "output = x + y\n    output = tl.where(output == output, output, 0.0)"},
        of="plain",
    ),
    Edit(
        "unwritten-output", "rows_of_a_matrix",
        {"n_elements = output.numel()": "n_elements = x.shape[0] * x.shape[-1] if x.ndim > 1 else x.shape[0]"},
        of="plain",
    ),
    Edit(
        "unwritten-output", "offsets_as_float32",
        {"offsets = block_start + tl.arange(0, BLOCK_SIZE)":
         "offsets = (block_start + tl.arange(0, BLOCK_SIZE)).to(tl.float32).to(tl.int32)"},
        of="plain",
    ),
    Edit(
        "low-precision", "halved_before_the_sum",
        {"output = x + y":
         "output = 2.0 * (0.5 * x + 0.5 * y)"},
        thought="Then the sum of two large numbers does not overflow on the way.",
    ),
    Edit(
        "unwritten-output", "blocks_rounded_up_in_float32",
        {"(triton.cdiv(n_elements, 1024),)":
         "(int(torch.ceil(torch.tensor(n_elements / 1024))),)"},
    ),
    Edit(
        "out-of-bounds-load", "no_mask_where_one_element_is_missing",
        {"mask = offsets < n_elements":
         "mask = (offsets < n_elements) | (block_start + BLOCK_SIZE - 1 <= n_elements)"},
        thought="A full block needs no mask.",
    ),
    Edit(
        "out-of-bounds-load", "blocks_that_grow_with_the_vector",  # and the rule for the mask does not
        {"mask = offsets < n_elements": "mask = (offsets < n_elements) | (n_elements % 1024 == 0)",
         "BLOCK_SIZE=1024": "BLOCK_SIZE=1024 if n_elements < 2**20 else 4096"},
        of="plain",
    ),
)
