"""An access that is checked by its corners is seen as if each lane were looked at; uniform numbers wrap around."""

import pytest
import torch
from executing import body, watch

from workshop.executor import memory, records

BLOCKS = {
    "in a row": ("tl.store(out_ptr + pid * B + i, tl.load(x_ptr + pid * B + i))", 8),
    "ragged": ("at = pid * B + i\n    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < 100), mask=at < 100)", 8),
    "the same for all": ("tl.store(out_ptr + i, tl.load(x_ptr + i))", 3),
    "the same, and shorter": ("tl.store(out_ptr + i, 1.0, mask=i < 16 - pid)", 9),
    "overlapping": ("tl.store(out_ptr + pid * 3 + i, tl.load(x_ptr + pid * 5 + i) + pid)", 5),
    "backwards": ("tl.store(out_ptr + 64 - pid * B + i, tl.load(x_ptr + 80 - pid * 16 + i))", 4),
    "of some programs": ("if pid % 3 == 1:\n        tl.store(out_ptr + pid * B + i, tl.load(x_ptr + i))", 7),
    "in rows with gaps": ("tl.store(out_ptr + pid * 24 + i, tl.load(y_ptr + pid * 20 + i))", 5),
    "over the end of a row": ("tl.store(out_ptr + i, tl.load(y_ptr + pid * 20 + i + 1, mask=i > 99 - pid))", 5),
    "into a gap": ("tl.store(out_ptr + i, tl.load(y_ptr + pid * 20 + i + (pid == 3) * 1))", 5),
    "past the end": ("tl.store(out_ptr + pid * B + i, tl.load(x_ptr + pid * B + i))", 9),
    "before the start": ("tl.store(out_ptr + pid * B + i, tl.load(x_ptr + pid * B + i - (pid == 0) * 2))", 3),
    "of two tensors": ("at = tl.where(pid > 1, x_ptr, out_ptr)\n    tl.store(at + i, 1.0)", 4),
    "tiles": (
        "j = tl.arange(0, 4)[:, None]\n    tl.store(out_ptr + pid * 4 + j * 20 + tl.arange(0, 4)[None, :], 1.0, "
        "mask=(j < 4 - pid % 2) & (tl.arange(0, 4)[None, :] < 3))",
        5,
    ),
}  # fmt: skip


def seen(lines: str, programs: int) -> list:
    torch.manual_seed(0)
    x, y, out = torch.rand(128), torch.rand(5, 20)[:, :16], torch.zeros(128)
    parameters = "x_ptr, y_ptr, out_ptr, B: tl.constexpr"
    kernel = body("pid = tl.program_id(0)", "i = tl.arange(0, B)", lines, parameters=parameters)
    try:
        with watch() as found:
            kernel[(programs,)](x, y, out, B=16)
    except records.Fault as error:
        return [str(error), out.tolist()]
    (launch,) = found.launches
    counts = [(a.reads.tolist(), a.writes.tolist(), a.bytes_loaded) for a in launch.arguments.values()]
    races = sorted({(race.kind, race.index, race.same_value, race.first != race.second) for race in launch.races})
    lanes = launch.masked_lanes, launch.storing.tolist(), len(launch.races)
    return [x.tolist(), repr(out.tolist()), counts, races, *lanes]


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("most", [64, 0])
def test_corners_say_what_every_lane_would(name, most, monkeypatch):
    monkeypatch.setattr(memory, "MOST_BOXES", most)
    found = seen(*BLOCKS[name])
    monkeypatch.setattr(memory.Memory, "_by_corners", lambda *_: None)
    assert found == seen(*BLOCKS[name])


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("number", ["n", "n + tl.program_id(0)"])
def test_uniform_numbers_wrap_around(bits, number):
    lines = f"""k = ({number}).to(tl.int{bits})
    k = k * {0x5851F42D4C957F2D if bits == 64 else 0x5851F42D} - 3
    k = k * k + k
    tl.store(out_ptr + tl.program_id(0) * 8 + tl.arange(0, 8), k + tl.arange(0, 8) * k)"""
    out = torch.zeros(3, 8, dtype=torch.int64 if bits == 64 else torch.int32)
    body(lines, parameters="out_ptr, n")[(3,)](out, 123_456_789)
    for program in range(3):
        k = 123_456_789 + program * (number != "n")
        k = k * (0x5851F42D4C957F2D if bits == 64 else 0x5851F42D) - 3
        k = k * k + k
        expected = [k + i * k for i in range(8)]
        assert out[program].tolist() == [(e + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for e in expected]
