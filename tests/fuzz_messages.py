"""Mutated messages from the box to the judge: none may raise, and none may pass.

    python tests/fuzz_messages.py [COUNT] [SEED]

A box of straw answers the judge with mutations of what an honest run sends, beside an output that is wrong.
"""

import copy
import json
import random
import sys
from collections import Counter
from dataclasses import replace

from autograder.box import Outcome
from autograder.box.wire import ProtocolError, Report, parse
from autograder.exercises import EXERCISES
from autograder.exercises.spec import Exercise
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge import Judge, KernelJudgement
from autograder.verdict import Verdict

FAULT = {
    "kind": "load",
    "kernel": "add_kernel",
    "program": [3, 0, 0],
    "block": [32],
    "lane": [8],
    "lanes": 24,
    "argument": "x_ptr",
    "shape": [1000],
    "stride": [1],
    "element": 1000,
    "index": [1000],
    "place": "past the end",
    "distance": 1,
    "line": 12,
    "code": "x = tl.load(x_ptr + offsets)",
}
RACE = {
    "kind": "write-write",
    "argument": "output_ptr",
    "index": [0],
    "first": [0, 0, 0],
    "second": [1, 0, 0],
    "line": 14,
    "code": "tl.store(...)",
    "elements": 256,
    "share": 0.5,
    "same_value": False,
}
RESULT = {"shape": [1], "dtype": "float32", "contiguous": True, "aliases_input": False}
UNDEFINED = {"kind": "read", "kernel": "k", "argument": "x_ptr", "program": [3, 0, 0], "line": 3, "code": "c"}
CLEAN = {"launched": ["add_kernel"], "races": [], "damage": [], "undefined": []}
STEPS = [
    {"index": 0, "out": [0]},
    {"op": "empty_like", "overload": "default", "args": [{"t": 0}], "kwargs": {}, "out": [1]},
    {
        "kernel": "add_kernel",
        "program": "0" * 64,
        "grid": [4, 1, 1],
        "given": [
            {"label": "x_ptr", "value": {"t": 0}, "kind": "*fp32"},
            {"label": "n", "value": 1000, "kind": "i32"},
        ],
        "args": {"BLOCK_SIZE": 256, "x_ptr": {"t": 0}},
        "options": {},
    },
]
HONEST = [
    {"case": 0, "trace": {"steps": STEPS, "result": 1, "recorded": 1}},
    {"case": 0, "trace": {"returned": "NoneType", "recorded": 0}},
    {
        "case": 0,
        "result": RESULT,
        "evidence": CLEAN | {"races": [RACE], "damage": ["input-modified"], "undefined": [UNDEFINED]},
    },
    {
        "case": 0,
        "error": {
            "kind": "fault",
            "type": "Fault",
            "message": "m",
            "line": 3,
            "code": "c",
            "fault": FAULT,
        },
    },
    {"case": 0, "error": {"kind": "not-allowed", "construct": "gluon", "line": 7}},
    {"case": 0, "error": {"kind": "compile", "message": "x is not defined", "instead": "y", "line": 7}},
    {"case": 0, "has_value": True, "value": {"torch_read": 3.0, "fused": [1, 2, None, "x"]}},
    {"case": 1, "same": 0},
    {"error": {"kind": "syntax", "line": 1}},
    {"done": True},
]
STRANGE = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**200,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\ud800",
    "\x1b[2J",
    "<script>",
    [],
    [[]],
    {},
    {"": {}},
    {"t": 0},
    [0] * 20,
    ["a"],
    {"case": 0},
    "nan",
    "float32",
    "__class__",
]
TOKENS = [
    b"",
    b"[" * 3000,
    b'{"a":' * 3000,
    b"9" * 5000,
    b"\xff\xfe",
    b"\0",
    b"NaN",
    b"-Infinity",
    b"\\ud800",
    b"\n",
    b"{}",
]


def mutated(random: random.Random) -> bytes:
    """A few honest lines with fields replaced, removed, repeated or moved, then perhaps torn as bytes."""
    lines = [copy.deepcopy(random.choice(HONEST)) for _ in range(random.randint(1, 4))]
    for _ in range(random.randint(0, 4)):
        _mutate(random, random.choice(lines))
    raw = b"\n".join(json.dumps(line).encode(errors="replace") for line in lines)
    for _ in range(random.choice((0, 0, 0, 1, 3))):
        at = random.randint(0, len(raw))
        raw = raw[:at] + random.choice(TOKENS) + raw[at + random.choice((0, 1, 10)) :]
    return raw


def _mutate(random: random.Random, value) -> None:
    """Change one place in a JSON object or list, anywhere below it."""
    places = list(value) if isinstance(value, dict) else range(len(value))
    if not places:
        return
    place = random.choice(list(places))
    inner = value[place]
    if isinstance(inner, (dict, list)) and inner and random.random() < 0.7:
        _mutate(random, inner)
    elif random.random() < 0.8:
        value[place] = copy.deepcopy(random.choice(STRANGE))
    elif isinstance(value, dict):
        del value[place]
    else:
        value.insert(0, inner)


class StrawBox:
    """Answers plans with the mutation; answers replays with it and with an output that nobody computed."""

    def __init__(self, message: bytes, random: random.Random, output: bytes | None = None):
        self.message, self.random, self.output = message, random, output

    def run(self, request, tensors=b"", output_size=0, *limits, **named_limits) -> Outcome:
        straight = self.output is not None
        if straight and request.kind == "compile":
            compiled = (Report(index, has_value=True, value="compiled") for index in range(len(request.cases)))
            return Outcome(list(compiled), b"")
        if straight and getattr(request, "worlds", ()):  # every other call launches the same work
            again = (b'\n{"case": %d, "same": 0}' % number for number in range(1, len(request.cases)))
            return Outcome(parse(PLAN + b"".join(again)), b"")
        strange = not straight and self.random.random() < 0.1
        end = (False, 0) if not strange else self.random.choice(((True, -9), (False, -9), (False, 1)))
        output = self.output.ljust(output_size, b"\0") if straight else self.random.randbytes(output_size)
        replayed = request.kind == "replay" or not straight and self.random.random() < 0.3
        try:
            return Outcome(parse(self.message if replayed else PLAN), output, *end)
        except ProtocolError as error:
            return Outcome([], output, *end, garbled=str(error))


PLAN = b"\n".join(json.dumps(line).encode() for line in (HONEST[0], HONEST[-1]))


def _small_exercise() -> Exercise:
    exercise = EXERCISES["vector_add"]
    return replace(exercise, cases=(exercise.inputs.case(n=1),), inputs=None)


def honest_verdict() -> Verdict:
    """The verdict on unmutated messages beside the right output: this is what mutations start from."""
    exercise = _small_exercise()
    judge = Judge(confine=False)
    judgement = KernelJudgement(judge, exercise, ADD_TEMPLATE, 0)
    expected = judgement.trials.cases[0].expected.float().numpy().tobytes()
    answer = b"\n".join(json.dumps(line).encode() for line in (HONEST[2] | {"evidence": CLEAN}, HONEST[-1]))
    judge.box = StrawBox(answer, random.Random(0), output=expected)
    return judgement.verdict()


def run(count: int, seed: int = 0) -> Counter:
    """Judge `count` mutated messages. Counts what became of them: "passed" and "raised" must stay zero."""
    source = random.Random(seed)
    judge = Judge(confine=False)
    exercise = _small_exercise()
    seen = Counter(passed=0, raised=0)
    for number in range(count):
        judge.box = StrawBox(mutated(source), source)
        try:
            verdict = KernelJudgement(judge, exercise, ADD_TEMPLATE, number).verdict()
            seen["passed" if verdict.passed else str(verdict.to_json()["diagnosis"])] += 1
            json.dumps(verdict.to_json())
            verdict.to_text(), verdict.to_html()
        except Exception as error:
            seen["raised"] += 1
            if seen["raised"] <= 5:
                print(f"message {number} of seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
    return seen


if __name__ == "__main__":
    counts = run(*map(int, sys.argv[1:])) if sys.argv[1:] else run(60_000)
    print(f"{sum(counts.values())} messages: " + ", ".join(f"{n} {what}" for what, n in counts.most_common()))
    sys.exit(bool(counts["passed"] or counts["raised"]))
