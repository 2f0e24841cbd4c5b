"""Numpy arrays as fields of a model: stored as bytes, those that a table of arrays has."""

from __future__ import annotations

from typing import Any

from ..errors import EncodeError
from .array import ArraySerializer
from .base import show, typename
from .scalars import Form, Kind, Shape


class ArrayField(Shape):
    """An array, of the dtype and shape that its serializer asks for."""

    kind: Kind = "text"  # bytes are, too: a Union could not tell them apart
    foreign = True
    native = False

    def __init__(self, arrays: ArraySerializer, form: Form) -> None:
        if form == "json":
            raise TypeError(
                "JSON has no bytes, and would store an array as text: use Msgpack, Cbor, Pickle or FlatBuffers"
            )
        self._arrays = arrays
        self.label = arrays.name

    def fits(self, value: Any) -> bool:
        """Whether it is an array of the dtype and shape."""
        return self._arrays.takes(value)

    def dump(self, value: Any) -> Any:
        """Header and numbers, as bytes."""
        return self._arrays.raw_encode(value)

    def load(self, data: Any) -> Any:
        """The array: one of its own, since what is decoded does not last."""
        if type(data) is not bytes:
            raise ValueError(f"expected {self.label}, got {show(data)}")
        return self._arrays.raw_decode(data)

    def misfit(self, value: Any, path: str) -> str:
        try:
            self._arrays.encode(value)
        except EncodeError as error:
            return f"{path}: expected {self._arrays.expects}: {error.__cause__ or error}"
        return f"{path}: expected {self.label}, got {typename(type(value))}"
