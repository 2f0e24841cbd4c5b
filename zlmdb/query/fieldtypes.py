"""What a model class says of its fields: which there are, and which values can be compared with each."""

from __future__ import annotations

import enum
import typing
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Optional, Union

from ..typeargs import UNIONS, annotated_names, nested_types, type_hints
from ..values.annotations import bound_types, qualifier, renamed
from ..values.base import is_a, is_free, typename

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


def type_at(annotation: Any, path: Sequence[str], localns: Optional[Mapping[str, Any]] = None) -> Any:
    """The type at *path* in values of a type; Any if that is not known. Raises `TypeError` where there is none.

    *localns* are names beside those of its module that its annotations may use.
    """
    for depth in range(len(path)):
        annotation = _last_type(annotation, path[: depth + 1], localns or {})
    return annotation


def _last_type(holder: Any, path: Sequence[str], names: Mapping[str, Any]) -> Any:
    """The type of the last field of *path*, which *holder* has."""
    holder, name = without_none(holder), path[-1]
    origin = typing.get_origin(holder) or holder
    if origin in UNIONS:
        return _type_in_some(typing.get_args(holder), path, names)
    if is_free(holder) or not is_a(origin, type):
        return Any
    if origin in _MAPPINGS:
        return (*typing.get_args(holder), Any, Any)[1]
    known = field_hints(origin, names)
    if name in known:
        return bound_types(origin, typing.get_args(holder), known)[name]
    if hasattr(origin, name) and not callable(getattr(origin, name)):
        return Any  # a property
    raise TypeError(
        f"{_written(path)}: {typename(origin)} has no field {name!r}, it has {', '.join(known) or 'none'}: name one of "
        f"its fields"
    )


def _type_in_some(holders: tuple[Any, ...], path: Sequence[str], names: Mapping[str, Any]) -> Any:
    """As `_last_type`, in those of *holders*, the parts of a Union, that have such a field."""
    found: list[Any] = []
    for holder in holders:
        with suppress(TypeError):
            found.append(without_none(_last_type(holder, path, names)))
    if not found:
        raise TypeError(
            f"{_written(path)}: none of {', '.join(map(typename, holders))} has a field {path[-1]!r}: name one of "
            f"theirs"
        )
    union: Any = Union
    return union[tuple(found)]


def _written(path: Sequence[str]) -> str:
    return "value" + "".join(f".{name}" if name.isidentifier() else f"[{name!r}]" for name in path)


def field_hints(cls: type[Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of the fields of a class, which may use *names*; Any for each if they cannot be read."""
    try:
        hints = type_hints(cls, {**names, **nested_types(cls)})
    except (NameError, TypeError):  # names are known all the same
        return dict.fromkeys(annotated_names(cls), Any)
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not ClassVar}


def compares(annotation: Any, operator: str, value: Any) -> bool:
    """Whether a field of type *annotation* can be compared with *value*, which is not None."""
    for one in value if operator == "in" else (value,):
        if one is not None and not fits(annotation, one):
            return False
    return operator in ("==", "!=", "in") or has_order(value)


def without_none(annotation: Any) -> Any:
    """*annotation* without what says nothing of the values that are there: Optional, Annotated, Required, new names."""
    same: Any = renamed(annotation)
    if same is not None:
        return without_none(same)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated or qualifier(annotation) is not None:
        return without_none(args[0])
    if origin in UNIONS and type(None) in args:
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
    if origin in UNIONS:
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
