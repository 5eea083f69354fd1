"""Wrong answers to occupancy that are edits of a right one."""

from autograder.gallery import Edit

EDITS = (
    Edit(
        "runtime-error", "divides_by_no_lds",
        {"by_lds = LDS[arch] // lds_bytes if lds_bytes else by_registers": "by_lds = LDS[arch] // lds_bytes"},
        of="plain",
    ),
    Edit(
        "wrong-dtype", "text",
        {"return workgroups * num_warps // 4": "return str(workgroups * num_warps // 4)"},
    ),
    Edit(
        "wrong-shape", "a_list",
        {"return workgroups * num_warps // 4": "return [workgroups * num_warps // 4]"},
    ),
    Edit(
        "wrong-value", "at_least_one",
        {"return groups * num_warps // 4": "return max(1, groups * num_warps // 4)"},
        of="groups_then_waves",
    ),
    Edit(
        "wrong-value", "granule_of_sixteen",
        {"allocated = (vgprs + 7) // 8 * 8": "allocated = (vgprs + 15) // 16 * 16"},
        of="plain",
    ),
    Edit(
        "wrong-value", "half_the_registers",
        {"by_registers = min(8, 512 // allocated) * 4 // num_warps":
         "by_registers = min(8, 256 // allocated) * 4 // num_warps"},
        of="plain",
    ),
    Edit(
        "wrong-value", "lds_alone",
        {"workgroups = min(workgroups, LDS[arch] // lds_bytes)": "workgroups = LDS[arch] // lds_bytes"},
    ),
    Edit(
        "wrong-value", "lds_for_nothing",
        {"by_lds = LDS[arch] // lds_bytes if lds_bytes else by_registers": "by_lds = by_registers"},
        of="plain",
    ),
    Edit(
        "wrong-value", "lds_in_thousands",
        {'LDS = {"gfx90a": 64 * 1024, "gfx942": 64 * 1024, "gfx950": 160 * 1024}':
         'LDS = {"gfx90a": 64_000, "gfx942": 64_000, "gfx950": 160_000}'},
        of="groups_then_waves",
    ),
    Edit(
        "wrong-value", "lds_of_gfx942_everywhere",
        {'LDS = {"gfx90a": 65536, "gfx942": 65536, "gfx950": 163840}':
         'LDS = {"gfx90a": 65536, "gfx942": 65536, "gfx950": 65536}'},
        of="plain",
    ),
    Edit(
        "wrong-value", "lds_of_one_unit",
        {"workgroups = min(workgroups, LDS[arch] // lds_bytes)":
         "workgroups = min(workgroups, LDS[arch] // 4 // lds_bytes)"},
    ),
    Edit("wrong-value", "no_granule", {"allocated = (vgprs + 7) // 8 * 8": "allocated = vgprs"}, of="plain"),
    Edit(
        "wrong-value", "no_wave_slots",
        {"by_registers = min(8, 512 // allocated) * 4 // num_warps":
         "by_registers = (512 // allocated) * 4 // num_warps"},
        of="plain",
    ),
    Edit(
        "wrong-value", "not_rounded",
        {"return groups * num_warps // 4": "return groups * num_warps / 4"},
        of="groups_then_waves",
    ),
    Edit(
        "wrong-value", "one_over_a_granule",
        {"allocated = (vgprs + 7) // 8 * 8": "allocated = (vgprs + 6) // 8 * 8"},
    ),
    Edit(
        "wrong-value", "parts_of_workgroups",
        {"alloc = (vgprs + 7) // 8 * 8\n"
         "    groups = min(8, 512 // alloc) * 4 // num_warps":
         "allocated = -(-vgprs // 8) * 8\n"
         "    waves = min(8, 512 // allocated)\n"
         "    groups = waves * 4 / num_warps"},
        of="groups_then_waves",
    ),
    Edit(
        "wrong-value", "rounded_up",
        {"workgroups = min(8, 512 // allocated) * 4 // num_warps":
         "workgroups = min(8, -(-512 // allocated)) * 4 // num_warps"},
    ),
    Edit(
        "wrong-value", "share_of_eight_waves",
        {"return workgroups * num_warps // 4": "return workgroups * num_warps // 4 / 8"},
    ),
    Edit(
        "wrong-value", "waves_for_workgroups",
        {"workgroups = min(8, 512 // allocated) * 4 // num_warps": "workgroups = min(8, 512 // allocated)"},
    ),
    Edit(
        "wrong-value", "workgroups",
        {"return min(by_registers, by_lds) * num_warps // 4": "return min(by_registers, by_lds)"},
        of="plain",
    ),
    Edit(
        "wrong-value", "workgroups_of_one_wave",
        {"workgroups = min(8, 512 // allocated) * 4 // num_warps": "workgroups = min(8, 512 // allocated) * 4",
         "return workgroups * num_warps // 4": "return workgroups // 4"},
    ),
    Edit(
        "wrong-value", "full_registers_have_no_room",
        {"512 // allocated": "511 // allocated"},
    ),
    Edit(
        "wrong-value", "a_full_lds_has_no_room",
        {"LDS[arch] // lds_bytes": "(LDS[arch] - 1) // lds_bytes"},
        of="plain",
    ),
)
