"""Speed without a GPU: the bytes that each kernel asks memory for, and curves that were recorded elsewhere."""

import html
from collections.abc import Callable
from dataclasses import dataclass, replace

from workshop import style
from workshop.results import Results, recorded
from workshop.traffic import recording


@dataclass(frozen=True)
class Count:
    """What one provider asks memory for, in bytes per element of its output. None: not counted."""

    provider: str
    read: float | None
    written: float | None
    note: str = ""
    wrong: bool = False  # its output is not the right one


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
            (count.provider, count.read, count.written, self._total(count), self._share(count), self._note(count))
            for count in self.counts
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
        if self.curves:
            return self.curves.plot({self._bound(c): self.least / self._total(c) for c in self._finished()})
        counted = [count for count in self.counts if count.read is not None]
        alt = "; ".join(f"{count.provider}: {self._total(count):g} bytes per element" for count in counted)
        with style.figure(self.title, "bytes per element", "", alt) as (figure, axes):
            names = [count.provider for count in counted]
            reads = [count.read for count in counted]
            axes.barh(names, reads, color=style.PALETTE[0], label="read")
            axes.barh(names, [c.written for c in counted], left=reads, color=style.PALETTE[4], label="written")
            axes.axvline(self.least, color=style.INK, linestyle="--", label="least possible")
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            figure.legend(loc="outside right upper")
            return figure

    def save(self, path) -> None:
        """Nothing was measured, so nothing is written."""

    def __str__(self) -> str:
        return f"{self.title}\nbytes per element, at least {self.least:g}\n{self.table().to_string(na_rep='–')}"

    def _total(self, count: Count) -> float | None:
        return None if count.read is None else count.read + count.written

    def _share(self, count: Count) -> str | None:
        return None if count.read is None or self._unfinished(count) else f"{self.least / self._total(count):.0%}"

    def _note(self, count: Count) -> str:
        if count.read is None:
            return count.note
        less = self._total(count) < 0.999 * self.least
        return "moves less than the work needs" if less else "its result is wrong" if count.wrong else ""

    def _bound(self, count: Count) -> str:
        """The name of a kernel's bound: a kernel without a byte too many may even pass the copy."""
        least = self._total(count) <= 1.001 * self.least
        return f"{count.provider}: no byte too many" if least else f"{count.provider}: at most {self._share(count)}"

    def _finished(self) -> list[Count]:
        return [count for count in self.counts if count.read is not None and not self._unfinished(count)]

    def _unfinished(self, count: Count) -> bool:
        """Whether a kernel is wrong or moves less than a perfect one. Its work is not done: its share means nothing."""
        return count.read is not None and (count.wrong or self._total(count) < 0.999 * self.least)

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
            counts.append(Count(provider, None, None, first_line(error)))
            continue
        elements = output.numel()
        least = bytes_moved(*inputs) / elements if elements else 0.0
        if traffic.launches:
            moved = (traffic.bytes_read / elements, traffic.bytes_written / elements)
            counts.append(Count(provider, *moved, wrong=wrong))
        else:
            counts.append(Count(provider, None, None, "no Triton kernel: its loads cannot be counted"))
    return Counted(counts, least, recorded(name) if name else None, title)


def shown(value: float) -> str:
    """Three digits, and from 1,000 on whole numbers."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def first_line(error: Exception) -> str:
    """What went wrong, short enough for a table."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:120]
