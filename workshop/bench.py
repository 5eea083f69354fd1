"""Speed as GB/s beside this card's own copy, and what can be known about speed where there is no card.

On a GPU `compare` measures. Without one it counts the bytes that each kernel asks memory for, and shows curves that
were recorded on a named GPU. It never shows a time from a CPU.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from html import escape

import torch

from workshop.device import device
from workshop.notebook import live
from workshop.results import COUNTS, SHARE, TOTAL, Counted, Results, Row, recorded
from workshop.short import own_lines
from workshop.timing import REPEATS, WARMUPS, Gbps, Timer, copy_source, gbps  # noqa: F401  lesson 5 takes Gbps
from workshop.traffic import recording
from workshop.turns import this_card, turn

TOO_GOOD = 1.05  # times the copy: more, with as many bytes written as a copy writes, is an error of measuring


@own_lines()
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
    number. Without a GPU the result is Counted: bytes per element, and the curves named by `recorded`.
    """
    sizes = list(sizes)
    if device().interpreting:
        return _count(providers, make_inputs(min(sizes)), bytes_moved, check, recorded, title)
    rows = []
    for size in _with_progress(sizes, x_label):
        inputs = make_inputs(size)
        with turn(this_card()):  # for each size, so that people who share a card go on side by side
            rows += _measure_size(size, providers, inputs, bytes_moved(*inputs), check, repeats)
    return Results(rows, about_here(), title, x_label)


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


def about_here() -> dict[str, str]:
    """The GPU, versions and date of a measurement made now."""
    here = device()
    facts = {name: getattr(here, name) for name in ("arch", "driver", "torch", "triton")}
    return {"gpu": here.name} | facts | {"date": date.today().isoformat()}


def _count(providers, inputs, bytes_moved, check, curves, title) -> Counted:
    import pandas

    least, counts = 0.0, []
    for function in providers.values():
        try:
            with recording(elements=False) as traffic:
                output = function(*inputs)
            wrong = check and not check(output, *inputs)
        except Exception as error:  # one unfinished kernel must not hide the others
            counts.append({"note": first_line(error)})
            continue
        elements = max(1, output.numel())
        least = bytes_moved(*inputs) / elements
        if not traffic.launches:
            counts.append({"note": "no Triton kernel: its loads cannot be counted"})
            continue
        total = traffic.per_element(elements)
        note = "moves less than the work needs" if total < 0.999 * least else "its result is wrong" if wrong else ""
        share = None if note else f"{least / total:.0%}"  # where the work is not done, it would mean nothing
        read, written = traffic.bytes_read / elements, traffic.bytes_written / elements
        counts.append({"read": read, "written": written, TOTAL: total, SHARE: share, "note": note})
    table = pandas.DataFrame(counts, providers, COUNTS)
    return Counted(table, least, recorded(curves) if curves else None, title)


def _measure_size(size, providers, inputs, nbytes, check, repeats) -> list[Row]:
    """A row for the copy and for each provider: its speed, or the note on why it has none."""
    source = copy_source(nbytes)
    _warm(lambda *_: source.clone(), inputs)
    warmed = {name: _warm(function, inputs) for name, function in providers.items()}
    notes = {name: note for name, (_, note) in warmed.items() if note}
    timer, copies, times = Timer(), [], {name: [] for name in providers}
    for _ in range(repeats):
        copies.append(timer.milliseconds(source.clone)[0])
        for name in [name for name in providers if name not in notes]:
            milliseconds, output = timer.milliseconds(providers[name], *inputs)
            if check and not check(output, *inputs):
                notes[name] = "wrong result: no number"
                continue
            times[name].append(milliseconds)
            _poison(output, inputs)
    copy = gbps(nbytes, copies)
    rows = [Row(size, "copy", copy, 1.0, nbytes)]
    for name, (written, _) in warmed.items():
        if name in notes:
            rows.append(Row(size, name, None, note=notes[name]))
            continue
        speed = gbps(nbytes, times[name])
        of_copy = speed.median / copy.median
        doubt = ""
        if of_copy > TOO_GOOD:  # half of a copy's bytes are reads, and half are writes
            doubt = f"{of_copy:.0%} of copy: a measuring error, not a fast kernel"
            if written and written < 0.45 * nbytes:
                doubt = f"{of_copy:.0%} of copy: it writes {written / nbytes:.0%} of its bytes, a copy 50%"
        rows.append(Row(size, name, speed, of_copy, nbytes, doubt))
    return rows


def _warm(function: Callable, inputs: tuple) -> tuple[int, str]:
    """Compile, tune and run a few times: the bytes of the output, and why it has none."""
    written = 0
    try:
        for _ in range(WARMUPS):
            output = function(*inputs)
            written = getattr(output, "nbytes", 0)
            _poison(output, inputs)
    except Exception as error:  # a provider may refuse a size in any way; the others go on
        return written, first_line(error)
    return written, ""


def _poison(output, inputs: tuple) -> None:
    """Overwrite an output after its check. A later call that writes nothing then fails the check."""
    given = {tensor.data_ptr() for tensor in inputs if hasattr(tensor, "data_ptr")}
    if hasattr(output, "data_ptr") and output.data_ptr() not in given:
        output.fill_(float("nan") if output.is_floating_point() else -1)


def _with_progress(sizes: list[int], x_label: str) -> Iterator[int]:
    """The sizes, with a bar in a notebook that grows, and with a line for each one elsewhere."""
    steps, shown = len(sizes), live({"text/html": "measuring"})
    for done, size in enumerate(sizes, 1):
        yield size
        what = f"{x_label} = {size:,}"
        if shown:
            bar = f"<progress max='{steps}' value='{done}' aria-label='measured'></progress> {escape(what)}"
            shown.update({"text/html": bar if done < steps else ""}, raw=True)
        else:
            print(f"measured {what} ({done} of {steps})")


def first_line(error: Exception) -> str:
    """What went wrong, short enough for a table."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:120]
