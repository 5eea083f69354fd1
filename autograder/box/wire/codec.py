"""Converts records to JSON and back. Runs on both ends of the wire.

A record is a frozen dataclass. Its fields are records, tuples of them, unions of them, or plain JSON values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def to_json(value: Any) -> str:
    """The JSON of a record, or of plain values that contain records. A field with default None is omitted if None."""
    return json.dumps(value, default=_given)


def _given(record) -> dict:
    if not is_dataclass(record):
        raise TypeError(f"Object of type {type(record).__name__} is not JSON serializable")
    given = ((field, getattr(record, field.name)) for field in fields(record))
    return {field.name: value for field, value in given if value is not None or field.default is not None}


def from_json(kind: type, text: str | bytes):
    """The record of this kind that `to_json` wrote."""
    return record(kind, json.loads(text))


def record(kind: Any, value: Any):
    """Converts a JSON value to the annotated `kind`. A value of another kind, such as a trace, is not changed."""
    reads = _reader(kind)
    return value if reads is None else reads(value)


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of the annotated kind out of JSON; None where JSON has it already."""
    if isinstance(kind, UnionType):
        readers = {each: _reader(each) for each in get_args(kind)}
        return (lambda value: _member(readers, value)) if any(readers.values()) else None
    if get_origin(kind) is tuple:
        each = _reader(get_args(kind)[0])
        return tuple if each is None else lambda value: tuple(map(each, value))
    if is_dataclass(kind):
        readers = {name: reader for name, hint in get_type_hints(kind).items() if (reader := _reader(hint))}
        return lambda value: kind(**{n: readers[n](each) if n in readers else each for n, each in value.items()})
    return None


def _member(readers: dict[Any, Callable | None], value: Any):
    """A value of the member of a union that fits. The records of a union have different fields."""
    for kind, reads in readers.items():
        if is_dataclass(kind) and isinstance(value, dict) and value.keys() <= kind.__dataclass_fields__.keys():
            return reads(value)
    return value
