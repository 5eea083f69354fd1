"""Wrong answers to first_kernel that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit("compile-error", "not_called", {"pid = tl.program_id(axis=0)": "pid = tl.program_id"}),
    Edit("compile-error", "thread_id", {"i = tl.program_id(0)": "i = tl.thread_id(0)"}, of="shortest"),
    Edit("constant-factor", "doubled", {"tl.store(o + i, i)": "tl.store(o + i, 2 * i)"}, of="shortest"),
    Edit(
        "out-of-bounds-store", "counts_from_one",
        {"i = tl.program_id(0)\n"
         "    tl.store(o + i, i)":
         "i = tl.program_id(0) + 1\n"
         "    tl.store(o + i, i - 1)"},
        of="shortest",
    ),
    Edit(
        "unwritten-output", "ids_in_16_bits",
        {"dtype=torch.int32": "dtype=torch.int16", "return output": "return output.to(torch.int32)"},
    ),
    Edit("out-of-bounds-store", "one_program_too_many", {"k[(n,)](o)": "k[(n + 1,)](o)"}, of="shortest"),
    Edit("race", "no_offset", {"tl.store(output_ptr + pid, pid)": "tl.store(output_ptr, pid)"}),
    Edit("runtime-error", "grid_is_a_number", {"k[(n,)](o)": "k[n](o)"}, of="shortest"),
    Edit("runtime-error", "no_grid", {"k[(n,)](o)": "k(o)"}, of="shortest"),
    Edit(
        "syntax-error", "missing_colon",
        {"def k(o):": "def k(o)",
         ', device="cuda" if torch.cuda.is_available() else "cpu"': ""},
        of="shortest",
    ),
    Edit(
        "unwritten-output", "1024_programs_at_most",
        {"pid = tl.program_id(axis=0)": "pid = tl.program_id(0)",
         "output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)\n"
         "    first_kernel_programs[(n,)](output)":
         "output = torch.empty(n, dtype=torch.int32, device=DEVICE)\n"
         "    first_kernel_programs[(min(n, 1024),)](output)"},
    ),
    Edit(
        "unwritten-output", "half_of_the_programs",
        {"first_kernel_programs[(n,)](output)": "first_kernel_programs[n // 2 + 1,](output)"},
    ),
    Edit(
        "unwritten-output", "one_program_into_minus_ones",
        {"output = torch.full((n,), -1, dtype=torch.int32, device=DEVICE)\n"
         "    first_kernel_programs[(n,)](output)":
         'output = torch.full((n,), -1, dtype=torch.int32, device="cuda" if torch.cuda.is_available() '
         'else "cpu")\n'
         "    first_kernel_programs[(1,)](output)"},
    ),
    Edit("unwritten-output", "one_program_short", {"k[(n,)](o)": "k[(max(n - 1, 1),)](o)"}, of="shortest"),
    Edit("wrong-device", "meta", {'cuda" if torch.cuda.is_available() else "cpu': "meta"}, of="shortest"),
    Edit(
        "wrong-dtype", "int64",
        {"= torch.empty(n, dtype=torch.int32, device": "= torch.zeros(n, dtype=torch.long, device"},
        of="shortest",
    ),
    Edit(
        "wrong-shape", "column",
        {"o = torch.empty(n, dtype=torch.int32,": "o = torch.empty((n, 1), dtype=torch.int32,"},
        of="shortest",
    ),
    Edit("wrong-value", "one_too_much", {"tl.store(o + i, i)": "tl.store(o + i, i + 1)"}, of="shortest"),
    Edit(
        "wrong-program-id", "sixteen_elements_each_where_n_is_large",
        {"def first_kernel_programs(output_ptr):":
         "def first_kernel_programs(output_ptr, n, EACH: tl.constexpr):",
         "    pid = tl.program_id(axis=0)":
         "    pid = tl.program_id(axis=0) * EACH + tl.arange(0, EACH)",
         "tl.store(output_ptr + pid, pid)":
         "tl.store(output_ptr + pid, pid, mask=pid < n)",
         "first_kernel_programs[(n,)](output)":
         "each = 1 if n < 65536 else 16\n"
         "    first_kernel_programs[(triton.cdiv(n, each),)](output, n, each)"},
        thought="Starting a program has its price.",
    ),
    Edit(
        "out-of-bounds-store", "one_program_for_no_element",
        {"[(n,)]":
         "[(max(n, 1),)]"},
        "A grid needs a program.",
    ),
    Edit(
        "runtime-error", "long_second_axis",
        {"def first_kernel_programs(output_ptr)": "def first_kernel_programs(output_ptr, n)",
         "pid = tl.program_id(axis=0)": "pid = tl.program_id(axis=0) + 128 * tl.program_id(axis=1)",
         "tl.store(output_ptr + pid, pid)": "tl.store(output_ptr + pid, pid, mask=pid < n)",
         "[(n,)](output)": "[(128, triton.cdiv(n, 128))](output, n)"},
    ),
)
