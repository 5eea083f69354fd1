"""Speed as GB/s beside this card's own copy, and what can be known about speed where there is no card.

On a GPU `compare` measures. On Triton's interpreter it counts the bytes that each kernel asks memory for, and
shows curves that were recorded on a named GPU; it never shows a time from the interpreter.
"""

import csv
import html
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import torch

from workshop import style
from workshop.device import device, device_interface, torch_device
from workshop.traffic import count_bytes

RECORDED = Path(__file__).parent.parent / "benchmarks" / "recorded"
FLUSH = 1 << 29  # bytes read between two timed calls: twice the 256 MB cache of an MI300X
WARMUPS = 3
REPEATS = 20
TRUSTED = 1 << 30  # bytes of traffic from which a percentage of copy speed means something
TOO_GOOD = 1.05  # times the copy: faster than this is an error of measuring
COUNTED_ROWS, COUNTED_ELEMENTS = 4, 4096  # how much of an input the interpreter is given


class Gbps(NamedTuple):
    """A measured speed in GB/s: the median, and the 20 % and 80 % quantiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.0f} GB/s ({self.low:.0f} to {self.high:.0f})"


@dataclass(frozen=True)
class Row:
    """One provider at one size. `gbps` is None where `note` says why there is no number."""

    size: int
    provider: str
    gbps: Gbps | None
    of_copy: float | None = None
    nbytes: int | None = None
    note: str = ""


@dataclass
class Results:
    """Measured speeds, with the GPU and the versions they were measured with.

    `about` holds at least gpu, torch, triton and date; every row of a saved file carries it.
    """

    rows: list[Row]
    about: dict[str, str]
    title: str = ""
    x_label: str = "N"

    @property
    def providers(self) -> list[str]:
        return list(dict.fromkeys(row.provider for row in self.rows))

    def only(self, *providers: str) -> "Results":
        """These providers and the copy only. Raises ValueError for a name that is not there."""
        unknown = [name for name in providers if name not in self.providers]
        if unknown:
            raise ValueError(f"no provider {unknown[0]!r}; there are: {', '.join(self.providers)}")
        return replace(self, rows=[row for row in self.rows if row.provider in ("copy", *providers)])

    def table(self):
        """The median GB/s as a DataFrame: a row per size, a column per provider. More is in `.details()`."""
        wide = self.details().pivot(index=self.x_label, columns="provider", values="GB/s")
        return wide[self.providers].round(0)

    def details(self):
        """Every number and note as a DataFrame, a row per size and provider."""
        import pandas

        columns = (self.x_label, "provider", "GB/s", "20 %", "80 %", "of copy", "note")
        return pandas.DataFrame(
            [
                (row.size, row.provider, *(row.gbps or (None, None, None)), row.of_copy, row.note)
                for row in self.rows
            ],
            columns=columns,
        ).astype({"GB/s": float})

    def plot(self):
        """GB/s over size, one line per provider, with this card's copy as the ceiling. Returns the figure."""
        with style.figure(self.title, self.x_label, "GB/s", self.alt()) as (figure, axes):
            lines = [provider for provider in self.providers if provider != "copy"]
            for number, provider in enumerate(lines):
                self._line(axes, provider, **style.look(number))
            self._line(axes, "copy", color=style.CEILING, linestyle="--", label="copy: this card's ceiling")
            axes.set_xscale("log", base=2)
            sizes = sorted({row.size for row in self.rows})
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45, ha="right")
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            figure.legend(loc="outside right upper")
            figure.supxlabel(self.caption(), fontsize=8.5, color=style.CEILING)
            return figure

    def save(self, path) -> Path:
        """Write a CSV, one row per size and provider, each with the GPU, versions and date."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*COLUMNS, "title", "x_label", *self.about])
            for row in self.rows:
                speeds = [f"{value:.1f}" for value in row.gbps] if row.gbps else [""] * 3
                percent = "" if row.of_copy is None else f"{row.of_copy:.3f}"
                numbers = [row.size, row.provider, *speeds, percent, row.nbytes or "", row.note]
                writer.writerow([*numbers, self.title, self.x_label, *self.about.values()])
        return path

    def caption(self) -> str:
        """The GPU, versions and date, as a plot names them."""
        about = self.about
        versions = ", ".join(
            f"{name} {about[name]}" for name in ("torch", "triton", "jax") if about.get(name)
        )
        return f"{about['gpu']}, {versions}, {about['date']}"

    def alt(self) -> str:
        """The plot in words: where each line begins and ends."""
        ends = []
        for provider in self.providers:
            speeds = [row.gbps.median for row in self.rows if row.provider == provider and row.gbps]
            if speeds:
                ends.append(f"{provider} from {speeds[0]:.0f} to {speeds[-1]:.0f}")
        sizes = [row.size for row in self.rows]
        span = f"GB/s for {self.x_label} from {min(sizes):,} to {max(sizes):,}"
        return f"{self.title}, {span}: {'; '.join(ends)}. {self.caption()}"

    def notes(self) -> list[str]:
        """Why numbers are missing or not to be trusted, one line for each."""
        lines = [f"{row.provider} at {row.size:,}: {row.note}" for row in self.rows if row.note]
        little = [row.size for row in self.rows if row.nbytes and row.nbytes < TRUSTED]
        if little:
            upto = f"up to {self.x_label} = {max(little):,}"
            lines.append(f"{upto} a call moves less than 1 GiB: the launch and the caches weigh in")
        return lines

    def _line(self, axes, provider: str, **look) -> None:
        rows = [row for row in self.rows if row.provider == provider and row.gbps]
        if rows:
            sizes = [row.size for row in rows]
            look.setdefault("label", provider)
            axes.plot(sizes, [row.gbps.median for row in rows], **look)
            lows, highs = ([row.gbps.low for row in rows], [row.gbps.high for row in rows])
            axes.fill_between(sizes, lows, highs, color=look["color"], alpha=0.15, linewidth=0)

    def __str__(self) -> str:
        return "\n".join([self.title, self.caption(), self.table().to_string(na_rep="–"), *self.notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes())
        table = self.table().rename_axis(index=None, columns=self.x_label)  # one line of head, not two
        table = table.to_html(na_rep="–", float_format=lambda value: f"{value:,.0f}")
        return f"<p>GB/s, median. {html.escape(self.caption())}</p>{table}<ul>{notes}</ul>"


COLUMNS = ("size", "provider", "gbps", "gbps_20", "gbps_80", "of_copy", "bytes", "note")


@dataclass(frozen=True)
class Count:
    """What one provider asks memory for, in bytes per element of its output. None: not counted."""

    provider: str
    read: float | None
    written: float | None
    note: str = ""


@dataclass
class Counted:
    """What can be known without a GPU: bytes counted from each kernel's loads and stores, and recorded
    curves.

    `least` is what a perfect kernel moves, in bytes per element of the output.
    """

    counts: list[Count]
    least: float
    curves: Results | None = None
    title: str = ""

    def table(self):
        """Bytes per element as a DataFrame, a row per provider."""
        import pandas

        rows = [
            (count.provider, count.read, count.written, self._total(count), self._share(count), self._note(count))
            for count in self.counts
        ]
        columns = ["provider", "read", "written", "bytes per element", "at most, of copy", "note"]
        return pandas.DataFrame(rows, columns=columns).set_index("provider")

    def plot(self):
        """The recorded curves where there are any, else the counted bytes as bars. Returns the figure."""
        if self.curves:
            return self.curves.plot()
        counted = [count for count in self.counts if count.read is not None]
        alt = "; ".join(f"{count.provider}: {self._total(count):g} bytes per element" for count in counted)
        with style.figure(self.title, "bytes per element", "", alt) as (figure, axes):
            names = [count.provider for count in counted]
            reads = [count.read for count in counted]
            axes.barh(names, reads, color=style.PALETTE[0], label="read")
            axes.barh(
                names, [c.written for c in counted], left=reads, color=style.PALETTE[4], label="written"
            )
            axes.axvline(self.least, color=style.CEILING, linestyle="--", label="least possible")
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            figure.legend(loc="outside right upper")
            return figure

    def save(self, path) -> None:
        """Nothing was measured, so nothing is written."""

    def __str__(self) -> str:
        return (
            f"{self.title}\nbytes per element, at least {self.least:g}\n{self.table().to_string(na_rep='–')}"
        )

    def _total(self, count: Count) -> float | None:
        return None if count.read is None else count.read + count.written

    def _share(self, count: Count) -> str | None:
        return None if count.read is None or self._unfinished(count) else f"{self.least / self._total(count):.0%}"

    def _note(self, count: Count) -> str:
        return "moves less than the work needs" if self._unfinished(count) else count.note

    def _unfinished(self, count: Count) -> bool:
        """A kernel that moves less than a perfect one has left work undone: its share would mean nothing."""
        return count.read is not None and self._total(count) < 0.999 * self.least

    def _repr_html_(self) -> str:
        table = self.table().rename_axis(None)  # a named index costs a line of its own
        table = table.to_html(na_rep="–", float_format=lambda value: f"{value:.3g}")
        words = (
            "No GPU here, so nothing is timed. Counted from each kernel's own loads and stores, in bytes per "
            f"element of the output; the least possible is {self.least:g}."
        )
        if self.curves:
            words += f" The plot was recorded elsewhere: {self.curves.caption()}."
        return f"<p>{html.escape(words)}</p>{table}"


def compare(
    providers: dict[str, Callable],
    make_inputs: Callable[[int], tuple],
    sizes: Iterable[int],
    bytes_moved: Callable[..., int],
    *,
    check: Callable[..., bool] | None = None,
    title: str = "",
    x_label: str = "N",
    recorded: str | None = None,
    repeats: int = REPEATS,
) -> Results | Counted:
    """Measure functions that do the same work, interleaved in one run with a copy of as many bytes.

    providers: name -> function of the inputs that returns a new tensor. make_inputs(size) -> a tuple.
    bytes_moved(*inputs) -> bytes that a perfect kernel reads and writes. check(output, *inputs) -> bool is
    asked of the output of every timed call; a provider that fails it, or raises, gets a note in place of a
    number. On the interpreter the result is Counted: bytes per element, and the curves named by `recorded`.
    """
    sizes = list(sizes)
    if device().interpreting:
        return _count(providers, make_inputs(min(sizes)), bytes_moved, recorded, title)
    bar = _ProgressBar(len(sizes))
    rows = []
    for size in sizes:
        inputs = make_inputs(size)
        rows += _measure_size(size, providers, inputs, bytes_moved(*inputs), check, repeats)
        bar.advance(f"{x_label} = {size:,}")
    return Results(rows, about_here(), title, x_label)


def recorded(name: str) -> Results:
    """The curves in benchmarks/recorded/<name>.csv, or else in the first file whose name contains `name`.

    Raises FileNotFoundError that lists the names there are.
    """
    names = sorted(file.stem for file in RECORDED.glob("*.csv"))
    found = [name] if name in names else [there for there in names if name in there]
    if not found:
        raise FileNotFoundError(f"no recorded curves {name!r}; there are: {', '.join(names)}")
    with (RECORDED / f"{found[0]}.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    about = {key: value for key, value in lines[0].items() if key not in (*COLUMNS, "title", "x_label")}
    return Results([_row(line) for line in lines], about, lines[0]["title"], lines[0]["x_label"])


def matches(reference: Callable, relative: float = 1e-2) -> Callable[..., bool]:
    """A check for compare: the output agrees with reference(*inputs), computed once per set of inputs.

    Every element must be within `relative` of the expected value, so an output of zeros never passes.
    """
    remembered: dict = {}

    def check(output, *inputs) -> bool:
        if remembered.get("inputs") is not inputs[0]:
            remembered.update(inputs=inputs[0], expected=reference(*inputs))
        expected = remembered["expected"]
        if output.shape != expected.shape:
            return False
        smallest = torch.finfo(output.dtype).tiny if output.is_floating_point() else 0
        return bool(((output - expected).abs() <= relative * expected.abs() + smallest).all())

    return check


def measure_copy(nbytes: int, repeats: int = REPEATS) -> Gbps:
    """GB/s of a device-to-device copy that reads and writes `nbytes` in all."""
    timer = _Timer()
    source = _copy_source(nbytes)
    for _ in range(WARMUPS):
        source.clone()
    return _gbps(nbytes, [timer.milliseconds(source.clone)[0] for _ in range(repeats)])


def about_here() -> dict[str, str]:
    """The GPU, versions and date of a measurement made now."""
    here = device()
    return {
        "gpu": here.name,
        "arch": here.arch,
        "driver": here.driver,
        "torch": here.torch,
        "triton": here.triton,
        "date": date.today().isoformat(),
    }


class _Timer:
    """Times one call at a time, with cold caches and without the host's launch overhead."""

    def __init__(self) -> None:
        self.interface = device_interface()
        self.flush = torch.zeros(FLUSH // 4, dtype=torch.float32, device=torch_device())

    def milliseconds(self, function: Callable, *inputs):
        """(time, output) of one call."""
        start, end = (self.interface.Event(enable_timing=True) for _ in range(2))
        # Reading evicts what the last call left in the caches, without dirty lines that the next would have
        # to write back. It also keeps the GPU busy until the host has queued what follows.
        self.flush.sum()
        start.record()
        output = function(*inputs)
        end.record()
        self.interface.synchronize()
        return start.elapsed_time(end), output


@dataclass
class _Runner:
    """One provider at one size: its times, or the note on why it has none."""

    name: str
    function: Callable
    times: list[float] = field(default_factory=list)
    note: str = ""

    def warm(self, inputs: tuple) -> None:
        """Compile, tune and run a few times."""
        try:
            for _ in range(WARMUPS):
                _poison(self.function(*inputs), inputs)
        except Exception as error:  # a provider may refuse a size in any way; the others go on
            self.note = _first_line(error)

    def run(self, timer: _Timer, inputs: tuple, check: Callable | None) -> None:
        if self.note:
            return
        milliseconds, output = timer.milliseconds(self.function, *inputs)
        if check and not check(output, *inputs):
            self.note = "wrong result: no number"
            return
        self.times.append(milliseconds)
        _poison(output, inputs)

    def row(self, size: int, nbytes: int, copy: Gbps) -> Row:
        if self.note:
            return Row(size, self.name, None, note=self.note)
        speed = _gbps(nbytes, self.times)
        of_copy = speed.median / copy.median
        wrong = of_copy > TOO_GOOD
        note = f"{of_copy:.0%} of copy: a measuring error, not a fast kernel" if wrong else ""
        return Row(size, self.name, speed, of_copy, nbytes, note)


def _measure_size(size, providers, inputs, nbytes, check, repeats) -> list[Row]:
    source = _copy_source(nbytes)
    runners = [_Runner(name, function) for name, function in providers.items()]
    for runner in (_Runner("copy", lambda *_: source.clone()), *runners):
        runner.warm(inputs)
    timer = _Timer()
    copies = []
    for _ in range(repeats):
        copies.append(timer.milliseconds(source.clone)[0])
        for runner in runners:
            runner.run(timer, inputs, check)
    copy = _gbps(nbytes, copies)
    return [Row(size, "copy", copy, 1.0, nbytes), *(runner.row(size, nbytes, copy) for runner in runners)]


def _copy_source(nbytes: int):
    return torch.ones(max(1, nbytes // 8), dtype=torch.float32, device=torch_device())


def _poison(output, inputs: tuple) -> None:
    """Spoil an output that was checked, so that a later call cannot pass with this memory left as it is."""
    given = {tensor.data_ptr() for tensor in inputs if hasattr(tensor, "data_ptr")}
    if hasattr(output, "data_ptr") and output.data_ptr() not in given:
        output.fill_(float("nan") if output.is_floating_point() else -1)


def _gbps(nbytes: int, milliseconds: list[float]) -> Gbps:
    speeds = sorted(nbytes / (time * 1e6) for time in milliseconds)
    if len(speeds) == 1:
        return Gbps(*speeds * 3)
    fifths = statistics.quantiles(speeds, n=5, method="inclusive")
    return Gbps(statistics.median(speeds), fifths[0], fifths[3])


def _count(providers, inputs: tuple, bytes_moved: Callable, name: str | None, title: str) -> Counted:
    inputs = tuple(_few(value) for value in inputs)
    least, counts = 0.0, []
    for provider, function in providers.items():
        try:
            traffic = count_bytes(function, *inputs)
        except Exception as error:  # an unfinished kernel must not hide the others
            counts.append(Count(provider, None, None, _first_line(error)))
            continue
        elements = traffic.result.numel()
        least = bytes_moved(*inputs) / elements if elements else 0.0
        if traffic.launches:
            counts.append(Count(provider, traffic.bytes_read / elements, traffic.bytes_written / elements))
        else:
            counts.append(Count(provider, None, None, "no Triton kernel: its loads cannot be counted"))
    return Counted(counts, least, recorded(name) if name else None, title)


def _first_line(error: Exception) -> str:
    """What went wrong, short enough for a table."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:120]


def _few(value):
    """A small part of an input: the interpreter is slow, and bytes per element stay the same."""
    if not hasattr(value, "ndim") or value.ndim == 0:
        return value
    return value[:COUNTED_ROWS] if value.ndim > 1 else value[:COUNTED_ELEMENTS]


def _row(line: dict[str, str]) -> Row:
    speed = None
    if line["gbps"]:
        median = float(line["gbps"])
        speed = Gbps(median, float(line["gbps_20"] or median), float(line["gbps_80"] or median))
    of_copy = float(line["of_copy"]) if line["of_copy"] else None
    nbytes = int(line["bytes"]) if line["bytes"] else None
    return Row(int(line["size"]), line["provider"], speed, of_copy, nbytes, line["note"])


class _ProgressBar:
    """A bar in a notebook with ipywidgets, a line per size elsewhere."""

    def __init__(self, steps: int):
        self.steps, self.done, self.widget = steps, 0, None
        try:
            from IPython import get_ipython
            from IPython.display import display
            from ipywidgets import IntProgress
        except ImportError:
            return
        if getattr(get_ipython(), "kernel", None):
            self.widget = IntProgress(max=steps, description="measuring")
            display(self.widget)

    def advance(self, what: str) -> None:
        self.done += 1
        if self.widget:
            self.widget.value = self.done
            self.widget.description = what if self.done < self.steps else "done"
        else:
            print(f"measured {what} ({self.done} of {self.steps})")
