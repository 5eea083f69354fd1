"""Answers that resemble each other more than the exercise explains. A hint to look at both, and no proof.

An answer is the set of its runs of RUN tokens, with names, numbers and strings left out. What the starter or a known
answer has is subtracted, and what many students have: there it is the exercise that makes answers alike.
"""

import io
import itertools
import keyword
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..files import file_hash

RUN = 10  # tokens; about two lines
ENOUGH = 15  # runs of an answer's own; with fewer there is nothing to compare
ALIKE = 0.8
COMMON = 20  # students
MAX_CHARACTERS = 20_000
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Pair:
    """Two students' answers to an exercise: `share` of the smaller one's `own` runs are in the other one, too."""

    exercise: str
    first: str
    second: str
    share: float
    own: int


def runs(source: str) -> set[tuple[str, ...]]:
    """The runs of an answer. Text that is no Python gives those before its first error."""
    tokens, dotted = [], False
    with_errors = tokenize.generate_tokens(io.StringIO(source[:MAX_CHARACTERS]).readline)
    try:
        for token in with_errors:
            if token.type == tokenize.NAME:
                tokens.append(token.string if dotted or keyword.iskeyword(token.string) else "name")
            elif token.type in (tokenize.NUMBER, tokenize.STRING):
                tokens.append("value")
            elif token.type == tokenize.OP:
                tokens.append(token.string)
            dotted = token.string == "."
    except (tokenize.TokenError, SyntaxError):
        pass
    return {tuple(tokens[at : at + RUN]) for at in range(len(tokens) - RUN + 1)}


def similar(exercise: str, answers: dict[str, str], starter: str) -> list[Pair]:
    """The pairs of students (student -> answer) whose answers are alike, the most alike first."""
    known = _gallery(exercise) | runs(starter)
    own = {student: runs(answer) - known for student, answer in answers.items()}
    having = defaultdict(list)
    for student in sorted(own):
        for run in own[student]:
            having[run].append(student)
    common = {run for run, students in having.items() if len(students) > COMMON}
    shared: Counter[tuple[str, str]] = Counter()
    for run in having.keys() - common:
        shared.update(itertools.combinations(having[run], 2))
    sizes = {student: len(found - common) for student, found in own.items()}
    pairs = []
    for (first, second), count in shared.items():
        smaller = min(sizes[first], sizes[second])
        if smaller >= ENOUGH and count >= ALIKE * smaller:
            pairs.append(Pair(exercise, first, second, count / smaller, smaller))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.own, pair.first, pair.second))


@cache
def _gallery(exercise: str) -> frozenset[tuple[str, ...]]:
    """The runs of all known answers, right and wrong, as far as this installation has them."""
    from ...gallery import answers_in  # and torch with it, which a report of what it has said before does not need

    return frozenset().union(*(runs(known.source) for known in answers_in(ROOT / "tests", [exercise])))


def known_answers() -> list[str]:
    """Changes with the known answers."""
    folders = (ROOT / "tests" / "right", ROOT / "tests" / "wrong", ROOT / "solutions")
    return [file_hash(path) for folder in folders for path in sorted(folder.rglob("*.py"))]
