"""What the compiler makes of a kernel: registers, shared memory, memory instructions and assembly, for any GPU.

No GPU is needed: Triton's compiler runs in this process.
"""

import difflib
import html
from collections.abc import Iterator
from dataclasses import dataclass

from workshop.compiling import compiled, facts, kernel_of
from workshop.occupancy import COMPUTE_UNITS, Occupancy, occupancy
from workshop.picture import plain_table, table
from workshop.short import own_lines

TARGETS = ("gfx942",)


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """One kernel compiled for one target.

    vgprs includes agprs, the accumulation registers (both None on NVIDIA, where `registers` counts one
    thread's). shared: bytes of one program. spills: registers written to memory (AMD), or bytes (NVIDIA).
    loads, stores: global-memory instructions in the assembly by width in bits, as {128: 4}.
    """

    kernel: str
    target: str
    num_warps: int
    registers: int | None = None
    vgprs: int | None = None
    agprs: int | None = None
    sgprs: int | None = None
    shared: int
    spills: int | None
    loads: dict[int, int]
    stores: dict[int, int]
    barriers: int
    waits: int | None
    isa: str
    ttir: str
    ttgir: str
    llir: str

    @property
    def occupancy(self) -> Occupancy | None:
        """Waves per execution unit; None for targets whose compute unit is not known here."""
        if self.vgprs is None or self.target not in COMPUTE_UNITS:
            return None
        return occupancy(self.vgprs, self.shared, self.num_warps, self.target)

    def summary(self) -> dict[str, object]:
        """What the table shows, by its row's label; None for what this target has not."""
        limited = self.occupancy
        return {
            "warps": self.num_warps,
            "registers": self.registers,
            "VGPRs": self.vgprs,
            "of them AGPRs": self.agprs,
            "SGPRs": self.sgprs,
            "shared memory (bytes)": self.shared,
            "spills": self.spills,
            "waves per execution unit": None if limited is None else f"{limited} (limit: {limited.limiter})",
            "loads": _widths(self.loads),
            "stores": _widths(self.stores),
            "barriers": self.barriers,
            "waits": self.waits,
        }


class Report:
    """A kernel compiled for some targets; shows itself as a table. `report["gfx942"]` is one of them."""

    def __init__(self, compiled: list[Compiled]):
        self._compiled = {one.target: one for one in compiled}

    def __getitem__(self, target: str | None) -> Compiled:
        """The kernel for one target, None for the first. Raises ValueError for a target it is not compiled for."""
        if target is None:
            return next(iter(self))
        if target not in self._compiled:
            raise ValueError(f"not compiled for {target!r}; compiled for: {', '.join(self._compiled)}")
        return self._compiled[target]

    def __iter__(self) -> Iterator[Compiled]:
        return iter(self._compiled.values())

    def isa(self, target: str | None = None) -> "Text":
        """The assembly for one target; without a name, for the first. So do the others."""
        return Text(self[target].isa)

    def ttir(self, target: str | None = None) -> "Text":
        """Triton's first representation: the kernel's operations, still without a GPU in mind."""
        return Text(self[target].ttir)

    def ttgir(self, target: str | None = None) -> "Text":
        """Triton's own GPU representation, from which the assembly was made."""
        return Text(self[target].ttgir)

    def llir(self, target: str | None = None) -> "Text":
        """LLVM's representation: what one lane does, between TTGIR and the assembly."""
        return Text(self[target].llir)

    def diff(self, other: "Report", target: str | None = None) -> "Text":
        """How the assembly of `other` differs from this one's, after the numbers that differ."""
        mine, its = self[target], other[target]
        numbers = {label: (mine.summary().get(label), value) for label, value in its.summary().items()}
        changed = [f"{label}: {old} -> {new}" for label, (old, new) in numbers.items() if old != new]
        lines = difflib.unified_diff(_instructions(mine.isa), _instructions(its.isa), "this", "other", lineterm="", n=2)
        return Text("\n".join([*changed, "", *lines]))

    def __str__(self) -> str:
        return f"{self[None].kernel}\n{plain_table(['', *self._compiled], self._rows(), str.ljust)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table([self[None].kernel, *self._compiled], self._rows(), "left")

    def _rows(self) -> list[list[str]]:
        """A row for each fact that any target has."""
        summaries = [one.summary() for one in self]
        return [
            [label, *(str(value) if value is not None else "" for value in values)]
            for label, *values in zip(summaries[0], *(summary.values() for summary in summaries), strict=True)
            if any(value is not None for value in values)
        ]


class Text(str):
    """Text that a notebook shows unchanged, in a frame that scrolls."""

    def _repr_html_(self) -> str:
        style = (
            "max-height:30em;overflow:auto;white-space:pre;line-height:1.25;font-family:monospace;padding:6px 8px;"
            "border:1px solid rgba(127,127,127,.4);border-radius:4px"
        )
        return f"<pre style='{style}'>{html.escape(self)}</pre>"

    def grep(self, *words: str) -> "Text":
        """The lines that contain any of the words, without their indentation."""
        return Text("\n".join(line.strip() for line in self.splitlines() if any(word in line for word in words)))


@own_lines()
def xray(kernel, *args, targets: str | tuple[str, ...] = TARGETS, **kwargs) -> Report:
    """Compile a kernel as the call `kernel[grid](*args, **kwargs)` would, for GPUs that need not be here.

    args: what the kernel would be given: tensors and numbers, or types such as "*fp32" and "i32".
    kwargs: the kernel's other parameters (BLOCK_SIZE=1024) and options of the compiler (num_warps=8).
    targets: "gfx90a", "gfx942", "gfx950", "sm_90", ... Raises CompileFailed with the kernel's line that the
    compiler refused, and TypeError for arguments that do not fit the kernel.
    """
    targets = (targets,) if isinstance(targets, str) else tuple(targets)
    name = kernel_of(kernel).fn.__name__
    return Report([
        Compiled(kernel=name, target=target, **facts(compiled(kernel, args, kwargs, target), target))
        for target in targets
    ])


def _widths(counts: dict[int, int]) -> str:
    return ", ".join(f"{count} × {width} bit" for width, count in sorted(counts.items(), reverse=True)) or "none"


def _instructions(isa: str) -> list[str]:
    """The assembly without comments, directives and blank lines, which differ for no reason."""
    code = (line.split(";")[0].split("//")[0].strip() for line in isa.splitlines())
    return [line for line in code if line and not line.startswith(".")]
