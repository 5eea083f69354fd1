"""JAX without a GPU: the stand-in for jax-triton, and verdicts."""

import importlib
import math
import os
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl

from workshop import jax_import
from workshop.backend import interpreting

jax = pytest.importorskip("jax", reason="JAX is not installed: pip install jax")
if not interpreting():
    pytest.skip("the stand-in for jax-triton is for machines without a GPU", allow_module_level=True)

import jax.numpy as jnp  # noqa: E402
import jax_triton as jt  # noqa: E402

from autograder.exercises import EXERCISES, dropout  # noqa: E402
from autograder.judge import jax as judge_jax  # noqa: E402

RIGHT = Path(__file__).parent / "right"


@triton.jit
def scale_kernel(x_ptr, factor_ptr, n, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(y_ptr + offsets, x * tl.load(factor_ptr), mask=mask)


@triton.jit
def rand_kernel(seed_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offsets, tl.rand(tl.load(seed_ptr), offsets))


def scale(x, factor, programs=None, kernel=scale_kernel, **options):
    options = {"BLOCK_SIZE": 256} | options
    return jt.triton_call(
        x,
        jnp.asarray(factor, jnp.float32),
        x.size,
        kernel=kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=programs or (lambda meta: (triton.cdiv(x.size, meta["BLOCK_SIZE"]),)),
        **options,
    )


# -- the stand-in ------------------------------------------------------------------------------------------


def test_without_jax_the_import_says_what_to_install(forks):
    code = (
        "import importlib.util, workshop\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'jax' else EXERCISES[name, *rest]\n"
        "import jax_triton"
    )
    done = forks.run(code)
    assert "ModuleNotFoundError: JAX is not installed here: pip install jax" in done.stderr


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_kernel_computes_plainly_and_under_jit(dtype):
    x = jnp.arange(1.0, 8.0, dtype=dtype)
    for function in (scale, jax.jit(scale)):
        y = function(x, 2)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y, np.float32), 2 * np.arange(1.0, 8.0))


def test_vmap_calls_the_kernel_once_for_each_element():
    y = jax.vmap(scale, in_axes=(None, 0))(jnp.ones(5), jnp.arange(3))
    np.testing.assert_array_equal(y, np.outer([0, 1, 2], np.ones(5)))


def test_what_a_kernel_does_not_write_is_nan():
    y = scale(jnp.ones(300), 1, programs=(1,))
    assert not np.isnan(y[:256]).any() and np.isnan(y[256:]).all()


def test_zeroed_and_aliased_outputs_begin_as_asked():
    zeroed = scale(jnp.ones(300), 1, programs=(1,), zeroed_outputs=(0,))
    assert (np.asarray(zeroed[256:]) == 0).all()
    aliased = scale(jnp.full(300, 7.0), 1, programs=(1,), input_output_aliases={0: 0})
    assert (np.asarray(aliased[256:]) == 7).all()


def test_out_type_is_the_newer_name_of_out_shape():
    x = jnp.ones(3)
    (y,) = jt.triton_call(x, jnp.float32(3), 3, kernel=scale_kernel, out_type=[x], grid=1, BLOCK_SIZE=4)
    np.testing.assert_array_equal(y, 3 * np.ones(3))
    with pytest.raises(TypeError, match="out_shape"):
        jt.triton_call(x, jnp.float32(3), 3, kernel=scale_kernel, grid=1, BLOCK_SIZE=4)


def test_a_traced_constexpr_is_refused_with_what_to_do():
    def broken(x, size):
        return scale(x, 1, BLOCK_SIZE=size)

    with pytest.raises(TypeError, match="BLOCK_SIZE is a traced array.*load it in the kernel"):
        jax.jit(broken)(jnp.ones(3), 4)


@pytest.mark.parametrize("decorate", ["autotune", "heuristics", "compiled"])
def test_decorated_kernels_run(decorate):
    kernel = {
        "autotune": lambda: triton.autotune([triton.Config({"BLOCK_SIZE": 64})], key=[])(scale_kernel),
        "heuristics": lambda: triton.heuristics({"BLOCK_SIZE": lambda arguments: 64})(scale_kernel),
        "compiled": lambda: triton.runtime.jit.JITFunction(scale_kernel.fn),
    }[decorate]()
    options = {"BLOCK_SIZE": 64} if decorate == "compiled" else {}
    y = jt.triton_call(
        jnp.ones(100), jnp.float32(2), 100, kernel=kernel, out_shape=jnp.ones(100), grid=(2,), **options
    )
    np.testing.assert_array_equal(y, 2 * np.ones(100))


def test_a_kernel_has_no_gradient_of_its_own():
    with pytest.raises(ValueError, match="JVP"):
        jax.grad(lambda x: scale(x, 2).sum())(jnp.ones(3))


def test_helpers_agree_with_jax_triton():
    assert [jt.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [jt.next_power_of_2(n) for n in (0, 1, 3, 1024)] == [1, 1, 4, 1024]
    assert jt.strides_from_shape((2, 3, 4)) == (12, 4, 1)


def test_tl_rand_is_the_lessons_numpy_function():
    """The lesson checks a mask bit by bit with it."""
    script = (Path(__file__).parents[1] / "solutions" / "05_jax_dropout.py").read_text()
    definition = script[script.index("def philox_rand") : script.index("print(philox_rand")]
    namespace = {"np": np}
    exec(definition, namespace)
    for seed in (0, 42, 2**31 - 1):
        drawn = jt.triton_call(
            jnp.int32(seed), kernel=rand_kernel, grid=2, BLOCK_SIZE=512, out_shape=jnp.zeros(1024)
        )
        np.testing.assert_array_equal(drawn, namespace["philox_rand"](seed, np.arange(1024)))


def test_tl_rand_is_0_for_the_seeds_that_the_judge_knows():
    """`random > p` drops an element there, at p = 0."""
    for seed in dropout.ZEROS:
        drawn = jt.triton_call(jnp.int32(seed), kernel=rand_kernel, grid=4, BLOCK_SIZE=512, out_shape=jnp.zeros(2048))
        assert (np.asarray(drawn) == 0).sum() == 1


# -- the real jax-triton's faults --------------------------------------------------------------------------


def test_the_cache_folder_survives_the_import_of_jax_triton(monkeypatch):
    class Loader:
        def exec_module(self, module):
            os.environ["TRITON_CACHE_DIR"] = ""  # as release 0.3.1 does

    for before in ("/somewhere", None):
        if before is None:
            monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
        else:
            monkeypatch.setenv("TRITON_CACHE_DIR", before)
        jax_import.repaired(Loader().exec_module, None)
        assert os.environ.get("TRITON_CACHE_DIR") == before


def test_amd_metadata_gets_its_number_of_thread_blocks(monkeypatch):
    amd = importlib.import_module("triton.backends.amd.compiler")
    seen = {}

    class Options:
        num_ctas = 1

    monkeypatch.setattr(
        amd.HIPBackend, "make_llir", staticmethod(lambda source, metadata, options: seen.update(metadata))
    )
    jax_import.give_amd_its_num_ctas()
    amd.HIPBackend.make_llir(None, {}, Options())
    assert seen == {"num_ctas": 1}


# -- verdicts ----------------------------------------------------------------------------------------------


def answer(exercise: str, *changes: tuple[str, str]) -> str:
    source = (RIGHT / exercise / "as_in_the_lesson.py").read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


def test_a_right_answer_passes_with_another_draw_than_that_of_the_promises(judge):
    verdict = judge.judge("leaky_dropout", answer("leaky_dropout"), seed=2)
    assert verdict.passed, verdict.to_text()
    assert len(verdict.cases) == len(EXERCISES["leaky_dropout"].cases)


def test_the_value_beside_a_gradient_is_judged(judge, few):
    swapped = ("return leaky_dropout(x, p, seed), (x, p, seed)", "return leaky_dropout(x, seed, p), (x, p, seed)")
    with few():
        verdict = judge.judge("leaky_dropout_grad", answer("leaky_dropout_grad", swapped))
    assert verdict.diagnosis == "seed-ignored" and "beside a gradient" in verdict.message


@pytest.mark.usefixtures("briefly")
def test_a_fixed_grid_is_found_at_large_sizes(judge, few):
    fixed = ("grid=(triton.cdiv(x.size, 1024),)", "grid=(min(triton.cdiv(x.size, 1024), 4096),)")
    with few():
        verdict = judge.judge("leaky_dropout", answer("leaky_dropout", fixed))
    assert verdict.diagnosis == "unwritten-output", verdict.to_text()


def test_a_load_past_the_end_is_told_by_line_and_lane(judge, few):
    source = answer("leaky_dropout", ("x_ptr + offsets, mask=mask)", "x_ptr + offsets)"))
    with few():
        verdict = judge.judge("leaky_dropout", source)
    assert verdict.diagnosis == "out-of-bounds-load"
    assert "x_ptr has shape (7, 781)" in verdict.message and "tl.load(x_ptr" in verdict.message


def test_a_kernel_whose_result_is_not_used_earns_nothing(judge):
    """Told apart by emptying the kernels, where what JAX traced does not show it."""
    source = answer("leaky_dropout") + (
        "\n\nimport numpy as np\n\n\ndef honest(x, p, seed):\n"
        "    u = np.random.default_rng(int(seed)).random(x.shape)\n"
        "    x = np.asarray(x)\n"
        "    y = np.where(x >= 0, x, np.float32(0.01) * x) / max(1 - p, 1e-9)\n"
        "    return np.where(u >= p, y, 0).astype(x.dtype)\n\n\n"
        "triton_call = leaky_dropout\n\n\n"
        "def leaky_dropout(x, p, seed):\n"
        "    if isinstance(x, jax.core.Tracer) and isinstance(seed, int):\n"
        "        return triton_call(x, p, seed)\n"
        "    out = jax.ShapeDtypeStruct(x.shape, x.dtype)\n"
        "    return jax.pure_callback(lambda x, s: honest(x, p, s), out, x, seed)\n"
    )
    assert judge.judge("leaky_dropout", source).diagnosis == "no-triton-kernel"


def test_the_references_are_out_of_reach(judge):
    source = answer("leaky_dropout") + (
        "\n\nimport importlib\n\nfor module in ('exercises.dropout', 'judge.jax', 'diagnosis'):\n"
        "    try:\n        importlib.import_module(f'autograder.{module}')\n"
        "    except ImportError:\n        continue\n"
        "    def leaky_dropout(x, p, seed):\n        raise AssertionError('the references can be read')\n"
    )
    exercise = EXERCISES["leaky_dropout"]
    [case] = [each for each in exercise.cases if each.name == "7 × 781, p = 0.5"]
    judge.seconds_left = math.inf
    judgement = judge_jax.JaxJudgement(judge, exercise, source, 1)
    judgement.trials.cases = [call for call in judgement.trials.cases if call.case is case]
    assert judgement.in_the_cases() is None, judgement.findings


def test_a_rule_attached_after_the_definition_belongs_to_it():
    from autograder.answer import from_history

    source = answer("leaky_dropout_grad")
    assert "leaky_dropout.defvjp(forward, backward)" in from_history([source], "leaky_dropout")


@pytest.mark.usefixtures("briefly")
def test_a_gradient_whose_first_exercise_is_not_solved_is_sent_there(judge, few):
    from autograder.answer import from_history
    from autograder.lessons import answers, scripts

    lesson = answers(next(script for script in scripts() if script.name.startswith("05")))
    imports = "import jax, jax.numpy as jnp, jax_triton as jt, triton, triton.language as tl"
    starter, second = EXERCISES["leaky_dropout"].starter, lesson["leaky_dropout_grad"]
    with few():
        said = [
            judge.judge("leaky_dropout_grad", from_history([imports, *cells], "leaky_dropout"))
            for cells in ((starter, second), (second,), (lesson["leaky_dropout"], second))
        ]
    assert [each.diagnosis for each in said] == ["not-attempted", "runtime-error", None]
    assert "solve leaky_dropout first" in said[0].message and "gradient" not in said[0].message
    assert "run the cell of leaky_dropout" in said[1].message and "spelling" not in said[1].message


def test_other_exercises_are_judged_after_one_with_jax(judge, few):
    source = (RIGHT / "vector_add" / "int64_offsets_one_big_block.py").read_text()
    with few():
        judge.judge("leaky_dropout", "def leaky_dropout(x, p, seed):\n    return x\n")
        assert judge.judge("vector_add", source).passed


def test_without_jax_the_judge_says_what_to_install(monkeypatch):
    monkeypatch.setattr(judge_jax.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(judge_jax.JaxMissing, match="pip install jax$"):
        judge_jax.require_jax()


def test_the_command_ends_with_2_where_jax_is_missing(monkeypatch, capsys):
    from autograder import cli

    monkeypatch.setattr(judge_jax.importlib.util, "find_spec", lambda name: None)
    path = RIGHT / "leaky_dropout" / "as_in_the_lesson.py"
    assert cli.main(["check", "leaky_dropout", str(path), "--trust-submissions"]) == 2
    assert "pip install jax" in capsys.readouterr().err
