"""Values as FlatBuffers, written and read by callables that use the code flatc generates.

``build(obj, builder)`` puts an object into a `flatbuffers.Builder` and gives the offset of its root table; the value is
the finished buffer, without a file identifier. ``cast(data)`` wraps a buffer, lazily as generated classes do, or makes
an object of it. https://flatbuffers.dev/internals/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional, TypeVar

from ..errors import EncodeError
from .base import Encode, FunctionSerializer, Serializer, is_free, library, refuse_callables, typename

T = TypeVar("T")

Build = Callable[[Any, Any], int]

KEPT = 1 << 20
"""Builders that have grown beyond this many bytes are not kept for the next value."""


class FlatBuffersSerializer(FunctionSerializer[T]):
    """Values that *build* writes and *cast* reads; without *cast*, reading gives the bytes."""

    def __init__(
        self, annotation: Any = Any, *, build: Optional[Build] = None, cast: Optional[Callable[[Any], Any]] = None
    ) -> None:
        self._given: dict[str, Any] = {"annotation": annotation, "build": build, "cast": cast}
        name = None if is_free(annotation) else typename(annotation)
        encode = _no_build if build is None else _builder(build)
        super().__init__("flatbuffers", encode, bytes if cast is None else cast, model=name)

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """FlatBuffers of values of type *annotation*, still without callables."""
        return cls(annotation)

    def configured(
        self,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Build] = None,
        cast: Optional[Callable[[Any], Any]] = None,
    ) -> Serializer[Any]:
        """A copy that writes by *build* and reads by *cast*; those left out stay as they are."""
        refuse_callables(self.name, {"marshal": marshal, "unmarshal": unmarshal})
        given: dict[str, Any] = dict(self._given)
        given.update((key, value) for key, value in (("build", build), ("cast", cast)) if value is not None)
        return type(self)(**given)


def _no_build(value: Any) -> bytes:
    raise EncodeError(
        "flatbuffers values need to be told how they are written: give build=, a function of the object and a "
        "flatbuffers.Builder that returns the offset of the root table (and cast=, from bytes to the object)"
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
