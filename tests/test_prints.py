"""Prints in kernels: the judge refuses what a compiler refuses. The interpreter would print anything."""

import json
import os
import subprocess
import sys

import pytest

from autograder.kernel_language import NotAllowed, kernels_of

KERNEL = """
import triton
import triton.language as tl
EPS: tl.constexpr = tl.constexpr(1e-5)
@triton.jit
def k(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    {line}
    tl.store(x_ptr + i, x)
"""
ACCEPTED = (
    'print("x", x)', 'print("x")', 'print("x", x, hex=True)', 'print(f"{BLOCK}", x)', 'print(f"{BLOCK:3d} {EPS}")',
    'print(f"{tl.cdiv(BLOCK, 3)}")', 'tl.device_print("x", x.to(tl.int32))', 'tl.static_print(x)',
    'tl.static_print(f"{BLOCK * 2}")', 'tl.static_assert(BLOCK > 1, f"{BLOCK}")', 'assert n > 0, "n"',
    'assert BLOCK > 0, f"{BLOCK}"', 'tl.device_assert(x > 0, "x")', 'H: tl.constexpr = BLOCK // 2; print(f"{H}")',
    'for j in tl.static_range(2): print(f"{j}")',
)  # fmt: skip
REFUSED = (
    'print(f"{x}")', 'print(f"{n}")', 'print(f"{x.shape}")', 'print(f"{x.dtype}")', 'print(f"{tl.program_id(0)}")',
    'print(x)', 'print(n)', 'print(BLOCK)', 'print(1)', 'print()', 'tl.device_print(x)', 'tl.device_print(f"{n}", x)',
    'tl.static_print(f"{x}")', 'tl.device_assert(n > 0, f"{n}")', 'assert n > 0, f"{n}"',
    'H = BLOCK // 2; print(f"{H}")', 'for j in range(2): print(f"{j}")',
)  # fmt: skip
COMPILE = """
import json, linecache, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
said = []
for number, source in enumerate(json.load(sys.stdin)):
    name = f"<{number}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    exec(compile(source, name, "exec"), space := {"__name__": name})
    types = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    try:
        triton.compile(ASTSource(space["k"], types, {(2,): 16}), target=GPUTarget("cuda", 90, 32))
        said.append(True)
    except Exception:
        said.append(False)
print(json.dumps(said), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def compiler():
    """What the compiler says about each line, asked in a process without the interpreter."""
    lines = ACCEPTED + REFUSED
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        input=json.dumps([KERNEL.format(line=line) for line in lines]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(lines, json.loads(done.stderr.splitlines()[-1])))


@pytest.mark.parametrize("line", ACCEPTED + REFUSED)
def test_a_print_is_accepted_as_the_compiler_accepts_it(line, compiler):
    assert compiler[line] == (line in ACCEPTED)
    source = KERNEL.format(line=line)
    if line in ACCEPTED:
        assert kernels_of(source).kernels
    else:
        with pytest.raises(NotAllowed, match="f-string|begin with a text"):
            kernels_of(source)


def test_the_verdict_shows_the_line_and_what_to_write(judge):
    source = KERNEL.format(line='print(f"{x}")') + "\n\ndef add(x, y):\n    k[(1,)](x, 1, 16)\n    return x\n"
    verdict = judge.judge("vector_add", source)
    assert verdict.diagnosis == "compile-error", verdict.to_text()
    assert "f-string" in verdict.message and 'tl.device_print("x", x)' in verdict.to_text()
