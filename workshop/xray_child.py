"""Compiles kernels for other GPUs: run as a program by xray_process, a line of JSON in for each, a line of JSON out.

The line has `answers`, one for each target, with the fields of xray.Compiled, or `error` with, where known, `line`
and `text`; or it has `ended`: why there are none. A fork answers, so that a crash of the compiler is one request's.
"""

import ast
import importlib.util
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import NoReturn, TextIO

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompilationError, make_backend

WIDTHS = {"ubyte": 8, "sbyte": 8, "byte": 8, "ushort": 16, "sshort": 16, "short": 16, "dword": 32}
SIZES = "|".join(WIDTHS)
AMD_ACCESS = re.compile(rf"^\s+(?:global|buffer|flat)_(load|store)_({SIZES})(?:_d16\w*)?(?:x(\d))?\b", re.M)
NVIDIA_ASYNC = re.compile(r"\bcp\.async\.c[ag]\.shared\.global\s[^,]+,[^,]+,\s*(0x[\da-f]+|\d+)")
NVIDIA_ACCESS = re.compile(r"\b(ld|st)\.(?:\w+\.)*global(?:\.\w+(?:::\w+)*)*?(?:\.v(\d))?\.[a-z](\d+)\b")


IDLE = 300  # seconds without a request, after which the memory is better used by others


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the compiler prints is no reply
    skip_missing_linker()
    for home in (triton.compiler.compiler, triton.runtime.cache):  # of older and of newer versions
        if key := getattr(home, "triton_key", None):
            key()  # it reads all of Triton's library, once: forks inherit what it found
    while select.select([sys.stdin], [], [], IDLE)[0] and (line := sys.stdin.readline()):
        with tempfile.TemporaryFile() as said:
            if not (fork := os.fork()):
                reply(json.loads(line), said.fileno(), replies)
            status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
            if status:
                said.seek(0)
                reasons = [f"exit status {status}", *said.read().decode(errors="replace").split("\n")]
                print(json.dumps({"ended": [line for line in reasons if line.strip()][-1]}), file=replies, flush=True)


def reply(request: dict, errors: int, replies: TextIO) -> NoReturn:
    """In the fork: write the answers, and end."""
    try:
        os.dup2(errors, 2)
        os.environ.clear()
        os.environ.update(request["environment"])  # as it is now where the request was made
        with tempfile.TemporaryDirectory() as folder:
            kernel = load(Path(folder, "kernel.py"), request["module"], request["kernel"])
            answers = [answer(kernel, request, name) for name in request["targets"]]
        print(json.dumps({"answers": answers}), file=replies, flush=True)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def skip_missing_linker() -> None:
    """Triton 3.4 links AMD code with ROCm's linker. Where ROCm is missing, leave linking out: only text is read."""
    backend = type(make_backend(parse_target("gfx942")))
    find_linker = getattr(backend, "path_to_rocm_lld", None)
    if find_linker is None:  # Triton 3.5 and newer bring a linker
        return
    try:
        find_linker()
    except Exception:
        backend.make_hsaco = staticmethod(lambda source, metadata, options: b"")
        backend.hash = lambda self: f"{self.target}, not linked"  # the usual one runs the linker


def load(file: Path, source: str, name: str):
    """The kernel, from a file: the compiler reads its source again."""
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernel", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def answer(kernel, request: dict, name: str) -> dict:
    try:
        target = parse_target(name)
        check_options(target, request["options"])
        compiled = triton.compile(
            ast_source(kernel, request["parameters"], target), target=target, options=request["options"]
        )
        return amd(compiled) if target.backend == "hip" else nvidia(compiled)
    except CompilationError as error:
        return refusal(error)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"} | place(error, request["module"])


def place(error: Exception, module: str) -> dict:
    """The kernel's line that the compiler was visiting: Triton 3.4 does not name it for an unknown function."""
    nodes = [frame.f_locals.get("node") for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = [node.lineno for node in nodes if isinstance(node, ast.AST) and hasattr(node, "lineno")]
    if not lines:
        return {}
    # lines count from `def`, as in the errors that name one
    begin = next(i for i, line in enumerate(module.splitlines()) if line.startswith("def "))
    return {"line": lines[-1], "text": module.splitlines()[begin + lines[-1] - 1].strip()}


def refusal(error: CompilationError) -> dict:
    """What the compiler refused, where it happened: an error in a helper arrives wrapped in its caller's."""
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    line = getattr(error.node, "lineno", None)
    text = error.src.splitlines()[line - 1] if line and error.src else ""
    return {"error": message_of(error), "line": line, "text": text.strip()}


def message_of(error: BaseException) -> str:
    """What the compiler says, without the name of the exception around it."""
    while isinstance(error.__cause__, CompilationError):
        error = error.__cause__
    message = getattr(error, "error_message", None) or str(error.__cause__ or error)
    quoted = re.fullmatch(r"""\w+\((["'])(.*)\1\)""", message.strip(), re.S)
    return quoted[2] if quoted else message.strip()


def parse_target(name: str) -> GPUTarget:
    if re.fullmatch(r"gfx\w+", name):
        return GPUTarget("hip", name, 64 if name.startswith("gfx9") else 32)
    if match := re.fullmatch(r"sm_?(\d+)a?", name):
        return GPUTarget("cuda", int(match[1]), 32)
    raise ValueError(f"unknown target {name!r}; expected one such as gfx942 or sm_90")


def check_options(target: GPUTarget, options: dict) -> None:
    """The compiler ignores options it does not know, so a misspelt parameter would go unnoticed."""
    known = {field.name for field in fields(make_backend(target).parse_options({}))}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: neither a parameter of the kernel nor an option of the compiler"
        )


def ast_source(kernel, parameters: dict[str, dict], target: GPUTarget) -> ASTSource:
    """The kernel with its arguments specialised as a launch would."""
    signature, constants, attributes = {}, {}, {}
    for position, (name, parameter) in enumerate(parameters.items()):
        signature[name] = parameter.get("type", "constexpr")
        if "constant" in parameter:
            constants[(position,)] = constant(parameter["constant"])
            continue
        facts = [["tt.divisibility", 16]] if parameter.get("aligned") else []
        if parameter.get("near") and target.backend == "hip":
            facts.append(["tt.pointer_range", 32])
        if facts:
            attributes[(position,)] = facts
    return ASTSource(kernel, signature, constants, attributes)


def constant(value):
    return getattr(tl, value["dtype"]) if isinstance(value, dict) else value


def amd(compiled) -> dict:
    isa = compiled.asm["amdgcn"]

    def number(pattern: str) -> int | None:
        match = re.search(pattern + r":\s+(\d+)", isa)
        return int(match[1]) if match else None

    accesses = {"load": Counter(), "store": Counter()}
    for kind, size, times in AMD_ACCESS.findall(isa):
        accesses[kind][WIDTHS[size] * int(times or 1)] += 1
    return {
        "num_warps": compiled.metadata.num_warps,
        "registers": None,
        "vgprs": number(r"\.vgpr_count"),
        "agprs": number(r"\.agpr_count"),
        "sgprs": number(r"\.sgpr_count"),
        "shared": compiled.metadata.shared,  # the ISA's own field is 0: Triton asks for LDS at the launch
        "spills": number(r"\.vgpr_spill_count"),
        "loads": accesses["load"],
        "stores": accesses["store"],
        "barriers": len(re.findall(r"^\s+s_barrier\b", isa, re.M)),
        "waits": len(re.findall(r"^\s+s_wait(?:cnt|_\w+cnt)\b", isa, re.M)),
        "llvm_occupancy": number(r"; Occupancy"),
        "isa": isa,
        **stages(compiled),
    }


def stages(compiled) -> dict[str, str]:
    """What lies between Python and assembly: Triton's IR, its GPU form with layouts, LLVM's IR."""
    return {stage: compiled.asm[stage] for stage in ("ttir", "ttgir", "llir")}


def nvidia(compiled) -> dict:
    ptx = compiled.asm["ptx"]
    accesses = {"ld": Counter(), "st": Counter()}
    for kind, times, size in NVIDIA_ACCESS.findall(ptx):
        accesses[kind][int(size) * int(times or 1)] += 1
    for size in NVIDIA_ASYNC.findall(ptx):
        accesses["ld"][8 * int(size, 0)] += 1
    registers, spills = resource_usage(compiled.asm["cubin"])
    return {
        "num_warps": compiled.metadata.num_warps,
        "registers": registers,
        "vgprs": None,
        "agprs": None,
        "sgprs": None,
        "shared": compiled.metadata.shared,
        "spills": spills,
        "loads": accesses["ld"],
        "stores": accesses["st"],
        "barriers": len(re.findall(r"\bbar\.sync\b", ptx)),
        # PTX names only the waits for asynchronous copies: 0 of them does not mean that nothing waits
        "waits": len(re.findall(r"\bcp\.async\.wait_\w+|\bmbarrier\.try_wait\b", ptx)) or None,
        "llvm_occupancy": None,
        "isa": ptx,
        **stages(compiled),
    }


def resource_usage(cubin: bytes) -> tuple[int | None, int | None]:
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


if __name__ == "__main__":
    main()
