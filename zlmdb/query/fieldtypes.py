"""What a model class says of its fields: which there are, and which values can be compared with each."""

from __future__ import annotations

import enum
import types
import typing
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Optional, Union

from ..typeargs import annotated_names, nested_types, type_hints
from ..values.base import is_a, is_free, show, typename
from ..values.describe import bound_types, renamed
from .expressions import Compare, spelled

_UNIONS: set[Any] = {Union, getattr(types, "UnionType", Union)}
_QUALIFIERS = {"Required", "NotRequired", "ReadOnly", "Final"}
_MAPPINGS: set[Any] = {
    dict,
    OrderedDict,
    defaultdict,
    Counter,
    typing.get_origin(typing.Mapping[str, int]),
    typing.get_origin(typing.MutableMapping[str, int]),
}
_NUMBERS: dict[Any, tuple[type[Any], ...]] = {
    int: (int, float),
    float: (int, float),
    Decimal: (int, float, Decimal),
}


_KEPT = 256
"""Fields whose types are kept for a table."""


class Model:
    """The type of a table's values, and the names beside those of its module that its annotations may use.

    *listed*: only the fields count, and no properties, since reading gives views.
    """

    def __init__(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None, *, listed: bool = False) -> None:
        self.annotation = annotation
        self._localns = localns or {}
        self._listed = listed
        self._types: dict[tuple[str, ...], Any] = {}  # resolving annotations takes longer than all else together

    def check(self, compare: Compare) -> None:
        """Raise `TypeError` for a field that there is not, or a value that the field cannot be compared with."""
        annotation = self.type_of(compare.path)
        if compare.value is None:
            if compare.operator not in ("==", "!="):
                raise TypeError(f"{compare!r}: None has no order, so this would never match: use is_none()")
            return
        ordered = compare.operator not in ("==", "!=", "in")
        for value in compare.value if compare.operator == "in" else (compare.value,):
            if value is not None and not fits(annotation, value):
                raise TypeError(
                    f"{compare!r}: {spelled(compare.path)} is of type {typename(annotation)}, which {show(value)} "
                    f"({typename(type(value))}) is not: compare it with a value of its type"
                )
            if ordered and not has_order(value):
                raise TypeError(f"{compare!r}: values of type {typename(type(value))} have no order: use == or in_()")

    def type_of(self, path: tuple[str, ...]) -> Any:
        """The annotation of the field at *path*; Any if that is not known. Raises `TypeError` where there is none."""
        found = self._types.get(path, self)
        if found is self:
            found = self.annotation
            for depth, name in enumerate(path):
                found = self._field(found, name, path[: depth + 1])
            if len(self._types) < _KEPT:
                self._types[path] = found
        return found

    def _field(self, holder: Any, name: str, path: tuple[str, ...]) -> Any:
        holder = without_none(holder)
        origin = typing.get_origin(holder) or holder
        if origin in _UNIONS:
            return self._field_of_some(typing.get_args(holder), name, path)
        if is_free(holder) or not is_a(origin, type):
            return Any
        if origin in _MAPPINGS:
            return (*typing.get_args(holder), Any, Any)[1]
        known = self._hints(origin)
        if name in known:
            return bound_types(origin, typing.get_args(holder), known)[name]
        if hasattr(origin, name) and not callable(getattr(origin, name)) and not self._listed:
            return Any  # a property
        raise TypeError(
            f"{spelled(path)}: {typename(origin)} has no field {name!r}, it has {', '.join(known) or 'none'}: name one "
            f"of its fields"
        )

    def _field_of_some(self, holders: tuple[Any, ...], name: str, path: tuple[str, ...]) -> Any:
        """The annotation of the field *name* in those of *holders*, the parts of a Union, that have it."""
        found: list[Any] = []
        for holder in holders:
            with suppress(TypeError):
                found.append(without_none(self._field(holder, name, path)))
        if not found:
            raise TypeError(
                f"{spelled(path)}: none of {', '.join(map(typename, holders))} has a field {name!r}: name one of theirs"
            )
        union: Any = Union
        return union[tuple(found)]

    def is_union(self, path: tuple[str, ...]) -> bool:
        """Whether the field at *path* is of one of several types, of which some may lack the next field."""
        holder = without_none(self.type_of(path))
        return typing.get_origin(holder) in _UNIONS

    def _hints(self, cls: type[Any]) -> dict[str, Any]:
        try:
            hints = type_hints(cls, {**self._localns, **nested_types(cls)})
        except (NameError, TypeError):  # names are known all the same
            return dict.fromkeys(annotated_names(cls), Any)
        return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}


def without_none(annotation: Any) -> Any:
    """*annotation* without what says nothing of the values that are there: Optional, Annotated, Required, new names."""
    same: Any = renamed(annotation)
    if same is not None:
        return without_none(same)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated or getattr(origin, "_name", None) in _QUALIFIERS:
        return without_none(args[0])
    if origin in _UNIONS and type(None) in args:
        rest = tuple(arg for arg in args if arg is not type(None))
        union: Any = Union
        return without_none(union[rest])
    return annotation


def fits(annotation: Any, value: Any) -> bool:
    """Whether a field of type *annotation* can be compared with *value*, which is not None."""
    annotation = without_none(annotation)
    origin: Any = typing.get_origin(annotation) or annotation
    if is_free(annotation):
        return True
    if origin in _UNIONS:
        return any(fits(part, value) for part in typing.get_args(annotation))
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in typing.get_args(annotation))
    if origin in _NUMBERS:
        return isinstance(value, _NUMBERS[origin]) and not isinstance(value, bool)
    if origin is date:
        return isinstance(value, date) and not isinstance(value, datetime)
    if not is_a(origin, type):
        return True
    if hasattr(origin, "__total__"):  # a TypedDict, whose values are dicts
        return isinstance(value, dict)
    if issubclass(origin, enum.Enum) and not isinstance(value, enum.Enum):
        return any(issubclass(origin, plain) and type(value) is plain for plain in (int, str))
    return isinstance(value, origin)


def has_order(value: Any) -> bool:
    """Whether ``<`` means something for *value*."""
    try:
        return (value < value) is not NotImplemented
    except TypeError:
        return False


def vouches(serializer: str) -> bool:
    """Whether what is read with it has the types that the model class says. A pickle may hold anything."""
    return "pickle" not in serializer and any([one in serializer for one in ("msgpack", "json", "cbor", "flatbuffers")])
