"""Speed without a GPU: the bytes that each kernel asks memory for, and curves that were recorded elsewhere."""

import html
from collections.abc import Callable
from dataclasses import dataclass, replace

from workshop import style
from workshop.results import Results, recorded
from workshop.traffic import recording


@dataclass(frozen=True)
class Count:
    """What one provider asks memory for, in bytes per element of its output. None: not counted, and `reason` says why.

    least: what a perfect kernel moves. wrong: its output is not the right one.
    """

    provider: str
    least: float
    read: float | None = None
    written: float | None = None
    reason: str = ""
    wrong: bool = False

    @property
    def total(self) -> float | None:
        return None if self.read is None else self.read + self.written

    @property
    def share(self) -> float | None:
        """Of a copy's speed at most, when no cache helps. None where the work is not done: it would mean nothing."""
        done = self.total is not None and not self.wrong and not self.too_little
        return self.least / self.total if done else None

    @property
    def too_little(self) -> bool:
        return self.total is not None and self.total < 0.999 * self.least

    @property
    def note(self) -> str:
        less = "moves less than the work needs" if self.too_little else ""
        return self.reason or less or ("its result is wrong" if self.wrong else "")


@dataclass
class Counted:
    """Bytes counted from each kernel's loads and stores, and recorded curves.

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
            (one.provider, one.read, one.written, one.total, one.share and f"{one.share:.0%}", one.note)
            for one in self.counts
        ]
        columns = ["provider", "read", "written", "bytes per element", "at most, of copy", "note"]
        return pandas.DataFrame(rows, columns=columns).set_index("provider")

    def only(self, *providers: str) -> "Counted":
        """The same counts with these recorded curves only. Raises ValueError for a name that is not there."""
        return replace(self, curves=self.curves.only(*providers)) if self.curves else self

    def plot(self):
        """The recorded curves where there are any, else the counted bytes as bars. Returns the figure.

        Among recorded curves a kernel that was counted here appears as a bound: the share of a copy's speed that
        its bytes allow when no cache helps.
        """
        counted = [one for one in self.counts if one.total is not None]
        if self.curves:
            # A kernel without a byte too many may even pass the copy.
            bounds = {
                f"{one.provider}: {'no byte too many' if one.share > 0.999 else f'at most {one.share:.0%}'}": one.share
                for one in counted
                if one.share is not None
            }
            return self.curves.plot(bounds)
        alt = "; ".join(f"{one.provider}: {one.total:g} bytes per element" for one in counted)
        with style.figure(self.title, "bytes per element", "", alt) as (figure, axes):
            names, reads = [one.provider for one in counted], [one.read for one in counted]
            axes.barh(names, reads, color=style.PALETTE[0], label="read")
            axes.barh(names, [one.written for one in counted], left=reads, color=style.PALETTE[4], label="written")
            axes.axvline(self.least, color=style.INK, linestyle="--", label="least possible")
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            figure.legend(loc="outside right upper")
            return figure

    def save(self, path) -> None:
        """Nothing was measured, so nothing is written."""

    def __str__(self) -> str:
        return f"{self.title}\nbytes per element, at least {self.least:g}\n{self.table().to_string(na_rep='–')}"

    def _repr_html_(self) -> str:
        table = self.table().rename_axis(None)  # a named index would add a line to the table
        table = table.fillna({"at most, of copy": "–"})  # a column of nothing but None would say so
        table = table.to_html(na_rep="–", float_format=shown)
        words = (
            "No GPU here, so nothing is timed. Counted from each kernel's own loads and stores, in bytes per "
            f"element of the output; the least possible is {self.least:g}."
        )
        if self.curves:
            words += f" The plot was recorded elsewhere: {self.curves.caption()}."
        return f"<p>{html.escape(words)}</p>{table}"


def count(
    providers: dict[str, Callable],
    inputs: tuple,
    bytes_moved: Callable,
    check: Callable | None,
    name: str | None,
    title: str,
) -> Counted:
    """Count each provider. Arguments as in bench.compare; `name`: recorded curves."""
    least, counts = 0.0, []
    for provider, function in providers.items():
        try:
            with recording(elements=False) as traffic:
                output = function(*inputs)
            wrong = bool(check) and not check(output, *inputs)
        except Exception as error:  # one unfinished kernel must not hide the others
            counts.append(Count(provider, least, reason=first_line(error)))
            continue
        elements = output.numel()
        least = bytes_moved(*inputs) / elements if elements else 0.0
        if traffic.launches:
            moved = (traffic.bytes_read / elements, traffic.bytes_written / elements)
            counts.append(Count(provider, least, *moved, wrong=wrong))
        else:
            counts.append(Count(provider, least, reason="no Triton kernel: its loads cannot be counted"))
    return Counted(counts, least, recorded(name) if name else None, title)


def shown(value: float) -> str:
    """Three digits, and from 1,000 on whole numbers."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def first_line(error: Exception) -> str:
    """What went wrong, short enough for a table."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:120]
