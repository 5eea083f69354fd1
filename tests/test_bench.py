"""Measured numbers can be trusted, counted ones are exact, and a CPU is never timed."""

import csv
import sys
from types import SimpleNamespace

import pytest
import torch

import workshop
from workshop import DEVICE, compare, count_bytes, matches, recorded
from workshop import results as results_module
from workshop.bench import Counted, Gbps, Results
from workshop.executor.records import Fault
from workshop.traffic import recording

bench, timing = sys.modules["workshop.bench"], sys.modules["workshop.timing"]
interpreted = pytest.mark.skipif(DEVICE.type != "cpu", reason="nothing is counted on a GPU")


def triton_kernels():
    import triton
    import triton.language as tl

    @triton.jit
    def repeated_copy(x_ptr, out_ptr, n, times: tl.constexpr, reach: tl.constexpr, BLOCK_SIZE: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        total = tl.zeros((BLOCK_SIZE,), tl.float32)
        for _ in range(times):
            total += tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, total / times, mask=offsets < n + reach)

    def provider(times, reach=0):
        def copy(x):
            out = torch.empty_like(x)
            repeated_copy[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), times, reach, 256)
            return out

        return copy

    return provider


@interpreted
@pytest.mark.parametrize(("times", "expected"), [(1, 8), (2, 12), (3, 16)])
def test_bytes_per_element_are_counted(times, expected):
    x = torch.rand(1000)
    traffic = count_bytes(triton_kernels()(times), x)
    assert traffic.per_element(x.numel()) == expected
    assert torch.allclose(traffic.result, x)
    assert (traffic["x_ptr"].reads == times).all() and (traffic["x_ptr"].writes == 0).all()
    assert traffic["out_ptr"].writes.shape == x.shape and (traffic["out_ptr"].writes == 1).all()
    assert f"read {'once' if times == 1 else f'{times} times'}" in str(traffic)


@interpreted
def test_a_tensor_given_twice_is_counted_once():
    import triton
    import triton.language as tl

    @triton.jit
    def double(x_ptr, y_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
        offsets = tl.arange(0, BLOCK_SIZE)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets))

    def call(x):
        out = torch.empty_like(x)
        double[(1,)](x, x, out, 8)
        return out

    x = torch.rand(8)
    with recording() as traffic:
        call(x)
        call(x)
    assert traffic.launches == 2 and traffic.bytes_read == 4 * x.nbytes
    assert (traffic["x_ptr"].reads == 4).all()
    assert traffic.tensors[0].name == "x_ptr" and "y_ptr" not in [tensor.name for tensor in traffic.tensors]


@interpreted
def test_gaps_between_rows_do_not_belong_to_a_tensor():
    rows = torch.rand(4, 300)[:, :200]
    with pytest.raises(Fault, match="reads outside of .* in the gap between the rows"):
        count_bytes(triton_kernels()(1), rows)


@interpreted
def test_a_store_outside_is_stopped_before_memory_is_touched():
    with pytest.raises(Fault, match="writes outside of out_ptr: 7 lanes, .* at element 1000"):
        count_bytes(triton_kernels()(1, reach=7), torch.rand(1000))


@interpreted
def test_what_is_launched_after_the_count_is_not_counted():
    copy = triton_kernels()(1)
    with recording() as outer:
        traffic = count_bytes(copy, torch.rand(8))
        copy(torch.rand(8))
    copy(torch.rand(8))
    assert traffic.launches == 1 and outer.launches == 2


@interpreted
def test_without_a_gpu_compare_counts_and_never_times():
    provider = triton_kernels()

    def unfinished(x):
        raise ValueError("not yet")

    result = compare(
        {"torch": torch.clone, "once": provider(1), "thrice": provider(3), "unfinished": unfinished},
        lambda n: (torch.rand(n),),
        [1 << 20, 1 << 16],
        lambda x: 2 * x.nbytes,
        recorded="h200_softmax_float32",
    )
    assert isinstance(result, Counted)
    table = result.table()
    assert table.loc["once", "bytes per element"] == 8
    assert table.loc["thrice", "bytes per element"] == 16
    assert table.loc["thrice", "at most, of copy"] == "50%"
    assert "no Triton kernel" in table.loc["torch", "note"]
    assert "not yet" in table.loc["unfinished", "note"]
    page = result._repr_html_()
    assert "nothing is timed" in page and "NVIDIA H200" in page
    assert "GB/s" not in page.split("<table")[1]
    assert result.plot().axes[0].get_ylabel() == "GB/s"


@pytest.mark.parametrize(("value", "words"), [(4111.4, "4,111"), (6.0625, "6.06"), (8.0, "8")])
def test_counts_are_shown_without_powers_of_ten(value, words):
    assert results_module.shown(value) == words


def test_shares_are_those_of_the_copy():
    curves = recorded("h200_softmax_float32")
    shares = curves.only("torch").shares()
    assert list(shares.columns) == ["torch"] and list(shares.index) == sorted({row.size for row in curves.rows})
    assert shares["torch"].between(0, 1.1).all()


@interpreted
def test_without_recorded_curves_the_counts_are_drawn():
    result = compare({"once": triton_kernels()(1)}, lambda n: (torch.rand(n),), [512], lambda x: 2 * x.nbytes)
    axes = result.plot().axes[0]
    assert axes.get_xlabel() == "bytes per element"
    assert sum(bar.get_width() for bar in axes.patches) == 8


class Clock:
    """Stands in for the GPU's timer: each call takes the milliseconds its function is marked with."""

    calls: list = []

    def milliseconds(self, function, *inputs):
        Clock.calls.append(getattr(function, "__name__", "clone"))
        return getattr(function, "takes", 2.0), function(*inputs)


def takes(milliseconds, function):
    function.takes = milliseconds
    return function


@pytest.fixture
def pretend_gpu(monkeypatch):
    """compare measures, with CPU tensors and a clock that is set by the test."""
    about = dict(name="Pretend GPU", arch="x", driver="1", torch="2", triton="3", interpreting=False)
    monkeypatch.setattr(bench, "device", lambda: SimpleNamespace(**about))
    monkeypatch.setattr(bench, "this_card", lambda: "pretended")
    monkeypatch.setattr(timing, "torch_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(bench, "Timer", Clock)
    Clock.calls = []


def measure(providers, check=None, sizes=(1 << 20,), repeats=5):
    inputs = lambda n: (torch.rand(n),)  # noqa: E731
    return compare(
        providers, inputs, sizes, lambda x: 2 * x.nbytes, check=check, repeats=repeats, title="Copy"
    )


def row(results, provider):
    return next(row for row in results.rows if row.provider == provider)


def test_speed_is_beside_the_copy_of_the_same_size(pretend_gpu):
    results = measure({"slow": takes(4.0, lambda x: x.clone())})
    assert isinstance(results, Results)
    assert row(results, "copy").gbps == Gbps(*[pytest.approx(2 * 4 * 2**20 / 2e6)] * 3)
    assert row(results, "slow").of_copy == pytest.approx(0.5)
    assert row(results, "slow").nbytes == 8 * 2**20


def test_providers_are_interleaved(pretend_gpu):
    def a(x):
        return x.clone()

    def b(x):
        return x.clone()

    measure({"a": a, "b": b}, repeats=3)
    assert Clock.calls == ["clone", "a", "b"] * 3


def test_faster_than_the_copy_is_a_measuring_error(pretend_gpu):
    results = measure({"lucky": takes(1.0, lambda x: x.clone())})
    assert "200% of copy: a measuring error" in row(results, "lucky").note
    assert any("measuring error" in note for note in results.notes())


def test_a_kernel_that_reads_more_than_it_writes_may_be_faster_than_the_copy(pretend_gpu):
    half = takes(1.0, lambda x: x[: x.numel() // 2].clone())
    note = row(measure({"half": half}), "half").note
    assert "it writes 25% of its bytes, a copy 50%" in note and "error" not in note


def test_little_traffic_is_said_to_be_little(pretend_gpu, monkeypatch):
    assert results_module.TRUSTED == 1 << 30
    monkeypatch.setattr(results_module, "TRUSTED", 1 << 24)  # as much as the largest size moves
    results = measure({"fine": torch.clone}, sizes=(1 << 10, 1 << 20, 1 << 21), repeats=1)
    assert results.notes() == [
        "up to N = 1,048,576, a call moves less than 1 GiB: launch overhead and caches affect the number"
    ]


def test_every_timed_call_is_checked(pretend_gpu):
    calls = []

    def wrong_once(x):
        calls.append(1)
        return x.clone() if len(calls) < bench.WARMUPS + 3 else torch.zeros_like(x)

    results = measure({"wrong once": wrong_once, "right": torch.clone}, check=matches(torch.clone))
    assert row(results, "wrong once").gbps is None
    assert "wrong result" in row(results, "wrong once").note
    assert row(results, "right").gbps


def test_memory_of_an_earlier_answer_cannot_pass_the_check(pretend_gpu):
    kept = torch.rand(1 << 20)

    def stale(x):
        if not torch.isnan(kept).any() and not stale.started:
            kept.copy_(x)
            stale.started = True
        return kept

    stale.started = False
    assert "wrong result" in row(measure({"stale": stale}, check=matches(torch.clone)), "stale").note


def test_a_provider_that_refuses_a_size_does_not_stop_the_others(pretend_gpu):
    def refuses(x):
        raise RuntimeError("OutOfResources: shared memory\nmore")

    results = measure({"refuses": refuses, "fine": torch.clone}, sizes=(256, 512))
    assert row(results, "refuses").note == "RuntimeError: OutOfResources: shared memory"
    assert [r.size for r in results.rows if r.provider == "fine"] == [256, 512]
    assert results.table()["refuses"].isna().all()


def test_quantiles():
    assert timing.gbps(10**9, [1.0, 2.0, 4.0, 5.0, 8.0]) == Gbps(
        250.0, pytest.approx(185.0), pytest.approx(600)
    )


@pytest.mark.parametrize("factor", [0.0, 1.03, float("nan")])
def test_matches_rejects_wrong_values(factor):
    x = torch.full((100,), 1e-4)
    check = matches(torch.clone)
    assert check(x.clone(), x)
    assert not check(x * factor, x)
    assert not check(x[:50], x)


def test_what_is_saved_can_be_read_again(pretend_gpu, tmp_path, monkeypatch):
    def refuses(x):
        raise ValueError("no")

    results = measure({"fine": torch.clone, "refuses": refuses}, sizes=(256, 512))
    results.save(tmp_path / "pretend_copy.csv")
    monkeypatch.setattr(sys.modules["workshop.results"], "RECORDED", tmp_path)
    again = recorded("copy")
    assert again.about == results.about and again.title == "Copy"
    assert [(r.size, r.provider, r.note) for r in again.rows] == [
        (r.size, r.provider, r.note) for r in results.rows
    ]
    for old, new in zip(results.rows, again.rows, strict=True):
        assert (old.gbps is None) == (new.gbps is None)


def test_recorded_files_name_gpu_versions_and_date():
    files = sorted(results_module.RECORDED.glob("*.csv"))
    files.remove(results_module.RECORDED / "h200_operations.csv")  # of results; its page names them
    assert len(files) >= 4
    for file in files:
        with file.open(newline="") as lines:
            for line in csv.DictReader(lines):
                assert all(line[name] for name in ("gpu", "torch", "triton", "date")), file.name
                assert line.get("gbps") or line.get("tflops") or line["note"]


def test_recorded_plot_names_its_gpu_and_its_ceiling():
    curves = recorded("h200_softmax_float32").only("torch", "Liger")
    figure = curves.plot()
    assert "NVIDIA H200" in figure.get_supxlabel()
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert set(labels) == {"torch", "Liger", "copy on NVIDIA H200"}
    assert curves.providers == ["copy", "torch", "Liger"]
    shown = figure._repr_html_()
    assert 'aria-label="Softmax, float32, GB/s for N from 256 to 131,072: copy from 4204 to 4204; torch' in shown


def test_a_plot_takes_the_pages_colours_and_paints_no_background():
    shown = recorded("h200_softmax_float32").plot()._repr_html_()
    assert "currentColor" in shown and "#ffffff" not in shown.lower() and "<text" in shown


def test_names_at_the_ends_of_lines_do_not_overlap():
    from matplotlib.text import Text  # an Annotation's own extent includes its line

    figure = recorded("h200_softmax_float32").plot()
    figure.canvas.draw()
    names = sorted(figure.axes[0].texts, key=lambda text: text.xyann[1])
    assert len(names) == 13
    height = figure.axes[0].get_window_extent().height
    for lower, upper in zip(names, names[1:], strict=False):
        assert (upper.xyann[1] - lower.xyann[1]) * height > Text.get_window_extent(upper).height


@pytest.mark.parametrize("name", ["h200_softmax_float32", "h200_vector_add_float32"])
def test_ticks_are_powers_of_two_without_collisions(name):
    figure = recorded(name).plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    ticks = [int(tick) for tick in axes.get_xticks()]
    assert len(ticks) >= 4 and all(tick & (tick - 1) == 0 for tick in ticks)
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:], strict=False))


@interpreted
def test_a_counted_kernel_is_a_bound_among_recorded_curves():
    result = compare(
        {"thrice": triton_kernels()(3), "once": triton_kernels()(1)},
        lambda n: (torch.rand(n),),
        [512],
        lambda x: 2 * x.nbytes,
        recorded="h200_softmax_float32",
    )
    axes = result.only("torch").plot().axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    copy, bound = lines["copy on NVIDIA H200"], lines["thrice: at most 50%"]
    assert bound.get_ydata()[0] == pytest.approx(copy.get_ydata()[0] / 2)
    assert "once: no byte too many" in lines


@interpreted
def test_a_counted_kernel_with_a_wrong_result_gets_no_share():
    result = compare(
        {"copies": triton_kernels()(1), "right": lambda x: triton_kernels()(1)(2 * x)},
        lambda n: (torch.rand(n),),
        [512],
        lambda x: 2 * x.nbytes,
        check=matches(lambda x: 2 * x),
        recorded="h200_softmax_float32",
    )
    table = result.table()
    assert table["note"]["copies"] == "its result is wrong" and table["at most, of copy"].isna()["copies"]
    assert table["at most, of copy"]["right"] == "100%"
    names = [line.get_label() for line in result.only("torch").plot().axes[0].lines]
    assert [name for name in names if "copies" in name or "right" in name] == ["right: no byte too many"]


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
def test_on_a_gpu_speed_is_plausible():
    def twice(x):
        return x.clone().clone()

    results = compare(
        {"clone": torch.clone, "twice": twice, "wrong": torch.zeros_like},
        lambda n: (torch.rand(n, device=DEVICE),),
        [1 << 27],
        lambda x: 2 * x.nbytes,
        check=matches(torch.clone),
    )
    assert row(results, "clone").of_copy == pytest.approx(1, abs=0.1)
    assert row(results, "twice").of_copy == pytest.approx(0.5, abs=0.1)
    assert row(results, "wrong").gbps is None
    speed = workshop.device().copy_gbps()
    assert 0 < speed.low <= speed.median <= speed.high
    assert speed.median == pytest.approx(row(results, "copy").gbps.median, rel=0.15)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
def test_on_a_gpu_traffic_is_refused_with_the_way_out():
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        count_bytes(torch.clone, torch.rand(8))


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(FileNotFoundError, match="h200_softmax_float32"):
        recorded("mi300x")
    with pytest.raises(ValueError, match="torch.compile"):
        recorded("h200_softmax_float32").only("cuDNN")
