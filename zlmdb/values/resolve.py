"""From an annotation to its serializer, and from the name in a file to one that reads plain data."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, Optional

from ..typeargs import is_uuid
from .bare import BARE, BYTES
from .base import Decode, Encode, Serializer, Wrapper, WrapperOptions, is_a, is_free, typename
from .description import format_of


def serializer(annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
    """The serializer that *annotation* asks for.

    ``Annotated[T, X]`` asks for X: a `Serializer` or a class of them, or a `Wrapper` (with options, a
    `WrapperOptions`) around what stands before it.
    A bare str, bytes, int, float, bool or UUID has its own; any other type is stored as MessagePack, and no type
    (Any, a free type variable) means plain data in MessagePack.

    *localns*: names that the annotations of a model class use and its module lacks, such as other classes defined in
    the same function. Raises TypeError for what cannot be stored and read back.

    >>> serializer(int).name, serializer(dict[str, int]).name
    ('int64', 'msgpack')
    """
    if isinstance(annotation, str):
        raise TypeError(f"the annotation {annotation!r} is text: resolve it first (typing.get_type_hints)")
    if typing.get_origin(annotation) is not Annotated:
        found = _bare(annotation) if isinstance(annotation, type) else None
        return found if found is not None else of_format("msgpack", annotation, localns)
    inner, *extras = typing.get_args(annotation)
    asked = [extra for extra in extras if _is_serializer(extra) or _is_wrapper(extra)]
    others = [extra for extra in extras if extra not in asked]
    if others and not is_free(inner):  # such as msgspec.Meta: part of the type
        special: Any = Annotated  # not a name that checkers take for an annotation
        inner = special[tuple([inner, *others])]
    return _apply(asked, inner, localns)


def _bare(cls: type[Any]) -> Optional[Serializer[Any]]:
    """The serializer of a class that has one without a model."""
    found = BARE.get(cls)
    if found is None and is_uuid(cls):
        from .named import UUID_  # late: it takes a millisecond to import

        return UUID_
    return found


def _apply(asked: list[Any], inner: Any, localns: Optional[Mapping[str, Any]]) -> Serializer[Any]:
    """What the extras *asked*, from the innermost to the outermost, make of the type *inner*."""
    found: Optional[Serializer[Any]] = None
    for extra in asked:
        if _is_wrapper(extra):
            found = extra.around(serializer(inner, localns=localns) if found is None else found)
        elif found is not None:
            raise TypeError(f"two serializers for one value: {found.name} and {typename(extra)}; keep one")
        elif is_a(extra, Serializer):
            found = extra.of_type(inner, localns)
        else:
            found = extra.for_type(inner) if localns is None else extra.for_type(inner, localns=localns)
    return of_format("msgpack", inner, localns) if found is None else found


def _is_wrapper(extra: Any) -> bool:
    return isinstance(extra, WrapperOptions) or (isinstance(extra, type) and issubclass(extra, Wrapper))


def _is_serializer(extra: Any) -> bool:
    return isinstance(extra, Serializer) or (isinstance(extra, type) and issubclass(extra, Serializer))


# Imported when they are used. Never pickle: a file chooses no codec that runs code.
_FORMATS = {
    "json": (".json", "JsonSerializer"),
    "cbor": (".cbor", "CborSerializer"),
    "msgpack": (".msgpack", "MsgpackSerializer"),
    "flatbuffers": (".flatbuffers", "FlatBuffersSerializer"),
}
_BYTES_ONLY = ("pickle", "custom")  # the second is what methods of a map write
_MOST_NESTED = 20  # wrappers in each other: a file may say anything, and each is a call


def of_format(form: str, annotation: Any = Any, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
    """The serializer of values of type *annotation* in the format *form*, which is not pickle."""
    module, cls = _FORMATS[form]
    return getattr(import_module(module, __package__), cls).for_type(annotation, localns=localns)


def _wrapped(name: str, inner: str) -> Optional[Serializer[Any]]:
    """The serializer that ``name(inner)`` wrote, if *name* is a wrapper."""
    if name == "array":
        from .array import ArraySerializer

        return ArraySerializer.from_text(inner)
    from .checksums import CheckedSerializer
    from .compression import METHODS

    wrappers: dict[str, Callable[[Serializer[Any]], Serializer[Any]]] = {**METHODS, "checked": CheckedSerializer}
    return wrappers[name](from_name(inner)) if name in wrappers else None


def from_name(name: str) -> Serializer[Any]:
    """A serializer that reads what the one called *name* wrote, as plain data.

    Pickles and FlatBuffers come as their bytes. Raises ValueError for a name that is not known.

    >>> from_name("zlib(cbor)").decode(bytes.fromhex("789c4b4c0400012500c3"))
    'a'
    """
    from .named import NAMED, UUID_  # late: a program that knows its types needs no names

    for known in (*BARE.values(), UUID_, *NAMED):  # the bare types first: they refuse None
        if known.name == name:
            return known
    if name in _BYTES_ONLY:
        return BYTES
    if name in _FORMATS:
        return of_format(name)
    parts = re.fullmatch(r"(\w+)\((.+)\)", name)
    found = None if parts is None or name.count("(") > _MOST_NESTED else _wrapped(parts[1], parts[2])
    if found is not None:
        return found
    raise ValueError(f"values of a type {name!r}, which this version does not know: written by a newer one?")


def inside(name: str, inner: Serializer[Any]) -> tuple[Encode, Decode]:
    """Encoder and decoder of *inner* inside the wrappers of the codec *name*: of ``zlib(json)``, compressed."""
    outer = from_name(name.replace(str(format_of(name)), "pickle"))  # with bytes inside
    return lambda value: outer.encode(inner.encode(value)), lambda data: inner.decode(outer.decode(data))
