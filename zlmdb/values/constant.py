"""Decides which values cannot be changed in place, so that an edit cannot change them."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Any
from uuid import UUID

from .base import is_a

_ATOMS = (
    int, float, complex, str, bytes, type(None), UUID, dt.date, dt.time, dt.timedelta, dt.tzinfo, Enum,
    range, slice,
)  # fmt: skip
_NUMBERS = ("decimal", "fractions")  # modules that take long to import, and whose instances do not change


def is_constant(value: Any) -> bool:
    """Whether neither *value* nor anything in it can be changed.

    >>> is_constant((1, "a")), is_constant((1, ["a"]))
    (True, False)
    """
    if isinstance(value, _ATOMS):
        return True
    if is_a(value, (tuple, frozenset)):
        return all(is_constant(part) for part in value)
    cls: Any = value.__class__
    if cls.__module__ in _NUMBERS:
        return True
    if cls.__module__ == "numpy" and cls.__name__ != "ndarray":  # a scalar
        return True
    fields = _frozen_fields(cls)
    return fields is not None and all(is_constant(getattr(value, name, None)) for name in fields)


def varies(cls: type[Any]) -> bool:
    """Whether some objects of *cls* can be changed in place, and others cannot; also where none can be."""
    if issubclass(cls, (*_ATOMS, tuple, frozenset)) or cls.__module__ in (*_NUMBERS, "numpy"):
        return True
    return _frozen_fields(cls) is not None


def _frozen_fields(cls: Any) -> Any:
    """The names of the fields of a frozen model class; None for any other class."""
    parameters: Any = getattr(cls, "__dataclass_params__", None)
    if parameters is not None:
        return list(cls.__dataclass_fields__) if parameters.frozen else None
    config = getattr(cls, "__struct_config__", None)
    if config is not None:
        return cls.__struct_fields__ if config.frozen else None
    attributes: Any = getattr(cls, "__attrs_attrs__", None)
    if attributes is not None and getattr(cls.__setattr__, "__name__", "") == "_frozen_setattrs":
        return [one.name for one in attributes]
    return None


def new_value(value: Any) -> str:
    """What a program writes for a changed copy of the constant *value*."""
    cls: Any = value.__class__
    if hasattr(cls, "_replace"):
        return "value._replace(field=...)"
    if hasattr(cls, "__dataclass_fields__"):
        return "dataclasses.replace(value, field=...)"
    if hasattr(cls, "__struct_fields__"):
        return "msgspec.structs.replace(value, field=...)"
    return "attrs.evolve(value, field=...)" if hasattr(cls, "__attrs_attrs__") else "the new value"
