"""xray compiles what a learner wrote, for GPUs that are not here, and says what came out."""

import probes_xray as kernels
import pytest
import torch
import triton.language as tl

from workshop import compiling, xray
from workshop.compiling import CompileFailed
from workshop.executor import without_native

X = torch.rand(8, 4096)


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
    assert failure.value.line == kernel.fn.__code__.co_firstlineno + line
    assert "for gfx942" in str(failure.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: xray(kernels.row_sum, X, X), TypeError, "row_sum takes x_ptr, out_ptr, n, BLOCK_SIZE"),
        (lambda: xray(kernels.row_sum, X, X, 9, BLOCK_SIZE=16, num_warp=8), CompileFailed, "num_warp"),
        (lambda: xray(kernels.row_sum, X, X, 9, BLOCK_SIZE=16, targets="mi300"), CompileFailed, "'mi300'"),
        (lambda: xray(len, X), TypeError, "not a Triton kernel"),
        (lambda: xray(test_amd_numbers), TypeError, "@triton.jit"),
        (lambda: xray(kernels.row_sum, X, {1}, 9, BLOCK_SIZE=16), TypeError, "out_ptr: a kernel takes tensors"),
    ],
)
def test_wrong_calls_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_where_triton_has_no_library_it_says_so(monkeypatch):
    monkeypatch.setattr(without_native, "native", lambda: False)
    with pytest.raises(CompileFailed, match="compiler is not here"):
        xray(kernels.row_sum, X, X, 9, BLOCK_SIZE=16)


def test_a_refusal_is_a_few_lines_in_a_notebook():
    with pytest.raises(CompileFailed) as failure:
        xray(kernels.misspelt, X, X, 4096, BLOCK_SIZE=256)
    text = "\n".join(failure.value._render_traceback_())
    assert "softmaks" in text and "Try:" in text and text.count("\n") < 7


def test_what_warmup_gives_knows_what_a_card_would_tell():
    compiled = kernels.held_rows.warmup(torch.float32, torch.float32, 4096, BLOCK_SIZE=4096, num_warps=8, grid=(1,))
    compiled._init_handles()
    facts = xray(kernels.held_rows, X, X, 4096, BLOCK_SIZE=4096, num_warps=8)["gfx942"]
    assert (compiled.n_regs, compiled.n_spills) == (facts.vgprs, facts.spills)
    assert compiled.metadata.shared == facts.shared and compiled.metadata.num_warps == 8
    assert compiled.asm["ttgir"] == facts.ttgir and compiling.parse_target("gfx942") == compiled.metadata.target
    output = torch.empty_like(X)
    compiled[(8, 1, 1)](X, output, 4096, 4096)
    assert torch.allclose(output, torch.softmax(X, dim=1))


@pytest.mark.parametrize(
    ("given", "was"),
    [
        ((X.view(-1)[1:], X, 4096, 4096), "began at a multiple of 16 bytes"),
        ((X, X, 4095, 4096), "was divisible by 16"),
        ((X, X, 1, 4096), "was divisible by 16"),
        ((X.half(), X, 4096, 4096), r"had the type \*fp32"),
        ((X, X, 4096, 2048), "BLOCK_SIZE was 4096"),
    ],
)
def test_a_program_is_launched_only_as_it_was_compiled(given, was):
    compiled = kernels.held_rows.warmup(torch.float32, torch.float32, 4096, BLOCK_SIZE=4096, grid=(1,))
    with pytest.raises(ValueError, match=was):
        compiled[(8, 1, 1)](*given)
