"""What the compiler makes of a kernel: registers, shared memory, memory instructions and assembly, for any GPU.

No GPU is needed: Triton's compiler runs in this process, as at a launch.
"""

import contextlib
import difflib
import functools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError, make_backend
from triton.runtime.jit import JITFunction

from workshop import short
from workshop.executor import front_end, without_native
from workshop.executor.front_end import TARGETS
from workshop.executor.launch import Specialisation, bind, check_globals, specialise
from workshop.notebook import page
from workshop.occupancy import COMPUTE_UNITS, Occupancy, occupancy
from workshop.picture import plain_table

POINTER_RANGE = 2**31  # bytes up to which AMD's compiler may use 32-bit offsets
TYPE = re.compile(r"\*?k?(fp|bf|i|u)\d+\w*")  # how Triton writes a parameter's type: "*fp32", "i32"
WIDTHS = {"ubyte": 8, "sbyte": 8, "byte": 8, "ushort": 16, "sshort": 16, "short": 16, "dword": 32}
SIZES = "|".join(WIDTHS)
AMD_ACCESS = re.compile(rf"(?m)^\s+(?:global|buffer|flat)_(load|store)_(?P<size>{SIZES})(?:_d16\w*)?(?:x(?P<n>\d))?\b")
NVIDIA_ASYNC = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s[^,]+,[^,]+,\s*(0x[\da-f]+|\d+)")
NVIDIA_ACCESS = re.compile(r"\b(ld|st)\.(?:\w+\.)*global(?:\.\w+(?:::\w+)*)*?(?:\.v(?P<n>\d))?\.[a-z](?P<size>\d+)\b")


class CompileFailed(Exception):
    """The compiler refused the kernel. `line`: of the kernel's file; None if it is not known."""

    def __init__(self, kernel: str, target: str, message: str, line: int | None = None):
        super().__init__(f"{kernel} does not compile for {target}: {message}")
        self.line = line


def kernel_of(kernel) -> JITFunction:
    """The function under @triton.jit, below @triton.autotune and @triton.heuristics."""
    if hasattr(kernel, "__code__"):
        raise TypeError(f"{kernel.__name__} is a plain function: put @triton.jit above it")
    function = kernel
    while not isinstance(function, JITFunction):
        if not hasattr(function, "fn"):
            raise TypeError(f"{kernel!r} is not a Triton kernel: expected a function under @triton.jit")
        function = function.fn
    return function


def compiled(kernel, args: tuple, kwargs: dict, target: str):
    """Triton's CompiledKernel of the call `kernel[grid](*args, **kwargs)`. A type such as "*fp32" may be an argument.

    Raises CompileFailed, and TypeError for arguments that do not fit the kernel.
    """
    kernel = kernel_of(kernel)
    bound, options = bind(kernel, args, kwargs)
    name = kernel.fn.__name__
    if not without_native.native():
        raise CompileFailed(name, target, "Triton's compiler is not here: it has no binary for this machine.")
    # The parameters whose arguments only name a type, and what a launch would tell the compiler.
    given = {parameter.name: bound[parameter.name] for parameter in kernel.params if not parameter.is_constexpr}
    typed = {key: value for key, value in given.items() if isinstance(value, str) and TYPE.fullmatch(value)}
    special = specialise(kernel, {**bound, **dict.fromkeys(typed, True)})
    try:
        goal = parse_target(target)
        check_options(kernel, options, goal)
        attributes = _attributes(kernel, bound, special, typed, goal)
        source = ASTSource(kernel, special.signature | typed, special.constants, attributes)
        check_globals(kernel)
        _skip_missing_linker()
        with front_end.targeting(goal):
            return triton.compile(source, target=goal, options=options)
    except PermissionError:  # of a machine that lets nobody compile, such as the judge's box
        raise
    except Exception as error:
        backend = "hip" if target.startswith("gfx") else "cuda"
        known = as_read_here(error, kernel, special.signature | typed, special.constants, options, backend)
        told = short.of_a_kernel(known, kernel, f"does not compile for {target}")
        failed = CompileFailed(name, target, told.happened, told.line)
        short.fold(failed, told)
        raise failed from None


def _attributes(kernel: JITFunction, bound: dict, special: Specialisation, typed: dict, target: GPUTarget) -> dict:
    """What is promised of the arguments. A tensor of which only the type is known is aligned, and small."""
    attributes = dict(special.attributes)
    for position, name in enumerate(kernel.arg_names):
        facts = list(attributes.pop((position,), []))
        if pointer := typed.get(name, "").startswith("*"):
            facts.append(["tt.divisibility", 16])
        value = bound[name]
        storage = value.untyped_storage() if hasattr(value, "untyped_storage") else None
        # What `warmup` is given in the place of a tensor has no memory.
        near = hasattr(value, "data_ptr") and (storage is None or storage.nbytes() < POINTER_RANGE)
        if target.backend == "hip" and (pointer or near):
            facts.append(["tt.pointer_range", 32])
        if facts:
            attributes[(position,)] = facts
    return attributes


def _skip_missing_linker() -> None:
    """Triton 3.4 links AMD code with ROCm's linker. Where ROCm is missing, leave linking out: only text is read."""
    kind = type(make_backend(parse_target("gfx942")))
    try:
        if hasattr(kind, "path_to_rocm_lld"):  # Triton 3.5 and newer bring a linker
            kind.path_to_rocm_lld()
    except Exception:
        kind.make_hsaco = staticmethod(lambda source, metadata, options: b"")
        kind.hash = lambda self: f"{self.target}, not linked"  # the usual one runs the linker


def parse_target(name: str) -> GPUTarget:
    if re.fullmatch(r"gfx\w+", name):
        return GPUTarget("hip", name, 64 if name.startswith("gfx9") else 32)
    if match := re.fullmatch(r"sm_?(\d+)a?", name):
        return GPUTarget("cuda", int(match[1]), 32)
    raise ValueError(f"unknown target {name!r}; expected one such as gfx942 or sm_90")


@functools.cache
def compiler_options(target: GPUTarget | None = None) -> set[str]:
    """The options of this Triton's compiler for a target; None: of all. A build for one vendor may have only one."""
    options = set()
    for each in [target] if target else TARGETS.values():
        with contextlib.suppress(RuntimeError):
            options |= {option.name for option in fields(make_backend(each).parse_options({}))}
    return options


def check_options(kernel: JITFunction, options: dict, target: GPUTarget | None = None) -> None:
    """A compiler ignores options that it does not know, so a misspelt parameter would go unnoticed.

    Raises TypeError as a call of a function with a wrong name does.
    """
    for name in sorted(set(options) - compiler_options(target)):
        raise TypeError(
            f"{kernel.fn.__name__} has no parameter {name!r}, and the compiler no such option. "
            f"Its parameters are: {', '.join(kernel.arg_names)}"
        )


def as_read_here(error: BaseException, kernel, signature: dict, constants: dict, options: dict, target: str):
    """What our front end refuses in this kernel, with the learner's line; the error itself if it refuses nothing.

    So one mistake has one message, whichever part of Triton meets it first.
    """
    if isinstance(error, Exception):
        try:
            front_end.lower(kernel, signature, constants, {}, options, target)
        except CompilationError as known:
            return known
        except Exception:
            pass
    return error


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


def facts(compiled, target: str) -> Compiled:
    """What the compiler's output tells. compiled: Triton's CompiledKernel."""
    about = compiled.metadata  # the ISA's own field for shared memory is 0: Triton asks for LDS at the launch
    found = {"kernel": compiled.name, "target": target, "num_warps": about.num_warps, "shared": about.shared}
    found |= {stage: compiled.asm[stage] for stage in ("ttir", "ttgir", "llir")}
    amd = parse_target(target).backend == "hip"
    found["isa"] = isa = compiled.asm["amdgcn" if amd else "ptx"]
    accesses = {"l": Counter(), "s": Counter()}
    for access in (AMD_ACCESS if amd else NVIDIA_ACCESS).finditer(isa):
        bits = WIDTHS.get(access["size"]) or int(access["size"])
        accesses[access[1][0]][bits * int(access["n"] or 1)] += 1
    if amd:
        for name in ("vgpr", "agpr", "sgpr", "vgpr_spill"):
            told = re.search(rf"\.{name}_count:\s+(\d+)", isa)
            found["spills" if name == "vgpr_spill" else f"{name}s"] = int(told[1]) if told else None
        barriers, waits = r"^\s+s_barrier\b", r"^\s+s_wait(?:cnt|_\w+cnt)\b"
    else:
        found["registers"], found["spills"] = _resource_usage(compiled.asm["cubin"])
        accesses["l"].update(8 * int(size, 0) for size in NVIDIA_ASYNC.findall(isa))
        barriers, waits = r"\bbar\.sync\b", r"\bcp\.async\.wait_\w+|\bmbarrier\.try_wait\b"
    found |= {"loads": accesses["l"], "stores": accesses["s"], "barriers": len(re.findall(barriers, isa, re.M))}
    # PTX names only the waits for asynchronous copies: 0 of them does not mean that nothing waits.
    return Compiled(**found, waits=len(re.findall(waits, isa, re.M)) or (0 if amd else None))


def _resource_usage(cubin: bytes) -> tuple[int | None, int | None]:
    """Registers of one thread and bytes it spills, by cuobjdump; None each in a Triton without that tool."""
    try:
        tool = triton.knobs.nvidia.cuobjdump.path
    except (AttributeError, RuntimeError):
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [tool, "--dump-resource-usage", file.name]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"\b(REG|STACK|LOCAL):(\d+)", usage))
    return int(found["REG"]), int(found["STACK"]) + int(found["LOCAL"])


# -- reports --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """A kernel compiled for some targets; shows itself as a table. `report["gfx942"]` is one of them."""

    compiled: list[Compiled]

    def __iter__(self) -> Iterator[Compiled]:
        return iter(self.compiled)

    def __getitem__(self, target: str | None) -> Compiled:
        """The kernel for one target, None for the first. Raises ValueError for a target it is not compiled for."""
        for one in self:
            if target in (None, one.target):
                return one
        raise ValueError(f"not compiled for {target!r}; compiled for: {', '.join(one.target for one in self)}")

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

    def __repr__(self) -> str:
        return plain_table(*self._table(), str.ljust)

    def _repr_html_(self) -> str:
        header, rows = self._table()
        return page("table.html", header=header, rows=rows, left=True)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """The kernel with its targets, and a row for each fact that any of them has."""
        summaries = [one.summary() for one in self]
        rows = [
            [label, *("" if value is None else str(value) for value in values)]
            for label, *values in zip(summaries[0], *(summary.values() for summary in summaries), strict=True)
        ]
        return [self[None].kernel, *(one.target for one in self)], [row for row in rows if any(row[1:])]


class Text(str):
    """Text that a notebook shows unchanged, in a frame that scrolls."""

    def _repr_html_(self) -> str:
        return page("text.html", text=self)

    def grep(self, *words: str) -> "Text":
        """The lines that contain any of the words, without their indentation."""
        return Text("\n".join(line.strip() for line in self.splitlines() if any(word in line for word in words)))


@short.own_lines()
def xray(kernel, *args, targets: str | tuple[str, ...] = "gfx942", **kwargs) -> Report:
    """Compile a kernel as the call `kernel[grid](*args, **kwargs)` would, for GPUs that need not be here.

    args: what the kernel would be given: tensors and numbers, or types such as "*fp32" and "i32".
    kwargs: the kernel's other parameters (BLOCK_SIZE=1024) and options of the compiler (num_warps=8).
    targets: "gfx90a", "gfx942", "gfx950", "sm_90", ... Raises CompileFailed with the kernel's line that the
    compiler refused, and TypeError for arguments that do not fit the kernel.
    """
    targets = (targets,) if isinstance(targets, str) else targets
    return Report([facts(compiled(kernel, args, kwargs, target), target) for target in targets])


def _widths(counts: dict[int, int]) -> str:
    return ", ".join(f"{count} × {width} bit" for width, count in sorted(counts.items(), reverse=True)) or "none"


def _instructions(isa: str) -> list[str]:
    """The assembly without comments, directives and blank lines, which differ for no reason."""
    code = (line.split(";")[0].split("//")[0].strip() for line in isa.splitlines())
    return [line for line in code if line and not line.startswith(".")]
