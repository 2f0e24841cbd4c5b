"""What a followed function sees in place of captured values: proxies, which show what these hold, or recorders."""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import re
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .callables import Cached, Function, Getter, Method, Partial, Pure
from .captured import (
    MISSING,
    comes_first,
    is_settled,
    looks_up_plainly,
    read_attribute,
    read_class,
    read_own,
    read_static,
)
from .fields import is_field_of_tuple
from .known import CONTAINERS, PLAIN, SOMETHING, Known, is_bare_enum, kind_of, names_of
from .linked import Tables, table
from .methods import METHODS
from .nodeof import has_plain_zone, holds_recorded
from .opaque import CapturedProxy, Truthy, parameter
from .pure import CLASSES, PURE, TRANSPARENT
from .recorder import Recorder, applied
from .standins import STAND_INS

if TYPE_CHECKING:
    from .session import Session

_PLAIN_CLASSES = (type, enum.EnumMeta)
_PARTIAL: Any = functools.partial
_CACHED: Any = type(functools.lru_cache(lambda: None))


class Class(CapturedProxy):
    """A class: what it defines is seen; instances are made of plain classes and of models."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        cls = self.zlmdb_original()
        if name.startswith("__") or type(cls) not in _PLAIN_CLASSES:
            return self.zlmdb_blocked(f"attribute {name}")
        if cls in METHODS and name in METHODS[cls]:
            return functools.partial(_unbound, cls, name)
        if isinstance(cls, enum.EnumMeta) and name in cls.__members__:
            return self.zlmdb_part(read_attribute, name)
        member = read_static(cls, name)
        if isinstance(member, types.ClassMethodDescriptorType):  # date.fromisoformat is one
            return self.zlmdb_part(read_attribute, name)
        return self.zlmdb_session.of_class(self, self.zlmdb_slot, read_static, name, member)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        cls = self.zlmdb_original()
        own = STAND_INS.get(cls)
        if own is not None:
            return own(self.zlmdb_session, *args, **kwargs)
        if cls in CLASSES:
            if not holds_recorded(args) and not holds_recorded(kwargs):
                return cls(*args, **kwargs)
            return applied(self.zlmdb_session, cls, args, kwargs, CLASSES[cls])
        if len(args) == 1 and not kwargs and _finds_members(cls):
            known = self.zlmdb_session.home.known(cls)
            return applied(self.zlmdb_session, cls, args, {}, known) if holds_recorded(args) else cls(*args)
        if is_made_by_fields(cls):
            inspect.signature(cls).bind(*args, **kwargs)
            return applied(self.zlmdb_session, cls, args, kwargs, self.zlmdb_session.home.known(cls), raises=False)
        return self.zlmdb_blocked("raising" if issubclass(cls, BaseException) else "a call")

    def __bool__(self) -> bool:
        return True if type(self.zlmdb_original()) is type else cast("bool", self.zlmdb_blocked("the truth"))


def _unbound(cls: type[Any], name: str, holder: Any, *args: Any, **kwargs: Any) -> Any:
    """A method of a plain class, called with what it is to be a method of: ``str.lower(b.title)``."""
    if isinstance(holder, Recorder):
        if holder.zlmdb_known.cls is cls:
            return getattr(holder, name)(*args, **kwargs)
        return holder.zlmdb_trace.block(f"{cls.__name__}.{name} of {holder.zlmdb_node!r}")
    return getattr(cls, name)(holder, *args, **kwargs)


def _finds_members(cls: Any) -> bool:
    """Whether calling *cls* looks up a member of an Enum, and runs no code that somebody wrote."""
    if not isinstance(cls, enum.EnumMeta) or issubclass(cls, enum.Flag) or not is_bare_enum(cls):
        return False
    return read_static(cls, "_missing_") is read_static(enum.Enum, "_missing_") and type(cls) in _PLAIN_CLASSES


def is_made_by_fields(cls: Any) -> bool:
    """Whether making an instance of *cls* runs no code that somebody wrote: dataclasses, named tuples, structs."""
    if any(hasattr(cls, name) for name in ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__")):
        return False
    own: Mapping[str, Any] = names_of(cls)
    kind = kind_of(cls)
    if kind is type and tuple in cls.__mro__ and hasattr(cls, "_fields"):
        return "_fields" in own and read_static(cls, "__init__") is names_of(object)["__init__"]
    params = own.get("__dataclass_params__")
    if params is not None and kind is type:
        return bool(params.init) and read_static(cls, "__new__") is names_of(object)["__new__"]
    return hasattr(cls, "__struct_fields__") and str(kind.__module__).startswith("msgspec")


class Module(Truthy):
    """A module: what it has is seen."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or read_own(self.zlmdb_original(), name) is MISSING:
            return self.zlmdb_blocked(f"attribute {name}")
        return self.zlmdb_part(read_own, name)


class Instance(CapturedProxy):
    """An object of a class that somebody wrote: its attributes are captured values, its methods are followed."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        value, cls = self.zlmdb_original(), kind_of(self.zlmdb_original())
        if name.startswith("__") or not looks_up_plainly(cls):
            return self.zlmdb_blocked(f"attribute {name}")
        member = read_static(cls, name)
        if isinstance(member, types.MemberDescriptorType) or is_field_of_tuple(cls, name, member):
            return self.zlmdb_part(read_attribute, name)
        if name in getattr(value, "__dict__", ()) and not comes_first(member):
            return self.zlmdb_part(read_own, name)
        if member is MISSING:
            raise AttributeError(name)
        return self.zlmdb_session.of_class(self, self.zlmdb_slot, read_class, name, member)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        member = read_class(self.zlmdb_original(), "__call__")
        if not isinstance(member, types.FunctionType):
            return self.zlmdb_blocked("a call")
        return self.zlmdb_session.see_read(self.zlmdb_slot, read_class, "__call__")(self, *args, **kwargs)

    def __bool__(self) -> bool:
        cls = kind_of(self.zlmdb_original())
        return True if not hasattr(cls, "__bool__") and not hasattr(cls, "__len__") else self.zlmdb_blocked("the truth")


def proxy_of(session: Session, slot: int) -> Any:
    """What a followed function sees of the captured value number *slot*."""
    value = session.values[slot]
    kind = kind_of(value)
    if value is None or kind is bool or value is ...:
        return value
    if kind in PLAIN or kind in CONTAINERS or kind in (re.Pattern, re.Match, range):
        if not has_plain_zone(value):
            return Recorder(session, parameter(session, slot, session.home.known(kind), settled=False), _known(value))
        return Recorder(session, parameter(session, slot, _known(value), settled=is_settled(value)), _known(value))
    if isinstance(value, enum.Enum):
        return value if is_bare_enum(kind) else CapturedProxy(session, slot)
    if kind is types.MethodType and _PURE_METHODS:
        for one in _PURE_METHODS:
            if value.__func__ is one.__func__ and value.__self__ is one.__self__:
                return Pure(session, slot, one, PURE[one])
    if kind in _SIGHTS and not (kind is types.FunctionType and (value in PURE or value in STAND_INS)):
        return _SIGHTS[kind](session, slot)
    return _other(session, slot, value)


def _known(value: Any) -> Known:
    kind = kind_of(value)
    return Known.of_value(value) if kind in PLAIN or kind in CONTAINERS else SOMETHING.home.known(kind)


_PURE_METHODS = [one for one in PURE if type(one) is types.MethodType]
"""Pure functions that are methods of an object: on PyPy those of `unicodedata`."""

_SIGHTS: dict[Any, Any] = {
    types.FunctionType: Function,
    types.MethodType: Method,
    types.ModuleType: Module,
    _PARTIAL: Partial,
    operator.attrgetter: Getter,
    operator.itemgetter: Getter,
}
if _CACHED is not types.FunctionType:  # as on PyPy
    _SIGHTS[_CACHED] = Cached


def _other(session: Session, slot: int, value: Any) -> Any:
    """What is seen of a value that is neither plain nor of one of the types of Python that hold code."""
    if is_function(value):
        if value in TRANSPARENT:
            return value
        if value in PURE or (value in STAND_INS and not isinstance(value, type)):
            return Pure(session, slot, value, PURE.get(value, SOMETHING))
    if isinstance(value, type):
        return Class(session, slot)
    if isinstance(value, types.BuiltinFunctionType):
        return _builtin_method(session, slot, value)
    kind = kind_of(value)
    if read_static(kind, "_query_table") is not MISSING:
        return Tables(session, slot)
    if read_static(kind, "_query_types") is not MISSING:
        told = value._query_types()
        return CapturedProxy(session, slot) if told is None else table(session, slot, told)
    if (type(kind) is type and not is_written_in_c(kind)) or kind is types.SimpleNamespace:
        return Instance(session, slot)
    return CapturedProxy(session, slot)


def is_function(value: Any) -> bool:
    """Whether *value* is a function or plain class, so that comparing it runs no code of a program."""
    return kind_of(value) in (types.BuiltinFunctionType, types.FunctionType, type)


def _builtin_method(session: Session, slot: int, value: Any) -> Any:
    """Such as ``pattern.match``: a method of a plain value."""
    holder = value.__self__
    kind = kind_of(holder)
    if kind in METHODS and value.__name__ in METHODS[kind]:
        session.sure(slot, read_name)
        return getattr(session.see_read(slot, read_attribute, "__self__"), value.__name__)
    return CapturedProxy(session, slot)


def read_name(holder: Any, what: Any) -> Any:
    """What a function is called."""
    return holder.__name__


def is_written_in_c(cls: type[Any]) -> bool:
    """Whether *cls* is no class statement's: it may do anything."""
    return not cls.__flags__ & (1 << 9)
