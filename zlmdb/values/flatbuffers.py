"""Values as FlatBuffers: of a model class as it is, or by callables that use the code flatc generates.

``FlatBuffers[User]`` needs nothing more: schema, encoder and decoder come from the class (see `flat`). The classic way
is a pair of callables: ``build(obj, builder)`` puts an object into a `flatbuffers.Builder` and gives the offset of its
root table; ``cast(data)`` wraps a buffer, lazily as generated classes do, or makes an object of it. Either way the
value is the finished buffer, without a file identifier. https://flatbuffers.dev/internals/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from ..errors import EncodeError, Error
from ..handlers import let_through
from .base import Data, Decode, Encode, Serializer, is_free, library, refuse_callables, show, typename

if TYPE_CHECKING:
    from .flat.codec import Codec

T = TypeVar("T")

Build = Callable[[Any, Any], int]

KEPT = 1 << 20
"""Builders that have grown beyond this many bytes are not kept for the next value."""


class _Prepared:
    """A method that is a function of the instance, made when it is first asked for: generating code takes its time."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Optional[FlatBuffersSerializer[Any]], cls: object) -> Any:
        return self if owner is None else owner.prepared(self.name)


class FlatBuffersSerializer(Serializer[T]):
    """Values of a model class, or those that *build* writes and *cast* reads.

    With *build* and without *cast*, or with neither and no model class, reading gives the bytes.
    """

    def __init__(
        self,
        annotation: Any = Any,
        *,
        build: Optional[Build] = None,
        cast: Optional[Callable[[Any], Any]] = None,
        checked: bool = True,
        localns: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """*checked*: values are looked at before they are written. *localns*: as for `serializer`."""
        self._given: dict[str, Any] = {
            "annotation": annotation, "build": build, "cast": cast, "checked": checked, "localns": localns
        }  # fmt: skip
        self.name = "flatbuffers"
        self.model = None if is_free(annotation) else typename(annotation)
        self._codec: Optional[Codec] = None
        self._whole: Optional[Decode] = None
        vars(self).update(takes_type=is_free(annotation) and build is None and cast is None)

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """FlatBuffers of values of type *annotation*.

        The type is looked at when it is first used, so that any class may still be given ``build=`` and ``cast=``.
        """
        return cls(annotation, localns=localns)

    def of_type(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """Itself, or if it has neither a type nor callables a copy for values of type *annotation*."""
        if not self.takes_type:
            return self
        given = dict(self._given)
        given.update(annotation=annotation, localns=localns if given["localns"] is None else given["localns"])
        return type(self)(**given)

    if TYPE_CHECKING:

        def raw_encode(self, value: T) -> bytes: ...

        def raw_decode(self, data: Data) -> T: ...
    else:
        raw_encode, raw_decode = _Prepared("raw_encode"), _Prepared("raw_decode")

    def prepared(self, name: str) -> Any:
        """``raw_encode`` or ``raw_decode``, both made now. Raises TypeError for a model that cannot be stored."""
        encode, decode = self._functions()
        vars(self).update(raw_encode=encode, raw_decode=decode)
        return vars(self)[name]

    def _functions(self) -> tuple[Encode, Decode]:
        given = self._given
        if given["build"] is None and given["cast"] is None and _is_storable(given["annotation"]):
            from .flat.codec import Codec

            codec = self._codec = Codec(given["annotation"], given["localns"])
            return self._generated(codec)
        encode = _no_build if given["build"] is None else _builder(given["build"])
        return encode, bytes if given["cast"] is None else given["cast"]

    def _generated(self, codec: Codec) -> tuple[Encode, Decode]:
        decode = codec.decoder()
        return codec.encoder(decode, checked=self._given["checked"]), decode

    def columns(self) -> Any:
        """The fields of a model class; None for other values, and where callables read and write."""
        if self._codec is None:
            self.prepared("raw_decode")
        codec = self._codec
        if codec is None or codec.schema.boxed:
            return None
        from .flat.columns import Columns

        return Columns(codec, self._whole)

    def encode(self, value: T) -> bytes:
        """The bytes of *value*. Raises `EncodeError` for a value that does not fit, with the path inside it."""
        encode = self.raw_encode  # made now: a type that cannot be stored raises here
        try:
            return encode(value)
        except (Error, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            reason = None if self._codec is None else self._codec.misfit(value, error)
            what = f"{show(value)} ({typename(type(value))})"
            raise EncodeError(reason or self._refusal("store", what, error)) from error

    def configured(
        self,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Build] = None,
        cast: Optional[Callable[[Any], Any]] = None,
    ) -> Serializer[Any]:
        """A copy that writes by *build* and reads by *cast*; those left out stay as they are."""
        refuse_callables(self.name, {"marshal": marshal, "unmarshal": unmarshal})
        given = dict(self._given)
        given.update((key, value) for key, value in (("build", build), ("cast", cast)) if value is not None)
        return type(self)(**given)

    def unchecked(self) -> Serializer[T]:
        """A copy that writes objects of model classes without looking at the types of what they hold."""
        given = dict(self._given)
        given["checked"] = False
        return type(self)(**given)


class FlatBuffersViewSerializer(FlatBuffersSerializer[T]):
    """The same bytes; reading gives a view, of which an attribute is read when it is asked for.

    A view has the attributes of the model class, is read-only, and keeps the bytes of the record. ``load(view)`` of
    `zlmdb.values` makes the object. What is not there or broken raises `DecodeError` when it is touched.
    """

    def _generated(self, codec: Codec) -> tuple[Encode, Decode]:
        from .flat.view import View
        from .flat.view import load as whole

        decode, view = codec.decoder(), codec.viewer()
        self._whole = decode
        put = codec.encoder(decode, checked=self._given["checked"])

        def encode(value: Any) -> bytes:
            if not isinstance(value, View):
                return put(value)
            data = codec.stored_view(value)
            if data is None:
                return put(whole(value))  # which refuses another class
            decode(data)  # raises for what is broken
            return data

        return encode, view


def fbs(annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> str:
    """The ``.fbs`` text from which flatc makes readers and writers of what ``FlatBuffers[annotation]`` stores.

    Raises TypeError for a type that cannot be stored so.

    >>> from typing import NamedTuple
    >>> class City(NamedTuple):
    ...     name: str
    ...     people: int = 0
    >>> print(fbs(City))
    table City {
      name: string (id: 0, required);
      people: long (id: 1);
    }
    <BLANKLINE>
    root_type City;
    <BLANKLINE>
    """
    from .flat.fbs import text

    return text(annotation, localns)


def load(view: T) -> T:
    """The object that *view*, read from a `FlatBuffersView`, is a view of: read as a whole.

    Raises `DecodeError` for bytes that do not fit the class, and TypeError for what is no view.
    """
    from .flat.view import load as whole

    loaded: T = whole(view)
    return loaded


def _is_storable(annotation: Any) -> bool:
    """Whether *annotation* is a model class, or a type made of such: not a class that flatc generated, for one."""
    if is_free(annotation):
        return False
    if not isinstance(annotation, type):
        return True
    marks = (
        "__dataclass_fields__", "__attrs_attrs__", "__struct_config__", "__pydantic_fields__", "_fields", "__total__",
        "__members__",
    )  # fmt: skip
    return annotation.__module__ in _STANDARD or any(hasattr(annotation, mark) for mark in marks)


_STANDARD = ("builtins", "uuid", "datetime", "decimal", "_decimal", "_pydatetime", "_pydecimal")


def _no_build(value: Any) -> bytes:
    raise EncodeError(
        "flatbuffers values need to be told how they are written: name a model class, FlatBuffers[User], or give "
        "build=, a function of the object and a flatbuffers.Builder that returns the offset of the root table (and "
        "cast=, from bytes to the object)"
    )


def _builder(build: Build) -> Encode:
    """The encoder that calls *build*. It keeps its builders: making one costs as much as a small value."""
    spare: list[Any] = []  # a list, popped and appended, is safe between threads and when build writes another value

    def encode(value: Any) -> bytes:
        try:
            builder = spare.pop()
        except IndexError:
            builder = _new_builder()
        builder.Finish(build(value, builder))
        data = bytes(builder.Output())
        if len(builder.Bytes) <= KEPT:
            builder.Clear()
            spare.append(builder)
        return data

    return encode


def _new_builder() -> Any:
    return library("flatbuffers", "flatbuffers").Builder(1024)
