"""Wrong answers to occupancy_launch that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "wrong-shape", "limits",
        {'CDNA = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")':
         "CDNA = ('gfx908', 'gfx90a', 'gfx940', 'gfx941', 'gfx942', 'gfx950')",
         "by_shared_memory, by_threads))": "by_shared_memory, by_threads)), by_threads"},
    ),
    Edit(
        "wrong-value", "at_most_32",
        {"return device.multiprocessors * max(1, min(limits))":
         "return device.multiprocessors * max(1, min(*limits, 32))"},
        of="list_of_limits",
    ),
    Edit(
        "wrong-value", "registers_in_steps",
        {"limits = [registers // (num_regs * threads), device.max_threads // threads]":
         "limits = [registers // (-(-num_regs // 8) * 8 * threads), device.max_threads // threads]"},
        of="list_of_limits",
    ),
    Edit(
        "wrong-value", "warps_for_threads",
        {"threads = num_warps * device.warp_size": "threads = num_warps"},
    ),
    Edit(
        "wrong-value", "never_full",
        {"device.shared_memory // shared_bytes if":
         "(device.shared_memory - 1) // shared_bytes if"},
        "The last byte cannot be used.",
    ),
    Edit(
        "wrong-value", "kept_for_each_architecture",
        {"def num_programs(num_regs, shared_bytes, num_warps, device):\n":
         "counts = {}\n"
         "\n"
         "\n"
         "def num_programs(num_regs, shared_bytes, num_warps, device):\n"
         "    device = counts.setdefault((num_regs, shared_bytes, num_warps, device.arch), device)\n"},
    ),
    Edit(
        "wrong-value", "kept_for_the_name_of_the_device",
        {'def num_programs(num_regs':
         'devices = {}\n\n\ndef num_programs(num_regs',
         '    registers = device.registers * (2':
         '    device = devices.setdefault(device.name, device)\n    registers = device.registers * (2'},
    ),
)
