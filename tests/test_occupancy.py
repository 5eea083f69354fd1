"""The occupancy formulas agree with the compiler and with tables worked out by hand."""

import re

import pytest
import torch

from workshop import KNOWN_DEVICES, num_programs, occupancy, xray
from workshop.occupancy import COMPUTE_UNITS


@pytest.mark.parametrize(
    ("vgprs", "lds_bytes", "num_warps", "arch", "waves", "limiter"),
    [
        (32, 0, 1, "gfx942", 8, "wave slots"),
        (64, 32, 8, "gfx942", 8, "wave slots"),
        (65, 32, 8, "gfx942", 6, "VGPRs"),  # 72 registers: 7 waves fit, in workgroups of 8 only 3 x 8
        (114, 16, 4, "gfx942", 4, "VGPRs"),
        (94, 32, 8, "gfx942", 4, "VGPRs"),
        (357, 16, 4, "gfx90a", 1, "VGPRs"),
        (512, 0, 16, "gfx942", 0, "VGPRs"),
        (32, 32768, 4, "gfx942", 2, "LDS"),
        (32, 32768, 4, "gfx950", 5, "LDS"),
        (32, 65537, 4, "gfx942", 0, "LDS"),
    ],
)
def test_waves_and_what_limits_them(vgprs, lds_bytes, num_warps, arch, waves, limiter):
    result = occupancy(vgprs, lds_bytes, num_warps, arch)
    assert (result, result.limiter) == (waves, limiter)
    assert f"limited by {limiter}" in result.explain()


@pytest.mark.parametrize("wrong", [(-1, 0, 4), (32, -1, 4), (32, 0, 0)])
def test_impossible_kernels_are_refused(wrong):
    with pytest.raises(ValueError, match="cannot describe a kernel"):
        occupancy(*wrong, "gfx942")


def test_unknown_architectures_are_refused_by_name():
    with pytest.raises(ValueError, match="'gfx1100'.*gfx942"):
        occupancy(32, 0, 4, "gfx1100")


@pytest.fixture(scope="module")
def held():
    """(num_warps, report for every AMD GPU) of a kernel per point of the curve."""
    from probes_xray import held_rows

    x, targets = torch.empty(64, 32768), tuple(sorted(COMPUTE_UNITS))
    shapes = ((1024, 4), (8192, 8), (8192, 4), (16384, 4), (32768, 4))
    return [
        (num_warps, xray(held_rows, x, x, 32768, BLOCK_SIZE=size, num_warps=num_warps, targets=targets))
        for size, num_warps in shapes
    ]


@pytest.mark.parametrize("arch", sorted(COMPUTE_UNITS))
def test_registers_agree_with_llvm(arch, held):
    """LLVM prints the waves that the registers alone allow."""
    seen = set()
    for num_warps, report in held:
        ours = occupancy(report[arch].vgprs, 0, num_warps, arch).waves_by_vgprs
        assert ours == int(re.search(r"; Occupancy:\s+(\d+)", report[arch].isa)[1]), (num_warps, report[arch].vgprs)
        seen.add(ours)
    assert len(seen) >= 3


@pytest.mark.parametrize(
    ("name", "num_regs", "shared_bytes", "num_warps", "per_unit"),
    [
        ("NVIDIA H200", 40, 4112, 4, 12),
        ("NVIDIA H200", 64, 0, 8, 4),
        ("NVIDIA H200", 16, 0, 1, 64),
        ("NVIDIA H200", 32, 131072, 4, 1),
        ("NVIDIA A100", 58, 32800, 8, 4),
        ("AMD Instinct MI300X", 62, 32, 8, 4),  # half of the file would give 2
        ("AMD Instinct MI300X", 32, 0, 1, 32),
        ("AMD Instinct MI355X", 32, 65536, 4, 2),
        ("AMD Instinct MI210", 512, 0, 16, 1),  # none fits, and a launch of none would compute nothing
    ],
)
def test_persistent_launch(name, num_regs, shared_bytes, num_warps, per_unit):
    facts = KNOWN_DEVICES[name]
    assert num_programs(num_regs, shared_bytes, num_warps, facts) == per_unit * facts.multiprocessors


def test_one_is_not_a_plural():
    assert "leave room for 1 wave on" in occupancy(500, 0, 1, "gfx942").explain()
