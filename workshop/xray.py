"""What a kernel becomes: registers, shared memory, memory instructions and assembly, for any GPU, without
one.

Triton's compiler needs no GPU. It runs in a child process, because an interpreting session cannot compile.
"""

import ast
import difflib
import functools
import html
import inspect
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType

from workshop.occupancy import COMPUTE_UNITS, Occupancy, occupancy

TARGETS = ("gfx942",)
LIMIT = 120  # seconds that one compilation may take
POINTER_RANGE = 2**31  # bytes up to which AMD's compiler may use 32-bit offsets
DTYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "i1",
    "uint8": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}


class CompileFailed(Exception):
    """The compiler refused the kernel. `line` counts from the line with `def`; None if it is not known."""

    def __init__(self, kernel: str, target: str, message: str, line: int | None = None, text: str = ""):
        where = f"\n  line {line}, counted from `def`:  {text}" if line else ""
        super().__init__(f"{kernel} does not compile for {target}.{where}\n  {message}")
        self.line = line


@dataclass(frozen=True)
class Compiled:
    """One kernel compiled for one target.

    vgprs includes agprs, the accumulation registers (both None on NVIDIA, where `registers` counts one
    thread's). shared: bytes of one program. spills: registers written to memory (AMD), or bytes (NVIDIA).
    loads, stores: global-memory instructions in the assembly by width in bits, as {128: 4}.
    """

    kernel: str
    target: str
    num_warps: int
    registers: int | None
    vgprs: int | None
    agprs: int | None
    sgprs: int | None
    shared: int
    spills: int | None
    loads: dict[int, int]
    stores: dict[int, int]
    barriers: int
    waits: int
    llvm_occupancy: int | None
    isa: str
    ttgir: str

    @property
    def occupancy(self) -> Occupancy | None:
        """Waves per execution unit; None for targets whose compute unit is not known here."""
        if self.vgprs is None or self.target not in COMPUTE_UNITS:
            return None
        return occupancy(self.vgprs, self.shared, self.num_warps, self.target)

    def summary(self) -> dict[str, str]:
        """What the table shows, by its row's label."""
        limited = self.occupancy
        values = {
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
        return {label: str(value) for label, value in values.items() if value is not None}


class Report:
    """A kernel compiled for some targets; shows itself as a table. `report["gfx942"]` is one of them."""

    def __init__(self, compiled: list[Compiled]):
        self._compiled = {one.target: one for one in compiled}

    def __getitem__(self, target: str) -> Compiled:
        return self._compiled[target]

    def __iter__(self) -> Iterator[Compiled]:
        return iter(self._compiled.values())

    def isa(self, target: str | None = None) -> "Text":
        """The assembly for one target, the first one unless named."""
        return Text(self._one(target).isa)

    def ttgir(self, target: str | None = None) -> "Text":
        """Triton's own GPU representation, from which the assembly was made."""
        return Text(self._one(target).ttgir)

    def diff(self, other: "Report", target: str | None = None) -> "Text":
        """How the assembly of `other` differs from this one's, after the numbers that differ."""
        mine, its = self._one(target), other._one(target)
        numbers = {label: (mine.summary().get(label), value) for label, value in its.summary().items()}
        changed = [f"{label}: {old} -> {new}" for label, (old, new) in numbers.items() if old != new]
        lines = difflib.unified_diff(
            _instructions(mine.isa), _instructions(its.isa), "this", "other", lineterm="", n=2
        )
        return Text("\n".join([*changed, "", *lines]))

    def __str__(self) -> str:
        rows = [("", *self._compiled)]
        rows += [(label, *cells) for label, cells in self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        title = f"{next(iter(self)).kernel}\n"
        return title + "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(label: str, cells, tag: str) -> str:
            inner = "".join(f"<{tag} style='text-align:left'>{html.escape(cell)}</{tag}>" for cell in cells)
            return f"<tr><th style='text-align:left'>{html.escape(label)}</th>{inner}</tr>"

        body = "".join(row(label, cells, "td") for label, cells in self._rows())
        return f"<table>{row(next(iter(self)).kernel, self._compiled, 'th')}{body}</table>"

    def _rows(self) -> list[tuple[str, list[str]]]:
        summaries = [one.summary() for one in self]
        labels = dict.fromkeys(label for summary in summaries for label in summary)
        order = [label for label in _LABELS if label in labels]
        return [(label, [summary.get(label, "") for summary in summaries]) for label in order]

    def _one(self, target: str | None) -> Compiled:
        if target is None:
            return next(iter(self))
        if target not in self._compiled:
            raise ValueError(f"not compiled for {target!r}; compiled for: {', '.join(self._compiled)}")
        return self._compiled[target]


_LABELS = (
    "warps",
    "registers",
    "VGPRs",
    "of them AGPRs",
    "SGPRs",
    "shared memory (bytes)",
    "spills",
    "waves per execution unit",
    "loads",
    "stores",
    "barriers",
    "waits",
)


class Text(str):
    """Text that a notebook shows as it is, in a frame that scrolls."""

    def _repr_html_(self) -> str:
        style = "max-height:30em;overflow:auto;line-height:1.25;font-family:monospace"
        return f"<pre style='{style}'>{html.escape(self)}</pre>"

    def grep(self, *words: str) -> "Text":
        """The lines that contain any of the words, without their indentation."""
        return Text("\n".join(line.strip() for line in self.splitlines() if any(word in line for word in words)))


def xray(kernel, *args, targets: str | tuple[str, ...] = TARGETS, **kwargs) -> Report:
    """Compile a kernel as the call `kernel[grid](*args, **kwargs)` would, for GPUs that need not be here.

    args: what the kernel would be given: tensors and numbers, or types such as "*fp32" and "i32".
    kwargs: the kernel's other parameters (BLOCK_SIZE=1024) and options of the compiler (num_warps=8).
    targets: "gfx90a", "gfx942", "gfx950", "sm_90", ... Raises CompileFailed with the kernel's line that the
    compiler refused, and TypeError for arguments that do not fit the kernel.
    """
    targets = (targets,) if isinstance(targets, str) else tuple(targets)
    function = _function_of(kernel)
    parameters, options = _bind(function, args, kwargs)
    request = {
        "module": _module_source(function),
        "kernel": function.__name__,
        "parameters": parameters,
        "options": options,
        "targets": targets,
    }
    answers = _compile(json.dumps(request))
    compiled = []
    for target, answer in zip(targets, answers, strict=True):
        if "error" in answer:
            where = answer.get("line"), answer.get("text", "")
            raise CompileFailed(function.__name__, target, answer["error"], *where)
        widths = {name: {int(bits): n for bits, n in answer[name].items()} for name in ("loads", "stores")}
        compiled.append(Compiled(kernel=function.__name__, target=target, **(answer | widths)))
    return Report(compiled)


@functools.lru_cache(maxsize=256)
def _compile(request: str) -> tuple[dict, ...]:
    """One answer per target, from a child process whose Triton is not interpreting."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    child = [sys.executable, str(Path(__file__).with_name("xray_child.py"))]
    try:
        finished = subprocess.run(
            child, input=request, capture_output=True, text=True, timeout=LIMIT, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the compiler did not finish within {LIMIT} s; try a smaller block") from None
    if finished.returncode:
        reason = finished.stderr.strip().splitlines() or [f"exit status {finished.returncode}"]
        raise RuntimeError(f"the compiler's process ended: {reason[-1]}")
    return tuple(json.loads(finished.stdout))


def _function_of(kernel) -> FunctionType:
    """The Python function under @triton.jit, @triton.autotune and @triton.heuristics."""
    function = kernel
    while not isinstance(function, FunctionType):
        if not hasattr(function, "fn"):
            raise TypeError(f"{kernel!r} is not a Triton kernel: expected a function under @triton.jit")
        function = function.fn
    if function is kernel:
        raise TypeError(f"{kernel.__name__} is a plain function: put @triton.jit above it")
    return function


def _bind(function: FunctionType, args: tuple, kwargs: dict) -> tuple[dict[str, dict], dict]:
    """The kernel's parameters as the compiler wants them, and the options among the keyword arguments."""
    names = list(inspect.signature(function).parameters)
    options = {name: value for name, value in kwargs.items() if name not in names}
    given = {name: value for name, value in kwargs.items() if name in names}
    try:
        bound = inspect.signature(function).bind(*args, **given)
    except TypeError as error:
        raise TypeError(f"{function.__name__} takes {', '.join(names)}: {error}") from None
    bound.apply_defaults()
    return {
        name: _parameter(name, bound.arguments[name], _is_constexpr(function, name)) for name in names
    }, options


def _is_constexpr(function: FunctionType, name: str) -> bool:
    return "constexpr" in str(function.__annotations__.get(name, ""))


def _parameter(name: str, value, constexpr: bool) -> dict:
    """How the launcher would specialise one argument: its type, and what it knows about its value."""
    value = getattr(value, "value", value) if constexpr else value
    if constexpr or value is None or (type(value) is int and value == 1):
        return {"constant": _constant(value)}
    if isinstance(value, str):
        return {"type": value, "aligned": value.startswith("*"), "near": value.startswith("*")}
    if hasattr(value, "data_ptr"):
        size = value.untyped_storage().nbytes()
        dtype = DTYPES.get(str(value.dtype).removeprefix("torch."))
        if dtype is None:
            raise TypeError(f"{name}: no Triton type for a tensor of {value.dtype}")
        return {"type": f"*{dtype}", "aligned": value.data_ptr() % 16 == 0, "near": size < POINTER_RANGE}
    if isinstance(value, bool):
        return {"type": "i1"}
    if isinstance(value, int):
        width = "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
        return {"type": width, "aligned": value % 16 == 0}
    if isinstance(value, float):
        return {"type": "fp32"}
    raise TypeError(
        f"{name}: expected a tensor, a number or a type such as '*fp32', got {type(value).__name__}"
    )


def _constant(value):
    """A constexpr as JSON can carry it: a number, a string, None, or one of Triton's types by name."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ == "dtype":
        return {"dtype": str(value)}
    raise TypeError(f"a constexpr of type {type(value).__name__} cannot be compiled here")


def _module_source(function: FunctionType) -> str:
    """A Python module with the kernel and everything of its notebook or module that it uses."""
    parts: dict[str, str] = {}
    _gather(function, parts)
    return "\n".join(["import triton", "import triton.language as tl", *parts.values()]) + "\n"


def _gather(function: FunctionType, parts: dict[str, str]) -> None:
    """Add the definitions that `function` needs, then its own, to `parts`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    definition.decorator_list = []
    parts[function.__name__] = ""  # a function that calls itself is gathered once
    for name in sorted({node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}):
        if name in function.__globals__ and name not in parts:
            _gather_global(name, function.__globals__[name], parts)
    del parts[function.__name__]
    # The compiler counts lines from the definition, so the source stays as it was written.
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    parts[function.__name__] = "\n".join(["@triton.jit", *lines[definition.lineno - 1 :]])


def _gather_global(name: str, value, parts: dict[str, str]) -> None:
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__} as {name}"
    elif value is None or isinstance(value, (bool, int, float, str)):
        parts[name] = f"{name} = {_literal(value)}"
    elif type(value).__name__ == "constexpr":
        parts[name] = f"{name} = tl.constexpr({_literal(value.value)})"
    elif type(value).__name__ == "dtype":
        parts[name] = f"{name} = tl.{value}"
    else:
        function = getattr(value, "fn", value)
        if str(getattr(function, "__module__", "")).startswith("triton."):
            parts[name] = f"from {function.__module__} import {function.__name__} as {name}"
        elif function is not value:
            _gather(_function_of(value), parts)


def _literal(value) -> str:
    return f'float("{value}")' if isinstance(value, float) else repr(value)


def _widths(counts: dict[int, int]) -> str:
    return (
        ", ".join(f"{count} × {width} bit" for width, count in sorted(counts.items(), reverse=True)) or "none"
    )


def _instructions(isa: str) -> list[str]:
    """The assembly without comments, directives and blank lines, which differ for no reason."""
    code = (line.split(";")[0].split("//")[0].strip() for line in isa.splitlines())
    return [line for line in code if line and not line.startswith(".")]
