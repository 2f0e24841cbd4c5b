"""The fields of model classes, as indexes and ``key=`` take them: their types, and their values in a record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from ..typeargs import UNIONS, field_types, is_uuid, present_type
from ..values.base import is_a, is_free

_FIELD_LISTS = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "__pydantic_fields__", "_fields")


def has_attributes(model: Any) -> bool:
    """Whether records of the type *model* have their fields as attributes."""
    cls = get_origin(model) or model
    if is_free(model) or not isinstance(cls, type):
        return False
    # Of a new class, the ABC asks each subclass of Mapping, all tables among them, which a model need not wait for.
    return not (hasattr(cls, "__getitem__") and issubclass(cls, Mapping))  # a TypedDict is a dict, too


def is_typed_dict(model: Any) -> bool:
    """Whether *model* is a TypedDict, whose fields are items."""
    return hasattr(model, "__total__")


def may_lack(cls: Any, name: str) -> bool:
    """Whether values of the class *cls* may be without the item *name*, as those of a TypedDict."""
    if not is_typed_dict(cls):
        return False
    return name not in cls.__required_keys__ or "NotRequired" in repr(cls.__annotations__.get(name))


def member_at(value: Any, path: str) -> Any:
    """A field of a dict, or of a model if the declared type allows both; None if it or its holder is absent."""
    if is_a(value, Mapping) and path in value:
        return value[path]
    holder: Any = value
    for name in path.split("."):
        holder = holder.get(name) if is_a(holder, Mapping) else getattr(holder, name, None)
    return holder


def attribute_at(value: Any, path: str) -> Any:
    """The attribute at *path*, ``address.city``; None if an object on the path is None."""
    holder = value
    for name in path.split("."):
        if holder is None:
            return None
        holder = holder.get(name) if is_a(holder, Mapping) else getattr(holder, name)
    return holder


def changes_fields(cls: Any) -> bool:
    """Whether *cls* may change its fields each time that an object of it is created.

    Such a class sees changes of the object since, so a record that is read can differ from what was stored.
    """
    if any(
        hasattr(cls, hook)
        for hook in ("__post_init__", "__attrs_post_init__", "__attrs_init__", "__pydantic_validator__")
    ):
        return True
    unpickled: Any = getattr(cls, "__setstate__", None)
    if unpickled is not None and getattr(unpickled, "__module__", "") not in ("dataclasses", "attr._make"):
        return True
    fields = getattr(cls, "__dataclass_fields__", None)
    if fields is not None:
        code: Any = getattr(cls.__init__, "__code__", None)
        written = code is None or code.co_filename != "<string>"  # and not made by `dataclasses`
        return written or not all(field.init for field in fields.values())
    attributes = getattr(cls, "__attrs_attrs__", ())
    return any(one.converter is not None or one.validator is not None or not one.init for one in attributes)


def known_type(model: Any, field: str, localns: Any) -> Any:
    """The type of *field* in *model*; None if it is not known, or not yet."""
    try:
        found = field_types(model, localns).get(field)
        if found is None and "." in field:
            found = nested_type(model, field, localns)
    except (NameError, TypeError):
        return None
    return None if found is None or is_free(found) else found


def nested_type(model: Any, field: str, localns: Any) -> Any:
    """The type at a path such as ``address.city``, Any if it is not known. Raises `TypeError` if there is none."""
    from ..query.fieldtypes import type_at  # late: few programs have such an index

    return present_type(type_at(model, field.split("."), localns))


def listed_fields(cls: Any) -> list[str]:
    """The names of the fields of a model class; empty for what does not list them."""
    return [getattr(field, "name", field) for mark in _FIELD_LISTS for field in getattr(cls, mark, ())]


def may_be(field: Any, key: Any) -> bool:
    """Whether a field of the type *field* may have keys of the type *key*; true for types that are not known here."""
    origin = get_origin(field)
    if origin in UNIONS:
        return any(may_be(one, key) for one in get_args(field) if one is not type(None))
    if origin is Annotated:
        return may_be(get_args(field)[0], key)
    if get_origin(key) is Annotated:
        return may_be(field, get_args(key)[0])
    kinds = _kind(field), _kind(key)
    if None in kinds or kinds[1] in _NO_KEYS:  # what is no key type is refused as such
        return True
    return kinds[0] is kinds[1] or kinds == (int, float)


def shown_type(annotation: Any) -> str:
    """A type as a program writes it."""
    named = isinstance(annotation, type) and get_origin(annotation) is None  # on 3.9, list[int] is a type as well
    return annotation.__name__ if named else str(annotation).replace("typing.", "")


_EXACT = (int, str, bytes, bool, float, datetime, date, time, timedelta)
_NO_KEYS = (list, set, frozenset, dict)


def has_elements(annotation: Any) -> bool:
    """Whether fields of this type have lists or sets, which are no keys, but whose elements may be."""
    return (get_origin(annotation) or annotation) in (list, set, frozenset)


def _kind(annotation: Any) -> Any:
    """What two types of different kinds have no value in common by; None if that is not known."""
    origin = get_origin(annotation) or annotation
    return annotation if _is_exact(annotation) else origin if origin in (tuple, *_NO_KEYS) else None


def _is_exact(annotation: Any) -> bool:
    """Whether fields of this type have values of no other type, and are read back as they were."""
    return annotation in _EXACT or is_uuid(annotation)


def comes_back(annotation: Any) -> bool:
    """Whether a field of this type is read back with the same key: false for a float of 4 bytes, or for any type."""
    origin: Any = get_origin(annotation)
    if origin is Annotated:
        inner = get_args(annotation)[0]
        return inner is not float and comes_back(inner)
    if origin is tuple:
        return all(comes_back(part) for part in get_args(annotation) if part is not Ellipsis)
    return _is_exact(annotation) or (isinstance(annotation, type) and issubclass(annotation, Enum))
