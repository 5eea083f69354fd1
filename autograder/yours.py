"""What a right answer did, drawn after a pass: which program wrote which element, and the bytes that it moved.

The learner's function runs once more, in the learner's own notebook and on the executor, also where there is a GPU.
"""

import contextlib
import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from workshop.launching import installed
from workshop.picture import CYCLE, READ, WIDTH, WRITE, Drawing, Picture, paragraph
from workshop.traffic import Recording

from .exercises import EXERCISES
from .exercises.spec import Exercise, Strided
from .text import many

MOST_ROWS, MOST_RUNS = 6, 48  # of a drawing
MOST_ELEMENTS = 100_000  # of a tensor of the case that is drawn
LEFT, BAR = 150, 430  # pixels
SOFTMAX = [EXERCISES[name] for name in ("naive_softmax", "online_softmax", "fused_softmax")]  # compared by their bytes


@dataclass(frozen=True)
class Did:
    """One call: the output's writers (the number of a program for each element) and the traffic."""

    writers: np.ndarray
    itemsize: int
    traffic: Recording

    @property
    def programs(self) -> int:
        return len(np.unique(self.writers[self.writers >= 0]))


def picture(exercise: Exercise, function: Callable) -> Picture | None:
    """The drawing of what `function`, a right answer, does. None if it cannot be drawn, such as for plain numbers."""
    did = _did(exercise, function) if exercise.kind == "kernel" else None
    if did is None:
        return None
    parts = _programs(did), _bytes(exercise, did)
    return Picture("".join(part.html for part in parts), "\n".join(part.text for part in parts))


def _did(exercise: Exercise, function: Callable) -> Did | None:
    """The call of the first case that several programs compute; otherwise of the first one that can be drawn."""
    found = None
    for case in itertools.islice(exercise.cases_of(torch.Generator().manual_seed(1)), 4):
        given = case.make(torch.Generator().manual_seed(1))
        arguments = [each.values if isinstance(each, Strided) else each for each in given]
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        if case.gradient is not None or any(each.numel() > MOST_ELEMENTS for each in tensors):
            continue
        try:
            quiet = contextlib.redirect_stdout(io.StringIO())  # a kernel may print
            with installed(), Recording(races=True) as recording, quiet:
                output = function(*arguments)
            did = _seen(output[case.pick] if case.pick is not None else output, recording)
        except Exception:  # a picture is no reason for an error: the answer has passed
            continue
        if did and did.programs > 1:
            return did
        found = found or did
    return found


def _seen(output: torch.Tensor, recording: Recording) -> Did | None:
    """What the launches did to the output; None if none wrote it."""
    for launch in reversed(recording.records):
        for argument in launch.arguments.values():
            if argument.storage.start == output.untyped_storage().data_ptr() and argument.shape == output.shape:
                writers = argument.of(argument.storage.writer)
                return Did(writers, argument.itemsize, recording) if writers.size else None
    return None


def _programs(did: Did) -> Picture:
    """The output's rows as strips: neighbours that one program wrote have one colour."""
    writers = did.writers.reshape(-1, did.writers.shape[-1]) if did.writers.ndim else did.writers.reshape(1, 1)
    shown = [_runs(row) for row in writers[:MOST_ROWS]]
    count = many(did.programs, "program", "programs")
    size = " × ".join(map(str, did.writers.shape)) or "1"
    words = f"Your kernel on {size} elements: {count} wrote them. One colour is one program; four colours take turns."
    if max(map(len, shown)) > MOST_RUNS:  # confetti says nothing
        return Picture(paragraph(words), words)
    drawing = Drawing(WIDTH, 26 * len(shown) + 4, words)
    scale = (WIDTH - 80) / writers.shape[1]
    for number, runs in enumerate(shown):
        drawing.text(0, 26 * number + 18, f"row {number}" if len(writers) > 1 else "output")
        for start, length, program in runs:
            color = CYCLE[program % len(CYCLE)] if program >= 0 else "currentColor"
            who = f"program {program}" if program >= 0 else "several programs"
            note = f"{who}: element{f's {start} to {start + length - 1}' if length > 1 else f' {start}'}"
            drawing.box(80 + start * scale, 26 * number + 3, length * scale, 21, color, 0.5, note=note)
            if length * scale > 30:
                drawing.text(80 + (start + length / 2) * scale, 26 * number + 18, str(program), "middle")
    more = len(writers) - len(shown)
    return Picture(drawing.html() + paragraph(words + (f" {more} more rows are not drawn." if more else "")), words)


def _runs(row: np.ndarray) -> list[tuple[int, int, int]]:
    """(start, length, program) of the neighbours that one program wrote."""
    ends = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), row.size]
    return [(start, end - start, int(row[start])) for start, end in itertools.pairwise(ends)]


def _bytes(exercise: Exercise, did: Did) -> Picture:
    """The bytes of an element beside those of the softmax kernels of the course, or beside the least."""
    count, traffic = max(1, did.writers.size), did.traffic
    written = traffic.bytes_written / count
    bars = [("yours", traffic.bytes_read / count, written)]
    if exercise.notebook in {each.notebook for each in SOFTMAX} and did.writers.ndim == 2:
        for each in SOFTMAX:
            bars.append((each.name.replace("_", " "), each.reads_per_element * did.itemsize, did.itemsize))
    else:
        touched = sum(((t.reads > 0).sum() + (t.writes > 0).sum()) * t.element_size for t in traffic.tensors)
        least = float(touched) / count
        bars.append(("each element once", least - min(written, least), min(written, least)))
    total = max(reads + writes for _, reads, writes in bars)
    words = f"Bytes moved for each element of the output: {', '.join(f'{n} {_short(r + w)}' for n, r, w in bars)}."
    drawing = Drawing(WIDTH, 28 * len(bars) + 4, words)
    for number, (name, reads, writes) in enumerate(bars):
        y = 28 * number
        drawing.text(0, y + 19, name, weight=600 if name == "yours" else 400)
        for start, part, color, what in ((0, reads, READ, "read"), (reads, writes, WRITE, "written")):
            if part:
                x, width = LEFT + BAR * start / total, BAR * part / total
                drawing.box(x, y + 4, width, 20, color, 0.6, note=f"{_short(part)} bytes {what}")
        drawing.text(LEFT + BAR * (reads + writes) / total + 8, y + 19, f"{_short(reads)} + {_short(writes)}")
    legend = "Blue is read, orange is written, in bytes for each element of the output."
    return Picture(drawing.html() + paragraph(legend), words)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
