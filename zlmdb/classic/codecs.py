"""The codecs of a classic map, from the type arguments of its class and the arguments of its constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Optional, TypeVar, get_args, get_origin

from ..errors import EncodeError
from ..handlers import let_through
from ..keys import KeyCodec, key_codec
from ..typeargs import type_arguments
from ..values import serializer
from ..values.base import Serializer, is_free
from ..values.description import format_of

Callables = Mapping[str, Callable[..., Any]]


def map_codecs(
    declared: Any,
    base: type[Any],
    localns: Optional[Mapping[str, Any]],
    given: tuple[Optional[Callable[..., Any]], ...],
    named: Callables,
) -> tuple[KeyCodec[Any], Serializer[Any]]:
    """The codecs of *declared*, a class of maps or an alias of one, with the callables *given* in order or *named*."""
    key, value = map_types(declared, base, localns)
    names = callable_names(value)
    if len(given) > len(names):
        arguments = ("slot", "compress", *names)
        class_name = getattr(declared, "__name__", declared)
        raise TypeError(f"{class_name} takes {len(arguments)} arguments ({', '.join(arguments)}), got {2 + len(given)}")
    callables = {name: function for name, function in zip(names, given) if function is not None}
    callables.update(named)
    # With callables these, and not the format, have to know the model.
    made = _format(value).configured(**callables) if callables else serializer(value, localns=localns)
    if not callables and format_of(made.name) in ("json", "cbor") and _is_plain(value):
        made = made.unchecked()  # documents are what the library holds, as in zlmdb <= 26
    return key_codec(key), made


def _is_plain(value: Any) -> bool:
    """Whether the type *value* is that of documents, of whatever their library holds."""
    inner = get_args(value)[0] if hasattr(value, "__metadata__") else value
    if get_origin(inner) not in (dict, list):
        return is_free(inner) or inner in (dict, list)
    *keys, items = get_args(inner)
    return is_free(items) and all(key is str or is_free(key) for key in keys)


class OwnKeys(KeyCodec[Any]):
    """The keys of a map whose class has its own methods to encode and decode them. They sort as bytes."""

    name = "custom"
    expects = "what _serialize_key of the map takes"

    def __init__(self, encode: Callable[[Any], bytes], decode: Callable[[Any], Any]) -> None:
        self._encode = encode
        self._decode = decode

    @property
    def examples(self) -> Sequence[Any]:
        return ()

    def encode(self, key: Any) -> bytes:
        try:
            return self._encode(key)
        except (EncodeError, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            self.refuse(key, str(error))

    def beginning(self, start: Any) -> bytes:
        return self.encode(start)

    def decoder(self) -> Callable[[Any], Any]:
        return self._decode

    def __eq__(self, other: object) -> bool:  # the name says nothing of the bytes
        return self is other

    def __hash__(self) -> int:
        return id(self)


def map_types(declared: Any, base: type[Any], localns: Optional[Mapping[str, Any]]) -> tuple[Any, Any]:
    """The types of keys and values of *declared*. Raises `TypeError` if it declares none."""
    arguments = type_arguments(declared, base, localns)
    if len(arguments) != 2 or isinstance(arguments[0], TypeVar):
        raise TypeError(
            f"{declared!r} declares no types: derive it from PersistentMap[KeyType, ValueType] or a named map"
        )
    return arguments[0], arguments[1]


def value_type(declared: Any, base: type[Any], localns: Optional[Mapping[str, Any]]) -> Any:
    """The type of the values of *declared*, without the format; None if it declares none."""
    value = map_types(declared, base, localns)[1]
    inner = get_args(value)[0] if hasattr(value, "__metadata__") else value
    return None if isinstance(inner, TypeVar) else inner


def callable_names(value: Any) -> tuple[str, ...]:
    """The names of the callables of maps with values of the type *value*, in the order of the arguments."""
    name = _format(value).name
    if "flatbuffers" in name:
        return "build", "cast"
    return ("marshal", "unmarshal") if "json" in name or "cbor" in name else ()


def _format(value: Any) -> Serializer[Any]:
    """The serializer of the type *value*, with its wrappers, for values of any class."""
    metadata: tuple[Any, ...] = getattr(value, "__metadata__", ())
    special: Any = Annotated  # not a name that checkers take for an annotation
    return serializer(special[tuple([Any, *metadata])] if metadata else Any)
