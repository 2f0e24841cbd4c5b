"""The description of a type of values in a file: the fields of its model classes, as plain data.

A description is a map of the ``type`` of the values and the ``models`` in it. A type is a text (``"str"``) or a list of
its parts (``["list", "str"]``); ``["model", 0]`` is the first of the models. A model has a ``kind`` and ``fields``, in
order, each with its ``name`` when stored, its ``type``, and its ``default`` if there is one; ``made`` means that the
default is not plain data, ``absent`` that records may lack the field. ``["one of", 1, 3]`` is an Enum or a Literal. In
FlatBuffers one of integers has a width, ``["stored as", ["one of", 1, 3], "int"]``, and a Flag is ``flags``.

Kinds: a ``map`` has its fields by name, a ``list`` by position, ``ids`` by the numbers of FlatBuffers, and a ``struct``
of FlatBuffers never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from .base import is_a

Type = Union[str, list[Any]]
"""A type as it is recorded."""

Description = dict[str, Any]

_FORMATS = ("msgpack", "json", "cbor", "pickle", "flatbuffers")
_KINDS = ("map", "list", "ids", "struct")
_DEEPEST = 100  # levels of a recorded type

VALUES = ("one of", "flags")
"""Words before plain values, where others are before types."""


def number_where_absent(values: Sequence[int], flags: bool) -> int:
    """What FlatBuffers read where a field of an Enum of these *values* is absent, and has no default of its own."""
    return 0 if flags or 0 in values else min(values)


def format_of(codec: str) -> Optional[str]:
    """The format inside the name of a codec: ``"json"`` of ``"zlib(json)"``; None for one that is not ours."""
    inner = codec.rpartition("(")[2].rstrip(")")
    return inner if inner in _FORMATS else None


def spelled(kind: Type, models: list[dict[str, Any]], *, inside: bool = False) -> str:
    """A recorded type as a program would write it; *inside* of a model without the fields of others.

    >>> spelled(["union", ["list", "int"], "none"], [])
    'list[int] | none'
    """
    if isinstance(kind, str):
        return kind
    name, parts = str(kind[0]), kind[1:]
    if name == "model":
        fields: list[dict[str, Any]] = models[int(parts[0])]["fields"]
        return "{...}" if inside else "{" + ", ".join([_spelled_field(field, models) for field in fields]) + "}"
    if name in VALUES:
        return f"{name} {', '.join(map(repr, parts))}"
    if name == "stored as":
        return f"{spelled(parts[0], models, inside=inside)} stored as {parts[1]}"
    texts = [spelled(part, models, inside=inside) for part in parts]
    return " | ".join(texts) if name == "union" else f"{name}[{', '.join(texts)}]"


def _spelled_field(field: Mapping[str, Any], models: list[dict[str, Any]]) -> str:
    """A recorded field as a program would write it: ``age: int = 0``."""
    default = f" = {field['default']!r}" if "default" in field else " = ..." if "made" in field else ""
    return f"{field['name']}: {spelled(field['type'], models, inside=True)}{default}"


def checked_description(found: Any) -> Description:
    """*found*, if it is a description. Raises ValueError: a file may hold anything."""
    if found.__class__ is not dict or found.get("models").__class__ is not list:  # so written for checkers
        raise ValueError("the description of its fields is not valid")
    models: list[Any] = found["models"]
    for model in models:
        if model.__class__ is not dict or model.get("kind") not in _KINDS or model.get("fields").__class__ is not list:
            raise ValueError("the description of the fields of a model is not valid")
        for field in model["fields"]:
            if field.__class__ is not dict or field.get("name").__class__ is not str:
                raise ValueError("a field without a name")
            if field.get("type").__class__ is not str:
                _check_type(field.get("type"), len(models), 0)
        if model["kind"] == "ids":
            _renumber(model["fields"])
    if not models or found.get("type") != ["model", 0]:
        _check_type(found.get("type"), len(models), 0)
    return found


def takes_two(kind: Any) -> bool:
    """Whether a field of the type takes two numbers in FlatBuffers, of which the second one is its id."""
    return is_a(kind, list) and kind[0] == "union" and len(kind) - kind.count("none") > 2


def _renumber(fields: list[Any]) -> None:
    """Give *fields* the ids that they have, if a union has that of the field before it, as zlmdb recorded once."""
    ids = [field.get("id") for field in fields]
    if ids == [*range(len(ids))] and any([takes_two(field["type"]) for field in fields]):
        number = -1
        for field in fields:
            number = field["id"] = number + 1 + takes_two(field["type"])


def _check_type(kind: Any, models: int, depth: int) -> None:
    if is_a(kind, str):
        return
    if not is_a(kind, list) or not kind or not is_a(kind[0], str) or depth > _DEEPEST:
        raise ValueError("a type of its fields is none")
    name, *parts = kind
    if name == "model":
        if len(parts) != 1 or type(parts[0]) is not int or not 0 <= parts[0] < models:
            raise ValueError("a type of its fields names a missing model")
    elif name == "stored as":
        if len(parts) != 2 or not is_a(parts[1], str):
            raise ValueError("a type of its fields is none")
        _check_type(parts[0], models, depth + 1)
    elif name not in VALUES:
        for part in parts:
            _check_type(part, models, depth + 1)
