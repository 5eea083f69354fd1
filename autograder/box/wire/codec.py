"""Converts records to JSON and back. Runs on both ends of the wire.

A record is a frozen dataclass. Its fields are records, tuples of them, unions of them, or plain JSON values. A field
of type `Annotated[kind, check, …]` is checked: each check returns what the next one gets, and the last one what to make
the kind of, or raises ValueError. So a record whose fields are all checked can be read from a process that is not
trusted.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from ...text import visible


def to_json(value: Any) -> str:
    """The JSON of a record, or of plain values that contain records. A field that has its default is left out."""
    return json.dumps(value, default=_given)


def _given(record) -> dict:
    return {name: value for name, default in _defaults(type(record)) if (value := getattr(record, name)) != default}


@functools.cache
def _defaults(kind: type) -> list[tuple[str, Any]]:
    """The fields of records of a kind, and their defaults."""
    if not is_dataclass(kind):
        raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")
    return [(field.name, field.default) for field in fields(kind)]


def from_json(kind: type, text: str | bytes):
    """The record of this kind that `to_json` wrote."""
    return reader(kind)(json.loads(text))


@functools.cache
def reader(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of the annotated kind out of JSON; None where JSON has it already."""
    if get_origin(kind) is Annotated:
        first, *others = [*kind.__metadata__, *filter(None, [reader(kind.__origin__)])]
        return functools.reduce(lambda before, check: lambda value: check(before(value)), others, first)
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        readers = {each: reader(each) for each in get_args(kind)}
        return (lambda value: _member(readers, value)) if any(readers.values()) else None
    if get_origin(kind) is tuple:
        each = reader(get_args(kind)[0])
        return tuple if each is None else lambda value: tuple(map(each, value))
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        readers = {name: reads for name, hint in hints.items() if (reads := reader(hint))}
        return lambda value: _made(kind, readers, value)
    return None


def _made(kind: type, readers: dict[str, Callable], value: Any):
    if type(value) is not dict:
        raise ValueError("an object was expected")
    return kind(**{name: readers[name](each) if name in readers else each for name, each in value.items()})


def _member(readers: dict[Any, Callable | None], value: Any):
    """A value of the member of a union that fits. The records of a union have different fields."""
    if value is None and NoneType in readers:
        return None
    for kind, reads in readers.items():
        names = getattr(kind, "__dataclass_fields__", None)
        if reads and (names is None or type(value) is dict and value.keys() <= names.keys()):
            return reads(value)
    if all(readers[kind] for kind in readers if kind is not NoneType):
        raise ValueError("a record of an unknown kind")
    return value


# -- checks ------------------------------------------------------------------------------------------------


def text(most: int) -> Callable:
    """A text of at most so many characters. It is safe to show: a learner's code may choose the message of an error."""
    return _checked("a short text", lambda value: type(value) is str and len(value) <= most, visible)


def integer(low: int, high: int) -> Callable:
    return _checked("an integer", lambda value: type(value) is int and low <= value <= high)


def number(high: float) -> Callable:
    """A number from 0 to `high`, as a float."""
    return _checked("a number", lambda value: type(value) in (int, float) and 0 <= value <= high, float)


def items(most: int, least: int = 0, kind: type = list) -> Callable:
    """A list, or a dict, of so many items."""
    return _checked(f"a short {kind.__name__}", lambda value: type(value) is kind and least <= len(value) <= most)


def _checked(what: str, test: Callable[[Any], bool], make: Callable | None = None) -> Callable:
    def check(value):
        if not test(value):
            raise ValueError(f"{what} was expected")
        return make(value) if make else value

    return check


flag = _checked("a flag", lambda value: type(value) is bool)
