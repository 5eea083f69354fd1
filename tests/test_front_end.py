"""All that Triton can say: read without a compiler, sent as data, and built again with Triton's own builder.

The kernels of `executor_kernels` are read in a process of their own, with the Triton that PYTHONPATH names.
Started as a program, this file does so and prints what it found.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.util
import itertools
import json
import random
import re
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TO_LLVM = ["add", "floats", "reductions", "loops", "returns", "calls", "tuples"]  # the rest of the compiler takes long
CORRUPTIONS = 40

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not here")


# --- the tests -------------------------------------------------------------------------------------------


def found(forks, mode: str) -> dict:
    done = forks.run(HERE / "test_front_end.py", mode)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def native(forks) -> dict:
    answer = found(forks, "native")
    if not answer["library"]:
        pytest.skip("Triton's library cannot be loaded")
    return answer


@pytest.fixture(scope="module")
def hidden(forks) -> dict:
    return found(forks, "hidden")


def test_every_kernel_is_read_without_the_library(hidden):
    assert not hidden["library"]
    assert len(hidden["programs"]) > 30 and not hidden["troubles"]


def test_the_program_does_not_depend_on_the_library(native, hidden):
    assert native["programs"] == hidden["programs"]


def test_the_program_is_the_same_after_it_was_sent(hidden):
    assert hidden["changed"] == []


def test_corrupt_data_is_a_bad_program_or_a_program(hidden):
    assert hidden["escaped"] == []
    assert hidden["refused"] > hidden["accepted"] > 0


def test_what_is_built_again_is_what_triton_builds(native):
    assert native["built_otherwise"] == []
    assert native["built"] > 50


def test_it_compiles_to_the_same_instructions(native):
    assert native["compiled_otherwise"] == []
    assert native["compiled"] == 2 * len(TO_LLVM)


def test_a_mistake_has_the_line_and_the_words_of_the_innermost_function(hidden):
    text, line = hidden["messages"]["mistakes"]
    assert "arange" in text and "power of 2" in text
    assert "tl.arange(0, n)" in line
    text, line = hidden["messages"]["undefined"]
    assert text == "nothing is not defined" and "nothing" in line


def test_what_only_hardware_can_do_has_its_name(hidden):
    assert hidden["not_here"] == {"assembly": "inline assembly", "custom_float8": "float8e4b15"}


def test_promises_stand_where_the_kernel_makes_them(hidden):
    assert hidden["promises"] == [
        ["tt.divisibility", [16]], ["tt.divisibility", [8]], ["tt.contiguity", [64]], ["tt.constancy", [4]]
    ]  # fmt: skip


def test_too_much_is_refused(hidden):
    reasons = {"recursion": "a function that calls itself, or too many in one another", "calls": "too many calls"}
    assert hidden["too_much"] == reasons | {"deep": "too deep", "nothing": "accepted"}


# --- the process that reads the kernels ------------------------------------------------------------------


class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("triton._C.libtriton"):
            raise ImportError("hidden")


def program(mode: str) -> dict:
    package = types.ModuleType("workshop")  # not the whole package, which would choose a device
    package.__path__ = [str(HERE.parent / "workshop")]
    sys.modules["workshop"] = package
    if mode == "hidden":
        sys.meta_path.insert(0, Hide())
    from workshop.executor import without_native

    without_native.install()
    from executor_kernels import CASES

    from workshop.executor import front_end
    from workshop.executor import program as codec
    from workshop.short import refusal

    answer = {"library": without_native.native(), "programs": {}, "troubles": {}, "changed": [], "escaped": []}
    answer |= {"refused": 0, "accepted": 0, "messages": {}, "not_here": {}, "too_much": {}}
    read = {}
    for case, target in itertools.product(CASES, ("cuda", "hip")):
        if target == "hip" and case.cuda_only:
            continue
        name = f"{case.name} {target}"
        try:
            read[name] = case.lower(target)
        except Exception as error:
            answer["troubles"][name] = f"{type(error).__name__}: {refusal(error).message}"
            continue
        text = json.dumps(codec.to_data(read[name]), allow_nan=False)
        answer["programs"][name] = hashlib.sha256(text.encode()).hexdigest()
        back = codec.from_data(json.loads(text))
        if json.dumps(codec.to_data(back)) != text or shape(back) != shape(read[name]):
            answer["changed"].append(name)
        if target == "cuda" and mode == "hidden":
            corrupt(text, answer, codec)
    if mode == "native":
        compare(read, CASES, answer)
    else:
        messages(answer, front_end)
        promised = read["promises cuda"].operations()
        answer["promises"] = [each.args[1:] for each in promised if each.name == "promise"]
        too_much(codec.to_data(read["calls cuda"]), codec, answer)
    return answer


def shape(program) -> list:
    return [(o.name, [str(r.type) for r in o.results], o.location, o.attributes) for o in program.operations()]


def corrupt(text: str, answer: dict, codec):
    draw = random.Random(len(text))
    junk = [None, True, -1, 0, 1, 3, 2**70, -5, 1.5, "x", "add", [], {}, [[]], "nan", [0, 1]]
    for _ in range(CORRUPTIONS):
        data = json.loads(text)
        for _ in range(draw.choice([1, 1, 1, 2, 5])):
            places = list(spots(data))
            (owner, key), (other, place) = draw.choice(places), draw.choice(places)
            if isinstance(owner[key], int) and draw.random() < 0.4:
                owner[key] += draw.choice([-1, 1, 2])
            else:
                owner[key] = draw.choice([draw.choice(junk), json.loads(json.dumps(other[place]))])
        try:
            codec.from_data(data)
            answer["accepted"] += 1
        except codec.BadProgram:
            answer["refused"] += 1
        except Exception as error:
            answer["escaped"].append(repr(error))


def spots(data):
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, (dict, list)):
            yield from spots(value)


def too_much(data: dict, codec, answer: dict):
    """Why programs are refused that would take all time: those that call or nest too much."""
    types, constants, functions = data["types"], data["constants"], data["functions"]
    types.append(["function", "", None, [], [[], []], True, 1])
    constants.append(["get_int1", 1])
    deep = ["barrier", []]
    for _ in range(100):
        deep = ["if_op", [[], -len(constants), True], 0, [[deep], []]]
    chain = [["call", [f"f{i}", []]] for i in range(31)]
    extra = [[f"f{i}", len(types) - 1, False, [], [[[], [chain[i + 1]] * 5 * (i < 29) + [["ret", [[]]]]]]]
             for i in range(30)]  # fmt: skip
    itself = ["call", [functions[1][0], list(range(len(functions[1][-1][0][0])))]]
    changes = {"recursion": (functions, [itself]), "calls": (functions + extra, []),
               "deep": (functions, [deep]), "nothing": (functions, [])}  # fmt: skip
    for name, (changed, operations) in changes.items():
        changed = json.loads(json.dumps(changed))
        changed[1][-1][0][1][:0] = operations
        try:
            codec.from_data(data | {"functions": changed})
            answer["too_much"][name] = "accepted"
        except codec.BadProgram as error:
            answer["too_much"][name] = str(error)


def messages(answer: dict, front_end):
    import executor_kernels as kernels

    from workshop.short import refusal

    lines = (HERE / "executor_kernels.py").read_text().splitlines()
    for kernel in (kernels.mistakes, kernels.undefined, kernels.assembly, kernels.custom_float8):
        signature = {"x": "*fp32", "B": "constexpr"}
        try:
            front_end.lower(kernel, signature, {(1,): 64})
        except front_end.Unsupported as error:
            answer["not_here"][kernel.__name__] = error.construct
        except Exception as error:
            text, line, *_ = refusal(error)
            answer["messages"][kernel.__name__] = text, lines[line - 1]


def compare(read: dict, cases: list, answer: dict):
    from triton.compiler import ASTSource
    from triton.language import semantic

    from workshop.executor import front_end, rebuild

    answer |= {"built": 0, "built_otherwise": [], "compiled": 0, "compiled_otherwise": []}
    for case, target in itertools.product(cases, ("cuda", "hip")):
        name, gpu = f"{case.name} {target}", front_end.TARGETS[target]
        if name not in read:
            continue
        driver = types.SimpleNamespace(get_current_target=lambda gpu=gpu: gpu)
        semantic.driver = types.SimpleNamespace(active=driver)
        source = ASTSource(case.kernel, case.signature, case.constants, case.attributes)
        options = {"sanitize_overflow": False, **case.options}
        expected, _ = rebuild.compile_program(source, gpu, options, "ttir")
        ours, _ = rebuild.compile_program(read[name], gpu, case.options, "ttir")
        answer["built"] += 1
        if lines(str(ours)) != lines(str(expected)):
            answer["built_otherwise"].append(name)
        if case.name in TO_LLVM:
            expected, theirs = rebuild.compile_program(source, gpu, options, "llir")
            ours, facts = rebuild.compile_program(read[name], gpu, case.options, "llir")
            answer["compiled"] += 1
            if facts["shared"] != theirs["shared"] or instructions(ours) != instructions(expected):
                answer["compiled_otherwise"].append(name)


def lines(text: str) -> list[str]:
    """The lines of a module without names and places. Only the order of constants may be another."""
    text = re.sub(r"^#loc.*\n", "", text, flags=re.M)
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", text)
    text = re.sub(r"%[-\w#:.$]+", "%", text)
    constants = sorted(line for line in text.splitlines() if "arith.constant" in line)
    return constants + [line for line in text.splitlines() if "arith.constant" not in line]


def instructions(text: str) -> Counter:
    return Counter(re.findall(r"^  (?:%\S+ = )?(?:tail )?(\w+)", str(text), re.M))


if __name__ == "__main__":
    print("\n" + json.dumps(program(sys.argv[1])))
