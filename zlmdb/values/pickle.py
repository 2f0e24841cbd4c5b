"""Values as pickles: any Python object whose class can be imported when it is read.

**Unpickling runs code.** Whoever can write the file can run anything in the program that reads it, unless `allow`
restricts the classes. Writes protocol 5, reads every protocol (zlmdb 26 wrote protocol 2).
https://docs.python.org/3/library/pickle.html
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Optional, TypeVar

from .base import Decode, Encode, FunctionSerializer, Serializer, is_free, typename
from .depth import limited, pickle_may_be_deep

T = TypeVar("T")

plain_dumps: Encode = functools.partial(pickle.dumps, protocol=5)
"""Any value as a pickle."""

_EXAMPLES: list[Any] = [None, 1, "a", (1, [2]), {"a": {1, 2}}]


class PickleSerializer(FunctionSerializer[T]):
    """Any object, or objects of the type *annotation*: a model class, any other class, or ``list[User]``.

    Values are checked as far as the type describes them: fields of model classes, items of lists, dicts and so on.
    Subclasses fit. An object of a model class that consists only of its fields is pickled as a tuple of these fields,
    which takes half the time; attributes that are not fields are not stored. Plainly pickled objects can also be read.
    Fields that were added to a class get their defaults, fields that were removed are ignored; within an object of
    another class, pickle itself handles removed fields.

    With *allow*, pickles that name any other class or function are refused, in reading and in writing. Classes that the
    type names need not be listed, nor None, numbers, text, bytes, lists, dicts and tuples, which pickles contain
    without naming a class: ``Annotated[User, PickleSerializer(allow=[])]`` allows User and the classes in its
    annotations. Such a pickle sets attributes and items only of objects that it created itself, never of a class, of a
    member of an enum or of an object that a class keeps. It may call each class with any arguments, and zlmdb does not
    control what the class then does: list no class whose ``__init__``, ``__new__`` or ``__setstate__`` does harm. This
    does not keep a damaged or hostile pickle from using up memory. A pickle that names a class is read about ten times
    slower this way.
    """

    def __init__(
        self,
        annotation: Any = Any,
        *,
        allow: Optional[Iterable[type[Any]]] = None,
        checked: bool = True,
        localns: Optional[Mapping[str, Any]] = None,
        as_fields: bool = True,
    ) -> None:
        """*checked* and *localns* as for `MsgpackSerializer`; *as_fields* False: objects are pickled plainly."""
        self._given: dict[str, Any] = {
            "allow": None if allow is None else tuple(allow),
            "checked": checked,
            "localns": localns,
            "as_fields": as_fields,
        }
        self._annotation = annotation
        self.takes_type = is_free(annotation)
        encode, decode = self._codec()
        super().__init__(
            "pickle",
            encode,
            decode,
            model=None if self.takes_type else typename(annotation),
            examples=_EXAMPLES if self.takes_type else (),
        )

    def _codec(self) -> tuple[Encode, Decode]:
        allow: Optional[tuple[type[Any], ...]] = self._given["allow"]
        if is_free(self._annotation):
            loads = loader(allow)
            dumps = limited(plain_dumps, pickle_may_be_deep)
            return (dumps if allow is None else read_back(dumps, loads)), loads
        # Here and not above: it loads dataclasses and the like, which programs without model classes do not need.
        from .pickled import typed_codec

        return typed_codec(self._annotation, **self._given)

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """Pickles of values of type *annotation*."""
        return cls(annotation, localns=localns)

    def of_type(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """With these options for values of type *annotation*, if none was given."""
        return self._copy(annotation, localns=localns) if self.takes_type and not is_free(annotation) else self

    def unchecked(self) -> Serializer[T]:
        """The same without checks on writing, those of *allow* included."""
        return self._copy(self._annotation, checked=False)

    def classic(self) -> Serializer[T]:
        """The same with objects pickled plainly, so that zlmdb 26 can read them."""
        return self._copy(self._annotation, as_fields=False)

    def _copy(self, annotation: Any, **changes: Any) -> Serializer[Any]:
        return PickleSerializer(annotation, **{**self._given, **changes})


def loader(allow: Optional[Iterable[type[Any]]]) -> Decode:
    """The function that reads a pickle; with *allow*, only of these classes."""
    if allow is None:
        return pickle.loads
    # Here and not above: few programs list classes, and it takes a millisecond to import.
    from .restricted import restricted

    return restricted(allow)


def read_back(encode: Encode, decode: Decode) -> Encode:
    """*encode*, but refuses values that *decode* does not read."""

    def encode_readable(value: Any) -> bytes:
        data = encode(value)
        decode(data)
        return data

    return encode_readable
