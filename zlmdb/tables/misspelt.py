"""Attributes that a block has assigned to an object under a misspelt name, and that would be lost."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import Any, Optional

from .. import errors

_CLOSE = 0.75
"""The similarity from which on a name is a misspelt one: two letters of four in the wrong order."""

_WORDS = re.compile(r"\w+")
_PLAIN_WORDS = (
    "Any Annotated Decimal Dict FrozenSet List Literal None NoneType Optional Set Tuple UUID Union bool builtins bytes "
    "class collections complex date datetime decimal dict float frozenset int list object set str time timedelta tuple "
    "typing uuid"
)
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""Words of types in which no object has fields of its own."""


def assigned_to(cls: Any) -> Optional[frozenset[str]]:
    """The fields of *cls*, if its objects take an attribute of any other name, too, and do not store it; else None."""
    return _assigned_to(cls)


@lru_cache(maxsize=256)  # not on the function above: to mypy a ``type[V]`` is not hashable
def _assigned_to(cls: Any) -> Optional[frozenset[str]]:
    if all(["__slots__" in vars(base) for base in cls.__mro__[:-1]]):  # they take no other names
        return None
    body: dict[str, Any] = dict(cls.__dict__)
    if "__dataclass_fields__" in body:
        return frozenset(body["__dataclass_fields__"])
    return frozenset([one.name for one in body["__attrs_attrs__"]]) if "__attrs_attrs__" in body else None


def nested_in(cls: Any) -> tuple[str, ...]:
    """The fields of *cls* that may have objects with fields of their own, or lists and the like of such objects."""
    return _nested_in(cls)


@lru_cache(maxsize=256)
def _nested_in(cls: Any) -> tuple[str, ...]:
    body: dict[str, Any] = dict(cls.__dict__)
    fields: Any = [*body.get("__dataclass_fields__", {}).values(), *body.get("__attrs_attrs__", ())]
    return tuple([field.name for field in fields if not _PLAIN.issuperset(_WORDS.findall(_written(field.type)))])


def _written(kind: Any) -> str:
    return kind if type(kind) is str else repr(kind)


def check_names(table: Any, key: Any, value: Any) -> None:
    """Raise `EncodeError` if the object *value* of the record *key* was given a name that is close to a field's.

    Names that its class knows, such as cached properties, or that objects have when they are read, are left alone, and
    so are private ones.
    """
    lost = _lost(value)
    had: dict[str, Any] = table[key].__dict__ if lost and key in table else {}
    for name in lost:
        if name not in had:
            raise _refused(table, key, value.__class__, name)


def check_nested(table: Any, key: Any, value: Any) -> None:
    """As `check_names`, of the objects in the fields of *value*.

    Where their class has code of its own that makes an object, any name that is none of a field may be from that.
    """
    with suppress(RecursionError):  # of an object that contains itself: what encodes it says so
        _check_fields(table, key, value)


def _check_fields(table: Any, key: Any, value: Any) -> None:
    for name in nested_in(value.__class__):
        _check_held(table, key, getattr(value, name, None))


def _check_held(table: Any, key: Any, held: Any) -> None:
    kind: Any = held.__class__
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        for one in held:
            _check_held(table, key, one)
    elif kind is dict:
        for one in held.values():
            _check_held(table, key, one)
    elif kind is not str:
        fields = assigned_to(kind)
        if fields is not None and len(held.__dict__) > len(fields) and not _makes_more(kind):
            for name in _lost(held):
                raise _refused(table, key, kind, name)
        _check_fields(table, key, held)


def _makes_more(cls: Any) -> bool:
    """Whether *cls* has code that may give its objects other attributes when they are made."""
    own = ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__", "__new__", "__setattr__", "__setstate__")
    made = getattr(getattr(cls, "__dataclass_params__", None), "init", not hasattr(cls, "__attrs_init__"))
    return not made or any([getattr(cls, name, None) is not getattr(object, name, None) for name in own])


def _lost(value: Any) -> list[str]:
    """The names of attributes of *value* that are close to that of a field."""
    cls: Any = value.__class__
    fields = assigned_to(cls) or frozenset()
    return [name for name in value.__dict__ if name not in fields and _meant(cls, name)]


def _refused(table: Any, key: Any, cls: Any, name: str) -> Exception:
    return table._storage.named(
        errors.EncodeError(
            f"{cls.__name__} has no field {name!r}, so what the block has assigned to it would not be stored: "
            f"{_meant(cls, name)}"
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
