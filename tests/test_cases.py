"""The cases of the exercises: drawn anew in every judgement, and larger than an answer can know in advance."""

import functools
import json
import math
import runpy
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder.box.inside.replay import decoys
from autograder.box.wire import Decoy, ProtocolError, parse
from autograder.exercises import EXERCISES, design
from autograder.exercises.design import Inputs, Level, TensorArgument, pairwise, spread
from autograder.exercises.softmax import FAR
from autograder.exercises.spec import Bound, Cotangent, Large, Strided, Tag
from autograder.judge.trials import LargeDrawn, Trials, _output_shape, _picked, facts, without_values
from autograder.tensors import dtype_name
from workshop.occupancy import COMPUTE_UNITS, occupancy

RIGHT = Path(__file__).parent / "right"
NUMBERS = ("bytes_moved", "occupancy_launch", "occupancy")
KERNELS = [e.name for e in EXERCISES.values() if e.kind == "kernel" and e.inputs]


def drawn(name: str, seed: int, on_gpu: bool = False) -> list:
    generator = torch.Generator().manual_seed(seed)
    return [(case, case.make(generator)) for case in EXERCISES[name].cases_of(generator, on_gpu)]


drawn_once = functools.cache(drawn)  # of NUMBERS, which are small


@pytest.fixture(scope="module", params=KERNELS)
def three_draws(request) -> tuple[str, list]:
    """An exercise, and its cases by three seeds. pytest runs all tests of one exercise before it draws the next one."""
    return request.param, [drawn(request.param, seed) for seed in range(3)]


def names(name: str, seed: int, on_gpu: bool = False) -> list[str]:
    return [case.name for case in EXERCISES[name].cases_of(torch.Generator().manual_seed(seed), on_gpu)]


# -- the design ------------------------------------------------------------------------------------------------------

AXES = {
    "a": (Level("a1"), Level("a2"), Level("a3"), Level("alone", once=True)),
    "b": (Level("b1"), Level("b2"), Level("b3", only_with={"c": ("c2",)})),
    "c": (Level("c1"), Level("c2"), Level("rare", once=True, only_with={"a": ("a1",), "b": ("b2",)})),
    "d": (Level("d1"), Level("d2"), Level("d3")),
}


@pytest.mark.parametrize("seed", range(20))
def test_any_two_levels_meet_that_may_meet(seed):
    found = pairwise(AXES, torch.Generator().manual_seed(seed))
    met = {frozenset({(a, x.name), (b, y.name)}) for made in found for a, x in made.items() for b, y in made.items()}
    for a, b in ("ab", "ac", "ad", "bc", "bd", "cd"):
        for x in AXES[a]:
            for y in AXES[b]:
                if not (x.once or y.once):
                    may = (x.name, y.name) != ("b3", "c1")
                    assert (frozenset({(a, x.name), (b, y.name)}) in met) == may
    assert [made["b"].name for made in found if made["c"].name == "rare"] == ["b2"]
    assert sum(made["a"].name == "alone" for made in found) == 1 and len(found) < 20


def test_a_level_that_may_meet_nothing_is_left_out():
    axes = {"a": (Level("a1"), Level("a2", only_with={"b": ()})), "b": (Level("b1"), Level("b2"))}
    found = pairwise(axes, torch.Generator().manual_seed(1))
    assert {made["a"].name for made in found} == {"a1"} and {made["b"].name for made in found} == {"b1", "b2"}


def test_a_row_stride_of_0_repeats_one_row():
    x = TensorArgument(("rows", "columns"), row_stride=True)
    inputs = Inputs((x,), (design.rows("rows"), design.columns("columns")))
    case = inputs.case(rows=4, columns=300, row_stride=0)
    (x,) = case.make(torch.Generator().manual_seed(1))
    assert x.stride == (0, 1) and bool((x.values == x.values[0]).all()) and case.name == "4 × 300, row stride 0"
    assert Tag.STRIDED in case.about and Tag.RAGGED in case.about


def test_matrices_with_any_strides_are_transposed_and_have_gaps_between_columns():
    x = TensorArgument(("rows", "columns"), row_stride=True, any_strides=True)
    inputs = Inputs((x, x), (design.rows("rows"), design.columns("columns")))
    case = inputs.case(rows=4, columns=300, row_stride=310, layouts={0: "transposed", 1: "every other column"})
    x, y = case.make(torch.Generator().manual_seed(1))
    assert x.values.shape == y.values.shape == (4, 300) and x.stride == (1, 14) and y.stride == (626, 2)
    assert case.name == "4 × 300, row stride 310, first transposed, second every other column"
    assert Tag.STRIDED in case.about


def test_a_row_stride_of_the_row_length_keeps_the_rows():
    inputs = Inputs(
        (TensorArgument(("rows", "columns"), row_stride=True),), (design.rows("rows"), design.columns("columns"))
    )
    (x,) = inputs.case(rows=4, columns=300, row_stride=300).make(torch.Generator().manual_seed(1))
    assert x.stride == (300, 1) and not bool((x.values == x.values[0]).all())


def test_names_say_what_the_case_is():
    case = EXERCISES["naive_softmax"].inputs.case(torch.float16, 317, "masked", rows=37, columns=300)
    assert case.name == "float16, 37 × 300, row stride 317, masked"


def test_every_axis_of_the_contract_is_crossed(three_draws):
    name, draws = three_draws
    about = EXERCISES[name]
    for cases in draws:
        tensors = [a for _, arguments in cases for a in arguments[:1] if isinstance(a, Strided)]
        if tensors:
            assert {x.values.dtype for x in tensors} == set(about.bounds)
            kinds = {level.name for each in about.inputs.dimensions for level in each.sizes}
            assert any(Tag.EMPTY in case.about for case, _ in cases) == ("none" in kinds)
            assert any(1 in a.values.shape for _, made in cases for a in made if isinstance(a, Strided))
        if "row_stride" in about.inputs.axes():
            crossed = {(x.values.dtype, x.stride[0] == 0) for x in tensors}
            assert crossed == {(dtype, same) for dtype in about.bounds for same in (True, False)}
        if about.inputs.any_rank:
            assert {x.values.ndim for x in tensors} == {1, 2, 3, 4}
            values = torch.cat([x.values.float().flatten() for x in tensors])
            assert values.isnan().any() and values.isposinf().any() and values.isneginf().any()
        assert len({case.name for case, _ in cases}) == len(cases) < 48 * max(1, len(about.inputs.outputs))


def test_the_quiz_is_not_asked_about_masked_blocks():
    for seed in range(10):
        assert not any("masked" in name or "-inf" in name for name in names("online_softmax", seed))
        assert any("masked" in name for name in names("online_softmax_masked", seed))


def test_a_card_has_larger_cases_and_no_huge_exponents():
    assert any("as low and as high" in name for name in names("naive_softmax", 1))
    on_gpu = names("naive_softmax", 1, on_gpu=True)
    assert not any("as low and as high" in name for name in on_gpu)
    assert max(arguments[0].values.shape[0] for _, arguments in drawn("naive_softmax", 1, on_gpu=True)) > 1000


@pytest.mark.parametrize("name", [name for name in KERNELS if EXERCISES[name].inputs.large])
def test_large_cases_cross_the_ends_of_narrow_numbers(name):
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        sizes = []
        for case in EXERCISES[name].inputs.large_cases(generator):
            made = case.make(generator)
            shapes = [x.shape for x in made if isinstance(x, Large)]
            sizes += map(math.prod, [*shapes, _output_shape(EXERCISES[name], made, case) or ()])
            assert max(sizes) <= 1.61e8, case.name
        assert max(sizes) > (2**24 if name != "first_kernel" else 10**4)


@pytest.mark.parametrize("name", [n for n in KERNELS if (of := EXERCISES[n].inputs).large and of.tensors])
def test_rows_of_a_large_output_follow_from_a_part_of_the_inputs(name):
    exercise, generator = EXERCISES[name], torch.Generator().manual_seed(1)
    names = [each.name for each in exercise.inputs.dimensions]
    sizes = {exercise.inputs.large: 37} | dict(zip(names, (37, 50) if len(names) == 2 else (1850,)))
    inputs = replace(exercise.inputs, gradients={})
    case = inputs._large(sizes, generator)
    made = case.make(generator)
    drawn = LargeDrawn(
        case, made, _output_shape(exercise, made, case), torch.float32, seed=1, by_element=inputs.any_rank
    )
    some, every = torch.tensor([2, 30]), torch.arange(drawn.shape[0])
    part, whole = ([x.values if isinstance(x, Strided) else x for x in drawn.rows(rows)] for rows in (some, every))
    picked = [_picked(exercise.reference(*each), case.pick) for each in (part, whole)]
    assert torch.equal(picked[0], picked[1][some])


@pytest.mark.parametrize("name", [name for name in KERNELS if not EXERCISES[name].inputs.large])
def test_each_dimension_is_large_once(name):
    inputs = EXERCISES[name].inputs
    for seed in range(20):
        cases = inputs.large_cases(torch.Generator().manual_seed(seed))
        shapes = [x.shape for case in cases for x in case.make(None) if isinstance(x, Large)]
        assert max(map(math.prod, shapes)) <= design.MOST_ELEMENTS
        large = [each for each in inputs.dimensions if each.large]
        made = [[max(x.shape) for x in case.make(None) if isinstance(x, Large) and x.shape] for case in cases]
        low = min(low for each in large for low, _ in each.large) / 2  # it is halved where other dimensions need room
        in_pages = any(each.name == "page" for each in inputs.dimensions)  # tokens are no dimension of a tensor there
        assert sum(max(sizes) >= low for sizes in made) >= len(large) - in_pages, name


@pytest.mark.parametrize("name", ["vector_add", "matmul", "decode_attention", "outer_add", "paged_decode_attention"])
def test_a_case_gives_one_tensor_twice(name):
    for seed in range(5):
        twice = [arguments for case, arguments in drawn(name, seed) if "one tensor twice" in case.name]
        assert any(one is other for arguments in twice for one, other in combinations(arguments, 2))


def test_some_tensor_begins_at_no_multiple_of_16_bytes(three_draws):
    name, draws = three_draws
    for _, arguments in draws[1]:
        tensors = [a for a in arguments if isinstance(a, Strided)]
        given = [Decoy(tuple(a.values.shape), a.stride, dtype_name(a.values.dtype), shift=a.shift) for a in tensors]
        behind = [tensor.data_ptr() % 16 for tensor in decoys(tuple(given), "cpu") if tensor.numel()]
        if any(behind):
            return
    assert not EXERCISES[name].inputs.tensors, "all tensors are aligned"


def test_masks_are_tried_where_all_sizes_are_multiples_of_16():
    for seed in range(20):
        shapes = [[x.values.shape for x in arguments] for _, arguments in drawn("matmul", seed)]
        assert any(n % 16 == 0 and n & (n - 1) for (n, _), _ in shapes)
        assert any(m % 16 == k % 16 == 0 and m & (m - 1) and k & (k - 1) for (m, k), _ in shapes)


# -- what is drawn ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NUMBERS)
def test_right_formulas_agree_on_all_that_is_drawn(name):
    exercise = EXERCISES[name]
    for path in sorted((RIGHT / name).glob("*.py")):
        function = runpy.run_path(str(path))[exercise.entry]
        for seed in range(5):
            for case, arguments in drawn_once(name, seed):
                assert function(*arguments) == exercise.reference(*arguments), (path.name, case.name)


@pytest.mark.parametrize("arch", COMPUTE_UNITS)
@pytest.mark.parametrize("more", [-1, 1])
def test_one_byte_of_lds_decides_a_case(arch, more):
    """A mutant with 64 * 1023 bytes for gfx942 passed where no drawn kernel filled its LDS."""
    other = replace(COMPUTE_UNITS[arch], lds=COMPUTE_UNITS[arch].lds + more)
    for seed in range(20):
        kernels = [kernel for _, kernel in drawn_once("occupancy", seed) if kernel[3] == arch]
        assert any(occupancy(*kernel) != occupancy(*kernel[:3], other) for kernel in kernels)


def other_cases_are_drawn(name: str, *draws: list) -> None:
    """draws: of the seeds 1 and 2."""
    first, second = ([case.name for case, _ in draw] for draw in draws)
    assert first == names(name, 1)
    assert len(set(second) - set(first)) >= (len(set(first)) / 3 if name != "first_kernel" else 1)


@pytest.mark.parametrize("name", NUMBERS)
def test_other_numbers_are_drawn_in_every_judgement(name):
    other_cases_are_drawn(name, drawn_once(name, 1), drawn_once(name, 2))


def test_other_cases_are_drawn_in_every_judgement(three_draws):
    name, draws = three_draws
    other_cases_are_drawn(name, *draws[1:])


def test_every_drawn_case_is_finite_in_its_reference(three_draws):
    """A case may hold -inf, or inf and NaN where its name says so, but no other number that is not finite."""
    name, draws = three_draws
    for cases in draws:
        for case, arguments in cases:
            given = [a.values if isinstance(a, Strided) else a for a in arguments if not isinstance(a, Cotangent)]
            expected = EXERCISES[name].reference(*given)
            expected = expected if case.pick is None else expected[case.pick]
            if "inf, NaN" in case.name or "no row counts" in case.name or Tag.EMPTY in case.about:  # the mean is NaN
                continue
            tensors = [x for x in given if isinstance(x, torch.Tensor)]
            named = (torch.inf, -torch.inf) if "inf and -inf" in case.name or "infinite" in case.name else (-torch.inf,)
            if name == "paged_decode_attention":  # the rest of a page holds NaN
                tensors = [x for x in tensors if x.ndim != 4]
            assert all(set(x[~torch.isfinite(x)].unique().tolist()) <= {*named} for x in tensors)
            finite = bool(torch.isfinite(expected).all())
            assert finite or "-inf" in case.name or "infinite" in case.name or "no row counts" in case.name, case.name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_highest_number_of_a_row_of_far_ones_is_there_once(dtype):
    """An answer that subtracts the logarithm of the sum is right, and cannot add log(2) to a number so large."""
    for seed in range(5):
        x = FAR.fill((4, 3001), dtype, torch.Generator().manual_seed(seed))[1:].to(dtype)
        assert (x == x.amax(1, keepdim=True)).sum(1).tolist() == [1, 1, 1]


LAUNCH = {"kernel": "k", "program": "x", "grid": [3, 1, 1], "given": [], "args": {}, "options": {}}


def parsed(**changed):
    (report,) = parse(json.dumps({"case": 0, "trace": {"steps": [LAUNCH | changed], "result": 0}}).encode())
    return report.trace


@pytest.mark.parametrize("grid", [None, [], ["a"], [-1], {"x": 1}])
def test_a_grid_from_the_box_is_not_trusted(grid):
    assert facts(parsed())["programs"] == (3,)
    with pytest.raises(ProtocolError):
        parsed(grid=grid)


@pytest.mark.parametrize("args", [{"BLOCK": "x"}, {"BLOCK": [1]}, {"BLOCK": 1 << 40}])
def test_arguments_from_the_box_are_not_trusted(args):
    found = facts(parsed(args=args))
    assert found["block"] == 0 and set(found["constants"]) <= {1 << 40}


@pytest.mark.parametrize("changed", [{"args": None}, {"args": []}, {"program": 7}, {"hip": None}])
def test_a_launch_of_another_form_is_refused(changed):
    with pytest.raises(ProtocolError):
        parsed(**changed)


def test_spread_reaches_both_ends():
    x = spread(torch.Generator().manual_seed(0), -100, 126, 5000).abs()
    assert bool(torch.isfinite(x).all()) and float(x.min()) < 2.0**-95 and float(x.max()) > 2.0**120


def test_the_bound_of_exponents_has_a_limit():
    bound = Bound(1e-4, row_sum=1e-6)
    assert bound.of_exponents(3e38).relative < 0.05


@pytest.mark.parametrize("name", [e.name for e in EXERCISES.values() if e.kind == "kernel"])
def test_a_case_that_a_card_runs_again_keeps_the_sizes_and_numbers_of_its_plan(name):
    trials = Trials(SimpleNamespace(backend="cuda"), EXERCISES[name], "", seed=5)
    for number, each in enumerate(trials.cases):
        again = trials.drawn(each.case, 995 + number)
        assert without_values(again.arguments) == without_values(each.arguments)
        assert again.expected.shape == each.expected.shape


WALKED = ("naive_softmax", "online_softmax", "online_softmax_masked", "wide_softmax", "row_max_and_sum")


@pytest.mark.parametrize("name", WALKED)
def test_what_is_tried_once_shows_in_every_judgement(name):
    """Each kind of row has several blocks. Where its rows differ, each counts; where it must be, it is in float32."""
    precise = {"as low as the dtype", "huge values", "largest first", "ascending rows"}
    own_rows = precise | {"one large element each", "low values", "masked", "one row all -inf", "long low rows"}
    kinds = {each.name for each in EXERCISES[name].inputs.values if each.once and () not in each.only_with.values()}
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        cases = EXERCISES[name].cases_of(generator)
        for kind in kinds:
            case = [each for each in cases if f", {kind}" in each.name][-1]
            (x,) = case.make(generator)
            assert x.values.shape[1] > 1024, case.name
            assert kind not in own_rows or x.stride[0] != 0, case.name
            assert kind not in precise or x.values.dtype == torch.float32, case.name


def test_a_long_cache_of_one_head_and_a_long_gradient_are_always_there():
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        caches, losses = (EXERCISES[name].cases_of(generator) for name in ("split_decode_attention", "cross_entropy"))
        assert any("heads = 1, d = 32, tokens = 4096" in case.name for case in caches)
        assert any("70,001, the gradient" in case.name for case in losses)


def test_one_element_is_a_case_of_its_own():
    """`if x.numel() == 1: return torch.empty_like(x)` passed where no case had one row of one column."""
    for name in ("vector_add_autotuned", "bug_hunt", "row_bias", "transpose", "naive_softmax"):
        for seed in range(5):
            generator = torch.Generator().manual_seed(seed)
            drawn = [each.make(generator) for each in EXERCISES[name].cases_of(generator)]
            assert any(arguments[0].values.numel() == 1 for arguments in drawn), name


def test_rows_that_are_many_are_not_all_alike():
    """A program that takes several rows, and keeps something of the one before, must meet another row."""
    for seed in range(20):
        drawn = EXERCISES["fused_softmax"].cases_of(torch.Generator().manual_seed(seed))
        assert any(Tag.MANY in case.about and "row stride 0" not in case.name for case in drawn), seed


def test_drawing_cases_imports_nothing_slow(forks):
    """torch imports sympy for broadcast_shapes, and for a gradient of an output that is no scalar: 0.3 s of a check."""
    code = (
        "import sys, types, workshop\n"
        "from autograder.exercises import EXERCISES\n"
        "from autograder.judge import trials\n"
        "judge = types.SimpleNamespace(backend='interpreter')\n"
        "for name in ('vector_add', 'cross_entropy'):\n"
        "    assert trials.Trials(judge, EXERCISES[name], '', 1).cases and trials.large_calls(EXERCISES[name], 1)\n"
        "print('sympy' in sys.modules)\n"
    )
    answer = forks.run(code)
    assert answer.stdout == "False\n", answer.stderr
