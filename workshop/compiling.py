"""Compiles kernels for GPUs that need not be here, as a launch would, and reads facts out of the assembly."""

import contextlib
import functools
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import fields

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError, make_backend
from triton.runtime.jit import JITFunction

from workshop import short
from workshop.executor import front_end, without_native
from workshop.executor.front_end import TARGETS
from workshop.executor.launch import Specialisation, bind, check_globals, specialise

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


def facts(compiled, target: str) -> dict:
    """The fields of xray.Compiled that the compiler's output tells."""
    about = compiled.metadata  # the ISA's own field for shared memory is 0: Triton asks for LDS at the launch
    found = {"num_warps": about.num_warps, "shared": about.shared}
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
    return found | {"waits": len(re.findall(waits, isa, re.M)) or (0 if amd else None)}


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
