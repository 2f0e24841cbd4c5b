"""What a value serializer is: a round trip between values of one type and bytes."""

from __future__ import annotations

import importlib
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from ..errors import DecodeError, EncodeError, Error
from ..handlers import let_through

T = TypeVar("T")

Data = Union[bytes, memoryview]
"""What is decoded: bytes, or a memoryview that is valid only while its transaction is open."""

Encode = Callable[[Any], bytes]
Decode = Callable[[Any], Any]


class Serializer(ABC, Generic[T]):
    """Turns values of one type into bytes and back: ``decode(encode(value)) == value``, with the same type.

    A serializer of your own is a subclass with a *name* and the two ``raw_`` methods; `encode` and `decode` follow.
    Put it into an annotation, as a class or an instance: ``Annotated[Point, PointSerializer]``.
    """

    name: str
    """What the bytes are, in the file's own terms: ``"uuid"``, ``"zlib(cbor)"``. Never the name of a class."""

    expects: str = ""
    """What fits, for the texts of errors."""

    model: Optional[str] = None
    """The name of the model class. Information only: renaming the class locks nobody out."""

    examples: Sequence[T] = ()
    """Values that fit. The tests run over them."""

    takes_type: bool = False
    """Whether an instance in an annotation still has to be told, by `of_type`, what it stands beside."""

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """The serializer of this format for values of the type *annotation*.

        *localns* are the names beside those of its module that the type's own annotations may use.
        """
        return cls()

    @abstractmethod
    def raw_encode(self, value: T) -> bytes:
        """The bytes of *value*: as `encode`, but raises whatever comes. It refuses everything that does not fit."""

    @abstractmethod
    def raw_decode(self, data: Data) -> T:
        """The value of *data*: as `decode`, but raises whatever comes."""

    @property
    def bytes_decode(self) -> Decode:
        """`raw_decode` for data that is bytes, and never a memoryview."""
        return self.raw_decode

    def encode(self, value: T) -> bytes:
        """The bytes of *value*. Raises `EncodeError` for a value that does not fit."""
        try:
            return self.raw_encode(value)
        except (Error, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            raise EncodeError(self._refusal("store", f"{show(value)} ({typename(type(value))})", error)) from error

    def decode(self, data: Data) -> T:
        """The value of *data*. Raises `DecodeError` for bytes that this serializer cannot have written."""
        try:
            return self.raw_decode(data)
        except (Error, MemoryError):
            raise
        except Exception as error:
            let_through(error)
            size = len(data)
            begin = bytes(data[:16]).hex() + ("..." if size > 16 else "")
            raise DecodeError(self._refusal("read", f"{size} bytes ({begin})", error), size=size) from error

    def configured(
        self,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Callable[[Any, Any], int]] = None,
        cast: Optional[Callable[[Any], Any]] = None,
    ) -> Serializer[Any]:
        """A copy with the callables that classic maps are given. Raises TypeError for those it has no use for."""
        given = {"marshal": marshal, "unmarshal": unmarshal, "build": build, "cast": cast}
        refuse_callables(self.name, given)
        return self

    def of_type(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """What ``Annotated[annotation, self]`` means: itself, or a copy where the type has yet to be told.

        A serializer of the latter kind says so by ``takes_type = True``.
        """
        return self

    def columns(self) -> Any:
        """What reads single fields of stored values without the others (`flat.columns`), or None."""
        return None

    def classic(self) -> Serializer[T]:
        """The serializer that the classic layout stores these values with: itself, but for pickles of model classes."""
        return self

    def unchecked(self) -> Serializer[T]:
        """A copy that trusts what it is given to store, where checking costs extra; else itself."""
        return self

    def _refusal(self, verb: str, what: str, error: Exception) -> str:
        expected = f"expected {self.expects}; " if self.expects else ""
        return f"{self.name} cannot {verb} {what}: {expected}{error or typename(type(error))}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{f' of {self.model}' if self.model is not None else ''}>"


class FunctionSerializer(Serializer[T]):
    """A serializer made of two functions.

    Its ``raw_encode`` and ``raw_decode`` *are* these functions, often methods of a C type, with no call in between.
    """

    def __init__(
        self, name: str, encode: Encode, decode: Decode, *, model: Optional[str] = None, examples: Sequence[T] = ()
    ) -> None:
        self.name = name
        self.model = model
        self.examples = examples
        vars(self).update(raw_encode=encode, raw_decode=decode)

    # Never reached, the instance's own attributes come first; they are here for the abstract methods and for checkers.
    def raw_encode(self, value: T) -> bytes:
        raise NotImplementedError

    def raw_decode(self, data: Data) -> T:
        raise NotImplementedError


class Wrapper(ABC):
    """What changes another serializer: ``Annotated[Json[User], X]`` applies X to the serializer of ``Json[User]``."""

    @classmethod
    @abstractmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, changed."""


class WrapperOptions(ABC):
    """A wrapper with options, an instance in an annotation: ``Annotated[Json[User], Compression("zstd")]``."""

    @abstractmethod
    def around(self, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, changed."""


class UncheckedWrapper(Wrapper):
    """The `Unchecked` annotation: values are stored as given, by a producer that is trusted to give the right ones.

    What does not fit the type may then be stored, and raises `DecodeError` when it is read.
    """

    @classmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner* without its checks."""
        return inner.unchecked()


def refuse_callables(name: str, given: Mapping[str, Optional[object]]) -> None:
    """Raise TypeError if any of the callables *given*, by name, is there: serializer *name* has no use for it."""
    names = [f"{key}=" for key, value in given.items() if value is not None]
    if names:
        raise TypeError(f"a value stored as {name} takes no {' and no '.join(names)}: leave it out")


def is_a(value: object, cls: Any) -> bool:
    """``isinstance``, without telling checkers what *value* is: of an Any they would make a ``list[Unknown]``."""
    return isinstance(value, cls)


def is_free(annotation: Any) -> bool:
    """Whether *annotation* says nothing about the value: plain data then."""
    return annotation is None or annotation is Any or annotation is object or isinstance(annotation, TypeVar)


def typename(annotation: Any) -> str:
    """*annotation* as one would write it."""
    if isinstance(annotation, type) and not hasattr(annotation, "__origin__"):
        hidden = annotation.__module__ in ("builtins", "__main__")
        return annotation.__qualname__ if hidden else f"{annotation.__module__}.{annotation.__qualname__}"
    return str(annotation).replace("typing.", "")


def library(module: str, install: str) -> Any:
    """The optional *module*, imported now. Raises ImportError with the line that installs it.

    The result is Any: these libraries have no annotations, or are not installed where types are checked.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is needed and not installed: pip install {install}") from error


_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60


def show(value: object) -> str:
    """A short text of *value* for an error, whatever its own repr does."""
    try:
        return _repr.repr(value)
    except Exception:
        return object.__repr__(value)
