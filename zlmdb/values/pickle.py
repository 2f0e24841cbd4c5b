"""Values as pickles: any Python object, of classes that are there to import when it is read.

**Unpickling runs code.** Whoever can write the file can run anything in the program that reads it, unless `allow` says
which classes may be made. Writes protocol 5, reads every protocol (zlmdb <= 26 wrote protocol 2).
https://docs.python.org/3/library/pickle.html
"""

from __future__ import annotations

import functools
import io
import pickle
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Optional, TypeVar

from ..errors import DecodeError
from .base import Data, Decode, Encode, FunctionSerializer, Serializer, is_free, typename

T = TypeVar("T")

_dumps: Encode = functools.partial(pickle.dumps, protocol=5)

_EXAMPLES: list[Any] = [None, 1, "a", (1, [2]), {"a": {1, 2}}]

_OLD_NAMES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules as protocols 0 to 2 name them."""

_MACHINERY = {("copyreg", "_reconstructor"), ("builtins", "object")}
"""What pickles of protocols 0 and 1 name besides their classes. Harmless: it makes an object of a class it is given."""


class PickleSerializer(FunctionSerializer[T]):
    """Any object, or only instances of the class *annotation*.

    With *allow*, pickles that name any other class or function are refused, in reading and in writing. List the classes
    of everything inside, too: ``allow=[User, UUID, datetime]``; None, numbers, text, bytes, lists, dicts and tuples,
    which pickles hold without naming a class, need not be. This keeps code from running; it does not keep a damaged or
    hostile pickle from taking memory.
    """

    def __init__(self, annotation: Any = Any, *, allow: Optional[Iterable[type[Any]]] = None) -> None:
        self._allow = None if allow is None else tuple(allow)
        encode, decode = _codec(self._allow)
        cls = _class(annotation)
        if cls is not None:
            encode, decode = _of_class(cls, encode, decode)
        super().__init__(
            "pickle",
            encode,
            decode,
            model=None if is_free(annotation) else typename(annotation),
            examples=_EXAMPLES if is_free(annotation) else (),
        )

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """Pickles of values of type *annotation*."""
        return cls(annotation)


def _codec(allow: Optional[tuple[type[Any], ...]]) -> tuple[Encode, Decode]:
    if allow is None:
        return _dumps, pickle.loads
    classes = {(one.__module__, one.__qualname__): one for one in allow}

    def decode(data: Data) -> Any:
        return _Restricted(io.BytesIO(data), classes).load()

    def encode(value: Any) -> bytes:
        data = _dumps(value)
        decode(data)
        return data

    return encode, decode


class _Restricted(pickle.Unpickler):
    """An unpickler that knows certain classes and imports none."""

    def __init__(self, file: io.BytesIO, classes: Mapping[tuple[str, str], type[Any]]) -> None:
        super().__init__(file)
        self._classes = classes

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The allowed class of that name. Raises `DecodeError` for any other."""
        module_name = _OLD_NAMES.get(module_name, module_name)
        found = self._classes.get((module_name, global_name))
        if found is not None:
            return found
        if (module_name, global_name) in _MACHINERY:
            return super().find_class(module_name, global_name)
        raise DecodeError(f"a pickle that names {module_name}.{global_name}, which allow= does not list")


def _class(annotation: Any) -> Optional[type[Any]]:
    """The class that values of *annotation* are instances of, where ``isinstance`` can tell."""
    if not isinstance(annotation, type) or is_free(annotation) or getattr(annotation, "_is_protocol", False):
        return None
    return dict if hasattr(annotation, "__total__") else typing.get_origin(annotation) or annotation


def _of_class(cls: type[Any], encode_any: Encode, decode_any: Decode) -> tuple[Encode, Decode]:
    def encode(value: Any) -> bytes:
        if not isinstance(value, cls):
            raise TypeError(f"expected {typename(cls)}")
        return encode_any(value)

    def decode(data: Data) -> Any:
        value = decode_any(data)
        if not isinstance(value, cls):
            raise ValueError(f"expected {typename(cls)}, got {typename(type(value))}")
        return value

    return encode, decode
