"""The kinds of model classes: the fields of each with their defaults, and how an object is made of them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, Callable, Optional

from .pydantics import argument, check_release, fields_of, is_pydantic

_MISSING: Any = object()


class Member:
    """A field as its class lists it."""

    def __init__(self, name: str, get: str = "", build: str = "", argument: str = "") -> None:
        """*get* and *build* are templates: of the object, and of the field's value in the call that makes one.

        In that call it may be given as *argument*, by default its name.
        """
        self.name, self.get, self.argument = name, get or f"$.{name}", argument or name
        self.build = build or f"{self.argument}=$"
        self.stored = name
        """Its name in the stored map."""
        self.required = True
        """Whether it must be given. Attrs and msgspec are not asked: they know it themselves."""
        self.absent = False
        """Whether values may be without it, as without a key of a TypedDict."""
        self.late = False
        """Whether it is no argument, but set after the object is made."""
        self.id: Optional[int] = None
        self.has_default = False
        self.default: Any = None
        self.factory: Optional[Callable[[], Any]] = None
        self.factory_of_object: Optional[Callable[[Any], Any]] = None
        """What makes the default of the object whose other fields are set (attrs)."""

    def given(self, metadata: Mapping[Any, Any]) -> None:
        """Take the id from *metadata*, if there is one."""
        number: Any = metadata.get("id")
        self.id = int(number) if number is not None else None

    def defaults(self, value: Any, factory: Any, missing: Any) -> None:
        """Give it a default: *value*, or what *factory* makes, of which at least one is *missing*."""
        if value is not missing:
            self.required, self.has_default, self.default = False, True, value
        elif factory is not missing:
            self.required, self.factory = False, factory


class ModelClass:
    """What kind of model class *cls* is, and its *members*."""

    def __init__(self, cls: Any, kind: str, members: list[Member], *, hooked: bool = False) -> None:
        """*hooked*: whether the class has a say in what an object holds: a validator, a ``__post_init__``."""
        self.cls, self.kind, self.members, self.hooked = cls, kind, members, hooked
        self.call = "{$}" if kind == "TypedDict" else "cls($)"
        """How an object is made: ``cls`` stands for the class and ``$`` for the arguments."""

    def is_custom(self) -> bool:
        """Whether making an object calls code of the class: *hooked*, or an ``__init__`` or ``__new__`` of its own."""
        cls = self.cls
        if self.hooked:
            return True
        if self.kind == "dataclass":
            return not _own_init(cls)
        if self.kind == "attrs":
            return hasattr(cls, "__attrs_init__") or "__attrs_attrs__" not in vars(_owner(cls, "__init__"))
        if self.kind == "NamedTuple":
            return "_fields" not in vars(_owner(cls, "__new__")) or _owner(cls, "__init__") is not object
        return False


def model_class(cls: Any, where: str) -> Optional[ModelClass]:
    """What is known of *cls*, which stands at *where*; None for what is no model class.

    Raises TypeError for a Pydantic model whose objects cannot be made of their fields.
    """
    if hasattr(cls, "__dataclass_fields__"):
        return ModelClass(cls, "dataclass", _dataclass(cls), hooked=hasattr(cls, "__post_init__"))
    if hasattr(cls, "__attrs_attrs__"):
        found = cls.__attrs_attrs__
        checks = any(field.validator is not None or field.converter is not None for field in found)
        hooked = checks or hasattr(cls, "__attrs_post_init__")
        return ModelClass(cls, "attrs", [_attribute(field) for field in found], hooked=hooked)
    if hasattr(cls, "__struct_config__"):
        return ModelClass(cls, "Struct", _struct(cls), hooked=hasattr(cls, "__post_init__"))
    check_release(cls, where)
    if is_pydantic(cls):
        return ModelClass(cls, "Pydantic", _pydantic(cls, where), hooked=True)
    mro: tuple[Any, ...] = getattr(cls, "__mro__", ())
    if tuple in mro and hasattr(cls, "_fields"):
        return ModelClass(cls, "NamedTuple", _namedtuple(cls))
    if dict in mro and hasattr(cls, "__total__"):
        return ModelClass(cls, "TypedDict", _typed_dict(cls))
    return None


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
        member = Member(field.name, build="" if keyword else "$")
        member.late = not field.init
        member.given(field.metadata)
        member.defaults(field.default, field.default_factory, dataclasses.MISSING)
        found.append(member)
    return found


def _attribute(field: Any) -> Member:
    member = Member(field.name, argument=getattr(field, "alias", None) or field.name.lstrip("_"))
    member.late = not field.init
    member.given(field.metadata)
    factory: Any = getattr(field.default, "factory", None)
    if factory is not None and hasattr(field.default, "takes_self"):
        if field.default.takes_self:
            member.factory_of_object = factory
        else:
            member.factory = factory
    elif getattr(field.default, "name", "") != "NOTHING":
        member.has_default, member.default = True, field.default
    member.required = False
    return member


def _struct(cls: Any) -> list[Member]:
    """The members as `msgspec.structs.fields` gives them, which needs all names that the annotations use."""
    import msgspec

    missing, found = msgspec.NODEFAULT, list[Member]()
    defaults = (missing,) * (len(cls.__struct_fields__) - len(cls.__struct_defaults__)) + cls.__struct_defaults__
    for name, stored, default in zip(cls.__struct_fields__, cls.__struct_encode_fields__, defaults):
        member = Member(name)
        member.stored = stored
        made = type(default).__module__.startswith("msgspec") and hasattr(default, "factory")
        member.defaults(missing if made else default, default.factory if made else missing, missing)
        member.required = False
        found.append(member)
    return found


def _pydantic(cls: Any, where: str) -> list[Member]:
    found: list[Member] = []
    for name, field in fields_of(cls).items():
        member = Member(name, argument=argument(cls, name, where))
        if not field.is_required():
            made = field.default_factory
            member.defaults(field.default if made is None else _MISSING, made, _MISSING)
        found.append(member)
    return found


def _namedtuple(cls: Any) -> list[Member]:
    found = [Member(name, build="$") for name in cls._fields]
    for member in found:
        member.defaults(cls._field_defaults.get(member.name, _MISSING), _MISSING, _MISSING)
    return found


def _typed_dict(cls: Any) -> list[Member]:
    found: list[Member] = []
    for name in sorted(cls.__required_keys__ | cls.__optional_keys__):
        member = Member(name, f"$[{_literal(name)}]", f"{_literal(name)}: $")
        member.absent = name in cls.__optional_keys__
        member.required = not member.absent
        found.append(member)
    return found
