"""What is known of a value before there is one: its type, as the annotations of the model tell it."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number
from typing import Annotated, Any, Literal, Optional, cast
from uuid import UUID

from ...typeargs import UNIONS
from ...values.annotations import bound_types, qualifier, renamed
from ...values.base import is_a, is_free
from ..fieldtypes import field_hints, fits, without_none

PLAIN = (bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, UUID, complex)
"""Types whose values cannot change, whose methods are pure, and which people compare and order."""

NUMBERS = {bool, int, float, Decimal}
CONTAINERS = (list, tuple, set, frozenset, dict)
_MISSING: Any = object()


class Known:
    """What is known of a value.

    *cls* is its class if that is known for sure, else None. *optional*: it may be None. *unknown*: nothing is known,
    as of Any.
    """

    __slots__ = ("_attributes", "_element", "annotation", "cls", "home", "optional", "required", "unknown")

    def __init__(self, annotation: Any, home: Home) -> None:
        self.home = home
        self.annotation: Any = without_none(annotation)
        self.unknown = is_free(annotation) and annotation is not None
        self.optional = may_be_none(annotation)
        self.cls = class_of(self.annotation)
        self.required: Known = self
        self._attributes: Optional[dict[str, Known]] = None
        self._element: Any = _MISSING
        if self.optional:
            alone = self.annotation is not annotation and not may_be_none(self.annotation)
            self.required = home.known(self.annotation) if alone else SOMETHING

    @classmethod
    def of_value(cls, value: Any) -> Known:
        """What is known of a value that is there."""
        return NONE if value is None else _OF_KIND.get(kind_of(value), SOMETHING)

    @property
    def plain(self) -> bool:
        """Whether it is of one of the types whose values compare as one expects."""
        return self.cls in PLAIN and not self.optional

    def fields(self) -> dict[str, Known]:
        """The fields of a model, by name."""
        if self._attributes is None:
            self._attributes = {name: self.home.known(one) for name, one in self._hints().items()}
        return self._attributes

    def _hints(self) -> Mapping[str, Any]:
        cls: Any = self.cls
        if cls is None or cls in PLAIN or cls in CONTAINERS:
            return {}
        return bound_types(cls, typing.get_args(self.annotation), field_hints(cls, self.home.names))

    def element(self) -> Known:
        """What is known of what iterating gives."""
        if self._element is _MISSING:
            self._element = self._find_element()
        return cast("Known", self._element)

    def _find_element(self) -> Known:
        args = typing.get_args(self.annotation)
        if self.cls in (str, bytes):
            return STR if self.cls is str else INT
        if not args or (self.cls is tuple and args[1:] != (Ellipsis,)):
            return UNKNOWN
        return self.home.known(args[0])

    def positions(self) -> Optional[list[Known]]:
        """The parts of a tuple whose length its type tells; None for everything else."""
        args = typing.get_args(self.annotation)
        cls: Any = self.cls
        if cls is not None and derives(cls, tuple) and hasattr(cls, "_fields"):
            return [self.fields().get(name, UNKNOWN) for name in cls._fields]  # that of collections tells no types
        if cls is not tuple or not args or args[-1] is Ellipsis or args == ((),):
            return None
        return [self.home.known(arg) for arg in args]

    def item(self) -> Known:
        """What is known of what a key or number in brackets gives."""
        args = typing.get_args(self.annotation)
        cls: Any = self.cls
        if cls is not None and derives(cls, dict) and len(args) == 2:
            return self.home.known(args[1])
        return self.element() if self.cls in (str, bytes, list, tuple) else UNKNOWN

    def fits(self, value: Any) -> bool:
        """Whether something of this type may equal *value*, or be ordered beside it."""
        if self.cls is type(value) and typing.get_origin(self.annotation) is not Literal:
            return True
        if self.cls in NUMBERS and is_a(value, Number):
            return True
        if not (is_strict(self.cls) and is_strict(kind_of(value))):
            return True
        return fits(self.annotation, value)

    def __repr__(self) -> str:
        return f"Known({self.annotation!r}{', optional' if self.optional else ''})"


class Home:
    """Where annotations are read: *names* are those beside their module's that they may use."""

    def __init__(self, names: Optional[Mapping[str, Any]] = None) -> None:
        self.names: Mapping[str, Any] = names or {}
        self._known: dict[Any, Known] = {}

    def known(self, annotation: Any) -> Known:
        """What *annotation* tells."""
        with suppress(TypeError):  # an Annotated may carry what has no hash
            found = self._known.get(annotation)
            if found is None:
                found = self._known[annotation] = Known(annotation, self)
            return found
        return Known(annotation, self)


def kind_of(value: object) -> Any:
    """The class of *value*, of which type checkers need to know nothing."""
    return type(value)


def names_of(holder: object) -> Mapping[str, Any]:
    """What *holder* has in its own dict."""
    return vars(holder)


def derives(cls: Any, *bases: Any) -> bool:
    """`issubclass`, without telling checkers what *cls* is."""
    return issubclass(cls, bases)


def may_be_none(annotation: Any) -> bool:
    """Whether a value of the type *annotation* may be None."""
    same: Any = renamed(annotation)
    if same is not None:
        return may_be_none(same)
    if is_free(annotation) or annotation is type(None):
        return True
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in UNIONS:
        return any(may_be_none(arg) for arg in args)
    if origin is Literal:
        return None in args
    if origin is Annotated or qualifier(annotation) is not None:
        return may_be_none(args[0])
    return False


def class_of(annotation: Any) -> Optional[type[Any]]:
    """The class of all values of the type *annotation*, None where it is one of several, or not told."""
    origin: Any = typing.get_origin(annotation) or annotation
    if origin is Literal:
        kinds: set[Any] = {type(arg) for arg in typing.get_args(annotation) if arg is not None}
        return kinds.pop() if len(kinds) == 1 else None
    if origin is object or not is_a(origin, type):
        return None
    if hasattr(origin, "__total__"):
        return cast("type[Any]", origin)
    abstract = getattr(origin, "__abstractmethods__", None) or origin.__module__ in ("typing", "collections.abc")
    return None if abstract or getattr(origin, "_is_protocol", False) else cast("type[Any]", origin)


def is_enum(known: Known) -> bool:
    """Whether values are members of an Enum, one each (flags are combined)."""
    cls = known.cls
    return cls is not None and issubclass(cls, enum.Enum) and not issubclass(cls, enum.Flag)


def has_own_equality(cls: Optional[type[Any]]) -> bool:
    """Whether *cls* is an Enum whose members may equal what is none of them, or each other."""
    return (
        cls is not None
        and issubclass(cls, enum.Enum)
        and any("__eq__" in names_of(one) for one in cls.__mro__ if one.__module__ not in ("enum", "builtins"))
    )


def is_bare_enum(cls: Any) -> bool:
    """Whether members of the Enum *cls* do nothing but what members do: then a function may hold them as they are."""
    for one in cls.__mro__:
        own: Mapping[str, Any] = names_of(one)
        if one.__module__ not in ("enum", "builtins") and any(_is_code(name, member) for name, member in own.items()):
            return False
    return all(type(member.value) in PLAIN for member in cls)


def _is_code(name: str, member: Any) -> bool:
    if isinstance(member, types.FunctionType):
        # The last is `object.__new__`, which PyPy 3.11 has as a function.
        return member.__module__ != "enum" and name != "_new_member_"
    return isinstance(member, (property, classmethod, staticmethod)) and not name.startswith("_")


class _Something:
    """The annotation of what is never None, and of which nothing more is known."""


def is_strict(cls: Optional[type[Any]]) -> bool:
    """Whether instances of *cls* equal nothing but their like: others may say anything when they are compared."""
    return cls is not None and (cls in PLAIN or cls in CONTAINERS or issubclass(cls, enum.Enum))


_HOME = Home()
SOMETHING = Known(_Something, _HOME)
"""What is known of what is not None, and nothing more."""
SOMETHING.cls = None
_OF_KIND: Mapping[Any, Known] = {kind: _HOME.known(kind) for kind in (*PLAIN, *CONTAINERS)}
UNKNOWN = _HOME.known(Any)
NONE = _HOME.known(type(None))
BOOL = _HOME.known(bool)
INT = _HOME.known(int)
FLOAT = _HOME.known(float)
STR = _HOME.known(str)
BYTES = _HOME.known(bytes)
LIST = _HOME.known(list)
DATE = _HOME.known(date)
TIME = _HOME.known(time)
DATETIME = _HOME.known(datetime)
TIMEDELTA = _HOME.known(timedelta)
TEXTS = _HOME.known(list[str])
