"""xray compiles what a learner wrote, for GPUs that are not here, and says what came out."""

import os
import signal
import sys
import threading

import probes_xray as kernels
import pytest
import torch
import triton.language as tl

import workshop  # noqa: F401  before triton
from workshop import xray, xray_process
from workshop.xray import CompileFailed
from workshop.xray_process import CompilerProcess

X = torch.empty(8, 4096)


def test_amd_numbers():
    compiled = xray(kernels.scaled_copy, X, X, X.numel(), BLOCK_SIZE=1024)["gfx942"]
    assert compiled.num_warps == 4
    assert compiled.loads == {128: 1} and compiled.stores == {128: 1}
    assert compiled.shared == 0 and compiled.spills == 0
    assert 0 < compiled.vgprs <= 24 and compiled.agprs == 0 and compiled.sgprs > 0
    assert compiled.occupancy == 8
    assert "_load_dwordx4" in compiled.isa and "ttg." in compiled.ttgir


def test_nvidia_numbers():
    compiled = xray(kernels.row_sum, X, X, 4096, BLOCK_SIZE=4096, targets="sm_90")["sm_90"]
    assert compiled.vgprs is None and compiled.occupancy is None
    assert compiled.registers > 8 and compiled.spills == 0
    assert set(compiled.loads) == {128}
    assert compiled.shared > 0 and compiled.barriers > 0


def test_several_targets_in_one_table():
    report = xray(kernels.row_sum, X, X, 4096, BLOCK_SIZE=4096, targets=("gfx90a", "gfx950", "sm_80"))
    assert [one.target for one in report] == ["gfx90a", "gfx950", "sm_80"]
    for word in ("row_sum", "gfx950", "VGPRs", "registers", "waves per execution unit", "128 bit"):
        assert word in str(report) and word in report._repr_html_()
    with pytest.raises(ValueError, match="compiled for: gfx90a"):
        report.isa("gfx942")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_a_dtype_can_be_a_constant(dtype):
    one = xray(kernels.converted_copy, X, X, getattr(tl, dtype), BLOCK_SIZE=256)["gfx942"]
    assert one.stores


def test_spills_are_seen():
    one = xray(kernels.held_rows, X, X, 32768, BLOCK_SIZE=32768, waves_per_eu=4, targets="gfx942")["gfx942"]
    assert one.spills > 0


def test_types_stand_for_arguments():
    by_type = xray(kernels.scaled_copy, "*fp32", "*fp32", "i32", BLOCK_SIZE=1024)
    assert by_type["gfx942"].vgprs > 0


def test_alignment_and_dtype_come_from_the_example():
    aligned = xray(kernels.scaled_copy, X, X, 4096, BLOCK_SIZE=1024)["gfx942"]
    ragged = xray(kernels.scaled_copy, X, X, 4095, BLOCK_SIZE=1024)["gfx942"]
    half = xray(kernels.scaled_copy, X.half(), X.half(), 4096, BLOCK_SIZE=1024)["gfx942"]
    assert max(aligned.loads) == 128
    assert max(ragged.loads) < 128
    assert sum(width * count for width, count in half.loads.items()) == 64


def test_a_kernel_defined_in_a_cell_brings_its_helpers(tmp_path):
    import linecache

    source = (
        "import triton\nimport triton.language as tl\n"
        "OFFSET = tl.constexpr(3)\n\n"
        "@triton.jit\ndef helper(x):\n    return x + OFFSET\n\n"
        "@triton.autotune([triton.Config({'BLOCK_SIZE': 256})], key=['n'])\n"
        "@triton.jit\ndef cell_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):\n"
        "    offsets = tl.arange(0, BLOCK_SIZE)\n"
        "    tl.store(x_ptr + offsets, helper(tl.load(x_ptr + offsets)))\n"
    )
    name = "<ipython-input-1-cell>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), namespace)
    compiled = xray(namespace["cell_kernel"], X, 4096, BLOCK_SIZE=256)["gfx942"]
    assert "v_add_f32" in compiled.isa or "v_pk_add_f32" in compiled.isa


def test_diff_shows_what_changed():
    narrow = xray(kernels.held_rows, X, X, 4096, BLOCK_SIZE=4096, num_warps=4)
    wide = xray(kernels.held_rows, X, X, 4096, BLOCK_SIZE=4096, num_warps=8)
    difference = narrow.diff(wide)
    assert "warps: 4 -> 8" in difference
    assert "loads: 4 × 128 bit -> 2 × 128 bit" in difference
    assert "--- this" in difference
    assert not narrow.diff(narrow).strip()


def test_grep_keeps_the_lines_that_matter():
    text = (
        xray(kernels.scaled_copy, X, X, 4096, BLOCK_SIZE=1024)
        .isa()
        .grep("buffer_load", "global_load", "buffer_store", "global_store")
    )
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("kernel", "line", "words"),
    [(kernels.misspelt, 4, "softmaks"), (kernels.not_a_power_of_two, 2, "power of 2")],
)
def test_the_compilers_error_names_the_learners_line(kernel, line, words):
    with pytest.raises(CompileFailed, match=words) as failure:
        xray(kernel, X, X, 4096, BLOCK_SIZE=256)
    assert failure.value.line == line
    assert "for gfx942" in str(failure.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: xray(kernels.row_sum, X, X), TypeError, "row_sum takes x_ptr, out_ptr, n, BLOCK_SIZE"),
        (lambda: xray(kernels.row_sum, X, X, 9, BLOCK_SIZE=16, num_warp=8), CompileFailed, "num_warp"),
        (lambda: xray(kernels.row_sum, X, X, 9, BLOCK_SIZE=16, targets="mi300"), CompileFailed, "'mi300'"),
        (lambda: xray(len, X), TypeError, "not a Triton kernel"),
        (lambda: xray(test_amd_numbers), TypeError, "@triton.jit"),
        (lambda: xray(kernels.row_sum, X, [1], 9, BLOCK_SIZE=16), TypeError, "out_ptr: expected a tensor"),
    ],
)
def test_wrong_calls_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_second_call_is_remembered(monkeypatch):
    first = xray(kernels.scaled_copy, X, X, 64, BLOCK_SIZE=128)
    monkeypatch.setattr(sys.modules["workshop.xray"], "_compiler", None)
    assert str(xray(kernels.scaled_copy, X, X, 64, BLOCK_SIZE=128)) == str(first)


# -- the compiler's process --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiler():
    return CompilerProcess()


def request(body="tl.store(x_ptr, 1)", before=""):
    module = f"""
import os
import time
import triton
import triton.language as tl
{before}
@triton.jit
def one(x_ptr):
    {body}
"""
    types = {"x_ptr": {"type": "*i32"}}
    return {"module": module, "kernel": "one", "parameters": types, "options": {}, "targets": ["gfx942"]}


def process_of(compiler):
    assert compiler.ask(request())[0]["stores"] == {"32": 1}
    return compiler._process.pid


def test_one_process_compiles_for_all(compiler):
    assert process_of(compiler) == process_of(compiler)


@pytest.mark.parametrize(
    ("before", "words"),
    [("os.abort()", "exit status -6"), ("os._exit(3)", "exit status 3"), ("raise ValueError('no')", "ValueError: no")],
)
def test_a_crash_is_one_requests(compiler, before, words):
    pid = process_of(compiler)
    with pytest.raises(RuntimeError, match=f"the compiler's process ended: {words}"):
        compiler.ask(request(before=before))
    assert process_of(compiler) == pid


def test_what_a_kernels_module_prints_is_no_answer(compiler):
    assert "error" not in compiler.ask(request(before="print('{}', flush=True); os.write(1, b'[]')"))[0]


def test_a_compilation_has_a_limit(compiler, monkeypatch):
    process_of(compiler)
    monkeypatch.setattr(xray_process, "LIMIT", 0.5)
    with pytest.raises(RuntimeError, match="did not finish within 0.5 s"):
        compiler.ask(request(before="while True: pass"))
    monkeypatch.undo()
    assert process_of(compiler)


def test_an_interrupted_request_answers_no_other(compiler):
    timer = threading.Timer(1.0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiler.ask(request(before="time.sleep(20)"))
    assert "error" in compiler.ask(request(body="tl.stoer(x_ptr, 1)"))[0]


def test_a_process_that_ended_by_itself_is_started_again(compiler):
    pid = process_of(compiler)
    os.killpg(pid, signal.SIGKILL)
    assert process_of(compiler) != pid


def test_what_is_set_for_triton_is_set_there(compiler, monkeypatch, tmp_path):
    pid = process_of(compiler)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert process_of(compiler) == pid
    assert list(tmp_path.iterdir())


def test_a_fork_has_a_compiler_of_its_own(compiler):
    pid = process_of(compiler)
    if not (fork := os.fork()):
        os._exit(process_of(compiler) == pid)
    assert os.waitpid(fork, 0)[1] == 0
    assert process_of(compiler) == pid
