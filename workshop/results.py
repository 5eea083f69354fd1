"""Measured speeds: as a table, a plot and a CSV file, always with the GPU, the versions and the date.

Without a GPU: the bytes that each kernel asks memory for, beside curves that were recorded elsewhere.
"""

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workshop import style
from workshop.notebook import page
from workshop.timing import Gbps

RECORDED = Path(__file__).parent.parent / "benchmarks" / "recorded"
TRUSTED = 1 << 30  # bytes of traffic from which a percentage of copy speed means something
# Of Counted, in bytes per element of the output. SHARE: of a copy's speed at most, when no cache helps.
TOTAL, SHARE = "bytes per element", "at most, of copy"
COUNTS = ("read", "written", TOTAL, SHARE, "note")
COLUMNS = ("size", "provider", "gbps", "gbps_20", "gbps_80", "of_copy", "bytes", "note")


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
        if unknown := [name for name in providers if name not in self.providers]:
            raise ValueError(f"no provider {unknown[0]!r}; there are: {', '.join(self.providers)}")
        return replace(self, rows=[row for row in self.rows if row.provider in ("copy", *providers)])

    def table(self):
        """The median GB/s as a DataFrame: a row per size, a column per provider. More is in `.details()`."""
        return self._wide("GB/s", self.providers).round(0)

    def shares(self):
        """The part of the copy's speed as a DataFrame: a row per size, a column per provider."""
        return self._wide("of copy", [provider for provider in self.providers if provider != "copy"]).round(2)

    def _wide(self, column: str, providers: list[str]):
        wide = self.details().pivot(index=self.x_label, columns="provider", values=column)[providers]
        return wide.rename_axis(index=None, columns=self.x_label)  # one line of head, not two

    def details(self):
        """Every number and note as a DataFrame, a row per size and provider."""
        import pandas

        columns = (self.x_label, "provider", "GB/s", "20 %", "80 %", "of copy", "note")
        rows = [(row.size, row.provider, *(row.gbps or [None] * 3), row.of_copy, row.note) for row in self.rows]
        return pandas.DataFrame(rows, columns=columns).astype({"GB/s": float})

    def plot(self, bounds: dict[str, float] | None = None):
        """GB/s over size, one line per provider, and the copy on the same GPU. Returns the figure.

        bounds: name -> share of the copy's speed that this kernel cannot exceed; drawn dotted.
        """
        with style.figure(self.title, self.x_label, "GB/s", self.alt()) as (figure, axes):
            for provider in [each for each in self.providers if each != "copy"]:
                self._line(axes, provider, provider)
            copy = f"copy on {self.about['gpu']}"  # the GPU that copied is part of the line's name
            self._line(axes, "copy", copy, color=style.INK, linestyle="--", marker="")
            for name, share in (bounds or {}).items():
                self._line(axes, "copy", name, share, linestyle=":", linewidth=2.4, marker="")
            style.size_ticks(axes)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("{x:,.0f}")
            style.label_ends(axes)
            figure.supxlabel(self.caption(), fontsize=10, color=style.INK)
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
        versions = ", ".join(f"{name} {about[name]}" for name in ("torch", "triton", "jax") if about.get(name))
        return f"{about['gpu']}, {versions}, {about['date']}"

    def alt(self) -> str:
        """The plot in words: where each line begins and ends."""
        speeds = {name: [row.gbps.median for row in self._measured(name)] for name in self.providers}
        ends = "; ".join(f"{name} from {each[0]:.0f} to {each[-1]:.0f}" for name, each in speeds.items() if each)
        sizes = [row.size for row in self.rows]
        return f"{self.title}, GB/s for {self.x_label} from {min(sizes):,} to {max(sizes):,}: {ends}. {self.caption()}"

    def _measured(self, provider: str) -> list[Row]:
        return [row for row in self.rows if row.provider == provider and row.gbps]

    def notes(self) -> list[str]:
        """Why numbers are missing or not to be trusted, one line for each."""
        lines = [f"{row.provider} at {row.size:,}: {row.note}" for row in self.rows if row.note]
        if little := [row.size for row in self.rows if row.nbytes and row.nbytes < TRUSTED]:
            upto = f"up to {self.x_label} = {max(little):,}"
            lines.append(f"{upto}, a call moves less than 1 GiB: launch overhead and caches affect the number")
        return lines

    def _line(self, axes, provider: str, label: str, share: float | None = None, **look) -> None:
        """Draw a provider's speeds with their quantiles, or a share of its speeds. Nothing without numbers."""
        if not (rows := self._measured(provider)):
            return
        sizes, (medians, lows, highs) = [row.size for row in rows], zip(*(row.gbps for row in rows))
        [line] = axes.plot(sizes, [(share or 1) * median for median in medians], label=label, **look)
        if share is None:
            axes.fill_between(sizes, lows, highs, color=line.get_color(), alpha=0.15, linewidth=0)

    def __str__(self) -> str:
        return "\n".join([self.title, self.caption(), self.table().to_string(na_rep="–"), *self.notes()])

    def _repr_html_(self) -> str:
        table = self.table().to_html(na_rep="–", float_format=lambda value: f"{value:,.0f}")
        return page("results.html", results=self, table=table)


def recorded(name: str) -> Results:
    """The curves in benchmarks/recorded/<name>.csv, or else in the first file whose name contains `name`.

    Raises FileNotFoundError that lists the names there are.
    """
    names = sorted(file.stem for file in RECORDED.glob("*.csv"))
    if not (found := [name] if name in names else [there for there in names if name in there]):
        raise FileNotFoundError(f"no recorded curves {name!r}; there are: {', '.join(names)}")
    lines = recorded_lines(found[0])
    about = {key: value for key, value in lines[0].items() if key not in (*COLUMNS, "title", "x_label")}
    return Results([_row(line) for line in lines], about, lines[0]["title"], lines[0]["x_label"])


def recorded_lines(name: str) -> list[dict[str, str]]:
    """The lines of benchmarks/recorded/<name>.csv, by their columns."""
    with (RECORDED / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _row(line: dict[str, str]) -> Row:
    median = line["gbps"]
    speed = Gbps(*(float(each or median) for each in (median, line["gbps_20"], line["gbps_80"]))) if median else None
    of_copy = float(line["of_copy"]) if line["of_copy"] else None
    nbytes = int(line["bytes"]) if line["bytes"] else None
    return Row(int(line["size"]), line["provider"], speed, of_copy, nbytes, line["note"])


# -- counted bytes ------------------------------------------------------------------------------------------


@dataclass
class Counted:
    """Bytes counted from each kernel's loads and stores, and recorded curves.

    counts: a DataFrame with the COUNTS of each provider; NaN where nothing was counted, and `note` says why.
    least: what a perfect kernel moves, in bytes per element of the output.
    """

    counts: Any
    least: float
    curves: Results | None = None
    title: str = ""

    def table(self):
        """Bytes per element as a DataFrame, a row per provider."""
        return self.counts

    def only(self, *providers: str) -> "Counted":
        """The same counts with these recorded curves only. Raises ValueError for a name that is not there."""
        return replace(self, curves=self.curves.only(*providers)) if self.curves else self

    def plot(self):
        """The recorded curves where there are any, else the counted bytes as bars. Returns the figure.

        Among recorded curves a kernel that was counted here appears as a bound: the share of a copy's speed that
        its bytes allow when no cache helps.
        """
        counted = self.counts.dropna(subset=TOTAL)
        if self.curves:
            bounds = {}
            for provider, total in counted[TOTAL][counted["note"] == ""].items():
                share = self.least / total
                # A kernel without a byte too many may even pass the copy.
                words = "no byte too many" if share > 0.999 else f"at most {share:.0%}"
                bounds[f"{provider}: {words}"] = share
            return self.curves.plot(bounds)
        alt = "; ".join(f"{provider}: {total:g} bytes per element" for provider, total in counted[TOTAL].items())
        with style.figure(self.title, TOTAL, "", alt) as (figure, axes):
            axes.barh(counted.index, counted["read"], color="C0", label="read")
            axes.barh(counted.index, counted["written"], left=counted["read"], color="C4", label="written")
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
        table = self.table().fillna({SHARE: "–"})  # a column of nothing but None would say so
        return page("counted.html", counted=self, table=table.to_html(na_rep="–", float_format=shown))


def shown(value: float) -> str:
    """Three digits, and from 1,000 on whole numbers."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
