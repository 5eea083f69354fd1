"""Mutants of the solutions and variants of them: what is made, what is fair, and what the judge says of some."""

import ast
from pathlib import Path

import pytest

from autograder import mutants
from autograder.cli import main
from autograder.exercises import EXERCISES, find
from autograder.mutants.fair import FAIR
from autograder.mutants.judged import Judged, read_equivalents
from autograder.mutants.right import Variant, variants
from autograder.mutants.roles import Role, Roles
from autograder.mutants.solutions import solution
from autograder.mutants.trees import changed, expression, places, statements
from autograder.mutants.wrong import Mutant, every_mutant
from autograder.mutants.wrong import mutants as mutants_of
from autograder.verdict import Finding, Slug, Verdict

KERNEL = """
@triton.jit
def add_kernel(x_ptr, output_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=7.0)
    tl.store(output_ptr + offsets, 2 * x, mask=mask)

def add(x):
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, output, x.numel(), BLOCK=256)
    return output
"""


def role_of(text: str) -> Role:
    """The role of the first place of KERNEL with this text."""
    tree = ast.parse(KERNEL)
    roles = Roles(tree, "kernel")
    return next(roles.of(place) for place in places(tree) if ast.unparse(place.node) == text)


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("tl.arange(0, BLOCK)", Role.ADDRESS),
        ("offsets < n", Role.MASK),
        ("7.0", Role.OTHER),
        ("2 * x", Role.VALUE),
        ("triton.cdiv(x.numel(), 256)", Role.GRID),
        ("x.dtype", Role.OUTPUT),
        ("output", Role.HOST),
    ],
)
def test_roles_follow_from_use(text, role):
    assert role_of(text) == role


def test_a_change_leaves_the_tree_as_it_was():
    tree = ast.parse("a = 1\nb = a + 2")
    place = next(p for p in places(tree) if ast.unparse(p.node) == "a + 2")
    assert ast.unparse(changed(tree, place.path, expression("3"))) == "a = 1\nb = 3"
    assert ast.unparse(changed(tree, (("body", 0),), statements("x = 0\ny = 0"))) == "x = 0\ny = 0\nb = a + 2"
    assert ast.unparse(tree) == "a = 1\nb = a + 2"


def test_every_kind_of_mutation_has_fair_names_that_exist():
    for kind, slugs in FAIR.items():
        assert slugs, kind
        assert slugs <= set(Slug), kind


def test_fair_names_are_few():
    """A set that holds nearly every name would find every name fair."""
    assert max(map(len, FAIR.values())) <= 12


@pytest.mark.parametrize("exercise", ["vector_add", "occupancy"])
def test_a_seed_gives_the_same_mutants_and_variants(exercise):
    assert mutants_of(exercise, 9, seed=3) == mutants_of(exercise, 9, seed=3)
    assert mutants_of(exercise, 9, seed=3) != mutants_of(exercise, 9, seed=4)
    assert variants(exercise, 4, seed=3) == variants(exercise, 4, seed=3)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_each_mutant_differs_from_the_solution_and_from_the_others(exercise):
    found = every_mutant(exercise)
    sources = {mutant.source for mutant in found}
    assert len(found) >= 30
    assert len(sources) == len(found) == len({mutant.change for mutant in found})
    assert solution(exercise) not in sources
    assert all(mutant.kind in FAIR and mutant.change for mutant in found)


def test_there_are_enough_of_them():
    assert sum(len(mutants_of(exercise, 10_000, seed=0)) for exercise in EXERCISES) >= 3000


@pytest.mark.parametrize("exercise", EXERCISES)
def test_variants_are_python_and_define_the_exercise(exercise):
    found = variants(exercise, 5, seed=1)
    assert len(found) == 5
    for variant in found:
        assert find(exercise).entry in {getattr(node, "name", "") for node in ast.parse(variant.source).body}


def verdict(slug: str | None) -> Verdict:
    return Verdict("vector_add", slug is None, 0, 5, "interpreter", Finding(slug, "…") if slug else None)


def judged(kind: str, slug: str | None, reason: str = "") -> Judged:
    return Judged(Mutant("vector_add", "", kind, "- a\n+ b"), reason, verdict(slug))


def test_what_counts_as_a_fault():
    assert judged("load without mask", "out-of-bounds-load").fault == ""
    assert judged("load without mask", "race").fault == "unfair name"
    assert judged("load without mask", None).fault == "ACCEPTED"
    assert judged("load without mask", None, "the same").fault == ""
    assert judged("load without mask", "race", "the same").fault == "LISTED AS EQUIVALENT"
    right = Variant("vector_add", "", "other_names")
    assert Judged(right, verdict=verdict(None)).fault == ""
    assert Judged(right, verdict=verdict("race")).fault == "REFUSED"


def test_one_unfair_name_in_twenty_is_the_limit():
    fair, unfair = judged("load without mask", "out-of-bounds-load"), judged("load without mask", "race")
    assert mutants.faultless([fair] * 19 + [unfair])
    assert not mutants.faultless([fair] * 18 + [unfair] * 2)
    assert not mutants.faultless([fair] * 99 + [judged("load without mask", None)])
    assert "19 (95.0%)" in mutants.table([fair] * 19 + [unfair])


def test_the_list_of_equivalents_gives_a_reason_for_each(tmp_path):
    path = tmp_path / "EQUIVALENT_MUTANTS.toml"
    assert read_equivalents(path) == {}
    path.write_text("[[equivalent]]\nreason = 'same'\nexercises = ['occupancy']\nchanges = ['''\n- a\n+ b\n''']\n")
    assert read_equivalents(path) == {("occupancy", "- a\n+ b"): "same"}
    path.write_text("[[equivalent]]\nexercises = ['occupancy']\n")
    with pytest.raises(ValueError, match="reason"):
        read_equivalents(path)


def test_the_kept_list_names_mutants_that_exist():
    for exercise, change in read_equivalents(Path(__file__).parent / "EQUIVALENT_MUTANTS.toml"):
        assert change in {mutant.change for mutant in every_mutant(exercise)}, (exercise, change)


def test_wrong_calls_end_with_one_line(capsys):
    assert main(["selftest", "--mutants", "0"]) == 2
    assert main(["selftest", "--mutants", "5", "--exercise", "nothing"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_gradient_of_zeros_may_be_called_not_attempted():
    (zeros,) = (m for m in every_mutant("leaky_dropout_grad") if "+ dx = 0.0" in m.change)
    assert "not-attempted" in zeros.fair
