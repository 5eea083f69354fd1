"""Pictures that move: what they say is true, they change with their controls, and they do without widgets."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from workshop import explore
from workshop.backend import interpreting
from workshop.device import CARDS
from workshop.explore import online_softmax_steps
from workshop.explore.matmul import strips
from workshop.explore.softmax import traffic
from workshop.occupancy import swizzle


def svg(picture) -> ElementTree.Element:
    html = picture._repr_html_()
    return ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + len("</svg>")])


def boxes(picture) -> list[ElementTree.Element]:
    return [element for element in svg(picture).iter() if element.tag == "rect"]


def crossed(picture) -> int:
    return sum("stroke-dasharray" in box.attrib for box in boxes(picture))


def test_launch_grid_counts_programs_lanes_and_masked_lanes():
    picture = explore.launch_grid(n=21, block_size=8).picture
    assert "3 programs of 8 lanes: 24 lanes for 21 elements, 3 masked off (12%)" in picture.text
    assert crossed(picture) == 3


EXPLORERS = [explore.launch_grid, explore.online_softmax, explore.passes, explore.programs, explore.occupancy,
             explore.l2_tiles, explore.tile_walk]  # fmt: skip


@pytest.mark.parametrize("make", EXPLORERS)
def test_every_frame_is_in_the_page_and_is_what_is_drawn(make):
    explorer = make()
    shape = [len(control.options) for control in explorer.controls.values()]
    frames, parts = explorer.frames["frames"], explorer.frames["parts"]
    assert len(frames) == np.prod(shape)
    for number in (0, len(frames) // 3, len(frames) - 1):
        values = [c.options[i] for c, i in zip(explorer.controls.values(), np.unravel_index(number, shape))]
        picture = explorer._draw(*values)
        assert "".join(parts[part] for part in frames[number]) == (picture.html if picture else "")


@pytest.mark.parametrize("make", EXPLORERS)
def test_an_output_is_small_needs_no_kernel_and_has_its_first_frame(make):
    bundle = make()._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"} and len(bundle["text/html"]) < 80_000
    assert 'src="data:image/svg+xml' in bundle["text/html"] and "src='http" not in bundle["text/html"]


@pytest.mark.parametrize("block", [1, 3, 4, 16])
@pytest.mark.parametrize("row", [np.arange(11.0), np.arange(11.0)[::-1], np.full(5, 700.0), np.array([-3.0])])
def test_online_softmax_ends_with_the_maximum_and_the_sum(row, block):
    last = online_softmax_steps(row, block)[-1]
    terms = np.exp(row - row.max())
    assert last.m == row.max()
    assert last.d == pytest.approx(terms.sum())
    assert last.parts == pytest.approx(terms)


def test_leaving_the_rescale_out_shows_when_the_maximum_grows():
    ascending = explore.online_softmax([1, 2, 3, 4], block=2)
    assert "adds up to 1," in ascending.at(step=3).text
    wrong = ascending.at(step=3, without_rescale=True)
    assert "not 1" in wrong.text and 'class="wrong"' in wrong.html


def test_a_first_block_of_minus_infinity_gives_nan():
    assert np.isnan(online_softmax_steps(np.array([-np.inf, -np.inf, 1.0]), 2)[-1].d)


def test_memory_traffic_marks_unwritten_and_doubly_written_elements():
    writes = np.ones((4, 6), int)
    writes[3, 4:] = 0
    writes[0, 0] = 2
    picture = explore.memory_traffic({"y_ptr": (np.zeros_like(writes), writes)})
    assert "y_ptr, 4 × 6: each element written 0 to 2 times" in picture.text
    assert "2 never" in picture.text
    assert "1 more than once" in picture.text
    assert crossed(picture) == 2
    assert len(boxes(picture)) == writes.size


@pytest.mark.parametrize("shape", [(100_000,), (300, 2000), (5000, 1), (2, 3, 400)])
def test_one_unwritten_element_is_seen_in_a_tensor_of_any_size(shape):
    writes = np.ones(shape, int)
    writes.flat[-1] = 0
    picture = explore.memory_traffic({"y": (np.zeros_like(writes), writes)})
    assert crossed(picture) == 1
    assert len(boxes(picture)) <= 512


@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (4, 0)])
def test_scalars_and_empty_tensors_have_a_picture(shape):
    counts = np.ones(shape, int)
    assert "x, " in explore.memory_traffic({"x": (counts, counts * 0)}).text


@pytest.mark.skipif(not interpreting(), reason="nothing is counted on a GPU")
def test_memory_traffic_of_a_kernel():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        mask = offsets < n - 2
        tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)

    x = torch.rand(20)
    picture = explore.memory_traffic(lambda: copy_kernel[(3,)](x, torch.empty_like(x), 20, BLOCK_SIZE=8))
    assert "x_ptr, 20: each element read 0 to 1 times" in picture.text
    assert "y_ptr, 20: each element written 0 to 1 times; 2 never" in picture.text


def test_names_are_shown_as_text():
    counts = np.ones(3, int)
    assert "<script>" not in explore.memory_traffic({"<script>": (counts, counts)})._repr_html_()


def test_occupancy_says_what_limits():
    registers = explore.occupancy(vgprs=114, lds_bytes=16, num_warps=4)
    assert "4 waves per execution unit, limited by VGPRs" in registers.picture.text
    local = explore.occupancy(vgprs=32, lds_bytes=32768, num_warps=4)
    assert "2 waves per execution unit, limited by LDS" in local.picture.text
    assert "Not one program fits" in explore.occupancy(vgprs=512, num_warps=8).picture.text


def test_the_architecture_sets_how_much_lds_there_is():
    sliders = explore.occupancy("gfx950")
    assert "of 163840 bytes" in sliders.picture.html
    assert "of 65536 bytes" in sliders.at(arch="gfx942").html
    assert "Not one program fits" in sliders.at(arch="gfx942", lds_bytes=163_840).text


@pytest.mark.parametrize(
    "make",
    [
        lambda: explore.launch_grid(0),
        lambda: explore.launch_grid(33),
        lambda: explore.launch_grid(20, 12),
        lambda: explore.online_softmax([]),
        lambda: explore.online_softmax([[1, 2]]),
        lambda: explore.online_softmax(range(17)),
        lambda: explore.online_softmax([1], block=0),
        lambda: explore.occupancy("sm_90"),
        lambda: explore.memory_traffic({"x": (np.ones(2), np.ones(3))}),
    ],
)
def test_what_cannot_be_drawn_is_refused(make):
    with pytest.raises(ValueError, match=r".{20}"):
        make()


@pytest.mark.parametrize("make", [explore.launch_grid, explore.online_softmax, explore.occupancy])
def test_a_picture_says_in_words_what_it_shows(make):
    drawing = svg(make().picture)
    assert drawing.get("role") == "img"
    assert len(drawing.get("aria-label")) > 30


@pytest.mark.parametrize(("kernel", "each"), [("three passes", 16), ("two passes", 12), ("one pass", 8)])
def test_a_walk_counts_the_bytes_of_its_passes(kernel, each):
    explorer = explore.passes(kernel)
    last = max(step for step in explorer.controls["step"].options if explorer.at(step=step))
    reads, writes = traffic(kernel, last)
    assert set(reads) == {each // 4 - 1} and set(writes) == {1}
    assert f"Done: {each} bytes for each element" in explorer.at(step=last).text
    assert "aria-current=step" in explorer.at(step=last).html
    assert "0 bytes moved so far" in explore.passes(kernel).picture.text


@pytest.mark.parametrize(("gpu", "launch"), [("H200", "12 × 132 = 1,584"), ("MI300X", "8 × 304 = 2,432")])
def test_programs_are_those_of_the_formula(gpu, launch):
    shown = explore.programs(gpu, 40 if gpu == "H200" else 60, 4112, 4).picture
    assert launch in shown.text
    assert "room for" in shown.html


def test_a_program_that_does_not_fit_is_told_so():
    assert "Not one program fits" in explore.programs("H200", 255, 0, 16).picture.text


def test_the_line_of_the_recurrence_follows_the_walk_and_is_no_blank_of_the_quiz():
    explorer = explore.online_softmax([1, 2, 3, 4], block=2)
    lit = [re.findall(r'class="lit"[^>]*>([^<]*)<', explorer.at(step=step).html) for step in range(4)]
    assert lit[0] == ["m, d = −∞, 0"] and len(lit[1]) == 4
    assert lit[3] == ["    result = e^(x − m) / d"]
    assert "tl." not in explorer.picture.html and "in_max" not in explorer.picture.html


def test_a_difference_is_coloured_folded_and_counted():
    changes = "spills: 0 -> 2\n\n--- this\n+++ other\n@@ -1 +1 @@\n same\n"
    changes += "-old_load v1\n+scratch_store <v2>\n+scratch_load v3"
    shown = explore.difference(changes, "scratch_")
    assert "2 instructions more, 1 instruction fewer. 2 changed lines with scratch_." in shown.text
    assert "scratch_store &lt;v2&gt;" in shown.html and "<details>" in shown.html and "old_load" not in shown.text


@pytest.mark.parametrize(("group", "expected"), [(1, (2, 16)), (8, (8, 4)), (16, (16, 2))])
def test_strips_of_tiles_that_run_together(group, expected):
    assert strips(0, 32, group) == expected
    assert len({swizzle(pid, 5, 3, group) for pid in range(15)}) == 15


def test_a_walk_ends_with_all_products():
    last = explore.tile_walk().at(block=4, step=3)
    assert "1 lane along k is behind the end" in last.text and "has 11 of 11 products" in last.text
    assert explore.tile_walk().at(block=4, step=4) is None


def test_recorded_products_have_a_row_for_each_shape_and_their_card():
    text = explore.recorded_products("squares_bfloat16", ("torch", "lesson 9")).text
    first, *rows, about = text.splitlines()
    assert first.split()[-3:] == ["torch", "lesson", "9"] and len(rows) == 5
    assert about.startswith("TFLOP/s, median. NVIDIA H200")


def test_the_roofline_says_which_limit_is_the_nearer_one():
    assert [card.name for card in CARDS if 1000 * card.tflops / card.gbps < 64] == []
    memory, arithmetic = 3 * 8192**2 * 2 / 4800e9, 2 * 8192**3 / 989e12
    assert f"{1e6 * memory:,.1f} µs  {1e6 * arithmetic:,.1f} µs" in explore.roofline(8192).text
    assert "memory" in explore.roofline(256, 8192).text and "not a measurement" in explore.roofline(256).text
