"""Decoding fields of a record into an object that has these fields and nothing else of the model class.

They are of the same types and have the same defaults as in the class; of an object inside the record, there may be some
fields only. Of few fields this takes a third of the time of all of them, as msgspec passes over the others. Of all
fields of a dataclass it takes less time, too: since Python 3.11 such an object can be made from them in the loop that
reads, faster than msgspec makes it. Classes that have a say in what their fields are (properties, ``__post_init__``)
are left out.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Collection, Sequence
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ..handlers import let_through
from ..namedtuples import NamedTuple
from ..typeargs import UNIONS, type_hints
from .base import Decode, Encode, is_a, library
from .modelclasses import Member, model_class
from .paths import AS_TEXT, IS_NONE, Path

if TYPE_CHECKING:
    from types import ModuleType

    from .models import Model


def narrowed(annotation: Any, paths: Collection[Path], msgspec: ModuleType) -> Optional[type[Any]]:
    """A class with what *paths* name of the model class *annotation*, for msgspec's decoders; None if there is none.

    There is none either if it would have most of the fields, all of them whole, or if what is to be read as a text may
    have another type than UUID, or be missing.
    """
    made = _narrowed(annotation, paths, msgspec)
    if made is None:
        return None
    cls, some = made
    return cls if some or 2 * len(cls.__struct_fields__) <= len(_readable(annotation, msgspec)) else None


def _narrowed(annotation: Any, paths: Collection[Path], msgspec: ModuleType) -> Optional[tuple[Any, bool]]:
    """The class, and whether only some of the fields of an object inside it are there."""
    parts: dict[str, list[Path]] = {}
    for name, *more in paths:
        parts.setdefault(name, []).append(tuple(more))
    found = _readable(annotation, msgspec)
    if not found or not found.keys() >= parts.keys() or any([_odd(annotation, one) for one in parts]):
        return None
    if any([(AS_TEXT,) in ends and found[name].definition[1:] != (UUID,) for name, ends in parts.items()]):
        return None
    chosen = [_with_some(found[name], parts[name], msgspec) for name in sorted(parts)]
    made = _defined(annotation, chosen, msgspec)
    return None if made is None else (made, any([one is not found[name] for one, name in zip(chosen, sorted(parts))]))


def _with_some(field: _Field, parts: Sequence[Path], msgspec: ModuleType) -> _Field:
    """*field* with a type that has *parts* of an object only; itself if more is needed, or it is no such object."""
    name, annotation, *default = field.definition
    if (AS_TEXT,) in parts:
        return field._replace(definition=(name, str))
    args = typing.get_args(annotation)
    optional = typing.get_origin(annotation) in UNIONS and len(args) == 2 and type(None) in args
    cls = next(arg for arg in args if arg is not type(None)) if optional else annotation
    made = None if () in parts else _narrowed(cls, [part for part in parts if part != (IS_NONE,)], msgspec)
    if made is None:
        return field
    some: Any = Optional
    return field._replace(definition=(name, some[made[0]] if optional else made[0], *default))


class Parts(NamedTuple):
    """How objects of a dataclass are made: each of *names* is an attribute of what *decode* gives, and of the object.

    *decode* is a function of stored bytes. The object is a new one of *cls*, without a call of its ``__init__``.
    """

    decode: Callable[[Any], Any]
    cls: type[Any]
    names: Sequence[str]


def parted(annotation: Any, msgspec: ModuleType) -> Optional[tuple[type[Any], Sequence[str]]]:
    """A class with all fields of the dataclass *annotation*, and their names, for `Parts`; None if that gains nothing.

    Before Python 3.11 the attributes of an object are in a dict from the beginning, and msgspec fills it faster.
    """
    made: Any = alike(annotation, msgspec) if sys.version_info >= (3, 11) else None
    if made is None or _own(annotation, "__setattr__") or _own(annotation, "__new__"):
        return None
    slots = any([hasattr(one, "__slots__") for one in annotation.__mro__[:-1]])
    return None if slots else (made, made.__struct_fields__)


def uuid_of_text(text: str) -> UUID:
    """The UUID that msgspec's decoders read of a *text*. Raises what they raise."""
    return library("msgspec", "msgspec").convert(text, UUID)


def rewriting(model: Model, fields: Collection[str], form: Any) -> Optional[tuple[Decode, Encode]]:
    """What `Serializer.rewriter` gives, of *model*, for which *form* is msgspec's module of a format."""
    encode = model.checked_of(fields, form.Encoder().encode)
    made = None if encode is None else alike(model.annotation, library("msgspec", "msgspec"))
    return None if made is None or encode is None else (form.Decoder(made).decode, encode)


def alike(annotation: Any, msgspec: ModuleType) -> Optional[type[Any]]:
    """A class of Structs with all fields of the dataclass *annotation*: msgspec writes the same bytes of them, faster.

    None if the fields are not all that there is to it.
    """
    found = _readable(annotation, msgspec) if hasattr(annotation, "__dataclass_fields__") else {}
    if not found or any([_odd(annotation, one) for one in found]):
        return None
    return _defined(annotation, list(found.values()), msgspec)


def _readable(annotation: Any, msgspec: ModuleType) -> dict[str, _Field]:
    """The fields of the class *annotation*; none if these are not all that there is to it."""
    if not is_a(annotation, type) or typing.get_origin(annotation) is not None or not _plain(annotation):
        return {}
    try:
        return _fields(annotation, msgspec)
    except (TypeError, NameError) as error:  # types that only the serializer could resolve
        let_through(error)
        return {}


def _defined(cls: type[Any], chosen: Sequence[_Field], msgspec: ModuleType) -> Optional[type[Any]]:
    try:
        made: type[Any] = msgspec.defstruct(
            cls.__name__, [one.definition for one in chosen], kw_only=True, gc=False,
            rename={one.definition[0]: one.stored for one in chosen},
        )  # fmt: skip
    except (TypeError, ValueError) as error:  # a default that msgspec does not take
        let_through(error)
        return None
    return made


class _Field(NamedTuple):
    """A field as `msgspec.defstruct` takes it, and its name in the stored map."""

    definition: tuple[Any, ...]
    stored: str


def _fields(cls: Any, msgspec: ModuleType) -> dict[str, _Field]:
    found = model_class(cls, "")
    if found is None:
        return {}
    is_struct = found.kind == "Struct"
    hints = {one.name: one.type for one in msgspec.structs.fields(cls)} if is_struct else type_hints(cls)
    return {one.name: _Field((one.name, hints[one.name], *_default(one, msgspec)), one.stored) for one in found.members}


def _default(member: Member, msgspec: ModuleType) -> list[Any]:
    if member.factory is not None:
        return [msgspec.field(default_factory=member.factory)]
    return [msgspec.field(default=member.default)] if member.has_default else []


def _plain(cls: type[Any]) -> bool:
    """Whether objects of *cls* are what is stored of them, a map of fields, and nothing more."""
    if hasattr(cls, "__post_init__") or hasattr(cls, "__getattr__"):
        return False
    config: Any = getattr(cls, "__struct_config__", None)
    if config is not None:
        return config.tag is None and not config.array_like and not config.forbid_unknown_fields
    settings: Any = getattr(cls, "__dataclass_params__", None)
    if settings is None or _own(cls, "__getattribute__"):
        return False
    return bool(settings.frozen) or not _own(cls, "__setattr__")


def _own(cls: type[Any], name: str) -> bool:
    """Whether *cls* or a base other than `object` defines *name*."""
    return getattr(cls, name) is not getattr(object, name)


def _odd(cls: type[Any], name: str) -> bool:
    """Whether looking up the field *name* may do something else than to give what is stored."""
    if name.startswith("_"):
        return True
    found: Any = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return hasattr(found, "__set__") and not isinstance(found, MemberDescriptorType)
