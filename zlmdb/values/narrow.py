"""Decoding some fields of a record: msgspec passes over the others, which takes a third of the time of all of them.

The object that this gives has these fields, of the same types and with the same defaults as in the model class, and
nothing else of it. Classes that have a say in what their fields are (properties, ``__post_init__``) are left out.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Optional

from .base import is_a

if TYPE_CHECKING:
    from types import ModuleType


def narrowed(annotation: Any, names: Collection[str], msgspec: ModuleType) -> Optional[type[Any]]:
    """A class with the fields *names* of the model class *annotation*, for msgspec's decoders; None if there is none.

    There is none either if it would have most of the fields.
    """
    if not is_a(annotation, type) or typing.get_origin(annotation) is not None or not _plain(annotation):
        return None
    try:
        fields = _fields(annotation, msgspec)
    except (TypeError, NameError):  # types that only the serializer could resolve
        return None
    if not fields.keys() >= set(names) or 2 * len(names) > len(fields) or any([_odd(annotation, one) for one in names]):
        return None
    chosen = [fields[name] for name in sorted(names)]
    try:
        made: type[Any] = msgspec.defstruct(
            annotation.__name__, [one.definition for one in chosen], kw_only=True, gc=False,
            rename={one.definition[0]: one.stored for one in chosen},
        )  # fmt: skip
    except (TypeError, ValueError):  # a default that msgspec does not take
        return None
    return made


class _Field(typing.NamedTuple):
    """A field as `msgspec.defstruct` takes it, and its name in the stored map."""

    definition: tuple[Any, ...]
    stored: str


def _fields(cls: Any, msgspec: ModuleType) -> dict[str, _Field]:
    if hasattr(cls, "__struct_config__"):
        found = msgspec.structs.fields(cls)
        return {
            one.name: _Field(
                (one.name, one.type, *([] if one.required else [_default(one, msgspec.NODEFAULT, msgspec)])),
                one.encode_name,
            )
            for one in found
        }
    hints = typing.get_type_hints(cls, include_extras=True)
    return {
        one.name: _Field((one.name, hints[one.name], *_of_dataclass(one, msgspec)), one.name)
        for one in dataclasses.fields(cls)
    }


def _of_dataclass(field: dataclasses.Field[Any], msgspec: ModuleType) -> list[Any]:
    missing = dataclasses.MISSING
    return [] if field.default is missing and field.default_factory is missing else [_default(field, missing, msgspec)]


def _default(field: Any, missing: Any, msgspec: ModuleType) -> Any:
    if field.default_factory is not missing:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default)


def _plain(cls: type[Any]) -> bool:
    """Whether objects of *cls* are what is stored of them, a map of fields, and nothing more."""
    if hasattr(cls, "__post_init__") or hasattr(cls, "__getattr__"):
        return False
    config: Any = getattr(cls, "__struct_config__", None)
    if config is not None:
        return config.tag is None and not config.array_like and not config.forbid_unknown_fields
    settings: Any = getattr(cls, "__dataclass_params__", None)
    if settings is None or cls.__getattribute__ is not object.__getattribute__:
        return False
    return bool(settings.frozen) or cls.__setattr__ is object.__setattr__


def _odd(cls: type[Any], name: str) -> bool:
    """Whether looking up the field *name* may do something else than to give what is stored."""
    if name.startswith("_"):
        return True
    found: Any = None
    for base in cls.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            break
    return hasattr(type(found), "__set__") and type(found) is not MemberDescriptorType
