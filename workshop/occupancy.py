"""What exercises ask for: how many waves and programs fit on a GPU at once, and the order of a product's tiles."""

import math
from dataclasses import dataclass

from workshop.device import DeviceFacts
from workshop.picture import count

EXECUTION_UNITS = 4  # SIMD units per compute unit


@dataclass(frozen=True)
class ComputeUnit:
    """What a CDNA compute unit can hold: vector registers per lane of an execution unit (accumulation
    registers included) and the granule they are handed out in, waves per execution unit, bytes of LDS."""

    vgprs: int
    vgpr_granule: int
    max_waves: int
    lds: int


# LLVM's AMDGPU backend: getTotalNumVGPRs, getVGPRAllocGranule and getMaxWavesPerEU for subtargets with gfx90a
# instructions, and the local memory size of each; "User Guide for AMDGPU Backend" has the granule as well.
COMPUTE_UNITS = {
    "gfx90a": ComputeUnit(512, 8, 8, 64 * 1024),
    "gfx942": ComputeUnit(512, 8, 8, 64 * 1024),
    "gfx950": ComputeUnit(512, 8, 8, 160 * 1024),
}


class Occupancy(int):
    """Waves per execution unit: an int that can say where it comes from.

    `vgprs_allocated` per wave; `waves_by_vgprs` per execution unit; `workgroups_by_vgprs`,
    `workgroups_by_lds` (None without LDS) and `workgroups` per compute unit; `limiter` is "VGPRs", "LDS" or
    "wave slots".
    """

    def explain(self) -> str:
        """Where the number comes from, in one sentence per step."""
        by_lds = "no LDS is used" if self.workgroups_by_lds is None else f"LDS has room for {self.workgroups_by_lds}"
        return (
            f"{self.vgprs_allocated} vector registers per wave leave room for {count(self.waves_by_vgprs, 'wave')} on "
            f"an execution unit, which is {count(self.workgroups_by_vgprs, 'workgroup')} on a compute unit; {by_lds}. "
            f"So {count(self.workgroups, 'workgroup')} can run at once: {count(int(self), 'wave')} per execution "
            f"unit, limited by {self.limiter}."
        )


def occupancy(vgprs: int, lds_bytes: int, num_warps: int, arch: str | ComputeUnit) -> Occupancy:
    """Waves per execution unit of a CDNA GPU, rounded down.

    vgprs: vector registers of one wave, accumulation registers included (`.vgpr_count`). lds_bytes: of one
    program. num_warps: waves of one program. arch: gfx90a, gfx942 or gfx950; ValueError otherwise.
    """
    if arch not in COMPUTE_UNITS and not isinstance(arch, ComputeUnit):
        raise ValueError(f"unknown architecture {arch!r}; known: {', '.join(COMPUTE_UNITS)}")
    unit = COMPUTE_UNITS.get(arch, arch)
    if vgprs < 0 or lds_bytes < 0 or num_warps < 1:
        raise ValueError(f"vgprs={vgprs}, lds_bytes={lds_bytes}, num_warps={num_warps} cannot describe a kernel")
    allocated = -(-max(vgprs, 1) // unit.vgpr_granule) * unit.vgpr_granule
    waves_by_vgprs = min(unit.max_waves, unit.vgprs // allocated)
    by_vgprs = waves_by_vgprs * EXECUTION_UNITS // num_warps
    by_lds = unit.lds // lds_bytes if lds_bytes else None
    workgroups = by_vgprs if by_lds is None else min(by_vgprs, by_lds)

    result = Occupancy(workgroups * num_warps // EXECUTION_UNITS)
    result.vgprs_allocated, result.waves_by_vgprs = allocated, waves_by_vgprs
    result.workgroups_by_vgprs, result.workgroups_by_lds, result.workgroups = by_vgprs, by_lds, workgroups
    result.limiter = "VGPRs" if waves_by_vgprs < unit.max_waves else "wave slots"
    if workgroups < by_vgprs:
        result.limiter = "LDS"
    return result


def num_programs(num_regs: int, shared_bytes: int, num_warps: int, device: DeviceFacts) -> int:
    """Programs that run on the whole device at once: the size of a persistent launch.

    num_regs: 32-bit registers of one thread (`n_regs` of a compiled kernel). shared_bytes: of one program,
    0 for none. At least one for each multiprocessor: a launch of no programs would compute nothing. What the
    driver does not report is left out, such as the 32 blocks that a multiprocessor of Hopper holds at most.
    """
    resources = programs_by_resource(num_regs, shared_bytes, num_warps, device)
    return max(1, int(min(fit for _, _, fit in resources.values()))) * device.multiprocessors


def programs_by_resource(
    num_regs: int, shared_bytes: int, num_warps: int, device: DeviceFacts
) -> dict[str, tuple[int, int, float]]:
    """By resource: what a program needs, what a multiprocessor has, and how many programs that makes.

    Arguments as of `num_programs`. The number is infinite for a resource that a program does not need.
    """
    threads = num_warps * device.warp_size
    needs = {
        "registers": (num_regs * threads, device.registers * (2 if device.is_cdna else 1)),
        "shared memory": (shared_bytes, device.shared_memory),
        "thread slots": (threads, device.max_threads),
    }
    return {name: (need, has, has // need if need else math.inf) for name, (need, has) in needs.items()}


def swizzle(pid: int, num_m: int, num_n: int, group: int) -> tuple[int, int]:
    """The row and column of the tile that a program computes, of num_m × num_n tiles.

    Groups of `group` rows of tiles, column by column inside a group; the last group is as high as it is.
    """
    first = pid // (group * num_n) * group
    height = min(num_m - first, group)
    within = pid % (group * num_n)
    return first + within % height, within // height
