"""A model class made from the description in a file, to read records whose own class no longer exists."""

from __future__ import annotations

import dataclasses
from copy import copy as copied
from enum import Enum
from itertools import takewhile
from typing import Annotated, Any, Literal, NamedTuple, Union

from .base import Serializer, is_a
from .description import Description, Type
from .fields import SCALARS
from .flat.markers import FLOATS, INTEGERS, InStruct
from .resolve import of_format

# Of the types that are recorded alike the first one: bytes.
_TYPES: dict[str, Any] = {**{name: cls for cls, name in reversed(SCALARS.items())}, "none": None, "any": Any}
_WIDTHS = {width.fbs: width for width in (*INTEGERS, *FLOATS)}


def make_model(description: Description, *, lenient: bool = False, pickled: bool = False) -> Any:
    """The type that *description* describes, made of new dataclasses and named tuples.

    *lenient*: a record may lack a field whose default the file does not hold, and has `UNKNOWN` there. *pickled*: the
    fields contain members of Enums and objects of the program's own classes, as pickles do. Raises TypeError where that
    is not possible: for a class that the file does not describe, or that contains itself.
    """
    try:
        return _Builder(description["models"], lenient, pickled).type(description["type"])
    except (KeyError, IndexError, ValueError) as error:  # of a newer version, or damaged
        raise TypeError(f"the file describes its records in a way that is not known here: {error!r}") from error


class Unknown:
    """Stands for a value that the file does not hold."""

    def __repr__(self) -> str:
        return "nothing, and only the program knows the default"


UNKNOWN: Any = Unknown()


def plain_fields(value: Any) -> Any:
    """What MessagePack stores for *value* of a made model, as plain data, without what is `UNKNOWN`."""
    if value is None or type(value) in _PLAIN:
        return value
    if is_a(value, Enum):
        return plain_fields(value.value)
    if dataclasses.is_dataclass(value):
        known = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: plain_fields(one) for name, one in known.items() if one is not UNKNOWN}
    if is_a(value, dict):
        return {plain_fields(key): plain_fields(one) for key, one in value.items()}
    if is_a(value, (list, tuple, set, frozenset)):
        return [plain_fields(one) for one in takewhile(_is_known, value)]
    of_type: Serializer[Any] = of_format("msgpack", type(value))
    return of_format("msgpack").decode(of_type.encode(value))


_PLAIN = (str, int, float, bool, bytes)


def _is_known(value: Any) -> bool:
    return value is not UNKNOWN


class _Builder:
    """Creates the models of one description, each once."""

    def __init__(self, models: list[dict[str, Any]], lenient: bool, pickled: bool) -> None:
        self._models = models
        self._lenient = lenient
        self._pickled = pickled
        self._made: dict[int, Any] = {}

    def type(self, kind: Type) -> Any:
        """The annotation for a recorded type."""
        special: Any = {"list": list, "set": set, "dict": dict, "tuple": tuple}
        if isinstance(kind, str):
            if kind not in _TYPES:
                raise TypeError(f"the file does not describe the type {kind!r}")
            return _TYPES[kind]
        word, *parts = kind
        if self._pickled and (word in ("one of", "flags") or (word == "model" and self._made)):
            return Any
        if word == "model":
            return self.model(parts[0])
        if word == "one of":
            return _literal(tuple(parts))
        if word == "flags":  # any of them together
            return int
        if word == "stored as":
            marked: Any = Annotated
            return marked[self.type(parts[0]), _WIDTHS[parts[1]]]
        inner = tuple([self.type(part) for part in parts])
        if word == "union":
            joined: Any = Union
            return joined[inner]
        return special[word][inner[0] if word in ("list", "set") else inner]

    def model(self, number: int) -> Any:
        """The class of a recorded model."""
        model = self._models[number]
        if number in self._made:
            if self._made[number] is None:
                raise TypeError("a model that contains itself cannot be made from its description")
            return self._made[number]
        self._made[number] = None
        fields = [(field["name"], self._type_of(field), _field(field, self._lenient)) for field in model["fields"]]
        name = f"Model{number}"
        made: Any = (
            _named_tuple(name, fields)
            if model["kind"] == "list"
            else dataclasses.make_dataclass(name, _ordered(fields))
        )  # fmt: skip
        if model["kind"] == "struct":
            marked: Any = Annotated
            made = marked[made, InStruct]
        self._made[number] = made
        return made

    def _type_of(self, field: dict[str, Any]) -> Any:
        kind = self.type(field["type"])
        if not (self._pickled and _is_unknown(field, self._lenient)):
            return kind
        joined: Any = Union  # pickles are compared with their types as a whole
        return joined[kind, Unknown]


def _is_unknown(field: dict[str, Any], lenient: bool) -> bool:
    """Whether a record may have `UNKNOWN` in *field*."""
    return lenient and "default" not in field and ("made" in field or "absent" in field)


def _literal(values: tuple[Any, ...]) -> Any:
    special: Any = Literal
    return special[values]


def _named_tuple(name: str, fields: list[tuple[str, Any, Any]]) -> Any:
    """A class of records that are stored as lists."""
    typed: Any = NamedTuple  # checkers want to know the fields
    made: Any = typed(name, [(field, kind) for field, kind, _ in fields])
    defaults = [one.default_factory for _, _, one in fields if one.default_factory is not dataclasses.MISSING]
    values = tuple([make() for make in defaults])
    made.__new__.__defaults__ = values
    made._field_defaults = dict(zip(made._fields[len(fields) - len(values) :], values))
    return made


def _field(field: dict[str, Any], lenient: bool) -> Any:
    options: dict[str, Any] = {}
    if "id" in field:
        options["metadata"] = {"id": field["id"]}
    if "default" in field:
        default = set(field["default"]) if field["type"][0] == "set" else field["default"]
        options["default_factory"] = lambda: copied(default)
    elif _is_unknown(field, lenient):
        options["default_factory"] = lambda: UNKNOWN
    return dataclasses.field(**options)


def _ordered(fields: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """Fields with defaults come last, as `dataclasses` requires; FlatBuffers and pickles do not depend on the order."""
    return sorted(fields, key=lambda one: one[2].default_factory is not dataclasses.MISSING)
