"""Which room may enter which: no import may lead up. ARCHITECTURE.md says what each room is for."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# From the ground floor up. A room enters itself and the rooms below it; the same line: not each other.
FLOORS = (
    {"workshop"},
    {"autograder.text"},
    {"autograder.answer", "autograder.tensors", "autograder.versions"}
    | {"autograder.session", "autograder.panel"},
    {"autograder.verdict", "autograder.box"},
    {"autograder.exercises"},
    {"autograder.diagnosis", "autograder.lessons", "autograder.gallery", "autograder.yours"},
    {"autograder.judge"},
    {"autograder.selftest", "autograder.classroom"},
    {"autograder.notebook"},
    {"autograder.watch"},
    {"autograder.cli", "autograder.__init__"},
)
# What is imported only where it is needed, because it is slow or not there.
ALONE = {
    "nbgrader": {"autograder.lessons", "autograder.classroom"},
    "nbformat": {"autograder.lessons", "autograder.classroom"},
    "jupytext": {"autograder.lessons"},
}


FILES = sorted([*(ROOT / "autograder").rglob("*.py"), *(ROOT / "workshop").rglob("*.py")])
MODULES = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in FILES}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[0] if parts[0] == "workshop" else ".".join(parts[:2])


def imports(file: Path):
    """Every module that a file imports, anywhere in it, by its whole name. What only types need is not imported."""
    package = ".".join(file.relative_to(ROOT).parent.parts)
    tree = ast.parse(file.read_text())
    for_types = (ast.If, "TYPE_CHECKING")
    tree.body = [n for n in tree.body if (type(n), ast.unparse(getattr(n, "test", n))) != for_types]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (whole if (whole := f"{base}.{name.name}") in MODULES else base for name in node.names)


def edges():
    for module, file in MODULES.items():
        for name in set(imports(file)):
            yield "autograder.__init__" if module == "autograder" else module, name


def test_no_room_enters_one_above_it():
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    for module, name in edges():
        if name.split(".")[0] not in ("autograder", "workshop"):
            continue
        here, there = room_of(module), room_of(name if name != "autograder" else "autograder.__init__")
        assert here in floor and there in floor, f"{module} imports {name}: a room that FLOORS does not name"
        assert here == there or floor[there] < floor[here], f"{module} may not import {name}"


def test_what_runs_beside_learners_code_is_out_of_sight_for_the_rest():
    """The judge's end of the box names what runs inside, and imports none of it; nor does anybody else."""
    for module, name in edges():
        if name.startswith("autograder.box.inside"):
            assert module.startswith("autograder.box.inside"), module


def test_slow_and_rare_packages_are_imported_in_their_rooms_only():
    for module, name in edges():
        rooms = ALONE.get(name.split(".")[0])
        assert rooms is None or room_of(module) in rooms, f"{module} imports {name}"


def test_no_circles():
    """Modules that import each other, directly or around a corner."""
    needs: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, name in edges():
        needs[module.removesuffix(".__init__")] |= {name} & MODULES.keys()
    while ends := [m for m in needs if not needs[m] - {m} or not any(m in needs[n] for n in needs if n != m)]:
        for end in ends:
            del needs[end]
        for needed in needs.values():
            needed.difference_update(ends)
    assert not needs, f"these import each other: {sorted(needs)}"
