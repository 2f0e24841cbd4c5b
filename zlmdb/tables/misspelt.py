"""Attributes that a block has assigned to an object under a misspelt name, and that would be lost."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Optional

from .. import errors

_CLOSE = 0.75
"""The similarity from which on a name is a misspelt one: two letters of four in the wrong order."""


def assigned_to(cls: Any) -> Optional[frozenset[str]]:
    """The fields of *cls*, if its objects take an attribute of any other name, too, and do not store it; else None."""
    return _assigned_to(cls)


@lru_cache(maxsize=256)
def _assigned_to(cls: Any) -> Optional[frozenset[str]]:
    if all(["__slots__" in vars(base) for base in cls.__mro__[:-1]]):  # they take no other names
        return None
    body: dict[str, Any] = dict(cls.__dict__)
    if "__dataclass_fields__" in body:
        return frozenset(body["__dataclass_fields__"])
    return frozenset([one.name for one in body["__attrs_attrs__"]]) if "__attrs_attrs__" in body else None


def check_names(table: Any, key: Any, value: Any) -> None:
    """Raise `EncodeError` if the object *value* of the record *key* was given a name that is close to a field's.

    Names that its class knows, such as cached properties, or that objects have when they are read, are left alone, and
    so are private ones.
    """
    cls: Any = value.__class__
    own: dict[str, Any] = value.__dict__
    fields = assigned_to(cls) or frozenset()
    lost = [name for name in own if name not in fields and _meant(cls, name)]
    had: dict[str, Any] = table[key].__dict__ if lost and key in table else {}
    for name in lost:
        if name not in had:
            raise table._storage.named(
                errors.EncodeError(
                    f"{cls.__name__} has no field {name!r}, so what the block has assigned to it would not be "
                    f"stored: {_meant(cls, name)}"
                ),
                key,
            )


@lru_cache(maxsize=256)
def _meant(cls: Any, name: str) -> str:
    """Which field *name* may stand for, in words; empty if it is a name of its own."""
    if name.startswith("_") or hasattr(cls, name):
        return ""
    import difflib  # late: for this question only

    close = difflib.get_close_matches(name, sorted(assigned_to(cls) or ()), 1, _CLOSE)
    return f"did you mean {close[0]!r}?" if close else ""
