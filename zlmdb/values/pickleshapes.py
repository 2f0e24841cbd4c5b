"""What a type asks of a value that is pickled: less than of other formats, as pickles keep the class of every object.

Subclasses fit, so do types that no other format can hold, Unions of any types, keys of any type. An annotation that
says nothing that can be tested (a Protocol, a name that is not there at run time) fits everything.
"""

from __future__ import annotations

import collections.abc as abc
import enum
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Optional

from .annotations import DICTS, SETS, Reader, model_record
from .base import is_a, typename
from .checks import Check
from .modelclasses import Member
from .pydantics import argument, fields_of, is_pydantic, pydantic_version
from .scalars import Shape
from .shapes import Container, DictOf, ListOf, Record, TupleOf, TypedDictRecord, UnionOf, walk

_COMPANIONS: dict[Any, tuple[type[Any], ...]] = {
    datetime: (timezone, timedelta),
    time: (timezone, timedelta),
    uuid.UUID: (uuid.SafeUUID,),
}
"""What pickles of a type name besides it."""


_SMALL = frozenset(
    {type(None), bool, int, float, complex, str, bytes, uuid.UUID, date, datetime, time, timedelta, timezone, Decimal}
)
"""Classes whose objects hold no others."""


class InstanceOf(Shape):
    """Instances of a class and its subclasses; but no bool for an int, no datetime for a date."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self.label = "None" if cls is type(None) else typename(cls)
        self.sure = frozenset({cls})
        self.unbounded = cls not in _SMALL and not issubclass(cls, enum.Enum)

    def fits(self, value: Any) -> bool:
        if not isinstance(value, self.cls):
            return self.cls is float and type(value) is int
        return not ((self.cls is int and isinstance(value, bool)) or (self.cls is date and isinstance(value, datetime)))


class Anything(Shape):
    """What every value fits."""

    unbounded = True
    label = "any object"
    anything = True

    def fits(self, value: Any) -> bool:
        return True

    def test(self, check: Check, x: str) -> None:
        """Nothing."""


class OneOf(Shape):
    """The values of a Literal, by type and value."""

    def __init__(self, label: str, values: tuple[Any, ...]) -> None:
        self.label = label
        self.values: set[tuple[type[Any], Any]] = {(type(value), value) for value in values}

    def fits(self, value: Any) -> bool:
        return (type(value), value) in self.values


class Recurring(InstanceOf):
    """An object of a class that is inside of an object of this class."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.cls)
        self.record = record


class PydanticObject(Record):
    """An object of a Pydantic model, which pickles itself, with what is private and extra. Subclasses fit."""

    is_one = "isinstance(value, cls)"

    def __init__(self, cls: Any, reader: PickleReader) -> None:
        super().__init__(cls)
        self._reader = reader
        self._others: dict[Any, PydanticObject] = {}
        self.is_root = bool(getattr(cls, "__pydantic_root_model__", False))
        self.options: dict[str, Any] = {}
        """How ``model_validate`` is to be called."""
        self.arguments = {name: name for name in fields_of(cls)}
        """The names by which it takes the fields."""
        try:
            self.arguments = {name: argument(cls, name, self.label) for name in self.arguments}
        except TypeError:
            if pydantic_version() < (2, 11):
                raise
            self.options = {"by_name": True, "by_alias": False}

    def of_class(self, cls: Any) -> PydanticObject:
        """The shape of objects of *cls*, which is the class or a subclass."""
        if cls is self.cls:
            return self
        if cls not in self._others:
            self._others[cls] = self._reader.pydantic_object(cls)
        return self._others[cls]

    def test_value(self, check: Check, is_one: str = is_one) -> None:
        """Tests of ``value``: of its class. Pydantic makes the others, when it is read (`validated`)."""
        check.names["cls"] = self.cls
        check.refuse_if(f"not {is_one}")


class PickleReader(Reader):
    """Reads the annotations of one type, for pickles. It raises for none of them that are valid."""

    def __init__(self, localns: Optional[Mapping[str, Any]]) -> None:
        super().__init__("msgpack", bytes, localns)
        self.scalars = {cls: InstanceOf(cls) for cls in self.scalars}
        self.unfinished: dict[Any, Record] = {}
        self.recursive: set[Any] = set()
        """Classes whose objects may hold others of the same class, or themselves."""

    def free(self, annotation: Any) -> Shape:
        return Anything()

    def literal(self, label: str, args: tuple[Any, ...]) -> Shape:
        return OneOf(label, args)

    def key(self, annotation: Any, where: str) -> Shape:
        return self.shape(annotation, where)

    def union(self, annotation: Any, args: Sequence[Any], where: str) -> Shape:
        return UnionOf(typename(annotation), [self.shape(member, where) for member in args])

    def container(self, annotation: Any, origin: Any, args: tuple[Any, ...], where: str) -> Optional[Shape]:
        found: Optional[Shape] = super().container(annotation, origin, args, where)
        if isinstance(found, Container):
            found.subclasses = True
        if found is None or not hasattr(origin, "__abstractmethods__"):
            return found
        if origin not in (abc.Sequence, abc.MutableSequence) and origin not in SETS and origin not in DICTS:
            return InstanceOf(origin)  # an Iterable, which looking at may use up
        vars(found)["cls"] = origin
        return found

    def model(self, annotation: Any, cls: Any, args: tuple[Any, ...], where: str) -> Shape:
        if not is_a(cls, type) or getattr(cls, "_is_protocol", False):
            return Anything()
        if annotation in self.unfinished:
            self.recursive.add(cls)
            return Recurring(self.unfinished[annotation])
        if annotation in self.records:
            return self.records[annotation]
        if is_pydantic(cls):
            return self.pydantic_object(cls)
        try:
            record, listed = model_record(cls, where)
        except TypeError:
            return InstanceOf(cls)
        record.annotation = annotation
        if isinstance(record, TypedDictRecord):
            record.subclasses = True
        else:
            record.is_one = "isinstance(value, cls)"
        return self._defined(cls, record, listed, args, where)

    def pydantic_object(self, cls: Any) -> PydanticObject:
        """The shape of objects of the Pydantic model *cls*. Raises TypeError where its fields cannot be given."""
        record = PydanticObject(cls, self)
        self._defined(cls, record, [Member(name) for name in fields_of(cls)], (), record.label)
        return record

    def _defined(self, cls: Any, record: Record, listed: Sequence[Member], args: tuple[Any, ...], where: str) -> Record:
        annotation = record.annotation
        try:
            hints = self.hints(cls)
        except TypeError:
            hints = {}
        self.unfinished[annotation] = record
        self.define(record, listed, hints, args, where)
        del self.unfinished[annotation]
        self.records[annotation] = record
        return record


def classes_in(shape: Shape) -> Iterable[type[Any]]:
    """The classes that pickles of values of *shape* may name, as far as its annotations say."""
    for part in walk(shape):
        if isinstance(part, (InstanceOf, Record)):
            yield part.cls
            yield from _COMPANIONS.get(part.cls, ())
        elif isinstance(part, (ListOf, TupleOf, DictOf)) and part.cls.__module__ == "builtins":
            yield part.cls
        elif isinstance(part, OneOf):
            yield from (cls for cls, _ in part.values if issubclass(cls, enum.Enum))


def structure(shape: Shape) -> str:
    """All that *shape* asks for, in one text: equal for equal types."""
    lines: list[str] = []
    for part in walk(shape):
        names = [f"{field.name}:{field.shape.label}" for field in part.fields] if isinstance(part, Record) else []
        lines.append(" ".join([type(part).__name__, part.label, *names]))
    return "\n".join(lines)
