"""Where a wrong answer differs from the nearest right one: each difference is undone, alone or with others.

If the answer is right then, the message names the learner's line and what to write there.

Source: Gulwani, Radicek and Zuleger, "Automated clustering and program repair for introductory programming
assignments", 2018. The smallest set of differences that decides: Zeller, "Yesterday, my program worked", 1999.
"""

from __future__ import annotations

import ast
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import combinations, groupby, pairwise
from pathlib import Path

from workshop.hints import GALLERY

from ..answer import without_comments
from ..exercises import EXERCISES
from ..gallery import BadEdit, solution
from ..text import listed
from ..verdict import Finding, Slug
from . import nodes
from .aligned import Comparison, Difference
from .nodes import UNREADABLE, normal
from .slips import slips

LONGEST, MOST_STATEMENTS = 30_000, 300  # characters and statements of an answer that is compared
MOST_TRIED = 24  # differences of an answer
FIRST = 6  # sources that are tried at once: mostly one of the smallest differences decides
MOST_COMPARED = 5  # right answers
MOST_ANSWERS = 2  # whose differences are undone
MOST_OF_ONE = 4  # differences of one statement that are undone in pairs
CLOSE = 16  # the distance of a right answer beside which no other one is looked for
MOST_CONFIRMED = 3
MOST_CHANGED = 40  # size of what is told: more is another answer
FEW = 7  # if there are no more differences, they are also tried in pairs
NEAR = 4  # differences, at most, of an answer that becomes a known one when a few are undone
MOST_CODE = 160  # characters of code in a message
MOST_WRITTEN = 260  # characters of all that is to be written: more is another answer

_MEANS = {  # of one difference
    "changed": "With one change in this line, all cases are right.",
    "missing": "Below this line, something is missing: with it, all cases are right.",
    "too much": "Without this line, all cases are right.",
    "moved": "This line stands in the wrong place: in another one, all cases are right.",
}
OF_ONE_LINE = {*_MEANS.values()}
Together = tuple[Difference, ...]


def blames_a_difference(
    exercise: str, source: str, finding: Finding, quick: Callable[[list[str]], list[str]], whole: Callable[[str], bool]
) -> Finding:
    """The finding, explained by the smallest difference from a right answer that decides, if there is one.

    quick: which of some sources are right in a case that is soon known. whole: whether a source is right. Neither is
    asked about a right answer that is known.
    """
    answers, hides = differences(exercise, source), None
    for sets in _sets(answers):
        sets = [each for each in sets if sum(d.size for d in each) <= MOST_CHANGED and _written(each) <= MOST_WRITTEN]
        sets = sorted(sets, key=lambda e: (sum(d.size for d in e), e[0].line != finding.line, _written(e)))
        made = {text: each for each in sets if (text := undone(source, each))}
        near = made if answers and len(answers[0]) <= NEAR else ()
        if text := next((text for text in near if _program(ast.parse(text)) in _known(exercise)), ""):
            return told(source, made[text], finding)
        for few in filter(None, ([*made][:FIRST], [*made][FIRST:])):
            for text in quick(few)[:MOST_CONFIRMED]:
                if _makes_sense(text) and whole(text):
                    if not (spare := _unused(text) - _unused(source)):
                        return told(source, least(source, made[text], quick, whole), finding)
                    hides = hides or _where_it_is_set(source, made[text], spare, whole)
        if hides:
            return told(source, hides, finding)
    return finding


def blames_a_slip(
    source: str,
    finding: Finding,
    quick: Callable[[list[str]], list[str]],
    whole: Callable[[str], bool],
    kinds: Callable[[str], list[Together]] = slips,
) -> Finding:
    """As `blames_a_difference`, where no difference from a right answer decides: the first of some usual slips."""
    try:
        made = {text: slip for slip in kinds(source[:LONGEST]) if (text := undone(source, slip))}
    except UNREADABLE:
        return finding
    if not made:
        return finding
    right = next(filter(whole, quick([*made])[:MOST_CONFIRMED]), "")
    return told(source, least(source, made[right], quick, whole), finding) if right else finding


def least(
    source: str, found: Together, quick: Callable[[list[str]], list[str]], whole: Callable[[str], bool]
) -> Together:
    """The same without the differences that it does not need."""
    while len(found) > 1:
        fewer = {undone(source, few): few for n in {1, len(found) - 1} for few in combinations(found, n)}
        right = next(filter(whole, quick([*filter(None, fewer)])[:MOST_CONFIRMED]), "")
        if not right:
            break
        found = fewer[right]
    return found


def _written(differences: Together) -> int:
    """Characters of what would be told."""
    return sum(len(text) for each in differences for _, _, text in each.edits)


def _sets(answers: list[list[Difference]]) -> Iterator[list[Together]]:
    """The differences alone, from one right answer after the other; then two of one statement; then, of the nearest,
    those that are the same change everywhere, and pairs."""
    yield from ([(each,) for each in found] for found in answers)
    for found in answers:
        lines = dict.fromkeys(d.within for d in found if d.within)
        statements = ([d for d in found if d.within == line][:MOST_OF_ONE] for line in lines)
        yield [pair for parts in statements for pair in combinations(parts, 2)][:MOST_TRIED]
    for found in answers[:1]:
        times = Counter(d.change for d in found)
        same = [tuple(d for d in found if d.change == change) for change, n in times.items() if n > 1]
        yield same + [*combinations(found, 2)] * (len(found) <= FEW)


def undone(source: str, differences: Together) -> str:
    """The source without these differences; "" if they are about the same place, or if it is no Python then."""
    edits = sorted(edit for each in differences for edit in each.edits)
    if any(end > begin for (_, end, _), (begin, _, _) in zip(edits, edits[1:])):
        return ""
    code = source.encode()
    for begin, end, text in reversed(edits):
        code = code[:begin] + text.encode() + code[end:]
    try:
        ast.parse(code)
    except UNREADABLE:
        return ""
    return code.decode()


def _unused(source: str) -> set[tuple[str, str]]:
    """Functions, and what they set and never read. A change that adds to it hides a mistake where that is set."""
    found = set()
    for function in (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)):
        names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
        read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
        found |= {(function.name, n.id) for n in names if n.id not in read}
    return found


def _where_it_is_set(
    source: str, found: Together, spare: set[tuple[str, str]], whole: Callable[[str], bool]
) -> Together:
    """The same change in the line that sets a variable, if it takes the place of that variable and is right there."""
    begin, end, new = found[0].edits[0]
    name = source.encode()[begin:end].decode()
    if name in {variable for _, variable in spare} and len(found) == len(found[0].edits) == 1:
        lines = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Assign))
        for line in (n for n in lines if [getattr(target, "id", "") for target in n.targets] == [name]):
            there = (replace(found[0], line=line.lineno, edits=((*nodes.Places(source).span(line.value), new),)),)
            if whole(undone(source, there)):
                return there
    return found


def _makes_sense(source: str) -> bool:
    """Not with min(a, a): what is left of a call where another name was meant."""
    calls = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and not n.keywords)
    return not any(len(n.args) == 2 and nodes.same(*n.args) for n in calls)


def told(source: str, differences: Together, finding: Finding) -> Finding:
    """The finding, explained by these differences. What else it says is kept where that is about this mistake alone."""
    ordered = sorted(differences, key=lambda each: each.line)
    first, *others = (tuple(each) for _, each in groupby(ordered, lambda each: (each.line, each.what)))
    known = finding.sure or not Slug.RUNTIME_ERROR.rank < finding.slug.rank < Slug.SAME_MASK.rank
    if finding.by_numbers:
        finding = replace(finding, means=f"A mistake that gives these numbers: {finding.means}", advice="")
    line = finding.line if known and finding.line else first[0].line
    repair = "; ".join(_repair(source, each, not others and each[0].line == line) for each in (first, *others)) + "."
    if known:
        return replace(finding, line=line, repair=repair, second=None, sure=True)
    lines = listed(dict.fromkeys(str(each[0].line) for each in (first, *others)))
    means = f"With a change in each of the lines {lines}, all cases are right."
    means = means if others else _MEANS[first[0].what]
    means = f"{means} {finding.means}" if finding.slug == Slug.NAN else means  # where NaN comes from is worth a word
    return replace(finding, line=line, code="", means=means, advice="", repair=repair, second=None, sure=True)


def _repair(source: str, found: Together, alone: bool = True) -> str:
    """What to write. found: differences of one line. alone: this line is shown above."""
    lines, first = source.splitlines(), found[0]
    stands = f"`{lines[first.line - 1].strip()}`"
    edits = sorted(edit for each in found for edit in each.edits[-1:])
    if first.what == "missing":
        return f"add `{_in_one_line(edits[0][2])}` below {'this line' if alone else stands}"
    if first.what == "too much":
        (begin, end, rest), *_ = edits
        if rest:  # a body needs a statement
            return f"write `pass` in the place of {stands}"
        return f"leave out {stands}" + " and what stands in it" * (b"\n" in source.encode()[begin:end].strip())
    if first.what == "moved":
        return f"move {stands} below `{lines[first.below - 1].strip()}`"
    code = source.encode()
    begin, end = edits[0][0], edits[-1][1]
    line = slice(code.rfind(b"\n", 0, begin) + 1, end + len(code[end:].partition(b"\n")[0]))
    new = b"".join(text.encode() + code[stop:after] for (_, stop, text), (after, *_) in pairwise([*edits, (end,)]))
    old, new = code[begin:end].decode(), new.decode()
    whole = (code[line.start : begin] + new.encode() + code[end : line.stop]).decode()
    if alone and len(whole) <= MOST_CODE:
        return f"write `{_in_one_line(without_comments(whole.strip()))}`"  # a comment may be a part of the mistake
    if not alone and len(whole) <= MOST_CODE:
        old, new = code[line].decode(), whole
    return f"write `{_in_one_line(new)}` in the place of `{_in_one_line(old)}`"


def _in_one_line(code: str) -> str:
    return " ".join(part for line in code.splitlines() if (part := line.strip()))


# -- right answers -------------------------------------------------------------------------------------------


# The solution and the answers of the gallery. An attendee's image has no solutions and no tests. Its build packs the
# answers, so that a search for text finds none.
PACKED = Path(__file__).with_name("right_answers.packed")


def right_answers(exercise: str) -> list[str]:
    """Sources, the solution first; none if this copy of the course has no answers."""
    try:
        first = solution(exercise)
    except BadEdit:
        return _packed().get(exercise, [])
    return [first, *(file.read_text(encoding="utf-8") for file in sorted((GALLERY / exercise).glob("*.py")))]


@cache
def _packed() -> dict[str, list[str]]:
    data = PACKED.read_bytes() if PACKED.exists() else b""
    return json.loads(zlib.decompress(data)) if data else {}


def pack_right_answers() -> None:
    """Packs the answers of this copy of the course into PACKED."""
    found = {name: right_answers(name) for name in EXERCISES}
    PACKED.write_bytes(zlib.compress(json.dumps(found).encode()))


class _Right:
    """A right answer: as it is written, the words in it, and its normal form, which few answers are asked for."""

    def __init__(self, source: str):
        self.tree = ast.parse(source)
        self.words = _words(self.tree)

    @cached_property
    def form(self) -> ast.Module:
        return normal(self.tree)


@cache
def _right_trees(exercise: str) -> list[_Right]:
    """The right answers, the solution first."""
    return [*map(_Right, right_answers(exercise))]


@cache
def _known(exercise: str) -> set[str]:
    return {_program(right.tree) for right in _right_trees(exercise)}


@lru_cache(64)
def differences(exercise: str, source: str) -> list[list[Difference]]:
    """The differences of a source from the right answers that are nearest to it, the smallest first."""
    try:
        return _differences(source, _right_trees(exercise))
    except UNREADABLE:
        return []


def _differences(source: str, right: list[_Right]) -> list[list[Difference]]:
    wrong = ast.parse(source) if len(source) <= LONGEST else ast.Module([], [])
    if not 0 < sum(isinstance(n, ast.stmt) for n in ast.walk(wrong)) <= MOST_STATEMENTS:
        return []
    bare, words, compared = normal(wrong), _words(wrong), []
    apart = sorted(right, key=lambda answer: ((words - answer.words) + (answer.words - words)).total())
    near = [*right[:1], *(answer for answer in apart if answer is not right[0])][:MOST_COMPARED]
    for answer in near:
        # As it is written, beside the solution: mostly enough.
        forms = [] if compared else [Comparison(source, wrong, answer.tree)]
        if not forms or forms[0].distance > CLOSE:
            forms.append(Comparison(source, bare, answer.form))
        compared.append((min(each.distance for each in forms), len(compared), forms))
        if len(compared) > 1 and min(compared)[0] <= CLOSE:
            break
    found = []
    for _, place, forms in sorted(compared)[:MOST_ANSWERS]:
        if place:
            forms.append(Comparison(source, wrong, near[place].tree))
        each = [d for form in forms for d in form.differences()]
        unique = {d.edits: d for d in sorted(each, key=lambda d: (d.size, d.line))}
        found.append([*unique.values()][:MOST_TRIED])
    return found


def _program(tree: ast.Module) -> str:
    """The same text for the same program, whatever it imports."""
    return "\n".join(ast.dump(n) for n in tree.body if not isinstance(n, (ast.Import, ast.ImportFrom)))


def _words(tree: ast.Module) -> Counter:
    return Counter(type(n).__name__ + str(getattr(n, "attr", getattr(n, "id", ""))) for n in ast.walk(tree))
