"""Table classes: the arguments of their declaration, and the details computed from it."""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Optional, TypeVar, get_args

from ..typeargs import type_arguments, words_of
from ..values.base import is_a
from .index import DeclaredIndex

if TYPE_CHECKING:
    TableType = ABCMeta
else:

    class TableType(ABCMeta):
        """Lets a table class take ``name=``: before Python 3.11 `ABCMeta` has a parameter of that name."""

        def __new__(mcls, class_name, bases, namespace, /, **kwargs):
            if "name" in kwargs:
                namespace["_table_name"] = kwargs.pop("name")
            return super().__new__(mcls, class_name, bases, namespace, **kwargs)

        def __init__(cls, class_name, bases, namespace, /, **kwargs):
            super().__init__(class_name, bases, namespace)


def declared_indexes(cls: type) -> dict[str, DeclaredIndex[Any]]:
    """The indexes that a table class declares or inherits, by name, in the order of declaration."""
    found: dict[str, DeclaredIndex[Any]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, DeclaredIndex):
                found[name] = value
    return found


def former_names(was: object) -> tuple[str, ...]:
    """The former names that a class gives as *was*: a text, or a tuple of texts. Raises `TypeError`."""
    given: Any = (was,) if is_a(was, str) else was
    if not is_a(given, tuple) or not all([is_a(name, str) and name for name in given]):
        raise TypeError(f"was={was!r}: expected the former name of the table, or a tuple of names")
    names: tuple[str, ...] = given
    return names


def check_index_types(cls: Any, table: type) -> None:
    """Raise `TypeError` for an index of *cls*, derived from *table*, whose key type is not that of its field.

    Nothing is said where the types are not known yet.
    """
    body: Mapping[str, Any] = cls.__dict__
    indexes: list[DeclaredIndex[Any]] = [one for one in body.values() if isinstance(one, DeclaredIndex)]
    if not indexes:
        return
    try:
        arguments = type_arguments(cls, table, cls._locals_seen)
    except TypeError:
        return
    if len(arguments) == 2:
        value = arguments[1]
        for index in indexes:
            index._check_types(get_args(value)[0] if hasattr(value, "__metadata__") else value)


def calling_locals(mentioned: Iterable[Any] = ()) -> Optional[dict[str, Any]]:
    """The local names where a class is being created, for annotations that use them; None at module level.

    Only types, modules, and the names that the annotations *mentioned* use: anything else would live as long as the
    class.
    """
    frame: Any = sys._getframe(1)  # documented, and on PyPy too
    while frame is not None and frame.f_code.co_name in ("__init_subclass__", "calling_locals", "__new__"):
        frame = frame.f_back
    if frame is None or frame.f_locals is frame.f_globals:
        return None
    words = words_of(mentioned)
    return {name: value for name, value in frame.f_locals.items() if name in words or _is_type(value)}


def _is_type(value: Any) -> bool:
    """Whether *value* can be part of an annotation: a class, an alias, a TypeVar or NewType, or a module of them."""
    cls: Any = value.__class__
    return (
        isinstance(value, (type, ModuleType, TypeVar))
        or cls.__module__ in ("typing", "types", "typing_extensions", "_typing")
        or (cls is FunctionType and hasattr(value, "__supertype__"))  # a NewType before Python 3.10
    )
