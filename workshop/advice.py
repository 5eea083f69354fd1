"""What Triton's compiler, Python or a driver says, what it means, and one thing to try: the table is advice.toml.

The judge and the notebook use the same one.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

COMPARE = "compare the message with the line: which value is not what you expected?"

_TOLD = tomllib.loads(Path(__file__).with_name("advice.toml").read_text(encoding="utf-8"))
ADVICE = [(one["pattern"], one.get("means", ""), one["try"]) for one in _TOLD["messages"]]
STOPPED, OUTSIDE = _TOLD["stopped"], _TOLD["outside"]
ELSEWHERE = {name: written for names, written in _TOLD["elsewhere"].items() for name in names.split()}


def readable(message: str) -> str:
    """The compiler's message with types as learners write them: <['128'], fp32> is fp32[128], a block of 128."""
    for one in _TOLD["reworded"]:
        message = re.sub(one["pattern"], one["said"], message, flags=re.S)
    return message if len(message) < 400 else message[:400] + " …"


def refused(message: str, construct: str = "", meant: str = "") -> tuple[str, str, str]:
    """What the compiler says, what it means and what to try: the arguments are those of a workshop.short.Refusal."""
    message = readable(message)
    means, attempt = meaning(message, construct, meant)
    return message, means, attempt or COMPARE


def stopped(kind: str, words: str) -> tuple[str, str, str]:
    """The same for a kernel that the executor stopped. kind: of STOPPED. words: of the error."""
    told = STOPPED[kind]
    return told["happened"].format(words=words or "its condition is false"), told["means"], told["try"]


VERBS = {"load": "reads", "store": "writes", "atomic": "changes"}


def outside(fault, ragged: bool = True, strided: bool = False) -> tuple[str, str, str]:
    """The same for an access outside of a tensor. fault: an executor.records.Fault.

    ragged: whether blocks may end behind the tensors. strided: whether tensors have gaps between their rows.
    """
    one = not fault.block
    first = fault.lane[0] if len(fault.lane) == 1 else fault.lane
    lanes = "" if one else f": {fault.lanes} lane{'s' * (fault.lanes != 1)}, the first is lane {first},"
    who = f"Program {program_in_words(fault.program)} {VERBS[fault.kind]} outside of"
    if not fault.argument:
        return f"{who} every tensor{lanes} at an address that is in none.", "", OUTSIDE["no-tensor"]["try"]
    place = f"element {fault.element}, {fault.distance} {fault.place}"
    if fault.place == "gap":
        at = f"index {fault.index}" if len(fault.shape) > 2 else f"row {fault.index[0]}, column {fault.index[-1]}"
        place = f"{at}, in the gap between the rows"
        if lies_between_parts(fault):
            place = f"{at}, in the gap between the parts along axis {_axis_apart(fault)}"
        elif fault.stride[0] < fault.stride[-1]:  # transposed: the rows lie in each other
            place = f"element {fault.element}, in the gap between the columns"
    form = f"{fault.argument} has shape {fault.shape} and strides {fault.stride}."
    if fault.shape and fault.stride == (1,):
        form = f"{fault.argument} has {fault.shape[0]} element{'s' * (fault.shape[0] != 1)}."
    if fault.round:
        place += f", in round {fault.round} of the loop in line {fault.loop}"
    happened = f"{who} {fault.argument}{lanes} at {place}. {form * bool(fault.shape)}".rstrip()
    return (happened, *_why_outside(fault, one, ragged, strided))


def lies_between_parts(fault) -> bool:
    """Whether it lies in a gap of the tensor that is not between its rows."""
    return fault.place == "gap" and _axis_apart(fault) < len(fault.shape) - 2


def _axis_apart(fault) -> int:
    """The axis along which the tensor has the gap: the coordinate behind it is too large."""
    beyond = (axis for axis, (at, size) in enumerate(zip(fault.index[1:], fault.shape[1:])) if at >= size)
    return next(beyond, len(fault.shape) - 2)


def raced(race) -> tuple[str, str, str]:
    """The same for an executor.records.Race that `Launch.races_by_kind` has counted."""
    kind = "write" if race.kind == "write-write" else "read"
    if race.within:
        kind += "-within"
    elif race.same_value:
        kind = "same-work"
    told = _TOLD["race"][kind]
    axes = max([1, *(axis for each in (race.first, race.second) for axis, at in enumerate(each, 1) if at)])
    first, second = (program_in_words(each, axes) for each in (race.first, race.second))
    words = {
        "argument": race.argument,
        "program": second,
        "programs": f"Programs {first} and {second}" if race.first else f"Program {second} and several others",
        "elements": f"{race.elements} element{'s' * (race.elements != 1)}",
    }
    return told["happened"].format(**words), told["means"], told["try"]


def undefined(found) -> tuple[str, str, str]:
    """The same for an executor.records.Undefined."""
    told = _TOLD["undefined"]["read" if found.kind == "read" else "masked-off"]
    words = vars(found) | {"program": program_in_words(found.program)}
    return told["happened"].format(**words), told["means"], told["try"]


def about_steps(access) -> tuple[str, str]:
    """What a wrong step means and what to try; ("", "") where the steps are right. access: an executor.records.Steps,
    or a Fault."""
    axis = access.odd_axis
    if axis is None:
        return "", ""
    exchanged = tuple(access.steps) == (access.shape[0], 1) and len(access.shape) == 2
    told, step = _TOLD["steps"]["exchanged" if exchanged else "wrong"], access.steps[axis]
    places = "rows" if len(access.block) == 2 and axis == 0 else "columns"
    words = {
        "argument": access.argument,
        "shape": tuple(access.shape),
        "strides": tuple(access.stride),
        "lanes": f"From one of its {places} to the next" if len(access.block) == 2 else "From lane to lane",
        "step": f"{step} element{'s' * (step != 1)}",
        "named": f", which is a length of {access.argument} and not a stride" if step in access.shape else "",
    }
    return told["means"].format(**words), told["try"]


def _why_outside(fault, one: bool, ragged: bool, strided: bool) -> tuple[str, str]:
    if (told := about_steps(fault))[0]:
        return told
    told = OUTSIDE[_mistake(fault, one, ragged, strided)]
    plural = "rows" if len(fault.shape) > 1 else "elements"
    words = {
        "argument": fault.argument,
        "strides": tuple(fault.stride),
        "row_stride": fault.stride[-2] if len(fault.stride) > 1 else 0,
        "columns": fault.shape[-1] if fault.shape else 0,
        "rows": plural,
        "row": plural.removesuffix("s"),
        "last": fault.shape[0] - 1 if fault.shape else 0,
        "index": fault.index[0] if fault.index else 0,
        "axis": (axis := _axis_apart(fault)),
        "stride": fault.stride[axis] if len(fault.shape) > 1 else 1,
    }
    return told["means"].format(**words), told["try"].format(**words)


def _mistake(fault, one: bool, ragged: bool, strided: bool) -> str:
    """Its name in the table. one: the kernel has no blocks, so lanes, masks and strides are not its words."""
    end, axes = fault.place == "past the end" and any(fault.lane), len(fault.shape)
    of_its_program = fault.index and axes and fault.index[0] == fault.program[0] >= fault.shape[0] > 1
    return next(name for name, fits in (
        ("no-block", one),
        ("other-mask", fault.masked and end),
        ("no-mask", ragged and end),
        ("parts-apart", lies_between_parts(fault)),
        ("columns-apart", axes > 1 and fault.stride[-1] > 1),
        ("rows-apart", axes > 1 and (strided or fault.place == "gap")),
        ("order-of-the-grid", any(fault.program[1:])),
        ("row-of-its-program", of_its_program),
        ("nowhere-masked", not fault.masked),
        ("unknown", True),
    ) if fits)  # fmt: skip


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the names that are most like this one; without any, all names."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 3, 0.5)
    if not near:
        return f"There are: {', '.join(names)}."
    return f"Did you mean {', '.join(near[:-1])}{' or ' * (len(near) > 1)}{near[-1]}?"


def program_in_words(program: tuple[int, ...], axes: int = 1) -> str:
    """A program's place in its launch grid, without zeros that trail behind so many axes."""
    while len(program) > axes and program[-1] == 0:
        program = program[:-1]
    return str(program[0]) if len(program) == 1 else str(tuple(program))


_NO_SUCH = re.compile(r"^(?:module 'triton.language'|'tensor' object) has no attribute '(?P<name>\w+)'")


def meaning(message: str, construct: str = "", meant: str = "") -> tuple[str, str]:
    """What a message means and what to try; ("", "") if it is not known.

    construct: what the compiler refuses, as short.Refusal says it. meant: a name that a misspelt one may stand
    for, or "-" if no name is like it.
    """
    text = f"{message}\n{construct}\nmeant: {meant}" if meant else f"{message}\n{construct}"
    named = _NO_SUCH.search(message) or re.search(r"\n(?:torch|np|numpy|math|jnp)\.(?:\w+\.)*(?P<name>\w+)$", text)
    if named and (written := ELSEWHERE.get(named["name"])):
        return f"Triton's language has no `{named['name']}`.", f"write {written}."
    if found := re.search(r"unsupported AST node type: (\w+)", message):
        name, attempt = _TOLD["constructs"].get(found[1], (f"`{found[1]}`", "write it with the functions of `tl`"))
        return f"{name[0].upper()}{name[1:]} cannot be used in a kernel, which is not ordinary Python.", f"{attempt}."
    for pattern, means, attempt in ADVICE:
        if found := re.search(pattern, text):
            names = found.groupdict()
            return means.format(**names), attempt.format(**names)
    return "", ""
