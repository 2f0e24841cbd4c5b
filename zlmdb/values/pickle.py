"""Values as pickles: any Python object, of classes that are there to import when it is read.

**Unpickling runs code.** Whoever can write the file can run anything in the program that reads it, unless `allow` says
which classes may be made. Writes protocol 5, reads every protocol (zlmdb <= 26 wrote protocol 2).
https://docs.python.org/3/library/pickle.html
"""

from __future__ import annotations

import enum
import functools
import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Optional, TypeVar

from ..errors import DecodeError
from .base import Decode, Encode, FunctionSerializer, Serializer, is_free, typename

T = TypeVar("T")

_dumps: Encode = functools.partial(pickle.dumps, protocol=5)

_EXAMPLES: list[Any] = [None, 1, "a", (1, [2]), {"a": {1, 2}}]

_OLD_NAMES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Modules as protocols 0 to 2 name them."""

_MACHINERY = {("copyreg", "_reconstructor"), ("builtins", "object")}
"""What pickles of protocols 0 and 1 name besides their classes. Harmless: it makes an object of a class it is given."""


class PickleSerializer(FunctionSerializer[T]):
    """Any object, or what fits the type *annotation*: a model class, any other class, or such as ``list[User]``.

    Values are checked as far as the type says something: fields of model classes, items of lists, dicts and so on.
    Subclasses fit. An object of a model class that is made of its fields and nothing else is pickled as the tuple of
    these fields, which takes half the time; attributes that are no fields are not stored. Plainly pickled objects are
    read all the same. Fields that a class has got since get their defaults, those that it lost are ignored; within an
    object of another class, pickle itself decides about the latter.

    With *allow*, pickles that name any other class or function are refused, in reading and in writing. Classes that the
    type names need not be listed, nor None, numbers, text, bytes, lists, dicts and tuples, which pickles hold without
    naming a class: ``Annotated[User, PickleSerializer(allow=[])]`` is User and the classes in its annotations. This
    keeps code from running; it does not keep a damaged or hostile pickle from taking memory.
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
        """*checked* and *localns* as of `MsgpackSerializer`; *as_fields* False: objects are pickled plainly."""
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
            loads = _loader(allow)
            return (_dumps if allow is None else _reread(_dumps, loads)), loads
        # Here and not above: it loads dataclasses and the like, which programs without model classes do not need.
        from .pickled import typed_codec

        return typed_codec(self._annotation, loader=_loader, **self._given)

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
        """The same with objects pickled plainly, as zlmdb <= 26 reads them."""
        return self._copy(self._annotation, as_fields=False)

    def _copy(self, annotation: Any, **changes: Any) -> Serializer[Any]:
        return PickleSerializer(annotation, **{**self._given, **changes})


def _loader(allow: Optional[Iterable[type[Any]]]) -> Decode:
    """What reads a pickle, of the classes *allow* only if they are given."""
    if allow is None:
        return pickle.loads
    allowed = {(one.__module__, one.__qualname__): one for one in allow}

    class Restricted(_Restricted):
        classes = allowed

    return lambda data: Restricted(io.BytesIO(data)).load()


def _reread(encode: Encode, loads: Decode) -> Encode:
    """*encode*, refusing what *loads* does not read."""

    def encode_reread(value: Any) -> bytes:
        data = encode(value)
        loads(data)
        return data

    return encode_reread


def _enum_member(cls: Any, name: Any) -> Any:
    """The getattr that some versions of Python 3.11 pickle members of enums with, of use for nothing else."""
    if isinstance(cls, type) and issubclass(cls, enum.Enum) and name in cls.__members__:
        return cls.__members__[name]
    raise DecodeError(f"a pickle that takes {name!r} from {typename(cls)}, which is no enum with such a member")


class _Restricted(pickle.Unpickler):
    """An unpickler that knows certain classes and imports none."""

    classes: ClassVar[Mapping[tuple[str, str], type[Any]]] = {}

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """The allowed class of that name. Raises `DecodeError` for any other."""
        module_name = _OLD_NAMES.get(module_name, module_name)
        found = self.classes.get((module_name, global_name))
        if found is not None:
            return found
        if (module_name, global_name) in _MACHINERY:
            return super().find_class(module_name, global_name)
        if (module_name, global_name) == ("builtins", "getattr"):
            return _enum_member
        raise DecodeError(f"a pickle that names {module_name}.{global_name}, which allow= does not list")
