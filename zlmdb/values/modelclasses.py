"""The fields of a model class: how to take each from an object, and how to create an object from them."""

from __future__ import annotations

import dataclasses
import inspect
import keyword
from collections.abc import Mapping
from typing import Any, Callable, Optional

from ..base import typename
from ..describe import extras
from ..pydantics import argument, fields_of, is_pydantic
from .markers import Id


class Member:
    """A field as its class lists it."""

    def __init__(self, name: str, get: str, build: str = "$") -> None:
        """*get* and *build* are templates: of the object, and of the field's value in the call that makes one."""
        self.name, self.get, self.build = name, get, build
        self.late = False
        """Whether it is no argument, but set after the object is made."""
        self.id: Optional[int] = None
        self.has_default = False
        self.default: Any = None
        self.factory: Optional[Callable[[], Any]] = None

    def given(self, metadata: Mapping[Any, Any]) -> None:
        """Take the id from *metadata*, if there is one."""
        number: Any = metadata.get("id")
        self.id = int(number) if number is not None else None

    def defaults(self, value: Any) -> None:
        """Give it a default."""
        self.has_default, self.default = True, value


def given_id(member: Optional[Member], hint: Any) -> Optional[int]:
    """The id that a class gives its field *member* of the type *hint*: by metadata, or by an `Id`."""
    if member is not None and member.id is not None:
        return member.id
    return next((extra.number for extra in extras(hint) if isinstance(extra, Id)), None)


def members(cls: Any, where: str) -> tuple[list[Member], str, bool]:
    """The fields of *cls*, the call that makes an object, and whether the class has a say in that.

    In the call, ``cls`` stands for the class and ``$`` for the arguments. Raises TypeError for what is no model class.
    """
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls), "cls($)", hasattr(cls, "__post_init__") or not _own_init(cls)
    if hasattr(cls, "__attrs_attrs__"):
        found = cls.__attrs_attrs__
        checks = any(field.validator is not None or field.converter is not None for field in found)
        made = not hasattr(cls, "__attrs_init__") and "__attrs_attrs__" in vars(_owner(cls, "__init__"))
        return (
            [_attribute(field) for field in found],
            "cls($)",
            checks or not made or hasattr(cls, "__attrs_post_init__"),
        )
    if hasattr(cls, "__struct_config__"):
        return _struct(cls), "cls($)", hasattr(cls, "__post_init__")
    if is_pydantic(cls):
        return _pydantic(cls, where), "cls($)", True
    mro: tuple[Any, ...] = getattr(cls, "__mro__", ())
    if tuple in mro and hasattr(cls, "_fields"):
        made = "_fields" in vars(_owner(cls, "__new__")) and _owner(cls, "__init__") is object
        return _namedtuple(cls), "cls($)", not made
    if dict in mro and hasattr(cls, "__total__"):
        if cls.__optional_keys__:
            raise TypeError(f"{where}: {typename(cls)}: FlatBuffers needs all keys of a TypedDict; use Optional")
        names: list[str] = sorted(cls.__required_keys__)
        return [Member(name, f"$[{_literal(name)}]", f"{_literal(name)}: $") for name in names], "{$}", False
    raise TypeError(
        f"{where}: {typename(cls)} cannot be stored as FlatBuffers: use a dataclass, an attrs class, a NamedTuple, a "
        "TypedDict or a msgspec.Struct, or give build= and cast="
    )


def _literal(key: str) -> str:
    """*key* in a template, where ``$`` would stand for the value."""
    return repr(key).replace("$", r"\x24")


def _owner(cls: Any, method: str) -> Any:
    """The class of which *cls* has the *method*."""
    return next(base for base in cls.__mro__ if method in vars(base))


def _own_init(cls: Any) -> bool:
    """Whether the ``__init__`` of a dataclass is the one that was made for it: the same as one that is made now.

    `dataclasses.dataclass` leaves an ``__init__`` that the class has alone, and a subclass may have its own.
    """
    copies: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(cls):
        options: dict[str, Any] = {"init": field.init, "default": field.default}
        options["default_factory"] = field.default_factory
        if getattr(field, "kw_only", False) is True:
            options["kw_only"] = True
        copies.append((field.name, Any, dataclasses.field(**options)))
    frozen = bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))
    try:
        copy: Any = dataclasses.make_dataclass("copy", copies, frozen=frozen)
    except (TypeError, ValueError):  # a field that `dataclasses` would not take
        return False
    return bool(_body(cls) == _body(copy))


def _body(cls: Any) -> Any:
    code: Any = getattr(cls.__init__, "__code__", None)
    return None if code is None else (code.co_code, code.co_names, code.co_varnames, code.co_freevars)


def is_bare(cls: Any, *, frozen_too: bool = False) -> bool:
    """Whether an object of *cls* is made by setting its attributes, and nothing else would happen: most dataclasses.

    Those that are frozen are left out, unless *frozen_too* is given: `object` sets their attributes.
    """
    if not (hasattr(cls, "__dataclass_fields__") and _own_init(cls)) or hasattr(cls, "__post_init__"):
        return False
    frozen = frozen_too and cls.__dataclass_params__.frozen
    if (cls.__setattr__ is not object.__setattr__ and not frozen) or cls.__new__ is not object.__new__:
        return False
    if type(cls).__call__ is not type.__call__:
        return False
    fields = dataclasses.fields(cls)
    attributes: list[Any] = [inspect.getattr_static(cls, field.name, None) for field in fields]
    plain = [
        inspect.ismemberdescriptor(attribute) or not inspect.isdatadescriptor(attribute) for attribute in attributes
    ]
    return all(plain) and all(field.init for field in fields)


def _dataclass(cls: Any) -> list[Member]:
    found: list[Member] = []
    for field in dataclasses.fields(cls):
        keyword = getattr(field, "kw_only", False) is True
        member = Member(field.name, f"$.{field.name}", f"{field.name}=$" if keyword else "$")
        member.late = not field.init
        member.given(field.metadata)
        if field.default is not dataclasses.MISSING:
            member.defaults(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            member.factory = field.default_factory
        found.append(member)
    return found


def _attribute(field: Any) -> Member:
    argument = getattr(field, "alias", None) or field.name.lstrip("_")
    member = Member(field.name, f"$.{field.name}", f"{argument}=$")
    member.late = not field.init
    member.given(field.metadata)
    factory: Any = getattr(field.default, "factory", None)
    if factory is not None and hasattr(field.default, "takes_self"):
        member.factory = factory if not field.default.takes_self else None
    elif getattr(field.default, "name", "") != "NOTHING":
        member.defaults(field.default)
    return member


def _struct(cls: Any) -> list[Member]:
    import msgspec

    found: list[Member] = []
    for field in msgspec.structs.fields(cls):
        if keyword.iskeyword(field.name):  # which `msgspec.defstruct` takes
            raise TypeError(
                f"{typename(cls)}.{field.name}: a field in FlatBuffers cannot have the name of a Python keyword"
            )
        member = Member(field.name, f"$.{field.name}", f"{field.name}=$")
        if field.default is not msgspec.NODEFAULT:
            member.defaults(field.default)
        elif field.default_factory is not msgspec.NODEFAULT:
            member.factory = field.default_factory
        found.append(member)
    return found


def _pydantic(cls: Any, where: str) -> list[Member]:
    found: list[Member] = []
    for name, field in fields_of(cls).items():
        member = Member(name, f"$.{name}", f"{argument(cls, name, where)}=$")
        if field.default_factory is not None:
            member.factory = field.default_factory
        elif not field.is_required():
            member.defaults(field.default)
        found.append(member)
    return found


def _namedtuple(cls: Any) -> list[Member]:
    found: list[Member] = []
    for name in cls._fields:
        member = Member(name, f"$.{name}")
        if name in cls._field_defaults:
            member.defaults(cls._field_defaults[name])
        found.append(member)
    return found
