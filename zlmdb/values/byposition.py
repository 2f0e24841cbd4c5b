"""NamedTuples in plain data that have their fields by name, as FlatBuffers store them; other formats store lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from .base import is_a
from .scalars import Shape
from .shapes import DictOf, ListOf, NamedTupleRecord, Record, TupleOf, UnionOf, walk


def by_position(shape: Shape) -> Optional[Callable[[Any], Any]]:
    """A function that turns dicts into lists where *shape* has NamedTuples; None if it has none.

    A field that such a dict lacks gets its default. A dict that lacks a field without a default stays as it is.
    """
    if not any(isinstance(part, NamedTupleRecord) for part in walk(shape)):
        return None
    return lambda data: _listed(shape, data)


def _listed(shape: Shape, data: Any) -> Any:
    if isinstance(shape, UnionOf):
        for member in shape.members:
            data = _listed(member, data)
        return data
    if isinstance(shape, NamedTupleRecord) and is_a(data, dict):
        if any(field.required and field.name not in data for field in shape.fields):
            return data
        return [
            _listed(field.shape, data[field.name]) if field.name in data else field.shape.dump(field.member.default)
            for field in shape.fields
        ]
    if isinstance(shape, Record) and is_a(data, dict):
        shapes = {field.stored: field.shape for field in shape.fields}
        return {name: _listed(shapes[name], one) if name in shapes else one for name, one in data.items()}
    if isinstance(shape, DictOf) and is_a(data, dict):
        return {key: _listed(shape.value, one) for key, one in data.items()}
    if isinstance(shape, ListOf) and is_a(data, list):
        return [_listed(shape.item, one) for one in data]
    if isinstance(shape, TupleOf) and is_a(data, list) and len(data) == len(shape.parts):
        return [_listed(part, one) for part, one in zip(shape.parts, data)]
    return data
