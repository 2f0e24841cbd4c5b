"""The fields of the model classes in a type, found in its annotations."""

from __future__ import annotations

import enum
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

from ..typeargs import UNIONS
from .annotations import (
    DICTS,
    LISTS,
    SETS,
    Reader,
    arrays_of,
    bound_types,
    former_names,
    given_id,
    model_record,
    qualifier,
    renamed,
)
from .base import Serializer, is_a, is_free
from .description import Description, Type, format_of, takes_two
from .flat.markers import I32, I64, InStruct, Width
from .modelclasses import Member
from .shapes import NamedTupleRecord

SCALARS: dict[Any, str] = {
    type(None): "none", bool: "bool", int: "int", float: "float", complex: "complex", str: "str", bytes: "bytes",
    bytearray: "bytes", memoryview: "bytes", UUID: "uuid", datetime: "datetime", date: "date", time: "time",
    timedelta: "timedelta", Decimal: "decimal",
}  # fmt: skip
_PLAIN = (type(None), bool, int, float, str, bytes)
_BEYOND = 1 << 64  # ints of CBOR end here


class Fields:
    """The fields of the models in a type: their *description*, and the names that they had before.

    *former* has for each model, in the order of the description, the former names by field.
    """

    def __init__(self, description: Description, former: list[dict[str, tuple[str, ...]]]) -> None:
        self.description = description
        self.former = former


def fields_of(
    annotation: Any, serializer: Serializer[Any], localns: Optional[Mapping[str, Any]] = None
) -> Optional[Fields]:  # fmt: skip
    """The fields of the values of the type *annotation* as *serializer* stores them; None where there is no model."""
    form = format_of(serializer.name)
    if form is None or is_free(annotation) or serializer.model is None:
        return None
    reading = _Reading(form, localns)
    whole = reading.type(annotation)
    if not reading.models:
        return None
    return Fields({"type": whole, "models": reading.models}, reading.former)


def type_of(annotation: Any, form: str, localns: Optional[Mapping[str, Any]] = None) -> Type:
    """The recorded form of a type without models, as the format *form* stores it."""
    return _Reading(form, localns).type(annotation)


class _Reading:
    """Reads the annotations of one type. Each class is read once, so that a class may hold itself."""

    def __init__(self, form: str, localns: Optional[Mapping[str, Any]]) -> None:
        self.form = form
        self.hints = Reader("msgpack", bytes, localns).hints
        self.numbers: dict[Any, int] = {}
        self.models: list[dict[str, Any]] = []
        self.former: list[dict[str, tuple[str, ...]]] = []
        self.widths: dict[Any, str] = {}  # of an Enum in FlatBuffers, which has one everywhere

    def type(self, annotation: Any, *, struct: bool = False) -> Type:
        """The recorded form of *annotation*; of a class that is no model ``"object"``."""
        if annotation is None:
            return "none"
        if is_free(annotation):
            return "any"
        if isinstance(annotation, type) and annotation in SCALARS:
            return SCALARS[annotation]
        same: Any = renamed(annotation)
        if same is not None:
            return self.type(same)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            return self.annotated(args)
        if origin in UNIONS:
            return self.union(args)
        if origin is Literal:
            return self.values("one of", args, I64)
        if qualifier(annotation) is not None:
            return self.type(args[0])
        return self.container(origin or annotation, args) or self.model(annotation, origin or annotation, args, struct)

    def annotated(self, args: tuple[Any, ...]) -> Type:
        """The recorded form of an Annotated: in FlatBuffers its width counts."""
        arrays = arrays_of(args)
        if arrays is not None:
            return arrays.name
        widths = [extra.fbs for extra in args[1:] if isinstance(extra, Width)]
        if self.form != "flatbuffers" or not widths:
            return self.type(args[0], struct=self.form == "flatbuffers" and InStruct in args[1:])
        self.widths.setdefault(args[0], widths[0])
        inner = self.type(args[0])
        return ["stored as", inner[1] if inner[0] == "stored as" else inner, widths[0]]

    def union(self, args: tuple[Any, ...]) -> Type:
        """The recorded form of a Union, in an order of its own."""
        found: list[Type] = []
        for member in map(self.type, args):
            found += member[1:] if isinstance(member, list) and member[0] == "union" else [member]
        unique = [member for position, member in enumerate(found) if member not in found[:position]]
        if self.form == "flatbuffers":  # in which the order counts
            unique.sort(key=lambda member: member == "none")
        else:
            unique.sort(key=lambda member: (member == "none", repr(member)))
        return unique[0] if len(unique) == 1 else ["union", *unique]

    def container(self, origin: Any, args: tuple[Any, ...]) -> Optional[Type]:
        """The recorded form of a list, set, tuple or dict; None for any other class."""
        items = [*args, Any, Any]
        if origin in LISTS or (origin is tuple and (not args or args[-1] is Ellipsis)):
            return ["list", self.type(items[0] if args else Any)]
        if origin in SETS:
            return ["set", self.type(items[0])]
        if origin is tuple:
            return ["tuple", *[self.type(part) for part in args if part != ()]]
        if origin in DICTS:
            return ["dict", self.type(items[0]), self.type(items[1])]
        return None

    def model(self, annotation: Any, cls: Any, args: tuple[Any, ...], struct: bool) -> Type:
        """The recorded form of any other class: an Enum, a model, or one of which nothing is known."""
        if annotation in self.numbers:
            return ["model", self.numbers[annotation]]
        if is_a(cls, type) and issubclass(cls, enum.Enum):
            return self.enum(cls)
        try:
            record, listed = model_record(cls, "")
            hints = bound_types(cls, args, self.hints(cls))
        except (TypeError, AttributeError):
            return "object"
        number = self.numbers[annotation] = len(self.models)
        model: dict[str, Any] = {"kind": self.kind(record, struct)}
        self.models.append(model)
        self.former.append({})
        tag = getattr(record, "tag", None)
        if tag is not None and self.form != "pickle":
            model["tag"] = list(tag)
        model["fields"] = self.fields(listed, hints, number)
        return ["model", number]

    def enum(self, cls: Any) -> Type:
        """The recorded form of an Enum."""
        values = [_plain(member.value) for member in cls]
        flags = self.form == "flatbuffers" and issubclass(cls, enum.Flag)
        small = all([type(value) is int and -(2**31) <= value < 2**31 for value in values])
        found = self.values("flags" if flags else "one of", values, I32 if small else I64)
        return ["stored as", found[1], self.widths.setdefault(cls, found[2])] if found[0] == "stored as" else found

    def values(self, word: str, values: Sequence[Any], width: Width) -> list[Any]:
        """The recorded form of what is one of *values*, or several flags; integers of FlatBuffers have a *width*."""
        found = [word, *sorted(values, key=repr)]
        wide = self.form == "flatbuffers" and all([type(value) is int for value in values])
        return ["stored as", found, width.fbs] if wide else found

    def kind(self, record: Any, struct: bool) -> str:
        """How the fields of a model are found in what is stored."""
        if self.form == "flatbuffers":
            return "struct" if struct else "ids"
        return "list" if isinstance(record, NamedTupleRecord) and self.form != "pickle" else "map"

    def fields(self, listed: Sequence[Member], hints: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
        """The recorded form of the fields of the model *number*."""
        found: list[dict[str, Any]] = []
        position = 0
        for member in listed:
            hint: Any = hints.get(member.name, Any)
            stored = member.name if self.form in ("pickle", "flatbuffers") else member.stored
            field: dict[str, Any] = {"name": stored, "type": self.type(hint)}
            field.update(_default(member))
            if self.form == "flatbuffers":
                position += takes_two(field["type"])
                given = given_id(member, hint)
                field["id"] = position if given is None else given
                position += 1
            found.append(field)
            former = former_names(hint)
            if former:
                self.former[number][stored] = former
        return found


def _default(member: Member) -> dict[str, Any]:
    """What is recorded of a default: the value if it is plain, that of an empty container, or that there is one."""
    if member.absent:
        return {"absent": True}
    if member.has_default:
        value = _plain(member.default)
        return {"default": value} if value is not _NOT_PLAIN else {"made": True}
    if member.factory is None:
        return {}
    if member.factory in (list, set, tuple, frozenset):
        return {"default": []}
    return {"default": {}} if member.factory is dict else {"made": True}


_NOT_PLAIN: Any = object()


def _plain(value: Any) -> Any:
    """*value* if a catalogue can hold it as it is."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if type(value) is int and not -_BEYOND < value < _BEYOND:
        return _NOT_PLAIN
    return value if type(value) in _PLAIN else _NOT_PLAIN
