"""Timing for the scripts of this folder: fresh inputs, cold caches, peers in turns, every timed output checked."""

import csv
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
import triton
import triton.language as tl

from workshop import device
from workshop.backend import driver, torch_device
from workshop.bench import Gbps, Results, Row, about_here, first_line

REPEATS = 15
FLUSH = 1 << 30  # bytes read between two timed calls: several times any GPU's last cache
FLUSHES = 4  # times: a millisecond on an H200. The host takes up to 0.4 ms for a function of several launches


class Clock:
    """Times one call at a time, with cold caches and without the host's part of the launch."""

    def __init__(self):
        self.interface = driver().get_device_interface()
        self.buffer = torch.zeros(FLUSH // 4, device=torch_device())

    def milliseconds(self, function: Callable, *inputs) -> tuple[float, object]:
        """(time, result) of one call."""
        start, end = (self.interface.Event(enable_timing=True) for _ in range(2))
        # Reading evicts what the last call left in the caches, without dirty lines that the next call would have to
        # write back. It also keeps the GPU busy until the host has queued what follows.
        for _ in range(FLUSHES):
            self.buffer.sum()
        start.record()
        result = function(*inputs)
        end.record()
        self.interface.synchronize()
        return start.elapsed_time(end), result


class Contest:
    """Functions that do the same work, timed in turns on the same fresh inputs.

    functions: name -> function of the inputs that returns a new tensor. expected(*inputs) -> the result in float64.
    bound: the largest error that passes, by `error`. A function that raises, or is wrong once, gets a note and no
    number. mix: how many of the bytes are read and how many written; None is a copy by torch.
    """

    def __init__(
        self,
        functions: dict[str, Callable],
        expected: Callable,
        bound: float,
        clock: Clock,
        error: Callable | None = None,
        mix: tuple[int, int] | None = None,
    ):
        self.functions, self.expected, self.bound, self.clock = functions, expected, bound, clock
        self.error, self.mix = error or relative_error, mix

    def run(self, size: int, make_inputs: Callable[[], tuple], nbytes: int, repeats: int = REPEATS) -> list[dict]:
        """One entry per function, the copy first: milliseconds of every repeat, largest error, note."""
        found = {name: {"size": size, "provider": name, "ms": [], "error": 0.0, "note": ""} for name in self.functions}
        copy = {"size": size, "provider": "copy", "ms": [], "error": 0.0, "note": ""}
        inputs = make_inputs()
        for name, function in self.functions.items():
            try:  # compile, tune and warm up
                for _ in range(3):
                    function(*inputs)
                torch.cuda.synchronize()
            except Exception as error:  # a peer may refuse a shape in any way; the others go on
                found[name]["note"] = first_line(error)
        names = list(self.functions)
        for repeat in range(repeats):
            inputs = make_inputs()
            expected = self.expected(*inputs)
            move = copying(nbytes) if self.mix is None else moving(nbytes, *self.mix)
            copy["ms"].append(self.clock.milliseconds(move)[0])
            shift = repeat % len(names)
            for name in names[shift:] + names[:shift]:
                entry = found[name]
                if entry["note"]:
                    continue
                milliseconds, result = self.clock.milliseconds(self.functions[name], *inputs)
                error = self.error(result, expected)
                entry["error"] = max(entry["error"], error)
                if not error <= self.bound:
                    entry["note"] = f"wrong result: relative error {error:.1e}"
                entry["ms"].append(milliseconds)
                result.fill_(float("nan"))  # a later call cannot pass with memory that was right before
                del result
            copy["ms"].append(self.clock.milliseconds(move)[0])
        return [{**entry, "bytes": nbytes} for entry in (copy, *found.values())]


def copying(nbytes: int) -> Callable:
    """torch's copy, which reads and writes `nbytes` together."""
    return torch.empty(nbytes // 8, device=torch_device()).uniform_().clone


@triton.jit
def move_kernel(source_ptr, target_ptr, length, READS: tl.constexpr, WRITES: tl.constexpr, BLOCK: tl.constexpr):
    """Reads READS blocks and writes their sum WRITES times, or, if that is 0, one number of each program."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(source_ptr + offsets)
    for k in tl.static_range(1, READS):
        total += tl.load(source_ptr + k * length + offsets)
    for k in tl.static_range(WRITES):
        tl.store(target_ptr + k * length + offsets, total)
    if WRITES == 0:
        tl.store(target_ptr + tl.program_id(0), tl.sum(total, axis=0))


def moving(nbytes: int, reads: int, writes: int) -> Callable:
    """A function that reads and writes `nbytes` together, `reads` bytes for each `writes`: the limit of that mix."""
    block = 2048
    programs = nbytes // (4 * block * (reads + writes))
    source = torch.empty(reads * programs * block, device=torch_device()).uniform_()
    target = torch.empty(max(programs, writes * programs * block), device=torch_device())

    def move() -> None:
        move_kernel[(programs,)](source, target, programs * block, READS=reads, WRITES=writes, BLOCK=block, num_warps=8)

    move()  # compiled before it is timed
    return move


@triton.jit
def error_kernel(result_ptr, expected_ptr, largest_ptr, n, smallest, BLOCK_SIZE: tl.constexpr):
    """Raises the number at largest_ptr, float32, to the largest relative error; result, expected: (n,)."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    result = tl.load(result_ptr + offsets, mask=offsets < n, other=0).to(tl.float64)
    expected = tl.load(expected_ptr + offsets, mask=offsets < n, other=0)
    error = tl.abs(result - expected) / tl.maximum(tl.abs(expected), smallest)
    error = tl.where(error == error, error, float("inf"))
    tl.atomic_max(largest_ptr, tl.max(error, axis=0).to(tl.float32))


def relative_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest relative error of an element; infinite where something is not a number. expected: float64.

    Expected values below the smallest normal number of the result's dtype are compared with that number.
    """
    if result.shape != expected.shape or expected.dtype != torch.float64:
        return float("inf")
    result, expected = result.contiguous(), expected.contiguous()
    largest = torch.zeros(1, device=result.device)
    smallest = torch.finfo(result.dtype).tiny
    grid = (triton.cdiv(result.numel(), 4096),)
    error_kernel[grid](result, expected, largest, result.numel(), smallest, BLOCK_SIZE=4096, num_warps=8)
    return largest.item()


def whole_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """The error of the whole tensor, by the root of squares: for sums whose terms cancel. expected: float64."""
    if result.shape != expected.shape or expected.dtype != torch.float64:
        return float("inf")
    error = ((result.double() - expected).norm() / expected.norm().clamp(min=1e-300)).item()
    return error if error == error else float("inf")


def results(entries: list[dict], about: dict, title: str, x_label: str = "N") -> Results:
    """What the lessons read: GB/s with quantiles, and the share of the copy."""
    rows = []
    copies = {entry["size"]: gbps(entry).median for entry in entries if entry["provider"] == "copy"}
    for entry in entries:
        if entry["note"]:
            rows.append(Row(entry["size"], entry["provider"], None, note=entry["note"]))
            continue
        speed = gbps(entry)
        share = speed.median / copies[entry["size"]]
        rows.append(Row(entry["size"], entry["provider"], speed, share, entry["bytes"]))
    return Results(rows, about, title, x_label)


def gbps(entry: dict) -> Gbps:
    """Median, and the 20 % and 80 % quantiles, of an entry's speeds."""
    speeds = [entry["bytes"] / ms / 1e6 for ms in entry["ms"]]
    fifths = statistics.quantiles(speeds, n=5, method="inclusive")
    return Gbps(statistics.median(speeds), fifths[0], fifths[3])


def about(*packages: str) -> dict[str, str]:
    """GPU, clocks, versions and date. The versions are those of torch, Triton and `packages` where installed."""
    found = about_here() | {"clocks": clocks()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def clocks() -> str:
    """The card's highest clocks and power limit, as they were found; nothing sets them."""
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm,clocks.max.memory,power.limit", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    sm, memory, power = answer.strip().splitlines()[0].split(", ")
    return f"SM up to {sm}; memory {memory}; limit {power}"


def write(found: Results, entries: list[dict], name: str, folder: Path) -> None:
    """<gpu>_<name>.csv, .json and .svg in `folder`, and a table of shares of the copy on the terminal."""
    save(found, entries, name, folder, found.plot())


def save(found: Results, entries: list[dict], name: str, folder: Path, figure) -> None:
    """`write` with another figure."""
    stem = folder / f"{short(found.about['gpu'])}_{name}"
    folder.mkdir(parents=True, exist_ok=True)
    found.save(stem.with_suffix(".csv"))
    listed = [{**entry, "ms": [round(ms, 5) for ms in entry["ms"]]} for entry in entries]
    text = json.dumps({"title": found.title, "about": found.about, "entries": listed}, indent=None)
    stem.with_suffix(".json").write_text(text.replace('{"size"', '\n{"size"') + "\n", encoding="utf-8")
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    print(shares(found))
    print("written:", stem.with_suffix(".csv"), flush=True)


def shares(found: Results) -> str:
    """A table in Markdown: GB/s of the copy, and every provider's speed as a share of it."""
    names = [name for name in found.providers if name != "copy"]
    lines = [f"| {found.x_label} | copy, GB/s | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for size in dict.fromkeys(row.size for row in found.rows):
        row = {row.provider: row for row in found.rows if row.size == size}
        cells = [f"{row[name].of_copy:.2f}" if row[name].of_copy else "–" for name in names]
        lines.append(f"| {size} | {row['copy'].gbps.median:.0f} | " + " | ".join(cells) + " |")
    return "\n".join([found.title, found.caption(), "", *lines, "", *found.notes()])


def compare_with(path: Path, found: Results, tolerance: float = 0.05) -> str:
    """How far the medians are from those of an earlier CSV: the largest differences, and how many exceed 5 %."""
    with path.open(newline="", encoding="utf-8") as file:
        before = {(int(line["size"]), line["provider"]): line["gbps"] for line in csv.DictReader(file)}
    changes = []
    for row in found.rows:
        old = before.get((row.size, row.provider))
        if row.gbps and old:
            changes.append((row.gbps.median / float(old) - 1, row.size, row.provider))
    changes.sort(key=lambda change: -abs(change[0]))
    beyond = [change for change in changes if abs(change[0]) > tolerance]
    worst = "; ".join(f"{provider} at {size}: {change:+.1%}" for change, size, provider in changes[:8])
    return f"{len(beyond)} of {len(changes)} medians differ by more than {tolerance:.0%}. Largest: {worst}"


def short(gpu: str) -> str:
    """ "NVIDIA H200" -> "h200", "AMD Instinct MI300X" -> "mi300x"."""
    model = re.search(r"\b[A-Z]+\d+\w*", gpu)
    return (model[0] if model else re.sub(r"\W+", "_", gpu)).lower()


def need_gpu() -> None:
    """End the program where there is no GPU to measure."""
    if device().interpreting:
        sys.exit("found no GPU; a speed can only be measured on one")
