"""Converts records to JSON and back. Runs on both ends of the wire.

A record is a frozen dataclass. Its fields are records, tuples of them, unions of them, or plain JSON values.
"""

from __future__ import annotations

import functools
import json
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
    if isinstance(kind, UnionType):
        return None if value is None else record(_member(kind, value), value)
    if get_origin(kind) is tuple:
        return tuple(record(get_args(kind)[0], each) for each in value)
    if is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: record(hints[name], each) for name, each in value.items()})
    return value


def _member(union: UnionType, value: Any) -> Any:
    """The member of a union that fits the value. The records of a union have different fields."""
    for kind in get_args(union):
        if is_dataclass(kind) and isinstance(value, dict) and set(value) <= {field.name for field in fields(kind)}:
            return kind
    return Any


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
